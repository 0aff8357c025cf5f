//! Whole devices in simulation next to the interpreter with the software's traffic manager: the same frames at each port in the same
//! order, the same drops by reason, for random frames, gaps and backpressure.

#[allow(dead_code)]
mod devices;
#[path = "devices/shared.rs"]
mod shared;
#[allow(dead_code)]
#[path = "../../../crates/netlist/tests/common/tools.rs"]
mod tools;
#[path = "devices/updates.rs"]
mod updates;

use devices::{check_counted, check_underruns, drive, seldom};
use millrace_dataplane::{
    EngineKind, KnownPorts, Replica, Switch, SwitchConfig, device_groups, device_sessions,
};
use millrace_differential::{compile, compile_path, memory};
use millrace_netlist::Design;
use millrace_pipeline::arbitrary::Rng;
use millrace_pipeline::{ActionCall, Bits, EntryMatch, TableId};
use millrace_rtl::device::{Bench, DeviceOptions, Left, Link, Reason};
use millrace_rtl::map::Bus;
use millrace_rtl::{Device, Hardware, Objects, Options};
use millrace_state::{Effects, EntryIndex, EntryView, EntryWrite, Target};
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs")
}

/// A switch of a program with its entries, and the frames of its test.
struct Sample {
    switch: Switch,
    frames: Vec<Vec<u8>>,
}

fn sample(name: &str, ports: u32) -> Sample {
    sample_with(name, (0..ports).collect())
}

/// The same, with ports of these numbers.
fn sample_with(name: &str, ports: Vec<u32>) -> Sample {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/devices");
    let folders = [programs(), programs().join("../tests/programs"), own];
    let path = folders.map(|folder| folder.join(format!("{name}.p4"))).into_iter().find(|path| path.exists());
    let path = path.unwrap_or_else(|| panic!("no program {name}"));
    let program = compile_path(&path);
    let config = SwitchConfig {
        engine: EngineKind::Interp,
        ports: KnownPorts::Only(ports.into_iter().collect()),
        ..SwitchConfig::default()
    };
    let mut switch = Switch::new(Arc::clone(&program), config).unwrap();
    let entries = std::fs::read_to_string(path.with_extension("entries")).unwrap();
    millrace_control::entries::load(&mut switch, &entries).unwrap();
    let text = std::fs::read_to_string(path.with_extension("stf")).unwrap();
    let test = millrace_stf::parse(&text).unwrap();
    Sample { switch, frames: test.frames().map(|(_, bytes)| bytes.to_vec()).collect() }
}

/// A frame of the test, as it is or with another length and some other bytes.
fn frame(rng: &mut Rng, sample: &Sample) -> Vec<u8> {
    let mut bytes = sample.frames[rng.below(sample.frames.len())].clone();
    if rng.one_in(2) {
        let most = if rng.one_in(4) { 1400 } else { 80 };
        let more = rng.below(most);
        bytes.extend((0..more).map(|_| rng.next_u64() as u8));
    }
    if rng.one_in(4) {
        for _ in 0..1 + rng.below(3) {
            let at = rng.below(bytes.len());
            bytes[at] = rng.next_u64() as u8;
        }
    }
    if rng.one_in(12) {
        bytes.truncate(1 + rng.below(bytes.len()));
    }
    // What is longer than a slot is for another test.
    bytes.truncate(2000);
    bytes
}

/// Runs frames through a device and the interpreter; `busy` says how often of eight times a port has a beat and takes one. Gives how many
/// lookups hit.
fn compare(name: &str, options: DeviceOptions, count: usize, busy: (usize, usize)) -> u64 {
    compare_made(name, Options::default(), options, count, busy)
}

