//! Ports whose frames have their check sequences (FCS): it is verified and taken off, and made again for what is sent.
//!
//! The FCS of IEEE 802.3 is the CRC-32 of the frame, least significant byte first, after its last byte. A frame whose FCS is wrong is
//! dropped and counted as an error of the port. Programs never see it: the length of a packet is that of the frame without.
//!
//! A capture or a stream has them in its frames. The device of an interface verifies them itself and takes them off; many can leave
//! them on (`rx-fcs`), and receive frames whose FCS is wrong too (`rx-all`). Where one can, both are switched on for as long as the port is
//! open ([`LinkFcsDevice`]), and the port verifies. Where it cannot, the device's own counters say how many were wrong. It
//! makes the FCS of what is sent in either case.

use crate::around::Around;
use crate::device::Device;
use crate::link::LinkName;
use crate::link_features::SwitchedOn;
use crate::port::{PortError, PortStatistics, QueuePair, Received, Transmitted};
use millrace_frames::{Batch, MAX_BATCH, Packet, PacketPool};
use std::sync::Arc;

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
pub(crate) struct FcsPort {
    port: Box<dyn QueuePair>,
    /// What is sent gets one here, not by the device.
    makes: bool,
    /// Frames with a right and with a wrong FCS.
    right: u64,
    wrong: u64,
    wrong_bytes: u64,
}

impl FcsPort {
    pub(crate) fn new(port: Box<dyn QueuePair>) -> FcsPort {
        FcsPort { port, makes: true, right: 0, wrong: 0, wrong_bytes: 0 }
    }

    /// A port whose device makes the FCS of what is sent.
    fn that_receives(port: Box<dyn QueuePair>) -> FcsPort {
        FcsPort { makes: false, ..FcsPort::new(port) }
    }
}

/// Takes the FCS of a frame off; false when it is wrong, or all that there is.
fn strip(packet: &mut Packet) -> bool {
    let parts = packet.data().split_last_chunk::<FCS>();
    let right = parts.is_some_and(|(frame, found)| !frame.is_empty() && fcs(frame) == *found);
    right && packet.trim(FCS).is_ok()
}

impl Around for FcsPort {
    type Inner = dyn QueuePair;

    fn inner(&self) -> &dyn QueuePair {
        &*self.port
    }

    fn inner_mut(&mut self) -> &mut dyn QueuePair {
        &mut *self.port
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
        if !self.makes {
            return self.port.transmit(batch, pool);
        }
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
            tx_bytes: of_port.tx_bytes - if self.makes { FCS as u64 * of_port.tx_packets } else { 0 },
            // Of frames without an FCS nobody has counted the kinds.
            rx_kinds: Default::default(),
            tx_kinds: if self.makes { Default::default() } else { of_port.tx_kinds },
            ..of_port
        }
    }
}

/// What an interface does about check sequences.
#[derive(Debug)]
enum OfLink {
    /// Its frames come with them, for as long as this is there.
    LeavesThem {
        _fcs: SwitchedOn,
        /// None: its device drops frames whose FCS is wrong, and counts them.
        all: Result<SwitchedOn, String>,
    },
    /// Its device verifies them and takes them off; why.
    TakesThem(String),
}

impl OfLink {
    fn start(link: &LinkName) -> OfLink {
        match SwitchedOn::start(link, "rx-fcs") {
            Ok(fcs) => OfLink::LeavesThem { _fcs: fcs, all: SwitchedOn::start(link, "rx-all") },
            Err(reason) => OfLink::TakesThem(reason),
        }
    }

    fn remark(&self) -> String {
        match self {
            OfLink::LeavesThem { all: Ok(_), .. } => {
                "the port verifies check sequences, of all frames".to_owned()
            }
            OfLink::LeavesThem { all: Err(reason), .. } => {
                format!(
                    "the port verifies check sequences, and the device drops and counts frames that it finds wrong: {reason}"
                )
            }
            OfLink::TakesThem(reason) => {
                format!(
                    "the device verifies check sequences, and its counters say how many are wrong: {reason}"
                )
            }
        }
    }
}

/// A Linux interface whose frames are verified by the port where its device leaves them their FCS.
pub(crate) struct LinkFcsDevice {
    pub(crate) device: Box<dyn Device>,
    /// The name with its options.
    pub(crate) name: String,
    pub(crate) link: LinkName,
}

impl Device for LinkFcsDevice {
    fn name(&self) -> &str {
        &self.name
    }

    fn max_queues(&self) -> usize {
        self.device.max_queues()
    }

    fn open(self: Box<Self>, queues: usize) -> Result<Vec<Box<dyn QueuePair>>, PortError> {
        // First, so that no frame comes without one.
        let of_link = Arc::new(OfLink::start(&self.link.held_if_there()));
        let opened = self.device.open(queues)?.into_iter();
        Ok(opened.map(|port| of_link.around(port)).collect())
    }
}

