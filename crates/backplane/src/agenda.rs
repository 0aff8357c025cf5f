//! Who has something to do for a lane: the switches that packets wait for, and the exits in which packets wait for a port.
//!
//! Any thread puts somebody on the list; the lane takes the whole list. Whoever is told often stands there once: a [`Note`] says whether
//! it does. So a burst costs one look at a flag, and a lock only where the lane had nothing of it.

use millrace_dataplane::Ringer;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};

/// The list of a lane.
pub(crate) struct Agenda<T> {
    list: Mutex<Vec<T>>,
    any: AtomicBool,
    asleep: Arc<AtomicBool>,
    ringer: Ringer,
}

impl<T> fmt::Debug for Agenda<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Agenda")
    }
}

impl<T> Agenda<T> {
    /// An empty one of a lane that says there whether it sleeps, and wakes by that.
    pub(crate) fn new(asleep: Arc<AtomicBool>, ringer: Ringer) -> Agenda<T> {
        Agenda { list: Mutex::default(), any: AtomicBool::new(false), asleep, ringer }
    }

    fn add(&self, one: T) {
        self.list.lock().unwrap_or_else(PoisonError::into_inner).push(one);
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
    pub(crate) fn take(&self, into: &mut Vec<T>) {
        if self.has_any() {
            let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
            self.any.store(false, Ordering::Release);
            std::mem::swap(&mut *list, into);
        }
    }
}

/// Whether somebody stands on an agenda.
#[derive(Debug)]
pub(crate) struct Note<T> {
    agenda: Arc<Agenda<T>>,
    stands: AtomicBool,
}

impl<T> Note<T> {
    pub(crate) fn new(agenda: Arc<Agenda<T>>) -> Note<T> {
        Note { agenda, stands: AtomicBool::new(false) }
    }

    /// Has the lane look at the one whose note this is, after something was put where it looks.
    #[inline]
    pub(crate) fn tell(&self, of: impl FnOnce() -> T) {
        if !self.stands.swap(true, Ordering::AcqRel) {
            self.agenda.add(of());
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
        let notes = [3, 7].map(|number| (Note::new(Arc::clone(&agenda)), number));
        let tell = |at: usize| notes[at].0.tell(|| notes[at].1);
        let mut taken = Vec::new();
        agenda.take(&mut taken);
        assert!(taken.is_empty());
        for _ in 0..3 {
            tell(1);
            tell(0);
        }
        assert!(!doorbell.has_rung(), "nobody sleeps");
        agenda.take(&mut taken);
        assert_eq!(taken, [7, 3]);
        taken.clear();
        tell(1);
        assert!(!agenda.has_any(), "the lane has not looked yet");
        notes[1].0.is_taken();
        asleep.store(true, Ordering::Relaxed);
        tell(1);
        agenda.take(&mut taken);
        assert!(doorbell.has_rung() && taken == [7]);
    }
}
