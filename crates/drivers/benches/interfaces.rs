//! What it costs to take frames from one interface to another, by each driver for Linux interfaces: `cargo bench -p millrace-drivers`, as
//! root.
//!
//! In a network namespace of its own, 512 frames are sent to `vb`, then all are received there and leave by `vc`:
//!
//!     source -- va === vb -- forwarder -- vc === vd
//!
//! All of it is one thread, whose processor time counts: what the kernel does to deliver the frames to `vb` (and to make them at
//! `va`, which is the same for all drivers), and what forwarder and kernel do to take them to `vd`, where the kernel loses them. So
//! the numbers do not depend on what else the machine does.

#![allow(unsafe_code)]

use millrace_drivers::{QueuePair, open_among};
use millrace_frames::{Batch, MAX_BATCH, PacketPool};
use std::process::Command;
use std::time::{Duration, Instant};

/// Frames of a round; no ring is too short for them.
const ROUND: usize = 8 * MAX_BATCH;
/// A run, and how many of each.
const RUN: Duration = Duration::from_secs(1);
const RUNS: usize = 5;
const DRIVERS: [&str; 3] = ["packet:", "xdp:,mode=native", "xdp:,mode=generic"];
const LENGTHS: [usize; 2] = [64, 1514];

/// Nanoseconds of processor time a frame.
struct Costs {
    deliver: f64,
    forward: f64,
}

fn main() {
    // SAFETY: takes no pointers; it changes the namespace of this thread and those that it starts.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        println!("skipped: network namespaces need root");
        return;
    }
    for [one, other] in [["va", "vb"], ["vc", "vd"]] {
        ip(&format!("link add {one} type veth peer name {other}"));
        for interface in [one, other] {
            let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{interface}/disable_ipv6"), "1");
            ip(&format!("link set {interface} up"));
        }
    }
    // Until the kernel has noticed that the links are up.
    std::thread::sleep(Duration::from_secs(1));
    println!("{:20} {:>6} {:>12} {:>12}", "driver", "bytes", "deliver, ns", "forward, ns");
    for length in LENGTHS {
        for driver in DRIVERS {
            let mut runs: Vec<Costs> = (0..RUNS).map(|_| run(driver, length)).collect();
            runs.sort_by(|a, b| a.forward.total_cmp(&b.forward));
            let Costs { deliver, forward } = runs[RUNS / 2];
            println!("{driver:20} {length:6} {deliver:12.0} {forward:12.0}");
        }
    }
}

fn ip(arguments: &str) {
    let done = Command::new("ip").args(arguments.split(' ')).status().expect("iproute2 is installed");
    assert!(done.success(), "ip {arguments}");
}

/// Opens an interface with a driver, which is written with its options.
fn open(driver: &str, interface: &str) -> Box<dyn QueuePair> {
    let (name, options) = driver.split_once(':').expect("a driver");
    let spec = format!("{name}:{interface}{options}").parse().expect("a driver that there is");
    open_among(&spec, 2).unwrap_or_else(|error| panic!("{error}"))
}

fn run(driver: &str, length: usize) -> Costs {
    let mut source = open("packet:", "va");
    let [mut from, mut to] = ["vb", "vc"].map(|interface| open(driver, interface));
    let (mut pool, mut batch) = (PacketPool::new(512), Batch::new());
    let mut frame = vec![0x5a; length];
    frame[..14].copy_from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
    let (mut delivered, mut forwarded) = (Duration::ZERO, Duration::ZERO);
    let begun = Instant::now();
    while begun.elapsed() < RUN {
        let start = thread_time();
        for _ in 0..ROUND / MAX_BATCH {
            while let Some(packet) = batch.add(&mut pool) {
                packet.set_frame(&frame).expect("it fits");
            }
            source.transmit(&mut batch, &mut pool).expect("va is there");
            source.flush().expect("va is there");
            batch.recycle(&mut pool);
        }
        let middle = thread_time();
        let mut left = ROUND;
        // A processor that is interrupted delivers the last ones late.
        let late = Instant::now() + Duration::from_millis(100);
        while left > 0 && Instant::now() < late {
            from.receive(&mut batch, &mut pool).expect("vb is there");
            left -= to.transmit(&mut batch, &mut pool).expect("vc is there").sent;
            to.flush().expect("vc is there");
            to.complete(&mut pool);
            assert!(batch.is_empty(), "none is refused");
        }
        delivered += middle - start;
        forwarded += thread_time() - middle;
    }
    let frames = to.statistics().tx_packets as f64;
    let each = |time: Duration| time.as_nanos() as f64 / frames;
    assert_eq!(from.statistics().rx_missed, 0);
    Costs { deliver: each(delivered), forward: each(forwarded) }
}

/// The processor time of this thread.
fn thread_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the place is one structure that lives beyond the call.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
