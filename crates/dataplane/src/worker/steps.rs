//! A worker that a thread of somebody else drives, together with others: step by step, each as short as a round, and none waits.
//!
//! ```text
//!  thread:  has the doorbell rung?  -> answer those that were called
//!           packets for a worker?   -> step it, as often as its share of the time allows
//!           nothing to do?          -> wait for the doorbell, for packets, for the earliest `until_due`
//! ```
//!
//! One thread may so run hundreds of switches. Requests, hot swaps, reports and captures go through [`super::Control`] as for any worker.

use super::waker::Ringer;
use super::{Mailbox, RunError, Spread, Summary, Worker, mailbox, waiting};
use crate::PortId;
use crate::switch::Switch;
use millrace_drivers::QueuePair;
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
        let worker =
            Worker::with_mailboxes(switch, ports, vec![Mailbox::with(ringer.bell())], Spread::default())?;
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

    /// Answers the requests that have come.
    pub fn answer(&mut self) {
        mailbox::take_waiting(self);
    }

    /// Takes a batch from each port.
    #[inline]
    pub fn step(&mut self) -> Progress {
        if self.mailbox.is_paused() || self.mailbox.control().is_to_stop() {
            return Progress::Paused;
        }
        match self.round() {
            true => Progress::Busy,
            false => Progress::Idle,
        }
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

    /// Ends it, after the step that it was in.
    pub fn end(mut self) -> Summary {
        self.send_the_last();
        self.complete();
        self.summary()
    }
}
