//! The ledger: what became of packets, counted for good and listed for whoever asked.

use crate::drops::Loss;
use crate::flight::Origin;
use crate::{Counters, Dropped, Outcome, PortId, Sent};

/// Counters since the start, and what happened since it was asked last.
#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) counters: Counters,
    pub(crate) outcome: Outcome,
}

impl Ledger {
    /// A packet leaves.
    pub(crate) fn sent(&mut self, port: PortId, origin: &Origin, bytes: Vec<u8>, time_ns: u64) {
        self.counters.sent(port, bytes.len());
        self.outcome.sent.push(Sent { port, service: origin.service, hops: origin.hops, bytes, time_ns });
    }

    /// A packet, or a copy, goes nowhere.
    pub(crate) fn dropped(&mut self, loss: Loss, origin: &Origin, egress_port: Option<PortId>) {
        self.counters.dropped(loss, Some(origin.port), egress_port);
        let Loss { reason, site } = loss;
        self.outcome.drops.push(Dropped { reason, ingress_port: origin.port, egress_port, site });
    }
}
