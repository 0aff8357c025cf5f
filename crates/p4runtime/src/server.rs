//! The server: where it listens, with or without TLS, and its thread.

use crate::budget::{Budget, Counted, MAX_MESSAGE};
use crate::connections;
use crate::device::Device;
use crate::devices::{AddError, Devices, Policy, SLOW_THREADS, Served, Share};
use crate::opened::{DeviceConfig, Feed};
use crate::routes::{Another, Listed};
use crate::service::Service;
use millrace_access::{Exposed, read_exposed_secret};
use millrace_chassis::Programs;
use millrace_dataplane::Control;
use millrace_listen::{Admission, ListenError, P4RUNTIME};
use millrace_p4runtime_api::v1::p4_runtime_server::P4RuntimeServer;
use millrace_syntax::read_file;
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::oneshot;
use tonic::transport::{Certificate, Identity, Server as Transport, ServerTlsConfig};
use tracing::error;

/// Most bytes of a file with a key or certificates.
pub const MAX_KEY_BYTES: u64 = 1 << 20;
/// Most calls and streams of one connection at a time.
pub const MAX_CALLS: u32 = 128;
/// Most calls of one connection that are worked on at a time: that many messages it may have in memory. Others wait.
const MAX_BUSY: usize = 8;
/// How much nicer the server is than the worker.
const NICE: i32 = 5;
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
            Some(Tls { client_authority: Some(_), .. }) => Admission::Known,
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

impl Tls {
    /// Of files.
    ///
    /// # Errors
    /// Which of them cannot be read, and why; the file of the key, if others may read that.
    pub fn read(certificate: &Path, key: &Path, client_authority: Option<&Path>) -> Result<Tls, String> {
        match Tls::read_exposed(certificate, key, client_authority)? {
            (tls, None) => Ok(tls),
            (_, Some(exposed)) => Err(format!("{}: {exposed}", key.display())),
        }
    }

    /// As [`Tls::read`], also where others may read the key; says that they may.
    ///
    /// # Errors
    /// Which of the files cannot be read, and why.
    pub fn read_exposed(
        certificate: &Path,
        key: &Path,
        client_authority: Option<&Path>,
    ) -> Result<(Tls, Option<Exposed>), String> {
        let named = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
        let read = |path: &Path| read_file(path, MAX_KEY_BYTES).map_err(|error| named(path, error));
        let client_authority = client_authority.map(read).transpose()?;
        let certificate = read(certificate)?;
        let (key, exposed) = read_exposed_secret(key, MAX_KEY_BYTES).map_err(|error| named(key, error))?;
        Ok((Tls { certificate, key, client_authority }, exposed))
    }
}

impl fmt::Debug for Tls {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("mutual", &self.client_authority.is_some()).finish_non_exhaustive()
    }
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

impl From<AddError> for StartError {
    /// Of the first device of a server, whose id nobody has.
    fn from(error: AddError) -> StartError {
        StartError::Pipeline(error.to_string())
    }
}

/// A running server of one device. It ends when this is dropped.
#[derive(Debug)]
pub struct Server {
    shared: SharedServer,
    served: Served,
}

impl Server {
    /// Starts to serve a device whose worker `control` reaches, on a thread of its own.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start(listen: &Listen, device: DeviceConfig, control: Control) -> Result<Server, StartError> {
        let listening = Listening::start(listen, false)?;
        let devices = listening.devices(Policy::default());
        let (device, served) = devices.open(device, control, Share::default())?;
        Ok(Server { shared: listening.serve(devices, Some(&device), None)?, served })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.shared.address()
    }

    /// What brings it what the switch tells.
    pub fn feed(&self) -> Feed {
        self.served.feed.clone()
    }

    /// Brings the switch programs that do not come from a client.
    pub fn programs(&self) -> Programs {
        self.served.programs.clone()
    }
}

