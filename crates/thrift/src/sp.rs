//! What the protocols of nanomsg have in common: listeners over TCP and Unix sockets, the greeting, messages.
//!
//! The wire is short. Both sides begin with eight bytes: `\0SP\0`, the number of the side's protocol in two bytes, two of
//! zero (<https://github.com/nanomsg/nanomsg/tree/master/rfc>, sp-tcp-mapping-01). Then each message has its length in eight
//! bytes before it, big-endian; over a Unix socket a byte 1 before that (sp-ipc-mapping-01).

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a peer may take to say who it is, and for a message from its first byte to its last.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks for new peers.
pub(crate) const PAUSE: Duration = Duration::from_millis(20);
/// How long a read waits before it looks whether the switch has ended.
const GLANCE: Duration = Duration::from_millis(200);

/// What a side begins with.
pub(crate) type Greeting = [u8; 8];
/// A publisher of PUB/SUB.
pub(crate) const PUBLISHER: Greeting = *b"\0SP\0\0\x20\0\0";
/// A subscriber of PUB/SUB.
pub(crate) const SUBSCRIBER: Greeting = *b"\0SP\0\0\x21\0\0";
/// Either side of PAIR.
pub(crate) const PAIR: Greeting = *b"\0SP\0\0\x10\0\0";

/// Where peers of nanomsg connect to. The file of a Unix socket goes with it.
#[derive(Debug)]
pub struct NanomsgListener {
    address: String,
    listener: Listener,
    file: Option<PathBuf>,
}

#[derive(Debug)]
enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// A connection to a peer.
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl NanomsgListener {
    /// Over a listener of TCP.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn over_tcp(listener: TcpListener) -> io::Result<NanomsgListener> {
        listener.set_nonblocking(true)?;
        let address = format!("tcp://{}", listener.local_addr()?);
        Ok(NanomsgListener { address, listener: Listener::Tcp(listener), file: None })
    }

    /// At a Unix socket at a path, where nothing else may be.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn over_file(path: &Path) -> io::Result<NanomsgListener> {
        remove_stale(path);
        let listener = UnixListener::bind(path)?;
        let address = format!("ipc://{}", path.display());
        let made =
            NanomsgListener { address, listener: Listener::Unix(listener), file: Some(path.to_owned()) };
        if let Listener::Unix(listener) = &made.listener {
            listener.set_nonblocking(true)?;
        }
        Ok(made)
    }

    /// Where peers reach it.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The next connection, if one waits.
    pub(crate) fn accept(&self) -> io::Result<Stream> {
        let stream = match &self.listener {
            Listener::Tcp(listener) => Stream::Tcp(listener.accept()?.0),
            Listener::Unix(listener) => Stream::Unix(listener.accept()?.0),
        };
        stream.set_nonblocking(false)?;
        Ok(stream)
    }
}

impl Drop for NanomsgListener {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            let _ = fs::remove_file(file);
        }
    }
}

/// Removes the file of a socket that nobody listens at any more.
fn remove_stale(path: &Path) {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    if is_socket && UnixStream::connect(path).is_err() {
        let _ = fs::remove_file(path);
    }
}

impl Stream {
    /// Says who this side is, and hears whether the other one is whom it expects.
    pub(crate) fn greet(&mut self, own: Greeting, other: Greeting) -> io::Result<()> {
        if let Stream::Tcp(stream) = self {
            stream.set_nodelay(true)?;
        }
        self.set_timeouts(GLANCE, PATIENCE)?;
        self.write_all(&own)?;
        let mut greeting = [0; 8];
        let end = Instant::now() + PATIENCE;
        self.fill(&mut greeting, &|| Instant::now() < end)?;
        if greeting == other { Ok(()) } else { Err(ErrorKind::InvalidData.into()) }
    }

    /// Reads a message of at most so many bytes, however long it takes to begin; `false`: the switch has ended.
    pub(crate) fn read_message(
        &mut self,
        message: &mut Vec<u8>,
        most: usize,
        goes_on: &dyn Fn() -> bool,
    ) -> io::Result<bool> {
        let mut first = [0];
        loop {
            match self.read(&mut first) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(_) => break,
                Err(error) if is_early(&error) && goes_on() => {}
                Err(error) if is_early(&error) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        let end = Instant::now() + PATIENCE;
        let in_time = || goes_on() && Instant::now() < end;
        let mut length = [0; 8];
        match self {
            Stream::Unix(_) if first != [1] => return Err(ErrorKind::InvalidData.into()),
            Stream::Unix(_) => self.fill(&mut length, &in_time)?,
            Stream::Tcp(_) => {
                length[0] = first[0];
                self.fill(&mut length[1..], &in_time)?;
            }
        }
        let length = usize::try_from(u64::from_be_bytes(length)).ok().filter(|length| *length <= most);
        let length = length.ok_or(ErrorKind::InvalidData)?;
        message.clear();
        message.resize(length, 0);
        self.fill(message, &in_time)?;
        Ok(true)
    }

    /// Writes a message.
    pub(crate) fn write_message(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let mut bytes = Vec::with_capacity(length + 9);
        if matches!(self, Stream::Unix(_)) {
            bytes.push(1);
        }
        bytes.extend_from_slice(&(length as u64).to_be_bytes());
        parts.iter().for_each(|part| bytes.extend_from_slice(part));
        self.write_all(&bytes)
    }

    /// Whether the other side has closed. What it sends is thrown away.
    pub(crate) fn has_gone(&mut self) -> io::Result<bool> {
        self.set_nonblocking(true)?;
        let read = self.read(&mut [0; 256]);
        self.set_nonblocking(false)?;
        match read {
            Ok(read) => Ok(read == 0),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The same connection, for another thread.
    pub(crate) fn another(&self) -> io::Result<Stream> {
        Ok(match self {
            Stream::Tcp(stream) => Stream::Tcp(stream.try_clone()?),
            Stream::Unix(stream) => Stream::Unix(stream.try_clone()?),
        })
    }

    /// Ends it for all threads that have it.
    pub(crate) fn close(&self) {
        let _ = match self {
            Stream::Tcp(stream) => stream.shutdown(std::net::Shutdown::Both),
            Stream::Unix(stream) => stream.shutdown(std::net::Shutdown::Both),
        };
    }

    /// Reads all of these bytes as long as it may go on.
    fn fill(&mut self, mut bytes: &mut [u8], goes_on: &dyn Fn() -> bool) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.read(bytes) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(read) => bytes = &mut bytes[read..],
                Err(error) if is_early(&error) => {}
                Err(error) => return Err(error),
            }
            if !goes_on() {
                return Err(ErrorKind::TimedOut.into());
            }
        }
        Ok(())
    }

    fn set_timeouts(&self, read: Duration, write: Duration) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => {
                stream.set_read_timeout(Some(read))?;
                stream.set_write_timeout(Some(write))
            }
            Stream::Unix(stream) => {
                stream.set_read_timeout(Some(read))?;
                stream.set_write_timeout(Some(write))
            }
        }
    }

    fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.set_nonblocking(on),
            Stream::Unix(stream) => stream.set_nonblocking(on),
        }
    }
}

/// Nothing came yet.
fn is_early(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(buffer),
            Stream::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
