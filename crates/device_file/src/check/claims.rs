//! Claims of virtual ports to the frames of one physical port: whether each frame belongs to one at most.
//!
//! A claim is *more specific* than another one if each of its frames is also one of the other. Of the claims to a frame, the
//! one with the largest priority has it; of several with that priority, the most specific one. So two claims are a mistake
//! if they are equal, and if they have one priority, share frames, and neither is more specific. For this, claims by bytes,
//! by id and by header share frames with each other: which ones is not looked at.
//!
//! That the device can look at them in this order is checked too: what is compared by bytes comes before the result of the classify program, and
//! there is a most of it.

use crate::limits::{MAX_BYTE_CLAIMS, MAX_MATCHED};
use crate::model::{Bytes, Claim, Frames, Mac};
use crate::order::{Misplaced, order, rules_of};
use millrace_toml_sections::{Finding, Findings, Kind};
use std::collections::HashMap;
use std::ops::Range;

/// A claim with the virtual port whose it is, and its place.
pub(super) struct Claimed<'d> {
    pub(super) claim: &'d Claim,
    pub(super) switch: &'d str,
    pub(super) number: u16,
    pub(super) at: Range<usize>,
}

/// The fields of a claim by header.
type Fields = (Option<u16>, Option<u16>, Option<Mac>);

/// The claims of one priority by their kind.
#[derive(Default)]
struct Group<'c, 'd> {
    headers: Vec<(Fields, &'c Claimed<'d>)>,
    bytes: Vec<(Pattern, &'c Claimed<'d>)>,
    ids: Vec<&'c Claimed<'d>>,
}

