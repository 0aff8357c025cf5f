//! The written limit of every size. An error that comes of one names it. Those that other files have too are in `toml_sections`.

pub use millrace_toml_sections::{MAX_LIST, MAX_NAME, MAX_PROBLEMS, MAX_TEXT};

/// Longest file of a network, and longest file that is imported, in bytes.
pub const MAX_FILE: usize = 32 << 20;

/// Most end systems.
pub const MAX_END_SYSTEMS: usize = 16_384;

/// Most switches.
pub const MAX_SWITCHES: usize = 1024;

/// Most links.
pub const MAX_LINKS: usize = 32_768;

/// Most ports of a node: a port is a bit of the bitmap that a switch sends by.
pub const MAX_PORTS: usize = 64;

/// Most virtual links: their ids have 16 bits.
pub const MAX_VLS: usize = 65_536;

/// Most accounts that virtual links share.
pub const MAX_ACCOUNTS: usize = 65_536;

/// Most sub virtual links of a virtual link.
pub const MAX_SUB_VLS: usize = 4;

/// Most frames that a sub virtual link holds.
pub const MAX_QUEUE: u64 = 4096;

/// Most destinations of a virtual link.
pub const MAX_DESTINATIONS: usize = 1024;

/// Most nodes of a path, without its source.
pub const MAX_PATH: usize = 64;

/// Most output ports that all virtual links take together, each counted where it passes.
pub const MAX_HOPS: usize = 1 << 21;

/// Largest rate, in bit/s.
pub const MAX_RATE: u64 = 10_000_000_000_000;

/// Largest rate of a link that a switch sends by, in bit/s: what the plan of its port may have.
pub const MAX_PORT_RATE: u64 = millrace_traffic::setting::MAX_RATE;

/// Longest report of `millrace bounds`, in bytes.
pub const MAX_REPORT: u64 = 4 << 20;

/// Most frames that a switch takes at once.
pub const MAX_BATCH: u64 = 64;

/// Longest time of a node or a link, in nanoseconds: ten seconds.
pub const MAX_TIME: u64 = 10_000_000_000;

/// Shortest and longest bandwidth allocation gap where the file asks for any, in nanoseconds.
pub const ANY_BAG: (u64, u64) = (10_000, 1_310_000_000);

/// Shortest and longest bandwidth allocation gap of the standard, in nanoseconds; those between are the shortest times a power of two.
pub const STANDARD_BAG: (u64, u64) = (500_000, 128_000_000);

/// Shortest frame of Ethernet, in bytes with its check sum.
pub const SHORTEST_FRAME: u64 = 64;

/// Longest frame of AFDX, in bytes with its check sum.
pub const LONGEST_FRAME: u64 = 1518;

/// Most bytes that the wire adds to a frame.
pub const MAX_OVERHEAD: u64 = 256;

/// Largest priority.
pub const MAX_PRIORITY: u64 = 7;

/// Most frames that the queues of all output ports of a running switch hold: what its workers have memory for.
pub const MAX_QUEUED: u32 = 65_536;

/// Largest buffer of an output port, in bytes.
pub const MAX_BUFFER: u64 = 1 << 36;
