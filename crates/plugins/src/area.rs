//! The area in a module's memory through which host and plugin talk: version 1.
//!
//! A module exports its `memory`, a function `millrace_area: () -> i32` that gives the address of the area, and a function
//! `millrace_call: () -> i32` that is called for each packet. All numbers are little-endian. The module fills in what describes
//! it before the first call; the host writes what a call is about, and reads the answer.
//!
//! | at | bytes | written by | what |
//! | --- | --- | --- | --- |
//! | 0 | 4 | module, once | version: 1 |
//! | 4, 8 | 4, 4 | module, once | capacity and address of the buffer for the payload; capacity 0: it wants none |
//! | 12, 16 | 4, 4 | module, once | capacity and address of the buffer for a packet of its own |
//! | 20 | 4 | both | bytes of the payload that are in the buffer; with [`REWRITTEN`] those that are there now |
//! | 24 | 4 | host | bytes of the whole payload, also those that the buffer has no room for |
//! | 28 | 4 | module | with [`REPLY`] the bytes of the packet of its own |
//! | 32 | 4 | host | whether the payload may be changed: 0 or 1 |
//! | 36, 40 | 4, 4 | host | how many words come in and go out |
//! | 48 | 256 | host | the words that come in |
//! | 304 | 256 | both | the words that go out: 0 until the module writes them |

/// The version that a module has to have.
pub const VERSION: u32 = 1;
/// The bytes of the area.
pub const SIZE: usize = 560;

/// In the answer: the packet is dropped.
pub const DROP: i32 = 1;
/// In the answer: the payload has changed.
pub const REWRITTEN: i32 = 2;
/// In the answer: there is a packet that goes to the port which the packet came from.
pub const REPLY: i32 = 4;

pub(crate) const PAYLOAD_ROOM: usize = 4;
pub(crate) const PAYLOAD_AT: usize = 8;
pub(crate) const REPLY_ROOM: usize = 12;
pub(crate) const REPLY_AT: usize = 16;
pub(crate) const PAYLOAD_LEN: usize = 20;
pub(crate) const PAYLOAD_TOTAL: usize = 24;
pub(crate) const REPLY_LEN: usize = 28;
pub(crate) const MAY_REWRITE: usize = 32;
pub(crate) const INS: usize = 36;
pub(crate) const OUTS: usize = 40;
pub(crate) const IN_WORDS: usize = 48;
pub(crate) const OUT_WORDS: usize = 304;

/// A number of the area.
pub(crate) fn get(area: &[u8], at: usize) -> u32 {
    area.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes)
}

/// Writes a number of the area.
pub(crate) fn put(area: &mut [u8], at: usize, value: u32) {
    if let Some(bytes) = area.get_mut(at..at + 4) {
        bytes.copy_from_slice(&value.to_le_bytes());
    }
}
