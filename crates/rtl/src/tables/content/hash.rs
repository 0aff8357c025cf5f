//! Places of exact keys: cuckoo hashing with a stash, and another seed where both are full.

use super::{Image, key};
use crate::tables::TableUnit;
use crate::tables::hardware::{LANE, hash_mask};
use millrace_pipeline::Bits;
use millrace_state::EntryView;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;

/// Places that are looked at for one key, before it goes to the stash.
const LOOKED_AT: usize = 2000;
/// Seeds that are tried one after the other.
const SEEDS: u64 = 64;

/// The keys in their places.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    hashes: Hashes,
    /// By place: the memories one after the other, then the stash.
    at: Vec<Option<Bits>>,
    places: FxHashMap<Bits, usize>,
    /// The number of the seed.
    attempt: u64,
}

/// The hash functions, as numbers in words of 64 bits.
#[derive(Clone, Debug)]
struct Hashes {
    width: u32,
    memories: u32,
    bits: u32,
    /// Places of the stash.
    stash: usize,
    /// By memory and bit.
    masks: Vec<Vec<u64>>,
    seed: Bits,
}

impl Hashes {
    /// The place of a key in each memory.
    fn places(&self, key: &Bits) -> Vec<usize> {
        let mixed: Vec<u64> = mix(key, &self.seed).limbs().collect();
        let odd = |mask: &Vec<u64>| {
            let all = mixed.iter().zip(mask).fold(0, |all, (key, mask)| all ^ (key & mask));
            all.count_ones() as usize % 2
        };
        let place = |way: u32| {
            let masks = &self.masks[(way * self.bits) as usize..((way + 1) * self.bits) as usize];
            let hash: usize = masks.iter().enumerate().map(|(bit, mask)| odd(mask) << bit).sum();
            hash | (way as usize) << self.bits
        };
        (0..self.memories).map(place).collect()
    }
}

/// The sum of key and seed in parts of [`LANE`] bits.
fn mix(key: &Bits, seed: &Bits) -> Bits {
    let width = key.width();
    let lanes = (0..width).step_by(LANE as usize).map(|low| {
        let high = (low + LANE).min(width) - 1;
        key.slice(high, low).add(&seed.slice(high, low))
    });
    lanes.reduce(|low, high| high.concat(&low)).unwrap_or_else(|| key.clone())
}

