//! The `tap` driver: a tap interface that is made for the switch and goes with it.
//!
//! One system call a frame: this driver is for a few hosts on one machine, not for speed. What a sender on this machine
//! leaves to the hardware (checksums, segmentation of TCP and UDP) crosses in one piece of up to 64 KiB, and is finished
//! here as in the `packet` driver; what was cut leaves in large frames again, as there. The kernel puts VLAN tags back before a frame is read.
//!
//! A persistent tap interface of the name is used as it is, and its senders finish their frames themselves. For several
//! queue pairs it has to be one of several queues (`multi_queue` of `ip tuntap`).
//!
//! With several queue pairs the kernel gives the frames of a flow to the pair that last sent a frame of it, so that both directions are
//! with one worker; to any one, always the same, while none has.

use crate::device::{Device, MAX_QUEUES, check_queues};
use crate::link::LinkName;
use crate::offload::{Cutter, Cutting, HEADER_LEN, Offload, Segmentation, join};
use crate::port::{
    PortError, PortStatistics, QueuePair, Received, TimeSource, Transmitted, deliver, wall_clock_ns,
};
use millrace_frames::{Batch, MAX_BATCH, Packet, PacketPool};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;

/// A tap interface.
pub struct TapDevice {
    /// `tap:` and the interface.
    name: String,
    link: LinkName,
}

/// A queue pair of a tap interface.
#[repr(align(128))]
struct TapQueue {
    name: LinkName,
    device: File,
    large: Cutter,
    statistics: PortStatistics,
}

impl TapDevice {
    /// The tap interface of this name.
    ///
    /// # Errors
    /// [`PortError::Arguments`] when that is not an interface name.
    pub fn new(name: &str) -> Result<TapDevice, PortError> {
        Ok(TapDevice { name: format!("tap:{name}"), link: LinkName::new("tap", name)? })
    }

    /// Makes the tap interface with so many queue pairs and brings it up.
    fn queues(&self, queues: usize) -> Result<Vec<TapQueue>, PortError> {
        check_queues(self, queues)?;
        let with = if queues == 1 { String::new() } else { format!(" with {queues} queues") };
        let refused = |what: &str, error| {
            PortError::system(format!("{what} the tap interface {}{with}", self.link.as_str()), error)
        };
        let mut opened = Vec::with_capacity(queues);
        for _ in 0..queues {
            let device = OpenOptions::new()
                .read(true)
                .write(true)
                .custom_flags(libc::O_NONBLOCK)
                .open("/dev/net/tun")
                .map_err(|error| PortError::system("open /dev/net/tun", error))?;
            // A persistent interface has the flag or has it not, and is refused to who asks for the other kind.
            self.link.attach_tap(&device, queues > 1).map_err(|error| refused("make", error))?;
            opened.push(TapQueue {
                name: self.link.clone(),
                device,
                large: Cutter::new(),
                statistics: PortStatistics::default(),
            });
        }
        if let Some(queue) = opened.first() {
            self.link.leave_offloads(&queue.device).map_err(|error| refused("set up", error))?;
        }
        self.link.bring_up().map_err(|error| refused("bring up", error))?;
        Ok(opened)
    }
}

impl Device for TapDevice {
    fn name(&self) -> &str {
        &self.name
    }

    fn max_queues(&self) -> usize {
        MAX_QUEUES
    }

    fn open(self: Box<Self>, queues: usize) -> Result<Vec<Box<dyn QueuePair>>, PortError> {
        let opened = self.queues(queues)?;
        Ok(opened.into_iter().map(|queue| Box::new(queue) as Box<dyn QueuePair>).collect())
    }
}

/// What became of a frame that was read.
enum Taken {
    Packet,
    Large(Segmentation, Range<usize>),
    Error,
}

impl TapQueue {
    /// Reads a frame into the packet, or to `large` if it is to be cut.
    fn read(&mut self, packet: &mut Packet) -> io::Result<Taken> {
        let mut header = [0; HEADER_LEN];
        let (device, buffer) = (&mut self.device, self.large.buffer());
        let mut length = 0;
        let fits = packet.fill(|frame| {
            // What the packet has no room for goes to the buffer, where its beginning finds room too.
            let room = frame.len().min(buffer.len());
            let (start, rest) = buffer.split_at_mut(room);
            let limit = frame.len() + rest.len();
            let mut places = [&mut header[..], &mut *frame, rest].map(IoSliceMut::new);
            length = device.read_vectored(&mut places)?.saturating_sub(HEADER_LEN);
            // Of a frame that fills all there may be more.
            if length == limit {
                length = 0;
            }
            if Offload::parse(&header).is_segmented() {
                let first = length.min(room);
                start[..first].copy_from_slice(&frame[..first]);
            }
            io::Result::Ok(length)
        })?;
        let offload = Offload::parse(&header);
        if !offload.is_segmented() {
            let finished = fits && length > 0 && offload.finish_checksum(packet.data_mut());
            return Ok(if finished { Taken::Packet } else { Taken::Error });
        }
        let frame = buffer.get(..length).unwrap_or_default();
        let plan = Segmentation::plan(&offload, frame);
        Ok(plan.map_or(Taken::Error, |plan| Taken::Large(plan, 0..length)))
    }

