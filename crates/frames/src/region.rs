//! Memory of many packets: slots of one size, each of one packet alone.
//!
//! A region is there for as long as any of its slots, whoever has them: a worker, a transmit ring, a driver that completes
//! late. A slot whose owner lets go of it goes onto the region's list of returned slots, from where the pool of the region
//! takes it: no thread waits for another there. Slots that another pool lets go of together go there together: threads write
//! to the list, and count the slots of the region, once for all of them.

#![allow(unsafe_code)]

use crate::burst::TAILROOM;
use crate::layout::{MIN_SLOT_FRAME, SlotLayout};
use crate::memory::{Memory, MemoryError};

use std::any::Any;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Most bytes of a region: places in it are numbers of 32 bits.
pub const MAX_REGION: usize = u32::MAX as usize;

/// No slot.
const NONE: u32 = u32::MAX;
/// No slot, and none is taken any more: the pool of the region has gone.
const CLOSED: u32 = u32::MAX - 1;

/// Why memory cannot be a region.
#[derive(Debug)]
pub enum RegionError {
    /// A slot has no room for a frame of [`MIN_SLOT_FRAME`] bytes between its headroom and [`TAILROOM`].
    SlotTooSmall {
        /// The layout that was asked for.
        layout: SlotLayout,
    },
    /// The slots have more than [`MAX_REGION`] bytes together, with what lies between them.
    TooLarge {
        /// So many slots were asked for.
        slots: usize,
        /// The layout that was asked for.
        layout: SlotLayout,
    },
    /// The system has no memory.
    Memory(MemoryError),
}

impl fmt::Display for RegionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegionError::SlotTooSmall { layout: SlotLayout { size, headroom } } => write!(
                f,
                "a slot of {size} bytes is too small: headroom of {headroom}, a frame of {MIN_SLOT_FRAME} and \
                 {TAILROOM} after it are the least"
            ),
            RegionError::TooLarge { slots, layout } => write!(
                f,
                "{slots} slots of {} bytes are more than a region may have, {MAX_REGION} bytes",
                layout.size
            ),
            RegionError::Memory(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RegionError {}

/// Packet memory with slots of one size. [`crate::PacketPool::over`] makes packets of it.
#[derive(Debug)]
pub struct Region {
    shared: Arc<Shared>,
}

/// Memory of which slots are parts.
struct Shared {
    start: NonNull<u8>,
    size: usize,
    slots: usize,
    /// Bytes from one slot to the next.
    stride: usize,
    /// 2^64 divided by that, rounded up.
    reciprocal: u64,
    layout: SlotLayout,
    /// What a packet may use of a slot, and the longest frame that it can receive.
    room: usize,
    longest: usize,
    returned: Returned,
    /// Keeps the memory; freed with the last slot.
    _owner: Box<dyn Any + Send + Sync>,
}

// SAFETY: the bytes are reached only through slots, which do not overlap and have one owner each, and through a burst while
// it borrows the slots that it lends. All else is Send and Sync by itself.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    /// How far from the start of its slot a byte lies.
    #[inline]
    fn within_slot(&self, at: u32) -> u32 {
        remainder(at, self.stride, self.reciprocal)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("size", &self.size)
            .field("layout", &self.layout)
            .finish_non_exhaustive()
    }
}

impl Region {
    /// A region of so many slots in memory of its own. What no slot uses takes no memory.
    ///
    /// # Errors
    /// [`RegionError`].
    pub fn new(slots: usize, layout: SlotLayout) -> Result<Region, RegionError> {
        let length = check(slots, layout)?;
        let memory = Memory::zeroed(length).map_err(RegionError::Memory)?;
        let start = memory.start();
        let owner = Box::new(memory);
        // SAFETY: the memory has so many bytes, zeroed, belongs to the owner alone, and moving that does not move it.
        unsafe { Region::over(start, slots, layout, owner) }
    }

