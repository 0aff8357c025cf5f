//! What the device of an interface counts, as the kernel has it: errors by kind, and frames by size where the device counts those
//! itself (RMON, RFC 2819).

use crate::ethtool::{self, BITSET_NOMASK, NESTED};
use crate::kinds::SIZES;
use crate::link::LinkName;
use crate::netlink::{ask_link, attributes, number, put_attribute};

/// What an interface has counted since the switch has it. It counts all frames of the interface, whoever takes or sends them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Received: frames, bytes, and what was lost or wrong.
    pub rx: DirectionCounters,
    /// Sent.
    pub tx: DirectionCounters,
    /// Frames received with a wrong check sequence.
    pub rx_crc_errors: u64,
    /// Frames received that do not end with a whole byte.
    pub rx_alignment_errors: u64,
    /// Frames received that are shorter or longer than the device takes.
    pub rx_length_errors: u64,
    /// Frames lost because the device had no memory for them.
    pub rx_overruns: u64,
    /// Frames lost because nobody fetched them from the device in time.
    pub rx_missed: u64,
    /// Frames received by size, in the ranges of [`SIZES`], where the device counts them.
    pub rx_sizes: Option<[u64; SIZES.len()]>,
    /// Frames sent by size, where the device counts them.
    pub tx_sizes: Option<[u64; SIZES.len()]>,
}

/// The usual counters of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectionCounters {
    /// Good frames.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Frames that were wrong in any way.
    pub errors: u64,
    /// Frames that were dropped for want of memory or of somebody who wants them.
    pub dropped: u64,
}

/// Attributes of linux/if_link.h and linux/ethtool_netlink.h.
const IFLA_STATS64: u16 = 23;
const ETHTOOL_MSG_STATS_GET: u8 = 32;
const ETHTOOL_A_STATS_HEADER: u16 = 2;
const ETHTOOL_A_STATS_GROUPS: u16 = 3;
const ETHTOOL_A_STATS_GRP: u16 = 4;
const ETHTOOL_A_STATS_GRP_HIST_RX: u16 = 5;
const ETHTOOL_A_STATS_GRP_HIST_TX: u16 = 6;
const ETHTOOL_A_STATS_GRP_HIST_BKT_LOW: u16 = 7;
const ETHTOOL_A_STATS_GRP_HIST_BKT_HI: u16 = 8;
const ETHTOOL_A_STATS_GRP_HIST_VAL: u16 = 9;
const ETHTOOL_A_BITSET_SIZE: u16 = 2;
const ETHTOOL_A_BITSET_VALUE: u16 = 4;
const ETHTOOL_STATS_RMON: u32 = 3;

impl LinkCounters {
    /// What the interface says now; none of one that is gone.
    pub(crate) fn of(link: &LinkName) -> Option<LinkCounters> {
        let answer = ask_link(libc::RTM_GETLINK, link.index().ok()?.unsigned_abs(), &[]).ok()?;
        let mut counters = LinkCounters::parse(&answer)?;
        (counters.rx_sizes, counters.tx_sizes) = rmon(link);
        Some(counters)
    }

    /// What has come since an earlier moment.
    pub(crate) fn since(&self, earlier: &LinkCounters) -> LinkCounters {
        let sizes = |now: Option<[u64; SIZES.len()]>, then: Option<[u64; SIZES.len()]>| {
            let then = then.unwrap_or_default();
            now.map(|now| std::array::from_fn(|range| now[range].saturating_sub(then[range])))
        };
        LinkCounters {
            rx: self.rx.since(&earlier.rx),
            tx: self.tx.since(&earlier.tx),
            rx_crc_errors: self.rx_crc_errors.saturating_sub(earlier.rx_crc_errors),
            rx_alignment_errors: self.rx_alignment_errors.saturating_sub(earlier.rx_alignment_errors),
            rx_length_errors: self.rx_length_errors.saturating_sub(earlier.rx_length_errors),
            rx_overruns: self.rx_overruns.saturating_sub(earlier.rx_overruns),
            rx_missed: self.rx_missed.saturating_sub(earlier.rx_missed),
            rx_sizes: sizes(self.rx_sizes, earlier.rx_sizes),
            tx_sizes: sizes(self.tx_sizes, earlier.tx_sizes),
        }
    }