/// The same, of hardware that was made with options of its own.
fn compare_made(
    name: &str,
    made: Options,
    options: DeviceOptions,
    count: usize,
    busy: (usize, usize),
) -> u64 {
    let known = || sample_with(name, (0..options.ports).map(|port| options.number(port)).collect());
    let mut sample = known();
    let hardware = Hardware::new(Arc::clone(sample.switch.program()), made).unwrap();
    let (ports, link) = (options.ports, options.link);
    let device = Device::new(&hardware, options.clone()).unwrap();
    let mut bench = Bench::new(&device).unwrap();
    assert!(bench.set("whole_frames", u64::from(busy.1 == 5)));
    // Words of tables after the first ones are set at once where other things are as they usually are.
    bench.set_words_by_bus(if busy.1 == 7 { 2 } else { usize::MAX });
    bench.set_groups(&device_groups(sample.switch.replication())).unwrap();
    if device.register_map().ports.iter().any(|port| port.object == "sessions") {
        bench.set_sessions(&device_sessions(sample.switch.replication())).unwrap();
    }
    bench.update(sample.switch.state()).unwrap();
    let mut rng = Rng::new(7);
    let mut sent: Vec<Vec<Vec<u8>>> = vec![Vec::new(); ports as usize];
    for _ in 0..count {
        let mut bytes = frame(&mut rng, &sample);
        if link.has_macs() {
            bytes.resize(bytes.len().max(60), 0);
        }
        let port = rng.below(ports as usize);
        sent[port].push(bytes.clone());
        bench.send(port as u32, bytes, false);
    }
    // A link that is full all the time would fill queues.
    let every = seldom(link, 150);
    // What software reads of the device goes to a state of its own, which had what control has written.
    let (mut read, mut effects) = (known(), Effects::default());
    let (left, order) = drive(name, &mut bench, (every, busy), (&mut read.switch, &mut effects));
    let mut next = vec![0; ports as usize];
    let mut wanted: Vec<Vec<Vec<u8>>> = vec![Vec::new(); ports as usize];
    // Headers of copies that start again are decided, too.
    let of_ports: Vec<u32> = order.iter().map(|decided| decided.port).filter(|port| *port < ports).collect();
    assert_eq!(of_ports.len(), count, "{name}: headers decided");
    let mut digests = Vec::new();
    for port in of_ports {
        let bytes = &sent[port as usize][next[port as usize]];
        next[port as usize] += 1;
        let outcome = sample.switch.inject(options.number(port), bytes, 0);
        for sent in outcome.sent {
            wanted[options.port(sent.port).unwrap() as usize].push(sent.bytes);
        }
        digests.extend(outcome.digests);
    }
    if link.has_macs() {
        // A MAC fills frames up.
        wanted.iter_mut().flatten().for_each(|bytes| bytes.resize(bytes.len().max(60), 0));
    }
    check(name, &left, &wanted);
    check_underruns(name, &mut bench, &options);
    let [hits, _, _] = check_counted(name, &mut bench, &sample.switch);
    let (state, effects) = (read.switch.state_mut(), &mut effects);
    bench.read_back(&mut Objects { state, now_ns: 0, effects }).unwrap();
    assert_eq!(effects.digests(), digests, "{name}: digests");
    assert_eq!(kept(&read.switch), kept(&sample.switch), "{name}: what objects hold");
    assert_eq!(bench.simulator().collisions(), 0, "{name}: memories are read where they are written");
    hits
}

/// What counters, meters and registers of a switch hold, and counters of entries. A device does not say which entries are hit when.
fn kept(switch: &Switch) -> Vec<String> {
    let lines = memory(switch).into_iter();
    lines
        .map(|line| {
            line.split_once("last hit").map_or(line.clone(), |(table, rest)| {
                format!("{table}{}", rest.split_once(", ").map_or("", |(_, entry)| entry))
            })
        })
        .collect()
}

fn check(name: &str, left: &[Left], wanted: &[Vec<Vec<u8>>]) {
    for (port, wanted) in wanted.iter().enumerate() {
        let found: Vec<&Left> = left.iter().filter(|left| left.port as usize == port).collect();
        for (at, (found, wanted)) in found.iter().zip(wanted).enumerate() {
            assert!(!found.is_bad, "{name}: port {port}, frame {at} is bad");
            assert_eq!(&found.bytes, wanted, "{name}: port {port}, frame {at}");
        }
        assert_eq!(found.len(), wanted.len(), "{name}: frames of port {port}");
    }
}

/// Queues that hold whatever comes: software has no backpressure.
fn options() -> DeviceOptions {
    DeviceOptions { depth: 64, ..DeviceOptions::default() }
}

/// Programs whose devices are tried once: with clones for the controller, answers, options, forwarding by octets.
#[test]
fn other_programs_do_what_the_software_does() {
    ["nat", "responder", "ip_router", "octet_switch"].into_iter().for_each(once);
}

#[test]
#[ignore = "takes minutes"]
fn gateways_do_what_the_software_does() {
    ["l3_gateway_pppoe", "l3_gateway_vxlan"].into_iter().for_each(once);
}

fn once(name: &str) {
    let numbers = vec![0, 1, 2, 3, 4, 63];
    let hits = compare(name, DeviceOptions { ports: 6, numbers, ..options() }, 150, (7, 7));
    assert!(hits > 0, "{name}: no lookup hit");
}

