//! Writes an STF test for `programs/es_receive.p4`: random frames of random virtual links, and what this crate says of each.
//!
//!     cargo run -p millrace-afdx --example es_receive_stf 1 > random.stf
//!     millrace stf programs/es_receive.p4 random.stf
//!
//! `tests/afdx/es_receive` does that for many seeds with both engines.

use millrace_afdx::{
    Bag, Discard, EndSystem, EndSystemConfig, EndSystemId, IntegrityRule, LineRate, Network, Networks, Order,
    Previous, ReceiveVl, RedundancyRule, Verdict, VlId, next_number,
};
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;

/// Frames of STF tests come a millisecond apart; `wait` is a second.
const APART_NS: u64 = 1_000_000;
const WAIT_NS: u64 = 1_000_000_000;
const VLS: u64 = 3;
const FRAMES: usize = 400;
const HOST: u32 = 2;
/// The reasons of the program are the first of the library, in the same order.
const REASONS: &[Discard] = Discard::ALL.split_at(10).0;

/// xorshift64 (Marsaglia).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

/// A virtual link as the library has it, and as the entry of the program.
fn vl(
    random: &mut Random,
    number: u64,
    checks_interface: bool,
) -> Result<(ReceiveVl, String), Box<dyn Error>> {
    // Large, so that any SkewMax is allowed.
    let bag = Bag::from_ns(128_000_000)?;
    let lmax = if random.one_in(2) { 1518 } else { 64 + random.below(300) };
    let networks = if random.one_in(5) { 1 + random.below(2) } else { 3 };
    let (window, skew_ms) = (1 + random.below(4), random.below(12));
    let has_integrity = !random.one_in(6);
    let has_redundancy = !random.one_in(6);
    let (accepts_reset, after_valid, keeps_order) = (!random.one_in(3), random.one_in(3), random.one_in(2));
    let mut integrity = IntegrityRule::default().with_window(window as u8)?;
    integrity.previous = if after_valid { Previous::Valid } else { Previous::Received };
    integrity.accepts_reset = accepts_reset;
    let mut redundancy = RedundancyRule::new(skew_ms * APART_NS, bag)?;
    redundancy.order = if keeps_order { Order::Increasing } else { Order::Any };
    let made = ReceiveVl {
        id: VlId(number as u16),
        bag,
        lmax,
        networks: match networks {
            1 => Networks::One(Network::A),
            2 => Networks::One(Network::B),
            _ => Networks::Both,
        },
        integrity: has_integrity.then_some(integrity),
        redundancy: has_redundancy.then_some(redundancy),
    };
    let flags = [has_integrity, has_redundancy, accepts_reset, after_valid, keeps_order, checks_interface];
    let rules = flags.iter().enumerate().map(|(bit, flag)| u8::from(*flag) << bit).sum::<u8>();
    let skew_us = skew_ms * 1000;
    let entry = format!(
        "table_add vls receive {number} => {number} {lmax} {networks} {window} {skew_us} {rules} {HOST}"
    );
    Ok((made, entry))
}

/// A frame of the virtual link, mostly the next one, or a copy of one of the last ones.
fn frame(random: &mut Random, vl: u64, network: Network, newest: &mut u8) -> Vec<u8> {
    let number = match random.below(10) {
        0 => 0,
        1 => random.below(256) as u8,
        2..5 => newest.wrapping_sub(random.below(4) as u8),
        steps => (5..steps).fold(*newest, |number, _| next_number(number)),
    };
    *newest = number;
    let length = if random.one_in(12) { 19 + random.below(1580) } else { 64 };
    let swaps = random.one_in(40);
    let interface = if (network == Network::B) != swaps { 0x40 } else { 0x20 };
    let prefix = if random.one_in(50) { 1 } else { 0 };
    let header = [3, 0, 0, prefix, 0, vl as u8, 2, 0, 0, 0, 1, interface, 8, 0];
    let mut frame = vec![0; (length - 4) as usize];
    frame[..14].copy_from_slice(&header);
    if let Some(last) = frame.last_mut() {
        *last = number;
    }
    frame
}

fn main() -> Result<(), Box<dyn Error>> {
    let seed = std::env::args().nth(1).map_or(Ok(1), |seed| seed.parse::<u64>())?;
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let checks_interface = random.one_in(2);
    let mut config = EndSystemConfig::new(EndSystemId(1), LineRate::from_bps(100_000_000)?);
    config.checks_interface = checks_interface;
    let mut test = format!("# Random frames, seed {seed}\n");
    test += "table_add lines set_network 0 => 0 0x20\ntable_add lines set_network 1 => 1 0x40\n";
    for number in 0..VLS {
        let (made, entry) = vl(&mut random, number, checks_interface)?;
        config.receives.push(made);
        writeln!(test, "{entry}")?;
    }
    let mut es = EndSystem::new(&config)?;
    let (mut now_ns, mut newest, mut dropped) = (0, [0u8; VLS as usize + 1], BTreeMap::new());
    for _ in 0..FRAMES {
        if random.one_in(30) {
            test += "wait\n";
            now_ns += WAIT_NS;
        }
        let network = if random.one_in(2) { Network::B } else { Network::A };
        // The last one is not received.
        let count = VLS + u64::from(random.one_in(10));
        let vl = random.below(count);
        let frame = frame(&mut random, vl, network, &mut newest[vl as usize]);
        let hex: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(test, "packet {} {hex}", network.index())?;
        let verdict = es.receiver.receive(now_ns, network, &frame);
        now_ns += APART_NS;
        let reason = REASONS.iter().position(|reason| verdict == Verdict::Dropped(*reason));
        match reason {
            Some(reason) => *dropped.entry(network.index() * 16 + reason).or_insert(0u64) += 1,
            // It passed redundancy management; what IP has to say comes later.
            None => writeln!(test, "expect {HOST} {hex} $")?,
        }
    }
    for (cell, count) in dropped {
        writeln!(test, "check_counter network_drops({cell}) packets == {count}")?;
    }
    print!("{test}");
    Ok(())
}
