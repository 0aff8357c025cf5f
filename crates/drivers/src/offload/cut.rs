//! A large frame on its way into packets, segment by segment.

use super::{Segmentation, insert_vlan};
use crate::port::{PortStatistics, deliver};
use millrace_frames::{Batch, MAX_FRAME, PacketPool};
use std::ops::Range;

/// Longest frame before segmentation, with all that a driver keeps before it. The kernel makes 64 KiB unless an operator asks for
/// more.
const MAX_WHOLE: usize = 256 * 1024;

/// Memory for one large frame, which is cut into as many segments at a time as there is room for.
pub(crate) struct Cutter {
    whole: Box<[u8]>,
    cutting: Option<Cutting>,
}

/// A frame of the buffer, and how far it is cut.
pub(crate) struct Cutting {
    pub(crate) plan: Segmentation,
    pub(crate) place: Range<usize>,
    /// The VLAN tag that each segment gets: EtherType and tag control information.
    pub(crate) vlan: Option<(u16, u16)>,
    pub(crate) timestamp_ns: u64,
}

impl Cutter {
    pub(crate) fn new() -> Cutter {
        Cutter { whole: vec![0; MAX_WHOLE].into(), cutting: None }
    }

    /// Where a large frame is to be put. To be left alone while one is cut.
    pub(crate) fn buffer(&mut self) -> &mut [u8] {
        &mut self.whole
    }

    /// Whether a frame is cut that has segments left.
    #[cfg(test)]
    pub(crate) fn is_cutting(&self) -> bool {
        self.cutting.is_some()
    }

    /// Cuts a frame of the buffer from now on.
    pub(crate) fn start(&mut self, cutting: Cutting) {
        self.cutting = Some(cutting);
    }

    /// Moves segments of the frame that is being cut into the batch. Returns false when batch or pool ended first.
    pub(crate) fn cut(
        &mut self,
        batch: &mut Batch,
        pool: &mut PacketPool,
        statistics: &mut PortStatistics,
    ) -> bool {
        let Some(cutting) = &mut self.cutting else { return true };
        // A place that is none has no frame of the plan's length, and counts as an error.
        let frame = self.whole.get(cutting.place.clone()).unwrap_or_default();
        while let Some(length) = cutting.plan.next_len() {
            if batch.is_full() {
                return false;
            }
            let Some(mut packet) = pool.take() else { return false };
            let written = length <= MAX_FRAME
                && packet.extend(length).is_ok_and(|segment| cutting.plan.write_next(frame, segment))
                && cutting.vlan.is_none_or(|tag| insert_vlan(&mut packet, tag));
            if !written {
                statistics.rx_errors += 1;
                pool.put(packet);
                break;
            }
            packet.timestamp_ns = cutting.timestamp_ns;
            packet.set_part();
            deliver(packet, batch, pool, statistics);
        }
        self.cutting = None;
        true
    }
}
