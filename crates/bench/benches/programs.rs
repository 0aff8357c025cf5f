//! How fast the programs of `programs/` take the frames of their own tests, by what becomes of a frame: sent once, sent more
//! than once or with a clone, or dropped.
//!
//!     cargo bench -p millrace-bench --bench programs
//!     cargo bench -p millrace-bench --bench programs -- nat dropped

mod lab;

use lab::{compile, frames, programs, switch};
use millrace_bench::{Config, measure};
use millrace_dataplane::{PortId, Switch};
use millrace_drivers::null::Trace;
use std::collections::BTreeMap;
use std::time::Duration;

const PROGRAMS: [&str; 7] =
    ["router", "l2_switch", "firewall", "nat", "l3_gateway_pppoe", "l3_gateway_vxlan", "l3_gateway_gtp"];

/// Frames of one trace: so many that bursts are full.
const FRAMES: usize = 1024;

/// What becomes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    Sent,
    Copied,
    Dropped,
}

const FATES: [(Fate, &str); 3] = [(Fate::Sent, "sent"), (Fate::Copied, "copied"), (Fate::Dropped, "dropped")];

fn main() {
    // Cargo adds options of its own.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_wanted = |one: &str, all: &[&str]| {
        let named = words.iter().filter(|word| all.contains(&word.as_str()));
        words.iter().any(|word| word == one) || named.count() == 0
    };
    println!("Mpps of one core by its CPU time, one copy: median (least to largest) of five rounds");
    for name in PROGRAMS.into_iter().filter(|name| is_wanted(name, &PROGRAMS)) {
        let read = |extension: &str| {
            let path = programs().join(format!("{name}.{extension}"));
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        let (pipeline, packets) = (compile(&read("p4")), frames(&read("stf")));
        // What is above a subscriber's rate would be dropped.
        let entries: String = read("entries")
            .lines()
            .filter(|line| !line.starts_with("meter_"))
            .flat_map(|line| [line, "\n"])
            .collect();
        let mut probe = switch(&pipeline, &entries);
        let mut by_fate: BTreeMap<(Fate, PortId), Vec<&[u8]>> = BTreeMap::new();
        for (port, frame) in &packets {
            by_fate.entry((fate(&mut probe, *port, frame), *port)).or_default().push(frame);
        }
        for (fate, word) in FATES {
            if !is_wanted(word, &FATES.map(|(_, word)| word)) {
                continue;
            }
            let of_fate = by_fate.iter().filter(|((own, _), _)| *own == fate);
            // Frames of one trace come in on one port.
            let Some(((_, port), frames)) = of_fate.max_by_key(|(_, frames)| frames.len()) else { continue };
            let mut trace = Trace::default();
            frames.iter().cycle().take(FRAMES).for_each(|frame| trace.push(frame).expect("a short trace"));
            let config =
                Config { copy: true, port: *port, round: Duration::from_millis(200), ..Config::default() };
            let report = measure(vec![switch(&pipeline, &entries)], &trace, &config).expect("a measurement");
            println!(
                "{name:18} {:8} {:>7.2} ({:.2} to {:.2}) {:>7.1} ns",
                word, report.mpps, report.mpps_rounds.min, report.mpps_rounds.max, report.ns_per_frame,
            );
        }
    }
}

fn fate(switch: &mut Switch, port: PortId, frame: &[u8]) -> Fate {
    let outcome = switch.inject(port, frame, 0);
    match (outcome.outputs().count(), outcome.drops.len()) {
        (0, _) => Fate::Dropped,
        (1, 0) => Fate::Sent,
        _ => Fate::Copied,
    }
}
