//! Devices of programs whose frames start again, are cloned or cut, next to the interpreter with the software's traffic manager: the
//! same frames at each port, the same drops by reason. Which of two frames on different paths comes first is nobody's promise: the order
//! is that of the software among frames that pass once.

mod devices;
#[allow(dead_code)]
#[path = "../../../crates/netlist/tests/common/tools.rs"]
mod tools;

use devices::{check_counted, check_underruns, drive, seldom};
use millrace_dataplane::{
    EngineKind, KnownPorts, Replica, Session, Switch, SwitchConfig, device_groups, device_sessions,
};
use millrace_differential::memory;
use millrace_pipeline::arbitrary::Rng;
use millrace_pipeline::{Program, text, verify};
use millrace_rtl::device::{Bench, DeviceOptions, Link};
use millrace_rtl::{Device, Hardware, Objects, Options};
use millrace_state::Effects;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The first byte of a frame says what to do with it, the second with what; what leaves tells in front how it came there.
const THROUGH: &str = include_str!("../../../crates/dataplane/tests/programs/through.mir");

/// The program, and what is changed in it.
struct Source(String);

impl Source {
    /// Without some roles. A loop without an end has no hardware.
    fn new(without: &[&str]) -> Source {
        let mut source = THROUGH.replace("goto block11", "end");
        for role in without {
            let line = source.lines().find(|line| line.starts_with(&format!("intrinsic {role} = ")));
            let line = line.expect("a role of the program").to_owned();
            source = source.replace(&format!("{line}\n"), "");
        }
        Source(source)
    }

    /// Replaces what is there once.
    fn replace(&mut self, from: &str, to: &str) {
        assert_eq!(self.0.matches(from).count(), 1, "{from}");
        self.0 = self.0.replace(from, to);
    }

    /// With tables that are looked up at several places of both stages, and after the deparser of egress.
    fn look_up(&mut self) {
        self.replace("ingress (parse, ingress_control)", "ingress (parse, look, ingress_control)");
        self.replace(
            "egress (egress_control, deparse)",
            "egress (look_again, egress_control, deparse, look_last)",
        );
        self.replace("digest seen_t (", "metadata looked: bool\ndigest seen_t (");
        self.0.push_str(LOOKUPS);
    }

    fn no_clones_in_egress(&mut self) {
        self.replace("(8w8, _) => block2", "(8w8, _) => block4");
        self.replace("    i_clone = true\n    i_session = zext(h.arg, 32)\n    i_clone_list = 32w1\n    h.arg = 8w0xdd", "    h.arg = 8w0xdd");
    }

    fn program(&self) -> Arc<Program> {
        let program = text::parse(&self.0).unwrap();
        verify::verify(&program).unwrap();
        Arc::new(program)
    }
}

/// Tables and what looks them up.
const LOOKUPS: &str = "
body action nop {
block0:
    end
}
action nop () = nop
table ops {
    key op: exact = h.op
    action nop
    default nop()
    size 64
    entry (8w1) => nop()
    entry (8w4) => nop()
    entry (8w5) => nop()
    entry (8w8) => nop()
    entry (8w16) => nop()
}
table args {
    key op: ternary = h.op
    key arg: ternary = h.arg
    action nop
    default nop()
    size 64
    entry priority 1 (8w1 &&& 8w1, 8w0 &&& 8w0) => nop()
    entry priority 2 (8w0 &&& 8w0, 8w2 &&& 8w2) => nop()
}
body control look {
block0:
    apply ops, hit = looked, next = block1, exit = block3
block1:
    branch looked, block2, block3
block2:
    apply args, next = block3, exit = block3
block3:
    end
}
body control look_again {
block0:
    branch eq(h.arg, 8w1), block1, block2
block1:
    apply ops, next = block4, exit = block4
block2:
    apply ops, next = block3, exit = block3
block3:
    apply args, next = block4, exit = block4
block4:
    end
}
body control look_last {
block0:
    apply args, next = block1, exit = block1
block1:
    end
}
";

fn through(without: &[&str]) -> Arc<Program> {
    Source::new(without).program()
}

