//! Several workers of one switch: each flow keeps its order, every packet is counted once, and requests, ports and programs change
//! for all of them together while they forward.

use millrace_dataplane::{
    Control, EngineKind, GroupWrite, Keep, MoveError, ObjectRequest, PortId, QueueSetting, QueueWrite,
    Replica, Request, RunError, Spread, Summary, Switch, SwitchConfig, Worker, WorkerReport,
};
use millrace_drivers::{FarEnd, MemoryPort, Next, QueuePair};
use millrace_pipeline::{Bits, EntryMatch, text};
use millrace_state::{CounterRef, CounterValue, ObjectWrite};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

/// Frames start with the addresses of Ethernet, by whose last byte they are told apart: the flow. `kind` says what becomes of
/// them: 0 sends to port 2, 1 drops, 2 sends to group 1, and what is in the value set goes to port 3.
const PROGRAM: &str = r#"
program several
errors (NoError, PacketTooShort, HeaderTooShort, ParserInvalidArgument, ParserTimeout)
ingress (parse, forward)
egress (send, deparse)
intrinsic egress_spec = i_spec
intrinsic drop = i_drop
intrinsic multicast_group = i_group
intrinsic parser_error = i_perr
header h: h_t {
    to: bit<48>
    from: bit<40>
    flow: bit<8>
    type: bit<16>
    kind: bit<8>
    number: bit<32>
}
metadata i_spec: bit<32>
metadata i_group: bit<32>
metadata i_drop: bool
metadata i_perr: bit<16>
counter "of_flow" size 256 packets_and_bytes
register "last": bit<32> size 256
register "total": bit<32> size 1
metadata total: bit<32>
value_set "special" (kind: bit<8> exact) size 4
action nop () = nop
table "flows" { key flow: exact = h.flow action nop default nop() size 300 direct_counter "hits" packets at_hit }
body action nop { block0: end }
body parser parse {
block0 state start:
    extract h
    select (h.kind) {
        (in special) => block1
        default => block2
    }
block1 state special:
    i_spec = 32w3
    end
block2 state plain:
    i_spec = 32w2
    end
}
body control forward {
block0:
    count "of_flow", h.flow
    register_write "last", h.flow, h.number
    atomic_begin 8w0
    register_read total, "total", 8w0
    total = add(total, 32w1)
    register_write "total", 8w0, total
    atomic_end
    apply flows, next = block1, exit = block1
block1:
    select (h.kind) {
        8w1 => block2
        8w2 => block3
        default => block4
    }
block2:
    i_drop = true
    end
block3:
    i_group = 32w1
    end
block4:
    end
}
body control send { block0: end }
body deparser deparse { block0: emit h end }
"#;

const FLOWS: usize = 200;

fn switch() -> Switch {
    switch_by(EngineKind::Fastest)
}

fn switch_by(engine: EngineKind) -> Switch {
    let program = text::parse(PROGRAM).unwrap_or_else(|error| panic!("{error}"));
    let config = SwitchConfig { engine, ..SwitchConfig::default() };
    Switch::new(Arc::new(program), config).unwrap()
}

fn frame(flow: u8, kind: u8, number: u32) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 4, 0, 0, 0, 0, flow, 0x88, 0xb5, kind];
    frame.extend(number.to_be_bytes());
    frame
}

fn flow_of(frame: &[u8]) -> (u8, u32) {
    (frame[11], u32::from_be_bytes(frame[15..19].try_into().unwrap()))
}

/// What came out of a port.
type Output = Arc<Mutex<Vec<Vec<u8>>>>;

/// Frames of all flows in turn, so many of each, of one kind; then an end, or nothing more.
struct Source {
    kind: u8,
    /// Of the flows it has each `of`-th, from this one on.
    first: u64,
    of: u64,
    next: u64,
    limit: u64,
    ends: bool,
    /// Frames that were given out.
    given: Arc<AtomicU64>,
    /// Gives nothing while this is set.
    holds: Arc<AtomicBool>,
    frame: Vec<u8>,
    output: Output,
}

