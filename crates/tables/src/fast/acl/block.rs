//! Blocks: up to 1024 rules as rows of bits.

use super::rule::{Dimension, Order, Rule};
use super::search::{Tree, levels_for};
use std::sync::Arc;

/// Most rules in a block.
pub(super) const MAX_RULES: usize = 1024;

/// Rules in a piece of a row.
pub(super) const PIECE_RULES: usize = 512;

/// A cache line of bits, one for each of 512 rules.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
pub(super) struct Piece(pub(super) [u64; 8]);

/// Some rules, best first. It never changes.
pub(super) struct Block {
    /// For each dimension of the layer.
    pub(super) tables: Vec<Table>,
    /// Pieces in a row: 1 or 2.
    pub(super) pieces: usize,
    pub(super) results: Vec<u32>,
    pub(super) orders: Vec<Order>,
    /// For each rule, the rule itself when its rows do not say all. Empty when all rows do.
    pub(super) inexact: Vec<Option<Arc<Rule>>>,
}

/// One dimension of a block.
pub(super) struct Table {
    pub(super) tree: Tree,
    pub(super) rows: Vec<Piece>,
}

/// The boundaries of the rules in a dimension.
fn bounds(rules: &[Arc<Rule>], dimension: &Dimension) -> Vec<u32> {
    let intervals = rules.iter().flat_map(|rule| &rule.intervals[dimension.number]);
    let highest = dimension.highest();
    // A piece begins where an interval does, and after where one ends; a boundary is one less.
    let mut bounds: Vec<u32> = intervals
        .flat_map(|&(low, high)| [low.checked_sub(1), (high < highest).then_some(high)])
        .flatten()
        .collect();
    bounds.sort_unstable();
    bounds.dedup();
    bounds
}

/// Levels of the search tree that a block of these rules has in a dimension; 0 when no rule cares about it.
pub(super) fn levels(rules: &[Arc<Rule>], dimension: &Dimension) -> usize {
    let bounds = bounds(rules, dimension).len();
    if bounds == 0 && rules.iter().all(|rule| !rule.intervals[dimension.number].is_empty()) {
        return 0;
    }
    levels_for(bounds)
}

impl Block {
    /// A block of rules in their order, with trees of at least these levels.
    pub(super) fn new(rules: &[Arc<Rule>], dimensions: &[(Dimension, usize)]) -> Block {
        let pieces = rules.len().div_ceil(PIECE_RULES).max(1);
        let tables = dimensions.iter().map(|(dimension, levels)| {
            let bounds = bounds(rules, dimension);
            Table { rows: rows(rules, dimension, &bounds, pieces), tree: Tree::new(&bounds, *levels) }
        });
        let exact = rules.iter().all(|rule| rule.exact);
        let inexact = rules.iter().map(|rule| (!rule.exact).then(|| Arc::clone(rule)));
        Block {
            tables: tables.collect(),
            pieces,
            results: rules.iter().map(|rule| rule.result).collect(),
            orders: rules.iter().map(|rule| rule.order).collect(),
            inexact: if exact { Vec::new() } else { inexact.collect() },
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let tables = self.tables.iter().map(|table| table.tree.bytes() + table.rows.len() * 64);
        tables.sum::<usize>() + self.results.len() * (4 + size_of::<Order>()) + self.inexact.len() * 8
    }
}

/// For each piece of the axis between boundaries, the rules that accept it.
fn rows(rules: &[Arc<Rule>], dimension: &Dimension, bounds: &[u32], pieces: usize) -> Vec<Piece> {
    let mut rows = vec![Piece([0; 8]); (bounds.len() + 1) * pieces];
    let place = |value: u32| bounds.partition_point(|bound| *bound < value);
    for (number, rule) in rules.iter().enumerate() {
        let (piece, limb, bit) = (number / PIECE_RULES, number % PIECE_RULES / 64, 1u64 << (number % 64));
        for &(low, high) in &rule.intervals[dimension.number] {
            for row in place(low)..=place(high) {
                rows[row * pieces + piece].0[limb] |= bit;
            }
        }
    }
    rows
}
