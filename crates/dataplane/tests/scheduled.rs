//! Ports that serve what leaves by them as a plan says: each packet is counted once, flows keep their order, plans come and go while
//! packets pass, and programs see the queue that a packet has waited in.

use millrace_dataplane::{
    Control, DropReason, EngineKind, Intake, IntakeError, PortId, QueueConfig, Request, ScheduleError,
    Spread, Summary, Switch, SwitchConfig, Worker,
};
use millrace_drivers::{Around, FarEnd, MemoryPort, Next, NullPort, PortError, QueuePair, Transmitted};
use millrace_frames::{Batch, PacketPool};
use millrace_pipeline::{text, verify};
use millrace_traffic::{Handle, Kind, Node, Plan, Port, Queue, QueueReport};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const PROGRAM: &str = include_str!("programs/classes.mir");

/// Frames go to the port of their first byte, in the class of their third; the second says that they are forwarded.
fn switch(engine: EngineKind, source: &str) -> Switch {
    let program = text::parse(source).unwrap_or_else(|error| panic!("{error}"));
    verify::verify(&program).unwrap();
    Switch::new(Arc::new(program), SwitchConfig { engine, ..SwitchConfig::default() }).unwrap()
}

/// The same, whose egress writes into the fourth byte how many packets were in the queue when the packet left it.
fn telling_depth() -> String {
    let told =
        PROGRAM.replace("intrinsic clone = copy", "intrinsic dequeue_depth = depth\nintrinsic clone = copy");
    let told = told.replace("metadata error: bit<16>", "metadata error: bit<16>\nmetadata depth: bit<32>");
    let told = told.replace("block5:\n    end\n}", "block5:\n    h.tag = depth[7:0]\n    end\n}");
    assert_eq!(told.matches("depth").count(), 4);
    told
}

/// Strict priority over eight queues of so many packets.
fn priorities(packets: u32) -> Arc<Plan> {
    let queue = |class: u16| Node {
        handle: Handle::new(class + 2, 0),
        kind: Kind::Queue(Box::new(Queue { classes: 1 << class, packets, ..Queue::default() })),
    };
    let root = Node { handle: Handle::new(1, 0), kind: Kind::Priority((0..8).rev().map(queue).collect()) };
    Arc::new(Plan::new(Port::default(), root).unwrap())
}

/// Frames of eight classes in turn, so many of each, numbered.
struct Source {
    to: u8,
    next: u32,
    limit: u32,
    frame: Vec<u8>,
    /// Gives nothing while this is set.
    holds: Arc<AtomicBool>,
    given: Arc<AtomicU64>,
}

impl Source {
    fn new(to: u8, of_each: u32) -> Source {
        let (frame, holds, given) = (Vec::new(), Arc::default(), Arc::default());
        Source { to, next: 0, limit: of_each * 8, frame, holds, given }
    }
}

impl FarEnd for Source {
    fn next(&mut self) -> Next<'_> {
        if self.next == self.limit {
            return Next::End;
        }
        if self.holds.load(Ordering::Relaxed) {
            return Next::None;
        }
        self.frame = vec![self.to, 0, (self.next % 8) as u8, 0];
        self.frame.extend((self.next / 8).to_be_bytes());
        self.frame.resize(60, 0);
        self.next += 1;
        self.given.store(self.next.into(), Ordering::Relaxed);
        Next::Frame(&self.frame)
    }

    fn take(&mut self, _: &[u8]) -> bool {
        true
    }
}

type Taken = Arc<Mutex<Vec<Vec<u8>>>>;

/// A link that takes so many frames and then none, until it is asked once more.
struct Link {
    of: u32,
    room: u32,
    is_open: Arc<AtomicBool>,
    taken: Taken,
}

fn link(of: u32) -> Link {
    Link { of, room: of, is_open: Arc::new(AtomicBool::new(true)), taken: Taken::default() }
}

impl FarEnd for Link {
    fn next(&mut self) -> Next<'_> {
        Next::End
    }

    fn take(&mut self, frame: &[u8]) -> bool {
        let Some(room) = self.room.checked_sub(1).filter(|_| self.is_open.load(Ordering::Relaxed)) else {
            self.room = self.of;
            return false;
        };
        self.room = room;
        self.taken.lock().unwrap().push(frame.to_vec());
        true
    }
}