/// Programs that devices are made of.
const NAMES: [&str; 3] = ["l2_switch", "router", "firewall"];

#[test]
fn devices_do_what_the_software_does() {
    for name in NAMES {
        // Values wait in memories on an ECP5.
        let ecp5 = Options { target: millrace_rtl::Target::Ecp5, ..Options::default() };
        let of_ecp5 = compare_made(name, ecp5, options(), 300, (7, 5));
        assert!(compare(name, options(), 600, (7, 7)) > 0 && of_ecp5 > 0, "{name}: no lookup hit");
    }
}

#[test]
fn widths_and_ports() {
    for (ports, width) in [(1, 64), (3, 128), (4, 256), (5, 512)] {
        for name in NAMES {
            compare(name, DeviceOptions { ports, width, ..options() }, 120, (8, 8));
            compare(name, DeviceOptions { ports, width, slots: 2, ..options() }, 80, (4, 3));
        }
    }
    // The program knows the ports by other numbers.
    for name in NAMES {
        compare(name, DeviceOptions { numbers: vec![2, 0, 3, 1], ..options() }, 200, (7, 7));
    }
}

/// Where ingress makes the new headers, all copies of a frame have them from memories that are written before ingress ends.
#[test]
fn copies_have_the_headers_of_ingress() {
    for (ports, width) in [(4, 64), (8, 256)] {
        for target in [millrace_rtl::Target::Ecp5, millrace_rtl::Target::Xc7] {
            let made = Options { target, ..Options::default() };
            let few = DeviceOptions { ports, width, slots: 4, ..options() };
            for name in ["sume_switch", "headers"] {
                assert!(compare_made(name, made.clone(), few.clone(), 200, (7, 5)) > 0, "no lookup hit");
                let more = DeviceOptions { ports, width, ..options() };
                compare_made(name, made.clone(), more, 200, (7, 8));
            }
        }
    }
}

#[test]
fn frames_go_from_mac_to_mac() {
    for name in NAMES {
        compare(name, DeviceOptions { link: Link::Xgmii, slots: 64, ..options() }, 150, (1, 8));
    }
}

/// Frames come and leave octet by octet, whatever the width of the device, in cut-through and store-and-forward.
#[test]
fn frames_go_from_mac_to_mac_by_octets() {
    for (width, busy) in [(64, 8), (64, 5), (512, 8)] {
        for name in NAMES {
            compare(name, DeviceOptions { link: Link::Gmii, width, slots: 64, ..options() }, 100, (1, busy));
        }
    }
    for width in [128, 256] {
        let options = DeviceOptions { link: Link::Gmii, ports: 2, width, slots: 64, ..options() };
        compare("router", options, 60, (1, 8));
    }
}

/// A group has a copy in each cycle, one frame after the other: its words and nodes are read while others are copied.
#[test]
fn groups_have_a_copy_in_each_cycle() {
    const PORTS: u32 = 4;
    const FRAMES: u32 = 240;
    let mut control = sample("l2_switch", PORTS).switch;
    // Bytes of a frame are one beat.
    let options = DeviceOptions { width: 512, ports: PORTS, ..options() };
    let hardware = Hardware::new(Arc::clone(control.program()), options.stages()).unwrap();
    for copies in [1, 2, 4] {
        let replicas = (0..copies).map(|port| Replica { port, rid: 0 }).collect();
        let groups = control.replication_mut();
        groups.clear_multicast();
        groups.create_group(1).unwrap();
        groups.set_copies(1, replicas).unwrap();
        let mut bench = Bench::new(&Device::new(&hardware, options.clone()).unwrap()).unwrap();
        bench.set_groups(&device_groups(control.replication())).unwrap();
        bench.update(control.state()).unwrap();
        for at in 0..FRAMES {
            let mut bytes = vec![6, 0, 0, 0, 9, 9, 6, 0, 0, 0, 1, 9, 0x88, 0xb5];
            bytes.resize(60, at as u8);
            bench.send(at % PORTS, bytes, false);
        }
        let (mut left, begun, mut last) = (0, bench.cycle(), 0);
        while bench.cycle() - last.max(begun) < 500 {
            let (gone, _) = bench.step(&mut |_| true, &mut |_| true);
            last = if gone.is_empty() { last } else { bench.cycle() };
            left += gone.len() as u32;
        }
        let (cycles, dropped) = (last - begun, bench.drops());
        // The copy to the port where a frame came in is dropped in egress. A port sends such a frame every other cycle.
        assert_eq!(left + dropped.get(&Reason::EgressDrop).copied().unwrap_or(0) as u32, copies * FRAMES);
        let least = u64::from(FRAMES * copies.max(2));
        assert!(cycles < least + 60, "{copies} copies each: {cycles} cycles of {least}");
    }
}

