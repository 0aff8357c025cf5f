//! Random early detection (S. Floyd and V. Jacobson, IEEE/ACM Trans. Networking 1(4), 1993), with marks (RFC 3168) and a curve for each
//! class.
//!
//! The average length follows the length of the queue by `2^-n` with each packet that comes; when the queue was empty, it falls as if as
//! many packets had come to the empty queue as could have been sent in that time. Below `min` nothing happens, from `max` on every
//! packet is hit. Between, with `p = probability · (average - min) / (max - min)` and `k` packets since the last one that was hit, it
//! is `p / (1 - k p)`: so the distance between hits is uniform between 1 and `1 / p`. A packet that is hit is discarded, or marked if it
//! is capable of ECN and the curve says so.

use crate::plan::{Curve, Port};
use crate::setting::wire_ns;

/// Bytes of the packets that could have been sent while a queue was empty.
const TYPICAL: u64 = 1000;
/// Rate at which, if the port has none, in bit/s.
const TYPICAL_RATE: u64 = 10_000_000_000;
/// One, as a probability.
const ONE: u64 = 1 << 32;

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Pass,
    Mark,
    Discard,
}

/// Early discard of a queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Early {
    /// Times 2^n.
    average: u64,
    /// Packets since the last one that was hit.
    since: u64,
    /// When the queue became empty.
    pub(crate) empty_ns: u64,
}

/// Random numbers (SplitMix64).
#[derive(Clone, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

/// `(1 - 2^-n)^packets` of an average.
fn fallen(average: u64, n: u8, mut packets: u64) -> u64 {
    let (mut left, mut factor) = (average, ONE - (ONE >> n));
    while packets > 0 && left > 0 {
        if packets & 1 == 1 {
            left = ((u128::from(left) * u128::from(factor)) >> 32) as u64;
        }
        factor = (factor * factor) >> 32;
        packets >>= 1;
    }
    left
}

impl Early {
    /// A packet comes to a queue that has so many bytes.
    pub(crate) fn arrive(&mut self, bytes: u64, is_empty: bool, n: u8, port: &Port, now_ns: u64) {
        if n == 0 {
            self.average = bytes;
            return;
        }
        if is_empty {
            let time = wire_ns(TYPICAL, port.rate.unwrap_or(TYPICAL_RATE)).max(1);
            self.average = fallen(self.average, n, now_ns.saturating_sub(self.empty_ns) / time);
        }
        self.average = self.average - (self.average >> n) + bytes;
    }

    /// What becomes of it, if there is room for it.
    pub(crate) fn decide(&mut self, curve: &Curve, n: u8, ecn: bool, random: &mut Random) -> Fate {
        let average = self.average >> n;
        if average <= curve.min {
            self.since = 0;
            return Fate::Pass;
        }
        if average < curve.max {
            let most = u128::from(curve.probability) * u128::from(ONE) / 1_000_000;
            let p = (most * u128::from(average - curve.min) / u128::from(curve.max - curve.min)) as u64;
            let spent = self.since.saturating_mul(p);
            let drawn = random.next() >> 32;
            if spent < ONE && (drawn * (ONE - spent)) >> 32 >= p {
                self.since += 1;
                return Fate::Pass;
            }
        }
        self.since = 0;
        if curve.ecn && ecn { Fate::Mark } else { Fate::Discard }
    }
}
