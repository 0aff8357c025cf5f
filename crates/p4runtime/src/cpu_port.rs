//! The port of the controller: what the switch sends there becomes packet-ins, packet-outs come in there.
//!
//! Both directions are queues of bounded length. A full one refuses the packet, which is counted as at any port; nobody waits.

use millrace_drivers::{FarEnd, MemoryPort, Next};
use millrace_frames::MAX_FRAME;
use std::fmt;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use tokio::sync::mpsc;

/// Most packets that wait for the switch, and most that wait for the controller.
pub const CPU_QUEUE: usize = 1024;

/// The switch's end.
pub type CpuPort = MemoryPort<ToController>;

/// What a [`CpuPort`] works with.
#[derive(Debug)]
pub struct ToController {
    incoming: Receiver<Vec<u8>>,
    /// The frame taken from `incoming` last.
    received: Vec<u8>,
    outgoing: FromSwitch,
    awake: UnixStream,
    signalled: Arc<AtomicBool>,
}

/// The other end: frames go in to the switch, and come from it.
#[derive(Debug)]
pub struct CpuLink {
    pub(crate) sender: CpuSender,
    pub(crate) frames: mpsc::Receiver<Vec<u8>>,
}

/// Hands frames to the switch.
pub(crate) type CpuSender = Arc<dyn ToSwitch>;

/// How frames of a controller get into a switch.
pub trait ToSwitch: fmt::Debug + Send + Sync {
    /// Hands one over, without waiting.
    ///
    /// # Errors
    /// [`SendError`].
    fn send(&self, frame: Vec<u8>) -> Result<(), SendError>;
}

/// Takes frames of a switch for its controller.
#[derive(Clone, Debug)]
pub struct FromSwitch(mpsc::Sender<Vec<u8>>);

/// Hands frames to a [`CpuPort`].
#[derive(Debug)]
struct ToCpuPort {
    frames: SyncSender<Vec<u8>>,
    wake: UnixStream,
    signalled: Arc<AtomicBool>,
}

/// Why a frame was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// [`CPU_QUEUE`] frames wait already.
    Full,
    /// It has more than [`MAX_FRAME`] bytes.
    TooLong,
    /// The switch has ended.
    Ended,
}

/// Both ends of a port.
///
/// # Errors
/// What the operating system says to a pair of sockets.
pub fn cpu_port() -> io::Result<(CpuPort, CpuLink)> {
    let (awake, wake) = UnixStream::pair()?;
    for end in [&awake, &wake] {
        end.set_nonblocking(true)?;
    }
    let (to_switch, incoming) = sync_channel(CPU_QUEUE);
    let signalled = Arc::new(AtomicBool::new(false));
    let sender = ToCpuPort { frames: to_switch, wake, signalled: Arc::clone(&signalled) };
    let (link, outgoing) = CpuLink::over(Arc::new(sender));
    let far_end = ToController { incoming, received: Vec::new(), outgoing, awake, signalled };
    Ok((MemoryPort::new(far_end), link))
}

impl FromSwitch {
    /// Takes a frame, if there is room for it.
    pub fn take(&self, frame: &[u8]) -> bool {
        // Without room there is no copy.
        self.0.try_reserve().map(|room| room.send(frame.to_vec())).is_ok()
    }
}

impl CpuLink {
    /// Of a port that is somebody else's: frames of the controller go there, and what takes those of the switch.
    pub fn over(sender: Arc<dyn ToSwitch>) -> (CpuLink, FromSwitch) {
        let (outgoing, frames) = mpsc::channel(CPU_QUEUE);
        (CpuLink { sender, frames }, FromSwitch(outgoing))
    }

    /// Hands a frame to the switch.
    ///
    /// # Errors
    /// [`SendError`].
    pub fn send(&self, frame: Vec<u8>) -> Result<(), SendError> {
        self.sender.send(frame)
    }

    /// Waits for the next frame of the switch; none when it has ended. Not for use where tokio runs.
    pub fn receive(&mut self) -> Option<Vec<u8>> {
        self.frames.blocking_recv()
    }

    /// As [`CpuLink::receive`], where tokio runs.
    pub async fn receive_async(&mut self) -> Option<Vec<u8>> {
        self.frames.recv().await
    }
}

impl ToSwitch for ToCpuPort {
    fn send(&self, frame: Vec<u8>) -> Result<(), SendError> {
        if frame.len() > MAX_FRAME {
            return Err(SendError::TooLong);
        }
        self.frames.try_send(frame).map_err(|error| match error {
            TrySendError::Full(_) => SendError::Full,
            TrySendError::Disconnected(_) => SendError::Ended,
        })?;
        // One signal until the switch has seen it.
        if !self.signalled.swap(true, Ordering::AcqRel) {
            let _ = (&self.wake).write(&[1]);
        }
        Ok(())
    }
}

impl FarEnd for ToController {
    fn asked(&mut self) {
        if self.signalled.swap(false, Ordering::AcqRel) {
            let mut signals = [0; 64];
            while self.awake.read(&mut signals).is_ok_and(|read| read > 0) {}
        }
    }

    fn next(&mut self) -> Next<'_> {
        match self.incoming.try_recv() {
            Ok(frame) => {
                self.received = frame;
                Next::Frame(&self.received)
            }
            Err(_) => Next::None,
        }
    }

    fn take(&mut self, frame: &[u8]) -> bool {
        self.outgoing.take(frame)
    }

    fn poll_fd(&self) -> Option<RawFd> {
        Some(self.awake.as_raw_fd())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_drivers::{QueuePair, Received, wait_readable};
    use millrace_frames::{Batch, Packet, PacketPool};
    use std::time::Duration;

    #[test]
    fn frames_go_both_ways_and_full_queues_refuse() {
        let (mut port, mut link) = cpu_port().unwrap();
        let mut pool = PacketPool::new(200);
        let mut batch = Batch::new();
        assert_eq!(port.receive(&mut batch, &mut pool).unwrap(), Received::Idle);
        link.send(vec![1; 60]).unwrap();
        assert!(wait_readable(&[port.poll_fd().unwrap()], Some(Duration::ZERO)).is_ok());
        assert_eq!(port.receive(&mut batch, &mut pool).unwrap(), Received::Idle);
        assert_eq!(batch.packets()[0].data(), [1; 60]);
        batch.recycle(&mut pool);
        for _ in 0..CPU_QUEUE {
            link.send(vec![2; 60]).unwrap();
        }
        assert_eq!(link.send(vec![2; 60]), Err(SendError::Full));
        assert_eq!(link.send(vec![2; MAX_FRAME + 1]), Err(SendError::TooLong));

        let mut refused = 0;
        for _ in 0..CPU_QUEUE / 64 + 1 {
            let mut batch = Batch::new();
            while batch.push(Packet::from_frame(&[3; 60]).unwrap()).is_ok() && !batch.is_full() {}
            refused = port.transmit(&mut batch, &mut pool).unwrap().refused;
        }
        assert_eq!((refused, port.statistics().tx_packets), (64, CPU_QUEUE as u64));
        assert_eq!(link.receive(), Some(vec![3; 60]));
    }
}
