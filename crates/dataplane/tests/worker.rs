//! A worker over ports: replays in the order of time, live ports that wait, requests between rounds.

use millrace_dataplane::{
    DropReason, Notice, PortId, QueueReport, ReportError, Request, Switch, SwitchConfig, Worker,
};
use millrace_drivers::{PortError, PortStatistics, QueuePair, Received, TimeSource, Transmitted};
use millrace_frames::{Batch, PacketPool};
use millrace_pipeline::text;
use std::collections::VecDeque;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixDatagram;
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn switch() -> Switch {
    let program = text::parse(include_str!("programs/through.mir")).unwrap();
    Switch::new(Arc::new(program), SwitchConfig::default()).unwrap()
}

/// Frames with their times.
type Frames = Vec<(u64, Vec<u8>)>;

/// A port that replays frames from memory and keeps what is sent.
struct Replay {
    input: VecDeque<(u64, Vec<u8>)>,
    output: Arc<Mutex<Frames>>,
    /// Refuses frames of more bytes.
    longest: usize,
}

fn replay(input: &[(u64, &[u8])]) -> (Replay, Arc<Mutex<Frames>>) {
    let output = Arc::new(Mutex::new(Vec::new()));
    let input = input.iter().map(|(time, frame)| (*time, frame.to_vec())).collect();
    (Replay { input, output: Arc::clone(&output), longest: 100 }, output)
}

