//! What it costs to count frames by kind and size: alone, and in a `null` port with it and without it.
//!
//!     cargo bench -p millrace-drivers --bench kinds

use millrace_drivers::{FrameKinds, NullPort, PcapPort, QueuePair};
use millrace_frames::{Batch, MAX_BATCH, Packet, PacketPool};
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: usize = 20_000;
const RUNS: usize = 15;

/// Frames of one length, or of many, to one station or now and then to a group.
fn frames(lengths: &[usize], groups: bool) -> Vec<Vec<u8>> {
    let each = lengths.iter().cycle().take(MAX_BATCH).enumerate();
    each.map(|(number, length)| {
        let mut frame = vec![2; *length];
        if groups && number % 5 == 0 {
            frame[..6].fill(if number % 2 == 0 { 0xff } else { 0x01 });
        }
        frame
    })
    .collect()
}

/// Nanoseconds of a frame, the median of the runs.
fn time(mut round: impl FnMut()) -> f64 {
    let mut runs: Vec<f64> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            (0..ROUNDS).for_each(|_| round());
            start.elapsed().as_nanos() as f64 / (ROUNDS * MAX_BATCH) as f64
        })
        .collect();
    runs.sort_by(f64::total_cmp);
    runs[RUNS / 2]
}

fn main() {
    println!("{:34} {:>10}", "counting alone", "ns a frame");
    for (name, frames) in [
        ("64 bytes to one station", frames(&[60], false)),
        ("60 to 1514 bytes to one station", frames(&[60, 590, 1514, 60, 1400, 124, 300], false)),
        ("60 to 1514 bytes, groups too", frames(&[60, 590, 1514, 60, 1400, 124, 300], true)),
    ] {
        let mut kinds = FrameKinds::default();
        let ns = time(|| black_box(&frames).iter().for_each(|frame| kinds.count(frame)));
        assert_eq!(kinds.frames(), (RUNS * ROUNDS * MAX_BATCH) as u64);
        println!("{name:34} {ns:10.2}");
    }
    // A capture of the frames, which the ports give out over and over.
    let path = std::env::temp_dir().join(format!("millrace-kinds-{}.pcap", std::process::id()));
    let path = path.to_str().expect("a path in UTF-8").to_owned();
    let mut port = PcapPort::open(&format!(",{path}")).expect("a file");
    let (mut batch, mut pool) = (Batch::new(), PacketPool::new(2 * MAX_BATCH));
    for frame in frames(&[60], false) {
        batch.push(Packet::from_frame(&frame).expect("a frame")).expect("room");
    }
    port.transmit(&mut batch, &mut pool).expect("a file");
    port.flush().expect("a file");
    println!("{:34} {:>10}", "null port, in and out", "ns a frame");
    for (name, options) in
        [("without kinds", ""), ("kinds=on", ",kinds=on"), ("without kinds", ""), ("kinds=on", ",kinds=on")]
    {
        let mut port = NullPort::open(&format!("{path}{options}")).expect("the capture");
        let ns = time(|| {
            port.receive(&mut batch, &mut pool).expect("frames");
            port.transmit(&mut batch, &mut pool).expect("sent");
        });
        println!("{name:34} {ns:10.2}");
    }
    std::fs::remove_file(path).expect("it is there");
}
