//! What many switches on one thread cost: packets sent by a chassis of 1 to 1024 instances of a program, next to the switch alone.
//!
//!     cargo bench -p millrace-bench --bench chassis [-- PROGRAM | INSTANCES ...]
//!
//! The frames of a trace come in by one port of the machine, those of one instance after those of the others, packet by packet (uniform), or
//! three of four for the first instance in eight (skewed). Each instance has a VLAN, whose tag it does not see; a chassis of one has the ports
//! whole. Rates are by the CPU time of the thread that forwards. Ratios are medians of rounds that alternate with the switch alone.

mod lab;

use lab::running::{Running, median, thread_named, time_of};
use lab::{capture, compile, files, frames, switch};
use millrace_backplane::{
    Backplane, DEFAULT_HOPS, ExitShare, ExitTo, MemberHandle, MemberSetting, Route, Setting,
};
use millrace_chassis::Pipeline;
use millrace_classifier::{Match, Priority, Rule, TagAction, Target};
use millrace_dataplane::{PortId, Worker};
use millrace_drivers::QueuePair;
use millrace_drivers::null::NullPort;
use millrace_frames::SlotLayout;
use std::time::Duration;

const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_millis(200);
const WARM_UP: Duration = Duration::from_millis(100);
/// Ports of each switch; frames come in by the first.
const PORTS: u16 = 4;
const INSTANCES: [usize; 5] = [1, 16, 64, 256, 1024];

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let numbers: Vec<usize> = wanted.iter().filter_map(|word| word.parse().ok()).collect();
    let names: Vec<&String> = wanted.iter().filter(|word| word.parse::<usize>().is_err()).collect();
    println!(
        "Mpps of packets sent by CPU time, medians of {ROUNDS} rounds that alternate with the switch alone"
    );
    println!(
        "{:12} {:>9} {:>8} {:>9} {:>9} {:>9}",
        "program", "instances", "traffic", "alone", "chassis", "ratio"
    );
    for name in ["l2_switch", "router", "firewall"] {
        if !names.is_empty() && !names.iter().any(|wanted| *wanted == name) {
            continue;
        }
        let (source, entries, packets) = files(name);
        let pipeline = compile(&source);
        let all: Vec<Vec<u8>> =
            frames(&packets).into_iter().filter(|(port, _)| *port == 0).map(|(_, frame)| frame).collect();
        for instances in INSTANCES.into_iter().filter(|count| numbers.is_empty() || numbers.contains(count)) {
            for skewed in [false, true] {
                if skewed && instances == 1 {
                    continue;
                }
                let (mut alone, mut together, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
                // As many frames for both, so that they miss the cache as often.
                let trace = capture(&interleave(&all, instances, skewed, false));
                let mixed = if instances == 1 {
                    trace.clone()
                } else {
                    capture(&interleave(&all, instances, skewed, true))
                };
                for _ in 0..ROUNDS {
                    let one = run_alone(&pipeline, &entries, &trace);
                    let many = run_chassis(&pipeline, &entries, &mixed, instances);
                    ratios.push(many / one);
                    alone.push(one);
                    together.push(many);
                }
                let traffic = if skewed { "skewed" } else { "uniform" };
                let (alone, together, ratio) = (median(alone), median(together), median(ratios));
                println!("{name:12} {instances:>9} {traffic:>8} {alone:>9.2} {together:>9.2} {ratio:>9.3}");
                let _ = std::fs::remove_file(&mixed);
                let _ = std::fs::remove_file(&trace);
            }
        }
    }
}

/// Frames of all instances, each with the tag of its instance, if they have some.
fn interleave(frames: &[Vec<u8>], instances: usize, skewed: bool, tags: bool) -> Vec<Vec<u8>> {
    let count = (instances * frames.len()).max(1 << 14).next_multiple_of(instances);
    let instance_of = |number: usize| match skewed && !number.is_multiple_of(4) {
        true => number % (instances / 8).max(1),
        false => number % instances,
    };
    let tagged = |number: usize| {
        let frame = &frames[number / instances % frames.len()];
        if !tags {
            return frame.clone();
        }
        let vid = instance_of(number) as u16 + 1;
        [&frame[..12], &[0x81, 0], &vid.to_be_bytes(), &frame[12..]].concat()
    };
    (0..count).map(tagged).collect()
}

