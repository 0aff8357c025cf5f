//! Serves a device: a thread that has it, and two threads for each client.
//!
//! ```text
//!  reader of a client --(at most MAX_REQUESTS)--> owner --(at most MAX_REQUESTS answers, MAX_WAITING others)--> writer of the client
//! ```
//!
//! The owner never waits for a client: frames and messages that a client has no room for are lost, and a request is read only
//! while there is room for its answer ([`Outbox`]).

use crate::device::{Counts, Device, Event, Fault, Shape};
use crate::limits::*;
use crate::outbox::Outbox;
use crate::wire::{Refused, ToDevice, ToHost, length};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tracing::{debug, info, warn};

/// A device that is served, until this is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// What the threads of a server share.
#[derive(Debug)]
struct Shared {
    is_ending: AtomicBool,
    clients: AtomicUsize,
    counts: Mutex<Counts>,
    /// Why the device is gone, if it is.
    fault: Mutex<Option<Fault>>,
}

/// What the owner of the device hears.
enum Heard {
    /// A client is there; whether it wants frames.
    Came { client: u64, frames: bool, out: Arc<Outbox>, stream: TcpStream },
    /// What a client says is no record, and why.
    Wrong(u64, String),
    /// A client asks.
    Asked(u64, ToDevice),
    /// A client is gone.
    Left(u64),
}

impl Server {
    /// Serves a device at a free port of this machine, for who is told its address.
    ///
    /// # Errors
    /// There is no free port, or there can be no thread.
    pub fn local(device: Box<dyn Device>) -> io::Result<Server> {
        Server::serve(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?, device)
    }

