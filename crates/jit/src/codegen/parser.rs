//! Terminators of parsers: extracting, advancing, looking ahead, selecting.

use super::Gen;
use super::fields::Base;
use super::values::Num;
use super::variables::PacketVar;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use millrace_midend::facts::{Cursor, number};
use millrace_midend::specialise::NodeId;
use millrace_pipeline::*;

impl Gen<'_> {
    /// Goes to `short` unless the packet has `bits` more bits after the cursor; goes on after the check.
    fn check_room(&mut self, bits: Value, constant: Option<u32>, short: NodeId) {
        let len = self.packet().get(PacketVar::Len);
        let enough = match (self.ops.slots.facts.cursor, constant) {
            (Cursor::At(at), Some(bits)) => {
                let need = (at + bits).div_ceil(8);
                if need <= self.ops.slots.facts.room {
                    // The edge exists in the graph, so it needs code, but nothing goes there.
                    let always = self.ins().iconst(types::I8, 1);
                    return self.go_on_if(always, short);
                }
                let need = self.e().int(u64::from(need));
                let short_of = self.ins().icmp(IntCC::UnsignedLessThan, len, need);
                let on = self.e().new_block();
                let short = self.edge(short);
                self.ins().brif(short_of, short, &[], on, &[]);
                return self.e().start(on);
            }
            _ => {
                let cursor = self.ops.slots.cursor();
                let have = self.e().shl(len, 3);
                let left = self.ins().isub(have, cursor);
                self.ins().icmp(IntCC::UnsignedLessThanOrEqual, bits, left)
            }
        };
        self.go_on_if(enough, short);
    }

    fn go_on_if(&mut self, cond: Value, otherwise: NodeId) {
        let on = self.e().new_block();
        let otherwise = self.edge(otherwise);
        self.ins().brif(cond, on, &[], otherwise, &[]);
        self.e().start(on);
    }

    pub(super) fn extract_header(&mut self, header: HeaderId, next: NodeId, short: NodeId) {
        let bits = self.program.headers[header].fixed_bits;
        let length = self.e().int(u64::from(bits));
        self.check_room(length, Some(bits), short);
        let data = self.packet().data();
        match self.ops.slots.facts.cursor {
            Cursor::At(at) if at.is_multiple_of(8) && self.ops.slots.facts.in_place => {}
            Cursor::At(at) => {
                for field in &self.program.headers[header].fields {
                    if let Home::Header { offset, .. } = self.program.slots[*field].home {
                        let val = self.ops.slots.read_in_place(Base::Packet, data, at + offset, *field);
                        self.ops.slots.set_storage(*field, val);
                    }
                }
            }
            Cursor::Byte if self.ops.slots.facts.in_place => {
                let cursor = self.ops.slots.cursor();
                let bytes = self.e().shr(cursor, 3);
                let pointer = self.ins().iadd(data, bytes);
                self.packet().set(PacketVar::Pointer(header), pointer);
                self.packet().cache.forget(Base::Header(header));
            }
            Cursor::Byte | Cursor::Bit => {
                let cursor = self.ops.slots.cursor();
                self.ops.slots.fields_at(header, data, cursor, None);
            }
        }
        self.ops.slots.move_cursor(length);
        self.ops.slots.facts.extracted(self.program, header);
        self.ops.slots.point_early(header);
        self.jump_to(next);
    }

    pub(super) fn extract_var(
        &mut self,
        header: HeaderId,
        bits: &Expr,
        next: NodeId,
        [short, long, invalid]: [NodeId; 3],
    ) {
        let layout = &self.program.headers[header];
        let most = layout.fields.iter().find_map(|field| match self.program.slots[*field].ty {
            Type::Varbit(most) => Some(most),
            Type::Bool | Type::Bits(_) => None,
        });
        let varbit = self.ops.number(bits);
        let varbit = self.e().saturated(&varbit);
        let most = self.e().int(u64::from(most.unwrap_or(0)));
        let fits = self.ins().icmp(IntCC::UnsignedLessThanOrEqual, varbit, most);
        self.go_on_if(fits, long);
        let odd = self.e().and(varbit, 7);
        let whole = self.e().is_zero(odd);
        self.go_on_if(whole, invalid);
        let length = self.e().plus(varbit, i64::from(layout.fixed_bits));
        self.check_room(length, None, short);
        let (data, cursor) = (self.packet().data(), self.ops.slots.cursor());
        self.ops.slots.fields_at(header, data, cursor, Some(varbit));
        self.ops.slots.move_cursor(length);
        self.ops.slots.facts.extracted_var(self.program, header);
        self.jump_to(next);
    }

    pub(super) fn advance(&mut self, bits: &Expr, next: NodeId, short: NodeId, invalid: NodeId) {
        let constant = number(&millrace_midend::simplify(self.program, bits, &self.ops.slots.facts));
        let by = self.ops.number(bits);
        let by = self.e().saturated(&by);
        let odd = self.e().and(by, 7);
        let whole = self.e().is_zero(odd);
        self.go_on_if(whole, invalid);
        self.check_room(by, None, short);
        self.ops.slots.move_cursor(by);
        self.ops.slots.facts.advanced(constant);
        self.jump_to(next);
    }

    pub(super) fn lookahead(&mut self, dst: SlotId, skip: u32, next: NodeId, short: NodeId) {
        let width = millrace_midend::type_width(self.program.slots[dst].ty);
        let need = skip + width;
        let length = self.e().int(u64::from(need));
        self.check_room(length, Some(need), short);
        let data = self.packet().data();
        let num = match self.ops.slots.facts.cursor {
            Cursor::At(at) => self.packet().load_bits(Base::Packet, data, at + skip, width),
            Cursor::Byte if skip.is_multiple_of(8) => {
                let cursor = self.ops.slots.cursor();
                let bytes = self.e().shr(cursor, 3);
                let address = self.ins().iadd(data, bytes);
                self.packet().load_bits(Base::Other, address, skip, width)
            }
            Cursor::Byte | Cursor::Bit => {
                let cursor = self.ops.slots.cursor();
                let at = self.e().plus(cursor, i64::from(skip));
                self.ops.slots.read_bits(data, at, width)
            }
        };
        let val = self.ops.slots.as_type(dst, num);
        self.ops.slots.write(dst, val);
        self.ops.slots.facts.learn(self.program, dst, None);
        self.jump_to(next);
    }

    pub(super) fn select(&mut self, keys: &[Expr], cases: &[(Vec<Matcher>, NodeId)], default: NodeId) {
        let nums: Vec<Num> = keys.iter().map(|key| self.ops.number(key)).collect();
        for (matchers, target) in cases {
            let before = self.ops.slots.facts.clone();
            // What the specialiser learnt on this edge it told the node; the storage holds it anyway.
            let taken = self.edge(*target);
            let otherwise = self.e().new_block();
            let mut at = 0;
            for matcher in matchers {
                let width = match matcher {
                    Matcher::ValueSet(set) => self.program.value_sets[*set].fields.len(),
                    _ => 1,
                };
                let own = nums.get(at..at + width).unwrap_or(&[]).to_vec();
                at += width;
                let on = self.e().new_block();
                if let (Matcher::Value(value), [key]) = (matcher, own.as_slice()) {
                    // The way on is what the branch does not jump to.
                    let differs = self.e().compare(key, &Num::constant(value.clone()), IntCC::NotEqual);
                    self.ins().brif(differs, otherwise, &[], on, &[]);
                } else if let Some(matches) = self.ops.matches(matcher, &own) {
                    self.ins().brif(matches, on, &[], otherwise, &[]);
                } else {
                    self.ins().jump(on, &[]);
                }
                self.e().start(on);
            }
            self.ins().jump(taken, &[]);
            self.e().start(otherwise);
            self.ops.slots.facts = before;
        }
        let default = self.edge(default);
        self.ins().jump(default, &[]);
    }
}
