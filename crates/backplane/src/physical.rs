//! A port of the machine on a lane: frames that come are given to their switches, and exits are served.

use crate::counts::Loss;
use crate::devices::{Device, Place};
use crate::exit::Exit;
use crate::wire::Wire;
use crate::{MemberId, devices, time};
use millrace_drivers::QueuePair;
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
    /// Where its device is.
    pub(crate) place: Place,
    /// The port of the switch that takes its frames itself.
    pub(crate) feeds: Option<Arc<Wire>>,
    /// Those that have packets, in the order of their turns.
    turns: VecDeque<Served>,
    /// The least that is guaranteed to any that had packets since none had any.
    least: u64,
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
    /// A port of the lane that is the calling thread.
    pub(crate) fn new(number: u16, pair: Box<dyn QueuePair>) -> Physical {
        let place = devices::add(number, pair);
        Physical { number, place, feeds: None, turns: VecDeque::new(), least: u64::MAX }
    }

    /// The port of a switch takes its frames itself from now on, or none.
    pub(crate) fn feed(&mut self, wire: Option<&Arc<Wire>>) {
        self.feeds.take().into_iter().for_each(|wire| wire.set_source(None));
        self.feeds = wire.cloned();
        wire.into_iter().for_each(|wire| wire.set_source(Some(self.place)));
    }

    /// Its device; what waits for it is lost, and counted.
    pub(crate) fn end(mut self, pool: &mut PacketPool) -> Option<Box<dyn QueuePair>> {
        self.feed(None);
        self.give_up(pool);
        devices::remove(self.place)
    }

    /// An exit has packets that had none.
    pub(crate) fn serve(&mut self, exit: Arc<Exit>) {
        if exit.begin() {
            self.least = self.least.min(exit.share.guaranteed.max(1));
            self.turns.push_back(Served { exit, deficit: 0, batch: Batch::new() });
            devices::with(self.place, |device| device.set_waiting(true));
        }
    }

    /// Sends what exits have, each as its turn and its largest rate allow; whether anything was sent, and how many frames of which switch of
    /// this lane. What waits for one that is broken, now and later, is lost, and counted.
    #[inline]
    pub(crate) fn send(
        &mut self,
        device: &mut Device,
        sent_of: &mut Vec<(MemberId, usize)>,
        pool: &mut PacketPool,
    ) -> bool {
        let sent = self.take_turns(device, sent_of, pool);
        device.flush();
        if device.is_broken() {
            self.give_up(pool);
        }
        device.set_waiting(self.has_waiting());
        sent
    }

    fn take_turns(
        &mut self,
        device: &mut Device,
        sent_of: &mut Vec<(MemberId, usize)>,
        pool: &mut PacketPool,
    ) -> bool {
        let mut sent = false;
        for _ in 0..self.turns.len().max(SENDS) {
            let is_alone = self.turns.len() == 1;
            let Some(mut served) = self.turns.pop_front() else { break };
            let weight = (served.exit.share.guaranteed.max(1) / self.least).clamp(1, MAX_WEIGHT);
            let mut frames = 0;
            let turn = served.take_turn(device, pool, (is_alone, QUANTUM * weight), &mut frames);
            if let Some(member) = served.exit.member.filter(|_| frames > 0) {
                sent_of.push((member, frames));
            }
            match turn {
                Turn::Done => {
                    served.exit.rest();
                    served.batch.rest();
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
        sent
    }

    /// Whether packets wait for the port.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.turns.is_empty()
    }

    /// What waits for the port is lost, and counted.
    fn give_up(&mut self, pool: &mut PacketPool) {
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
        device: &mut Device,
        pool: &mut PacketPool,
        (is_alone, quantum): (bool, u64),
        frames: &mut usize,
    ) -> Turn {
        let Served { exit, deficit, batch } = self;
        *deficit = (*deficit + quantum).min(2 * quantum);
        let mut has_sent = false;
        loop {
            if batch.is_empty() {
                exit.note.is_taken();
                exit.inbox.take(batch);
                if batch.is_empty() {
                    return Turn::Done;
                }
            }
            if let Some(mut largest) = exit.largest()
                && !largest.has_any(time::now_ns())
            {
                return if has_sent { Turn::More } else { Turn::Waits };
            }
            // Nobody counts the bytes of one that is alone and has no largest rate.
            let counts = !is_alone || exit.is_limited();
            let bytes = if counts { Packet::bytes_of(batch.packets()) } else { 0 };
            let before = batch.len();
            device.transmit(batch, pool, &exit.counts);
            let bytes = if counts { bytes - Packet::bytes_of(batch.packets()) } else { 0 };
            if let Some(mut largest) = exit.largest() {
                largest.owe(bytes, time::now_ns());
            }
            has_sent |= batch.len() < before;
            *frames += before - batch.len();
            if !batch.is_empty() {
                return Turn::Full;
            }
            *deficit = deficit.saturating_sub(bytes);
            if is_alone || *deficit == 0 {
                return if exit.inbox.waiting() > 0 { Turn::More } else { Turn::Done };
            }
        }
    }
}
