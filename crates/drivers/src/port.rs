//! The trait of a queue pair, which every driver has.

use crate::kinds::{FrameKinds, Kind};
use crate::spec::nearest;
use millrace_frames::{Batch, MemoryError, Packet, PacketPool};
use std::any::Any;
use std::fmt;
use std::io;
use std::ops::AddAssign;
use std::os::fd::RawFd;
use std::time::{SystemTime, UNIX_EPOCH};

/// A receive queue and a transmit queue of a port: frames come in and go out. A pair belongs to one worker; nothing in it waits or
/// locks. A [`Device`](crate::Device) opens to one or several of them. Each is alone on its pairs of cache lines (`align(128)`): it is
/// written for each frame, and those of one device are made one after the other for different workers.
pub trait QueuePair: Any + Send {
    /// Adds frames that have arrived to the batch, up to its limit, in packets from the pool. It never waits.
    ///
    /// # Errors
    /// [`PortError`] when the port is broken for good. Frames added before stay in the batch.
    fn receive(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Received, PortError>;

    /// Hands the frames of the batch on, in order. Those sent go back to the pool; those refused, because the queue is
    /// full or the link does not take such a length, stay in the batch in order, to be dropped and counted by the
    /// caller. Frames may wait in the port until [`QueuePair::flush`].
    ///
    /// A port that sends frames from where they lie takes their packets out of the batch instead and keeps them until they
    /// have left ([`QueuePair::complete`]), at most [`QueuePair::max_kept`] at any time. It refuses a frame that would be one
    /// more.
    ///
    /// # Errors
    /// [`PortError`] when the port is broken for good. Frames not sent stay in the batch.
    fn transmit(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Transmitted, PortError>;

    /// Lets go of the frames that wait to be sent. To be called after the frames of a round were handed over.
    ///
    /// # Errors
    /// [`PortError`] when the port is broken for good.
    fn flush(&mut self) -> Result<(), PortError>;

    /// Gives the packets back whose frames have left, in any order: a transmit completion. A worker calls it once a round for
    /// a port that keeps packets. Packets of other pools may be among them, and find these themselves.
    fn complete(&mut self, _pool: &mut PacketPool) {}

    /// Most packets that the port keeps after [`QueuePair::transmit`], the same at any time: a worker has so many packets more.
    fn max_kept(&self) -> usize {
        0
    }

    /// Frames that were handed on and have not left the machine yet, as far as the port knows.
    fn in_flight(&mut self) -> usize {
        0
    }

    /// How the device was opened, where that could be otherwise; for whoever starts a switch.
    fn remark(&self) -> Option<String> {
        None
    }

    /// Whether the link is known to be down, so that frames are refused for that.
    fn is_link_down(&self) -> bool {
        false
    }

    /// Whether the link takes frames of this length, as far as is known: others are refused however long they wait.
    fn takes_length(&self, _length: usize) -> bool {
        true
    }

    /// A descriptor that polls readable when frames have arrived, for a worker with nothing to do; `None` for a port
    /// that never makes its worker wait.
    fn poll_fd(&self) -> Option<RawFd>;

    /// The clock of the port's receive times.
    fn time_source(&self) -> TimeSource;

    /// With [`TimeSource::Simulated`] and [`TimeSource::Stamped`], the time of the frame that is received next, so that
    /// several such ports can be read in the order of time; `None` at the end of input and for other ports. With
    /// [`TimeSource::Stamped`] this looks whether one has come, and [`QueuePair::receive`] gives that one alone.
    fn next_arrival_ns(&mut self) -> Option<u64>;

    /// What has happened so far.
    fn statistics(&self) -> PortStatistics;
}

/// What a port says after it was asked for frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// There may be more at once, here or at another port that shares its input with this one: a worker asks all ports
    /// again before it sleeps. The batch or the pool was the limit, or a frame was refused.
    More,
    /// There is nothing more now.
    Idle,
    /// There will never be anything more.
    End,
}

/// What became of the frames handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transmitted {
    /// Frames taken.
    pub sent: usize,
    /// Frames refused; they are still in the batch.
    pub refused: usize,
}

