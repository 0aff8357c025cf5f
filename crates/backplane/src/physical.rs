//! A port of the machine on a lane: frames that come are given to their switches, and exits are served.

use crate::exit::Exit;
use crate::rate::Rate;
use crate::time;
use millrace_drivers::{PortError, QueuePair, Received};
use millrace_frames::{Batch, MAX_FRAME, PacketPool};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Bytes that the exit with the smallest guarantee sends in a turn, at least: the longest frame.
const QUANTUM: u64 = MAX_FRAME as u64;
/// The most turns' worth of bytes that an exit with a larger guarantee sends in one turn.
const MAX_WEIGHT: u64 = 64;
/// Batches that a port sends in one round of the lane.
const SENDS: usize = 16;

/// See the module's documentation.
pub(crate) struct Physical {
    pub(crate) number: u16,
    pub(crate) pair: Box<dyn QueuePair>,
    pub(crate) has_ended: bool,
    /// Those that have packets, in the order of their turns.
    turns: VecDeque<Served>,
    /// The least that is guaranteed to any that had packets since none had any.
    least: u64,
    /// Whether it keeps packets of frames that leave from where they lie.
    pub(crate) keeps: bool,
}

/// An exit that has packets.
struct Served {
    exit: Arc<Exit>,
    deficit: u64,
    largest: Option<Rate>,
    /// Packets that the port has not taken yet.
    sending: Batch,
}

impl Physical {
    pub(crate) fn new(number: u16, pair: Box<dyn QueuePair>) -> Physical {
        let keeps = pair.max_kept() > 0;
        Physical { number, pair, has_ended: false, turns: VecDeque::new(), least: u64::MAX, keeps }
    }

    /// An exit has packets that had none.
    pub(crate) fn serve(&mut self, exit: Arc<Exit>) {
        if exit.is_served.swap(true, Ordering::Relaxed) {
            return;
        }
        self.least = self.least.min(exit.share.guaranteed.max(1));
        let largest = exit.share.largest.map(|bits| {
            // Bytes; a burst of two of the longest frames, or what goes in a thousandth of a second.
            Rate::new(bits / 8, (bits / 8 / 1_000).max(2 * MAX_FRAME as u64), time::now_ns())
        });
        self.turns.push_back(Served { exit, deficit: 0, largest, sending: Batch::new() });
    }

    /// Takes a batch that has come.
    #[inline]
    pub(crate) fn receive(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<bool, PortError> {
        if self.has_ended {
            return Ok(false);
        }
        match self.pair.receive(batch, pool) {
            Ok(Received::More) => Ok(true),
            Ok(Received::Idle) => Ok(false),
            Ok(Received::End) => {
                self.has_ended = true;
                Ok(false)
            }
            Err(error) => {
                self.has_ended = true;
                Err(error)
            }
        }
    }

    /// Sends what exits have, each as its turn and its largest rate allow; whether anything was sent.
    #[inline]
    pub(crate) fn send(&mut self, pool: &mut PacketPool) -> Result<bool, PortError> {
        let mut sent = false;
        let mut left = self.turns.len().max(SENDS);
        while left > 0 && !self.turns.is_empty() {
            left -= 1;
            let is_alone = self.turns.len() == 1;
            let Some(mut served) = self.turns.pop_front() else { break };
            let weight = (served.exit.share.guaranteed.max(1) / self.least).clamp(1, MAX_WEIGHT);
            match served.take_turn(&mut *self.pair, pool, (is_alone, QUANTUM * weight))? {
                Turn::Done => {
                    served.exit.is_served.store(false, Ordering::Relaxed);
                    sent = true;
                }
                Turn::More => {
                    sent = true;
                    self.turns.push_back(served);
                }
                Turn::Waits => self.turns.push_back(served),
                // The device takes no more: nobody else sends before what waits here.
                Turn::Full => {
                    self.turns.push_front(served);
                    break;
                }
            }
        }
        if self.turns.is_empty() {
            self.least = u64::MAX;
        }
        self.pair.flush()?;
        Ok(sent)
    }

    /// Whether packets wait for the port.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.turns.is_empty()
    }

    /// The port goes: what waits for it is lost, and counted.
    pub(crate) fn give_up(&mut self, pool: &mut PacketPool) {
        for mut served in self.turns.drain(..) {
            let waiting = served.sending.len() + served.exit.inbox.clear();
            served.sending.recycle(pool);
            served.exit.is_served.store(false, Ordering::Relaxed);
            served.exit.note.is_taken();
            served.exit.counts.lose(crate::counts::Loss::ExitFull, waiting);
        }
    }
}

/// How the turn of an exit ended.
enum Turn {
    /// It has no more packets.
    Done,
    /// It has more, and the next one's turn has come.
    More,
    /// It may not send now.
    Waits,
    /// The device took no more.
    Full,
}

impl Served {
    fn take_turn(
        &mut self,
        pair: &mut dyn QueuePair,
        pool: &mut PacketPool,
        (is_alone, quantum): (bool, u64),
    ) -> Result<Turn, PortError> {
        self.deficit = match is_alone {
            true => quantum,
            false => (self.deficit + quantum).min(2 * quantum),
        };
        let mut has_sent = false;
        loop {
            if self.sending.is_empty() {
                self.exit.note.is_taken();
                self.exit.inbox.take(&mut self.sending);
                if self.sending.is_empty() {
                    return Ok(Turn::Done);
                }
            }
            if let Some(largest) = &mut self.largest
                && largest.there(time::now_ns()) == 0
            {
                return Ok(if has_sent { Turn::More } else { Turn::Waits });
            }
            let bytes: u64 = match is_alone && self.largest.is_none() {
                true => 0,
                false => self.sending.packets().iter().map(|packet| packet.len() as u64).sum(),
            };
            let before = self.sending.len();
            pair.transmit(&mut self.sending, pool)?;
            if let Some(largest) = &mut self.largest {
                largest.owe(bytes, time::now_ns());
            }
            has_sent |= self.sending.len() < before;
            if !self.sending.is_empty() {
                return Ok(Turn::Full);
            }
            self.deficit = self.deficit.saturating_sub(bytes);
            if is_alone || self.deficit == 0 {
                let has_more = self.exit.inbox.waiting() > 0;
                if has_more {
                    return Ok(Turn::More);
                }
            }
        }
    }
}
