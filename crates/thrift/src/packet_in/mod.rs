//! Ports whose frames a peer sends and gets over nanomsg, as `--packet-in` of bmv2 has them: one PAIR socket for all ports.
//!
//! Each message begins with three numbers of four bytes, little-endian: what it is, the port, and one more, which is the
//! length of the frame that follows (`PACKET_IN` to the switch, `PACKET_OUT` from it), or the state of the port.
//!
//! ```text
//!  peer --TCP, Unix socket--> reader --a queue for each port, MAX_WAITING_FRAMES in all--> ports of the worker
//!       <-------------------- writer <--one queue, MAX_WAITING_FRAMES-----------------------
//! ```
//!
//! All ports are there from the beginning, as those of bmv2 in this mode, and frames are switched in the order in which they
//! came, over all ports. A peer that sends faster than the switch takes them waits; one that does not read loses what its
//! queue has no room for, which counts as refused at the port.

use crate::sp::{NanomsgListener, PAIR, PAUSE, Stream};
use millrace_dataplane::PortId;
use millrace_drivers::{FarEnd, MemoryPort, Next};
use millrace_frames::MAX_FRAME;
use std::fmt;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

#[cfg(test)]
mod tests;

/// Most frames that wait for the switch, over all ports, and most messages that wait for the peer.
pub const MAX_WAITING_FRAMES: usize = 1024;
/// Most connections that have not said yet who they are; more are closed at once.
pub const MAX_PEERS: usize = 8;

/// Bytes before a frame.
const HEADER: usize = 12;
/// Longest message; a connection with a longer one is closed. Longer than a frame, so that one that is a little too long
/// is counted as any port counts it.
const MAX_MESSAGE: usize = HEADER + 4 * MAX_FRAME;
/// Between two looks whether the switch has taken frames.
const FULL: Duration = Duration::from_millis(1);

const PORT_ADD: i32 = 0;
const PORT_REMOVE: i32 = 1;
const PORT_SET_STATUS: i32 = 2;
const PACKET_IN: i32 = 3;
const PACKET_OUT: i32 = 4;
const INFO_REQ: i32 = 5;
const INFO_REP: i32 = 6;
/// The answer to each `INFO_REQ`, as bmv2 has it.
const NOT_SUPPORTED: i32 = 1;

/// A port of it.
pub type PacketInPort = MemoryPort<ToPeer>;

/// What a peer tells of ports, other than frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortChange {
    /// The peer uses the port.
    Added(PortId),
    /// It does not any more.
    Removed(PortId),
    /// The link of the port came up or went down. Frames pass nevertheless, as in bmv2.
    Link(PortId, bool),
    /// The first message of a connection that is not understood, and why; such messages are left out.
    Refused(Refusal),
}

/// Why a message is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is shorter than its header.
    TooShort(usize),
    /// It has not so many bytes of a frame.
    Length(i32),
    /// There is no such port.
    Port(i32),
    /// A peer does not send such messages.
    Kind(i32),
    /// Neither up nor down.
    Status(i32),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::TooShort(length) => write!(f, "a message of {length} bytes is shorter than its header"),
            Refusal::Length(length) => write!(f, "the message has no frame of {length} bytes"),
            Refusal::Port(port) => write!(f, "there is no port {port}"),
            Refusal::Kind(kind) => write!(f, "messages of kind {kind} are not for a switch"),
            Refusal::Status(status) => write!(f, "{status} is no state of a port"),
        }
    }
}

/// Ports that wait for a peer. [`PacketIn::serve`] lets it come.
#[derive(Debug)]
pub struct PacketIn {
    listener: NanomsgListener,
    link: Link,
    outgoing: Receiver<Vec<u8>>,
}

/// Takes peers, one at a time. It ends when this is dropped.
#[derive(Debug)]
pub struct PacketInServer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// The peer's end of the ports.
#[derive(Debug)]
struct Link {
    /// By number; none where another port of the switch has it.
    ports: Vec<Option<Sender<Ticketed>>>,
    next_ticket: AtomicU64,
    wake: UnixStream,
    shared: Arc<Shared>,
    answers: SyncSender<Vec<u8>>,
}

/// A frame with its place in the order of all.
type Ticketed = (u64, Vec<u8>);

#[derive(Debug)]
struct Shared {
    /// Frames that the worker has not taken yet.
    waiting: AtomicUsize,
    /// The ticket of the frame that is switched next. The worker alone writes it.
    turn: AtomicU64,
    awake: UnixStream,
    signalled: AtomicBool,
}

/// What is at the far end of a [`PacketInPort`].
#[derive(Debug)]
pub struct ToPeer {
    number: i32,
    /// The first port of a round sees the signals of all: whatever came before it is seen by a port of the round.
    is_first: bool,
    incoming: Receiver<Ticketed>,
    /// The frame whose turn has not come.
    held: Option<Ticketed>,
    /// The frame taken last.
    received: Vec<u8>,
    outgoing: SyncSender<Vec<u8>>,
    shared: Arc<Shared>,
}

