//! Who has something to do for a lane: the switches that packets wait for, and the exits in which packets wait for a port.
//!
//! Any thread puts a number on the list; the lane takes the whole list. A number stands there once, however often it is told: its
//! [`Note`] says whether it does. So a burst costs one look at a flag, and a lock only where the lane had nothing of it.

use millrace_dataplane::Ringer;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};

/// The list of a lane.
#[derive(Debug)]
pub(crate) struct Agenda {
    list: Mutex<Vec<u32>>,
    any: AtomicBool,
    asleep: Arc<AtomicBool>,
    ringer: Ringer,
}

impl Agenda {
    /// An empty one of a lane that says there whether it sleeps, and wakes by that.
    pub(crate) fn new(asleep: Arc<AtomicBool>, ringer: Ringer) -> Agenda {
        Agenda { list: Mutex::default(), any: AtomicBool::new(false), asleep, ringer }
    }

    fn add(&self, number: u32) {
        self.list.lock().unwrap_or_else(PoisonError::into_inner).push(number);
        self.any.store(true, Ordering::Release);
        // The lane says that it sleeps, then looks here once more, then sleeps: one of the two sees the other.
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) {
            self.ringer.ring();
        }
    }

    /// Whether anybody is on the list.
    #[inline]
    pub(crate) fn has_any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// Moves the list to an empty one.
    #[inline]
    pub(crate) fn take(&self, into: &mut Vec<u32>) {
        if self.has_any() {
            let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
            self.any.store(false, Ordering::Release);
            std::mem::swap(&mut *list, into);
        }
    }
}

/// A number that may stand on an agenda.
#[derive(Debug)]
pub(crate) struct Note {
    agenda: Arc<Agenda>,
    number: u32,
    stands: AtomicBool,
}

impl Note {
    pub(crate) fn new(agenda: Arc<Agenda>, number: u32) -> Note {
        Note { agenda, number, stands: AtomicBool::new(false) }
    }

    /// Has the lane look at it, after something was put where it looks.
    #[inline]
    pub(crate) fn tell(&self) {
        if !self.stands.swap(true, Ordering::AcqRel) {
            self.agenda.add(self.number);
        }
    }

    /// The lane has taken it from the list, and looks after this: what comes from now on puts it there again.
    #[inline]
    pub(crate) fn is_taken(&self) {
        self.stands.store(false, Ordering::Release);
        fence(Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_dataplane::Doorbell;

    #[test]
    fn a_number_stands_on_the_list_once_until_it_is_taken() {
        let doorbell = Doorbell::new().unwrap();
        let asleep = Arc::new(AtomicBool::new(false));
        let agenda = Arc::new(Agenda::new(Arc::clone(&asleep), doorbell.ringer()));
        let notes = [3, 7].map(|number| Note::new(Arc::clone(&agenda), number));
        let mut taken = Vec::new();
        agenda.take(&mut taken);
        assert!(taken.is_empty());
        for _ in 0..3 {
            notes[1].tell();
            notes[0].tell();
        }
        assert!(!doorbell.has_rung(), "nobody sleeps");
        agenda.take(&mut taken);
        assert_eq!(taken, [7, 3]);
        taken.clear();
        notes[1].tell();
        assert!(!agenda.has_any(), "the lane has not looked yet");
        notes[1].is_taken();
        asleep.store(true, Ordering::Relaxed);
        notes[1].tell();
        agenda.take(&mut taken);
        assert!(doorbell.has_rung() && taken == [7]);
    }
}
