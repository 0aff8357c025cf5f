//! The packets that leave after a burst: which of them by which port, noted while the burst borrows the packets.

use super::live::LivePorts;
use super::outgoing::Outgoing;
use crate::burst::Output;
use crate::{DropReason, PortId};
use millrace_frames::{Batch, Packet, PacketPool, Place, Service};
use std::ops::Range;
use std::vec::Drain;

/// Packets on their way from a burst to their ports, in the order in which they leave.
#[derive(Default)]
pub(super) struct Leaving {
    list: Vec<(PortId, Service, Lies)>,
    /// How many links the packets of the batch have taken.
    pub(super) hops: u8,
    /// Bytes of packets that lie elsewhere, one after the other.
    elsewhere: Vec<u8>,
    /// Above the number of each packet so far; where one is below that, packets have overtaken others.
    next: usize,
    overtaken: bool,
    /// The packets so far are not those of the batch from the first on, for one port.
    apart: bool,
    /// The packets of a batch in which some have overtaken others, until they leave.
    by_number: Vec<Option<Packet>>,
}

/// Where the frame of a packet that leaves is.
#[derive(Clone, Copy)]
enum Lies {
    /// In the room of the packet of that number.
    Within(usize, Place),
    /// Among the bytes elsewhere, so many of them; and how many links the packet has taken.
    Elsewhere(usize, u8),
}

impl Leaving {
    /// Notes a packet; `memory` is that of the burst.
    #[inline]
    pub(super) fn note(&mut self, to: PortId, output: Output<'_>, memory: &Range<*const u8>) {
        let Output { bytes, number, service, hops } = output;
        // A plugin may have had a packet grow into other memory.
        let lies = match number.filter(|_| memory.contains(&bytes.as_ptr())) {
            Some(number) => {
                let at = bytes.as_ptr() as usize - memory.start as usize;
                self.overtaken |= number < self.next;
                self.next = number + 1;
                self.apart |=
                    number != self.list.len() || self.list.first().is_some_and(|(port, ..)| *port != to);
                // The memory has at most 4 GiB.
                Lies::Within(number, Place { at: at as u32, len: bytes.len() as u32 })
            }
            None => {
                self.apart = true;
                self.elsewhere.extend_from_slice(bytes);
                Lies::Elsewhere(bytes.len(), if number.is_some() { self.hops } else { hops })
            }
        };
        self.list.push((to, service, lies));
    }

    /// Gives the packets to their ports. Those of the batch that do not leave go back to the pool.
    pub(super) fn hand_on(
        &mut self,
        batch: &mut Batch,
        time_ns: u64,
        outgoing: &mut Outgoing,
        (ports, pool): (&mut LivePorts, &mut PacketPool),
    ) {
        if self.hand_all_on(batch, time_ns, outgoing, ports) {
            return;
        }
        let mut packets = if self.overtaken {
            self.by_number.extend(batch.drain().map(Some));
            Packets::ByNumber(&mut self.by_number)
        } else {
            Packets::InOrder(batch.drain(), 0)
        };
        let mut elsewhere = &self.elsewhere[..];
        for (to, service, lies) in self.list.drain(..) {
            match lies {
                Lies::Within(number, place) => {
                    if !packets.come_to(number, pool).is_some_and(|packet| packet.fits_place(place)) {
                        outgoing.refused.push((to, place.len as usize, DropReason::TxRefused));
                    } else if let Some(sending) = outgoing.room(ports, pool, to)
                        && let Some(packet) = packets.take(number)
                        && let Ok(packet) = sending.push(packet)
                    {
                        packet.take_place(place);
                        packet.set_service(service);
                        packet.timestamp_ns = time_ns;
                    }
                }
                Lies::Elsewhere(len, hops) => {
                    let (bytes, rest) = elsewhere.split_at(len);
                    elsewhere = rest;
                    outgoing.put(ports, pool, (to, service, hops, bytes), time_ns);
                }
            }
        }
        packets.give_back(pool);
        self.elsewhere.clear();
        (self.next, self.overtaken, self.apart) = (0, false, false);
    }

