//! The frames of a capture, all in memory.

use crate::pcap::read_frames;
use crate::port::PortError;
use millrace_frames::MAX_FRAME;

/// Most frames of a trace.
pub const MAX_TRACE_FRAMES: usize = 1 << 24;
/// Most bytes of a trace with the room around its frames: places in it are counted in 32 bits.
pub const MAX_TRACE_BYTES: usize = u32::MAX as usize;

/// Frames in the order of a capture.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    bytes: Vec<u8>,
    /// Where each frame ends; it starts where the one before ends.
    ends: Vec<usize>,
}

/// A trace would be larger than it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceTooLarge;

impl std::fmt::Display for TraceTooLarge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a trace holds at most {MAX_TRACE_FRAMES} frames and {MAX_TRACE_BYTES} bytes")
    }
}

impl std::error::Error for TraceTooLarge {}

impl Trace {
    /// Reads a capture file.
    ///
    /// # Errors
    /// [`PortError`]: no such file, not a capture, damaged, a frame above [`MAX_FRAME`], no frame, or too large.
    pub fn read(path: &str) -> Result<Trace, PortError> {
        let mut trace = Trace::default();
        let wrong = |packets: usize, reason: String| PortError::Capture {
            path: path.to_owned(),
            packets: packets as u64,
            reason,
        };
        read_frames(path, |frame| {
            if frame.len() > MAX_FRAME {
                let reason = format!("a frame of {} bytes, the limit is {MAX_FRAME}", frame.len());
                return Err(wrong(trace.len(), reason));
            }
            trace.push(frame).map_err(|error| wrong(trace.len(), error.to_string()))
        })?;
        if trace.is_empty() {
            return Err(wrong(0, "the capture holds no frame".to_owned()));
        }
        Ok(trace)
    }

    /// Adds a frame at the end. What is longer than [`MAX_FRAME`] is cut.
    ///
    /// # Errors
    /// [`TraceTooLarge`]; the trace is then as it was.
    pub fn push(&mut self, frame: &[u8]) -> Result<(), TraceTooLarge> {
        let frame = &frame[..frame.len().min(MAX_FRAME)];
        if self.len() >= MAX_TRACE_FRAMES || self.bytes.len() + frame.len() > MAX_TRACE_BYTES {
            return Err(TraceTooLarge);
        }
        self.bytes.extend_from_slice(frame);
        self.ends.push(self.bytes.len());
        Ok(())
    }

    /// The same frames, those shorter than `length` bytes filled up with zeros at their end.
    ///
    /// # Errors
    /// [`TraceTooLarge`].
    pub fn padded(&self, length: usize) -> Result<Trace, TraceTooLarge> {
        let mut padded = Trace::default();
        let mut long = Vec::new();
        for frame in self.frames() {
            long.clear();
            long.extend_from_slice(frame);
            long.resize(frame.len().max(length.min(MAX_FRAME)), 0);
            padded.push(&long)?;
        }
        Ok(padded)
    }

    /// The number of frames.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no frames.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The bytes of all frames together.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// A frame by its number; empty when there is none.
    pub fn frame(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.ends.get(number).map_or(&[], |end| &self.bytes[start..*end])
    }

    /// All frames.
    pub fn frames(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|number| self.frame(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_keep_their_order_and_bytes() {
        let mut trace = Trace::default();
        for frame in [&b"abc"[..], b"", b"defgh"] {
            trace.push(frame).unwrap();
        }
        assert_eq!(trace.frames().collect::<Vec<_>>(), [&b"abc"[..], b"", b"defgh"]);
        assert_eq!((trace.len(), trace.bytes(), trace.frame(3)), (3, 8, &b""[..]));
        let padded = trace.padded(4).unwrap();
        assert_eq!(padded.frames().collect::<Vec<_>>(), [&b"abc\0"[..], b"\0\0\0\0", b"defgh"]);
    }

    #[test]
    fn what_is_no_trace_is_refused() {
        assert!(Trace::read("/nowhere/at/all.pcap").is_err());
        let empty = std::env::temp_dir().join(format!("millrace-empty-trace-{}.pcap", std::process::id()));
        std::fs::write(
            &empty,
            [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 0, 0, 1, 0, 0, 0],
        )
        .unwrap();
        let error = Trace::read(empty.to_str().unwrap()).unwrap_err();
        std::fs::remove_file(&empty).unwrap();
        assert!(error.to_string().ends_with("the capture holds no frame"), "{error}");
    }
}
