//! A client of the host link: asks for registers, sends and receives frames.

use crate::device::{Event, Shape};
use crate::limits::{ANSWER_TIME, MAX_FRAME, MAX_WAITING, MAX_WORDS, RECORD_TIME};
use crate::server::Records;
use crate::wire::{Refused, ToDevice, ToHost, WireError};
use millrace_printable::counted;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::time::{Duration, Instant};

/// A connection to the server of a device.
#[derive(Debug)]
pub struct Client {
    records: Records,
    shape: Shape,
    tag: u32,
    /// What came while an answer was waited for.
    waiting: VecDeque<Event>,
    lost: (u64, u64),
}

/// Why a request has no answer.
#[derive(Debug)]
pub enum LinkError {
    /// Nobody serves a device there.
    NoServer(io::Error),
    /// The server, or the path to it, is gone; a request whose answer did not come may have been done or not.
    Gone(io::Error),
    /// The server does not do it.
    Refused(Refused),
    /// The server says something that is no answer.
    Wire(WireError),
    /// The request is longer than requests may be.
    Limit(WireError),
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkError::NoServer(error) => write!(f, "there is no server of the host link: {error}"),
            LinkError::Gone(error) => write!(f, "the host link is cut: {error}"),
            LinkError::Refused(Refused { done: 0, why, .. }) => f.write_str(why),
            LinkError::Refused(Refused { done, why, .. }) => {
                write!(f, "{why}, after {}", counted(done, "write"))
            }
            LinkError::Wire(error) => write!(f, "the server breaks the protocol: {error}"),
            LinkError::Limit(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LinkError {}

impl Client {
    /// Connects to the server of a device; `frames` asks for what leaves by its ports, too.
    ///
    /// # Errors
    /// There is no server, it refuses, or it is of another version.
    pub fn connect(address: SocketAddr, frames: bool) -> Result<Client, LinkError> {
        let stream = TcpStream::connect_timeout(&address, ANSWER_TIME).map_err(LinkError::NoServer)?;
        stream.set_nodelay(true).map_err(LinkError::Gone)?;
        stream.set_write_timeout(Some(RECORD_TIME)).map_err(LinkError::Gone)?;
        let records = Records { stream, buffer: Vec::new() };
        let mut client =
            Client { records, shape: Shape::default(), tag: 0, waiting: VecDeque::new(), lost: (0, 0) };
        client.say(&ToDevice::Hello { frames })?;
        match client.hear(ANSWER_TIME)? {
            Some(ToHost::Hello(shape)) => Ok(Client { shape, ..client }),
            Some(ToHost::Refused(refused)) => Err(LinkError::Refused(refused)),
            Some(_) => Err(LinkError::Gone(ErrorKind::InvalidData.into())),
            None => Err(LinkError::Gone(ErrorKind::TimedOut.into())),
        }
    }

    /// What the device is like.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Reads registers from an address on.
    ///
    /// # Errors
    /// [`LinkError`].
    pub fn read(&mut self, address: u32, words: usize) -> Result<Vec<u32>, LinkError> {
        let asked = u16::try_from(words).ok().filter(|_| words <= MAX_WORDS);
        let words = asked.ok_or(LinkError::Limit(WireError::Words(words)))?;
        let tag = self.next_tag();
        self.say(&ToDevice::Read { tag, address, words })?;
        match self.answer(tag)? {
            ToHost::Words { words: read, .. } if read.len() == usize::from(words) => Ok(read),
            _ => Err(LinkError::Gone(ErrorKind::InvalidData.into())),
        }
    }

    /// Writes registers in this order, nothing of other clients between them.
    ///
    /// # Errors
    /// [`LinkError`].
    pub fn write(&mut self, writes: &[(u32, u32)]) -> Result<(), LinkError> {
        if writes.len() > MAX_WORDS {
            return Err(LinkError::Limit(WireError::Words(writes.len())));
        }
        let tag = self.next_tag();
        self.say(&ToDevice::Write { tag, writes: writes.to_vec() })?;
        match self.answer(tag)? {
            ToHost::Done { .. } => Ok(()),
            _ => Err(LinkError::Gone(ErrorKind::InvalidData.into())),
        }
    }

    /// Has a frame come in by a port of the device. Nothing says that it did: what the device does not take, its server counts.
    ///
    /// # Errors
    /// [`LinkError`].
    pub fn send(&mut self, port: u16, frame: &[u8]) -> Result<(), LinkError> {
        if frame.len() > MAX_FRAME {
            return Err(LinkError::Limit(WireError::Bytes(frame.len())));
        }
        self.say(&ToDevice::Frame { port, bytes: frame.to_vec() })
    }

    /// Has a part of the device answer a text, such as the commands for a program.
    ///
    /// # Errors
    /// [`LinkError`]; refused, it has changed nothing.
    pub fn ask(&mut self, part: u16, text: &str) -> Result<String, LinkError> {
        if text.len() > MAX_FRAME {
            return Err(LinkError::Limit(WireError::Bytes(text.len())));
        }
        let tag = self.next_tag();
        self.say(&ToDevice::Ask { tag, part, text: text.to_owned() })?;
        match self.answer(tag)? {
            ToHost::Said { text, .. } => Ok(text),
            _ => Err(LinkError::Gone(ErrorKind::InvalidData.into())),
        }
    }

    /// What the device has to say next, if it says something within a time.
    ///
    /// # Errors
    /// [`LinkError`].
    pub fn event(&mut self, patience: Duration) -> Result<Option<Event>, LinkError> {
        let until = Instant::now() + patience;
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Ok(Some(event));
            }
            let left = until.saturating_duration_since(Instant::now());
            match self.hear(left)? {
                Some(record) => drop(self.keep(record)),
                None => return Ok(None),
            }
        }
    }

