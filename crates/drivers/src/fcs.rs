//! Ports whose frames have their check sequences (FCS): it is verified and taken off, and made again for what is sent.
//!
//! The FCS of IEEE 802.3 is the CRC-32 of the frame, least significant byte first, after its last byte. A frame whose FCS is wrong is
//! dropped and counted as an error of the port. Programs never see it: the length of a packet is that of the frame without.

use crate::around::Around;
use crate::port::{PortError, PortStatistics, QueuePair, Received, Transmitted};
use millrace_frames::{Batch, MAX_BATCH, Packet, PacketPool};

/// Bytes of an FCS.
const FCS: usize = 4;
/// The option of a port.
const OPTION: &str = "fcs=check";

const CRC: crc::Crc<u32> = crc::Crc::<u32>::new(&crc::CRC_32_ISO_HDLC);

/// The arguments without the option, and whether it was there.
pub(crate) fn take(args: &str) -> (String, bool) {
    let parts = args.split(',');
    let others: Vec<&str> = parts.clone().filter(|part| *part != OPTION).collect();
    (others.join(","), others.len() < parts.count())
}

/// The FCS of a frame.
fn fcs(frame: &[u8]) -> [u8; FCS] {
    CRC.checksum(frame).to_le_bytes()
}

/// A port whose frames have an FCS.
pub(crate) struct FcsPort<P> {
    port: P,
    /// Frames with a right and with a wrong FCS.
    right: u64,
    wrong: u64,
    wrong_bytes: u64,
}

impl<P: QueuePair> FcsPort<P> {
    pub(crate) fn new(port: P) -> FcsPort<P> {
        FcsPort { port, right: 0, wrong: 0, wrong_bytes: 0 }
    }
}

/// Takes the FCS of a frame off; false when it is wrong, or all that there is.
fn strip(packet: &mut Packet) -> bool {
    let parts = packet.data().split_last_chunk::<FCS>();
    let right = parts.is_some_and(|(frame, found)| !frame.is_empty() && fcs(frame) == *found);
    right && packet.trim(FCS).is_ok()
}

impl<P: QueuePair> Around for FcsPort<P> {
    type Inner = P;

    fn inner(&self) -> &P {
        &self.port
    }

    fn inner_mut(&mut self) -> &mut P {
        &mut self.port
    }