/// Frames of all sizes from 64 to 1518 bytes on four links of 1 Gbit/s that are full all the time.
#[test]
fn full_links_lose_nothing() {
    const PORTS: u32 = 4;
    let sample = sample("l2_switch", PORTS);
    let stations: String = (0..PORTS)
        .map(|port| format!("table_add smac NoAction 06:00:00:00:01:0{port} =>\ntable_add dmac forward 06:00:00:00:01:0{port} => {port}\n"))
        .collect();
    let mut control = sample.switch;
    millrace_control::entries::load(&mut control, &stations).unwrap();
    for width in [64, 512] {
        let options = DeviceOptions { link: Link::Gmii, width, ports: PORTS, ..options() };
        let hardware = Hardware::new(Arc::clone(control.program()), options.stages()).unwrap();
        let mut bench = Bench::new(&Device::new(&hardware, options.clone()).unwrap()).unwrap();
        bench.update(control.state()).unwrap();
        // Each size once, the sizes of a port in an order that is not theirs.
        let mut wanted: Vec<Vec<Vec<u8>>> = vec![Vec::new(); PORTS as usize];
        for at in 0..1455u32 {
            let (size, port) = (60 + at * 617 % 1455, at % PORTS);
            let to = (port + 1) % PORTS;
            let mut bytes = vec![6, 0, 0, 0, 1, to as u8, 6, 0, 0, 0, 1, port as u8, 0x88, 0xb5];
            bytes.extend((14..size).map(|at| (at * 7 + size) as u8));
            wanted[to as usize].push(bytes.clone());
            bench.send(port, bytes, false);
        }
        let octets = (0..PORTS).map(|port| {
            let to = wanted[(port as usize + 1) % 4].iter();
            to.map(|bytes| bytes.len() as u64 + u64::from(Link::Gmii.overhead())).sum::<u64>()
        });
        let most = octets.max().unwrap();
        let (mut left, begun, mut idle) = (Vec::new(), bench.cycle(), 0);
        while idle < 3000 {
            let (gone, _) = bench.step(&mut |_| true, &mut |_| true);
            idle = if gone.is_empty() { idle + 1 } else { 0 };
            left.extend(gone);
        }
        let cycles = bench.cycle() - begun - 3000;
        check(&format!("{width} bits"), &left, &wanted);
        check_underruns("full links", &mut bench, &options);
        assert!(bench.drops().is_empty());
        assert!(cycles < most + 1000, "{cycles} cycles, {most} octets with gaps on the fullest link");
    }
}

/// What control does between two frames.
enum Change {
    Remove(TableId, EntryIndex),
    Insert(TableId, EntryWrite),
    Copies(u32, Vec<Replica>),
}

impl Change {
    fn apply(&self, switch: &mut Switch) {
        match self {
            Change::Remove(table, index) => switch.state().tables().remove(*table, *index).unwrap(),
            Change::Insert(table, entry) => drop(switch.state().tables().insert(*table, entry, 0).unwrap()),
            Change::Copies(group, copies) => {
                switch.replication_mut().set_copies(*group, copies.clone()).unwrap()
            }
        }
    }
}

/// Removes some entries of all tables, adds some that were removed, changes some groups.
fn change(switch: &mut Switch, gone: &mut Vec<(TableId, EntryWrite)>, rng: &mut Rng) -> Vec<Change> {
    let mut changes = Vec::new();
    for (table, entry) in std::mem::take(gone) {
        match rng.one_in(2) {
            true => changes.push(Change::Insert(table, entry)),
            false => gone.push((table, entry)),
        }
    }
    for (table, _) in &switch.program().tables {
        for entry in switch.state().tables().entries(table).filter(|entry| !entry.is_const) {
            if rng.one_in(3) {
                changes.push(Change::Remove(table, entry.index));
                let EntryView { matches, priority, target, .. } = entry;
                gone.push((table, EntryWrite { matches, priority, target, idle_timeout_ns: 0 }));
            }
        }
    }
    let groups: Vec<u32> = switch.replication().groups().map(|(id, _)| id).collect();
    for group in groups {
        let ports = (0..4).filter(|_| rng.one_in(2));
        changes.push(Change::Copies(group, ports.map(|port| Replica { port, rid: 0 }).collect()));
    }
    changes.iter().for_each(|change| change.apply(switch));
    changes
}

