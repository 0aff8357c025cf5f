//! Hashes and checksums, without a clock: sums are trees of adders, a CRC is an exclusive or of some of the data's bits for each
//! bit of the result.

use super::bytes::Written;
use super::env::Env;
use super::expr::Value;
use super::payload::Payload;
use super::{Converter, Step};
use crate::graph::{Binary, Graph, Unary, Wire};
use crate::limits::MAX_HASH_LENGTHS;
use crate::refusal::Construct;
use crate::stage::{Input, parameters_width};
use millrace_pipeline::*;
use rustc_hash::FxHashMap;
use std::rc::Rc;

impl Converter<'_> {
    /// The hash of the data, [`HashAlgorithm::width`] bits wide.
    pub(super) fn hash(
        &mut self,
        algorithm: HashAlgorithm,
        own: Option<HashId>,
        data: &[DataItem],
        env: &Env,
    ) -> Step<Wire> {
        let mut written = self.nothing_written();
        let always = self.graph.bool(true);
        let mut payload = None;
        for item in data {
            if payload.is_some() {
                return Err(Construct::Payload("before other data"));
            }
            match item {
                DataItem::Value(expr) => match self.value(expr, env)? {
                    Value::Bits(bits) => self.append(&mut written, bits, always)?,
                    Value::Varbit(bits, length) => {
                        self.append_varbit(&mut written, (bits, length), always)?
                    }
                },
                DataItem::Header(header) => self.append_header(&mut written, *header, env)?,
                DataItem::Payload => payload = Some(self.payload(&mut written, env)?),
            }
        }
        match (algorithm, payload, own) {
            // Zeros after the data change none of these.
            (HashAlgorithm::Csum16, payload, _) => {
                let sum = self.sum(&written, payload.as_ref())?;
                Ok(self.graph.not(sum))
            }
            (HashAlgorithm::OnesComplementSum, payload, _) => self.sum(&written, payload.as_ref()),
            (HashAlgorithm::Xor16, payload, _) => {
                let mut words = self.words(&written);
                if let Some(payload) = payload {
                    words.extend(self.payload_words(&written, &payload, true)?);
                }
                let zero = self.graph.number(16, 0);
                Ok(words.into_iter().fold(zero, |all, word| self.graph.binary(Binary::Xor, all, word)))
            }
            (_, Some(_), Some(own)) => Err(Construct::OwnHash(self.program.hashes[own].name.clone())),
            (_, None, own) => self.by_length(algorithm, own, &written, MAX_HASH_LENGTHS),
            (_, Some(payload), None) => self.hash_with_payload(algorithm, &mut written, &payload),
        }
    }

    /// The data as 16-bit words, filled up with zeros.
    fn words(&mut self, written: &Written) -> Vec<Wire> {
        let Some(bits) = written.bits else { return Vec::new() };
        let whole = self.graph.width(bits).next_multiple_of(16);
        let bits = self.graph.left_fit(bits, whole);
        (0..whole / 16).map(|at| self.graph.slice(bits, at * 16 + 15, at * 16)).collect()
    }

    /// The one's complement sum: the plain sum, wide enough, whose carries are added at its end. (Adding carries at once or in the
    /// end, the sum is 0 for words that are all 0, and never else.)
    fn sum(&mut self, written: &Written, payload: Option<&Payload>) -> Step<Wire> {
        let mut words = self.words(written);
        if let Some(payload) = payload {
            words.extend(self.payload_words(written, payload, false)?);
        }
        let g = &mut self.graph;
        let width = 16 + usize::BITS - words.len().leading_zeros();
        let terms = words.into_iter().map(|word| g.zero_extend(word, width)).collect();
        let sum = g.sum(terms).unwrap_or_else(|| g.number(16, 0));
        Ok(by_word(g, sum))
    }

    /// A hash that depends on the length of the data: one for each length, chosen by the length.
    pub(super) fn by_length(
        &mut self,
        algorithm: HashAlgorithm,
        own: Option<HashId>,
        written: &Written,
        most: usize,
    ) -> Step<Wire> {
        let ends = written.end.cases.clone().ok_or(Construct::HashLengths)?;
        if ends.len() > most {
            return Err(Construct::HashLengths);
        }
        let mut chosen: Option<Wire> = None;
        for (length, is) in ends.iter() {
            let bytes = (*length as u32).div_ceil(8);
            let data = written.bits.filter(|_| bytes > 0);
            let data = data.map(|bits| self.graph.left_fit(bits, bytes * 8));
            let one = match (own, data) {
                (Some(own), data) => self.by_parameters(own, data),
                (None, Some(data)) => self.of_bytes(algorithm, data, bytes),
                (None, None) => self.graph.number(algorithm.width(), algorithm.compute(&[])),
            };
            chosen = Some(chosen.map_or(one, |rest| self.graph.mux(*is, one, rest)));
        }
        Ok(match (chosen, own) {
            (Some(chosen), _) => chosen,
            (None, Some(own)) => self.by_parameters(own, None),
            (None, None) => self.graph.number(algorithm.width(), algorithm.compute(&[])),
        })
    }

    /// A CRC whose parameters software sets, bit by bit.
    fn by_parameters(&mut self, own: HashId, data: Option<Wire>) -> Wire {
        let width = self.program.hashes[own].algorithm.width();
        let parameters = self.shared_input(Input::Parameters(own), parameters_width(width));
        let g = &mut self.graph;
        let part = |g: &mut Graph, at: u32| g.slice(parameters, (at + 1) * width - 1, at * width);
        let (polynomial, initial, last) = (part(g, 0), part(g, 1), part(g, 2));
        let (data_turned, rest_turned) =
            (g.slice(parameters, 3 * width, 3 * width), g.slice(parameters, 3 * width + 1, 3 * width + 1));
        let mut rest = initial;
        let bits = data.map_or(0, |data| g.width(data));
        for at in (0..bits).rev() {
            let Some(data) = data else { break };
            // The bit of the byte from the other side.
            let (plain, turned) = (g.slice(data, at, at), {
                let other = at / 8 * 8 + (7 - at % 8);
                g.slice(data, other, other)
            });
            let bit = g.mux(data_turned, turned, plain);
            let top = g.slice(rest, width - 1, width - 1);
            let takes = g.binary(Binary::Xor, top, bit);
            let low = g.slice(rest, width - 2, 0);
            let zero = g.bool(false);
            let moved = g.concat(low, zero);
            let changed = g.binary(Binary::Xor, moved, polynomial);
            rest = g.mux(takes, changed, moved);
        }
        let mut turned = g.slice(rest, 0, 0);
        for at in 1..width {
            let bit = g.slice(rest, at, at);
            turned = g.concat(turned, bit);
        }
        let rest = g.mux(rest_turned, turned, rest);
        g.binary(Binary::Xor, rest, last)
    }

    pub(super) fn of_bytes(&mut self, algorithm: HashAlgorithm, data: Wire, bytes: u32) -> Wire {
        let g = &mut self.graph;
        let bits = bytes * 8;
        if algorithm == HashAlgorithm::Identity {
            let first = g.left_fit(data, bits.min(64));
            return g.zero_extend(first, 64);
        }
        // A CRC of data of one length is linear but for what all-zero data give.
        let width = algorithm.width();
        let masks = self.columns.entry(algorithm).or_default().masks(algorithm, bytes as usize);
        let zeros = algorithm.compute(&vec![0; bytes as usize]);
        let g = &mut self.graph;
        let mut result: Option<Wire> = None;
        for mask in masks.iter().rev() {
            let mask = g.bits(mask.clone());
            let taken = g.and(data, mask);
            let odd = g.unary(Unary::Parity, taken);
            result = Some(result.map_or(odd, |high| g.concat(high, odd)));
        }
        let zeros = g.number(width, zeros);
        let result = result.unwrap_or(zeros);
        g.binary(Binary::Xor, result, zeros)
    }
}

