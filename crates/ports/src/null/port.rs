//! The null driver behind the trait of all ports.

use super::trace::Trace;
use crate::packet::{Batch, PacketPool};
use crate::port::{Port, PortError, PortStatistics, Received, TimeSource, Transmitted, wall_clock_ns};
use std::os::fd::RawFd;

/// A port that receives the frames of a trace, over and over, and sends into nothing.
#[derive(Debug)]
pub struct NullPort {
    trace: Trace,
    next: usize,
    /// Passes over the trace that are still to come; none: no end.
    passes: Option<u64>,
    statistics: PortStatistics,
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
        Ok(NullPort { trace, next: 0, passes, statistics: PortStatistics::default() })
    }
}

impl Port for NullPort {
    fn receive(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Received, PortError> {
        let now_ns = wall_clock_ns();
        while !self.trace.is_empty() && self.passes != Some(0) {
            if batch.is_full() {
                return Ok(Received::More);
            }
            let Some(mut packet) = pool.take() else { return Ok(Received::More) };
            let frame = self.trace.frame(self.next);
            packet.timestamp_ns = now_ns;
            // Neither can fail: a trace holds no longer frames, and the room was looked at.
            if packet.set_frame(frame).is_ok() && batch.push(packet).is_ok() {
                self.statistics.rx_packets += 1;
                self.statistics.rx_bytes += frame.len() as u64;
            }
            self.next += 1;
            if self.next == self.trace.len() {
                self.next = 0;
                self.passes = self.passes.map(|passes| passes - 1);
            }
        }
        Ok(if self.passes.is_some() { Received::End } else { Received::Idle })
    }

    fn transmit(&mut self, batch: &mut Batch, pool: &mut PacketPool) -> Result<Transmitted, PortError> {
        let sent = batch.len();
        self.statistics.tx_packets += sent as u64;
        self.statistics.tx_bytes += batch.packets().iter().map(|packet| packet.len() as u64).sum::<u64>();
        batch.recycle(pool);
        Ok(Transmitted { sent, refused: 0 })
    }

    fn flush(&mut self) -> Result<(), PortError> {
        Ok(())
    }

    fn poll_fd(&self) -> Option<RawFd> {
        None
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
    use crate::packet::Packet;
    use crate::pcap::PcapPort;
    use crate::port::Port;

    /// Writes frames into a capture file of the test.
    fn capture(test: &str, frames: &[&[u8]]) -> String {
        let path = std::env::temp_dir().join(format!("millrace-null-{test}-{}.pcap", std::process::id()));
        let path = path.to_str().unwrap().to_owned();
        let mut port = PcapPort::open(&format!(",{path}")).unwrap();
        let (mut batch, mut pool) = (Batch::new(), PacketPool::new(8));
        frames.iter().for_each(|frame| batch.push(Packet::from_frame(frame).unwrap()).unwrap());
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
