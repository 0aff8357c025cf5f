//! The tags of frames that leave by a port of the machine.

use millrace_classifier::TagsOut;
use millrace_frames::{Batch, PacketPool};

/// What is done to the tags of all frames of an exit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tags(TagsOut);

impl Tags {
    pub(crate) fn new(tags: TagsOut) -> Tags {
        Tags(tags)
    }

    /// Does it. Frames that cannot leave with these tags go back to the pool: how many.
    #[inline]
    pub(crate) fn put_on(&self, batch: &mut Batch, pool: &mut PacketPool) -> usize {
        if self.0 == TagsOut::default() {
            return 0;
        }
        let mut unfit = 0;
        for packet in batch.packets_mut() {
            if self.0.apply(packet).is_err() {
                // No frame that leaves is empty.
                packet.reset();
                unfit += 1;
            }
        }
        if unfit > 0 {
            batch.recycle_if(pool, |packet| packet.is_empty());
        }
        unfit
    }
}
