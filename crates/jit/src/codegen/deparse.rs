//! Putting packets together.
//!
//! The payload never moves: headers are put before it. A header that already stands where it belongs costs nothing,
//! so a packet whose headers are as they were parsed needs no code at all. Where it shows only at run time which headers
//! are valid, they are put one after another in memory outside of the packet first, unless all of them turn out to
//! stand where they belong. Headers with a varbit, or of broken bytes, are written bit by bit by the runtime.

use super::Gen;
use super::fields::{Base, words};
use super::values::Num;
use crate::abi;
use crate::runtime::{Helper, Writer};
use cranelift_codegen::ir::{Block, InstBuilder, Value, types};
use millrace_midend::cfg::{Cfg, CfgBlock};
use millrace_midend::deparse::{Front, Move, moves};
use millrace_midend::facts::{HeaderPlace, whole_bytes};
use millrace_midend::liveness::Set;
use millrace_midend::type_width;
use millrace_pipeline::entity::EntityRef;
use millrace_pipeline::*;

/// The slots that code of a graph writes.
pub(super) fn written_slots(cfg: &Cfg) -> Set {
    let mut slots = Set::default();
    cfg.blocks.values().flat_map(CfgBlock::writes).for_each(|slot| slots.insert(slot.index()));
    slots
}

/// Most bytes of headers that are put one after another on the stack.
const MAX_BESIDE: u32 = 2048;

/// Headers that may be valid, with their bytes.
type Emitted = Vec<(HeaderId, u32)>;