fn pair(far: impl FarEnd) -> Box<dyn QueuePair> {
    Box::new(MemoryPort::new(far))
}

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Packets that the program has sent to a port.
fn sent_to(control: &Control, port: PortId) -> u64 {
    let counters = control.ask(Request::Ports).unwrap();
    counters.iter().filter(|(id, _)| *id == port).map(|(_, counters)| counters.tx_packets).sum()
}

fn number(frame: &[u8]) -> (u8, u32) {
    (frame[2], u32::from_be_bytes(frame[4..8].try_into().unwrap()))
}

/// The frames of each class in their order; with how many there are of each.
fn in_order(frames: &[Vec<u8>]) -> HashMap<u8, u32> {
    let (mut last, mut counts) = (HashMap::new(), HashMap::new());
    for frame in frames {
        let (class, number) = number(frame);
        assert!(last.insert(class, number).is_none_or(|before| before < number), "class {class}");
        *counts.entry(class).or_default() += 1;
    }
    counts
}

fn drops(summary: &Summary) -> HashMap<DropReason, u64> {
    summary.switch.counters().all_drops().collect()
}

/// What the link does not take at once waits, and what finds no room is dropped: the higher the class, the less.
#[test]
fn each_packet_is_counted_once_and_the_highest_class_goes_first() {
    for (engine, workers) in [(EngineKind::Fastest, 1), (EngineKind::Interp, 1), (EngineKind::Fastest, 2)] {
        let of_each = 4000;
        let link = link(7);
        let taken = Arc::clone(&link.taken);
        let source = Source::new(2, of_each);
        let holds = Arc::clone(&source.holds);
        holds.store(true, Ordering::Relaxed);
        let ports: Vec<(PortId, _)> = vec![(1, vec![pair(source)]), (2, vec![pair(link)])];
        let worker = Worker::with_followers(switch(engine, PROGRAM), ports, workers, Spread::Port).unwrap();
        let control = worker.control();
        let running = thread::spawn(move || worker.run());
        control.schedule(2, Some(priorities(50))).unwrap();
        holds.store(false, Ordering::Relaxed);
        let summary = running.join().unwrap();
        let taken = taken.lock().unwrap();
        let (from, to) = (summary.switch.counters().port(1), summary.switch.counters().port(2));
        let dropped: u64 = drops(&summary).values().sum();
        assert_eq!(from.rx_packets, u64::from(of_each) * 8, "{engine:?}, {workers}");
        assert_eq!((to.tx_packets, to.tx_drops), (taken.len() as u64, dropped), "{engine:?}, {workers}");
        assert_eq!(from.rx_packets, to.tx_packets + dropped, "{engine:?}, {workers}");
        let counts = in_order(&taken);
        let (highest, lowest) = (counts[&7], counts.get(&0).copied().unwrap_or(0));
        assert!(highest >= lowest, "{counts:?}");
    }
}

/// A plan is set, another one takes its place, and it goes again, while packets pass: none is lost, and none overtakes another one of its
/// class.
#[test]
fn plans_come_and_go_while_packets_pass() {
    for (workers, pairs) in [(1, 1), (2, 1), (2, 2)] {
        let of_each = 15_000;
        let links: Vec<Link> = (0..pairs).map(|_| link(1000)).collect();
        let taken: Vec<Taken> = links.iter().map(|link| Arc::clone(&link.taken)).collect();
        let from = (0..pairs).map(|_| pair(Source::new(2, of_each))).collect();
        let ports: Vec<(PortId, Vec<Box<dyn QueuePair>>)> =
            vec![(1, from), (2, links.into_iter().map(|link| pair(link)).collect())];
        let worker =
            Worker::with_followers(switch(EngineKind::Fastest, PROGRAM), ports, workers, Spread::Port)
                .unwrap();
        let control = worker.control();
        let running = thread::spawn(move || worker.run());
        let mut changes = 0;
        while !running.is_finished() {
            for plan in [Some(priorities(4000)), Some(priorities(3000)), None] {
                match control.schedule(2, plan.clone()) {
                    Ok(()) => changes += 1,
                    Err(ScheduleError::Busy(2)) => {}
                    Err(ScheduleError::Ended) => break,
                    Err(error) => panic!("{error}"),
                }
            }
        }
        let summary = running.join().unwrap();
        assert!(changes > 3, "{changes}");
        let (from, to) = (summary.switch.counters().port(1), summary.switch.counters().port(2));
        let drops = drops(&summary);
        assert_eq!(from.rx_packets, pairs as u64 * u64::from(of_each) * 8);
        assert_eq!(from.rx_packets, to.tx_packets + drops.values().sum::<u64>(), "{drops:?}");
        let sent: usize = taken.iter().map(|taken| taken.lock().unwrap().len()).sum();
        assert_eq!(to.tx_packets, sent as u64);
        if pairs == 1 {
            in_order(&taken[0].lock().unwrap());
        }
    }
}

