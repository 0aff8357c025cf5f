//! Every size that a program can ask for has a limit here.

/// Widest `bit<W>`, `int<W>` and `varbit<W>`, in bits.
pub const MAX_WIDTH: u32 = 1 << 16;

/// Most elements in an array or header stack.
pub const MAX_STACK: u32 = 1 << 16;

/// Furthest shift of a number of type `int`, in bits.
pub const MAX_INT_SHIFT: u32 = 1 << 16;

/// Widest result of an operation on numbers of type `int`, in bits.
pub const MAX_INT_BITS: u64 = 1 << 20;

/// Most instantiations of generic declarations inside each other.
pub const MAX_INSTANTIATION_DEPTH: u32 = 64;

/// Most instantiations of one generic declaration.
pub const MAX_INSTANTIATIONS: usize = 4096;

/// Most types, those of members included, that one type is made of.
pub const MAX_TYPE_NODES: usize = 1 << 16;

/// Longest string put together with `++`, in bytes.
pub const MAX_STRING_BYTES: usize = 1 << 16;

/// Most members, those of members included, that a default value is written out with, and that all uses of structured
/// constants are written out with altogether.
pub const MAX_LITERAL_NODES: usize = 1 << 18;

/// Bytes of stack for trees higher than [`millrace_syntax::MAX_NESTING`], enough for [`millrace_syntax::MAX_LEVELS`].
pub const STACK_BYTES: usize = 256 << 20;

/// Most types inside each other.
pub const MAX_TYPE_DEPTH: usize = 128;

/// Instances, tables, keys, actions and entries that a program is elaborated to.
pub const MAX_ELABORATED: usize = 1 << 17;

/// Bytes of the names of all these.
pub const MAX_ELABORATED_BYTES: usize = 1 << 23;

/// Most members of the type `error`: at run time an error has 16 bits.
pub const MAX_ERRORS: usize = (1 << 16) - 1;

/// Most steps of a check: looks at types, members of them, and expressions.
pub const MAX_STEPS: usize = 1 << 26;
