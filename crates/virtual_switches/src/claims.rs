//! Claims of the file to frames of a physical port, as rules of the classifier.
//!
//! The file has priorities; the classifier has one order of kinds. Where that is another one, claims become rules of bytes
//! ([`millrace_device_file::order`]).

use millrace_classifier::{MaskedByte, Match, Priority, Rule, TagAction, TagsOut, Target};
use millrace_device_file::{Bytes, Claim, Frames, Looked, MAX_BYTE_CLAIMS, Mac, Tag, VirtualPort, order};
use std::collections::BTreeSet;

/// The types of a tag: of 802.1Q and of 802.1ad.
const TAG_TYPES: [u16; 2] = [0x8100, 0x88a8];
/// Where the first tag of a frame is, and the second.
const OUTER: u8 = 12;
const INNER: u8 = 16;
/// The bits of a tag that are the VLAN.
const VID: u16 = 0x0fff;

/// What becomes of tags on the path into a virtual port.
pub(crate) fn tag_in(port: &VirtualPort) -> TagAction {
    match (port.tag, &port.claim.frames) {
        (Tag::Keep, _) => TagAction::Keep,
        (Tag::Strip, Frames::Header { inner: Some(_), .. }) => TagAction::StripBoth,
        (Tag::Strip, _) => TagAction::Strip,
        (Tag::Rewrite(vid), _) => TagAction::Rewrite(vid),
    }
}

/// What becomes of them on the path out.
pub(crate) fn tags_out(port: &VirtualPort) -> TagsOut {
    let matches = match port.claim.frames {
        // The address does not matter for tags.
        Frames::Header { vlan: Some(outer), inner: Some(inner), .. } => Match::QinQ { outer, inner },
        Frames::Header { vlan: Some(vid), .. } => Match::Vlan(vid),
        _ => Match::Whole,
    };
    let target = Target { switch: 0, port: 0 };
    let rule = Rule { physical: 0, matches, target, tag: tag_in(port), flood: false };
    rule.tags_out(Priority::default()).unwrap_or_default()
}

/// The rules of the claims to one physical port, each with the place of its claim in the list, in the order in which they count. A claim whose
/// frames all belong to others has none.
pub(crate) fn rules(claims: &[&Claim]) -> Result<Vec<(usize, Match)>, String> {
    // The check of a file refuses what cannot be ordered.
    let ordered = order(claims).map_err(|_| "a match by id is before one by bytes".to_owned())?;
    let mut rules = Vec::with_capacity(claims.len());
    let mut compared: Vec<Vec<MaskedByte>> = Vec::new();
    for Looked { at, by_bytes } in ordered {
        match natural(&claims[at].frames).filter(|_| !by_bytes) {
            Some(matches) => rules.push((at, matches)),
            None => {
                for bytes in as_bytes(&claims[at].frames) {
                    // More than there may be are refused by the classifier.
                    if compared.len() <= MAX_BYTE_CLAIMS && compared.iter().any(|first| covers(first, &bytes))
                    {
                        continue;
                    }
                    compared.push(bytes.clone());
                    rules.push((at, Match::Bytes(bytes)));
                }
            }
        }
    }
    share_vlans(&mut rules);
    Ok(rules)
}

/// Whether all frames that a rule of bytes takes are also those of another one.
fn covers(first: &[MaskedByte], other: &[MaskedByte]) -> bool {
    first.iter().all(|byte| {
        let same = other.iter().find(|other| other.offset == byte.offset);
        same.is_some_and(|other| byte.mask & !other.mask == 0 && (byte.value ^ other.value) & byte.mask == 0)
    })
}

/// The classifier gives nobody the frames of a VLAN that is shared by address and that are to no address of it. Who claims all frames claims
/// these too: it has a rule for each such VLAN.
fn share_vlans(rules: &mut Vec<(usize, Match)>) {
    let Some(rest) = rules.iter().find(|(_, matches)| *matches == Match::Whole).map(|(at, _)| *at) else {
        return;
    };
    let mut shared: BTreeSet<u16> = BTreeSet::new();
    let mut whole: BTreeSet<u16> = BTreeSet::new();
    for (_, matches) in &*rules {
        match matches {
            Match::VlanMac { vid, .. } => _ = shared.insert(*vid),
            Match::Vlan(vid) => _ = whole.insert(*vid),
            _ => {}
        }
    }
    rules.extend(shared.difference(&whole).map(|vid| (rest, Match::Vlan(*vid))));
}

/// Whether a virtual port gets frames to groups by a rule: who claims all frames of a VLAN or a port claims these, who claims those to an
/// address gets them if it asks for them.
pub(crate) fn floods(port: &VirtualPort, matches: &Match) -> bool {
    matches!(matches, Match::Vlan(_) | Match::Whole) || port.broadcast
}

