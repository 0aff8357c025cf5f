//! Where packets of a switch wait for a port of the machine: an exit for each port of a switch and each port of the machine that it
//! sends to. The lane of the machine's port serves its exits by deficit round robin in bytes, in proportion to what is guaranteed to
//! them, and none beyond its largest rate ([`crate::physical`]).

use crate::agenda::Note;
use crate::counts::{Counts, Loss};
use crate::inbox::Inbox;
use crate::tags::Tags;
use millrace_frames::{Batch, PacketPool};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

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
pub(crate) struct Exit {
    pub(crate) inbox: Inbox,
    pub(crate) share: ExitShare,
    pub(crate) counts: Arc<Counts>,
    pub(crate) note: Note,
    /// Whether its port has it among those that it serves; the lane of the port alone changes it.
    pub(crate) is_served: AtomicBool,
}

impl Exit {
    /// Takes the packets of a batch, which are the switch's, and counts those for which it has no room.
    #[inline]
    pub(crate) fn send(&self, batch: &mut Batch, tags: &Tags, pool: &mut PacketPool) {
        let unfit = tags.put_on(batch, pool);
        self.counts.lose(Loss::Tag, unfit);
        if self.inbox.put(batch) {
            self.note.tell();
        }
        self.counts.lose(Loss::ExitFull, batch.len());
        batch.recycle(pool);
    }
}
