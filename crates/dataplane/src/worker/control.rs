//! The handle on a worker: requests that it answers between two rounds.

use super::followers::Loan;
use super::intake::{Intake, IntakeError};
use super::moves::MoveError;
use super::ports::{Added, PortsError, Removed};
use super::report::{Report, ReportError};
use super::schedulers::{PlannedPort, ScheduleError};
use super::waker::Bell;
use crate::migration::Exchange;
use crate::requests::{Answer, Reply, Request, RequestError, answer};
use crate::{Mode, PortId, Quotas};
use millrace_drivers::{PortStatistics, QueuePair};
use millrace_state::Held;
use millrace_traffic::Plan;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::{Duration, Instant};

/// Most requests that wait for a worker; whoever sends one more waits too.
pub const MAX_REQUESTS: usize = 1024;

/// How long frames may take to leave a port that is closed.
const PATIENCE: Duration = Duration::from_secs(1);
/// Between two looks whether they have left.
const PAUSE: Duration = Duration::from_millis(1);

/// A handle on a worker, for other threads.
#[derive(Clone, Debug)]
pub struct Control {
    requests: SyncSender<Message>,
    bell: Bell,
    stop: Arc<AtomicBool>,
    workers: usize,
}

/// Why a request was not taken.
#[derive(Debug)]
pub enum PostError {
    /// The worker has ended.
    Ended,
    /// [`MAX_REQUESTS`] wait already; the request.
    Busy(Box<Request>),
}

/// An answer that was asked for.
#[derive(Debug)]
pub struct Pending<T>(Answer<T>);

impl<T> Pending<T> {
    /// Waits for it, at most that long.
    ///
    /// # Errors
    /// [`ReportError`].
    pub fn wait(self, patience: Duration) -> Result<T, ReportError> {
        self.0.wait_for(patience).map_err(|RequestError| ReportError::Ended)?.ok_or(ReportError::Busy)
    }
}

impl Control {
    /// A handle whose requests go there, and whose worker wakes when it finds something to read.
    pub(super) fn new(requests: SyncSender<Message>, bell: Bell) -> Control {
        Control { requests, bell, stop: Arc::default(), workers: 1 }
    }

    /// How many workers the switch has.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// The worker leads so many, itself included.
    pub(super) fn lead(&mut self, workers: usize) {
        self.workers = workers;
    }

