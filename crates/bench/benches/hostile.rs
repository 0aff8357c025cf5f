//! A switch with a guarantee of half of its worker next to a switch that takes all that it can get.
//!
//!     cargo bench -p millrace-bench --bench hostile [-- KIND ...]
//!
//! Both get as many frames as their lane takes, by VLAN from one port of the machine. The first column is what the well-behaved switch sends
//! when it is alone, by the CPU time of its lane; the second what it sends next to a hostile one, of half of the first. 0.95 is asked. Exit
//! status 1 if any kind is below.

mod lab;

use lab::running::{median, thread_named, time_of};
use lab::{capture, compile};
use millrace_backplane::{
    Backplane, Emulation, ExitShare, ExitTo, MemberHandle, MemberSetting, Route, Setting, TimeShare, WHOLE,
};
use millrace_chassis::Pipeline;
use millrace_classifier::{Match, Priority, Rule, TagAction, Target};
use millrace_control::entries;
use millrace_dataplane::{Clock, Control, EngineKind, Keep, PortId, Request, Switch, SwitchConfig};
use millrace_drivers::QueuePair;
use millrace_drivers::null::NullPort;
use millrace_frames::SlotLayout;
use millrace_pipeline::{ActionCall, Bits, EntryMatch};
use millrace_state::{EntryWrite, Target as EntryTarget};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const ROUNDS: usize = 3;
const WARM_UP: Duration = Duration::from_millis(300);
const ROUND: Duration = Duration::from_millis(700);
const ASKED: f64 = 0.95;
/// VLANs of the well-behaved switch and of the hostile ones.
const GOOD: u16 = 1;
const HOSTILE: u16 = 2;