fn source(kind: u8, of_each: u64) -> Source {
    Source {
        kind,
        first: 0,
        of: 1,
        next: 0,
        limit: of_each * FLOWS as u64,
        ends: true,
        given: Arc::default(),
        holds: Arc::default(),
        frame: Vec::new(),
        output: Output::default(),
    }
}

impl FarEnd for Source {
    fn next(&mut self) -> Next<'_> {
        if self.next == self.limit / self.of {
            return if self.ends { Next::End } else { Next::None };
        }
        if self.holds.load(Ordering::Relaxed) {
            return Next::None;
        }
        let flows = FLOWS as u64 / self.of;
        let (flow, number) = (self.next % flows * self.of + self.first, self.next / flows);
        self.next += 1;
        self.given.store(self.next, Ordering::Relaxed);
        self.frame = frame(flow as u8, self.kind, number as u32);
        Next::Frame(&self.frame)
    }

    fn take(&mut self, frame: &[u8]) -> bool {
        self.output.lock().unwrap().push(frame.to_vec());
        true
    }
}

/// Each flow of these frames in its order; some may be missing.
fn check_ascending(frames: &[Vec<u8>]) {
    let mut last: HashMap<u8, u32> = HashMap::new();
    for frame in frames {
        let (flow, number) = flow_of(frame);
        let is_later = last.insert(flow, number).is_none_or(|before| before < number);
        assert!(is_later, "flow {flow} is out of order");
    }
}

/// Each flow of these frames in its order, with none missing and none twice.
fn check_order(frames: &[Vec<u8>], of_each: u32) {
    let mut next: HashMap<u8, u32> = HashMap::new();
    for frame in frames {
        let (flow, number) = flow_of(frame);
        let next = next.entry(flow).or_default();
        assert_eq!(number, *next, "flow {flow}");
        *next += 1;
    }
    assert!(next.len() == FLOWS && next.values().all(|count| *count == of_each), "{next:?}");
}

fn one(port: impl QueuePair + 'static) -> Vec<Box<dyn QueuePair>> {
    vec![Box::new(port)]
}

struct Running {
    control: Control,
    worker: JoinHandle<Summary>,
}

fn run(switch: Switch, ports: Vec<(PortId, Vec<Box<dyn QueuePair>>)>, workers: usize) -> Running {
    let worker = Worker::with_followers(switch, ports, workers, Spread::Symmetric).unwrap();
    let control = worker.control();
    assert_eq!(control.workers(), workers);
    Running { control, worker: thread::spawn(move || worker.run()) }
}

impl Running {
    fn end(self) -> Summary {
        self.worker.join().unwrap()
    }

    fn stop(self) -> Summary {
        self.control.stop();
        self.end()
    }
}

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Frames of one port with one queue pair, spread over the workers and sent by another one.
#[test]
fn flows_keep_their_order_and_every_packet_is_counted_once() {
    for workers in [1, 2, 4] {
        let of_each = 500;
        let (sink, given) = (source(0, 0), source(0, of_each));
        let output = Arc::clone(&sink.output);
        let switch = switch();
        let handle = switch.state().handle();
        let program = Arc::clone(switch.program());
        let ports =
            vec![(1, one(MemoryPort::new(given))), (2, one(MemoryPort::new(Source { ends: true, ..sink })))];
        let summary = run(switch, ports, workers).end();
        let total = of_each * FLOWS as u64;
        let (from, to) = (summary.switch.counters().port(1), summary.switch.counters().port(2));
        let drops: u64 = summary.switch.counters().all_drops().map(|(_, count)| count).sum();
        let driver = summary.ports.iter().find(|(port, _)| *port == 1).unwrap().1;
        assert_eq!(driver.rx_packets, total, "{workers} workers");
        assert_eq!(driver.rx_missed + from.rx_packets, total, "what no ring had room for counts as missed");
        assert_eq!(from.rx_packets, to.tx_packets + drops);
        let output = output.lock().unwrap();
        assert_eq!(output.len() as u64, to.tx_packets);
        check_ascending(&output);
        // What the program counted, by all workers together.
        let counter = program.counters.keys().next().unwrap();
        let tables = handle.lock();
        let counted: u64 = (0..FLOWS as u64)
            .map(|flow| tables.counter_value(CounterRef::Indexed(counter), flow).unwrap().packets)
            .sum();
        assert_eq!(counted, from.rx_packets);
        // A register that each packet reads and writes: no increment of another worker is lost.
        let total = program.registers.keys().nth(1).unwrap();
        let value = summary.switch.state().register_value(total, 0).unwrap();
        assert_eq!(value, Bits::new(32, from.rx_packets.into()));
    }
}

