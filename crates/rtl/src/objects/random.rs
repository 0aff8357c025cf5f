//! Random numbers between two ends: of several candidates the first that is between them.
//!
//! A candidate has as many random bits as the distance of the ends, so it is no more than twice that distance. When all of them are more,
//! the first less the number of values is taken. So each value comes with its share, or up to one part in 256 more. (The interpreter draws
//! until a candidate fits, which takes no fixed time; the numbers are others than here.)

use super::ObjectUnit;
use millrace_netlist::{Module, ModuleBuilder, NodeId};
use millrace_pipeline::Bits;
use millrace_state::Random;

/// Cycles from a request to its number.
pub(crate) const RANDOM_LATENCY: u32 = 5;

/// How many candidates a draw has.
const CANDIDATES: u32 = 8;

/// The bits of a generator.
pub(super) const GENERATOR: u32 = 64;

/// The generators of a port of that width.
pub(super) fn generators(width: u32) -> u32 {
    (CANDIDATES * width).div_ceil(GENERATOR)
}

impl ObjectUnit {
    /// A word of software is the state of a generator; 1 is taken for 0, which a generator would never leave.
    pub(super) fn random(&self, name: &str) -> Module {
        let mut m = ModuleBuilder::new(name);
        let enable = m.input("write_enable", 1);
        let address = m.input("write_address", self.address());
        let data = m.input("write_data", GENERATOR);
        let is_zero = m.is(data, 0);
        let one = m.number(GENERATOR, 1);
        let seed = m.mux(is_zero, one, data);
        let mut generator = 0;
        // Other numbers in each unit.
        let mut seeds =
            Random::new(name.bytes().fold(0, |sum: u64, byte| sum.wrapping_mul(31) + u64::from(byte)));
        for (number, inputs) in self.inputs.iter().enumerate() {
            m.input(&format!("slot{number}_enable"), 1);
            let [low, high] = [0, 1].map(|at| m.input(&format!("slot{number}_input{at}"), inputs[at]));
            let width = inputs[0].max(inputs[1]);
            let (low, high) = (m.resize(low, width), m.resize(high, width));
            let mut bits = Vec::new();
            for _ in 0..generators(width) {
                let here = m.is(address, generator.into());
                let written = m.and(enable, here);
                bits.push(state(&mut m, generator, seeds.next_u64() | 1, (written, seed)));
                generator += 1;
            }
            let bits = m.concat(&bits);
            let candidates: Vec<NodeId> =
                (0..CANDIDATES).map(|at| m.slice(bits, at * width, width)).collect();
            let answer = drawn(&mut m, number, (low, high), &candidates);
            m.output(&format!("slot{number}_answer"), answer);
        }
        m.finish()
    }
}

/// A generator (xorshift, Marsaglia), which goes on in each cycle.
fn state(m: &mut ModuleBuilder, number: u32, first: u64, (written, seed): (NodeId, NodeId)) -> NodeId {
    let (register, state) =
        m.register_with(&format!("generator{number}"), GENERATOR, Some(Bits::new(GENERATOR, first.into())));
    let next = xorshift(m, state);
    let next = m.mux(written, seed, next);
    m.set_next(register, next);
    state
}

/// What follows a state of a generator.
pub(crate) fn xorshift(m: &mut ModuleBuilder, state: NodeId) -> NodeId {
    let once = m.shl_by(state, 13);
    let state = m.xor(state, once);
    let twice = m.shr_by(state, 7);
    let state = m.xor(state, twice);
    let thrice = m.shl_by(state, 17);
    m.xor(state, thrice)
}

fn drawn(
    m: &mut ModuleBuilder,
    number: usize,
    (low, high): (NodeId, NodeId),
    candidates: &[NodeId],
) -> NodeId {
    let width = m.width(low);
    let keep =
        |m: &mut ModuleBuilder, what: &str, value| m.delayed(&format!("slot{number}_{what}"), value, None);
    let (low, high) = (keep(m, "low", low), keep(m, "high", high));
    let distance = m.sub(high, low);
    let is_empty = m.lt(high, low);
    let zero = m.number(width, 0);
    // Nothing is added to the low end where the high end is less.
    let distance = m.mux(is_empty, zero, distance);
    let (low, distance) = (keep(m, "low_2", low), keep(m, "distance", distance));
    // All bits from the highest one on.
    let mut mask = distance;
    let mut by = 1;
    while by < width {
        let moved = m.shr_by(mask, by);
        mask = m.or(mask, moved);
        by *= 2;
    }
    let (low, distance, mask) =
        (keep(m, "low_3", low), keep(m, "distance_2", distance), keep(m, "mask", mask));
    let mut choices = Vec::new();
    let mut last = None;
    for candidate in candidates {
        let candidate = m.and(*candidate, mask);
        let fits = m.le(candidate, distance);
        choices.push((fits, candidate));
        last.get_or_insert(candidate);
    }
    let first = last.unwrap_or(zero);
    let less = m.sub(first, distance);
    let one = m.number(width, 1);
    let less = m.sub(less, one);
    let chosen = choices.into_iter().rev().fold(less, |rest, (fits, candidate)| m.mux(fits, candidate, rest));
    let (low, chosen) = (keep(m, "low_4", low), keep(m, "chosen", chosen));
    let sum = m.add(low, chosen);
    keep(m, "answer", sum)
}

