//! How workers wait: what an idle one costs, and that the first packet after a pause is taken.

use millrace_dataplane::{EngineKind, Polling, PortId, Switch, SwitchConfig, Worker};
use millrace_drivers::{FarEnd, MemoryPort, Next, QueuePair};
use millrace_pipeline::text;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

/// All frames go to port 2.
const PROGRAM: &str = "
program forwards
errors (NoError)
ingress (forward)
egress ()
intrinsic egress_spec = i_spec
metadata i_spec: bit<32>
body control forward {
block0:
    i_spec = 32w2
    end
}
";

/// Gives a frame for each byte that is written to the other end of its sockets, and says when one leaves.
struct Wire {
    signal: UnixStream,
    left: Sender<()>,
}

impl FarEnd for Wire {
    fn next(&mut self) -> Next<'_> {
        if self.signal.read(&mut [0]).is_ok_and(|read| read == 1) {
            Next::Frame(&[7; 60])
        } else {
            Next::None
        }
    }

    fn take(&mut self, _: &[u8]) -> bool {
        self.left.send(()).is_ok()
    }

    fn poll_fd(&self) -> Option<RawFd> {
        Some(self.signal.as_raw_fd())
    }
}

/// The CPU time of a thread of this process.
fn cpu_time(thread: &str) -> Duration {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

#[test]
fn an_idle_worker_sleeps_unless_it_polls_busily() {
    for (polling, name) in Polling::ALL {
        let (left, leaves) = channel();
        let mut wires = Vec::new();
        let ports = [1, 2].map(|port: PortId| {
            let (signal, wire) = UnixStream::pair().unwrap();
            signal.set_nonblocking(true).unwrap();
            wires.push(wire);
            let pair: Box<dyn QueuePair> = Box::new(MemoryPort::new(Wire { signal, left: left.clone() }));
            (port, pair)
        });
        let program = text::parse(PROGRAM).unwrap_or_else(|error| panic!("{error}"));
        let config = SwitchConfig { engine: EngineKind::Fastest, ..SwitchConfig::default() };
        let switch = Switch::new(Arc::new(program), config).unwrap();
        let mut worker = Worker::new(switch, ports.into()).unwrap();
        worker.poll(polling);
        let control = worker.control();
        let (started, thread) = channel();
        let running = std::thread::spawn(move || {
            let link = std::fs::read_link("/proc/thread-self").unwrap();
            started.send(link.file_name().unwrap().to_str().unwrap().to_owned()).unwrap();
            worker.run()
        });
        let thread = thread.recv().unwrap();
        for _ in 0..20 {
            // Longer than an adaptive worker looks.
            std::thread::sleep(Duration::from_millis(2));
            wires[0].write_all(&[1]).unwrap();
            leaves.recv_timeout(Duration::from_secs(20)).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        let (before, begun) = (cpu_time(&thread), Instant::now());
        std::thread::sleep(Duration::from_millis(300));
        let part = (cpu_time(&thread) - before).as_secs_f64() / begun.elapsed().as_secs_f64();
        match polling {
            // Other tests run too.
            Polling::Busy => assert!(part > 0.05, "{name}: {part}"),
            // An idle switch takes less than a hundredth of a processor.
            Polling::Interrupt | Polling::Adaptive => assert!(part < 0.01, "{name}: {part}"),
        }
        control.stop();
        assert_eq!(running.join().unwrap().switch.counters().port(2).tx_packets, 20);
    }
}
