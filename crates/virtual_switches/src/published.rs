//! What the HTTP server shows of a device. It is told after every change, so that nobody who looks waits for a change to be done.

use crate::clients::Clients;
use crate::device::Running;
use crate::failure::Failure;
use crate::installed::owner;
use millrace_access::{Refusal, Resource, Right, Tenant, Who};
use millrace_backplane::Backplane;
use millrace_device_file::DeviceFile;
use millrace_listen::Address;
use millrace_observe::{Change, DEVICE, Listen, Physical, Server, Switches, Watched};
use millrace_observe_api::{OutsideStatus, PhysicalStatus};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, Weak};

/// What is shown now.
#[derive(Default)]
struct Now {
    switches: BTreeMap<String, Shown>,
    /// The physical ports: name, what they are connected to, number in the backplane.
    physical: Vec<(String, String, u16)>,
}

/// A switch that is shown.
#[derive(Clone)]
struct Shown {
    owner: Option<Tenant>,
    device_id: u64,
    watched: Arc<Watched>,
}

/// See the module's documentation.
pub(crate) struct Published {
    device: String,
    clients: Arc<Clients>,
    /// A server that is slow to end does not keep the device.
    backplane: Weak<Backplane>,
    now: RwLock<Now>,
}

impl Published {
    pub(crate) fn new(device: &str, clients: Arc<Clients>, backplane: &Arc<Backplane>) -> Published {
        let (device, backplane) = (device.to_owned(), Arc::downgrade(backplane));
        Published { device, clients, backplane, now: RwLock::default() }
    }

    fn now(&self) -> RwLockReadGuard<'_, Now> {
        self.now.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// A switch with this owner, as somebody with an access list sees it.
    fn may(&self, who: &Who, right: Right, shown: &Shown) -> Result<(), Refusal> {
        self.clients.may_over_http(who, right, Resource::Device(shown.owner.as_ref()))
    }

    fn sees_all(&self, who: &Who) -> bool {
        self.clients.may_over_http(who, Right::Read, Resource::Chassis).is_ok()
    }
}

impl Running {
    /// Shows the device as it is now.
    pub(crate) fn publish(&self) {
        let shown = self.file.switches.iter().filter_map(|model| {
            let watched = Arc::clone(&self.installed.get(&model.name)?.watched);
            Some((model.name.clone(), Shown { owner: owner(model), device_id: model.device_id, watched }))
        });
        let now = Now { switches: shown.collect(), physical: self.physical_ports() };
        // What was there may hold the captures of a switch that has gone, whose files are written to their end: after the lock.
        let before = {
            let mut shown = self.published.now.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *shown, now)
        };
        drop(before);
    }
}

impl Switches for Published {
    fn device(&self) -> String {
        self.device.clone()
    }

    fn knows(&self, who: &Who) -> Result<(), Refusal> {
        match self.clients.may_over_http(who, Right::Read, Resource::NoDevice) {
            Err(Refusal::Unknown) => Err(Refusal::Unknown),
            _ => Ok(()),
        }
    }

    fn readable(&self, who: &Who) -> BTreeMap<String, Arc<Watched>> {
        let now = self.now();
        let seen = now.switches.iter().filter(|(_, shown)| self.may(who, Right::Read, shown).is_ok());
        seen.map(|(name, shown)| (name.clone(), Arc::clone(&shown.watched))).collect()
    }

    fn enter(&self, who: &Who, right: Right, name: &str) -> Result<Arc<Watched>, Refusal> {
        let now = self.now();
        let Some(shown) = now.switches.get(name) else {
            self.clients.may_over_http(who, right, Resource::NoDevice)?;
            return Err(Refusal::Hidden);
        };
        self.may(who, right, shown)?;
        Ok(Arc::clone(&shown.watched))
    }

    fn physical(&self, who: &Who) -> Option<Physical> {
        if !self.sees_all(who) {
            return None;
        }
        let backplane = self.backplane.upgrade()?;
        let report = backplane.statistics().ok()?;
        let now = self.now();
        let ports = now.physical.iter().map(|(name, spec, number)| {
            let (counted, failure) = report.of(*number);
            PhysicalStatus {
                name: name.clone(),
                spec: spec.clone(),
                rx_packets: counted.rx_packets,
                rx_bytes: counted.rx_bytes,
                rx_missed: counted.rx_missed,
                rx_errors: counted.rx_errors,
                tx_packets: counted.tx_packets,
                tx_bytes: counted.tx_bytes,
                tx_refused: counted.tx_refused,
                failure,
            }
        });
        Some(Physical { ports: ports.collect(), unclassified: backplane.unclassified() })
    }

    fn record(&self, change: Change<'_>) {
        let Change { who, from, switch, what, result } = change;
        let device = self.now().switches.get(switch).map(|shown| shown.device_id);
        self.clients.record_over_http(who, from, device, &format!("{what} of switch {switch}"), result);
    }
}

/// What is counted of a switch outside of it, as others read it.
pub(crate) fn outside(counts: &millrace_backplane::Counts) -> OutsideStatus {
    OutsideStatus {
        used_ns: counts.used_ns(),
        losses: counts.losses().map(|(reason, count)| (reason.to_owned(), count)).collect(),
    }
}

/// Starts the HTTP server, if the file asks for one.
pub(crate) fn serve(file: &DeviceFile, published: &Arc<Published>) -> Result<Option<Server>, Failure> {
    let Some(address) = &file.device.http else { return Ok(None) };
    let address: Address = address.parse().map_err(Failure::failed)?;
    let address: SocketAddr = address.resolve(DEVICE.default_port).map_err(Failure::failed)?;
    let listen = Listen {
        address,
        allow_remote: file.device.http_allow_remote,
        hosts: file.device.http_hosts.clone(),
    };
    let switches: Arc<dyn Switches> = Arc::<Published>::clone(published);
    Server::start_many(listen, switches).map(Some).map_err(Failure::failed)
}