    /// A region in a driver's memory: as many slots one after the other from `start` on. The owner is dropped, on whatever
    /// thread that is, after the pool of the region and the last packet in it.
    ///
    /// # Safety
    /// `slots` times the size of a slot are there from `start` on, initialised and at least as long as the owner. Nobody
    /// else reads or writes the bytes of a slot, but a device while a driver has the slot's packet.
    ///
    /// # Errors
    /// [`RegionError`]; the owner is dropped.
    pub unsafe fn over(
        start: NonNull<u8>,
        slots: usize,
        layout: SlotLayout,
        owner: Box<dyn Any + Send + Sync>,
    ) -> Result<Region, RegionError> {
        // SAFETY: as the caller promises; nothing lies between the slots.
        unsafe { Region::apart(start, slots, layout, layout.size, owner) }
    }

    /// As [`Region::over`], with so many bytes from the start of one slot to that of the next, at least the size of a slot.
    /// The bytes between two slots are the driver's own, as for what its device has to know of each.
    ///
    /// # Safety
    /// As for [`Region::over`], of slots that lie so.
    ///
    /// # Errors
    /// [`RegionError`]; the owner is dropped.
    pub unsafe fn apart(
        start: NonNull<u8>,
        slots: usize,
        layout: SlotLayout,
        stride: usize,
        owner: Box<dyn Any + Send + Sync>,
    ) -> Result<Region, RegionError> {
        let stride = stride.max(layout.size);
        check(slots, layout)?;
        let size = slots.checked_mul(stride).filter(|length| *length <= MAX_REGION);
        let size =
            size.ok_or(RegionError::TooLarge { slots, layout })? - (stride - layout.size).min(slots * stride);
        let returned = Returned::new(slots);
        let (room, longest) = (layout.room(), layout.longest_frame());
        let reciprocal = reciprocal(stride);
        let shared =
            Shared { start, size, slots, stride, reciprocal, layout, room, longest, returned, _owner: owner };
        Ok(Region { shared: Arc::new(shared) })
    }

    /// How it is divided.
    pub fn layout(&self) -> SlotLayout {
        self.shared.layout
    }

    /// Lets go of what so many forgotten slots keep of the region.
    ///
    /// # Safety
    /// So many slots were [forgotten](Slot::forget), and none of them is made again.
    pub(crate) unsafe fn let_go(&self, slots: usize) {
        // SAFETY: each forgotten slot has left a count, and this region has another one.
        (0..slots).for_each(|_| unsafe { Arc::decrement_strong_count(Arc::as_ptr(&self.shared)) });
    }

    /// A slot that was [forgotten](Slot::forget).
    ///
    /// # Safety
    /// It was, there is a slot of that number, and it is not made again.
    #[inline]
    unsafe fn of_number(&self, number: u32) -> Slot {
        // SAFETY: the region has so many slots; `forget` left one count of the region for this one, which is its again.
        unsafe {
            let start = self.shared.start.add(number as usize * self.shared.stride);
            Slot { shared: ManuallyDrop::new(std::ptr::read(&self.shared)), start }
        }
    }

    /// How far from the start of its slot a byte lies, or from that of the slot before it when it lies between two.
    #[inline]
    pub(crate) fn within_slot(&self, at: u32) -> u32 {
        self.shared.within_slot(at)
    }

    /// The same region for one who lends its slots to a device.
    pub(crate) fn again(&self) -> Region {
        Region { shared: Arc::clone(&self.shared) }
    }
}

/// 2^64 divided by a number, rounded up; 0 for 1, of which it is too large.
fn reciprocal(of: usize) -> u64 {
    (u64::MAX / (of as u64).max(1)).wrapping_add(1)
}

/// What is left of a number of 32 bits when it is divided by another one, of which the [`reciprocal`] is known: two products
/// instead of a division (D. Lemire, O. Kaser, N. Kurz, Faster remainder by direct computation, 2019).
#[inline]
fn remainder(of: u32, divisor: usize, reciprocal: u64) -> u32 {
    let fraction = reciprocal.wrapping_mul(u64::from(of));
    // Less than the divisor, which has at most 32 bits.
    ((u128::from(fraction) * divisor as u128) >> 64) as u32
}

