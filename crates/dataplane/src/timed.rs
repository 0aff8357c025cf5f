//! Packets that wait for a time that their program has set ([`Intrinsic::SendTime`]): after ingress, before the queue of their port.
//!
//! So a program sends at a time: a packet of a schedule, or one that it holds back. And it has packets come back to it at a time, as egress
//! may send them back to ingress: a time-out that looks at a register, a keep-alive that is sent again and again.
//!
//! [`Intrinsic::SendTime`]: millrace_pipeline::Intrinsic::SendTime

use crate::flight::{Departure, REST_NS};
use crate::{DropReason, PortId};
use std::collections::BTreeMap;

/// Most packets of a worker that wait for a time.
pub const MAX_TIMED: usize = 1 << 14;
/// The longest time that a packet may wait for its time, from when its ingress ends: an hour.
pub const MAX_AHEAD_NS: u64 = 3600 * 1_000_000_000;

/// The packets, by their times; those of one time in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Timed {
    packets: BTreeMap<(u64, u64), (Departure, u64)>,
    /// Packets that have come so far.
    count: u64,
}

impl Timed {
    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    /// When the first of them goes on.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.packets.first_key_value().map(|((time_ns, _), _)| *time_ns)
    }

    /// Has a packet wait for its time.
    pub(crate) fn push(
        &mut self,
        departure: Departure,
        now_ns: u64,
    ) -> Result<(), (Box<Departure>, DropReason)> {
        if departure.origin.send_at_ns.saturating_sub(now_ns) > MAX_AHEAD_NS {
            return Err((Box::new(departure), DropReason::TimedTooFar));
        }
        if self.packets.len() >= MAX_TIMED {
            return Err((Box::new(departure), DropReason::TimedFull));
        }
        self.count += 1;
        self.packets.insert((departure.origin.send_at_ns, self.count), (departure, now_ns));
        Ok(())
    }

    /// Takes out all packets for a port, in the order of their times.
    pub(crate) fn take_for(&mut self, port: PortId) -> Vec<Departure> {
        let of_port = |(departure, _): &(Departure, u64)| departure.port == port;
        let (taken, kept) = std::mem::take(&mut self.packets).into_iter().partition(|(_, one)| of_port(one));
        self.packets = kept;
        let taken: BTreeMap<_, _> = taken;
        taken.into_values().map(|(departure, _)| departure).collect()
    }

    /// Takes out a packet whose time has come, with the time since which it has waited.
    #[inline]
    pub(crate) fn pop(&mut self, now_ns: u64) -> Option<(Departure, u64)> {
        if self.next_ns()? > now_ns {
            return None;
        }
        let (_, (mut departure, since_ns)) = self.packets.pop_first()?;
        let origin = &mut departure.origin;
        origin.has_rested |= origin.send_at_ns.saturating_sub(since_ns) >= REST_NS;
        origin.send_at_ns = 0;
        Some((departure, since_ns))
    }
}