fn pairs(trace: &std::path::Path) -> Vec<(PortId, Box<dyn QueuePair>)> {
    let pair = |port: u16| {
        let pair = NullPort::open(if port == 0 { trace.to_str().expect("a path") } else { "-" });
        (PortId::from(port), Box::new(pair.expect("a trace")) as Box<dyn QueuePair>)
    };
    (0..PORTS).map(pair).collect()
}

fn run_alone(pipeline: &Pipeline, entries: &str, trace: &std::path::Path) -> f64 {
    let mut switch = switch(pipeline, entries);
    switch.use_best_code().expect("the best code");
    let worker = Worker::new(switch, pairs(trace)).unwrap_or_else(|error| panic!("{error}"));
    let running = Running::start(worker, 1);
    let sent = |running: &Running| {
        let report = running.control.report(Duration::from_secs(10)).expect("a report");
        report.ports.iter().map(|port| port.counters.tx_packets).sum::<u64>()
    };
    std::thread::sleep(WARM_UP);
    let (before, sent_before) = (running.now(), sent(&running));
    std::thread::sleep(ROUND);
    let (after, sent_after) = (running.now(), sent(&running));
    running.stop();
    (sent_after - sent_before) as f64 / (after[0].1 - before[0].1).as_secs_f64() / 1e6
}

fn run_chassis(pipeline: &Pipeline, entries: &str, trace: &std::path::Path, instances: usize) -> f64 {
    let layout = SlotLayout { size: 2112, ..SlotLayout::DEFAULT };
    let setting = Setting { lanes: 1, processors: Vec::new(), packets: 1 << 16, layout, hops: DEFAULT_HOPS };
    let backplane = Backplane::start(&setting).unwrap_or_else(|error| panic!("{error}"));
    for (number, pair) in pairs(trace) {
        backplane.add_physical(0, number as u16, pair).expect("a lane");
    }
    let (mut members, mut routes) = (Vec::<MemberHandle>::new(), Vec::new());
    for instance in 0..instances {
        let mut switch = switch(pipeline, entries);
        switch.use_best_code().expect("the best code");
        let ports = (0..PORTS).map(PortId::from).collect();
        let setting = MemberSetting { ports, places: 1024, ..MemberSetting::default() };
        let member = backplane.add_member(0, switch, &setting).unwrap_or_else(|error| panic!("{error}"));
        for (physical, wire) in (0..PORTS).zip(member.wires.clone()) {
            let (matches, tag) = match instances {
                1 => (Match::Whole, TagAction::Keep),
                _ => (Match::Vlan(instance as u16 + 1), TagAction::Strip),
            };
            let rule = Rule {
                physical,
                matches: matches.clone(),
                target: Target { switch: 0, port: 0 },
                tag,
                flood: false,
            };
            let tags = rule.tags_out(Priority::default()).unwrap_or_default();
            let to = ExitTo { lane: 0, physical, share: ExitShare::default(), tags };
            backplane.connect(&wire, &[to]).expect("a lane");
            routes.push(Route { physical, matches, tag, flood: false, wire });
        }
        members.push(member);
    }
    backplane.set_routes(&routes).unwrap_or_else(|error| panic!("{error}"));
    let thread = thread_named("lane 0");
    let sent = || {
        let report = backplane.statistics().expect("a lane");
        report.ports.iter().map(|(_, port)| port.tx_packets).sum::<u64>()
    };
    std::thread::sleep(WARM_UP);
    let (before, sent_before) = (time_of(thread), sent());
    std::thread::sleep(ROUND);
    let (after, sent_after) = (time_of(thread), sent());
    (sent_after - sent_before) as f64 / (after - before).as_secs_f64() / 1e6
}