impl QueuePair for Replay {
    fn receive(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Received, PortError> {
        while !batch.is_full() {
            let Some((time, frame)) = self.input.pop_front() else { return Ok(Received::End) };
            let mut packet = pool.take().unwrap();
            packet.timestamp_ns = time;
            packet.set_frame(&frame).unwrap();
            batch.push(packet).unwrap();
        }
        Ok(Received::More)
    }

    fn transmit(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Transmitted, PortError> {
        let mut refused = Vec::new();
        let mut sent = 0;
        for packet in batch.drain().collect::<Vec<_>>() {
            if packet.len() > self.longest {
                refused.push(packet);
                continue;
            }
            self.output.lock().unwrap().push((packet.timestamp_ns, packet.data().to_vec()));
            sent += 1;
            pool.put(packet);
        }
        let count = refused.len();
        for packet in refused {
            batch.push(packet).unwrap();
        }
        Ok(Transmitted { sent, refused: count })
    }

    fn flush(&mut self) -> Result<(), PortError> {
        Ok(())
    }

    fn poll_fd(&self) -> Option<RawFd> {
        None
    }

    fn time_source(&self) -> TimeSource {
        TimeSource::Simulated
    }

    fn next_arrival_ns(&mut self) -> Option<u64> {
        self.input.front().map(|(time, _)| *time)
    }

    fn statistics(&self) -> PortStatistics {
        PortStatistics::default()
    }
}

/// A port over a socket, one frame a message.
struct Wire(UnixDatagram);

fn wire() -> (Wire, UnixDatagram) {
    let (inside, outside) = UnixDatagram::pair().unwrap();
    inside.set_nonblocking(true).unwrap();
    outside.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    (Wire(inside), outside)
}

impl QueuePair for Wire {
    fn receive(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Received, PortError> {
        let mut frame = [0; 2048];
        while !batch.is_full() {
            let Ok(length) = self.0.recv(&mut frame) else { return Ok(Received::Idle) };
            let mut packet = pool.take().unwrap();
            packet.set_frame(&frame[..length]).unwrap();
            batch.push(packet).unwrap();
        }
        Ok(Received::More)
    }

    fn transmit(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Transmitted, PortError> {
        let sent = batch.len();
        for packet in batch.packets() {
            self.0.send(packet.data()).unwrap();
        }
        batch.recycle(pool);
        Ok(Transmitted { sent, refused: 0 })
    }

    fn flush(&mut self) -> Result<(), PortError> {
        Ok(())
    }

    fn poll_fd(&self) -> Option<RawFd> {
        Some(self.0.as_raw_fd())
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

fn worker(ports: Vec<(PortId, Box<dyn QueuePair>)>) -> Worker {
    Worker::new(switch(), ports).unwrap()
}

#[test]
fn replays_come_in_the_order_of_time_and_leave_with_their_times() {
    let (first, out_1) = replay(&[(1000, &[1, 2, 0xa]), (3000, &[1, 2, 0xc])]);
    let (second, out_2) = replay(&[(2000, &[1, 2, 0xb]), (4000, &[1, 1, 0xd])]);
    let mut worker = worker(vec![(1, Box::new(first)), (2, Box::new(second))]);
    worker.switch_mut().set_queue_rate(1_000_000, Some(2), None).unwrap();
    let summary = worker.run();
    let times = |output: &Arc<Mutex<Frames>>| -> Vec<(u64, u8)> {
        output.lock().unwrap().iter().map(|(time, frame)| (*time, frame[frame.len() - 1])).collect()
    };
    assert_eq!(times(&out_2), [(1000, 0xa), (2000, 0xb), (3000, 0xc)]);
    assert_eq!(times(&out_1), [(4000, 0xd)]);
    assert!(summary.failed.is_empty());
    assert_eq!(summary.switch.counters().port(2).tx_packets, 3);
    assert_eq!(summary.switch.now_ns(), 3000, "time 0 is that of the first frame");
}

#[test]
fn queues_run_empty_behind_the_end_of_input() {
    let (port, output) = replay(&[(5000, &[1, 1, 1]), (5000, &[1, 1, 2]), (5000, &[1, 1, 3])]);
    let mut worker = worker(vec![(1, Box::new(port))]);
    worker.switch_mut().set_queue_rate(1_000_000, Some(1), None).unwrap();
    worker.run();
    let times: Vec<u64> = output.lock().unwrap().iter().map(|(time, _)| *time).collect();
    assert_eq!(times, [5000, 6000, 7000]);
}

#[test]
fn what_a_port_refuses_is_dropped() {
    let (port, output) = replay(&[(0, &[1, 1, 1]), (1, &[1; 200])]);
    let summary = worker(vec![(1, Box::new(port))]).run();
    assert_eq!(output.lock().unwrap().len(), 1);
    let counters = summary.switch.counters().port(1);
    assert_eq!((counters.rx_packets, counters.tx_packets, counters.tx_drops), (2, 1, 1));
    let drops: Vec<String> = summary
        .switch
        .counters()
        .all_drops()
        .map(|(reason, _)| reason.label(summary.switch.program()))
        .collect();
    assert_eq!(drops, ["tx_refused"]);
}

#[test]
fn live_ports_wait_and_requests_are_answered() {
    let (left, host_1) = wire();
    let (right, host_2) = wire();
    let mut worker = worker(vec![(1, Box::new(left)), (2, Box::new(right))]);
    let control = worker.control();
    let notices = worker.notices();
    let running = std::thread::spawn(move || worker.run());

    host_1.send(&[1, 2, 0xaa]).unwrap();
    let mut frame = [0; 64];
    let length = host_2.recv(&mut frame).unwrap();
    assert_eq!(frame[..length], [2, 0, 0, 0, 0x66, 3, 1, 2, 0xaa]);
    let counted = control.ask(Request::Ports).unwrap();
    assert_eq!(counted.iter().find(|(port, _)| *port == 2).unwrap().1.tx_packets, 1);

    host_2.send(&[9, 0]).unwrap();
    assert!(matches!(notices.recv_timeout(Duration::from_secs(10)), Ok(Notice::Digest { .. })));
    assert_eq!(notices.recv_timeout(Duration::from_secs(10)), Ok(Notice::Log("op 9".into())));

    control.stop();
    let summary = running.join().unwrap();
    assert_eq!((summary.failed.len(), summary.lost_notices), (0, 0));
    drop(summary);
    assert!(control.ask(Request::Look).is_err(), "nobody is there any more");
}

#[test]
fn a_port_is_given_once() {
    let ports: Vec<(PortId, Box<dyn QueuePair>)> = vec![(1, Box::new(wire().0)), (1, Box::new(wire().0))];
    assert!(Worker::new(switch(), ports).is_err());
}

#[test]
fn a_report_tells_what_a_running_switch_has_counted() {
    let (left, host_1) = wire();
    let (right, host_2) = wire();
    let mut worker = worker(vec![(2, Box::new(right)), (1, Box::new(left))]);
    // One packet leaves at once, one waits a second, one finds no room.
    worker.switch_mut().set_queue_depth(1, Some(2), None).unwrap();
    worker.switch_mut().set_queue_rate(1, Some(2), None).unwrap();
    let control = worker.control();
    let running = std::thread::spawn(move || worker.run());
    // Those of one burst would all be in the queue before the first one leaves it.
    let send = |count| {
        assert_eq!(host_1.send(&[1, 2, 0xaa]).unwrap(), 3);
        loop {
            let report = control.report(Duration::from_secs(10)).unwrap();
            if report.bursts.sizes.sum() == count {
                break report;
            }
        }
    };
    send(1);
    host_2.recv(&mut [0; 64]).unwrap();
    send(2);
    let report = send(3);
    let ports: Vec<_> = report.ports.iter().map(|port| (port.port, port.is_up)).collect();
    assert_eq!(ports, [(1, true), (2, true)]);
    assert_eq!((report.ports[0].counters.rx_packets, report.ports[0].counters.rx_bytes), (3, 9));
    assert_eq!((report.ports[1].counters.tx_packets, report.ports[1].counters.tx_drops), (1, 1));
    assert_eq!(report.drops, [(DropReason::QueueFull, 1)]);
    let queue = QueueReport { port: 2, priority: 0, packets: 1, depth: 1, dropped: 1 };
    assert_eq!(report.queues.plain, [queue]);
    assert_eq!((report.program.name.as_str(), report.engine), ("through", "interp"));
    assert!(report.bursts.latency.count() >= 1, "the first burst is timed");
    control.stop();
    running.join().unwrap();
    assert_eq!(control.report(Duration::from_secs(10)).unwrap_err(), ReportError::Ended);
}
