//! Which rules lie in which block.

use super::Layer;
use super::block::{self, Block, MAX_RULES, PIECE_RULES};
use super::rule::{Dimension, Order, Rule};
use super::search::{BOUNDS, CHILDREN, Tree};
use std::sync::Arc;

/// Most parts of a layer, so that two levels of search find one.
const MAX_PARTS: usize = CHILDREN * BOUNDS;

/// A layer that holds fewer rules than this share of those that are left is not worth a lookup of its own.
const WORTHWHILE: usize = 8;

/// Where a rule lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    layer: usize,
    part: usize,
}

/// The layers as the writer knows them.
#[derive(Default)]
pub(super) struct Layout {
    layers: Vec<Plan>,
    /// Rules when everything was laid out, and changes since then.
    laid_out: usize,
    changes: usize,
}

/// One layer.
struct Plan {
    cut: Dimension,
    /// The last value of each part but the last one.
    cuts: Vec<u32>,
    parts: Vec<Part>,
    dimensions: Vec<(Dimension, usize)>,
}

#[derive(Default)]
struct Part {
    /// In their order.
    rules: Vec<Arc<Rule>>,
    block: Option<Arc<Block>>,
}

impl Layout {
    /// Lays rules (in their order) out.
    pub(super) fn of(rules: &[Arc<Rule>], dimensions: &[Dimension]) -> Layout {
        let mut layout = Layout { layers: Vec::new(), laid_out: rules.len(), changes: 0 };
        let Some(&first) = dimensions.first() else { return layout };
        let mut left = rules.to_vec();
        while left.len() > MAX_RULES {
            let best = dimensions.iter().filter_map(|dimension| cut(&left, dimension));
            let best =
                best.max_by_key(|layer| layer.parts.iter().map(|part| part.rules.len()).sum::<usize>());
            let Some(layer) = best.filter(|layer| {
                layer.parts.iter().map(|part| part.rules.len()).sum::<usize>() * WORTHWHILE >= left.len()
            }) else {
                break;
            };
            left.retain(|rule| !layer.holds(rule));
            layout.layers.push(layer);
        }
        for rules in left.chunks(MAX_RULES) {
            let part = Part { rules: rules.to_vec(), block: None };
            layout.layers.push(Plan {
                cut: first,
                cuts: Vec::new(),
                parts: vec![part],
                dimensions: Vec::new(),
            });
        }
        layout
    }

    /// Whether so many rules with so many new ones had better be laid out from scratch.
    pub(super) fn worth_keeping(&mut self, rules: usize, added: usize) -> bool {
        self.changes += added;
        !self.layers.is_empty() && added <= self.laid_out / 4 + 16 && self.changes <= rules / 2 + 64
    }

    /// Every rule's place.
    pub(super) fn places(&self) -> impl Iterator<Item = (Place, Order)> {
        self.layers.iter().enumerate().flat_map(|(layer, plan)| {
            plan.parts.iter().enumerate().flat_map(move |(part, rules)| {
                rules.rules.iter().map(move |rule| (Place { layer, part }, rule.order))
            })
        })
    }

    /// Puts a rule where there is room; `None` when there is none.
    pub(super) fn insert(&mut self, rule: &Arc<Rule>) -> Option<Place> {
        for (layer, plan) in self.layers.iter_mut().enumerate() {
            let Some(part) = plan.part_of(rule) else { continue };
            let kept = &mut plan.parts[part];
            if kept.rules.len() >= MAX_RULES {
                continue;
            }
            let at = kept.rules.partition_point(|other| other.order < rule.order);
            kept.rules.insert(at, Arc::clone(rule));
            kept.block = None;
            return Some(Place { layer, part });
        }
        None
    }

    pub(super) fn remove(&mut self, place: Place, order: Order) {
        let part = &mut self.layers[place.layer].parts[place.part];
        part.rules.retain(|rule| rule.order != order);
        part.block = None;
        self.changes += 1;
    }

    /// The layers for readers. Blocks that nothing was written to are those of before.
    pub(super) fn publish(&mut self, dimensions: &[Dimension]) -> Vec<Layer> {
        self.layers.iter_mut().map(|plan| plan.publish(dimensions)).collect()
    }
}