    /// Writes the first frames that can leave as one, and says how many they were; none: they do not.
    fn write_joined(&mut self, packets: &[Packet]) -> Option<usize> {
        let joined = join(packets)?;
        let (pieces, count) = joined.pieces(packets);
        self.device.write_vectored(&pieces[..count]).ok().map(|_| joined.frames)
    }

    /// Writes one frame, and says that it was one.
    fn write(&mut self, packet: &Packet) -> io::Result<usize> {
        self.device.write_vectored(&[NOTHING_LEFT, packet.data()].map(IoSlice::new)).map(|_| 1)
    }

    fn error(&self, what: &str, error: io::Error) -> PortError {
        PortError::system(format!("{what} {}", self.name.as_str()), error)
    }
}

/// The shortest frame that the kernel takes.
const ETHERNET_HEADER: usize = 14;
/// The offload header of a frame that is whole.
const NOTHING_LEFT: &[u8] = &[0; HEADER_LEN];

/// Answers that concern one frame, or a while, and not the port: the queue is full, the interface is down (EIO), the
/// frame is too short for an Ethernet header or longer than the kernel takes.
fn refuses_frame(error: &io::Error) -> bool {
    error.kind() == ErrorKind::WouldBlock
        || matches!(
            error.raw_os_error(),
            Some(libc::EIO | libc::EINVAL | libc::ENOBUFS | libc::ENOMEM | libc::EMSGSIZE | libc::EINTR)
        )
}

