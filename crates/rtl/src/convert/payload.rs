//! Hashes over the payload: what comes of a frame after the cursor, however long it is.
//!
//! A pipeline sees the window of a frame alone. What is known of all its bytes comes with the frame, as its length does ([`Rest`]):
//! sums and remainders that a receiver adds up while beats pass. Those of the payload follow from them, since the bytes before it
//! are in the window: a sum less that of these bytes, an exclusive or with it. A CRC is linear but for what it starts from, so that of data and
//! payload is that of the frame and of what differs, moved by as many zero bytes as the payload has: a choice for each bit of
//! that number.

use super::bytes::Written;
use super::env::Env;
use super::hash::by_word;
use super::{Converter, Step};
use crate::graph::{Binary, Cases, Unary, Wire};
use crate::limits::MAX_HASH_LENGTHS;
use crate::refusal::Construct;
use crate::stage::{Input, Rest};
use millrace_pipeline::*;

/// The whole bytes after the cursor.
pub(super) struct Payload {
    /// Where in the frame they start, in bytes; none: where what [`Rest`] tells starts.
    starts: Option<Cases>,
    /// How many there are: 32 bits.
    bytes: Wire,
}

/// The bits of the number of bytes of a payload that a CRC looks at: no frame is longer.
const LENGTH_BITS: u32 = 16;
/// The bits of sums over the window.
const SUM_BITS: u32 = 20;

