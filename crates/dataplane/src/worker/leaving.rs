//! The packets that leave after a burst: which of them by which port, noted while the burst borrows the packets.

use super::Outgoing;
use super::live::LivePorts;
use crate::burst::Output;
use crate::{DropReason, PortId};
use millrace_frames::{Batch, Packet, PacketPool, Place};
use std::ops::Range;
use std::vec::Drain;

/// Packets on their way from a burst to their ports, in the order in which they leave.
#[derive(Default)]
pub(super) struct Leaving {
    list: Vec<(PortId, Lies)>,
    /// Bytes of packets that lie elsewhere, one after the other.
    elsewhere: Vec<u8>,
    /// Above the number of each packet so far; where one is below that, packets have overtaken others.
    next: usize,
    overtaken: bool,
    /// The packets of a batch in which some have overtaken others, until they leave.
    by_number: Vec<Option<Packet>>,
}

/// Where the frame of a packet that leaves is.
#[derive(Clone, Copy)]
enum Lies {
    /// In the room of the packet of that number.
    Within(usize, Place),
    /// Among the bytes elsewhere, so many of them.
    Elsewhere(usize),
}

impl Leaving {
    /// Notes a packet; `memory` is that of the burst.
    #[inline]
    pub(super) fn note(&mut self, to: PortId, output: Output<'_>, memory: &Range<*const u8>) {
        let Output { bytes, number } = output;
        // A plugin may have had a packet grow into other memory.
        let lies = match number.filter(|_| memory.contains(&bytes.as_ptr())) {
            Some(number) => {
                let at = bytes.as_ptr() as usize - memory.start as usize;
                self.overtaken |= number < self.next;
                self.next = number + 1;
                // The memory has at most 4 GiB.
                Lies::Within(number, Place { at: at as u32, len: bytes.len() as u32 })
            }
            None => {
                self.elsewhere.extend_from_slice(bytes);
                Lies::Elsewhere(bytes.len())
            }
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
        let mut packets = if self.overtaken {
            self.by_number.extend(batch.drain().map(Some));
            Packets::ByNumber(&mut self.by_number)
        } else {
            Packets::InOrder(batch.drain(), 0)
        };
        let mut elsewhere = &self.elsewhere[..];
        for (to, lies) in self.list.drain(..) {
            match lies {
                Lies::Within(number, place) => {
                    if !packets.come_to(number, pool).is_some_and(|packet| packet.fits_place(place)) {
                        outgoing.refused.push((to, place.len as usize, DropReason::TxRefused));
                    } else if let Some(sending) = outgoing.room(ports, pool, to)
                        && let Some(packet) = packets.take(number)
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
        packets.give_back(pool);
        self.elsewhere.clear();
        (self.next, self.overtaken) = (0, false);
    }
}

/// The packets of a batch, to be taken by number.
enum Packets<'a> {
    /// From the first to the last: the rest, and the number of its first.
    InOrder(Drain<'a, Packet>, usize),
    /// In any order.
    ByNumber(&'a mut Vec<Option<Packet>>),
}

impl Packets<'_> {
    /// The packet of a number, if it is there. In order, those before it go back to the pool: they do not leave.
    #[inline]
    fn come_to(&mut self, number: usize, pool: &mut PacketPool) -> Option<&Packet> {
        match self {
            Packets::InOrder(packets, next) => {
                while *next < number {
                    pool.put(packets.next()?);
                    *next += 1;
                }
                packets.as_slice().first()
            }
            Packets::ByNumber(packets) => packets.get(number)?.as_ref(),
        }
    }

    /// Takes the packet out that [`Packets::come_to`] has shown.
    #[inline]
    fn take(&mut self, number: usize) -> Option<Packet> {
        match self {
            Packets::InOrder(packets, next) => {
                *next += 1;
                packets.next()
            }
            Packets::ByNumber(packets) => packets.get_mut(number)?.take(),
        }
    }

    fn give_back(self, pool: &mut PacketPool) {
        match self {
            Packets::InOrder(packets, _) => packets.for_each(|packet| pool.put(packet)),
            Packets::ByNumber(packets) => packets.drain(..).flatten().for_each(|packet| pool.put(packet)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_frames::MAX_FRAME;

    #[test]
    fn a_frame_that_has_become_too_long_takes_no_other_with_it() {
        for overtaken in [false, true] {
            let (mut pool, mut batch, mut places) = (PacketPool::new(4), Batch::new(), Vec::new());
            for number in 0..4 {
                let mut packet = pool.take().unwrap();
                packet.set_frame(&[number; 60]).unwrap();
                batch.push(packet).unwrap();
            }
            assert!(batch.burst(&mut places).is_some());
            let mut by_number = Vec::new();
            let mut packets = if overtaken {
                by_number.extend(batch.drain().map(Some));
                Packets::ByNumber(&mut by_number)
            } else {
                Packets::InOrder(batch.drain(), 0)
            };
            // A header before it; the second does not leave.
            let longer = Place { at: places[0].at - 6, len: MAX_FRAME as u32 + 6 };
            assert!(!packets.come_to(0, &mut pool).unwrap().fits_place(longer));
            let longest = Place { at: places[2].at - 6, len: MAX_FRAME as u32 };
            assert!(packets.come_to(2, &mut pool).unwrap().fits_place(longest));
            let mut third = packets.take(2).unwrap();
            assert!(third.data() == [2; 60] && third.take_place(longest));
            assert_eq!(third.len(), MAX_FRAME);
            let fourth = packets.come_to(3, &mut pool).unwrap();
            assert_eq!(fourth.data(), [3; 60]);
            packets.give_back(&mut pool);
            assert_eq!(pool.available(), 3);
        }
    }
}
