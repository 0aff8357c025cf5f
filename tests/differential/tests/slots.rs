//! Devices in the slots of a backplane, in simulation: one is exchanged while the others run.

#[allow(dead_code)]
#[path = "../../../crates/netlist/tests/common/tools.rs"]
mod tools;

use millrace_dataplane::{EngineKind, KnownPorts, Switch, SwitchConfig};
use millrace_differential::compile_path;
use millrace_netlist::verilog::{self, VerilogFile};
use millrace_pipeline::arbitrary::Rng;
use millrace_rtl::backplane::{self, BEAT, Backplane, BackplaneOptions, Chassis, Place, Rule};
use millrace_rtl::device::Left;
use millrace_rtl::{Device, DeviceOptions, Effort, Hardware, Options, Pair};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const SLOTS: u32 = 13;
const PORTS: u32 = 4;
/// The slot that is exchanged.
const CHANGED: u32 = 7;
/// Cycles for which it is loaded.
const LOADING: u64 = 300;

/// The layer-2 switch as a device.
fn device() -> (Device, Hardware) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs/l2_switch.p4");
    let hardware = Hardware::new(compile_path(&path), Options::default()).unwrap();
    let options =
        DeviceOptions { ports: PORTS, slots: 4, queues: 1, depth: 4, frame: 512, ..DeviceOptions::default() };
    (Device::new(&hardware, options).unwrap(), hardware)
}

/// Stations: that of port p is `06:..:p`; frames to it leave by p plus `by`.
fn switch(hardware: &Hardware, by: u32) -> Switch {
    let entries: String = (0..PORTS)
        .map(|port| {
            let to = (port + by) % PORTS;
            format!(
                "table_add smac NoAction 06:00:00:00:00:0{port} =>\ntable_add dmac forward 06:00:00:00:00:0{port} => {to}\n"
            )
        })
        .collect();
    let ports = KnownPorts::Only((0..PORTS).collect());
    let config = SwitchConfig { engine: EngineKind::Interp, ports, ..SwitchConfig::default() };
    let mut switch = Switch::new(Arc::clone(hardware.program()), config).unwrap();
    millrace_control::entries::load(&mut switch, &entries).unwrap();
    switch
}

/// A frame of 64 bytes from a port to the station of the next, in the VLAN of a slot.
fn frame(slot: u32, port: u32, number: u32) -> Vec<u8> {
    let next = ((port + 1) % PORTS) as u8;
    let mut bytes =
        vec![6, 0, 0, 0, 0, next, 6, 0, 0, 0, 0, port as u8, 0x81, 0, 0, 100 + slot as u8, 0x88, 0xb5];
    bytes.extend(number.to_be_bytes());
    bytes.resize(64, 0);
    bytes
}

fn slot_of(frame: &[u8]) -> u32 {
    u32::from(frame[15]) - 100
}

fn number_of(frame: &[u8]) -> u32 {
    u32::from_be_bytes(frame[18..22].try_into().unwrap())
}

/// A chassis whose slots all have the switch, each in a VLAN of its own.
fn chassis(device: &Device, hardware: &Hardware) -> Chassis {
    let backplane = Backplane::new(BackplaneOptions { slots: SLOTS, ports: PORTS, width: 64 }).unwrap();
    let mut chassis = Chassis::new(&backplane).unwrap();
    let places = (0..SLOTS).flat_map(|slot| (0..PORTS).map(move |port| Place { slot, port }));
    let rules: Vec<Rule> = (places.clone())
        .map(|to| Rule {
            lines: 1 << to.port,
            vlan: Some(100 + to.slot as u16),
            destination: None,
            from: None,
            to,
        })
        .collect();
    chassis.set_rules(&rules).unwrap();
    places.for_each(|place| chassis.set_map(place, place.port).unwrap());
    let switch = switch(hardware, 0);
    for slot in 0..SLOTS {
        chassis.load(slot, device, switch.state(), 0).unwrap();
        chassis.step();
    }
    chassis
}

/// What left in a run, and what was dropped at the gate of the changed slot.
struct Run {
    left: Vec<Left>,
    started: Vec<u64>,
    dropped: u64,
    outage: Option<u64>,
}

