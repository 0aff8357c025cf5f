//! Captures of what comes in and goes out by ports, switched on and off while a switch runs.
//!
//! A port that may be captured is [`Captures::watch`]ed. While its capture is off that costs one relaxed load and one branch a burst.
//! While it is on the worker copies frames into two rings of a fixed size, one for each direction, which a thread writes
//! to files: `NAME_in.pcap` and `NAME_out.pcap`, with times in nanoseconds. Each queue pair of the port has rings of its own, and all of
//! one direction go to one file, in the order in which the thread finds their frames. The worker never waits for the disk; frames
//! that find no room are left out, and counted. (With a port that replays a capture time stands still, so there it does
//! wait, and the files are whole.)

mod tap;
mod writer;

use crate::port::QueuePair;
use crate::spec::InterfaceSpec;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;
use tap::{Lane, Room, Tap, WatchedPort};
pub use writer::CAPTURE_END_TIME;
use writer::{Writer, WriterEnded};

/// Bytes that wait for the disk, of each direction of a queue pair.
pub const CAPTURE_RING: usize = 4 << 20;
/// Longest name of a capture, in bytes.
pub const MAX_CAPTURE_NAME: usize = 128;
/// Largest file of a capture that may be asked for, in bytes.
pub const MAX_CAPTURE_FILE: u64 = 1 << 40;
/// Largest file of a capture when nothing else is asked for, in bytes.
pub const DEFAULT_CAPTURE_FILE: u64 = 4 << 30;

/// The captures of one switch. They end when this is dropped.
#[derive(Debug)]
pub struct Captures {
    folder: Option<PathBuf>,
    max_file: u64,
    known: Mutex<Known>,
    /// There from the first capture on, if it was not needed before.
    writer: OnceLock<Writer>,
}

/// The ports that can be captured, and the files that are being written to their end.
#[derive(Debug, Default)]
struct Known {
    ports: BTreeMap<u32, Watched>,
    /// By the path of what came in. Nobody else may write them until then, and nobody waits for it with the lock.
    ending: Vec<PathBuf>,
}

#[derive(Debug)]
struct Watched {
    name: String,
    /// Of each queue pair.
    taps: Vec<Tap>,
    /// While its capture is on.
    active: Option<Active>,
}

#[derive(Debug)]
struct Active {
    status: CaptureStatus,
    counts: [Arc<Counts>; 2],
    files: [u64; 2],
}

/// What is counted of one direction: by the workers what they took and left out, by the thread that writes what is in the file.
#[derive(Debug, Default)]
struct Counts {
    taken: AtomicU64,
    lost: AtomicU64,
    written: AtomicU64,
    /// Why the file is not written any more.
    error: OnceLock<String>,
}

/// A capture that is on, or how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureStatus {
    /// The port.
    pub port: u32,
    /// Where frames that came in go.
    pub incoming: PathBuf,
    /// Where frames that went out go: those given to the port, also when it refuses them.
    pub outgoing: PathBuf,
    /// Frames that are whole in the files, of both directions.
    pub packets: u64,
    /// Frames left out, because the disk was too slow, a file has its largest size, or could not be written.
    pub lost: u64,
    /// Why a file is not written any more, as when the disk is full. Frames that come then are left out.
    pub error: Option<String>,
}

