//! Ternary and range match by priority: access lists.
//!
//! A key is cut into **dimensions** of at most 32 bits. The rules' ends cut each into pieces, and pieces that the same rules
//! accept are one **class**, which a lookup finds by one to three loads. A row of bits for each class says which rules
//! accept it; the first bit of the AND of the rows of all dimensions is the winner (Lakshman, Stiliadis 1998). What rows
//! cannot say exactly (odd masks, ranges over more than 32 bits) is checked against the rule.
//!
//! Many rules are laid out in **layers**: a layer cuts one dimension into parts, each with the rules that lie wholly in
//! it; rules that cross cuts go to a later layer, so none is stored twice. A lookup takes one part of each layer, and the
//! rows of a part have a bit for each of its rules only.
//!
//! **Concurrency.** All this is a **group**, which never changes. Rules written since it was made are a second, small
//! group, and a row that is one more in the AND says which rules of the first are still there. A commit makes that small
//! group again, or everything when it has grown large or when commits are rare, and publishes it by one store: a batch
//! meets all of a commit or nothing.

mod axis;
mod group;
mod layout;
mod lookup;
mod rule;
mod search;
#[cfg(test)]
mod tests;

use super::contract::LookupContract;
use super::grace::{Domain, Publisher, Subscriber, Worker};
use super::simd::Simd;
use crate::heap;
use group::{Group, MAX_GROUP, Rows};
use rule::Dimension;
use rule::Rule;
pub use rule::{Condition, Order};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Most rules that wait outside of the large groups.
const MAX_PENDING: usize = 128;

/// All is made again when that has not taken more than one part in so many of the time since it was last done.
const RARELY: u32 = 16;

/// What readers see.
struct Version {
    limbs: usize,
    searched: Vec<Searched>,
}

/// A group, and what has become of it.
struct Searched {
    group: Arc<Group>,
    /// For each layer, rows of the rules that are still there. Empty when all are.
    alive: Vec<Rows>,
}

/// A group that the writer keeps.
struct Kept {
    group: Arc<Group>,
    /// The ranks of rules that were removed or replaced.
    dead: Vec<u32>,
}

/// A rule, and its group and rank there if it is in one that is kept.
type Placed = (Arc<Rule>, Option<(usize, u32)>);

/// The writing side. Writes become visible by [`Acl::commit`].
pub struct Acl {
    version: Publisher<Version>,
    simd: Simd,
    limbs: usize,
    dimensions: Vec<Dimension>,
    fields: Vec<(u32, u32)>,
    rules: BTreeMap<Order, Placed>,
    groups: Vec<Kept>,
    /// The rules that are in none.
    pending: BTreeMap<Order, Arc<Rule>>,
    changed: bool,
    /// When all was last made again, and how long that took.
    made: Option<(Instant, Duration)>,
}

/// The reading side. Clones read the same rules.
#[derive(Clone)]
pub struct AclReader {
    version: Subscriber<Version>,
    simd: Simd,
}

impl Acl {
    /// No rules, over keys of `bits` bits with fields of these offsets (of the least significant bit) and
    /// widths in bits.
    pub fn new(domain: &Domain, bits: u32, fields: &[(u32, u32)], simd: Simd) -> Acl {
        let limbs = bits.div_ceil(64).max(1) as usize;
        let dimensions = rule::dimensions(fields, limbs);
        Acl {
            version: Publisher::new(domain, version(limbs, Vec::new())),
            simd: simd.or_less(),
            limbs,
            dimensions,
            fields: fields.to_vec(),
            rules: BTreeMap::new(),
            groups: Vec::new(),
            pending: BTreeMap::new(),
            changed: false,
            made: None,
        }
    }

    /// A reader.
    pub fn reader(&self) -> AclReader {
        AclReader { version: self.version.subscribe(), simd: self.simd }
    }

    /// What a lookup takes at most: for each group the class on each axis, for each layer a row of each axis, and the rules that
    /// are checked where rows do not say all.
    pub fn contract(&self) -> LookupContract {
        let mut most = LookupContract { engine: "acl", ..LookupContract::default() };
        for searched in &self.version.current().searched {
            let (probes, lines) = searched.group.contract(!searched.alive.is_empty());
            (most.probes, most.lines) = (most.probes + probes, most.lines + lines);
        }
        most
    }

