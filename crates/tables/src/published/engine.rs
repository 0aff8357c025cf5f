//! The match engine of [`crate::engines`] that fits a key, and entries in the form that it takes.

use crate::engines::{
    Acl, AclReader, Condition, Dir24, Dir24Reader, Direct, DirectReader, Domain, Exact, ExactReader,
    LookupContract, LookupShape, MAX_DIR_BITS, MAX_DIRECT_BITS, NoMemory, Order, Simd, WideLpm,
    WideLpmReader, Worker,
};
use crate::key::{FieldMatch, KeyField, KeySchema, MatchKind};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The place of an entry among others that match.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rank {
    /// The larger number wins.
    pub(crate) priority: u32,
    /// Among equal priorities the smaller number, the earlier insertion, wins.
    pub(crate) serial: u64,
}

/// The engine of one table.
pub(super) struct Engine {
    kind: Kind,
    fields: Vec<Field>,
    bits: u32,
}

/// A field in a key of limbs.
#[derive(Clone, Copy)]
struct Field {
    kind: MatchKind,
    width: u32,
    /// Of its least significant bit.
    offset: u32,
}

enum Kind {
    /// A table without key fields: every lookup misses.
    Never,
    /// A key of no bits: the best entry is found by all.
    Single(BTreeMap<Order, u32>, Arc<AtomicU32>),
    Direct(Direct),
    Exact(Exact),
    /// Exact fields and a last lpm one are one prefix together.
    Dir24(Dir24),
    Wide(Box<WideLpm>),
    /// Anything else. Of lpm fields elsewhere the longer prefix is the larger priority.
    Acl(Acl),
}

#[derive(Clone)]
pub(super) enum EngineReader {
    Never,
    Single(Arc<AtomicU32>),
    Direct(DirectReader),
    Exact(ExactReader),
    Dir24(Dir24Reader),
    Wide(WideLpmReader),
    Acl(AclReader),
}

impl Engine {
    pub(super) fn new(domain: &Domain, schema: &KeySchema, size: u32) -> Result<Engine, NoMemory> {
        let simd = Simd::best();
        let given = schema.fields();
        let bits: u32 = given.iter().map(|field| field.width).sum();
        let mut above = bits;
        let place = |field: &KeyField| {
            above -= field.width;
            Field { kind: field.kind, width: field.width, offset: above }
        };
        let fields: Vec<Field> = given.iter().map(place).collect();
        let is = |field: &Field, kind| field.kind == kind || field.width == 0;
        let kind = match fields.split_last() {
            None => Kind::Never,
            Some(_) if bits == 0 => Kind::Single(BTreeMap::new(), Arc::default()),
            Some(_) if schema.needs_priority() => acl(domain, bits, &fields, simd),
            Some((last, rest)) if rest.iter().all(|field| is(field, MatchKind::Exact)) => match last.kind {
                MatchKind::Exact if bits <= MAX_DIRECT_BITS => Kind::Direct(Direct::new(domain, bits)?),
                MatchKind::Exact => Kind::Exact(Exact::new(domain, bits.div_ceil(64) as usize, simd)?),
                MatchKind::Lpm if bits <= MAX_DIR_BITS => Kind::Dir24(Dir24::new(domain, bits, size, simd)?),
                MatchKind::Lpm => Kind::Wide(Box::new(WideLpm::new(domain, bits, size, simd)?)),
                _ => acl(domain, bits, &fields, simd),
            },
            Some(_) => acl(domain, bits, &fields, simd),
        };
        Ok(Engine { kind, fields, bits })
    }

    pub(super) fn is_immediate(&self) -> bool {
        !matches!(self.kind, Kind::Wide(_) | Kind::Acl(_))
    }

    pub(super) fn limbs(&self) -> usize {
        self.bits.div_ceil(64) as usize
    }

    pub(super) fn reader(&self) -> EngineReader {
        match &self.kind {
            Kind::Never => EngineReader::Never,
            Kind::Single(_, result) => EngineReader::Single(Arc::clone(result)),
            Kind::Direct(engine) => EngineReader::Direct(engine.reader()),
            Kind::Exact(engine) => EngineReader::Exact(engine.reader()),
            Kind::Dir24(engine) => EngineReader::Dir24(engine.reader()),
            Kind::Wide(engine) => EngineReader::Wide(engine.reader()),
            Kind::Acl(engine) => EngineReader::Acl(engine.reader()),
        }
    }

    pub(super) fn insert(&mut self, matches: &[FieldMatch], rank: Rank, result: u32) -> Result<(), NoMemory> {
        self.write(matches, rank, result, true)
    }

    pub(super) fn replace(
        &mut self,
        matches: &[FieldMatch],
        rank: Rank,
        result: u32,
    ) -> Result<(), NoMemory> {
        self.write(matches, rank, result, false)
    }