impl QueuePair for TapQueue {
    fn receive(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Received, PortError> {
        loop {
            if !self.large.cut(batch, pool, &mut self.statistics) || batch.is_full() {
                return Ok(Received::More);
            }
            let Some(mut packet) = pool.take() else { return Ok(Received::More) };
            let taken = match self.read(&mut packet) {
                Ok(taken) => taken,
                Err(error) => {
                    pool.put(packet);
                    return match error.kind() {
                        ErrorKind::WouldBlock => Ok(Received::Idle),
                        ErrorKind::Interrupted => Ok(Received::More),
                        // The interface is down, and may come up again.
                        _ if error.raw_os_error() == Some(libc::EIO) => Ok(Received::Idle),
                        _ => Err(self.error("receive from", error)),
                    };
                }
            };
            // Next to a system call a reading costs nothing.
            let timestamp_ns = wall_clock_ns();
            match taken {
                Taken::Packet => {
                    packet.timestamp_ns = timestamp_ns;
                    deliver(packet, batch, pool, &mut self.statistics);
                }
                Taken::Large(plan, place) => {
                    self.large.start(Cutting { plan, place, vlan: None, timestamp_ns });
                    pool.put(packet);
                }
                Taken::Error => {
                    self.statistics.rx_errors += 1;
                    pool.put(packet);
                }
            }
        }
    }

    fn transmit(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Transmitted, PortError> {
        let (before, packets) = (batch.len(), batch.packets());
        let (mut sent, mut at, mut result) = ([false; MAX_BATCH], 0, Ok(()));
        while at < packets.len() && result.is_ok() {
            // Those that leave as one frame, or one that leaves alone.
            match self.write_joined(&packets[at..]).map_or_else(|| self.write(&packets[at]), Ok) {
                Ok(frames) => {
                    packets[at..at + frames].iter().for_each(|packet| self.statistics.sent(packet.data()));
                    sent[at..at + frames].fill(true);
                    at += frames;
                }
                Err(error) if refuses_frame(&error) => {
                    self.statistics.tx_refused += 1;
                    at += 1;
                }
                Err(error) => result = Err(self.error("send to", error)),
            }
        }
        let mut sent = sent.into_iter();
        batch.recycle_if(pool, |_| sent.next() == Some(true));
        result.map(|()| Transmitted { sent: before - batch.len(), refused: batch.len() })
    }

    fn flush(&mut self) -> Result<(), PortError> {
        Ok(())
    }

    fn takes_length(&self, length: usize) -> bool {
        length >= ETHERNET_HEADER
    }

    fn poll_fd(&self) -> Option<RawFd> {
        Some(self.device.as_raw_fd())
    }

    fn time_source(&self) -> TimeSource {
        TimeSource::Wall
    }

    fn next_arrival_ns(&mut self) -> Option<u64> {
        None
    }

    fn statistics(&self) -> PortStatistics {
        self.statistics
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netns::{Host, cross_connect, exchange, frames_received, in_fresh_namespace, ip};
    use std::net::UdpSocket;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    /// Receives until a frame is there that is wanted, or fails after a second.
    fn receive(ports: &mut [TapQueue], pool: &mut PacketPool, wanted: impl Fn(&[u8]) -> bool) -> Vec<u8> {
        let deadline = Instant::now() + Duration::from_secs(1);
        let mut batch = Batch::new();
        loop {
            for port in &mut *ports {
                port.receive(&mut batch, pool).unwrap();
            }
            for packet in batch.packets() {
                assert!(packet.timestamp_ns > 1_700_000_000_000_000_000);
                if wanted(packet.data()) {
                    return packet.data().to_vec();
                }
            }
            batch.recycle(pool);
            assert!(Instant::now() < deadline, "the frame does not come");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn the_kernel_and_the_switch_exchange_frames() {
        in_fresh_namespace("the_kernel_and_the_switch_exchange_frames", || {
            let mut ports = TapDevice::new("mr0").unwrap().queues(1).unwrap();
            ip("addr add 10.7.0.1/24 dev mr0");
            ip("neigh add 10.7.0.2 lladdr 02:00:00:00:00:02 dev mr0");
            let mut pool = PacketPool::new(100);
            let socket = UdpSocket::bind("10.7.0.1:7").unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
            socket.send_to(b"hello", "10.7.0.2:9").unwrap();
            let mut frame = receive(&mut ports, &mut pool, |frame| frame.ends_with(b"hello"));
            assert_eq!((frame.len(), &frame[..6]), (14 + 20 + 8 + 5, &[2, 0, 0, 0, 0, 2][..]));

            let port = &mut ports[0];
            // Back to the sender: addresses and ports swapped, which leaves all checksums right.
            let swap = |frame: &mut [u8], one: usize, other: usize, length: usize| {
                (0..length).for_each(|at| frame.swap(one + at, other + at));
            };
            swap(&mut frame, 0, 6, 6);
            swap(&mut frame, 26, 30, 4);
            swap(&mut frame, 34, 36, 2);
            let mut batch = Batch::new();
            for content in [&frame[..], &[0; 13]] {
                batch.push(Packet::from_frame(content).unwrap()).unwrap();
            }
            let transmitted = port.transmit(&mut batch, &mut pool).unwrap();
            assert_eq!(transmitted, Transmitted { sent: 1, refused: 1 });
            assert_eq!(batch.packets()[0].len(), 13, "the short frame is given back");
            let mut answer = [0; 16];
            let (length, from) = socket.recv_from(&mut answer).unwrap();
            assert_eq!((&answer[..length], from.to_string().as_str()), (&b"hello"[..], "10.7.0.2:9"));
            assert_eq!((port.statistics().tx_packets, port.statistics().tx_refused), (1, 1));

            ip("link set mr0 down");
            batch.recycle(&mut pool);
            batch.push(Packet::from_frame(&frame).unwrap()).unwrap();
            assert_eq!(port.transmit(&mut batch, &mut pool).unwrap().refused, 1);
            assert_eq!(port.receive(&mut Batch::new(), &mut pool).unwrap(), Received::Idle);
        });
    }

    #[test]
    fn hosts_leave_checksums_and_segmentation_to_the_switch() {
        hosts_talk("hosts_leave_checksums", |name| TapDevice::new(name).unwrap(), true);
    }

    #[test]
    fn senders_on_a_persistent_interface_finish_their_frames() {
        let persistent = |name: &str| {
            ip(&format!("tuntap add dev {name} mode tap"));
            TapDevice::new(name).unwrap()
        };
        hosts_talk("senders_on_a_persistent_interface", persistent, false);
    }

    /// Two hosts with a tap interface each, and a wire between these. Frames come larger than a cable takes them, or not.
    fn hosts_talk(test: &str, device: impl Fn(&str) -> TapDevice + Send + 'static, come_large: bool) {
        in_fresh_namespace(test, move || {
            let (client, server) = (Host::new(), Host::new());
            let queues = ["mr0", "mr1"].map(|name| device(name).queues(1).unwrap().remove(0));
            for (host, number) in [(&client, 1), (&server, 2)] {
                let interface = format!("mr{}", number - 1);
                host.adopt(&interface, &format!("fd00::{number}/64"));
                host.start(move || ip(&format!("addr add 10.8.0.{number}/24 dev {interface}"))).wait();
            }
            let stop = Arc::new(AtomicBool::new(false));
            let wire = std::thread::spawn({
                let stop = Arc::clone(&stop);
                move || {
                    let mut is_large = false;
                    let seen = |queue: &TapQueue| is_large |= queue.large.is_cutting();
                    (cross_connect(queues, 1514, seen, &stop), is_large)
                }
            });
            exchange(&client, &server);
            let received = frames_received(&server, "mr1");
            stop.store(true, Ordering::Relaxed);
            let ((statistics, longest), is_large) = wire.join().unwrap();
            for port in statistics {
                assert_eq!(port.rx_errors, 0, "{statistics:?}");
            }
            assert_eq!((longest, is_large), (1514, come_large));
            // What was cut leaves in large frames again, and nothing else does.
            let sent = statistics[1].tx_packets;
            assert_eq!(received < sent / 2, come_large, "{sent} frames of a cable, {received} of the link");
        });
    }

    #[test]
    fn queue_pairs_share_the_flows() {
        in_fresh_namespace("queue_pairs_share_the_flows", || {
            const FLOWS: usize = 200;
            let mut queues = TapDevice::new("mr0").unwrap().queues(2).unwrap();
            ip("addr add 10.7.0.1/24 dev mr0");
            ip("neigh add 10.7.0.2 lladdr 02:00:00:00:00:02 dev mr0");
            let mut pool = PacketPool::new(100);
            let sockets: Vec<UdpSocket> =
                (0..FLOWS).map(|_| UdpSocket::bind("10.7.0.1:0").unwrap()).collect();
            let mut places = vec![None; FLOWS];
            for round in 0..3u8 {
                for (flow, socket) in sockets.iter().enumerate() {
                    socket.send_to(&[b'f', round, flow as u8], "10.7.0.2:9").unwrap();
                }
                let mut arrived = Vec::new();
                for (number, queue) in queues.iter_mut().enumerate() {
                    let mut batch = Batch::new();
                    while queue.receive(&mut batch, &mut pool).unwrap() == Received::More || !batch.is_empty()
                    {
                        let data = batch.packets().iter().filter_map(|packet| packet.data().get(42..45));
                        arrived.extend(
                            data.filter(|data| data[..2] == [b'f', round]).map(|data| (data[2], number)),
                        );
                        batch.recycle(&mut pool);
                    }
                }
                arrived.sort_unstable();
                let flows: Vec<u8> = arrived.iter().map(|(flow, _)| *flow).collect();
                assert_eq!(flows, (0..FLOWS as u8).collect::<Vec<_>>(), "each frame of round {round} once");
                for (flow, number) in arrived {
                    assert_eq!(*places[usize::from(flow)].get_or_insert(number), number, "flow {flow}");
                }
            }
            for number in 0..2 {
                let flows = places.iter().filter(|place| **place == Some(number)).count();
                assert!(flows > 20, "{flows} flows at queue {number}");
            }

            // Each sends: a question for the address of mr0 is answered.
            for number in 0..2 {
                #[rustfmt::skip]
                let question = [
                    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 2, 0x08, 0x06, 0, 1, 0x08, 0, 6, 4, 0, 1,
                    2, 0, 0, 0, 0, 2, 10, 7, 0, 2, 0, 0, 0, 0, 0, 0, 10, 7, 0, 1,
                ];
                let mut batch = Batch::new();
                batch.push(Packet::from_frame(&question).unwrap()).unwrap();
                assert_eq!(queues[number].transmit(&mut batch, &mut pool).unwrap().sent, 1);
                let is_answer = |frame: &[u8]| frame[12..14] == [0x08, 0x06] && frame[20..22] == [0, 2];
                receive(&mut queues, &mut pool, is_answer);
            }
        });
    }

    #[test]
    fn a_persistent_interface_of_one_queue_opens_to_one() {
        in_fresh_namespace("a_persistent_interface_of_one_queue", || {
            ip("tuntap add dev mr0 mode tap");
            let device = TapDevice::new("mr0").unwrap();
            assert_eq!(device.queues(1).unwrap().len(), 1);
            let error = device.queues(2).err().unwrap().to_string();
            assert!(error.starts_with("cannot make the tap interface mr0 with 2 queues: "), "{error}");
            ip("tuntap add dev mr1 mode tap multi_queue");
            assert_eq!(TapDevice::new("mr1").unwrap().queues(3).unwrap().len(), 3);
        });
    }

    #[test]
    fn errors_name_the_interface() {
        in_fresh_namespace("errors_name_the_interface", || {
            let taken = match TapDevice::new("lo").unwrap().queues(1) {
                Ok(_) => panic!("lo opened"),
                Err(error) => error.to_string(),
            };
            assert!(taken.starts_with("cannot make the tap interface lo: "), "{taken}");
        });
    }
}
