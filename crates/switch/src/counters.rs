//! What a switch counts: packets of each port, drops of each reason.

use crate::{DropReason, PortId};
use std::collections::BTreeMap;

/// Counters of one port as the switch sees it. Bytes are of whole frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Packets taken from the port.
    pub rx_packets: u64,
    /// Bytes taken from the port.
    pub rx_bytes: u64,
    /// Packets given to the port.
    pub tx_packets: u64,
    /// Bytes given to the port.
    pub tx_bytes: u64,
    /// Packets that came from the port and were dropped before they had a port to leave by.
    pub rx_drops: u64,
    /// Packets and copies for the port that were dropped.
    pub tx_drops: u64,
}

/// All counters of a switch since it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    ports: BTreeMap<PortId, PortCounters>,
    drops: BTreeMap<DropReason, u64>,
}

impl Counters {
    /// The counters of a port; all 0 for one that has seen nothing.
    pub fn port(&self, port: PortId) -> PortCounters {
        self.ports.get(&port).copied().unwrap_or_default()
    }

    /// The ports that have seen something, by number.
    pub fn ports(&self) -> impl Iterator<Item = (PortId, PortCounters)> {
        self.ports.iter().map(|(port, counters)| (*port, *counters))
    }

    /// Packets and copies dropped for a reason.
    pub fn drops(&self, reason: DropReason) -> u64 {
        self.drops.get(&reason).copied().unwrap_or(0)
    }

    /// The reasons that have dropped something.
    pub fn all_drops(&self) -> impl Iterator<Item = (DropReason, u64)> {
        self.drops.iter().map(|(reason, count)| (*reason, *count))
    }

    /// Makes room for a port, so that its counters show before it sees something.
    pub(crate) fn add_port(&mut self, port: PortId) {
        self.ports.entry(port).or_default();
    }

    pub(crate) fn has_port(&self, port: PortId) -> bool {
        self.ports.contains_key(&port)
    }

    pub(crate) fn port_count(&self) -> usize {
        self.ports.len()
    }

    pub(crate) fn received(&mut self, port: PortId, bytes: usize) {
        let counters = self.ports.entry(port).or_default();
        counters.rx_packets += 1;
        counters.rx_bytes += bytes as u64;
    }

    pub(crate) fn sent(&mut self, port: PortId, bytes: usize) {
        let counters = self.ports.entry(port).or_default();
        counters.tx_packets += 1;
        counters.tx_bytes += bytes as u64;
    }

    /// A packet that the port did not take was not sent after all.
    pub(crate) fn refused(&mut self, port: PortId, bytes: usize) {
        let counters = self.ports.entry(port).or_default();
        counters.tx_packets -= counters.tx_packets.min(1);
        counters.tx_bytes -= counters.tx_bytes.min(bytes as u64);
        self.dropped(DropReason::TxRefused, None, Some(port));
    }

    /// Counts a drop for the reason, and at the port where it was going, or else where it came from. Ports that do not
    /// exist have no counters.
    pub(crate) fn dropped(&mut self, reason: DropReason, from: Option<PortId>, to: Option<PortId>) {
        *self.drops.entry(reason).or_default() += 1;
        match (to.and_then(|port| self.ports.get_mut(&port)), from) {
            (Some(counters), _) => counters.tx_drops += 1,
            (None, Some(from)) => {
                if let Some(counters) = self.ports.get_mut(&from) {
                    counters.rx_drops += 1;
                }
            }
            (None, None) => {}
        }
    }
}