    /// Whether the worker is to end.
    pub(super) fn is_to_stop(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Asks the switch for something, and has the calling thread wait for the answer.
    ///
    /// # Errors
    /// The worker has ended.
    pub fn ask<T>(&self, request: impl FnOnce(Reply<T>) -> Request) -> Result<T, RequestError> {
        self.send(|to| Message::Switch(request(to)))
    }

    /// Hands a request over, and waits only for room; its answer comes where it says.
    ///
    /// # Errors
    /// The worker has ended.
    pub fn take(&self, request: Request) -> Result<(), RequestError> {
        self.requests.send(Message::Switch(request)).map_err(|_| RequestError)?;
        self.wake();
        Ok(())
    }

    /// Asks the switch for something without waiting, neither for the answer nor for room.
    ///
    /// # Errors
    /// The worker has ended, or [`MAX_REQUESTS`] wait for it; then the request comes back.
    pub fn post(&self, request: Request) -> Result<(), PostError> {
        self.requests.try_send(Message::Switch(request)).map_err(|error| match error {
            TrySendError::Full(Message::Switch(request)) => PostError::Busy(Box::new(request)),
            _ => PostError::Ended,
        })?;
        self.wake();
        Ok(())
    }

    /// Asks for a report and waits for it, at most that long.
    ///
    /// # Errors
    /// [`ReportError`].
    pub fn report(&self, patience: Duration) -> Result<Report, ReportError> {
        self.ask_report()?.wait(patience)
    }

    /// Asks for a report and does not wait for it, so that several switches can be asked before the first answers.
    ///
    /// # Errors
    /// [`ReportError`].
    pub fn ask_report(&self) -> Result<Pending<Report>, ReportError> {
        self.send_later(Message::Report)
    }

    /// Asks the switch for something and does not wait for it, so that several switches can be asked before the first answers.
    ///
    /// # Errors
    /// [`ReportError`].
    pub fn ask_later<T>(&self, request: impl FnOnce(Reply<T>) -> Request) -> Result<Pending<T>, ReportError> {
        self.send_later(|to| Message::Switch(request(to)))
    }

    /// Sends a message, and waits neither for room nor for the answer.
    fn send_later<T>(&self, message: impl FnOnce(Reply<T>) -> Message) -> Result<Pending<T>, ReportError> {
        let (to, answered) = answer();
        self.requests.try_send(message(to)).map_err(|error| match error {
            TrySendError::Full(_) => ReportError::Busy,
            TrySendError::Disconnected(_) => ReportError::Ended,
        })?;
        self.wake();
        Ok(Pending(answered))
    }

    /// Has a follower hand itself over there.
    pub(super) fn lend(&self, to: Loan) -> Result<(), RequestError> {
        self.requests.send(Message::Lend(to)).map_err(|_| RequestError)?;
        self.wake();
        Ok(())
    }

    /// Sends a message and waits for what its worker answers.
    pub(crate) fn send<T>(&self, message: impl FnOnce(Reply<T>) -> Message) -> Result<T, RequestError> {
        let (to, answered): (Reply<T>, Answer<T>) = answer();
        self.requests.send(message(to)).map_err(|_| RequestError)?;
        self.wake();
        answered.wait()
    }

    /// Has the workers go on with one more port, which has one queue pair or one for each of them, and waits until they do. A port
    /// that they do not take is closed.
    ///
    /// # Errors
    /// [`PortsError`]; the workers' ports are as they were.
    pub fn add_port(&self, number: PortId, pairs: Vec<Box<dyn QueuePair>>) -> Result<(), PortsError> {
        let added: Added = self.send(|to| Message::AddPort(number, pairs, to))?;
        added.map_err(|(error, _)| error)
    }

    /// Has the worker go on without a port, sends what waits for it, and closes it; gives what it has counted. What comes
    /// for it later is dropped as for any port that does not exist.
    ///
    /// # Errors
    /// [`PortsError`]; the worker's ports are as they were.
    pub fn remove_port(&self, number: PortId) -> Result<PortStatistics, PortsError> {
        let pairs = self.send(|to| Message::RemovePort(number, to))??;
        let mut statistics = PortStatistics::default();
        // On this thread: the system may take its time, for which no packet of another port should wait.
        let begun = Instant::now();
        for (mut pair, before) in pairs {
            while pair.flush().is_ok() && pair.in_flight() > 0 && begun.elapsed() < PATIENCE {
                std::thread::sleep(PAUSE);
            }
            statistics += before;
            statistics += pair.statistics();
        }
        Ok(statistics)
    }

    /// Has that worker have a queue pair of a port's device from now on. Packets of a flow stay in their order, and none is lost.
    ///
    /// # Errors
    /// [`MoveError`]; the queue pair stays with its worker.
    pub fn move_queue(&self, port: PortId, queue: usize, worker: usize) -> Result<(), MoveError> {
        self.send(|to| Message::MoveQueue { port, queue, worker, to })?
    }

    /// Has a port serve what leaves by it as a plan says from now on; none: in the order in which it comes. What waits leaves by the
    /// new plan, as far as that has its queue.
    ///
    /// # Errors
    /// [`ScheduleError`]; the port goes on as it did.
    pub fn schedule(&self, port: PortId, plan: Option<Arc<Plan>>) -> Result<(), ScheduleError> {
        self.send(|to| Message::Schedule { port, plan, to })?
    }

    /// Has a port share its workers with other ports like that from now on; none: as those that were not set. While none was set, each
    /// worker takes a batch from each port in turn.
    ///
    /// # Errors
    /// [`IntakeError`]; the port takes part as it did.
    pub fn set_intake(&self, port: PortId, intake: Option<Intake>) -> Result<(), IntakeError> {
        self.send(|to| Message::SetIntake(port, intake, to))?
    }

    /// How ports take part in ingress that were set.
    ///
    /// # Errors
    /// The worker has ended.
    pub fn intakes(&self) -> Result<Vec<(PortId, Intake)>, RequestError> {
        self.send(Message::Intakes)
    }

    /// The ports that have a plan, with what waits in their queues.
    ///
    /// # Errors
    /// The worker has ended.
    pub fn plans(&self) -> Result<Vec<PlannedPort>, RequestError> {
        self.send(Message::Plans)
    }

    /// Has the switch heed other quotas from now on, and waits until it does.
    ///
    /// # Errors
    /// The worker has ended.
    pub fn set_quotas(&self, quotas: Quotas) -> Result<(), RequestError> {
        self.ask(|to| Request::SetQuotas(quotas, to))
    }

    /// The quotas of the switch, and what it holds of entries and memory.
    ///
    /// # Errors
    /// The worker has ended.
    pub fn quotas(&self) -> Result<(Quotas, Held), RequestError> {
        self.ask(Request::Quotas)
    }

    /// Another mode of the switch from now on, and waits until all workers heed it. In a mode that sends nothing, nothing leaves by a port
    /// any more when this returns, but what its device has already.
    ///
    /// # Errors
    /// The worker has ended.
    pub fn set_mode(&self, mode: Mode) -> Result<(), RequestError> {
        self.send(|to| Message::SetMode(mode, to))
    }

    /// Has the worker tell what happens to each packet, or not any more, as [`Worker::tell_stories`] has it.
    ///
    /// # Errors
    /// The worker has ended.
    ///
    /// [`Worker::tell_stories`]: super::Worker::tell_stories
    pub fn tell_stories(&self, tells: bool) -> Result<(), RequestError> {
        self.send(|to| Message::Stories(tells, to))
    }

    /// Has the worker end after the round that it is in.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.wake();
    }