/// The rule of a kind that the classifier has; none of bytes, whose order counts, and of two VLANs with an address.
fn natural(frames: &Frames) -> Option<Match> {
    match *frames {
        Frames::All => Some(Match::Whole),
        Frames::Id(id) => Some(Match::Id(id)),
        Frames::Header { vlan: Some(outer), inner: Some(inner), mac: None } => {
            Some(Match::QinQ { outer, inner })
        }
        Frames::Header { vlan: Some(vid), inner: None, mac: None } => Some(Match::Vlan(vid)),
        Frames::Header { vlan: Some(vid), inner: None, mac: Some(Mac(mac)) } => {
            Some(Match::VlanMac { vid, mac })
        }
        Frames::Header { vlan: None, mac: Some(Mac(mac)), .. } => Some(Match::Mac(mac)),
        Frames::Header { vlan: None, mac: None, .. } => Some(Match::Whole),
        Frames::Header { vlan: Some(_), inner: Some(_), mac: Some(_) } | Frames::Bytes(_) => None,
    }
}

/// Rules of bytes, one of which each frame of a claim has: tags have two types.
fn as_bytes(frames: &Frames) -> Vec<Vec<MaskedByte>> {
    match frames {
        Frames::Bytes(pieces) => vec![given(pieces)],
        // A rule of bytes has at least one bit. That of a frame to a station and that of one to a group take all frames.
        Frames::All => [0, 1].map(|value| vec![MaskedByte { offset: 0, value, mask: 1 }]).to_vec(),
        Frames::Header { vlan, inner, mac } => {
            let mut rules = vec![Vec::new()];
            for (offset, vid) in [(OUTER, vlan), (INNER, inner)] {
                let Some(vid) = vid else { continue };
                let of_type = |rule: &Vec<MaskedByte>, kind: u16| {
                    let mut rule = rule.clone();
                    rule.extend(word(offset, kind, 0xffff).chain(word(offset + 2, *vid, VID)));
                    rule
                };
                rules = rules.iter().flat_map(|rule| TAG_TYPES.map(|kind| of_type(rule, kind))).collect();
            }
            let address = mac.iter().flat_map(|Mac(mac)| (0..).zip(mac));
            let address = address.map(|(offset, value)| MaskedByte { offset, value: *value, mask: 0xff });
            rules.iter_mut().for_each(|rule| rule.extend(address.clone()));
            rules
        }
        // It is never compared by bytes.
        Frames::Id(_) => Vec::new(),
    }
}

/// Two bytes of a frame.
fn word(offset: u8, value: u16, mask: u16) -> impl Iterator<Item = MaskedByte> {
    let bytes = (offset..).zip(value.to_be_bytes()).zip(mask.to_be_bytes());
    bytes.filter(|(_, mask)| *mask != 0).map(|((offset, value), mask)| MaskedByte { offset, value, mask })
}