/// While frames come, entries of all tables and groups change: each frame meets what was before a write, or all of what is after it.
#[test]
fn writes_go_between_two_frames() {
    for (seed, name) in (1..).zip(NAMES) {
        // Both buses reach the same registers, so one program on both of them is enough.
        let buses = if seed == 1 { &[Bus::Axi4Lite, Bus::AvalonMm][..] } else { &[Bus::Axi4Lite] };
        for bus in buses.iter().copied() {
            // All frames may wait at one port.
            writes_under_traffic(name, DeviceOptions { bus, depth: 1024, ..options() }, seed);
        }
    }
}

fn writes_under_traffic(name: &str, options: DeviceOptions, seed: u64) {
    let ports = options.ports as usize;
    let (mut control, mut expected) = (sample(name, options.ports), sample(name, options.ports));
    let frames = sample(name, options.ports);
    let hardware = Hardware::new(Arc::clone(control.switch.program()), Options::default()).unwrap();
    let mut bench = Bench::new(&Device::new(&hardware, options).unwrap()).unwrap();
    bench.set_groups(&device_groups(control.switch.replication())).unwrap();
    assert!(bench.update(control.switch.state()).unwrap());
    bench.set_traffic(seed);
    let mut rng = Rng::new(seed);
    let mut sent: Vec<VecDeque<Vec<u8>>> = vec![VecDeque::new(); ports];
    let (mut left, mut order, mut gone) = (Vec::new(), Vec::new(), Vec::new());
    let mut batches = VecDeque::new();
    let mut send = |bench: &mut Bench, rng: &mut Rng, count| {
        for _ in 0..count {
            let (port, bytes) = (rng.below(ports), frame(rng, &frames));
            sent[port].push_back(bytes.clone());
            bench.send(port as u32, bytes, false);
        }
    };
    for _ in 0..8 {
        send(&mut bench, &mut rng, 40);
        let changes = change(&mut control.switch, &mut gone, &mut rng);
        bench.set_groups(&device_groups(control.switch.replication())).unwrap();
        if bench.update(control.switch.state()).unwrap() {
            batches.push_back(changes);
        } else {
            assert!(changes.is_empty(), "{name}: {} changes are not written", changes.len());
        }
        // Frames of each bank: a write of many words takes longer than those before.
        send(&mut bench, &mut rng, 20);
        let (before, mut idle) = (order.len(), 0);
        while bench.waiting() > 10 || order.len() < before + 10 && idle < 1000 {
            let (gone, decided) = bench.step(&mut |_| true, &mut |_| true);
            idle = if gone.is_empty() && decided.is_empty() { idle + 1 } else { 0 };
            left.extend(gone);
            order.extend(decided);
        }
    }
    let mut idle = 0;
    while bench.waiting() > 0 || idle < 3000 {
        let (gone, decided) = bench.step(&mut |_| true, &mut |_| true);
        idle = if gone.is_empty() && decided.is_empty() { idle + 1 } else { 0 };
        left.extend(gone);
        order.extend(decided);
    }
    let batch_count = batches.len();
    let (mut bank, mut met) = (true, vec![0]);
    let mut wanted: Vec<Vec<Vec<u8>>> = vec![Vec::new(); ports];
    for decided in order {
        if decided.bank != bank {
            let changes: Vec<Change> = batches.pop_front().expect("a bank for each batch");
            changes.iter().for_each(|change| change.apply(&mut expected.switch));
            bank = decided.bank;
            met.push(0);
        }
        *met.last_mut().unwrap() += 1;
        let bytes = sent[decided.port as usize].pop_front().unwrap();
        let outcome = expected.switch.inject(decided.port, &bytes, 0);
        outcome.sent.into_iter().for_each(|sent| wanted[sent.port as usize].push(sent.bytes));
    }
    assert!(met.iter().filter(|frames| **frames > 4).count() > 5, "{name}: frames of each bank: {met:?}");
    assert_eq!(met.len(), batch_count + 1, "{name}: banks that frames met");
    let [hits, misses, _] = check_counted(name, &mut bench, &expected.switch);
    assert!(hits > 0 && misses > 0, "{name}: {hits} lookups hit, {misses} missed");
    check(name, &left, &wanted);
    assert_eq!(bench.simulator().collisions(), 0, "{name}: memories are read where they are written");
}