    /// The number of rules.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Sets the rule of this order: one condition per field, and a result that is not 0. Conditions of another number
    /// change nothing. Visible after [`Acl::commit`].
    pub fn set(&mut self, order: Order, conditions: &[Condition], result: u32) {
        if conditions.len() != self.fields.len() {
            return;
        }
        self.remove(order);
        let rule = Arc::new(Rule::new(order, conditions, &self.fields, &self.dimensions, self.limbs, result));
        self.pending.insert(order, Arc::clone(&rule));
        self.rules.insert(order, (rule, None));
        self.changed = true;
    }

    /// Takes a rule out, and says whether it was there. Visible after [`Acl::commit`].
    pub fn remove(&mut self, order: Order) -> bool {
        let Some((_, home)) = self.rules.remove(&order) else { return false };
        match home {
            Some((group, rank)) => self.groups[group].dead.push(rank),
            None => drop(self.pending.remove(&order)),
        }
        self.changed = true;
        true
    }

    /// Makes all writes visible at once. Takes time in proportion to all rules when there are many new ones or the last
    /// commit that did is long ago, and to the few new ones otherwise.
    pub fn commit(&mut self) {
        if std::mem::take(&mut self.changed) {
            self.publish(self.is_time());
        }
    }

    /// Finishes what commits in quick succession left for later, so that lookups are as fast as they can be. To be called
    /// when there is nothing else to write; does nothing when nothing is left.
    pub fn settle(&mut self) {
        if !self.is_settled() {
            self.changed = false;
            self.publish(true);
        }
    }

    /// Whether [`Acl::settle`] has nothing to do.
    pub fn is_settled(&self) -> bool {
        !self.changed && self.pending.is_empty() && self.groups.iter().all(|kept| kept.dead.is_empty())
    }

    /// Whether to make all groups again.
    fn is_time(&self) -> bool {
        let dead: usize = self.groups.iter().map(|kept| kept.dead.len()).sum();
        self.pending.len() > MAX_PENDING
            || dead > self.rules.len() / 4 + MAX_PENDING
            || self.made.is_none_or(|(at, took)| at.elapsed() >= took * RARELY)
    }

    fn publish(&mut self, again: bool) {
        if again {
            self.make();
        }
        let mut searched: Vec<Searched> =
            self.groups.iter().map(|kept| Searched::of(&kept.group, &kept.dead)).collect();
        if !self.pending.is_empty() {
            let rules: Vec<Arc<Rule>> = self.pending.values().cloned().collect();
            let groups = rules.chunks(MAX_GROUP).map(|rules| Group::new(rules, &self.dimensions, true));
            searched.extend(groups.map(|group| Searched::of(&Arc::new(group), &[])));
        }
        self.version.publish(version(self.limbs, searched));
    }

    /// Lays all rules out from scratch.
    fn make(&mut self) {
        let start = Instant::now();
        let rules: Vec<Arc<Rule>> = self.rules.values().map(|(rule, _)| Arc::clone(rule)).collect();
        let groups = rules.chunks(MAX_GROUP).map(|rules| Kept {
            group: Arc::new(Group::new(rules, &self.dimensions, false)),
            dead: Vec::new(),
        });
        self.groups = groups.collect();
        for (at, (_, home)) in self.rules.values_mut().enumerate() {
            *home = Some((at / MAX_GROUP, (at % MAX_GROUP) as u32));
        }
        self.pending.clear();
        self.made = Some((Instant::now(), start.elapsed()));
    }

    /// Bytes of memory that groups and rules take.
    pub fn memory_bytes(&self) -> usize {
        let searched = self.version.current().searched.iter().map(|searched| searched.group.bytes());
        let rules = self.rules.values().map(|(rule, _)| rule.memory_bytes());
        let in_order = heap::tree_map::<(Order, Placed)>(self.rules.len());
        searched.sum::<usize>() + rules.sum::<usize>() + in_order
    }
}

impl Searched {
    fn of(group: &Arc<Group>, dead: &[u32]) -> Searched {
        // A layer of rules that accept every key has no other rows.
        let all = dead.is_empty() && group.layers.iter().all(|layer| !layer.axes.is_empty());
        Searched { group: Arc::clone(group), alive: if all { Vec::new() } else { group.all_but(dead) } }
    }
}

fn version(limbs: usize, searched: Vec<Searched>) -> Version {
    Version { limbs, searched }
}

impl AclReader {
    /// Looks up a batch: `out.len()` keys of the table's number of limbs follow each other in `keys`. A key that is not
    /// wholly there misses, as do all keys for a worker of another domain.
    pub fn lookup(&self, worker: &Worker, keys: &[u64], out: &mut [u32]) {
        match self.version.get(worker) {
            Some(version) => lookup::batch(self.simd, version, keys, out),
            None => out.fill(0),
        }
    }
}