/// Frames of all slots in turn at each port, each 20 cycles after the one before, so that no two meet at an output. With `exchange`, a slot
/// is exchanged in the middle.
fn run(device: &Device, hardware: &Hardware, rounds: u32, exchange: bool) -> Run {
    let mut chassis = chassis(device, hardware);
    let other = switch(hardware, 1);
    let (mut left, mut sent) = (Vec::new(), 0);
    let begun = chassis.cycle().next_multiple_of(1000);
    while chassis.cycle() < begun {
        chassis.step();
    }
    let all = rounds * SLOTS;
    while sent < all || chassis.cycle() < begun + u64::from(all) * 20 + 400 {
        if sent < all && chassis.cycle() >= begun + u64::from(sent) * 20 {
            (0..PORTS).for_each(|port| chassis.send(port, frame(sent % SLOTS, port, sent / SLOTS)));
            sent += 1;
        }
        if exchange && chassis.cycle() == begun + u64::from(all) * 10 {
            chassis.load(CHANGED, device, other.state(), LOADING).unwrap();
        }
        left.extend(chassis.step());
    }
    let dropped = (0..PORTS).map(|port| chassis.get(&format!("slot{CHANGED}_rx{port}_dropped")).unwrap());
    let dropped = dropped.sum();
    let started = chassis.take_started(0);
    let outage = exchange.then(|| chassis.outage(CHANGED).unwrap().cycles());
    assert!((0..PORTS).all(|port| chassis.get(&format!("rx{port}_unknown")) == Some(0)));
    Run { left, started, dropped, outage }
}

fn histogram(run: &Run, begun: &BTreeMap<(u32, u32), u64>) -> BTreeMap<u64, u64> {
    let mut histogram = BTreeMap::new();
    for frame in run.left.iter().filter(|frame| slot_of(&frame.bytes) != CHANGED) {
        let key = (slot_of(&frame.bytes), number_of(&frame.bytes));
        *histogram.entry(frame.at.0 - begun[&key]).or_default() += 1;
    }
    histogram
}

/// 13 slots under load, one exchanged: all frames of the others leave, in the same cycles as without the exchange, whatever the signals of
/// the slot are meanwhile. What the slot lost is counted.
#[test]
fn a_slot_is_exchanged_and_the_others_do_not_notice() {
    let (device, hardware) = device();
    let rounds = 6;
    let (quiet, changed) = (run(&device, &hardware, rounds, false), run(&device, &hardware, rounds, true));
    let others = |run: &Run| -> Vec<Left> {
        let others = run.left.iter().filter(|frame| slot_of(&frame.bytes) != CHANGED);
        let mut others: Vec<Left> = others.cloned().collect();
        others.sort_by_key(|frame| (slot_of(&frame.bytes), frame.port, number_of(&frame.bytes)));
        others
    };
    assert_eq!(quiet.left.len() as u32, SLOTS * PORTS * rounds);
    assert_eq!(others(&changed).len() as u32, (SLOTS - 1) * PORTS * rounds);
    for (one, other) in others(&quiet).iter().zip(others(&changed)) {
        assert_eq!(one.bytes, other.bytes);
        assert!(!one.is_bad && !other.is_bad);
    }
    let begun = |run: &Run| -> BTreeMap<(u32, u32), u64> {
        (0..rounds * SLOTS).zip(&run.started).map(|(at, cycle)| ((at % SLOTS, at / SLOTS), *cycle)).collect()
    };
    let latencies = histogram(&quiet, &begun(&quiet));
    assert_eq!(latencies, histogram(&changed, &begun(&changed)));
    println!("latency of the other slots, with and without the exchange, in cycles: {latencies:?}");

    // The slot: before by one rule, then nothing, then by the other.
    let of_slot: Vec<&Left> = changed.left.iter().filter(|frame| slot_of(&frame.bytes) == CHANGED).collect();
    let came_from = |frame: &Left| u32::from(frame.bytes[11]);
    let whole = || of_slot.iter().filter(|frame| !frame.is_bad);
    let (before, after): (Vec<&Left>, Vec<&Left>) =
        whole().copied().partition(|frame| frame.port == (came_from(frame) + 1) % PORTS);
    assert!(after.iter().all(|frame| frame.port == (came_from(frame) + 2) % PORTS));
    assert!(!before.is_empty() && !after.is_empty());
    let last = before.iter().map(|frame| number_of(&frame.bytes)).max().unwrap();
    assert!(after.iter().all(|frame| number_of(&frame.bytes) > last));
    let lost = u64::from(PORTS * rounds) - whole().count() as u64;
    // What was in the device when the gate closed is gone with it: a frame of each port at most, as they come 260 cycles apart.
    assert!(changed.dropped > 0 && (changed.dropped..=changed.dropped + u64::from(PORTS)).contains(&lost));
    let outage = changed.outage.unwrap();
    println!(
        "outage: {outage} cycles, of which {LOADING} are loading; {lost} frames lost, {} at the gate",
        changed.dropped
    );
    assert!((LOADING..LOADING + 20).contains(&outage), "{outage}");
}