/// Why a capture is not switched on or off.
#[derive(Debug)]
pub enum CaptureError {
    /// The switch was given no folder for captures.
    NoFolder,
    /// There is no such port.
    NoPort(u32),
    /// The capture is on already.
    On(u32),
    /// The capture is off already.
    Off(u32),
    /// The name could lead out of the folder, or is too long.
    Name(String),
    /// Another capture writes files of the name.
    Taken(String),
    /// A larger file than [`MAX_CAPTURE_FILE`] is asked for.
    MaxFile(u64),
    /// A file cannot be made or written.
    File(PathBuf, io::Error),
    /// The thread that writes cannot be started, or has ended.
    Writer(io::Error),
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CaptureError::NoFolder => f.write_str("the switch was started without a folder for captures"),
            CaptureError::NoPort(port) => write!(f, "there is no port {port}"),
            CaptureError::On(port) => write!(f, "the capture of port {port} is on already"),
            CaptureError::Off(port) => write!(f, "the capture of port {port} is not on"),
            CaptureError::Name(name) => write!(
                f,
                "`{name}` cannot name a capture: 1 to {MAX_CAPTURE_NAME} letters, digits, `_`, `-` and `.`, no `.` first"
            ),
            CaptureError::Taken(name) => write!(f, "another capture writes to `{name}`"),
            CaptureError::MaxFile(given) => {
                write!(f, "a capture file has at most {MAX_CAPTURE_FILE} bytes, not {given}")
            }
            CaptureError::File(path, error) => write!(f, "{}: {error}", path.display()),
            CaptureError::Writer(error) => write!(f, "no thread writes captures: {error}"),
        }
    }
}

impl std::error::Error for CaptureError {}

impl From<WriterEnded> for CaptureError {
    fn from(_: WriterEnded) -> CaptureError {
        CaptureError::Writer(io::ErrorKind::BrokenPipe.into())
    }
}

impl Captures {
    /// Captures go to files in that folder, which is made if it is not there, each of at most so many bytes. Without a
    /// folder none can be switched on.
    ///
    /// # Errors
    /// [`CaptureError`]: the size is above the limit, the folder or the thread that writes cannot be made.
    pub fn new(folder: Option<&Path>, max_file: u64) -> Result<Captures, CaptureError> {
        let captures = Captures::idle(folder, max_file)?;
        captures.prepare()?;
        Ok(captures)
    }

    /// The same; the folder and the thread that writes are made for the first capture. So a device can have many switches of which few
    /// are captured.
    ///
    /// # Errors
    /// [`CaptureError`]: the size is above the limit.
    pub fn idle(folder: Option<&Path>, max_file: u64) -> Result<Captures, CaptureError> {
        if max_file > MAX_CAPTURE_FILE {
            return Err(CaptureError::MaxFile(max_file));
        }
        let (folder, writer) = (folder.map(Path::to_owned), OnceLock::new());
        Ok(Captures { folder, max_file, known: Mutex::default(), writer })
    }

    /// Makes what a capture needs: the folder, and the thread that writes. One at a time.
    fn prepare(&self) -> Result<(), CaptureError> {
        if let Some(folder) = &self.folder {
            std::fs::create_dir_all(folder).map_err(|error| CaptureError::File(folder.clone(), error))?;
        }
        if self.writer.get().is_none() {
            // Whoever else made one keeps it.
            let _ = self.writer.set(Writer::start().map_err(CaptureError::Writer)?);
        }
        Ok(())
    }

    fn writer(&self) -> Result<&Writer, CaptureError> {
        self.writer.get().ok_or_else(|| WriterEnded.into())
    }

    /// Makes a port one that can be captured: all its queue pairs. Its files are named after its interface where it is one, as in
    /// bmv2, else `portN`.
    pub fn watch<P: IntoIterator<Item = Box<dyn QueuePair>>>(
        &self,
        number: u32,
        interface: &InterfaceSpec,
        pairs: P,
    ) -> Vec<Box<dyn QueuePair>> {
        let name = interface.link().unwrap_or_default().to_owned();
        let ports = &mut self.lock().ports;
        let is_free = |name: &str| !ports.values().any(|other| other.name == name);
        let name = match check_name(&name).is_ok() && is_free(&name) {
            true => name,
            false => format!("port{number}"),
        };
        let (pairs, taps): (Vec<_>, _) = pairs.into_iter().map(WatchedPort::new).unzip();
        ports.insert(number, Watched { name, taps, active: None });
        pairs.into_iter().map(|pair| Box::new(pair) as Box<dyn QueuePair>).collect()
    }

