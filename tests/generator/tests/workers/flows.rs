//! Flows of packets, and what becomes of them.

use millrace_dataplane::{Counters, Outcome, PortId, Spread};
use millrace_pipeline::arbitrary::Rng;
use std::collections::BTreeMap;

/// Packets that have to stay in their order.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) number: u8,
    /// The port that they come in on.
    pub(crate) port: PortId,
    pub(crate) packets: Vec<Vec<u8>>,
}

/// Flows whose packets go to different workers, up to so many of these.
pub(crate) const FLOWS: usize = 8;
/// Packets like each of a program.
const LIKE: usize = 4;

/// How a label begins and ends.
const SIGN: ([u8; 3], [u8; 2]) = ([0xa5, 0x5a, 0xc3], [0x3c, 0x99]);

/// A packet with its flow and its number at the end, where programs leave the payload.
pub(crate) fn labelled(packet: &[u8], flow: u8, number: u16) -> Vec<u8> {
    let number = number.to_be_bytes();
    [packet, &SIGN.0, &[flow], &number, &SIGN.1].concat()
}

/// Flow and number of a packet that still has its label.
pub(crate) fn label(packet: &[u8]) -> Option<(u8, u16)> {
    let [a, b, c, flow, high, low, y, z] = *packet.last_chunk()?;
    let is_label = ([a, b, c], [y, z]) == SIGN;
    is_label.then_some((flow, u16::from_be_bytes([high, low])))
}

/// The packets and packets like them, as one flow.
pub(crate) fn one(packets: &[Vec<u8>]) -> Vec<Flow> {
    let labelled = packets.iter().enumerate().map(|(at, packet)| labelled(packet, 0, at as u16));
    vec![Flow { number: 0, port: 1, packets: labelled.collect() }]
}

/// The packets and packets like them, by their hash: a switch that spreads frames over up to so many workers keeps these flows apart.
pub(crate) fn by_hash(seed: u64, packets: &[Vec<u8>]) -> Vec<Flow> {
    let mut rng = Rng::new(seed ^ 0xf10e);
    let flow = |number| Flow { number: number as u8, port: number as PortId % 3, packets: Vec::new() };
    let mut flows: Vec<Flow> = (0..FLOWS).map(flow).collect();
    for like in 0..LIKE * packets.len() {
        let mut packet = packets[like % packets.len()].clone();
        if like >= packets.len() && !packet.is_empty() {
            let at = rng.below(packet.len().min(12));
            packet[at] = rng.next_u64() as u8;
        }
        // A short packet has some of the label where others have their addresses.
        let hash = |frame: &[u8]| (u64::from(Spread::Symmetric.hash(frame)) * FLOWS as u64) >> 32;
        let frames = (0..FLOWS as u8).map(|flow| (flow, labelled(&packet, flow, like as u16)));
        if let Some((flow, frame)) = frames.into_iter().find(|(flow, frame)| hash(frame) == u64::from(*flow))
        {
            flows[usize::from(flow)].packets.push(frame);
        }
    }
    flows
}

/// What became of packets.
#[derive(Debug, Default)]
pub(crate) struct Made {
    /// What left, in order.
    pub(crate) sent: Vec<(PortId, Vec<u8>)>,
    pub(crate) messages: Vec<String>,
}

/// What left by a port, of each flow, in order; without a flow: what has lost its label.
type ByFlow<'m> = BTreeMap<(Option<u8>, PortId), Vec<&'m [u8]>>;

impl Made {
    pub(crate) fn add(&mut self, outcome: Outcome) {
        self.sent.extend(outcome.outputs().map(|(port, bytes)| (port, bytes.to_vec())));
        self.messages.extend(outcome.digests.iter().map(|message| format!("{message:?}")));
        self.messages.extend(outcome.log);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    pub(crate) fn by_flow(&self) -> ByFlow<'_> {
        let mut flows = ByFlow::new();
        for (port, bytes) in &self.sent {
            let flow = label(bytes).map(|(flow, _)| flow);
            flows.entry((flow, *port)).or_default().push(bytes);
        }
        // These have no order that can be told.
        let unknown = flows.iter_mut().filter(|((flow, _), _)| flow.is_none());
        unknown.for_each(|(_, packets)| packets.sort_unstable());
        flows
    }

    /// Whether it is the same for each flow; messages come in any order.
    pub(crate) fn check(&self, wanted: &Made, case: &str, source: &str) {
        let (found, wanted_flows) = (self.by_flow(), wanted.by_flow());
        for key in wanted_flows.keys().chain(found.keys()) {
            assert_eq!(found.get(key), wanted_flows.get(key), "{case}: flow and port {key:?}\n{source}");
        }
        let sorted = |made: &Made| {
            let mut messages = made.messages.clone();
            messages.sort_unstable();
            messages
        };
        assert_eq!(sorted(self), sorted(wanted), "{case}: messages\n{source}");
    }
}

/// Ports and drops have counted the same.
pub(crate) fn same_counts(wanted: &Counters, found: &Counters, case: &str) {
    let ports = |counters: &Counters| counters.ports().collect::<Vec<_>>();
    assert_eq!(ports(found), ports(wanted), "{case}");
    let drops =
        |counters: &Counters| counters.all_drops().filter(|(_, count)| *count > 0).collect::<Vec<_>>();
    assert_eq!(drops(found), drops(wanted), "{case}");
}
