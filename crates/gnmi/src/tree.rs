//! The data tree: all leaves of a snapshot, in order.

use crate::path::Pattern;
use crate::proto::{Path, PathElem};
use crate::target::{Counters, Interface, Kinds, Snapshot};
use std::sync::{Arc, LazyLock};
use tonic::Status;

/// An element of a leaf's path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Elem {
    pub(crate) name: &'static str,
    /// Of an entry of a list: the name of its key, and the value.
    pub(crate) key: Option<(&'static str, Arc<str>)>,
}

/// A leaf with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leaf {
    pub(crate) path: Vec<Elem>,
    pub(crate) value: Value,
}

/// What a leaf holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Text(Arc<str>),
    Bool(bool),
    Number(u32),
    /// A number of 64 bits.
    Large(u64),
    /// A number of 64 bits that packets change.
    Count(u64),
}

/// Whether a leaf is configuration, state, or the key of a list, which is both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nature {
    Config,
    State,
    Key,
}

impl Leaf {
    pub(crate) fn nature(&self) -> Nature {
        let mut names = self.path.iter().map(|elem| elem.name);
        match names.find(|name| ["config", "state"].contains(name)) {
            Some("config") => Nature::Config,
            Some(_) => Nature::State,
            None => Nature::Key,
        }
    }

    /// Whether packets change it.
    pub(crate) fn counts(&self) -> bool {
        matches!(self.value, Value::Count(_))
    }

    /// Its path as a message.
    pub(crate) fn message(&self, elements: usize) -> Path {
        let elem = self.path[..elements].iter().map(|elem| PathElem {
            name: elem.name.to_owned(),
            key: elem.key.iter().map(|(key, value)| ((*key).to_owned(), value.to_string())).collect(),
        });
        Path { elem: elem.collect(), ..Path::default() }
    }
}

/// The leaves that a pattern means, with the length of the node that each belongs to.
pub(crate) fn matching<'l>(leaves: &'l [Leaf], pattern: &Pattern) -> impl Iterator<Item = (usize, &'l Leaf)> {
    leaves.iter().filter_map(|leaf| Some((pattern.node(&leaf.path)?, leaf)))
}

/// All leaves that there can be: those of a switch with an interface of which everything is known.
static MODEL: LazyLock<Vec<Leaf>> = LazyLock::new(|| {
    let kinds = Some(Kinds::default());
    let counters = Counters { in_kinds: kinds, out_kinds: kinds, ..Counters::default() };
    let interface = Interface { mac: Some([0; 6]), speed_mbps: Some(0), counters, ..Interface::default() };
    leaves(&Snapshot { interfaces: vec![interface], ..Snapshot::default() })
});

/// Refuses a path that means nothing now and never will: one that is not implemented. What it names may not be there yet.
pub(crate) fn check_known(pattern: &Pattern) -> Result<(), Status> {
    match matching(&MODEL, &pattern.of_any_entry()).next() {
        Some(_) => Ok(()),
        None => Err(Status::unimplemented(format!("there is never anything at {}", pattern.text()))),
    }
}

/// All leaves.
pub(crate) fn leaves(snapshot: &Snapshot) -> Vec<Leaf> {
    let mut leaves = Vec::new();
    for interface in &snapshot.interfaces {
        interface_leaves(interface, &mut leaves);
    }
    device_leaves(snapshot, &mut leaves);
    for interface in &snapshot.interfaces {
        port_leaves(interface, &mut leaves);
    }
    leaves
}

/// Puts leaves below one entry of a list.
struct Entry<'l> {
    above: [Elem; 2],
    leaves: &'l mut Vec<Leaf>,
}

