//! Fragments to messages: at most [`MAX_REASSEMBLIES`] of a VL at a time, each of at most [`MAX_MESSAGE`] bytes.
//!
//! Fragments may come in any order, since redundancy management may let them. They are of one message if source, destination, protocol
//! and identification are the same. A fragment that contradicts the others ends its message: nobody knows which of them is wrong.

use crate::frame::{FRAGMENT_UNIT, IpPacket, MAX_MESSAGE, Protocol, UDP_HEADER};
use crate::regulator::MAX_SUB_VLS;
use std::net::Ipv4Addr;

/// Most messages of a VL that are put together at a time: a sub-VL sends one after the other.
pub const MAX_REASSEMBLIES: usize = MAX_SUB_VLS;

/// A message gets no further fragment for so many BAGs: it is given up. The other sub-VLs have three in four, and a queue may have been
/// full.
pub const REASSEMBLY_GAPS: u64 = 32;

/// Bytes of the longest datagram.
const LONGEST: usize = MAX_MESSAGE + UDP_HEADER;
const UNITS: usize = LONGEST.div_ceil(FRAGMENT_UNIT);

/// Why a fragment, and its message, is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FragmentFault {
    /// Its end is after the longest message.
    TooLong,
    /// It is not the last one and its length is no multiple of 8, or it has no bytes.
    Length,
    /// It contradicts other fragments: an overlap, or bytes after the last one.
    Contradiction,
}

type PartialKey = (Ipv4Addr, Ipv4Addr, Protocol, u16);

/// Fragments of one message.
#[derive(Clone, Debug)]
struct Partial {
    key: PartialKey,
    data: Vec<u8>,
    /// Which units of 8 bytes have come.
    come: [u64; UNITS.div_ceil(64)],
    bytes: usize,
    /// Known from the last fragment.
    length: Option<usize>,
    seen_ns: u64,
}

/// The messages of a VL that are put together.
#[derive(Clone, Debug)]
pub(crate) struct Reassembler {
    partials: Vec<Partial>,
    patience_ns: u64,
    abandoned: u64,
}

impl Reassembler {
    /// For a VL with this BAG in nanoseconds.
    pub(crate) fn new(bag_ns: u64) -> Reassembler {
        Reassembler {
            partials: Vec::new(),
            patience_ns: bag_ns.saturating_mul(REASSEMBLY_GAPS),
            abandoned: 0,
        }
    }

    /// Messages that were given up, since fragments did not come.
    pub(crate) fn abandoned(&self) -> u64 {
        self.abandoned
    }

    /// Adds a fragment; the whole datagram when it is the last that was missing.
    pub(crate) fn add(&mut self, now_ns: u64, ip: &IpPacket<'_>) -> Result<Option<Vec<u8>>, FragmentFault> {
        self.give_up(now_ns);
        let key = (ip.source, ip.destination, ip.protocol, ip.identification);
        let at = match self.partials.iter().position(|partial| partial.key == key) {
            Some(at) => at,
            None => {
                self.make_room();
                self.partials.push(Partial::new(key, now_ns));
                self.partials.len() - 1
            }
        };
        let added = self.partials[at].add(now_ns, ip);
        match added {
            Ok(false) => Ok(None),
            Ok(true) => Ok(Some(self.partials.swap_remove(at).data)),
            Err(fault) => {
                self.partials.swap_remove(at);
                Err(fault)
            }
        }
    }

    fn give_up(&mut self, now_ns: u64) {
        let before = self.partials.len();
        let patience = self.patience_ns;
        self.partials.retain(|partial| now_ns.saturating_sub(partial.seen_ns) <= patience);
        self.abandoned += (before - self.partials.len()) as u64;
    }

    /// The message that has waited longest goes where there is no room for another.
    fn make_room(&mut self) {
        if self.partials.len() < MAX_REASSEMBLIES {
            return;
        }
        let oldest = (0..self.partials.len()).min_by_key(|at| self.partials[*at].seen_ns);
        if let Some(oldest) = oldest {
            self.partials.swap_remove(oldest);
            self.abandoned += 1;
        }
    }

    /// As after a reset of the receiver.
    pub(crate) fn reset(&mut self) {
        self.abandoned += self.partials.len() as u64;
        self.partials.clear();
    }
}

impl Partial {
    fn new(key: PartialKey, now_ns: u64) -> Partial {
        Partial {
            key,
            data: Vec::new(),
            come: [0; UNITS.div_ceil(64)],
            bytes: 0,
            length: None,
            seen_ns: now_ns,
        }
    }

