//! The socket of `millrace ctl`: a thread for each connection, few of them.
//!
//! Who may connect is for the permissions of its file to say. Whoever connects without a token is the operator, unless the file lets
//! everybody connect: then only the user of the device and root are.

use crate::clients::Client;
use crate::device::Device;
use crate::failure::Failure;
use millrace_access::{Resource, Right, Token};
use millrace_ctl_api::{
    Answer, Hello, LineError, MAX_ANSWER, MAX_HELLO, MAX_REQUEST, RefusalKind, Refused, Request, VERSION,
    read_line, write_line,
};
use nix::unistd::Group;
use rustix::fs::{Gid, Mode, chmod, chown};
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use std::collections::BTreeMap;
use std::io::{self, BufReader, BufWriter, ErrorKind};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tracing::{info, warn};

/// Most connections at a time; one more is told so and closed.
pub const MAX_CONNECTIONS: usize = 16;
/// Most of them with one token: the operator is not kept out by a tenant.
pub const MAX_CONNECTIONS_OF_TENANT: usize = 4;
/// How long a client may take for its first line, and for the rest of a line that it has begun.
const HELLO_TIME: Duration = Duration::from_secs(5);
/// How long a client may be silent between two requests.
const IDLE_TIME: Duration = Duration::from_secs(600);
/// The permissions that let everybody connect.
const EVERYBODY: u32 = 0o002;

/// The socket, served until this is dropped.
pub struct ControlSocket {
    path: PathBuf,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    device: Arc<Device>,
    /// Whether everybody may connect.
    is_open: bool,
    connections: AtomicUsize,
    /// How many each tenant has, by its name on the access list.
    of_tenants: Mutex<BTreeMap<String, usize>>,
    /// Those that are open, to be closed at the end.
    streams: Mutex<Vec<(usize, UnixStream)>>,
    is_ending: AtomicBool,
}

