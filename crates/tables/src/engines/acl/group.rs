//! Groups: rules that are laid out together and never change.

use super::axis::Axis;
use super::layout::{self, LayerLayout};
use super::rule::{Dimension, Order, Rule};
use crate::engines::contract::lines;
use std::collections::HashMap;
use std::sync::Arc;

/// Most rules in a group.
pub(super) const MAX_GROUP: usize = 1 << 14;

/// Most axes of a group. Conditions on further dimensions are checked against the rule.
pub(super) const MAX_AXES: usize = 16;

/// When the rules of a group cut an axis into more pieces than twice their number and this, a condition of several
/// intervals is taken as the one around them and checked against the rule.
const MANY_PIECES: usize = 4096;

/// Spare results or ranks after those of a part, so that they begin on a cache line.
const SPARE: usize = 16;

/// Some rules. In all that follows a rule is its **rank**, its place in their order.
pub(super) struct Group {
    pub(super) axes: Vec<Axis>,
    pub(super) layers: Vec<Layer>,
    /// By rank, and of no rule at last: 0, after all others.
    pub(super) results: Vec<u32>,
    pub(super) orders: Vec<Order>,
    /// By rank, the rule itself when its rows do not say all. Empty when all rows do.
    pub(super) inexact: Vec<Option<Arc<Rule>>>,
    /// By rank, the layer and the slot there.
    homes: Vec<(u32, u32)>,
}

impl Group {
    /// The steps and the cache lines of the lookup of a key; whether rows say which rules are still there.
    pub(super) fn contract(&self, has_dead: bool) -> (u32, u32) {
        let mut probes: u32 = self.axes.iter().map(Axis::loads).sum();
        let mut touched = probes;
        let checked = self.inexact.iter().flatten().map(|rule| lines(rule.bytes())).max().unwrap_or(0);
        for layer in &self.layers {
            let rows = layer.axes.len() as u32 + u32::from(has_dead);
            let row = (layer.words as u32 * 8).div_ceil(64);
            // The part, for each axis its base and the cell of the class, the rows, and the rank.
            touched += 1 + 2 * layer.axes.len() as u32 + rows * row + 1;
            probes += rows + 1;
            if layer.inexact {
                let rules = self.inexact.len().min(layer.words * 64) as u32;
                // Of a rule also the pointer to it.
                (probes, touched) = (probes + rules, touched + rules * (checked + 1));
            }
        }
        // The result and the order.
        (probes + 1, touched + 2)
    }
}

/// Parts of rules, of which a key needs one.
pub(super) struct Layer {
    /// Limbs in a row: 2, 4, 8 or 16.
    pub(super) words: usize,
    pub(super) cut: Option<Cut>,
    pub(super) axes: Vec<LayerAxis>,
    /// The row of a class within its part: for each part `stride` cells, a run of classes for each axis. Empty when the
    /// class is the row.
    pub(super) maps: Vec<u16>,
    pub(super) stride: usize,
    /// For each part, the rank of each bit of a row, then of none.
    pub(super) ranks: Vec<u32>,
    parts: usize,
    /// Some rule's rows do not say all.
    pub(super) inexact: bool,
}

/// Which part a key needs.
pub(super) struct Cut {
    /// The place of the cut axis in the group.
    pub(super) axis: usize,
    /// By class.
    pub(super) part_of: Vec<u16>,
}

/// An axis as a layer uses it.
pub(super) struct LayerAxis {
    /// Its place in the group.
    pub(super) axis: usize,
    /// Where its classes begin in a part's run of `maps`.
    pub(super) run: usize,
    /// For each part, where its rows begin, in limbs.
    pub(super) bases: Vec<u32>,
    pub(super) rows: Rows,
}

/// Rows of bits, one bit for each rule of a part.
#[derive(Default)]
pub(super) struct Rows(Vec<Line>);

#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Line([u64; 8]);

impl Rows {
    fn new(limbs: &[u64]) -> Rows {
        let line = |limbs: &[u64]| Line(std::array::from_fn(|at| limbs.get(at).copied().unwrap_or(0)));
        Rows(limbs.chunks(8).map(line).collect())
    }

    /// The first limb, on a cache line.
    pub(super) fn as_ptr(&self) -> *const u64 {
        self.0.as_ptr().cast()
    }

