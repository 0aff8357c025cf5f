//! Captures of what comes in and goes out by ports, switched on and off while a switch runs.
//!
//! A port that may be captured is [`Captures::watch`]ed. While its capture is off that costs one relaxed load a burst.
//! While it is on the worker copies frames into two rings of a fixed size, one for each direction, which a thread writes
//! to files: `NAME_in.pcap` and `NAME_out.pcap`, with times in nanoseconds. The worker never waits for the disk; frames
//! that find no room are left out, and counted. (With a port that replays a capture time stands still, so there it does
//! wait, and the files are whole.)

mod tap;
mod writer;

use crate::port::Port;
use crate::spec::{Driver, InterfaceSpec};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tap::{Lane, Tap, WatchedPort};
use writer::{Writer, WriterEnded};

/// Bytes that wait for the disk, of each direction of a port.
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
    ports: Mutex<BTreeMap<u32, Watched>>,
    writer: Writer,
}

#[derive(Debug)]
struct Watched {
    name: String,
    tap: Tap,
    /// While its capture is on.
    active: Option<Active>,
}

#[derive(Debug)]
struct Active {
    status: CaptureStatus,
    counts: [Arc<Counts>; 2],
    files: [u64; 2],
}

/// What a lane counts.
#[derive(Debug, Default)]
struct Counts {
    packets: AtomicU64,
    lost: AtomicU64,
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
    /// Frames captured, in both directions.
    pub packets: u64,
    /// Frames left out, because the disk was too slow or a file has its largest size.
    pub lost: u64,
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
        if max_file > MAX_CAPTURE_FILE {
            return Err(CaptureError::MaxFile(max_file));
        }
        if let Some(folder) = folder {
            std::fs::create_dir_all(folder).map_err(|error| CaptureError::File(folder.into(), error))?;
        }
        let writer = Writer::start().map_err(CaptureError::Writer)?;
        Ok(Captures { folder: folder.map(Path::to_owned), max_file, ports: Mutex::default(), writer })
    }

    /// Makes a port one that can be captured. Its files are named after its interface where it is one, as in bmv2, else
    /// `portN`.
    pub fn watch(&self, number: u32, interface: &InterfaceSpec, port: Box<dyn Port>) -> Box<dyn Port> {
        let name = match interface.driver {
            Driver::Packet | Driver::Tap => interface.args.clone(),
            Driver::Null | Driver::Pcap => String::new(),
        };
        let mut ports = self.lock();
        let is_free = |name: &str| !ports.values().any(|other| other.name == name);
        let name = match check_name(&name).is_ok() && is_free(&name) {
            true => name,
            false => format!("port{number}"),
        };
        let (port, tap) = WatchedPort::new(port);
        ports.insert(number, Watched { name, tap, active: None });
        Box::new(port)
    }

    /// A port is not there any more. Its capture ends, if it is on; how, is given then.
    ///
    /// # Errors
    /// [`CaptureError`]: its files could not be written to the end.
    pub fn forget(&self, number: u32) -> Result<Option<CaptureStatus>, CaptureError> {
        // Until the files are whole nobody else may start to write them.
        let mut ports = self.lock();
        let active = ports.remove(&number).and_then(|watched| watched.active);
        active.map(|active| self.end(active)).transpose()
    }

    /// The ports that can be captured.
    pub fn ports(&self) -> Vec<u32> {
        self.lock().keys().copied().collect()
    }

    /// Switches the capture of a port on; files that exist are replaced. `name` is that of its files, without `_in.pcap`
    /// and `_out.pcap`.
    ///
    /// # Errors
    /// [`CaptureError`]; the capture stays off, or on as it was.
    pub fn start(&self, number: u32, name: Option<&str>) -> Result<CaptureStatus, CaptureError> {
        let folder = self.folder.as_ref().ok_or(CaptureError::NoFolder)?;
        let mut ports = self.lock();
        let watched = ports.get(&number).ok_or(CaptureError::NoPort(number))?;
        let name = name.unwrap_or(&watched.name);
        check_name(name)?;
        let [incoming, outgoing] = ["in", "out"].map(|way| folder.join(format!("{name}_{way}.pcap")));
        if watched.active.is_some() {
            return Err(CaptureError::On(number));
        }
        let mut active = ports.values().filter_map(|watched| watched.active.as_ref());
        if active.any(|other| other.status.incoming == incoming) {
            return Err(CaptureError::Taken(name.to_owned()));
        }
        let files = [create(&incoming)?, create(&outgoing)?];
        let counts: [Arc<Counts>; 2] = Default::default();
        let [file_in, file_out] = files;
        let (in_lane, in_id) = self.lane(file_in, &counts[0])?;
        let (out_lane, out_id) = self.lane(file_out, &counts[1])?;
        let status = CaptureStatus { port: number, incoming, outgoing, packets: 0, lost: 0 };
        if let Some(watched) = ports.get_mut(&number) {
            watched.tap.set(Some([in_lane, out_lane]));
            watched.active = Some(Active { status: status.clone(), counts, files: [in_id, out_id] });
        }
        Ok(status)
    }

    /// Switches the capture of a port off. What was captured is in its files then.
    ///
    /// # Errors
    /// [`CaptureError`]: the capture is off, or its files could not be written to the end; it is off all the same.
    pub fn stop(&self, number: u32) -> Result<CaptureStatus, CaptureError> {
        // As above.
        let mut ports = self.lock();
        let watched = ports.get_mut(&number).ok_or(CaptureError::NoPort(number))?;
        let active = watched.active.take().ok_or(CaptureError::Off(number))?;
        watched.tap.set(None);
        self.end(active)
    }

    /// The captures that are on.
    pub fn status(&self) -> Vec<CaptureStatus> {
        self.lock().values().filter_map(|watched| Some(watched.active.as_ref()?.status_now())).collect()
    }

    /// Brings what was captured to its files.
    fn end(&self, active: Active) -> Result<CaptureStatus, CaptureError> {
        let ended = active.files.map(|file| self.writer.finish(file));
        let paths = [&active.status.incoming, &active.status.outgoing];
        for (ended, path) in ended.into_iter().zip(paths) {
            ended?.map_err(|error| CaptureError::File(path.clone(), error))?;
        }
        Ok(active.status_now())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, Watched>> {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lane(&self, file: File, counts: &Arc<Counts>) -> Result<(Lane, u64), CaptureError> {
        let (bytes, written) = rtrb::RingBuffer::new(CAPTURE_RING);
        let id = self.writer.add(file, written)?;
        Ok((Lane::new(bytes, Arc::clone(counts), self.max_file), id))
    }
}

impl Active {
    fn status_now(&self) -> CaptureStatus {
        let sum = |count: fn(&Counts) -> &AtomicU64| {
            self.counts.iter().map(|lane| count(lane).load(Ordering::Relaxed)).sum()
        };
        CaptureStatus {
            packets: sum(|counts| &counts.packets),
            lost: sum(|counts| &counts.lost),
            ..self.status.clone()
        }
    }
}

/// A name is one part of a path, and not hidden.
fn check_name(name: &str) -> Result<(), CaptureError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let is_fine =
        (1..=MAX_CAPTURE_NAME).contains(&name.len()) && name.bytes().all(is_plain) && !name.starts_with('.');
    if is_fine { Ok(()) } else { Err(CaptureError::Name(name.chars().take(MAX_CAPTURE_NAME).collect())) }
}

/// An empty file, in the place of one that may be there; not through a link, which could lead anywhere.
fn create(path: &Path) -> Result<File, CaptureError> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).custom_flags(libc::O_NOFOLLOW);
    options.open(path).map_err(|error| CaptureError::File(path.to_owned(), error))
}

#[cfg(test)]
mod tests;