/// The seed of that number: 0 first, then numbers of splitmix64.
fn seed(width: u32, attempt: u64) -> Bits {
    let bytes = (0..width.div_ceil(8)).map(|at| {
        let mut z = (attempt << 16 | u64::from(at)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        if attempt == 0 { 0 } else { (z >> 56) as u8 }
    });
    Bits::from_bytes(width, &bytes.collect::<Vec<u8>>())
}

impl Placed {
    pub(super) fn new(unit: &TableUnit, memories: u32, bits: u32) -> Placed {
        let (width, stash) = (unit.key(), unit.kind.stash() as usize);
        let numbers = (0..memories).flat_map(|way| (0..bits).map(move |bit| (way, bit)));
        let masks = numbers.map(|(way, bit)| hash_mask(width, way, bit).limbs().collect()).collect();
        let hashes = Hashes { width, memories, bits, stash, masks, seed: seed(width, 0) };
        let places = ((memories as usize) << bits) + stash;
        Placed { hashes, at: vec![None; places], places: FxHashMap::default(), attempt: 0 }
    }

    pub(super) fn write(
        &mut self,
        unit: &TableUnit,
        entries: &[EntryView],
        answers: &[Bits],
        image: &mut Image,
    ) -> Option<()> {
        let keys: Vec<Bits> = entries.iter().map(|entry| key(unit, entry)).collect::<Option<_>>()?;
        let wanted: FxHashSet<&Bits> = keys.iter().collect();
        for slot in &mut self.at {
            if let Some(gone) = slot.take_if(|key| !wanted.contains(key)) {
                self.places.remove(&gone);
            }
        }
        self.fill_stash_less();
        if !keys.iter().all(|key| self.insert(key)) {
            *self = self.with_another_seed(&keys)?;
        }
        let (memories, words) = (self.hashes.memories as usize, 1_usize << self.hashes.bits);
        let answers: FxHashMap<&Bits, &Bits> = keys.iter().zip(answers).collect();
        for (place, key) in self.at.iter().enumerate() {
            let (area, index) = match place / words {
                way if way < memories => (way, place % words),
                _ => (memories + place - memories * words, 0),
            };
            let word = match key.as_ref().and_then(|key| Some((key, answers.get(key)?))) {
                Some((key, answer)) => Bits::new(1, 1).concat(key).concat(answer),
                None => Bits::zero(image.areas[area].width),
            };
            image.set(area, index as u32, word);
        }
        image.set(memories + self.hashes.stash, 0, self.hashes.seed.clone());
        Some(())
    }

    /// All keys in places by another seed, the next one with which they fit.
    fn with_another_seed(&self, keys: &[Bits]) -> Option<Placed> {
        (1..=SEEDS).find_map(|more| {
            let attempt = self.attempt + more;
            let hashes = Hashes { seed: seed(self.hashes.width, attempt), ..self.hashes.clone() };
            let at = vec![None; self.at.len()];
            let mut placed = Placed { hashes, at, places: FxHashMap::default(), attempt };
            keys.iter().all(|key| placed.insert(key)).then_some(placed)
        })
    }

    /// Takes keys out of the stash that have a place in the memories now.
    fn fill_stash_less(&mut self) {
        let first = self.at.len() - self.hashes.stash;
        for place in first..self.at.len() {
            if let Some(key) = self.at[place].clone()
                && let Some(path) = self.path(&key)
            {
                self.at[place] = None;
                self.follow(&path, key);
            }
        }
    }

    /// Finds a place for a key, which may have one.
    fn insert(&mut self, key: &Bits) -> bool {
        if self.places.contains_key(key) {
            return true;
        }
        if let Some(path) = self.path(key) {
            self.follow(&path, key.clone());
            return true;
        }
        let first = self.at.len() - self.hashes.stash;
        let free = (first..self.at.len()).find(|place| self.at[*place].is_none());
        if let Some(place) = free {
            self.at[place] = Some(key.clone());
            self.places.insert(key.clone(), place);
        }
        free.is_some()
    }

    /// The places from one of the key's own to a free one, each of which takes the key of the one before: the fewest moves.
    fn path(&self, key: &Bits) -> Option<Vec<usize>> {
        let mut seen: FxHashMap<usize, Option<usize>> = FxHashMap::default();
        let mut queue: VecDeque<usize> = VecDeque::new();
        let reach = |place, from, seen: &mut FxHashMap<_, _>, queue: &mut VecDeque<_>| {
            if let std::collections::hash_map::Entry::Vacant(vacant) = seen.entry(place) {
                vacant.insert(from);
                queue.push_back(place);
            }
        };
        self.hashes.places(key).into_iter().for_each(|place| reach(place, None, &mut seen, &mut queue));
        while let Some(place) = queue.pop_front() {
            let Some(there) = &self.at[place] else {
                let mut path = vec![place];
                while let Some(Some(before)) = path.last().and_then(|last| seen.get(last)) {
                    path.push(*before);
                }
                path.reverse();
                return Some(path);
            };
            if seen.len() < LOOKED_AT {
                let next = self.hashes.places(there).into_iter();
                next.for_each(|to| reach(to, Some(place), &mut seen, &mut queue));
            }
        }
        None
    }

    fn follow(&mut self, path: &[usize], key: Bits) {
        let mut coming = Some(key);
        for place in path {
            if let Some(key) = coming {
                self.places.insert(key.clone(), *place);
                coming = self.at[*place].replace(key);
            }
        }
    }
}
