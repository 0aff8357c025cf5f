//! The null driver with the trait of all ports.

use super::trace::Trace;
use crate::memory_port::{FarEnd, MemoryPort, Next};
use crate::port::PortError;

/// A port that receives the frames of a trace, over and over, and sends into nothing.
pub type NullPort = MemoryPort<Loopback>;

/// The far end of a [`NullPort`].
#[derive(Debug)]
pub struct Loopback {
    trace: Trace,
    next: usize,
    /// Passes over the trace that are still to come; none: no end.
    passes: Option<u64>,
}

impl NullPort {
    /// Opens `TRACE`, `TRACE,passes=N` or, for a port that only takes frames, `-`.
    ///
    /// # Errors
    /// [`PortError`]: arguments that are none of these, or a trace that cannot be read.
    pub fn open(args: &str) -> Result<NullPort, PortError> {
        let wrong = || {
            let reason = format!("TRACE, TRACE,passes=N or - is expected, not `{args}`");
            PortError::Arguments { driver: "null", reason }
        };
        let (path, passes) = match args.rsplit_once(",passes=") {
            Some((path, passes)) => (path, Some(passes.parse().map_err(|_| wrong())?)),
            None => (args, None),
        };
        let trace = match path {
            "" => return Err(wrong()),
            "-" => Trace::default(),
            path => Trace::read(path)?,
        };
        Ok(MemoryPort::new(Loopback { trace, next: 0, passes }))
    }
}

impl FarEnd for Loopback {
    fn next(&mut self) -> Next<'_> {
        if self.trace.is_empty() || self.passes == Some(0) {
            return if self.passes.is_some() { Next::End } else { Next::None };
        }
        let at = self.next;
        self.next += 1;
        if self.next == self.trace.len() {
            self.next = 0;
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
    use crate::port::{Port, Received, Transmitted};
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
