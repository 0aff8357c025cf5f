//! Whether a plan is sound.

use crate::credit::{Credit, CreditShaper};
use crate::error::PlanError;
use crate::gates::{GATES, GateList, Schedule};
use crate::plan::{
    Among, Asynchronous, CLASSES, Gated, Handle, Kind, MAX_BYTES, MAX_DEPTH, MAX_FRAME, MAX_NODES,
    MAX_OVERHEAD, MAX_PACKETS, MAX_QUANTUM, MAX_QUEUES, MAX_STREAMS, MAX_WEIGHT, Node, Port, Queue, Red,
};
use crate::setting::{MAX_BURST, MAX_RATE, SECOND, SettingError, wire_ns, within};
use std::collections::HashSet;

/// Longest time that a packet may be let wait before it is too old, and longest time to make up for.
const MAX_WAIT: u64 = 3600 * SECOND;
/// Largest exponent of the average of early discard.
const MAX_AVERAGE: u8 = 16;
/// Most 256ths of an alpha.
const MAX_ALPHA: u32 = 256 * 256;

/// What is known of a plan that is sound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) has_flows: bool,
    pub(crate) marks: bool,
    pub(crate) timed: bool,
    pub(crate) queues: usize,
    pub(crate) nodes: usize,
    pub(crate) packets: usize,
    pub(crate) shared: u64,
}

/// Where a node stands.
#[derive(Clone, Copy)]
struct Place {
    depth: usize,
    copies: u64,
    rate: u64,
}

struct Check<'p> {
    port: &'p Port,
    handles: HashSet<Handle>,
    taken: u8,
    facts: Facts,
    queues: u64,
    nodes: u64,
    packets: u64,
    reserved: u64,
    slopes: u64,
    streams: u64,
}

pub(crate) fn check(port: &Port, root: &Node) -> Result<Facts, PlanError> {
    check_port(port).map_err(PlanError::Port)?;
    let longest = port.longest;
    if port.bytes < u64::from(longest) {
        return Err(PlanError::RoomShort { at: None, bytes: port.bytes, longest });
    }
    let facts =
        Facts { has_flows: false, marks: false, timed: false, queues: 0, nodes: 0, packets: 0, shared: 0 };
    let mut check = Check {
        port,
        handles: HashSet::new(),
        taken: 0,
        facts,
        queues: 0,
        nodes: 0,
        packets: 0,
        reserved: 0,
        slopes: 0,
        streams: 0,
    };
    check.node(root, Place { depth: 1, copies: 1, rate: port.rate.unwrap_or(MAX_RATE) })?;
    if let Some(class) = (0..CLASSES as u8).find(|class| check.taken >> class & 1 == 0) {
        return Err(PlanError::ClassNowhere(class));
    }
    if check.reserved > port.bytes {
        return Err(PlanError::ReservedAbove { sum: check.reserved, bytes: port.bytes });
    }
    Ok(Facts {
        queues: check.queues as usize,
        nodes: check.nodes as usize,
        packets: check.packets.min(u64::from(port.packets)) as usize,
        shared: port.bytes - check.reserved,
        ..check.facts
    })
}

fn check_port(port: &Port) -> Result<(), SettingError> {
    if let Some(rate) = port.rate {
        within("rate", "bit/s", rate, 2..=MAX_RATE)?;
    }
    within("overhead", "bytes", port.overhead.into(), 0..=MAX_OVERHEAD.into())?;
    within("longest frame", "bytes", port.longest.into(), 1..=MAX_FRAME.into())?;
    within("buffer", "bytes", port.bytes, 1..=MAX_BYTES)?;
    within("buffer", "packets", port.packets.into(), 1..=MAX_PACKETS.into())?;
    within("overflow", "bytes", port.overflow, 0..=MAX_BYTES)?;
    within("time to make up for", "ns", port.catch_up_ns, 0..=MAX_WAIT)?;
    Ok(())
}

