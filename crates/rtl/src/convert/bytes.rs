//! Bits one after the other, some of which may not be there: what a deparser emits, and what is hashed.
//!
//! The bits so far lie at the high end of a value, with zeros after the last. Where the next ones go is one of a few
//! [places](Place), each with its condition; so what may not be there costs a choice between places, and a shifter only where
//! something long may be at many places.

use super::env::{Env, Place};
use super::expr::Value;
use super::{Converter, Step};
use crate::graph::{Binary, Cases, Graph, Wire};
use crate::limits::{MAX_CASES, MAX_PAIRS, MAX_VALUE};
use crate::refusal::Construct;
use millrace_pipeline::*;
use std::sync::Arc;

/// At more places than these bits are not moved to each of them by wiring of their own.
const FEW: usize = 8;

/// Bits so far, and their end.
pub(super) struct Written {
    pub(super) bits: Option<Wire>,
    pub(super) end: Place,
}

impl Converter<'_> {
    pub(super) fn nothing_written(&mut self) -> Written {
        Written { bits: None, end: Place::start(None, &mut self.graph) }
    }

    /// Appends a value where a condition holds.
    pub(super) fn append(&mut self, written: &mut Written, bits: Wire, when: Wire) -> Step<()> {
        let width = self.graph.width(bits);
        self.append_at(written, bits, when)?;
        let mut ends = Cases::new();
        for (at, here) in self.ends(written)?.iter() {
            self.end_moved(&mut ends, *at, *here, when, width);
        }
        written.end = Place::of(ends, &mut self.graph)?;
        Ok(())
    }

    /// Appends the bits that a varbit has where a condition holds.
    pub(super) fn append_varbit(
        &mut self,
        written: &mut Written,
        (bits, length): (Wire, Wire),
        when: Wire,
    ) -> Step<()> {
        let most = self.graph.width(bits);
        let lengths = self.lengths(length, most)?;
        let absent = self.graph.not(when);
        self.append_at(written, bits, when)?;
        let starts = self.ends(written)?;
        if starts.len() * lengths.len() > MAX_PAIRS {
            let (none, length) = (self.graph.number(32, 0), self.graph.zero_extend(length, 32));
            let by = self.graph.mux(when, length, none);
            written.end = Place::many(self.graph.add(written.end.wire, by));
            return Ok(());
        }
        let mut ends = Cases::new();
        for (at, here) in starts.iter() {
            for (length, is) in lengths.iter() {
                let there = self.graph.and(when, *is);
                let here = self.graph.and(*here, there);
                self.graph.add_case(&mut ends, at + length, here);
            }
            let stays = self.graph.and(*here, absent);
            self.graph.add_case(&mut ends, *at, stays);
        }
        written.end = Place::of(ends, &mut self.graph)?;
        Ok(())
    }

    fn ends(&self, written: &Written) -> Step<Arc<Cases>> {
        written.end.cases.clone().ok_or(Construct::Places)
    }

    fn end_moved(&mut self, ends: &mut Cases, at: u64, here: Wire, when: Wire, by: u32) {
        let absent = self.graph.not(when);
        let (goes, stays) = (self.graph.and(here, when), self.graph.and(here, absent));
        self.graph.add_case(ends, at + u64::from(by), goes);
        self.graph.add_case(ends, at, stays);
    }

    /// Puts the bits at the end, wherever that is.
    fn append_at(&mut self, written: &mut Written, bits: Wire, when: Wire) -> Step<()> {
        // A deparser or a hash may append thousands of times.
        self.has_room()?;
        let width = self.graph.width(bits);
        let ends = self.ends(written)?;
        let last = ends.keys().next_back().copied().unwrap_or(0) as u32;
        let has = written.bits.map_or(0, |bits| self.graph.width(bits));
        let whole = has.max(last + width);
        if whole > MAX_VALUE {
            return Err(Construct::Width(whole));
        }
        let zero = self.graph.number(width, 0);
        let so_far = written.bits.map(|so_far| self.graph.left_fit(so_far, whole));
        if ends.len() > FEW {
            let placed = self.graph.mux(when, bits, zero);
            let steps = u64::from(ends.len().ilog2() + 1);
            let is_bytes =
                [width, whole].iter().all(|bits| bits.is_multiple_of(8)) && ends.keys().all(|at| at % 8 == 0);
            let moved = match ends.len() as u64 * u64::from(width) < steps * u64::from(whole) && is_bytes {
                true => self.byte_by_byte(&ends, placed, whole),
                false => {
                    let wide = self.graph.left_fit(placed, whole);
                    self.graph.binary(Binary::Shr, wide, written.end.wire)
                }
            };
            written.bits = Some(so_far.map_or(moved, |so_far| self.graph.or(so_far, moved)));
            return Ok(());
        }
        let mut all = so_far;
        for (at, here) in ends.iter() {
            let at = *at as u32;
            let there = self.graph.and(when, *here);
            if self.graph.is_false(there) {
                continue;
            }
            let placed = self.graph.mux(there, bits, zero);
            all = Some(match (written.bits, all) {
                // Just after the bits that there are.
                (Some(so_far), _) if at == has && ends.len() == 1 => self.graph.concat(so_far, placed),
                (_, before) => {
                    let mut moved = placed;
                    if at > 0 {
                        let zeros = self.graph.number(at, 0);
                        moved = self.graph.concat(zeros, moved);
                    }
                    moved = self.graph.left_fit(moved, whole);
                    match before {
                        Some(before) => self.graph.or(before, moved),
                        None => moved,
                    }
                }
            });
        }
        written.bits = all.or(written.bits);
        Ok(())
    }

    /// Whole bytes at one of many places: for each byte of the whole which of them may come there.
    fn byte_by_byte(&mut self, ends: &Cases, bits: Wire, whole: u32) -> Wire {
        let bytes = self.graph.width(bits) / 8;
        let mut may: Vec<Vec<(Wire, Wire)>> = vec![Vec::new(); whole as usize / 8];
        for byte in 0..bytes {
            let low = (bytes - 1 - byte) * 8;
            let value = self.graph.slice(bits, low + 7, low);
            for (at, here) in ends {
                may[*at as usize / 8 + byte as usize].push((*here, value));
            }
        }
        let zero = self.graph.number(8, 0);
        let g = &mut self.graph;
        let bytes = may.into_iter().map(|may| {
            let terms = may.into_iter().map(|(when, value)| g.mux(when, value, zero)).collect();
            g.tree(terms, Graph::or).unwrap_or(zero)
        });
        let bytes = bytes.collect();
        self.graph.concat_all(bytes).unwrap_or(bits)
    }

    /// The lengths that a varbit of at most so many bits may have.
    pub(super) fn lengths(&mut self, length: Wire, most: u32) -> Step<Arc<Cases>> {
        if let Some(cases) = self.graph.cases(length) {
            let fitting: Cases =
                cases.iter().filter(|(at, _)| **at <= u64::from(most)).map(|(at, is)| (*at, *is)).collect();
            return Ok(Arc::new(fitting));
        }
        let mut cases = Cases::new();
        for bits in (0..=most).step_by(8) {
            let is = self.graph.equals(length, u64::from(bits));
            self.graph.add_case(&mut cases, u64::from(bits), is);
            if cases.len() > MAX_CASES {
                return Err(Construct::Places);
            }
        }
        Ok(Arc::new(cases))
    }

    /// Appends a header, where it is valid.
    pub(super) fn append_header(&mut self, written: &mut Written, header: HeaderId, env: &Env) -> Step<()> {
        let valid = env.cells[self.cells.valid(header)];
        if self.graph.is_false(valid) {
            return Ok(());
        }
        let fields = self.program.headers[header].fields.clone();
        let mut fixed: Option<Wire> = None;
        for field in fields {
            match self.read(field, env)? {
                Value::Bits(bits) => {
                    fixed = Some(fixed.map_or(bits, |before| self.graph.concat(before, bits)))
                }
                Value::Varbit(bits, length) => {
                    if let Some(before) = fixed.take() {
                        self.append(written, before, valid)?;
                    }
                    self.append_varbit(written, (bits, length), valid)?;
                }
            }
        }
        match fixed {
            Some(bits) => self.append(written, bits, valid),
            None => Ok(()),
        }
    }
}
