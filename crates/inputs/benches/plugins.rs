//! What chains cost for a packet: `cargo bench -p millrace-inputs`.
//!
//! A port from memory gives batches of 64 frames that differ in addresses and ports; they are received and given back to the pool.
//! The case without a chain is what that costs by itself. Instructions are counted under valgrind, as those of more batches less
//! those of fewer.

use millrace_drivers::{PortError, PortStatistics, QueuePair, Received, TimeSource, Transmitted};
use millrace_frames::{Batch, MAX_BATCH, PacketPool};
use millrace_inputs::{Inputs, Plan, PortChain};
use std::os::fd::RawFd;
use std::time::Instant;

/// Batches that are counted under valgrind.
const FEW: usize = 100;
const MANY: usize = 500;
/// Different frames.
const FRAMES: usize = 1024;

const CASES: &[(&str, &str)] = &[
    ("no chain", ""),
    ("filter, all frames", "filter \"\""),
    ("filter, ip", "filter \"ip\""),
    ("filter, udp port 53", "filter \"udp port 53\""),
    ("filter, not port 22, net", "filter \"not port 22 and net 10.0.0.0/8\""),
    (
        "filter, ten hosts",
        "filter \"host 1.1.1.1 or 1.1.1.2 or 1.1.1.3 or 1.1.1.4 or 1.1.1.5 or 1.1.1.6 or 1.1.1.7 or 1.1.1.8 or 1.1.1.9 or 10.0.0.1\"",
    ),
    ("sample 1/100", "sample 1/100"),
    ("hash 0/4", "hash 0/4"),
    ("prefix, two", "prefix dst \"10.0.0.0/8, 192.168.0.0/16 drop\""),
    ("exact, dst and dport", "exact dst+dport \"10.0.0.1 53\" miss=pass"),
    ("account, 1024 flows", "account /dev/null"),
    ("account, evicting", "account /dev/null flows=512"),
];

/// Gives the same frames again and again.
struct Source {
    frames: Vec<Vec<u8>>,
    at: usize,
    now_ns: u64,
}

impl Source {
    fn new() -> Source {
        let frame = |number: usize| {
            let [high, low] = (number as u16).to_be_bytes();
            let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
            frame.extend([0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, high, low, 10, 1, low, high]);
            frame.extend([0x80, low, 0, 53, 0, 26, 0, 0]);
            frame.resize(60, 0);
            frame
        };
        Source { frames: (0..FRAMES).map(frame).collect(), at: 0, now_ns: 1 }
    }
}

impl QueuePair for Source {
    fn receive(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Received, PortError> {
        self.now_ns += 10_000;
        while !batch.is_full() {
            let Some(packet) = batch.add(pool) else { break };
            packet.timestamp_ns = self.now_ns;
            let _ = packet.set_frame(&self.frames[self.at % FRAMES]);
            self.at += 1;
        }
        Ok(Received::More)
    }

    fn transmit(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Transmitted, PortError> {
        let sent = batch.len();
        batch.recycle(pool);
        Ok(Transmitted { sent, refused: 0 })
    }

    fn flush(&mut self) -> Result<(), PortError> {
        Ok(())
    }

    fn poll_fd(&self) -> Option<RawFd> {
        None
    }

    fn time_source(&self) -> TimeSource {
        TimeSource::Wall
    }

    fn next_arrival_ns(&mut self) -> Option<u64> {
        None
    }

    fn statistics(&self) -> PortStatistics {
        PortStatistics::default()
    }
}

/// Receives so many batches, and says how many seconds that took.
fn run(chain: &str, batches: usize) -> f64 {
    let chains = if chain.is_empty() { vec![] } else { vec![format!("0:{chain}")] };
    let chains = chains.iter().map(|text| PortChain::parse(text, false).expect("the chain is right"));
    let plan = Plan::new(&[0], &chains.collect::<Vec<_>>(), &[]).expect("there is one chain");
    let mut inputs = Inputs::open(plan).expect("its files open");
    inputs.start().expect("a thread starts");
    let mut port = inputs.wrap(0, Box::new(Source::new())).expect("there is memory");
    let mut pool = PacketPool::new(2 * MAX_BATCH);
    let mut batch = Batch::new();
    // Warm, and with all flows known.
    for _ in 0..2 * FRAMES / MAX_BATCH {
        let _ = port.receive(&mut batch, &mut pool);
        batch.recycle(&mut pool);
    }
    let start = Instant::now();
    for _ in 0..batches {
        let _ = port.receive(&mut batch, &mut pool);
        batch.recycle(&mut pool);
    }
    start.elapsed().as_secs_f64()
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    if let [word, case, batches] = &args[..]
        && word == "run"
    {
        let case: usize = case.parse().expect("the number of a case");
        run(CASES[case].1, batches.parse().expect("a number of batches"));
        return;
    }
    println!("{:<28}{:>14}{:>10}   a packet", "", "instructions", "ns");
    for (number, (name, chain)) in CASES.iter().enumerate() {
        let count = |batches: usize| {
            millrace_counted::instructions(&["run", &number.to_string(), &batches.to_string()])
        };
        // Those that evict hand records to a thread, whose instructions count too.
        let each = count(FEW).zip(count(MANY));
        let each =
            each.map(|(few, many)| many.saturating_sub(few) as f64 / ((MANY - FEW) * MAX_BATCH) as f64);
        let each = each.map_or_else(|| "-".into(), |each| format!("{each:.1}"));
        let batches = 20_000;
        let best = (0..5).map(|_| run(chain, batches)).fold(f64::INFINITY, f64::min);
        println!("{name:<28}{each:>14}{:>10.2}", best * 1e9 / (batches * MAX_BATCH) as f64);
    }
}
