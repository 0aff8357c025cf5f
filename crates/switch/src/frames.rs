//! The frames of a batch in one memory, so that compiled code takes them where they lie.

use millrace_ports::{Burst, HEADROOM, Packet, Place, TAILROOM};

/// Where frames start: at multiples of a cache line.
const LINE: usize = 64;

/// Memory that is used again for each batch.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    memory: Vec<u8>,
    places: Vec<Place>,
}

impl Frames {
    /// Holds the frames of these packets, and nothing else any more.
    pub(crate) fn hold(&mut self, packets: &[Packet]) {
        self.places.clear();
        let mut at = HEADROOM;
        for packet in packets {
            let len = packet.len();
            let end = at + len + TAILROOM;
            if self.memory.len() < end {
                self.memory.resize(end, 0);
            }
            self.memory[at..at + len].copy_from_slice(packet.data());
            // A batch of the longest frames takes about a megabyte.
            self.places.push(Place { at: at as u32, len: len as u32 });
            at = (end + HEADROOM).next_multiple_of(LINE);
        }
    }

    pub(crate) fn burst(&mut self) -> Burst<'_> {
        Burst { memory: &mut self.memory, places: &self.places }
    }
}