/// A rate holds a slot back and nobody else; frames that match no rule are counted; slots are connected over the link.
#[test]
fn rates_rules_and_links() {
    let (device, hardware) = device();
    let backplane = Backplane::new(BackplaneOptions { slots: 2, ports: PORTS, width: 64 }).unwrap();
    let mut chassis = Chassis::new(&backplane).unwrap();
    let place = |slot, port| Place { slot, port };
    let by_mac = |destination: u8, to| Rule {
        lines: 0b0001,
        vlan: None,
        destination: Some([6, 0, 0, 0, 0, destination]),
        from: None,
        to,
    };
    // Port 0 to slot 0; its port 1 is connected with port 0 of slot 1, whose port 3 is the port 3 of the chassis.
    let linked =
        Rule { lines: 0b1_0000, vlan: None, destination: None, from: Some(place(0, 1)), to: place(1, 0) };
    chassis.set_rules(&[by_mac(1, place(0, 0)), by_mac(3, place(1, 0)), linked]).unwrap();
    chassis.set_map(place(0, 1), PORTS).unwrap();
    chassis.set_map(place(1, 1), 3).unwrap();
    chassis.set_map(place(1, 3), 2).unwrap();
    let switch = switch(&hardware, 0);
    (0..2).for_each(|slot| chassis.load(slot, &device, switch.state(), 0).unwrap());
    (0..20).for_each(|_| drop(chassis.step()));
    let frame = |destination: u8, number: u8| {
        let mut bytes = vec![6, 0, 0, 0, 0, destination, 6, 0, 0, 0, 0, 0, 0x88, 0xb5, number];
        bytes.resize(64, 0);
        bytes
    };
    let mut left = Vec::new();
    for number in 0..10 {
        [1, 3, 2].into_iter().for_each(|to| chassis.send(0, frame(to, number)));
    }
    (0..1500).for_each(|_| left.extend(chassis.step()));
    // To station 1: through both slots to port 3 of the chassis; to station 3: through slot 1; to station 2: no rule.
    let numbers = |left: &[Left], port: u32, to: u8| -> Vec<u8> {
        let those = left.iter().filter(|frame| frame.port == port && frame.bytes[5] == to);
        those.map(|frame| frame.bytes[14]).collect()
    };
    assert_eq!(numbers(&left, 3, 1), (0..10).collect::<Vec<u8>>());
    assert_eq!(numbers(&left, 2, 3), (0..10).collect::<Vec<u8>>());
    assert_eq!((left.len(), chassis.get("rx0_unknown")), (20, Some(10)));

    // Slot 1 may send a beat in 64 cycles: a frame of 8 beats in 512, after what it may send at once. Frames that come to it faster are
    // dropped, at its gate or by itself, and do not hold up those of the same line for slot 0.
    chassis.set_rules(&[by_mac(2, place(0, 0)), by_mac(3, place(1, 0))]).unwrap();
    chassis.set_map(place(0, 2), 1).unwrap();
    chassis.set_rate(1, (BEAT / 64) as u16);
    left.clear();
    let begun = chassis.cycle();
    while chassis.cycle() < begun + 15_000 {
        if (chassis.cycle() - begun).is_multiple_of(60) {
            let number = ((chassis.cycle() - begun) / 60) as u8;
            [3, 2].into_iter().for_each(|to| chassis.send(0, frame(to, number)));
        }
        left.extend(chassis.step());
    }
    let of = |to: u8| left.iter().filter(move |frame| frame.bytes[5] == to);
    let beats: u64 = of(3).map(|frame| frame.bytes.len() as u64 / 8).sum();
    let (allowed, burst) = (15_000 / 64, 512);
    assert!((allowed..=allowed + burst + 16).contains(&beats), "{beats} beats");
    let last = of(3).filter(|frame| frame.at.0 > begun + 9000).count();
    assert!((10..=13).contains(&last), "{last} frames in 6000 cycles");
    let late = of(2).map(|frame| frame.at.0 - begun - u64::from(frame.bytes[14]) * 60).max();
    assert!(of(2).count() >= 248 && late < Some(120), "{} frames of slot 0, {late:?}", of(2).count());
}