/// What a hostile switch does.
struct Kind {
    name: &'static str,
    /// In ingress, in egress.
    code: [&'static str; 2],
    entries: &'static str,
    /// A second switch of the kind, linked with the first in a circle.
    is_circle: bool,
    /// What control does meanwhile.
    control: Option<fn(&Control, &Pipeline)>,
}

const fn kind(name: &'static str, ingress: &'static str, egress: &'static str) -> Kind {
    Kind { name, code: [ingress, egress], entries: "", is_circle: false, control: None }
}

const CROSS: &str = "std.egress_spec = 1;";

fn kinds() -> Vec<Kind> {
    // 63 copies of each packet to each of two ports.
    const STORM: &str = "mc_mgrp_create 1\nmc_node_create 0 0 1\nmc_node_create 1 0 1\nmc_node_create 2 0 1\nmc_node_create 3 0 1\nmc_node_create 4 0 1\n\
        mc_node_create 5 0 1\nmc_node_create 6 0 1\nmc_node_create 7 0 1\nmc_node_associate 1 0\nmc_node_associate 1 1\nmc_node_associate 1 2\n\
        mc_node_associate 1 3\nmc_node_associate 1 4\nmc_node_associate 1 5\nmc_node_associate 1 6\nmc_node_associate 1 7\n";
    vec![
        kind("well-behaved too", CROSS, ""),
        kind("recirculation", CROSS, "recirculate_preserving_field_list(0);"),
        kind("resubmission", "std.egress_spec = 1; resubmit_preserving_field_list(0);", ""),
        Kind { entries: STORM, ..kind("multicast", "std.mcast_grp = 1;", "") },
        Kind { is_circle: true, ..kind("loop of links", "std.egress_spec = 2;", "") },
        kind("digests", "std.egress_spec = 1; digest<bit<48>>(1, hdr.ethernet.src);", ""),
        kind(
            "log lines",
            "std.egress_spec = 1; log_msg(\"a line of the log of {}\", { hdr.ethernet.src });",
            "",
        ),
        kind(
            "wide numbers",
            "wide = hdr.wide.a * hdr.wide.b; wide = wide * wide + hdr.wide.a; wide = wide * wide; hdr.wide.a = wide; std.egress_spec = 1;",
            "",
        ),
        Kind { control: Some(fill), ..kind("full tables", CROSS, "") },
        Kind { control: Some(ask), ..kind("floods of requests", CROSS, "") },
        Kind { control: Some(swap), ..kind("swaps", CROSS, "") },
    ]
}

/// Writes entries until the table is full, takes them out, and begins again.
fn fill(control: &Control, _: &Pipeline) {
    let Ok(now) = control.ask(Request::Look) else { return };
    let Some(table) = now.program.tables.keys().next() else { return };
    let entry = |key: u64| EntryWrite {
        matches: vec![EntryMatch::Exact(Bits::new(48, key.into()))],
        priority: 0,
        target: EntryTarget::Action(ActionCall { action: 0, args: Vec::new() }),
        idle_timeout_ns: 0,
    };
    let mut tables = now.tables.lock();
    (0..).take_while(|key| tables.insert(table, &entry(*key), 0).is_ok()).count();
    tables.clear(table);
}

fn ask(control: &Control, _: &Pipeline) {
    let _ = control.report(Duration::from_secs(1));
}

fn swap(control: &Control, pipeline: &Pipeline) {
    let _ = control.swap(switch(pipeline, ""), Keep::Compatible);
}

fn program(ingress: &str, egress: &str) -> Pipeline {
    compile(&format!(
        r#"#include <core.p4>
#include <v1model.p4>
header ethernet_t {{ bit<48> dst; bit<48> src; bit<16> kind; }}
header wide_t {{ bit<160> a; bit<160> b; }}
struct headers_t {{ ethernet_t ethernet; wide_t wide; }}
struct metadata_t {{ @field_list(0) bit<8> nothing; }}
parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {{
    state start {{ packet.extract(hdr.ethernet); packet.extract(hdr.wide); transition accept; }}
}}
control Check(inout headers_t hdr, inout metadata_t meta) {{ apply {{ }} }}
control In(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {{
    table filled {{ key = {{ hdr.ethernet.dst : exact; }} actions = {{ NoAction; }} default_action = NoAction(); size = 1024; }}
    apply {{ bit<160> wide = 0; filled.apply(); {ingress} }}
}}
control Out(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {{ apply {{ {egress} }} }}
control Deparse(packet_out packet, in headers_t hdr) {{ apply {{ packet.emit(hdr); }} }}
V1Switch(Parse(), Check(), In(), Out(), Check(), Deparse()) main;
"#
    ))
}

fn switch(pipeline: &Pipeline, commands: &str) -> Switch {
    let config =
        SwitchConfig { engine: EngineKind::Fastest, clock: Clock::real(), ..SwitchConfig::default() };
    let mut switch = Switch::new(Arc::clone(&pipeline.program), config).expect("a switch");
    entries::load(&mut switch, commands).expect("entries");
    switch
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let good = program(CROSS, "");
    let [alone_trace, both] = [&[GOOD][..], &[GOOD, HOSTILE]].map(|vlans| capture(&frames(vlans)));
    println!("{:18} {:>12} {:>12} {:>8}", "hostile by", "alone (Mpps)", "next to it", "of half");
    let mut is_right = true;
    for kind in kinds()
        .iter()
        .filter(|kind| wanted.is_empty() || wanted.iter().any(|word| kind.name.contains(word.as_str())))
    {
        let (mut alone, mut next_to, mut parts) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let one = run(&good, &alone_trace, None);
            let two = run(&good, &both, Some(kind));
            parts.push(two / (one / 2.0));
            alone.push(one);
            next_to.push(two);
        }
        let (alone, next_to, part) = (median(alone), median(next_to), median(parts));
        is_right &= part >= ASKED;
        println!("{:18} {alone:>12.2} {next_to:>12.2} {part:>8.3}", kind.name);
    }
    [alone_trace, both].iter().for_each(|file| _ = std::fs::remove_file(file));
    std::process::exit(i32::from(!is_right));
}

/// Frames of these VLANs in turns.
fn frames(vlans: &[u16]) -> Vec<Vec<u8>> {
    let frame = |number: usize| {
        let vid = vlans[number % vlans.len()].to_be_bytes();
        let source = [2, 0, 0, 0, (number >> 8) as u8, number as u8];
        [&[2, 0, 0, 0, 0, 1][..], &source, &[0x81, 0], &vid, &[0x88, 0xb5], &[7; 46]].concat()
    };
    (0..1 << 14).map(frame).collect()
}

/// Mpps that the well-behaved switch sends, by the CPU time of the lane.
fn run(good: &Pipeline, trace: &Path, hostile: Option<&Kind>) -> f64 {
    let setting = Setting {
        lanes: 1,
        processors: Vec::new(),
        packets: 1 << 16,
        layout: SlotLayout { size: 2112, ..SlotLayout::DEFAULT },
        hops: 16,
    };
    let backplane = Backplane::start(&setting).expect("a lane");
    for (number, args) in [(0, trace.to_str().expect("a path")), (1, "-")] {
        let pair: Box<dyn QueuePair> = Box::new(NullPort::open(args).expect("a trace"));
        backplane.add_physical(0, number, pair).expect("a lane");
    }
    let mut routes = Vec::new();
    let half = TimeShare { guaranteed: WHOLE / 2, largest: WHOLE };
    let member = add(&backplane, switch(good, ""), (GOOD, half), &mut routes);
    let mut others = Vec::new();
    let pipeline = hostile.map(|kind| program(kind.code[0], kind.code[1]));
    if let (Some(kind), Some(pipeline)) = (hostile, &pipeline) {
        let first =
            add(&backplane, switch(pipeline, kind.entries), (HOSTILE, TimeShare::default()), &mut routes);
        if kind.is_circle {
            let second = add(
                &backplane,
                switch(pipeline, kind.entries),
                (HOSTILE + 1, TimeShare::default()),
                &mut routes,
            );
            let wires = [&first, &second].map(|member| member.wire(2).expect("a port"));
            backplane.link(wires[0], wires[1], Emulation::default());
            others.push(second);
        }
        others.push(first);
    }
    backplane.set_routes(&routes).expect("routes");
    let ended = AtomicBool::new(false);
    let rate = std::thread::scope(|scope| {
        if let (Some(Kind { control: Some(act), .. }), Some(pipeline)) = (hostile, &pipeline) {
            let control = others[0].control.clone();
            let ended = &ended;
            scope.spawn(move || {
                while !ended.load(Ordering::Relaxed) {
                    act(&control, pipeline);
                }
            });
        }
        let thread = thread_named("lane 0");
        let sent = || {
            let report = member.control.report(Duration::from_secs(20)).expect("a report");
            report.ports.iter().map(|port| port.counters.tx_packets).sum::<u64>()
        };
        std::thread::sleep(WARM_UP);
        let (before, sent_before) = (time_of(thread), sent());
        std::thread::sleep(ROUND);
        let (after, sent_after) = (time_of(thread), sent());
        ended.store(true, Ordering::Relaxed);
        (sent_after - sent_before) as f64 / (after - before).as_secs_f64() / 1e6
    });
    drop(backplane);
    rate
}

/// A switch with ports 0 to 2, whose VLAN comes by port 0 of the machine and whose port 1 leads to port 1 of it.
fn add(
    backplane: &Backplane,
    switch: Switch,
    (vid, share): (u16, TimeShare),
    routes: &mut Vec<Route>,
) -> MemberHandle {
    let ports: Vec<PortId> = (0..3).collect();
    let setting = MemberSetting { ports, places: 1024, share, ..MemberSetting::default() };
    let member = backplane.add_member(0, switch, &setting).expect("a member");
    let (matches, tag) = (Match::Vlan(vid), TagAction::Strip);
    let rule = Rule {
        physical: 0,
        matches: matches.clone(),
        target: Target { switch: 0, port: 0 },
        tag,
        flood: false,
    };
    let tags = rule.tags_out(Priority::default()).unwrap_or_default();
    let to = ExitTo { lane: 0, physical: 1, share: ExitShare::default(), tags };
    backplane.connect(member.wire(1).expect("a port"), &[to]).expect("a lane");
    routes.push(Route {
        physical: 0,
        matches,
        tag,
        flood: false,
        wire: Arc::clone(member.wire(0).expect("a port")),
    });
    member
}
