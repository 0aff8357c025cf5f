//! The server: where it listens, and a thread for each connection.

use crate::answer::refuse;
use crate::caller;
use crate::device::{Device, DeviceConfig};
use crate::limits::{self, Budget, Charge, FIRST_CALL_TIME, IDLE_TIME, MESSAGE_TIME, Timed};
use crate::message;
use crate::notify::Ageing;
use crate::places::{Activity, Connections, Phase};
use crate::services::{millrace, simple_pre_lag, simple_switch, standard};
use millrace_chassis::Listener;
use millrace_dataplane::{DigestMessage, PortId};
use millrace_pipeline::Program;
use millrace_state::headroom;
use millrace_thrift_api::limits::{of_answers, of_calls};
use std::io::{self, BufRead, BufReader, BufWriter};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use thrift::protocol::{
    TBinaryInputProtocol, TBinaryOutputProtocol, TInputProtocol, TMessageIdentifier, TMessageType,
    TOutputProtocol, TType,
};
use thrift::{ApplicationError, ApplicationErrorKind};

/// Between two connections when there are too many: so long at least a client has for its call.
const CROWDED: Duration = Duration::from_millis(2);
/// Memory that is there before a call is answered, in bytes, and what a byte of its message may need.
const HEADROOM: usize = 16 << 20;
const HEADROOM_OF_BYTE: usize = 64;
/// Bytes of an answer that are written at a time.
const WRITTEN: usize = 32 << 10;

/// The name that clients of bmv2 without link aggregation groups use for `simple_pre_lag`.
const SIMPLE_PRE: &str = "simple_pre";

/// A running server. It ends when this is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// Looks for idle entries.
    _ageing: Option<Ageing>,
}

#[derive(Debug)]
struct Shared {
    device: Device,
    connections: Mutex<Connections>,
    budget: Arc<Budget>,
    stop: AtomicBool,
}

/// Serves a device to the clients that connect to a listener, each on a thread of its own.
///
/// # Errors
/// The operating system refuses a thread.
pub fn serve(listener: TcpListener, device: DeviceConfig) -> io::Result<Server> {
    let address = listener.local_addr()?;
    let shared = Arc::new(Shared {
        device: Device::new(device, address.port())?,
        connections: Mutex::default(),
        budget: Arc::default(),
        stop: AtomicBool::new(false),
    });
    let watched = Arc::downgrade(&shared);
    let idle = move || watched.upgrade()?.device.idle_entries();
    let ageing = shared.device.notices.as_ref().map(|notices| notices.watch_entries(idle)).transpose()?;
    let accepting = Arc::clone(&shared);
    let thread =
        std::thread::Builder::new().name("thrift".into()).spawn(move || accept(&listener, &accepting))?;
    Ok(Server { address, shared, thread: Some(thread), _ageing: ageing })
}

impl Server {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What tells it of the switch.
    pub fn feed(&self) -> Feed {
        Feed(Arc::clone(&self.shared))
    }
}

/// Tells the server of the switch.
#[derive(Clone, Debug)]
pub struct Feed(Arc<Shared>);

impl Feed {
    /// A port is to be shown under that name, as one that a peer of nanomsg uses.
    pub fn show_port(&self, port: PortId, interface: &str) {
        self.0.device.ports.show(port, interface);
    }

    /// A port is not to be shown any more.
    pub fn hide_port(&self, port: PortId) {
        self.0.device.ports.hide(port);
    }

    /// The link of a shown port is up or down; subscribers do not hear of it.
    pub fn show_link(&self, port: PortId, is_up: bool) {
        self.0.device.ports.link(port, is_up);
    }

    /// Whether it wants to hear of digests.
    pub fn wants_digests(&self) -> bool {
        self.0.device.notices.is_some()
    }
}

impl Listener for Feed {
    fn digest(&self, program: &Arc<Program>, message: &DigestMessage) {
        self.0.device.notices.iter().for_each(|notices| notices.digest(program, message));
    }

    fn port_failed(&self, port: PortId, _error: &str) {
        self.0.device.ports.failed(port);
        self.0.device.notices.iter().for_each(|notices| notices.link(port, false));
    }

    fn link(&self, port: PortId, is_up: bool) {
        self.0.device.ports.link(port, is_up);
        self.0.device.notices.iter().for_each(|notices| notices.link(port, is_up));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        // One more connection wakes the thread that accepts them.
        let ip = match self.address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        let woken = TcpStream::connect_timeout(&(ip, self.address.port()).into(), Duration::from_secs(1));
        if let Some(thread) = self.thread.take().filter(|_| woken.is_ok()) {
            let _ = thread.join();
        }
        self.shared.connections().close_all();
    }
}