/// Verilator has nothing to say of a backplane, and its model says the same in each cycle, whatever comes in.
#[test]
fn the_printed_backplane_is_the_simulated() {
    let backplane = Backplane::new(BackplaneOptions { slots: 2, ports: 2, width: 64 }).unwrap();
    let mut design = backplane.design().clone();
    millrace_netlist::passes::optimize(&mut design);
    let mut pair = match Pair::new(&design, Effort::Quick) {
        Ok(pair) => pair,
        Err(why) if why.contains("Debian: verilator") => return println!("skipped: {why}"),
        Err(why) => panic!("{why}"),
    };
    let mut rng = Rng::new(5);
    for cycle in 0..4000 {
        pair.set_inputs(&mut || rng.next_u64());
        if let Some((name, ours, theirs)) = pair.difference() {
            panic!("cycle {cycle}: {name} is {ours}, and {theirs} in the model");
        }
        pair.step();
    }
}

/// A backplane of any allowed size passes the lint of Verilator, and what is not allowed is said.
#[test]
fn backplanes_have_sizes() {
    for (slots, ports, width) in [(13, 4, 64), (1, 1, 512), (3, 2, 128)] {
        let backplane = Backplane::new(BackplaneOptions { slots, ports, width }).unwrap();
        let mut design = backplane.design().clone();
        millrace_netlist::passes::optimize(&mut design);
        if tools::has("verilator") {
            tools::lint(&design, &format!("backplane-{slots}"))
                .unwrap_or_else(|said| panic!("{slots} slots: {said}"));
        }
    }
    for (slots, ports, width, why) in
        [(33, 1, 64, "slots of 33"), (0, 1, 64, "slots of 0"), (1, 9, 64, "ports of 9"), (1, 1, 96, "96")]
    {
        let error = Backplane::new(BackplaneOptions { slots, ports, width }).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
}

/// With devices in its slots, and with what stands for them when the backplane is made alone.
#[test]
fn chassis_are_printed_with_and_without_devices() {
    let (device, _) = device();
    let backplane = Backplane::new(BackplaneOptions { slots: 3, ports: PORTS, width: 64 }).unwrap();
    let inner = verilog::print(device.design());
    let (slot, others) = inner.split_last().unwrap();
    let own = backplane::print(&backplane, &device, slot);
    let (top, own) = own.split_last().unwrap();
    let stub = VerilogFile { text: backplane::stub(slot), ..slot.clone() };
    let mut whole = own.to_vec();
    for file in others.iter().chain([slot]) {
        match own.iter().find(|other| other.module == file.module) {
            // A module of both is one.
            Some(other) => assert_eq!(other.text, file.text, "{}", file.module),
            None => whole.push(file.clone()),
        }
    }
    whole.push(top.clone());
    if !tools::has("verilator") {
        return;
    }
    tools::lint_files(&whole, "chassis").unwrap_or_else(|said| panic!("{said}"));
    // What nobody drives in a module without content is no fault of the backplane.
    let alone: Vec<VerilogFile> = own.iter().cloned().chain([stub, top.clone()]).collect();
    let said = tools::lint_files(&alone, "chassis-alone").err().unwrap_or_default();
    assert!(!said.contains("Error: Cannot find") && !said.contains("PINMISSING"), "{said}");
}
