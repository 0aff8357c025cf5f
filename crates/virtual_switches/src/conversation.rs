//! What a client and the device say to each other, over the socket or over gRPC: a greeting, then requests and their answers, each within
//! its time and with room for its bytes.

use crate::clients::Client;
use crate::device::Device;
use crate::room::{ALLOWANCE, Held, NoRoom, ROOM_TIME, Room};
use millrace_ctl_api::parts::{PartReader, PartWriter};
use millrace_ctl_api::{
    Answer, Hello, LineError, MAX_ANSWER, MAX_HELLO, MAX_REQUEST, RefusalKind, Refused, Request, VERSION,
    line_of, read_line,
};
use std::io::{self, BufReader, ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// How long a client may take for its first line.
pub(crate) const HELLO_TIME: Duration = Duration::from_secs(5);
/// How long a client may be silent between two requests.
const IDLE_TIME: Duration = Duration::from_secs(600);
/// How long a client may take for a request that it has begun, without what it waits for room.
const REQUEST_TIME: Duration = Duration::from_secs(120);
/// How long a client may take for an answer.
const ANSWER_TIME: Duration = Duration::from_secs(300);
/// How long a client may take none of it.
const STALL: Duration = Duration::from_secs(30);

/// Where bytes come from.
pub(crate) trait Receive {
    /// Reads some within a time; none at the end.
    fn receive(&mut self, bytes: &mut [u8], within: Duration) -> io::Result<usize>;
}

/// Where bytes go.
pub(crate) trait Transmit {
    /// Sends some within a time.
    fn transmit(&mut self, bytes: &[u8], within: Duration) -> io::Result<usize>;
}

impl Receive for &UnixStream {
    fn receive(&mut self, bytes: &mut [u8], within: Duration) -> io::Result<usize> {
        self.set_read_timeout(Some(within))?;
        self.read(bytes)
    }
}

impl Transmit for &UnixStream {
    fn transmit(&mut self, bytes: &[u8], within: Duration) -> io::Result<usize> {
        self.set_write_timeout(Some(within))?;
        io::Write::write(self, bytes)
    }
}

impl Receive for PartReader {
    fn receive(&mut self, bytes: &mut [u8], within: Duration) -> io::Result<usize> {
        PartReader::receive(self, bytes, within)
    }
}

impl<T> Transmit for PartWriter<T> {
    fn transmit(&mut self, bytes: &[u8], within: Duration) -> io::Result<usize> {
        PartWriter::send(self, bytes, within)
    }
}

/// Reads lines, each within its time. A long one takes room.
struct Lines<R> {
    from: R,
    until: Instant,
    /// Whether the time of the whole line counts.
    has_begun: bool,
    /// Bytes of the line.
    length: usize,
    held: Held,
}

impl<R: Receive> Read for Lines<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        let read = self.from.receive(bytes, left)?;
        self.length += read;
        if !self.has_begun {
            (self.has_begun, self.until) = (true, Instant::now() + REQUEST_TIME);
        }
        if self.length > ALLOWANCE && !self.held.is_some() {
            // How long it will be is not known.
            self.held.take(MAX_REQUEST, Instant::now() + ROOM_TIME).map_err(io::Error::other)?;
            self.until = Instant::now() + REQUEST_TIME;
        }
        Ok(read)
    }
}

/// A conversation that is under way.
pub(crate) struct Conversation<R, W> {
    lines: BufReader<Lines<R>>,
    to: W,
}

impl<R: Receive, W: Transmit> Conversation<R, W> {
    pub(crate) fn new(from: R, to: W, room: &Arc<Room>) -> Conversation<R, W> {
        let held = room.of(None);
        let lines = Lines { from, until: Instant::now(), has_begun: true, length: 0, held };
        Conversation { lines: BufReader::new(lines), to }
    }

