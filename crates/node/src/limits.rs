//! The written limit of every size. An error that comes of one names it. Those that other files have too are in `toml_sections`.

pub use millrace_toml_sections::{MAX_LIST, MAX_NAME, MAX_PROBLEMS, MAX_TEXT};

/// Longest file of a node, in bytes.
pub const MAX_FILE: usize = 1 << 20;
/// Longest program or entries file that a block names, in bytes.
pub const MAX_PROGRAM: u64 = 64 << 20;
/// Most devices of a node.
pub const MAX_DEVICES: usize = 16;
/// Most services of a node.
pub const MAX_SERVICES: usize = 16;
/// Most functions of a node.
pub const MAX_FUNCTIONS: usize = 32;
/// Most blocks of a node.
pub const MAX_BLOCKS: usize = 64;
/// Most connections of a node.
pub const MAX_CONNECTIONS: usize = 512;
/// Most numbered inputs or outputs of a block.
pub const MAX_PORTS: u64 = 16;
/// Most octets that a selector selects.
pub const MAX_OCTETS: usize = 16;
/// The last octet of a frame that a selector reaches.
pub const MAX_OFFSET: u64 = 255;
/// Most entries of a TCAM.
pub const MAX_ENTRIES: u64 = 256;
/// Most frames of a queue or of a manager's buffer.
pub const MAX_DEPTH: u64 = 65_536;
/// Most bytes of a queue.
pub const MAX_BYTES: u64 = 256 << 20;
/// Largest quantum of a scheduler, in bytes.
pub const MAX_QUANTUM: u64 = 65_535;
/// Highest class of a frame.
pub const MAX_CLASS: u64 = 15;
/// Longest frame, in bytes: what the host link carries, less what goes with a frame at an interface.
pub const MAX_FRAME: usize = 9216;
/// Most passes through blocks that one frame and its copies may take before they wait in a queue; one more is lost, and counted.
pub const MAX_PASSES: usize = 256;
/// Most frames that wait for the driver of a MAC.
pub const MAX_TO_SEND: usize = 64;
/// Most frames that a block hands on at once, in its turn.
pub const MAX_TURN: usize = 64;
/// Most words of a memory that is shared.
pub const MAX_SHARED_WORDS: u32 = 65_536;
/// Longest lease of it, in milliseconds.
pub const MAX_LEASE_MS: u32 = 60_000;
/// Longest lease of a block of a file: a block that waits for another one holds up its node for twice as long at most.
pub const MAX_BLOCK_LEASE_MS: u64 = 5_000;
/// Most memories of a node.
pub const MAX_MEMORIES: usize = 16;
