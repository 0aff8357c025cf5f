//! The written limits. Each is checked where the size enters, with an error that names it.

/// Most fields in one key.
pub const MAX_KEY_FIELDS: usize = 256;

/// Most bytes in one packed key.
pub const MAX_KEY_BYTES: usize = 1024;

/// Most entries in one table, members in one action profile, or members in one value set.
pub const MAX_ENTRIES: u32 = 1 << 24;

/// Most bytes of packed action arguments.
pub const MAX_ACTION_BYTES: usize = 4096;

/// Most weight (members counted with their weights) in one group of an action profile.
pub const MAX_GROUP_WEIGHT: u32 = 1 << 16;

/// Most groups in one action profile.
pub const MAX_GROUPS: u32 = 1 << 20;

/// Most cells in one counter, meter or register array.
pub const MAX_CELLS: u64 = 1 << 26;

/// Most bits in one register cell.
pub const MAX_REGISTER_BITS: u32 = 1 << 16;

/// Most bytes of memory in one counter, meter or register array.
pub const MAX_ARRAY_BYTES: u64 = 1 << 30;