    /// Reads the attributes of an interface (`struct rtnl_link_stats64`).
    fn parse(answer: &[u8]) -> Option<LinkCounters> {
        let (_, value) = attributes(answer).find(|(kind, _)| *kind == IFLA_STATS64)?;
        let (words, _) = value.as_chunks::<8>();
        let word = |at: usize| words.get(at).map_or(0, |word| u64::from_ne_bytes(*word));
        let direction = |first: usize| DirectionCounters {
            packets: word(first),
            bytes: word(first + 2),
            errors: word(first + 4),
            dropped: word(first + 6),
        };
        Some(LinkCounters {
            rx: direction(0),
            tx: direction(1),
            rx_length_errors: word(10),
            rx_crc_errors: word(12),
            rx_alignment_errors: word(13),
            rx_overruns: word(11) + word(14),
            rx_missed: word(15),
            rx_sizes: None,
            tx_sizes: None,
        })
    }

    /// The same from the other end of the interface: what a tap interface has sent, its user has received.
    pub(crate) fn turned(self) -> LinkCounters {
        LinkCounters { rx: self.tx, tx: self.rx, ..LinkCounters::default() }
    }
}

impl DirectionCounters {
    fn since(&self, earlier: &DirectionCounters) -> DirectionCounters {
        DirectionCounters {
            packets: self.packets.saturating_sub(earlier.packets),
            bytes: self.bytes.saturating_sub(earlier.bytes),
            errors: self.errors.saturating_sub(earlier.errors),
            dropped: self.dropped.saturating_sub(earlier.dropped),
        }
    }
}

type Sizes = Option<[u64; SIZES.len()]>;

/// Frames received and sent by size, where the device counts them.
fn rmon(link: &LinkName) -> (Sizes, Sizes) {
    let (mut groups, mut request) = (Vec::new(), Vec::new());
    put_attribute(&mut groups, BITSET_NOMASK, &[]);
    put_attribute(&mut groups, ETHTOOL_A_BITSET_SIZE, &(ETHTOOL_STATS_RMON + 1).to_ne_bytes());
    put_attribute(&mut groups, ETHTOOL_A_BITSET_VALUE, &(1u32 << ETHTOOL_STATS_RMON).to_ne_bytes());
    put_attribute(&mut request, ETHTOOL_A_STATS_GROUPS | NESTED, &groups);
    // An older kernel does not know the request, and most devices of software count nothing.
    let answer = ethtool::ask(link, ETHTOOL_MSG_STATS_GET, ETHTOOL_A_STATS_HEADER, &request);
    answer.map_or((None, None), |answer| parse_rmon(&answer))
}

fn parse_rmon(answer: &[u8]) -> (Sizes, Sizes) {
    let groups = || attributes(answer).filter(|(kind, _)| *kind == ETHTOOL_A_STATS_GRP);
    let sizes = |direction| {
        let ranges = groups().flat_map(|(_, group)| attributes(group));
        let mut counted: Sizes = None;
        for (_, range) in ranges.filter(|(kind, _)| *kind == direction) {
            let value = |wanted| attributes(range).find(|(kind, _)| *kind == wanted).map(|(_, value)| value);
            let low = value(ETHTOOL_A_STATS_GRP_HIST_BKT_LOW).and_then(number).unwrap_or(0);
            let high = value(ETHTOOL_A_STATS_GRP_HIST_BKT_HI).and_then(number).unwrap_or(u32::MAX);
            let count = value(ETHTOOL_A_STATS_GRP_HIST_VAL).and_then(|value| value.first_chunk());
            let Some(count) = count else { continue };
            // Devices with other ranges have each in that of its larger end.
            counted.get_or_insert_default()[range_up_to(low, high)] += u64::from_ne_bytes(*count);
        }
        counted
    };
    (sizes(ETHTOOL_A_STATS_GRP_HIST_RX), sizes(ETHTOOL_A_STATS_GRP_HIST_TX))
}

