//! What goes with a frame stays with it and its copies, however frames come and leave: a device alone, with frames in all cycles.

use millrace_control::entries::load;
use millrace_dataplane::{Switch, SwitchConfig, device_groups, device_sessions};
use millrace_netlist::{SignalId, Simulator};
use millrace_node::blocks::compile;
use millrace_pipeline::arbitrary::Rng;
use millrace_rtl::device::Bench;
use millrace_rtl::{Device, DeviceOptions, Hardware, Options};
use std::path::Path;
use std::sync::Arc;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/p4");

/// The device of a program, with its entries.
fn device(name: &str) -> Bench {
    let read =
        |path: &Path| std::fs::read_to_string(Path::new(FOLDER).join(path)).map_err(|why| why.to_string());
    let program = compile(&Path::new(name).with_extension("p4"), &mut { read }).unwrap();
    let hardware =
        Hardware::new(Arc::clone(&program), Options::default()).unwrap_or_else(|why| panic!("{why}"));
    let options = DeviceOptions { ports: 2, queues: 1, user: Some(16), ..DeviceOptions::default() };
    let device = Device::new(&hardware, options).unwrap_or_else(|why| panic!("{why}"));
    let mut switch = Switch::new(program, SwitchConfig::default()).unwrap();
    if let Ok(entries) = read(&Path::new(name).with_extension("entries")) {
        assert!(load(&mut switch, &entries).is_ok());
    }
    let mut bench = Bench::new(&device).unwrap();
    let groups = switch.replication();
    if groups.groups().next().is_some() {
        bench.set_groups(&device_groups(groups)).unwrap();
        bench.set_sessions(&device_sessions(groups)).unwrap();
    }
    bench.update(switch.state()).unwrap();
    bench
}

/// A stream of the device.
struct Stream {
    signals: [SignalId; 6],
    bytes: Vec<u8>,
    at: usize,
    user: u64,
}

impl Stream {
    fn new(sim: &Simulator, name: &str) -> Stream {
        let find = |what: &str| {
            let name = format!("{name}_{what}");
            sim.input(&name).or_else(|| sim.output(&name)).unwrap()
        };
        let signals = ["tdata", "tkeep", "tlast", "tuser", "tvalid", "tready"].map(find);
        Stream { signals, bytes: Vec::new(), at: 0, user: 0 }
    }
}

/// Frames of a few lengths at both ports, each with a number in its last bytes that is what goes with it, too; pauses of who sends and who
/// takes by `pauses` of eight. Gives how many have left.
fn run(program: &str, seed: u64, pauses: usize) -> usize {
    let mut device = device(program);
    let sim = device.simulator();
    let mut rng = Rng::new(seed);
    let mut inputs = [0, 1].map(|port| Stream::new(sim, &format!("rx{port}")));
    let mut outputs = [0, 1].map(|port| Stream::new(sim, &format!("tx{port}")));
    let busy = sim.output("busy").unwrap();
    let (mut next, mut left, mut idle) = (0u16, 0, 0);
    let mut cycles = 0;
    while idle < 300 {
        for input in &mut inputs {
            if input.bytes.is_empty() && next < 400 && rng.below(8) >= pauses {
                let length = [8, 9, 16, 24, 60, 61, 64, 130][rng.below(8)];
                input.bytes = (0..length).map(|_| rng.below(4) as u8).collect();
                next += 1;
                input.bytes[length - 2..].copy_from_slice(&next.to_be_bytes());
                (input.at, input.user) = (0, next.into());
            }
            let [data, keep, last, user, valid, _] = input.signals;
            let beat = &input.bytes[input.at..input.bytes.len().min(input.at + 8)];
            let mut word = [0; 8];
            word[..beat.len()].copy_from_slice(beat);
            sim.set_u64(data, u64::from_le_bytes(word));
            sim.set_u64(keep, u64::MAX.checked_shr(64 - beat.len() as u32).unwrap_or(0));
            sim.set_u64(last, u64::from(input.at + 8 >= input.bytes.len()));
            sim.set_u64(user, input.user << 1);
            sim.set_u64(valid, u64::from(!beat.is_empty()));
        }
        for output in &outputs {
            let takes = rng.below(8) >= pauses;
            sim.set_u64(output.signals[5], takes.into());
        }
        for output in &mut outputs {
            let [data, keep, last, user, valid, ready] = output.signals.map(|signal| sim.get_u64(signal));
            if valid & ready == 0 {
                continue;
            }
            output.bytes.extend(data.to_le_bytes().iter().take(keep.trailing_ones() as usize));
            if last == 1 {
                let bytes = std::mem::take(&mut output.bytes);
                let number = u64::from(u16::from_be_bytes(bytes[bytes.len() - 2..].try_into().unwrap()));
                assert_eq!(user & 0x1_ffff, number << 1, "{program}, {seed}, {pauses}: {bytes:?}");
                left += 1;
            }
        }
        for input in &mut inputs {
            if !input.bytes.is_empty() && sim.get_u64(input.signals[5]) == 1 {
                input.at += 8;
                if input.at >= input.bytes.len() {
                    input.bytes.clear();
                    input.at = 0;
                }
            }
        }
        let works =
            sim.get_u64(busy) == 1 || inputs.iter().any(|input| !input.bytes.is_empty()) || next < 400;
        idle = if works { 0 } else { idle + 1 };
        sim.step();
        cycles += 1;
        assert!(cycles < 100_000, "{program}, {seed}, {pauses}: frames stay in the device");
    }
    left
}

#[test]
fn what_goes_with_a_frame_stays_with_it() {
    for program in ["edit", "grow", "again"] {
        for (seed, pauses) in [(1, 0), (2, 1), (3, 4), (4, 6)] {
            let left = run(program, seed, pauses);
            assert!(left > 150, "{program}: {left}");
        }
    }
}