impl Gen<'_> {
    pub(super) fn deparse(&mut self, headers: &[HeaderId], keep: bool, in_place: bool) {
        if let Some((moves, front)) = moves(self.s.program, &self.facts, headers, in_place) {
            return self.deparse_in_place(&moves, front, keep);
        }
        if let Some(emitted) = self.emitted_whole(headers) {
            return self.deparse_beside(&emitted, keep, in_place);
        }
        self.start_emit();
        headers.iter().for_each(|header| self.append_header(Writer::Packet, *header));
        self.finish_emit(keep, in_place);
    }

    /// The headers that may be valid, where each has a known number of bytes and all fit on the stack.
    fn emitted_whole(&self, headers: &[HeaderId]) -> Option<Emitted> {
        let may_be = headers.iter().filter(|header| self.facts.place(**header) != HeaderPlace::Invalid);
        let sized = may_be.map(|header| Some((*header, whole_bytes(self.s.program, *header)?)));
        let emitted: Emitted = sized.collect::<Option<_>>()?;
        let total = emitted.iter().try_fold(0u32, |sum, (_, bytes)| sum.checked_add(*bytes))?;
        (total <= MAX_BESIDE).then_some(emitted)
    }

    /// Puts headers one after another, and then before the payload.
    fn deparse_beside(&mut self, emitted: &Emitted, keep: bool, in_place: bool) {
        if keep {
            self.keep_headers();
        }
        // What is loaded or computed from here on holds only on one of the paths.
        let cache = self.cache.clone();
        let done = self.b.create_block();
        self.skip_if_in_place(emitted, done);
        let total: u32 = emitted.iter().map(|(_, bytes)| bytes).sum();
        let start = self.buffer(4, total + 8);
        let mut end = start;
        for (header, bytes) in emitted {
            end = self.append_whole(*header, *bytes, end);
        }
        let len = self.b.ins().isub(end, start);
        let packet = self.moved();
        let (host, cursor) = (self.host(), self.cursor());
        let growth = self.growth(in_place);
        self.call(Helper::PutInFront, &[host, packet, cursor, growth, start, len]);
        self.reload_packet();
        self.b.ins().jump(done, &[]);
        self.start(done);
        self.cache = cache;
        self.cache.forget_packet();
        [self.vars.data, self.vars.len].into_iter().for_each(|var| self.cache.forget_var(var));
    }

    /// Goes to `done` when all valid headers stand one after another before the payload, as they are to.
    fn skip_if_in_place(&mut self, emitted: &Emitted, done: Block) {
        let in_packet = |(header, _): &(HeaderId, u32)| {
            matches!(
                self.facts.place(*header),
                HeaderPlace::At(_) | HeaderPlace::Pointed | HeaderPlace::Maybe
            )
        };
        if !self.facts.cursor.is_byte() || !emitted.iter().all(in_packet) {
            return;
        }
        // Where the next header is to stand, and what differs so far.
        let mut next = self.data();
        let mut differs = self.int(0);
        for (header, bytes) in emitted {
            let stands = match self.facts.place(*header) {
                HeaderPlace::At(at) => {
                    let data = self.data();
                    self.plus(data, i64::from(at))
                }
                _ => self.pointer(*header),
            };
            let (off, valid) = (self.b.ins().bxor(stands, next), self.is_valid(*header));
            let mask = self.b.ins().ineg(valid);
            let off = self.b.ins().band(off, mask);
            differs = self.b.ins().bor(differs, off);
            let taken = self.and(mask, u64::from(*bytes));
            next = self.b.ins().iadd(next, taken);
        }
        let (cursor, data) = (self.cursor(), self.data());
        let cursor = self.shr(cursor, 3);
        let payload = self.b.ins().iadd(data, cursor);
        let off = self.b.ins().bxor(payload, next);
        differs = self.b.ins().bor(differs, off);
        let moved = self.b.create_block();
        self.b.ins().brif(differs, moved, &[], done, &[]);
        self.start(moved);
    }

    /// Puts a header at an address, if it is valid; gives the address after it.
    fn append_whole(&mut self, header: HeaderId, bytes: u32, to: Value) -> Value {
        if !matches!(self.facts.place(header), HeaderPlace::Unknown | HeaderPlace::Maybe) {
            return self.put_header(header, bytes, to);
        }
        let after = self.b.create_block();
        let end = self.b.append_block_param(after, types::I64);
        self.enter_if_valid(header, after, &[to.into()]);
        let cache = self.cache.clone();
        let put = self.put_header(header, bytes, to);
        self.cache = cache;
        self.b.ins().jump(after, &[put.into()]);
        self.start(after);
        end
    }

    /// Puts a valid header at an address; gives the address after it.
    fn put_header(&mut self, header: HeaderId, bytes: u32, to: Value) -> Value {
        let (base, address, offset) = match self.facts.place(header) {
            HeaderPlace::At(at) => (Base::Packet, self.data(), at),
            HeaderPlace::Pointed | HeaderPlace::Maybe => (Base::Header(header), self.pointer(header), 0),
            HeaderPlace::Invalid => return to,
            HeaderPlace::Stored | HeaderPlace::Unknown => {
                for (at, num) in self.chunks(&Move { header, to: 0, bytes }) {
                    self.store_bits(Base::Other, to, 8 * at, &num);
                }
                return self.plus(to, i64::from(bytes));
            }
        };
        for (at, size) in self.accesses(header, bytes) {
            let value = self.load_raw(base, address, offset + at, size);
            self.store_raw(Base::Other, to, at, size, value);
        }
        self.plus(to, i64::from(bytes))
    }

    /// What a deparser may take of the headroom, in bytes.
    fn growth(&mut self, in_place: bool) -> Value {
        self.int(if in_place { abi::GROWTH as u64 } else { 0 })
    }

    fn deparse_in_place(&mut self, moves: &[Move], front: Front, keep: bool) {
        if keep {
            self.keep_headers();
        }
        let data = self.data();
        // All is read before anything is written.
        let mut read = Vec::new();
        for step in moves {
            let (base, address, offset) = match self.facts.place(step.header) {
                HeaderPlace::At(at) if front == Front::At(i64::from(at) - i64::from(step.to)) => continue,
                HeaderPlace::At(at) => (Base::Packet, data, at),
                HeaderPlace::Pointed => (Base::Header(step.header), self.pointer(step.header), 0),
                _ => continue,
            };
            for (at, size) in self.accesses(step.header, step.bytes) {
                let value = self.load_raw(base, address, offset + at, size);
                read.push((step.to + at, size, value));
            }
        }
        let stored: Vec<&Move> =
            moves.iter().filter(|step| self.facts.place(step.header) == HeaderPlace::Stored).collect();
        let chunks: Vec<(u32, Num)> = stored.into_iter().flat_map(|step| self.chunks(step)).collect();
        let start = match front {
            Front::At(at) => self.int(at as u64),
            Front::BeforeCursor(bytes) => {
                let cursor = self.cursor();
                let cursor = self.shr(cursor, 3);
                self.plus(cursor, -i64::from(bytes))
            }
        };
        let begins = self.b.ins().iadd(data, start);
        for (to, size, value) in read {
            self.store_raw(Base::Other, begins, to, size, value);
        }
        for (to, num) in chunks {
            self.store_bits(Base::Other, begins, 8 * to, &num);
        }
        self.cache.forget_packet();
        if front != Front::At(0) {
            let len = self.length();
            let len = self.b.ins().isub(len, start);
            self.set(self.vars.data, begins);
            self.set(self.vars.len, len);
            self.packet_moved();
        }
    }

    /// Accesses of 8, 4, 2 and 1 bytes that cover a header in the packet: where, and how many. What the program writes is
    /// read as it was written, since a processor gives a load the bytes of an earlier store (store forwarding) only when
    /// that store has all of them; otherwise the load waits until the store is in the cache.
    fn accesses(&self, header: HeaderId, bytes: u32) -> Vec<(u32, u32)> {
        let mut accesses = Vec::new();
        let mut at = 0;
        let edges = self.edges_of_writes(header).into_iter().filter(|edge| *edge < bytes);
        for end in edges.chain([bytes]) {
            accesses.extend(words(at, end));
            at = end;
        }
        accesses
    }

    /// Where fields of a header begin and end that the program writes, in bytes, in order.
    fn edges_of_writes(&self, header: HeaderId) -> Vec<u32> {
        let p = self.s.program;
        let written = p.headers[header].fields.iter().filter(|field| self.written.contains(field.index()));
        let edges = written.flat_map(|field| {
            let Home::Header { offset, .. } = p.slots[*field].home else { return [0, 0] };
            [offset / 8, (offset + type_width(p.slots[*field].ty)).div_ceil(8)]
        });
        let mut edges: Vec<u32> = edges.collect();
        edges.sort_unstable();
        edges.dedup();
        edges
    }

    /// The bits of a header in storage, in whole bytes, and where they go.
    fn chunks(&mut self, step: &Move) -> Vec<(u32, Num)> {
        let fields = &self.s.program.headers[step.header].fields;
        let nums = fields.iter().map(|field| {
            let val = self.read(*field);
            self.bits_of(val)
        });
        let nums = nums.collect();
        let mut to = step.to;
        let place = |num: Num| {
            let at = to;
            to += num.width / 8;
            (at, num)
        };
        self.in_units(nums, 8).into_iter().map(place).collect()
    }

    /// Headers that are only in the packet get storage, since the packet is about to change.
    fn keep_headers(&mut self) {
        for header in self.s.program.headers.keys() {
            if self.facts.place(header) == HeaderPlace::Maybe {
                let valid = self.is_valid(header);
                self.set(self.vars.valid[header.index()], valid);
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
        let growth = self.growth(in_place);
        self.call(Helper::WriterFinish, &[host, packet, cursor, growth]);
        self.reload_packet();
        self.cache.forget_packet();
    }
}
