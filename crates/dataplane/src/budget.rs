//! What packets may cost: bytes that they hold, copies that a batch makes, steps that a packet's journey takes.
//!
//! Each packet has limits of its own (passes, [`crate::MAX_COPIES`], steps of a body), but a batch of packets that all use
//! theirs up would still take all memory and all time. So packets that wait anywhere in the switch, with all their copies,
//! share a budget of bytes; a batch has a budget of copies and passes; and all passes of a packet and its copies have a
//! budget of steps. What is beyond is dropped with a reason of its own.

use crate::DropReason;
use crate::flight::Journeying;
use crate::outcome::Outcome;
use millrace_pipeline::limits::MAX_JOURNEY_STEPS;

/// Bytes that the packets of a switch may take while they wait in it, when nobody says otherwise: with their storage, those
/// of queues, copies and packets on their way out.
pub const DEFAULT_PACKET_MEMORY: usize = 256 << 20;
/// The fewest bytes that this may be set to.
pub const MIN_PACKET_MEMORY: usize = 1 << 20;
/// The most copies and passes that come of the packets of one batch: as many as 64 packets to the largest group.
pub const MAX_BATCH_COPIES: u32 = 1 << 18;

/// Journeys whose steps are told apart. More that are under way at once share what they have left.
const JOURNEYS: usize = 1 << 9;

/// What is left of the budgets of a switch.
#[derive(Debug)]
pub(crate) struct Budget {
    memory: usize,
    held: usize,
    /// Packets that take these bytes, and how many of them may.
    packets: usize,
    buffers: usize,
    copies_left: u32,
    /// The steps that journeys have left, used one after another.
    steps_left: Box<[u32; JOURNEYS]>,
    next: u16,
}

impl Budget {
    pub(crate) fn new(memory: usize) -> Budget {
        Budget {
            memory: memory.max(MIN_PACKET_MEMORY),
            held: 0,
            packets: 0,
            buffers: usize::MAX,
            copies_left: MAX_BATCH_COPIES,
            steps_left: Box::new([0; JOURNEYS]),
            next: 0,
        }
    }

    /// Bytes that packets may take.
    pub(crate) fn memory(&self) -> usize {
        self.memory
    }

    /// Has packets take at most so many bytes from now on.
    pub(crate) fn set_memory(&mut self, memory: usize) {
        self.memory = memory.max(MIN_PACKET_MEMORY);
    }

    /// Has at most so many packets wait from now on; none: as many as have room.
    pub(crate) fn set_buffers(&mut self, buffers: Option<u64>) {
        self.buffers = buffers.map_or(usize::MAX, |buffers| usize::try_from(buffers).unwrap_or(usize::MAX));
    }

    /// A packet waits that takes so many bytes.
    ///
    /// # Errors
    /// As [`Budget::check`]; it does not wait.
    #[inline]
    pub(crate) fn hold(&mut self, bytes: usize) -> Result<(), DropReason> {
        self.check(bytes)?;
        self.held += bytes;
        self.packets += 1;
        Ok(())
    }

    /// Whether there is room for a packet of so many bytes.
    ///
    /// # Errors
    /// Why there is none.
    #[inline]
    pub(crate) fn check(&self, bytes: usize) -> Result<(), DropReason> {
        if bytes > self.memory.saturating_sub(self.held) {
            Err(DropReason::PacketMemory)
        } else if self.packets >= self.buffers {
            Err(DropReason::PacketBuffers)
        } else {
            Ok(())
        }
    }

    /// A packet that was [held](Budget::hold) waits no more.
    #[inline]
    pub(crate) fn release(&mut self, bytes: usize) {
        self.release_all(1, bytes);
    }

    /// The packets that left wait no more.
    #[inline]
    pub(crate) fn release_sent(&mut self, outcome: &Outcome) {
        self.release_all(outcome.sent.len(), outcome.bytes());
    }

    fn release_all(&mut self, packets: usize, bytes: usize) {
        debug_assert!(bytes <= self.held, "released {bytes} of {}", self.held);
        debug_assert!(packets <= self.packets, "released {packets} of {}", self.packets);
        self.held = self.held.saturating_sub(bytes);
        self.packets = self.packets.saturating_sub(packets);
    }

    /// Another batch comes in.
    pub(crate) fn start_batch(&mut self) {
        self.copies_left = MAX_BATCH_COPIES;
    }

    /// How many of so many copies or passes the batch may make.
    #[inline]
    pub(crate) fn take_copies(&mut self, wanted: u32) -> u32 {
        let taken = wanted.min(self.copies_left);
        self.copies_left -= taken;
        taken
    }

    /// Another packet comes in.
    #[inline]
    pub(crate) fn set_out(&mut self) -> Journeying {
        self.next = (self.next + 1) % JOURNEYS as u16;
        self.steps_left[usize::from(self.next)] = MAX_JOURNEY_STEPS;
        Journeying(self.next)
    }

    /// A packet or a copy of it has taken steps.
    #[inline]
    pub(crate) fn take_steps(&mut self, of: Journeying, steps: u64) {
        let left = &mut self.steps_left[usize::from(of.0) % JOURNEYS];
        *left = left.saturating_sub(u32::try_from(steps).unwrap_or(u32::MAX));
    }

    /// Whether a packet and its copies have taken all steps that they may.
    #[inline]
    pub(crate) fn is_spent(&self, of: Journeying) -> bool {
        self.steps_left[usize::from(of.0) % JOURNEYS] == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_copies_are_given_until_there_are_none() {
        let mut budget = Budget::new(0);
        let full = Err(DropReason::PacketMemory);
        assert_eq!(
            (budget.hold(MIN_PACKET_MEMORY - 1), budget.hold(2), budget.hold(1)),
            (Ok(()), full, Ok(()))
        );
        budget.release(1);
        assert_eq!((budget.hold(2), budget.hold(1)), (full, Ok(())));
        assert_eq!(budget.held, MIN_PACKET_MEMORY);
        assert_eq!(budget.take_copies(MAX_BATCH_COPIES - 1), MAX_BATCH_COPIES - 1);
        assert_eq!((budget.take_copies(3), budget.take_copies(3)), (1, 0));
        budget.start_batch();
        assert_eq!(budget.take_copies(3), 3);
    }

    #[test]
    fn packets_are_counted_next_to_their_bytes() {
        let mut budget = Budget::new(0);
        budget.hold(10).unwrap();
        // What is there already counts.
        budget.set_buffers(Some(2));
        assert_eq!((budget.hold(0), budget.hold(0)), (Ok(()), Err(DropReason::PacketBuffers)));
        budget.set_buffers(Some(1));
        budget.release(10);
        assert_eq!(budget.check(1), Err(DropReason::PacketBuffers));
        budget.release(0);
        assert_eq!((budget.hold(1), budget.hold(1)), (Ok(()), Err(DropReason::PacketBuffers)));
        budget.set_buffers(None);
        assert_eq!(budget.hold(1), Ok(()));
    }

    #[test]
    fn each_packet_has_steps_of_its_own() {
        let mut budget = Budget::new(0);
        let (one, other) = (budget.set_out(), budget.set_out());
        budget.take_steps(one, u64::from(MAX_JOURNEY_STEPS) - 1);
        assert!(!budget.is_spent(one));
        budget.take_steps(one, u64::MAX);
        assert!(budget.is_spent(one) && !budget.is_spent(other));
        for _ in 0..JOURNEYS {
            budget.set_out();
        }
        assert!(!budget.is_spent(one), "as if it had just come");
    }
}
