//! Memory of batches that hold no packets, of each thread.
//!
//! A thread with hundreds of switches has thousands of places in which a batch of packets may wait: one for each port, in each direction. If each
//! place had memory of its own, a batch on its way would be written to memory that was last used a thousand batches ago and is in no cache any more.
//! So a batch has memory only while it holds packets. What is given back last is used first: it is in the first-level cache.

use crate::packet::Packet;
use crate::pool::MAX_BATCH;
use std::cell::RefCell;

/// Batches whose memory a thread keeps at most (8 MiB): a lane that collects frames for a thousand switches has one for each, and those that are
/// on their way.
const MAX_KEPT: usize = 1 << 12;

thread_local! {
    static STOCK: RefCell<Vec<Vec<Packet>>> = const { RefCell::new(Vec::new()) };
}

/// Memory for a whole batch.
#[inline]
pub(crate) fn take() -> Vec<Packet> {
    // A thread that ends has none any more.
    let kept = STOCK.try_with(|stock| stock.borrow_mut().pop()).ok().flatten();
    kept.unwrap_or_else(|| Vec::with_capacity(MAX_BATCH))
}

/// Keeps the memory of a batch without packets for the next one.
#[inline(never)]
pub(crate) fn put(packets: Vec<Packet>) {
    debug_assert!(packets.is_empty() && packets.capacity() >= MAX_BATCH);
    let _ = STOCK.try_with(|stock| {
        let mut stock = stock.borrow_mut();
        if stock.len() < MAX_KEPT {
            stock.push(packets);
        }
    });
}
