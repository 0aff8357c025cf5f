//! Whether a packet that comes may wait: limits of its queue, the buffer of the port, early discard.
//!
//! Each queue may have bytes of the buffer to itself. The rest is shared. Of it a queue takes what goes beyond its reservation, at most
//! `alpha` times what is free of it (A. Choudhury and E. Hahne, IEEE/ACM Trans. Networking 6(2), 1998): with `n` queues that all want
//! more, each holds `alpha / (1 + n alpha)` of the shared part, and the rest stays free for those that come. What finds no room goes to
//! the larger buffer, if the queue has a share in it.

use crate::plan::{Plan, Queue};
use crate::report::Discard;
use crate::store::Fifo;

/// How full the buffers of a port are.
#[derive(Clone, Debug)]
pub(crate) struct Buffer {
    packets: u64,
    most_packets: u64,
    /// Bytes of queues beyond their reservations, and most of them.
    shared: u64,
    most_shared: u64,
    overflow: u64,
    most_overflow: u64,
}

/// Where a packet waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// In the buffer.
    Buffer,
    /// In the larger one.
    Overflow,
}

impl Buffer {
    pub(crate) fn new(plan: &Plan) -> Buffer {
        Buffer {
            packets: 0,
            most_packets: u64::from(plan.port().packets),
            shared: 0,
            most_shared: plan.shared(),
            overflow: 0,
            most_overflow: plan.port().overflow,
        }
    }

    /// Room for another packet of a queue.
    #[inline]
    pub(crate) fn room(&self, fifo: &Fifo, setting: &Queue, len: u32) -> Result<Room, Discard> {
        let len = u64::from(len);
        if fifo.packets >= setting.packets || fifo.bytes + len > setting.bytes {
            return Err(Discard::QueueFull);
        }
        if self.packets >= self.most_packets {
            return Err(Discard::BufferFull);
        }
        let is = fifo.bytes - fifo.overflow;
        let takes = (is + len).saturating_sub(setting.reserved);
        let more = takes - is.saturating_sub(setting.reserved);
        let free = self.most_shared.saturating_sub(self.shared);
        let fits = match setting.alpha {
            _ if more == 0 => true,
            None => more <= free,
            Some(alpha) => more <= free && u128::from(takes) * 256 <= u128::from(alpha) * u128::from(free),
        };
        if fits {
            return Ok(Room::Buffer);
        }
        match fifo.overflow + len <= setting.overflow && self.overflow + len <= self.most_overflow {
            true => Ok(Room::Overflow),
            false => Err(Discard::BufferFull),
        }
    }

    /// A packet comes to a queue, which does not count it yet.
    #[inline]
    pub(crate) fn put(&mut self, fifo: &mut Fifo, setting: &Queue, len: u32, room: Room) {
        let len = u64::from(len);
        self.packets += 1;
        match room {
            Room::Buffer => {
                let is = fifo.bytes - fifo.overflow;
                self.shared +=
                    (is + len).saturating_sub(setting.reserved) - is.saturating_sub(setting.reserved);
            }
            Room::Overflow => {
                self.overflow += len;
                fifo.overflow += len;
            }
        }
        fifo.packets += 1;
        fifo.bytes += len;
    }

    /// A packet has gone from a queue, which counts it no longer.
    #[inline]
    pub(crate) fn take(&mut self, fifo: &Fifo, setting: &Queue, len: u32, overflow: bool) {
        let len = u64::from(len);
        self.packets -= 1;
        if overflow {
            self.overflow -= len;
            return;
        }
        let is = fifo.bytes - fifo.overflow;
        self.shared -= (is + len).saturating_sub(setting.reserved) - is.saturating_sub(setting.reserved);
    }

    /// All packets of a queue come at once, whether there is room or not: after a change of plan.
    pub(crate) fn inherit(&mut self, fifo: &Fifo, setting: &Queue) {
        self.packets += u64::from(fifo.packets);
        self.shared += (fifo.bytes - fifo.overflow).saturating_sub(setting.reserved);
        self.overflow += fifo.overflow;
    }
}
