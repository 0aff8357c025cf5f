//! A worker over a driver with memory of its own, several queues, and completions that come late and out of order.

use millrace_dataplane::{EngineKind, PortId, Switch, SwitchConfig, Worker};
use millrace_drivers::{PortError, PortStatistics, QueuePair, Received, TimeSource, Transmitted};
use millrace_frames::{Batch, Packet, PacketPool, Region, SlotLayout};
use millrace_pipeline::text;
use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// Slots as AF_XDP has them.
const SLOTS: SlotLayout = SlotLayout { size: 2048, headroom: 256 };
/// The slots of a queue for frames that leave, and those of a region: each is used many times.
const RING: usize = 96;
const FRAMES: u32 = 5000;

/// Sends a packet to the port of its second byte, with a header of four bytes before it.
const PROGRAM: &str = r#"
program across
errors (NoError, PacketTooShort, HeaderTooShort, ParserInvalidArgument, ParserTimeout)
ingress (parse, choose)
egress (mark, deparse)
intrinsic egress_spec = i_spec
intrinsic parser_error = i_perr
header tag: tag_t {
    mark: bit<32>
}
header h: h_t {
    op: bit<8>
    to: bit<8>
}
metadata i_spec: bit<32>
metadata i_perr: bit<16>
body parser parse { block0 state start: extract h end }
body control choose { block0: i_spec = zext(h.to, 32) set_valid tag tag.mark = 32w7 end }
body control mark { block0: end }
body deparser deparse { block0: emit tag emit h end }
"#;

/// A queue pair: frames come in the device's memory, and leave a few rounds after they were transmitted.
struct Queue {
    /// The other queue.
    to: u8,
    pool: PacketPool,
    next: u32,
    end: u32,
    ring: VecDeque<Packet>,
    most: usize,
    wire: Arc<Mutex<Vec<u32>>>,
    rounds: usize,
    /// Packets in the ring whose slots are of a device's region.
    in_place: Arc<AtomicUsize>,
    /// So many frames are not completed before the port is closed, and go here then.
    last: usize,
    left: Arc<Mutex<Vec<Packet>>>,
}

fn number_of(packet: &Packet) -> u32 {
    u32::from_be_bytes(*packet.data().last_chunk().unwrap())
}

impl QueuePair for Queue {
    fn receive(&mut self, batch: &mut Batch, _: &mut PacketPool) -> Result<Received, PortError> {
        // The ring never overflows between two completions.
        while self.next < self.end && batch.len() < (RING - 5) / 3 {
            let Some(packet) = batch.add(&mut self.pool) else { return Ok(Received::More) };
            let mut frame = [0xab; 60];
            // The program sends it to the port of that number.
            frame[..2].copy_from_slice(&[1, self.to]);
            frame[56..].copy_from_slice(&self.next.to_be_bytes());
            packet.set_frame(&frame).unwrap();
            self.next += 1;
        }
        let is_done = self.wire.lock().unwrap().len() + 2 * self.last == 2 * FRAMES as usize;
        Ok(if is_done { Received::End } else { Received::More })
    }

    fn transmit(&mut self, batch: &mut Batch, _: &mut PacketPool) -> Result<Transmitted, PortError> {
        let mut refused = Vec::new();
        let mut sent = 0;
        for packet in batch.drain() {
            if self.ring.len() < RING {
                sent += 1;
                let is_ours = packet.longest_received() == SLOTS.longest_frame();
                self.in_place.fetch_add(usize::from(is_ours), Relaxed);
                self.ring.push_back(packet);
            } else {
                refused.push(packet);
            }
        }
        self.most = self.most.max(self.ring.len());
        let count = refused.len();
        refused.into_iter().for_each(|packet| drop(batch.push(packet)));
        Ok(Transmitted { sent, refused: count })
    }

    fn flush(&mut self) -> Result<(), PortError> {
        Ok(())
    }

    fn complete(&mut self, pool: &mut PacketPool) {
        self.rounds += 1;
        // Nothing in most rounds; then the newest frames before the oldest.
        if !self.rounds.is_multiple_of(3) {
            return;
        }
        let kept = if self.next == self.end { self.last } else { 5 };
        while self.ring.len() > kept {
            let packet =
                if self.ring.len().is_multiple_of(2) { self.ring.pop_back() } else { self.ring.pop_front() };
            let packet = packet.unwrap();
            self.wire.lock().unwrap().push(number_of(&packet));
            // Of the other queue's region: the pool of the worker sends it there.
            pool.put(packet);
        }
    }

    fn max_kept(&self) -> usize {
        RING
    }

    fn in_flight(&mut self) -> usize {
        self.ring.len()
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

impl Drop for Queue {
    fn drop(&mut self) {
        assert!(self.most <= RING);
        self.left.lock().unwrap().extend(self.ring.drain(..));
    }
}

/// Two queues of a device, each with a region of its own. Frames from one leave by the other, but the last of them, which are
/// in the rings when worker and device are gone. Gives also how many packets lay in a device's memory when they left.
fn run(engine: EngineKind, last: usize) -> (Vec<u32>, Vec<Packet>, usize) {
    let (wire, left) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
    let in_place = Arc::new(AtomicUsize::new(0));
    let queue = |number: u32| Queue {
        in_place: Arc::clone(&in_place),
        to: 1 - number as u8,
        pool: PacketPool::over(Region::new(RING, SLOTS).unwrap()),
        next: number * FRAMES,
        end: (number + 1) * FRAMES,
        ring: VecDeque::new(),
        most: 0,
        wire: Arc::clone(&wire),
        rounds: 0,
        last,
        left: Arc::clone(&left),
    };
    let program = text::parse(PROGRAM).unwrap_or_else(|error| panic!("{error}"));
    let config = SwitchConfig { engine, ..SwitchConfig::default() };
    let switch = Switch::new(Arc::new(program), config).unwrap();
    let ports: Vec<(PortId, Box<dyn QueuePair>)> = vec![(0, Box::new(queue(0))), (1, Box::new(queue(1)))];
    let summary = Worker::new(switch, ports).unwrap().run();
    assert!(summary.failed.is_empty());
    assert_eq!(summary.switch.counters().all_drops().count(), 0);
    drop(summary);
    let sent = std::mem::take(&mut *wire.lock().unwrap());
    (sent, std::mem::take(&mut *left.lock().unwrap()), in_place.load(Relaxed))
}

const ENGINES: [EngineKind; 2] = [EngineKind::Interp, EngineKind::Fastest];

#[test]
fn each_frame_leaves_once_however_late_it_is_completed() {
    for engine in ENGINES {
        let (mut sent, left, in_place) = run(engine, 0);
        assert!(left.is_empty());
        assert!(!sent.is_sorted(), "completions come out of order");
        sent.sort();
        assert!(sent.into_iter().eq(0..2 * FRAMES), "each frame once");
        // Compiled code sends frames from where the device put them.
        let compiled = engine != EngineKind::Interp && EngineKind::HERE.contains(&EngineKind::Jit);
        assert_eq!(in_place, if compiled { 2 * FRAMES as usize } else { in_place });
    }
}

#[test]
fn frames_outlive_their_worker_and_their_device() {
    for engine in ENGINES {
        let (mut sent, left, _) = run(engine, 5);
        assert!(left.len() == 10, "{}", left.len());
        sent.extend(left.iter().map(number_of));
        sent.sort();
        assert!(sent.into_iter().eq(0..2 * FRAMES), "each frame once");
    }
}