pub(super) fn check(port: &str, claims: &[Claimed<'_>], findings: &mut Findings) {
    // Each of too many patterns would be compared with each.
    if can_be_ordered(port, claims, findings) {
        check_shared(port, claims, findings);
    }
}

/// Whether the device can look at the claims in their order; what is wrong is told.
fn can_be_ordered(port: &str, claims: &[Claimed<'_>], findings: &mut Findings) -> bool {
    let ordered = match order(&claims.iter().map(|claimed| claimed.claim).collect::<Vec<_>>()) {
        Ok(ordered) => ordered,
        Err(Misplaced { id, before }) => {
            let (claimed, other) = (&claims[id], &claims[before]);
            let message = format!(
                "{} claims frames of port `{port}` by `id` before {}, which is compared by bytes",
                name(claimed),
                name(other)
            );
            let finding = Finding::new(Kind::Claim, claimed.at.clone(), message);
            findings.push(
                finding
                    .also(other.at.clone(), "the other claim")
                    .help("bytes are compared before the classify program runs: give the match by `id` the smaller `priority`"),
            );
            return true;
        }
    };
    for claimed in claims {
        if let Frames::Bytes(pieces) = &claimed.claim.frames
            && pieces.iter().flat_map(|piece| &piece.mask).all(|mask| *mask == 0)
        {
            let message = format!("no bit counts of the bytes that {} claims", name(claimed));
            let finding = Finding::new(Kind::Value, claimed.at.clone(), message);
            findings.push(finding.help("`{}` claims all frames"));
            return false;
        }
    }
    let mut rules = 0;
    for looked in ordered.iter().filter(|looked| looked.by_bytes) {
        let claimed = &claims[looked.at];
        rules += rules_of(&claimed.claim.frames);
        if rules > MAX_BYTE_CLAIMS {
            let message = format!(
                "at most {MAX_BYTE_CLAIMS} matches of port `{port}` are compared by bytes (MAX_BYTE_CLAIMS)"
            );
            findings.push(Finding::new(Kind::Limit, claimed.at.clone(), message).help(
                "matches by `vlan` or `mac` are, twice for each tag, where their `priority` is larger than that of an earlier kind",
            ));
            return false;
        }
    }
    true
}

/// Whether each frame belongs to one claim at most.
fn check_shared(port: &str, claims: &[Claimed<'_>], findings: &mut Findings) {
    let mut known: HashMap<Frames, &Claimed<'_>> = HashMap::new();
    let mut groups: HashMap<u16, Group<'_, '_>> = HashMap::new();
    for claimed in claims {
        let mut frames = claimed.claim.frames.clone();
        let group = groups.entry(claimed.claim.priority).or_default();
        let mut pattern = None;
        if let Frames::Bytes(pieces) = &claimed.claim.frames {
            let of_pieces = Pattern::new(pieces);
            frames = of_pieces.frames();
            pattern = Some(of_pieces);
        }
        if let Some(first) = known.get(&frames) {
            findings.push(
                both(port, "the same frames", claimed, first).help("no frame can be for two virtual ports"),
            );
            continue;
        }
        known.insert(frames, claimed);
        match (&claimed.claim.frames, pattern) {
            (Frames::Bytes(_), Some(pattern)) => group.bytes.push((pattern, claimed)),
            (Frames::Header { vlan, inner, mac }, _) => {
                group.headers.push(((*vlan, *inner, *mac), claimed));
            }
            (Frames::Id(_), _) => group.ids.push(claimed),
            _ => {}
        }
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(priority, _)| *priority);
    for (_, group) in groups {
        group.check(port, findings);
    }
}

impl Group<'_, '_> {
    fn check(&self, port: &str, findings: &mut Findings) {
        let first_header = self.headers.first().map(|(_, claimed)| *claimed);
        for (place, (pattern, claimed)) in self.bytes.iter().enumerate() {
            let same_kind = self.bytes[..place].iter().find(|(other, _)| pattern.is_ambiguous_with(other));
            let other = same_kind.map(|(_, other)| *other).or(first_header).or(self.ids.first().copied());
            if let Some(other) = other {
                findings.push(ambiguous(port, claimed, other));
            }
        }
        if let Some(header) = first_header {
            for claimed in &self.ids {
                findings.push(ambiguous(port, claimed, header));
            }
        }
        self.check_headers(port, findings);
    }

    /// Two claims by header share frames without one being more specific if each has a field that the other has not, and the
    /// fields that both have are equal. `inner` is never without `vlan`; so these are the pairs: VLANs without an address and
    /// an address without VLANs, and two VLANs and one VLAN with an address.
    fn check_headers(&self, port: &str, findings: &mut Findings) {
        let mut by_address = None;
        let mut by_vlan_and_address = HashMap::new();
        for (fields, claimed) in &self.headers {
            match *fields {
                (None, None, Some(_)) => by_address = by_address.or(Some(*claimed)),
                (Some(vlan), None, Some(_)) => {
                    by_vlan_and_address.entry(vlan).or_insert(*claimed);
                }
                _ => {}
            }
        }
        for (fields, claimed) in &self.headers {
            let (Some(vlan), inner, None) = *fields else { continue };
            let of_vlan = by_vlan_and_address.get(&vlan).copied().filter(|_| inner.is_some());
            if let Some(other) = by_address.or(of_vlan) {
                findings.push(ambiguous(port, claimed, other));
            }
        }
    }
}

/// Bytes of a frame, each with the bits that count.
struct Pattern {
    value: [u8; MAX_MATCHED],
    mask: [u8; MAX_MATCHED],
}

impl Pattern {
    /// The pieces do not contradict each other, and end within the array.
    fn new(pieces: &[Bytes]) -> Pattern {
        let mut pattern = Pattern { value: [0; MAX_MATCHED], mask: [0; MAX_MATCHED] };
        for Bytes { at, value, mask } in pieces {
            for (offset, (value, mask)) in value.iter().zip(mask).enumerate() {
                pattern.value[usize::from(*at) + offset] |= value;
                pattern.mask[usize::from(*at) + offset] |= mask;
            }
        }
        pattern
    }

    /// The same for all claims to the same frames.
    fn frames(&self) -> Frames {
        Frames::Bytes(vec![Bytes { at: 0, value: self.value.to_vec(), mask: self.mask.to_vec() }])
    }

    /// Whether a frame can match both, and neither is more specific.
    fn is_ambiguous_with(&self, other: &Pattern) -> bool {
        let (mut more, mut less) = (0, 0);
        for place in 0..MAX_MATCHED {
            if (self.value[place] ^ other.value[place]) & self.mask[place] & other.mask[place] != 0 {
                return false;
            }
            more |= self.mask[place] & !other.mask[place];
            less |= other.mask[place] & !self.mask[place];
        }
        more != 0 && less != 0
    }
}

fn ambiguous(port: &str, claimed: &Claimed<'_>, other: &Claimed<'_>) -> Finding {
    let finding = both(port, "some of the frames", claimed, other);
    finding.help("neither match is more specific: give one of them a larger `priority`")
}

fn both(port: &str, which: &str, claimed: &Claimed<'_>, other: &Claimed<'_>) -> Finding {
    let message = format!("{} claims {which} of port `{port}` that {} claims", name(claimed), name(other));
    Finding::new(Kind::Claim, claimed.at.clone(), message).also(other.at.clone(), "the other claim")
}

/// How a message names the virtual port of a claim.
fn name(claimed: &Claimed<'_>) -> String {
    match claimed.switch {
        "" => format!("virtual port {}", claimed.number),
        switch => format!("`{switch}:{}`", claimed.number),
    }
}
