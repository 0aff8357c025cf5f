//! Longest prefix match for keys of any width, in three or four cache lines for most of them.
//!
//! A key is taken in **digits** of 64 bits from the top. Within a digit, prefixes are turned into disjoint ranges, each
//! with its result; ranges lie in small static search trees (**chunks**) of two-line inner nodes and one-line
//! leaves that hold six ranges. Where a chunk would grow large, an array over the next bits of the digit splits it (the
//! first array has up to 20 bits). A digit value with prefixes longer than the digit is a range of one that leads
//! to the next digit. (Ranges below an array: as in DXR, Zec, Rizzo, Mikuc 2012.)
//!
//! **Concurrency.** Chunks never change: one that a write concerns is built anew and published by one store of a link;
//! the old one is freed after a grace period. What a lookup reads below a link is of one version.

mod area;
mod chunk;
mod lookup;
#[cfg(test)]
mod tests;

use super::grace::{Domain, Worker};
use super::memory::{Cells, NoMemory};
use super::shape::{Plan, PlanCell, PlanKind};
use super::simd::Simd;
use area::{Area, Garbage};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// Bits of a digit.
const DIGIT: u32 = 64;

/// Where a lookup goes on, in one word; 0 is a miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Link(u64);

/// What the low bits of a link say.
const RESULT: u64 = 0;
const LEAF: u64 = 1;
const INNER: u64 = 2;
const ARRAY: u64 = 3;
const TAG: u64 = 3;

impl Link {
    fn result(result: u32) -> Link {
        Link(u64::from(result) << 2 | RESULT)
    }
}

/// A value in a leaf with this bit is the number of a sub-table for the next digit, without it a result.
const SUB: u32 = 1 << 31;

/// What readers share with the writer.
struct Shared {
    /// The plan that compiled code is shown: only the lookup function.
    plan: Box<Plan>,
    plan_cell: AtomicPtr<Plan>,
    root: AtomicU64,
    /// Links of the sub-tables, by number.
    subs: Cells<AtomicU64>,
    limbs: usize,
    /// The key is shifted left by this, so that its first digit is whole.
    align: u32,
}

/// The writing side. Writes become visible by [`WideLpm::commit`].
pub struct WideLpm {
    shared: Arc<Shared>,
    domain: Domain,
    simd: Simd,
    bits: u32,
    root: Area,
    garbage: Garbage,
    len: usize,
}

/// The reading side. Clones read the same table.
#[derive(Clone)]
pub struct WideLpmReader {
    shared: Arc<Shared>,
    domain: Domain,
    simd: Simd,
}

impl WideLpm {
    /// An empty table for keys of `bits` bits (at least one) and about `size` prefixes.
    ///
    /// # Errors
    /// [`NoMemory`].
    pub fn new(domain: &Domain, bits: u32, size: u32, simd: Simd) -> Result<WideLpm, NoMemory> {
        let bits = bits.max(1);
        let limbs = bits.div_ceil(64) as usize;
        // Every sub-table comes from a prefix that is longer than a digit; as many again may wait for their grace period.
        let subs = if limbs == 1 { 0 } else { (size as usize * (limbs - 1)).min(1 << 26) * 2 + 1024 };
        let plan = Plan { kind: PlanKind::Call, shift: 0, base: std::ptr::null(), second: std::ptr::null() };
        let plan = Box::new(plan);
        let shared = Shared {
            plan_cell: AtomicPtr::new(std::ptr::from_ref(&*plan).cast_mut()),
            plan,
            root: AtomicU64::new(0),
            subs: Cells::zeroed(subs)?,
            limbs,
            align: limbs as u32 * 64 - bits,
        };
        Ok(WideLpm {
            shared: Arc::new(shared),
            domain: domain.clone(),
            simd: simd.or_less(),
            bits,
            root: Area::root(),
            garbage: Garbage::default(),
            len: 0,
        })
    }

    /// A reader.
    pub fn reader(&self) -> WideLpmReader {
        WideLpmReader { shared: Arc::clone(&self.shared), domain: self.domain.clone(), simd: self.simd }
    }

    /// The number of prefixes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no prefixes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Sets the result (below 2^31) of the first `len` bits of a key, there already or not. Bits beyond the prefix do
    /// not count. A key of the wrong number of limbs changes nothing. Visible after [`WideLpm::commit`].
    ///
    /// # Errors
    /// [`NoMemory`]; nothing has changed then.
    pub fn set(&mut self, prefix: &[u64], len: u32, result: u32) -> Result<(), NoMemory> {
        let Some(digits) = self.digits(prefix) else { return Ok(()) };
        let is_new = self.root.set(&digits, len.min(self.bits), result, &mut self.garbage, &self.shared)?;
        self.len += usize::from(is_new);
        Ok(())
    }

    /// Takes a prefix out, and says whether it was there. Visible after [`WideLpm::commit`].
    pub fn remove(&mut self, prefix: &[u64], len: u32) -> bool {
        let Some(digits) = self.digits(prefix) else { return false };
        let was_there = self.root.remove(&digits, len.min(self.bits), &mut self.garbage);
        self.len -= usize::from(was_there);
        was_there
    }

    /// Makes all writes visible: each change of a lookup's result by one store.
    ///
    /// # Errors
    /// [`NoMemory`]; what is not visible yet becomes so by a later commit.
    pub fn commit(&mut self) -> Result<(), NoMemory> {
        let link = self.root.publish(0, &mut self.garbage, &self.shared)?;
        self.shared.root.store(link.0, Ordering::Release);
        self.garbage.retire(&self.domain);
        Ok(())
    }

    /// Bytes of memory that the search structures and the prefixes take.
    pub fn memory_bytes(&self) -> usize {
        self.root.memory_bytes() + self.garbage.subs_used() * 8
    }

    /// The digits of a key, first one first.
    fn digits(&self, key: &[u64]) -> Option<Vec<u64>> {
        (key.len() == self.shared.limbs)
            .then(|| (0..key.len()).map(|digit| lookup::digit(key, self.shared.align, digit)).collect())
    }
}

impl Drop for WideLpm {
    fn drop(&mut self) {
        // Readers may outlive the writer: from now on they miss.
        self.shared.root.store(0, Ordering::Release);
        let root = std::mem::replace(&mut self.root, Area::root());
        self.domain.retire((root, std::mem::take(&mut self.garbage)));
    }
}

impl WideLpmReader {
    /// Looks up a batch: `out.len()` keys of the table's number of limbs follow each other in `keys`. Key bits above the
    /// width do not count. A key that is not wholly there misses, as do all keys for a worker of another domain.
    pub fn lookup(&self, worker: &Worker, keys: &[u64], out: &mut [u32]) {
        if worker.reads(&self.domain) {
            lookup::batch(self.simd, &self.shared, keys, out);
        } else {
            out.fill(0);
        }
    }

    /// For compiled code; the kind is always [`PlanKind::Call`].
    pub fn plan(&self) -> PlanCell {
        debug_assert_eq!(self.shared.plan.kind, PlanKind::Call);
        PlanCell(&self.shared.plan_cell)
    }
}
