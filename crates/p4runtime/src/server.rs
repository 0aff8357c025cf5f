//! The server: where it listens, with or without TLS, and its thread.

use crate::budget::{Budget, Counted, MAX_MESSAGE};
use crate::connections;
use crate::cpu_port::CpuLink;
use crate::device::{Device, Event, PortState};
use crate::forwarding::{Forwarding, Loaded};
use crate::interfaces::Interfaces;
use crate::routes::Listed;
use crate::service::{Service, take_orders};
use crate::shadow::Shadow;
use crate::tasks;
use crate::write::Ports;
use millrace_chassis::{Listener, Making, Orders, Pipeline, Programs};
use millrace_dataplane::{Control, DigestMessage, PortId};
use millrace_drivers::Links;
use millrace_listen::{Admission, ListenError, P4RUNTIME};
use millrace_p4runtime_api::v1::p4_runtime_server::P4RuntimeServer;
use millrace_pipeline::Program;
use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tonic::transport::{Certificate, Identity, Server as Transport, ServerTlsConfig};
use tracing::error;

/// Most calls and streams of one connection at a time.
pub const MAX_CALLS: u32 = 128;
/// Most calls of one connection that are worked on at a time: that many messages it may have in memory. Others wait.
const MAX_BUSY: usize = 8;
/// How much nicer the server is than the worker.
const NICE: i32 = 5;
/// Most digests and other news that wait for the server.
const MAX_EVENTS: usize = 4096;
/// A client that has not answered for so long is gone.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// How to listen.
#[derive(Clone, Debug)]
pub struct Listen {
    /// Where; port 0 takes a free one.
    pub address: SocketAddr,
    /// With TLS; else the connection is plain.
    pub tls: Option<Tls>,
    /// Whether a plain connection may come from another machine.
    pub allow_plaintext: bool,
}

impl Listen {
    /// Who is let in.
    pub fn admission(&self) -> Admission {
        match &self.tls {
            None => Admission::Anybody,
            Some(Tls { client_authority: None, .. }) => Admission::AnybodyEncrypted,
            Some(Tls { client_authority: Some(_), .. }) => Admission::Certified,
        }
    }
}

/// TLS, all in PEM.
#[derive(Clone)]
pub struct Tls {
    /// The server's certificate, with those that lead to its authority.
    pub certificate: Vec<u8>,
    /// Its private key.
    pub key: Vec<u8>,
    /// The authority that must have signed the clients' certificates (mutual TLS); without it any client may come.
    pub client_authority: Option<Vec<u8>>,
}

impl fmt::Debug for Tls {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("mutual", &self.client_authority.is_some()).finish_non_exhaustive()
    }
}

/// The device that a server shows.
#[derive(Debug)]
pub struct DeviceConfig {
    /// Its id.
    pub device_id: u64,
    /// How the programs are made that controllers bring.
    pub making: Making,
    /// The ports of the switch.
    pub ports: BTreeSet<PortId>,
    /// What is behind the ports, for gNMI.
    pub links: Links,
    /// The port of the controller.
    pub cpu_port: Option<(PortId, CpuLink)>,
    /// The program that runs; none while a controller has not brought one.
    pub pipeline: Option<Pipeline>,
}

/// Why a server cannot start.
#[derive(Debug)]
pub enum StartError {
    /// The address cannot be had, or anyone on the network could write.
    Listen(ListenError),
    /// Certificate, key and authority do not fit.
    Tls(String),
    /// The program cannot be described to controllers.
    Pipeline(String),
    /// The operating system refused a thread or what it needs.
    System(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Listen(error) => error.fmt(f),
            StartError::Tls(reason) => write!(f, "TLS: {reason}"),
            StartError::Pipeline(reason) => f.write_str(reason),
            StartError::System(error) => write!(f, "cannot start the P4Runtime server: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

/// A running server. It ends when this is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    feed: Feed,
    programs: Programs,
}

/// Brings the server what the switch tells.
#[derive(Clone)]
pub struct Feed {
    events: mpsc::Sender<Event>,
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Feed")
    }
}

impl Feed {
    /// The switch has a port more. Not to be called where tokio runs.
    pub fn port_added(&self, port: PortId) {
        self.port(port, PortState::Added);
    }

    /// The switch does not have a port any more. Not to be called where tokio runs.
    pub fn port_removed(&self, port: PortId) {
        self.port(port, PortState::Removed);
    }

    fn port(&self, port: PortId, state: PortState) {
        // The server has ended, or hears of it.
        let _ = self.events.blocking_send(Event::Port(port, state));
    }
}

impl Listener for Feed {
    /// What a busy server has no room for is lost, as P4Runtime allows.
    fn digest(&self, program: &Arc<Program>, message: &DigestMessage) {
        let _ = self.events.try_send(Event::Digest(Arc::clone(program), message.clone()));
    }

    /// Not to be called where tokio runs.
    fn port_failed(&self, port: PortId, _error: &str) {
        self.port(port, PortState::Failed);
    }

