//! In which order the claims to a physical port are looked at, and which of them by comparing bytes.
//!
//! Frames are looked up by kinds of claims, in one order: bytes first, one claim after the other, then the result of the classify program, a VLAN
//! with an address, an address, two VLANs, one VLAN, all. Priorities come before this. So a claim that has to be looked at before one of a kind
//! that is earlier is compared by bytes: the tags and the address of a frame are bytes at known places. The result of the classify program is
//! not, as the program runs after bytes are compared.

use crate::model::{Claim, Frames};
use std::cmp::Reverse;

/// A claim, by its place in the list, and whether it is compared by bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Looked {
    /// Its place in the list.
    pub at: usize,
    /// Whether it is compared by bytes.
    pub by_bytes: bool,
}

/// A claim by id that would have to be looked at before one that is compared by bytes. Both by their places in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misplaced {
    /// The claim by id.
    pub id: usize,
    /// The one that is compared by bytes.
    pub before: usize,
}

/// The order in which claims to one physical port are looked at: the largest priority first, then the kind.
///
/// # Errors
/// A claim by id that cannot be looked at in this order.
pub fn order(claims: &[&Claim]) -> Result<Vec<Looked>, Misplaced> {
    let mut order: Vec<usize> = (0..claims.len()).collect();
    order.sort_by_key(|at| (Reverse(claims[*at].priority), rank(&claims[*at].frames)));
    let kind = |place: usize| rank(&claims[order[place]].frames).0;
    // The last claims that are in the order of their kinds anyway.
    let mut bytes = order.len();
    while let Some(before) = bytes.checked_sub(1)
        && kind(before) >= OF_ID
        && (bytes == order.len() || kind(before) <= kind(bytes))
    {
        bytes = before;
    }
    let compared = &order[..bytes];
    if let Some(place) = compared.iter().position(|at| matches!(claims[*at].frames, Frames::Id(_))) {
        // The next one is compared too: a claim by id is the earliest kind of those that are not.
        return Err(Misplaced { id: order[place], before: order[place + 1] });
    }
    Ok(order.iter().enumerate().map(|(place, at)| Looked { at: *at, by_bytes: place < bytes }).collect())
}

/// How many rules a claim takes that is compared by bytes: a tag has one of two types, and all frames are those to a station and those to a group.
pub(crate) fn rules_of(frames: &Frames) -> usize {
    match frames {
        Frames::Bytes(_) | Frames::Id(_) => 1,
        Frames::All => 2,
        Frames::Header { vlan, inner, .. } => {
            1 << (usize::from(vlan.is_some()) + usize::from(inner.is_some()))
        }
    }
}

/// The kind of a claim by the result of the classify program.
const OF_ID: u8 = 2;

/// The place of a kind. Of bytes, the more there are, the more specific.
fn rank(frames: &Frames) -> (u8, Reverse<u32>) {
    let kind = match frames {
        Frames::Bytes(bytes) => {
            let bits = bytes.iter().flat_map(|bytes| &bytes.mask).map(|mask| mask.count_ones()).sum();
            return (0, Reverse(bits));
        }
        // Two VLANs with an address are always compared by bytes.
        Frames::Header { vlan: Some(_), inner: Some(_), mac: Some(_) } => 1,
        Frames::Id(_) => OF_ID,
        Frames::Header { vlan: Some(_), inner: None, mac: Some(_) } => 3,
        Frames::Header { vlan: None, mac: Some(_), .. } => 4,
        Frames::Header { vlan: Some(_), inner: Some(_), mac: None } => 5,
        Frames::Header { vlan: Some(_), inner: None, mac: None } => 6,
        Frames::Header { vlan: None, .. } | Frames::All => 7,
    };
    (kind, Reverse(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Bytes, Mac};

    fn claim(frames: Frames, priority: u16) -> Claim {
        Claim { frames, priority }
    }

    fn header(vlan: Option<u16>, inner: Option<u16>, mac: bool) -> Frames {
        Frames::Header { vlan, inner, mac: mac.then_some(Mac([2, 0, 0, 0, 0, 1])) }
    }

    fn bytes() -> Frames {
        Frames::Bytes(vec![Bytes { at: 12, value: vec![8], mask: vec![0xff] }])
    }

    /// The places in their order, those compared by bytes negative and counted from -1.
    fn placed(claims: &[Claim]) -> Result<Vec<isize>, (usize, usize)> {
        let order = order(&claims.iter().collect::<Vec<_>>()).map_err(|wrong| (wrong.id, wrong.before))?;
        Ok(order
            .iter()
            .map(|looked| if looked.by_bytes { -1 - looked.at as isize } else { looked.at as isize })
            .collect())
    }

    #[test]
    fn only_claims_before_an_earlier_kind_are_compared_by_bytes() {
        let vlan = || header(Some(7), None, false);
        let address = || header(None, None, true);
        assert_eq!(placed(&[]), Ok(vec![]));
        assert_eq!(placed(&[claim(Frames::All, 0), claim(vlan(), 0), claim(bytes(), 0)]), Ok(vec![-3, 1, 0]));
        assert_eq!(placed(&[claim(address(), 0), claim(vlan(), 5)]), Ok(vec![-2, 0]));
        assert_eq!(placed(&[claim(address(), 5), claim(vlan(), 0)]), Ok(vec![0, 1]));
        // The VLAN is before an earlier kind; the id is after it, and needs no bytes.
        assert_eq!(
            placed(&[claim(Frames::Id(1), 3), claim(vlan(), 5), claim(Frames::All, 0)]),
            Ok(vec![-2, 0, 2])
        );
        assert_eq!(
            placed(&[claim(Frames::Id(1), 9), claim(vlan(), 5), claim(Frames::All, 0)]),
            Ok(vec![0, 1, 2])
        );
    }

    #[test]
    fn a_claim_by_id_cannot_be_before_bytes() {
        let vlan = header(Some(7), None, false);
        assert_eq!(placed(&[claim(bytes(), 5), claim(Frames::Id(1), 9)]), Err((1, 0)));
        let both = header(Some(7), Some(8), true);
        assert_eq!(placed(&[claim(both, 5), claim(Frames::Id(1), 9)]), Err((1, 0)));
        // The VLAN has to be before the address, so it is compared by bytes.
        let claims = [claim(header(None, None, true), 1), claim(vlan, 5), claim(Frames::Id(1), 9)];
        assert_eq!(placed(&claims), Err((2, 1)));
    }
}