impl Check<'_> {
    /// Bytes of the longest frame on the wire.
    fn longest(&self) -> u32 {
        self.port.longest + self.port.overhead
    }

    fn node(&mut self, node: &Node, place: Place) -> Result<(), PlanError> {
        let at = node.handle;
        let wrong = |wrong| PlanError::Setting(at, wrong);
        if !self.handles.insert(at) {
            return Err(PlanError::Twice(at));
        }
        if place.depth > MAX_DEPTH {
            return Err(PlanError::TooDeep(at));
        }
        self.nodes += place.copies;
        if self.nodes > MAX_NODES as u64 {
            return Err(PlanError::TooManyNodes(self.nodes));
        }
        let below = Place { depth: place.depth + 1, ..place };
        match &node.kind {
            Kind::Queue(queue) => self.queue(at, queue, place),
            Kind::Priority(nodes) | Kind::RoundRobin(nodes) => self.below(at, nodes.iter(), below),
            Kind::Deficit(shares) => {
                shares.iter().try_for_each(|share| self.quantum(share.node.handle, share.share))?;
                self.below(at, shares.iter().map(|share| &share.node), below)
            }
            Kind::Fair(shares) => {
                shares.iter().try_for_each(|share| weight(share.node.handle, share.share))?;
                self.below(at, shares.iter().map(|share| &share.node), below)
            }
            Kind::Flows(flows) => {
                within("number of flows", "flows", flows.count.into(), 1..=MAX_QUEUES as u64)
                    .map_err(wrong)?;
                self.among(at, &flows.among, flows.count)?;
                self.facts.has_flows = true;
                let copies = place.copies * u64::from(flows.count);
                self.node(&flows.each, Place { copies, ..below })
            }
            Kind::Shaper { rate, burst, node } => {
                self.rates(at, *rate, *burst, place)?;
                self.node(node, Place { rate: *rate, ..below })
            }
            Kind::Credit { idle_slope, hi_credit, lo_credit, node } => {
                let port_rate = self.port.rate.ok_or(PlanError::NoRate(at))?;
                let (idle_slope, overhead) = (*idle_slope, self.port.overhead);
                let (hi_credit, lo_credit) = (*hi_credit, *lo_credit);
                let credit = Credit { idle_slope, port_rate, hi_credit, lo_credit, overhead };
                CreditShaper::new(credit, 0).map_err(wrong)?;
                self.slopes = self.slopes.saturating_add(idle_slope.saturating_mul(place.copies));
                if self.slopes > port_rate {
                    return Err(PlanError::SlopesAbove { at, sum: self.slopes, limit: port_rate });
                }
                self.facts.timed = true;
                self.node(node, below)
            }
            Kind::Gates { list, gated, .. } => {
                self.gates(at, list, gated)?;
                self.below(at, gated.iter().map(|gated| &gated.node), below)
            }
        }
    }

    fn below<'n>(
        &mut self,
        at: Handle,
        mut nodes: impl ExactSizeIterator<Item = &'n Node>,
        place: Place,
    ) -> Result<(), PlanError> {
        match nodes.len() {
            0 => Err(PlanError::Childless(at)),
            _ => nodes.try_for_each(|node| self.node(node, place)),
        }
    }

    fn quantum(&self, at: Handle, quantum: u32) -> Result<(), PlanError> {
        let longest = self.longest();
        if quantum < longest {
            return Err(PlanError::QuantumShort { at, quantum, longest });
        }
        within("quantum", "bytes", quantum.into(), 1..=MAX_QUANTUM.into())
            .map_err(|wrong| PlanError::Setting(at, wrong))?;
        Ok(())
    }

    fn among(&self, at: Handle, among: &Among, copies: u32) -> Result<(), PlanError> {
        let enough = |is: usize| match is == 1 || is == copies as usize {
            true => Ok(()),
            false => Err(PlanError::Shares { at, is, copies }),
        };
        match among {
            Among::Priority | Among::RoundRobin => Ok(()),
            Among::Deficit(quanta) => {
                enough(quanta.len())?;
                quanta.iter().try_for_each(|quantum| self.quantum(at, *quantum))
            }
            Among::Fair(weights) => {
                enough(weights.len())?;
                weights.iter().try_for_each(|share| weight(at, *share))
            }
        }
    }

    /// A rate with a burst, of a shaper or of a stream.
    fn rates(&mut self, at: Handle, rate: u64, burst: u64, place: Place) -> Result<(), PlanError> {
        let wrong = |wrong| PlanError::Setting(at, wrong);
        within("rate", "bit/s", rate, 1..=MAX_RATE).map_err(wrong)?;
        within("burst", "bytes", burst, 1..=MAX_BURST).map_err(wrong)?;
        if rate > place.rate {
            return Err(PlanError::RateAbove { at, rate, limit: place.rate });
        }
        let longest = self.longest();
        if burst < u64::from(longest) {
            return Err(PlanError::BurstShort { at, burst, longest });
        }
        self.facts.timed = true;
        Ok(())
    }

    fn gates(&mut self, at: Handle, list: &GateList, gated: &[Gated]) -> Result<(), PlanError> {
        let rate = self.port.rate.ok_or(PlanError::NoRate(at))?;
        let schedule = Schedule::new(list.clone()).map_err(|wrong| PlanError::Setting(at, wrong))?;
        let frame_ns = wire_ns(self.longest().into(), rate);
        for Gated { gate, node } in gated {
            let (at, gate) = (node.handle, *gate);
            within("gate", "", gate.into(), 0..=GATES as u64 - 1)
                .map_err(|wrong| PlanError::Setting(at, wrong))?;
            let window_ns = schedule.longest_ns(gate.into());
            match window_ns {
                0 => return Err(PlanError::NeverOpens { at, gate }),
                _ if window_ns < frame_ns => {
                    return Err(PlanError::WindowShort { at, gate, window_ns, frame_ns });
                }
                _ => {}
            }
        }
        self.facts.timed = true;
        Ok(())
    }

    fn queue(&mut self, at: Handle, queue: &Queue, place: Place) -> Result<(), PlanError> {
        let wrong = |wrong| PlanError::Setting(at, wrong);
        self.queues += place.copies;
        if self.queues > MAX_QUEUES as u64 {
            return Err(PlanError::TooManyQueues(self.queues));
        }
        if queue.classes == 0 {
            return Err(PlanError::Unreached(at));
        }
        if self.taken & queue.classes != 0 {
            return Err(PlanError::ClassTwice(at, (self.taken & queue.classes).trailing_zeros() as u8));
        }
        self.taken |= queue.classes;
        within("limit", "packets", queue.packets.into(), 1..=MAX_PACKETS.into()).map_err(wrong)?;
        within("limit", "bytes", queue.bytes, 1..=MAX_BYTES).map_err(wrong)?;
        let longest = self.port.longest;
        if queue.bytes < u64::from(longest) {
            return Err(PlanError::RoomShort { at: Some(at), bytes: queue.bytes, longest });
        }
        within("reservation", "bytes", queue.reserved, 0..=MAX_BYTES).map_err(wrong)?;
        within("overflow", "bytes", queue.overflow, 0..=self.port.overflow).map_err(wrong)?;
        if let Some(alpha) = queue.alpha {
            within("alpha", "256ths", alpha.into(), 1..=MAX_ALPHA.into()).map_err(wrong)?;
        }
        if let Some(age) = queue.age_ns {
            within("largest age", "ns", age, 1..=MAX_WAIT).map_err(wrong)?;
        }
        if let Some(red) = &queue.red {
            self.red(at, red)?;
        }
        if let Some(asynchronous) = &queue.asynchronous {
            self.asynchronous(at, asynchronous, place)?;
        }
        self.packets = self.packets.saturating_add(u64::from(queue.packets) * place.copies);
        self.reserved = self.reserved.saturating_add(queue.reserved.saturating_mul(place.copies));
        Ok(())
    }

    fn red(&mut self, at: Handle, red: &Red) -> Result<(), PlanError> {
        let wrong = |wrong| PlanError::Setting(at, wrong);
        within("average", "", red.average.into(), 0..=MAX_AVERAGE.into()).map_err(wrong)?;
        let mut taken = 0;
        for curve in &red.curves {
            if curve.min >= curve.max || curve.classes & taken != 0 {
                return Err(PlanError::Curve(at));
            }
            taken |= curve.classes;
            within("maximum", "bytes", curve.max, 1..=MAX_BYTES).map_err(wrong)?;
            within("probability", "millionths", curve.probability.into(), 1..=1_000_000).map_err(wrong)?;
            self.facts.marks |= curve.ecn;
        }
        Ok(())
    }

    fn asynchronous(&mut self, at: Handle, shaping: &Asynchronous, place: Place) -> Result<(), PlanError> {
        let wrong = |wrong| PlanError::Setting(at, wrong);
        self.rates(at, shaping.rate, shaping.burst, place)?;
        within("largest residence time", "ns", shaping.residence_ns, 1..=crate::asynchronous::MAX_RESIDENCE)
            .map_err(wrong)?;
        self.streams = self.streams.saturating_add(u64::from(shaping.streams) * place.copies);
        within("number of streams", "streams", shaping.streams.into(), 1..=MAX_STREAMS).map_err(wrong)?;
        within("number of streams of the port", "streams", self.streams, 1..=MAX_STREAMS).map_err(wrong)?;
        within("number of groups", "groups", shaping.groups.into(), 1..=shaping.streams.into())
            .map_err(wrong)?;
        Ok(())
    }
}

fn weight(at: Handle, weight: u32) -> Result<(), PlanError> {
    within("weight", "", weight.into(), 1..=MAX_WEIGHT.into())
        .map_err(|wrong| PlanError::Setting(at, wrong))?;
    Ok(())
}
