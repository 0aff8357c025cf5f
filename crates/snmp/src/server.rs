//! The agent over UDP, on a thread of its own, or wherever else requests come from, and what it tells of the switch meanwhile.

use crate::agent::{Agent, MAX_REQUEST};
use crate::mib::{self, IF_ADMIN_STATUS, Identity, Moment, interface};
use crate::statistics::Count;
use crate::traps::{Event, TrapTarget};
use crate::value::Value;
use crate::view::{Cell, View, Width};
use millrace_listen::{ListenError, SNMP};
use millrace_observe_api::Status;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tracing::{debug, warn};

/// The objects are told again for so long before the switch is asked for new ones: a walk over thousands of them is of few moments.
pub const FRESH: Duration = Duration::from_millis(500);
/// Of a switch that is too busy to answer, what it said last is told for so long; after that requests get `genErr`.
pub const MAX_AGE: Duration = Duration::from_secs(10);
/// How often the thread looks whether it is to end, if nobody wakes it.
const LOOK: Duration = Duration::from_millis(500);
/// After an error of the socket.
const PAUSE: Duration = Duration::from_millis(10);

/// How to listen, and what is told of the switch that it does not know itself.
#[derive(Clone, Debug)]
pub struct Listen {
    /// Where; port 0 takes a free one. None: not over UDP.
    pub address: Option<SocketAddr>,
    /// Whether other machines may read.
    pub allow_remote: bool,
    /// The community of requests and traps.
    pub community: String,
    /// What an operator says of the switch.
    pub identity: Identity,
    /// Who is told of events, at most [`MAX_TRAP_TARGETS`](crate::MAX_TRAP_TARGETS).
    pub traps: Vec<TrapTarget>,
}

