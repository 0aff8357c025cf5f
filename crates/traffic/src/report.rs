//! What a port says of its packets.

use crate::plan::Handle;

/// A packet that comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// Its class, 0 to 7; what is above counts as 7.
    pub class: u8,
    /// Which copy of a group it goes to: the remainder by their number.
    pub flow: u32,
    /// Bytes of the frame, without the overhead of the wire.
    pub len: u32,
    /// It is capable of ECN: it may be marked instead of discarded.
    pub ecn: bool,
    /// It may not leave before.
    pub send_at_ns: Option<u64>,
}

/// Why a packet did not leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Discard {
    /// Its queue was full.
    QueueFull,
    /// The buffer had no room for its queue.
    BufferFull,
    /// Early discard.
    Early,
    /// It waited too long, or would have to.
    TooOld,
    /// Its queue has gone.
    NoQueue,
    /// It is longer than the port's longest frame.
    TooLong,
}

impl Discard {
    /// All reasons, in the order of a report's numbers.
    pub const ALL: [Discard; 6] = [
        Discard::QueueFull,
        Discard::BufferFull,
        Discard::Early,
        Discard::TooOld,
        Discard::NoQueue,
        Discard::TooLong,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Discard::QueueFull => "queue_full",
            Discard::BufferFull => "buffer_full",
            Discard::Early => "early_drop",
            Discard::TooOld => "too_old",
            Discard::NoQueue => "no_queue",
            Discard::TooLong => "too_long",
        }
    }
}

/// A packet that waits from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// Its queue.
    pub queue: u32,
    /// Packets in the queue before it.
    pub depth: u32,
    /// It has to be marked: congestion experienced.
    pub mark: bool,
}

/// A packet that was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused<P> {
    /// It.
    pub packet: P,
    /// Why.
    pub reason: Discard,
    /// Its queue.
    pub queue: u32,
}

/// A packet that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departed<P> {
    /// It.
    pub packet: P,
    /// Its queue.
    pub queue: u32,
    /// Its class.
    pub class: u8,
    /// Bytes of the frame.
    pub len: u32,
    /// When it came.
    pub enqueued_ns: u64,
    /// Packets in the queue before it when it came.
    pub enqueue_depth: u32,
    /// Packets in the queue that it leaves.
    pub dequeue_depth: u32,
    /// It has to be marked: congestion experienced.
    pub mark: bool,
}

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next<P> {
    /// A packet leaves.
    Leaves(Departed<P>),
    /// A packet is discarded; ask again.
    Discarded(P, Discard),
    /// No packet may leave now.
    Nothing,
}

/// A queue, and what became of its packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueReport {
    /// Its number in the port.
    pub queue: u32,
    /// Its name in the plan.
    pub handle: Handle,
    /// Which copy of it, if it is in a group.
    pub copy: u32,
    /// Packets that wait.
    pub packets: u32,
    /// Their bytes.
    pub bytes: u64,
    /// Packets that left.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Packets that were marked.
    pub marked: u64,
    /// Packets that were discarded, by [`Discard::ALL`].
    pub discarded: [u64; Discard::ALL.len()],
    /// Most packets that have waited together.
    pub largest_packets: u32,
    /// Most bytes that have waited together.
    pub largest_bytes: u64,
    /// Sum of the times that packets which left have waited, in nanoseconds.
    pub delay_ns: u64,
    /// Longest of these times, in nanoseconds.
    pub largest_delay_ns: u64,
}

/// What is counted of a queue with each packet that leaves.
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
pub(crate) struct Counts {
    pub(crate) sent: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) delay: u64,
    pub(crate) largest_delay: u64,
    pub(crate) marked: u64,
}
