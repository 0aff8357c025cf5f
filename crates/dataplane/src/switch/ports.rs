//! The ports that a switch knows.

use super::MAX_PORTS;
use crate::{Counters, DropReason, PortId};
use std::collections::BTreeSet;

/// The ports that exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KnownPorts {
    /// The first [`MAX_PORTS`] numbers that packets come from or go to.
    Any,
    /// These. Packets from and to other ports are dropped.
    Only(BTreeSet<PortId>),
}

/// The ports of one switch.
#[derive(Debug)]
pub(crate) struct Ports {
    known: KnownPorts,
    /// Those of them that were switched off.
    disabled: BTreeSet<PortId>,
}

impl Ports {
    /// Any port.
    pub(super) fn any() -> Ports {
        Ports { known: KnownPorts::Any, disabled: BTreeSet::new() }
    }

    /// The same ports for one more worker, which counts on its own.
    pub(super) fn share(&self, counters: &mut Counters) -> Ports {
        if let KnownPorts::Only(ports) = &self.known {
            ports.iter().for_each(|port| counters.add_port(*port));
        }
        self.disabled.iter().for_each(|port| counters.close_port(*port));
        Ports { known: self.known.clone(), disabled: self.disabled.clone() }
    }

    /// Knows these from now on.
    pub(super) fn set(&mut self, ports: BTreeSet<PortId>, counters: &mut Counters) {
        ports.iter().for_each(|port| counters.add_port(*port));
        self.known = KnownPorts::Only(ports);
    }

    /// Knows a port from now on.
    pub(super) fn add(&mut self, port: PortId, counters: &mut Counters) {
        if let KnownPorts::Only(ports) = &mut self.known {
            ports.insert(port);
        }
        counters.add_port(port);
    }

    /// Does not know a port any more. What was counted of it stays.
    pub(super) fn remove(&mut self, port: PortId, counters: &mut Counters) {
        if let KnownPorts::Only(ports) = &mut self.known {
            ports.remove(&port);
        }
        self.disabled.remove(&port);
        counters.close_port(port);
    }

    /// Switches a port off or on; says whether there is such a port.
    pub(super) fn enable(&mut self, port: PortId, is_enabled: bool, counters: &mut Counters) -> bool {
        if !self.exists(port, counters) {
            return false;
        }
        match is_enabled {
            true => {
                self.disabled.remove(&port);
                counters.add_port(port);
            }
            false => {
                self.disabled.insert(port);
                counters.close_port(port);
            }
        }
        true
    }

    /// Why no packet comes from a port or goes to it; none for one that is open.
    pub(crate) fn closed(&self, port: PortId, counters: &mut Counters) -> Option<DropReason> {
        // First, as asking for a port may open it.
        if self.disabled.contains(&port) {
            return Some(DropReason::PortDisabled);
        }
        (!self.exists(port, counters)).then_some(DropReason::UnknownPort)
    }

    fn exists(&self, port: PortId, counters: &mut Counters) -> bool {
        match &self.known {
            KnownPorts::Only(ports) => ports.contains(&port),
            KnownPorts::Any => {
                let exists = counters.has_port(port) || counters.port_count() < MAX_PORTS;
                if exists {
                    counters.add_port(port);
                }
                exists
            }
        }
    }
}