/// The bytes of so many slots, if they can be a region.
fn check(slots: usize, layout: SlotLayout) -> Result<usize, RegionError> {
    if layout.room() < usize::from(layout.headroom) + MIN_SLOT_FRAME {
        return Err(RegionError::SlotTooSmall { layout });
    }
    let length = slots.checked_mul(layout.size).filter(|length| *length <= MAX_REGION);
    length.ok_or(RegionError::TooLarge { slots, layout })
}

/// The slots of a region that nobody uses.
#[derive(Debug)]
pub(crate) struct Slots {
    region: Region,
    /// Used before; all of this region.
    free: Vec<Slot>,
    made: usize,
    limit: usize,
}

/// A part of a region, reached through this value alone. Dropped, it goes onto the list of returned slots.
#[derive(Debug)]
pub(crate) struct Slot {
    shared: ManuallyDrop<Arc<Shared>>,
    start: NonNull<u8>,
}

// SAFETY: the bytes belong to this value alone, and the region is there for as long as any slot.
unsafe impl Send for Slot {}
// SAFETY: as above; a shared slot is only read.
unsafe impl Sync for Slot {}

impl Slots {
    pub(crate) fn new(region: Region) -> Slots {
        let limit = region.shared.slots;
        Slots { region, free: Vec::new(), made: 0, limit }
    }

    /// A slot that nobody uses, if there is one.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Slot> {
        self.free.pop().or_else(|| self.make())
    }

    /// Takes a slot back. One of another region goes to that.
    #[inline]
    pub(crate) fn put(&mut self, slot: Slot) {
        if slot.is_of(&self.region) {
            self.free.push(slot);
        }
    }

    /// Takes slots back. Those of another region go to that, as many at once as follow one another.
    #[inline]
    pub(crate) fn put_all(&mut self, slots: impl Iterator<Item = Slot>) {
        let mut others = None;
        for slot in slots {
            if slot.is_of(&self.region) {
                self.free.push(slot);
            } else {
                Returning::add(&mut others, slot);
            }
        }
    }

    /// How many can be taken now.
    pub(crate) fn available(&self) -> usize {
        self.at_hand() + self.region.shared.returned.count()
    }

    /// How many can be taken now, or fewer, but not fewer than wanted if there are so many: those that were returned are looked at only then.
    #[inline]
    pub(crate) fn available_of(&mut self, wanted: usize) -> usize {
        if self.at_hand() < wanted {
            self.take_returned();
        }
        self.at_hand()
    }

    #[inline]
    fn at_hand(&self) -> usize {
        self.free.len() + self.limit - self.made
    }

    /// Whether none can be taken now.
    #[inline]
    pub(crate) fn is_exhausted(&self) -> bool {
        self.free.is_empty() && self.made == self.limit && self.region.shared.returned.is_empty()
    }

    /// Most slots, in use and not.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    pub(crate) fn region(&self) -> &Region {
        &self.region
    }

    /// Takes the slots over that were returned.
    #[cold]
    fn take_returned(&mut self) {
        let region = &self.region;
        // SAFETY: who returns a slot forgets it, and a number comes off the list once.
        self.free
            .extend(region.shared.returned.take_all(NONE).map(|number| unsafe { region.of_number(number) }));
    }

    /// A slot that was returned, or one that was never used.
    #[cold]
    fn make(&mut self) -> Option<Slot> {
        self.take_returned();
        let region = &self.region;
        self.free.pop().or_else(|| {
            let number = self.made;
            (number < self.limit).then(|| {
                self.made += 1;
                // Its count of the region.
                std::mem::forget(Arc::clone(&region.shared));
                // SAFETY: the count has just been made, and each number below `limit` is used once.
                unsafe { region.of_number(number as u32) }
            })
        })
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        let region = &self.region;
        // Nobody takes those any more that are returned later: they let go of the region at once.
        let returned = region.shared.returned.take_all(CLOSED).count();
        // SAFETY: each of them was forgotten, and has come off the list.
        unsafe { region.let_go(returned) };
    }
}

/// Slots of one region that go back to it together: linked by their numbers, and forgotten.
struct Returning {
    region: Region,
    first: u32,
    last: u32,
    count: usize,
}