fn switch(program: &Arc<Program>, ports: u32) -> Switch {
    let config = SwitchConfig {
        engine: EngineKind::Interp,
        ports: KnownPorts::Only((0..ports).collect()),
        ..SwitchConfig::default()
    };
    let mut switch = Switch::new(Arc::clone(program), config).unwrap();
    let groups = switch.replication_mut();
    for (group, copies) in [(1, &[(2, 7), (3, 8), (0, 9)][..]), (2, &[(1, 4)]), (4, &[])] {
        groups.create_group(group).unwrap();
        groups
            .set_copies(group, copies.iter().map(|(port, rid)| Replica { port: *port, rid: *rid }).collect())
            .unwrap();
    }
    // Of session 3 the group does not exist, session 5 has no copies, session 4 does not exist.
    let replica = |(port, rid): (u32, u16)| Replica { port, rid };
    let own = |copies: &[(u32, u16)]| copies.iter().copied().map(replica).collect::<Vec<_>>();
    let sessions = [
        (0, Session::to_port(1)),
        (1, Session { truncate: Some(20), ..Session::to_port(3) }),
        (2, Session { copies: own(&[(0, 5), (3, 6)]), class_of_service: 2, ..Session::to_group(1) }),
        (3, Session { copies: own(&[(2, 1)]), ..Session::to_group(3) }),
        (5, Session::default()),
    ];
    sessions.into_iter().for_each(|(number, session)| groups.set_session(number, session).unwrap());
    switch
}

/// A frame of one of these operations; no two have the same bytes after the first two.
fn frame(rng: &mut Rng, operations: &[u8], number: u32) -> Vec<u8> {
    let operation = operations[rng.below(operations.len())];
    let mut bytes = vec![operation, rng.below(6) as u8];
    bytes.extend(number.to_be_bytes());
    let most = if rng.one_in(5) { 900 } else { 70 };
    bytes.extend((0..rng.below(most)).map(|_| rng.next_u64() as u8));
    if rng.one_in(40) {
        bytes.truncate(1);
    }
    bytes
}

/// How a device and the interpreter are compared.
struct Case<'a> {
    program: Arc<Program>,
    options: DeviceOptions,
    operations: &'a [u8],
    count: u32,
    /// How often of eight times a port has a beat and takes one.
    busy: (usize, usize),
}

impl Case<'_> {
    fn run(self) {
        let Case { program, options, operations, count, busy } = self;
        let what = format!("{options:?}, {operations:?}");
        let (ports, link) = (options.ports, options.link);
        let mut software = switch(&program, ports);
        let hardware = Hardware::new(Arc::clone(&program), Options::default()).unwrap();
        let device = Device::new(&hardware, options.clone()).unwrap();
        let clones = device.register_map().ports.iter().any(|port| port.object == "sessions");
        let mut bench = Bench::new(&device).unwrap();
        bench.set_groups(&device_groups(software.replication())).unwrap();
        if clones {
            bench.set_sessions(&device_sessions(software.replication())).unwrap();
        }
        bench.update(software.state()).unwrap();
        let mut rng = Rng::new(17);
        let mut sent: Vec<Vec<Vec<u8>>> = vec![Vec::new(); ports as usize];
        for number in 0..count {
            let mut bytes = frame(&mut rng, operations, number);
            if link.has_macs() {
                bytes.resize(bytes.len().max(60), 0);
            }
            let port = rng.below(ports as usize);
            sent[port].push(bytes.clone());
            bench.send(port as u32, bytes, false);
        }
        let every = seldom(link, 200);
        let (mut state, mut effects) = (switch(&program, ports), Effects::default());
        let (left, order) = drive(&what, &mut bench, (every, busy), (&mut state, &mut effects));
        let mut wanted: BTreeMap<u32, Vec<Vec<u8>>> = BTreeMap::new();
        let mut digests = Vec::new();
        let mut next = vec![0; ports as usize];
        let of_ports: Vec<_> = order.iter().filter(|decided| decided.port < ports).collect();
        assert_eq!(of_ports.len(), count as usize, "{what}: headers decided");
        for decided in of_ports {
            let at = &mut next[decided.port as usize];
            let outcome = software.inject(options.number(decided.port), &sent[decided.port as usize][*at], 0);
            *at += 1;
            for sent in outcome.sent {
                let mut bytes = sent.bytes;
                if link.has_macs() {
                    bytes.resize(bytes.len().max(60), 0);
                }
                wanted.entry(options.port(sent.port).unwrap()).or_default().push(bytes);
            }
            digests.extend(outcome.digests);
        }
        let mut found: BTreeMap<u32, Vec<Vec<u8>>> = BTreeMap::new();
        for left in left {
            assert!(!left.is_bad, "{what}: port {}, a bad frame", left.port);
            found.entry(left.port).or_default().push(left.bytes);
        }
        compare(&what, &found, &wanted);
        check_underruns(&what, &mut bench, &options);
        let [hits, misses, _] = check_counted(&what, &mut bench, &software);
        assert!(program.tables.is_empty() || hits > 0 && misses > 0, "{what}: {hits} hits, {misses} misses");
        let (own, effects) = (state.state_mut(), &mut effects);
        bench.read_back(&mut Objects { state: own, now_ns: 0, effects }).unwrap();
        assert_eq!(effects.digests(), digests, "{what}: digests");
        assert_eq!(memory(&state), memory(&software), "{what}: what objects hold");
        assert_eq!(bench.simulator().collisions(), 0, "{what}: memories are read where they are written");
        assert!(!wanted.is_empty(), "{what}: nothing was sent");
    }
}