impl Plan {
    /// The part that a rule lies wholly in.
    fn part_of(&self, rule: &Rule) -> Option<usize> {
        let (low, high) = rule.hull(&self.cut);
        let part = self.cuts.partition_point(|cut| *cut < low);
        self.cuts.get(part).is_none_or(|cut| high <= *cut).then_some(part)
    }

    fn holds(&self, rule: &Rule) -> bool {
        self.part_of(rule).is_some_and(|part| {
            let rules = &self.parts[part].rules;
            rules.binary_search_by_key(&rule.order, |rule| rule.order).is_ok()
        })
    }

    fn publish(&mut self, dimensions: &[Dimension]) -> Layer {
        // All blocks of a layer have the same dimensions and levels, so that a lookup's loops do not depend on the
        // key.
        let mut needed: Vec<(Dimension, usize)> = Vec::new();
        for dimension in dimensions {
            let kept = self.dimensions.iter().find(|(kept, _)| kept.number == dimension.number);
            let fresh = self.parts.iter().filter(|part| part.block.is_none());
            let levels = fresh.map(|part| block::levels(&part.rules, dimension)).max().unwrap_or(0);
            let levels = levels.max(kept.map_or(0, |(_, levels)| *levels));
            if levels > 0 {
                needed.push((*dimension, levels));
            }
        }
        if needed != self.dimensions {
            self.parts.iter_mut().for_each(|part| part.block = None);
            self.dimensions = needed;
        }
        let dimensions = &self.dimensions;
        let parts = self.parts.iter_mut().map(|part| {
            let fresh = || Arc::new(Block::new(&part.rules, dimensions));
            Arc::clone(part.block.get_or_insert_with(fresh))
        });
        Layer {
            parts: parts.collect(),
            cut: self.cut,
            cuts: Tree::new(&self.cuts, 1),
            dimensions: self.dimensions.clone(),
        }
    }
}

/// The best layer that cuts a dimension: parts of at most 512 rules between cuts that no rule of them crosses. Rules
/// wider than a limit are left to other layers, as are crowds; the limit that leaves fewest is taken.
fn cut(rules: &[Arc<Rule>], dimension: &Dimension) -> Option<Plan> {
    let mut best: Option<(usize, Vec<u32>)> = None;
    let mut hulls: Vec<(u32, u32)> = rules.iter().map(|rule| rule.hull(dimension)).collect();
    hulls.sort_unstable();
    for quarter in 1..8 {
        let widest = dimension.highest() >> (quarter * (32 - dimension.highest().leading_zeros()) / 8);
        let (mut held, mut cuts) = (0, Vec::new());
        let (mut in_part, mut crowd, mut end) = (0, 0, 0u32);
        // Where the part so far could end, before the group of overlapping rules that is being gathered.
        let mut before_crowd = 0;
        let close_crowd =
            |in_part: &mut usize, crowd: usize, held: &mut usize, cuts: &mut Vec<u32>, before: u32| {
                if *in_part > 0 && *in_part + crowd > PIECE_RULES {
                    cuts.push(before);
                    *in_part = 0;
                }
                if crowd <= PIECE_RULES {
                    *in_part += crowd;
                    *held += crowd;
                }
            };
        for &(low, high) in hulls.iter().filter(|(low, high)| high - low <= widest) {
            if crowd > 0 && low > end {
                close_crowd(&mut in_part, crowd, &mut held, &mut cuts, before_crowd);
                (before_crowd, crowd) = (end, 0);
            }
            crowd += 1;
            end = end.max(high);
        }
        close_crowd(&mut in_part, crowd, &mut held, &mut cuts, before_crowd);
        if cuts.len() < MAX_PARTS && !cuts.is_empty() && best.as_ref().is_none_or(|(most, _)| held > *most) {
            best = Some((held, cuts));
        }
    }
    let (_, cuts) = best?;
    let parts = (0..=cuts.len()).map(|_| Part::default()).collect();
    let mut plan = Plan { cut: *dimension, cuts, parts, dimensions: Vec::new() };
    for rule in rules {
        if let Some(part) = plan.part_of(rule)
            && plan.parts[part].rules.len() < PIECE_RULES
        {
            plan.parts[part].rules.push(Arc::clone(rule));
        }
    }
    Some(plan)
}