/// A number of at most 32 bits as a one's complement sum of its words: 0 for 0 alone.
pub(super) fn by_word(g: &mut Graph, sum: Wire) -> Wire {
    let mut sum = sum;
    if g.width(sum) <= 16 {
        return g.zero_extend(sum, 16);
    }
    // Two rounds: the first leaves at most one carry.
    for _ in 0..2 {
        let has = g.width(sum);
        let (high, low) = (g.slice(sum, has - 1, 16), g.slice(sum, 15, 0));
        let (high, low) = (g.zero_extend(high, 17), g.zero_extend(low, 17));
        sum = g.add(high, low);
    }
    g.slice(sum, 15, 0)
}

/// What each bit of the data changes in a CRC. That depends on how many bytes come after it alone, so it is found once.
#[derive(Default)]
pub(super) struct Columns {
    changed: Vec<[u64; 8]>,
    /// The masks of data of so many bytes: a program may hash as many bytes ten thousand times.
    masks: FxHashMap<usize, Rc<[Bits]>>,
}

impl Columns {
    fn extend_to(&mut self, algorithm: HashAlgorithm, bytes: usize) {
        while self.changed.len() < bytes {
            let mut data = vec![0; self.changed.len() + 1];
            let zeros = algorithm.compute(&data);
            let mut changed = [0; 8];
            for (bit, changed) in changed.iter_mut().enumerate() {
                data[0] = 0x80 >> bit;
                *changed = algorithm.compute(&data) ^ zeros;
            }
            self.changed.push(changed);
        }
    }

    /// For each bit of a CRC, the lowest first, the bits of so many bytes that change it.
    fn masks(&mut self, algorithm: HashAlgorithm, bytes: usize) -> Rc<[Bits]> {
        if let Some(masks) = self.masks.get(&bytes) {
            return Rc::clone(masks);
        }
        self.extend_to(algorithm, bytes);
        let mut takes = vec![vec![0; bytes]; algorithm.width() as usize];
        for (at, changed) in self.of(bytes) {
            for (of, takes) in takes.iter_mut().enumerate() {
                if changed >> of & 1 == 1 {
                    takes[at / 8] |= 0x80 >> (at % 8);
                }
            }
        }
        let masks: Rc<[Bits]> = takes.iter().map(|takes| Bits::from_bytes(8 * bytes as u32, takes)).collect();
        self.masks.insert(bytes, Rc::clone(&masks));
        masks
    }

    /// The bits of so many bytes, and what each changes.
    fn of(&self, bytes: usize) -> impl Iterator<Item = (usize, u64)> {
        let after = self.changed[..bytes].iter().rev().enumerate();
        after.flat_map(|(byte, changed)| {
            changed.iter().enumerate().map(move |(bit, one)| (byte * 8 + bit, *one))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crc_is_the_sum_of_its_columns() {
        let data = b"123456789";
        for algorithm in [HashAlgorithm::Crc32, HashAlgorithm::Crc16, HashAlgorithm::CrcCcitt] {
            let mut columns = Columns::default();
            columns.extend_to(algorithm, data.len());
            let zeros = algorithm.compute(&[0; 9]);
            let set = columns.of(data.len()).filter(|(at, _)| data[at / 8] & (0x80 >> (at % 8)) != 0);
            assert_eq!(set.fold(zeros, |sum, (_, changed)| sum ^ changed), algorithm.compute(data));
        }
    }
}
