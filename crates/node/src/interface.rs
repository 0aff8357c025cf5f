//! What passes at an interface, the same in software, on the host link and in hardware: a frame and the facts that go with it.
//!
//! | where | the frame | the facts |
//! | --- | --- | --- |
//! | software | [`Item::bytes`] | [`Item::facts`] |
//! | host link | the bytes after the facts | [`FACTS_BYTES`] bytes, the fields of [`FIELDS`] one after the other, each with its highest byte first |
//! | hardware | `tdata`, `tkeep`, `tlast` of a stream | `tuser`, the same in each beat of a frame, the first field highest |

use crate::limits::{MAX_FRAME, MAX_OCTETS};
use std::fmt;

/// The facts of a frame: name, bits, what it says.
pub const FIELDS: [(&str, u32, &str); 4] = [
    ("port", 16, "the number of the port that the frame came in by"),
    ("class", 8, "how its port is to serve it; the highest first"),
    ("octets", 8 * MAX_OCTETS as u32, "the octets that a selector has selected, the first highest"),
    ("targets", 32, "outputs of a demultiplexer, output 0 the lowest bit; bit 31 is the manager's buffer"),
];

/// Bytes of the facts on the host link.
pub const FACTS_BYTES: usize = 2 + 1 + MAX_OCTETS + 4;

/// The bit of the targets that stands for the manager's buffer.
pub const MANAGER: u32 = 1 << 31;

/// What goes with a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The number of the port that the frame came in by.
    pub port: u16,
    /// How its port is to serve it.
    pub class: u8,
    /// The octets that a selector has selected.
    pub octets: [u8; MAX_OCTETS],
    /// The outputs of a demultiplexer, and [`MANAGER`].
    pub targets: u32,
}

/// A frame at an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// The frame.
    pub bytes: Vec<u8>,
    /// What goes with it.
    pub facts: Facts,
}

/// Bytes that are no frame of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoItem(usize);

impl fmt::Display for NoItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = FACTS_BYTES + MAX_FRAME;
        write!(f, "{} bytes: a frame with its facts has {FACTS_BYTES} to {most} (MAX_FRAME)", self.0)
    }
}

impl std::error::Error for NoItem {}

impl Item {
    /// As the host link carries it.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(FACTS_BYTES + self.bytes.len());
        bytes.extend(self.facts.encode());
        bytes.extend(&self.bytes);
        bytes
    }

    /// Reads what the host link carries.
    ///
    /// # Errors
    /// It is too short or too long.
    pub fn decode(bytes: &[u8]) -> Result<Item, NoItem> {
        let (facts, frame) = bytes.split_first_chunk().ok_or(NoItem(bytes.len()))?;
        match frame.len() <= MAX_FRAME {
            true => Ok(Item { bytes: frame.to_vec(), facts: Facts::decode(facts) }),
            false => Err(NoItem(bytes.len())),
        }
    }
}

impl Facts {
    /// The fields one after the other.
    pub fn encode(&self) -> [u8; FACTS_BYTES] {
        let mut bytes = [0; FACTS_BYTES];
        bytes[..2].copy_from_slice(&self.port.to_be_bytes());
        bytes[2] = self.class;
        bytes[3..3 + MAX_OCTETS].copy_from_slice(&self.octets);
        bytes[3 + MAX_OCTETS..].copy_from_slice(&self.targets.to_be_bytes());
        bytes
    }

    /// Reads what [`Facts::encode`] writes.
    pub fn decode(bytes: &[u8; FACTS_BYTES]) -> Facts {
        let mut facts =
            Facts { port: u16::from_be_bytes([bytes[0], bytes[1]]), class: bytes[2], ..Facts::default() };
        facts.octets.copy_from_slice(&bytes[3..3 + MAX_OCTETS]);
        let targets = &bytes[3 + MAX_OCTETS..];
        facts.targets = targets.iter().fold(0, |targets, byte| targets << 8 | u32::from(*byte));
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_fields_are_as_wide_as_the_facts() {
        let bits: u32 = FIELDS.iter().map(|(_, bits, _)| bits).sum();
        assert_eq!(bits as usize, 8 * FACTS_BYTES);
        let facts = Facts { port: 0x0102, class: 3, octets: [4; 16], targets: 0x8000_0005 };
        let mut wanted = vec![1, 2, 3];
        wanted.extend([4; 16]);
        wanted.extend([0x80, 0, 0, 5]);
        assert_eq!(facts.encode(), wanted[..]);
    }

    proptest! {
        #[test]
        fn what_the_link_carries_is_read_back(
            port: u16, class: u8, octets: [u8; 16], targets: u32, bytes in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let item = Item { bytes, facts: Facts { port, class, octets, targets } };
            prop_assert_eq!(Item::decode(&item.encode()), Ok(item));
        }

        #[test]
        fn any_bytes_are_an_item_or_not(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(Item::decode(&bytes).is_ok(), bytes.len() >= FACTS_BYTES);
        }
    }

    #[test]
    fn too_much_is_no_item() {
        let why = Item::decode(&vec![0; FACTS_BYTES + MAX_FRAME + 1]).unwrap_err().to_string();
        assert_eq!(why, "9240 bytes: a frame with its facts has 23 to 9239 (MAX_FRAME)");
    }
}
