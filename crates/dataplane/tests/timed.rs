//! Packets that wait for a time that their program has set: they leave at that time, in order, and may come back again and again if they rest
//! in between. They go with their port.

use millrace_dataplane::{
    Control, DropReason, EngineKind, MAX_AHEAD_NS, MAX_TIMED, PortId, Request, Spread, Switch, SwitchConfig,
    Worker,
};
use millrace_drivers::{FarEnd, MemoryPort, Next, QueuePair};
use millrace_pipeline::{text, verify};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// The first byte is the port, the second one how many milliseconds after it came the packet is to be sent; with a third byte of 1 it goes
/// back to ingress then, with one more in the fourth byte.
const PROGRAM: &str = "program timed
    architecture test
    errors (NoError, PacketTooShort)
    on_reject drop
    ingress (parse, ingress)
    egress (egress, deparse)
    intrinsic parser_error = error
    intrinsic egress_spec = port
    intrinsic ingress_timestamp = came
    intrinsic send_time = when
    intrinsic recirculate = again
    header h: h_t { port: bit<8> after: bit<8> op: bit<8> count: bit<8> }
    metadata error: bit<16>
    metadata port: bit<32>
    metadata came: bit<64>
    metadata when: bit<64>
    metadata again: bool
    body parser parse { block0 state start: extract h end }
    body control ingress {
    block0:
        port = zext(h.port, 32)
        when = add(came, mul(zext(h.after, 64), 64w1000000))
        end }
    body control egress {
    block0:
        select (h.op) { 8w1 => block1 default => block2 }
    block1:
        again = true
        h.count = add(h.count, 8w1)
        end
    block2: end }
    body deparser deparse { block0: emit h end }";

fn switch(engine: EngineKind) -> Switch {
    running(engine, PROGRAM)
}

/// The same, with minutes in place of milliseconds.
fn by_minutes() -> String {
    PROGRAM.replace("64w1000000)", "64w60000000000)")
}

fn running(engine: EngineKind, source: &str) -> Switch {
    let program = text::parse(source).unwrap_or_else(|error| panic!("{error}"));
    verify::verify(&program).unwrap();
    Switch::new(Arc::new(program), SwitchConfig { engine, ..SwitchConfig::default() }).unwrap()
}

/// Ports, last bytes and milliseconds of what leaves when everything may.
fn leaving(switch: &mut Switch) -> Vec<(PortId, u8, u64)> {
    let outcome = switch.drain();
    outcome.sent.iter().map(|sent| (sent.port, sent.bytes[3], sent.time_ns / 1_000_000)).collect()
}

#[test]
fn packets_leave_at_their_times_in_order() {
    for engine in [EngineKind::Interp, EngineKind::Fastest] {
        let mut switch = switch(engine);
        let packets: [(PortId, &[u8]); 5] = [
            (1, &[2, 30, 0, 1]),
            (1, &[3, 10, 0, 2]),
            (1, &[2, 0, 0, 3]),
            (1, &[2, 10, 0, 4]),
            (1, &[2, 255, 0, 5]),
        ];
        let outcome = switch.inject_batch(packets, 5_000_000);
        let now: Vec<u8> = outcome.outputs().map(|(_, bytes)| bytes[3]).collect();
        assert_eq!(now, [3], "{engine:?}");
        assert_eq!(switch.next_departure_ns(), Some(15_000_000), "{engine:?}");
        assert_eq!(switch.advance_to(14_999_999).sent.len(), 0, "{engine:?}");
        assert_eq!(leaving(&mut switch), [(3, 2, 15), (2, 4, 15), (2, 1, 35), (2, 5, 260)], "{engine:?}");
        assert_eq!(switch.counters().port(2).tx_packets, 4, "{engine:?}");
    }
}

