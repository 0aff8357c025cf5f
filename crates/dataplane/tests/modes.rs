//! What a running switch forwards and sends in each mode.

mod wire;

use millrace_dataplane::{
    Control, DropReason, EngineKind, MODES, Mode, PortId, Spread, Switch, SwitchConfig, Worker,
};
use millrace_drivers::QueuePair;
use millrace_pipeline::text;
use millrace_traffic::words;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(10);
const MANAGEMENT: PortId = 9;

/// The outer end.
struct Host {
    sends: Sender<Vec<u8>>,
    receives: Receiver<Vec<u8>>,
}

fn cable() -> (Box<dyn QueuePair>, Host) {
    let (port, sends, receives) = wire::port();
    (port, Host { sends, receives })
}

impl Host {
    /// Sends a frame to a port.
    fn send(&self, to: PortId, word: u8) {
        self.sends.send(vec![1, to as u8, word]).unwrap();
    }

    /// The last byte of the next frame.
    fn receive(&self) -> u8 {
        *self.receives.recv_timeout(PATIENCE).unwrap().last().unwrap()
    }

    fn hears_nothing(&self) -> bool {
        self.receives.try_recv().is_err()
    }
}

/// A worker, with so many in all, over the ports 1, 2 and the management port.
fn worker(engine: EngineKind, workers: usize) -> (Worker, [Host; 3]) {
    let program = text::parse(include_str!("programs/through.mir")).unwrap();
    let mut switch =
        Switch::new(Arc::new(program), SwitchConfig { engine, ..SwitchConfig::default() }).unwrap();
    switch.set_management_ports([MANAGEMENT]);
    let [(one, host_1), (two, host_2), (nine, manager)] = [cable(), cable(), cable()];
    let ports = vec![(1, vec![one]), (2, vec![two]), (MANAGEMENT, vec![nine])];
    let worker = Worker::with_followers(switch, ports, workers, Spread::default()).unwrap();
    (worker, [host_1, host_2, manager])
}

fn dropped(control: &Control) -> u64 {
    let drops = control.report(PATIENCE).unwrap().drops;
    drops.into_iter().find(|(reason, _)| *reason == DropReason::Mode).map_or(0, |(_, count)| count)
}

fn wait_for_drops(control: &Control, count: u64) {
    let begun = Instant::now();
    while dropped(control) < count {
        assert!(begun.elapsed() < PATIENCE, "{} of {count} drops", dropped(control));
        std::thread::yield_now();
    }
    assert_eq!(dropped(control), count);
}

#[test]
fn a_switch_does_in_each_mode_what_the_table_says() {
    for (engine, workers) in [(EngineKind::Interp, 1), (EngineKind::Fastest, 1), (EngineKind::Fastest, 2)] {
        let (worker, [one, two, manager]) = worker(engine, workers);
        let control = worker.control();
        let running = std::thread::spawn(move || worker.run());
        let mut drops = 0;
        for conduct in MODES.iter().chain(&MODES) {
            control.set_mode(conduct.mode).unwrap();
            assert_eq!(control.report(PATIENCE).unwrap().mode, conduct.mode);
            one.send(2, 0xa);
            if conduct.forwards {
                assert_eq!(two.receive(), 0xa);
            } else {
                drops += 1;
                wait_for_drops(&control, drops);
            }
            // To whoever manages it, and back.
            one.send(MANAGEMENT, 0xb);
            manager.send(1, 0xc);
            if conduct.sends {
                assert_eq!((manager.receive(), one.receive()), (0xb, 0xc));
            } else {
                drops += 2;
                wait_for_drops(&control, drops);
            }
            assert!(
                one.hears_nothing() && two.hears_nothing() && manager.hears_nothing(),
                "{}",
                conduct.mode
            );
        }
        control.stop();
        let summary = running.join().unwrap();
        assert_eq!(summary.switch.counters().drops(DropReason::Mode), drops);
    }
}

#[test]
fn a_switch_starts_in_the_mode_that_it_was_given() {
    let (mut worker, [one, two, _]) = worker(EngineKind::Fastest, 2);
    worker.switch_mut().set_mode(Mode::Quiet);
    let control = worker.control();
    let running = std::thread::spawn(move || worker.run());
    (0..50).for_each(|word| one.send(2, word));
    wait_for_drops(&control, 50);
    // A port that comes later is closed too, and so is one that was off meanwhile.
    let (late, three) = cable();
    control.add_port(3, vec![late]).unwrap();
    one.send(3, 1);
    three.send(2, 1);
    wait_for_drops(&control, 52);
    control.set_mode(Mode::Init).unwrap();
    control.set_mode(Mode::Operational).unwrap();
    one.send(2, 77);
    three.send(1, 78);
    assert_eq!((two.receive(), one.receive()), (77, 78));
    control.stop();
    running.join().unwrap();
}

#[test]
fn a_quiet_switch_sends_nothing_that_waited() {
    for workers in [1, 2] {
        let (mut worker, [one, two, _]) = worker(EngineKind::Fastest, workers);
        // Some frames at once, and then one in some seconds.
        let plan = words::parse("port 2\nqdisc add root handle 1: tbf rate 8kbit burst 17kb\nqdisc add parent 1:1 handle 10: pfifo limit 100\n").unwrap();
        worker.schedule(2, Some(Arc::new(plan[0].plan.clone()))).unwrap();
        let control = worker.control();
        let running = std::thread::spawn(move || worker.run());
        (0..60).for_each(|_| one.sends.send([&[1, 2][..], &[7; 1400]].concat()).unwrap());
        let waiting = || {
            let report = control.report(PATIENCE).unwrap();
            report.queues.planned[0].queues.iter().map(|queue| queue.packets).sum::<u32>()
        };
        let begun = Instant::now();
        while waiting() < 40 {
            assert!(begun.elapsed() < PATIENCE, "{:?}", control.report(PATIENCE));
            std::thread::yield_now();
        }
        control.set_mode(Mode::Quiet).unwrap();
        let (sent, lost) = (two.receives.try_iter().count() as u64, dropped(&control));
        assert_eq!(sent + lost, 60, "{workers} workers");
        assert!(lost >= 40);
        std::thread::sleep(Duration::from_millis(50));
        assert!(two.hears_nothing());
        assert_eq!(waiting(), 0);
        control.stop();
        let summary = running.join().unwrap();
        assert_eq!(summary.switch.counters().port(2).tx_packets, sent);
    }
}