    /// Not to be called where tokio runs.
    fn link(&self, port: PortId, is_up: bool) {
        self.port(port, if is_up { PortState::Up } else { PortState::Down });
    }
}

impl Server {
    /// Starts to serve a device whose worker `control` reaches, on a thread of its own.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start(listen: &Listen, device: DeviceConfig, control: Control) -> Result<Server, StartError> {
        let has_tls = listen.tls.is_some();
        let tls = listen.tls.as_ref().map(tls_config);
        let mut transport = Transport::builder()
            .http2_keepalive_interval(Some(KEEPALIVE))
            .http2_keepalive_timeout(Some(2 * KEEPALIVE))
            .max_concurrent_streams(MAX_CALLS)
            .concurrency_limit_per_connection(MAX_BUSY);
        if let Some(tls) = tls {
            transport = transport.tls_config(tls).map_err(|error| {
                let reason = std::error::Error::source(&error).map(ToString::to_string);
                StartError::Tls(reason.unwrap_or_else(|| error.to_string()))
            })?;
        }
        let listener =
            millrace_listen::bind(&P4RUNTIME, listen.address, listen.admission(), listen.allow_plaintext)
                .map_err(StartError::Listen)?;
        let address = listener.local_addr().map_err(StartError::System)?;
        listener.set_nonblocking(true).map_err(StartError::System)?;

        let opened = Opened::new(device, control)?;
        let feed = opened.feed();
        let interfaces = Arc::clone(&opened.device.interfaces);
        let programs = opened.programs.clone();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(4)
            .build()
            .map_err(StartError::System)?;
        let (stop, stopped) = oneshot::channel::<()>();
        let serve = async move {
            let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
            let incoming = connections::accept(listener, has_tls);
            let service = P4RuntimeServer::new(opened.run()).max_decoding_message_size(MAX_MESSAGE);
            let budget = Arc::<Budget>::default();
            let services = Listed::default().with(Counted::new(service, &budget));
            let services = services.with(Counted::new(millrace_gnmi::server(interfaces), &budget));
            let services = services.described(&budget).await;
            let Ok(services) = services.inspect_err(|reason| error!(reason, "no services")) else { return };
            // Open streams would keep a graceful end waiting for as long as their clients like.
            tokio::select! {
                _ = transport.serve_with_incoming(services, incoming) => {}
                _ = stopped => {}
            }
        };
        let thread = std::thread::Builder::new()
            .name("p4runtime".into())
            .spawn(move || {
                // Packets come first where there are not enough processors. Without it all is as right.
                let _ = rustix::process::nice(NICE);
                runtime.block_on(serve);
            })
            .map_err(StartError::System)?;
        Ok(Server { address, stop: Some(stop), thread: Some(thread), feed, programs })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What brings it what the switch tells.
    pub fn feed(&self) -> Feed {
        self.feed.clone()
    }

    /// Brings the switch programs that do not come from a client.
    pub fn programs(&self) -> Programs {
        self.programs.clone()
    }
}

/// The service without a transport, for one of the caller's. To be called where tokio runs, as its tasks go on there.
///
/// # Errors
/// [`StartError::Pipeline`].
pub fn service(device: DeviceConfig, control: Control) -> Result<(Service, Feed), StartError> {
    let opened = Opened::new(device, control)?;
    let feed = opened.feed();
    Ok((opened.run(), feed))
}

/// A device that nobody is served yet.
struct Opened {
    device: Arc<Device>,
    news: mpsc::Receiver<Event>,
    frames: Option<mpsc::Receiver<Vec<u8>>>,
    programs: Programs,
    orders: Orders,
}

impl Opened {
    fn feed(&self) -> Feed {
        Feed { events: self.device.events.clone() }
    }

    fn new(device: DeviceConfig, control: Control) -> Result<Opened, StartError> {
        let DeviceConfig { device_id, making, ports, links, cpu_port, pipeline } = device;
        let active = pipeline
            .map(|pipeline| Loaded::running(pipeline, control.clone(), Shadow::default()))
            .transpose()
            .map_err(|refusal| StartError::Pipeline(refusal.message))?;
        let (events, news) = mpsc::channel(MAX_EVENTS);
        let cpu = cpu_port.as_ref().map(|(port, _)| *port);
        let interfaces =
            Arc::new(Interfaces::new(device_id, control.clone(), events.clone(), cpu, &ports, links));
        let ports = Ports::new(ports, cpu);
        let (sender, frames) = cpu_port.map(|(_, link)| (link.sender, link.frames)).unzip();
        let forwarding = Forwarding { active, ..Forwarding::default() };
        let (programs, orders) = Programs::of_server(making.clone(), control.clone());
        let making = (making, programs.turns());
        let device = Device::new(device_id, making, ports, interfaces, sender, control, forwarding, events);
        Ok(Opened { device: Arc::new(device), news, frames, programs, orders })
    }

    /// Starts what the device does without being asked.
    fn run(self) -> Service {
        tokio::spawn(tasks::events(Arc::clone(&self.device), self.news));
        tokio::spawn(tasks::idle(Arc::clone(&self.device)));
        tokio::spawn(take_orders(Arc::clone(&self.device), self.orders));
        if let Some(frames) = self.frames {
            tokio::spawn(tasks::packet_ins(Arc::clone(&self.device), frames));
        }
        Service(self.device)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn tls_config(tls: &Tls) -> ServerTlsConfig {
    let config = ServerTlsConfig::new().identity(Identity::from_pem(&tls.certificate, &tls.key));
    match &tls.client_authority {
        Some(authority) => config.client_ca_root(Certificate::from_pem(authority)),
        None => config,
    }
}
