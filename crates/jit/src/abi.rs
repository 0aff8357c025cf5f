//! What compiled code and its callers agree on: the layout of packets, of the environment, and the verdicts.
//!
//! All structures are `repr(C)`; compiled code reads and writes them at the offsets of their fields.

use millrace_frames::{MAX_BATCH, Place};
use millrace_midend::Verdict;
use millrace_midend::copies::MAX_COPIES;
use millrace_state::LookupCounts;
use std::ffi::c_void;

/// A packet that may have been moved: where headers came or went, or in memory of the host.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Moved {
    /// The first byte.
    pub data: *mut u8,
    /// Bytes.
    pub len: u64,
}

/// What became of a packet: in the lower half of the word the number that goes with it, above that in eight bits a
/// [`Verdict`], and above that, of a packet that is dropped, where the program asked for it.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome(u64);

/// The lowest bit of the place of a drop, and of the class of a packet that is sent, in an [`Outcome`].
pub(crate) const DROP_SITE: u32 = 40;
/// The lowest bit of the number of the queue of a packet that is sent, above its class.
pub(crate) const QUEUE: u32 = 48;

impl Outcome {
    /// What no packet becomes.
    pub const NONE: Outcome = Outcome(u64::MAX);

    /// What became of it.
    #[inline]
    pub fn verdict(self) -> Verdict {
        // Compiled code writes nothing else.
        Verdict::from_number((self.0 >> 32) as u32 & 0xff).unwrap_or(Verdict::StepLimit)
    }

    /// With [`Verdict::Forward`] the port to send to, with [`Verdict::ForwardEach`] the set of ports, with [`Verdict::ParserError`] the
    /// error.
    #[inline]
    pub fn number(self) -> u32 {
        self.0 as u32
    }

    /// Where the program asked for the drop, of a packet that it or its parser drops: what
    /// [`Intrinsic::DropSite`](millrace_pipeline::Intrinsic::DropSite) says.
    #[inline]
    pub fn drop_site(self) -> u16 {
        (self.0 >> DROP_SITE) as u16
    }

    /// With [`Verdict::Forward`] and [`Verdict::StoppedAfterEgress`] the class of service, of code whose plan
    /// [tells it](millrace_midend::Step::TrafficManager).
    #[inline]
    pub fn class(self) -> u8 {
        (self.0 >> DROP_SITE) as u8
    }

    /// As [`Outcome::class`], the number of its queue.
    #[inline]
    pub fn queue(self) -> u16 {
        (self.0 >> QUEUE) as u16
    }

    /// The port to send it to, of a packet that is to be sent and has no class; of others a number above all ports.
    #[inline]
    pub fn port_to_send(self) -> u64 {
        const { assert!(Verdict::Forward as u32 == 0) };
        self.0
    }
}

/// A copy that egress has dropped.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DroppedCopy(u32);

impl DroppedCopy {
    /// The lowest bit of the port. Below it is where the program asked for the drop.
    pub(crate) const PORT: u32 = 16;

    /// The port that it was for.
    pub fn port(self) -> u32 {
        self.0 >> DroppedCopy::PORT
    }

    /// Where the program asked for the drop: as [`Outcome::drop_site`].
    pub fn drop_site(self) -> u16 {
        self.0 as u16
    }
}

/// The copies of a batch that egress has dropped.
#[repr(C)]
#[derive(Clone, Debug)]
pub struct DroppedCopies {
    /// How many there are.
    pub count: u64,
    /// As many as a batch can have.
    pub each: [DroppedCopy; MAX_BATCH * MAX_COPIES as usize],
}

impl Default for DroppedCopies {
    fn default() -> DroppedCopies {
        DroppedCopies { count: 0, each: [DroppedCopy::default(); MAX_BATCH * MAX_COPIES as usize] }
    }
}

/// In the result of a lookup in a table with a selector: the slot was selected at a miss.
pub const MISSED: u32 = 1 << 31;

/// Looks up `n` keys, each `ceil(bits/64)` limbs, and as many selector inputs, of their own limbs. Writes for each the
/// action slot (0: the default action, at a miss; with [`MISSED`]: what a default group selected) and, unless `entries` is
/// null, the entry plus one (0: a miss). `packets` says of which packet each key is, where entries may have idle timeouts: its
/// place counted from the end of the last one, in bytes; of other tables it is null. What it returns means nothing.
pub type LookupBatch = unsafe extern "C" fn(
    host: *mut c_void,
    table: *const c_void,
    keys: *const u64,
    inputs: *const u64,
    n: u64,
    slots: *mut u32,
    entries: *mut u32,
    packets: *const i32,
) -> u64;

