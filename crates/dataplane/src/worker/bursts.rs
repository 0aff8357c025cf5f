//! How large bursts are, and how long packets take.

use super::arrivals::Arrivals;
use crate::histogram::Histogram;
use millrace_drivers::wall_clock_ns;
use millrace_frames::Packet;

/// Of so many bursts one is timed.
const SAMPLED: u32 = 32;

/// What a worker counts of its bursts.
#[derive(Debug)]
pub(super) struct Bursts {
    /// Packets of each burst.
    pub(super) sizes: Histogram,
    /// From when the first packet of a burst arrived until the burst was on its way out, in nanoseconds, of one burst in
    /// [`SAMPLED`].
    pub(super) latency: Box<Histogram>,
    /// When the packets of the burst came.
    pub(super) arrivals: Arrivals,
    until_sample: u32,
    /// When the first packet of a burst that is timed arrived.
    arrived_ns: Option<u64>,
    /// Whether packets come in real time.
    is_real: bool,
}

impl Bursts {
    pub(super) fn new(is_real: bool) -> Bursts {
        Bursts {
            sizes: Histogram::default(),
            latency: Box::default(),
            arrivals: Arrivals::default(),
            until_sample: 0,
            arrived_ns: None,
            is_real,
        }
    }

    /// A burst has come.
    #[inline]
    pub(super) fn came(&mut self, packets: &[Packet]) {
        self.sizes.add(packets.len() as u64);
        match self.until_sample.checked_sub(1) {
            Some(left) => self.until_sample = left,
            None => {
                self.until_sample = SAMPLED - 1;
                self.arrived_ns = packets.first().map(|packet| packet.timestamp_ns);
            }
        }
    }

    /// What came is on its way out.
    #[inline]
    pub(super) fn left(&mut self) {
        if let Some(arrived_ns) = self.arrived_ns.take()
            && self.is_real
        {
            // The clock may have been set back meanwhile.
            self.latency.add(wall_clock_ns().saturating_sub(arrived_ns));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_burst_of_many_is_timed_in_real_time() {
        let packet = |timestamp_ns| {
            let mut packet = Packet::from_frame(&[0; 60]).unwrap();
            packet.timestamp_ns = timestamp_ns;
            packet
        };
        for (is_real, timed) in [(true, 3), (false, 0)] {
            let mut bursts = Bursts::new(is_real);
            for _ in 0..2 * SAMPLED + 1 {
                bursts.came(&[packet(wall_clock_ns() - 1_000_000), packet(0)]);
                bursts.left();
            }
            assert_eq!((bursts.sizes.count(), bursts.sizes.sum()), (65, 130));
            assert_eq!(bursts.latency.count(), timed);
            // A millisecond, and what the test takes.
            assert!(bursts.latency.sum() >= timed * 1_000_000 && bursts.latency.sum() < 10_000_000_000);
        }
    }
}
