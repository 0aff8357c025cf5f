//! Capture files as lists of frames.

use millrace_ports::MAX_FRAME;
use pcap_file::pcap::PcapReader;
use std::io::Read;

/// Most frames that are taken from one capture.
pub(crate) const MAX_FRAMES: usize = 1 << 20;

/// A frame with its time.
#[derive(Clone, Debug)]
pub(crate) struct Captured {
    /// Nanoseconds since 1970, or whatever the capture counts from.
    pub(crate) time_ns: u64,
    pub(crate) bytes: Vec<u8>,
}

/// Reads a capture.
///
/// # Errors
/// What is wrong with it, as a sentence.
pub(crate) fn read(input: impl Read) -> Result<Vec<Captured>, String> {
    let mut reader = PcapReader::new(input).map_err(|error| format!("not a capture file: {error}"))?;
    let mut frames = Vec::new();
    while let Some(packet) = reader.next_packet() {
        let packet = packet.map_err(|error| format!("damaged after {} packets: {error}", frames.len()))?;
        if frames.len() >= MAX_FRAMES {
            return Err(format!("more than {MAX_FRAMES} packets"));
        }
        if packet.data.len() > MAX_FRAME {
            let length = packet.data.len();
            return Err(format!("packet {} has {length} bytes, the limit is {MAX_FRAME}", frames.len() + 1));
        }
        let time_ns = u64::try_from(packet.timestamp.as_nanos()).unwrap_or(u64::MAX);
        frames.push(Captured { time_ns, bytes: packet.data.into_owned() });
    }
    Ok(frames)
}

/// Sets the times so that the first frame of all is at 0.
pub(crate) fn from_zero(frames: &mut [Captured]) {
    let first = frames.iter().map(|frame| frame.time_ns).min().unwrap_or(0);
    frames.iter_mut().for_each(|frame| frame.time_ns -= first);
}
