//! The packets that leave after a burst: which of them by which port, noted while the burst borrows the memory of all packets.

use super::{LivePorts, Outgoing};
use crate::PortId;
use millrace_ports::{Batch, Packet, PacketPool, Place};
use std::ops::Range;

/// Packets on their way from a burst to their ports, in order.
#[derive(Default)]
pub(super) struct Leaving {
    list: Vec<(PortId, Lies)>,
    /// Bytes of packets that lie elsewhere, one behind the other.
    beside: Vec<u8>,
}

/// Where the frame of a packet that leaves is.
#[derive(Clone, Copy)]
enum Lies {
    /// In the memory of all packets.
    Within(Place),
    /// Among the bytes beside it, so many of them.
    Beside(usize),
}

impl Leaving {
    /// Notes a packet with these bytes, which may lie in the memory of all packets.
    #[inline]
    pub(super) fn note(&mut self, to: PortId, bytes: &[u8], memory: &Range<*const u8>) {
        let lies = if memory.contains(&bytes.as_ptr()) {
            let at = bytes.as_ptr() as usize - memory.start as usize;
            // The memory has at most 4 GiB.
            Lies::Within(Place { at: at as u32, len: bytes.len() as u32 })
        } else {
            self.beside.extend_from_slice(bytes);
            Lies::Beside(bytes.len())
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
        let mut beside = &self.beside[..];
        for (to, lies) in self.list.drain(..) {
            match lies {
                Lies::Within(place) => match follow(&mut packets, place, pool) {
                    Some(packet) => outgoing.send(ports, pool, (to, packet), time_ns),
                    None => outgoing.refused.push((to, place.len as usize)),
                },
                Lies::Beside(len) => {
                    let (bytes, behind) = beside.split_at(len);
                    beside = behind;
                    outgoing.put(ports, pool, (to, bytes), time_ns);
                }
            }
        }
        packets.for_each(|packet| pool.put(packet));
        self.beside.clear();
    }
}

/// The packet whose frame lies at a place now; none when it has become longer than a frame may be. Those in front of it do
/// not leave.
#[inline]
fn follow(packets: &mut impl Iterator<Item = Packet>, place: Place, pool: &mut PacketPool) -> Option<Packet> {
    for mut packet in packets {
        let is_it = packet.has_place(place);
        if is_it && packet.take_place(place) {
            return Some(packet);
        }
        pool.put(packet);
        if is_it {
            break;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_ports::MAX_FRAME;

    #[test]
    fn a_frame_that_has_become_too_long_takes_no_other_with_it() {
        let (mut pool, mut batch, mut places) = (PacketPool::new(4), Batch::new(), Vec::new());
        for number in 0..4 {
            let mut packet = pool.take().unwrap();
            packet.set_frame(&[number; 60]).unwrap();
            batch.push(packet).unwrap();
        }
        assert!(pool.burst(&mut batch, &mut places).is_some());
        let mut packets = batch.drain();
        // A header in front; the second does not leave.
        let longer = Place { at: places[0].at - 6, len: MAX_FRAME as u32 + 6 };
        assert!(follow(&mut packets, longer, &mut pool).is_none());
        let longest = Place { at: places[2].at - 6, len: MAX_FRAME as u32 };
        assert_eq!(follow(&mut packets, longest, &mut pool).unwrap().len(), MAX_FRAME);
        assert_eq!(follow(&mut packets, places[3], &mut pool).unwrap().data(), [3; 60]);
        assert_eq!(pool.available(), 2);
    }
}
