//! Objects that ingress and egress ask, in one unit: with one frame at a time all is as in the interpreter; with frames in both stages
//! concurrently, what they do to objects is what they would do one after the other.

use super::{drive, kept, plain, tools};
use millrace_dataplane::{EngineKind, KnownPorts, Replica, Switch, SwitchConfig, device_groups};
use millrace_differential::compile;
use millrace_pipeline::arbitrary::Rng;
use millrace_rtl::device::{Bench, DeviceOptions, Left};
use millrace_rtl::{Device, Hardware, Objects, Options};
use millrace_state::{Effects, MeterRates, Rate};
use std::collections::BTreeMap;
use std::sync::Arc;

const PORTS: u32 = 4;
/// A group of two ports.
const GROUP: u8 = 3;

fn switch() -> Switch {
    let program = compile("shared", include_str!("shared.p4"));
    let config = SwitchConfig {
        engine: EngineKind::Interp,
        ports: KnownPorts::Only((0..PORTS).collect()),
        ..SwitchConfig::default()
    };
    let mut switch = Switch::new(program, config).unwrap();
    let groups = switch.replication_mut();
    groups.create_group(GROUP.into()).unwrap();
    let copies = [(1, 1), (2, 2)].map(|(port, rid)| Replica { port, rid });
    groups.set_copies(GROUP.into(), copies.to_vec()).unwrap();
    // Nothing comes back while the time stands still: 40 packets are green, 20 yellow.
    let rates = MeterRates {
        cir: Rate::per_second_millionths(1),
        cbs: 40,
        pir: Rate::per_second_millionths(1),
        pbs: 60,
    };
    let meter = switch.program().meters.keys().next().unwrap();
    for index in 0..8 {
        switch.state_mut().set_meter(meter, index, Some(rates.into())).unwrap();
    }
    switch
}

/// A frame for a port, or for the group with 16 more; no two are the same.
fn frame(to: u8, index: u8, number: u32) -> Vec<u8> {
    let mut bytes = vec![to, index];
    bytes.extend([0xee; 18]);
    bytes.extend(number.to_be_bytes());
    bytes.resize(60, 0);
    bytes
}

/// What a frame has found.
struct Found {
    index: u8,
    ingress: [u32; 2],
    egress: [u32; 2],
    colors: [u8; 2],
    number: u32,
}

impl Found {
    fn of(bytes: &[u8]) -> Found {
        let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
        Found {
            index: bytes[1],
            ingress: [word(2), word(6)],
            egress: [word(10), word(14)],
            colors: [bytes[18], bytes[19]],
            number: word(20),
        }
    }
}

fn device(options: DeviceOptions) -> Device {
    let hardware = Hardware::new(Arc::clone(switch().program()), Options::default()).unwrap();
    Device::new(&hardware, options).unwrap()
}

fn options() -> DeviceOptions {
    // Egress keeps registers, so there is one queue.
    DeviceOptions { ports: PORTS, queues: 1, depth: 64, ..DeviceOptions::default() }
}

fn bench(device: &Device, software: &mut Switch) -> Bench {
    let mut bench = Bench::new(device).unwrap();
    bench.set_groups(&device_groups(software.replication())).unwrap();
    bench.update(software.state()).unwrap();
    bench
}

fn read_back(bench: &mut Bench, into: &mut Switch) {
    let mut effects = Effects::default();
    bench.read_back(&mut Objects { state: into.state_mut(), now_ns: 0, effects: &mut effects }).unwrap();
}

#[test]
fn one_frame_at_a_time_finds_what_the_interpreter_finds() {
    let (mut software, mut read) = (switch(), switch());
    let mut bench = bench(&device(options()), &mut software);
    let mut rng = Rng::new(3);
    for number in 0..150 {
        let to = if rng.one_in(4) { 16 + GROUP } else { rng.below(PORTS as usize) as u8 };
        // Indices 8 and 9 are beyond the end.
        let bytes = frame(to, rng.below(10) as u8, number);
        let mut wanted = software.inject(0, &bytes, 0).sent;
        bench.send(0, bytes, false);
        let mut left: Vec<Left> = Vec::new();
        (0..220).for_each(|_| left.extend(bench.step(&mut |_| true, &mut |_| true).0));
        left.sort_by_key(|left| left.port);
        wanted.sort_by_key(|sent| sent.port);
        // The order of the copies of a group in egress is that of the group in both.
        let left: Vec<_> = left.into_iter().map(|left| (left.port, left.bytes)).collect();
        let wanted: Vec<_> = wanted.into_iter().map(|sent| (sent.port, sent.bytes)).collect();
        assert_eq!(left, wanted, "frame {number}");
    }
    read_back(&mut bench, &mut read);
    assert_eq!(kept(&read), kept(&software));
}