/// Ports of these numbers, in ascending order, for the peer that will connect to a listener.
///
/// # Errors
/// What the operating system says to a pair of sockets.
pub fn packet_in(
    listener: NanomsgListener,
    numbers: impl IntoIterator<Item = PortId>,
) -> io::Result<(PacketIn, Vec<(PortId, PacketInPort)>)> {
    let (awake, wake) = UnixStream::pair()?;
    for end in [&awake, &wake] {
        end.set_nonblocking(true)?;
    }
    let (answers, outgoing) = sync_channel(MAX_WAITING_FRAMES);
    let (waiting, turn, signalled) = (AtomicUsize::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let shared = Arc::new(Shared { waiting, turn, awake, signalled });
    let (mut senders, mut ports) = (Vec::new(), Vec::new());
    for id in numbers {
        let Ok(number) = i32::try_from(id) else { break };
        let (sender, incoming) = channel();
        senders.resize_with(id as usize + 1, || None);
        senders[id as usize] = Some(sender);
        let far_end = ToPeer {
            number,
            is_first: ports.is_empty(),
            incoming,
            held: None,
            received: Vec::new(),
            outgoing: answers.clone(),
            shared: Arc::clone(&shared),
        };
        ports.push((id, MemoryPort::new(far_end)));
    }
    let link = Link { ports: senders, next_ticket: AtomicU64::new(0), wake, shared, answers };
    Ok((PacketIn { listener, link, outgoing }, ports))
}

impl PacketIn {
    /// Where the peer reaches it.
    pub fn address(&self) -> &str {
        self.listener.address()
    }

    /// Takes peers from now on; `tell` hears what they say of ports.
    ///
    /// # Errors
    /// The operating system refuses a thread.
    pub fn serve(self, tell: impl Fn(PortChange) + Send + Sync + 'static) -> io::Result<PacketInServer> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let PacketIn { listener, link, outgoing } = self;
        let serving = Arc::new(Serving { link, outgoing: Mutex::new(outgoing), stop: stopped, tell });
        let accept = move || accept(&listener, &serving);
        let thread = std::thread::Builder::new().name("packet-in".into()).spawn(accept)?;
        Ok(PacketInServer { stop, thread: Some(thread) })
    }
}

impl Drop for PacketInServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl FarEnd for ToPeer {
    fn asked(&mut self) {
        // First the bytes, then the flag: a frame that finds the flag set is not signalled, so all bytes that are taken here have to be
        // of frames that came before the flag is cleared, which this round finds. The other order lost the byte of a frame that came
        // between the two, and no later frame was signalled.
        if self.is_first {
            let mut signals = [0; 64];
            while (&self.shared.awake).read(&mut signals).is_ok_and(|read| read > 0) {}
            self.shared.signalled.swap(false, Ordering::AcqRel);
        }
    }

    fn next(&mut self) -> Next<'_> {
        if self.held.is_none() {
            self.held = self.incoming.try_recv().ok();
        }
        let turn = self.shared.turn.load(Ordering::Relaxed);
        match self.held.take_if(|(ticket, _)| *ticket == turn) {
            Some((_, frame)) => {
                self.shared.turn.store(turn + 1, Ordering::Relaxed);
                self.shared.waiting.fetch_sub(1, Ordering::Relaxed);
                self.received = frame;
                Next::Frame(&self.received)
            }
            None => Next::None,
        }
    }

    fn take(&mut self, frame: &[u8]) -> bool {
        let length = i32::try_from(frame.len()).unwrap_or(i32::MAX);
        let mut message = Vec::with_capacity(HEADER + frame.len());
        for number in [PACKET_OUT, self.number, length] {
            message.extend_from_slice(&number.to_le_bytes());
        }
        message.extend_from_slice(frame);
        self.outgoing.try_send(message).is_ok()
    }

    fn poll_fd(&self) -> Option<RawFd> {
        Some(self.shared.awake.as_raw_fd())
    }
}

/// What the threads of peers share.
struct Serving<F> {
    link: Link,
    /// Whoever holds it is the peer.
    outgoing: Mutex<Receiver<Vec<u8>>>,
    stop: Arc<AtomicBool>,
    tell: F,
}

fn accept<F: Fn(PortChange) + Send + Sync + 'static>(listener: &NanomsgListener, serving: &Arc<Serving<F>>) {
    let connected = Arc::new(());
    while !serving.stop.load(Ordering::Acquire) {
        let Ok(stream) = listener.accept() else {
            std::thread::sleep(PAUSE);
            continue;
        };
        // The peer that is served is one more.
        if Arc::strong_count(&connected) > MAX_PEERS + 1 {
            continue;
        }
        let (serving, place) = (Arc::clone(serving), Arc::clone(&connected));
        let serve = move || {
            // A peer that goes, or is none, is no error.
            let _ = serving.serve(stream);
            drop(place);
        };
        // Without a thread this connection is closed.
        let _ = std::thread::Builder::new().name("packet-in peer".into()).spawn(serve);
    }
}

