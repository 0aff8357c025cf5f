//! Faults on command: an end system that does what its network must survive. The same seed makes the same faults.
//!
//! | text | what happens |
//! | --- | --- |
//! | `babble=VL:GAP` | frames of the VL each GAP microseconds (100 if not given), whatever its BAG is |
//! | `length=VL:N` | one in N frames of the VL (all if not given) is longer than Lmax, or shorter than 64 bytes |
//! | `number=VL:N` | its sequence number is another one |
//! | `port=VL:N` | its UDP destination port is another one |
//! | `vl=VL:N` | its destination is another VL, which the end system does not send |
//! | `network=VL:N` | it goes to the other network |

use crate::address::VlId;
use crate::limits::within;
use std::fmt;
use std::str::FromStr;

/// Most faults of an end system.
pub const MAX_MISBEHAVIOURS: usize = 64;
/// Gap of a babbling VL in microseconds, least and most.
pub const BABBLE_LIMITS_US: (u64, u64) = (1, 1_000_000);
/// See [`BABBLE_LIMITS_US`]; what it is if not given.
pub const DEFAULT_BABBLE_US: u64 = 100;

/// What a faulty end system does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Sends frames with this gap in nanoseconds.
    Babble {
        /// From one to the next.
        gap_ns: u64,
    },
    /// One in so many frames has a wrong length.
    Length(u64),
    /// One in so many has a wrong sequence number.
    Number(u64),
    /// One in so many has a wrong UDP port.
    Port(u64),
    /// One in so many has a wrong VL.
    Vl(u64),
    /// One in so many goes to the other network.
    Network(u64),
}

/// A fault of one VL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misbehaviour {
    /// The VL.
    pub vl: VlId,
    /// What happens to its frames.
    pub fault: Fault,
}

/// The kinds of faults, as text has them.
pub const FAULTS: [&str; 6] = ["babble", "length", "number", "port", "vl", "network"];

impl FromStr for Misbehaviour {
    type Err = String;

    fn from_str(text: &str) -> Result<Misbehaviour, String> {
        let wrong = |why: String| format!("`{text}`: {why}");
        let (kind, rest) = text
            .split_once('=')
            .ok_or_else(|| wrong("KIND=VL[:NUMBER] is expected, as in `babble=5:100`".to_owned()))?;
        let (vl, number) = match rest.split_once(':') {
            Some((vl, number)) => (vl, Some(number)),
            None => (rest, None),
        };
        let vl = vl.parse().map(VlId).map_err(|_| wrong(format!("`{vl}` is no VL (0 to {})", u16::MAX)))?;
        let number = number
            .map(|number| number.parse::<u64>().map_err(|_| wrong(format!("`{number}` is no number"))))
            .transpose()?;
        let one_in = || {
            let one_in = number.unwrap_or(1);
            within("one in", one_in, (1, u64::from(u32::MAX)), "frames")
                .map_err(|error| wrong(error.to_string()))
        };
        let fault = match kind {
            "babble" => {
                let gap = number.unwrap_or(DEFAULT_BABBLE_US);
                let gap = within("the gap", gap, BABBLE_LIMITS_US, "us")
                    .map_err(|error| wrong(error.to_string()))?;
                Fault::Babble { gap_ns: gap * 1000 }
            }
            "length" => Fault::Length(one_in()?),
            "number" => Fault::Number(one_in()?),
            "port" => Fault::Port(one_in()?),
            "vl" => Fault::Vl(one_in()?),
            "network" => Fault::Network(one_in()?),
            _ => return Err(wrong(format!("there is no fault `{kind}` (known: {})", FAULTS.join(", ")))),
        };
        Ok(Misbehaviour { vl, fault })
    }
}

impl fmt::Display for Misbehaviour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, number) = match self.fault {
            Fault::Babble { gap_ns } => ("babble", gap_ns / 1000),
            Fault::Length(one_in) => ("length", one_in),
            Fault::Number(one_in) => ("number", one_in),
            Fault::Port(one_in) => ("port", one_in),
            Fault::Vl(one_in) => ("vl", one_in),
            Fault::Network(one_in) => ("network", one_in),
        };
        write!(f, "{kind}={}:{number}", self.vl)
    }
}

/// Chance that can be repeated: splitmix64 of Steele, Lea and Flood (2014).
#[derive(Clone, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from `least` to `most`.
    pub(crate) fn between(&mut self, least: u64, most: u64) -> u64 {
        let span = most.saturating_sub(least).saturating_add(1);
        least + self.next() % span
    }

    /// Whether one in so many happens.
    pub(crate) fn one_in(&mut self, count: u64) -> bool {
        self.next().is_multiple_of(count.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_as_text() {
        let parsed = |text: &str| text.parse::<Misbehaviour>().map(|fault| fault.to_string());
        for (text, shown) in [
            ("babble=5", "babble=5:100"),
            ("babble=65535:1", "babble=65535:1"),
            ("length=0", "length=0:1"),
            ("number=1:10", "number=1:10"),
            ("port=1", "port=1:1"),
            ("vl=1", "vl=1:1"),
            ("network=1:3", "network=1:3"),
        ] {
            assert_eq!(parsed(text).as_deref(), Ok(shown));
        }
        for (text, error) in [
            ("babble", "`babble`: KIND=VL[:NUMBER] is expected, as in `babble=5:100`"),
            ("babble=x", "`babble=x`: `x` is no VL (0 to 65535)"),
            ("babble=70000", "`babble=70000`: `70000` is no VL (0 to 65535)"),
            ("babble=1:0", "`babble=1:0`: the gap is 0 us: 1 to 1000000 us is allowed"),
            ("length=1:0", "`length=1:0`: one in is 0 frames: 1 to 4294967295 frames is allowed"),
            ("length=1:-1", "`length=1:-1`: `-1` is no number"),
            (
                "bable=1",
                "`bable=1`: there is no fault `bable` (known: babble, length, number, port, vl, network)",
            ),
        ] {
            assert_eq!(parsed(text).unwrap_err(), error);
        }
    }

    #[test]
    fn the_same_seed_is_the_same_chance() {
        let mut chance = Chance::new(7);
        let first: Vec<u64> = (0..100).map(|_| chance.between(3, 5)).collect();
        let mut chance = Chance::new(7);
        assert!(first.iter().all(|number| *number == chance.between(3, 5)));
        assert!((3..=5).all(|number| first.contains(&number)));
        assert_eq!(chance.between(u64::MAX, u64::MAX), u64::MAX);
    }
}