/// A port whose packets wait before egress, as egress looks at the queue: what it sees is how many were there.
#[test]
fn programs_see_the_queue_that_a_packet_waited_in() {
    for engine in [EngineKind::Interp, EngineKind::Fastest] {
        let link = link(1000);
        let (taken, is_open) = (Arc::clone(&link.taken), Arc::clone(&link.is_open));
        is_open.store(false, Ordering::Relaxed);
        let source = Source::new(2, 100);
        let (holds, given) = (Arc::clone(&source.holds), Arc::clone(&source.given));
        holds.store(true, Ordering::Relaxed);
        let ports: Vec<(PortId, Box<dyn QueuePair>)> = vec![(1, pair(source)), (2, pair(link))];
        let worker = Worker::new(switch(engine, &telling_depth()), ports).unwrap();
        let control = worker.control();
        let running = thread::spawn(move || worker.run());
        control.schedule(2, Some(priorities(1000))).unwrap();
        holds.store(false, Ordering::Relaxed);
        wait_until("all are given", || given.load(Ordering::Relaxed) == 800);
        control.plans().unwrap();
        let waiting: u64 =
            control.plans().unwrap()[0].queues.iter().map(|queue| u64::from(queue.packets)).sum();
        is_open.store(true, Ordering::Relaxed);
        let summary = running.join().unwrap();
        assert!(waiting >= 736, "{engine:?}: {waiting} of 800, as the port takes 64");
        let taken = taken.lock().unwrap();
        assert_eq!((taken.len(), summary.switch.counters().port(2).tx_packets), (800, 800), "{engine:?}");
        in_order(&taken);
        // The last one of each class has left an empty queue, and some others a long one.
        let depths = |class: u8| taken.iter().filter(move |frame| frame[2] == class).map(|frame| frame[3]);
        for class in 0..8 {
            assert_eq!(depths(class).next_back(), Some(0), "{engine:?}, class {class}");
            assert!(depths(class).max() >= Some(80), "{engine:?}, class {class}");
        }
    }
}

/// Ports with a share of the worker: one that is flooded leaves the other its share.
#[test]
fn ports_share_a_worker_as_their_quanta_say() {
    let (first, second) = (Source::new(3, u32::MAX / 8), Source::new(4, u32::MAX / 8));
    let given = [Arc::clone(&first.given), Arc::clone(&second.given)];
    let ports: Vec<(PortId, Box<dyn QueuePair>)> =
        vec![(1, pair(first)), (2, pair(second)), (3, pair(link(u32::MAX))), (4, pair(link(u32::MAX)))];
    let worker = Worker::new(switch(EngineKind::Fastest, PROGRAM), ports).unwrap();
    let control = worker.control();
    let running = thread::spawn(move || worker.run());
    // Of one moment: this thread may lose its processor between two looks.
    let now = || {
        let _pause = control.ask(Request::Pause).unwrap();
        given.each_ref().map(|given| given.load(Ordering::Relaxed))
    };
    let shares = || {
        let before = now();
        wait_until("packets pass", || given[1].load(Ordering::Relaxed) > before[1] + 50_000);
        let after = now();
        (after[0] - before[0]) as f64 / (after[1] - before[1]) as f64
    };
    control.set_intake(1, Some(Intake { class: 0, quantum: 3 * 64 * 60 })).unwrap();
    control.set_intake(2, Some(Intake { class: 0, quantum: 64 * 60 })).unwrap();
    let ratio = shares();
    assert!((2.8..3.2).contains(&ratio), "{ratio}");
    assert_eq!(control.intakes().unwrap().len(), 2);
    assert_eq!(control.set_intake(9, None), Err(IntakeError::UnknownPort(9)));
    assert_eq!(control.set_intake(1, Some(Intake { class: 8, quantum: 64 })), Err(IntakeError::Class(8)));
    (1..=2).for_each(|port| control.set_intake(port, None).unwrap());
    let ratio = shares();
    assert!((0.9..1.1).contains(&ratio), "{ratio}");
    control.stop();
    running.join().unwrap();
}