    /// Whether the message is complete.
    fn add(&mut self, now_ns: u64, ip: &IpPacket<'_>) -> Result<bool, FragmentFault> {
        let end = ip.offset + ip.data.len();
        if end > LONGEST {
            return Err(FragmentFault::TooLong);
        }
        if ip.data.is_empty() || (ip.more && !ip.data.len().is_multiple_of(FRAGMENT_UNIT)) {
            return Err(FragmentFault::Length);
        }
        let is_after_end = self.length.is_some_and(|length| end > length || !ip.more);
        let is_cut = !ip.more && end < self.data.len();
        if is_after_end || is_cut {
            return Err(FragmentFault::Contradiction);
        }
        for unit in ip.offset / FRAGMENT_UNIT..end.div_ceil(FRAGMENT_UNIT) {
            let (word, bit) = (&mut self.come[unit / 64], 1 << (unit % 64));
            if *word & bit != 0 {
                return Err(FragmentFault::Contradiction);
            }
            *word |= bit;
        }
        if !ip.more {
            self.length = Some(end);
        }
        self.data.resize(self.data.len().max(end), 0);
        self.data[ip.offset..end].copy_from_slice(ip.data);
        self.bytes += ip.data.len();
        self.seen_ns = now_ns;
        Ok(self.length == Some(self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fragment(identification: u16, offset: usize, data: &[u8], more: bool) -> IpPacket<'_> {
        let (source, destination) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(224, 224, 0, 1));
        let protocol = Protocol::Udp;
        IpPacket { source, destination, protocol, identification, offset, more, data }
    }

    #[test]
    fn fragments_in_any_order_are_a_message() {
        let mut vl = Reassembler::new(1000);
        assert_eq!(vl.add(0, &fragment(1, 16, &[3; 5], false)), Ok(None));
        assert_eq!(vl.add(0, &fragment(2, 0, &[9; 8], true)), Ok(None));
        assert_eq!(vl.add(0, &fragment(1, 0, &[1; 8], true)), Ok(None));
        let whole = [&[1; 8][..], &[2; 8], &[3; 5]].concat();
        assert_eq!(vl.add(0, &fragment(1, 8, &[2; 8], true)), Ok(Some(whole)));
        assert_eq!(vl.add(0, &fragment(2, 8, &[8; 1], false)).unwrap().unwrap().len(), 9);
    }

    #[test]
    fn fragments_of_two_protocols_are_not_mixed() {
        let mut vl = Reassembler::new(1000);
        let udp = fragment(1, 0, &[1; 8], true);
        let icmp = IpPacket { protocol: Protocol::Icmp, ..udp };
        assert_eq!((vl.add(0, &udp), vl.add(0, &icmp)), (Ok(None), Ok(None)));
        let last = IpPacket { protocol: Protocol::Icmp, ..fragment(1, 8, &[2], false) };
        assert_eq!(vl.add(0, &last).unwrap().unwrap().len(), 9);
        assert_eq!(vl.partials.len(), 1);
    }

    #[test]
    fn a_message_whose_fragments_contradict_is_dropped() {
        use FragmentFault::{Contradiction, Length, TooLong};
        let after_first = |next: IpPacket<'_>| {
            let mut vl = Reassembler::new(1000);
            vl.add(0, &fragment(1, 8, &[0; 16], true)).unwrap();
            vl.add(0, &next)
        };
        assert_eq!(after_first(fragment(1, 16, &[0; 8], true)), Err(Contradiction));
        assert_eq!(after_first(fragment(1, 0, &[0; 16], true)), Err(Contradiction));
        assert_eq!(after_first(fragment(1, 0, &[0; 8], false)), Err(Contradiction));
        assert_eq!(after_first(fragment(1, 0, &[0; 7], true)), Err(Length));
        assert_eq!(after_first(fragment(1, 0, &[], true)), Err(Length));
        assert_eq!(after_first(fragment(1, 8192, &[0; 9], false)), Err(TooLong));
        assert_eq!(after_first(fragment(1, 24, &[0; 8176], false)), Ok(None));
        let mut vl = Reassembler::new(1000);
        vl.add(0, &fragment(1, 16, &[0; 8], false)).unwrap();
        assert_eq!(vl.add(0, &fragment(1, 24, &[0; 8], true)), Err(Contradiction));
        vl.add(0, &fragment(1, 16, &[0; 8], false)).unwrap();
        assert_eq!(vl.add(0, &fragment(1, 8, &[0; 8], false)), Err(Contradiction));
        // What comes after that starts again.
        assert_eq!(vl.add(0, &fragment(1, 0, &[0; 8], false)).unwrap().unwrap().len(), 8);
    }

    #[test]
    fn memory_is_bounded_and_messages_that_do_not_end_are_given_up() {
        let mut vl = Reassembler::new(1000);
        for identification in 0..4 {
            vl.add(u64::from(identification), &fragment(identification, 0, &[0; 8], true)).unwrap();
        }
        assert_eq!(vl.abandoned(), 0);
        // A fifth takes the place of the oldest.
        vl.add(10, &fragment(4, 0, &[0; 8], true)).unwrap();
        assert_eq!(vl.abandoned(), 1);
        assert_eq!(vl.add(10, &fragment(1, 8, &[0; 1], false)).unwrap().unwrap().len(), 9);
        assert_eq!(vl.add(10, &fragment(0, 8, &[0; 1], false)), Ok(None));
        // 32 BAG after the last fragment of the others.
        vl.add(32_011, &fragment(9, 0, &[0; 8], true)).unwrap();
        assert_eq!((vl.partials.len(), vl.abandoned()), (1, 5));
        vl.reset();
        assert_eq!((vl.partials.len(), vl.abandoned()), (0, 6));
    }

    proptest! {
        #[test]
        fn any_fragments_are_bounded(
            fragments in prop::collection::vec((0u16..6, 0usize..1100, 0usize..40, any::<bool>(), 0u64..9000), 1..300),
        ) {
            let mut vl = Reassembler::new(1000);
            let mut now = 0;
            for (identification, unit, length, more, pause) in fragments {
                now += pause;
                let data = vec![0; length];
                if let Ok(Some(whole)) = vl.add(now, &fragment(identification, unit * 8, &data, more)) {
                    prop_assert!(whole.len() <= LONGEST);
                }
                prop_assert!(vl.partials.len() <= MAX_REASSEMBLIES);
            }
        }
    }
}
