//! Putting packets together.
//!
//! The payload never moves: headers are put in front of it. A header that already stands where it belongs costs nothing,
//! so a packet whose headers are as they were parsed needs no code at all.

use super::Gen;
use super::fields::Base;
use super::values::Num;
use crate::abi;
use crate::runtime::{Helper, Writer};
use crate::state::{Cursor, Place, State};
use cranelift_codegen::ir::{InstBuilder, Value};
use millrace_pipeline::entity::EntityRef;
use millrace_pipeline::*;

/// A header and where it goes, in bytes from the start of the old packet.
pub(crate) struct Move {
    pub(crate) header: HeaderId,
    pub(crate) to: i64,
    pub(crate) bytes: u32,
}

/// Where headers go when all of it shows in the state, and where the new packet starts.
pub(crate) fn moves(
    program: &Program,
    state: &State,
    headers: &[HeaderId],
    in_place: bool,
) -> Option<(Vec<Move>, i64)> {
    let Cursor::At(cursor) = state.cursor else { return None };
    if !cursor.is_multiple_of(8) {
        return None;
    }
    let mut total = 0i64;
    let mut moves = Vec::new();
    for header in headers {
        let layout = &program.headers[*header];
        let varbit = layout.fields.iter().any(|field| matches!(program.slots[*field].ty, Type::Varbit(_)));
        match state.place(*header) {
            Place::Invalid => continue,
            Place::Unknown | Place::Maybe => return None,
            Place::At(_) | Place::Pointed | Place::Stored => {}
        }
        if varbit || !layout.fixed_bits.is_multiple_of(8) {
            return None;
        }
        moves.push(Move { header: *header, to: total, bytes: layout.fixed_bits / 8 });
        total += i64::from(layout.fixed_bits / 8);
    }
    let start = i64::from(cursor / 8) - total;
    moves.iter_mut().for_each(|step| step.to += start);
    let fits = start >= 0 || (in_place && start >= -(abi::GROWTH as i64));
    (fits && total <= 4096).then_some((moves, start))
}

impl Gen<'_> {
    pub(super) fn deparse(&mut self, headers: &[HeaderId], keep: bool, in_place: bool) {
        match moves(self.s.program, &self.state, headers, in_place) {
            Some((moves, start)) => self.deparse_in_place(&moves, start, keep),
            None => {
                self.start_emit();
                headers.iter().for_each(|header| self.append_header(Writer::Packet, *header));
                self.finish_emit(keep, in_place);
            }
        }
    }

    fn deparse_in_place(&mut self, moves: &[Move], start: i64, keep: bool) {
        if keep {
            self.keep_headers();
        }
        let data = self.data();
        // All is read before anything is written.
        let mut read = Vec::new();
        for step in moves {
            let (base, address, offset) = match self.state.place(step.header) {
                Place::At(at) if i64::from(at) == step.to => continue,
                Place::At(at) => (Base::Packet, data, at),
                Place::Pointed => (Base::Header(step.header), self.pointer(step.header), 0),
                _ => continue,
            };
            let mut at = 0;
            while at < step.bytes {
                let size = [8, 4, 2, 1].into_iter().find(|size| *size <= step.bytes - at).unwrap_or(1);
                let value = self.load_raw(base, address, offset + at, size);
                read.push((step.to + i64::from(at), size, value));
                at += size;
            }
        }
        let stored: Vec<&Move> =
            moves.iter().filter(|step| self.state.place(step.header) == Place::Stored).collect();
        let chunks: Vec<(i64, Num)> = stored.into_iter().flat_map(|step| self.chunks(step)).collect();
        let front = self.plus(data, start);
        for (to, size, value) in read {
            self.store_raw(Base::Other, front, (to - start) as u32, size, value);
        }
        for (to, num) in chunks {
            self.store_bits(Base::Other, front, 8 * (to - start) as u32, &num);
        }
        self.cache.forget_packet();
        if start != 0 {
            let len = self.length();
            let len = self.plus(len, -start);
            self.b.def_var(self.vars.data, front);
            self.b.def_var(self.vars.len, len);
            self.packet_moved();
        }
    }

    /// The bits of a header in storage, in whole bytes, and where they go.
    fn chunks(&mut self, step: &Move) -> Vec<(i64, Num)> {
        let mut chunks = Vec::new();
        let mut open: Option<Num> = None;
        let mut done = 0;
        for field in &self.s.program.headers[step.header].fields {
            let val = self.read(*field);
            let num = self.bits_of(val);
            let merged = match open.take() {
                None => num,
                Some(before) => {
                    let width = before.width + num.width;
                    let (high, low) = (self.limbs(&before), self.limbs(&num));
                    let high = self.move_up(&high, num.width, width);
                    let mut limbs = self.limbs(&high);
                    for (limb, below) in limbs.iter_mut().zip(low) {
                        *limb = self.b.ins().bor(*limb, below);
                    }
                    Num::limbs(width, limbs)
                }
            };
            if merged.width.is_multiple_of(8) {
                let bytes = i64::from(merged.width / 8);
                chunks.push((step.to + done, merged));
                done += bytes;
            } else {
                open = Some(merged);
            }
        }
        chunks
    }

    /// Headers that are only in the packet get storage, since the packet is about to change.
    fn keep_headers(&mut self) {
        for header in self.s.program.headers.keys() {
            if self.state.place(header) == Place::Maybe {
                let valid = self.is_valid(header);
                self.b.def_var(self.vars.valid[header.index()], valid);
            }
            self.store_header(header);
        }
    }

    pub(super) fn start_emit(&mut self) {
        self.start_writer(Writer::Packet);
    }

    pub(super) fn finish_emit(&mut self, keep: bool, in_place: bool) {
        if keep {
            self.keep_headers();
        }
        let packet = self.moved();
        let (host, cursor): (Value, Value) = (self.host(), self.cursor());
        let growth = self.int(if in_place { abi::GROWTH as u64 } else { 0 });
        self.call(Helper::WriterFinish, &[host, packet, cursor, growth]);
        self.reload_packet();
        self.cache.forget_packet();
    }
}
