//! What decides about packets, a batch at a time.

use crate::chain::{Sampling, SelectorSpec};
use crate::classes::{Class, Prefixes, Values};
use crate::error::InputError;
use crate::filter::Filter;
use crate::headers::{Headers, mixed};
use millrace_frames::Packet;

/// The packets of a batch, at most 64, and their headers once somebody has asked for them.
pub(crate) struct Seen<'p> {
    pub(crate) packets: &'p [Packet],
    headers: &'p mut Vec<Headers>,
    are_read: bool,
}

impl<'p> Seen<'p> {
    pub(crate) fn new(packets: &'p [Packet], headers: &'p mut Vec<Headers>) -> Seen<'p> {
        Seen { packets, headers, are_read: false }
    }

    /// The headers of all packets.
    pub(crate) fn headers(&mut self) -> &[Headers] {
        if !self.are_read {
            self.headers.clear();
            self.headers.extend(self.packets.iter().map(|packet| Headers::of(packet.data())));
            self.are_read = true;
        }
        self.headers
    }
}

/// The bits that are set, lowest first.
pub(crate) fn bits(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let at = set.trailing_zeros() as usize;
        let is_set = set != 0;
        set &= set.wrapping_sub(1);
        is_set.then_some(at)
    })
}

/// What becomes of packets: those in neither are dropped.
#[derive(Clone, Copy, Default)]
pub(crate) struct Decided {
    pub(crate) pass: u64,
    pub(crate) account: u64,
}

/// A selector, ready to run.
pub(crate) enum Selector {
    Filter(Filter),
    /// Packets that are still to pass by before the next one is taken.
    Every {
        every: u32,
        left: u32,
    },
    /// A packet is taken when a number from 0 to this is 0.
    Random {
        every: u32,
        state: u64,
    },
    /// The share of flows, of so many.
    Share {
        share: u64,
        all: u64,
    },
    Prefixes(Box<Prefixes>, Class),
    Values(Box<Values>, Class),
}

impl Selector {
    /// `may_account`: whether there is an account to count in.
    pub(crate) fn open(spec: &SelectorSpec, may_account: bool) -> Result<Selector, InputError> {
        Ok(match spec {
            SelectorSpec::Filter(filter) => Selector::Filter(filter.clone()),
            SelectorSpec::Sample(every, Sampling::Packets) => Selector::Every { every: *every, left: 0 },
            SelectorSpec::Sample(every, Sampling::Random(seed)) => {
                Selector::Random { every: *every, state: *seed }
            }
            SelectorSpec::Sample(every, Sampling::Flows) => {
                Selector::Share { share: 0, all: (*every).into() }
            }
            SelectorSpec::Hash(share, all) => Selector::Share { share: (*share).into(), all: (*all).into() },
            SelectorSpec::Prefix(side, list, miss) => {
                Selector::Prefixes(Box::new(Prefixes::open(*side, list, may_account)?), *miss)
            }
            SelectorSpec::Exact(fields, list, miss) => {
                Selector::Values(Box::new(Values::open(fields, list, may_account)?), *miss)
            }
        })
    }