impl Converter<'_> {
    /// The payload, whose bits before its first whole byte are appended to the data.
    pub(super) fn payload(&mut self, written: &mut Written, env: &Env) -> Step<Payload> {
        if !self.graph.is_false(env.cells[self.cells.deparsed()]) {
            return Err(Construct::Payload("of a packet that was put together"));
        }
        let length = env.cells[self.cells.length()];
        let Some(cursor) = env.cursor.cases.clone() else {
            if env.cursor.many {
                return Err(Construct::Places);
            }
            if self.program.headers.values().any(|header| header.fixed_bits % 8 != 0) {
                return Err(Construct::Payload("after headers of no whole bytes"));
            }
            let three = self.graph.number(32, 3);
            let before = self.graph.binary(Binary::Shr, env.cursor.wire, three);
            let bytes = self.graph.binary(Binary::Sub, length, before);
            return Ok(Payload { starts: None, bytes });
        };
        let mut starts = Cases::new();
        for (at, here) in cursor.iter() {
            let start = at.div_ceil(8);
            self.graph.add_case(&mut starts, start, *here);
            if start * 8 > *at {
                let bits = self.graph.frame(*at as u32, (start * 8 - at) as u32);
                self.append(written, bits, *here)?;
            }
        }
        let before = self.graph.of_cases(32, &starts);
        let bytes = self.graph.binary(Binary::Sub, length, before);
        Ok(Payload { starts: Some(starts), bytes })
    }

    /// Sums of the payload's bytes at even and at odd places after its start, 32 bits each.
    pub(super) fn payload_sums(&mut self, payload: &Payload) -> (Wire, Wire) {
        let rest = self.shared_input(Input::Rest(Rest::Sum), Rest::Sum.width());
        let g = &mut self.graph;
        let sums = [g.slice(rest, 63, 32), g.slice(rest, 31, 0)];
        let add = |g: &mut crate::graph::Graph, a, b| g.add(a, b);
        self.less_before(payload, sums, (Binary::Sub, SUM_BITS), &add)
    }

    /// The same with an exclusive or for the sum, 8 bits each.
    pub(super) fn payload_xors(&mut self, payload: &Payload) -> (Wire, Wire) {
        let rest = self.shared_input(Input::Rest(Rest::Xor), Rest::Xor.width());
        let g = &mut self.graph;
        let sums = [g.slice(rest, 15, 8), g.slice(rest, 7, 0)];
        let xor = |g: &mut crate::graph::Graph, a, b| g.binary(Binary::Xor, a, b);
        self.less_before(payload, sums, (Binary::Xor, 8), &xor)
    }

    /// Takes from the sums over even and odd places of the frame those of the bytes before the payload.
    fn less_before(
        &mut self,
        payload: &Payload,
        sums: [Wire; 2],
        (less, bits): (Binary, u32),
        add: &dyn Fn(&mut crate::graph::Graph, Wire, Wire) -> Wire,
    ) -> (Wire, Wire) {
        let Some(starts) = &payload.starts else { return (sums[0], sums[1]) };
        let g = &mut self.graph;
        let zero = g.number(bits, 0);
        let (mut before, mut chosen, mut at) = ([zero; 2], [zero; 2], 0);
        let mut odd = g.bool(false);
        for (start, here) in starts {
            for (side, before) in before.iter_mut().enumerate() {
                let places = (at..*start).filter(|byte| *byte as usize % 2 == side);
                let terms: Vec<Wire> = places
                    .map(|byte| {
                        let byte = g.frame(byte as u32 * 8, 8);
                        g.zero_extend(byte, bits)
                    })
                    .collect();
                if let Some(sum) = g.tree(terms, add) {
                    *before = add(g, *before, sum);
                }
            }
            for (chosen, before) in chosen.iter_mut().zip(before) {
                *chosen = g.mux(*here, before, *chosen);
            }
            if start % 2 == 1 {
                odd = g.or(odd, *here);
            }
            at = *start;
        }
        let [even, other] = [0, 1].map(|side| {
            let before = g.zero_extend(chosen[side], g.width(sums[side]));
            g.binary(less, sums[side], before)
        });
        (g.mux(odd, other, even), g.mux(odd, even, other))
    }

    /// What bytes at even or odd places of the payload add to a word: turned by where in a word the payload starts.
    pub(super) fn in_words(&mut self, written: &Written, byte: Wire, odd: bool) -> Step<Wire> {
        let ends = written.end.cases.clone().ok_or(Construct::HashLengths)?;
        let mut places = Cases::new();
        for (end, here) in ends.iter() {
            // A byte at the high end of a word is moved by 8 to the left, and bits that leave a word come in again at its other end.
            let place = (end + if odd { 8 } else { 0 }) % 16;
            self.graph.add_case(&mut places, (24 - place) % 16, *here);
        }
        let g = &mut self.graph;
        let mut chosen: Option<Wire> = None;
        for (by, here) in &places {
            let turned = match *by as u32 {
                0 => byte,
                by => {
                    let (high, low) = (g.slice(byte, 15, 16 - by), g.slice(byte, 15 - by, 0));
                    g.concat(low, high)
                }
            };
            chosen = Some(chosen.map_or(turned, |rest| g.mux(*here, turned, rest)));
        }
        Ok(chosen.unwrap_or(byte))
    }

    /// A CRC, or the first bytes, of data and payload.
    pub(super) fn hash_with_payload(
        &mut self,
        algorithm: HashAlgorithm,
        written: &mut Written,
        payload: &Payload,
    ) -> Step<Wire> {
        if algorithm == HashAlgorithm::Identity {
            let starts = payload.starts.clone();
            let starts = starts.ok_or(Construct::Payload("in a stage that does not parse it"))?;
            for byte in 0..8 {
                let mut bits: Option<Wire> = None;
                for (start, here) in &starts {
                    let one = self.graph.frame((*start as u32 + byte) * 8, 8);
                    bits = Some(bits.map_or(one, |rest| self.graph.mux(*here, one, rest)));
                }
                let at = self.graph.number(32, u64::from(byte));
                let there = self.graph.lt(at, payload.bytes);
                if let Some(bits) = bits {
                    self.append(written, bits, there)?;
                }
            }
            return self.by_length(algorithm, None, written, MAX_HASH_LENGTHS + 8);
        }
        let Some(linear) = Linear::of(algorithm) else {
            return Err(Construct::Operation("a hash of another kind"));
        };
        let ends = written.end.cases.clone().ok_or(Construct::HashLengths)?;
        if ends.keys().any(|end| end % 8 != 0) {
            return Err(Construct::Payload("after data of no whole bytes, in a CRC"));
        }
        let width = algorithm.width();
        // The remainder after the data; then what the bytes before the payload have given.
        let data = self.by_length(algorithm, None, written, MAX_HASH_LENGTHS)?;
        let last = self.graph.number(width, linear.last);
        let mut differs = self.graph.binary(Binary::Xor, data, last);
        if let Some(starts) = &payload.starts {
            let mut before: Option<Wire> = None;
            for (start, here) in starts.clone() {
                let one = match start as u32 {
                    0 => self.graph.number(width, 0),
                    bytes => {
                        let window = self.graph.frame(0, bytes * 8);
                        let hash = self.of_bytes(algorithm, window, bytes);
                        let zeros = algorithm.compute(&vec![0; bytes as usize]);
                        let zeros = self.graph.number(width, zeros);
                        self.graph.binary(Binary::Xor, hash, zeros)
                    }
                };
                before = Some(before.map_or(one, |rest| self.graph.mux(here, one, rest)));
            }
            if let Some(before) = before {
                differs = self.graph.binary(Binary::Xor, differs, before);
            }
        }
        let g = &mut self.graph;
        let mut moves = linear.zero_byte();
        for bit in 0..LENGTH_BITS {
            let is = g.slice(payload.bytes, bit, bit);
            let mut moved: Option<Wire> = None;
            for to in 0..width as usize {
                let takes = (0..width as usize).filter(|from| moves[*from] >> to & 1 == 1);
                let mask = takes.fold(0, |mask, from| mask | 1 << from);
                let mask = g.number(width, mask);
                let taken = g.and(differs, mask);
                let odd = g.unary(Unary::Parity, taken);
                moved = Some(moved.map_or(odd, |low| g.concat(odd, low)));
            }
            differs = moved.map_or(differs, |moved| g.mux(is, moved, differs));
            moves = twice(&moves);
        }
        let rest = self.shared_input(Input::Rest(Rest::Crc(linear.algorithm)), width);
        let g = &mut self.graph;
        let all = g.binary(Binary::Xor, rest, differs);
        Ok(g.binary(Binary::Xor, all, last))
    }

    /// The words of data and payload, added up one way or the other.
    pub(super) fn payload_words(
        &mut self,
        written: &Written,
        payload: &Payload,
        xor: bool,
    ) -> Step<[Wire; 2]> {
        let (even, odd) = match xor {
            true => self.payload_xors(payload),
            false => self.payload_sums(payload),
        };
        let mut words = [even; 2];
        for (side, sum) in [even, odd].into_iter().enumerate() {
            let word = by_word(&mut self.graph, sum);
            words[side] = self.in_words(written, word, side == 1)?;
        }
        Ok(words)
    }
}