impl OfLink {
    fn around(self: &Arc<Self>, port: Box<dyn QueuePair>) -> Box<dyn QueuePair> {
        let port: Box<dyn QueuePair> = match **self {
            OfLink::LeavesThem { .. } => Box::new(FcsPort::that_receives(port)),
            OfLink::TakesThem(_) => port,
        };
        Box::new(Remarking { port, of_link: Arc::clone(self) })
    }
}

/// A queue pair that says what its interface does about check sequences.
struct Remarking {
    // Before the features are as they were, nothing is received any more.
    port: Box<dyn QueuePair>,
    of_link: Arc<OfLink>,
}

impl Around for Remarking {
    type Inner = dyn QueuePair;

    fn inner(&self) -> &dyn QueuePair {
        &*self.port
    }

    fn inner_mut(&mut self) -> &mut dyn QueuePair {
        &mut *self.port
    }

    fn remark(&self) -> Option<String> {
        let of_port = self.port.remark().into_iter();
        Some(of_port.chain([self.of_link.remark()]).collect::<Vec<_>>().join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory_port::{FarEnd, MemoryPort, Next};
    use crate::netns::{in_fresh_namespace, veth_pair};
    use crate::testing::{frame, send};
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

    fn port(comes: Frames, room: usize) -> (FcsPort, Arc<Mutex<Frames>>) {
        let sent = Arc::default();
        let wire = Wire { comes, at: 0, sent: Arc::clone(&sent), room };
        (FcsPort::new(Box::new(MemoryPort::new(wire))), sent)
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

    /// As of an interface whose device leaves frames their FCS, and makes that of what is sent.
    #[test]
    fn a_port_of_an_interface_takes_check_sequences_off_and_sends_none() {
        let mut wrong = [&[7; 60][..], &fcs(&[7; 60])].concat();
        wrong[63] ^= 0x80;
        let comes = vec![[&[1; 60][..], &fcs(&[1; 60])].concat(), wrong];
        let sent: Arc<Mutex<Frames>> = Arc::default();
        let wire = Wire { comes, at: 0, sent: Arc::clone(&sent), room: 2 };
        let mut port = FcsPort::that_receives(Box::new(MemoryPort::new(wire)));
        let (mut pool, mut batch) = (PacketPool::new(8), Batch::new());
        Around::receive(&mut port, &mut batch, &mut pool).unwrap();
        assert_eq!(batch.packets().iter().map(Packet::data).collect::<Vec<_>>(), [[1; 60]]);
        let done = Around::transmit(&mut port, &mut batch, &mut pool).unwrap();
        assert_eq!((done.sent, done.refused, sent.lock().unwrap().clone()), (1, 0, vec![vec![1; 60]]));
        let counted = Around::statistics(&port);
        assert_eq!((counted.rx_packets, counted.rx_bytes, counted.rx_errors), (1, 60, 1));
        assert_eq!((counted.tx_packets, counted.tx_bytes), (1, 60));
    }

    #[test]
    fn an_interface_that_cannot_leave_them_says_so_and_forwards() {
        in_fresh_namespace("an_interface_that_cannot_leave_them_says_so_and_forwards", || {
            veth_pair("va", "vb");
            let open = |text: &str| crate::open::open(&text.parse().unwrap());
            let mut checked = open("packet:va,fcs=check,promisc=off,allow=02:00:00:00:00:09").unwrap();
            let remark = checked.remark().unwrap();
            let wanted = "the device verifies check sequences, and its counters say how many are wrong: its device cannot do `rx-fcs`";
            // After what the driver says of the interface.
            assert!(remark.ends_with(wanted), "{remark}");
            let mut other = open("packet:vb").unwrap();
            assert!(other.remark().is_none_or(|remark| !remark.contains("check sequences")));
            let mut pool = PacketPool::new(64);
            let frames = [frame(1, 100)];
            assert_eq!(send(&mut *checked, &mut pool, &frames).sent, 1);
            let mut batch = Batch::new();
            for _ in 0..1000 {
                other.receive(&mut batch, &mut pool).unwrap();
                if !batch.is_empty() {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            assert_eq!(batch.packets().iter().map(Packet::data).collect::<Vec<_>>(), [&frames[0][..]]);
            assert!(open("packet:gone,fcs=check").err().unwrap().to_string().contains("gone"));
        });
    }

    #[test]
    fn the_option_is_found_anywhere() {
        assert_eq!(take("in.pcap,out.pcap,fcs=check"), ("in.pcap,out.pcap".to_owned(), true));
        assert_eq!(take(",out.pcap,fcs=check"), (",out.pcap".to_owned(), true));
        assert_eq!(take("in.pcap,fcs=checks"), ("in.pcap,fcs=checks".to_owned(), false));
    }
}
