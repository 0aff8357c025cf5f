//! What a program does, told while it does it.

use crate::Phv;
use millrace_pipeline::semantics::Value;
use millrace_pipeline::*;
use millrace_state::{Color, Lookup, State};

/// Something that listens to what programs do: a trace, or nobody.
pub trait Observer {
    /// Something happened. The storage is as it is after it, but for [`Event::Assigned`], which comes before.
    fn event(&mut self, event: Event<'_>, phv: &Phv);
}

/// Nobody listens.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn event(&mut self, _: Event<'_>, _: &Phv) {}
}

/// One thing that a program did.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// A body starts.
    Body(BodyId),
    /// A parser state starts.
    State(&'a str),
    /// A select looked at these keys and took a case (counted from 0) or the default.
    Select {
        /// The values.
        keys: &'a [Value],
        /// What they are values of.
        exprs: &'a [Expr],
        /// The case.
        case: Option<usize>,
    },
    /// A header was read from the packet.
    Extracted {
        /// The header.
        header: HeaderId,
        /// The bits it took.
        bits: usize,
    },
    /// The cursor was moved.
    Advanced {
        /// By that many bits.
        bits: usize,
    },
    /// An instruction of the parser failed, or the program rejected the packet.
    Rejected {
        /// An index in [`Program::errors`], or the code of an error that the program does not name.
        code: u16,
        /// The name of the error.
        name: &'a str,
    },
    /// A table was applied; the action runs next.
    Applied {
        /// The table.
        table: TableId,
        /// The values of its key.
        keys: &'a [Bits],
        /// What it gave.
        lookup: &'a Lookup,
        /// Where the entry is.
        state: &'a State,
    },
    /// The action called `exit`.
    Exited,
    /// A slot gets a value.
    Assigned {
        /// The slot.
        slot: SlotId,
        /// The value.
        value: &'a Value,
        /// Whether it is lost, because the header of the field is invalid.
        lost: bool,
    },
    /// A header was made valid or invalid by instruction.
    Validity {
        /// The header.
        header: HeaderId,
        /// What it is now.
        valid: bool,
        /// Whether it was not so before.
        changed: bool,
    },
    /// A valid header was appended to the packet.
    Emitted(HeaderId),
    /// A cell of a register was read or written.
    Register {
        /// The register.
        register: RegisterId,
        /// The index.
        index: u64,
        /// The value.
        value: &'a Bits,
        /// Whether it was written.
        written: bool,
    },
    /// A counter counted.
    Counted {
        /// The counter.
        counter: CounterId,
        /// The index.
        index: u64,
    },
    /// A meter gave a colour.
    Metered {
        /// The name of the meter.
        name: &'a str,
        /// The colour.
        color: Color,
    },
    /// A plugin was called.
    Called {
        /// Its name.
        name: &'a str,
        /// The arguments.
        args: &'a [u64],
        /// What it gave.
        results: &'a [u64],
        /// Whether the packet is to be dropped.
        drop: bool,
    },
    /// A digest was sent.
    Digest {
        /// Its kind.
        digest: DigestId,
        /// Its members.
        values: &'a [Value],
    },
    /// A line was written to the log.
    Log(&'a str),
    /// An assertion does not hold.
    AssertFailed(&'a str),
}
