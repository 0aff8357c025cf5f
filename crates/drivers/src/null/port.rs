//! The null driver with the trait of all ports.

use super::replay::Share;
use super::trace::Trace;
use crate::device::{Device, MAX_QUEUES, check_queues};
use crate::memory_port::{FarEnd, MemoryPort, Next};
use crate::port::{PortError, QueuePair};
use std::sync::Arc;

/// A port that receives the frames of a trace, over and over, and sends into nothing.
pub type NullPort = MemoryPort<Loopback>;

/// A trace whose frames are given out over and over. Of N queue pairs each gives out every N-th frame, as often as the whole is asked
/// for.
pub struct NullDevice {
    /// `null:` and the arguments.
    name: String,
    trace: Arc<Trace>,
    passes: Option<u64>,
    has_kinds: bool,
}

/// The far end of a [`NullPort`].
#[derive(Debug)]
pub struct Loopback {
    trace: Arc<Trace>,
    /// The frames of the trace that it gives out: each `of`-th, from the one with the number `queue` on.
    share: Share,
    next: usize,
    /// Passes over the trace that are still to come; none: no end.
    passes: Option<u64>,
}

impl NullDevice {
    /// Reads `TRACE`, `TRACE,passes=N` or, for a port that only takes frames, `-`. With `,kinds=on` at the end it counts frames by
    /// kind too.
    ///
    /// # Errors
    /// [`PortError`]: arguments that are none of these, or a trace that cannot be read.
    pub fn new(args: &str) -> Result<NullDevice, PortError> {
        let wrong = || {
            let reason =
                format!("TRACE, TRACE,passes=N or - is expected, then perhaps ,kinds=on, not `{args}`");
            PortError::Arguments { driver: "null", reason }
        };
        let (rest, has_kinds) = args.strip_suffix(",kinds=on").map_or((args, false), |rest| (rest, true));
        let (path, passes) = match rest.rsplit_once(",passes=") {
            Some((path, passes)) => (path, Some(passes.parse().map_err(|_| wrong())?)),
            None => (rest, None),
        };
        let trace = match path {
            "" => return Err(wrong()),
            "-" => Trace::default(),
            path => Trace::read(path)?,
        };
        Ok(NullDevice { name: format!("null:{args}"), trace: Arc::new(trace), passes, has_kinds })
    }

    fn queue(&self, share: Share) -> NullPort {
        let trace = Arc::clone(&self.trace);
        let far_end = Loopback { trace, share, next: share.queue, passes: self.passes };
        match self.has_kinds {
            true => MemoryPort::new(far_end),
            false => MemoryPort::without_kinds(far_end),
        }
    }
}

impl Device for NullDevice {
    fn name(&self) -> &str {
        &self.name
    }

    fn max_queues(&self) -> usize {
        MAX_QUEUES
    }

    fn open(self: Box<Self>, queues: usize) -> Result<Vec<Box<dyn QueuePair>>, PortError> {
        check_queues(&*self, queues)?;
        let shares = (0..queues).map(|queue| Share { queue, of: queues });
        Ok(shares.map(|share| Box::new(self.queue(share)) as Box<dyn QueuePair>).collect())
    }
}

impl NullPort {
    /// Opens a [`NullDevice`] to one queue pair.
    ///
    /// # Errors
    /// As there.
    pub fn open(args: &str) -> Result<NullPort, PortError> {
        Ok(NullDevice::new(args)?.queue(Share::ALL))
    }
}

