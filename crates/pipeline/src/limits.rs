//! The written limits of a program, checked by the verifier and before that by whoever builds one.

/// The widest `bit<W>` or `int<W>`, in bits.
pub const MAX_WIDTH: u32 = 1 << 16;
/// The widest `varbit<W>`, in bits: a frame.
pub const MAX_VARBIT: u32 = 1 << 19;
/// Steps that one body may take for one packet, with the actions of its tables: one for each block that it enters, and
/// more for wide work ([`crate::Work`]). A parser that exceeds it rejects with `ParserTimeout`; a control that exceeds it
/// drops the packet.
pub const MAX_STEPS: u32 = 1 << 16;
/// Steps that all passes of one packet received and of its copies may take together.
pub const MAX_JOURNEY_STEPS: u32 = 1 << 23;
/// The most bytes that a packet may have after its headers: the longest frame.
pub const MAX_PAYLOAD: usize = 16 * 1024;
/// Slots in a program.
pub const MAX_SLOTS: usize = 1 << 18;
/// Blocks in a program, all bodies together.
pub const MAX_BLOCKS: usize = 1 << 20;
/// Instructions in a program, all bodies together.
pub const MAX_INSTS: usize = 1 << 22;
/// Depth of an expression tree.
pub const MAX_EXPR_DEPTH: usize = 512;
/// Places of a program that are told apart where packets are dropped.
pub const MAX_DROP_SITES: usize = 1 << 12;
/// Chains of plugins that a program may ask for.
pub const MAX_CHAINS: usize = 1 << 10;
/// Bytes of the text of one of them.
pub const MAX_CHAIN_TEXT: usize = 1 << 16;
/// Bodies, parser states and tables whose place in the source is known.
pub const MAX_SOURCE_LINES: usize = 1 << 16;
/// Entries that a table may be declared with.
pub const MAX_TABLE_SIZE: u64 = 1 << 24;
/// Numbers that a call of a plugin takes, and numbers that it gives.
pub const MAX_PLUGIN_WORDS: usize = 32;
/// Plugins that a program calls.
pub const MAX_PLUGINS: usize = 64;
/// Cells of one register, counter or meter array.
pub const MAX_ARRAY_SIZE: u64 = 1 << 26;
