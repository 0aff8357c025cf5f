//! How a region is divided into slots, and a slot into room for a frame and what is before and after it.

use crate::burst::TAILROOM;
use crate::packet::{HEADROOM, MAX_FRAME};

const LINE: usize = 64;

/// The shortest frame that every slot has room for: Ethernet's shortest.
pub const MIN_SLOT_FRAME: usize = 64;

/// Most bytes that a packet uses of a slot: places in it are numbers of 16 bits, which vectors take for signed ones. What a slot has more is not
/// used.
const MAX_ROOM: usize = i16::MAX as usize;

/// How a region is divided.
///
/// ```text
///  | headroom | frames | tailroom, 16 bytes |     `size` bytes
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotLayout {
    /// Bytes of a slot.
    pub size: usize,
    /// Bytes before a received frame. With fewer than [`HEADROOM`] a worker copies the frames instead of switching them
    /// where they lie.
    pub headroom: u16,
}

impl SlotLayout {
    /// Room for [`MAX_FRAME`]. A tag that a driver adds before the frame leaves [`HEADROOM`] whole, and an odd number of
    /// cache lines lies between two slots, so that frames do not all begin in the same few sets of a cache.
    pub const DEFAULT: SlotLayout =
        SlotLayout { size: HEADROOM + LINE + MAX_FRAME + 2 * LINE, headroom: (HEADROOM + LINE) as u16 };

    /// The longest frame that may be received.
    pub fn longest_frame(&self) -> usize {
        self.room().saturating_sub(self.headroom.into()).min(MAX_FRAME)
    }

    /// What a packet may use.
    pub(crate) fn room(&self) -> usize {
        self.size.saturating_sub(TAILROOM).min(MAX_ROOM)
    }
}

const _: () =
    assert!(SlotLayout::DEFAULT.size.is_multiple_of(LINE) && (SlotLayout::DEFAULT.size / LINE) % 2 == 1);
