//! How large the hardware of a stage may be. A program that exceeds one of these is refused with the limit's name.

/// Bytes from the start of a frame that a parser may reach: the window that the hardware sees of it.
pub const MAX_WINDOW: u32 = 2040;
/// Wires of a stage: values before they are placed in time.
pub const MAX_NODES: usize = 1 << 20;
/// Bits of all of them together.
pub const MAX_BITS: u64 = 1 << 27;
/// Registers between the cycles of a stage: values that are needed later, a register for each cycle.
pub const MAX_REGISTERS: u64 = 1 << 18;
/// How often the blocks of a loop are repeated, one after the other.
pub const MAX_UNROLL: usize = 96;
/// Blocks of a stage with repeated ones counted as often as they are there.
pub const MAX_BLOCKS: usize = 1 << 15;
/// Cells of storage of all blocks together: slots, validity, what is remembered.
pub const MAX_CELLS: usize = 1 << 27;
/// Places where the cursor of a parser, or the end of what a deparser has emitted, may be at one point.
pub const MAX_CASES: usize = 1 << 11;
/// Pairs of a place and a length of what lies there; of more only the number is known where that ends, and nothing can follow.
pub const MAX_PAIRS: usize = 1 << 12;
/// Bits of one value: vectors of this width are within what the tools for FPGAs read.
pub const MAX_VALUE: u32 = (1 << 14) - 64;
/// Bits of the operands of a product whose factors both show at run time.
pub const MAX_PRODUCT: u32 = 256;
/// Bits of the operands of a quotient or a remainder, which take a stage of logic for each bit.
pub const MAX_QUOTIENT: u32 = 128;
/// Lengths that data may have at one point where a hash depends on the length.
pub const MAX_HASH_LENGTHS: usize = 16;
/// Accesses to tables and objects in a stage.
pub const MAX_ACCESSES: usize = 1 << 12;
/// Bits of memory of the unit of one object.
pub const MAX_OBJECT_BITS: u64 = 1 << 28;
/// Words of the unit of one object that software reaches.
pub const MAX_OBJECT_WORDS: u64 = 1 << 23;
/// Bits of memory of the units of all tables of a program together, both banks.
pub const MAX_TABLES_BITS: u64 = 1 << 30;
/// Bits of memory of the units of all objects of a program together: more than the block memory of any FPGA.
pub const MAX_OBJECTS_BITS: u64 = 1 << 30;
/// Words of them that software reaches.
pub const MAX_OBJECTS_WORDS: u64 = 1 << 23;
/// Cells of a register whose initial value is not 0: the text has all of them.
pub const MAX_INITIAL_CELLS: u64 = 1 << 16;
/// Members of a value set, which are compared at once.
pub const MAX_MEMBERS: u64 = 1 << 10;
/// Bits of the members of all value sets together: a flip-flop each.
pub const MAX_MEMBERS_BITS: u64 = 1 << 19;
/// Cycles from the first to the last of a stage.
pub const MAX_LATENCY: u32 = 1 << 12;
