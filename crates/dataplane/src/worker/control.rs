//! The handle on a worker: requests that it answers between two rounds.

use super::ports::{Added, PortsError};
use super::report::{Report, ReportError};
use crate::PortId;
use crate::switch::Switch;
use millrace_drivers::{Port, PortStatistics};
use std::fmt;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, TrySendError, sync_channel};
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
    pub(super) requests: SyncSender<Request>,
    wake: Arc<UnixStream>,
    stop: Arc<AtomicBool>,
}

/// The worker has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestError;

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the switch is not running any more")
    }
}

impl std::error::Error for RequestError {}

/// Why a request was not taken.
pub enum PostError {
    /// The worker has ended.
    Ended,
    /// [`MAX_REQUESTS`] wait already; the request.
    Busy(Box<dyn FnOnce(&mut Switch) + Send>),
}

impl fmt::Debug for PostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PostError::Ended => "Ended",
            PostError::Busy(_) => "Busy",
        })
    }
}

impl Control {
    /// A handle whose requests go there, and whose worker wakes when it finds something to read.
    pub(super) fn new(requests: SyncSender<Request>, wake: UnixStream) -> Control {
        Control { requests, wake: Arc::new(wake), stop: Arc::default() }
    }

    /// Whether the worker is to end.
    pub(super) fn is_to_stop(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Has the worker call that between two rounds, waits for it, and gives what it gave.
    ///
    /// # Errors
    /// The worker has ended.
    pub fn call<R: Send + 'static>(
        &self,
        request: impl FnOnce(&mut Switch) -> R + Send + 'static,
    ) -> Result<R, RequestError> {
        self.ask(|to| Request::Call(Box::new(move |switch: &mut Switch| answer(&to, request(switch)))))
    }

    /// Sends a request and waits for what its worker answers.
    pub(super) fn ask<R>(&self, request: impl FnOnce(SyncSender<R>) -> Request) -> Result<R, RequestError> {
        let (answer, answered) = sync_channel(1);
        self.requests.send(request(answer)).map_err(|_| RequestError)?;
        self.wake();
        answered.recv().map_err(|_| RequestError)
    }

    /// As [`Control::call`] without waiting: the request itself tells whoever wants to know, when the worker gets to it.
    ///
    /// # Errors
    /// The worker has ended, or [`MAX_REQUESTS`] wait for it; then the request comes back.
    pub fn post(&self, request: Box<dyn FnOnce(&mut Switch) + Send>) -> Result<(), PostError> {
        self.requests.try_send(Request::Call(request)).map_err(|error| match error {
            TrySendError::Full(Request::Call(request)) => PostError::Busy(request),
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
        let (answer, answered) = sync_channel(1);
        self.requests.try_send(Request::Report(answer)).map_err(|error| match error {
            TrySendError::Full(_) => ReportError::Busy,
            TrySendError::Disconnected(_) => ReportError::Ended,
        })?;
        self.wake();
        answered.recv_timeout(patience).map_err(|error| match error {
            RecvTimeoutError::Timeout => ReportError::Busy,
            RecvTimeoutError::Disconnected => ReportError::Ended,
        })
    }

    /// Has the worker go on with one more port, and waits until it does. A port that it does not take is closed.
    ///
    /// # Errors
    /// [`PortsError`]; the worker's ports are as they were.
    pub fn add_port(&self, number: PortId, port: Box<dyn Port>) -> Result<(), PortsError> {
        let added: Added = self.ask(|answer| Request::AddPort(number, port, answer))?;
        added.map_err(|(error, _)| error)
    }

    /// Has the worker go on without a port, sends what waits for it, and closes it; gives what it has counted. What comes
    /// for it later is dropped as for any port that does not exist.
    ///
    /// # Errors
    /// [`PortsError`]; the worker's ports are as they were.
    pub fn remove_port(&self, number: PortId) -> Result<PortStatistics, PortsError> {
        let mut port = self.ask(|answer| Request::RemovePort(number, answer))??;
        // On this thread: the system may take its time, for which no packet of another port should wait.
        let begun = Instant::now();
        while port.flush().is_ok() && port.in_flight() > 0 && begun.elapsed() < PATIENCE {
            std::thread::sleep(PAUSE);
        }
        Ok(port.statistics())
    }

    /// Has the worker tell what happens to each packet, or not any more, as [`Worker::tell_stories`] has it.
    ///
    /// # Errors
    /// The worker has ended.
    ///
    /// [`Worker::tell_stories`]: super::Worker::tell_stories
    pub fn tell_stories(&self, tells: bool) -> Result<(), RequestError> {
        self.ask(|to| Request::Stories(tells, to))
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

    pub(super) fn wake(&self) {
        // A full pipe wakes the worker too, and a closed one has no worker.
        let _ = (&*self.wake).write(&[1]);
    }
}

/// Answers a request. Whoever asked may have gone.
pub(super) fn answer<R>(to: &SyncSender<R>, answer: R) {
    let _ = to.try_send(answer);
}

/// What somebody wants of a worker.
pub(super) enum Request {
    Call(Box<dyn FnOnce(&mut Switch) + Send>),
    Report(SyncSender<Report>),
    Stories(bool, SyncSender<()>),
    AddPort(PortId, Box<dyn Port>, SyncSender<Added>),
    RemovePort(PortId, SyncSender<Result<Box<dyn Port>, PortsError>>),
}
