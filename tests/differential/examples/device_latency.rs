//! Latency and throughput of whole devices: `cargo run -p millrace-differential --example device_latency [FRAMES]`.
//!
//! From XGMII to XGMII, start character to start character: four ports at once, 64 bits at 156.25 MHz, 13 sizes with check sequence,
//! for the layer-2 switch and the router. Then FRAMES frames (20,000 if nothing is said) of 64 bytes on four ports at line rate
//! through the one pipeline. The same from GMII to GMII, first octet of the preamble to first octet, at 125 MHz, with an eighth of the
//! frames. Then from stream to stream at each width. What is not right ends the run.

use millrace_dataplane::{EngineKind, KnownPorts, Switch, SwitchConfig};
use millrace_differential::compile_path;
use millrace_rtl::device::{Bench, DeviceOptions, Link};
use millrace_rtl::{Device, Hardware};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const SIZES: [usize; 13] = [64, 96, 128, 192, 256, 384, 512, 640, 768, 1024, 1280, 1400, 1518];
const PERIOD_NS: f64 = 6.4;

/// A link with MACs, and the characters of a cycle.
struct Wire {
    link: Link,
    characters: u64,
}

const WIRES: [Wire; 2] =
    [Wire { link: Link::Xgmii, characters: 8 }, Wire { link: Link::Gmii, characters: 1 }];

/// A program, its entries for four ports, and a header of a frame from each port to the next.
struct Case {
    name: &'static str,
    entries: String,
    header: fn(u32) -> Vec<u8>,
    /// For each of [`WIRES`].
    most_cycles: [f64; 2],
    published_ns: &'static str,
}

fn cases() -> [Case; 2] {
    let stations: String = (0..4)
        .map(|port| {
            format!(
                "table_add smac NoAction 06:00:00:00:00:0{port} =>\ntable_add dmac forward 06:00:00:00:00:0{port} => {port}\n"
            )
        })
        .collect();
    let routes: String = (0..4)
        .map(|port| {
            format!(
                "table_add send_frame rewrite_smac {port} => 02:00:00:00:00:0{port}\n\
                 table_add ipv4_lpm set_nhop 10.0.{port}.0/24 => 06:00:00:00:00:0{port} {port}\n"
            )
        })
        .collect();
    [
        Case {
            name: "l2_switch",
            entries: stations,
            header: switched,
            most_cycles: [28.0, 56.0],
            published_ns: "545",
        },
        Case {
            name: "router",
            entries: routes,
            header: routed,
            most_cycles: [48.0, 112.0],
            published_ns: "1285, 1495",
        },
    ]
}

fn switched(port: u32) -> Vec<u8> {
    let next = (port + 1) % 4;
    vec![6, 0, 0, 0, 0, next as u8, 6, 0, 0, 0, 0, port as u8, 0x88, 0xb5]
}

fn routed(port: u32) -> Vec<u8> {
    let next = ((port + 1) % 4) as u8;
    let mut bytes = vec![2, 0, 0, 0, 0, port as u8, 6, 0, 0, 0, 0, port as u8, 8, 0];
    let mut ip = vec![0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, port as u8, 9, 10, 0, next, 9];
    let sum: u32 = ip.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let folded = !((sum & 0xffff) + (sum >> 16)) as u16;
    ip[10..12].copy_from_slice(&folded.to_be_bytes());
    bytes.extend(ip);
    bytes
}

/// A frame of so many bytes with its check sequence, which is not given.
fn frame(case: &Case, port: u32, size: usize) -> Vec<u8> {
    let mut bytes = (case.header)(port);
    bytes.resize(size - 4, 0x5a);
    bytes
}

fn bench(case: &Case, options: DeviceOptions) -> Bench {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../programs/{}.p4", case.name));
    let program = compile_path(&path);
    let ports = KnownPorts::Only((0..4).collect());
    let config = SwitchConfig { engine: EngineKind::Interp, ports, ..SwitchConfig::default() };
    let mut switch = Switch::new(Arc::clone(&program), config).expect("a switch");
    millrace_control::entries::load(&mut switch, &case.entries).expect("entries");
    let hardware = Hardware::new(program, options.stages()).expect("hardware");
    let device = Device::new(&hardware, options).expect("a device");
    let mut bench = Bench::new(&device).expect("a sound design");
    bench.update(switch.state()).expect("few entries");
    bench
}