    /// As [`Captures::watch`], a port between switches, with one queue pair whose kind is known: no call more leads to it. The times of
    /// its frames are those at which the switch takes them.
    pub fn watch_inner<P: QueuePair + 'static>(&self, number: u32, pair: P) -> Box<dyn QueuePair> {
        let (pair, tap) = WatchedPort::between(Box::new(pair));
        self.lock()
            .ports
            .insert(number, Watched { name: format!("port{number}"), taps: vec![tap], active: None });
        Box::new(pair)
    }

    /// A port is not there any more. Its capture ends, if it is on; how, is given then.
    ///
    /// # Errors
    /// [`CaptureError`]: nobody writes.
    pub fn forget(&self, number: u32) -> Result<Option<CaptureStatus>, CaptureError> {
        let active = {
            let mut known = self.lock();
            let active = known.ports.remove(&number).and_then(|watched| watched.active);
            active.inspect(|active| known.ending.push(active.status.incoming.clone()))
        };
        active.map(|active| self.end(active)).transpose()
    }

    /// The ports that can be captured.
    pub fn ports(&self) -> Vec<u32> {
        self.lock().ports.keys().copied().collect()
    }

    /// Switches the capture of a port on; files that exist are replaced. `name` is that of its files, without `_in.pcap`
    /// and `_out.pcap`.
    ///
    /// # Errors
    /// [`CaptureError`]; the capture stays off, or on as it was.
    pub fn start(&self, number: u32, name: Option<&str>) -> Result<CaptureStatus, CaptureError> {
        let folder = self.folder.as_ref().ok_or(CaptureError::NoFolder)?;
        let mut known = self.lock();
        let Known { ports, ending } = &mut *known;
        let watched = ports.get(&number).ok_or(CaptureError::NoPort(number))?;
        let name = name.unwrap_or(&watched.name);
        check_name(name)?;
        let [incoming, outgoing] = ["in", "out"].map(|way| folder.join(format!("{name}_{way}.pcap")));
        if watched.active.is_some() {
            return Err(CaptureError::On(number));
        }
        let mut active = ports.values().filter_map(|watched| watched.active.as_ref());
        if active.any(|other| other.status.incoming == incoming) || ending.contains(&incoming) {
            return Err(CaptureError::Taken(name.to_owned()));
        }
        self.prepare()?;
        let files = [create(&incoming)?, create(&outgoing)?];
        let counts: [Arc<Counts>; 2] = Default::default();
        let [file_in, file_out] = files;
        let pairs = watched.taps.len();
        let (in_lanes, in_id) = self.lanes(file_in, &counts[0], pairs)?;
        let (out_lanes, out_id) = self.lanes(file_out, &counts[1], pairs)?;
        let status = CaptureStatus { port: number, incoming, outgoing, packets: 0, lost: 0, error: None };
        if let Some(watched) = ports.get_mut(&number) {
            let lanes = in_lanes.into_iter().zip(out_lanes);
            watched
                .taps
                .iter()
                .zip(lanes)
                .for_each(|(tap, (incoming, outgoing))| tap.set(Some([incoming, outgoing])));
            watched.active = Some(Active { status: status.clone(), counts, files: [in_id, out_id] });
        }
        Ok(status)
    }

    /// Switches the capture of a port off. What was captured is in its files then; what could not be written is told by
    /// [`CaptureStatus::lost`] and [`CaptureStatus::error`].
    ///
    /// # Errors
    /// [`CaptureError`]: the capture is off already, or nobody writes.
    pub fn stop(&self, number: u32) -> Result<CaptureStatus, CaptureError> {
        let active = {
            let mut known = self.lock();
            let watched = known.ports.get_mut(&number).ok_or(CaptureError::NoPort(number))?;
            let active = watched.active.take().ok_or(CaptureError::Off(number))?;
            watched.taps.iter().for_each(|tap| tap.set(None));
            known.ending.push(active.status.incoming.clone());
            active
        };
        self.end(active)
    }

    /// The captures that are on.
    pub fn status(&self) -> Vec<CaptureStatus> {
        self.lock().ports.values().filter_map(|watched| Some(watched.active.as_ref()?.status_now())).collect()
    }

    /// Brings what was captured to its files, in the time that there is for it.
    fn end(&self, active: Active) -> Result<CaptureStatus, CaptureError> {
        let until = Instant::now() + CAPTURE_END_TIME;
        let writer = self.writer()?;
        let ended = active.files.map(|file| writer.finish(file, until));
        self.lock().ending.retain(|path| *path != active.status.incoming);
        for (ended, lane) in ended.into_iter().zip(&active.counts) {
            if let Err(error) = ended? {
                // The first reason counts.
                let _ = lane.error.set(error.to_string());
            }
        }
        // Nothing is on its way any more: what was taken and is not in a file is lost.
        let mut status = active.status_now();
        let taken: u64 = active.counts.iter().map(|lane| lane.taken.load(Ordering::Relaxed)).sum();
        status.lost = active.counts.iter().map(|lane| lane.lost.load(Ordering::Relaxed)).sum::<u64>()
            + taken.saturating_sub(status.packets);
        Ok(status)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A lane for each of so many queue pairs, all to one file.
    fn lanes(
        &self,
        file: File,
        counts: &Arc<Counts>,
        pairs: usize,
    ) -> Result<(Vec<Lane>, u64), CaptureError> {
        let rings = (0..pairs).map(|_| rtrb::RingBuffer::new(CAPTURE_RING));
        let (lanes, written): (Vec<_>, Vec<_>) = rings.unzip();
        let id = self.writer()?.add(file, written, Arc::clone(counts))?;
        let room = Room::of(self.max_file);
        Ok((lanes.into_iter().map(|bytes| Lane::new(bytes, Arc::clone(counts), &room)).collect(), id))
    }
}

