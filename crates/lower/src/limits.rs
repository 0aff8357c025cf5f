//! The written limits of an expansion. Inlining and flattening can make a small program large; each limit is checked
//! where the growth happens, with a diagnostic at the declaration or statement that caused it.

/// Slots and headers in all.
pub const MAX_SLOTS: usize = millrace_pipeline::limits::MAX_SLOTS;
/// Blocks of all bodies together.
pub const MAX_BLOCKS: usize = 1 << 18;
/// Instructions of all bodies together.
pub const MAX_INSTS: usize = 1 << 20;
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