/// A keep-alive: it comes back each 20 ms, far more often than a packet may otherwise. One that comes back sooner ends.
#[test]
fn a_packet_that_rests_comes_back_for_ever() {
    for engine in [EngineKind::Interp, EngineKind::Fastest] {
        let mut switch = switch(engine);
        switch.inject(1, &[2, 20, 1, 0], 0);
        let outcome = switch.advance_to(20_000_000 * 1000 - 1);
        assert!(outcome.sent.is_empty() && outcome.drops.is_empty(), "{engine:?}: {:?}", outcome.drops);
        assert_eq!(switch.next_departure_ns(), Some(20_000_000 * 1000), "{engine:?}");
        switch.inject(1, &[2, 9, 1, 0], 20_000_000 * 1000);
        let outcome = switch.advance_to(20_000_000 * 1000 + 9_000_000 * 1000);
        let reasons: Vec<DropReason> = outcome.drops.iter().map(|drop| drop.reason).collect();
        assert_eq!(reasons, [DropReason::RecirculationLimit], "{engine:?}");
    }
}

#[test]
fn as_many_packets_as_may_wait_for_a_time() {
    let mut switch = switch(EngineKind::Fastest);
    for _ in 0..MAX_TIMED {
        assert!(switch.inject(1, &[2, 50, 0, 0], 0).drops.is_empty());
    }
    let outcome = switch.inject(1, &[2, 50, 0, 0], 0);
    assert_eq!(outcome.drops[0].reason, DropReason::TimedFull);
    assert_eq!(switch.inject(1, &[2, 0, 0, 7], 0).sent.len(), 1, "others go on");
    assert_eq!(leaving(&mut switch).len(), MAX_TIMED);
}

/// What waits for its time is not lost when another program takes over: it leaves at once.
#[test]
fn a_program_that_goes_lets_them_leave() {
    let mut switch = switch(EngineKind::Fastest);
    switch.inject(1, &[2, 50, 0, 9], 0);
    let next = self::switch(EngineKind::Fastest);
    switch.take_over(next);
    assert_eq!(switch.next_departure_ns(), None);
    assert_eq!(switch.counters().port(2).tx_packets, 1);
}

#[test]
fn a_time_may_be_an_hour_ahead() {
    assert_eq!(MAX_AHEAD_NS, 60 * 60_000_000_000);
    for engine in [EngineKind::Interp, EngineKind::Fastest] {
        let mut switch = running(engine, &by_minutes());
        assert!(switch.inject(1, &[2, 60, 0, 1], 7).drops.is_empty(), "{engine:?}");
        let outcome = switch.inject(1, &[2, 61, 0, 2], 7);
        assert_eq!(outcome.drops[0].reason, DropReason::TimedTooFar, "{engine:?}");
        assert_eq!(outcome.drops[0].egress_port, Some(2), "{engine:?}");
        assert_eq!(switch.next_departure_ns(), Some(MAX_AHEAD_NS + 7), "{engine:?}");
    }
}

/// A host that sends frames, and keeps those that it gets.
#[derive(Clone, Default)]
struct Host {
    sends: Arc<Mutex<Vec<Vec<u8>>>>,
    last: Vec<u8>,
    taken: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Host {
    fn port(&self) -> Box<dyn QueuePair> {
        Box::new(MemoryPort::new(self.clone()))
    }

    fn sends(frames: usize, frame: &[u8]) -> Host {
        Host { sends: Arc::new(Mutex::new(vec![frame.to_vec(); frames])), ..Host::default() }
    }
}

impl FarEnd for Host {
    fn next(&mut self) -> Next<'_> {
        let Some(frame) = self.sends.lock().unwrap().pop() else { return Next::None };
        self.last = frame;
        Next::Frame(&self.last)
    }

    fn take(&mut self, frame: &[u8]) -> bool {
        self.taken.lock().unwrap().push(frame.to_vec());
        true
    }
}

/// Waits until so many packets have come in by a port.
fn until_received(control: &Control, port: PortId, packets: u64) {
    let received = || {
        let ports = control.ask(Request::Ports).unwrap();
        ports.iter().filter(|(id, _)| *id == port).map(|(_, counted)| counted.rx_packets).sum::<u64>()
    };
    while received() < packets {
        thread::yield_now();
    }
}