/// A device with a queue pair for each worker: no ring, so nothing is missed.
#[test]
fn a_device_with_queue_pairs_loses_nothing() {
    let of_each = 300;
    let sources: Vec<Source> = (0..2).map(|_| source(0, of_each)).collect();
    let sinks: Vec<Source> = (0..2).map(|_| source(0, 0)).collect();
    let outputs: Vec<Output> = sinks.iter().map(|sink| Arc::clone(&sink.output)).collect();
    let pairs = |far: Vec<Source>| {
        far.into_iter().map(|far| Box::new(MemoryPort::new(far)) as Box<dyn QueuePair>).collect::<Vec<_>>()
    };
    let switch = switch();
    let (handle, program) = (switch.state().handle(), Arc::clone(switch.program()));
    let summary = run(switch, vec![(1, pairs(sources)), (2, pairs(sinks))], 2).end();
    let total = 2 * of_each * FLOWS as u64;
    assert_eq!(summary.switch.counters().port(2).tx_packets, total);
    assert_eq!(summary.switch.counters().port(1).rx_packets, total);
    for output in outputs {
        check_order(&output.lock().unwrap(), of_each as u32);
    }
    let counter = program.counters.keys().next().unwrap();
    let value = handle.lock().counter_value(CounterRef::Indexed(counter), 7).unwrap();
    assert_eq!(
        value,
        CounterValue { packets: 2 * of_each, bytes: 2 * of_each * frame(0, 0, 0).len() as u64 }
    );
}

/// Another program with the same objects, again and again, while packets pass: none is lost or counted twice.
#[test]
fn a_program_takes_over_for_all_workers_between_two_of_their_rounds() {
    let of_each = 4000;
    let sources: Vec<Source> = (0..2).map(|_| source(0, of_each)).collect();
    let sinks: Vec<Source> = (0..2).map(|_| source(0, 0)).collect();
    let pairs = |far: Vec<Source>| {
        far.into_iter().map(|far| Box::new(MemoryPort::new(far)) as Box<dyn QueuePair>).collect::<Vec<_>>()
    };
    let running = run(switch(), vec![(1, pairs(sources)), (2, pairs(sinks))], 2);
    let control = running.control.clone();
    let mut swaps = 0;
    let mut handle = None;
    while let Ok(now) = control.ask(Request::Look) {
        let config = SwitchConfig { engine: EngineKind::Fastest, ..SwitchConfig::default() };
        let next = Switch::alongside(Arc::clone(&now.program), config, &now.tables).unwrap();
        match control.swap(next, Keep::Everything) {
            Ok(_) => swaps += 1,
            Err(_) => break,
        }
        handle = Some((now.program, swaps));
    }
    let (program, _) = handle.expect("a program took over");
    let summary = running.end();
    assert!(swaps > 1, "{swaps}");
    let total = 2 * of_each * FLOWS as u64;
    assert_eq!(summary.switch.counters().port(2).tx_packets, total);
    let counter = program.counters.keys().next().unwrap();
    let tables = summary.switch.state().handle();
    let counted = tables.lock().counter_value(CounterRef::Indexed(counter), 9).unwrap();
    assert_eq!(counted.packets, 2 * of_each, "counts of all workers go on under each program");
    let last = program.registers.keys().next().unwrap();
    assert_eq!(summary.switch.state().register_value(last, 9), Ok(Bits::new(32, u128::from(of_each) - 1)));
}

