//! The ports of the device as gNMI shows them: names, links, what an operator switched off.
//!
//! Whether a port can be used is decided here, for gNMI and for groups and replicas of P4Runtime alike: it is enabled, its
//! link is up, and its driver has not failed. What an interface is (name, address, speed) is read from the record of links,
//! which metrics and the status page read too.

use crate::device::{Event, PortState};
use crate::forwarding::request;
use millrace_dataplane::{Control, PortId, PortReport, Request};
use millrace_drivers::{FrameKinds, LinkState, Links};
use millrace_gnmi::{Change, Counters, Health, Interface, Kinds, Setting, Snapshot, Target};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, watch};
use tonic::Status;

/// For so long the answer of the worker is good for others who ask.
const FRESH: Duration = Duration::from_millis(20);
/// How long the workers may take to say what they have counted.
const PATIENCE: Duration = Duration::from_secs(2);

/// The ports of a device.
pub(crate) struct Interfaces {
    device_id: u64,
    control: Control,
    events: mpsc::Sender<Event>,
    /// What is behind the ports.
    links: Links,
    ports: Mutex<BTreeMap<PortId, Record>>,
    /// Counts changes of what is not a counter.
    changed: watch::Sender<u64>,
    /// What was asked for last, when, and after how many changes.
    last: tokio::sync::Mutex<Option<(Instant, u64, Arc<Snapshot>)>>,
}

/// What is known of a port.
#[derive(Debug)]
struct Record {
    is_linked: bool,
    has_failed: bool,
    is_enabled: bool,
    health: Health,
    last_change_ns: u64,
}

impl Record {
    fn new() -> Record {
        Record {
            is_linked: true,
            has_failed: false,
            is_enabled: true,
            health: Health::Unknown,
            last_change_ns: now_ns(),
        }
    }

    fn is_up(&self) -> bool {
        self.is_enabled && self.is_linked && !self.has_failed
    }
}

/// Nanoseconds since the epoch.
fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// The names of ports, of which no two are the same: that of the interface, or `port` and the number where there is none, or where
/// another port has the name.
fn names<'p>(
    ports: impl Iterator<Item = &'p PortId>,
    links: &BTreeMap<PortId, LinkState>,
) -> BTreeMap<PortId, String> {
    let usual = |port: PortId| format!("port{port}");
    let mut names: BTreeMap<PortId, String> = ports.map(|port| (*port, usual(*port))).collect();
    let mut taken: BTreeSet<String> = names.values().cloned().collect();
    for (port, name) in &mut names {
        if let Some(link) = links.get(port)
            && taken.insert(link.name.clone())
        {
            name.clone_from(&link.name);
        }
    }
    names
}

impl Interfaces {
    pub(crate) fn new(
        device_id: u64,
        control: Control,
        events: mpsc::Sender<Event>,
        cpu: Option<PortId>,
        ports: &BTreeSet<PortId>,
        links: Links,
    ) -> Interfaces {
        // The controller is no link, and no client of Stratum expects it among them.
        let interfaces = ports.iter().filter(|port| Some(**port) != cpu);
        Interfaces {
            device_id,
            control,
            events,
            links,
            ports: Mutex::new(interfaces.map(|port| (*port, Record::new())).collect()),
            changed: watch::Sender::new(0),
            last: tokio::sync::Mutex::default(),
        }
    }

    fn ports(&self) -> MutexGuard<'_, BTreeMap<PortId, Record>> {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What each port has counted.
    async fn counted(&self) -> Result<BTreeMap<PortId, PortReport>, Status> {
        let control = self.control.clone();
        // It waits for the workers.
        let report = tokio::task::spawn_blocking(move || control.report(PATIENCE)).await;
        let report = report.map_err(|error| Status::internal(error.to_string()))?;
        let report = report.map_err(|error| Status::unavailable(error.to_string()))?;
        Ok(report.ports.into_iter().map(|port| (port.port, port)).collect())
    }

    /// Changes the record of a port, if there is one, and tells whoever waits for changes.
    fn change(&self, port: PortId, change: impl FnOnce(&mut Record)) {
        if let Some(record) = self.ports().get_mut(&port) {
            let before = record.is_up();
            change(record);
            if record.is_up() != before {
                record.last_change_ns = now_ns();
            }
        }
        self.changed.send_modify(|changes| *changes = changes.wrapping_add(1));
    }

