//! When packets came, by the clock of the switch.
//!
//! A driver stamps a frame with the wall clock: the kernel or the device does, or the driver when it takes the frame from the port.
//! The switch has a clock of its own, which is never set. Both are read together now and then, and their difference takes a
//! stamp from one to the other.
//!
//! A program never sees a time after now, and frames of one queue pair never go back in time: where stamps say so (the clocks
//! are read one after the other, a device stamps several queues, the wall clock was set) the nearer limit counts. A stamp that is
//! missing, or far in the past, tells nothing: its frame came now.

use crate::Clock;
use millrace_drivers::wall_clock_ns;
use millrace_frames::Packet;

/// How long the difference of the clocks is good for, in nanoseconds. They drift by less than a microsecond in that time.
const GOOD_FOR_NS: u64 = 1_000_000;
/// A frame that came longer ago was stamped before the wall clock was set.
const LONGEST_WAIT_NS: u64 = 1_000_000_000;
/// How often both clocks are read, until a reading was not interrupted.
const READINGS: usize = 3;
/// A reading of the clocks that took longer was interrupted.
const SOON_NS: u64 = 1_000;

/// The times of the packets of a batch.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    times: Vec<u64>,
    /// By how much the wall clock is ahead of the switch's.
    ahead_ns: i128,
    /// When that was measured, by the switch's clock.
    measured_ns: Option<u64>,
}

impl Arrivals {
    /// When each packet came. `latest_ns` is the time of the last packet that came from their queue pair, and becomes that of
    /// the last of these.
    pub(super) fn of(
        &mut self,
        packets: &[Packet],
        clock: &Clock,
        now_ns: u64,
        latest_ns: &mut u64,
    ) -> &[u64] {
        if self.measured_ns.is_none_or(|then| now_ns.saturating_sub(then) >= GOOD_FOR_NS) {
            self.measure(clock);
            self.measured_ns = Some(now_ns);
        }
        let ahead_ns = self.ahead_ns;
        self.times.clear();
        self.times.extend(packets.iter().map(|packet| {
            *latest_ns = time_of(packet.timestamp_ns, ahead_ns, now_ns, *latest_ns);
            *latest_ns
        }));
        &self.times
    }

    /// All packets of the batch came now.
    pub(super) fn all_now(&mut self) -> &[u64] {
        self.times.clear();
        &self.times
    }

    /// When a packet of the batch came; none: now.
    pub(super) fn time(&self, number: usize) -> Option<u64> {
        self.times.get(number).copied()
    }

    /// Reads both clocks.
    #[cold]
    fn measure(&mut self, clock: &Clock) {
        let readings = (0..READINGS).map(|_| {
            let (before, wall, after) = (clock.now_ns(), wall_clock_ns(), clock.now_ns());
            let took = after.saturating_sub(before);
            (took, i128::from(wall) - i128::from(before) - i128::from(took / 2))
        });
        let mut best: Option<(u64, i128)> = None;
        for reading in readings {
            best = Some(best.map_or(reading, |best| best.min(reading)));
            if reading.0 <= SOON_NS {
                break;
            }
        }
        self.ahead_ns = best.map_or(0, |(_, ahead)| ahead);
    }
}

/// When a frame came, by the clock of the switch.
#[inline]
fn time_of(stamp_ns: u64, ahead_ns: i128, now_ns: u64, latest_ns: u64) -> u64 {
    let time = i128::from(stamp_ns) - ahead_ns;
    let now = i128::from(now_ns);
    if time > now || now - time > i128::from(LONGEST_WAIT_NS) {
        return now_ns;
    }
    // Before the switch started is its start.
    u64::try_from(time).unwrap_or(0).max(latest_ns).min(now_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_becomes_a_time_between_the_last_packet_and_now() {
        // The wall clock is 1000 s ahead; the last packet came at 4 s, now it is 5 s.
        let time = |stamp| time_of(stamp, 1_000_000_000_000, 5_000_000_000, 4_200_000_000);
        let cases = [
            (1_004_700_000_123, 4_700_000_123),
            (1_004_200_000_000, 4_200_000_000),
            // Before the packet that came before it.
            (1_004_100_000_000, 4_200_000_000),
            // After now; none; of a wall clock that has been set since.
            (1_005_000_000_001, 5_000_000_000),
            (0, 5_000_000_000),
            (1_003_999_999_999, 5_000_000_000),
            (u64::MAX, 5_000_000_000),
        ];
        for (stamp, wanted) in cases {
            assert_eq!(time(stamp), wanted, "{stamp}");
        }
        // Frames that waited at the port when the switch started.
        assert_eq!(time_of(1_000_000, 1_500_000, 100, 0), 0);
    }

    #[test]
    fn packets_of_a_batch_keep_the_distance_of_their_stamps() {
        let clock = Clock::real();
        let mut arrivals = Arrivals::default();
        std::thread::sleep(std::time::Duration::from_millis(2));
        let wall = wall_clock_ns();
        let packets = [1_500_000, 700_000, 900_000, 0].map(|ago| {
            let mut packet = Packet::from_frame(&[0; 60]).unwrap();
            packet.timestamp_ns = wall - ago;
            packet
        });
        let (mut latest_ns, now_ns) = (0, clock.now_ns());
        let times = arrivals.of(&packets, &clock, now_ns, &mut latest_ns).to_vec();
        assert_eq!(times[1] - times[0], 800_000);
        assert_eq!(times[2], times[1], "not before the one that came before it");
        assert!(times[3] <= now_ns && times[3] == latest_ns);
        // Both clocks were read within a second of one another, also on a busy machine.
        assert!(times[3] > times[0] && now_ns - times[0] < 1_000_000_000, "{times:?} {now_ns}");
    }
}