/// The range of [`SIZES`] for a device's range of sizes.
fn range_up_to(low: u32, high: u32) -> usize {
    const ENDS: [u32; SIZES.len() - 1] = [63, 64, 127, 255, 511, 1023, 1518];
    // One tag more is no longer frame: some devices end the range of the usual ones there.
    let high = if low <= 1518 && (1519..=1522).contains(&high) { 1518 } else { high };
    ENDS.iter().position(|end| high <= *end).unwrap_or(SIZES.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netns::{in_fresh_namespace, ip, veth_pair};
    use crate::testing::{frame, send};
    use millrace_frames::PacketPool;

    #[test]
    fn the_kernel_says_what_an_interface_has_counted() {
        in_fresh_namespace("the_kernel_says_what_an_interface_has_counted", || {
            veth_pair("va", "vb");
            let link = LinkName::new("packet", "vb").unwrap();
            let before = LinkCounters::of(&link).unwrap();
            let spec = "packet:va".parse().unwrap();
            let mut a = crate::open::open(&spec).unwrap();
            let frames: Vec<_> = (0..5).map(|mark| frame(mark, 100)).collect();
            assert_eq!(send(&mut *a, &mut PacketPool::new(64), &frames).sent, 5);
            let since = LinkCounters::of(&link).unwrap().since(&before);
            assert_eq!((since.rx.packets, since.rx.bytes, since.rx.errors, since.tx.packets), (5, 500, 0, 0));
            assert_eq!(since.rx_sizes, None, "a veth does not count by size");
            let turned = since.turned();
            assert_eq!((turned.tx.packets, turned.rx.packets), (5, 0));
            ip("link del vb");
            assert_eq!(LinkCounters::of(&link), None);
        });
    }

    #[test]
    fn errors_are_read_by_kind() {
        // struct rtnl_link_stats64, each number its place: 0 rx_packets, 1 tx_packets and so on.
        let words: Vec<u8> = (0..25u64).flat_map(|place| (100 + place).to_ne_bytes()).collect();
        let mut answer = Vec::new();
        put_attribute(&mut answer, IFLA_STATS64, &words);
        let counters = LinkCounters::parse(&answer).unwrap();
        let expected = LinkCounters {
            rx: DirectionCounters { packets: 100, bytes: 102, errors: 104, dropped: 106 },
            tx: DirectionCounters { packets: 101, bytes: 103, errors: 105, dropped: 107 },
            rx_length_errors: 110,
            rx_overruns: 111 + 114,
            rx_crc_errors: 112,
            rx_alignment_errors: 113,
            rx_missed: 115,
            rx_sizes: None,
            tx_sizes: None,
        };
        assert_eq!(counters, expected);
        // An older kernel has fewer numbers.
        let mut short = Vec::new();
        put_attribute(&mut short, IFLA_STATS64, &words[..8]);
        assert_eq!(LinkCounters::parse(&short).unwrap().rx.packets, 100);
        assert_eq!(LinkCounters::parse(&[]), None);
    }

    #[test]
    fn sizes_come_from_a_device_that_counts_them() {
        let range = |low: u32, high: u32, count: u64| {
            let mut range = Vec::new();
            put_attribute(&mut range, ETHTOOL_A_STATS_GRP_HIST_BKT_LOW, &low.to_ne_bytes());
            put_attribute(&mut range, ETHTOOL_A_STATS_GRP_HIST_BKT_HI, &high.to_ne_bytes());
            put_attribute(&mut range, ETHTOOL_A_STATS_GRP_HIST_VAL, &count.to_ne_bytes());
            range
        };
        let mut group = Vec::new();
        // As mlx5 has them; the last two are both of long frames.
        for (low, high, count) in [
            (0, 64, 1),
            (65, 127, 2),
            (128, 255, 3),
            (256, 511, 4),
            (512, 1023, 5),
            (1024, 1518, 6),
            (1519, 2047, 7),
            (2048, 4095, 8),
        ] {
            put_attribute(&mut group, ETHTOOL_A_STATS_GRP_HIST_RX, &range(low, high, count));
        }
        // Another device ends the range after one tag.
        put_attribute(&mut group, ETHTOOL_A_STATS_GRP_HIST_TX, &range(1024, 1522, 9));
        let mut answer = Vec::new();
        put_attribute(&mut answer, ETHTOOL_A_STATS_GRP, &group);
        let (rx, tx) = parse_rmon(&answer);
        assert_eq!(rx, Some([0, 1, 2, 3, 4, 5, 6, 15]));
        assert_eq!(tx, Some([0, 0, 0, 0, 0, 0, 9, 0]));
        assert_eq!(parse_rmon(&answer[..20]), (None, None));
    }
}
