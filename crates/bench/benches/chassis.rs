//! What many switches on one thread cost: packets sent by a chassis of 1 to 1024 instances of a program, next to the switch alone; the
//! memory of an instance that has nothing to do; and how long many instances take to start.
//!
//!     cargo bench -p millrace-bench --bench chassis [-- PROGRAM | INSTANCES | rates | memory | start | counted | skewed | bytes=N ...]
//!
//! **Rates.** The frames of a trace come in by one port of the machine, those of one instance after those of the others, packet by packet
//! (uniform), or three of four for the first instance in eight (skewed). They are frames that the program forwards, each to one port: what
//! it drops would tell how fast packets go back to their pool, and what it floods how fast they are copied. Each instance meets them in the
//! order in which the switch alone does. Each has a VLAN, whose tag it does not see; a chassis of one has the ports whole. Rates are
//! by the CPU time of the thread that forwards. Ratios are medians of rounds that alternate with the switch alone. With `bytes=1518`, which
//! may be said several times, frames have so many bytes, with their check sequence; otherwise they are as the program's test has them.
//!
//! `l2_router` is two switches an instance: a layer-2 switch that sends to a router by a link inside. Alone is then what both take one after the
//! other, each alone.
//!
//! **Memory.** What the process grows by for each instance, with its entries, in a chassis with its wires connected.
//!
//! **Counted.** Only if it is asked for: a chassis gets a fixed number of frames, uniform or `skewed`, and ends when it has sent them. Its lane
//! sleeps before and after, so what an instruction counter says of the lane's thread is the work for these frames, the same in each run but for
//! what depends on the time that passes:
//!
//!     valgrind --tool=callgrind --cache-sim=yes --LL=1048576,16,64 --collect-atstart=no \
//!         --toggle-collect='*Lane*round*' BINARY --bench counted l2_switch 256
//!
//! **Start.** From the bytes of an image for each instance until all of them run, without controllers; the code is what a switch starts with.

mod lab;

use lab::running::{Running, median, thread_named, time_of};
use lab::{capture, compile, files, frames, image, resident, switch};
use millrace_backplane::{
    Backplane, DEFAULT_HOPS, Emulation, ExitShare, ExitTo, MemberHandle, MemberSetting, Route, Setting,
};
use millrace_chassis::{Making, Pipeline};
use millrace_classifier::{Match, Priority, Rule, TagAction, Target};
use millrace_dataplane::{Cancel, EngineKind, PortId, Switch, SwitchConfig, Worker};
use millrace_drivers::QueuePair;
use millrace_drivers::null::NullPort;
use millrace_frames::SlotLayout;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_millis(200);
const WARM_UP: Duration = Duration::from_millis(150);
/// How long a thread is waited for that other work on the machine keeps from its processor.
const PATIENCE: Duration = Duration::from_secs(20);
/// Frames that are counted, at least, and how long none is sent after the last of them, also next to a tool that counts.
const COUNTED: usize = 1 << 17;
const IDLE: Duration = Duration::from_millis(500);
/// Ports of each switch; frames come in by the first.
const PORTS: u16 = 4;
const INSTANCES: [usize; 5] = [1, 16, 64, 256, 1024];

