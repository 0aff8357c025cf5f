//! What a lookup takes at most, as an engine is built.

/// What the lookup of one key takes at most in an engine as it is built now: any key, whether it is there or not. The next write
/// may change it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LookupContract {
    /// The engine.
    pub engine: &'static str,
    /// Steps that each wait for the one before: arrays, lines of a bucket, levels of a tree, rules that are checked.
    pub probes: u32,
    /// Cache lines of 64 bytes that it touches, without those of action data.
    pub lines: u32,
}

/// Bytes of a cache line.
const LINE: usize = 64;

/// Lines that some bytes from any place on may touch.
pub(super) fn lines(bytes: usize) -> u32 {
    match bytes {
        0 => 0,
        _ => (bytes - 1).div_ceil(LINE) as u32 + 1,
    }
}
