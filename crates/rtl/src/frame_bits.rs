//! The window of a frame as one value.

use millrace_pipeline::Bits;

/// Bits of a frame; 0 after its end.
pub(crate) fn frame_bits(frame: &[u8], offset: u32, width: u32) -> Bits {
    let (from, to) = (offset as usize / 8, (offset + width).div_ceil(8) as usize);
    let mut bytes: Vec<u8> = frame.get(from..to.min(frame.len()).max(from)).unwrap_or(&[]).to_vec();
    bytes.resize(to - from, 0);
    Bits::read_at(&bytes, offset as usize % 8, width).unwrap_or_else(|| Bits::zero(width))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_filled_up() {
        let frame = [0xab, 0xcd, 0xef];
        assert_eq!(frame_bits(&frame, 4, 12), Bits::new(12, 0xbcd));
        assert_eq!(frame_bits(&frame, 16, 16), Bits::new(16, 0xef00));
        assert_eq!(frame_bits(&frame, 800, 8), Bits::zero(8));
    }
}
