//! Gates by the clock, before children in strict priority.
//!
//! **Theorem.** A packet begins only when its gate is open and stays so until the end of the packet, at the rate of the link: that is
//! asked of [`crate::gates`] with its exact length each time. Among those that may begin, the first child's does.

use super::bitmap::Bitmap;
use super::{Discipline, Permit};
use crate::gates::{Gates, Schedule};
use crate::setting::SettingError;
use crate::store::NONE;
use std::sync::Arc;

/// The first ready child whose gate is open long enough.
#[derive(Clone, Debug)]
pub(crate) struct GatedNodes {
    gates: Gates,
    schedule: Arc<Schedule>,
    rate: u64,
    pub(crate) gate: Vec<u8>,
    ready: Bitmap,
    /// The child that is asked; [`NONE`]: the first.
    cursor: u32,
    /// When the gate of one of those that were asked opens.
    opens: u64,
}

impl GatedNodes {
    pub(crate) fn new(
        schedule: Schedule,
        rate: u64,
        initial: u8,
        gate: Vec<u8>,
        now_ns: u64,
    ) -> Result<GatedNodes, SettingError> {
        let (ready, schedule) = (Bitmap::new(gate.len()), Arc::new(schedule));
        let gates = Gates::new(schedule.clone(), rate, 0, initial, now_ns)?;
        Ok(GatedNodes { gates, schedule, rate, gate, ready, cursor: NONE, opens: u64::MAX })
    }

    /// Goes on with the list of another one, until its own takes over at its time.
    pub(crate) fn follow(&mut self, old: &GatedNodes, now_ns: u64) {
        if self.rate != old.rate {
            return;
        }
        self.gates = old.gates.clone();
        if self.schedule.list() == old.schedule.list() {
            self.schedule = old.schedule.clone();
        } else {
            self.gates.change(self.schedule.clone(), now_ns);
        }
    }

    /// Whether a gate is open now, and when it turns: `u64::MAX` if it does not.
    pub(crate) fn state(&mut self, gate: u8, now_ns: u64) -> (bool, u64) {
        match self.gates.closes_ns(gate.into(), now_ns) {
            Some(closes) => (true, closes),
            None => (false, self.gates.next_open_ns(gate.into(), now_ns).unwrap_or(u64::MAX)),
        }
    }

    fn restart(&mut self) {
        (self.cursor, self.opens) = (NONE, u64::MAX);
    }

    /// Asks the ready child after this one, or none: then the node waits.
    fn advance(&mut self, child: u32) -> Permit {
        match (child + 1..self.gate.len() as u32).find(|child| self.ready.contains(*child)) {
            Some(next) => {
                self.cursor = next;
                Permit::Another
            }
            None => {
                let opens = self.opens;
                self.restart();
                Permit::Until(opens)
            }
        }
    }
}

impl Discipline for GatedNodes {
    fn insert(&mut self, child: u32, _now_ns: u64) {
        self.ready.insert(child);
    }

    fn first(&mut self) -> Option<u32> {
        match self.cursor {
            NONE => self.ready.first(),
            cursor => Some(cursor),
        }
    }

    fn permits(&mut self, child: u32, len: u32, now_ns: u64) -> Permit {
        match self.gates.opens_ns(self.gate[child as usize].into(), len, now_ns) {
            Some(time) if time <= now_ns => {
                self.restart();
                Permit::Now
            }
            time => {
                self.opens = self.opens.min(time.unwrap_or(u64::MAX));
                self.advance(child)
            }
        }
    }

    fn sent(&mut self, child: u32, _len: u32, ready: bool, _now_ns: u64) {
        if !ready {
            self.ready.remove(child);
        }
    }

    fn remove(&mut self, child: u32, _now_ns: u64) {
        self.ready.remove(child);
        self.restart();
    }

    fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }
}