/// All frames, whatever their order; and in order those that passed once, as they tell themselves.
fn compare(what: &str, found: &BTreeMap<u32, Vec<Vec<u8>>>, wanted: &BTreeMap<u32, Vec<Vec<u8>>>) {
    let sorted = |frames: &BTreeMap<u32, Vec<Vec<u8>>>| -> BTreeMap<u32, Vec<Vec<u8>>> {
        let each = frames.iter().map(|(port, frames)| {
            let mut frames = frames.clone();
            frames.sort();
            (*port, frames)
        });
        each.collect()
    };
    let (all, all_wanted) = (sorted(found), sorted(wanted));
    for (port, wanted) in &all_wanted {
        let found = all.get(port).map_or(&[][..], Vec::as_slice);
        for (found, wanted) in found.iter().zip(wanted) {
            assert_eq!(found, wanted, "{what}: port {port}, frames in the order of their bytes");
        }
        assert_eq!(found.len(), wanted.len(), "{what}: frames of port {port}");
    }
    assert_eq!(all.len(), all_wanted.len(), "{what}: ports");
    // They tell their path, and what they kept of a pass before.
    let is_first = |bytes: &&Vec<u8>| matches!(bytes[..], [_, _, 0 | 5, 0, ..]);
    let once = |frames: &BTreeMap<u32, Vec<Vec<u8>>>| -> Vec<Vec<u8>> {
        frames.values().flatten().filter(is_first).cloned().collect()
    };
    let (found, wanted) = (once(found), once(wanted));
    let differs = found.iter().zip(&wanted).position(|(found, wanted)| found != wanted);
    assert!(found == wanted, "{what}: the order of frames that pass once, at {differs:?}");
}

fn options() -> DeviceOptions {
    DeviceOptions { depth: 64, ..DeviceOptions::default() }
}

const WITHOUT_CLONES: [&str; 2] = ["clone", "truncate"];

#[test]
fn frames_start_again() {
    let program = through(&WITHOUT_CLONES);
    // 2 is dropped, 3 multicast, 5 and 13 resubmitted, 6 and 16 recirculated, 9 tells its digest, 14 is dropped in egress.
    let operations = [1, 2, 3, 5, 6, 6, 9, 13, 14, 15, 16, 1];
    for (ports, width, slots, busy) in
        [(4, 64, 16, (7, 7)), (4, 64, 2, (8, 8)), (3, 256, 16, (8, 5)), (1, 512, 64, (8, 8))]
    {
        let options = DeviceOptions { ports, width, slots, ..options() };
        Case { program: Arc::clone(&program), options, operations: &operations, count: 300, busy }.run();
    }
    let options = DeviceOptions { numbers: vec![3, 1, 0, 2], ..options() };
    Case { program, options, operations: &operations, count: 200, busy: (7, 7) }.run();
}

#[test]
fn a_frame_without_end_is_dropped() {
    let program = through(&WITHOUT_CLONES);
    Case { program, options: options(), operations: &[1, 6, 17], count: 40, busy: (4, 8) }.run();
}

#[test]
fn frames_start_again_between_macs() {
    let program = through(&WITHOUT_CLONES);
    let options = DeviceOptions { link: Link::Xgmii, slots: 32, ..options() };
    let operations = &[1, 3, 5, 6, 16];
    Case { program: Arc::clone(&program), options, operations, count: 150, busy: (1, 8) }.run();
    let options = DeviceOptions { link: Link::Gmii, width: 128, slots: 32, ..self::options() };
    Case { program, options, operations, count: 60, busy: (1, 8) }.run();
}

/// Clones have a number of copies, groups, cuts and sessions that do not exist.
#[test]
fn frames_are_cloned_in_ingress_and_cut() {
    let mut source = Source::new(&[]);
    source.no_clones_in_egress();
    let program = source.program();
    // 4 is cloned, 10 is cut.
    let operations = [1, 2, 3, 4, 4, 5, 6, 10, 16];
    for (ports, width, slots, busy) in [(4, 64, 16, (5, 7)), (3, 256, 32, (8, 8)), (4, 512, 8, (8, 6))] {
        let options = DeviceOptions { ports, width, slots, ..options() };
        Case { program: Arc::clone(&program), options, operations: &operations, count: 300, busy }.run();
    }
    let options = DeviceOptions { numbers: vec![2, 0, 3, 1], ..self::options() };
    Case { program: Arc::clone(&program), options, operations: &operations, count: 200, busy: (7, 7) }.run();
    let options = DeviceOptions { link: Link::Xgmii, slots: 32, ..self::options() };
    Case { program, options, operations: &[1, 3, 4, 10], count: 120, busy: (1, 8) }.run();
}

