//! Memory of frames that are done, for others: packets that the switch acts on are copied, and allocate nothing once it has warmed
//! up.

use millrace_engine::DroppedCopy;

/// Most frames whose memory is kept.
const MAX_BUFFERS: usize = 256;
/// The longest frame whose memory is kept: a longer one would keep it for nothing.
const MAX_KEPT: usize = 4096;

/// Memory that is used again.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    /// Frames without bytes.
    frames: Vec<Vec<u8>>,
    /// Copies of the burst at hand that egress has dropped and that are not counted yet.
    pub(crate) dropped_copies: Vec<DroppedCopy>,
}

impl Buffers {
    /// A copy of these bytes.
    #[inline]
    pub(crate) fn copy(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut frame = self.frames.pop().unwrap_or_default();
        frame.extend_from_slice(bytes);
        frame
    }

    /// Takes the memory of a frame that is done.
    #[inline]
    pub(crate) fn take_back(&mut self, mut frame: Vec<u8>) {
        if self.frames.len() < MAX_BUFFERS && (1..=MAX_KEPT).contains(&frame.capacity()) {
            frame.clear();
            self.frames.push(frame);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_up_to_a_limit() {
        let mut buffers = Buffers::default();
        let frame = buffers.copy(&[1, 2, 3]);
        let memory = frame.as_ptr();
        buffers.take_back(frame);
        let again = buffers.copy(&[4, 5]);
        assert_eq!((again.as_slice(), again.as_ptr()), (&[4, 5][..], memory));
        buffers.take_back(vec![0; MAX_KEPT + 1]);
        buffers.take_back(Vec::new());
        assert!(buffers.frames.is_empty());
        (0..=MAX_BUFFERS).for_each(|_| buffers.take_back(vec![0; 60]));
        assert_eq!(buffers.frames.len(), MAX_BUFFERS);
    }
}