#[test]
fn what_cannot_be_scheduled_is_refused_and_goes_on() {
    let ports = || vec![(1, pair(Source::new(2, 10))), (2, pair(link(10)))];
    let config = SwitchConfig {
        queues: QueueConfig { priorities: 2, ..QueueConfig::default() },
        ..SwitchConfig::default()
    };
    let program = Arc::new(text::parse(PROGRAM).unwrap());
    for (config, port, wanted) in
        [(SwitchConfig::default(), 9, ScheduleError::UnknownPort(9)), (config, 2, ScheduleError::Priorities)]
    {
        let switch = Switch::new(Arc::clone(&program), config).unwrap();
        let mut ports: Vec<(PortId, Box<dyn QueuePair>)> = ports();
        ports.push((3, Box::new(NullPort::open("-").unwrap())));
        let worker = Worker::new(switch, ports).unwrap();
        let control = worker.control();
        let running = thread::spawn(move || worker.run());
        assert_eq!(control.schedule(port, Some(priorities(10))), Err(wanted));
        assert!(control.plans().unwrap().is_empty());
        control.stop();
        running.join().unwrap();
        assert_eq!(control.schedule(2, None), Err(ScheduleError::Ended));
    }
}

/// A port of a link whose device has so many frames on their way, or is broken.
struct Faulty {
    inner: MemoryPort<Link>,
    in_flight: Arc<AtomicU64>,
    is_broken: Arc<AtomicBool>,
}

impl Around for Faulty {
    type Inner = MemoryPort<Link>;

    fn inner(&self) -> &Self::Inner {
        &self.inner
    }

    fn inner_mut(&mut self) -> &mut Self::Inner {
        &mut self.inner
    }