    /// A port is in another state; gives whether it can be used.
    pub(crate) fn take(&self, port: PortId, state: PortState) -> bool {
        match state {
            PortState::Added => {
                self.ports().entry(port).or_insert_with(Record::new);
            }
            PortState::Removed => _ = self.ports().remove(&port),
            _ => {}
        }
        self.change(port, |record| match state {
            PortState::Up | PortState::Down => record.is_linked = state == PortState::Up,
            PortState::Failed => record.has_failed = true,
            PortState::Added | PortState::Removed | PortState::Configured => {}
        });
        self.ports().get(&port).is_some_and(Record::is_up)
    }
}

/// The counters of a port: as the switch has them, its driver, and the device of its interface.
fn counters(report: &PortReport, link: Option<&LinkState>) -> Counters {
    let PortReport { counters, driver, .. } = report;
    let device = link.and_then(|link| link.counters).unwrap_or_default();
    let (in_kinds, out_kinds) = driver.kinds();
    Counters {
        in_pkts: counters.rx_packets,
        in_octets: counters.rx_bytes,
        in_discards: counters.rx_drops,
        out_pkts: counters.tx_packets,
        out_octets: counters.tx_bytes,
        out_discards: counters.tx_drops,
        in_kinds: in_kinds.map(kinds),
        out_kinds: out_kinds.map(kinds),
        in_errors: driver.rx_errors + driver.rx_missed + device.rx.errors,
        in_fcs_errors: device.rx_crc_errors,
        out_errors: device.tx.errors,
    }
}

fn kinds(counted: FrameKinds) -> Kinds {
    let FrameKinds { multicast, broadcast, sizes } = counted;
    Kinds { unicast: counted.unicast(), multicast, broadcast, sizes }
}

#[tonic::async_trait]
impl Target for Interfaces {
    async fn snapshot(&self) -> Result<Arc<Snapshot>, Status> {
        let mut last = self.last.lock().await;
        let changes = *self.changed.borrow();
        if let Some((when, of, snapshot)) = &*last
            && *of == changes
            && when.elapsed() < FRESH
        {
            return Ok(Arc::clone(snapshot));
        }
        let counted = self.counted().await?;
        let links = self.links.now().into_iter().filter_map(|link| Some((link.port.into(), link.link?)));
        let links: BTreeMap<PortId, LinkState> = links.collect();
        let ports = self.ports();
        let mut names = names(ports.keys(), &links);
        let interface = |(port, record): (&PortId, &Record)| {
            let link = links.get(port);
            Interface {
                name: names.remove(port).unwrap_or_default(),
                port: *port,
                is_enabled: record.is_enabled,
                is_up: record.is_up(),
                last_change_ns: record.last_change_ns,
                health: record.health,
                mac: link.and_then(|link| link.mac),
                speed_mbps: link.and_then(|link| link.speed_mbps).map(u64::from),
                counters: counted.get(port).map_or_else(Counters::default, |counted| counters(counted, link)),
            }
        };
        let interfaces = ports.iter().map(interface).collect();
        drop(ports);
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let snapshot = Snapshot { device_id: self.device_id, version, interfaces };
        let snapshot = Arc::new(snapshot);
        *last = Some((Instant::now(), changes, Arc::clone(&snapshot)));
        Ok(snapshot)
    }

    async fn apply(&self, changes: Vec<Change>) -> Result<(), Status> {
        for Change { port, setting } in changes {
            match setting {
                Setting::Health(health) => self.change(port, |record| record.health = health),
                Setting::Enabled(is_enabled) => {
                    if !request(&self.control, |to| Request::EnablePort(port, is_enabled, to)).await? {
                        return Err(Status::not_found(format!("there is no port {port} any more")));
                    }
                    self.change(port, |record| record.is_enabled = is_enabled);
                    // What depends on the port follows.
                    let _ = self.events.send(Event::Port(port, PortState::Configured)).await;
                }
            }
        }
        Ok(())
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_ports_have_one_name() {
        let link = |name: &str| LinkState { name: name.into(), ..LinkState::default() };
        let links = [(1, link("eth0")), (2, link("port4")), (3, link("eth0")), (5, link("port5"))];
        let names = names([1, 2, 3, 4, 5].iter(), &links.into());
        let names: Vec<&str> = names.values().map(String::as_str).collect();
        assert_eq!(names, ["eth0", "port2", "port3", "port4", "port5"]);
    }
}