/// The bytes of a file: pieces may overlap, and then agree.
fn given(pieces: &[Bytes]) -> Vec<MaskedByte> {
    let mut bytes: Vec<MaskedByte> = Vec::new();
    for Bytes { at, value, mask } in pieces {
        for ((offset, value), mask) in (*at..).zip(value).zip(mask).filter(|(_, mask)| **mask != 0) {
            match bytes.iter_mut().find(|known| known.offset == offset) {
                Some(known) => (known.value, known.mask) = (known.value | value, known.mask | mask),
                None => bytes.push(MaskedByte { offset, value: *value, mask: *mask }),
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_classifier::{Classifier, Verdict};

    fn header(vlan: Option<u16>, inner: Option<u16>, mac: Option<[u8; 6]>, priority: u16) -> Claim {
        Claim { frames: Frames::Header { vlan, inner, mac: mac.map(Mac) }, priority }
    }

    fn bytes(at: u8, value: u8, priority: u16) -> Claim {
        let piece = Bytes { at, value: vec![value], mask: vec![0xff] };
        Claim { frames: Frames::Bytes(vec![piece]), priority }
    }

    const STATION: [u8; 6] = [2, 0, 0, 0, 0, 1];

    /// The place of the claim that has a frame.
    fn owner(claims: &[Claim], frame: &[u8]) -> Option<usize> {
        let rules = rules(&claims.iter().collect::<Vec<_>>()).unwrap();
        let rule = |(at, matches): &(usize, Match)| Rule {
            physical: 0,
            matches: matches.clone(),
            target: Target { switch: 0, port: *at as u32 },
            tag: TagAction::Keep,
            flood: false,
        };
        let rules: Vec<Rule> = rules.iter().map(rule).collect();
        match Classifier::new(&rules).unwrap().classify(0, frame, None) {
            Verdict::One(hit) => Some(hit.port as usize),
            _ => None,
        }
    }

    fn frame(to: [u8; 6], tags: &[(u16, u16)]) -> Vec<u8> {
        let tags = tags.iter().flat_map(|(kind, vid)| [kind.to_be_bytes(), vid.to_be_bytes()].concat());
        [&to[..], &[2; 6], &tags.collect::<Vec<u8>>(), &[8, 0], &[0; 40]].concat()
    }

    #[test]
    fn the_most_specific_claim_of_one_priority_has_a_frame() {
        let claims = [
            header(Some(7), None, None, 0),
            header(Some(7), Some(9), None, 0),
            Claim { frames: Frames::All, priority: 0 },
            header(Some(8), None, Some(STATION), 0),
        ];
        assert_eq!(owner(&claims, &frame([4; 6], &[(0x8100, 7)])), Some(0));
        assert_eq!(owner(&claims, &frame([4; 6], &[(0x88a8, 7), (0x8100, 9)])), Some(1));
        assert_eq!(owner(&claims, &frame([4; 6], &[])), Some(2));
        assert_eq!(owner(&claims, &frame(STATION, &[(0x8100, 8)])), Some(3));
        // The VLAN is shared by address; its other frames go to the claim to all frames.
        assert_eq!(owner(&claims, &frame([4; 6], &[(0x8100, 8)])), Some(2));
        let claims = [header(Some(8), None, Some(STATION), 0)];
        assert_eq!(owner(&claims, &frame([4; 6], &[(0x8100, 8)])), None);
    }

    /// In the order of the classifier the address would have the frame, and bytes would have all frames.
    #[test]
    fn a_larger_priority_counts_before_the_kind() {
        let claims = [
            header(None, None, Some(STATION), 0),
            header(Some(7), None, None, 5),
            bytes(20, 0, 0),
            header(Some(3), Some(4), Some(STATION), 9),
        ];
        for kind in TAG_TYPES {
            assert_eq!(owner(&claims[..2], &frame(STATION, &[(kind, 7)])), Some(1));
            assert_eq!(owner(&claims, &frame(STATION, &[(kind, 7)])), Some(1));
            assert_eq!(owner(&claims, &frame(STATION, &[(kind, 0x7007)])), Some(1), "with a class");
            assert_eq!(owner(&claims, &frame(STATION, &[(kind, 3), (0x8100, 4)])), Some(3));
        }
        assert_eq!(owner(&claims[..2], &frame(STATION, &[])), Some(0));
        assert_eq!(owner(&claims, &frame([4; 6], &[])), Some(2));
        let all_first = [Claim { frames: Frames::All, priority: 1 }, header(Some(7), None, None, 0)];
        for to in [STATION, [0xff; 6]] {
            assert_eq!(owner(&all_first, &frame(to, &[(0x8100, 7)])), Some(0));
        }
    }

    /// Several VLANs before an address, a program's result between them, and claims that others have the frames of.
    #[test]
    fn priorities_are_those_of_the_file_whatever_the_kinds() {
        let id = |id, priority| Claim { frames: Frames::Id(id), priority };
        let claims = [
            header(None, None, Some(STATION), 0),
            id(3, 5),
            header(Some(7), None, None, 9),
            Claim { frames: Frames::All, priority: 0 },
        ];
        assert_eq!(owner(&claims, &frame(STATION, &[(0x8100, 7)])), Some(2));
        assert_eq!(owner(&claims, &frame(STATION, &[])), Some(0));
        assert_eq!(owner(&claims, &frame([4; 6], &[])), Some(3));
        let hidden =
            [Claim { frames: Frames::All, priority: 9 }, bytes(20, 0, 5), header(Some(7), None, None, 0)];
        assert_eq!(owner(&hidden, &frame([4; 6], &[(0x8100, 7)])), Some(0));
        assert_eq!(owner(&hidden, &frame([5; 6], &[])), Some(0));
        assert_eq!(MAX_BYTE_CLAIMS, millrace_classifier::MAX_BYTES_RULES);
    }

    #[test]
    fn tags_come_back_on_the_path_out() {
        let mut port = VirtualPort {
            number: 0,
            physical: vec!["p".into()],
            claim: header(Some(7), Some(9), Some(STATION), 0),
            tag: Tag::Strip,
            broadcast: false,
            guaranteed: 0,
            largest: None,
        };
        assert_eq!(tag_in(&port), TagAction::StripBoth);
        let both = Rule {
            physical: 0,
            matches: Match::QinQ { outer: 7, inner: 9 },
            target: Target { switch: 0, port: 0 },
            tag: TagAction::StripBoth,
            flood: false,
        };
        assert_eq!(Some(tags_out(&port)), both.tags_out(Priority::default()));
        (port.claim, port.tag) = (header(Some(7), None, None, 0), Tag::Keep);
        assert_eq!(tag_in(&port), TagAction::Keep);
        assert_ne!(tags_out(&port), TagsOut::default(), "another VLAN does not leave");
    }
}
