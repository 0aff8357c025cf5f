//! The `tap` driver: a tap interface that is made for the switch and goes with it.
//!
//! The kernel finishes checksums and segmentation and puts VLAN tags back before a frame is read here. One system call
//! a frame: this driver is for a few hosts on one machine, not for speed. A persistent tap interface of the name is
//! used as it is.

use crate::link::LinkName;
use crate::port::{Port, PortError, PortStatistics, Received, TimeSource, Transmitted, wall_clock_ns};
use millrace_frames::{Batch, PacketPool};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, IoSliceMut, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;

/// A port over a tap interface.
pub struct TapPort {
    name: LinkName,
    device: File,
    statistics: PortStatistics,
}

impl TapPort {
    /// Makes the tap interface and brings it up.
    ///
    /// # Errors
    /// [`PortError`]: not an interface name, not allowed, or the name is taken by another interface.
    pub fn open(name: &str) -> Result<TapPort, PortError> {
        let name = LinkName::new("tap", name)?;
        let device = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/net/tun")
            .map_err(|error| PortError::system("open /dev/net/tun", error))?;
        let refused = |what: &str, error| {
            PortError::system(format!("{what} the tap interface {}", name.as_str()), error)
        };
        name.attach_tap(&device).map_err(|error| refused("make", error))?;
        name.bring_up().map_err(|error| refused("bring up", error))?;
        Ok(TapPort { name, device, statistics: PortStatistics::default() })
    }

    fn error(&self, what: &str, error: io::Error) -> PortError {
        PortError::system(format!("{what} {}", self.name.as_str()), error)
    }
}

/// Answers that concern one frame, or a while, and not the port: the queue is full, the interface is down (EIO), the
/// frame is too short for an Ethernet header or longer than the kernel takes.
fn refuses_frame(error: &io::Error) -> bool {
    error.kind() == ErrorKind::WouldBlock
        || matches!(
            error.raw_os_error(),
            Some(libc::EIO | libc::EINVAL | libc::ENOBUFS | libc::ENOMEM | libc::EMSGSIZE | libc::EINTR)
        )
}

impl Port for TapPort {
    fn receive(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Received, PortError> {
        let mut now_ns = None;
        while !batch.is_full() {
            let Some(mut packet) = pool.take() else { return Ok(Received::More) };
            // One byte more than a frame may have tells a longer one.
            let mut excess = [0];
            let device = &mut self.device;
            let read = packet.fill(|frame| {
                device.read_vectored(&mut [IoSliceMut::new(frame), IoSliceMut::new(&mut excess)])
            });
            match read {
                Ok(true) => {
                    self.statistics.rx_packets += 1;
                    self.statistics.rx_bytes += packet.len() as u64;
                    packet.timestamp_ns = *now_ns.get_or_insert_with(wall_clock_ns);
                    if let Err(packet) = batch.push(packet) {
                        pool.put(packet);
                    }
                }
                Ok(false) => {
                    self.statistics.rx_errors += 1;
                    pool.put(packet);
                }
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
            }
        }
        Ok(Received::More)
    }

    fn transmit(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Transmitted, PortError> {
        let before = batch.len();
        let mut broken = None;
        batch.recycle_if(pool, |packet| {
            if broken.is_some() {
                return false;
            }
            match self.device.write(packet.data()) {
                Ok(_) => {
                    self.statistics.tx_packets += 1;
                    self.statistics.tx_bytes += packet.len() as u64;
                    true
                }
                Err(error) if refuses_frame(&error) => {
                    self.statistics.tx_refused += 1;
                    false
                }
                Err(error) => {
                    broken = Some(error);
                    false
                }
            }
        });
        match broken {
            Some(error) => Err(self.error("send to", error)),
            None => Ok(Transmitted { sent: before - batch.len(), refused: batch.len() }),
        }
    }

    fn flush(&mut self) -> Result<(), PortError> {
        Ok(())
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
    use crate::netns::{in_fresh_namespace, ip};
    use millrace_frames::Packet;
    use std::net::UdpSocket;
    use std::time::{Duration, Instant};

    /// Receives until a frame is there that is wanted, or fails after a second.
    fn receive(port: &mut TapPort, pool: &mut PacketPool, wanted: impl Fn(&[u8]) -> bool) -> Vec<u8> {
        let deadline = Instant::now() + Duration::from_secs(1);
        let mut batch = Batch::new();
        loop {
            port.receive(&mut batch, pool).unwrap();
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
            let mut port = TapPort::open("mr0").unwrap();
            ip("addr add 10.7.0.1/24 dev mr0");
            ip("neigh add 10.7.0.2 lladdr 02:00:00:00:00:02 dev mr0");
            let mut pool = PacketPool::new(100);
            let socket = UdpSocket::bind("10.7.0.1:7").unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
            socket.send_to(b"hello", "10.7.0.2:9").unwrap();
            let mut frame = receive(&mut port, &mut pool, |frame| frame.ends_with(b"hello"));
            assert_eq!((frame.len(), &frame[..6]), (14 + 20 + 8 + 5, &[2, 0, 0, 0, 0, 2][..]));

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
    fn errors_name_the_interface() {
        in_fresh_namespace("errors_name_the_interface", || {
            let taken = match TapPort::open("lo") {
                Ok(_) => panic!("lo opened"),
                Err(error) => error.to_string(),
            };
            assert!(taken.starts_with("cannot make the tap interface lo: "), "{taken}");
        });
    }
}