/// A clone of egress has the headers that its frame had before the deparser, and passes egress again.
#[test]
fn frames_are_cloned_in_egress() {
    let program = through(&[]);
    // 8 is cloned in egress, 4 in ingress, 10 is cut.
    let operations = [1, 3, 4, 5, 6, 8, 8, 8, 10, 14, 16];
    for (ports, width, slots, busy) in [(4, 64, 16, (5, 7)), (3, 256, 32, (8, 8)), (4, 512, 8, (8, 6))] {
        let options = DeviceOptions { ports, width, slots, ..options() };
        Case { program: Arc::clone(&program), options, operations: &operations, count: 300, busy }.run();
    }
    let options = DeviceOptions { numbers: vec![1, 3, 2, 0], ..self::options() };
    Case { program, options, operations: &operations, count: 200, busy: (5, 7) }.run();
    let mut source = Source::new(&["resubmit", "recirculate", "truncate"]);
    source.replace(
        "    i_clone = true\n    i_session = zext(h.arg, 32)\n    i_clone_list = 32w1\n    keep = 8w0x55",
        "    keep = 8w0x55",
    );
    let options = DeviceOptions { link: Link::Xgmii, slots: 32, ..self::options() };
    Case { program: source.program(), options, operations: &[1, 3, 4, 8], count: 120, busy: (1, 8) }.run();
}

/// Frames pass a register of egress in the order in which they leave, also copies of one frame.
#[test]
fn egress_has_registers() {
    let mut source = Source::new(&["clone", "truncate", "recirculate", "resubmit"]);
    source.replace(
        "digest seen_t (",
        "register seen: bit<8> size 32\ncounter passed size 32 packets_and_bytes\ndigest seen_t (",
    );
    let counts = "register_read other, seen, h.op\n    register_write seen, h.op, add(other, 8w1)\n    count passed, h.op";
    source.replace(
        "    keep = 8w0x77\n",
        &format!("    keep = 8w0x77\n    {counts}\n    tell.other = other\n"),
    );
    let program = source.program();
    let hardware = Hardware::new(Arc::clone(&program), Options::default()).unwrap();
    let refused = Device::new(&hardware, options()).unwrap_err().to_string();
    assert!(refused.contains("more than one queue"), "{refused}");
    for (width, busy) in [(64, (7, 7)), (256, (8, 5))] {
        let options = DeviceOptions { queues: 1, width, ..options() };
        Case { program: Arc::clone(&program), options, operations: &[1, 2, 3, 14, 15], count: 300, busy }
            .run();
    }
}

/// Lookups are counted once for each frame that asks the table, whichever way it came, in all stages; a frame that a parser rejects is
/// counted by its error, and so is a clone.
#[test]
fn lookups_and_parser_errors_are_counted() {
    for rejects in [false, true] {
        let mut source = Source::new(&[]);
        source.look_up();
        if rejects {
            source.replace("on_reject continue\n", "");
        }
        let program = source.program();
        let operations = [1, 2, 3, 4, 4, 5, 6, 8, 8, 10, 14, 16, 7];
        for (ports, width, busy) in [(4, 64, (5, 7)), (3, 256, (8, 8))] {
            let options = DeviceOptions { ports, width, ..options() };
            let program = Arc::clone(&program);
            Case { program, options, operations: &operations, count: 300, busy }.run();
        }
        let options = DeviceOptions { numbers: vec![1, 3, 2, 0], ..options() };
        Case { program, options, operations: &operations, count: 200, busy: (5, 7) }.run();
    }
}

/// The text of devices, for Verilator.
fn lint(program: &Arc<Program>, options: DeviceOptions, name: &str) {
    if !tools::has("verilator") {
        return;
    }
    let hardware = Hardware::new(Arc::clone(program), Options::default()).unwrap();
    let device = Device::new(&hardware, options).unwrap();
    tools::lint(device.design(), name).unwrap_or_else(|said| panic!("{said}"));
    if tools::has("yosys") {
        let script =
            "hierarchy -check -top TOP; proc; opt_clean; check -assert; select -assert-none t:$dlatch";
        tools::yosys(device.design(), name, script).unwrap_or_else(|said| panic!("{said}"));
    }
}

#[test]
fn verilator_and_yosys_have_nothing_to_say() {
    lint(&through(&WITHOUT_CLONES), DeviceOptions { ports: 2, ..options() }, "device-again");
    let mut source = Source::new(&[]);
    source.no_clones_in_egress();
    lint(&source.program(), DeviceOptions { ports: 2, ..options() }, "device-clones");
    lint(&through(&[]), DeviceOptions { ports: 2, ..options() }, "device-clones-of-egress");
}