impl ControlSocket {
    /// Serves a device where its file says.
    ///
    /// # Errors
    /// There can be no such socket; another device serves it.
    pub fn serve(device: &Arc<Device>) -> Result<ControlSocket, Failure> {
        let file = device.file().device;
        let path = PathBuf::from(&file.socket);
        let failed =
            |error: &dyn std::fmt::Display| Failure::failed(format_args!("{}: {error}", path.display()));
        let mode = u32::from(file.socket_mode);
        let listener = bind(&path).map_err(|error| failed(&error))?;
        chmod(&path, Mode::from_raw_mode(mode)).map_err(|error| failed(&error))?;
        if let Some(group) = &file.socket_group {
            chown(&path, None, Some(gid(group).map_err(|error| failed(&error))?))
                .map_err(|error| failed(&error))?;
        }
        let shared = Arc::new(Shared {
            device: Arc::clone(device),
            is_open: mode & EVERYBODY != 0,
            connections: AtomicUsize::new(0),
            of_tenants: Mutex::default(),
            streams: Mutex::default(),
            is_ending: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("ctl".into());
        let thread = thread.spawn(move || accept(&listener, &accepting)).map_err(|error| failed(&error))?;
        Ok(ControlSocket { path, shared, thread: Some(thread) })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        self.shared.is_ending.store(true, Ordering::Release);
        // One more connection wakes the thread that accepts them.
        let woken = UnixStream::connect(&self.path);
        if let Some(thread) = self.thread.take().filter(|_| woken.is_ok()) {
            let _ = thread.join();
        }
        let _ = std::fs::remove_file(&self.path);
        let mut streams = self.shared.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.drain(..).for_each(|(_, stream)| _ = stream.shutdown(std::net::Shutdown::Both));
    }
}

/// Binds the socket. A file that is there is a socket that nobody serves any more, or it stays.
fn bind(path: &Path) -> io::Result<UnixListener> {
    if let Some(folder) = path.parent().filter(|folder| !folder.exists()) {
        std::fs::create_dir_all(folder)?;
    }
    // Nobody connects before its permissions are those of the file: until then it is its owner's alone.
    let before = rustix::process::umask(Mode::from_raw_mode(0o177));
    let bound = UnixListener::bind(path).or_else(|error| match error.kind() {
        ErrorKind::AddrInUse if UnixStream::connect(path).is_ok() => {
            Err(io::Error::other("another device serves this socket"))
        }
        ErrorKind::AddrInUse if is_socket(path) => {
            std::fs::remove_file(path)?;
            UnixListener::bind(path)
        }
        _ => Err(error),
    });
    rustix::process::umask(before);
    bound
}

fn is_socket(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    std::fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket())
}

/// The group of a name, or of a number.
fn gid(name: &str) -> io::Result<Gid> {
    if let Ok(number) = name.parse::<u32>() {
        return Ok(Gid::from_raw(number));
    }
    let found = Group::from_name(name)?.map(|group| Gid::from_raw(group.gid.as_raw()));
    found.ok_or_else(|| io::Error::other(format!("this machine has no group `{}`", name.escape_debug())))
}

fn accept(listener: &UnixListener, shared: &Arc<Shared>) {
    for (number, stream) in listener.incoming().enumerate() {
        if shared.is_ending.load(Ordering::Acquire) {
            return;
        }
        let Ok(stream) = stream else {
            // Descriptors may be used up for a while.
            std::thread::sleep(Duration::from_millis(10));
            continue;
        };
        if shared.connections.fetch_add(1, Ordering::AcqRel) >= MAX_CONNECTIONS {
            shared.connections.fetch_sub(1, Ordering::AcqRel);
            let message = format!("{MAX_CONNECTIONS} clients are connected already (MAX_CONNECTIONS)");
            let _ = stream.set_write_timeout(Some(HELLO_TIME));
            let _ = write_line(&mut &stream, &refusal(RefusalKind::Limit, message), MAX_ANSWER);
            continue;
        }
        let serving = Arc::clone(shared);
        let serve = move || {
            if let Ok(copy) = stream.try_clone() {
                serving.streams().push((number, copy));
                serve(&stream, &serving);
                serving.streams().retain(|(known, _)| *known != number);
            }
            serving.connections.fetch_sub(1, Ordering::AcqRel);
        };
        if std::thread::Builder::new().name("ctl client".into()).spawn(serve).is_err() {
            shared.connections.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl Shared {
    fn streams(&self) -> std::sync::MutexGuard<'_, Vec<(usize, UnixStream)>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place among the connections of a tenant, given back when it goes.
struct Place<'s>(&'s Shared, Option<String>);

impl Place<'_> {
    fn take(shared: &Shared, tenant: Option<String>) -> Option<Place<'_>> {
        if let Some(tenant) = &tenant {
            let mut of_tenants = shared.of_tenants.lock().unwrap_or_else(PoisonError::into_inner);
            let count = of_tenants.entry(tenant.clone()).or_default();
            if *count >= MAX_CONNECTIONS_OF_TENANT {
                return None;
            }
            *count += 1;
        }
        Some(Place(shared, tenant))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let Place(shared, Some(tenant)) = self else { return };
        let mut of_tenants = shared.of_tenants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = of_tenants.get_mut(tenant) {
            *count -= 1;
            if *count == 0 {
                of_tenants.remove(tenant);
            }
        }
    }
}

fn serve(stream: &UnixStream, shared: &Shared) {
    let _ = stream.set_read_timeout(Some(HELLO_TIME));
    let _ = stream.set_write_timeout(Some(HELLO_TIME));
    let (mut reader, mut writer) = (BufReader::new(stream), BufWriter::new(stream));
    let mut say = |answer: &Answer| {
        let sent = write_line(&mut writer, answer, MAX_ANSWER);
        if let Err(LineError::TooLong(most)) = sent {
            let message = format!("the answer has more than {most} bytes (MAX_ANSWER)");
            return write_line(&mut writer, &refusal(RefusalKind::Limit, message), MAX_ANSWER).is_ok();
        }
        sent.is_ok()
    };
    let client = match greet(stream, &mut reader, shared) {
        Ok(client) => client,
        Err(None) => return,
        Err(Some(answer)) => {
            say(&answer);
            return;
        }
    };
    let tenant = shared.device.clients.tenant(&client);
    let Some(_place) = Place::take(shared, tenant) else {
        let message = format!(
            "{MAX_CONNECTIONS_OF_TENANT} clients of the tenant are connected already (MAX_CONNECTIONS_OF_TENANT)"
        );
        say(&refusal(RefusalKind::Limit, message));
        return;
    };
    if !say(&Answer::Ready { device: shared.device.name().to_owned() }) {
        return;
    }
    let _ = stream.set_read_timeout(Some(IDLE_TIME));
    loop {
        let line = match read_line(&mut reader, MAX_REQUEST) {
            Ok(Some(line)) => line,
            Ok(None) => return,
            Err(error) => {
                say(&refusal(RefusalKind::Malformed, error.to_string()));
                return;
            }
        };
        let answer = match serde_json::from_slice::<Request>(&line) {
            Ok(request) => shared.device.answer(&client, &request),
            Err(error) => refusal(RefusalKind::Malformed, format!("this is no request: {error}")),
        };
        drop(line);
        if !say(&answer) || shared.is_ending.load(Ordering::Acquire) {
            return;
        }
    }
}

/// Who the client is; or what it is told before its connection ends.
fn greet(
    stream: &UnixStream,
    reader: &mut BufReader<&UnixStream>,
    shared: &Shared,
) -> Result<Client, Option<Answer>> {
    let no = |kind, message: String| Some(refusal(kind, message));
    let line = read_line(reader, MAX_HELLO).map_err(|error| no(RefusalKind::Malformed, error.to_string()))?;
    let hello: Hello = serde_json::from_slice(&line.ok_or(None)?)
        .map_err(|error| no(RefusalKind::Malformed, format!("this is no greeting: {error}")))?;
    if hello.version != VERSION {
        let message = format!("this device speaks version {VERSION}, not {}", hello.version);
        return Err(no(RefusalKind::Malformed, message));
    }
    let uid = socket_peercred(stream).map(|peer| peer.uid).ok();
    let client = match (hello.token, uid) {
        (Some(token), _) => Client::WithToken(Token::presented(token.as_bytes())),
        (None, Some(uid)) if !shared.is_open || uid.is_root() || uid == geteuid() => {
            Client::Operator { uid: uid.as_raw() }
        }
        (None, _) => return Err(no(RefusalKind::Unknown, "a token is needed here (--token-file)".into())),
    };
    // Nobody who is not known gets as far as a long line.
    match shared.device.clients.may(&client, Right::Read, Resource::NoDevice) {
        Err(refused @ millrace_access::Refusal::Unknown) => {
            warn!(?uid, "an unknown token at the socket");
            Err(no(RefusalKind::Unknown, refused.to_string()))
        }
        _ => {
            info!(?uid, "ctl");
            Ok(client)
        }
    }
}

fn refusal(kind: RefusalKind, message: String) -> Answer {
    Answer::Refused(Refused { kind, message, problems: Vec::new() })
}
