//! Capture files as lists of frames.

use millrace_drivers::CaptureFile;
use millrace_frames::MAX_FRAME;
use std::io::BufRead;

/// Most frames that are taken from one capture.
pub(crate) const MAX_FRAMES: usize = 1 << 20;

/// A frame with its time.
#[derive(Clone, Debug)]
pub(crate) struct Captured {
    /// Nanoseconds since 1970, or whatever the capture counts from.
    pub(crate) time_ns: u64,
    pub(crate) bytes: Vec<u8>,
}

/// Reads a capture, pcap or pcapng.
///
/// # Errors
/// What is wrong with it, as a sentence.
pub(crate) fn read(input: impl BufRead) -> Result<Vec<Captured>, String> {
    let mut file = CaptureFile::new(input).map_err(|error| error.to_string())?;
    let (mut frames, mut bytes) = (Vec::new(), Vec::new());
    loop {
        let record = file.next(&mut bytes);
        let record = record.map_err(|error| format!("{error} (after {} whole packets)", frames.len()))?;
        let Some(record) = record else { return Ok(frames) };
        if frames.len() >= MAX_FRAMES {
            return Err(format!("more than {MAX_FRAMES} packets"));
        }
        if bytes.len() > MAX_FRAME {
            let length = bytes.len();
            return Err(format!("packet {} has {length} bytes, the limit is {MAX_FRAME}", frames.len() + 1));
        }
        frames.push(Captured { time_ns: record.timestamp_ns, bytes: bytes.clone() });
    }
}

/// Sets the times so that the first frame of all is at 0.
pub(crate) fn from_zero(frames: &mut [Captured]) {
    let first = frames.iter().map(|frame| frame.time_ns).min().unwrap_or(0);
    frames.iter_mut().for_each(|frame| frame.time_ns -= first);
}