    /// Gives all packets to their port at once, where they lie, if they are the whole batch in its order for one port at which none
    /// wait; says whether they were.
    #[inline]
    fn hand_all_on(
        &mut self,
        batch: &mut Batch,
        time_ns: u64,
        outgoing: &mut Outgoing,
        ports: &mut LivePorts,
    ) -> bool {
        if self.apart || self.list.len() != batch.len() {
            return false;
        }
        let Some(at) = self.list.first().and_then(|(to, ..)| ports.find(*to)) else { return false };
        let place = |lies| match lies {
            Lies::Within(_, place) => place,
            // There is none: they would be apart.
            Lies::Elsewhere(..) => Place::default(),
        };
        let mut fit = true;
        for (packet, (.., lies)) in batch.packets().iter().zip(&self.list) {
            fit &= packet.fits_place(place(*lies));
        }
        if !fit || !outgoing.put_all(&mut ports[at], at, batch) {
            return false;
        }
        for (packet, (_, service, lies)) in
            ports[at].sending.packets_mut().iter_mut().zip(self.list.drain(..))
        {
            packet.take_place(place(lies));
            packet.set_service(service);
            packet.timestamp_ns = time_ns;
        }
        self.next = 0;
        true
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
    use crate::worker::relay::{Access, Past};
    use millrace_drivers::NullPort;
    use millrace_frames::MAX_FRAME;

    /// A batch of four frames in order, all noted for ports, without their first six bytes; what two ports, 3 and 5, are to send then.
    fn hand_on(ports_of: [PortId; 4], waiting: usize) -> [Vec<(u8, u64)>; 2] {
        let mut ports = LivePorts::default();
        for id in [3, 5] {
            let pair = Box::new(NullPort::open("-").unwrap());
            ports.push(id, Access { queue: Some(0), pair, past: Past::default() });
        }
        let (mut pool, mut batch, mut places) = (PacketPool::new(8), Batch::new(), Vec::new());
        for number in 0..4 {
            batch.add(&mut pool).unwrap().set_frame(&[number; 60]).unwrap();
        }
        (0..waiting).for_each(|_| _ = ports[0].sending.add(&mut pool).unwrap().set_frame(&[9; 60]));
        let mut leaving = Leaving::default();
        let burst = batch.burst(&mut places).unwrap();
        let memory = burst.addresses();
        for (number, port) in ports_of.into_iter().enumerate() {
            let bytes = &burst.frame(number).unwrap()[6..];
            leaving.note(
                port,
                Output { bytes, number: Some(number), service: Service::default(), hops: 0 },
                &memory,
            );
        }
        let mut outgoing = Outgoing::default();
        leaving.hand_on(&mut batch, 77, &mut outgoing, (&mut ports, &mut pool));
        assert!(batch.is_empty() && outgoing.refused.is_empty() && leaving.list.is_empty());
        // Nothing is left of it for the next burst.
        assert!(!leaving.apart && !leaving.overtaken && leaving.next == 0);
        let sent = [0, 1].map(|at: usize| {
            let packets = ports[at].sending.packets().iter().skip(if at == 0 { waiting } else { 0 });
            packets.map(|packet| (packet.data()[0], packet.timestamp_ns + packet.len() as u64)).collect()
        });
        ports.iter_mut().for_each(|live| live.sending.recycle(&mut pool));
        assert_eq!(pool.available(), 8);
        sent
    }

    #[test]
    fn a_batch_for_one_port_goes_there_as_it_is_and_others_packet_by_packet() {
        let each = |numbers: &[u8]| numbers.iter().map(|number| (*number, 77 + 54)).collect::<Vec<_>>();
        assert_eq!(hand_on([3, 3, 3, 3], 0), [each(&[0, 1, 2, 3]), each(&[])]);
        assert_eq!(hand_on([5, 5, 5, 5], 0), [each(&[]), each(&[0, 1, 2, 3])]);
        // To two ports, to none that there is, and after others that wait.
        assert_eq!(hand_on([3, 5, 5, 3], 0), [each(&[0, 3]), each(&[1, 2])]);
        assert_eq!(hand_on([4, 4, 4, 4], 0), [each(&[]), each(&[])]);
        assert_eq!(hand_on([3, 3, 3, 3], 2), [each(&[0, 1, 2, 3]), each(&[])]);
    }

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
