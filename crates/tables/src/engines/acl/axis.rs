//! Axes: one dimension of the keys, cut where some rule begins or ends. Each value lies in a **class**, and all values of
//! a class are accepted by the same rules, so a key is classified once for all rules.

use super::rule::Dimension;
use super::search::Tree;

/// Widest dimension that is one array, in bits.
const DIRECT_BITS: u32 = 16;

/// Most cells of the second step of a split map, in all (8 MB) and for each interval.
const MAX_SPLIT: usize = 1 << 22;
const SPLIT_EACH: usize = 1 << 12;

/// A split map of at most 16 bits has no more cells than this, so that the nearest cache holds it; it is direct otherwise.
const SMALL_SPLIT: usize = 1 << 13;

/// Most chunks of 256 cells on one step of a stepped map: 16 MB on the second step, 8 MB on the third.
const MAX_CHUNKS: usize = 1 << 14;

/// A dimension and the classes of its values.
pub(super) struct Axis {
    pub(super) dimension: Dimension,
    pub(super) map: Map,
}

/// How a value's class is found.
pub(super) enum Map {
    /// `classes[value]`.
    Direct(Vec<u16>),
    /// The upper half of the value, moved up to 16 or 32 bits, and then as many of its `low` lower bits as are needed to
    /// tell its neighbours apart. A cell of the first step is 32 times the index of the first of the next
    /// cells to choose from, plus the number of lowest bits that do not matter.
    Split { up: u32, low: u32, first: Vec<u32>, second: Vec<u16> },
    /// Sixteen bits, then eight, then eight, of the value moved up to 32 bits. A cell of the first two steps is
    /// twice the index of the next cell, plus one when that is the first of 256 to choose from.
    Stepped { up: u32, first: Vec<u32>, second: Vec<u32>, third: Vec<u16> },
    /// The place among boundaries, then `classes[place]`: the smallest and the slowest.
    Sorted { tree: Tree, classes: Vec<u16> },
}

impl Axis {
    /// An axis cut into intervals that begin at `starts` (rising, the first one 0), interval `i` of class `classes[i]`.
    /// Small ones are made faster and are slower to use.
    pub(super) fn new(dimension: Dimension, starts: &[u32], classes: &[u16], small: bool) -> Axis {
        let width = dimension.highest().count_ones();
        let most = MAX_SPLIT.min(starts.len() * SPLIT_EACH);
        let split = match width {
            0..=8 => None,
            9..=DIRECT_BITS => split(starts, classes, DIRECT_BITS - width, 8, SMALL_SPLIT),
            _ if small => None,
            _ => split(starts, classes, 32 - width, 16, most),
        };
        let map = if let Some(map) = split {
            map
        } else if width <= if small { 8 } else { DIRECT_BITS } {
            Map::Direct(direct(starts, classes, dimension.highest()))
        } else if !small && width > DIRECT_BITS && fits(starts, 32 - width) {
            stepped(starts, classes, 32 - width)
        } else {
            let bounds: Vec<u32> = starts.iter().skip(1).map(|start| start - 1).collect();
            Map::Sorted { tree: Tree::new(&bounds), classes: classes.to_vec() }
        };
        Axis { dimension, map }
    }

