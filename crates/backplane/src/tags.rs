//! The tags of frames that leave by a port of the machine.

use millrace_classifier::TagsOut;
use millrace_frames::{Batch, PacketPool};

/// Changes the tags of all frames of a batch. Frames that cannot leave with these tags go back to the pool: how many.
#[inline]
pub(crate) fn put_on(tags: TagsOut, batch: &mut Batch, pool: &mut PacketPool) -> usize {
    if tags == TagsOut::default() {
        return 0;
    }
    let mut unfit = 0;
    for packet in batch.packets_mut() {
        if tags.apply(packet).is_err() {
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
