//! CRCs whose parameters the control plane sets: they come with the frame, and a step of the division is made for each bit of the data.

use super::bytes::Written;
use super::{Converter, Step};
use crate::graph::{Binary, Graph, Wire};
use crate::limits::MAX_HASH_LENGTHS;
use crate::refusal::Construct;
use crate::stage::Input;
use millrace_pipeline::*;

impl Converter<'_> {
    /// The hash of its own of the data.
    pub(super) fn own_hash(&mut self, own: HashId, written: &Written) -> Step<Wire> {
        let ends = written.end.cases.clone().ok_or(Construct::HashLengths)?;
        if ends.len() > MAX_HASH_LENGTHS {
            return Err(Construct::HashLengths);
        }
        let width = self.program.hashes[own].algorithm.width();
        let given = self.shared_input(Input::Hash(own), hash_parameters_width(width));
        let g = &mut self.graph;
        let part = |g: &mut Graph, at: u32| g.slice(given, at * width + width + 1, at * width + 2);
        let (polynomial, initial, last) = (part(g, 2), part(g, 1), part(g, 0));
        let (data_reflected, remainder_reflected) = (g.slice(given, 1, 1), g.slice(given, 0, 0));
        let most = ends.keys().next_back().map_or(0, |end| end.div_ceil(8) as u32);
        let data = written.bits.map(|bits| g.left_fit(bits, (most * 8).max(1)));
        let (mut rest, mut chosen) = (initial, None);
        for byte in 0..=most {
            for (_, is) in ends.iter().filter(|(end, _)| end.div_ceil(8) as u32 == byte) {
                let turned = reversed(g, rest);
                let result = g.mux(remainder_reflected, turned, rest);
                let result = g.binary(Binary::Xor, result, last);
                chosen = Some(chosen.map_or(result, |other| g.mux(*is, result, other)));
            }
            let (true, Some(data)) = (byte < most, data) else { break };
            let high = (most - byte) * 8;
            let bits = g.slice(data, high - 1, high - 8);
            let turned = reversed(g, bits);
            let bits = g.mux(data_reflected, turned, bits);
            for bit in (0..8).rev() {
                let (next, top) = (g.slice(bits, bit, bit), g.slice(rest, width - 1, width - 1));
                let over = g.binary(Binary::Xor, next, top);
                let (kept, zero) = (g.slice(rest, width - 2, 0), g.number(1, 0));
                let moved = g.concat(kept, zero);
                let divided = g.binary(Binary::Xor, moved, polynomial);
                rest = g.mux(over, divided, moved);
            }
            if g.is_full() {
                return Err(Construct::Nodes);
            }
        }
        Ok(chosen.unwrap_or(initial))
    }
}

/// The bits of [`Input::Hash`] for a CRC of that width.
fn hash_parameters_width(width: u32) -> u32 {
    3 * width + 2
}

fn reversed(g: &mut Graph, wire: Wire) -> Wire {
    let mut all = g.slice(wire, 0, 0);
    for bit in 1..g.width(wire) {
        let next = g.slice(wire, bit, bit);
        all = g.concat(all, next);
    }
    all
}
