//! A network as other tools and its own switches have it: WoPANets XML, the entries and the port plans of each switch, a script for
//! Mininet.

mod entries;
mod mininet;
mod wopanets;

pub use entries::{Entries, entries};
pub use mininet::mininet;
pub use wopanets::wopanets;

use crate::model::{Scheduler, Switch};
use millrace_traffic::{Handle, Kind, MAX_BYTES, MAX_PACKETS, Node, Plan, Port, Queue};

/// Bytes of the check sum, which a frame in a queue of a running switch does not have.
const FCS: u32 = 4;

/// The plan of an output port of a switch. What its queues order is the same in a simulation and in a running switch; of the latter the
/// link has a rate, all queues together hold so many frames at most, and the wire adds the check sum of a frame to it, too.
///
/// # Errors
/// The plan cannot be, for a reason that it names.
pub fn plan(switch: &Switch, link: Option<(u64, u32)>, overhead: u32) -> Result<Plan, String> {
    let queue = |classes: u8| {
        Kind::Queue(Box::new(Queue {
            classes,
            packets: MAX_PACKETS,
            bytes: MAX_BYTES,
            age_ns: switch.max_delay,
            ..Queue::default()
        }))
    };
    let root = Handle::new(1, 0);
    // The class of a frame is its priority. The highest of the switch takes those above it, which no virtual link has.
    let priorities = u32::from(switch.priorities);
    let levels = (0..priorities).rev().map(|priority| {
        let classes = if priority + 1 == priorities { 0xffu32 << priority } else { 1 << priority };
        Node { handle: Handle::new(10 + priority as u16, 0), kind: queue(classes as u8) }
    });
    let kind = match switch.scheduler {
        _ if priorities == 1 => queue(0xff),
        Scheduler::Priority => Kind::Priority(levels.collect()),
        Scheduler::RoundRobin => Kind::RoundRobin(levels.collect()),
        Scheduler::Fifo | Scheduler::Arbitrary => queue(0xff),
    };
    let port = Port {
        rate: link.map(|(rate, _)| rate),
        overhead: overhead + link.map_or(0, |_| FCS),
        bytes: switch.buffer.unwrap_or(MAX_BYTES),
        packets: link.map_or(MAX_PACKETS, |(_, frames)| frames),
        catch_up_ns: 0,
        ..Port::default()
    };
    Plan::new(port, Node { handle: root, kind }).map_err(|error| error.to_string())
}

/// A time in nanoseconds as a decimal of a larger unit, exact.
fn decimal(ns: u64, unit: u64) -> String {
    let (whole, part) = (ns / unit, ns % unit);
    let width = unit.ilog10() as usize;
    let part = format!("{part:0width$}");
    match part.trim_end_matches('0') {
        "" => whole.to_string(),
        part => format!("{whole}.{part}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_traffic::{Arrival, Next};

    #[test]
    fn decimals_are_exact() {
        assert_eq!(decimal(2_000_000, 1_000_000), "2");
        assert_eq!(decimal(500_000, 1_000_000), "0.5");
        assert_eq!(decimal(1, 1_000_000), "0.000001");
        assert_eq!(decimal(16_500, 1000), "16.5");
    }

    fn switch() -> Switch {
        Switch {
            name: "S1".into(),
            network: crate::Side::A,
            latency: 0,
            least_latency: 0,
            scheduler: Scheduler::Priority,
            priorities: 2,
            buffer: Some(4096),
            max_delay: Some(1_000_000),
            end_system: None,
        }
    }

    /// A frame of 200 bytes and what the wire adds are 17.6 us at 100 Mbit/s. In a queue it has no check sum.
    #[test]
    fn a_running_port_is_no_faster_than_its_link() {
        for (overhead, frame_ns) in [(20, 17_600), (0, 16_000), (256, 36_480)] {
            let plan = plan(&switch(), Some((100_000_000, 68)), overhead).expect("a plan");
            let mut port = millrace_traffic::Egress::new(plan.into(), 0);
            for packet in 0..2 {
                let arrival = Arrival { class: 0, flow: 0, len: 196, ..Arrival::default() };
                assert!(port.offer(arrival, 0, packet).is_ok());
            }
            assert!(matches!(port.next(0), Next::Leaves(_)));
            assert_eq!(port.wake_ns(), Some(frame_ns), "{overhead}");
        }
    }

    #[test]
    fn a_plan_serves_the_largest_priority_first() {
        let plan = plan(&switch(), Some((100_000_000, 68)), 20).expect("a plan");
        let text = millrace_traffic::words::PortPlan { port: 3, plan }.to_string();
        assert!(text.starts_with("port 3 rate 100mbit overhead 24 "), "{text}");
        let read = millrace_traffic::words::parse(&text).expect("its own words");
        assert_eq!(read[0].to_string(), text);
        let (high, low) = (text.find("classes 1-7"), text.find("classes 0"));
        assert!(high.is_some() && high < low, "{text}");
    }
}
