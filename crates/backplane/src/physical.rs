//! A port of the machine on a lane: frames that come are given to their switches, and exits are served.

use crate::MemberId;
use crate::counts::Loss;
use crate::exit::Exit;
use crate::time;
use millrace_drivers::{PortError, QueuePair, Received};
use millrace_frames::{Batch, MAX_FRAME, Packet, PacketPool};
use std::collections::VecDeque;
use std::sync::Arc;

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
    /// It takes nothing any more.
    is_broken: bool,
    /// Those that have packets, in the order of their turns.
    turns: VecDeque<Served>,
    /// The least that is guaranteed to any that had packets since none had any.
    least: u64,
    /// Whether it keeps packets of frames that leave from where they lie.
    pub(crate) keeps: bool,
}

/// An exit with packets, and how far its port has come with it.
struct Served {
    exit: Arc<Exit>,
    /// Bytes that it may send in its turn.
    deficit: u64,
    /// Packets that the port has not taken yet.
    batch: Batch,
}

impl Physical {
    pub(crate) fn new(number: u16, pair: Box<dyn QueuePair>) -> Physical {
        let keeps = pair.max_kept() > 0;
        Physical {
            number,
            pair,
            has_ended: false,
            is_broken: false,
            turns: VecDeque::new(),
            least: u64::MAX,
            keeps,
        }
    }

    /// An exit has packets that had none.
    pub(crate) fn serve(&mut self, exit: Arc<Exit>) {
        if exit.begin() {
            self.least = self.least.min(exit.share.guaranteed.max(1));
            self.turns.push_back(Served { exit, deficit: 0, batch: Batch::new() });
        }
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

    /// Sends what exits have, each as its turn and its largest rate allow; whether anything was sent, and how many frames of which switch of
    /// this lane.
    ///
    /// # Errors
    /// The port is broken: what waits for it, now and later, is lost, and counted.
    #[inline]
    pub(crate) fn send(
        &mut self,
        sent_of: &mut Vec<(MemberId, usize)>,
        pool: &mut PacketPool,
    ) -> Result<bool, PortError> {
        if self.is_broken {
            self.give_up(pool);
            return Ok(false);
        }
        let sent = self.take_turns(sent_of, pool).and_then(|sent| self.pair.flush().map(|()| sent));
        sent.inspect_err(|_| {
            (self.has_ended, self.is_broken) = (true, true);
            self.give_up(pool);
        })
    }

    fn take_turns(
        &mut self,
        sent_of: &mut Vec<(MemberId, usize)>,
        pool: &mut PacketPool,
    ) -> Result<bool, PortError> {
        let mut sent = false;
        for _ in 0..self.turns.len().max(SENDS) {
            let is_alone = self.turns.len() == 1;
            let Some(mut served) = self.turns.pop_front() else { break };
            let weight = (served.exit.share.guaranteed.max(1) / self.least).clamp(1, MAX_WEIGHT);
            let mut frames = 0;
            let turn = served.take_turn(&mut *self.pair, pool, (is_alone, QUANTUM * weight), &mut frames);
            if let Some(member) = served.exit.member.filter(|_| frames > 0) {
                sent_of.push((member, frames));
            }
            match turn {
                Ok(Turn::Done) => {
                    served.exit.rest();
                    served.batch.rest();
                    sent = true;
                }
                Ok(Turn::More) => {
                    sent = true;
                    self.turns.push_back(served);
                }
                Ok(Turn::Waits) => self.turns.push_back(served),
                // The device takes no more: nobody else sends before what waits here.
                Ok(Turn::Full) => {
                    self.turns.push_front(served);
                    break;
                }
                Err(error) => {
                    self.turns.push_front(served);
                    return Err(error);
                }
            }
        }
        if self.turns.is_empty() {
            self.least = u64::MAX;
        }
        Ok(sent)
    }

    /// Whether packets wait for the port.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.turns.is_empty()
    }

    /// What waits for the port is lost, and counted.
    pub(crate) fn give_up(&mut self, pool: &mut PacketPool) {
        for Served { exit, mut batch, .. } in self.turns.drain(..) {
            exit.counts.lose(Loss::PortGone, batch.len());
            batch.recycle(pool);
            exit.rest();
            exit.give_up();
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
        frames: &mut usize,
    ) -> Result<Turn, PortError> {
        let Served { exit, deficit, batch } = self;
        *deficit = (*deficit + quantum).min(2 * quantum);
        let mut has_sent = false;
        loop {
            if batch.is_empty() {
                exit.note.is_taken();
                exit.inbox.take(batch);
                if batch.is_empty() {
                    return Ok(Turn::Done);
                }
            }
            if let Some(mut largest) = exit.largest()
                && !largest.has_any(time::now_ns())
            {
                return Ok(if has_sent { Turn::More } else { Turn::Waits });
            }
            // Nobody counts the bytes of one that is alone and has no largest rate.
            let counts = !is_alone || exit.is_limited();
            let bytes = if counts { Packet::bytes_of(batch.packets()) } else { 0 };
            let before = batch.len();
            pair.transmit(batch, pool)?;
            if let Some(mut largest) = exit.largest() {
                largest.owe(bytes, time::now_ns());
            }
            has_sent |= batch.len() < before;
            *frames += before - batch.len();
            if !batch.is_empty() {
                return Ok(Turn::Full);
            }
            *deficit = deficit.saturating_sub(bytes);
            if is_alone || *deficit == 0 {
                return Ok(if exit.inbox.waiting() > 0 { Turn::More } else { Turn::Done });
            }
        }
    }
}