    fn transmit(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Transmitted, PortError> {
        match self.is_broken.load(Ordering::Relaxed) {
            true => Err(PortError::Arguments { driver: "faulty", reason: "it broke".to_owned() }),
            false => self.inner.transmit(batch, pool),
        }
    }

    fn in_flight(&mut self) -> usize {
        self.in_flight.load(Ordering::Relaxed) as usize
    }
}

struct Faults {
    in_flight: Arc<AtomicU64>,
    is_broken: Arc<AtomicBool>,
    is_open: Arc<AtomicBool>,
    taken: Taken,
}

fn faulty(of: u32) -> (Box<dyn QueuePair>, Faults) {
    let link = link(of);
    let (in_flight, is_broken): (Arc<AtomicU64>, Arc<AtomicBool>) = Default::default();
    let faults = Faults {
        in_flight: Arc::clone(&in_flight),
        is_broken: Arc::clone(&is_broken),
        is_open: Arc::clone(&link.is_open),
        taken: Arc::clone(&link.taken),
    };
    (Box::new(Faulty { inner: MemoryPort::new(link), in_flight, is_broken }), faults)
}

/// A plan that is refused as frames are on their way leaves nothing: packets of a program that looks at queues pass without one.
#[test]
fn a_port_that_is_busy_goes_on_as_it_did() {
    let source = Source::new(2, 100);
    let (holds, given) = (Arc::clone(&source.holds), Arc::clone(&source.given));
    holds.store(true, Ordering::Relaxed);
    let (port, faults) = faulty(u32::MAX);
    faults.in_flight.store(1, Ordering::Relaxed);
    let ports: Vec<(PortId, Box<dyn QueuePair>)> = vec![(1, pair(source)), (2, port)];
    let worker = Worker::new(switch(EngineKind::Fastest, &telling_depth()), ports).unwrap();
    let control = worker.control();
    let running = thread::spawn(move || worker.run());
    assert_eq!(control.schedule(2, Some(priorities(10))), Err(ScheduleError::Busy(2)));
    assert!(control.plans().unwrap().is_empty());
    holds.store(false, Ordering::Relaxed);
    wait_until("all have passed", || faults.taken.lock().unwrap().len() == 800);
    assert_eq!(given.load(Ordering::Relaxed), 800);
    assert!(faults.taken.lock().unwrap().iter().all(|frame| frame[3] == 0), "no queue");
    assert_eq!(running.join().unwrap().switch.counters().port(2).tx_packets, 800);
}

/// What waits for a port that breaks, or is taken away, is dropped and counted, and the switch goes on and ends. A port that comes in its
/// place has no plan.
#[test]
fn what_waits_for_a_port_that_goes_is_counted() {
    for (is_removed, waits_before_egress) in [(false, false), (true, false), (true, true)] {
        let source = if waits_before_egress { telling_depth() } else { PROGRAM.to_owned() };
        // Before egress so many that the worker does not let all go on in one turn.
        let of_each: u32 = if waits_before_egress { 300 } else { 100 };
        let all = u64::from(of_each) * 8;
        let from = Source::new(2, of_each);
        let given = Arc::clone(&from.given);
        let (port, faults) = faulty(u32::MAX);
        faults.is_open.store(false, Ordering::Relaxed);
        let mut ports: Vec<(PortId, Box<dyn QueuePair>)> = vec![(1, pair(from)), (2, port)];
        if is_removed {
            // It goes on without the others.
            ports.push((3, Box::new(NullPort::open("-").unwrap())));
        }
        let mut worker = Worker::new(switch(EngineKind::Fastest, &source), ports).unwrap();
        worker.schedule(2, Some(priorities(of_each))).unwrap();
        let control = worker.control();
        let running = thread::spawn(move || worker.run());
        wait_until("all are given", || given.load(Ordering::Relaxed) == all);
        if is_removed {
            // A slow worker puts the rest of a burst off until its next round.
            let has_come = |queue: &QueueReport| u64::from(queue.packets) + queue.sent;
            let at_the_port = || {
                let come: u64 = control.plans().unwrap()[0].queues.iter().map(has_come).sum();
                // Those that were in a queue before egress and are in one at the port count twice.
                let twice = if waits_before_egress { sent_to(&control, 2) } else { 0 };
                come.saturating_sub(twice)
            };
            wait_until("all are at the port", || at_the_port() == all);
            control.remove_port(2).unwrap();
            assert!(control.plans().unwrap().is_empty());
            control.add_port(2, vec![pair(link(10))]).unwrap();
            assert!(control.plans().unwrap().is_empty());
            control.stop();
        } else {
            faults.is_broken.store(true, Ordering::Relaxed);
        }
        let summary = running.join().unwrap();
        let to = summary.switch.counters().port(2);
        let drops = drops(&summary);
        // Those before egress that a slow machine does not let go on soon enough have a reason of their own.
        let late = drops.get(&DropReason::BatchLimit).filter(|_| waits_before_egress).unwrap_or(&0);
        let refused = drops[&DropReason::TxRefused];
        assert_eq!((to.tx_packets, refused + late), (0, all), "{is_removed}: {drops:?}");
        assert_eq!(summary.failed.len(), usize::from(!is_removed));
    }
}

/// Frames of UDP over IPv4 in classes and flows that a generator says, numbered within each flow; as many as `most` says.
struct Mixed {
    to: u8,
    next: u32,
    flows: Vec<u32>,
    most: Arc<AtomicU64>,
    state: u64,
    frame: Vec<u8>,
}

impl Mixed {
    fn new(to: u8, flows: usize) -> Mixed {
        Mixed { to, next: 0, flows: vec![0; flows], most: Arc::default(), state: 1, frame: Vec::new() }
    }

    fn dice(&mut self, below: usize) -> usize {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) as usize % below
    }
}

impl FarEnd for Mixed {
    fn next(&mut self) -> Next<'_> {
        if u64::from(self.next) >= self.most.load(Ordering::Relaxed) {
            return Next::None;
        }
        // Each flow has one class.
        let flow = self.dice(self.flows.len());
        let len = [60, 60, 600, 1500][self.dice(4)];
        self.frame = vec![self.to, 0, (flow % 8) as u8, 0];
        self.frame.extend(self.flows[flow].to_be_bytes());
        self.frame.resize(12, 0);
        self.frame.extend([8, 0, 0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        self.frame.extend((flow as u16).to_be_bytes());
        self.frame.resize(len, 0);
        self.flows[flow] += 1;
        self.next += 1;
        Next::Frame(&self.frame)
    }

    fn take(&mut self, _: &[u8]) -> bool {
        true
    }
}

/// A device that takes so many frames altogether.
struct Narrow {
    room: Arc<AtomicU64>,
    taken: Taken,
}

impl FarEnd for Narrow {
    fn next(&mut self) -> Next<'_> {
        Next::None
    }