    fn bytes(&self) -> usize {
        self.0.len() * size_of::<Line>()
    }
}

/// Ranks (and the one of none) that a part has room for.
pub(super) fn slots(words: usize) -> usize {
    words * 64 + SPARE
}

/// An axis while the group is made.
struct Pieces {
    dimension: Dimension,
    starts: Vec<u32>,
    coarse: bool,
    /// For each part of each layer that uses the axis, the row of each piece.
    columns: Vec<Vec<u16>>,
}

impl Pieces {
    /// The pieces that rules cut a dimension into; `None` if they do not.
    fn of(rules: &[Arc<Rule>], dimension: &Dimension) -> Option<Pieces> {
        if rules.iter().all(|rule| rule.is_free(dimension)) {
            return None;
        }
        let mut pieces = Pieces { dimension: *dimension, starts: vec![], coarse: false, columns: vec![] };
        pieces.cut(rules);
        if pieces.starts.len() > 2 * rules.len() + MANY_PIECES {
            pieces.coarse = true;
            pieces.cut(rules);
        }
        Some(pieces)
    }

    fn cut(&mut self, rules: &[Arc<Rule>]) {
        let highest = self.dimension.highest();
        let mut starts = vec![0];
        for rule in rules {
            self.intervals(rule, |low, high| {
                starts.push(low);
                starts.extend((high < highest).then(|| high + 1));
            });
        }
        starts.sort_unstable();
        starts.dedup();
        self.starts = starts;
    }

    fn intervals(&self, rule: &Rule, mut each: impl FnMut(u32, u32)) {
        let kept = &rule.intervals[self.dimension.number];
        if self.coarse && kept.len() > 1 {
            let (low, high) = rule.hull(&self.dimension);
            each(low, high);
        } else {
            kept.iter().for_each(|(low, high)| each(*low, *high));
        }
    }

    /// Whether the pieces say all that the rule asks of this dimension, as far as its intervals do.
    fn says_all(&self, rule: &Rule) -> bool {
        !self.coarse || rule.intervals[self.dimension.number].len() <= 1
    }

    /// The distinct rows of a part, and the row of each piece.
    fn rows(&self, rules: &[Arc<Rule>], part: &[u32], words: usize) -> (Vec<u64>, Vec<u16>) {
        // Where a rule's bit changes.
        let mut flips: Vec<(u32, u32)> = Vec::with_capacity(part.len() * 2);
        for (bit, rank) in (0..).zip(part) {
            self.intervals(&rules[*rank as usize], |low, high| {
                let place = |start: u32| self.starts.partition_point(|other| *other < start) as u32;
                flips.push((place(low), bit));
                flips.extend((high < self.dimension.highest()).then(|| (place(high + 1), bit)));
            });
        }
        flips.sort_unstable();
        let (mut row, mut all, mut lengths) = (vec![0u64; words], Vec::new(), Vec::new());
        let (mut flips, mut from) = (flips.into_iter().peekable(), 0);
        while from < self.starts.len() as u32 {
            while let Some((_, bit)) = flips.next_if(|(place, _)| *place <= from) {
                row[bit as usize / 64] ^= 1 << (bit % 64);
            }
            let next = flips.peek().map_or(self.starts.len() as u32, |(place, _)| *place);
            all.extend_from_slice(&row);
            lengths.push((next - from) as usize);
            from = next;
        }
        let rows: Vec<&[u64]> = all.chunks(words).collect();
        let (numbers, firsts) = number(
            rows.len(),
            |at| rows[at].iter().fold(0, |hash, limb| mix(hash, *limb)),
            |a, b| rows[a] == rows[b],
        );
        let column = numbers.iter().zip(lengths).flat_map(|(row, length)| std::iter::repeat_n(*row, length));
        (firsts.iter().flat_map(|first| rows[*first]).copied().collect(), column.collect())
    }

    /// The class of each piece, and the first piece of each class.
    fn classes(&self) -> (Vec<u16>, Vec<usize>) {
        let mut hashes = vec![0u64; self.starts.len()];
        for column in &self.columns {
            hashes.iter_mut().zip(column).for_each(|(hash, row)| *hash = mix(*hash, u64::from(*row)));
        }
        let same = |a: usize, b: usize| self.columns.iter().all(|column| column[a] == column[b]);
        number(hashes.len(), |at| hashes[at], same)
    }
}

