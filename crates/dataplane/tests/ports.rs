//! Ports that come and go while a worker runs.

mod wire;

use millrace_dataplane::{
    Control, DropReason, EngineKind, GroupWrite, PortCounters, PortId, PortsError, QueueSetting, QueueWrite,
    Replica, Request, Summary, Switch, SwitchConfig, Worker,
};
use millrace_drivers::{PortError, PortStatistics, QueuePair, Received, TimeSource, Transmitted};
use millrace_frames::{Batch, PacketPool};
use millrace_pipeline::text;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(10);

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
    fn send(&self, frame: &[u8]) {
        self.sends.send(frame.to_vec()).unwrap();
    }

    /// The next frame without what egress puts in front.
    fn receive(&self) -> Vec<u8> {
        self.receives.recv_timeout(PATIENCE).unwrap()[6..].to_vec()
    }
}

/// A worker that runs with these ports.
fn start(engine: EngineKind, ports: Vec<(PortId, Box<dyn QueuePair>)>) -> (Control, JoinHandle<Summary>) {
    let program = text::parse(include_str!("programs/through.mir")).unwrap();
    let config = SwitchConfig { engine, ..SwitchConfig::default() };
    let worker = Worker::new(Switch::new(Arc::new(program), config).unwrap(), ports).unwrap();
    (worker.control(), std::thread::spawn(move || worker.run()))
}

fn end(control: &Control, running: JoinHandle<Summary>) -> Summary {
    control.stop();
    running.join().unwrap()
}

/// Waits until so many packets have come in by a port.
fn until_received(control: &Control, port: PortId, packets: u64) {
    while counted(control, port).rx_packets < packets {
        std::thread::yield_now();
    }
}

/// What the switch has counted of a port.
fn counted(control: &Control, port: PortId) -> PortCounters {
    let ports = control.ask(Request::Ports).unwrap();
    ports.into_iter().find(|(counted, _)| *counted == port).map(|(_, counters)| counters).unwrap_or_default()
}

fn drops(control: &Control, reason: DropReason) -> u64 {
    let drops = control.report(PATIENCE).unwrap().drops;
    drops.into_iter().find(|(counted, _)| *counted == reason).map_or(0, |(_, count)| count)
}

/// Makes a multicast group of these ports.
fn flood(control: &Control, group: u32, ports: impl IntoIterator<Item = PortId>) {
    let copies = ports.into_iter().map(|port| Replica { port, rid: 0 }).collect();
    let made = control.ask(|to| Request::Replicate(vec![GroupWrite::Insert(group, copies)], to));
    assert_eq!(made, Ok(vec![Ok(GroupWrite::Destroy(group))]));
}

fn numbers(control: &Control) -> Vec<PortId> {
    control.report(PATIENCE).unwrap().ports.iter().map(|port| port.port).collect()
}