    /// Serves a device to those who connect.
    ///
    /// # Errors
    /// The listener has no address, or there can be no thread.
    pub fn serve(listener: TcpListener, device: Box<dyn Device>) -> io::Result<Server> {
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            is_ending: AtomicBool::new(false),
            clients: AtomicUsize::new(0),
            counts: Mutex::default(),
            fault: Mutex::default(),
        });
        let (say, hear) = sync_channel(MAX_REQUESTS);
        let shape = device.shape();
        let owner = Owner { device, shape, shared: Arc::clone(&shared), clients: BTreeMap::new() };
        let mut threads = vec![thread("link-device", move || owner.run(&hear))?];
        let accepting = Arc::clone(&shared);
        threads.push(thread("link-accept", move || accept(&listener, &accepting, &say))?);
        Ok(Server { address, shared, threads })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What was counted.
    pub fn counts(&self) -> Counts {
        *self.shared.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why the device is gone, if it is.
    pub fn fault(&self) -> Option<Fault> {
        self.shared.fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.is_ending.store(true, Ordering::Release);
        // Wakes the thread that accepts.
        drop(TcpStream::connect_timeout(&self.address, Duration::from_secs(1)));
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

fn thread(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(run)
}

/// Takes clients.
fn accept(listener: &TcpListener, shared: &Arc<Shared>, say: &SyncSender<Heard>) {
    for (client, stream) in (1u64..).zip(listener.incoming()) {
        if shared.is_ending.load(Ordering::Acquire) {
            return;
        }
        let stream = match stream {
            Ok(stream) => stream,
            Err(error) => {
                // Such as no more descriptors: to go on at once would only find the same.
                warn!(%error, "a client of the host link cannot be taken");
                std::thread::sleep(Duration::from_millis(100));
                continue;
            }
        };
        if shared.clients.load(Ordering::Acquire) >= MAX_CLIENTS {
            let why = format!("the server has {MAX_CLIENTS} clients (MAX_CLIENTS)");
            refuse(&stream, &why);
            continue;
        }
        shared.clients.fetch_add(1, Ordering::AcqRel);
        let (of_client, say) = (Arc::clone(shared), say.clone());
        let started = thread("link-client", move || {
            let peer = stream.peer_addr().map(|peer| peer.to_string()).unwrap_or_default();
            let ended = converse(client, stream, &say, &of_client);
            debug!(
                peer,
                why = ended.err().map(|error| error.to_string()),
                "a client of the host link is gone"
            );
            of_client.clients.fetch_sub(1, Ordering::AcqRel);
        });
        if let Err(error) = started {
            warn!(%error, "a client of the host link has no thread");
            shared.clients.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// Says why a client is not taken. What cannot be said without waiting is not.
fn refuse(mut stream: &TcpStream, why: &str) {
    let refused = ToHost::Refused(Refused { tag: 0, done: 0, why: why.to_owned() });
    // The client may be gone.
    let _ = stream.set_write_timeout(Some(Duration::from_millis(100)));
    let _ = stream.write_all(&refused.encode());
}

/// Reads what a client says, until it is gone.
fn converse(client: u64, stream: TcpStream, say: &SyncSender<Heard>, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(RECORD_TIME))?;
    let mut reader = Records { stream: stream.try_clone()?, buffer: Vec::new() };
    let hello = reader.next(PATIENCE, &|waited| waited < HELLO_TIME)?;
    let frames = match ToDevice::decode(&hello) {
        Ok(ToDevice::Hello { frames }) => frames,
        Ok(_) => return Err(invalid("it did not say who it is")),
        Err(error) => {
            refuse(&stream, &error.to_string());
            return Err(invalid(error));
        }
    };
    let out = Arc::new(Outbox::default());
    // Of the hello.
    out.reserve();
    let (came, mut writer) = (stream.try_clone()?, stream.try_clone()?);
    let to_write = Arc::clone(&out);
    let writing = thread("link-writer", move || {
        while let Some(record) = to_write.next() {
            if let Err(error) = writer.write_all(&record.encode()) {
                debug!(%error, "a client of the host link does not read");
                break;
            }
            // What is refused without a request is the connection.
            if matches!(record, ToHost::Refused(Refused { tag: 0, .. })) {
                break;
            }
        }
        to_write.close();
        // Ends the reader, if it still waits.
        let _ = writer.shutdown(Shutdown::Both);
    })?;
    let of_client = Arc::clone(&out);
    let ended = match say.send(Heard::Came { client, frames, out: of_client, stream: came }) {
        Ok(()) => requests(client, &mut reader, &out, say, shared),
        Err(_) => Ok(()),
    };
    out.close();
    let _ = stream.shutdown(Shutdown::Both);
    // The owner may have ended.
    let _ = say.send(Heard::Left(client));
    let _ = writing.join();
    ended
}

/// Hands the requests of a client to the owner.
fn requests(
    client: u64,
    reader: &mut Records,
    out: &Outbox,
    say: &SyncSender<Heard>,
    shared: &Shared,
) -> io::Result<()> {
    loop {
        let record = reader.next(PATIENCE, &|_| !shared.is_ending.load(Ordering::Acquire));
        let read = record.and_then(|record| Ok((ToDevice::decode(&record).map_err(invalid)?, record)));
        let (said, record) = match read {
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                // After the answers to what came before.
                if out.reserve() && say.send(Heard::Wrong(client, error.to_string())).is_ok() {
                    out.wait_for_close(RECORD_TIME);
                }
                return Err(error);
            }
            read => read?,
        };
        reader.buffer = record;
        let has_room = matches!(said, ToDevice::Frame { .. }) || out.reserve();
        if !has_room || say.send(Heard::Asked(client, said)).is_err() {
            return Ok(());
        }
    }
}

fn invalid(error: impl std::fmt::Display) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, error.to_string())
}

/// Records from a connection.
#[derive(Debug)]
pub(crate) struct Records {
    pub(crate) stream: TcpStream,
    pub(crate) buffer: Vec<u8>,
}

impl Records {
    /// The next record. Until it begins, `may_wait` says after each look whether to go on waiting, by the time it has taken so far; from
    /// then on it has [`RECORD_TIME`].
    pub(crate) fn next(
        &mut self,
        look: Duration,
        may_wait: &dyn Fn(Duration) -> bool,
    ) -> io::Result<Vec<u8>> {
        let begun = Instant::now();
        let mut head = [0; 4];
        self.stream.set_read_timeout(Some(look.clamp(Duration::from_micros(1), PATIENCE)))?;
        loop {
            match self.stream.read(&mut head[..1]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(_) => break,
                Err(error) if is_late(&error) && may_wait(begun.elapsed()) => {}
                Err(error) => return Err(error),
            }
        }
        let until = Instant::now() + RECORD_TIME;
        self.stream.set_read_timeout(Some(PATIENCE))?;
        self.fill(&mut head[1..], until)?;
        let length = length(head).map_err(invalid)?;
        let mut record = std::mem::take(&mut self.buffer);
        // Grows as bytes come, not as they are announced.
        record.clear();
        while record.len() < length {
            let from = record.len();
            record.resize(length.min(from + CHUNK), 0);
            self.fill(&mut record[from..], until)?;
        }
        Ok(record)
    }

    fn fill(&mut self, mut bytes: &mut [u8], until: Instant) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.stream.read(bytes) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(read) => bytes = &mut bytes[read..],
                Err(error) if is_late(&error) && Instant::now() < until => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// How long one look for bytes takes, so that the end of the server is heard of.
pub(crate) const PATIENCE: Duration = Duration::from_millis(100);
/// How much room is made for a record at a time.
const CHUNK: usize = 4096;

fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// The thread that has the device.
struct Owner {
    device: Box<dyn Device>,
    shape: Shape,
    shared: Arc<Shared>,
    clients: BTreeMap<u64, ClientState>,
}

struct ClientState {
    out: Arc<Outbox>,
    stream: TcpStream,
    has_frames: bool,
    /// Frames and messages that it was too slow for and has not been told of.
    lost: (u64, u64),
}

impl Owner {
    fn run(mut self, hear: &Receiver<Heard>) {
        while !self.shared.is_ending.load(Ordering::Acquire) {
            match hear.recv_timeout(IDLE_TIME) {
                Ok(heard) => {
                    self.heard(heard);
                    // As many as wait already, so that a device with much to say does not slow requests down.
                    for heard in hear.try_iter().take(MAX_REQUESTS) {
                        self.heard(heard);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if let Err(fault) = self.poll() {
                warn!(device = self.shape.name, %fault, "the device is gone");
                *self.shared.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(fault);
                break;
            }
        }
        for client in self.clients.values() {
            let _ = client.stream.shutdown(Shutdown::Both);
        }
    }

    fn count(&self, count: impl FnOnce(&mut Counts)) {
        count(&mut self.shared.counts.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn poll(&mut self) -> Result<(), Fault> {
        let mut events = Vec::new();
        self.device.poll(&mut |event| events.push(event))?;
        for event in events {
            self.tell(event);
        }
        Ok(())
    }

    fn tell(&mut self, event: Event) {
        let is_frame = matches!(event, Event::Frame { .. });
        let receiver = self.clients.values_mut().find(|client| client.has_frames);
        let taken = receiver.is_some_and(|client| {
            let (frames, messages) = client.lost;
            if (frames, messages) != (0, 0) && client.out.offer(ToHost::Lost { frames, messages }) {
                client.lost = (0, 0);
            }
            let taken = client.out.offer(ToHost::Event(event));
            client.lost.0 += u64::from(!taken && is_frame);
            client.lost.1 += u64::from(!taken && !is_frame);
            taken
        });
        self.count(|counts| {
            *match (taken, is_frame) {
                (true, true) => &mut counts.frames_out,
                (true, false) => &mut counts.messages,
                (false, true) => &mut counts.lost_frames,
                (false, false) => &mut counts.lost_messages,
            } += 1;
        });
    }

    fn heard(&mut self, heard: Heard) {
        match heard {
            Heard::Came { client, frames, out, stream } => {
                let is_taken = self.clients.values().any(|other| other.has_frames);
                if frames && is_taken {
                    out.answer(refused(0, 0, "another client has the frames of the device"));
                    return;
                }
                out.answer(ToHost::Hello(self.shape.clone()));
                info!(device = self.shape.name, frames, "a client of the host link");
                self.clients.insert(client, ClientState { out, stream, has_frames: frames, lost: (0, 0) });
            }
            Heard::Left(client) => {
                if let Some(ClientState { lost: (frames, messages), .. }) = self.clients.remove(&client) {
                    debug!(frames, messages, "lost, and not told");
                }
            }
            Heard::Wrong(client, why) => {
                if let Some(state) = self.clients.get(&client) {
                    state.out.answer(refused(0, 0, why));
                }
            }
            Heard::Asked(client, asked) => {
                let answer = self.answer(asked);
                if let (Some(answer), Some(state)) = (answer, self.clients.get(&client)) {
                    state.out.answer(answer);
                }
            }
        }
    }

    fn answer(&mut self, asked: ToDevice) -> Option<ToHost> {
        match asked {
            ToDevice::Hello { .. } => Some(refused(0, 0, "it has said hello before")),
            ToDevice::Read { tag, address, words } => {
                self.count(|counts| counts.requests += 1);
                Some(match self.read(address, words) {
                    Ok(words) => ToHost::Words { tag, words },
                    Err(fault) => refused(tag, 0, fault),
                })
            }
            ToDevice::Write { tag, writes } => {
                self.count(|counts| counts.requests += 1);
                Some(self.write(tag, &writes))
            }
            ToDevice::Ask { tag, part, text } => {
                self.count(|counts| counts.requests += 1);
                Some(match self.device.ask(part, &text) {
                    Ok(text) => ToHost::Said { tag, text: shortened(text) },
                    Err(fault) => refused(tag, 0, fault),
                })
            }
            ToDevice::Frame { port, bytes } => {
                let taken = self.device.send(port, &bytes);
                self.count(|counts| {
                    counts.frames_in += 1;
                    counts.refused += u64::from(taken.is_err());
                });
                if let Err(fault) = taken {
                    debug!(port, %fault, "a frame is refused");
                }
                None
            }
        }
    }

    fn read(&mut self, address: u32, words: u16) -> Result<Vec<u32>, Fault> {
        self.check(address)?;
        let last = u64::from(address) + 4 * u64::from(words);
        if last > u64::from(self.shape.bytes) {
            let bytes = self.shape.bytes;
            return Err(Fault::new(format_args!("the registers end at {bytes:#x}, and {last:#x} is asked")));
        }
        self.device.begin();
        (0..u32::from(words)).map(|word| self.device.read(address + 4 * word)).collect()
    }

    /// All addresses are checked before the first word is written.
    fn write(&mut self, tag: u32, writes: &[(u32, u32)]) -> ToHost {
        if let Err(fault) = writes.iter().try_for_each(|(address, _)| self.check(*address)) {
            return refused(tag, 0, fault);
        }
        self.device.begin();
        let mut done = 0;
        let written = writes.iter().try_for_each(|(address, word)| {
            self.device.write(*address, *word)?;
            done += 1;
            Ok(())
        });
        match written.and(self.device.end()) {
            Ok(()) => ToHost::Done { tag },
            Err(fault) => refused(tag, done, fault),
        }
    }

    fn check(&self, address: u32) -> Result<(), Fault> {
        match address.is_multiple_of(4) && address < self.shape.bytes {
            true => Ok(()),
            false => Err(Fault::new(format_args!(
                "{address:#x} is no register: these are at multiples of 4 below {:#x}",
                self.shape.bytes
            ))),
        }
    }
}

/// An answer that a record carries: of a longer one the beginning, and how much is left out.
fn shortened(mut text: String) -> String {
    let length = text.len();
    if length > MAX_FRAME {
        // Room for the words.
        let mut end = MAX_FRAME - 64;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text += &format!("\n... and {} bytes more (MAX_FRAME)\n", length - end);
    }
    text
}

fn refused(tag: u32, done: u32, why: impl std::fmt::Display) -> ToHost {
    ToHost::Refused(Refused { tag, done, why: why.to_string() })
}