impl<F: Fn(PortChange) + Send + Sync> Serving<F> {
    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Acquire)
    }

    /// Serves a connection if there is no other, until it goes.
    fn serve(&self, mut stream: Stream) -> io::Result<()> {
        stream.greet(PAIR, PAIR)?;
        // A thread that panicked has left the queue as it was.
        let outgoing = match self.outgoing.try_lock() {
            Ok(outgoing) => outgoing,
            Err(std::sync::TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(std::sync::TryLockError::WouldBlock) => return Ok(()),
        };
        let (mut reading, has_gone) = (stream.another()?, AtomicBool::new(false));
        std::thread::scope(|scope| {
            let read = || {
                let read = self.read_all(&mut reading);
                has_gone.store(true, Ordering::Release);
                read
            };
            let reader = std::thread::Builder::new().name("packet-in reader".into());
            let started = reader.spawn_scoped(scope, read).map(drop);
            let written = started.and_then(|()| self.write_all(&mut stream, &outgoing, &has_gone));
            // Neither side waits for the other.
            stream.close();
            written
        })
    }

    fn write_all(
        &self,
        stream: &mut Stream,
        outgoing: &Receiver<Vec<u8>>,
        has_gone: &AtomicBool,
    ) -> io::Result<()> {
        while self.goes_on() && !has_gone.load(Ordering::Acquire) {
            match outgoing.recv_timeout(PAUSE) {
                Ok(message) => stream.write_message(&[&message])?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        Ok(())
    }

    fn read_all(&self, stream: &mut Stream) -> io::Result<()> {
        let (mut message, mut is_told) = (Vec::new(), false);
        let goes_on = || self.goes_on();
        while stream.read_message(&mut message, MAX_MESSAGE, &goes_on)? {
            match self.take(&message) {
                Ok(Some(change)) => (self.tell)(change),
                Ok(None) => {}
                Err(refusal) if !is_told => {
                    is_told = true;
                    (self.tell)(PortChange::Refused(refusal));
                }
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Does what a message asks for.
    fn take(&self, message: &[u8]) -> Result<Option<PortChange>, Refusal> {
        let (header, frame) = message.split_at_checked(HEADER).ok_or(Refusal::TooShort(message.len()))?;
        let number = |at: usize| i32::from_le_bytes([0, 1, 2, 3].map(|byte| header[at + byte]));
        let (kind, port, more) = (number(0), number(4), number(8));
        let id = || self.link.port(port).map(|(id, _)| id).ok_or(Refusal::Port(port));
        match kind {
            PORT_ADD => Ok(Some(PortChange::Added(id()?))),
            PORT_REMOVE => Ok(Some(PortChange::Removed(id()?))),
            PORT_SET_STATUS => match more {
                0 | 1 => Ok(Some(PortChange::Link(id()?, more == 1))),
                _ => Err(Refusal::Status(more)),
            },
            PACKET_IN => {
                let frame = usize::try_from(more).ok().and_then(|length| frame.get(..length));
                let frame = frame.ok_or(Refusal::Length(more))?;
                let (_, sender) = self.link.port(port).ok_or(Refusal::Port(port))?;
                self.hand_on(sender, frame);
                Ok(None)
            }
            INFO_REQ => {
                let words = [INFO_REP, port, more, NOT_SUPPORTED];
                let answer = words.into_iter().flat_map(i32::to_le_bytes).collect();
                // Who does not read its answers loses them, as it loses frames.
                let _ = self.link.answers.try_send(answer);
                Ok(None)
            }
            _ => Err(Refusal::Kind(kind)),
        }
    }

    /// Gives a frame to its port once there is room for it.
    fn hand_on(&self, port: &Sender<Ticketed>, frame: &[u8]) {
        let Link { shared, wake, next_ticket, .. } = &self.link;
        while shared.waiting.load(Ordering::Relaxed) >= MAX_WAITING_FRAMES {
            if !self.goes_on() {
                return;
            }
            std::thread::sleep(FULL);
        }
        // Only the one peer counts up.
        let ticket = next_ticket.load(Ordering::Relaxed);
        shared.waiting.fetch_add(1, Ordering::Relaxed);
        if port.send((ticket, frame.to_vec())).is_err() {
            // The switch has ended, and with it the order of its frames.
            return;
        }
        next_ticket.store(ticket + 1, Ordering::Relaxed);
        // One signal until the switch has seen it.
        if !shared.signalled.swap(true, Ordering::AcqRel) {
            let _ = (&*wake).write(&[1]);
        }
    }
}

impl Link {
    fn port(&self, number: i32) -> Option<(PortId, &Sender<Ticketed>)> {
        let id = PortId::try_from(number).ok()?;
        Some((id, self.ports.get(id as usize)?.as_ref()?))
    }
}
