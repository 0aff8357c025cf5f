//! How fast the AFDX programs of `programs/` police and forward: virtual links with an account each, both tests, frames of 64 bytes,
//! one core.
//!
//!     cargo bench -p millrace-bench --bench afdx
//!     cargo bench -p millrace-bench --bench afdx -- registers four
//!
//! A frame is copied first, as a receiver does, and what leaves is not sent. The clock is read once for each burst. Accounts hold
//! whatever the core can offer, so all frames pass, but for the rows `refused`, whose accounts are empty after the first frames. With
//! 256 VLs what a frame needs is in the caches, with 4096 it is not.

mod lab;

use lab::{compile, programs};
use millrace_bench::{Config, Report, measure};
use millrace_dataplane::{Clock, EngineKind, Switch, SwitchConfig};
use millrace_drivers::null::Trace;
use std::fmt::Write as _;
use std::sync::Arc;

const PROGRAMS: [&str; 2] = ["afdx", "afdx_registers"];
const VLS: [u32; 2] = [256, 4096];
const FRAMES: u32 = 1 << 15;
/// From one VL to that of the next frame: an odd number, so all come once, then again, in an order that no prefetcher foretells.
const STRIDE: u32 = 2531;
/// Without the frame check sequence.
const FRAME_BYTES: usize = 60;
/// Parts of the program that are told for each row.
const PARTS: usize = 4;

#[derive(Clone, Copy)]
struct Case {
    words: [&'static str; 2],
    ports: u64,
    /// Of an account. The shortest BAG that an account may have is 10 us: 100,000 frames a second of each VL.
    bag_ns: u64,
}

const CASES: [Case; 3] = [
    Case { words: ["one", "passes"], ports: 0x2, bag_ns: 10_000 },
    Case { words: ["four", "passes"], ports: 0x1e, bag_ns: 10_000 },
    Case { words: ["one", "refused"], ports: 0x2, bag_ns: 1_310_000_000 },
];

fn main() {
    // Cargo adds options of its own.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    println!(
        "Mpps in, of one core by its CPU time: median (least to largest) of five rounds; cycles a frame by part"
    );
    for (name, vls, case) in rows() {
        let of_case = [name.trim_start_matches("afdx_"), case.words[0], case.words[1]];
        if words.iter().all(|word| of_case.contains(&word.as_str())) {
            let Report { mpps, mpps_rounds, ns_per_frame, profile, .. } = run(name, vls, case);
            println!(
                "{name:14} {vls:4} VLs {:4} {:7} {mpps:>6.2} ({:.2} to {:.2}) {ns_per_frame:>6.1} ns{}",
                case.words[0],
                case.words[1],
                mpps_rounds.min,
                mpps_rounds.max,
                dearest(profile.iter().flat_map(|profile| &profile.cycles)),
            );
        }
    }
}

fn rows() -> impl Iterator<Item = (&'static str, u32, Case)> {
    let all = PROGRAMS.into_iter().flat_map(|name| VLS.map(|vls| (name, vls)));
    all.flat_map(|(name, vls)| CASES.map(|case| (name, vls, case)))
}

fn run(name: &str, vls: u32, case: Case) -> Report {
    let path = programs().join(format!("{name}.p4"));
    let source = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let config =
        SwitchConfig { engine: EngineKind::Fastest, clock: Clock::real(), ..SwitchConfig::default() };
    let mut switch = Switch::new(Arc::clone(&compile(&source).program), config).expect("a switch");
    millrace_control::entries::load(&mut switch, &entries(name, vls, case)).expect("entries");
    let config = Config { copy: true, profile: true, ..Config::default() };
    let report = measure(vec![switch], &trace(vls), &config).expect("a measurement");
    // The first pass: each account lets some frames pass.
    let copies = u64::from(case.ports.count_ones());
    let all = u64::from(FRAMES) * copies;
    match case.words[1] {
        "passes" => assert_eq!((report.forwarded, report.dropped), (all, 0)),
        _ => assert!(report.forwarded < all && report.dropped > 0),
    }
    report
}

fn dearest<'a>(parts: impl Iterator<Item = (&'a String, &'a f64)>) -> String {
    let mut parts: Vec<_> = parts.collect();
    parts.sort_by(|one, other| other.1.total_cmp(one.1));
    parts.iter().take(PARTS).map(|(part, cycles)| format!(", {part} {cycles:.0}")).collect()
}

/// Frames of all VLs.
fn trace(vls: u32) -> Trace {
    let mut trace = Trace::default();
    for number in 0..FRAMES {
        let vl = (number.wrapping_mul(STRIDE) % vls) as u16;
        let mut frame = [0; FRAME_BYTES];
        frame[..4].copy_from_slice(&[3, 0, 0, 0]);
        frame[4..6].copy_from_slice(&vl.to_be_bytes());
        frame[6] = 2;
        frame[12] = 8;
        trace.push(&frame).expect("a short trace");
    }
    trace
}

/// The entries of a switch whose VLs come in on port 0.
fn entries(program: &str, vls: u32, Case { ports, bag_ns, .. }: Case) -> String {
    let network =
        "table_set_default network set_prefix 0x03000000\ntable_set_default switch_mode set_mode 1\n";
    let mut text = network.to_owned();
    for vl in 0..vls {
        let line = match program {
            "afdx" => writeln!(
                text,
                "table_add vls forward 0 {vl} => {vl} {vl} 64 200 0x02 {ports:#x} 7\n\
                 account_set accounts {vl} {bag_ns}ns 500us 200 both"
            ),
            _ => writeln!(
                text,
                "table_add vls forward 0 {vl} => {vl} {vl} {bag_ns} 500000 1 1 64 200 0x02 {ports:#x} 7"
            ),
        };
        line.expect("text grows");
    }
    text
}