/// A table that declares more entries than any unit holds, with a counter for each.
const COUNTED: &str = r"#include <core.p4>
#include <v1model.p4>
header frame_t { bit<16> key; bit<48> rest; }
struct headers_t { frame_t frame; }
struct meta_t { }
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard_metadata) {
    state start { packet.extract(hdr.frame); transition accept; }
}
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard_metadata) {
    direct_counter(CounterType.packets_and_bytes) seen;
    action to(bit<9> port) { standard_metadata.egress_spec = port; seen.count(); }
    table known { key = { hdr.frame.key: exact; } actions = { to; } counters = seen; size = 1048576; }
    apply { if (!known.apply().hit) { mark_to_drop(standard_metadata); } }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard_metadata) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.frame); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
";

/// The unit of a table has fewer entries than the program declares, and so has that of its counters: entries come and go in software under
/// indices that are larger than both.
#[test]
fn entries_count_under_numbers_of_the_unit() {
    const CAPACITY: u64 = 8;
    let program = compile("counted.p4", COUNTED);
    let (id, table) = program.tables.iter().next().unwrap();
    let capacities = BTreeMap::from([(table.name.clone(), CAPACITY)]);
    let hardware = Hardware::new(Arc::clone(&program), Options { capacities, ..Options::default() }).unwrap();
    let mut bench = Bench::new(&Device::new(&hardware, options()).unwrap()).unwrap();
    let config = SwitchConfig {
        engine: EngineKind::Interp,
        ports: KnownPorts::Only((0..4).collect()),
        ..SwitchConfig::default()
    };
    // What frames count in the device goes to a switch of its own, which control writes to as to the other.
    let mut software = Switch::new(Arc::clone(&program), config.clone()).unwrap();
    let (mut read, mut effects) = (Switch::new(Arc::clone(&program), config).unwrap(), Effects::default());
    let mut rng = Rng::new(5);
    let mut most = 0;
    for round in 0..12_u64 {
        // More than fit, of which few stay.
        let call = ActionCall { action: 0, args: vec![Bits::new(9, u128::from(round % 4))] };
        let entry = |key: u64| EntryWrite {
            matches: vec![EntryMatch::Exact(Bits::new(16, key.into()))],
            priority: 0,
            target: Target::Action(call.clone()),
            idle_timeout_ns: 0,
        };
        let there: Vec<EntryIndex> = software.state().tables().entries(id).map(|entry| entry.index).collect();
        let gone = there.into_iter().filter(|_| rng.one_in(3)).collect::<Vec<_>>();
        let mut changes: Vec<Change> = gone.into_iter().map(|index| Change::Remove(id, index)).collect();
        changes.extend((0..20).map(|at| Change::Insert(id, entry(100 * round + at))));
        for change in &changes {
            [&mut software, &mut read].into_iter().for_each(|switch| change.apply(switch));
        }
        let mut there: Vec<EntryIndex> =
            software.state().tables().entries(id).map(|entry| entry.index).collect();
        while there.len() as u64 > CAPACITY {
            let remove = Change::Remove(id, there.swap_remove(rng.below(there.len())));
            [&mut software, &mut read].into_iter().for_each(|switch| remove.apply(switch));
        }
        most = there.iter().map(|index| u64::from(index.0)).fold(most, u64::max);
        bench.update(software.state()).unwrap();
        let keys: Vec<Bits> = software
            .state()
            .tables()
            .entries(id)
            .map(|entry| match &entry.matches[0] {
                EntryMatch::Exact(key) => key.clone(),
                other => panic!("{other:?}"),
            })
            .collect();
        for _ in 0..60 {
            let key = keys[rng.below(keys.len())].to_u64_saturating() + u64::from(rng.one_in(8));
            let mut bytes = (key as u16).to_be_bytes().to_vec();
            bytes.resize(8 + rng.below(100), 1);
            let port = rng.below(4) as u32;
            bench.send(port, bytes.clone(), false);
            software.inject(port, &bytes, 0);
        }
        drive("counted", &mut bench, (8, (8, 8)), (&mut read, &mut effects));
        let (state, effects) = (read.state_mut(), &mut effects);
        bench.read_back(&mut Objects { state, now_ns: 0, effects }).unwrap();
        assert_eq!(kept(&read), kept(&software), "round {round}");
    }
    assert!(most > 2 * CAPACITY, "no index was larger than the unit: {most}");
}

