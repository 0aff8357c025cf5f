//! The packets that leave after a burst: which of them by which port, noted while the burst borrows the memory of all packets.

use super::{LivePort, Outgoing};
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
        (ports, pool): (&mut [LivePort], &mut PacketPool),
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

/// The packet whose frame lies at a place now. Those in front of it do not leave.
#[inline]
fn follow(packets: &mut impl Iterator<Item = Packet>, place: Place, pool: &mut PacketPool) -> Option<Packet> {
    for mut packet in packets {
        if packet.take_place(place) {
            return Some(packet);
        }
        pool.put(packet);
    }
    None
}
