//! What compiled code and its callers agree on: the layout of packets, of the environment, and the verdicts.
//!
//! All structures are `repr(C)`; compiled code reads and writes them at the offsets of their fields.

use millrace_state::LookupCounts;
use std::ffi::c_void;

/// Bytes in front of a packet that belong to its buffer, so that a deparser may put headers there.
pub const HEADROOM: usize = 256;
/// The most that one deparser takes of the headroom; a packet that grows by more moves to memory of the host.
pub const GROWTH: usize = 128;
/// Bytes behind a packet that may be read (and written back unchanged), so that a field is one access.
pub const TAILROOM: usize = 16;

/// Where a packet of a batch lies in [`Env::memory`]: its first byte, and its length.
///
/// [`HEADROOM`] bytes in front of it and [`TAILROOM`] bytes behind its end belong to its buffer. Compiled code rewrites the
/// packet in place.
pub type Place = [u32; 2];

/// A packet that may have been moved: where headers came or went, or in memory of the host.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Moved {
    /// The first byte.
    pub data: *mut u8,
    /// Bytes.
    pub len: u64,
}

/// What became of a packet: a [`Verdict`] in the upper half of the word, in the lower one the number that goes with it.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome(u64);

impl Outcome {
    /// What became of it.
    #[inline]
    pub fn verdict(self) -> Verdict {
        // Compiled code writes nothing else.
        Verdict::from_number((self.0 >> 32) as u32).unwrap_or(Verdict::StepLimit)
    }

    /// With [`Verdict::Forward`] the port to send to, with [`Verdict::ParserError`] the error.
    #[inline]
    pub fn number(self) -> u32 {
        self.0 as u32
    }

    /// The port to send it to, of a packet that is to be sent; of others a number above all ports.
    #[inline]
    pub fn port_to_send(self) -> u64 {
        const { assert!(Verdict::Forward as u32 == 0) };
        self.0
    }
}

/// What has become of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Verdict {
    /// It is ready to be sent to the port `out`.
    Forward = 0,
    /// The program drops it in ingress.
    IngressDrop = 1,
    /// The program drops it in egress.
    EgressDrop = 2,
    /// The parser rejected it, and the architecture drops what is rejected; `out` is the error.
    ParserError = 3,
    /// An assertion did not hold.
    Assert = 4,
    /// A body entered more blocks than [`millrace_pipeline::limits::MAX_STEPS`].
    StepLimit = 5,
    /// The bodies are done, or the switch has to act before the next one: the packet's context holds its storage.
    Stopped = 6,
    /// A clone is wanted in front of the deparser of egress; the context holds the packet's storage.
    CloneBeforeDeparser = 7,
    /// Egress is done and wants the packet cloned, cut or sent back; `out` is the port that it was for, and the context
    /// holds its storage.
    StoppedBehindEgress = 8,
}

impl Verdict {
    /// The verdict that a number stands for.
    pub fn from_number(number: u32) -> Option<Verdict> {
        const ALL: [Verdict; 9] = [
            Verdict::Forward,
            Verdict::IngressDrop,
            Verdict::EgressDrop,
            Verdict::ParserError,
            Verdict::Assert,
            Verdict::StepLimit,
            Verdict::Stopped,
            Verdict::CloneBeforeDeparser,
            Verdict::StoppedBehindEgress,
        ];
        ALL.get(number as usize).copied()
    }
}

/// In the result of a lookup in a table with a selector: the slot was selected at a miss.
pub const MISSED: u32 = 1 << 31;

/// Looks up `n` keys, each `ceil(bits/64)` limbs, and as many selector inputs, of their own limbs. Writes for each the
/// action slot (0: the default action, at a miss; with [`MISSED`]: what a default group selected) and, unless `entries` is
/// null, the entry plus one (0: a miss). What it returns means nothing.
pub type LookupBatch = unsafe extern "C" fn(
    host: *mut c_void,
    table: *const c_void,
    keys: *const u64,
    inputs: *const u64,
    n: u64,
    slots: *mut u32,
    entries: *mut u32,
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
    /// The arrays of a table that is looked up by loads, see [`millrace_state::Plan`].
    pub base: *const u8,
    /// The second one.
    pub second: *const u8,
    /// Those that lead from entries to action slots, or null.
    pub starts: *const u8,
}

/// How compiled code looks a table up. All but [`Shape::Call`] need a table without selector and idle timeouts, whose
/// [`TableEnv::base`] and [`TableEnv::second`] are set, and [`TableEnv::starts`] if it has direct objects. The words that
/// they end at are then entries, else action slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Shape {
    /// By calling [`TableEnv::lookup`].
    #[default]
    Call,
    /// `u32 base[key]`, for a key of at most 16 bits.
    Direct,
    /// Two levels of words of 1, 2 or 4 bytes, for a key of at most 32 bits: `e = base[key >> low]`; when the highest bit of
    /// it is set the result is `second[((e without that bit) << low) + (key & ((1 << low) - 1))]`, else `e`.
    Two {
        /// The bits of the key that index the second level.
        low: u32,
        /// The bytes of a word.
        bytes: u32,
    },
    /// Lines of an exact table ([`millrace_state::Line`]), for a key of so many limbs: 1 or 2.
    Lines(u32),
}

/// What surrounds a batch.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Env {
    /// One for each table of the program.
    pub tables: *const TableEnv,
    /// The first argument of all helpers.
    pub host: *mut c_void,
    /// The context of the first packet; those of the others follow.
    pub contexts: *mut u8,
    /// Memory for the schedule: keys, results and waiting packets of staged tables.
    pub stage: *mut u8,
    /// What the places of packets count from.
    pub memory: *mut u8,
    /// Behind the last packet's place.
    pub places_end: *const Place,
    /// The bytes that the places of all packets take: as many as their outcomes.
    pub places_bytes: u64,
    /// Behind the outcomes, one for each packet, which the code writes.
    pub outcomes_end: *mut Outcome,
    /// One for each packet, written by code whose packets do not [keep their places](crate::Compiled::keeps_place).
    pub moved: *mut Moved,
    /// One for each table, written by code that [counts lookups](crate::Options::count_lookups).
    pub lookups: *mut LookupCounts,
    /// The port that all packets came in on.
    pub port: u64,
    /// The time of the batch in nanoseconds.
    pub now_ns: u64,
}