    fn receive(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Received, PortError> {
        let before = batch.len();
        let received = self.port.receive(batch, pool);
        let mut any_is_wrong = false;
        for packet in &mut batch.packets_mut()[before..] {
            if strip(packet) {
                self.right += 1;
                continue;
            }
            self.wrong += 1;
            self.wrong_bytes += packet.len() as u64;
            any_is_wrong = true;
            // Those that hold nothing are given back.
            packet.truncate(0);
        }
        if any_is_wrong {
            batch.recycle_if(pool, Packet::is_empty);
        }
        match received {
            // There may be more at once.
            Ok(Received::Idle) if any_is_wrong => Ok(Received::More),
            other => other,
        }
    }

    fn transmit(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Transmitted, PortError> {
        let mut has_fcs = [false; MAX_BATCH];
        for (has_fcs, packet) in has_fcs.iter_mut().zip(batch.packets_mut()) {
            let check = fcs(packet.data());
            *has_fcs = packet.append(&check).is_ok();
        }
        // Frames that have no room for an FCS are refused.
        let mut too_long: Vec<Packet> = Vec::new();
        if !has_fcs[..batch.len()].iter().all(|has| *has) {
            let all: Vec<Packet> = batch.drain().collect();
            for (has_fcs, packet) in has_fcs.into_iter().zip(all) {
                match has_fcs {
                    // It was in there before.
                    true => _ = batch.push(packet),
                    false => too_long.push(packet),
                }
            }
        }
        let transmitted = self.port.transmit(batch, pool);
        for packet in batch.packets_mut() {
            // They have one.
            let _ = packet.trim(FCS);
        }
        let refused = too_long.len();
        too_long.into_iter().for_each(|packet| _ = batch.push(packet));
        transmitted.map(|done| Transmitted { refused: done.refused + refused, ..done })
    }

    fn statistics(&self) -> PortStatistics {
        let of_port = self.port.statistics();
        PortStatistics {
            rx_packets: self.right,
            rx_bytes: of_port.rx_bytes - self.wrong_bytes - FCS as u64 * self.right,
            rx_errors: of_port.rx_errors + self.wrong,
            tx_bytes: of_port.tx_bytes - FCS as u64 * of_port.tx_packets,
            // Of frames without an FCS nobody has counted the kinds.
            rx_kinds: Default::default(),
            tx_kinds: Default::default(),
            ..of_port
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory_port::{FarEnd, MemoryPort, Next};
    use millrace_frames::MAX_FRAME;
    use std::sync::{Arc, Mutex};

    /// Frames that come, and those that were sent; no more than `room`.
    struct Wire {
        comes: Vec<Vec<u8>>,
        at: usize,
        sent: Arc<Mutex<Vec<Vec<u8>>>>,
        room: usize,
    }

    impl FarEnd for Wire {
        fn next(&mut self) -> Next<'_> {
            self.at += 1;
            self.comes.get(self.at - 1).map_or(Next::None, |frame| Next::Frame(frame))
        }

        fn take(&mut self, frame: &[u8]) -> bool {
            let mut sent = self.sent.lock().unwrap();
            let has_room = sent.len() < self.room;
            if has_room {
                sent.push(frame.to_vec());
            }
            has_room
        }
    }

    type Frames = Vec<Vec<u8>>;

    fn port(comes: Frames, room: usize) -> (FcsPort<MemoryPort<Wire>>, Arc<Mutex<Frames>>) {
        let sent = Arc::default();
        let wire = Wire { comes, at: 0, sent: Arc::clone(&sent), room };
        (FcsPort::new(MemoryPort::new(wire)), sent)
    }

    /// The check value of CRC-32, "123456789", as frames carry it.
    #[test]
    fn the_check_sequence_is_that_of_ethernet() {
        assert_eq!(fcs(b"123456789"), [0x26, 0x39, 0xf4, 0xcb]);
    }

    #[test]
    fn frames_are_checked_stripped_and_counted() {
        let right = |frame: &[u8]| [frame, &fcs(frame)].concat();
        let mut wrong = right(&[7; 60]);
        wrong[9] ^= 1;
        let (mut port, _) = port(vec![right(&[1; 60]), wrong, right(&[2; 61]), vec![1, 2, 3], right(&[])], 0);
        let (mut pool, mut batch) = (PacketPool::new(8), Batch::new());
        assert_eq!(Around::receive(&mut port, &mut batch, &mut pool).unwrap(), Received::More);
        let frames: Vec<&[u8]> = batch.packets().iter().map(Packet::data).collect();
        assert_eq!(frames, [&[1; 60][..], &[2; 61]]);
        let counted = Around::statistics(&port);
        assert_eq!((counted.rx_packets, counted.rx_bytes, counted.rx_errors), (2, 121, 3));
        assert_eq!(pool.available(), 6, "packets of wrong frames are free");
    }

    #[test]
    fn frames_are_sent_with_a_check_sequence_and_refused_as_they_were() {
        let (mut port, sent) = port(Vec::new(), 1);
        let (mut pool, mut batch) = (PacketPool::new(8), Batch::new());
        for frame in [vec![1; 60], vec![2; 60], vec![3; MAX_FRAME]] {
            batch.add(&mut pool).unwrap().set_frame(&frame).unwrap();
        }
        let done = Around::transmit(&mut port, &mut batch, &mut pool).unwrap();
        assert_eq!((done.sent, done.refused), (1, batch.len()));
        assert_eq!(*sent.lock().unwrap(), [[&[1; 60][..], &fcs(&[1; 60])].concat()]);
        assert_eq!(batch.packets()[0].data(), [2; 60]);
        let counted = Around::statistics(&port);
        assert_eq!((counted.tx_packets, counted.tx_bytes), (1, 60));
    }

    #[test]
    fn the_option_is_found_anywhere() {
        assert_eq!(take("in.pcap,out.pcap,fcs=check"), ("in.pcap,out.pcap".to_owned(), true));
        assert_eq!(take(",out.pcap,fcs=check"), (",out.pcap".to_owned(), true));
        assert_eq!(take("in.pcap,fcs=checks"), ("in.pcap,fcs=checks".to_owned(), false));
    }
}
