//! The tags of frames that leave by a port of the machine.

use millrace_classifier::{TagError, TagsOut};
use millrace_frames::{Batch, Packet, PacketPool};

/// Changes the tags of all frames of a batch. Frames that cannot leave with these tags go back to the pool: how many.
#[inline]
pub(crate) fn put_on(tags: TagsOut, batch: &mut Batch, pool: &mut PacketPool) -> usize {
    if tags == TagsOut::default() {
        return 0;
    }
    // Which change it is, is found out once for all frames.
    let unfit = match tags.sure_push() {
        Some(tag) => change(batch, |packet| tag.put_on(packet)),
        None => change(batch, |packet| tags.apply(packet)),
    };
    if unfit > 0 {
        batch.recycle_if(pool, |packet| packet.is_empty());
    }
    unfit
}

/// Changes all frames of a batch. Those that stay as they are become empty, which no frame is that leaves: how many.
#[inline]
fn change(batch: &mut Batch, change: impl Fn(&mut Packet) -> Result<(), TagError>) -> usize {
    let mut unfit = 0;
    for packet in batch.packets_mut() {
        if change(packet).is_err() {
            packet.reset();
            unfit += 1;
        }
    }
    unfit
}