/// Each pass of a stage adds one to both registers at once, so in whatever order frames pass, each finds the same in both, and another
/// number than all others.
#[test]
fn frames_of_both_stages_take_turns() {
    for (busy, groups) in [((8, 8), false), ((8, 8), true), ((6, 3), true)] {
        let (mut software, mut read) = (switch(), switch());
        let device = device(options());
        let mut bench = bench(&device, &mut software);
        let mut rng = Rng::new(11);
        let (mut passes, mut frames) = ([0u32; 8], 0);
        for number in 0..800 {
            let port = rng.below(PORTS as usize);
            let to = if groups && rng.one_in(5) { 16 + GROUP } else { rng.below(PORTS as usize) as u8 };
            let index = rng.below(3) as u8;
            let copies = if to >= 16 { 2 } else { 1 };
            passes[index as usize] += 1 + copies;
            frames += copies;
            bench.send(port as u32, frame(to, index, number), false);
        }
        let mut effects = Effects::default();
        let (left, order) = drive("shared", &mut bench, (8, busy), (&mut read, &mut effects));
        assert_eq!((left.len() as u32, order.len()), (frames, 800));
        let found: Vec<Found> = left.iter().map(|left| Found::of(&left.bytes)).collect();
        let mut values: BTreeMap<u8, Vec<u32>> = BTreeMap::new();
        let mut colors: BTreeMap<u8, [u32; 3]> = BTreeMap::new();
        let mut ingress: BTreeMap<u32, u32> = BTreeMap::new();
        for Found { index, ingress: of_ingress, egress, colors: of_frame, number } in found {
            assert_eq!((of_ingress[0], egress[0]), (of_ingress[1], egress[1]), "frame {number}: not in turn");
            assert!(of_ingress[0] < egress[0], "frame {number}: egress before ingress");
            let (known, colors) = (values.entry(index).or_default(), colors.entry(index).or_default());
            known.push(egress[0]);
            colors[of_frame[1] as usize] += 1;
            if ingress.insert(number, of_ingress[0]).is_none() {
                known.push(of_ingress[0]);
                colors[of_frame[0] as usize] += 1;
            }
        }
        for (index, mut found) in values {
            found.sort_unstable();
            let all = passes[index as usize];
            assert_eq!(found, (0..all).collect::<Vec<_>>(), "index {index}: one pass has not seen another");
            let (green, yellow) = (all.min(40), all.saturating_sub(40).min(20));
            assert_eq!(colors[&index], [green, yellow, all - green - yellow], "index {index}");
        }
        read_back(&mut bench, &mut read);
        let counter = read.program().counters.keys().next().unwrap();
        let registers: Vec<_> = read.program().registers.keys().collect();
        for (index, all) in (0..).zip(passes) {
            let reference = millrace_state::CounterRef::Indexed(counter);
            let counted = read.state().tables().counter_value(reference, index).unwrap();
            assert_eq!(counted.packets, u64::from(all));
            for register in &registers {
                assert_eq!(read.state().register_read(*register, index).to_u64_saturating(), u64::from(all));
            }
        }
        assert_eq!(bench.simulator().collisions(), 0);
    }
}

/// So many frames pass as the report says: with frames waiting at all ports a frame of each stage in so many cycles.
#[test]
fn the_rate_is_that_of_the_report() {
    let device = device(DeviceOptions { width: 512, ..options() });
    let interval = device.report().interval;
    assert!(interval > 1, "{}", device.report());
    let mut software = switch();
    let mut bench = bench(&device, &mut software);
    let first = bench.cycle();
    for number in 0..400 {
        bench.send(number % PORTS, frame((number % PORTS) as u8, 0, number), false);
    }
    let mut left = 0;
    while left < 400 && bench.cycle() < first + 100_000 {
        left += bench.step(&mut |_| true, &mut |_| true).0.len();
    }
    let cycles = bench.cycle() - first;
    let due = u64::from(interval) * 400;
    println!("{cycles} cycles for 400 frames, {due} by the interval of {interval}");
    assert!(cycles <= due + due / 10 + 200, "{cycles} cycles, {due} are due");
}

#[test]
fn tools_have_nothing_to_say() {
    if !tools::has("verilator") {
        return;
    }
    let device = device(DeviceOptions { slots: 8, depth: 8, ..options() });
    tools::lint(&plain(device.design()), "device-lint-shared").unwrap_or_else(|said| panic!("{said}"));
    let hardware = Hardware::new(Arc::clone(switch().program()), Options::default()).unwrap();
    let shared = hardware.shared_design().unwrap();
    tools::lint(&plain(&shared), "lint-shared").unwrap_or_else(|said| panic!("{said}"));
    for (part, design) in hardware.designs() {
        let name = format!("lint-shared-{}", part.name());
        tools::lint(&plain(&design), &name).unwrap_or_else(|said| panic!("{said}"));
    }
}