/// Instances whose memory is measured together, and those that are started.
const MEASURED: usize = 256;
const STARTED: usize = 1024;
const PROGRAMS: [&str; 3] = ["l2_switch", "router", "firewall"];
/// A layer-2 switch and a router; the port of the first that is linked to port 0 of the second.
const LINKED: &str = "l2_router";
const LINK: PortId = 3;
const CHECK_SEQUENCE: usize = 4;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_wanted = |words: &[&str], word: &str| {
        let any = wanted.iter().any(|wanted| words.contains(&wanted.as_str()));
        !any || wanted.iter().any(|wanted| wanted == word)
    };
    let modes = ["rates", "memory", "start", "counted"];
    let all = [&PROGRAMS[..], &[LINKED]].concat();
    let named: Vec<&str> = all.iter().copied().filter(|name| is_wanted(&all, name)).collect();
    let names: Vec<&str> = named.iter().copied().filter(|name| *name != LINKED).collect();
    let bytes: Vec<usize> =
        wanted.iter().filter_map(|word| word.strip_prefix("bytes=")?.parse().ok()).collect();
    let numbers: Vec<usize> = wanted.iter().filter_map(|word| word.parse().ok()).collect();
    let is_number = |count| numbers.is_empty() || numbers.contains(&count);
    if wanted.iter().any(|wanted| wanted == "counted") {
        counted(&names, is_number, wanted.iter().any(|wanted| wanted == "skewed"));
    }
    if is_wanted(&modes, "rates") {
        rates(&named, &bytes, is_number);
    }
    if is_wanted(&modes, "memory") {
        println!("\nKiB of an instance that has nothing to do, of {MEASURED} in a chassis");
        for name in &names {
            println!("{name:12} {:>9.0}", memory_of(name) / 1024.0);
        }
    }
    if is_wanted(&modes, "start") {
        println!("\nseconds until {STARTED} instances run, from their images");
        for name in &names {
            println!("{name:12} {:>9.2}", start_of(name).as_secs_f64());
        }
    }
}

/// The switches of an instance, the second linked to the first, and the frames that come for them.
struct Case {
    stages: Vec<(Pipeline, String)>,
    frames: Vec<Vec<u8>>,
}

impl Case {
    /// With frames of so many bytes; none: as they are.
    fn new(name: &str, bytes: Option<usize>) -> Case {
        let (source, entries, packets) = files(if name == LINKED { "router" } else { name });
        let pipeline = compile(&source);
        let mut frames = padded(frames(&packets), bytes);
        if name != LINKED {
            let frames = forwarded(&pipeline, &entries, frames, |_| true);
            return Case { stages: vec![(pipeline, entries)], frames };
        }
        // What leaves the router by its port 0 would go back over the link.
        frames = forwarded(&pipeline, &entries, frames, |port| port > 0)
            .into_iter()
            .map(|frame| (0, frame))
            .collect();
        let (source, ..) = files("l2_switch");
        let address =
            |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<String>>().join(":");
        let entries_of = |(_, frame): &(PortId, Vec<u8>)| {
            let (to, from) = (address(&frame[..6]), address(&frame[6..12]));
            [format!("table_add dmac forward {to} => {LINK}"), format!("table_add smac NoAction {from} =>")]
        };
        let lines: BTreeSet<String> = frames.iter().flat_map(entries_of).collect();
        let layer_2 = lines.into_iter().collect::<Vec<String>>().join("\n");
        let frames = frames.into_iter().map(|(_, frame)| frame).collect();
        Case { stages: vec![(compile(&source), layer_2), (pipeline, entries)], frames }
    }

    /// Packets in a microsecond of the switches alone.
    fn alone(&self, trace: &std::path::Path) -> f64 {
        let times = self.stages.iter().map(|(pipeline, entries)| 1.0 / run_alone(pipeline, entries, trace));
        1.0 / times.sum::<f64>()
    }
}

/// Frames with zeros after them.
fn padded(frames: Vec<(PortId, Vec<u8>)>, bytes: Option<usize>) -> Vec<(PortId, Vec<u8>)> {
    let pad = |(port, mut frame): (PortId, Vec<u8>)| {
        let length = bytes.map_or(0, |bytes| bytes.saturating_sub(CHECK_SEQUENCE));
        frame.resize(frame.len().max(length), 0);
        (port, frame)
    };
    frames.into_iter().map(pad).collect()
}

