//! The packets that leave after a burst: which of them by which port, noted while the burst borrows the packets.

use super::{LivePorts, Outgoing};
use crate::{DropReason, PortId};
use millrace_frames::{Batch, Packet, PacketPool, Place};
use std::ops::Range;
use std::vec::Drain;

/// Packets on their way from a burst to their ports, in order.
#[derive(Default)]
pub(super) struct Leaving {
    list: Vec<(PortId, Lies)>,
    /// Bytes of packets that lie elsewhere, one after the other.
    elsewhere: Vec<u8>,
}

/// Where the frame of a packet that leaves is.
#[derive(Clone, Copy)]
enum Lies {
    /// In the memory of the burst.
    Within(Place),
    /// Among the bytes elsewhere, so many of them.
    Elsewhere(usize),
}

impl Leaving {
    /// Notes a packet with these bytes, which may lie in the memory of the burst.
    #[inline]
    pub(super) fn note(&mut self, to: PortId, bytes: &[u8], memory: &Range<*const u8>) {
        let lies = if memory.contains(&bytes.as_ptr()) {
            let at = bytes.as_ptr() as usize - memory.start as usize;
            // The memory has at most 4 GiB.
            Lies::Within(Place { at: at as u32, len: bytes.len() as u32 })
        } else {
            self.elsewhere.extend_from_slice(bytes);
            Lies::Elsewhere(bytes.len())
        };
        self.list.push((to, lies));
    }

    /// Gives the packets to their ports. Those of the batch that do not leave go back to the pool.
    pub(super) fn hand_on(
        &mut self,
        batch: &mut Batch,
        time_ns: u64,
        outgoing: &mut Outgoing,
        (ports, pool): (&mut LivePorts, &mut PacketPool),
    ) {
        let mut packets = batch.drain();
        let mut elsewhere = &self.elsewhere[..];
        for (to, lies) in self.list.drain(..) {
            match lies {
                Lies::Within(place) => {
                    if !come_to(&mut packets, place, pool) {
                        outgoing.refused.push((to, place.len as usize, DropReason::TxRefused));
                    } else if let Some(sending) = outgoing.room(ports, pool, to)
                        && let Some(packet) = packets.next()
                        && let Ok(packet) = sending.push(packet)
                    {
                        packet.take_place(place);
                        packet.timestamp_ns = time_ns;
                    }
                }
                Lies::Elsewhere(len) => {
                    let (bytes, rest) = elsewhere.split_at(len);
                    elsewhere = rest;
                    outgoing.put(ports, pool, (to, bytes), time_ns);
                }
            }
        }
        packets.for_each(|packet| pool.put(packet));
        self.elsewhere.clear();
    }
}

/// Gives those packets back that are before the one whose frame lies at a place now: they do not leave. Says whether
/// that one may have it as its frame: it may have become longer than a frame may be.
#[inline]
fn come_to(packets: &mut Drain<'_, Packet>, place: Place, pool: &mut PacketPool) -> bool {
    while let Some(packet) = packets.as_slice().first() {
        if packet.has_place(place) {
            return packet.fits_place(place);
        }
        packets.next().into_iter().for_each(|packet| pool.put(packet));
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_frames::MAX_FRAME;

    #[test]
    fn a_frame_that_has_become_too_long_takes_no_other_with_it() {
        let (mut pool, mut batch, mut places) = (PacketPool::new(4), Batch::new(), Vec::new());
        for number in 0..4 {
            let mut packet = pool.take().unwrap();
            packet.set_frame(&[number; 60]).unwrap();
            batch.push(packet).unwrap();
        }
        assert!(batch.burst(&mut places).is_some());
        let mut packets = batch.drain();
        // A header before it; the second does not leave.
        let longer = Place { at: places[0].at - 6, len: MAX_FRAME as u32 + 6 };
        assert!(!come_to(&mut packets, longer, &mut pool));
        let longest = Place { at: places[2].at - 6, len: MAX_FRAME as u32 };
        assert!(come_to(&mut packets, longest, &mut pool));
        let mut third = packets.next().unwrap();
        assert!(third.data() == [2; 60] && third.take_place(longest));
        assert_eq!(third.len(), MAX_FRAME);
        assert!(come_to(&mut packets, places[3], &mut pool));
        let fourth = packets.next().unwrap();
        assert_eq!(fourth.data(), [3; 60]);
        assert_eq!(pool.available(), 2);
    }
}
