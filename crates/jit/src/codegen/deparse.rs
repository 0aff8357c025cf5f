//! Putting packets together.
//!
//! The payload never moves: headers are put before it. A header that already stands where it belongs costs nothing,
//! so a packet whose headers are as they were parsed needs no code at all. Where it shows only at run time which headers
//! are valid, they are put one after another in memory outside of the packet first, unless all of them turn out to
//! stand where they belong. Headers with a varbit, or of broken bytes, are written bit by bit by the runtime.

use super::fields::{Base, words};
use super::ops::Operations;
use super::values::Num;
use super::variables::PacketVar;
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

impl Operations<'_> {
    pub(super) fn deparse(&mut self, headers: &[HeaderId], keep: bool, growth: u32) {
        if let Some((moves, front)) = moves(self.slots.program, &self.slots.facts, headers, growth) {
            return self.deparse_in_place(&moves, front, keep);
        }
        if let Some(emitted) = self.emitted_whole(headers) {
            return self.deparse_beside(&emitted, keep, growth);
        }
        self.start_emit();
        headers.iter().for_each(|header| self.append_header(Writer::Packet, *header));
        self.finish_emit(keep, growth);
    }

    /// The headers that may be valid, where each has a known number of bytes and all fit on the stack.
    fn emitted_whole(&self, headers: &[HeaderId]) -> Option<Emitted> {
        let may_be = headers.iter().filter(|header| self.slots.facts.place(**header) != HeaderPlace::Invalid);
        let sized = may_be.map(|header| Some((*header, whole_bytes(self.slots.program, *header)?)));
        let emitted: Emitted = sized.collect::<Option<_>>()?;
        let total = emitted.iter().try_fold(0u32, |sum, (_, bytes)| sum.checked_add(*bytes))?;
        (total <= MAX_BESIDE).then_some(emitted)
    }

    /// Puts headers one after another, and then before the payload.
    fn deparse_beside(&mut self, emitted: &Emitted, keep: bool, growth: u32) {
        if keep {
            self.keep_headers();
        }
        // What is loaded or computed from here on holds only on one of the paths.
        let cache = self.packet().cache.clone();
        let done = self.e().new_block();
        self.skip_if_in_place(emitted, done);
        let total: u32 = emitted.iter().map(|(_, bytes)| bytes).sum();
        let start = self.e().buffer(4, total + 8);
        let mut end = start;
        for (header, bytes) in emitted {
            end = self.append_whole(*header, *bytes, end);
        }
        let len = self.ins().isub(end, start);
        let packet = self.packet().moved();
        let (host, cursor) = (self.packet().host(), self.slots.cursor());
        let growth = self.e().int(growth.into());
        self.e().call(Helper::PutInFront, &[host, packet, cursor, growth, start, len]);
        self.packet().reload_packet();
        self.ins().jump(done, &[]);
        self.e().start(done);
        self.packet().cache = cache;
        self.packet().cache.forget_packet();
        [PacketVar::Data, PacketVar::Len].into_iter().for_each(|var| self.packet().forget(var));
    }

    /// Goes to `done` when all valid headers stand one after another before the payload, as they are to.
    fn skip_if_in_place(&mut self, emitted: &Emitted, done: Block) {
        let in_packet = |(header, _): &(HeaderId, u32)| {
            matches!(
                self.slots.facts.place(*header),
                HeaderPlace::At(_) | HeaderPlace::Pointed | HeaderPlace::Maybe
            )
        };
        if !self.slots.facts.cursor.is_byte() || !emitted.iter().all(in_packet) {
            return;
        }
        // Where the next header is to stand, and what differs so far.
        let mut next = self.packet().data();
        let mut differs = self.e().int(0);
        for (header, bytes) in emitted {
            let stands = match self.slots.facts.place(*header) {
                HeaderPlace::At(at) => {
                    let data = self.packet().data();
                    self.e().plus(data, i64::from(at))
                }
                _ => self.slots.pointer(*header),
            };
            let (off, valid) = (self.ins().bxor(stands, next), self.slots.is_valid(*header));
            let mask = self.ins().ineg(valid);
            let off = self.ins().band(off, mask);
            differs = self.ins().bor(differs, off);
            let taken = self.e().and(mask, u64::from(*bytes));
            next = self.ins().iadd(next, taken);
        }
        let (cursor, data) = (self.slots.cursor(), self.packet().data());
        let cursor = self.e().shr(cursor, 3);
        let payload = self.ins().iadd(data, cursor);
        let off = self.ins().bxor(payload, next);
        differs = self.ins().bor(differs, off);
        let moved = self.e().new_block();
        self.ins().brif(differs, moved, &[], done, &[]);
        self.e().start(moved);
    }

    /// Puts a header at an address, if it is valid; gives the address after it.
    fn append_whole(&mut self, header: HeaderId, bytes: u32, to: Value) -> Value {
        if !matches!(self.slots.facts.place(header), HeaderPlace::Unknown | HeaderPlace::Maybe) {
            return self.put_header(header, bytes, to);
        }
        let after = self.e().new_block();
        let end = self.e().b.append_block_param(after, types::I64);
        self.slots.enter_if_valid(header, after, &[to.into()]);
        let cache = self.packet().cache.clone();
        let put = self.put_header(header, bytes, to);
        self.packet().cache = cache;
        self.ins().jump(after, &[put.into()]);
        self.e().start(after);
        end
    }

    /// Puts a valid header at an address; gives the address after it.
    fn put_header(&mut self, header: HeaderId, bytes: u32, to: Value) -> Value {
        let (base, address, offset) = match self.slots.facts.place(header) {
            HeaderPlace::At(at) => (Base::Packet, self.packet().data(), at),
            HeaderPlace::Pointed | HeaderPlace::Maybe => {
                (Base::Header(header), self.slots.pointer(header), 0)
            }
            HeaderPlace::Invalid => return to,
            HeaderPlace::Stored | HeaderPlace::Unknown => {
                for (at, num) in self.chunks(&Move { header, to: 0, bytes }) {
                    self.packet().store_bits(Base::Other, to, 8 * at, &num);
                }
                return self.e().plus(to, i64::from(bytes));
            }
        };
        for (at, size) in self.accesses(header, bytes) {
            let value = self.packet().load_raw(base, address, offset + at, size);
            self.packet().store_raw(Base::Other, to, at, size, value);
        }
        self.e().plus(to, i64::from(bytes))
    }

    fn deparse_in_place(&mut self, moves: &[Move], front: Front, keep: bool) {
        if keep {
            self.keep_headers();
        }
        let data = self.packet().data();
        // All is read before anything is written.
        let mut read = Vec::new();
        for step in moves {
            let (base, address, offset) = match self.slots.facts.place(step.header) {
                HeaderPlace::At(at) if front == Front::At(i64::from(at) - i64::from(step.to)) => continue,
                HeaderPlace::At(at) => (Base::Packet, data, at),
                HeaderPlace::Pointed => (Base::Header(step.header), self.slots.pointer(step.header), 0),
                _ => continue,
            };
            for (at, size) in self.accesses(step.header, step.bytes) {
                let value = self.packet().load_raw(base, address, offset + at, size);
                read.push((step.to + at, size, value));
            }
        }
        let stored: Vec<&Move> =
            moves.iter().filter(|step| self.slots.facts.place(step.header) == HeaderPlace::Stored).collect();
        let chunks: Vec<(u32, Num)> = stored.into_iter().flat_map(|step| self.chunks(step)).collect();
        let start = match front {
            Front::At(at) => self.e().int(at as u64),
            Front::BeforeCursor(bytes) => {
                let cursor = self.slots.cursor();
                let cursor = self.e().shr(cursor, 3);
                self.e().plus(cursor, -i64::from(bytes))
            }
        };
        let begins = self.ins().iadd(data, start);
        for (to, size, value) in read {
            self.packet().store_raw(Base::Other, begins, to, size, value);
        }
        for (to, num) in chunks {
            self.packet().store_bits(Base::Other, begins, 8 * to, &num);
        }
        self.packet().cache.forget_packet();
        if front != Front::At(0) {
            let len = self.packet().length();
            let len = self.ins().isub(len, start);
            self.packet().set(PacketVar::Data, begins);
            self.packet().set(PacketVar::Len, len);
            self.packet().packet_moved();
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
        let p = self.slots.program;
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
        let fields = &self.slots.program.headers[step.header].fields;
        let nums = fields.iter().map(|field| {
            let val = self.slots.read(*field);
            self.e().bits_of(val)
        });
        let nums = nums.collect();
        let mut to = step.to;
        let place = |num: Num| {
            let at = to;
            to += num.width / 8;
            (at, num)
        };
        self.e().in_units(nums, 8).into_iter().map(place).collect()
    }

    /// Headers that are only in the packet get storage, since the packet is about to change.
    fn keep_headers(&mut self) {
        for header in self.slots.program.headers.keys() {
            if self.slots.facts.place(header) == HeaderPlace::Maybe {
                let valid = self.slots.is_valid(header);
                self.packet().set(PacketVar::Valid(header), valid);
            }
            self.slots.store_header(header);
        }
    }

    pub(super) fn start_emit(&mut self) {
        let program = self.slots.program;
        let bits = program.headers.keys().map(|header| program.most_bits(header)).sum();
        self.start_writer(Writer::Packet, bits);
    }

    pub(super) fn finish_emit(&mut self, keep: bool, growth: u32) {
        if keep {
            self.keep_headers();
        }
        let packet = self.packet().moved();
        let (host, cursor): (Value, Value) = (self.packet().host(), self.slots.cursor());
        let growth = self.e().int(growth.into());
        self.e().call(Helper::WriterFinish, &[host, packet, cursor, growth]);
        self.packet().reload_packet();
        self.packet().cache.forget_packet();
    }
}
