//! Notifications as bmv2 sends them over nanomsg: digests to learn from, entries that were idle for too long, links that
//! came up or went down, programs that took over.
//!
//! Each message begins with 32 bytes, little-endian and packed: four letters that subscribers choose by (`LEA|`, `AGE|`,
//! `PRT|`, `SWP|`), the device's id (8 bytes), and what the kind of message has. [`Publisher`] carries them.

mod ageing;
mod learning;
mod publisher;

pub(crate) use ageing::{Ageing, Idle};
pub(crate) use learning::{Learning, LearningError};
pub use learning::{MAX_SAMPLES, MAX_UNACKNOWLEDGED};
pub use publisher::{MAX_SUBSCRIBERS, MAX_WAITING, Publisher};

use millrace_dataplane::PortId;

/// Bytes before what a message carries.
const HEADER: usize = 32;

/// The parts of a message's header after its topic and the device.
fn message(topic: &[u8; 4], device_id: u64, parts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER);
    bytes.extend_from_slice(topic);
    bytes.extend_from_slice(&device_id.to_le_bytes());
    parts.iter().for_each(|part| bytes.extend_from_slice(part));
    bytes.resize(HEADER, 0);
    bytes
}

/// The link of a port came up or went down.
pub(crate) fn link(device_id: u64, port: PortId, is_up: bool) -> Vec<u8> {
    let mut bytes = message(b"PRT|", device_id, &[&1u32.to_le_bytes()]);
    bytes.extend_from_slice(&port.to_le_bytes());
    bytes.extend_from_slice(&u32::from(is_up).to_le_bytes());
    bytes
}

/// How far a change of programs is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Swap {
    /// A program was loaded and waits.
    Loaded = 0,
    /// It runs.
    Completed = 2,
}

/// A change of programs.
pub(crate) fn swap(device_id: u64, how: Swap) -> Vec<u8> {
    message(b"SWP|", device_id, &[&0u32.to_le_bytes(), &(how as u32).to_le_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the packed structures in bmv2's source.
    #[test]
    fn headers_have_32_bytes() {
        let up = link(7, 3, true);
        assert_eq!(up.len(), 40);
        assert_eq!(up[..16], *b"PRT|\x07\0\0\0\0\0\0\0\x01\0\0\0");
        assert_eq!(up[32..], *b"\x03\0\0\0\x01\0\0\0");
        assert_eq!(swap(7, Swap::Completed)[12..24], *b"\0\0\0\0\x02\0\0\0\0\0\0\0");
    }
}