/// Sends so many frames of a size from each port, as fast as it goes; gives how long each took, in the unit of [`millrace_rtl::device::Left::at`],
/// and the cycles until the last one left.
fn pass(bench: &mut Bench, case: &Case, size: usize, count: usize) -> (Vec<u64>, u64) {
    let begun = bench.cycle();
    (0..4).for_each(|port| (0..count).for_each(|_| bench.send(port, frame(case, port, size), false)));
    (0..4).for_each(|port| drop(bench.take_started(port)));
    let mut left: Vec<Vec<u64>> = vec![Vec::new(); 4];
    let mut idle = 0;
    let mut last = begun;
    while idle < 2000 {
        let (gone, _) = bench.step(&mut |_| true, &mut |_| true);
        idle = if gone.is_empty() { idle + 1 } else { 0 };
        if !gone.is_empty() {
            last = bench.cycle();
        }
        for one in gone {
            assert!(
                !one.is_bad && one.bytes.len() == size - 4,
                "{}: a frame of {} bytes",
                case.name,
                one.bytes.len()
            );
            left[one.port as usize].push(one.at.0);
        }
    }
    let mut took = Vec::new();
    for port in 0..4u32 {
        let (started, left) = (bench.take_started(port), &left[(port as usize + 1) % 4]);
        assert_eq!(started.len(), count, "{}: frames sent", case.name);
        assert_eq!(left.len(), count, "{}: {size} bytes, frames lost of port {port}", case.name);
        took.extend(left.iter().zip(started).map(|(left, started)| left - started));
    }
    (took, last - begun)
}

fn main() {
    let frames: usize = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(20_000);
    for case in cases() {
        for (wire, most) in WIRES.iter().zip(case.most_cycles) {
            by_wire(&case, wire, most, frames);
        }
        for width in [64, 128, 256, 512] {
            by_width(&case, width, (frames / 16).max(25));
        }
    }
}

/// From MAC to MAC: the latency of each size, then how many of the shortest frames pass.
fn by_wire(case: &Case, wire: &Wire, bound_cycles: f64, frames: usize) {
    let name = wire.link.name();
    let period_ns = f64::from(wire.link.period_ps().expect("a link with a clock")) / 1e3;
    println!(
        "{}: {name} to {name}, four ports at once; published with 10 Gbit/s: {} ns",
        case.name, case.published_ns
    );
    println!("  size  cycles min  mean   max   ns max  bound (header on the wire) ns");
    let mut bench_now = bench(case, DeviceOptions { link: wire.link, ..DeviceOptions::default() });
    let mut histogram: BTreeMap<u64, u64> = BTreeMap::new();
    let (mut least, mut most) = (f64::INFINITY, 0f64);
    for size in SIZES {
        let (took, _) = pass(&mut bench_now, case, size, 25);
        let cycles: Vec<f64> = took.iter().map(|time| *time as f64 / wire.characters as f64).collect();
        took.iter().for_each(|time| *histogram.entry(time.div_ceil(wire.characters)).or_default() += 1);
        let (min, max) = cycles.iter().fold((f64::INFINITY, 0f64), |(a, b), x| (a.min(*x), b.max(*x)));
        let mean = cycles.iter().sum::<f64>() / cycles.len() as f64;
        let bound = (8.0 + (case.header)(0).len() as f64) * period_ns / wire.characters as f64;
        println!("  {size:>4}  {min:>10.1} {mean:>5.1} {max:>5.1} {:>8.1}  {bound:.1}", max * period_ns);
        (least, most) = (least.min(min), most.max(max));
    }
    println!("  all sizes: {least:.1} to {most:.1} cycles, no frame lost");
    histogram.iter().for_each(|(cycles, count)| println!("  {cycles:>3} cycles: {count}"));
    assert!(most <= bound_cycles, "{most} cycles, more than {bound_cycles}");

    let each = (frames as u64 * wire.characters / 32) as usize;
    let (_, cycles) = pass(&mut bench_now, case, 64, each);
    let rate = (each * 4) as f64 / (cycles as f64 * period_ns) * 1e3;
    println!("  {} frames of 64 bytes on four ports: none lost, {rate:.2} million a second", each * 4);
}

/// Stream to stream at a width: the latency of a frame of 256 bytes from each port, then what four ports pass of the shortest and of the
/// longest frames, as fast as the device takes them.
fn by_width(case: &Case, width: u32, count: usize) {
    let mut streams = bench(case, DeviceOptions { width, ..DeviceOptions::default() });
    let (took, _) = pass(&mut streams, case, 256, 1);
    let most = took.iter().max().copied().unwrap_or(0);
    let mut rates = Vec::new();
    for size in [64, 1518] {
        let (_, cycles) = pass(&mut streams, case, size, count);
        let (frames, ns) = ((4 * count) as f64, cycles as f64 * PERIOD_NS);
        let (millions, gigabits) = (frames / ns * 1e3, frames * (size - 4) as f64 * 8.0 / ns);
        rates.push(format!("{size} bytes: {millions:.2} million frames a second, {gigabits:.1} Gbit/s"));
    }
    let ns = most as f64 * PERIOD_NS;
    println!("  stream to stream at {width} bits: {most} cycles, {ns:.0} ns; {}", rates.join("; "));
}