    /// Frames and messages of the device that were lost, as this client did not read them in time.
    pub fn lost(&self) -> (u64, u64) {
        self.lost
    }

    /// Whether something of what the device says is here already.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether the server has said something that was not read, or has ended.
    pub(crate) fn has_said(&self) -> bool {
        let mut fds = [PollFd::new(&self.records.stream, PollFlags::IN)];
        let none = Timespec { tv_sec: 0, tv_nsec: 0 };
        self.has_waiting() || poll(&mut fds, Some(&none)).is_ok_and(|ready| ready > 0)
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.records.stream.as_raw_fd()
    }

    fn next_tag(&mut self) -> u32 {
        self.tag = self.tag.wrapping_add(1).max(1);
        self.tag
    }

    fn say(&mut self, record: &ToDevice) -> Result<(), LinkError> {
        self.records.stream.write_all(&record.encode()).map_err(LinkError::Gone)
    }

    /// The answer to the request of a tag; what else comes before it is kept.
    fn answer(&mut self, tag: u32) -> Result<ToHost, LinkError> {
        let until = Instant::now() + ANSWER_TIME;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let record = self.hear(left)?.ok_or_else(|| LinkError::Gone(ErrorKind::TimedOut.into()))?;
            match self.keep(record) {
                None => {}
                Some(ToHost::Refused(refused)) if refused.tag == tag => {
                    return Err(LinkError::Refused(refused));
                }
                Some(
                    answer @ (ToHost::Words { tag: of, .. }
                    | ToHost::Done { tag: of }
                    | ToHost::Said { tag: of, .. }),
                ) if of == tag => return Ok(answer),
                // The answer to a request that was given up.
                Some(_) => {}
            }
        }
    }

    /// Keeps what is no answer, the newest [`MAX_WAITING`] of it.
    fn keep(&mut self, record: ToHost) -> Option<ToHost> {
        let event = match record {
            ToHost::Event(event) => event,
            ToHost::Lost { frames, messages } => {
                self.lost = (self.lost.0.saturating_add(frames), self.lost.1.saturating_add(messages));
                return None;
            }
            answer => return Some(answer),
        };
        if self.waiting.len() >= MAX_WAITING {
            match self.waiting.pop_front() {
                Some(Event::Frame { .. }) => self.lost.0 = self.lost.0.saturating_add(1),
                _ => self.lost.1 = self.lost.1.saturating_add(1),
            }
        }
        self.waiting.push_back(event);
        None
    }

    fn hear(&mut self, patience: Duration) -> Result<Option<ToHost>, LinkError> {
        match self.records.next(patience, &|waited| waited < patience) {
            Ok(record) => {
                let said = ToHost::decode(&record).map_err(LinkError::Wire)?;
                self.records.buffer = record;
                Ok(Some(said))
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Ok(None),
            Err(error) => Err(LinkError::Gone(error)),
        }
    }
}
