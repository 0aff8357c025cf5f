//! How compiled code may look a key up by itself, with plain loads.

/// What lies behind the pointer of a [`PlanCell`]: how to look up, for one batch. It never changes; another version is
/// published in its place. Compiled code loads the pointer at the start of a batch, and when [`Plan::kind`] is not
/// the one it was compiled for, takes the slow way (the batch lookup function) until it is compiled again.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// What the other fields mean.
    pub kind: PlanKind,
    /// Bits to shift right, by kind.
    pub shift: u32,
    /// The first array.
    pub base: *const u8,
    /// The second array, or null.
    pub second: *const u8,
}

impl Plan {
    /// Only by the batch lookup function.
    pub const CALL: Plan =
        Plan { kind: PlanKind::Call, shift: 0, base: std::ptr::null(), second: std::ptr::null() };
}

// SAFETY: the pointers are to memory of atomics that lives as long as the value that holds the plan.
unsafe impl Send for Plan {}
// SAFETY: as above.
unsafe impl Sync for Plan {}

/// The ways to look up. All loads are of the natural width and alignment, relaxed; their addresses depend on one
/// another, which is all the order that is needed.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PlanKind {
    /// Only by the batch lookup function.
    Call = 0,
    /// `result = (u32) base[key]`; the key has at most 16 bits.
    Direct = 1,
    /// Two levels of u16, for keys of at most 32 bits. With `low = key & ((1 << shift) - 1)`:
    /// `e = (u16) base[key >> shift]`; if bit 15 is clear `result = e`, else
    /// `result = (u16) second[((e & 0x7fff) << shift) + low]`.
    Two16 = 2,
    /// The same with u32 and bit 31.
    Two32 = 3,
    /// The same with u8 and bit 7.
    Two8 = 4,
}

/// Where the pointer to the current [`Plan`] lies. Valid as long as the reader it came from; what it points to is valid
/// between two quiescent points of an awake worker.
#[derive(Clone, Copy, Debug)]
pub struct PlanCell(pub *const std::sync::atomic::AtomicPtr<Plan>);
