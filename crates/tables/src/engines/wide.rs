//! Longest prefix match for keys of any width, in two or three cache lines for most of them.
//!
//! An array over the first bits of the key leads to trees of cache lines. A **line** holds seven prefixes of up to 32 bits,
//! compared with the key all at once; each gives a result or leads to a **chunk** of lines, of which the next bits of
//! the key pick one. Where prefixes are too many for a line, those that share most bits share a lane and go on in a
//! chunk of their own, so bits that do not tell prefixes apart cost nothing. (The shape is that of a trie made wide at each
//! level, as in Poptrie, Asai and Ohara 2015, or HOT, Binna and others 2018; the nodes are prefixes to compare, not bits to count.)
//!
//! **Concurrency.** Lines never change but for their values, each by one store. What a write concerns, a line or a small
//! chunk, is built again and published by one store of a value; what it replaced is used again after a grace period.
//! A table that has grown much is built again as a whole.

mod build;
mod lookup;
mod store;
#[cfg(test)]
mod tests;
mod tree;

use super::contract::LookupContract;
use super::grace::{Domain, Publisher, Subscriber, Worker};
use super::memory::NoMemory;
use super::simd::Simd;
use build::Builder;
use lookup::Shape;
use store::{Store, cut};
use tree::{Full, Lines, Tree};

/// Lines that a tree may take beyond twice what it was built with.
const SPARE_LINES: usize = 4096;

/// Prefixes that may be added beyond four times those that a tree was built with.
const SPARE_PREFIXES: usize = 1024;

/// The writing side. Writes become visible by [`WideLpm::commit`].
pub struct WideLpm {
    tree: Publisher<Tree>,
    lines: Lines,
    /// The result of short prefixes, by slot of the tree.
    bases: Vec<u32>,
    store: Store,
    changes: Changes,
    /// Prefixes that the tree was built with.
    built: usize,
    size: usize,
    domain: Domain,
    simd: Simd,
    shape: Shape,
    bits: u32,
}

/// The reading side. Clones read the same table.
#[derive(Clone)]
pub struct WideLpmReader {
    tree: Subscriber<Tree>,
    simd: Simd,
    shape: Shape,
}

/// What is not visible yet.
enum Changes {
    /// Prefixes: bits and length.
    Few(Vec<(Vec<u64>, u32)>),
    /// The tree is to be built again.
    Many,
}

/// Bits of the first array, for as many prefixes.
fn root_bits(prefixes: usize) -> u32 {
    match prefixes {
        0..512 => 8,
        512..16_384 => 12,
        16_384..2_097_152 => 16,
        _ => 20,
    }
}

impl WideLpm {
    /// An empty table for keys of `bits` bits (at least one) and about `size` prefixes.
    ///
    /// # Errors
    /// [`NoMemory`].
    pub fn new(domain: &Domain, bits: u32, size: u32, simd: Simd) -> Result<WideLpm, NoMemory> {
        let bits = bits.max(1);
        let limbs = bits.div_ceil(64) as usize;
        let tree = Tree::new(root_bits(0), 1)?;
        Ok(WideLpm {
            lines: Lines::of(&tree),
            bases: vec![0; tree.slots.len()],
            tree: Publisher::new(domain, tree),
            store: Store::new(limbs, bits),
            changes: Changes::Few(Vec::new()),
            built: 0,
            size: size as usize,
            domain: domain.clone(),
            simd: simd.or_less(),
            shape: Shape { limbs, align: limbs as u32 * 64 - bits },
            bits,
        })
    }

    /// A reader.
    pub fn reader(&self) -> WideLpmReader {
        WideLpmReader { tree: self.tree.subscribe(), simd: self.simd, shape: self.shape }
    }

    /// What a lookup takes at most: a slot, and a line for each level of the deepest way down the tree. Lines are as long as those
    /// of the cache, and lie at their places.
    pub fn contract(&self) -> LookupContract {
        let probes = 1 + self.tree.current().depth();
        LookupContract { engine: "wide", probes, lines: probes }
    }

    /// The number of prefixes.
    pub fn len(&self) -> usize {
        self.store.len()
    }

