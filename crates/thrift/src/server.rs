//! The server: where it listens, and a thread for each connection.

use crate::call::refuse;
use crate::device::{Device, DeviceConfig};
use crate::interface::{millrace, pre, simple_switch, standard};
use crate::limits::{self, MAX_CONNECTIONS, MESSAGE_TIME, Metered};
use millrace_switch::PortId;
use std::collections::HashMap;
use std::io::{self, BufReader, BufWriter};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use thrift::protocol::{
    TBinaryInputProtocol, TBinaryOutputProtocol, TInputProtocol, TMessageIdentifier, TMessageType,
    TOutputProtocol, TType,
};
use thrift::{ApplicationError, ApplicationErrorKind};

/// A running server. It ends when this is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    device: Device,
    connections: Mutex<Connections>,
    stop: AtomicBool,
}

/// The connections that are open.
#[derive(Debug, Default)]
struct Connections {
    next: u64,
    open: HashMap<u64, TcpStream>,
}

/// Serves a device to the clients that connect to a listener, each on a thread of its own.
///
/// # Errors
/// The operating system refuses a thread.
pub fn serve(listener: TcpListener, device: DeviceConfig) -> io::Result<Server> {
    let address = listener.local_addr()?;
    let shared = Arc::new(Shared {
        device: Device::new(device, address.port()),
        connections: Mutex::default(),
        stop: AtomicBool::new(false),
    });
    let accepting = Arc::clone(&shared);
    let thread =
        std::thread::Builder::new().name("thrift".into()).spawn(move || accept(&listener, &accepting))?;
    Ok(Server { address, shared, thread: Some(thread) })
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
    /// A port is down for good.
    pub fn port_failed(&self, port: PortId) {
        self.0.device.ports.failed(port);
    }

    /// The link of a port came up or went down.
    pub fn link(&self, port: PortId, is_up: bool) {
        self.0.device.ports.link(port, is_up);
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
        for stream in self.shared.connections().open.values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
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
            // A connection too many is closed; its client hears of it at once.
            Ok((stream, _)) => drop(open(shared, stream)),
            // None of file descriptors, or a client that has gone already.
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

fn open(shared: &Arc<Shared>, stream: TcpStream) -> io::Result<()> {
    let id = {
        let mut connections = shared.connections();
        if connections.open.len() >= MAX_CONNECTIONS || shared.stop.load(Ordering::Acquire) {
            return Ok(());
        }
        let kept = stream.try_clone()?;
        connections.next += 1;
        let id = connections.next;
        connections.open.insert(id, kept);
        id
    };
    let place = Place { shared: Arc::clone(shared), id };
    std::thread::Builder::new().name("thrift client".into()).spawn(move || {
        let place = place;
        // The client has gone, or said something that cannot be understood: there is nothing to go on with.
        let _ = talk(&place.shared.device, stream);
    })?;
    Ok(())
}

/// The place of a connection among those that are open, given back when it ends.
struct Place {
    shared: Arc<Shared>,
    id: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(stream) = self.shared.connections().open.remove(&self.id) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Answers a client until it goes.
fn talk(device: &Device, stream: TcpStream) -> thrift::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(MESSAGE_TIME))?;
    let reader = BufReader::new(Metered::new(stream.try_clone()?));
    let mut from = TBinaryInputProtocol::with_config(reader, false, limits::of_server());
    let mut to = TBinaryOutputProtocol::with_config(BufWriter::new(stream), true, limits::of_client());
    loop {
        from.transport.get_mut().next_message();
        answer(device, &mut from, &mut to)?;
    }
}

/// Answers one call.
fn answer(
    device: &Device,
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
    let known = match service {
        standard::NAME => standard::answer(device, method, &call, from, to)?,
        pre::NAME | pre::SIMPLE_NAME => pre::answer(device, method, &call, from, to)?,
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
