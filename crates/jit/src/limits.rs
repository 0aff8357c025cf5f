//! Limits of code generation, in addition to the limits of the [graph](millrace_midend::budget).

/// Up to this cost, which counts wide numbers more, variables may be in registers.
pub(crate) const MAX_SPEED: u64 = 1 << 18;
/// Most slots times nodes with variables in registers: each may be live at each.
pub(crate) const MAX_LIVE: usize = 1 << 23;
/// Most values that copies of what is remembered along paths hold together.
pub(crate) const MAX_REMEMBERED: usize = 1 << 22;