/// Why the agent cannot start.
#[derive(Debug)]
pub enum StartError {
    /// The address cannot be had, or anyone on the network could read.
    Listen(ListenError),
    /// The operating system refused a thread or what it needs.
    System(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Listen(error) => error.fmt(f),
            StartError::System(error) => write!(f, "cannot start the SNMP agent: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

/// Gives the status of the switch, or says why there is none now.
pub type AskStatus = Box<dyn Fn() -> Result<Arc<Status>, String> + Send + Sync>;

/// A running agent. It ends when this is dropped.
#[derive(Debug)]
pub struct Server {
    address: Option<SocketAddr>,
    shared: Arc<Shared>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Tells an agent what happens to its switch. See [`Server::feed`].
#[derive(Clone, Debug)]
pub struct Feed(Arc<Shared>);

/// What the agent's thread and those that tell it of events share.
struct Shared {
    agent: Agent,
    identity: Identity,
    traps: Vec<TrapTarget>,
    status: AskStatus,
    known: Mutex<Known>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("agent", &self.agent)
            .field("traps", &self.traps)
            .finish_non_exhaustive()
    }
}

/// What is known of the switch.
#[derive(Default)]
struct Known {
    view: Option<Arc<View>>,
    /// When the view was made, and when the switch was asked last.
    made: Option<Instant>,
    asked: Option<Instant>,
    /// The state of each port's link, and when it changed, in hundredths of a second of the agent.
    links: BTreeMap<u32, bool>,
    last_changes: BTreeMap<u32, u32>,
}

impl Server {
    /// Starts to answer for a switch.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start(listen: Listen, status: AskStatus) -> Result<Server, StartError> {
        let Listen { address, allow_remote, community, identity, traps } = listen;
        let bind =
            |address| millrace_listen::bind_udp(&SNMP, address, allow_remote).map_err(StartError::Listen);
        let socket = address.map(bind).transpose()?;
        let agent = Agent::new(&community);
        let shared = Arc::new(Shared { agent, identity, traps, status, known: Mutex::default() });
        let stop = Arc::<AtomicBool>::default();
        let Some(socket) = socket else {
            return Ok(Server { address: None, shared, stop, thread: None });
        };
        let address = Some(socket.local_addr().map_err(StartError::System)?);
        socket.set_read_timeout(Some(LOOK)).map_err(StartError::System)?;
        let (of_thread, until) = (Arc::clone(&shared), Arc::clone(&stop));
        let thread = std::thread::Builder::new().name("snmp".to_owned());
        let thread = thread.spawn(move || serve(&socket, &of_thread, &until)).map_err(StartError::System)?;
        Ok(Server { address, shared, stop, thread: Some(thread) })
    }

    /// Where it listens, if over UDP.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// For whoever tells it of events.
    pub fn feed(&self) -> Feed {
        Feed(Arc::clone(&self.shared))
    }

    /// What answers datagrams that come by another path than UDP of this machine, as in a virtual link, with at most so many bytes; none:
    /// nobody is to hear of it.
    pub fn answers(&self) -> impl Fn(&[u8], usize) -> Option<Vec<u8>> + Send + use<> {
        let shared = Arc::clone(&self.shared);
        move |datagram, limit| shared.agent.answer_within(datagram, limit, &|| shared.view())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // Wakes it, so that nobody waits for it to look.
        let Some(address) = self.address else { return };
        let own = match address {
            SocketAddr::V4(own) if own.ip().is_unspecified() => (Ipv4Addr::LOCALHOST, own.port()).into(),
            SocketAddr::V6(own) if own.ip().is_unspecified() => (Ipv6Addr::LOCALHOST, own.port()).into(),
            own => own,
        };
        let _ = socket_to(own).and_then(|socket| socket.send(&[]));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(socket: &UdpSocket, shared: &Shared, stop: &AtomicBool) {
    // One byte more tells a datagram that is too long from one that fits.
    let mut buffer = [0; MAX_REQUEST + 1];
    while !stop.load(Ordering::Acquire) {
        match socket.recv_from(&mut buffer) {
            // Nothing asks for nothing.
            Ok((0, _)) => {}
            Ok((len, peer)) => {
                if let Some(answer) = shared.agent.answer(&buffer[..len], &|| shared.view())
                    && let Err(error) = socket.send_to(&answer, peer)
                {
                    debug!(%peer, %error, "SNMP answer not sent");
                }
            }
            Err(error)
                if [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut, io::ErrorKind::Interrupted]
                    .contains(&error.kind()) => {}
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

impl Shared {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The objects as they are now, or were a moment ago; none while the switch has not answered for long.
    fn view(&self) -> Option<Arc<View>> {
        let mut known = self.known();
        if known.asked.is_some_and(|asked| asked.elapsed() < FRESH) {
            return known.current();
        }
        known.asked = Some(Instant::now());
        drop(known);
        // Whoever tells of events does not wait for the switch meanwhile.
        let status = (self.status)();
        let mut known = self.known();
        match status {
            Ok(status) => {
                let ticks = self.agent.ticks();
                let moment = Moment {
                    identity: &self.identity,
                    status: &status,
                    last_changes: &known.last_changes,
                    ticks,
                };
                let view = Arc::new(mib::view(moment));
                (known.view, known.made) = (Some(view), Some(Instant::now()));
            }
            Err(error) => warn!(error, "SNMP has no status of the switch"),
        }
        known.current()
    }

    /// Tells all targets of an event.
    fn tell(&self, event: &Event) {
        for target in &self.traps {
            let sent = socket_to(target.address).and_then(|socket| {
                let own = socket.local_addr()?.ip();
                match event.message(&self.agent, target.version, own) {
                    Some(message) => socket.send(&message),
                    None => Ok(0),
                }
            });
            match sent {
                Ok(0) => {}
                Ok(_) => {
                    self.agent.statistics().count(Count::OutPkts);
                    self.agent.statistics().count(Count::OutTraps);
                }
                Err(error) => warn!(target = %target.address, %error, "trap not sent"),
            }
        }
    }
}

impl Known {
    /// The view, if it is not too old.
    fn current(&self) -> Option<Arc<View>> {
        self.view.clone().filter(|_| self.made.is_some_and(|made| made.elapsed() < MAX_AGE))
    }

    /// The switch is asked again for the next request.
    fn forget(&mut self) {
        self.asked = None;
    }
}

/// A socket whose peer that is.
fn socket_to(peer: SocketAddr) -> io::Result<UdpSocket> {
    let any: IpAddr = match peer {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(peer)?;
    Ok(socket)
}

impl Feed {
    /// The switch runs from now on.
    pub fn started(&self) {
        self.0.tell(&Event::ColdStart);
    }

    /// The link of a port is up or down. One that nothing was said of was up.
    pub fn link(&self, port: u32, is_up: bool) {
        let is_enabled = {
            let mut known = self.0.known();
            let before = known.links.insert(port, is_up);
            if before.unwrap_or(true) == is_up {
                return;
            }
            known.last_changes.insert(port, self.0.agent.ticks());
            known.forget();
            known.view.as_ref().is_none_or(|view| is_enabled(view, port))
        };
        self.0.tell(&Event::Link { port, is_up, is_enabled });
    }

    /// A port has failed for good, whose link was up as far as anybody knew.
    pub fn failed(&self, port: u32) {
        self.link(port, false);
    }

    /// The mode has changed.
    pub fn mode(&self, from: &str, to: &str) {
        self.0.known().forget();
        self.0.tell(&Event::Mode { from: from.to_owned(), to: to.to_owned() });
    }
}

/// Whether a port was not switched off, as far as is known.
fn is_enabled(view: &View, port: u32) -> bool {
    let Some(index) = interface(port) else { return true };
    let name = [&IF_ADMIN_STATUS[..], &[index]].concat();
    view.get(&name, Width::Wide).map_or(true, |found| *found.cell == Cell::Value(Value::Integer(1)))
}
