//! Ternary and range match by priority: access lists.
//!
//! Rules lie in **blocks** of up to 1024, bit `i` of a row of bits standing for the block's `i`-th best rule. A key is cut into
//! **dimensions** of at most 32 bits; in each, the rules' intervals cut the axis into pieces, and each piece has a row
//! that says which rules accept it. A lookup finds the piece of each dimension by a search tree, takes the AND of the rows,
//! and its first set bit is the winner (Lakshman, Stiliadis 1998). What rows cannot say exactly (odd masks,
//! ranges over more than 32 bits) is checked against the rule.
//!
//! Many rules are laid out in **layers**: a layer cuts one dimension into parts, each with a block of the rules that
//! lie wholly in it; rules that cross cuts go to a later layer, so none is stored twice. A lookup takes one block
//! of each layer.
//!
//! **Concurrency.** Blocks and layers never change. A commit builds the blocks anew that writes concern, and a list of
//! layers around them and the old ones, published by one store: a batch meets all of a commit or nothing.

mod block;
mod layout;
mod lookup;
mod rule;
mod search;
#[cfg(test)]
mod tests;

use super::grace::{Domain, Publisher, Subscriber, Worker};
use super::shape::{Plan, PlanCell, PlanKind};
use super::simd::Simd;
use block::Block;
use layout::{Layout, Place};
use rule::Dimension;
use rule::Rule;
pub use rule::{Condition, Order};
use search::Tree;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What readers see.
#[repr(C)]
struct Version {
    plan: Plan,
    limbs: usize,
    layers: Vec<Layer>,
}

/// One cut through a dimension.
struct Layer {
    /// The dimension that the parts cut, and where.
    cut: Dimension,
    cuts: Tree,
    parts: Vec<Arc<Block>>,
    /// The dimensions that some rule of the layer cares about, with the levels of their trees.
    dimensions: Vec<(Dimension, usize)>,
}

/// The writing side. Writes become visible by [`Acl::commit`].
pub struct Acl {
    version: Publisher<Version>,
    simd: Simd,
    limbs: usize,
    dimensions: Vec<Dimension>,
    fields: Vec<(u32, u32)>,
    rules: BTreeMap<Order, (Arc<Rule>, Option<Place>)>,
    layout: Layout,
    /// Rules written since the last commit that are not in the layout yet.
    added: Vec<Order>,
    changed: bool,
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
            layout: Layout::default(),
            added: Vec::new(),
            changed: false,
        }
    }

    /// A reader.
    pub fn reader(&self) -> AclReader {
        AclReader { version: self.version.subscribe(), simd: self.simd }
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
        let rule = Rule::new(order, conditions, &self.fields, &self.dimensions, self.limbs, result);
        self.rules.insert(order, (Arc::new(rule), None));
        self.added.push(order);
        self.changed = true;
    }

    /// Takes a rule out, and says whether it was there. Visible after [`Acl::commit`].
    pub fn remove(&mut self, order: Order) -> bool {
        let Some((_, place)) = self.rules.remove(&order) else { return false };
        if let Some(place) = place {
            self.layout.remove(place, order);
        }
        self.changed = true;
        true
    }

    /// Makes all writes visible at once.
    pub fn commit(&mut self) {
        if !std::mem::take(&mut self.changed) {
            return;
        }
        let added = std::mem::take(&mut self.added);
        let mut fits = self.layout.worth_keeping(self.rules.len(), added.len());
        for order in added {
            if let Some((rule, place)) = self.rules.get_mut(&order).filter(|_| fits) {
                *place = self.layout.insert(rule);
                fits = place.is_some();
            }
        }
        if !fits {
            let rules: Vec<Arc<Rule>> = self.rules.values().map(|(rule, _)| Arc::clone(rule)).collect();
            self.layout = Layout::of(&rules, &self.dimensions);
            for (place, order) in self.layout.places() {
                if let Some((_, kept)) = self.rules.get_mut(&order) {
                    *kept = Some(place);
                }
            }
        }
        let layers = self.layout.publish(&self.dimensions);
        self.version.publish(version(self.limbs, layers));
    }

    /// Bytes of memory that blocks and rules take.
    pub fn memory_bytes(&self) -> usize {
        let blocks = self.version.current().layers.iter().flat_map(|layer| &layer.parts);
        let rules = self.rules.values().map(|(rule, _)| rule.bytes() + 64);
        blocks.map(|block| block.bytes()).sum::<usize>() + rules.sum::<usize>()
    }
}

fn version(limbs: usize, layers: Vec<Layer>) -> Version {
    let plan = Plan { kind: PlanKind::Call, shift: 0, base: std::ptr::null(), second: std::ptr::null() };
    Version { plan, limbs, layers }
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

    /// For compiled code; the kind is always [`PlanKind::Call`].
    pub fn plan(&self) -> PlanCell {
        // The plan is the first field of a `repr(C)` version.
        PlanCell(self.version.cell().cast())
    }
}