impl Entry<'_> {
    fn new<'l>(list: [&'static str; 2], name: &Arc<str>, leaves: &'l mut Vec<Leaf>) -> Entry<'l> {
        let [above, list] = list;
        let entry = Elem { name: list, key: Some(("name", Arc::clone(name))) };
        let mut made = Entry { above: [Elem { name: above, key: None }, entry], leaves };
        made.put(&["name"], text(name));
        made
    }

    fn put(&mut self, path: &[&'static str], value: Value) {
        let below = path.iter().map(|name| Elem { name, key: None });
        self.leaves.push(Leaf { path: self.above.iter().cloned().chain(below).collect(), value });
    }
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

fn interface_leaves(interface: &Interface, leaves: &mut Vec<Leaf>) {
    let name: Arc<str> = interface.name.as_str().into();
    let mut entry = Entry::new(["interfaces", "interface"], &name, leaves);
    let status = |is_up: bool| text(if is_up { "UP" } else { "DOWN" });
    entry.put(&["config", "name"], text(&name));
    entry.put(&["config", "enabled"], Value::Bool(interface.is_enabled));
    entry.put(&["config", "health-indicator"], text(interface.health.name()));
    entry.put(&["state", "name"], text(&name));
    entry.put(&["state", "ifindex"], Value::Number(interface.port));
    entry.put(&["state", "id"], Value::Number(interface.port));
    entry.put(&["state", "enabled"], Value::Bool(interface.is_enabled));
    entry.put(&["state", "admin-status"], status(interface.is_enabled));
    entry.put(&["state", "oper-status"], status(interface.is_up));
    entry.put(&["state", "last-change"], Value::Large(interface.last_change_ns));
    entry.put(&["state", "health-indicator"], text(interface.health.name()));
    entry.put(&["state", "hardware-port"], text(&name));
    let counters = &interface.counters;
    for (leaf, count) in [
        ("in-octets", counters.in_octets),
        ("in-pkts", counters.in_pkts),
        // Where nobody looks at the kind, frames of all kinds are there, as Stratum's switch for bmv2 has them.
        ("in-unicast-pkts", counters.in_kinds.map_or(counters.in_pkts, |kinds| kinds.unicast)),
        ("in-discards", counters.in_discards),
        ("in-errors", counters.in_errors),
        ("in-fcs-errors", counters.in_fcs_errors),
        ("out-octets", counters.out_octets),
        ("out-pkts", counters.out_pkts),
        ("out-unicast-pkts", counters.out_kinds.map_or(counters.out_pkts, |kinds| kinds.unicast)),
        ("out-discards", counters.out_discards),
        ("out-errors", counters.out_errors),
    ] {
        entry.put(&["state", "counters", leaf], Value::Count(count));
    }
    kind_leaves(counters, &mut entry);
    for place in ["config", "state"] {
        if let Some(mac) = &interface.mac {
            let bytes: Vec<String> = mac.iter().map(|byte| format!("{byte:02x}")).collect();
            entry.put(&["ethernet", place, "mac-address"], text(&bytes.join(":")));
        }
        if let Some(speed) = interface.speed_mbps {
            entry.put(&["ethernet", place, "port-speed"], text(speed_name(speed)));
        }
    }
}

/// Frames by kind, where somebody looks at it.
fn kind_leaves(counters: &Counters, entry: &mut Entry<'_>) {
    for (kinds, multicast, broadcast) in [
        (counters.in_kinds, "in-multicast-pkts", "in-broadcast-pkts"),
        (counters.out_kinds, "out-multicast-pkts", "out-broadcast-pkts"),
    ] {
        if let Some(kinds) = kinds {
            entry.put(&["state", "counters", multicast], Value::Count(kinds.multicast));
            entry.put(&["state", "counters", broadcast], Value::Count(kinds.broadcast));
        }
    }
    let Some(kinds) = counters.in_kinds else { return };
    // The model has no sizes of frames sent.
    let [undersize, ranges @ .., oversize] = kinds.sizes;
    for (leaf, count) in [("in-undersize-frames", undersize), ("in-oversize-frames", oversize)] {
        entry.put(&["ethernet", "state", "counters", leaf], Value::Count(count));
    }
    let leaves = [
        "in-frames-64-octets",
        "in-frames-65-127-octets",
        "in-frames-128-255-octets",
        "in-frames-256-511-octets",
        "in-frames-512-1023-octets",
        "in-frames-1024-1518-octets",
    ];
    for (leaf, count) in leaves.into_iter().zip(ranges) {
        entry.put(&["ethernet", "state", "counters", "in-distribution", leaf], Value::Count(count));
    }
}

/// The identity that OpenConfig has for a speed.
fn speed_name(mbps: u64) -> &'static str {
    match mbps {
        10 => "SPEED_10MB",
        100 => "SPEED_100MB",
        1000 => "SPEED_1GB",
        2500 => "SPEED_2500MB",
        5000 => "SPEED_5GB",
        10_000 => "SPEED_10GB",
        20_000 => "SPEED_20GB",
        25_000 => "SPEED_25GB",
        40_000 => "SPEED_40GB",
        50_000 => "SPEED_50GB",
        100_000 => "SPEED_100GB",
        200_000 => "SPEED_200GB",
        400_000 => "SPEED_400GB",
        800_000 => "SPEED_800GB",
        _ => "SPEED_UNKNOWN",
    }
}

/// The switch itself, as a component.
fn device_leaves(snapshot: &Snapshot, leaves: &mut Vec<Leaf>) {
    let name: Arc<str> = "switch".into();
    let mut entry = Entry::new(["components", "component"], &name, leaves);
    entry.put(&["config", "name"], text(&name));
    entry.put(&["state", "name"], text(&name));
    entry.put(&["state", "type"], text("INTEGRATED_CIRCUIT"));
    entry.put(&["state", "description"], text("P4 switch"));
    entry.put(&["state", "mfg-name"], text("Millrace"));
    entry.put(&["state", "software-version"], text(&snapshot.version));
    entry.put(&["integrated-circuit", "config", "node-id"], Value::Large(snapshot.device_id));
    entry.put(&["integrated-circuit", "state", "node-id"], Value::Large(snapshot.device_id));
}

/// A port, as a component.
fn port_leaves(interface: &Interface, leaves: &mut Vec<Leaf>) {
    // An interface may have the name of the switch itself.
    let name: Arc<str> = match interface.name.as_str() {
        "switch" => "switch (port)".into(),
        name => name.into(),
    };
    let mut entry = Entry::new(["components", "component"], &name, leaves);
    entry.put(&["config", "name"], text(&name));
    entry.put(&["state", "name"], text(&name));
    entry.put(&["state", "type"], text("PORT"));
    entry.put(&["state", "description"], text(&format!("port {}", interface.port)));
}
