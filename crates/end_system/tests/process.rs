//! An end system on interfaces, of which one breaks.

use millrace_afdx::Network as Side;
use millrace_drivers::{PortError, PortStatistics, QueuePair, Received, TimeSource, Transmitted};
use millrace_end_system::{Node, Plan, Process, Receiving, Traffic, WallClock};
use millrace_frames::{Batch, PacketPool};
use millrace_network::Network;
use std::os::fd::RawFd;
use std::sync::atomic::AtomicBool;

/// An interface that takes so many frames and then is gone; none: it stays.
struct Interface {
    left: Option<u64>,
    statistics: PortStatistics,
}

impl QueuePair for Interface {
    fn receive(&mut self, _: &mut Batch, _: &mut PacketPool) -> Result<Received, PortError> {
        Ok(Received::Idle)
    }

    fn transmit(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Transmitted, PortError> {
        if let Some(left) = &mut self.left {
            *left = left.checked_sub(1).ok_or_else(|| PortError::System {
                action: "use interface x".to_owned(),
                error: std::io::Error::other("gone"),
            })?;
        }
        let sent = batch.len();
        self.statistics.tx_packets += sent as u64;
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
        self.statistics
    }
}

/// The end system ES1 on two interfaces that take so many frames.
fn process(left: [Option<u64>; 2]) -> (Process, WallClock) {
    let text = include_str!("../../../tests/afdx/two.toml");
    let network = Network::parse("two.toml", text).unwrap();
    let plan = Plan::of(&network, "ES1", &Receiving::default()).unwrap();
    let clock = WallClock::default();
    let node = Node::new(plan, Traffic::default(), (clock.now_ns(), u64::MAX)).unwrap();
    let interface =
        |left| Box::new(Interface { left, statistics: PortStatistics::default() }) as Box<dyn QueuePair>;
    let lines = vec![(Side::A, interface(left[0])), (Side::B, interface(left[1]))];
    (Process::new(node, clock, lines, Vec::new()), clock)
}

#[test]
fn the_other_network_goes_on_when_an_interface_is_gone() {
    let (mut process, clock) = process([Some(3), None]);
    let mut told = Vec::new();
    let until_ns = clock.now_ns() + 300_000_000;
    let mut tell = |side: Side, error: &PortError| told.push((side, error.to_string()));
    process.run(until_ns, &AtomicBool::new(false), &mut tell).unwrap();
    assert!(clock.now_ns() >= until_ns);
    assert_eq!(told, [(Side::A, "cannot use interface x: gone".to_owned())]);
    assert_eq!(process.broken().map(|(side, _)| side).collect::<Vec<_>>(), [Side::A]);
    let (_, lines) = process.reports();
    let [a, b] = lines.as_slice() else { panic!("two lines") };
    // What the network that is gone did not take went by the other one.
    assert_eq!((a.port.tx_packets, b.refused), (3, 0));
    assert!(a.refused > 0 && b.port.tx_packets > 3, "{} and {}", a.refused, b.port.tx_packets);
}

#[test]
fn without_an_interface_it_ends() {
    let (mut process, clock) = process([Some(0), Some(1)]);
    let mut told = 0;
    process.run(clock.now_ns() + 60_000_000_000, &AtomicBool::new(false), &mut |_, _| told += 1).unwrap();
    assert_eq!((told, process.broken().count()), (2, 2));
}
