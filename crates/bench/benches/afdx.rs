//! How fast the AFDX programs of `programs/` police and forward: 4096 virtual links with an account each, both tests, frames of 64
//! bytes, one core.
//!
//!     cargo bench -p millrace-bench --bench afdx
//!     cargo bench -p millrace-bench --bench afdx -- registers one
//!
//! A frame is copied first, as a receiver does, and what leaves is not sent. Accounts hold whatever the core can offer, so all
//! frames pass, but for the rows `refused`, whose accounts are empty after the first frames. The published switch program (P4_14,
//! bmv2) has 2.2 Mpps on a server.

mod lab;

use lab::{compile, programs};
use millrace_bench::{Config, measure};
use millrace_dataplane::{Clock, EngineKind, Switch, SwitchConfig};
use millrace_drivers::null::Trace;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

const VLS: u32 = 4096;
/// Frames of the trace, VL after VL in an order that no prefetcher foretells.
const FRAMES: u32 = 1 << 15;
/// An odd number next to 2^12 by the golden ratio: all VLs come once, then again.
const STRIDE: u32 = 2531;
/// Without the frame check sequence.
const FRAME_BYTES: usize = 60;

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
        "{VLS} VLs, {} bytes; Mpps in, of one core by its CPU time: median (least to largest) of five rounds",
        FRAME_BYTES + 4
    );
    let trace = trace();
    for name in ["afdx", "afdx_registers"] {
        let path = programs().join(format!("{name}.p4"));
        let source =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let pipeline = compile(&source);
        for case in CASES {
            let of_case = [name.trim_start_matches("afdx_"), case.words[0], case.words[1]];
            if !words.iter().all(|word| of_case.contains(&word.as_str())) {
                continue;
            }
            let clocked =
                SwitchConfig { engine: EngineKind::Fastest, clock: Clock::real(), ..SwitchConfig::default() };
            let mut switch = Switch::new(Arc::clone(&pipeline.program), clocked).expect("a switch");
            millrace_control::entries::load(&mut switch, &entries(name, case)).expect("entries");
            let config =
                Config { copy: true, round: Duration::from_millis(300), profile: true, ..Config::default() };
            let report = measure(vec![switch], &trace, &config).expect("a measurement");
            println!(
                "{name:16} {:5} {:8} {:>7.2} ({:.2} to {:.2}) {:>7.1} ns, {} forwarded, {} dropped, repeatable {}, {:?}",
                case.words[0],
                case.words[1],
                report.mpps,
                report.mpps_rounds.min,
                report.mpps_rounds.max,
                report.ns_per_frame,
                report.forwarded,
                report.dropped,
                report.repeatable,
                report.drops
            );
            let mut parts: Vec<_> = report.profile.iter().flat_map(|profile| &profile.cycles).collect();
            parts.sort_by(|a, b| b.1.total_cmp(a.1));
            for (part, cycles) in parts.iter().take(12) {
                println!("    {cycles:>6.1} cycles {part}");
            }
        }
    }
}

/// Frames of all VLs.
fn trace() -> Trace {
    let mut trace = Trace::default();
    for number in 0..FRAMES {
        let vl = (number.wrapping_mul(STRIDE) % VLS) as u16;
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
fn entries(program: &str, case: Case) -> String {
    let mut text = String::from(
        "table_set_default network set_prefix 0x03000000\ntable_set_default switch_mode set_mode 1\n",
    );
    let Case { ports, bag_ns, .. } = case;
    for vl in 0..VLS {
        let line = match program {
            "afdx" => write!(
                text,
                "table_add vls forward 0 {vl} => {vl} {vl} 64 200 0x02 {ports:#x} 7\naccount_set accounts {vl} {bag_ns}ns 500us 200 both\n"
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