    fn write(
        &mut self,
        matches: &[FieldMatch],
        rank: Rank,
        result: u32,
        is_new: bool,
    ) -> Result<(), NoMemory> {
        let order = self.order(matches, rank);
        let (key, len) = self.prefix(matches);
        match &mut self.kind {
            Kind::Never => Ok(()),
            Kind::Single(entries, best) => {
                entries.insert(order, result);
                publish_best(entries, best);
                Ok(())
            }
            Kind::Direct(engine) => {
                engine.set(key[0], result);
                Ok(())
            }
            Kind::Exact(engine) => engine.set(&key, result),
            Kind::Dir24(engine) if is_new => engine.insert(key[0], len, result),
            Kind::Dir24(engine) => engine.replace(key[0], len, result),
            Kind::Wide(engine) => engine.set(&key, len, result),
            Kind::Acl(engine) => {
                engine.set(order, &conditions(&self.fields, matches), result);
                Ok(())
            }
        }
    }

    /// `parent`: the length of the lpm field's prefix and the result of the entry that takes over.
    pub(super) fn remove(
        &mut self,
        matches: &[FieldMatch],
        rank: Rank,
        parent: impl FnOnce() -> Option<(u32, u32)>,
    ) {
        let order = self.order(matches, rank);
        let (key, len) = self.prefix(matches);
        match &mut self.kind {
            Kind::Never => {}
            Kind::Single(entries, best) => {
                entries.remove(&order);
                publish_best(entries, best);
            }
            Kind::Direct(engine) => engine.set(key[0], 0),
            Kind::Exact(engine) => {
                engine.remove(&key);
            }
            Kind::Dir24(engine) => {
                let exact = self.fields.last().map_or(0, |last| self.bits - last.width);
                let parent = parent().map_or((0, 0), |(len, result)| (exact + len, result));
                engine.remove(key[0], len, parent);
            }
            Kind::Wide(engine) => {
                engine.remove(&key, len);
            }
            Kind::Acl(engine) => {
                engine.remove(order);
            }
        }
    }