    /// The version that the client speaks, and its token; or it was told why not, and the conversation is over.
    pub(crate) fn greeting(&mut self) -> Option<Hello> {
        // All of it is there in that time.
        self.lines.get_mut().until = Instant::now() + HELLO_TIME;
        let line = match read_line(&mut self.lines, MAX_HELLO) {
            Ok(line) => line?,
            Err(error) => {
                self.refuse(RefusalKind::Malformed, error.to_string());
                return None;
            }
        };
        let hello: Hello = match serde_json::from_slice(&line) {
            Ok(hello) => hello,
            Err(error) => {
                self.refuse(RefusalKind::Malformed, format!("this is no greeting: {error}"));
                return None;
            }
        };
        if hello.version != VERSION {
            let message = format!("this device speaks version {VERSION}, not {}", hello.version);
            self.refuse(RefusalKind::Malformed, message);
            return None;
        }
        Some(hello)
    }

    /// Answers a client until it goes, or the device does.
    pub(crate) fn go_on(mut self, device: &Weak<Device>, client: &Client, is_ending: impl Fn() -> bool) {
        let Some(running) = device.upgrade() else { return };
        self.lines.get_mut().held = running.room.of(running.clients.tenant(client));
        let ready = Answer::Ready { device: running.name().to_owned() };
        drop(running);
        let mut goes_on = self.say(&ready);
        while goes_on && !is_ending() {
            let Some(request) = self.request() else { return };
            let Some(device) = device.upgrade() else { return };
            let answer = match request {
                Ok(request) => device.answer(client, &request),
                Err(answer) => answer,
            };
            drop(device);
            self.lines.get_mut().held.keep(0);
            goes_on = self.say(&answer);
        }
    }

    /// The next request, or what is said to a line that is none. Nothing: the conversation is over.
    fn request(&mut self) -> Option<Result<Request, Answer>> {
        let has_begun = !self.lines.buffer().is_empty();
        let time = if has_begun { REQUEST_TIME } else { IDLE_TIME };
        let length = self.lines.buffer().len();
        let lines = self.lines.get_mut();
        (lines.until, lines.has_begun, lines.length) = (Instant::now() + time, has_begun, length);
        let line = match read_line(&mut self.lines, MAX_REQUEST) {
            Ok(line) => line?,
            Err(LineError::Io(error)) if error.get_ref().is_some_and(|error| error.is::<NoRoom>()) => {
                self.refuse(RefusalKind::Limit, error.to_string());
                return None;
            }
            Err(error) => {
                self.refuse(RefusalKind::Malformed, error.to_string());
                return None;
            }
        };
        self.lines.get_mut().held.keep(line.len());
        let no_request = |error| refusal(RefusalKind::Malformed, format!("this is no request: {error}"));
        Some(serde_json::from_slice(&line).map_err(no_request))
    }

    /// Says why not.
    pub(crate) fn refuse(&mut self, kind: RefusalKind, message: String) {
        self.say(&refusal(kind, message));
    }

    /// Says something, and whether the client took it.
    fn say(&mut self, answer: &Answer) -> bool {
        let line = match line_of(answer, MAX_ANSWER) {
            Ok(line) => line,
            Err(LineError::TooLong(most)) => {
                return self.say_short(format!("the answer has more than {most} bytes (MAX_ANSWER)"));
            }
            Err(error) => return self.say_short(error.to_string()),
        };
        let held = &mut self.lines.get_mut().held;
        if let Err(no_room) = held.take(line.len(), Instant::now() + ROOM_TIME) {
            drop(line);
            return self.say_short(format!("it is done, and its answer is not told: {no_room}"));
        }
        let said = self.send(&line);
        self.lines.get_mut().held.keep(0);
        said
    }

    fn say_short(&mut self, message: String) -> bool {
        line_of(&refusal(RefusalKind::Limit, message), ALLOWANCE).is_ok_and(|line| self.send(&line))
    }

    fn send(&mut self, mut line: &[u8]) -> bool {
        let until = Instant::now() + ANSWER_TIME;
        while !line.is_empty() {
            let left = until.saturating_duration_since(Instant::now()).min(STALL);
            match self.to.transmit(line, left) {
                _ if left.is_zero() => return false,
                Ok(0) => return false,
                Ok(sent) => line = &line[sent..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        true
    }
}

pub(crate) fn refusal(kind: RefusalKind, message: String) -> Answer {
    Answer::Refused(Refused { kind, message, problems: Vec::new() })
}
