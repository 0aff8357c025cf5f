//! Building trees from prefixes in order, and changing them.

use super::store::{Items, Store, cut, window};
use super::tree::{Full, LANES, Line, Lines, MAX_BITS, Tree, Value, WINDOW};
use std::sync::atomic::{AtomicU32, Ordering};

/// Where at most this many prefixes lie below a chunk, a change builds it again as a whole.
const SMALL: usize = 96;

/// What a line more costs when the size of a chunk is chosen, in 256ths of a prefix that needs another level.
const LINE_COST: usize = 64;

/// What each doubling of a line's prefixes beyond its room costs, in the same unit.
const DOUBLING_COST: usize = 32;

/// Writes to a tree.
pub(super) struct Builder<'a> {
    pub(super) tree: &'a Tree,
    pub(super) lines: &'a mut Lines,
    pub(super) store: &'a Store,
    /// The result of the prefixes no longer than the first array's bits, by slot.
    pub(super) bases: &'a mut [u32],
}

/// Prefixes that share a lane.
#[derive(Clone, Copy)]
struct Cluster<'a> {
    items: Items<'a>,
    /// The length of the prefix that covers them.
    node: u32,
    /// The result of the longest prefix around it.
    base: u32,
    /// It may be parted still.
    open: bool,
}

impl<'a> Cluster<'a> {
    fn new(items: Items<'a>, base: u32) -> Option<Cluster<'a>> {
        (items.count() > 0).then(|| Cluster { items, node: items.common(), base, open: true })
    }

    /// The result of the covering prefix, if there is one, and what lies below it on either side.
    fn part(self) -> (Option<u32>, [Option<Cluster<'a>>; 2]) {
        let own = Some(self.items.item(0)).filter(|first| first.len() == self.node).map(|own| own.result());
        let (_, below) = self.items.split(usize::from(own.is_some()));
        let is_low = |item: super::store::Item<'_>| item.window(self.node) >> 31 == 0;
        let (low, high) = below.split(below.partition_point(is_low));
        let base = own.unwrap_or(self.base);
        (own, [Cluster::new(low, base), Cluster::new(high, base)])
    }
}

/// One place of a line.
#[derive(Clone, Copy)]
struct Lane {
    len: u32,
    prefix: u32,
    value: Value,
}

impl Builder<'_> {
    /// Brings all slots below a prefix, which is no longer than the first array's bits, up to date.
    pub(super) fn slots(&mut self, digits: &[u64], len: u32) -> Result<(), Full> {
        let (root_bits, store) = (self.tree.root_bits, self.store);
        let first = self.tree.slot(digits);
        let end = first + (1 << (root_bits - len));
        let base = store.longest(digits, 0..=len).unwrap_or(0);
        self.bases[first..end].fill(base);
        let start = store.seek(digits, len);
        let (mut place, mut words) = (start, Vec::new());
        while let Some(item) = store.at(place)
            && self.tree.slot(item.digits()) < end
        {
            if item.len() <= root_bits {
                let from = self.tree.slot(item.digits());
                self.bases[from..from + (1 << (root_bits - item.len()))].fill(item.result());
            }
            place = store.next(place);
        }
        place = start;
        for slot in first..end {
            words.clear();
            while let Some(item) = store.at(place)
                && self.tree.slot(item.digits()) == slot
            {
                if item.len() > root_bits {
                    store.copy(place, &mut words);
                }
                place = store.next(place);
            }
            let value = self.chunk(Items::new(&words, digits.len()), root_bits, self.bases[slot])?;
            self.replace(&self.tree.slots[slot], value);
        }
        Ok(())
    }

    /// Brings what a changed prefix concerns up to date. Of several changes, the covering ones come first.
    pub(super) fn change(&mut self, digits: &[u64], len: u32) -> Result<(), Full> {
        let tree = self.tree;
        if len <= tree.root_bits {
            return self.slots(digits, len);
        }
        let slot = tree.slot(digits);
        let (mut cell, mut pos, mut base) = (&tree.slots[slot], tree.root_bits, self.bases[slot]);
        loop {
            let chunk = Value(cell.load(Ordering::Relaxed));
            if !chunk.is_link() || len < pos + chunk.bits() {
                return self.whole(cell, digits, pos, base, usize::MAX).map(drop);
            }
            let window = window(digits, pos);
            let at = (u64::from(window) >> (WINDOW - chunk.bits())) as u32;
            let line = tree.line(chunk.line() + at);
            let (lane, value) = line.find(window, 0);
            if !value.is_link() || pos + WINDOW - u32::from(line.shifts[lane]) > len {
                return match self.whole(cell, digits, pos, base, SMALL)? {
                    true => Ok(()),
                    false => self.one_line(cell, at, digits, pos, base),
                };
            }
            // A link's prefix covers no other of its line; what covers it comes after it.
            base = line.find(window, lane + 1).1.0;
            cell = tree.value(chunk.line() + at, lane);
            pos += WINDOW - u32::from(line.shifts[lane]);
        }
    }

    /// Builds again the chunk that holds all prefixes with the first `pos` bits of a key, unless there are more than
    /// `limit`.
    fn whole(
        &mut self,
        cell: &AtomicU32,
        key: &[u64],
        pos: u32,
        base: u32,
        limit: usize,
    ) -> Result<bool, Full> {
        let mut words = Vec::new();
        self.store.below(&cut(key.to_vec(), pos), pos, limit.saturating_add(1), &mut words);
        let items = Items::new(&words, key.len());
        if items.count() > limit {
            return Ok(false);
        }
        let value = self.chunk(items, pos, base)?;
        self.replace(cell, value);
        Ok(true)
    }

    /// Builds one line again, in a copy of its chunk.
    fn one_line(&mut self, cell: &AtomicU32, at: u32, key: &[u64], pos: u32, base: u32) -> Result<(), Full> {
        let old = Value(cell.load(Ordering::Relaxed));
        let end = pos + old.bits();
        let base = self.store.longest(key, pos..=end).unwrap_or(base);
        let mut words = Vec::new();
        self.store.below(&cut(key.to_vec(), end), end, usize::MAX, &mut words);
        let items = Items::new(&words, key.len());
        let (_, items) = items.split(items.partition_point(|item| item.len() <= end));
        let line = self.line(items, pos, base)?;
        let new = self.lines.take(old.bits())?;
        self.tree.copy(old, new);
        self.tree.write(new.line() + at, &line);
        cell.store(new.0, Ordering::Release);
        self.lines.drop_line(self.tree, old.line() + at);
        self.lines.drop_chunk(old);
        Ok(())
    }

    /// Publishes a value. What the old one led to goes.
    fn replace(&mut self, cell: &AtomicU32, value: Value) {
        let old = Value(cell.swap(value.0, Ordering::AcqRel));
        self.lines.drop_below(self.tree, old);
    }

    /// The value for prefixes that share their first `pos` bits; `base` is what keys get that none of them covers.
    fn chunk(&mut self, items: Items<'_>, pos: u32, base: u32) -> Result<Value, Full> {
        let own = (items.count() > 0).then(|| items.item(0)).filter(|first| first.len() == pos);
        let base = own.map_or(base, |own| own.result());
        let (_, items) = items.split(usize::from(own.is_some()));
        if items.count() == 0 {
            return Ok(Value::result(base));
        }
        let bits = chunk_bits(items, pos);
        let chunk = self.lines.take(bits)?;
        if bits == 0 {
            let line = self.line(items, pos, base)?;
            self.tree.write(chunk.line(), &line);
            return Ok(chunk);
        }
        let slot = |item: super::store::Item<'_>| (item.window(pos) >> (WINDOW - bits)) as usize;
        // Prefixes that end within the chunk's bits cover whole lines; shorter ones come first.
        let mut bases = vec![base; 1 << bits];
        for item in items.iter().filter(|item| item.len() <= pos + bits) {
            bases[slot(item)..][..1 << (pos + bits - item.len())].fill(item.result());
        }
        let mut rest = items;
        for (at, base) in bases.into_iter().enumerate() {
            let count = rest.iter().take_while(|item| slot(*item) == at).count();
            let (mine, others) = rest.split(count);
            rest = others;
            let (_, mine) = mine.split(mine.iter().take_while(|item| item.len() <= pos + bits).count());
            let line = self.line(mine, pos, base)?;
            self.tree.write(chunk.line() + at as u32, &line);
        }
        Ok(chunk)
    }

    /// The line for prefixes longer than the chunk's bits. Where they are too many, those that lie together share a lane.
    fn line(&mut self, items: Items<'_>, pos: u32, base: u32) -> Result<Line, Full> {
        let mut lanes: Vec<Lane> = Vec::with_capacity(LANES);
        let mut clusters: Vec<Cluster<'_>> = Vec::with_capacity(LANES);
        let fits = |item: super::store::Item<'_>| item.len() <= pos + WINDOW;
        let lane =
            |item: super::store::Item<'_>, len: u32, value| Lane { len, prefix: item.window(pos), value };
        if items.count() <= LANES && items.iter().all(fits) {
            lanes.extend(items.iter().map(|item| lane(item, item.len() - pos, Value::result(item.result()))));
        } else {
            clusters.extend(Cluster::new(items, base));
        }
        // The largest is parted first, as long as there are lanes for its parts.
        while let Some((at, cluster)) = (clusters.iter().copied().enumerate())
            .filter(|(_, cluster)| cluster.open && cluster.items.count() > 1 && cluster.node < pos + WINDOW)
            .max_by_key(|(_, cluster)| cluster.items.count())
        {
            let (own, parts) = cluster.part();
            let more = usize::from(own.is_some()) + parts.iter().flatten().count();
            if lanes.len() + clusters.len() - 1 + more > LANES {
                clusters[at].open = false;
                continue;
            }
            clusters.swap_remove(at);
            clusters.extend(parts.into_iter().flatten());
            lanes.extend(own.map(|own| lane(cluster.items.item(0), cluster.node - pos, Value::result(own))));
        }
        for cluster in clusters {
            let (first, node) = (cluster.items.item(0), cluster.node.min(pos + WINDOW));
            let value = if cluster.items.count() == 1 && fits(first) {
                Value::result(first.result())
            } else {
                self.chunk(cluster.items, node, cluster.base)?
            };
            lanes.push(lane(first, node - pos, value));
        }
        lanes.sort_unstable_by_key(|lane| std::cmp::Reverse(lane.len));
        let base = Value::result(base);
        let first = lanes.first().copied().unwrap_or(Lane { len: WINDOW, prefix: 0, value: base });
        let unused = Lane { value: base, ..first };
        let mut line = Line { values: [base; LANES + 1], ..Line::default() };
        for (at, lane) in lanes.into_iter().chain(std::iter::repeat(unused)).take(LANES).enumerate() {
            line.prefixes[at] = lane.prefix;
            line.shifts[at] = (WINDOW - lane.len) as u8;
            line.values[at] = lane.value;
        }
        Ok(line)
    }
}

/// How many bits of the key pick the line of a chunk: few lines, and few prefixes that need another level.
fn chunk_bits(items: Items<'_>, pos: u32) -> u32 {
    let count = items.count();
    if count <= LANES {
        return 0;
    }
    let windows: Vec<(u32, u32)> = items.iter().map(|item| (item.window(pos), item.len() - pos)).collect();
    let cost = |bits: u32| {
        let (mut cost, mut at) = (LINE_COST << bits, 0);
        while at < count {
            let line = u64::from(windows[at].0) >> (WINDOW - bits);
            let (mut there, start) = (0usize, at);
            while at < count && u64::from(windows[at].0) >> (WINDOW - bits) == line {
                there += usize::from(windows[at].1 > bits);
                at += 1;
            }
            debug_assert!(at > start);
            if there > LANES {
                cost += there * (256 + DOUBLING_COST * (there / LANES).ilog2() as usize);
            }
        }
        cost
    };
    (0..=count.ilog2().min(MAX_BITS)).min_by_key(|bits| cost(*bits)).unwrap_or(0)
}
