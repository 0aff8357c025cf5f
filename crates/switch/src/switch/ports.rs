//! The ports that a switch knows.

use super::{MAX_PORTS, Switch, SwitchError};
use crate::{Clock, PortId};
use std::collections::BTreeSet;

/// The ports that exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KnownPorts {
    /// The first [`MAX_PORTS`] numbers that packets come from or go to.
    Any,
    /// These. Packets from and to other ports are dropped.
    Only(BTreeSet<PortId>),
}

impl Switch {
    /// Gives it the ports that it knows from now on, and the clock that they go by.
    pub(crate) fn connect(&mut self, ports: BTreeSet<PortId>, clock: Clock) -> Result<(), SwitchError> {
        if ports.len() > MAX_PORTS {
            return Err(SwitchError::TooManyPorts(ports.len()));
        }
        ports.iter().for_each(|port| self.counters.add_port(*port));
        self.ports = KnownPorts::Only(ports);
        self.now_ns = clock.now_ns();
        self.clock = clock;
        Ok(())
    }

    /// Knows a port from now on.
    pub(crate) fn add_port(&mut self, port: PortId) {
        if let KnownPorts::Only(ports) = &mut self.ports {
            ports.insert(port);
        }
        self.counters.add_port(port);
    }

    /// Does not know a port any more: packets from it and to it are dropped. What was counted of it stays.
    pub(crate) fn remove_port(&mut self, port: PortId) {
        if let KnownPorts::Only(ports) = &mut self.ports {
            ports.remove(&port);
        }
        self.counters.close_port(port);
    }

    pub(crate) fn port_exists(&mut self, port: PortId) -> bool {
        match &self.ports {
            KnownPorts::Only(ports) => ports.contains(&port),
            KnownPorts::Any => {
                let exists = self.counters.has_port(port) || self.counters.port_count() < MAX_PORTS;
                if exists {
                    self.counters.add_port(port);
                }
                exists
            }
        }
    }
}
