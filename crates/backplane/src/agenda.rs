//! Who has something to do for a lane: the switches that packets wait for, and the exits in which packets wait for a port.
//!
//! Any thread puts somebody on the list; the lane takes the whole list. Whoever is told often stands there once: a [`Note`] says whether
//! it does. So a burst costs one look at a flag, and a lock only where the lane had nothing of it.
//!
//! Mostly the lane tells itself: its ports have frames for its switches, and these send by its ports. That goes by a list and a flag
//! that its thread alone uses: a lock or a fence would wait until all that the processor has written before is in its cache.

use crate::MemberId;
use crate::exit::Exit;
use crate::own::{self, LaneKey};
use millrace_dataplane::Ringer;
use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::LocalKey;

thread_local! {
    static MEMBERS: RefCell<Vec<MemberId>> = const { RefCell::new(Vec::new()) };
    static EXITS: RefCell<Vec<Arc<Exit>>> = const { RefCell::new(Vec::new()) };
}

/// What stands on an agenda.
pub(crate) trait Listed: Sized + 'static {
    /// Those that the lane which is this thread has told itself of.
    fn own() -> &'static LocalKey<RefCell<Vec<Self>>>;
}

impl Listed for MemberId {
    fn own() -> &'static LocalKey<RefCell<Vec<MemberId>>> {
        &MEMBERS
    }
}

impl Listed for Arc<Exit> {
    fn own() -> &'static LocalKey<RefCell<Vec<Arc<Exit>>>> {
        &EXITS
    }
}

/// The list of a lane.
pub(crate) struct Agenda<T> {
    list: Mutex<Vec<T>>,
    any: AtomicBool,
    key: Arc<LaneKey>,
    asleep: Arc<AtomicBool>,
    ringer: Ringer,
}

impl<T> fmt::Debug for Agenda<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Agenda")
    }
}

impl<T: Listed> Agenda<T> {
    /// An empty one of a lane that says there whether it sleeps, and wakes by that ringer.
    pub(crate) fn new(key: Arc<LaneKey>, asleep: Arc<AtomicBool>, ringer: Ringer) -> Agenda<T> {
        Agenda { list: Mutex::default(), any: AtomicBool::new(false), key, asleep, ringer }
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

    /// Whether anybody is on the list. Only the lane asks.
    #[inline]
    pub(crate) fn has_any(&self) -> bool {
        self.any.load(Ordering::Acquire) || !T::own().with_borrow(Vec::is_empty)
    }

    /// Moves the list to an empty one. Only the lane does.
    #[inline]
    pub(crate) fn take(&self, into: &mut Vec<T>) {
        if self.any.load(Ordering::Acquire) {
            let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
            self.any.store(false, Ordering::Release);
            std::mem::swap(&mut *list, into);
        }
        T::own().with_borrow_mut(|own| into.append(own));
    }
}

/// Whether somebody stands on an agenda.
#[derive(Debug)]
pub(crate) struct Note<T> {
    agenda: Arc<Agenda<T>>,
    /// The number of the agenda's lane, next to what is looked at with it.
    lane: u64,
    stands: AtomicBool,
    /// Whether it stands among those that the lane has told itself of; only the lane uses this.
    stands_own: AtomicBool,
}

impl<T: Listed> Note<T> {
    pub(crate) fn new(agenda: Arc<Agenda<T>>) -> Note<T> {
        Note {
            lane: agenda.key.number(),
            agenda,
            stands: AtomicBool::new(false),
            stands_own: AtomicBool::new(false),
        }
    }

    /// The lane of the agenda.
    pub(crate) fn lane(&self) -> &Arc<LaneKey> {
        &self.agenda.key
    }

    /// Whether the calling thread is the lane of the agenda.
    #[inline]
    pub(crate) fn is_here(&self) -> bool {
        own::is_lane(self.lane)
    }

    /// Has the lane look at the one whose note this is, after something was put where it looks.
    #[inline]
    pub(crate) fn tell(&self, of: impl FnOnce() -> T) {
        if self.is_here() {
            if !self.stands_own.load(Ordering::Relaxed) {
                self.stands_own.store(true, Ordering::Relaxed);
                T::own().with_borrow_mut(|own| own.push(of()));
            }
        } else if !self.stands.swap(true, Ordering::AcqRel) {
            self.agenda.add(of());
        }
    }

    /// The lane has taken it from the list, and looks after this: what comes from now on puts it there again.
    #[inline]
    pub(crate) fn is_taken(&self) {
        self.stands_own.store(false, Ordering::Relaxed);
        // Where it does not stand on the list, whoever puts something there from now on adds it.
        if self.stands.load(Ordering::Relaxed) {
            self.stands.store(false, Ordering::Release);
            fence(Ordering::SeqCst);
        }
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
        let key = LaneKey::new();
        let agenda = Arc::new(Agenda::new(Arc::clone(&key), Arc::clone(&asleep), doorbell.ringer()));
        let notes: [(_, MemberId); 2] = [3, 7].map(|number| (Note::new(Arc::clone(&agenda)), number));
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
        taken.clear();
        notes.iter().for_each(|(note, _)| note.is_taken());
        // What the lane tells itself stands there next to what others say.
        key.enter();
        for _ in 0..2 {
            tell(0);
        }
        std::thread::scope(|scope| scope.spawn(|| tell(1)).join().unwrap());
        assert!(agenda.has_any());
        agenda.take(&mut taken);
        taken.sort_unstable();
        assert_eq!((taken.as_slice(), agenda.has_any()), (&[3, 7][..], false));
        LaneKey::leave();
    }
}
