//! What the ports of a switch tell its lane: which of them packets wait at, in one cache line.
//!
//! A switch has a handful of ports and mostly packets at one. Of hundreds of switches neither the ports nor the switches are in the cache, so
//! a turn that looked at each port would wait for the memory of all of them. Each has a bit here, which is set when packets come where none
//! waited, and cleared before they are taken: a bit may be set without packets, but not clear with some.

use crate::MemberId;
use crate::agenda::{Agenda, Note};
use crate::own::LaneKey;
use crate::quota::Admission;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// See the module's documentation.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Signals {
    note: Note<MemberId>,
    /// The ports at which the lane has put packets; it alone changes this.
    own: AtomicU64,
    /// Those that other threads have put packets at, and those that lead elsewhere from now on.
    others: AtomicU64,
    /// Whether packets may wait for a time.
    has_late: AtomicBool,
    /// What lets packets in: whether it has anything to look at is in this line.
    pub(crate) admission: Admission,
    /// The bits that ports have.
    given: AtomicU64,
}

impl Signals {
    pub(crate) fn new(agenda: Arc<Agenda<MemberId>>, admission: Admission) -> Signals {
        Signals {
            note: Note::new(agenda),
            own: AtomicU64::new(0),
            others: AtomicU64::new(0),
            has_late: AtomicBool::new(false),
            admission,
            given: AtomicU64::new(0),
        }
    }

    /// The lane of the switch.
    #[inline]
    pub(crate) fn lane(&self) -> &Arc<LaneKey> {
        self.note.lane()
    }

    /// Whether the calling thread is the lane.
    #[inline]
    pub(crate) fn is_here(&self) -> bool {
        self.note.is_here()
    }

    /// A bit for one more port; 0 where all have been given.
    pub(crate) fn give_bit(&self) -> u64 {
        let given = self.given.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |given| {
            let free = !given & given.wrapping_add(1);
            (free != 0).then_some(given | free)
        });
        given.map_or(0, |given| !given & given.wrapping_add(1))
    }

    /// The port that has the bit is gone.
    pub(crate) fn take_bit_back(&self, bit: u64) {
        self.given.fetch_and(!bit, Ordering::Relaxed);
    }

    /// Has the lane look at a port, after packets were put there.
    #[inline]
    pub(crate) fn tell(&self, member: MemberId, bit: u64) {
        if self.is_here() {
            self.own.store(self.own.load(Ordering::Relaxed) | bit, Ordering::Relaxed);
        } else {
            self.others.fetch_or(bit, Ordering::Release);
        }
        self.note.tell(|| member);
    }

    /// As [`Signals::tell`], of packets that may go on at a time.
    pub(crate) fn tell_late(&self, member: MemberId) {
        self.has_late.store(true, Ordering::Release);
        self.note.tell(|| member);
    }

    /// The switch has its turn: who tells it something from now on puts it on the lane's agenda again.
    #[inline]
    pub(crate) fn are_taken(&self) {
        self.note.is_taken();
    }

    /// Whether packets may wait for a time.
    #[inline]
    pub(crate) fn has_late(&self) -> bool {
        self.has_late.load(Ordering::Acquire)
    }

    /// The ports that the lane is to look at.
    #[inline]
    pub(crate) fn told(&self) -> u64 {
        self.own.load(Ordering::Relaxed) | self.others.load(Ordering::Acquire)
    }

    /// The lane looks at a port now. It does so before it takes anything from there: what is put there after that sets the bit again.
    #[inline]
    pub(crate) fn clear(&self, bit: u64) {
        self.own.store(self.own.load(Ordering::Relaxed) & !bit, Ordering::Relaxed);
        if self.others.load(Ordering::Relaxed) & bit != 0 {
            self.others.fetch_and(!bit, Ordering::AcqRel);
        }
    }

    /// The lane has left packets at a port, or their time has come.
    #[inline]
    pub(crate) fn set(&self, bit: u64) {
        self.own.store(self.own.load(Ordering::Relaxed) | bit, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quota::Traffic;
    use millrace_dataplane::Doorbell;
    use std::mem::offset_of;

    #[test]
    fn each_port_has_a_bit_that_says_whether_to_look_there() {
        assert!(offset_of!(Signals, admission) < 64);
        let doorbell = Doorbell::new().unwrap();
        let key = LaneKey::new();
        let agenda = Agenda::new(Arc::clone(&key), Arc::default(), doorbell.ringer());
        let signals = Signals::new(Arc::new(agenda), Admission::new(Traffic::default()));
        let bits: Vec<u64> = (0..66).map(|_| signals.give_bit()).collect();
        assert!(bits[..64].iter().enumerate().all(|(at, bit)| *bit == 1 << at));
        assert_eq!(bits[64..], [0, 0]);
        signals.take_bit_back(1 << 7);
        assert_eq!([signals.give_bit(), signals.give_bit()], [1 << 7, 0]);
        // Another thread tells of one port, the lane of two.
        signals.tell(3, 2);
        key.enter();
        signals.tell(3, 4);
        signals.tell(3, 1);
        assert_eq!(signals.told(), 7);
        signals.clear(2);
        signals.clear(4);
        assert_eq!(signals.told(), 1);
        signals.set(4);
        assert_eq!(signals.told(), 5);
        LaneKey::leave();
    }
}
