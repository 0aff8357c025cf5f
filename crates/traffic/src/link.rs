//! The link of a port: when the next frame may begin.

use crate::setting::BYTE;

/// A link of a rate. A frame begins when the one before it has ended; nothing is rounded away.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    rate: u64,
    catch_up: u64,
    /// When it is free: nanoseconds, and what is over in units of 1 / rate.
    free: u64,
    over: u64,
}

impl Link {
    pub(crate) fn new(rate: u64, catch_up_ns: u64, now_ns: u64) -> Link {
        Link { rate, catch_up: catch_up_ns, free: now_ns, over: 0 }
    }

    /// Goes on where another one was.
    pub(crate) fn follow(&mut self, old: &Link) {
        self.free = old.free_ns();
        if self.rate == old.rate {
            (self.free, self.over) = (old.free, old.over);
        }
    }

    /// When the next frame may begin.
    #[inline]
    pub(crate) fn free_ns(&self) -> u64 {
        self.free + u64::from(self.over > 0)
    }

    /// A frame of so many bytes on the wire begins.
    #[inline]
    pub(crate) fn send(&mut self, len: u32, now_ns: u64) {
        let earliest = now_ns.saturating_sub(self.catch_up);
        if self.free_ns() < earliest {
            (self.free, self.over) = (earliest, 0);
        }
        let time = u64::from(len) * BYTE + self.over;
        self.free = self.free.saturating_add(time / self.rate);
        self.over = time % self.rate;
    }
}
