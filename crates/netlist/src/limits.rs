//! How large a design may be. The verifier names the limit that a design exceeds; the builder stops to grow there.

/// Bits of a value. Vectors of this width are within what Verilator, Yosys, Vivado and Quartus read.
pub const MAX_WIDTH: u32 = 1 << 14;
/// Modules of a design.
pub const MAX_MODULES: usize = 1 << 12;
/// Nodes of one module.
pub const MAX_NODES: usize = 1 << 23;
/// Parts of one concatenation.
pub const MAX_PARTS: usize = MAX_WIDTH as usize;
/// Input ports, and as many output ports, of a module.
pub const MAX_PORTS: usize = 1 << 14;
/// Registers of a module.
pub const MAX_REGISTERS: usize = 1 << 20;
/// Memories of a module.
pub const MAX_MEMORIES: usize = 1 << 14;
/// Read ports, and as many write ports, of a memory.
pub const MAX_MEMORY_PORTS: usize = 1 << 13;
/// Bits of one memory: 32 MiB.
pub const MAX_MEMORY_BITS: u64 = 1 << 28;
/// Instances in a module.
pub const MAX_INSTANCES: usize = 1 << 14;
/// Modules inside each other.
pub const MAX_DEPTH: usize = 64;
/// Streams among the ports of a module.
pub const MAX_STREAMS: usize = 1 << 10;
/// Bytes of a name.
pub const MAX_NAME: usize = 1 << 10;
/// Places in the source that a module knows.
pub const MAX_PLACES: usize = 1 << 20;
/// Nodes, registers, memories and instances of a design with every instance counted, as the simulator flattens it.
pub const MAX_FLAT_NODES: usize = 1 << 24;
/// Bits of all memories of a design with every instance counted, each word rounded up to 64 bits: 1 GiB.
pub const MAX_FLAT_MEMORY_BITS: u64 = 1 << 33;
/// Pairs of an input and an output of a module between which there is a path within a cycle, of all modules of a design.
pub const MAX_PATHS: usize = 1 << 26;
/// Bytes of a text that is parsed.
pub const MAX_TEXT: usize = 1 << 30;
