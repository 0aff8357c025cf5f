//! The written limits of a connection, and what keeps to them.

use millrace_thrift_api::CallError;
use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use thrift::{ApplicationError, ApplicationErrorKind};

/// Most connections at a time. For one more the one of least use is closed.
pub const MAX_CONNECTIONS: usize = 64;
/// Most connections from one address.
pub const MAX_CONNECTIONS_OF_PEER: usize = 48;
/// Most memory that messages and answers of all connections take, in bytes, beyond what each is allowed; one has no more
/// than is free.
pub const MAX_IN_FLIGHT: usize = 1 << 30;
/// Memory that each connection may take in any case, in bytes.
pub const ALLOWANCE: usize = 256 << 10;
/// A connection that asks for nothing at first is closed after so long.
pub const FIRST_CALL_TIME: Duration = Duration::from_secs(60);
/// A connection that asks for nothing is closed after so long.
pub const IDLE_TIME: Duration = Duration::from_secs(3600);
/// A message that has begun must be there after so long, and an answer be taken; for each MiB of it there is a second more.
pub const MESSAGE_TIME: Duration = Duration::from_secs(30);

/// What all connections take together.
#[derive(Debug, Default)]
pub(crate) struct Budget(Mutex<usize>);

/// What a connection takes for its call, given back when the call is done.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Charge {
    pub(crate) fn new(budget: &Arc<Budget>) -> Charge {
        Charge { budget: Arc::clone(budget), bytes: 0 }
    }

    /// Takes so many bytes more.
    ///
    /// # Errors
    /// All connections together would take too much.
    pub(crate) fn take(&mut self, more: usize) -> io::Result<()> {
        let own = self.bytes.saturating_add(more);
        let (before, after) = (self.bytes.saturating_sub(ALLOWANCE), own.saturating_sub(ALLOWANCE));
        if after > before {
            let mut all = self.budget.0.lock().unwrap_or_else(PoisonError::into_inner);
            let sum = *all - before + after;
            if after > MAX_IN_FLIGHT.saturating_sub(sum) {
                return Err(io::Error::new(
                    io::ErrorKind::OutOfMemory,
                    format!(
                        "messages and answers of all clients take at most {MAX_IN_FLIGHT} bytes: try again"
                    ),
                ));
            }
            *all = sum;
        }
        self.bytes = own;
        Ok(())
    }

    /// Gives all back.
    pub(crate) fn give_back(&mut self) {
        let counted = std::mem::take(&mut self.bytes).saturating_sub(ALLOWANCE);
        *self.budget.0.lock().unwrap_or_else(PoisonError::into_inner) -= counted;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.give_back();
    }
}

thread_local! {
    /// What the call takes that this thread answers: each connection has a thread of its own.
    static ANSWERING: RefCell<Option<Charge>> = const { RefCell::new(None) };
}

/// Does something for a call, whose answer may take memory by [`charge`].
pub(crate) fn answering<T>(charge: &mut Charge, work: impl FnOnce() -> T) -> T {
    let own = std::mem::replace(charge, Charge::new(&charge.budget));
    ANSWERING.with_borrow_mut(|answering| *answering = Some(own));
    let done = work();
    if let Some(own) = ANSWERING.take() {
        *charge = own;
    }
    done
}

/// The answer that this thread makes takes so many bytes more.
///
/// # Errors
/// All connections together would take too much.
pub(crate) fn charge<E>(bytes: usize) -> Result<(), CallError<E>> {
    let taken =
        ANSWERING.with_borrow_mut(|answering| answering.as_mut().map_or(Ok(()), |own| own.take(bytes)));
    taken.map_err(|error| {
        CallError::Failed(ApplicationError::new(ApplicationErrorKind::InternalError, error.to_string()))
    })
}

/// Reads what a client sends, message by message, each within its time.
#[derive(Debug)]
pub(crate) struct Timed {
    stream: TcpStream,
    /// When what is under way must be done.
    until: Instant,
    /// Whether a byte of the message has come.
    has_begun: bool,
}

impl Timed {
    pub(crate) fn new(stream: TcpStream) -> Timed {
        Timed { stream, until: Instant::now(), has_begun: false }
    }

    /// The next bytes are those of another message, which begins within that time.
    pub(crate) fn next_message(&mut self, within: Duration) {
        (self.until, self.has_begun) = (Instant::now() + within, false);
    }

    /// The message must be there after its time from now on.
    pub(crate) fn begin(&mut self) {
        if !self.has_begun {
            (self.until, self.has_begun) = (Instant::now() + MESSAGE_TIME, true);
        }
    }

    fn left(&self) -> io::Result<Duration> {
        match self.until.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
            left => Ok(left),
        }
    }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.left()?))?;
        let read = self.stream.read(buffer)?;
        self.begin();
        Ok(read)
    }
}

impl Write for Timed {
    /// For each MiB there is a second more: a slow line may take a large answer.
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.left()?))?;
        let written = self.stream.write(buffer)?;
        self.until += Duration::from_nanos(written as u64 * 954);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_connection_may_have_half_and_each_its_allowance() {
        let budget = Arc::default();
        let mut charges: Vec<Charge> = (0..MAX_CONNECTIONS).map(|_| Charge::new(&budget)).collect();
        charges[0].take(ALLOWANCE + MAX_IN_FLIGHT / 2).unwrap();
        assert!(charges[0].take(1).is_err());
        for charge in &mut charges[1..] {
            while charge.take(1 << 20).is_ok() {}
            charge.take(0).unwrap();
        }
        Charge::new(&budget).take(ALLOWANCE).unwrap();
        drop(charges);
        assert_eq!(*budget.0.lock().unwrap(), 0);
    }
}