impl Shared {
    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    while !shared.stop.load(Ordering::Acquire) {
        match listener.accept() {
            // A connection for which there is no place is closed; its client hears of it at once.
            Ok((stream, from)) => {
                if !open(shared, stream, from.ip().to_canonical()).unwrap_or(false) {
                    std::thread::sleep(CROWDED);
                }
            }
            // None of file descriptors, or a client that has gone already.
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

/// Says whether there was a place without another one giving way.
fn open(shared: &Arc<Shared>, stream: TcpStream, from: IpAddr) -> io::Result<bool> {
    if shared.stop.load(Ordering::Acquire) {
        return Ok(true);
    }
    let kept = stream.try_clone()?;
    let Some((id, activity, gave_way)) = shared.connections().admit(kept, from) else { return Ok(false) };
    let place = Permit { shared: Arc::clone(shared), id };
    std::thread::Builder::new().name("thrift client".into()).spawn(move || {
        let place = place;
        // The client has gone, or said something that cannot be understood: there is nothing to go on with.
        let _ = talk(&place.shared, stream, &activity);
    })?;
    Ok(!gave_way)
}

/// The place of a connection among those that are open, given back when its thread ends.
struct Permit {
    shared: Arc<Shared>,
    id: u64,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.shared.connections().leave(self.id);
    }
}

/// Answers a client until it goes.
fn talk(shared: &Shared, stream: TcpStream, activity: &Activity) -> thrift::Result<()> {
    stream.set_nodelay(true)?;
    caller::serve(stream.try_clone()?);
    let mut charge = Charge::new(&shared.budget);
    let mut reader = BufReader::new(Timed::new(stream.try_clone()?));
    let writer = BufWriter::with_capacity(WRITTEN, Timed::new(stream));
    let mut to = TBinaryOutputProtocol::with_config(writer, true, of_answers());
    let mut within = FIRST_CALL_TIME;
    loop {
        reader.get_mut().next_message(within);
        // Some of it may have come with the message before.
        if reader.fill_buf()?.is_empty() {
            return Ok(());
        }
        activity.set(Phase::Reading);
        reader.get_mut().begin();
        let message = message::read(&mut reader, &mut charge)?;
        activity.set(Phase::Working);
        to.transport.get_mut().next_message(MESSAGE_TIME);
        let mut from = TBinaryInputProtocol::with_config(&message[..], false, of_calls());
        limits::answering(&mut charge, || answer(&shared.device, message.len(), &mut from, &mut to))?;
        charge.give_back();
        activity.set(Phase::Idle);
        within = IDLE_TIME;
    }
}

/// Answers one call, whose message has so many bytes.
fn answer(
    device: &Device,
    bytes: usize,
    from: &mut dyn TInputProtocol,
    to: &mut dyn TOutputProtocol,
) -> thrift::Result<()> {
    let message = from.read_message_begin()?;
    if message.message_type != TMessageType::Call {
        return Err(thrift::new_application_error(ApplicationErrorKind::InvalidMessageType, "no call"));
    }
    // Clients that know one service only do without its name.
    let (service, method) = message.name.split_once(':').unwrap_or((standard::NAME, &message.name));
    let call = TMessageIdentifier::new(method, TMessageType::Reply, message.sequence_number);
    if let Err(error) = headroom(HEADROOM + HEADROOM_OF_BYTE * bytes) {
        let error = ApplicationError::new(ApplicationErrorKind::InternalError, error.to_string());
        return refuse(to, &call, &error);
    }
    if let Err(reason) = device.enter(method) {
        from.skip(TType::Struct)?;
        from.read_message_end()?;
        return refuse(to, &call, &ApplicationError::new(ApplicationErrorKind::InternalError, reason));
    }
    let known = match service {
        standard::NAME => standard::answer(device, method, &call, from, to)?,
        simple_pre_lag::NAME | SIMPLE_PRE => simple_pre_lag::answer(device, method, &call, from, to)?,
        simple_switch::NAME => simple_switch::answer(device, method, &call, from, to)?,
        millrace::NAME => millrace::answer(device, method, &call, from, to)?,
        _ => false,
    };
    if known {
        return Ok(());
    }
    from.skip(TType::Struct)?;
    from.read_message_end()?;
    let error = ApplicationError::new(
        ApplicationErrorKind::UnknownMethod,
        format!("there is no call `{}`", message.name.chars().take(100).collect::<String>()),
    );
    refuse(to, &call, &error)
}