#[cfg(test)]
pub(super) mod tests {
    use crate::objects::{Kind, ObjectUnit};
    use crate::slots::Slot;
    use crate::stage::{ObjectKey, Unit};
    use millrace_netlist::{Design, Simulator};
    use millrace_pipeline::Bits;

    /// A unit with one port.
    pub(crate) fn unit(width: u32) -> ObjectUnit {
        let slot = Slot { unit: Unit::Random, cycle: 0, accesses: vec![0] };
        ObjectUnit {
            key: ObjectKey::Random,
            name: "numbers".into(),
            kind: Kind::Random { generators: super::generators(width) },
            slots: vec![slot],
            inputs: vec![vec![width, width]],
            wait: 0,
        }
    }

    fn simulator(width: u32) -> Simulator {
        let mut design = Design::new();
        design.add(unit(width).module("numbers"));
        millrace_netlist::verify(&design).unwrap();
        Simulator::new(&design).unwrap()
    }

    /// Numbers of so many cycles with the same ends.
    fn numbers(sim: &mut Simulator, width: u32, ends: (u128, u128), cycles: usize) -> Vec<u128> {
        let port = |sim: &Simulator, name: &str| sim.input(name).unwrap();
        let (low, high) = (port(sim, "slot0_input0"), port(sim, "slot0_input1"));
        sim.set(low, &Bits::new(width, ends.0));
        sim.set(high, &Bits::new(width, ends.1));
        let answer = sim.output("slot0_answer").unwrap();
        (0..super::RANDOM_LATENCY).for_each(|_| sim.step());
        let mut one = || {
            let found = sim.get(answer).to_u128().unwrap();
            sim.step();
            found
        };
        (0..cycles).map(|_| one()).collect()
    }

    #[test]
    fn numbers_are_between_their_ends_and_equally_often() {
        let mut sim = simulator(9);
        for (low, high) in [(0, 5), (100, 103), (0, 511), (250, 262), (7, 7), (500, 511)] {
            let count = (high - low + 1) as usize;
            let each = 400;
            let found = numbers(&mut sim, 9, (low, high), each * count);
            for value in low..=high {
                let times = found.iter().filter(|number| **number == value).count();
                assert!(
                    (each * 7 / 10..each * 13 / 10).contains(&times) || count == 1,
                    "{low}..{high}: {times}"
                );
            }
            assert!(found.iter().all(|number| (low..=high).contains(number)), "{low}..{high}");
        }
        // Nothing between: the low end.
        assert!(numbers(&mut sim, 9, (9, 8), 50).iter().all(|number| *number == 9));
    }

    #[test]
    fn wide_numbers_have_all_bits() {
        let mut sim = simulator(100);
        let found = numbers(&mut sim, 100, (0, (1 << 100) - 1), 400);
        for bit in 0..100 {
            let ones = found.iter().filter(|number| *number >> bit & 1 == 1).count();
            assert!((130..270).contains(&ones), "bit {bit}: {ones}");
        }
    }

    /// A seed of software begins the same numbers again; 0 is none.
    #[test]
    fn a_seed_begins_the_same_numbers() {
        let mut sim = simulator(16);
        let seed = |sim: &mut Simulator, word: u64| {
            for at in 0..super::generators(16) {
                for (name, value) in [("write_enable", 1), ("write_address", at.into()), ("write_data", word)]
                {
                    let port = sim.input(name).unwrap();
                    sim.set_u64(port, value);
                }
                sim.step();
            }
            let port = sim.input("write_enable").unwrap();
            sim.set_u64(port, 0);
            numbers(sim, 16, (0, 0xffff), 20)
        };
        let first = seed(&mut sim, 77);
        assert_eq!(seed(&mut sim, 77), first);
        assert_ne!(seed(&mut sim, 78), first);
        assert!(seed(&mut sim, 0).iter().any(|number| *number != 0));
    }
}
