//! Where packets wait: one slab for a port, in which each queue has a list.
//!
//! The slab grows when more packets wait than ever before, and never beyond the limit of the plan; nothing else allocates. A slot knows
//! the length of the packet after it, so that a queue knows the length of its head without a look at the packet.

use crate::plan::Handle;

/// No slot, no node.
pub(crate) const NONE: u32 = u32::MAX;

/// A packet that waits.
#[derive(Debug)]
pub(crate) struct Slot<P> {
    pub(crate) packet: Option<P>,
    pub(crate) enqueued_ns: u64,
    pub(crate) len: u32,
    next: u32,
    next_len: u32,
    /// Packets in the queue when it came.
    pub(crate) depth: u32,
    pub(crate) class: u8,
    pub(crate) mark: bool,
    /// It is in the larger buffer.
    pub(crate) overflow: bool,
}

/// The packets of a port.
#[derive(Debug)]
pub(crate) struct Slab<P> {
    slots: Vec<Slot<P>>,
    free: u32,
}

impl<P> Slab<P> {
    pub(crate) fn new() -> Slab<P> {
        Slab { slots: Vec::new(), free: NONE }
    }

    #[inline]
    pub(crate) fn put(&mut self, slot: Slot<P>) -> u32 {
        match self.free {
            NONE => {
                self.slots.push(slot);
                self.slots.len() as u32 - 1
            }
            free => {
                let place = &mut self.slots[free as usize];
                self.free = place.next;
                *place = slot;
                free
            }
        }
    }

    #[inline]
    pub(crate) fn at(&self, slot: u32) -> &Slot<P> {
        &self.slots[slot as usize]
    }

    /// The packet of a slot that is in no list; the slot is free from now on.
    #[inline]
    fn take(&mut self, slot: u32) -> Taken<P> {
        let place = &mut self.slots[slot as usize];
        let taken = Taken {
            packet: place.packet.take().expect("a slot in use holds a packet"),
            enqueued_ns: place.enqueued_ns,
            len: place.len,
            depth: place.depth,
            class: place.class,
            mark: place.mark,
            overflow: place.overflow,
        };
        place.next = self.free;
        self.free = slot;
        taken
    }
}

impl<P> Slot<P> {
    pub(crate) fn new(packet: P, len: u32, class: u8, now_ns: u64) -> Slot<P> {
        Slot {
            packet: Some(packet),
            enqueued_ns: now_ns,
            len,
            next: NONE,
            next_len: 0,
            depth: 0,
            class,
            mark: false,
            overflow: false,
        }
    }
}

/// A packet that was taken out.
#[derive(Debug)]
pub(crate) struct Taken<P> {
    pub(crate) packet: P,
    pub(crate) enqueued_ns: u64,
    pub(crate) len: u32,
    pub(crate) depth: u32,
    pub(crate) class: u8,
    pub(crate) mark: bool,
    pub(crate) overflow: bool,
}

impl<P> From<Taken<P>> for Slot<P> {
    fn from(taken: Taken<P>) -> Slot<P> {
        let Taken { packet, enqueued_ns, len, depth, class, mark, overflow } = taken;
        Slot { depth, mark, overflow, ..Slot::new(packet, len, class, enqueued_ns) }
    }
}

/// A queue, as much of it as a packet that comes needs: one cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Fifo {
    first: u32,
    last: u32,
    /// Length of the first packet, without overhead.
    pub(crate) head_len: u32,
    /// Packets, those among them that wait for their time to be in the list.
    pub(crate) packets: u32,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// Bytes of them in the larger buffer.
    pub(crate) overflow: u64,
    /// Its parent among the inner nodes.
    pub(crate) parent: u32,
    /// Its number among the children of the parent.
    pub(crate) position: u32,
    /// Its setting.
    pub(crate) setting: u32,
    /// Packets that wait for their time.
    pub(crate) held: u32,
    /// Most packets that have waited together, and most bytes.
    pub(crate) largest_packets: u32,
    pub(crate) largest_bytes: u64,
}

impl Fifo {
    pub(crate) fn new(parent: u32, position: u32, setting: u32) -> Fifo {
        Fifo {
            first: NONE,
            last: NONE,
            head_len: 0,
            packets: 0,
            bytes: 0,
            overflow: 0,
            parent,
            position,
            setting,
            held: 0,
            largest_packets: 0,
            largest_bytes: 0,
        }
    }

    /// Whether none may leave.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first == NONE
    }

    /// The packet that leaves next.
    #[inline]
    pub(crate) fn head(&self) -> u32 {
        self.first
    }

    /// Appends a slot to the list. The caller counts packet and bytes.
    #[inline]
    pub(crate) fn append<P>(&mut self, slab: &mut Slab<P>, slot: u32) {
        let len = slab.at(slot).len;
        match self.last {
            NONE => {
                self.first = slot;
                self.head_len = len;
            }
            last => {
                let before = &mut slab.slots[last as usize];
                (before.next, before.next_len) = (slot, len);
            }
        }
        self.last = slot;
    }

    /// Takes the first packet of the list, which is not empty.
    #[inline]
    pub(crate) fn pop<P>(&mut self, slab: &mut Slab<P>) -> Taken<P> {
        let slot = self.first;
        let place = slab.at(slot);
        (self.first, self.head_len) = (place.next, place.next_len);
        if self.first == NONE {
            self.last = NONE;
        }
        let taken = slab.take(slot);
        self.uncount(&taken);
        taken
    }

    /// Takes a packet that is in no list.
    pub(crate) fn take_held<P>(&mut self, slab: &mut Slab<P>, slot: u32) -> Taken<P> {
        self.held -= 1;
        let taken = slab.take(slot);
        self.uncount(&taken);
        taken
    }

    #[inline]
    fn uncount<P>(&mut self, taken: &Taken<P>) {
        self.packets -= 1;
        self.bytes -= u64::from(taken.len);
        if taken.overflow {
            self.overflow -= u64::from(taken.len);
        }
    }

    /// The list of another queue, with all that is counted of it; place and setting stay.
    pub(crate) fn inherit(&mut self, from: &Fifo) {
        *self = Fifo { parent: self.parent, position: self.position, setting: self.setting, ..from.clone() };
    }
}

/// Which node of the plan something is a copy of, and which copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Origin {
    pub(crate) handle: Handle,
    pub(crate) copy: u32,
}

const _: () = assert!(size_of::<Fifo>() == 64);
