//! Hashes and checksums.

use super::cache::Sum;
use super::fields::{Base, ones};
use super::ops::Operations;
use super::values::{Form, Num, Val};
use crate::runtime::{Helper, Writer, hasher_number};
use cranelift_codegen::ir::{InstBuilder, Value};
use millrace_midend::cfg::{Cfg, Op};
use millrace_midend::facts::HeaderPlace;
use millrace_midend::machine::MAX_ROOM;
use millrace_midend::specialise::{NodeId, Specialised};
use millrace_midend::type_width;
use millrace_pipeline::*;
use rustc_hash::FxHashSet;

/// Whether a hash is a one's complement sum.
fn sums(algorithm: HashAlgorithm) -> bool {
    matches!(algorithm, HashAlgorithm::Csum16 | HashAlgorithm::OnesComplementSum)
}

/// Whether a checksum is computed at a node or after it.
pub(super) fn sums_after(cfg: &Cfg, special: &Specialised, node: NodeId) -> bool {
    let (mut seen, mut waiting) = (FxHashSet::from_iter([node]), vec![node]);
    while let Some(node) = waiting.pop() {
        let node = &special.nodes[node];
        let ops = &cfg.blocks[node.block].ops;
        if ops.iter().any(|op| matches!(op, Op::Inst(Inst::Hash { algorithm, .. }) if sums(*algorithm))) {
            return true;
        }
        node.term.for_each_target(&mut |to| {
            if seen.insert(*to) {
                waiting.push(*to);
            }
        });
    }
    false
}

/// Bytes that are put together in stack memory for a hash, at most.
const MAX_STATIC: u32 = 1024;

/// Times this, the highest 16 bits of a sum of at most [`MAX_STATIC`] / 4 words of 32 bits are its one's complement sum of
/// 16-bit words.
const FOLD: u64 = 0x0001_0001_0001_0001;

