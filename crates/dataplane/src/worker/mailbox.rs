//! Where messages to a worker come in, and what it does about them between two rounds.

use super::control::{Control, MAX_REQUESTS, Message};
use super::report::Report;
use super::waiting::Idleness;
use super::waker::{Bell, Doorbell, Waker};
use super::{Worker, intake, modes, moves, ports, schedulers};
use crate::migration;
use crate::requests::{self, Pause, Request};
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

/// How often a worker that takes no packets looks whether it is to end.
const PAUSED_LOOK: Duration = Duration::from_millis(10);

/// The messages that wait for a worker.
pub(super) struct Mailbox {
    messages: Receiver<Message>,
    /// The handle that others have copies of.
    control: Control,
    /// Rings when a message has come.
    bell: Bell,
    /// What the bell makes readable, of a worker that waits for it itself.
    doorbell: Option<Doorbell>,
    /// How many pauses have begun and are not over.
    pauses: usize,
    /// Whether whoever hands something to this worker is to wake it.
    asleep: Arc<AtomicBool>,
    /// It looks once more before it sleeps.
    is_drowsy: bool,
    pub(super) idleness: Idleness,
}

impl Mailbox {
    /// An empty one, of a worker that waits for its own doorbell.
    pub(super) fn new(doorbell: Doorbell) -> Mailbox {
        let bell = doorbell.bell();
        Mailbox { doorbell: Some(doorbell), ..Mailbox::with(bell) }
    }

    /// An empty one, of a worker whose messages ring that bell.
    pub(super) fn with(bell: Bell) -> Mailbox {
        let (sender, messages) = sync_channel(MAX_REQUESTS);
        let (control, asleep) = (Control::new(sender, bell.clone()), Arc::default());
        Mailbox {
            messages,
            control,
            bell,
            doorbell: None,
            pauses: 0,
            asleep,
            is_drowsy: false,
            idleness: Idleness::default(),
        }
    }

    /// The worker leads so many, itself included: handles that are asked for from now on say so.
    pub(super) fn lead(&mut self, workers: usize) {
        self.control.lead(workers);
    }

    /// For threads that put something where this worker looks.
    pub(super) fn waker(&self) -> Waker {
        Waker::new(self.control.bell(), Arc::clone(&self.asleep), self.poll_fd())
    }

    /// Whether the worker may sleep now: it has found nothing to do, and nothing when it looked once more after it had said
    /// that it sleeps.
    pub(super) fn may_sleep(&mut self) -> bool {
        if !self.is_drowsy {
            self.is_drowsy = true;
            self.asleep.store(true, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            return false;
        }
        true
    }

    /// The worker is at work.
    pub(super) fn is_awake(&mut self) {
        self.idleness.ends();
        if std::mem::take(&mut self.is_drowsy) {
            self.asleep.store(false, Ordering::Relaxed);
        }
    }

    /// The next message, if one has come.
    pub(super) fn next(&self) -> Option<Message> {
        self.messages.try_recv().ok()
    }

    pub(super) fn control(&self) -> &Control {
        &self.control
    }

    /// A descriptor that polls readable when a message has come, of a worker that waits for it itself.
    pub(super) fn poll_fd(&self) -> Option<RawFd> {
        self.doorbell.as_ref().map(Doorbell::poll_fd)
    }

    /// Whether a message may have come since this was asked last.
    #[inline]
    pub(super) fn was_called(&self) -> bool {
        self.bell.was_called()
    }

    /// Has the descriptor poll readable only when another message comes.
    pub(super) fn look(&self) {
        self.doorbell.iter().for_each(Doorbell::look);
    }

    /// Whether no packet may come in now.
    pub(super) fn is_paused(&self) -> bool {
        self.pauses > 0
    }
}

/// Takes at most so many of the messages that have come; whether there may be more.
pub(super) fn take_some(worker: &mut Worker, most: usize) -> bool {
    for _ in 0..most {
        let Some(message) = worker.mailbox.next() else { return false };
        take(worker, message);
    }
    true
}

/// Takes the messages that have come.
pub(super) fn take_waiting(worker: &mut Worker) {
    while let Some(message) = worker.mailbox.next() {
        take(worker, message);
    }
}

/// Takes the messages that have come, and those that come until no pause is left.
pub(super) fn take_messages(worker: &mut Worker) {
    take_waiting(worker);
    while worker.mailbox.is_paused() && !worker.mailbox.control.is_to_stop() {
        if let Ok(message) = worker.mailbox.messages.recv_timeout(PAUSED_LOOK) {
            take(worker, message);
        }
    }
    worker.followers.give_back();
}

fn take(worker: &mut Worker, message: Message) {
    // The time that it takes is not the packets'.
    worker.pace.rest();
    if !worker.mailbox.is_paused() {
        // What is written in a pause goes to a device as a whole.
        worker.switch.settle_device();
    }
    match message {
        Message::Switch(Request::Pause(to)) => {
            worker.mailbox.pauses += 1;
            worker.followers.all();
            let control = worker.mailbox.control.clone();
            if let Err(unwanted) = to.offer(Pause::until(move || control.resume())) {
                unwanted.forget();
                worker.mailbox.pauses -= 1;
            }
        }
        Message::Resume => worker.mailbox.pauses = worker.mailbox.pauses.saturating_sub(1),
        Message::Switch(request) if worker.followers.is_empty() || request.is_for_one() => {
            worker.switch.answer(request);
        }
        Message::Switch(request) => {
            requests::serve_all(&mut worker.switch, &mut worker.followers.switches(), request);
        }
        Message::Exchange(exchange) => {
            migration::answer(&mut worker.switch, &mut worker.followers.switches(), *exchange);
        }
        Message::Report(to) => to.give(Report::of_all(worker)),
        Message::Stories(tells, to) => {
            worker.listener.of_packets = tells;
            worker.followers.all().iter_mut().for_each(|follower| follower.listener.of_packets = tells);
            to.give(());
        }
        Message::SetMode(mode, to) => {
            modes::set(worker, mode);
            to.give(());
        }
        Message::AddPort(id, pairs, to) => to.give(ports::add(worker, id, pairs)),
        Message::RemovePort(id, to) => to.give(ports::remove(worker, id)),
        Message::MoveQueue { port, queue, worker: number, to } => {
            to.give(moves::move_queue(worker, port, queue, number));
        }
        Message::Schedule { port, plan, to } => to.give(schedulers::schedule(worker, port, plan)),
        Message::SetIntake(port, intake, to) => to.give(intake::set(worker, port, intake)),
        Message::Intakes(to) => to.give(worker.seat.intakes.settings().collect()),
        Message::Plans(to) => to.give(schedulers::plans(worker)),
        // Nobody leads a worker that takes messages here.
        Message::Lend(_) => {}
    }
}