impl Active {
    fn status_now(&self) -> CaptureStatus {
        let sum = |count: fn(&Counts) -> &AtomicU64| {
            self.counts.iter().map(|lane| count(lane).load(Ordering::Relaxed)).sum()
        };
        // What was taken for a file that is not written any more is lost; else it is on its way.
        let failed = self.counts.iter().filter(|lane| lane.error.get().is_some());
        let stuck = failed.map(|lane| {
            lane.taken.load(Ordering::Relaxed).saturating_sub(lane.written.load(Ordering::Relaxed))
        });
        CaptureStatus {
            packets: sum(|counts| &counts.written),
            lost: sum(|counts| &counts.lost) + stuck.sum::<u64>(),
            error: self.error(),
            ..self.status.clone()
        }
    }
}

impl Active {
    /// Why one of its files is not written any more.
    fn error(&self) -> Option<String> {
        let paths = [&self.status.incoming, &self.status.outgoing];
        let mut of = self.counts.iter().zip(paths);
        of.find_map(|(lane, path)| Some(format!("{}: {}", path.display(), lane.error.get()?)))
    }
}

/// A name is one part of a path, and not hidden.
fn check_name(name: &str) -> Result<(), CaptureError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let is_fine =
        (1..=MAX_CAPTURE_NAME).contains(&name.len()) && name.bytes().all(is_plain) && !name.starts_with('.');
    if is_fine { Ok(()) } else { Err(CaptureError::Name(name.chars().take(MAX_CAPTURE_NAME).collect())) }
}

/// An empty file, in the place of one that may be there; not through a link, which could lead anywhere. What is no file, as
/// a pipe that nobody reads, is neither waited for nor written to.
fn create(path: &Path) -> Result<File, CaptureError> {
    let failed = |error| CaptureError::File(path.to_owned(), error);
    let mut options = OpenOptions::new();
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    // Emptied only when it is known to be a file.
    options.write(true).create(true).truncate(false).custom_flags(flags);
    let no_file = || io::Error::new(io::ErrorKind::InvalidInput, "it is there, and no regular file");
    let file = options.open(path).map_err(|error| match error.raw_os_error() {
        Some(libc::ENXIO) => failed(no_file()),
        _ => failed(error),
    })?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(failed(no_file()));
    }
    file.set_len(0).map_err(failed)?;
    Ok(file)
}

#[cfg(test)]
mod tests;
