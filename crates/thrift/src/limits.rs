//! The written limits of a connection, and the reader that keeps to them.

use std::io::{self, Read};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use thrift::TConfiguration;

/// Most connections at a time; more are closed at once.
pub const MAX_CONNECTIONS: usize = 64;
/// Largest message of a client, in bytes: a program, or one entry.
pub const MAX_MESSAGE: usize = 8 << 20;
/// Longest list of a client: fields of a key, parameters, rates.
pub const MAX_LIST: usize = 4096;
/// Deepest nesting of what a client sends.
pub const MAX_NESTING: usize = 16;
/// A message that has begun must be there after so long, and an answer be taken.
pub const MESSAGE_TIME: Duration = Duration::from_secs(30);

/// What a server takes.
pub(crate) fn of_server() -> TConfiguration {
    configuration(MAX_MESSAGE, Some(MAX_LIST))
}

/// What a client takes: all entries of the largest table.
pub(crate) fn of_client() -> TConfiguration {
    configuration(1 << 31, None)
}

fn configuration(message: usize, list: Option<usize>) -> TConfiguration {
    let limits = TConfiguration::builder()
        .max_message_size(Some(message))
        .max_frame_size(Some(message))
        .max_string_size(Some(message))
        .max_container_size(list)
        .max_recursion_depth(Some(MAX_NESTING));
    // A frame is not larger than a message: nothing to refuse.
    limits.build().unwrap_or_default()
}

/// Reads what a client sends, message by message, each within its size and time. Between messages it waits for as long as
/// the client likes.
#[derive(Debug)]
pub(crate) struct Metered {
    stream: TcpStream,
    /// Bytes that the message may still have.
    left: usize,
    /// When it must be there; none: it has not begun.
    until: Option<Instant>,
}

impl Metered {
    pub(crate) fn new(stream: TcpStream) -> Metered {
        Metered { stream, left: MAX_MESSAGE, until: None }
    }

    /// The next bytes are those of another message.
    pub(crate) fn next_message(&mut self) {
        self.left = MAX_MESSAGE;
        self.until = None;
    }
}

impl Read for Metered {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = buffer.len().min(self.left);
        if room == 0 && !buffer.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the message is too long"));
        }
        let time = match self.until {
            None => None,
            Some(until) => match until.saturating_duration_since(Instant::now()) {
                Duration::ZERO => return Err(io::ErrorKind::TimedOut.into()),
                left => Some(left),
            },
        };
        self.stream.set_read_timeout(time)?;
        let read = self.stream.read(&mut buffer[..room])?;
        self.left -= read;
        self.until.get_or_insert_with(|| Instant::now() + MESSAGE_TIME);
        Ok(read)
    }
}