impl Returning {
    /// Adds a slot. Those so far go back first if they are of another region.
    #[inline]
    fn add(returning: &mut Option<Returning>, slot: Slot) {
        let number = slot.number();
        match returning {
            Some(Returning { region, first, count, .. }) if slot.is_of(region) => {
                region.shared.returned.link(number, *first);
                (*first, *count) = (number, *count + 1);
            }
            others => {
                let region = Region { shared: Arc::clone(&slot.shared) };
                *others = Some(Returning { region, first: number, last: number, count: 1 });
            }
        }
        slot.forget();
    }
}

impl Drop for Returning {
    fn drop(&mut self) {
        if !self.region.shared.returned.put(self.first, self.last) {
            // SAFETY: so many were forgotten, and are on no list.
            unsafe { self.region.let_go(self.count) };
        }
    }
}

impl Slot {
    /// Where in a slot there is the address of what it shares with others of its region: equal where [`Slot::is_with`] is true.
    pub(crate) const MEMORY_AT: usize = std::mem::offset_of!(Slot, shared);

    /// A slot with memory of its own.
    pub(crate) fn alone() -> Slot {
        let region = Region::new(1, SlotLayout::DEFAULT).unwrap_or_else(|_| {
            std::alloc::handle_alloc_error(std::alloc::Layout::new::<[u8; SlotLayout::DEFAULT.size]>())
        });
        Slots::new(region).take().expect("the first of one")
    }

    /// Whether another slot is of the same region.
    #[inline]
    pub(crate) fn is_with(&self, other: &Slot) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// The start and the bytes of the region that it is a part of. Only its own bytes may be reached there.
    #[inline]
    pub(crate) fn memory(&self) -> (NonNull<u8>, usize) {
        (self.shared.start, self.shared.size)
    }

    /// Lets go of the slot without returning it. It keeps the region until [`Slot::again`] makes it again.
    #[inline]
    pub(crate) fn forget(self) {
        std::mem::forget(self);
    }

    /// The slot of a region in which a byte lies; none where the region has no slot.
    ///
    /// # Safety
    /// The slot was [forgotten](Slot::forget), and not made again since. Nobody reaches its bytes.
    #[inline]
    pub(crate) unsafe fn again(region: &Region, at: u32) -> Option<Slot> {
        let shared = &region.shared;
        // A region has at most 4 GiB.
        let start = (at - shared.within_slot(at)) as usize;
        if start + shared.layout.size > shared.size {
            return None;
        }
        // SAFETY: `forget` left one count of the region for this slot, which is its again; the slot lies in the region.
        let start = unsafe { shared.start.add(start) };
        // SAFETY: as above.
        Some(Slot { shared: ManuallyDrop::new(unsafe { std::ptr::read(shared) }), start })
    }

    /// Whether it is of this region.
    #[inline]
    pub(crate) fn is_of(&self, region: &Region) -> bool {
        Arc::ptr_eq(&self.shared, &region.shared)
    }

    /// Its number in its region.
    #[inline]
    fn number(&self) -> u32 {
        // A region has fewer slots than bytes, which are fewer than 4 GiB.
        (self.offset() / self.shared.stride) as u32
    }

    /// Where it starts in its region.
    #[inline]
    pub(crate) fn offset(&self) -> usize {
        self.start.as_ptr() as usize - self.shared.start.as_ptr() as usize
    }

    /// The bytes that a packet may use.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        self.shared.room
    }

    /// The longest frame that a packet can receive into it.
    #[inline]
    pub(crate) fn longest(&self) -> usize {
        self.shared.longest
    }

    /// Where the frame of an empty packet starts.
    #[inline]
    pub(crate) fn headroom(&self) -> u16 {
        self.shared.layout.headroom
    }

    /// So many bytes from an offset on.
    ///
    /// # Safety
    /// `from + count` is at most [`Slot::room`].
    #[inline]
    pub(crate) unsafe fn part(&self, from: usize, count: usize) -> &[u8] {
        debug_assert!(from + count <= self.room());
        // SAFETY: `room` initialised bytes from `start` on belong to this value alone.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(from), count) }
    }

    /// So many bytes from an offset on, to be changed.
    ///
    /// # Safety
    /// `from + count` is at most [`Slot::room`].
    #[inline]
    pub(crate) unsafe fn part_mut(&mut self, from: usize, count: usize) -> &mut [u8] {
        debug_assert!(from + count <= self.room());
        // SAFETY: as above, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().add(from), count) }
    }
}