fn mix(hash: u64, value: u64) -> u64 {
    let mixed = (hash ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 32
}

/// Numbers things so that equal ones have the same number, in the order they are first met, with where that is. Different
/// things of one hash may be met as different each time.
fn number(
    count: usize,
    hash: impl Fn(usize) -> u64,
    same: impl Fn(usize, usize) -> bool,
) -> (Vec<u16>, Vec<usize>) {
    let (mut seen, mut firsts) = (HashMap::<u64, u16>::new(), Vec::new());
    let numbers = (0..count).map(|at| {
        let fresh = firsts.len() as u16;
        let known = *seen.entry(hash(at)).or_insert(fresh);
        if firsts.get(usize::from(known)).is_some_and(|first| same(*first, at)) {
            return known;
        }
        firsts.push(at);
        fresh
    });
    (numbers.collect(), firsts)
}

impl Group {
    /// A group of rules, at most [`MAX_GROUP`], in their order. A small one is made faster and is slower to search.
    pub(super) fn new(rules: &[Arc<Rule>], dimensions: &[Dimension], small: bool) -> Group {
        let mut axes: Vec<Pieces> =
            dimensions.iter().filter_map(|dimension| Pieces::of(rules, dimension)).collect();
        axes.sort_by_key(|pieces| std::cmp::Reverse(pieces.starts.len()));
        let unseen: Vec<Dimension> =
            axes.drain(MAX_AXES.min(axes.len())..).map(|pieces| pieces.dimension).collect();
        axes.sort_by_key(|pieces| pieces.dimension.number);
        let kept: Vec<Dimension> = axes.iter().map(|pieces| pieces.dimension).collect();
        let says_all = |rule: &&Arc<Rule>| {
            rule.exact
                && axes.iter().all(|pieces| pieces.says_all(rule))
                && unseen.iter().all(|dimension| rule.is_free(dimension))
        };
        let inexact: Vec<Option<Arc<Rule>>> =
            rules.iter().map(|rule| (!says_all(&rule)).then(|| Arc::clone(rule))).collect();
        let layouts = layout::layers(rules, &kept);
        let mut layers: Vec<Layer> =
            layouts.iter().map(|laid_out| Layer::new(rules, laid_out, &mut axes, &inexact)).collect();
        // A layer's columns follow those of the layers before.
        let mut done = vec![0; axes.len()];
        let classes: Vec<(Vec<u16>, Vec<usize>)> = axes.iter().map(Pieces::classes).collect();
        let only = layers.len() == 1 && layers[0].parts == 1;
        for (layer, laid_out) in layers.iter_mut().zip(&layouts) {
            layer.map(laid_out, &axes, &classes, &mut done, only);
        }
        let mut homes = vec![(0, 0); rules.len()];
        for (number, (layer, laid_out)) in (0..).zip(layers.iter().zip(&layouts)) {
            for (part, ranks) in laid_out.parts.iter().enumerate() {
                for (bit, rank) in ranks.iter().enumerate() {
                    homes[*rank as usize] = (number, (part * layer.words * 64 + bit) as u32);
                }
            }
        }
        let axes = axes
            .iter()
            .zip(&classes)
            .map(|(pieces, (classes, _))| Axis::new(pieces.dimension, &pieces.starts, classes, small));
        Group {
            axes: axes.collect(),
            layers,
            results: rules.iter().map(|rule| rule.result).chain([0]).collect(),
            orders: rules.iter().map(|rule| rule.order).chain([Order::LAST]).collect(),
            inexact: if inexact.iter().all(Option::is_none) { Vec::new() } else { inexact },
            homes,
        }
    }

    /// The number of rules.
    pub(super) fn len(&self) -> usize {
        self.homes.len()
    }

    /// For each layer, a row for each part that has all rules but those of these ranks.
    pub(super) fn all_but(&self, dead: &[u32]) -> Vec<Rows> {
        let mut rows: Vec<Vec<u64>> =
            self.layers.iter().map(|layer| vec![!0; layer.parts * layer.words]).collect();
        for (layer, slot) in dead.iter().map(|rank| self.homes[*rank as usize]) {
            rows[layer as usize][slot as usize / 64] &= !(1 << (slot % 64));
        }
        rows.iter().map(|rows| Rows::new(rows)).collect()
    }

    pub(super) fn bytes(&self) -> usize {
        let axes: usize = self.axes.iter().map(|axis| size_of::<Axis>() + axis.bytes()).sum();
        let layers: usize = self.layers.iter().map(Layer::bytes).sum();
        let rules = self.len() * (4 + size_of::<Order>() + 8) + self.inexact.len() * 8;
        axes + layers + rules
    }
}

impl Layer {
    /// A layer without its maps, which need the classes of all layers.
    fn new(
        rules: &[Arc<Rule>],
        laid_out: &LayerLayout,
        axes: &mut [Pieces],
        inexact: &[Option<Arc<Rule>>],
    ) -> Layer {
        let most = laid_out.parts.iter().map(Vec::len).max().unwrap_or(0);
        let words = most.div_ceil(64).next_power_of_two().clamp(2, layout::MAX_RULES / 64);
        let ranks = || laid_out.parts.iter().flatten().map(|rank| *rank as usize);
        let mut used = Vec::new();
        for (axis, pieces) in axes.iter_mut().enumerate() {
            let is_cut = laid_out.cut.as_ref().is_some_and(|(cut, _)| *cut == pieces.dimension.number);
            if !is_cut && ranks().all(|rank| rules[rank].is_free(&pieces.dimension)) {
                continue;
            }
            let (mut all, mut bases) = (Vec::new(), Vec::with_capacity(laid_out.parts.len()));
            for part in &laid_out.parts {
                let (rows, column) = pieces.rows(rules, part, words);
                bases.push(all.len() as u32);
                all.extend_from_slice(&rows);
                pieces.columns.push(column);
            }
            used.push(LayerAxis { axis, run: 0, bases, rows: Rows::new(&all) });
        }
        let mut slots_of = Vec::new();
        for part in &laid_out.parts {
            let end = slots_of.len() + slots(words);
            slots_of.extend_from_slice(part);
            slots_of.resize(end, rules.len() as u32);
        }
        let parts = laid_out.parts.len();
        let inexact = ranks().any(|rank| inexact[rank].is_some());
        Layer { words, cut: None, axes: used, maps: Vec::new(), stride: 0, ranks: slots_of, parts, inexact }
    }

    /// Adds the maps. `done` counts the columns of each axis that earlier layers own.
    fn map(
        &mut self,
        laid_out: &LayerLayout,
        axes: &[Pieces],
        classes: &[(Vec<u16>, Vec<usize>)],
        done: &mut [usize],
        only: bool,
    ) {
        if only {
            return;
        }
        for used in &mut self.axes {
            used.run = self.stride;
            self.stride += classes[used.axis].1.len();
        }
        self.maps.reserve(self.stride * self.parts);
        for part in 0..self.parts {
            for used in &self.axes {
                let column = &axes[used.axis].columns[done[used.axis] + part];
                self.maps.extend(classes[used.axis].1.iter().map(|first| column[*first]));
            }
        }
        self.axes.iter().for_each(|used| done[used.axis] += self.parts);
        self.cut = laid_out.cut.as_ref().and_then(|(number, cuts)| {
            let axis = axes.iter().position(|pieces| pieces.dimension.number == *number)?;
            // Pieces of one class lie in different parts only where no rule of either part accepts them.
            let part = |first: &usize| cuts.partition_point(|cut| *cut < axes[axis].starts[*first]) as u16;
            Some(Cut { axis, part_of: classes[axis].1.iter().map(part).collect() })
        });
    }

    fn bytes(&self) -> usize {
        let of_axis = |used: &LayerAxis| used.rows.bytes() + used.bases.len() * 4 + size_of::<LayerAxis>();
        let axes = self.axes.iter().map(of_axis);
        let cut = self.cut.as_ref().map_or(0, |cut| cut.part_of.len() * 2);
        size_of::<Layer>() + axes.sum::<usize>() + cut + self.maps.len() * 2 + self.ranks.len() * 4
    }
}