impl FarEnd for Loopback {
    fn next(&mut self) -> Next<'_> {
        if self.share.queue >= self.trace.len() || self.passes == Some(0) {
            return if self.passes.is_some() { Next::End } else { Next::None };
        }
        let at = self.next;
        self.next += self.share.of;
        if self.next >= self.trace.len() {
            self.next = self.share.queue;
            self.passes = self.passes.map(|passes| passes - 1);
        }
        Next::Frame(self.trace.frame(at))
    }

    fn take(&mut self, _: &[u8]) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pcap::PcapPort;
    use crate::port::{PortStatistics, Received, Transmitted};
    use millrace_frames::{Batch, Packet, PacketPool};

    /// Writes frames into a capture file of the test.
    fn capture(test: &str, frames: &[&[u8]]) -> String {
        let path = std::env::temp_dir().join(format!("millrace-null-{test}-{}.pcap", std::process::id()));
        let path = path.to_str().unwrap().to_owned();
        let mut port = PcapPort::open(&format!(",{path}")).unwrap();
        let (mut batch, mut pool) = (Batch::new(), PacketPool::new(8));
        for frame in frames {
            batch.push(Packet::from_frame(frame).unwrap()).unwrap();
        }
        port.transmit(&mut batch, &mut pool).unwrap();
        port.flush().unwrap();
        path
    }

    #[test]
    fn a_trace_comes_as_often_as_it_is_asked_for() {
        let path = capture("passes", &[b"first", b"second", b"third"]);
        let mut port = NullPort::open(&format!("{path},passes=2")).unwrap();
        let (mut batch, mut pool) = (Batch::with_limit(4), PacketPool::new(8));
        assert_eq!(port.receive(&mut batch, &mut pool).unwrap(), Received::More);
        let bytes = |batch: &Batch| batch.packets().iter().map(|p| p.data().to_vec()).collect::<Vec<_>>();
        assert_eq!(bytes(&batch), [&b"first"[..], b"second", b"third", b"first"]);
        assert_eq!(port.transmit(&mut batch, &mut pool).unwrap(), Transmitted { sent: 4, refused: 0 });
        assert_eq!(port.receive(&mut batch, &mut pool).unwrap(), Received::End);
        assert_eq!(bytes(&batch), [&b"second"[..], b"third"]);
        let statistics = port.statistics();
        assert_eq!((statistics.rx_packets, statistics.rx_bytes, statistics.tx_packets), (6, 32, 4));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn queue_pairs_share_a_trace() {
        let frames: Vec<Vec<u8>> = (1..=7).map(|length| vec![length; length.into()]).collect();
        let path = capture("shares", &frames.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let device = |passes| Box::new(NullDevice::new(&format!("{path}{passes}")).unwrap());
        let mut pool = PacketPool::new(64);
        let mut sum = PortStatistics::default();
        let mut lengths = Vec::new();
        for mut queue in device(",passes=2").open(3).unwrap() {
            let mut batch = Batch::new();
            assert_eq!(queue.receive(&mut batch, &mut pool).unwrap(), Received::End);
            lengths.push(batch.packets().iter().map(Packet::len).collect::<Vec<_>>());
            batch.recycle(&mut pool);
            sum += queue.statistics();
        }
        assert_eq!(lengths, [vec![1, 4, 7, 1, 4, 7], vec![2, 5, 2, 5], vec![3, 6, 3, 6]]);
        // Two passes over 1 + 2 + ... + 7 bytes.
        let expected = PortStatistics { rx_packets: 14, rx_bytes: 56, ..PortStatistics::default() };
        assert_eq!(sum, expected);
        // More queue pairs than frames: those without a frame have nothing, or an end.
        for (passes, expected) in [(",passes=2", Received::End), ("", Received::Idle)] {
            let mut last = device(passes).open(8).unwrap().pop().unwrap();
            let mut batch = Batch::new();
            assert_eq!(last.receive(&mut batch, &mut pool).unwrap(), expected);
            assert!(batch.is_empty());
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_port_without_a_trace_only_takes() {
        let mut port = NullPort::open("-").unwrap();
        let (mut batch, mut pool) = (Batch::new(), PacketPool::new(8));
        assert_eq!(port.receive(&mut batch, &mut pool).unwrap(), Received::Idle);
        assert!(batch.is_empty());
    }

    #[test]
    fn wrong_arguments_are_refused() {
        for args in [",passes=2", "trace.pcap,passes=often", ""] {
            let error = NullPort::open(args).unwrap_err().to_string();
            assert!(error.contains("TRACE,passes=N"), "{error}");
        }
        assert!(matches!(NullPort::open("/nowhere.pcap"), Err(PortError::System { .. })));
    }
}