    /// Whether there are no prefixes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sets the result (31 bits of it) of the first `len` bits of a key, there already or not. Bits beyond the prefix do
    /// not count. A key of the wrong number of limbs changes nothing. Visible after [`WideLpm::commit`].
    ///
    /// # Errors
    /// None; memory for what readers see is taken by [`WideLpm::commit`].
    pub fn set(&mut self, prefix: &[u64], len: u32, result: u32) -> Result<(), NoMemory> {
        let Some((digits, len)) = self.prefix(prefix, len) else { return Ok(()) };
        self.store.set(&digits, len, result & !(1 << 31));
        self.note(digits, len);
        Ok(())
    }

    /// Takes a prefix out, and says whether it was there. Visible after [`WideLpm::commit`].
    pub fn remove(&mut self, prefix: &[u64], len: u32) -> bool {
        let Some((digits, len)) = self.prefix(prefix, len) else { return false };
        let was_there = self.store.remove(&digits, len);
        if was_there {
            self.note(digits, len);
        }
        was_there
    }

    /// Makes all writes visible: each change of a lookup's result by one store.
    ///
    /// # Errors
    /// [`NoMemory`]; what is not visible yet becomes so by a later commit.
    pub fn commit(&mut self) -> Result<(), NoMemory> {
        let outgrown = self.store.len() > 4 * self.built + SPARE_PREFIXES;
        match &mut self.changes {
            Changes::Few(changes) if !outgrown => {
                // Covering prefixes first, as changes need it.
                changes.sort_unstable();
                changes.dedup();
                let mut builder = Builder {
                    tree: self.tree.current(),
                    lines: &mut self.lines,
                    store: &self.store,
                    bases: &mut self.bases,
                };
                let done = changes.iter().try_for_each(|(digits, len)| builder.change(digits, *len));
                if done.is_err() {
                    self.changes = Changes::Many;
                    self.build()?;
                }
            }
            Changes::Few(_) | Changes::Many => self.build()?,
        }
        self.changes = Changes::Few(Vec::new());
        self.lines.retire(&self.domain);
        Ok(())
    }

    /// Bytes of memory that the search structures and the prefixes take.
    pub fn memory_bytes(&self) -> usize {
        let slots = self.tree.current().slots.bytes() + self.bases.capacity() * 4;
        slots + self.lines.bytes() + self.store.bytes()
    }

    /// Builds another tree and shows it to the readers.
    fn build(&mut self) -> Result<(), NoMemory> {
        let count = self.store.len();
        // Far more than prefixes of the usual lengths take. It is address space until it is written.
        let mut room = count * (self.bits as usize / 32 + 4) + SPARE_LINES / 8;
        loop {
            let tree = Tree::new(root_bits(count.max(self.size)), room)?;
            let mut lines = Lines::of(&tree);
            let mut bases = vec![0; tree.slots.len()];
            let mut builder =
                Builder { tree: &tree, lines: &mut lines, store: &self.store, bases: &mut bases };
            match builder.slots(&vec![0; self.shape.limbs], 0) {
                Ok(()) => {
                    lines.limit_growth(SPARE_LINES);
                    (self.lines, self.bases, self.built) = (lines, bases, count);
                    self.tree.publish(tree);
                    return Ok(());
                }
                Err(Full) if lines.is_largest() => return Err(NoMemory { bytes: lines.bytes() }),
                Err(Full) => room *= 2,
            }
        }
    }

    fn note(&mut self, digits: Vec<u64>, len: u32) {
        let few = SPARE_PREFIXES.max(self.built / 16);
        match &mut self.changes {
            Changes::Few(changes) if changes.len() < few => changes.push((digits, len)),
            changes => *changes = Changes::Many,
        }
    }

    /// The digits of a prefix, first one first, zeros after its end; and its length.
    fn prefix(&self, key: &[u64], len: u32) -> Option<(Vec<u64>, u32)> {
        let Shape { limbs, align } = self.shape;
        let len = len.min(self.bits);
        let digits = (0..limbs).map(|at| lookup::digit(key, align, at));
        (key.len() == limbs).then(|| (cut(digits.collect(), len), len))
    }
}

impl WideLpmReader {
    /// Looks up a batch: `out.len()` keys of the table's number of limbs follow each other in `keys`. Key bits above the
    /// width do not count. A key that is not wholly there misses, as do all keys for a worker of another domain.
    pub fn lookup(&self, worker: &Worker, keys: &[u64], out: &mut [u32]) {
        match self.tree.get(worker) {
            Some(tree) => lookup::batch(self.simd, tree, self.shape, keys, out),
            None => out.fill(0),
        }
    }
}