/// Entries that do not fit a unit, and groups that are too many, leave the device as it was.
#[test]
fn what_does_not_fit_changes_nothing() {
    let mut sample = sample("l2_switch", 4);
    let capacities = BTreeMap::from([("dmac".to_owned(), 16)]);
    let program = Arc::clone(sample.switch.program());
    let capacities = capacities.into_iter().map(|(name, entries)| {
        let found = program.tables.values().find(|table| table.name.ends_with(&name)).unwrap();
        (found.name.clone(), entries)
    });
    let made = Options { capacities: capacities.collect(), ..Options::default() };
    let hardware = Hardware::new(Arc::clone(&program), made).unwrap();
    let mut bench = Bench::new(&Device::new(&hardware, options()).unwrap()).unwrap();
    bench.set_groups(&device_groups(sample.switch.replication())).unwrap();
    bench.update(sample.switch.state()).unwrap();
    let entry = |number: u64| {
        format!("table_add dmac forward 06:00:00:01:{:02x}:{:02x} => 3\n", number / 256, number % 256)
    };
    let many: String = (0..200).map(entry).collect();
    let before = bench.cycle();
    millrace_control::entries::load(&mut sample.switch, &many).unwrap();
    let refused = bench.update(sample.switch.state()).unwrap_err();
    assert!(refused.to_string().contains("and its unit holds"), "{refused}");
    let many = BTreeMap::from([(1, (0..300).map(|rid| (rid % 4, rid as u16)).collect())]);
    assert!(bench.set_groups(&many).unwrap_err().contains("limit NODES"));
    assert!(bench.set_groups(&BTreeMap::from([(64, Vec::new())])).unwrap_err().contains("limit GROUPS"));
    assert_eq!(bench.cycle(), before, "something was written");
    // What is there goes on.
    let bytes = sample.frames[0].clone();
    let mut other = self::sample("l2_switch", 4);
    let wanted = other.switch.inject(0, &bytes, 0);
    bench.send(0, bytes, false);
    let mut left = Vec::new();
    (0..500).for_each(|_| left.extend(bench.step(&mut |_| true, &mut |_| true).0));
    left.sort_by_key(|left| left.port);
    let left: Vec<_> = left.into_iter().map(|left| (left.port, left.bytes)).collect();
    let wanted: Vec<_> = wanted.sent.into_iter().map(|sent| (sent.port, sent.bytes)).collect();
    assert_eq!(left, wanted);
}

/// Bad frames, and some that are longer than any, among good ones: these leave as they came, the others as bad or not at all.
#[test]
fn faults_harm_no_other_frame() {
    for (link, whole) in
        [Link::Stream, Link::Xgmii, Link::Gmii].into_iter().flat_map(|link| [(link, false), (link, true)])
    {
        let sample = sample("l2_switch", 4);
        let hardware = Hardware::new(Arc::clone(sample.switch.program()), Options::default()).unwrap();
        let device = Device::new(&hardware, DeviceOptions { link, ..options() }).unwrap();
        let mut bench = Bench::new(&device).unwrap();
        assert!(bench.set("whole_frames", u64::from(whole)));
        bench.update(sample.switch.state()).unwrap();
        let mut rng = Rng::new(5);
        let (mut wanted, mut faults) = (Vec::new(), [0; 2]);
        for number in 0..90u8 {
            let mut bytes = vec![6, 0, 0, 0, 0, 1, 6, 0, 0, 0, 0, 0, 0x88, 0xb5, number];
            bytes.resize(60 + rng.below(120), number);
            match rng.below(4) {
                0 => {
                    bench.send(0, bytes, true);
                    faults[0] += 1;
                }
                1 => {
                    bytes.resize(2049 + rng.below(2000), number);
                    bench.send(0, bytes, false);
                    faults[1] += 1;
                }
                _ => {
                    bench.send(0, bytes.clone(), false);
                    wanted.push(bytes);
                }
            }
        }
        let (mut left, mut idle) = (Vec::new(), 0);
        while bench.waiting() > 0 || idle < 9000 {
            let (gone, _) = bench.step(&mut |_| true, &mut |_| true);
            idle = if gone.is_empty() { idle + 1 } else { 0 };
            left.extend(gone);
        }
        let good: Vec<&Vec<u8>> = left.iter().filter(|left| !left.is_bad).map(|left| &left.bytes).collect();
        assert_eq!(good, wanted.iter().collect::<Vec<_>>(), "{link:?}, {whole}");
        assert!(!whole || left.iter().all(|left| !left.is_bad), "{link:?}: a bad frame left");
        assert_eq!(bench.get("port0.rx_bad"), Some(faults[0] + faults[1]), "{link:?}, {whole}");
        assert_eq!(bench.get("port0.rx_oversize"), Some(faults[1]), "{link:?}, {whole}");
        if link.has_macs() {
            assert_eq!(bench.get("port0.rx_mac_bad_check"), Some(faults[0]));
            assert_eq!(bench.get("port0.rx_mac_oversize"), Some(faults[1]));
        }
    }
}