impl Drop for Slot {
    #[cold]
    fn drop(&mut self) {
        let number = self.number();
        // The pool may take the slot, and let go of the region, before `put` has ended.
        let shared = Arc::clone(&self.shared);
        if !shared.returned.put(number, number) {
            // SAFETY: it is dropped once, here.
            unsafe { ManuallyDrop::drop(&mut self.shared) };
        }
    }
}

/// The slots that owners let go of: a stack, linked by the numbers of slots.
///
/// Any thread puts slots on it, one takes all at once. As nobody takes a single one, what a `put` has read as the first
/// may come off and go on again meanwhile without harm: its link says then what comes after it now. The list owns the slots
/// on it by their numbers, and each of them keeps the region, as it did before.
#[repr(align(64))]
struct Returned {
    first: AtomicU32,
    /// After each slot on the list the next.
    next: Box<[AtomicU32]>,
}

impl Returned {
    fn new(slots: usize) -> Returned {
        let next = (0..slots).map(|_| AtomicU32::new(NONE)).collect();
        Returned { first: AtomicU32::new(NONE), next }
    }

    /// Has a slot that is not on the list come after another one.
    #[inline]
    fn link(&self, number: u32, next: u32) {
        self.next[number as usize].store(next, Ordering::Relaxed);
    }

    /// Puts slots on the list, of which each but the last is linked to the next; false when the list is closed. What was done to
    /// their bytes comes before what is done to them after `take_all`.
    fn put(&self, first: u32, last: u32) -> bool {
        let mut before = self.first.load(Ordering::Relaxed);
        while before != CLOSED {
            self.link(last, before);
            match self.first.compare_exchange_weak(before, first, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(other) => before = other,
            }
        }
        false
    }

    /// Takes all slots off the list and leaves it empty ([`NONE`]) or closed ([`CLOSED`]). Only the pool does so, of which each
    /// region has one.
    fn take_all(&self, leaves: u32) -> impl Iterator<Item = u32> {
        let first = match self.first.load(Ordering::Relaxed) {
            first if first == leaves => NONE,
            _ => self.first.swap(leaves, Ordering::Acquire),
        };
        self.from(first)
    }

    /// The slots from one on.
    fn from(&self, first: u32) -> impl Iterator<Item = u32> {
        let of = |number: u32| (number != NONE).then_some(number);
        std::iter::successors(
            of(first),
            move |number| of(self.next[*number as usize].load(Ordering::Relaxed)),
        )
    }

    fn is_empty(&self) -> bool {
        self.first.load(Ordering::Relaxed) == NONE
    }