    /// Has the worker look at its ports although no frame came: a link has changed, and drivers ask the kernel about it
    /// when they are asked for frames.
    pub fn look_at_ports(&self) {
        self.wake();
    }

    /// What wakes the worker.
    pub(super) fn bell(&self) -> Bell {
        self.bell.clone()
    }

    /// A pause is over: the worker takes messages until it hears of it. Without a worker nothing waits.
    pub(super) fn resume(&self) {
        let _ = self.requests.send(Message::Resume);
        self.wake();
    }

    pub(super) fn wake(&self) {
        self.bell.ring();
    }
}

/// What somebody wants of a worker.
pub(crate) enum Message {
    /// Something of its switch.
    Switch(Request),
    Report(Reply<Report>),
    Stories(bool, Reply<()>),
    SetMode(Mode, Reply<()>),
    AddPort(PortId, Vec<Box<dyn QueuePair>>, Reply<Added>),
    RemovePort(PortId, Reply<Result<Removed, PortsError>>),
    /// A queue pair of a port goes to another worker.
    MoveQueue {
        port: PortId,
        queue: usize,
        worker: usize,
        to: Reply<Result<(), MoveError>>,
    },
    /// A port goes on with another plan of its queues, or without one.
    Schedule {
        port: PortId,
        plan: Option<Arc<Plan>>,
        to: Reply<Result<(), ScheduleError>>,
    },
    /// A port takes part in ingress otherwise, or as others.
    SetIntake(PortId, Option<Intake>, Reply<Result<(), IntakeError>>),
    /// The ports that take part in ingress otherwise.
    Intakes(Reply<Vec<(PortId, Intake)>>),
    /// The plans of ports that have one.
    Plans(Reply<Vec<PlannedPort>>),
    /// Another program with the objects of the one that runs.
    Exchange(Box<Exchange>),
    /// A [`Pause`](crate::Pause) is over.
    Resume,
    /// A follower is to hand itself over.
    Lend(Loan),
}