    /// The loads by which a class is found.
    pub(super) fn loads(&self) -> u32 {
        match &self.map {
            Map::Direct(_) => 1,
            Map::Split { .. } => 2,
            Map::Stepped { .. } => 3,
            Map::Sorted { tree, .. } => tree.levels as u32 + 1,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match &self.map {
            Map::Direct(classes) => classes.len() * 2,
            Map::Split { first, second, .. } => first.len() * 4 + second.len() * 2,
            Map::Stepped { first, second, third, .. } => (first.len() + second.len()) * 4 + third.len() * 2,
            Map::Sorted { tree, classes } => tree.bytes() + classes.len() * 2,
        }
    }
}

fn direct(starts: &[u32], classes: &[u16], highest: u32) -> Vec<u16> {
    let mut map = Vec::with_capacity(highest as usize + 1);
    for (at, class) in classes.iter().enumerate() {
        let end = starts.get(at + 1).copied().unwrap_or(highest + 1);
        map.resize(end as usize, *class);
    }
    map
}

/// A split map of no more than so many cells on the second step.
fn split(starts: &[u32], classes: &[u16], up: u32, low: u32, most: usize) -> Option<Map> {
    let mut walk = Walk { starts, classes, up, at: 0 };
    let span = (1u32 << low) - 1;
    // The first cells of the second step are one for each class, for what needs no more.
    let mut second = each_class(classes);
    let mut first = Vec::with_capacity(1 << low);
    for top in 0..1u32 << low {
        let base = top << low;
        if let Some(class) = walk.whole(base, span) {
            first.push(u32::from(class) << 5 | 31);
            continue;
        }
        let inner = walk.starts[walk.at + 1..].iter().map(|start| start << up);
        let coarsest = inner.take_while(|start| *start <= base + span).map(u32::trailing_zeros).min()?;
        if second.len() + (1 << (low - coarsest)) > most {
            return None;
        }
        first.push((second.len() as u32) << 5 | coarsest);
        second.extend((base..=base + span).step_by(1 << coarsest).map(|value| walk.class(value)));
    }
    second.shrink_to_fit();
    Some(Map::Split { up, low, first, second })
}

/// One cell for each class.
fn each_class(classes: &[u16]) -> Vec<u16> {
    (0..=classes.iter().copied().max().unwrap_or(0)).collect()
}

/// Whether a stepped map of these intervals stays within its memory.
fn fits(starts: &[u32], up: u32) -> bool {
    let chunks = |bits: u32| {
        let inner = starts.iter().map(|start| start << up).filter(|start| start.trailing_zeros() < bits);
        let (mut count, mut last) = (0, None);
        for chunk in inner.map(|start| start >> bits) {
            count += usize::from(last.replace(chunk) != Some(chunk));
        }
        count
    };
    chunks(16) <= MAX_CHUNKS && chunks(8) <= MAX_CHUNKS
}

fn stepped(starts: &[u32], classes: &[u16], up: u32) -> Map {
    // The first cells of the second and third step are one for each class, for chunks that need no more.
    let mut third = each_class(classes);
    let mut second: Vec<u32> = third.iter().map(|class| u32::from(*class) * 2).collect();
    let mut walk = Walk { starts, classes, up, at: 0 };
    let first = (0..1u32 << 16).map(|top| {
        if let Some(class) = walk.whole(top << 16, 0xffff) {
            return u32::from(class) * 2;
        }
        let chunk = second.len() as u32;
        second.extend((0..256).map(|middle| {
            let base = top << 16 | middle << 8;
            if let Some(class) = walk.whole(base, 0xff) {
                return u32::from(class) * 2;
            }
            let chunk = third.len() as u32;
            third.extend((0..256).map(|low| walk.class(base | low)));
            chunk * 2 + 1
        }));
        chunk * 2 + 1
    });
    let first = first.collect();
    second.shrink_to_fit();
    third.shrink_to_fit();
    Map::Stepped { up, first, second, third }
}

/// Goes through the intervals with rising values.
struct Walk<'a> {
    starts: &'a [u32],
    classes: &'a [u16],
    up: u32,
    at: usize,
}

impl Walk<'_> {
    fn class(&mut self, value: u32) -> u16 {
        while self.starts.get(self.at + 1).is_some_and(|start| start << self.up <= value) {
            self.at += 1;
        }
        self.classes[self.at]
    }

    /// The class of all values from `base` to `base + span`, when they lie in one interval.
    fn whole(&mut self, base: u32, span: u32) -> Option<u16> {
        let class = self.class(base);
        let next = self.starts.get(self.at + 1);
        next.is_none_or(|start| start << self.up > base + span).then_some(class)
    }
}

#[cfg(test)]
mod tests {
    use super::super::lookup::classes_of;
    use super::super::rule;
    use super::*;

    #[test]
    fn every_kind_of_map_gives_each_value_the_class_of_its_interval() {
        for (width, step) in
            [(1u32, 1u64), (8, 3), (9, 7), (16, 77), (17, 300), (24, 70_001), (32, 9_000_011)]
        {
            let dimension = rule::dimensions(&[(5, width)], 1)[0];
            let end = 1u64 << width;
            let mut starts: Vec<u32> = (0..end).step_by(step as usize).map(|start| start as u32).collect();
            starts.extend([(end - 1) as u32, (end / 2) as u32]);
            starts.sort_unstable();
            starts.dedup();
            let classes: Vec<u16> = (0..starts.len()).map(|at| (at * 7 % 300) as u16).collect();
            for small in [false, true] {
                let axis = Axis::new(dimension, &starts, &classes, small);
                let values = starts.iter().flat_map(|start| [*start, start.saturating_sub(1)]);
                for value in values.chain([dimension.highest()]) {
                    let at = starts.partition_point(|start| *start <= value) - 1;
                    assert_eq!(
                        classes_of(&axis, &[u64::from(value) << 5]),
                        [classes[at]],
                        "{value} of {width}"
                    );
                }
            }
        }
    }

    #[test]
    fn too_many_chunks_are_sorted_instead() {
        let dimension = rule::dimensions(&[(0, 32)], 1)[0];
        let starts: Vec<u32> = (0..20_000u32).map(|at| at * 0x1_0301).collect();
        let classes: Vec<u16> = (0..20_000).collect();
        let axis = Axis::new(dimension, &starts, &classes, false);
        assert!(matches!(axis.map, Map::Sorted { .. }) && axis.bytes() < 1 << 20);
        assert_eq!(classes_of(&axis, &[0x1_0301 * 777 + 5]), [777]);
    }
}
