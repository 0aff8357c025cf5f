//! How much of each output port its virtual links take, and the output jitter of end systems.

use crate::graph::{Graph, Tree};
use crate::model::{Network, Vl};
use std::fmt;

/// Binary digits after the point of a rate here. With the standard's gaps, which are 2^k times 0.5 ms with k up to 8, every rate is a
/// whole number of 2^-8 bit/s, so nothing is rounded.
const DIGITS: u32 = 32;

/// What virtual links send by a port, between two numbers that are as far apart as rounding makes them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Virtual links.
    pub vls: u32,
    low: u128,
    high: u128,
}

impl Load {
    /// Adds a virtual link whose frames take so many bits of the wire.
    fn add(&mut self, bits: u64, bag: u64) {
        let scaled = (u128::from(bits) * 1_000_000_000) << DIGITS;
        self.vls += 1;
        self.low += scaled / u128::from(bag);
        self.high += scaled.div_ceil(u128::from(bag));
    }

    /// Whether it is more than a rate.
    pub fn exceeds(&self, rate: u64) -> bool {
        self.low > u128::from(rate) << DIGITS
    }

    /// In bit/s, rounded up.
    pub fn bits_per_second(&self) -> u64 {
        u64::try_from(self.high.div_ceil(1 << DIGITS)).unwrap_or(u64::MAX)
    }

    /// The part of a rate, in parts per million, rounded up.
    pub fn share(&self, rate: u64) -> u64 {
        let whole = u128::from(rate.max(1)) << DIGITS;
        u64::try_from((self.high * 1_000_000).div_ceil(whole)).unwrap_or(u64::MAX)
    }
}

/// Parts per million as percent.
#[derive(Clone, Copy, Debug)]
pub struct Percent(pub u64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hundredths = self.0.div_ceil(100);
        write!(f, "{}.{:02} %", hundredths / 100, hundredths % 100)
    }
}

/// Bits that the longest frame of a virtual link takes on the wire.
pub fn frame_bits(vl: &Vl, overhead: u32) -> u64 {
    (u64::from(vl.lmax) + u64::from(overhead)) * 8
}

/// How long some bits take at a rate, in nanoseconds, rounded up.
pub fn time_of(bits: u64, rate: u64) -> u64 {
    let time = (u128::from(bits) * 1_000_000_000).div_ceil(u128::from(rate.max(1)));
    u64::try_from(time).unwrap_or(u64::MAX)
}

/// The load of each port.
pub fn loads(network: &Network, graph: &Graph, trees: &[Tree]) -> Vec<Load> {
    let mut loads = vec![Load::default(); graph.ports.len()];
    for tree in trees {
        let vl = &network.vls[tree.vl];
        for hop in &tree.hops {
            loads[hop.port as usize].add(frame_bits(vl, network.overhead), vl.bag);
        }
    }
    loads
}

/// The output jitter of each port of an end system by the standard's formula: its technological jitter, and the longest frame of
/// each of its virtual links once. None of a port that is not an end system's or sends nothing.
pub fn output_jitters(network: &Network, graph: &Graph, trees: &[Tree]) -> Vec<Option<u64>> {
    let mut bits: Vec<Option<u64>> = vec![None; graph.ports.len()];
    for tree in trees {
        if let Some(hop) = tree.hops.first() {
            *bits[hop.port as usize].get_or_insert(0) += frame_bits(&network.vls[tree.vl], network.overhead);
        }
    }
    let jitter = |(port, bits): (usize, Option<u64>)| {
        let port = &graph.ports[port];
        let base = network.end_systems.get(port.node as usize)?.technological_jitter;
        Some(base.saturating_add(time_of(bits?, port.rate)))
    };
    bits.into_iter().enumerate().map(jitter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_is_full_is_not_over_it() {
        // 1230 bytes and 20 on the wire are 10,000 bits: a hundred such in 10 ms are 100 Mbit/s.
        let mut load = Load::default();
        (0..100).for_each(|_| load.add(10_000, 10_000_000));
        assert!(!load.exceeds(100_000_000));
        assert_eq!((load.bits_per_second(), load.share(100_000_000)), (100_000_000, 1_000_000));
        load.add(1, 1_310_000_000);
        assert!(load.exceeds(100_000_000));
        assert_eq!(Percent(load.share(100_000_000)).to_string(), "100.01 %");
    }

    #[test]
    fn gaps_that_divide_no_second_are_rounded_outwards() {
        let mut load = Load::default();
        (0..3).for_each(|_| load.add(1, 3_000_000_000));
        assert_eq!(load.bits_per_second(), 2);
        assert!(!load.exceeds(1));
    }
}