/// What a CRC does with a byte that is 0.
struct Linear {
    /// That of those that compute the same.
    algorithm: HashAlgorithm,
    polynomial: u64,
    /// The remainder moves to its lower bits.
    reflected: bool,
    /// Added to the remainder in the end.
    last: u64,
}

impl Linear {
    fn of(algorithm: HashAlgorithm) -> Option<Linear> {
        let (algorithm, polynomial, reflected, last) = match algorithm {
            HashAlgorithm::Crc32 | HashAlgorithm::Crc32Custom => {
                (HashAlgorithm::Crc32, 0xedb8_8320, true, 0xffff_ffff)
            }
            HashAlgorithm::Crc16 | HashAlgorithm::Crc16Custom => (HashAlgorithm::Crc16, 0xa001, true, 0),
            HashAlgorithm::CrcCcitt => (HashAlgorithm::CrcCcitt, 0x1021, false, 0),
            _ => return None,
        };
        Some(Linear { algorithm, polynomial, reflected, last })
    }

    /// What becomes of each bit of a remainder.
    fn zero_byte(&self) -> Vec<u64> {
        let width = self.algorithm.width();
        let one = |rest: u64| match self.reflected {
            true => rest >> 1 ^ if rest & 1 == 1 { self.polynomial } else { 0 },
            false => {
                let over = rest >> (width - 1) & 1 == 1;
                (rest << 1 ^ if over { self.polynomial } else { 0 }) & ((1 << width) - 1)
            }
        };
        (0..width).map(|bit| (0..8).fold(1 << bit, |rest, _| one(rest))).collect()
    }
}

/// A linear map done twice.
fn twice(map: &[u64]) -> Vec<u64> {
    let of = |bits: u64| (0..map.len()).filter(|bit| bits >> bit & 1 == 1).fold(0, |all, bit| all ^ map[bit]);
    map.iter().map(|bits| of(*bits)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that are 0 after others move the remainder as the map says, as often as there are such bytes.
    #[test]
    fn zero_bytes_move_the_remainder() {
        for algorithm in [HashAlgorithm::Crc32, HashAlgorithm::Crc16, HashAlgorithm::CrcCcitt] {
            let linear = Linear::of(algorithm).unwrap();
            let (one, two) = (linear.zero_byte(), twice(&linear.zero_byte()));
            let part = |data: &[u8]| algorithm.compute(data) ^ algorithm.compute(&vec![0; data.len()]);
            let apply = |map: &[u64], bits: u64| {
                (0..map.len()).filter(|bit| bits >> bit & 1 == 1).fold(0, |all, bit| all ^ map[bit])
            };
            let data = *b"12345";
            assert_eq!(apply(&one, part(&data)), part(b"12345\0"), "{algorithm:?}");
            assert_eq!(apply(&two, part(&data)), part(b"12345\0\0"), "{algorithm:?}");
            assert_eq!(algorithm.compute(&data) ^ linear.last ^ part(&data), {
                // What is left is what the start gives after so many bytes.
                algorithm.compute(&[0; 5]) ^ linear.last
            });
        }
    }
}
