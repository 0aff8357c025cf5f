//! The memory of frames: one piece for all ports of the switch, each with a part of it.
//!
//! Every socket has the whole piece registered as its UMEM, so each can send a frame from any part where it lies: a frame
//! that one `xdp` port has received leaves by another without being copied. A socket receives into slots of its own part
//! alone. A slot has one owner at each moment:
//!
//! | where the slot is | owner |
//! | --- | --- |
//! | in the pool of its part, or on the list of returned slots | the pool |
//! | in a fill ring, taken from there by the kernel, or in the receiving ring | the kernel, for the socket of that ring |
//! | in a packet: a batch, a worker, a queue | the packet |
//! | in a sending ring, taken from there by the kernel, or in the completion ring | the kernel, for the socket of that ring |
//!
//! That several sockets have the memory registered does no harm: the kernel writes into a slot that it has taken from a fill
//! ring and reads from one that it has taken from a sending ring, and into nothing else of the memory. Slots go into these
//! rings by [`Lender::lend`], which leaves no owner on this side, and come out of them by [`Lender::take_back`] once, when the
//! kernel has put their address into the ring of the same socket that says so.

use super::DRIVER;
use crate::port::PortError;
use millrace_frames::{HEADROOM, Lender, Memory, PacketPool, Region, SlotLayout};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Slots of all parts together, as long as none has fewer than [`MIN_SLOTS`]: the kernel has some hundred bytes for each slot and
/// socket.
const ALL_SLOTS: usize = 1 << 15;
/// Slots of one part for each of its sockets at most, and of one part at least.
const SOCKET_SLOTS: usize = 1 << 12;
const MIN_SLOTS: usize = 1 << 9;
/// Most parts of one piece.
const MAX_PARTS: usize = ALL_SLOTS / MIN_SLOTS;
/// The sizes of slots: the kernel takes powers of two from 2048 up to a page.
const SLOT_SIZES: [usize; 2] = [2048, 4096];

/// The pieces that are in use.
static PIECES: Mutex<Vec<Weak<Piece>>> = Mutex::new(Vec::new());

/// A piece of memory that sockets share.
#[derive(Debug)]
pub(super) struct Piece {
    memory: Arc<Memory>,
    layout: SlotLayout,
    /// The bytes of a part are a power of two: this one.
    part_shift: u32,
    /// Of each part.
    lenders: Vec<Lender>,
    /// The parts that nobody has had yet, by number. A part is given once: its last slots may come back at any time.
    unused: Mutex<Vec<(usize, Region)>>,
}

/// A part of a piece, for the sockets of one worker at one port.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) piece: Arc<Piece>,
    pub(super) pool: PacketPool,
    number: usize,
}

/// How slots lie that take frames of so many bytes; none when no slot is large enough.
pub(super) fn layout_for(frame: usize) -> Option<SlotLayout> {
    let layouts = SLOT_SIZES.map(|size| SlotLayout { size, headroom: HEADROOM as u16 });
    layouts.into_iter().find(|layout| layout.longest_frame() >= frame)
}

/// The longest frame of all slots.
pub(super) fn longest_frame() -> usize {
    SLOT_SIZES.map(|size| SlotLayout { size, headroom: HEADROOM as u16 }.longest_frame())[1]
}

impl Part {
    /// Takes a part of the piece that the ports of this switch share, or of a new one that has so many.
    pub(super) fn take(layout: SlotLayout, parts: usize, sockets: usize) -> Result<Part, PortError> {
        let mut pieces = PIECES.lock().unwrap_or_else(PoisonError::into_inner);
        pieces.retain(|piece| piece.strong_count() > 0);
        for piece in pieces.iter().filter_map(Weak::upgrade).filter(|piece| piece.layout == layout) {
            if let Some(part) = Part::of(piece) {
                return Ok(part);
            }
        }
        let parts = parts.clamp(1, MAX_PARTS);
        let slots = (ALL_SLOTS / parts).clamp(MIN_SLOTS, SOCKET_SLOTS * sockets.max(1));
        let slots = 1 << slots.ilog2();
        let piece = Arc::new(Piece::new(layout, parts, slots)?);
        pieces.push(Arc::downgrade(&piece));
        Part::of(piece).ok_or_else(|| no_region("a piece without parts"))
    }

    fn of(piece: Arc<Piece>) -> Option<Part> {
        let (number, region) = piece.unused.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
        Some(Part { piece, pool: PacketPool::over(region), number })
    }

    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// Where it begins in the piece.
    pub(super) fn start(&self) -> usize {
        self.number << self.piece.part_shift
    }

    /// What lends its packets.
    pub(super) fn lender(&self) -> &Lender {
        &self.piece.lenders[self.number]
    }

    pub(super) fn slots(&self) -> usize {
        self.pool.limit()
    }
}

impl Piece {
    fn new(layout: SlotLayout, parts: usize, slots: usize) -> Result<Piece, PortError> {
        // Both are powers of two.
        let part_bytes = slots * layout.size;
        let memory = Arc::new(Memory::zeroed(parts * part_bytes)?);
        let (mut lenders, mut unused) = (Vec::new(), Vec::new());
        for number in 0..parts {
            let region = part_region(&memory, number, slots, layout)?;
            lenders.push(region.lender());
            unused.push((number, region));
        }
        // The first is taken first.
        unused.reverse();
        Ok(Piece { memory, layout, part_shift: part_bytes.ilog2(), lenders, unused: Mutex::new(unused) })
    }

    pub(super) fn start(&self) -> NonNull<u8> {
        self.memory.start()
    }

    pub(super) fn size(&self) -> usize {
        self.memory.size()
    }

    pub(super) fn slot_size(&self) -> usize {
        self.layout.size
    }

    pub(super) fn longest_frame(&self) -> usize {
        self.layout.longest_frame()
    }

    /// The number of parts.
    pub(super) fn parts(&self) -> usize {
        self.lenders.len()
    }

    /// The number of the part that has a byte, what lends its packets, and where the byte is in the part.
    #[inline]
    pub(super) fn lender_at(&self, at: usize) -> Option<(usize, &Lender, u32)> {
        let number = at >> self.part_shift;
        // A part has fewer than 4 GiB.
        Some((number, self.lenders.get(number)?, (at - (number << self.part_shift)) as u32))
    }

    /// What lends the packets of a part.
    pub(super) fn lender(&self, part: usize) -> Option<&Lender> {
        self.lenders.get(part)
    }
}

#[allow(unsafe_code)]
fn part_region(
    memory: &Arc<Memory>,
    number: usize,
    slots: usize,
    layout: SlotLayout,
) -> Result<Region, PortError> {
    let at = number * slots * layout.size;
    debug_assert!(at + slots * layout.size <= memory.size());
    // SAFETY: the memory has so many parts of that size, of which this is one alone; it is zeroed, and the owner keeps it. It
    // is reached through the slots of its parts only, or by the kernel, to which these are lent.
    unsafe {
        let start = memory.start().add(at);
        Region::over(start, slots, layout, Box::new(Arc::clone(memory)))
    }
    .map_err(no_region)
}

fn no_region(error: impl ToString) -> PortError {
    PortError::Arguments { driver: DRIVER, reason: error.to_string() }
}
