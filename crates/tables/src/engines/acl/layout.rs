//! Which rules lie in which layer and part.

use super::rule::{Dimension, Rule};
use std::sync::Arc;

/// Most rules in a part of a layer that has several.
const PART_RULES: usize = 512;

/// Most rules in a part of a layer that has no others.
pub(super) const MAX_RULES: usize = 1024;

/// Most parts of a layer.
const MAX_PARTS: usize = 4096;

/// A layer that holds fewer rules than this share of those that are left is not worth a lookup of its own.
const WORTHWHILE: usize = 8;

/// One layer, in ranks: places of rules in their order.
pub(super) struct LayerLayout {
    /// The dimension (by number) that is cut, and the last value of each part but the last one.
    pub(super) cut: Option<(usize, Vec<u32>)>,
    /// The ranks of each part, rising.
    pub(super) parts: Vec<Vec<u32>>,
}

/// Lays out rules that come in their order.
pub(super) fn layers(rules: &[Arc<Rule>], dimensions: &[Dimension]) -> Vec<LayerLayout> {
    let mut layers = Vec::new();
    let mut left: Vec<u32> = (0..rules.len() as u32).collect();
    while left.len() > MAX_RULES {
        let best = dimensions.iter().filter_map(|dimension| cut(rules, &left, dimension));
        let Some((held, layout)) = best.max_by_key(|(held, _)| *held) else { break };
        if held * WORTHWHILE < left.len() {
            break;
        }
        let mut taken = vec![false; rules.len()];
        layout.parts.iter().flatten().for_each(|rank| taken[*rank as usize] = true);
        left.retain(|rank| !taken[*rank as usize]);
        layers.push(layout);
    }
    let last = left.chunks(MAX_RULES).map(|ranks| LayerLayout { cut: None, parts: vec![ranks.to_vec()] });
    layers.extend(last);
    layers
}

/// The best layer that cuts a dimension, with the number of rules it holds: parts between cuts that no rule of them
/// crosses. Rules wider than a limit are left to other layers, as is what a part has no room for; the limit that
/// leaves fewest is taken.
fn cut(rules: &[Arc<Rule>], left: &[u32], dimension: &Dimension) -> Option<(usize, LayerLayout)> {
    let hull = |rank: &u32| rules[*rank as usize].hull(dimension);
    let mut hulls: Vec<(u32, u32)> = left.iter().map(hull).collect();
    hulls.sort_unstable();
    let bits = dimension.highest().count_ones();
    let limits = (0..8).map(|eighths| dimension.highest() >> (bits - bits * eighths / 8).min(31));
    let best = limits.map(|widest| cuts(&hulls, widest)).max_by_key(|(held, _)| *held)?;
    let cuts = best.1;
    if cuts.is_empty() {
        return None;
    }
    let mut parts = vec![Vec::new(); cuts.len() + 1];
    let mut held = 0;
    for rank in left {
        let (low, high) = hull(rank);
        let part = cuts.partition_point(|cut| *cut < low);
        let inside = cuts.get(part).is_none_or(|cut| high <= *cut);
        if inside && parts[part].len() < PART_RULES {
            parts[part].push(*rank);
            held += 1;
        }
    }
    Some((held, LayerLayout { cut: Some((dimension.number, cuts)), parts }))
}

/// Cuts between rules no wider than `widest`, and how many of these find room. `hulls` rise.
fn cuts(hulls: &[(u32, u32)], widest: u32) -> (usize, Vec<u32>) {
    let (mut held, mut in_part, mut cuts) = (0, 0, Vec::new());
    // A crowd is a run of overlapping rules, which no cut can part. It ends at `end`, the one before at `before`.
    let (mut crowd, mut end, mut before) = (0, 0u32, 0u32);
    let mut close = |crowd: usize, before: u32| {
        let crowd = crowd.min(PART_RULES);
        if in_part > 0 && in_part + crowd > PART_RULES && cuts.len() + 1 < MAX_PARTS {
            cuts.push(before);
            in_part = 0;
        }
        let room = crowd.min(PART_RULES - in_part);
        in_part += room;
        held += room;
    };
    for &(low, high) in hulls.iter().filter(|(low, high)| high - low <= widest) {
        if crowd > 0 && low > end {
            close(crowd, before);
            (before, crowd) = (end, 0);
        }
        crowd += 1;
        end = end.max(high);
    }
    close(crowd, before);
    (held, cuts)
}

#[cfg(test)]
mod tests {
    use super::super::rule::{self, Condition, Order};
    use super::*;

    #[test]
    fn each_rule_lies_in_one_part_and_wholly_between_its_cuts() {
        let (fields, dimensions) = ([(0, 32)], rule::dimensions(&[(0, 32)], 1));
        let rules: Vec<Arc<Rule>> = (0..5000u64)
            .map(|n| {
                let low = n.wrapping_mul(0x9e37_79b9) % (1 << 31);
                let high = low + [5, 1000, 1 << 20, 1 << 30][n as usize % 4];
                let range = Condition::Range { low: vec![low], high: vec![high] };
                Arc::new(Rule::new(Order::new(0, n), &[range], &fields, &dimensions, 1, 1))
            })
            .collect();
        let layouts = layers(&rules, &dimensions);
        assert!(layouts.len() > 2 && layouts[0].parts.len() > 3);
        let mut ranks: Vec<u32> =
            layouts.iter().flat_map(|layout| layout.parts.iter().flatten()).copied().collect();
        ranks.sort_unstable();
        assert!(ranks.into_iter().eq(0..5000));
        for layout in &layouts {
            let cuts = layout.cut.as_ref().map_or(&[][..], |(_, cuts)| cuts);
            assert_eq!(layout.parts.len(), cuts.len() + 1);
            for (part, ranks) in layout.parts.iter().enumerate() {
                assert!(ranks.is_sorted() && ranks.len() <= MAX_RULES);
                for rank in ranks {
                    let (low, high) = rules[*rank as usize].hull(&dimensions[0]);
                    assert!(part == 0 || cuts[part - 1] < low);
                    assert!(cuts.get(part).is_none_or(|cut| high <= *cut));
                }
            }
        }
    }
}