/// Where the times of a port come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeSource {
    /// Real time, in nanoseconds since 1970.
    Wall,
    /// The input itself: time stands still between its frames.
    Simulated,
    /// Real time, but frames carry the time of who wrote them: those of several such ports go in that order.
    Stamped,
}

/// When frames are taken from a port, of a driver whose device does not say when they came.
#[derive(Debug)]
pub(crate) struct TakingTimes {
    each: bool,
    latest_ns: Option<u64>,
}

impl TakingTimes {
    /// Of the frames that are added to a batch: each its own time where somebody looks at them, else all the time of the first.
    pub(crate) fn of(batch: &Batch) -> TakingTimes {
        TakingTimes { each: batch.wants_times(), latest_ns: None }
    }

    /// When the next frame is taken: now.
    #[inline]
    pub(crate) fn next_ns(&mut self) -> u64 {
        match self.latest_ns {
            Some(latest_ns) if !self.each => latest_ns,
            _ => *self.latest_ns.insert(wall_clock_ns()),
        }
    }
}

/// The real time, in nanoseconds since 1970, up to the year 2554.
pub fn wall_clock_ns() -> u64 {
    // A clock before 1970 is no reason to fail.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Counters of a queue pair since it was opened; their sum is that of the device. Bytes are of frames without their check sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortStatistics {
    /// Frames received.
    pub rx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Frames that arrived and were lost because nobody fetched them in time.
    pub rx_missed: u64,
    /// Frames that arrived and were dropped because they are longer than [`millrace_frames::MAX_FRAME`] or cannot be restored
    /// from what an offload of the sender made of them.
    pub rx_errors: u64,
    /// Frames that arrived and were left out because they are not for this port ([`MAX_ADDRESSES`](crate::MAX_ADDRESSES)); they
    /// are not among those received.
    pub rx_filtered: u64,
    /// Frames that the input holds only the beginning of.
    pub rx_truncated: u64,
    /// Frames sent.
    pub tx_packets: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Frames refused.
    pub tx_refused: u64,
    /// Frames sent that were first copied to where the port sends from, by a port that sends others from where they lie.
    pub tx_copied: u64,
    /// The frames received by kind; nothing of a port that does not look.
    pub rx_kinds: FrameKinds,
    /// The frames sent by kind, or nothing.
    pub tx_kinds: FrameKinds,
}

impl PortStatistics {
    /// Counts a frame received.
    #[inline]
    pub fn received(&mut self, frame: &[u8]) {
        self.rx_packets += 1;
        self.rx_bytes += frame.len() as u64;
        self.rx_kinds.count(frame);
    }

    /// The frames received and sent by kind; none where the port does not look at them.
    pub fn kinds(&self) -> (Option<FrameKinds>, Option<FrameKinds>) {
        let all = |kinds: FrameKinds, packets| (kinds.frames() == packets).then_some(kinds);
        (all(self.rx_kinds, self.rx_packets), all(self.tx_kinds, self.tx_packets))
    }

    /// Counts a frame sent.
    #[inline]
    pub fn sent(&mut self, frame: &[u8]) {
        self.sent_of(Kind::of(frame), frame.len());
    }

    /// The same of a frame that is not there any more: how it is counted, and its length.
    #[inline]
    pub(crate) fn sent_of(&mut self, kind: Kind, length: usize) {
        self.tx_packets += 1;
        self.tx_bytes += length as u64;
        self.tx_kinds.add(kind);
    }
}