    pub(super) fn commit(&mut self) -> Result<(), NoMemory> {
        match &mut self.kind {
            Kind::Wide(engine) => engine.commit(),
            Kind::Acl(engine) => {
                engine.commit();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Finishes what commits left for later.
    pub(super) fn settle(&mut self) {
        if let Kind::Acl(engine) = &mut self.kind {
            engine.settle();
        }
    }

    /// Whether commits left nothing for later.
    pub(super) fn is_settled(&self) -> bool {
        match &self.kind {
            Kind::Acl(engine) => engine.is_settled(),
            _ => true,
        }
    }

    /// Second arrays that prefixes share.
    pub(super) fn groups(&self) -> usize {
        if let Kind::Dir24(engine) = &self.kind { engine.groups() } else { 0 }
    }

    /// Whether an entry is to get one of its own.
    pub(super) fn opens_group(&self, matches: &[FieldMatch]) -> bool {
        let Kind::Dir24(engine) = &self.kind else { return false };
        let (key, len) = self.prefix(matches);
        engine.opens_group(key[0], len)
    }

    /// Sections of a first array that prefixes lie in.
    pub(super) fn sections(&self) -> usize {
        if let Kind::Dir24(engine) = &self.kind { engine.held_sections() } else { 0 }
    }

    /// Sections that an entry is to have as the first one.
    pub(super) fn opens_sections(&self, matches: &[FieldMatch]) -> u32 {
        let Kind::Dir24(engine) = &self.kind else { return 0 };
        let (key, len) = self.prefix(matches);
        engine.opens_sections(key[0], len)
    }

    /// What a lookup takes at most as the engine is built now.
    pub(super) fn contract(&self) -> LookupContract {
        match &self.kind {
            Kind::Never => LookupContract { engine: "none", probes: 0, lines: 0 },
            Kind::Single(..) => LookupContract { engine: "single", probes: 1, lines: 1 },
            Kind::Direct(engine) => engine.contract(),
            Kind::Exact(engine) => engine.contract(),
            Kind::Dir24(engine) => engine.contract(),
            Kind::Wide(engine) => engine.contract(),
            Kind::Acl(engine) => engine.contract(),
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        match &self.kind {
            Kind::Never => 0,
            Kind::Single(entries, _) => entries.len() * 32,
            Kind::Direct(engine) => engine.memory_bytes(),
            Kind::Exact(engine) => engine.memory_bytes(),
            Kind::Dir24(engine) => engine.memory_bytes(),
            Kind::Wide(engine) => engine.memory_bytes(),
            Kind::Acl(engine) => engine.memory_bytes(),
        }
    }

    /// The values of all fields as one key, and its bits up to the end of the prefix.
    fn prefix(&self, matches: &[FieldMatch]) -> (Vec<u64>, u32) {
        let mut key = vec![0; self.limbs().max(1)];
        let mut len = self.bits;
        for (field, given) in self.fields.iter().zip(matches) {
            match given {
                FieldMatch::Exact(value) => place(&mut key, field.offset, value),
                FieldMatch::Lpm { value, prefix_len } => {
                    place(&mut key, field.offset, value);
                    len = self.bits - (field.width - prefix_len);
                }
                FieldMatch::Ternary { .. } | FieldMatch::Range { .. } | FieldMatch::Optional(_) => {}
            }
        }
        (key, len)
    }

    fn order(&self, matches: &[FieldMatch], rank: Rank) -> Order {
        let needs_priority = self.fields.iter().any(|field| field.kind.needs_priority());
        let prefix = matches.iter().find_map(|given| match given {
            FieldMatch::Lpm { prefix_len, .. } if !needs_priority => Some(*prefix_len),
            _ => None,
        });
        Order::new(prefix.unwrap_or(rank.priority), rank.serial)
    }
}

fn publish_best(entries: &BTreeMap<Order, u32>, best: &AtomicU32) {
    best.store(entries.first_key_value().map_or(0, |(_, result)| *result), Ordering::Release);
}

fn acl(domain: &Domain, bits: u32, fields: &[Field], simd: Simd) -> Kind {
    let places: Vec<(u32, u32)> =
        fields.iter().filter(|field| field.width > 0).map(|field| (field.offset, field.width)).collect();
    Kind::Acl(Acl::new(domain, bits, &places, simd))
}

fn conditions(fields: &[Field], matches: &[FieldMatch]) -> Vec<Condition> {
    let limbs = |value: &[u8]| {
        let mut limbs = vec![0; value.len().div_ceil(8)];
        place(&mut limbs, 0, value);
        limbs
    };
    let ones = |width: u32, len: u32| -> Vec<u64> {
        // The first `len` of `width` bits.
        let cleared = width - len;
        let limb = |at: u32| {
            let (from, to) = (cleared.saturating_sub(64 * at).min(64), width.saturating_sub(64 * at).min(64));
            let below = |bits: u32| if bits == 64 { !0 } else { (1u64 << bits) - 1 };
            below(to) & !below(from)
        };
        (0..width.div_ceil(64)).map(limb).collect()
    };
    let fields = fields.iter().zip(matches).filter(|(field, _)| field.width > 0);
    fields
        .map(|(field, given)| match given {
            FieldMatch::Exact(value) | FieldMatch::Optional(Some(value)) => {
                Condition::Masked { value: limbs(value), mask: ones(field.width, field.width) }
            }
            FieldMatch::Optional(None) => Condition::Masked { value: Vec::new(), mask: Vec::new() },
            FieldMatch::Lpm { value, prefix_len } => {
                Condition::Masked { value: limbs(value), mask: ones(field.width, *prefix_len) }
            }
            FieldMatch::Ternary { value, mask } => {
                Condition::Masked { value: limbs(value), mask: limbs(mask) }
            }
            FieldMatch::Range { low, high } => Condition::Range { low: limbs(low), high: limbs(high) },
        })
        .collect()
}

/// Puts a big-endian value into limbs, its least significant bit at `offset`. Its bits there are zero.
fn place(limbs: &mut [u64], offset: u32, value: &[u8]) {
    for (at, byte) in value.iter().rev().enumerate() {
        let bit = offset as usize + 8 * at;
        let (limb, shift) = (bit / 64, bit % 64);
        if let Some(low) = limbs.get_mut(limb) {
            *low |= u64::from(*byte) << shift;
        }
        if shift > 56
            && let Some(high) = limbs.get_mut(limb + 1)
        {
            *high |= u64::from(*byte) >> (64 - shift);
        }
    }
}

impl EngineReader {
    #[inline]
    pub(super) fn lookup(&self, worker: &Worker, keys: &[u64], out: &mut [u32]) {
        match self {
            EngineReader::Never => out.fill(0),
            EngineReader::Single(result) => out.fill(result.load(Ordering::Acquire)),
            EngineReader::Direct(reader) => reader.lookup(worker, keys, out),
            EngineReader::Exact(reader) => reader.lookup(worker, keys, out),
            EngineReader::Dir24(reader) => reader.lookup(worker, keys, out),
            EngineReader::Wide(reader) => reader.lookup(worker, keys, out),
            EngineReader::Acl(reader) => reader.lookup(worker, keys, out),
        }
    }

    #[inline]
    pub(super) fn shape(&self, worker: &Worker) -> LookupShape {
        match self {
            EngineReader::Direct(reader) => reader.shape(worker),
            EngineReader::Dir24(reader) => reader.shape(worker),
            EngineReader::Exact(reader) => reader.shape(worker),
            _ => LookupShape::CALL,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_placed_across_limbs() {
        let mut limbs = [0; 2];
        place(&mut limbs, 60, &[0x01, 0xab]);
        assert_eq!(limbs, [0xb << 60, 0x1a]);
    }

    #[test]
    fn an_lpm_field_of_an_acl_is_a_mask_of_leading_bits() {
        let field = Field { kind: MatchKind::Lpm, width: 68, offset: 0 };
        let value = vec![0xf, 0xff, 0, 0, 0, 0, 0, 0, 0];
        let made = conditions(&[field], &[FieldMatch::Lpm { value, prefix_len: 12 }]);
        assert_eq!(made, [Condition::Masked { value: vec![0xff << 56, 0xf], mask: vec![0xff << 56, 0xf] }]);
    }
}
