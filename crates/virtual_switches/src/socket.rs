//! The socket of `millrace ctl`: a thread for each connection, few of them.
//!
//! Who may connect is for the permissions of its file to say. Whoever connects without a token is the operator, unless the file lets
//! everybody connect: then only the user of the device and root are.

use crate::clients::Client;
use crate::conversation::{Conversation, HELLO_TIME, refusal};
use crate::device::Device;
use crate::failure::Failure;
use crate::places::{Place, Places};
use millrace_access::{Refusal, Resource, Right, Token};
use millrace_ctl_api::{Hello, MAX_ANSWER, RefusalKind, write_line};
use nix::unistd::Group;
use rustix::fs::{Gid, Mode, chmod, chown};
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use std::io::{self, ErrorKind};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tracing::{info, warn};

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
    places: Arc<Places>,
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
            places: Arc::default(),
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
        let place = match shared.places.take() {
            Ok(place) => place,
            Err(message) => {
                let _ = stream.set_write_timeout(Some(HELLO_TIME));
                let _ = write_line(&mut &stream, &refusal(RefusalKind::Limit, message), MAX_ANSWER);
                continue;
            }
        };
        let serving = Arc::clone(shared);
        let serve = move || {
            if let Ok(copy) = stream.try_clone() {
                serving.streams().push((number, copy));
                serve(&stream, place, &serving);
                serving.streams().retain(|(known, _)| *known != number);
            }
        };
        // Without a thread the connection is closed, and its place is free.
        let _ = std::thread::Builder::new().name("ctl client".into()).spawn(serve);
    }
}

impl Shared {
    fn streams(&self) -> std::sync::MutexGuard<'_, Vec<(usize, UnixStream)>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn serve(stream: &UnixStream, mut place: Place, shared: &Shared) {
    let mut conversation = Conversation::new(stream, stream, &shared.device.room);
    let Some(hello) = conversation.greeting() else { return };
    match client(stream, hello, shared) {
        Ok(client) => {
            if let Err(message) = place.give_to(shared.device.clients.tenant(&client)) {
                return conversation.refuse(RefusalKind::Limit, message);
            }
            let device = Arc::downgrade(&shared.device);
            let is_ending = || shared.is_ending.load(Ordering::Acquire);
            conversation.go_on(&device, &client, is_ending);
        }
        Err(message) => conversation.refuse(RefusalKind::Unknown, message),
    }
}

/// Who the client is; or what it is told before its connection ends.
fn client(stream: &UnixStream, hello: Hello, shared: &Shared) -> Result<Client, String> {
    let uid = socket_peercred(stream).map(|peer| peer.uid).ok();
    let client = match (hello.token, uid) {
        (Some(token), _) => Client::WithToken(Token::presented(token.as_bytes())),
        (None, Some(uid)) if !shared.is_open || uid.is_root() || uid == geteuid() => {
            Client::Operator { uid: uid.as_raw() }
        }
        (None, _) => return Err("a token is needed here (--token-file)".into()),
    };
    // Nobody who is not known gets as far as a long line.
    match shared.device.clients.may(&client, Right::Read, Resource::NoDevice) {
        Err(refused @ Refusal::Unknown) => {
            warn!(?uid, "an unknown token at the socket");
            Err(refused.to_string())
        }
        _ => {
            info!(?uid, "ctl");
            Ok(client)
        }
    }
}