impl AddAssign for PortStatistics {
    fn add_assign(&mut self, other: PortStatistics) {
        self.rx_packets += other.rx_packets;
        self.rx_bytes += other.rx_bytes;
        self.rx_missed += other.rx_missed;
        self.rx_errors += other.rx_errors;
        self.rx_filtered += other.rx_filtered;
        self.rx_truncated += other.rx_truncated;
        self.tx_packets += other.tx_packets;
        self.tx_bytes += other.tx_bytes;
        self.tx_refused += other.tx_refused;
        self.tx_copied += other.tx_copied;
        self.rx_kinds += other.rx_kinds;
        self.tx_kinds += other.tx_kinds;
    }
}

/// Adds a packet that has arrived to the batch and counts it.
#[inline]
pub(crate) fn deliver(
    packet: Packet,
    batch: &mut Batch,
    pool: &mut PacketPool,
    statistics: &mut PortStatistics,
) {
    match batch.push(packet) {
        Ok(packet) => statistics.received(packet.data()),
        Err(packet) => pool.put(packet),
    }
}

/// Most interfaces that an error shows.
const MAX_SHOWN: usize = 16;

/// Why a port cannot be opened, or is broken for good.
#[derive(Debug)]
pub enum PortError {
    /// The words after the driver's name are not what it wants.
    Arguments {
        /// The driver.
        driver: &'static str,
        /// What it wants, with the reason.
        reason: String,
    },
    /// The operating system refused something.
    System {
        /// What was to be done to what, as in `open in.pcap`.
        action: String,
        /// Its answer.
        error: io::Error,
    },
    /// There is no interface of the name.
    NoInterface {
        /// The name.
        name: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// The device does not open to so many queue pairs.
    Queues {
        /// The device, as in `pcap:in.pcap`.
        device: String,
        /// So many were asked for.
        asked: usize,
        /// Most that it opens to.
        limit: usize,
    },
    /// A capture file is not one, or is damaged.
    Capture {
        /// The file.
        path: String,
        /// The number of whole packets before the damage.
        packets: u64,
        /// What is wrong.
        reason: String,
    },
}

impl From<MemoryError> for PortError {
    fn from(error: MemoryError) -> PortError {
        PortError::system(format!("allocate {} bytes for frames", error.bytes), error.error)
    }
}

impl PortError {
    pub(crate) fn system(action: impl Into<String>, error: io::Error) -> PortError {
        PortError::System { action: action.into(), error }
    }
}

impl fmt::Display for PortError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PortError::Arguments { driver, reason } => write!(f, "{driver}: {reason}"),
            PortError::System { action, error } => {
                write!(f, "cannot {action}: {error}")?;
                match error.kind() {
                    io::ErrorKind::PermissionDenied => f.write_str(
                        " (run as root, or give the executable the capabilities: \
                             setcap cap_net_raw,cap_net_admin+ep FILE)",
                    ),
                    _ => Ok(()),
                }
            }
            PortError::NoInterface { name, known } => {
                write!(f, "there is no interface `{name}`")?;
                if let Some(near) = nearest(name, known.iter().map(String::as_str)) {
                    write!(f, ", did you mean `{near}`?")?;
                }
                let shown: Vec<&str> = known.iter().take(MAX_SHOWN).map(String::as_str).collect();
                let more = if known.len() > MAX_SHOWN { ", ..." } else { "" };
                write!(f, " (there are: {}{more}; `tap:{name}` makes one)", shown.join(", "))
            }
            PortError::Queues { device, asked, limit: 1 } => {
                write!(f, "{device} opens to 1 queue pair, not {asked}")
            }
            PortError::Queues { device, asked, limit } => {
                write!(f, "{device} opens to 1 to {limit} queue pairs, not {asked}")
            }
            PortError::Capture { path, packets: 0, reason } => write!(f, "{path}: {reason}"),
            PortError::Capture { path, packets, reason } => {
                write!(f, "{path}: {reason} (after {packets} whole packets)")
            }
        }
    }
}

impl std::error::Error for PortError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            PortError::System { error, .. } => Some(error),
            PortError::Arguments { .. }
            | PortError::NoInterface { .. }
            | PortError::Queues { .. }
            | PortError::Capture { .. } => None,
        }
    }
}
