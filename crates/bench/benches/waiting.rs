//! What an idle switch costs, and how long the first packet after a pause waits, for each way in which workers wait.
//!
//!     cargo bench -p millrace-bench --bench waiting
//!
//! A port over a pair of sockets has a packet after each pause; its time is taken before it is signalled and when it has left. Half of
//! them come after a pause that is shorter than the time for which an adaptive worker goes on looking.

mod lab;

use lab::{compile, files, frames, switch};
use millrace_dataplane::{POLL_TIME, Polling, PortId, Worker};
use millrace_drivers::{FarEnd, MemoryPort, Next};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

const PACKETS: usize = 1000;
/// What is called idle.
const IDLE: Duration = Duration::from_secs(2);
const PAUSES: [Duration; 2] = [Duration::from_micros(100), Duration::from_millis(3)];

/// A port that gives its frame once for each byte that it reads.
struct Wire {
    signal: UnixStream,
    frame: Vec<u8>,
    left: Sender<Instant>,
}

impl FarEnd for Wire {
    fn next(&mut self) -> Next<'_> {
        match self.signal.read(&mut [0]) {
            Ok(1) => Next::Frame(&self.frame),
            _ => Next::None,
        }
    }

    fn take(&mut self, _: &[u8]) -> bool {
        self.left.send(Instant::now()).is_ok()
    }

    fn poll_fd(&self) -> Option<RawFd> {
        Some(self.signal.as_raw_fd())
    }
}

fn main() {
    let (source, entries, packets) = files("router");
    let pipeline = compile(&source);
    let mut probe = switch(&pipeline, &entries);
    let forwarded = |(port, frame): &(PortId, Vec<u8>)| probe.inject(*port, frame, 0).outputs().count() == 1;
    let (from, frame) = frames(&packets).into_iter().find(forwarded).expect("a frame that is sent");
    println!(
        "router, one worker; {PACKETS} packets for each pause, the worker polls for {POLL_TIME:?} where it adapts"
    );
    println!("{:10} {:>10} {:>9} {:>9} {:>9} {:>9}", "poll", "idle, CPU", "pause", "median", "99 %", "worst");
    for (polling, name) in Polling::ALL {
        let (left, leaves) = channel();
        let mut here = Vec::new();
        let ports = (0..3).map(|port: PortId| {
            let (signal, wire) = UnixStream::pair().expect("sockets");
            signal.set_nonblocking(true).expect("a socket");
            here.push((port, wire));
            let wire = Wire { signal, frame: frame.clone(), left: left.clone() };
            (port, Box::new(MemoryPort::new(wire)) as _)
        });
        let mut worker = Worker::new(switch(&pipeline, &entries), ports.collect()).expect("a worker");
        worker.poll(polling);
        let control = worker.control();
        let thread = std::thread::spawn(move || {
            let summary = worker.run();
            drop(summary);
        });
        let (_, wire) = here.iter_mut().find(|(port, _)| *port == from).expect("the port");
        std::thread::sleep(Duration::from_millis(200));
        let (cpu, begun) = (process_time(), Instant::now());
        std::thread::sleep(IDLE);
        let idle = 100.0 * (process_time() - cpu).as_secs_f64() / begun.elapsed().as_secs_f64();
        for pause in PAUSES {
            let mut times: Vec<Duration> = (0..PACKETS)
                .map(|_| {
                    let begun = Instant::now();
                    while begun.elapsed() < pause {
                        // This thread must not have to be woken itself.
                        std::hint::spin_loop();
                    }
                    let sent = Instant::now();
                    wire.write_all(&[1]).expect("the wire");
                    let arrived = loop {
                        if let Ok(arrived) = leaves.try_recv() {
                            break arrived;
                        }
                    };
                    arrived - sent
                })
                .collect();
            times.sort();
            let us = |part: usize| {
                format!(
                    "{:.1} us",
                    times[(times.len() * part / 100).min(times.len() - 1)].as_secs_f64() * 1e6
                )
            };
            println!(
                "{name:10} {:>10} {:>9} {:>9} {:>9} {:>9}",
                format!("{idle:.2} %"),
                format!("{pause:?}"),
                us(50),
                us(99),
                us(100)
            );
        }
        control.stop();
        thread.join().expect("the worker");
    }
}

/// The CPU time of this process.
fn process_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
