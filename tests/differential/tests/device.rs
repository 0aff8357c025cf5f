//! Whole devices in simulation next to the interpreter with the software's traffic manager: the same frames at each port in the same
//! order, the same drops by reason, for random frames, gaps and backpressure.

#[allow(dead_code)]
#[path = "../../../crates/netlist/tests/common/tools.rs"]
mod tools;

use millrace_dataplane::{EngineKind, KnownPorts, Switch, SwitchConfig};
use millrace_differential::compile_path;
use millrace_netlist::Design;
use millrace_pipeline::arbitrary::Rng;
use millrace_rtl::device::{Bench, DeviceOptions, Left, Link};
use millrace_rtl::{Device, Hardware, Options};
use std::collections::BTreeMap;
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
    let path = programs().join(format!("{name}.p4"));
    let program = compile_path(&path);
    let config = SwitchConfig {
        engine: EngineKind::Interp,
        ports: KnownPorts::Only((0..ports).collect()),
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

fn groups(switch: &Switch) -> BTreeMap<u32, Vec<(u32, u16)>> {
    let replication = switch.replication();
    let of = |id: u32| {
        let copies = replication.copies(id).unwrap_or_default();
        (id, copies.iter().map(|copy| (copy.port, copy.rid)).collect())
    };
    replication.groups().map(|(id, _)| of(id)).collect()
}

/// Runs frames through a device and the interpreter; `busy` says how often of eight times a port has a beat and takes one.
fn compare(name: &str, options: DeviceOptions, count: usize, busy: (usize, usize)) {
    let mut sample = sample(name, options.ports);
    let hardware = Hardware::new(Arc::clone(sample.switch.program()), Options::default()).unwrap();
    let (ports, link) = (options.ports, options.link);
    let device = Device::new(&hardware, options).unwrap();
    let mut bench = Bench::new(&device).unwrap();
    bench.set("whole_frames", u64::from(busy.1 == 5));
    bench.write_tables(sample.switch.state()).unwrap();
    bench.write_groups(&groups(&sample.switch)).unwrap();
    let mut rng = Rng::new(7);
    let mut sent: Vec<Vec<Vec<u8>>> = vec![Vec::new(); ports as usize];
    for _ in 0..count {
        let mut bytes = frame(&mut rng, &sample);
        if link == Link::Xgmii {
            bytes.resize(bytes.len().max(60), 0);
        }
        let port = rng.below(ports as usize);
        sent[port].push(bytes.clone());
        bench.send(port as u32, bytes, false);
    }
    // A link that is full all the time would fill queues.
    let every = if link == Link::Xgmii { 150 } else { 8 };
    let (mut left, mut order, mut idle) = (Vec::new(), Vec::new(), 0);
    let mut choice = Rng::new(9);
    let mut other = Rng::new(11);
    while bench.waiting() > 0 || idle < 3000 {
        let (gone, decided) =
            bench.step(&mut |_| choice.below(every) < busy.0, &mut |_| other.below(8) < busy.1);
        idle = if gone.is_empty() && decided.is_none() { idle + 1 } else { 0 };
        left.extend(gone);
        order.extend(decided);
        assert!(idle < 100_000, "{name}: the device stands still");
    }
    let mut next = vec![0; ports as usize];
    let mut wanted: Vec<Vec<Vec<u8>>> = vec![Vec::new(); ports as usize];
    let mut drops: BTreeMap<String, u64> = BTreeMap::new();
    assert_eq!(order.len(), count, "{name}: headers decided");
    for port in order {
        let bytes = &sent[port as usize][next[port as usize]];
        next[port as usize] += 1;
        let outcome = sample.switch.inject(port, bytes, 0);
        outcome.sent.into_iter().for_each(|sent| wanted[sent.port as usize].push(sent.bytes));
        for drop in &outcome.drops {
            let label = drop.reason.label(sample.switch.program());
            *drops.entry(label.split(':').next().unwrap_or_default().to_owned()).or_default() += 1;
        }
    }
    if link == Link::Xgmii {
        // A MAC fills frames up.
        wanted.iter_mut().flatten().for_each(|bytes| bytes.resize(bytes.len().max(60), 0));
    }
    check(name, &left, &wanted);
    let found: BTreeMap<String, u64> =
        bench.drops().into_iter().map(|(reason, count)| (reason.name().to_owned(), count)).collect();
    assert_eq!(found, drops, "{name}: drops");
    assert_eq!(bench.simulator().collisions(), 0, "{name}: memories are read where they are written");
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

/// Programs that devices are made of.
const NAMES: [&str; 3] = ["l2_switch", "router", "firewall"];

#[test]
fn devices_do_what_the_software_does() {
    for name in NAMES {
        compare(name, options(), 600, (7, 7));
        compare(name, options(), 300, (7, 5));
    }
}

#[test]
fn widths_and_ports() {
    for (ports, width) in [(1, 64), (3, 128), (4, 256), (5, 512)] {
        for name in NAMES {
            compare(name, DeviceOptions { ports, width, ..options() }, 300, (8, 8));
            compare(name, DeviceOptions { ports, width, slots: 2, ..options() }, 200, (4, 3));
        }
    }
}

#[test]
fn frames_go_from_mac_to_mac() {
    for name in NAMES {
        compare(name, DeviceOptions { link: Link::Xgmii, slots: 64, ..options() }, 150, (1, 8));
    }
}

/// Bad frames, and some that are longer than any, among good ones: these leave as they came, the others as bad or not at all.
#[test]
fn faults_harm_no_other_frame() {
    for (link, whole) in
        [(Link::Stream, false), (Link::Stream, true), (Link::Xgmii, false), (Link::Xgmii, true)]
    {
        let sample = sample("l2_switch", 4);
        let hardware = Hardware::new(Arc::clone(sample.switch.program()), Options::default()).unwrap();
        let device = Device::new(&hardware, DeviceOptions { link, ..options() }).unwrap();
        let mut bench = Bench::new(&device).unwrap();
        bench.set("whole_frames", u64::from(whole));
        bench.write_tables(sample.switch.state()).unwrap();
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
        while bench.waiting() > 0 || idle < 1000 {
            let (gone, _) = bench.step(&mut |_| true, &mut |_| true);
            idle = if gone.is_empty() { idle + 1 } else { 0 };
            left.extend(gone);
        }
        let good: Vec<&Vec<u8>> = left.iter().filter(|left| !left.is_bad).map(|left| &left.bytes).collect();
        assert_eq!(good, wanted.iter().collect::<Vec<_>>(), "{link:?}, {whole}");
        assert!(!whole || left.iter().all(|left| !left.is_bad), "{link:?}: a bad frame left");
        assert_eq!(bench.get("rx0_bad"), Some(faults[0] + faults[1]), "{link:?}, {whole}");
        assert_eq!(bench.get("rx0_oversize"), Some(faults[1]), "{link:?}, {whole}");
        if link == Link::Xgmii {
            assert_eq!(bench.get("rx0_mac_bad_check"), Some(faults[0]));
            assert_eq!(bench.get("rx0_mac_oversize"), Some(faults[1]));
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
                if path.with_extension("entries").exists() {
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
    for (name, width, link) in [("l2_switch", 64, Link::Xgmii), ("router", 128, Link::Stream)] {
        let sample = sample(name, 2);
        let hardware = Hardware::new(Arc::clone(sample.switch.program()), Options::default()).unwrap();
        let device =
            Device::new(&hardware, DeviceOptions { ports: 2, width, link, slots: 8, depth: 8, ..options() })
                .unwrap();
        let design = plain(device.design());
        tools::lint(&design, &format!("device-lint-{name}")).unwrap_or_else(|said| panic!("{said}"));
        let mut bench = Bench::new(&device).unwrap();
        bench.record();
        bench.write_tables(sample.switch.state()).unwrap();
        bench.write_groups(&groups(&sample.switch)).unwrap();
        let mut rng = Rng::new(3);
        for _ in 0..90 {
            bench.send(rng.below(2) as u32, frame(&mut rng, &sample), rng.one_in(9));
        }
        let (mut choice, mut other, mut left) = (Rng::new(9), Rng::new(11), 0);
        for _ in 0..1500 {
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
