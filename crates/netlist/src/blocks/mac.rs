//! What MACs of all links have in common: the address filter, the verdict about a frame, counters.

#[cfg(test)]
pub(super) mod monitor;
#[cfg(test)]
pub(super) mod taken;

use crate::*;

/// What a receiving half counts: frames that were given on, their bytes, and by length with the check sequence; those to all and to
/// many; what was wrong of others.
pub const RECEIVE_COUNTERS: [&str; 16] = [
    "frames",
    "octets",
    "length_64",
    "length_65_127",
    "length_128_255",
    "length_256_511",
    "length_512_1023",
    "length_1024_up",
    "broadcast",
    "multicast",
    "bad_check",
    "runt",
    "oversize",
    "bad_control",
    "bad_preamble",
    "filtered",
];

/// What a sending half counts: frames, their bytes with padding and check sequence, those that were marked as bad, and those whose
/// next beat was not there in time.
pub const TRANSMIT_COUNTERS: [&str; 4] = ["frames", "octets", "bad", "underrun"];

/// A counter of 32 bits at the output of that name, that many more with an event.
fn count(m: &mut ModuleBuilder, name: &str, event: NodeId, by: NodeId) {
    let (register, value) = m.register(&format!("{name}_count"), 32, Some(0));
    let by = m.resize(by, 32);
    let next = m.add(value, by);
    m.set_next(register, next);
    m.set_enable(register, event);
    m.output(name, value);
}

/// Whose a frame is: registers that its first bytes set.
pub(super) struct Addressed {
    /// The address filter takes it.
    pub(super) wanted: NodeId,
    many: NodeId,
    everyone: NodeId,
}

/// Looks at the destination, whose first byte is lowest, when `known` says so. Inputs of the module: `station` and `promiscuous`.
pub(super) fn filter(m: &mut ModuleBuilder, destination: NodeId, known: NodeId) -> Addressed {
    let (station, promiscuous) = (m.input("station", 48), m.input("promiscuous", 1));
    let bytes: Vec<NodeId> = (0..6).map(|at| m.slice(destination, at * 8, 8)).collect();
    let address = m.concat(&bytes);
    let own = m.eq(address, station);
    let group = m.bit(destination, 0);
    let all = m.reduce_and(address);
    let takes = m.any(&[own, group, promiscuous]);
    let mut kept = |name: &str, value: NodeId| m.kept(name, value, known, Some(0));
    Addressed { wanted: kept("wanted", takes), many: kept("many", group), everyone: kept("everyone", all) }
}

/// What is known at the end of a frame.
pub(super) struct End {
    pub(super) bad: NodeId,
    check: NodeId,
    short: NodeId,
    long: NodeId,
    broken: NodeId,
    length: NodeId,
}

impl End {
    /// Of a frame of so many bytes with its check sequence; whether that is wrong, and whether the link has broken the frame.
    pub(super) fn new(
        m: &mut ModuleBuilder,
        length: NodeId,
        (check, broken): (NodeId, NodeId),
        longest: u32,
    ) -> End {
        let (least, largest) = (m.number(16, 64), m.number(16, u128::from(longest.min(0xfff0))));
        let short = m.lt(length, least);
        let long = m.lt(largest, length);
        let bad = m.any(&[check, short, long, broken]);
        End { bad, check, short, long, broken, length }
    }

    /// A cycle later.
    pub(super) fn delayed(self, m: &mut ModuleBuilder) -> End {
        let mut later = |name: &str, value: NodeId| m.delayed(&format!("end_{name}"), value, None);
        End {
            bad: later("bad", self.bad),
            check: later("check", self.check),
            short: later("short", self.short),
            long: later("long", self.long),
            broken: later("broken", self.broken),
            length: later("length", self.length),
        }
    }
}

/// The bytes of a frame so far and some more; it stays at the largest number.
pub(super) fn longer(m: &mut ModuleBuilder, length: NodeId, bytes: NodeId) -> NodeId {
    let bytes = m.resize(bytes, 16);
    let now = m.add(length, bytes);
    let over = m.lt(now, length);
    let most = m.constant(Bits::ones(16));
    m.mux(over, most, now)
}