/// Which programs have a device, and that these do what they should.
#[test]
fn all_programs() {
    let mut refused = BTreeMap::new();
    for (path, _) in millrace_differential::programs_with_tests() {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if path.parent() != Some(&programs())
            && path.parent().and_then(Path::file_name) != Some("programs".as_ref())
        {
            continue;
        }
        let program = compile_path(&path);
        let made =
            Hardware::new(program, Options::default()).and_then(|hardware| Device::new(&hardware, options()));
        match made {
            Ok(device) => {
                println!("{}", device.report());
                // Frames that start again or are cloned overtake others, which is for `device_again`.
                let has_sessions = device.register_map().ports.iter().any(|port| port.object == "sessions");
                let in_order = device.report().places_again == 0 && !has_sessions;
                if path.with_extension("entries").exists() && in_order {
                    // One queue, as programs may choose a class.
                    compare(&name, DeviceOptions { queues: 1, ..options() }, 300, (7, 7));
                }
            }
            Err(refusal) => {
                refused.insert(name, refusal.to_string());
            }
        }
    }
    println!("{refused:#?}");
}

/// A design whose ports have names that C++ takes.
fn plain(design: &Design) -> Design {
    let mut design = design.clone();
    let name = |name: &mut String| *name = name.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    if let Some(top) = design.top() {
        let top = &mut design.modules[top];
        top.inputs.values_mut().for_each(|port| name(&mut port.name));
        top.outputs.values_mut().for_each(|port| name(&mut port.name));
    }
    design
}

/// A model that Verilator makes does the same in each cycle, and Verilator has nothing to say about the text.
#[test]
fn verilator_and_simulation() {
    if !tools::has("verilator") {
        return;
    }
    for (name, width, link) in
        [("l2_switch", 64, Link::Xgmii), ("router", 128, Link::Stream), ("l2_switch", 256, Link::Gmii)]
    {
        let sample = sample(name, 2);
        let program = Arc::clone(sample.switch.program());
        // Units for the entries of the test: a search tree of thousands takes Verilator half a minute.
        let capacities = program.tables.values().map(|table| (table.name.clone(), 64)).collect();
        let hardware = Hardware::new(program, Options { capacities, ..Options::default() }).unwrap();
        let device =
            Device::new(&hardware, DeviceOptions { ports: 2, width, link, slots: 8, depth: 8, ..options() })
                .unwrap();
        let design = plain(device.design());
        tools::lint(&design, &format!("device-lint-{name}")).unwrap_or_else(|said| panic!("{said}"));
        let mut bench = Bench::new(&device).unwrap();
        bench.record();
        bench.set_groups(&device_groups(sample.switch.replication())).unwrap();
        bench.update(sample.switch.state()).unwrap();
        let mut rng = Rng::new(3);
        for _ in 0..90 {
            bench.send(rng.below(2) as u32, frame(&mut rng, &sample), rng.one_in(9));
        }
        let (mut choice, mut other, mut left) = (Rng::new(9), Rng::new(11), 0);
        // An octet in each cycle, or a beat.
        for _ in 0..if link == Link::Gmii { 4000 } else { 1500 } {
            let (gone, _) = bench.step(&mut |_| choice.below(8) < 6, &mut |_| other.below(8) < 6);
            left += gone.len();
        }
        assert!(left > 8, "{name}: {left} frames left");
        let cycles: tools::Cycles = bench.take_record().into_iter().map(|inputs| (inputs, false)).collect();
        let wanted = tools::simulated(&design, &cycles);
        let found = tools::verilated(&design, &format!("device-{name}"), &cycles)
            .unwrap_or_else(|said| panic!("{said}"));
        assert_eq!(found.len(), wanted.len(), "{name}: cycles");
        let top = &design.modules[design.top().unwrap()];
        for (cycle, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
            for (port, (found, wanted)) in top.outputs.values().zip(found.iter().zip(wanted)) {
                assert_eq!(found, wanted, "{name}: cycle {cycle}, {}", port.name);
            }
        }
    }
}
