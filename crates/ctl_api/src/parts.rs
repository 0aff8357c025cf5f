//! A conversation over gRPC as a stream of bytes, for a thread that reads and writes: the bytes come and go in parts.

use crate::proto::Part;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::mpsc as threads;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tonic::{Status, Streaming};

/// Most bytes of a part.
pub const MAX_PART: usize = 64 << 10;
/// Most bytes of the message of a part: with what protobuf adds.
pub const MAX_PART_MESSAGE: usize = MAX_PART + 16;
/// Most parts that have come and were not read, and most that wait to be sent.
pub const WAITING_PARTS: usize = 4;
/// Between two looks whether a part can be sent.
const PAUSE: Duration = Duration::from_millis(1);

/// A part that has come, with its place among those that wait.
type Come = (Vec<u8>, OwnedSemaphorePermit);

/// Reads what the other side says.
#[derive(Debug)]
pub struct PartReader {
    come: threads::Receiver<Come>,
    current: Vec<u8>,
    /// How much of it was read.
    read: usize,
    status: Arc<OnceLock<Status>>,
    /// When it goes, nobody brings parts any more.
    _goes: oneshot::Sender<()>,
    /// How long a read may take, where it is used as a stream.
    pub time: Duration,
}

/// Hands on what comes, for a reader.
#[derive(Debug)]
pub struct Pump {
    to: threads::Sender<Come>,
    places: Arc<Semaphore>,
    status: Arc<OnceLock<Status>>,
    gone: oneshot::Receiver<()>,
}

/// A reader, and what brings it parts.
pub fn pump() -> (Pump, PartReader) {
    let (to, come) = threads::channel();
    let (places, status) = (Arc::new(Semaphore::new(WAITING_PARTS)), Arc::<OnceLock<Status>>::default());
    let (goes, gone) = oneshot::channel();
    let (current, read, time) = (Vec::new(), 0, Duration::MAX);
    let reader = PartReader { come, current, read, status: Arc::clone(&status), _goes: goes, time };
    (Pump { to, places, status, gone }, reader)
}

impl Pump {
    /// Brings parts until there are no more, or nobody reads them.
    pub async fn run(self, mut parts: Streaming<Part>) {
        let Pump { to, places, status, gone } = self;
        let bring = async {
            // There is place before a part is taken, so that the other side waits with more.
            while let Ok(place) = Arc::clone(&places).acquire_owned().await {
                match parts.message().await {
                    Ok(Some(part)) => {
                        if to.send((part.bytes, place)).is_err() {
                            break;
                        }
                    }
                    Ok(None) => break,
                    Err(reason) => {
                        // It is the first.
                        let _ = status.set(reason);
                        break;
                    }
                }
            }
        };
        tokio::select! {
            () = bring => {}
            _ = gone => {}
        }
    }
}

impl PartReader {
    /// Why no more comes, where that was said.
    pub fn status(&self) -> Option<&Status> {
        self.status.get()
    }

    /// Reads some bytes within a time: none at the end.
    ///
    /// # Errors
    /// [`ErrorKind::TimedOut`]; the other side has ended it with a reason.
    pub fn receive(&mut self, bytes: &mut [u8], within: Duration) -> io::Result<usize> {
        let until = Instant::now().checked_add(within);
        while self.read == self.current.len() {
            let come = match until {
                Some(until) => self.come.recv_timeout(until.saturating_duration_since(Instant::now())),
                None => self.come.recv().map_err(|_| threads::RecvTimeoutError::Disconnected),
            };
            match come {
                Ok((part, _)) => (self.current, self.read) = (part, 0),
                Err(threads::RecvTimeoutError::Timeout) => return Err(ErrorKind::TimedOut.into()),
                Err(threads::RecvTimeoutError::Disconnected) => {
                    return match self.status.get() {
                        Some(status) => Err(io::Error::other(status.message().to_owned())),
                        None => Ok(0),
                    };
                }
            }
        }
        let length = bytes.len().min(self.current.len() - self.read);
        bytes[..length].copy_from_slice(&self.current[self.read..self.read + length]);
        self.read += length;
        Ok(length)
    }
}

impl Read for PartReader {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.receive(bytes, self.time)
    }
}

/// Says something to the other side. It ends when this is dropped.
#[derive(Debug)]
pub struct PartWriter<T> {
    to: mpsc::Sender<T>,
    wrap: fn(Part) -> T,
    /// How long a write may take, where it is used as a stream.
    pub time: Duration,
}

impl<T> PartWriter<T> {
    /// Whose parts go there, as `wrap` makes them.
    pub fn new(to: mpsc::Sender<T>, wrap: fn(Part) -> T) -> PartWriter<T> {
        PartWriter { to, wrap, time: Duration::MAX }
    }

    /// Sends some bytes within a time.
    ///
    /// # Errors
    /// [`ErrorKind::TimedOut`]; the other side has ended it.
    pub fn send(&self, bytes: &[u8], within: Duration) -> io::Result<usize> {
        let until = Instant::now().checked_add(within);
        let length = bytes.len().min(MAX_PART);
        let mut part = (self.wrap)(Part { bytes: bytes[..length].to_vec() });
        loop {
            part = match self.to.try_send(part) {
                Ok(()) => return Ok(length),
                Err(mpsc::error::TrySendError::Full(part)) => part,
                Err(mpsc::error::TrySendError::Closed(_)) => return Err(ErrorKind::BrokenPipe.into()),
            };
            if until.is_some_and(|until| Instant::now() >= until) {
                return Err(ErrorKind::TimedOut.into());
            }
            thread::sleep(PAUSE);
        }
    }
}

impl<T> Write for PartWriter<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.send(bytes, self.time)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
