//! What it costs to say where a frame goes, in nanoseconds.
//!
//! `cargo bench -p millrace-classifier --bench classify` measures each kind of rule with 1024 switches. Frames of 64 bytes lie
//! in slots of their own and belong to the switches in no order: 64 frames, a batch that something has just read and that is in
//! the first-level cache, and 4096, which are in the second. The best of 301 short pieces is told, and the median.
//! Words after `--` choose cases whose names have one of them.

use millrace_classifier::{Classifier, MaskedByte, Match, Rule, TagAction, Target, Verdict};
use std::hint::black_box;
use std::time::Instant;

const SWITCHES: u16 = 1024;
const BATCH: usize = 64;
const PIECES: usize = 301;
/// Frames of a piece: less than a time slice, so that most pieces run without a pause.
const FRAMES: usize = 1 << 16;
/// One line more than a power of two: else all frames would compete for few lines of the first-level cache.
const SLOT: usize = 2048 + 64;

/// Numbers in no order, the same each time (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// What is measured: rules and frames of one switch each.
struct Case {
    name: &'static str,
    rules: fn(u16) -> Match,
    /// Bytes of a frame of this switch, from its start.
    frame: fn(u16) -> Vec<u8>,
    id: bool,
}

fn mac(switch: u16) -> [u8; 6] {
    let [high, low] = switch.to_be_bytes();
    [2, 0x1b, 0x21, 0, high, low]
}

fn header(to: [u8; 6], tags: &[(u16, u16)]) -> Vec<u8> {
    let mut frame = [to, [2, 0, 0, 0, 0, 1]].concat();
    tags.iter().for_each(|(kind, id)| frame.extend([kind.to_be_bytes(), id.to_be_bytes()].concat()));
    frame.extend([0x08, 0]);
    frame
}

const CASES: [Case; 7] = [
    Case {
        name: "vlan",
        rules: |n| Match::Vlan(n + 1),
        frame: |n| header(mac(0), &[(0x8100, n + 1)]),
        id: false,
    },
    Case {
        name: "vlan and address, one VLAN",
        rules: |n| Match::VlanMac { vid: 5, mac: mac(n) },
        frame: |n| header(mac(n), &[(0x8100, 5)]),
        id: false,
    },
    Case {
        name: "vlan and address, 256 VLANs",
        rules: |n| Match::VlanMac { vid: n / 4 + 1, mac: mac(n) },
        frame: |n| header(mac(n), &[(0x8100, n / 4 + 1)]),
        id: false,
    },
    Case { name: "address", rules: |n| Match::Mac(mac(n)), frame: |n| header(mac(n), &[]), id: false },
    Case {
        name: "two tags",
        rules: |n| Match::QinQ { outer: n % 32 + 1, inner: n / 32 + 1 },
        frame: |n| header(mac(0), &[(0x88a8, n % 32 + 1), (0x8100, n / 32 + 1)]),
        id: false,
    },
    Case {
        name: "id of a program",
        rules: |n| Match::Id(n.into()),
        frame: |_| header(mac(0), &[]),
        id: true,
    },
    Case {
        name: "bytes, the last of 64 rules",
        // Rules of more ports than one: a port has at most 64 of these.
        rules: |n| Match::Bytes(vec![MaskedByte { offset: 40, value: n as u8, mask: 0xff }]),
        frame: |_| {
            let mut frame = header(mac(0), &[]);
            frame.resize(41, 63);
            frame
        },
        id: false,
    },
];

/// Classifies a batch, and says something of the result.
#[inline(never)]
fn classify(classifier: &Classifier, batch: &[u8], ids: &[Option<u32>]) -> u64 {
    let rules = classifier.port(3);
    let frames = batch.chunks_exact(SLOT).zip(ids);
    let verdicts = frames.map(|(slot, id)| rules.classify(&slot[..64], *id));
    verdicts.map(|verdict| if let Verdict::One(hit) = verdict { u64::from(hit.switch) } else { 0 }).sum()
}

/// Nanoseconds a frame, best and median, over frames in so many slots.
fn measure(case: &Case, slots: usize) -> (f64, f64) {
    let count = if case.name.starts_with("bytes") { 64 } else { SWITCHES };
    let rule = |switch| Rule {
        physical: 3,
        matches: (case.rules)(switch),
        target: Target { switch, port: 0 },
        tag: TagAction::Strip,
        flood: true,
    };
    let classifier = Classifier::new(&(0..count).map(rule).collect::<Vec<_>>()).expect("rules are right");
    let mut memory = vec![0; slots * SLOT];
    let mut numbers = Numbers(1);
    let mut ids = Vec::new();
    for slot in memory.chunks_mut(SLOT) {
        let switch = (numbers.next() >> 32) as u16 % count;
        let frame = (case.frame)(switch);
        slot[..frame.len()].copy_from_slice(&frame);
        ids.push(case.id.then_some(u32::from(switch)));
    }
    let mut results: Vec<f64> = (0..PIECES)
        .map(|_| {
            let before = Instant::now();
            let mut sum = 0u64;
            for _ in 0..FRAMES / slots {
                for (batch, ids) in black_box(&memory).chunks(BATCH * SLOT).zip(ids.chunks(BATCH)) {
                    sum += classify(&classifier, batch, ids);
                }
            }
            black_box(sum);
            before.elapsed().as_nanos() as f64 / FRAMES as f64
        })
        .collect();
    results.sort_by(f64::total_cmp);
    (results[0], results[PIECES / 2])
}

fn main() {
    let chosen: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let is_chosen =
        |case: &&Case| chosen.is_empty() || chosen.iter().any(|word| case.name.contains(word.as_str()));
    for case in CASES.iter().filter(is_chosen) {
        for slots in [64, 4096] {
            let (best, median) = measure(case, slots);
            println!("{:<30} {slots:>5} frames  {best:6.2} ns ({median:.2})", case.name);
        }
    }
}