/// A running server of devices that come and go. It ends when this is dropped.
#[derive(Debug)]
pub struct SharedServer {
    address: SocketAddr,
    devices: Devices,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl SharedServer {
    /// Starts to serve, on a thread of its own; at first there is no device.
    ///
    /// # Errors
    /// [`StartError`], but for programs.
    pub fn start(listen: &Listen, policy: Policy) -> Result<SharedServer, StartError> {
        SharedServer::start_with(listen, policy, None)
    }

    /// As [`SharedServer::start`], with a service more.
    ///
    /// # Errors
    /// As [`SharedServer::start`].
    pub fn start_with(
        listen: &Listen,
        policy: Policy,
        another: Option<Another>,
    ) -> Result<SharedServer, StartError> {
        let listening = Listening::start(listen, policy.access.is_some())?;
        let devices = listening.devices(policy);
        listening.serve(devices, None, another)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its devices.
    pub fn devices(&self) -> &Devices {
        &self.devices
    }
}

impl Drop for SharedServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The service without a transport, for one of the caller's. To be called where tokio runs, as its tasks go on there.
///
/// # Errors
/// [`StartError::Pipeline`].
pub fn service(device: DeviceConfig, control: Control) -> Result<(Service, Feed), StartError> {
    let devices = Devices::new(Handle::current(), Policy::default());
    let served = devices.add(device, control, Share::default())?;
    Ok((Service(devices), served.feed))
}

/// A server that listens, and serves nobody yet.
struct Listening {
    transport: Transport,
    has_tls: bool,
    listener: TcpListener,
    address: SocketAddr,
    runtime: Runtime,
}

impl Listening {
    /// With `takes_tokens` a client may come without a certificate.
    fn start(listen: &Listen, takes_tokens: bool) -> Result<Listening, StartError> {
        let has_tls = listen.tls.is_some();
        let mut transport = Transport::builder()
            .http2_keepalive_interval(Some(KEEPALIVE))
            .http2_keepalive_timeout(Some(2 * KEEPALIVE))
            .max_concurrent_streams(MAX_CALLS)
            .concurrency_limit_per_connection(MAX_BUSY);
        if let Some(tls) = &listen.tls {
            transport = transport.tls_config(tls_config(tls, takes_tokens)).map_err(|error| {
                let reason = std::error::Error::source(&error).map(ToString::to_string);
                StartError::Tls(reason.unwrap_or_else(|| error.to_string()))
            })?;
        }
        let listener =
            millrace_listen::bind(&P4RUNTIME, listen.address, listen.admission(), listen.allow_plaintext)
                .map_err(StartError::Listen)?;
        let address = listener.local_addr().map_err(StartError::System)?;
        listener.set_nonblocking(true).map_err(StartError::System)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(SLOW_THREADS)
            .build()
            .map_err(StartError::System)?;
        Ok(Listening { transport, has_tls, listener, address, runtime })
    }

    fn devices(&self, policy: Policy) -> Devices {
        Devices::new(self.runtime.handle().clone(), policy)
    }

    /// Serves devices; with `only` there is one, which is also served by gNMI, whose requests name no device.
    fn serve(
        self,
        devices: Devices,
        only: Option<&Arc<Device>>,
        another: Option<Another>,
    ) -> Result<SharedServer, StartError> {
        let Listening { transport, has_tls, listener, address, runtime } = self;
        let (stop, stopped) = oneshot::channel::<()>();
        let (served, interfaces) = (devices.clone(), only.map(|device| Arc::clone(&device.interfaces)));
        let serve = async move {
            let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
            let incoming = connections::accept(listener, has_tls, Arc::clone(served.peers()));
            let budget = Budget::new(served.peers());
            let service = P4RuntimeServer::new(Service(served)).max_decoding_message_size(MAX_MESSAGE);
            let mut services = Listed::default().with(Counted::new(service, &budget));
            if let Some(interfaces) = interfaces {
                services = services.with(Counted::new(millrace_gnmi::server(interfaces), &budget));
            }
            if let Some(another) = another {
                services = another.add_to(services, &budget);
            }
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
        Ok(SharedServer { address, devices, stop: Some(stop), thread: Some(thread) })
    }
}

fn tls_config(tls: &Tls, takes_tokens: bool) -> ServerTlsConfig {
    let config = ServerTlsConfig::new().identity(Identity::from_pem(&tls.certificate, &tls.key));
    match &tls.client_authority {
        Some(authority) => {
            config.client_ca_root(Certificate::from_pem(authority)).client_auth_optional(takes_tokens)
        }
        None => config,
    }
}
