//! Flows of other tools as virtual links.

use super::Notes;
use super::decimal::Round;
use crate::limits::{ANY_BAG, LONGEST_FRAME, SHORTEST_FRAME};
use crate::model::{Policing, Vl};

/// A token bucket, with the longest and the shortest packet if they are known. Lengths in bits, the rate in bit/s.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    pub(super) burst: u64,
    pub(super) rate: u64,
    pub(super) longest: Option<u64>,
    pub(super) shortest: Option<u64>,
}

/// What a virtual link sends at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Traffic {
    pub(super) bag: u64,
    pub(super) lmin: u16,
    pub(super) lmax: u16,
    pub(super) source_jitter: u64,
}

/// The traffic of frames that come once a period, or several at once, `several` frames of up to `lmax` bytes, with a jitter.
///
/// `n` frames a period are a frame a part of it: those that come at once are the burst of a jitter of `n - 1` parts.
pub(super) fn periodic(
    lengths: (u64, u64),
    period: u64,
    several: u64,
    jitter: u64,
) -> Result<Traffic, String> {
    let bag = period / several.max(1);
    let jitter = bag.saturating_mul(several.saturating_sub(1)).saturating_add(jitter);
    make(lengths, bag, jitter)
}

/// The traffic of a token bucket: a gap and a jitter whose arrival curve is nowhere below it.
///
/// With longest packets of `l` bits, a gap of `l / rate` gives the rate, rounded down so that the rate is no less. Just before the curve of a virtual
/// link steps up it is `rate (t + jitter)`, so a burst of `b` bits takes a jitter of `b / rate`. Of packets that all have `l` bits as many as are
/// whole come, and the burst of a virtual link, `l (1 + jitter / gap)`, is theirs with a jitter of `(b - l) / rate`.
pub(super) fn bucket(bucket: Bucket, header: u64, notes: &mut Notes, name: &str) -> Result<Traffic, String> {
    let Bucket { burst, rate, longest, shortest } = bucket;
    if rate == 0 {
        return Err("a rate of 0 sends nothing".into());
    }
    let most = LONGEST_FRAME * 8;
    let is_one_length = longest.is_some() && longest == shortest;
    let longest = longest.unwrap_or(burst).clamp(8, most).max(1);
    if burst < longest {
        notes.add("bursts shorter than a packet: read as one packet", name);
    }
    let time = |bits: u64, round| {
        let time = u128::from(bits) * 1_000_000_000;
        let time = if round == Round::Up { time.div_ceil(rate.into()) } else { time / u128::from(rate) };
        u64::try_from(time).unwrap_or(u64::MAX)
    };
    let bag = time(longest, Round::Down);
    let first = if is_one_length { longest } else { 0 };
    if !is_one_length {
        notes.add(
            "bursts of packets that may be shorter than the longest: one packet more comes at once",
            name,
        );
    }
    let jitter = time(burst.saturating_sub(first), Round::Up);
    let lmax = longest.div_ceil(8) + header;
    if lmax < SHORTEST_FRAME {
        notes.add("packets shorter than the shortest frame: read as 64 bytes", name);
    }
    make((lmax.min(SHORTEST_FRAME), lmax), bag, jitter)
}

fn make((lmin, lmax): (u64, u64), bag: u64, source_jitter: u64) -> Result<Traffic, String> {
    if lmax > LONGEST_FRAME {
        return Err(format!(
            "frames of {lmax} bytes: at most {LONGEST_FRAME} with the check sum (LONGEST_FRAME)"
        ));
    }
    if !(ANY_BAG.0..=ANY_BAG.1).contains(&bag) {
        return Err(format!("a frame every {bag} ns: 10 us to 1310 ms is expected (ANY_BAG)"));
    }
    let lmax = lmax.max(SHORTEST_FRAME);
    let lmin = lmin.clamp(SHORTEST_FRAME, lmax);
    Ok(Traffic { bag, lmin: lmin as u16, lmax: lmax as u16, source_jitter })
}

impl Traffic {
    /// A virtual link without routes.
    pub(super) fn vl(self, id: u16, name: String, source: String) -> Vl {
        Vl {
            id,
            name,
            source,
            bag: self.bag,
            lmin: self.lmin,
            lmax: self.lmax,
            jitter: None,
            source_jitter: self.source_jitter,
            priority: 0,
            policing: Policing::Byte,
            shared_account: None,
            skew_max: 5_000_000,
            deadline: None,
            routes: Vec::new(),
            sub_vls: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(burst: u64, rate: u64, longest: Option<u64>, shortest: Option<u64>) -> Result<Traffic, String> {
        bucket(Bucket { burst, rate, longest, shortest }, 0, &mut Notes::default(), "f")
    }

    #[test]
    fn a_token_bucket_is_nowhere_above_what_is_read() {
        // 1000 bytes of burst in packets of 500 at 1 Mbit/s: a packet each 4 ms, and one at once by 4 ms of jitter.
        let wanted = Traffic { bag: 4_000_000, lmin: 64, lmax: 500, source_jitter: 4_000_000 };
        assert_eq!(read(8000, 1_000_000, Some(4000), Some(4000)), Ok(wanted));
        // 3 bit/s do not divide a second.
        let gap = read(512, 3_000, Some(512), Some(512)).map(|read| (read.bag, read.source_jitter));
        assert_eq!(gap, Ok((170_666_666, 0)));
        // Packets may be shorter: at each time the curve, of whole packets in bits, is not below that of the bucket.
        for (burst, longest) in
            [(8000, Some(4000)), (7000, Some(4000)), (4000, Some(4000)), (4001, Some(4000)), (6000, None)]
        {
            let read = read(burst, 1_000_000, longest, Some(512)).unwrap();
            for time in (0..20_000_000).step_by(1000) {
                let packets = (time + read.source_jitter) / read.bag + 1;
                let bits = packets * u64::from(read.lmax) * 8;
                assert!(bits >= burst + time / 1000, "{burst} {longest:?} {time}: {bits}");
            }
        }
    }

    #[test]
    fn several_frames_a_period_come_at_once() {
        let read = periodic((64, 100), 3_000_000, 3, 10);
        assert_eq!(read, Ok(Traffic { bag: 1_000_000, lmin: 64, lmax: 100, source_jitter: 2_000_010 }));
    }

    #[test]
    fn what_no_virtual_link_sends_is_refused() {
        assert!(periodic((64, 1519), 1_000_000, 1, 0).is_err());
        assert!(periodic((64, 100), 9_999, 1, 0).is_err());
        assert!(read(8, 0, None, None).is_err());
    }
}