/// The port that gets the number next has nothing of them.
#[test]
fn packets_go_with_the_port_that_they_are_for() {
    for engine in [EngineKind::Interp, EngineKind::Fastest] {
        let (from, other) = (Host::sends(10, &[2, 1, 0, 0]), Host::sends(5, &[3, 1, 0, 0]));
        let (to, next, third) = (Host::default(), Host::default(), Host::default());
        let ports = vec![(1, from.port()), (2, to.port()), (3, third.port()), (4, other.port())];
        let worker = Worker::new(running(engine, &by_minutes()), ports).unwrap();
        let control = worker.control();
        let running = thread::spawn(move || worker.run());
        until_received(&control, 1, 10);
        until_received(&control, 4, 5);
        control.remove_port(2).unwrap();
        control.add_port(2, vec![next.port()]).unwrap();
        control.stop();
        let summary = running.join().unwrap();
        let counters = summary.switch.counters();
        assert_eq!(counters.drops(DropReason::NoQueue), 10, "{engine:?}");
        assert_eq!((counters.port(2).tx_packets, counters.port(2).tx_drops), (0, 10), "{engine:?}");
        assert!(to.taken.lock().unwrap().is_empty() && next.taken.lock().unwrap().is_empty(), "{engine:?}");
    }
}

/// They do not wait for the next packet to come, nor are they lost when the switch ends.
#[test]
fn packets_of_a_live_program_that_goes_leave_at_once() {
    for workers in [1, 2] {
        for stops in [false, true] {
            let (from, to) = (Host::sends(10, &[2, 1, 0, 0]), Host::default());
            let ports = vec![(1, vec![from.port()]), (2, vec![to.port()])];
            let switch = running(EngineKind::Fastest, &by_minutes());
            let worker = Worker::with_followers(switch, ports, workers, Spread::Port).unwrap();
            let control = worker.control();
            let running = thread::spawn(move || worker.run());
            until_received(&control, 1, 10);
            let next = Box::new(self::running(EngineKind::Fastest, &by_minutes()));
            drop(control.ask(|to| Request::TakeOver(next, to)).unwrap().unwrap());
            while !stops && to.taken.lock().unwrap().len() < 10 {
                thread::yield_now();
            }
            control.stop();
            let summary = running.join().unwrap();
            let sent = to.taken.lock().unwrap().len();
            assert_eq!((sent, summary.switch.counters().port(2).tx_packets), (10, 10), "{workers}, {stops}");
        }
    }
}

/// Packets that take the worker far longer than it waits for a port that goes: those of other ports end as they would have.
#[test]
fn a_port_that_goes_takes_no_packets_of_others_with_it() {
    const EACH: usize = 64;
    let slow = "        when = add(when, 64w0)\n".repeat(150);
    let source = PROGRAM.replace(
        "        end }\n    body control egress",
        &format!("{slow}        end }}\n    body control egress"),
    );
    assert_eq!(source.len(), PROGRAM.len() + slow.len());
    // They come back 127 times.
    let hosts: Vec<Host> = (0..2).map(|_| Host::sends(EACH, &[9, 0, 1, 0])).collect();
    let idle = Host::default();
    let mut ports: Vec<(PortId, Box<dyn QueuePair>)> =
        (1..).zip(&hosts).map(|(id, host)| (id, host.port())).collect();
    ports.extend([(8, idle.port()), (9, idle.port())]);
    let worker = Worker::new(running(EngineKind::Interp, &source), ports).unwrap();
    let control = worker.control();
    let running = thread::spawn(move || worker.run());
    (1..=2).for_each(|port| until_received(&control, port, EACH as u64));
    control.remove_port(8).unwrap();
    let ended = || {
        let drops = control.report(Duration::from_secs(60)).unwrap().drops;
        drops.iter().map(|(_, count)| *count).sum::<u64>()
    };
    while ended() < 2 * EACH as u64 {
        thread::sleep(Duration::from_millis(5));
    }
    control.stop();
    let summary = running.join().unwrap();
    let drops: Vec<_> = summary.switch.counters().all_drops().collect();
    assert_eq!(drops, [(DropReason::RecirculationLimit, 2 * EACH as u64)]);
}