/// Counts what a receiving half has come to the end of: [`RECEIVE_COUNTERS`] as outputs. A frame is counted once: as good, or as what
/// is wrong with it first. `begun` says that it is long enough to have been given on, `odd` that what comes is no start of a frame.
pub(super) fn count_received(
    m: &mut ModuleBuilder,
    end: &End,
    of: &Addressed,
    (ended, begun, odd): (NodeId, NodeId, NodeId),
) {
    let started = m.and(ended, begun);
    let unwanted = m.not(of.wanted);
    let filtered = m.and(started, unwanted);
    let taken = m.and(started, of.wanted);
    let one = m.number(1, 1);
    let good = m.not(end.bad);
    let good = m.and(taken, good);
    count(m, "frames", good, one);
    count(m, "octets", good, end.length);
    let limits = [65u128, 128, 256, 512, 1024];
    let mut below = m.number(1, 0);
    let mut sizes = Vec::new();
    for limit in limits {
        let number = m.number(16, limit);
        let less = m.lt(end.length, number);
        let fresh = m.not(below);
        sizes.push(m.and(less, fresh));
        below = less;
    }
    // The largest size has no end.
    let smaller = m.any(&sizes);
    sizes.push(m.not(smaller));
    for (name, size) in RECEIVE_COUNTERS[2..8].iter().zip(sizes) {
        let event = m.and(good, size);
        count(m, name, event, one);
    }
    let single = m.not(of.everyone);
    let (broadcast, multicast) = (m.and(good, of.everyone), m.all(&[good, of.many, single]));
    count(m, "broadcast", broadcast, one);
    count(m, "multicast", multicast, one);
    let whole = m.not(end.broken);
    let control = m.and(ended, end.broken);
    let (short, long_enough) = (m.and(ended, end.short), m.not(end.short));
    let runt = m.and(short, whole);
    let oversize = m.all(&[ended, whole, end.long]);
    let inside = m.not(end.long);
    let check = m.all(&[ended, whole, long_enough, inside, end.check]);
    count(m, "bad_check", check, one);
    count(m, "runt", runt, one);
    count(m, "oversize", oversize, one);
    count(m, "bad_control", control, one);
    count(m, "bad_preamble", odd, one);
    let fine = m.not(end.bad);
    let filtered = m.and(filtered, fine);
    count(m, "filtered", filtered, one);
}

/// Counts what a sending half has sent: [`TRANSMIT_COUNTERS`] as outputs. A frame ends with `last`, after so many bytes with its check
/// sequence, or with `abort`.
pub(super) fn count_sent(
    m: &mut ModuleBuilder,
    (last, abort): (NodeId, NodeId),
    (octets, bad): (NodeId, NodeId),
) {
    let one = m.number(1, 1);
    let good = m.not(bad);
    let good = m.and(last, good);
    let wrong = m.and(last, bad);
    count(m, "frames", good, one);
    count(m, "octets", good, octets);
    count(m, "bad", wrong, one);
    count(m, "underrun", abort, one);
}

/// How many bytes a beat has, the first that is missing says: at least one.
pub(super) fn bytes_of(m: &mut ModuleBuilder, keep: NodeId) -> NodeId {
    let lanes = m.width(keep);
    let bits = address_width(lanes + 1);
    let choices: Vec<(NodeId, NodeId)> = (1..lanes)
        .map(|at| {
            let kept = m.bit(keep, at);
            (m.not(kept), m.number(bits, at.into()))
        })
        .collect();
    let all = m.number(bits, lanes.into());
    m.first(&choices, all)
}

/// A beat that is not there in time ends the frame; what comes of it later is taken and forgotten. Gives whether that happens in this
/// cycle.
pub(super) fn drain(
    m: &mut ModuleBuilder,
    (register, draining): (RegisterId, NodeId),
    takes: NodeId,
    (valid, last): (NodeId, NodeId),
) -> NodeId {
    let absent = m.not(valid);
    let abort = m.and(takes, absent);
    let ends_stream = m.and(valid, last);
    let drained = m.and(draining, ends_stream);
    let keeps = m.not(drained);
    let still = m.and(draining, keeps);
    let next_draining = m.or(abort, still);
    m.set_next(register, next_draining);
    abort
}

/// What tests of MACs share.
#[cfg(test)]
pub(super) mod frames {
    use crate::arbitrary::Rng;

    /// CRC-32 of IEEE 802.3, bit by bit.
    pub(in crate::blocks) fn check(bytes: &[u8]) -> [u8; 4] {
        let mut state = u32::MAX;
        for byte in bytes {
            state ^= u32::from(*byte);
            (0..8).for_each(|_| state = (state >> 1) ^ if state & 1 != 0 { 0xedb8_8320 } else { 0 });
        }
        (!state).to_le_bytes()
    }

    pub(in crate::blocks) fn random(rng: &mut Rng, length: usize) -> Vec<u8> {
        (0..length).map(|_| rng.next_u64() as u8).collect()
    }
}