fn rates(names: &[&str], bytes: &[usize], is_wanted: impl Fn(usize) -> bool) {
    println!(
        "Mpps of packets sent by CPU time, medians of {ROUNDS} rounds that alternate with the switch alone"
    );
    println!(
        "{:12} {:>6} {:>9} {:>8} {:>9} {:>9} {:>9}",
        "program", "bytes", "instances", "traffic", "alone", "chassis", "ratio"
    );
    let sizes = if bytes.is_empty() { vec![None] } else { bytes.iter().copied().map(Some).collect() };
    for (name, bytes) in names.iter().flat_map(|name| sizes.iter().map(move |bytes| (name, *bytes))) {
        let case = Case::new(name, bytes);
        for instances in INSTANCES.into_iter().filter(|count| is_wanted(*count)) {
            for skewed in [false, true] {
                if skewed && instances == 1 {
                    continue;
                }
                let (mut alone, mut together, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
                // As many frames for both, so that they miss the cache as often.
                let trace = capture(&interleave(&case.frames, instances, skewed, false));
                let mixed = if instances == 1 {
                    trace.clone()
                } else {
                    capture(&interleave(&case.frames, instances, skewed, true))
                };
                for _ in 0..ROUNDS {
                    let one = case.alone(&trace);
                    let many = run_chassis(&case, &mixed, instances);
                    ratios.push(many / one);
                    alone.push(one);
                    together.push(many);
                }
                let traffic = if skewed { "skewed" } else { "uniform" };
                let size = bytes.map_or("test".to_owned(), |bytes| bytes.to_string());
                let (alone, together, ratio) = (median(alone), median(together), median(ratios));
                println!(
                    "{name:12} {size:>6} {instances:>9} {traffic:>8} {alone:>9.2} {together:>9.2} {ratio:>9.3}"
                );
                let _ = std::fs::remove_file(&mixed);
                let _ = std::fs::remove_file(&trace);
            }
        }
    }
}

/// Sends a fixed number of frames through chassis.
fn counted(names: &[&str], is_wanted: impl Fn(usize) -> bool, skewed: bool) {
    for name in names {
        let case = Case::new(name, None);
        for instances in INSTANCES.into_iter().filter(|count| is_wanted(*count)) {
            let frames = interleave(&case.frames, instances, skewed && instances > 1, instances > 1);
            let (trace, passes) = (capture(&frames), COUNTED / frames.len() + 1);
            let (backplane, _members, routes) = chassis_of(&case, instances);
            connect(&backplane, &routes, pairs(&trace, &format!(",passes={passes}")));
            let (mut sent, mut before) = (sent_by(&backplane), 0);
            while sent == 0 || sent > before {
                std::thread::sleep(IDLE);
                (before, sent) = (sent, sent_by(&backplane));
            }
            println!("{name:12} {instances:>9} instances: {sent} of {} frames", passes * frames.len());
            let _ = std::fs::remove_file(&trace);
        }
    }
}

/// The frames that come in by the first port and that the program forwards to one such port, whatever came before.
fn forwarded(
    pipeline: &Pipeline,
    entries: &str,
    frames: Vec<(PortId, Vec<u8>)>,
    to: impl Fn(PortId) -> bool,
) -> Vec<Vec<u8>> {
    let mut switch = switch(pipeline, entries);
    let mut is_forwarded = |frame: &[u8]| {
        let outputs: Vec<PortId> = switch.inject(0, frame, 0).outputs().map(|(port, _)| port).collect();
        matches!(outputs[..], [port] if port < PortId::from(PORTS) && to(port))
    };
    let frames = frames.into_iter().filter(|(port, _)| *port == 0).map(|(_, frame)| frame);
    frames.filter(|frame| is_forwarded(frame) && is_forwarded(frame)).collect()
}

/// Frames of all instances, each with the tag of its instance, if they have some; each instance gets them in their order. Without tags they
/// are as many in their order, for the switch alone.
fn interleave(frames: &[Vec<u8>], instances: usize, skewed: bool, tags: bool) -> Vec<Vec<u8>> {
    let count = (instances * frames.len()).max(1 << 14).next_multiple_of(instances * frames.len());
    let instance_of = |number: usize| match skewed && !number.is_multiple_of(4) {
        true => number % (instances / 8).max(1),
        false => number % instances,
    };
    let mut next = vec![0; instances];
    let mut tagged = |number: usize| {
        if !tags {
            return frames[number % frames.len()].clone();
        }
        let instance = instance_of(number);
        let frame = &frames[next[instance] % frames.len()];
        next[instance] += 1;
        [&frame[..12], &[0x81, 0], &(instance as u16 + 1).to_be_bytes(), &frame[12..]].concat()
    };
    (0..count).map(&mut tagged).collect()
}

/// Ports of which the first brings a trace, and the words after it say how often; others end as soon as it does.
fn pairs(trace: &std::path::Path, words: &str) -> Vec<(PortId, Box<dyn QueuePair>)> {
    let pair = |port: u16| {
        let path = if port == 0 { trace.to_str().expect("a path") } else { "-" };
        let pair = NullPort::open(&format!("{path}{words}"));
        (PortId::from(port), Box::new(pair.expect("a trace")) as Box<dyn QueuePair>)
    };
    (0..PORTS).map(pair).collect()
}

/// Waits until a thread has had so much more of its processor: what is only at the start is over then.
fn let_it_run(thread: i32, time: Duration) {
    let (begun, wanted) = (Instant::now(), time_of(thread) + time);
    while time_of(thread) < wanted && begun.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn run_alone(pipeline: &Pipeline, entries: &str, trace: &std::path::Path) -> f64 {
    let mut switch = switch(pipeline, entries);
    switch.use_best_code().expect("the best code");
    let worker = Worker::new(switch, pairs(trace, "")).unwrap_or_else(|error| panic!("{error}"));
    let running = Running::start(worker, 1);
    let sent = |running: &Running| {
        let report = running.control.report(Duration::from_secs(10)).expect("a report");
        report.ports.iter().map(|port| port.counters.tx_packets).sum::<u64>()
    };
    let thread = thread_named("worker 0");
    let_it_run(thread, WARM_UP);
    let (before, sent_before) = (running.now(), sent(&running));
    let_it_run(thread, ROUND);
    let (after, sent_after) = (running.now(), sent(&running));
    running.stop();
    (sent_after - sent_before) as f64 / (after[0].1 - before[0].1).as_secs_f64() / 1e6
}

/// A chassis without switches and without ports.
fn chassis() -> Backplane {
    let layout = SlotLayout { size: 2112, ..SlotLayout::DEFAULT };
    let setting = Setting { lanes: 1, processors: Vec::new(), packets: 1 << 16, layout, hops: DEFAULT_HOPS };
    Backplane::start(&setting).unwrap_or_else(|error| panic!("{error}"))
}

/// Has frames go to the switches, and come from now on.
fn connect(backplane: &Backplane, routes: &[Route], ports: Vec<(PortId, Box<dyn QueuePair>)>) {
    backplane.set_routes(routes).unwrap_or_else(|error| panic!("{error}"));
    for (number, pair) in ports {
        backplane.add_physical(0, number as u16, pair).expect("a lane");
    }
}

/// Adds a switch with its wires connected; alone it has the ports whole.
fn add(
    backplane: &Backplane,
    (switch, instance, alone): (Switch, usize, bool),
    routes: &mut Vec<Route>,
) -> MemberHandle {
    let ports = (0..PORTS).map(PortId::from).collect();
    let setting = MemberSetting { ports, places: 1024, ..MemberSetting::default() };
    let member = backplane.add_member(0, switch, &setting).unwrap_or_else(|error| panic!("{error}"));
    for (physical, wire) in (0..PORTS).zip(member.wires.clone()) {
        let (matches, tag) = match alone {
            true => (Match::Whole, TagAction::Keep),
            false => (Match::Vlan(instance as u16 + 1), TagAction::Strip),
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
    member
}

/// A chassis with so many instances, their routes not in use yet.
fn chassis_of(case: &Case, instances: usize) -> (Backplane, Vec<MemberHandle>, Vec<Route>) {
    let backplane = chassis();
    let (mut members, mut routes): (Vec<MemberHandle>, Vec<Route>) = Default::default();
    for instance in 0..instances {
        for (number, (pipeline, entries)) in case.stages.iter().enumerate() {
            let mut switch = switch(pipeline, entries);
            switch.use_best_code().expect("the best code");
            let mut of_stage = Vec::new();
            let member = add(&backplane, (switch, instance, instances == 1), &mut of_stage);
            if number > 0 {
                let wire = |of: &MemberHandle, port| Arc::clone(of.wire(port).expect("a port"));
                let (from, to) = (wire(&members[members.len() - 1], LINK), wire(&member, 0));
                backplane.link(&from, &to, Emulation::default());
            }
            // Frames come for the first.
            if number == 0 {
                routes.extend(of_stage);
            }
            members.push(member);
        }
    }
    (backplane, members, routes)
}

/// Packets that the ports of the machine have sent.
fn sent_by(backplane: &Backplane) -> u64 {
    let report = backplane.statistics().expect("a lane");
    report.ports.iter().map(|(_, port)| port.tx_packets).sum()
}

fn run_chassis(case: &Case, trace: &std::path::Path, instances: usize) -> f64 {
    let (backplane, _members, routes) = chassis_of(case, instances);
    connect(&backplane, &routes, pairs(trace, ""));
    let thread = thread_named("lane 0");
    let_it_run(thread, WARM_UP);
    let (before, sent_before) = (time_of(thread), sent_by(&backplane));
    let_it_run(thread, ROUND);
    let (after, sent_after) = (time_of(thread), sent_by(&backplane));
    (sent_after - sent_before) as f64 / (after - before).as_secs_f64() / 1e6
}

/// Ports of the machine on which nothing comes.
fn quiet_pairs() -> Vec<(PortId, Box<dyn QueuePair>)> {
    let pair = |port: u16| {
        let pair = NullPort::open("-").expect("a port");
        (PortId::from(port), Box::new(pair) as Box<dyn QueuePair>)
    };
    (0..PORTS).map(pair).collect()
}

/// Bytes of an instance.
fn memory_of(name: &str) -> f64 {
    let (source, entries, _) = files(name);
    let pipeline = compile(&source);
    let backplane = chassis();
    let (mut members, mut routes) = (Vec::new(), Vec::new());
    // What the first one brings along for all is not counted.
    members.push(add(&backplane, (switch(&pipeline, &entries), 0, false), &mut routes));
    let before = resident();
    for instance in 1..=MEASURED {
        members.push(add(&backplane, (switch(&pipeline, &entries), instance, false), &mut routes));
    }
    connect(&backplane, &routes, quiet_pairs());
    std::thread::sleep(WARM_UP);
    (resident() - before) as f64 / MEASURED as f64
}

/// How long instances take from the bytes of their images until they run.
fn start_of(name: &str) -> Duration {
    let (source, entries, _) = files(name);
    let bytes = image(&source).to_string().into_bytes();
    let backplane = chassis();
    let begun = Instant::now();
    let (mut members, mut routes) = (Vec::new(), Vec::new());
    for instance in 0..STARTED {
        let making = Making { engine: EngineKind::Fastest, ..Making::default() };
        let pipeline = making.pipeline(&bytes, &Cancel::default()).unwrap_or_else(|error| panic!("{error}"));
        let config = SwitchConfig { engine: making.engine, ..SwitchConfig::default() };
        let mut switch = Switch::new(Arc::clone(&pipeline.program), config).expect("a switch");
        millrace_control::entries::load(&mut switch, &entries).expect("the entries");
        members.push(add(&backplane, (switch, instance, false), &mut routes));
    }
    connect(&backplane, &routes, quiet_pairs());
    members.iter().for_each(|member| _ = member.control.report(Duration::from_secs(10)).expect("a report"));
    begun.elapsed()
}