    /// Decides about the packets whose bits are set. What is not selected goes to the account where there is one.
    pub(crate) fn decide(&mut self, seen: &mut Seen<'_>, set: u64, has_account: bool) -> Decided {
        let packets = seen.packets;
        let mut classes = [0; 64];
        let (pass, miss) = match self {
            Selector::Filter(filter) => {
                let selected = bits(set).filter(|at| filter.selects(packets[*at].data()));
                (selected.fold(0, |pass, at| pass | 1 << at), None)
            }
            Selector::Every { every, left } => {
                let mut pass = 0;
                for at in bits(set) {
                    match left {
                        0 => (pass, *left) = (pass | 1 << at, *every - 1),
                        _ => *left -= 1,
                    }
                }
                (pass, None)
            }
            Selector::Random { every, state } => {
                let mut is_taken = || {
                    let number = mixed(*state);
                    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                    // The high bits of the product are a number below `every`, each as likely as any other.
                    ((number >> 32) * u64::from(*every)) >> 32 == 0
                };
                (bits(set).fold(0, |pass, at| pass | u64::from(is_taken()) << at), None)
            }
            Selector::Share { share, all } => {
                let headers = seen.headers();
                let is_of_share = |at: &usize| headers[*at].key.symmetric_hash() % *all == *share;
                (bits(set).filter(is_of_share).fold(0, |pass, at| pass | 1 << at), None)
            }
            Selector::Prefixes(prefixes, miss) => {
                prefixes.classes(seen.headers(), set, &mut classes);
                (0, Some(*miss))
            }
            Selector::Values(values, miss) => {
                let headers = seen.headers();
                let frames = packets.iter().map(Packet::data).zip(headers);
                values.classes(frames, set, &mut classes);
                (0, Some(*miss))
            }
        };
        let Some(miss) = miss else {
            return Decided { pass, account: if has_account { set & !pass } else { 0 } };
        };
        let mut decided = Decided::default();
        for at in bits(set) {
            let class = if classes[at] == 0 { miss as u32 } else { classes[at] };
            decided.pass |= u64::from(class == Class::Pass as u32) << at;
            decided.account |= u64::from(class == Class::Account as u32) << at;
        }
        decided
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::Chain;

    /// Ethernet, IPv4 or IPv6, UDP: an address, and ports.
    pub(crate) fn udp(source: &str, destination: &str, ports: [u16; 2]) -> Packet {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        match (source.parse().unwrap(), destination.parse().unwrap()) {
            (std::net::IpAddr::V4(from), std::net::IpAddr::V4(to)) => {
                frame.extend([8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0]);
                frame.extend(from.octets());
                frame.extend(to.octets());
            }
            (std::net::IpAddr::V6(from), std::net::IpAddr::V6(to)) => {
                frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 8, 17, 64]);
                frame.extend(from.octets());
                frame.extend(to.octets());
            }
            _ => panic!("{source} and {destination} are of two versions"),
        }
        ports.into_iter().for_each(|port| frame.extend(port.to_be_bytes()));
        frame.extend([0, 8, 0, 0]);
        Packet::from_frame(&frame).unwrap()
    }

    fn selector(chain: &str) -> Selector {
        let chain: Chain = chain.parse().unwrap();
        Selector::open(chain.steps[0].selector.as_ref().unwrap(), chain.steps[0].account.is_some()).unwrap()
    }

    fn pass(selector: &mut Selector, packets: &[Packet]) -> u64 {
        let mut headers = Vec::new();
        let all = (!0u64).checked_shr(64 - packets.len() as u32).unwrap_or(0);
        selector.decide(&mut Seen::new(packets, &mut headers), all, false).pass
    }

    #[test]
    fn every_nth_packet_is_taken_whatever_the_batches() {
        let packets = vec![udp("10.0.0.1", "10.0.0.2", [1, 2]); 10];
        let mut every = selector("sample 1/4");
        assert_eq!(
            [pass(&mut every, &packets), pass(&mut every, &packets)],
            [0b01_0001_0001, 0b00_0100_0100]
        );
        let mut one_by_one = selector("sample 1/4");
        let taken: Vec<u64> =
            packets.iter().map(|packet| pass(&mut one_by_one, std::slice::from_ref(packet))).collect();
        assert_eq!(taken, [1, 0, 0, 0, 1, 0, 0, 0, 1, 0]);
    }

    #[test]
    fn a_random_sample_repeats_itself_and_is_about_as_large_as_asked() {
        let packets = vec![udp("10.0.0.1", "10.0.0.2", [1, 2]); 64];
        let take = |chain: &str| -> Vec<u64> {
            let mut selector = selector(chain);
            (0..100).map(|_| pass(&mut selector, &packets)).collect()
        };
        let taken = take("sample 1/10 random=7");
        assert_eq!(taken, take("sample 1/10 random=7"));
        assert_ne!(taken, take("sample 1/10 random=8"));
        let count: u32 = taken.iter().map(|set| set.count_ones()).sum();
        // 640 expected; the standard deviation is 24.
        assert!((540..740).contains(&count), "{count}");
    }

    #[test]
    fn shares_are_disjoint_and_have_both_directions_of_a_flow() {
        let forth: Vec<Packet> = (0..64).map(|port| udp("10.0.0.1", "10.9.0.2", [port, 53])).collect();
        let back: Vec<Packet> = (0..64).map(|port| udp("10.9.0.2", "10.0.0.1", [53, port])).collect();
        let shares: Vec<u64> =
            (0..4).map(|share| pass(&mut selector(&format!("hash {share}/4")), &forth)).collect();
        assert_eq!(shares.iter().fold(0, |all, share| all | share), !0);
        assert_eq!(shares.iter().map(|share| share.count_ones()).sum::<u32>(), 64);
        assert!(shares.iter().all(|share| share.count_ones() >= 6), "{shares:?}");
        assert_eq!(shares[1], pass(&mut selector("hash 1/4"), &back));
        assert_eq!(pass(&mut selector("sample 1/4 flows"), &forth), shares[0]);
    }

    #[test]
    fn the_longest_prefix_decides() {
        let packets = ["10.1.1.1", "10.1.2.1", "10.2.0.1", "11.0.0.1", "2001:db8:1::1", "2001:db8:2::1"]
            .map(|to| udp(if to.contains(':') { "fd00::1" } else { "9.9.9.9" }, to, [1, 2]));
        let list = "10.0.0.0/8, 10.1.0.0/16 drop, 10.1.2.0/24 pass, 2001:db8::/32 drop, 2001:db8:2::/48";
        assert_eq!(pass(&mut selector(&format!("prefix dst \"{list}\"")), &packets), 0b10_0110);
        assert_eq!(pass(&mut selector(&format!("prefix dst \"{list}\" miss=pass")), &packets), 0b10_1110);
        assert_eq!(pass(&mut selector("prefix src \"9.9.9.9\""), &packets), 0b00_1111);
        let mut headers = Vec::new();
        let mut account = selector("prefix dst \"10.0.0.0/8 account\" else account f");
        let decided = account.decide(&mut Seen::new(&packets, &mut headers), 0b01_1011, true);
        assert_eq!((decided.pass, decided.account), (0, 0b01_1011));
    }

    #[test]
    fn exact_values_decide() {
        let packets = [
            udp("10.0.0.1", "10.0.0.2", [1000, 53]),
            udp("10.0.0.1", "10.0.0.2", [1000, 54]),
            udp("10.0.0.1", "10.0.0.3", [1000, 53]),
            udp("fd00::1", "fd00::2", [1000, 53]),
        ];
        let mut exact = selector("exact dst+proto+dport \"10.0.0.2 udp 53, fd00::2 17 53 drop\" miss=pass");
        assert_eq!(pass(&mut exact, &packets), 0b0111);
        let mut all = selector(
            "exact src+dst+proto+sport+dport+vlan+ethertype+ethersrc+etherdst \"10.0.0.1 10.0.0.2 udp 1000 53 0 0x800 02:00:00:00:00:02 02:00:00:00:00:01\"",
        );
        assert_eq!(pass(&mut all, &packets), 0b0001);
    }

    #[test]
    fn wrong_entries_are_refused_with_their_place() {
        let refusal = |chain: &str| {
            let chain: Chain = chain.parse().unwrap();
            Selector::open(chain.steps[0].selector.as_ref().unwrap(), false)
                .map(|_| ())
                .unwrap_err()
                .to_string()
        };
        for (chain, wanted) in [
            ("prefix dst \"10.0.0.0/8, 10.0.0.1/8\"", "entry 2: 10.0.0.1 has bits beyond its prefix of 8"),
            ("prefix dst \"10.0.0.0/33\"", "entry 1: a prefix of this address has at most 32 bits, not 33"),
            (
                "prefix dst \"10.0.0.0/8 10\"",
                "entry 1: a value and perhaps `pass`, `drop` or `account` were expected",
            ),
            ("prefix dst \"10.0.0.0/8, 10.0.0.0/8 drop\"", "entry 2: 10.0.0.0/8 is there twice"),
            (
                "prefix dst \"10.0.0.0/8 account\"",
                "entry 1: `account` needs `else account FILE` after the list",
            ),
            ("exact dport \"70000\"", "entry 1: `70000` is not a number of 16 bits"),
            ("exact dport+proto \"53 udp, 53 17\"", "entry 2: 53 17 is there twice"),
            ("exact dst \"@nowhere\"", "cannot read nowhere: No such file or directory (os error 2)"),
        ] {
            assert!(refusal(chain).ends_with(wanted), "{chain}: {}", refusal(chain));
        }
    }
}