#[test]
fn requests_change_the_switches_of_all_workers() {
    let source_of = |kind| Source { ends: false, ..source(kind, u64::MAX / FLOWS as u64) };
    let (special, many) = (source_of(5), source_of(2));
    let holds = Arc::clone(&many.holds);
    holds.store(true, Ordering::Relaxed);
    let (second, third) = (source_of(0), source_of(0));
    for sink in [&second, &third] {
        sink.holds.store(true, Ordering::Relaxed);
    }
    let ports = vec![
        (1, one(MemoryPort::new(special))),
        (4, one(MemoryPort::new(many))),
        (2, one(MemoryPort::new(second))),
        (3, one(MemoryPort::new(third))),
    ];
    let running = run(switch(), ports, 2);
    let control = &running.control;
    let sent = |port: PortId| {
        let ports = control.ask(Request::Ports).unwrap();
        ports.iter().find(|(number, _)| *number == port).map_or(0, |(_, counters)| counters.tx_packets)
    };
    wait_until("packets pass", || sent(2) > 1000);
    assert_eq!(sent(3), 0);

    // A value set, of which each worker has a copy: after the answer no packet goes to port 2 any more.
    let program = control.ask(Request::Look).unwrap().program;
    let set = program.value_sets.keys().next().unwrap();
    let write = vec![vec![ObjectWrite::InsertValue(set, vec![EntryMatch::Exact(Bits::new(8, 5))])]];
    let objects = |request| Request::Objects(Arc::clone(&program), request);
    control.ask(|to| objects(ObjectRequest::Write(write, to))).unwrap().unwrap()[0].clone().unwrap();
    let before = sent(2);
    wait_until("the value set counts", || sent(3) > 1000);
    assert_eq!(sent(2), before);

    // A group, and a pause in which nothing comes in.
    let copies = vec![Replica { port: 2, rid: 1 }, Replica { port: 3, rid: 2 }];
    control.ask(|to| Request::Replicate(vec![GroupWrite::Insert(1, copies)], to)).unwrap()[0]
        .clone()
        .unwrap();
    holds.store(false, Ordering::Relaxed);
    wait_until("copies go to both", || sent(2) > before + 1000);
    let pause = control.ask(Request::Pause).unwrap();
    let paused = control.ask(Request::Ports).unwrap();
    thread::sleep(Duration::from_millis(20));
    assert_eq!(control.ask(Request::Ports).unwrap(), paused);
    drop(pause);
    wait_until("it goes on", || {
        sent(3) > paused.iter().map(|(_, counters)| counters.tx_packets).max().unwrap()
    });

    // A port is switched off for all, and on again.
    assert!(control.ask(|to| Request::EnablePort(1, false, to)).unwrap());
    let drops = |control: &Control| {
        control.report(PATIENCE).unwrap().drops.iter().map(|(_, count)| count).sum::<u64>()
    };
    let dropped = drops(control);
    wait_until("its packets are dropped", || drops(control) > dropped + 1000);
    assert!(control.ask(|to| Request::EnablePort(1, true, to)).unwrap());

    // Everything is accounted for: nothing is in queues, so what came in left or was dropped. Copies are one more each.
    let report = running.stop();
    let counters = report.switch.counters();
    assert!(counters.port(1).rx_packets > 0 && counters.port(4).rx_packets > 0);
}

#[test]
fn a_rate_is_kept_by_all_workers_together() {
    let limited = Source { ends: false, ..source(0, u64::MAX / FLOWS as u64) };
    let sink = source(0, 0);
    let ports =
        vec![(1, one(MemoryPort::new(limited))), (2, one(MemoryPort::new(Source { ends: false, ..sink })))];
    let running = run(switch(), ports, 2);
    let rate = 2000;
    let write = QueueWrite { port: Some(2), priority: None, setting: QueueSetting::Rate(rate) };
    running.control.ask(|to| Request::Queues(write, to)).unwrap().unwrap();
    let sent = || running.control.ask(Request::Ports).unwrap()[1].1.tx_packets;
    let (before, begun) = (sent(), Instant::now());
    thread::sleep(Duration::from_millis(300));
    let (passed, time) = (sent() - before, begun.elapsed());
    let most = (time.as_secs_f64() * rate as f64) as u64 + 2;
    assert!(passed <= most && passed > 50, "{passed} packets in {time:?}");
    running.stop();
}