    fn take(&mut self, frame: &[u8]) -> bool {
        let took = self.room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |room| room.checked_sub(1));
        took.inspect(|_| self.taken.lock().unwrap().push(frame.to_vec())).is_ok()
    }
}

/// Notes how many packets the device is given at a time.
struct Given {
    inner: MemoryPort<Narrow>,
    bursts: Arc<Mutex<Vec<usize>>>,
}

impl Around for Given {
    type Inner = MemoryPort<Narrow>;

    fn inner(&self) -> &Self::Inner {
        &self.inner
    }

    fn inner_mut(&mut self) -> &mut Self::Inner {
        &mut self.inner
    }

    fn transmit(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Transmitted, PortError> {
        self.bursts.lock().unwrap().push(batch.len());
        self.inner.transmit(batch, pool)
    }
}

/// A switch whose port 2 has a plan and a narrow device, and gets mixed frames.
struct Burst {
    most: Arc<AtomicU64>,
    room: Arc<AtomicU64>,
    taken: Taken,
    bursts: Arc<Mutex<Vec<usize>>>,
    control: Control,
    running: thread::JoinHandle<Summary>,
}

/// One that begins with so many frames, of which the device takes as many as there is room.
fn bursts(plan: Arc<Plan>, flows: usize, frames: u64, room: u64) -> Burst {
    let source = Mixed::new(2, flows);
    let most = Arc::clone(&source.most);
    most.store(frames, Ordering::Relaxed);
    let (room, taken, bursts) = (Arc::new(AtomicU64::new(room)), Taken::default(), Arc::default());
    let narrow = Narrow { room: Arc::clone(&room), taken: Arc::clone(&taken) };
    let given = Given { inner: MemoryPort::new(narrow), bursts: Arc::clone(&bursts) };
    let ports: Vec<(PortId, Box<dyn QueuePair>)> = vec![(1, pair(source)), (2, Box::new(given))];
    let mut worker = Worker::new(switch(EngineKind::Fastest, PROGRAM), ports).unwrap();
    worker.schedule(2, Some(plan)).unwrap();
    let control = worker.control();
    let running = thread::spawn(move || worker.run());
    Burst { most, room, taken, bursts, control, running }
}

impl Burst {
    fn queues(&self) -> Vec<QueueReport> {
        self.control.plans().unwrap().remove(0).queues
    }

