//! A driver in one file: a port over a Unix datagram socket, one frame a datagram.
//!
//! It shows what a driver owes its worker ([`QueuePair`] has the rules):
//!
//! - It never waits. The socket does not block, and [`QueuePair::poll_fd`] gives the worker a descriptor to sleep on.
//! - It never loses a frame without counting it. A frame for which there is no packet stays in the socket; a frame that is
//!   longer than [`MAX_FRAME`] is dropped and counted; a frame that the socket refuses stays in the batch.
//! - It never looks inside a frame, and never allocates for a frame: packets come from the pool and go back to it.
//!
//!     cargo run -p millrace-drivers --example datagram_port

use millrace_drivers::{
    PortError, PortStatistics, QueuePair, Received, TimeSource, Transmitted, wall_clock_ns,
};
use millrace_frames::{Batch, MAX_FRAME, PacketPool};
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixDatagram;

/// A port whose cable is a pair of sockets.
pub struct DatagramPort {
    socket: UnixDatagram,
    /// One byte more than a frame may have, so that a datagram that is too long shows.
    datagram: Box<[u8; MAX_FRAME + 1]>,
    statistics: PortStatistics,
}

impl DatagramPort {
    /// A port over a connected socket.
    ///
    /// # Errors
    /// The system cannot make the socket non-blocking.
    pub fn new(socket: UnixDatagram) -> io::Result<DatagramPort> {
        socket.set_nonblocking(true)?;
        let datagram = Box::new([0; MAX_FRAME + 1]);
        Ok(DatagramPort { socket, datagram, statistics: PortStatistics::default() })
    }

    fn broken(action: &str, error: io::Error) -> PortError {
        PortError::System { action: format!("{action} the datagram socket"), error }
    }
}

impl QueuePair for DatagramPort {
    fn receive(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Received, PortError> {
        // All frames of one call have one time: a clock read for each would cost more than the frame.
        let now_ns = wall_clock_ns();
        while !batch.is_full() && pool.available() > 0 {
            let length = match self.socket.recv(&mut self.datagram[..]) {
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Received::Idle),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                // The other end of a pair was closed.
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(Received::End),
                Err(error) => return Err(Self::broken("read from", error)),
            };
            // There is room in the batch and a packet in the pool, so this always adds one.
            let Some(packet) = batch.add(pool) else { break };
            if packet.set_frame(&self.datagram[..length]).is_err() {
                self.statistics.rx_errors += 1;
                batch.give_last_back(pool);
                continue;
            }
            packet.timestamp_ns = now_ns;
            self.statistics.rx_packets += 1;
            self.statistics.rx_bytes += length as u64;
        }
        // The batch or the pool was the limit: the worker asks again before it sleeps.
        Ok(Received::More)
    }

    fn transmit(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Transmitted, PortError> {
        let mut sent = 0;
        let mut broken = None;
        for packet in batch.packets() {
            match self.socket.send(packet.data()) {
                Ok(_) => {
                    self.statistics.tx_bytes += packet.len() as u64;
                    sent += 1;
                }
                // The queue of the other end is full, or nobody is there any more: the worker drops the rest and counts it.
                Err(error) if is_refusal(&error) => break,
                Err(error) => {
                    broken = Some(Self::broken("write to", error));
                    break;
                }
            }
        }
        // Sent packets go back to the pool; the others stay in the batch, in order.
        batch.recycle_first(sent, pool);
        self.statistics.tx_packets += sent as u64;
        self.statistics.tx_refused += batch.len() as u64;
        match broken {
            Some(error) => Err(error),
            None => Ok(Transmitted { sent, refused: batch.len() }),
        }
    }

    fn flush(&mut self) -> Result<(), PortError> {
        // Each datagram went to the system at once; nothing waits here.
        Ok(())
    }

    fn poll_fd(&self) -> Option<RawFd> {
        Some(self.socket.as_raw_fd())
    }

    fn time_source(&self) -> TimeSource {
        TimeSource::Wall
    }

    fn next_arrival_ns(&mut self) -> Option<u64> {
        // Only ports that bring times of their own know the next one.
        None
    }

    fn statistics(&self) -> PortStatistics {
        self.statistics
    }
}

/// Whether the socket refuses one frame, rather than being broken for good.
fn is_refusal(error: &io::Error) -> bool {
    use ErrorKind::{ConnectionRefused, ConnectionReset, Interrupted, NotConnected, WouldBlock};
    matches!(error.kind(), WouldBlock | Interrupted | ConnectionRefused | ConnectionReset | NotConnected)
        || error.raw_os_error() == Some(libc::ENOBUFS)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (cable, far_end) = UnixDatagram::pair()?;
    let mut port = DatagramPort::new(cable)?;
    let (mut pool, mut batch) = (PacketPool::new(8), Batch::new());
    for number in 0..5u8 {
        far_end.send(&[number; 60])?;
    }
    // What a worker does in each round: take a batch, let the switch work on it, hand it on.
    port.receive(&mut batch, &mut pool)?;
    println!("{} frames came in", batch.len());
    port.transmit(&mut batch, &mut pool)?;
    port.flush()?;
    println!("{:?}", port.statistics());
    Ok(())
}