#[test]
fn ports_come_and_go_for_all_workers() {
    let sink = Source { ends: false, ..source(0, 0) };
    let running = run(switch(), vec![(2, one(MemoryPort::new(sink)))], 3);
    let received = || {
        let ports = running.control.ask(Request::Ports).unwrap();
        ports.iter().find(|(port, _)| *port == 1).map_or(0, |(_, counters)| counters.rx_packets)
    };
    for _ in 0..20 {
        let coming = Source { ends: false, ..source(0, 50) };
        let (total, before) = (coming.limit, received());
        running.control.add_port(1, one(MemoryPort::new(coming))).unwrap();
        wait_until("its frames come", || received() > before);
        let statistics = running.control.remove_port(1).unwrap();
        assert!(statistics.rx_packets <= total && statistics.rx_packets > 0);
    }
    let summary = running.stop();
    let counters = summary.switch.counters();
    let drops: u64 = counters.all_drops().map(|(_, count)| count).sum();
    assert_eq!(counters.port(1).rx_packets, counters.port(2).tx_packets + drops);
}

/// Two queue pairs full of frames go from worker to worker, again and again: no frame is lost, none overtakes another of its flow.
#[test]
fn queue_pairs_change_their_workers_while_packets_pass() {
    // In the interpreter, the more so on an emulated processor, a batch may take longer than a turn: then packets are put off.
    for (own, engine) in [(2, EngineKind::Fastest), (1, EngineKind::Fastest), (1, EngineKind::Interp)] {
        let of_each = 3000;
        // Each queue pair has flows of its own, which leave by one output, whichever worker has them.
        let sources: Vec<Source> = (0..own)
            .map(|pair| Source { first: pair as u64, of: own as u64, ..source(0, of_each) })
            .collect();
        let output = Output::default();
        let sinks = (0..2).map(|_| Source { output: Arc::clone(&output), ..source(0, 0) });
        let pairs = |far: Vec<Source>| far.into_iter().flat_map(|far| one(MemoryPort::new(far))).collect();
        let running = run(switch_by(engine), vec![(1, pairs(sources)), (2, pairs(sinks.collect()))], 2);
        let owners = |running: &Running| {
            let workers = running.control.report(PATIENCE).map(|report| report.workers);
            let has = |worker: &WorkerReport, pair| worker.queue_pairs.contains(&(1, pair));
            workers.map(|workers| {
                (0..own)
                    .map(|pair| workers.iter().position(|worker| has(worker, pair)).unwrap())
                    .collect::<Vec<_>>()
            })
        };
        let mut moves = 0;
        for turn in 0.. {
            let (pair, to) = (turn % own, turn / own % 3 % 2);
            match running.control.move_queue(1, pair, to) {
                Ok(()) => {}
                Err(MoveError::Ended) => break,
                // On a slow machine packets may take longer to leave.
                Err(MoveError::Busy(_)) => continue,
                Err(error) => panic!("{error}"),
            }
            match owners(&running) {
                Ok(owners) => assert_eq!(owners[pair], to),
                Err(_) => break,
            }
            moves += 1;
        }
        let summary = running.end();
        assert!(moves > 4, "{moves} moves");
        let total = of_each * FLOWS as u64;
        let (from, to) = (summary.switch.counters().port(1), summary.switch.counters().port(2));
        let driver = summary.ports.iter().find(|(port, _)| *port == 1).unwrap().1;
        assert_eq!(driver.rx_packets, total, "what was counted stays");
        assert_eq!(driver.rx_missed + from.rx_packets, total);
        assert_eq!(to.tx_packets, from.rx_packets);
        if own == 2 {
            assert_eq!(driver.rx_missed, 0);
            check_order(&output.lock().unwrap(), of_each as u32);
        } else {
            // A ring that is full refuses, whoever has the queue pair.
            check_ascending(&output.lock().unwrap());
        }
    }
}

