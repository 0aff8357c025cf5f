//! Where packets of a switch wait for a port of the machine: an exit for each port of a switch and each port of the machine that it
//! sends to. The lane of the machine's port serves its exits by deficit round robin in bytes, in proportion to what is guaranteed to
//! them, and none beyond its largest rate ([`crate::physical`]).

use crate::agenda::{Agenda, Note};
use crate::counts::{Counts, Loss};
use crate::inbox::{Inbox, Mix};
use crate::rate::Rate;
use crate::wire::Wire;
use crate::{MemberId, devices, tags, time};
use millrace_classifier::TagsOut;
use millrace_frames::{Batch, MAX_FRAME, PacketPool};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What an exit may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitShare {
    /// Its weight next to other exits of the same port: bits a second that are guaranteed to it, where the guarantees of a port are at
    /// most what its link has.
    pub guaranteed: u64,
    /// Bits a second that it never exceeds; none: the link.
    pub largest: Option<u64>,
    /// Packets that may wait in it.
    pub places: usize,
}

impl Default for ExitShare {
    fn default() -> ExitShare {
        ExitShare { guaranteed: 0, largest: None, places: DEFAULT_PLACES }
    }
}

/// Packets that wait in an exit, when nobody says otherwise.
pub const DEFAULT_PLACES: usize = 1024;

/// See the module's documentation.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Exit {
    /// What each batch needs comes first: a pair of cache lines.
    pub(crate) inbox: Inbox,
    pub(crate) note: Note<Arc<Exit>>,
    /// Whether its port serves it.
    is_served: AtomicBool,
    /// The number of the port, and where its device was the last time.
    pub(crate) physical: u16,
    place: AtomicUsize,
    /// The switch, if it is on the lane of the port.
    pub(crate) member: Option<MemberId>,
    pub(crate) share: ExitShare,
    pub(crate) counts: Arc<Counts>,
    /// What is left of its largest rate, in bytes. Only the lane of its port looks here.
    largest: Option<Mutex<Rate>>,
}

impl Exit {
    pub(crate) fn new(
        (physical, share): (u16, ExitShare),
        wire: &Wire,
        agenda: &Arc<Agenda<Arc<Exit>>>,
    ) -> Exit {
        // Of its largest rate it may send two of the longest frames at once, or what goes in a thousandth of a second.
        let largest = share
            .largest
            .map(|bits| Rate::new(bits / 8, (bits / 8 / 1_000).max(2 * MAX_FRAME as u64), time::now_ns()));
        let note = Note::new(Arc::clone(agenda));
        let member = wire.member_on(note.lane());
        let of_switch = (Arc::clone(&wire.counts), member.is_some());
        Exit {
            physical,
            place: AtomicUsize::new(0),
            member,
            inbox: Inbox::new(share.places, Mix::Any, note.lane(), of_switch),
            share,
            largest: largest.map(Mutex::new),
            counts: Arc::clone(&wire.counts),
            note,
            is_served: AtomicBool::new(false),
        }
    }

    /// Takes the packets of a batch, which are the switch's, and counts those for which it has no room.
    #[inline]
    pub(crate) fn send(self: &Arc<Exit>, batch: &mut Batch, tags: TagsOut, pool: &mut PacketPool) {
        let unfit = tags::put_on(tags, batch, pool);
        self.counts.lose(Loss::Tag, unfit);
        if self.note.is_here() && self.has_nothing() && self.largest.is_none() {
            devices::send((self.physical, &self.place), batch, pool, (&self.counts, self.member));
            if batch.is_empty() {
                return;
            }
        }
        let cut = self.counts.cut(batch, pool);
        if self.inbox.put(batch) {
            self.note.tell(|| Arc::clone(self));
        }
        self.counts.lose(Loss::ExitFull, cut + batch.len());
        batch.recycle(pool);
    }

    /// Whether nothing of it waits for the port. The lane asks.
    #[inline]
    fn has_nothing(&self) -> bool {
        !self.is_served.load(Ordering::Relaxed) && self.inbox.waiting() == 0
    }

    /// Its port serves it from now on; false: it does already.
    pub(crate) fn begin(&self) -> bool {
        let rests = !self.is_served.load(Ordering::Relaxed);
        self.is_served.store(true, Ordering::Relaxed);
        rests
    }

    /// Whether it has a largest rate.
    #[inline]
    pub(crate) fn is_limited(&self) -> bool {
        self.largest.is_some()
    }

    /// What is left of its largest rate; none: it has none.
    #[inline]
    pub(crate) fn largest(&self) -> Option<MutexGuard<'_, Rate>> {
        self.largest.as_ref().map(|largest| largest.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Its port does not serve it any more.
    pub(crate) fn rest(&self) {
        self.is_served.store(false, Ordering::Relaxed);
    }

    /// What waits is lost, and counted: there is no port for it.
    pub(crate) fn give_up(&self) {
        self.note.is_taken();
        self.counts.lose(Loss::PortGone, self.inbox.clear());
    }
}