    /// Ends, and checks that all has been sent and counted, once, with the frames of each flow in their order; gives the frames.
    fn end(self, all: u64) -> Vec<Vec<u8>> {
        self.control.stop();
        let summary = self.running.join().unwrap();
        assert_eq!(drops(&summary), HashMap::new());
        let taken = self.taken.lock().unwrap().clone();
        let counters = summary.switch.counters();
        assert_eq!((counters.port(1).rx_packets, counters.port(2).tx_packets), (all, all));
        assert_eq!(taken.len() as u64, all);
        let mut next = HashMap::<u16, u32>::new();
        for frame in &taken {
            let next = next.entry(flow(frame)).or_default();
            assert_eq!(number(frame).1, *next, "flow {}", flow(frame));
            *next += 1;
        }
        taken
    }
}

fn flow(frame: &[u8]) -> u16 {
    u16::from_be_bytes([frame[34], frame[35]])
}

fn fair(flows: u32) -> Arc<Plan> {
    let text = format!("port 2\nqdisc add root handle 1: fq flows {flows} quantum 1600b");
    Arc::new(millrace_traffic::words::parse(&text).unwrap().remove(0).plan)
}

/// What passed an idle port at once has not waited: packets that went through queues have a delay by the clock.
fn sent_at_once(queues: &[QueueReport]) -> u64 {
    assert!(queues.iter().all(|queue| queue.packets == 0));
    assert_eq!(queues.iter().map(|queue| queue.delay_ns).sum::<u64>(), 0, "none waited in a queue");
    queues.iter().map(|queue| queue.sent).sum()
}

/// Bursts of many flows meet an idle port with 64 queues that take turns.
#[test]
fn bursts_of_many_flows_pass_an_idle_port_in_the_order_of_each_flow() {
    let all = 20_000;
    let port = bursts(fair(64), 300, all, u64::MAX);
    wait_until("all are taken", || port.taken.lock().unwrap().len() as u64 == all);
    let queues = port.queues();
    assert_eq!(sent_at_once(&queues), all);
    let bytes: u64 = queues.iter().map(|queue| queue.sent_bytes).sum();
    let taken = port.end(all);
    assert_eq!(bytes, taken.iter().map(|frame| frame.len() as u64).sum::<u64>());
    // Turns: it is not the order in which they came.
    assert!(!taken.is_sorted_by_key(|frame| number(frame).1));
}

/// A burst of all classes meets an idle port with strict priority.
#[test]
fn bursts_of_several_classes_pass_an_idle_port_by_priority() {
    let port = bursts(priorities(1000), 40, 64, u64::MAX);
    let mut all = 64;
    for size in [1, 30, 63, 64].into_iter().cycle().take(200) {
        all += size;
        port.most.store(all as u64, Ordering::Relaxed);
        wait_until("a burst is taken", || port.taken.lock().unwrap().len() == all);
    }
    assert_eq!(sent_at_once(&port.queues()), all as u64);
    let sizes = port.bursts.lock().unwrap().clone();
    assert!(sizes.iter().filter(|size| **size > 20).count() > 50, "{sizes:?}");
    let taken = port.end(all as u64);
    let mut rest = &taken[..];
    for size in sizes {
        let burst;
        (burst, rest) = rest.split_at(size);
        let classes: Vec<u8> = burst.iter().map(|frame| frame[2]).collect();
        assert!(classes.is_sorted_by(|one, next| one >= next), "a burst of {size}: {classes:?}");
    }
}

/// A device that takes a few packets of a burst and no more: the rest of the burst waits in its order, and what comes later after it.
#[test]
fn what_a_device_does_not_take_of_a_burst_leaves_later_in_order() {
    for plan in [fair(64), priorities(1000)] {
        let is_strict = matches!(plan.root().kind, Kind::Priority(_));
        let port = bursts(plan, 50, 60, 5);
        let taken = || port.taken.lock().unwrap().len();
        wait_until("the device is full", || taken() == 5);
        wait_until("the burst has left the queues", || {
            port.queues().iter().map(|queue| queue.sent).sum::<u64>() == 60
        });
        assert_eq!(sent_at_once(&port.queues()), 60);
        // More come while that waits: those go through the queues, and the device takes a few at a time.
        port.most.store(500, Ordering::Relaxed);
        wait_until("they wait", || {
            let come = |queue: &QueueReport| queue.sent + u64::from(queue.packets);
            port.queues().iter().map(come).sum::<u64>() == 500
        });
        assert_eq!(taken(), 5);
        assert!(port.queues().iter().map(|queue| queue.packets).sum::<u32>() >= 400);
        for wanted in (12..500).step_by(7) {
            port.room.fetch_add(7, Ordering::Relaxed);
            wait_until("a few are taken", || taken() == wanted);
        }
        port.room.fetch_add(1000, Ordering::Relaxed);
        wait_until("all are taken", || taken() == 500);
        // The port is idle again.
        let before: u64 = port.queues().iter().map(|queue| queue.delay_ns).sum();
        assert!(before > 0, "they waited");
        port.most.store(560, Ordering::Relaxed);
        wait_until("all are taken", || taken() == 560);
        assert_eq!(port.queues().iter().map(|queue| queue.delay_ns).sum::<u64>(), before, "none waited");
        // A worker begins with small bursts: the device takes the first one, and a part of the second.
        let first = port.bursts.lock().unwrap()[0];
        let taken = port.end(560);
        if is_strict {
            let by_class = |frames: &[Vec<u8>]| frames.is_sorted_by(|one, next| one[2] >= next[2]);
            assert!(by_class(&taken[..first]) && by_class(&taken[first..60]), "{first}");
        }
    }
}