#[test]
fn a_queue_pair_that_cannot_move_stays() {
    let limited = Source { ends: false, ..source(0, 1) };
    let ports = vec![
        (1, one(MemoryPort::new(limited))),
        (2, one(MemoryPort::new(Source { ends: false, ..source(0, 0) }))),
    ];
    let mut first = switch();
    // The packets of one flow wait for hours.
    first.set_queue_rate(1, Some(2), None).unwrap();
    let running = run(first, ports, 2);
    let control = &running.control;
    wait_until("packets wait", || {
        control.report(PATIENCE).unwrap().queues.plain.iter().any(|queue| queue.packets > 1)
    });
    let refused = |port, queue, worker| control.move_queue(port, queue, worker).unwrap_err();
    assert_eq!(refused(7, 0, 1), MoveError::UnknownPort(7));
    assert_eq!(refused(1, 1, 1), MoveError::NoQueuePair { port: 1, queue: 1, of: 1 });
    assert_eq!(refused(1, 0, 2), MoveError::NoWorker { worker: 2, of: 2 });
    assert_eq!(refused(1, 0, 1), MoveError::Busy(1));
    assert_eq!(control.move_queue(1, 0, 0), Ok(()), "it is there");
    // Nothing that waits came in on it.
    assert_eq!(control.move_queue(2, 0, 1), Ok(()));
    let workers = control.report(PATIENCE).unwrap().workers;
    assert_eq!((&workers[0].queue_pairs[..], &workers[1].queue_pairs[..]), (&[(1, 0)][..], &[(2, 0)][..]));
    running.stop();
}

#[test]
fn several_workers_without_packets_sleep_and_wake_for_a_frame() {
    let quiet = Source { ends: false, ..source(0, 1) };
    let (holds, output) = (Arc::clone(&quiet.holds), Arc::clone(&quiet.output));
    holds.store(true, Ordering::Relaxed);
    let (mut wire, far) = std::os::unix::net::UnixStream::pair().unwrap();
    far.set_nonblocking(true).unwrap();
    let port = MemoryPort::new(Signalled { source: quiet, signal: far });
    let sink = Signalled {
        source: Source { ends: false, output: Arc::clone(&output), ..source(0, 0) },
        signal: wire.try_clone().unwrap(),
    };
    let running = run(switch(), vec![(1, one(port)), (2, one(MemoryPort::new(sink)))], 2);
    thread::sleep(Duration::from_millis(50));
    holds.store(false, Ordering::Relaxed);
    std::io::Write::write_all(&mut wire, &[1]).unwrap();
    wait_until("all frames pass", || output.lock().unwrap().len() == FLOWS);
    running.stop();
}

/// A far end whose worker sleeps until there is something to read.
struct Signalled {
    source: Source,
    signal: std::os::unix::net::UnixStream,
}

impl FarEnd for Signalled {
    fn next(&mut self) -> Next<'_> {
        self.source.next()
    }

    fn take(&mut self, frame: &[u8]) -> bool {
        self.source.take(frame)
    }

    fn poll_fd(&self) -> Option<std::os::fd::RawFd> {
        Some(std::os::fd::AsRawFd::as_raw_fd(&self.signal))
    }
}

#[test]
fn what_workers_cannot_have_is_refused() {
    let pair = || Box::new(MemoryPort::new(source(0, 0))) as Box<dyn QueuePair>;
    let made = |ports, workers| Worker::with_followers(switch(), ports, workers, Spread::Port).err();
    assert!(matches!(made(vec![(1, vec![pair(), pair()])], 3), Some(RunError::QueuePairs(1, 2))));
    assert!(matches!(made(vec![(1, vec![pair()])], 0), Some(RunError::Workers(0))));
    assert!(matches!(made(vec![(1, vec![pair()])], 65), Some(RunError::Workers(65))));
}