    /// How many are on the list: only the pool, which takes them off, may ask.
    fn count(&self) -> usize {
        self.from(self.first.load(Ordering::Acquire)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MAX_FRAME;
    use std::sync::atomic::AtomicUsize;

    const SMALL: SlotLayout = SlotLayout { size: 2048, headroom: 256 };

    impl Slot {
        fn bytes(&self) -> &[u8] {
            // SAFETY: the whole room.
            unsafe { self.part(0, self.room()) }
        }

        fn bytes_mut(&mut self) -> &mut [u8] {
            let room = self.room();
            // SAFETY: the whole room.
            unsafe { self.part_mut(0, room) }
        }
    }

    #[test]
    fn slots_outlive_what_made_them() {
        let mut slots = Slots::new(Region::new(2, SlotLayout::DEFAULT).unwrap());
        let mut slot = slots.take().unwrap();
        drop(slots);
        slot.bytes_mut().fill(3);
        assert!(slot.bytes().iter().all(|byte| *byte == 3));
    }

    #[test]
    fn a_region_that_cannot_be_is_refused_by_name() {
        let small = SlotLayout { size: 256 + MIN_SLOT_FRAME + TAILROOM - 1, headroom: 256 };
        let error = Region::new(1, small).unwrap_err();
        assert!(matches!(error, RegionError::SlotTooSmall { .. }), "{error}");
        let least = SlotLayout { size: small.size + 1, ..small };
        assert_eq!(least.longest_frame(), MIN_SLOT_FRAME);
        assert!(Region::new(1, least).is_ok());
        for slots in [usize::MAX, MAX_REGION / SMALL.size + 1] {
            assert!(matches!(Region::new(slots, SMALL), Err(RegionError::TooLarge { .. })));
        }
        assert_eq!(SlotLayout::DEFAULT.longest_frame(), MAX_FRAME);
    }

    /// A driver's memory that tells when it is freed.
    struct Owner {
        _memory: Memory,
        freed: Arc<AtomicUsize>,
    }

    impl Drop for Owner {
        fn drop(&mut self) {
            self.freed.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_drivers_memory_is_freed_once_after_its_last_slot() {
        let freed = Arc::new(AtomicUsize::new(0));
        for keeps_slots in [false, true] {
            freed.store(0, Ordering::SeqCst);
            let memory = Memory::zeroed(4 * SMALL.size).unwrap();
            let start = memory.start();
            let owner = Box::new(Owner { _memory: memory, freed: Arc::clone(&freed) });
            // SAFETY: the owner has four slots of memory that nobody else uses.
            let region = unsafe { Region::over(start, 4, SMALL, owner) }.unwrap();
            let mut slots = Slots::new(region);
            let held: Vec<Slot> = std::iter::from_fn(|| slots.take()).collect();
            assert_eq!((held.len(), slots.available(), held[3].room()), (4, 0, SMALL.size - TAILROOM));
            if keeps_slots {
                drop(slots);
                assert_eq!(freed.load(Ordering::SeqCst), 0);
                std::thread::spawn(move || drop(held)).join().unwrap();
            } else {
                drop(held);
                assert_eq!((slots.available(), freed.load(Ordering::SeqCst)), (4, 0));
                drop(slots);
            }
            assert_eq!(freed.load(Ordering::SeqCst), 1);
        }
    }

    #[test]
    fn slots_of_other_regions_go_back_together_and_let_go_of_regions_without_a_pool() {
        let freed = Arc::new(AtomicUsize::new(0));
        let made = |count: usize| {
            let memory = Memory::zeroed(count * SMALL.size).unwrap();
            let start = memory.start();
            let owner = Box::new(Owner { _memory: memory, freed: Arc::clone(&freed) });
            // SAFETY: the owner has so many slots of memory that nobody else uses.
            let mut slots = Slots::new(unsafe { Region::over(start, count, SMALL, owner) }.unwrap());
            let held: Vec<Slot> = std::iter::from_fn(|| slots.take()).collect();
            (slots, held)
        };
        let ((mut own, ours), (mut others, theirs), (gone, left)) = (made(3), made(4), made(2));
        drop(gone);
        assert_eq!(freed.load(Ordering::SeqCst), 0);
        let (mut ours, mut theirs, mut left) = (ours.into_iter(), theirs.into_iter(), left.into_iter());
        let some = [theirs.next(), theirs.next(), ours.next(), theirs.next()];
        let more = [left.next(), left.next(), theirs.next()];
        own.put_all(some.into_iter().chain(more).flatten());
        // The two of the region without a pool were its last.
        assert_eq!((own.available(), others.available(), freed.load(Ordering::SeqCst)), (1, 4, 1));
        // Its pool takes them over when somebody wants to know of one.
        assert_eq!((others.available_of(0), others.available_of(1), others.available()), (0, 4, 4));
        let mut again: Vec<Slot> = std::iter::from_fn(|| others.take()).collect();
        again.sort_by_key(Slot::offset);
        assert!(again.iter().enumerate().all(|(at, slot)| slot.offset() == at * SMALL.size), "each once");
        assert_eq!(again.len(), 4);
        drop((again, others, own));
        assert_eq!(freed.load(Ordering::SeqCst), 2);
        ours.for_each(drop);
        assert_eq!(freed.load(Ordering::SeqCst), 3);
    }

    #[test]
    fn a_remainder_is_that_of_a_division() {
        let mut at = 1u32;
        for stride in [1, 2, 3, 64, 2048, 2112, 2304, 16_832, 65_535, 65_537, u32::MAX as usize] {
            let reciprocal = reciprocal(stride);
            let near = [0, 1, stride as u32 - 1, stride as u32, (stride as u32).wrapping_mul(77), u32::MAX];
            let far = std::iter::repeat_with(|| {
                at = at.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                at
            });
            for of in near.into_iter().chain(far.take(1000)) {
                assert_eq!(
                    remainder(of, stride, reciprocal),
                    (of as usize % stride) as u32,
                    "{of} % {stride}"
                );
            }
        }
    }

    #[test]
    fn slots_may_lie_apart() {
        let mut memory = Box::new(Memory::zeroed(4 * 2112).unwrap());
        memory.fill(0x5a);
        let start = memory.start();
        let kept = Arc::new(memory);
        // SAFETY: four slots of 2048 bytes, the first at 0, with 64 bytes between two of them.
        let region = unsafe { Region::apart(start, 4, SMALL, 2112, Box::new(Arc::clone(&kept))) }.unwrap();
        let lender = region.lender();
        let mut slots = Slots::new(region);
        let mut held: Vec<Slot> = std::iter::from_fn(|| slots.take()).collect();
        assert_eq!(held.iter().map(Slot::offset).collect::<Vec<_>>(), [0, 2112, 4224, 6336]);
        held.iter_mut().for_each(|slot| slot.bytes_mut().fill(1));
        let packet = crate::Packet::within(held.remove(2));
        let place = lender.lend(packet).unwrap();
        assert_eq!(place.at, 4224 + 256);
        // SAFETY: it was lent once, and is taken back once, by its last byte.
        let packet = unsafe { lender.take_back(4224 + 2047) }.unwrap();
        assert_eq!(packet.lies(), place);
        // SAFETY: no slot begins at 4 * 2112.
        assert!(unsafe { lender.take_back(4 * 2112) }.is_none());
        drop((packet, held));
        assert_eq!(slots.available(), 4);
        assert!(
            (0..3).all(|gap| kept[gap * 2112 + 2048..][..64] == [0x5a; 64]),
            "the bytes between are untouched"
        );
        let stride = MAX_REGION / 4 + 1;
        // SAFETY: it is refused.
        let refused = unsafe { Region::apart(start, 4, SMALL, stride, Box::new(())) };
        assert!(matches!(refused, Err(RegionError::TooLarge { .. })));
    }

    #[test]
    fn slots_come_back_from_all_threads_with_what_was_written() {
        let rounds = if cfg!(miri) { 20 } else { 20_000 };
        let mut slots = Slots::new(Region::new(8, SMALL).unwrap());
        let (senders, threads): (Vec<_>, Vec<_>) = (0..3u8)
            .map(|_| {
                let (sender, receiver) = std::sync::mpsc::sync_channel::<Slot>(2);
                let thread = std::thread::spawn(move || {
                    for mut slot in receiver {
                        let count = slot.bytes()[0].wrapping_add(1);
                        slot.bytes_mut()[0] = count;
                    }
                });
                (sender, thread)
            })
            .unzip();
        let mut counts = [0u8; 8];
        for round in 0..rounds {
            let slot = loop {
                match slots.take() {
                    Some(slot) => break slot,
                    None => std::thread::yield_now(),
                }
            };
            let number = slot.offset() / SMALL.size;
            assert_eq!(slot.bytes()[0], counts[number], "what the last owner wrote is seen");
            counts[number] = counts[number].wrapping_add(1);
            senders[round % 3].send(slot).unwrap();
        }
        drop(senders);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(slots.available(), 8);
        let mut all: Vec<Slot> = std::iter::from_fn(|| slots.take()).collect();
        all.sort_by_key(Slot::offset);
        assert!(all.iter().enumerate().all(|(at, slot)| slot.offset() == at * SMALL.size), "each once");
    }
}
