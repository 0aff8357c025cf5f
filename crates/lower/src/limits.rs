//! The written limits of an expansion. Inlining and flattening can make a small program large; each limit is checked
//! where the growth happens, with a diagnostic at the declaration or statement that caused it.
//!
//! `Budget` counts against those that hold for the whole of a program. Together they bound the time and memory of a
//! lowering whatever the program is: each step of it is one of the things that are counted.

use millrace_syntax::Span;

use crate::fail::{Lower, code, fail};

/// Slots and headers in all.
pub const MAX_SLOTS: usize = 1 << 17;
/// Instances of parsers, controls and externs.
pub const MAX_INSTANCES: usize = 1 << 16;
/// Calls that are inlined: of functions, actions, parsers and controls.
pub const MAX_INLINED_CALLS: usize = 1 << 16;
/// Blocks of all bodies together.
pub const MAX_BLOCKS: usize = 1 << 17;
/// Instructions of all bodies together.
pub const MAX_INSTS: usize = 1 << 17;
/// Statements, expressions and parts of values that are looked at, with those of a call as often as it is inlined.
pub const MAX_VISITS: usize = 1 << 21;
/// Bytes of all names of storage, instances and objects.
pub const MAX_NAME_BYTES: usize = 1 << 24;
/// Calls inside each other that are inlined into one body.
pub const MAX_INLINE_DEPTH: usize = 64;
/// Statements and expressions inside each other, the inlined ones included.
pub const MAX_NESTING: usize = 4096;
/// Instances inside each other.
pub const MAX_INSTANCE_DEPTH: usize = 64;
/// Levels of an expression of the source that become one expression tree; the next level reads a temporary.
pub const EXPR_PIECE: usize = 32;
/// Bytes of stack that elaboration runs on, enough for [`MAX_NESTING`].
pub const STACK_BYTES: usize = 256 << 20;

/// What a lowering has made so far.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    /// Instances.
    instances: usize,
    /// Inlined calls.
    calls: usize,
    /// Blocks.
    pub(crate) blocks: usize,
    /// Instructions.
    pub(crate) insts: usize,
    /// Statements, expressions and parts of values.
    pub(crate) visits: usize,
    /// Bytes of names.
    pub(crate) name_bytes: usize,
}

impl Budget {
    /// One more instance.
    pub(crate) fn instance(&mut self, span: Span) -> Lower<()> {
        self.instances += 1;
        within(self.instances, MAX_INSTANCES, "instances of parsers, controls and externs", span)?;
        self.check(span)
    }

    /// One more inlined call.
    pub(crate) fn call(&mut self, span: Span) -> Lower<()> {
        self.calls += 1;
        within(self.calls, MAX_INLINED_CALLS, "inlined calls", span)
    }

    /// Looks at what is counted without a check, where much is made at once.
    pub(crate) fn check(&self, span: Span) -> Lower<()> {
        within(self.blocks, MAX_BLOCKS, "blocks of code", span)?;
        within(self.insts, MAX_INSTS, "instructions", span)?;
        within(self.visits, MAX_VISITS, "statements and expressions", span)?;
        within(self.name_bytes, MAX_NAME_BYTES, "bytes of names", span)
    }
}

fn within(count: usize, limit: usize, what: &str, span: Span) -> Lower<()> {
    if count <= limit {
        return Ok(());
    }
    fail(code::LIMIT, span, format!("the program, with every call inlined, has more than {limit} {what}"))
}
