//! Exact match of keys of any width: a hash table whose buckets are cache lines.
//!
//! A key of one limb lies in its bucket, five to a line; one of two limbs too, three to a line; of a wider one, a tag of
//! 16 bits and the number of a record that holds it, ten to a line. A bucket that is full goes on in an overflow line.
//! At the usual load (about 60 %) nearly every lookup touches one line.
//!
//! **Concurrency.** A slot is filled before it is published by its bit in the line's control word, and used for another
//! key only after a grace period, so a reader that saw the bit reads that key and its result whole. Results are
//! replaced in place. A table that grows is built again next to the old one, which workers
//! read until the new one is published.
//!
//! Why a reader needs no lock: the writer stores key and result first and sets the slot's bit last, with release order;
//! the reader loads the control word first, with acquire order. A reader that sees the bit therefore sees the key and
//! the result. Removal clears the bit, but a reader may have loaded the word before that and still compare the key; so
//! the slot stays as it is (`Room::resting`) until every worker has passed a quiescent point. Without that wait a
//! reader could match the old key and then load the result of a new key in the same slot.

mod line;
mod lookup;
#[cfg(test)]
mod tests;

use super::contract::LookupContract;
use super::grace::{Domain, Publisher, Stamp, Subscriber, Worker};
use super::memory::NoMemory;
use super::shape::LookupShape;
use super::simd::Simd;
use line::{KeyPosition, Kind, Lines, Room};
use std::collections::VecDeque;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

/// Keys that the smallest table has room for.
const SMALLEST: usize = 40;

/// The writing side.
pub struct Exact {
    lines: Publisher<Lines>,
    simd: Simd,
    len: usize,
    /// Beyond this many keys the table grows.
    grow_at: usize,
    room: Room,
    limbo: VecDeque<(Stamp, KeyPosition)>,
}

/// The reading side. Clones read the same table.
#[derive(Clone)]
pub struct ExactReader {
    lines: Subscriber<Lines>,
    simd: Simd,
}

impl Exact {
    /// An empty table for keys of `limbs` limbs (at least one).
    ///
    /// # Errors
    /// [`NoMemory`].
    pub fn new(domain: &Domain, limbs: usize, simd: Simd) -> Result<Exact, NoMemory> {
        let (lines, room) = Lines::new(Kind::of(limbs.max(1)), SMALLEST, seeds())?;
        Ok(Exact {
            lines: Publisher::new(domain, lines),
            simd: simd.or_less(),
            len: 0,
            grow_at: SMALLEST,
            room,
            limbo: VecDeque::new(),
        })
    }

    /// A reader.
    pub fn reader(&self) -> ExactReader {
        ExactReader { lines: self.lines.subscribe(), simd: self.simd }
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> usize {
        self.lines.current().bytes() + 2 * self.room.resting.len() + self.limbo.capacity() * 24
    }

    /// What a lookup takes at most: the lines of the longest bucket. Of wide keys, also the records of the most slots of a bucket
    /// that have one tag.
    pub fn contract(&self) -> LookupContract {
        self.lines.current().contract()
    }

    /// The result of a key, 0 when it is not there.
    pub fn get(&self, key: &[u64]) -> u32 {
        let lines = self.lines.current();
        lines.find(key).map_or(0, |position| lines.result(position))
    }

    /// Makes room for so many more keys, so that they come in without growing.
    ///
    /// # Errors
    /// [`NoMemory`]; nothing has changed then.
    pub fn reserve(&mut self, more: usize) -> Result<(), NoMemory> {
        let wanted = self.len + more;
        if wanted > self.grow_at { self.rebuild(wanted, None) } else { Ok(()) }
    }

    /// Sets the result (not 0) of a key, there already or not. The key has the table's number of limbs; anything
    /// else changes nothing.
    ///
    /// # Errors
    /// [`NoMemory`]; nothing has changed then.
    pub fn set(&mut self, key: &[u64], result: u32) -> Result<(), NoMemory> {
        let lines = self.lines.current();
        if key.len() != lines.limbs() || result == 0 {
            return Ok(());
        }
        if let Some(position) = lines.find(key) {
            lines.set_result(position, result);
            return Ok(());
        }
        if self.len >= self.grow_at {
            self.rebuild(self.len + self.len / 2 + SMALLEST, Some((key, result)))?;
        } else {
            self.collect();
            if !self.lines.current().insert(key, result, &mut self.room) {
                // Overflow lines or records have run out, in use or in limbo: another table, with other hashes.
                self.rebuild(self.len + self.len / 4 + SMALLEST, Some((key, result)))?;
            }
        }
        self.len += 1;
        Ok(())
    }

    /// Takes a key out, and says whether it was there.
    pub fn remove(&mut self, key: &[u64]) -> bool {
        let lines = self.lines.current();
        if key.len() != lines.limbs() {
            return false;
        }
        let Some(position) = lines.find(key) else { return false };
        lines.unpublish(position);
        self.room.rest(position);
        self.limbo.push_back((self.lines.domain().stamp(), position));
        self.len -= 1;
        self.collect();
        true
    }

    /// Frees slots whose grace period is over.
    fn collect(&mut self) {
        while let Some(&(stamp, position)) = self.limbo.front()
            && self.lines.domain().passed(stamp)
        {
            self.room.free(position);
            self.limbo.pop_front();
        }
    }

    /// Builds the table again with room for `capacity` keys, adds a key that it does not have yet, and publishes it.
    fn rebuild(&mut self, capacity: usize, added: Option<(&[u64], u32)>) -> Result<(), NoMemory> {
        let old = self.lines.current();
        // Overflow lines run out only if the hashes are unlucky; other seeds and more room end that. The added key belongs to
        // the attempt: a table that holds the others may have no line left for it.
        for more in 0..8 {
            let capacity = capacity + capacity / 4 * more;
            let (lines, mut room) = Lines::new(old.kind(), capacity, seeds())?;
            let mut fits = true;
            old.for_each(|key, result| fits = fits && lines.insert(key, result, &mut room));
            fits = fits && added.is_none_or(|(key, result)| lines.insert(key, result, &mut room));
            if fits {
                self.lines.publish(lines);
                self.room = room;
                self.limbo.clear();
                self.grow_at = capacity;
                return Ok(());
            }
        }
        Err(NoMemory { bytes: capacity * 64 })
    }
}

/// Two numbers that nobody outside can foresee, so that no choice of keys makes all of them collide.
fn seeds() -> [u64; 2] {
    let random = RandomState::new();
    [random.hash_one(1), random.hash_one(2) | 1]
}

impl ExactReader {
    /// Looks up a batch: `out.len()` keys of the table's number of limbs follow each other in `keys`. A key that is not
    /// wholly there misses, as do all keys for a worker of another domain.
    pub fn lookup(&self, worker: &Worker, keys: &[u64], out: &mut [u32]) {
        match self.lines.get(worker) {
            Some(lines) => lookup::batch(self.simd, lines, keys, out),
            None => out.fill(0),
        }
    }

    /// The lookup shape at this moment; its pointers are valid until the worker's next quiescent point.
    #[inline]
    pub fn shape(&self, worker: &Worker) -> LookupShape {
        self.lines.get(worker).map_or(LookupShape::CALL, Lines::shape)
    }
}
