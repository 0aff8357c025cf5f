//! Records: an action and its arguments as compiled code reads them.

use crate::action::ActionCall;

/// The layout of a table's action slots: records of one size, each the index of an action (`u32`) and its arguments.
///
/// An argument takes the next offset that is a multiple of its size: 1, 2, 4, 8 or 16 bytes, or for wider ones limbs of 8
/// bytes; the lowest byte comes first, but for [`network_order`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordLayout {
    /// Bytes from one record to the next: a power of two up to 64, else a multiple of 64, so that small records do not
    /// straddle cache lines.
    pub stride: u32,
    /// For each action the offsets of its arguments.
    pub offsets: Vec<Vec<u32>>,
    /// For each action the widths of its arguments in bits.
    widths: Vec<Vec<u32>>,
}

impl RecordLayout {
    /// The layout for actions with parameters of these widths in bits.
    pub fn new(actions: &[Vec<u32>]) -> RecordLayout {
        let mut end = 4;
        let offsets = actions
            .iter()
            .map(|widths| {
                let mut at = 4u32;
                let place = |width: &u32| {
                    let (size, multiple) = argument_size(*width);
                    let offset = at.next_multiple_of(multiple);
                    at = offset + size;
                    end = end.max(at);
                    offset
                };
                widths.iter().map(place).collect()
            })
            .collect();
        let stride = if end <= 64 { end.next_power_of_two().max(8) } else { end.next_multiple_of(64) };
        RecordLayout { stride, offsets, widths: actions.to_vec() }
    }

    /// The words of a record.
    pub(crate) fn words(&self) -> usize {
        self.stride as usize / 8
    }

    /// The record of a call, whose data are the arguments one after another, each in whole bytes, big-endian. Data that
    /// are too short leave zeros.
    pub(crate) fn record(&self, call: &ActionCall) -> Vec<u64> {
        let mut bytes = vec![0u8; self.stride as usize];
        bytes[..4].copy_from_slice(&call.action.to_ne_bytes());
        let action = call.action as usize;
        let (Some(offsets), Some(widths)) = (self.offsets.get(action), self.widths.get(action)) else {
            return words(&bytes);
        };
        let mut data = &call.data[..];
        for (offset, width) in offsets.iter().zip(widths) {
            let (argument, rest) = data.split_at((width.div_ceil(8) as usize).min(data.len()));
            data = rest;
            let size = argument_size(*width).0 as usize;
            let place = &mut bytes[*offset as usize..*offset as usize + size];
            if network_order(*width) {
                place.iter_mut().zip(argument).for_each(|(to, from)| *to = *from);
                continue;
            }
            place.iter_mut().zip(argument.iter().rev()).for_each(|(to, from)| *to = *from);
            // Limbs and small numbers are native; their order among each other stays the lowest first.
            if cfg!(target_endian = "big") {
                place.chunks_mut(size.min(8)).for_each(<[u8]>::reverse);
            }
        }
        words(&bytes)
    }
}

fn words(bytes: &[u8]) -> Vec<u64> {
    let word = |chunk: &[u8]| chunk.try_into().map_or(0, u64::from_ne_bytes);
    bytes.chunks_exact(8).map(word).collect()
}

/// Whether an argument of that width lies in its record as in a packet, the highest byte first: numbers of whole bytes,
/// most of which go to header fields.
pub fn network_order(width: u32) -> bool {
    matches!(width, 16..=64) && width.is_multiple_of(8)
}

/// Bytes that an argument takes, and what its offset is a multiple of.
pub fn argument_size(width: u32) -> (u32, u32) {
    match width {
        0..=8 => (1, 1),
        9..=16 => (2, 2),
        17..=32 => (4, 4),
        33..=64 => (8, 8),
        65..=128 => (16, 16),
        _ => (8 * width.div_ceil(64), 8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_aligned_to_their_size() {
        let layout = RecordLayout::new(&[vec![48, 9], vec![], vec![1, 128, 200]]);
        assert_eq!(layout.offsets, [vec![8, 16], vec![], vec![4, 16, 32]]);
        assert_eq!(layout.stride, 64);
    }

    #[test]
    fn a_record_holds_the_action_and_native_arguments() {
        let layout = RecordLayout::new(&[vec![], vec![9, 48]]);
        let call = ActionCall::new(1, [0x01, 0x02, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff]);
        // The action in the low half of the first word, 9 bits above it, 48 bits as in a packet in the second word.
        let address = u64::from_ne_bytes([0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff, 0, 0]);
        assert_eq!(layout.record(&call), [1 | 0x0102 << 32, address]);
        assert_eq!(layout.record(&ActionCall::new(1, [])), [1, 0], "what is missing is zero");
    }
}
