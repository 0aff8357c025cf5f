//! A worker that a thread of somebody else drives, together with others: step by step, each as short as a round, and none waits.
//!
//! ```text
//!  thread:  has the doorbell rung?  -> answer those that were called
//!           packets for a worker?   -> step it, as often as its share of the time allows
//!           nothing to do?          -> wait for the doorbell, for packets, for the earliest `until_due`
//! ```
//!
//! One thread may so run hundreds of switches. They have no packets of their own: whoever drives them lends them its pool for each step, to
//! which packets go back that end in them, and of which copies are. Requests, hot swaps, reports and captures go through [`super::Control`] as for any worker.

use super::waker::Ringer;
use super::{Mailbox, RunError, Spread, Summary, Worker, mailbox, waiting};
use crate::PortId;
use crate::switch::Switch;
use millrace_drivers::QueuePair;
use millrace_frames::PacketPool;
use std::mem::swap;
use std::time::Duration;

/// What a step of a worker found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Packets; there may be more.
    Busy,
    /// Nothing to do now.
    Idle,
    /// It takes no packets: a pause has begun and is not over, or it was told to end.
    Paused,
}

impl Worker {
    /// A worker for a switch over these ports of real time, whose requests ring a doorbell. It does nothing but in steps.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn driven(
        switch: Switch,
        ports: Vec<(PortId, Box<dyn QueuePair>)>,
        ringer: &Ringer,
    ) -> Result<Worker, RunError> {
        let ports: Vec<_> = ports.into_iter().map(|(port, pair)| (port, vec![pair])).collect();
        let mailboxes = vec![Mailbox::with(ringer.bell())];
        let worker = Worker::with_mailboxes(switch, ports, mailboxes, (Spread::default(), true))?;
        match worker.simulated {
            Some(_) => Err(RunError::Simulated),
            None => Ok(worker),
        }
    }

    /// Whether it was asked for something since this was asked last.
    #[inline]
    pub fn was_called(&self) -> bool {
        self.mailbox.was_called()
    }

    /// Answers requests that have come, at most so many, with packets of that pool; whether there may be more.
    pub fn answer(&mut self, most: usize, pool: &mut PacketPool) -> bool {
        swap(&mut self.packets.pool, pool);
        let more = mailbox::take_some(self, most);
        swap(&mut self.packets.pool, pool);
        more
    }

    /// Takes a batch from each port, with packets of that pool.
    #[inline]
    pub fn step(&mut self, pool: &mut PacketPool) -> Progress {
        self.step_with(pool, Worker::round)
    }

    /// As [`Worker::step`], from these ports alone, where the others have nothing to do either. Who drives hundreds of workers knows where packets
    /// have come, and what is looked at in vain would have to be brought into the cache.
    #[inline]
    pub fn step_from(&mut self, ports: impl Iterator<Item = PortId>, pool: &mut PacketPool) -> Progress {
        let needs_all = self.ports.any_keeps() || self.streams.any || !self.seat.intakes.are_alike();
        match needs_all {
            true => self.step(pool),
            false => self.step_with(pool, |worker| worker.short_round(ports)),
        }
    }

    #[inline]
    fn step_with(&mut self, pool: &mut PacketPool, round: impl FnOnce(&mut Worker) -> bool) -> Progress {
        if self.mailbox.is_paused() || self.mailbox.control().is_to_stop() {
            return Progress::Paused;
        }
        swap(&mut self.packets.pool, pool);
        let busy = round(self);
        swap(&mut self.packets.pool, pool);
        if busy { Progress::Busy } else { Progress::Idle }
    }

    /// Whether packets wait in it for nothing but its next step.
    #[inline]
    pub fn is_behind(&self) -> bool {
        self.switch.traffic.has_put_off()
    }

    /// How long no packet that waits in it may go on; none: none waits.
    pub fn until_due(&self) -> Option<Duration> {
        waiting::until_due(self)
    }

    /// Ends it, after the step that it was in. Copies that would be sent only now are lost, and counted.
    pub fn end(mut self) -> Summary {
        self.send_the_last();
        self.complete();
        self.summary()
    }
}
