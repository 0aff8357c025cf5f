//! The written limit of every size. An error that comes of one names it. Those that other files have too are in `toml_sections`.

pub use millrace_toml_sections::{MAX_LIST, MAX_NAME, MAX_PROBLEMS, MAX_RECOVERY, MAX_TEXT, WHOLE};

/// Longest text that is added to a device that runs, in bytes.
pub const MAX_FILE: usize = 2 << 20;

/// Longest file of a whole device, in bytes. One as it runs has all defaults and whole paths, which makes its text up to two and a half times as
/// long.
pub const MAX_SHOWN: usize = 5 << 20;

/// Longest text of a device as it runs, with what is to be added to it, in bytes.
pub const MAX_WHOLE: usize = 4 * MAX_FILE;

/// Longest path of a socket, in bytes: what the system's address of one has room for.
pub const MAX_SOCKET: usize = 107;

/// Most workers of a device.
pub const MAX_WORKERS: u64 = 256;

/// Largest number of a processor.
pub const MAX_PROCESSOR: u64 = 4095;

/// Most links inside the device that a packet takes.
pub const MAX_HOPS: u64 = 64;

/// Most packet buffers of a device.
pub const MAX_PACKETS: u64 = 1 << 24;

/// Fewest packet buffers of a worker: those of a batch.
pub const MIN_PACKETS_OF_WORKER: u64 = 64;

/// Most packet buffers of a worker: so many fit the memory that a worker has for them.
pub const MAX_PACKETS_OF_WORKER: u64 = 250_000;

/// Most tenants.
pub const MAX_TENANTS: usize = 1024;

/// Most physical ports.
pub const MAX_PORTS: usize = 256;

/// Most queue pairs of a physical port.
pub const MAX_QUEUES: u64 = 64;

/// Most switches.
pub const MAX_SWITCHES: usize = 4096;

/// Most virtual ports of all switches that are connected to physical ports.
pub const MAX_VIRTUAL_PORTS: usize = 16_384;

/// Largest number of a virtual port.
pub const MAX_PORT_NUMBER: u64 = 65_535;

/// Most physical ports of a virtual port.
pub const MAX_PHYSICAL: usize = 16;

/// Most links.
pub const MAX_LINKS: usize = 16_384;

/// Longest delay of a link, in nanoseconds: ten seconds.
pub const MAX_DELAY: u64 = 10_000_000_000;

/// Most packets that wait in one direction of a link.
pub const MAX_WAITING: u64 = 1 << 20;

/// Largest rate, in bit/s.
pub const MAX_RATE: u64 = 10_000_000_000_000;

/// Most packets, or other things that are counted, in a second.
pub const MAX_PER_SECOND: u64 = 1_000_000_000_000;

/// Most table entries of a switch.
pub const MAX_ENTRIES: u64 = 1 << 32;

/// Most memory of a switch, in bytes: a tebibyte.
pub const MAX_MEMORY: u64 = 1 << 40;

/// Most queue places of a switch.
pub const MAX_QUEUE_PLACES: u64 = 1 << 24;

/// Largest device id: the largest number that TOML has.
pub const MAX_DEVICE_ID: u64 = i64::MAX as u64;

/// Largest VLAN that a frame can belong to.
pub const MAX_VLAN: u64 = 4094;

/// How many bytes from the start of a frame can be matched.
pub const MAX_MATCHED: usize = 128;

/// Most matches of one physical port that are compared by bytes, one after the other.
pub const MAX_BYTE_CLAIMS: usize = 64;

/// Largest priority of a match.
pub const MAX_PRIORITY: u64 = 65_535;

/// Largest result of the classify program that a match can name.
pub const MAX_ID: u64 = u32::MAX as u64;
