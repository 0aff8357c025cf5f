//! The limits that all files have. An error that comes of one names it.

/// How many bytes after the first one that is no TOML more problems are looked for.
pub const MAX_RECOVERY: usize = 16 << 10;

/// Most problems that are told; further ones are counted.
pub const MAX_PROBLEMS: usize = 100;

/// Longest name, in bytes.
pub const MAX_NAME: usize = 64;

/// Longest path, common name or other text, in bytes.
pub const MAX_TEXT: usize = 4096;

/// Most elements of a list of names, paths or definitions.
pub const MAX_LIST: usize = 64;

/// All of a whole, in parts per million.
pub const WHOLE: u64 = 1_000_000;