/// A table as compiled code sees it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TableEnv {
    /// The lookup.
    pub lookup: LookupBatch,
    /// Its second argument.
    pub table: *const c_void,
    /// The records of action slots, see [`millrace_state::RecordLayout`]. They stay for the batch.
    pub records: *const u8,
    /// The arrays of a table that is looked up by loads, see [`millrace_state::LookupShape`].
    pub base: *const u8,
    /// The second one.
    pub second: *const u8,
    /// What a word of 0 of two levels leads to.
    pub fallback: *const u8,
    /// Those that lead from entries to action slots, or null.
    pub starts: *const u8,
}

/// How compiled code looks a table up. All but [`Shape::Call`] and [`Shape::NoKey`] need a table without selector and idle timeouts, whose
/// [`TableEnv::base`] and [`TableEnv::second`] are set, and [`TableEnv::starts`] if it has direct objects. The words that
/// they end at are then entries, else action slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Shape {
    /// By calling [`TableEnv::lookup`].
    #[default]
    Call,
    /// Not at all: a table without a key has no entries, and each lookup gives its default action.
    NoKey,
    /// `u32 base[key]`, for a key of at most 16 bits.
    Direct,
    /// Two levels of words of 1, 2 or 4 bytes, for a key of at most 32 bits: `e = base[key >> low]`; when the highest bit of
    /// it is set the result is `second[((e without that bit) << low) + (key & ((1 << low) - 1))]`, else `e`; where that is 0 it
    /// is `(u64) *fallback`, loaded after it ([`TableEnv::fallback`]).
    Two {
        /// The bits of the key that index the second level.
        low: u32,
        /// The bytes of a word.
        bytes: u32,
    },
    /// Lines of an exact table ([`millrace_state::Line`]), for a key of so many limbs: 1 or 2.
    Lines(u32),
}

/// A counter array, the direct counters of a table, a register array or an array of accounts, as compiled code works on it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ObjectEnv {
    /// Of counters, where their pieces start; of registers and accounts the first cell; of accounts that several workers share, null.
    pub base: *const u8,
    /// Of accounts, the counts of what was refused.
    pub refused: *const u8,
}

/// The objects of a program that code works on itself.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ObjectsEnv {
    /// By the code's own numbers.
    pub each: *const ObjectEnv,
    /// Whether atomic sections have to wait for those of other workers.
    pub has_sections: u64,
}

/// Times of a batch, in nanoseconds.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TimesEnv {
    /// The end of the times of arrival, one for each packet.
    pub end: *const u64,
    /// The time at which the batch is worked on: not before any of them.
    pub now_ns: u64,
}

/// The packets of a batch.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PacketsEnv {
    /// What their places count from. The memory may have other packets too, which code leaves alone.
    pub memory: *mut u8,
    /// The end of the last packet's place. Code counts from here with a negative offset up to 0, which one instruction
    /// tests.
    pub places_end: *const Place,
    /// The bytes that the places of all packets take: as many as their outcomes.
    pub places_bytes: u64,
}

/// Frames that come after a batch, as many as it has. Code asks for their memory, and reads nothing there.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AheadEnv {
    /// What their places count from.
    pub memory: *const u8,
    /// The end of their places.
    pub places_end: *const Place,
}

/// Where code tells what became of the packets of a batch.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ResultsEnv {
    /// The end of the outcomes, one for each packet.
    pub outcomes_end: *mut Outcome,
    /// One for each packet, written by code whose packets do not [keep their places](crate::Compiled::keeps_place).
    pub moved: *mut Moved,
    /// Room for the copies that egress drops.
    pub dropped_copies: *mut DroppedCopies,
}

/// What surrounds a batch.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Env {
    /// One for each table of the program.
    pub tables: *const TableEnv,
    /// What the code works on itself.
    pub objects: ObjectsEnv,
    /// The first argument of all helpers.
    pub host: *mut c_void,
    /// The context of the first packet; those of the others follow.
    pub contexts: *mut u8,
    /// Memory for the schedule: keys, results and waiting packets of staged tables.
    pub stage: *mut u8,
    /// Its packets.
    pub packets: PacketsEnv,
    /// The frames that come after the batch.
    pub ahead: AheadEnv,
    /// Where it tells what became of them.
    pub results: ResultsEnv,
    /// One for each table, written by code that [counts lookups](crate::Options::count_lookups).
    pub lookups: *mut LookupCounts,
    /// The port that all packets came in on.
    pub port: u64,
    /// When its packets came, and when it is worked on.
    pub times: TimesEnv,
}
