//! A worker that a thread of somebody else drives, together with others: step by step, each as short as a round, and none waits.
//!
//! ```text
//!  thread:  has the doorbell rung?  -> answer those that were called
//!           packets for a worker?   -> step it, as often as its share of the time allows
//!           nothing to do?          -> wait for the doorbell, for packets, for the earliest `until_due`
//! ```
//!
//! One thread may so run hundreds of switches. They have no packets of their own: whoever drives them lends them its [`Supplies`] for each step:
//! a pool, to which packets go back that end in them, and of which copies are, and room for a batch on its way. Requests, hot swaps, reports and
//! captures go through [`super::Control`] as for any worker.

use super::supplies::Supplies;
use super::waker::Ringer;
use super::{Mailbox, RunError, Spread, Summary, Worker, mailbox, waiting};
use crate::PortId;
use crate::switch::Switch;
use millrace_drivers::QueuePair;
use millrace_frames::ask_for_start;
use std::mem::swap;
use std::time::Duration;

/// Ports of a worker whose memory is asked for before a step.
const ASKED: usize = 4;

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

    /// Answers requests that have come, at most so many, with packets of these supplies; whether there may be more.
    pub fn answer(&mut self, most: usize, supplies: &mut Supplies) -> bool {
        swap(&mut self.packets, &mut supplies.0);
        let more = mailbox::take_some(self, most);
        swap(&mut self.packets, &mut supplies.0);
        more
    }

    /// Takes a batch from each port, with packets of these supplies.
    #[inline]
    pub fn step(&mut self, supplies: &mut Supplies) -> Progress {
        self.step_with(supplies, Worker::round)
    }

    /// As [`Worker::step`], from these ports alone, where the others have nothing to do either. Who drives hundreds of workers knows where packets
    /// have come, and what is looked at in vain would have to be brought into the cache.
    #[inline]
    pub fn step_from(&mut self, ports: impl Iterator<Item = PortId>, supplies: &mut Supplies) -> Progress {
        let needs_all = self.ports.any_keeps() || self.streams.any || !self.seat.intakes.are_alike();
        match needs_all {
            true => self.step(supplies),
            false => self.step_with(supplies, |worker| worker.short_round(ports)),
        }
    }

    #[inline]
    fn step_with(&mut self, supplies: &mut Supplies, round: impl FnOnce(&mut Worker) -> bool) -> Progress {
        if self.mailbox.is_paused() || self.mailbox.control().is_to_stop() {
            return Progress::Paused;
        }
        swap(&mut self.packets, &mut supplies.0);
        let busy = round(self);
        swap(&mut self.packets, &mut supplies.0);
        if busy { Progress::Busy } else { Progress::Idle }
    }

    /// Has the processor bring what else a step of it uses: it is in the cache itself, and steps soon.
    #[inline]
    pub fn ask_ahead(&self) {
        self.ports.iter().take(ASKED).for_each(ask_for_start);
        self.switch.ledger.counters.ask_ahead(ASKED);
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
