//! Meters with the traffic of `tests/traffic/meter`, which runs DPDK's `librte_meter` with the same one.
//!
//! `cargo bench -p millrace-tables --bench meters -- METERS STEP FILE`: so many meters, times that are multiples of STEP nanoseconds. Prints
//! nanoseconds a packet by processor time, the best and the median of nine pieces, and writes the colours of the first packets to FILE,
//! one byte each: colour-blind, then colour-aware.

use millrace_tables::{Color, Meter, MeterArray, MeterConfig, MeterRates, MeterUnit, Rate};
use std::hint::black_box;

/// Packets of a piece, and those whose colours are written.
const PACKETS: usize = 1 << 22;
const PIECES: usize = 9;
const WRITTEN: usize = 1 << 19;
const SEQUENCE: usize = 1 << 16;

/// Committed and peak: 5 and 13 bytes each 100 ns.
fn config() -> MeterConfig {
    let [cir, pir] = [50_000_000, 130_000_000].map(Rate::per_second);
    MeterRates { cir, cbs: 20_000, pir, pbs: 30_000 }.into()
}

/// A packet of the sequence, which is repeated: its meter, its length, its colour before, how long after the last one it comes.
struct Packet {
    meter: u32,
    len: u32,
    before: Color,
    after_ns: u64,
}

/// The same numbers as in `tests/traffic/rte_meter.c` and `tests/traffic/meter` (SplitMix64).
fn sequence(meters: u64, step: u64) -> Vec<Packet> {
    let mut state = 1u64;
    let next = |_| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let number = mixed ^ mixed >> 31;
        // Together 200 steps of 1 ns, or two of 100 ns, for 64 meters at most: between the rates on the average.
        let most = 200 * 64 / meters / step;
        Packet {
            meter: ((number >> 32) % meters) as u32,
            len: 64 + (number & 0xffff) as u32 % 1455,
            before: [Color::Green, Color::Yellow, Color::Red][(number >> 16 & 0xff) as usize % 3],
            after_ns: (number >> 24 & 0xff) % (most + 1) * step,
        }
    };
    (0..SEQUENCE).map(next).collect()
}

/// Nanoseconds of processor time of this thread.
fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to memory of the right type.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) }, 0);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Runs pieces, says what a packet takes, and gives the colours of the first packets.
fn measure(name: &str, packets: &[Packet], mut execute: impl FnMut(&Packet, u64) -> Color) -> Vec<u8> {
    let (mut time_ns, mut colors, mut pieces) = (0, Vec::with_capacity(WRITTEN), Vec::new());
    let mut piece = |count: usize, each: &mut dyn FnMut(Color)| {
        for packet in packets.iter().cycle().take(count) {
            time_ns += packet.after_ns;
            each(execute(packet, time_ns));
        }
    };
    piece(WRITTEN, &mut |color| colors.push(color as u8));
    for _ in 0..PIECES {
        let begun = now_ns();
        piece(PACKETS, &mut |color| _ = black_box(color));
        pieces.push((now_ns() - begun) as f64 / PACKETS as f64);
    }
    pieces.sort_by(f64::total_cmp);
    println!("{name}: {:.2} {:.2}", pieces[0], pieces[PIECES / 2]);
    colors
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let [meters, step, path] = words.as_slice() else {
        println!("METERS STEP FILE");
        return;
    };
    let (meters, step): (u64, u64) = (meters.parse().unwrap(), step.parse().unwrap());
    let packets = sequence(meters, step);
    let mut meter = Meter::default();
    meter.configure(Some(config())).unwrap();
    let mut bare = vec![meter; meters as usize];
    let array = || {
        let mut array = MeterArray::new(MeterUnit::Bytes, meters).unwrap();
        array.configure_all(Some(config())).unwrap();
        array
    };
    let mut written = Vec::new();
    let green = Color::Green;
    written.extend(measure("bare, blind", &packets, |packet, now| {
        bare[packet.meter as usize].execute(now, packet.len.into(), green)
    }));
    bare.fill(meter);
    written.extend(measure("bare, aware", &packets, |packet, now| {
        bare[packet.meter as usize].execute(now, packet.len.into(), packet.before)
    }));
    let (mut blind, mut aware) = (array(), array());
    let execute = |array: &mut MeterArray, packet: &Packet, now, before| {
        array.execute(packet.meter.into(), now, packet.len.into(), before).unwrap_or_default()
    };
    let counted = [
        measure("counted, blind", &packets, |packet, now| execute(&mut blind, packet, now, green)),
        measure("counted, aware", &packets, |packet, now| execute(&mut aware, packet, now, packet.before)),
    ];
    assert!(counted.concat() == written, "an array colours as a meter does");
    std::fs::write(path, written).unwrap();
}
