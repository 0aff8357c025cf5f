//! Frames at a line next to the rules as a list, without a pause between them.

use super::{Backplane, BackplaneOptions, Place, Rule};
use millrace_netlist::{SignalId, Simulator};
use millrace_pipeline::Bits;
use millrace_pipeline::arbitrary::Rng;
use std::collections::BTreeMap;

const SLOTS: u32 = 3;
const PORTS: u32 = 2;
/// Bytes of a frame.
const BYTES: usize = 64;

pub(super) fn write(sim: &mut Simulator, name: &str, address: u64, word: &Bits) {
    let port = |what: &str| sim.input(&format!("{name}_write_{what}")).unwrap();
    let (enable, at, data) = (port("enable"), port("address"), port("data"));
    sim.set_u64(enable, 1);
    sim.set_u64(at, address);
    sim.set(data, word);
    sim.step();
    sim.set_u64(enable, 0);
}

/// A rule that a part of the frames matches.
fn rule(rng: &mut Rng) -> Rule {
    let mac = |rng: &mut Rng| [2, 0, 0, 0, 0, rng.below(8) as u8];
    let place = Place { slot: rng.below(SLOTS as usize) as u32, port: rng.below(PORTS as usize) as u32 };
    // One of both counts at least, or no rule after this would.
    let (by_vlan, by_mac) = [(true, true), (true, true), (true, false), (false, true)][rng.below(4)];
    Rule {
        lines: rng.below(8) as u32,
        vlan: by_vlan.then(|| rng.below(24) as u16),
        destination: by_mac.then(|| mac(rng)),
        from: (rng.below(8) == 0).then_some(place),
        to: Place { slot: rng.below(SLOTS as usize) as u32, port: rng.below(PORTS as usize) as u32 },
    }
}

fn frame(rng: &mut Rng, number: u32) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, rng.below(9) as u8, 2, 0, 0, 0, 1, 0];
    // Some have a tag, some something else.
    let kind = if rng.below(4) > 0 { [0x81, 0x00] } else { [0x08, 0x00] };
    bytes.extend(kind);
    bytes.extend([rng.below(2) as u8 * 0x20, rng.below(26) as u8]);
    bytes.extend(number.to_be_bytes());
    bytes.resize(BYTES, 0);
    bytes
}

/// Where the first rule that matches sends a frame of line 0; the reference.
fn place(rules: &[Rule], frame: &[u8]) -> Option<Place> {
    let is_tagged = frame[12..14] == [0x81, 0x00];
    let vlan = u16::from_be_bytes([frame[14], frame[15]]) & 0xfff;
    let matches = |rule: &&Rule| {
        rule.lines & 1 != 0
            && rule.from.is_none()
            && rule.vlan.is_none_or(|wanted| is_tagged && wanted == vlan)
            && rule.destination.is_none_or(|wanted| wanted == frame[..6])
    };
    rules.iter().find(matches).map(|rule| rule.to)
}

/// The signals of a stream to a port of a slot: data, last, valid.
fn stream(sim: &mut Simulator, place: Place) -> [SignalId; 3] {
    let name = format!("slot{}_rx{}", place.slot, place.port);
    let ready = sim.input(&format!("{name}_tready")).unwrap();
    sim.set_u64(ready, 1);
    ["tdata", "tlast", "tvalid"].map(|what| sim.output(&format!("{name}_{what}")).unwrap())
}

fn frames_go_by_the_first_rule(width: u32, seed: u64) {
    let options = BackplaneOptions { slots: SLOTS, ports: PORTS, width };
    let mut design = Backplane::new(options).unwrap().design().clone();
    millrace_netlist::passes::optimize(&mut design);
    let mut sim = Simulator::new(&design).unwrap();
    let mut rng = Rng::new(seed);
    let rules: Vec<Rule> = (0..super::RULES).map(|_| rule(&mut rng)).collect();
    rules.iter().zip(0..).for_each(|(rule, at)| write(&mut sim, "rule", at, &rule.word(&options)));
    (0..SLOTS).for_each(|slot| write(&mut sim, "gate", slot.into(), &Bits::new(2, 0)));
    let places = (0..SLOTS).flat_map(|slot| (0..PORTS).map(move |port| Place { slot, port }));
    let outputs: Vec<(Place, [SignalId; 3])> = places.map(|place| (place, stream(&mut sim, place))).collect();
    let inputs =
        ["tdata", "tkeep", "tlast", "tuser", "tvalid"].map(|what| sim.input(&format!("rx0_{what}")).unwrap());
    let ready = sim.output("rx0_tready").unwrap();

    let frames: Vec<Vec<u8>> = (0..400).map(|number| frame(&mut rng, number)).collect();
    let of_beat = width as usize / 8;
    let beats: Vec<(&[u8], bool)> = (frames.iter())
        .flat_map(|frame| frame.chunks(of_beat).zip((1..=BYTES / of_beat).map(|at| at == BYTES / of_beat)))
        .collect();
    let [data, keep, last, user, valid] = inputs;
    sim.set(keep, &Bits::zero(of_beat as u32).bit_not());
    sim.set_u64(user, 0);
    let mut left: BTreeMap<Place, Vec<Vec<u8>>> = BTreeMap::new();
    let mut leaving: BTreeMap<Place, Vec<u8>> = BTreeMap::new();
    let mut at = 0;
    let begun = sim.cycle();
    let mut took = 0;
    while sim.cycle() < begun + beats.len() as u64 + 100 {
        sim.set_u64(valid, u64::from(at < beats.len()));
        if let Some((bytes, is_last)) = beats.get(at) {
            let word: Vec<u8> = bytes.iter().rev().copied().collect();
            sim.set(data, &Bits::from_bytes(width, &word));
            sim.set_u64(last, u64::from(*is_last));
            if sim.get_u64(ready) == 1 {
                (at, took) = (at + 1, sim.cycle() + 1 - begun);
            }
        }
        for (place, [data, last, valid]) in &outputs {
            if sim.get_u64(*valid) == 1 {
                let part = leaving.entry(*place).or_default();
                part.extend(sim.get(*data).to_bytes().iter().rev());
                if sim.get_u64(*last) == 1 {
                    left.entry(*place).or_default().push(std::mem::take(part));
                }
            }
        }
        sim.step();
    }
    assert_eq!(took, beats.len() as u64, "cycles for the beats of all frames");
    let mut wanted: BTreeMap<Place, Vec<Vec<u8>>> = BTreeMap::new();
    let mut unknown = 0;
    for frame in &frames {
        match place(&rules, frame) {
            Some(place) => wanted.entry(place).or_default().push(frame.clone()),
            None => unknown += 1,
        }
    }
    assert!(
        left == wanted,
        "{:?}",
        left.iter().map(|(place, frames)| (place, frames.len())).collect::<Vec<_>>()
    );
    let count = sim.output("rx0_unknown").unwrap();
    assert!(sim.get_u64(count) == unknown && unknown > 0 && wanted.len() > 3, "{unknown}");
}

#[test]
fn rules_count_in_their_order_at_the_full_rate() {
    for width in [64, 128, 256, 512] {
        (0..4).for_each(|seed| frames_go_by_the_first_rule(width, seed));
    }
}
