//! The ports that a switch knows, and which of them the mode of the switch keeps closed.

use super::MAX_PORTS;
use crate::{Counters, DropReason, Mode, PortId};
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
    mode: Mode,
    /// The ports of those who manage the switch.
    management: BTreeSet<PortId>,
}

impl Ports {
    /// Any port.
    pub(super) fn any() -> Ports {
        Ports {
            known: KnownPorts::Any,
            disabled: BTreeSet::new(),
            mode: Mode::default(),
            management: BTreeSet::new(),
        }
    }

    /// The same ports for one more worker, which counts on its own.
    pub(super) fn share(&self, counters: &mut Counters) -> Ports {
        if let KnownPorts::Only(ports) = &self.known {
            ports.iter().for_each(|port| self.open(*port, counters));
        }
        self.disabled.iter().for_each(|port| counters.close_port(*port));
        Ports {
            known: self.known.clone(),
            disabled: self.disabled.clone(),
            mode: self.mode,
            management: self.management.clone(),
        }
    }

    /// Knows these from now on.
    pub(super) fn set(&mut self, ports: BTreeSet<PortId>, counters: &mut Counters) {
        ports.iter().for_each(|port| self.open(*port, counters));
        self.known = KnownPorts::Only(ports);
    }

    /// Knows a port from now on.
    pub(super) fn add(&mut self, port: PortId, counters: &mut Counters) {
        if let KnownPorts::Only(ports) = &mut self.known {
            ports.insert(port);
        }
        self.open(port, counters);
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
                self.open(port, counters);
            }
            false => {
                self.disabled.insert(port);
                counters.close_port(port);
            }
        }
        true
    }

    /// Does what another mode wants from now on: while packets do not go from port to port, the fast path finds all ports closed.
    pub(super) fn set_mode(&mut self, mode: Mode, counters: &mut Counters) {
        self.mode = mode;
        let open: Vec<PortId> = match &self.known {
            KnownPorts::Only(ports) => ports.iter().copied().collect(),
            KnownPorts::Any => counters.ports().map(|(port, _)| port).collect(),
        };
        open.into_iter()
            .filter(|port| !self.disabled.contains(port))
            .for_each(|port| self.open(port, counters));
    }

    pub(super) fn set_management(&mut self, ports: BTreeSet<PortId>) {
        self.management = ports;
    }

    pub(super) fn mode(&self) -> Mode {
        self.mode
    }

    /// Whether a port was not switched off.
    pub(crate) fn is_enabled(&self, port: PortId) -> bool {
        !self.disabled.contains(&port)
    }

    /// Why no packet comes in from a port; none for one that is open. In a mode in which packets do not go from port to port, they may be for
    /// a management port, if there is one: the program says where they go, and [`Ports::closed_to`] whether they may.
    pub(crate) fn closed(&self, port: PortId, counters: &mut Counters) -> Option<DropReason> {
        self.absent(port, counters).or_else(|| {
            let conduct = self.mode.conduct();
            let comes_in = conduct.forwards || conduct.sends && !self.management.is_empty();
            (!comes_in).then_some(DropReason::Mode)
        })
    }

    /// Why no packet from a port leaves by that port; none if it may.
    pub(crate) fn closed_to(
        &self,
        port: PortId,
        from: PortId,
        counters: &mut Counters,
    ) -> Option<DropReason> {
        self.absent(port, counters).or_else(|| {
            let conduct = self.mode.conduct();
            let manages = self.management.contains(&port) || self.management.contains(&from);
            let leaves = conduct.forwards || conduct.sends && manages;
            (!leaves).then_some(DropReason::Mode)
        })
    }

    /// Why there is no such port to be used.
    fn absent(&self, port: PortId, counters: &mut Counters) -> Option<DropReason> {
        // First, as asking for a port may open it.
        if self.disabled.contains(&port) {
            return Some(DropReason::PortDisabled);
        }
        (!self.exists(port, counters)).then_some(DropReason::UnknownPort)
    }

    /// Has the fast path send by a port, as far as the mode lets it.
    fn open(&self, port: PortId, counters: &mut Counters) {
        counters.add_port(port);
        if !self.mode.conduct().forwards {
            counters.close_port(port);
        }
    }

    fn exists(&self, port: PortId, counters: &mut Counters) -> bool {
        match &self.known {
            KnownPorts::Only(ports) => ports.contains(&port),
            KnownPorts::Any => {
                let exists = counters.has_port(port) || counters.port_count() < MAX_PORTS;
                if exists {
                    self.open(port, counters);
                }
                exists
            }
        }
    }
}