#[test]
fn a_port_that_is_added_sends_and_receives() {
    for engine in [EngineKind::Interp, EngineKind::Fastest] {
        // From no port at all.
        let (control, running) = start(engine, Vec::new());
        let (one, host_1) = cable();
        control.add_port(1, vec![one]).unwrap();
        host_1.send(&[1, 2, 0xa]);
        until_received(&control, 1, 1);
        assert_eq!(drops(&control, DropReason::UnknownPort), 1);
        let (two, host_2) = cable();
        control.add_port(2, vec![two]).unwrap();
        assert_eq!(numbers(&control), [1, 2]);
        host_1.send(&[1, 2, 0xb]);
        assert_eq!(host_2.receive(), [1, 2, 0xb]);
        host_2.send(&[1, 1, 0xc]);
        assert_eq!(host_1.receive(), [1, 1, 0xc]);
        let summary = end(&control, running);
        assert_eq!(summary.ports.iter().map(|(port, _)| *port).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(summary.switch.counters().port(2).tx_packets, 1);
    }
}

#[test]
fn a_port_that_is_switched_off_sends_and_receives_nothing() {
    for engine in [EngineKind::Interp, EngineKind::Fastest] {
        let ((one, host_1), (two, host_2)) = (cable(), cable());
        let (control, running) = start(engine, vec![(1, one), (2, two)]);
        let enable = |port, on| control.ask(|to| Request::EnablePort(port, on, to)).unwrap();
        let dropped = || drops(&control, DropReason::PortDisabled);
        assert!(!enable(3, false));
        assert!(enable(2, false));
        host_1.send(&[1, 2, 0xa]);
        host_2.send(&[1, 1, 0xb]);
        while dropped() < 2 {
            std::thread::yield_now();
        }
        let counted = counted(&control, 2);
        assert_eq!((counted.rx_packets, counted.rx_drops, counted.tx_drops), (0, 1, 1));
        // Another program finds it so.
        let program = text::parse(include_str!("programs/through.mir")).unwrap();
        let config = SwitchConfig { engine, ..SwitchConfig::default() };
        let next = Switch::new(Arc::new(program), config).unwrap();
        drop(control.ask(|to| Request::TakeOver(Box::new(next), to)).unwrap().unwrap());
        host_1.send(&[1, 2, 0xc]);
        while dropped() < 3 {
            std::thread::yield_now();
        }
        assert!(enable(2, true));
        host_1.send(&[1, 2, 0xd]);
        assert_eq!(host_2.receive(), [1, 2, 0xd]);
        host_2.send(&[1, 1, 0xe]);
        assert_eq!(host_1.receive(), [1, 1, 0xe]);
        end(&control, running);
    }
}

/// A burst of 64 that goes to four ports needs 320 packets at once; a worker without ports has 128.
#[test]
fn there_are_packets_for_the_ports_that_were_added() {
    let (control, running) = start(EngineKind::Interp, Vec::new());
    flood(&control, 6, 1..=4);
    let (ports, hosts): (Vec<_>, Vec<_>) = (1..=4).map(|_| cable()).unzip();
    (0..64).for_each(|_| hosts[0].send(&[3, 6]));
    for (port, number) in ports.into_iter().rev().zip((1..=4).rev()) {
        control.add_port(number, vec![port]).unwrap();
    }
    for host in &hosts {
        (0..64).for_each(|_| assert_eq!(host.receive(), [3, 6]));
    }
    let summary = end(&control, running);
    assert_eq!(summary.switch.counters().all_drops().count(), 0);
}

#[test]
fn a_refused_change_changes_nothing() {
    let ((one, host_1), (two, host_2)) = (cable(), cable());
    let (control, running) = start(EngineKind::Interp, vec![(1, one), (2, two)]);
    let (again, host_again) = cable();
    assert_eq!(control.add_port(2, vec![again]), Err(PortsError::Taken(2)));
    assert_eq!(
        host_again.receives.recv_timeout(PATIENCE),
        Err(RecvTimeoutError::Disconnected),
        "it is closed"
    );
    assert_eq!(control.remove_port(3), Err(PortsError::Unknown(3)));
    assert_eq!(control.add_port(3, vec![Box::new(Replay)]), Err(PortsError::Simulated));
    assert_eq!(numbers(&control), [1, 2]);
    host_1.send(&[1, 2, 0xa]);
    assert_eq!(host_2.receive(), [1, 2, 0xa]);
    host_2.send(&[1, 3, 0xb]);
    until_received(&control, 2, 1);
    let summary = end(&control, running);
    assert_eq!(summary.switch.counters().drops(DropReason::UnknownPort), 1);
    assert_eq!(control.remove_port(1), Err(PortsError::Ended));
    assert_eq!(control.add_port(3, vec![cable().0]), Err(PortsError::Ended));
}

#[test]
fn a_replay_keeps_its_ports() {
    let (control, running) = start(EngineKind::Interp, vec![(1, Box::new(Replay))]);
    assert_eq!(control.add_port(2, vec![cable().0]), Err(PortsError::Simulated));
    assert_eq!(control.remove_port(1), Err(PortsError::Simulated));
    end(&control, running);
}

#[test]
fn removal_while_packets_flow_loses_nothing_that_was_accepted() {
    const FRAMES: u32 = 20_000;
    for engine in [EngineKind::Interp, EngineKind::Fastest] {
        let ((one, host_1), (two, host_2)) = (cable(), cable());
        let (control, running) = start(engine, vec![(1, one), (2, two)]);
        let sender = std::thread::spawn(move || {
            for number in 0..FRAMES {
                host_1.send(&[&[1, 2], &number.to_be_bytes()[..]].concat());
            }
            host_1
        });
        until_received(&control, 1, u64::from(FRAMES / 10));
        let driver = control.remove_port(2).unwrap();
        let _host_1 = sender.join().unwrap();
        until_received(&control, 1, FRAMES.into());
        assert_eq!(numbers(&control), [1]);
        let summary = end(&control, running);
        let got: Vec<Vec<u8>> = host_2.receives.iter().collect();
        for (number, frame) in (0u32..).zip(&got) {
            assert_eq!(frame[8..], number.to_be_bytes(), "in order, and none is missing");
        }
        let (sent, counters) = (got.len() as u64, summary.switch.counters());
        assert_eq!((driver.tx_packets, driver.tx_refused), (sent, 0));
        assert_eq!(counters.port(2).tx_packets, sent, "what was counted stays");
        assert_eq!(counters.drops(DropReason::UnknownPort), u64::from(FRAMES) - sent);
        assert_eq!(counters.all_drops().count(), usize::from(sent < u64::from(FRAMES)));
        assert!(summary.failed.is_empty());
    }
}

#[test]
fn copies_for_a_port_that_was_removed_are_dropped_until_it_comes_back() {
    for engine in [EngineKind::Interp, EngineKind::Fastest] {
        let ((one, host_1), (two, host_2), (three, _host_3)) = (cable(), cable(), cable());
        let (control, running) = start(engine, vec![(1, one), (2, two), (3, three)]);
        flood(&control, 6, [3, 2]);
        control.remove_port(3).unwrap();
        host_1.send(&[3, 6, 0xa]);
        assert_eq!(host_2.receive(), [3, 6, 0xa]);
        assert_eq!(drops(&control, DropReason::UnknownPort), 1);
        let (three, host_3) = cable();
        control.add_port(3, vec![three]).unwrap();
        host_1.send(&[3, 6, 0xb]);
        assert_eq!(host_2.receive(), [3, 6, 0xb]);
        assert_eq!(host_3.receive(), [3, 6, 0xb]);
        assert_eq!(drops(&control, DropReason::UnknownPort), 1);
        end(&control, running);
    }
}

/// Of packets that wait for a queue's rate the first has left; the others are dropped as the port goes, and none of them leaves by the
/// port that gets its number.
#[test]
fn packets_in_the_queue_of_a_port_go_with_it() {
    let ((one, host_1), (two, host_2), (next, host_next)) = (cable(), cable(), cable());
    let (control, running) = start(EngineKind::Interp, vec![(1, one), (2, two)]);
    let slow = QueueWrite { port: Some(2), priority: None, setting: QueueSetting::Rate(4) };
    control.ask(|to| Request::Queues(slow, to)).unwrap().unwrap();
    (0..3).for_each(|_| host_1.send(&[1, 2, 0xa]));
    assert_eq!(host_2.receive(), [1, 2, 0xa]);
    until_received(&control, 1, 3);
    control.remove_port(2).unwrap();
    assert!(control.report(PATIENCE).unwrap().queues.plain.iter().all(|queue| queue.packets == 0));
    control.add_port(2, vec![next]).unwrap();
    let summary = end(&control, running);
    let sent = 1 + host_2.receives.iter().count() as u64;
    assert_eq!(host_next.receives.iter().count(), 0);
    let counters = summary.switch.counters();
    assert_eq!(counters.port(2).tx_packets, sent);
    assert_eq!((counters.drops(DropReason::NoQueue), counters.all_drops().count()), (3 - sent, 1));
}

/// A replay that never ends and in which nothing comes.
struct Replay;

impl QueuePair for Replay {
    fn receive(&mut self, _: &mut Batch, _: &mut PacketPool) -> Result<Received, PortError> {
        Ok(Received::Idle)
    }

    fn transmit(&mut self, batch: &mut Batch, _: &mut PacketPool) -> Result<Transmitted, PortError> {
        Ok(Transmitted { sent: 0, refused: batch.len() })
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
        None
    }

    fn statistics(&self) -> PortStatistics {
        PortStatistics::default()
    }
}