impl Operations<'_> {
    /// The hash of data by an algorithm, or the hash of its own, as a number of the algorithm's width.
    pub(super) fn hash(&mut self, how: (HashAlgorithm, Option<HashId>), data: &[DataItem]) -> Num {
        match self.static_items(data) {
            Some((items, bits)) => self.hash_static(how, items, bits),
            None => self.hash_written(how, data),
        }
    }

    /// What computes a hash, for helpers.
    fn hasher(&mut self, (algorithm, own): (HashAlgorithm, Option<HashId>)) -> Value {
        self.e().int(hasher_number(algorithm, own))
    }

    /// The parts of data whose length is known here, and the bits of all.
    fn static_items(&mut self, data: &[DataItem]) -> Option<(Vec<Expr>, u32)> {
        let p = self.slots.program;
        let mut items = Vec::new();
        for item in data {
            match item {
                // A field in the packet is read there, even if its value is known: so it adds up with its neighbours.
                DataItem::Value(Expr::Read(slot)) if self.is_in_packet(*slot) => {
                    items.push(Expr::Read(*slot))
                }
                DataItem::Value(expr) => items.push(millrace_midend::simplify(p, expr, &self.slots.facts)),
                DataItem::Header(header) => match self.slots.facts.place(*header) {
                    HeaderPlace::Invalid => {}
                    HeaderPlace::Unknown | HeaderPlace::Maybe => return None,
                    HeaderPlace::At(_) | HeaderPlace::Pointed | HeaderPlace::Stored => {
                        items.extend(p.headers[*header].fields.iter().map(|field| Expr::Read(*field)));
                    }
                },
                DataItem::Payload => return None,
            }
        }
        let mut bits = 0u32;
        for item in &items {
            bits += match item.ty(p) {
                Type::Bool => 1,
                Type::Bits(width) => width,
                Type::Varbit(_) => return None,
            };
        }
        (bits <= 8 * MAX_STATIC).then_some((items, bits))
    }

    fn is_in_packet(&self, slot: SlotId) -> bool {
        match self.slots.program.slots[slot].home {
            Home::Header { header, .. } => {
                matches!(self.slots.facts.place(header), HeaderPlace::At(_) | HeaderPlace::Pointed)
            }
            Home::Metadata | Home::Local => false,
        }
    }

    fn hash_static(
        &mut self,
        how @ (algorithm, _): (HashAlgorithm, Option<HashId>),
        items: Vec<Expr>,
        bits: u32,
    ) -> Num {
        if sums(algorithm) {
            let in_place = self.sum_in_place(&items);
            let sum = in_place.unwrap_or_else(|| self.sum_of_values(&items));
            let folded = self.folded(algorithm, sum);
            let form = if in_place.is_some() { Form::Swapped(folded) } else { Form::Limbs(vec![folded]) };
            return Num { width: 16, form };
        }
        let bytes = bits.div_ceil(8);
        let buffer = self.e().buffer(3, bytes + 16);
        let zero = self.e().int(0);
        for at in (0..bytes + 8).step_by(8) {
            self.e().store_word(zero, buffer, at);
        }
        let mut at = 0;
        for item in items {
            let val = self.eval(&item);
            let num = self.e().bits_of(val);
            self.packet().store_bits(Base::Other, buffer, at, &num);
            at += num.width;
        }
        let (host, hasher) = (self.packet().host(), self.hasher(how));
        let bytes = self.e().int(u64::from(bytes));
        let hash = self.e().call(Helper::Hash, &[host, hasher, buffer, bytes]);
        Num::one(algorithm.width(), hash)
    }

    /// The sum of 16-bit words, as they are in memory, of fields that are in the packet and make up whole bytes one after
    /// another, but for gaps of whole words. Below 2^48.
    fn sum_in_place(&mut self, items: &[Expr]) -> Option<Value> {
        let mut words = Vec::new();
        for (base, address, mut at, mut bytes) in self.pieces(items)? {
            while bytes > 0 {
                let size = [4, 2].into_iter().find(|size| *size <= bytes)?;
                words.push((base, address, at, size));
                (at, bytes) = (at + size, bytes - size);
            }
        }
        let places: Vec<(Base, u32, u32)> =
            words.iter().map(|(base, _, at, size)| (*base, *at, *size)).collect();
        if let Some(sum) = self.packet().cache.sums.iter().find(|sum| sum.words == places) {
            return Some(sum.total);
        }
        let mut total = None;
        for (base, address, at, size) in words {
            let word = self.packet().load_raw(base, address, at, size);
            total = Some(match total {
                None => word,
                Some(total) => self.ins().iadd(total, word),
            });
        }
        let total = total?;
        self.packet().cache.sums.push(Sum { words: places, total });
        Some(total)
    }

    /// Byte ranges in the packet that fields cover, each an even number of bytes at an even place of the data.
    fn pieces(&mut self, items: &[Expr]) -> Option<Vec<(Base, Value, u32, u32)>> {
        let mut pieces: Vec<(Base, u32, u32)> = Vec::new();
        for item in items {
            let Expr::Read(slot) = item else { return None };
            let Home::Header { header, offset } = self.slots.program.slots[*slot].home else { return None };
            let (base, bit) = match self.slots.facts.place(header) {
                HeaderPlace::At(at) => (Base::Packet, 8 * at + offset),
                HeaderPlace::Pointed => (Base::Header(header), offset),
                _ => return None,
            };
            let width = millrace_midend::type_width(self.slots.program.slots[*slot].ty);
            match pieces.last_mut() {
                Some((last, start, bits)) if *last == base && *start + *bits == bit => *bits += width,
                _ => pieces.push((base, bit, width)),
            }
        }
        let whole = pieces.iter().all(|(_, start, bits)| start.is_multiple_of(8) && bits.is_multiple_of(16));
        whole.then(|| {
            pieces
                .into_iter()
                .map(|(base, start, bits)| {
                    let address = match base {
                        Base::Header(header) => self.slots.pointer(header),
                        _ => self.packet().data(),
                    };
                    (base, address, start / 8, bits / 8)
                })
                .collect()
        })
    }

    /// The sum of 16-bit words of data one after another, filled up with zeros at the end. Below 2^48.
    fn sum_of_values(&mut self, items: &[Expr]) -> Value {
        let nums = items.iter().map(|item| {
            let val = self.eval(item);
            self.e().bits_of(val)
        });
        let nums = nums.collect();
        let words = self.e().in_units(nums, 16);
        let zero = self.e().int(0);
        words.iter().fold(zero, |total, num| self.add_words(total, num))
    }

    /// Adds the 32-bit words of a number of whole 16-bit words: as many end-around carries.
    fn add_words(&mut self, total: Value, num: &Num) -> Value {
        let mut total = total;
        let mut left = num.width;
        for limb in self.e().limbs(num) {
            let low = if left > 32 { self.e().and(limb, ones(32)) } else { limb };
            total = self.ins().iadd(total, low);
            if left > 32 {
                let high = self.e().shr(limb, 32);
                total = self.ins().iadd(total, high);
            }
            left = left.saturating_sub(64);
        }
        total
    }

    /// Folds a sum of 16-bit words to 16 bits. Where the words have their bytes in the reverse order, so has the sum, since
    /// the end-around carry goes round either way.
    fn folded(&mut self, algorithm: HashAlgorithm, sum: Value) -> Value {
        // The highest 16 bits of the product are the sum of the words, with what its lower parts carry: that is the
        // end-around carry, see the test.
        let all = self.e().int(FOLD);
        let product = self.ins().imul(sum, all);
        let mut sum = self.e().shr(product, 48);
        if algorithm == HashAlgorithm::Csum16 {
            let ones = self.e().int(0xffff);
            sum = self.ins().bxor(sum, ones);
        }
        self.e().widths.insert(sum, 16);
        sum
    }

    /// By a writer that takes whatever comes.
    fn hash_written(&mut self, how: (HashAlgorithm, Option<HashId>), data: &[DataItem]) -> Num {
        let program = self.slots.program;
        let bits = data.iter().map(|item| match item {
            DataItem::Value(value) => u64::from(type_width(value.ty(program))),
            DataItem::Header(header) => program.most_bits(*header),
            // It is written at once, and takes what memory it needs.
            DataItem::Payload => 0,
        });
        self.start_writer(Writer::Hash, bits.sum());
        for item in data {
            match item {
                DataItem::Value(expr) => {
                    let val = self.eval(expr);
                    self.append(Writer::Hash, val);
                }
                DataItem::Header(header) => self.append_header(Writer::Hash, *header),
                DataItem::Payload => {
                    let (host, data, len, cursor) = (
                        self.packet().host(),
                        self.packet().data(),
                        self.packet().length(),
                        self.slots.cursor(),
                    );
                    self.e().call(Helper::WriterPayload, &[host, data, len, cursor]);
                }
            }
        }
        let (host, hasher) = (self.packet().host(), self.hasher(how));
        let hash = self.e().call(Helper::WriterHash, &[host, hasher]);
        Num::one(how.0.width(), hash)
    }

    /// A writer starts again, empty, with room for so many bits.
    pub(super) fn start_writer(&mut self, writer: Writer, bits: u64) {
        let room = bits.div_ceil(8).min(MAX_ROOM);
        let (host, writer, room) = (self.packet().host(), self.e().int(writer as u64), self.e().int(room));
        self.e().call(Helper::WriterStart, &[host, writer, room]);
    }

    /// Appends a value to a writer.
    fn append(&mut self, to: Writer, val: Val) {
        let (host, to) = (self.packet().host(), self.e().int(to as u64));
        match val {
            Val::Varbit(pointer) => {
                self.e().call(Helper::WriterVarbit, &[host, to, pointer]);
            }
            other => {
                let num = self.e().bits_of(other);
                let width = self.e().int(u64::from(num.width));
                let limbs = self.e().spill_number(0, &num);
                self.e().call(Helper::WriterBits, &[host, to, width, limbs]);
            }
        }
    }

    /// Appends a header to a writer; nothing when it is invalid.
    pub(super) fn append_header(&mut self, to: Writer, header: HeaderId) {
        if self.slots.facts.place(header) == HeaderPlace::Invalid {
            return;
        }
        let after = self.e().new_block();
        self.slots.enter_if_valid(header, after, &[]);
        // What is loaded or computed inside holds only there.
        let cache = self.packet().cache.clone();
        for field in &self.slots.program.headers[header].fields {
            let val = self.slots.read(*field);
            self.append(to, val);
        }
        self.packet().cache = cache;
        self.ins().jump(after, &[]);
        self.e().start(after);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 1071, 2: the carries are added until there are none.
    fn folded(mut sum: u64) -> u64 {
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum
    }

    #[test]
    fn a_product_folds() {
        let edges = [0, 1, 2, 0x7fff, 0x8000, 0xff00, 0xfffd, 0xfffe, 0xffff];
        for high in 0..=u64::from(MAX_STATIC / 4) {
            for middle in edges {
                for low in edges.into_iter().chain((0..=0xffff).step_by(251)) {
                    let sum = high << 32 | middle << 16 | low;
                    assert_eq!(sum.wrapping_mul(FOLD) >> 48, folded(sum), "{sum:#x}");
                }
            }
        }
    }
}
