//! Where messages to a worker come in, and what it does about them between two rounds.

use super::control::{Control, MAX_REQUESTS, Message, Pause};
use super::report::Report;
use super::{Worker, ports};
use crate::migration;
use crate::requests::Request;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

/// How often a worker that takes no packets looks whether it is to end.
const PAUSED_LOOK: Duration = Duration::from_millis(10);

/// The messages that wait for a worker.
pub(super) struct Mailbox {
    messages: Receiver<Message>,
    /// The handle that others have copies of.
    control: Control,
    /// Something to read when a message has come.
    awake: UnixStream,
    /// How many pauses have begun and are not over.
    pauses: usize,
}

impl Mailbox {
    /// An empty one.
    ///
    /// # Errors
    /// The operating system has no pair of sockets.
    pub(super) fn new() -> io::Result<Mailbox> {
        let (awake, wake) = UnixStream::pair()?;
        awake.set_nonblocking(true)?;
        wake.set_nonblocking(true)?;
        let (sender, messages) = sync_channel(MAX_REQUESTS);
        Ok(Mailbox { messages, control: Control::new(sender, wake), awake, pauses: 0 })
    }

    pub(super) fn control(&self) -> &Control {
        &self.control
    }

    /// A descriptor that polls readable when a message has come.
    pub(super) fn poll_fd(&self) -> RawFd {
        self.awake.as_raw_fd()
    }

    /// Has the descriptor poll readable only when another message comes.
    pub(super) fn look(&self) {
        let mut signals = [0; 64];
        while (&self.awake).read(&mut signals).is_ok_and(|read| read > 0) {}
    }

    /// Whether no packet may come in now.
    pub(super) fn is_paused(&self) -> bool {
        self.pauses > 0
    }
}

/// Takes the messages that have come, and those that come until no pause is left.
pub(super) fn take_messages(worker: &mut Worker) {
    while let Ok(message) = worker.mailbox.messages.try_recv() {
        take(worker, message);
    }
    while worker.mailbox.is_paused() && !worker.mailbox.control.is_to_stop() {
        if let Ok(message) = worker.mailbox.messages.recv_timeout(PAUSED_LOOK) {
            take(worker, message);
        }
    }
}

fn take(worker: &mut Worker, message: Message) {
    // The time that it takes is not the packets'.
    worker.pace.rest();
    match message {
        Message::Switch(Request::Pause(to)) => {
            worker.mailbox.pauses += 1;
            if let Err(unwanted) = to.offer(Pause::of(worker.mailbox.control.clone())) {
                unwanted.forget();
                worker.mailbox.pauses -= 1;
            }
        }
        Message::Resume => worker.mailbox.pauses = worker.mailbox.pauses.saturating_sub(1),
        Message::Switch(request) => worker.switch.answer(request),
        Message::Exchange(exchange) => migration::answer(&mut worker.switch, *exchange),
        Message::Report(to) => to.give(Report::of(worker)),
        Message::Stories(tells, to) => {
            worker.listener.of_packets = tells;
            to.give(());
        }
        Message::AddPort(id, port, to) => to.give(ports::add(worker, id, port)),
        Message::RemovePort(id, to) => to.give(ports::remove(worker, id)),
    }
}
