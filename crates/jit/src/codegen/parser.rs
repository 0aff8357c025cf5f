//! Terminators of parsers: extracting, advancing, looking ahead, selecting.

use super::fields::Base;
use super::values::{Num, Val};
use super::{Gen, plain};
use crate::runtime::Helper;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use millrace_midend::facts::{Cursor, number};
use millrace_midend::limbs;
use millrace_midend::specialise::NodeId;
use millrace_pipeline::entity::EntityRef;
use millrace_pipeline::*;

impl Gen<'_> {
    /// Goes to `short` unless the packet has `bits` more bits after the cursor; goes on after the check.
    fn check_room(&mut self, bits: Value, constant: Option<u32>, short: NodeId) {
        let len = self.get(self.vars.len);
        let enough = match (self.facts.cursor, constant) {
            (Cursor::At(at), Some(bits)) => {
                let need = (at + bits).div_ceil(8);
                if need <= self.facts.room {
                    // The edge exists in the graph, so it needs code, but nothing goes there.
                    let always = self.b.ins().iconst(types::I8, 1);
                    return self.go_on_if(always, short);
                }
                let need = self.int(u64::from(need));
                let short_of = self.b.ins().icmp(IntCC::UnsignedLessThan, len, need);
                let on = self.b.create_block();
                let short = self.edge(short);
                self.b.ins().brif(short_of, short, &[], on, &[]);
                return self.start(on);
            }
            _ => {
                let cursor = self.cursor();
                let have = self.shl(len, 3);
                let left = self.b.ins().isub(have, cursor);
                self.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, bits, left)
            }
        };
        self.go_on_if(enough, short);
    }

    fn go_on_if(&mut self, cond: Value, otherwise: NodeId) {
        let on = self.b.create_block();
        let otherwise = self.edge(otherwise);
        self.b.ins().brif(cond, on, &[], otherwise, &[]);
        self.start(on);
    }

    pub(super) fn extract_header(&mut self, header: HeaderId, next: NodeId, short: NodeId) {
        let bits = self.s.program.headers[header].fixed_bits;
        let length = self.int(u64::from(bits));
        self.check_room(length, Some(bits), short);
        let data = self.data();
        match self.facts.cursor {
            Cursor::At(at) if at.is_multiple_of(8) && self.facts.in_place => {}
            Cursor::At(at) => {
                for field in &self.s.program.headers[header].fields {
                    if let Home::Header { offset, .. } = self.s.program.slots[*field].home {
                        let val = self.read_in_place(Base::Packet, data, at + offset, *field);
                        self.set_storage(*field, val);
                    }
                }
            }
            Cursor::Byte if self.facts.in_place => {
                let cursor = self.cursor();
                let bytes = self.shr(cursor, 3);
                let pointer = self.b.ins().iadd(data, bytes);
                self.set(self.vars.pointer[header.index()], pointer);
                self.cache.forget(Base::Header(header));
            }
            Cursor::Byte | Cursor::Bit => {
                let cursor = self.cursor();
                self.fields_at(header, data, cursor, None);
            }
        }
        self.move_cursor(length);
        self.facts.extracted(self.s.program, header);
        self.point_early(header);
        self.jump_to(next);
    }

    /// Reads all fields of a header into their storage, from a bit that shows at run time.
    fn fields_at(&mut self, header: HeaderId, data: Value, start: Value, varbit: Option<Value>) {
        let mut after = false;
        for field in &self.s.program.headers[header].fields {
            let Home::Header { offset, .. } = self.s.program.slots[*field].home else { continue };
            let mut at = self.plus(start, i64::from(offset));
            if after && let Some(bits) = varbit {
                at = self.b.ins().iadd(at, bits);
            }
            match self.s.program.slots[*field].ty {
                Type::Varbit(_) => {
                    let context = self.context();
                    let to = self.plus(context, i64::from(self.s.layout.slots[*field]));
                    let bits = varbit.unwrap_or(at);
                    self.call(Helper::ReadVarbit, &[to, data, at, bits]);
                    after = true;
                }
                Type::Bool | Type::Bits(_) => {
                    let width = millrace_midend::type_width(self.s.program.slots[*field].ty);
                    let num = self.read_bits(data, at, width);
                    let val = self.as_type(*field, num);
                    self.set_storage(*field, val);
                }
            }
        }
    }

    /// Bits of the packet from a bit on that shows at run time.
    fn read_bits(&mut self, data: Value, at: Value, width: u32) -> Num {
        let bits = self.int(u64::from(width));
        let result = self.buffer(0, 8 * limbs(width) as u32);
        self.call(Helper::ReadBits, &[data, at, bits, result]);
        self.fill_number(result, width)
    }

    fn move_cursor(&mut self, bits: Value) {
        let cursor = self.cursor();
        let moved = self.b.ins().iadd(cursor, bits);
        self.set(self.vars.cursor, moved);
    }

    pub(super) fn extract_var(
        &mut self,
        header: HeaderId,
        bits: &Expr,
        next: NodeId,
        [short, long, invalid]: [NodeId; 3],
    ) {
        let layout = &self.s.program.headers[header];
        let most = layout.fields.iter().find_map(|field| match self.s.program.slots[*field].ty {
            Type::Varbit(most) => Some(most),
            Type::Bool | Type::Bits(_) => None,
        });
        let varbit = self.number(bits);
        let varbit = self.saturated(&varbit);
        let most = self.int(u64::from(most.unwrap_or(0)));
        let fits = self.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, varbit, most);
        self.go_on_if(fits, long);
        let odd = self.and(varbit, 7);
        let whole = self.is_zero(odd);
        self.go_on_if(whole, invalid);
        let length = self.plus(varbit, i64::from(layout.fixed_bits));
        self.check_room(length, None, short);
        let (data, cursor) = (self.data(), self.cursor());
        self.fields_at(header, data, cursor, Some(varbit));
        self.move_cursor(length);
        self.facts.extracted_var(self.s.program, header);
        self.jump_to(next);
    }

    pub(super) fn advance(&mut self, bits: &Expr, next: NodeId, short: NodeId, invalid: NodeId) {
        let constant = number(&millrace_midend::simplify(self.s.program, bits, &self.facts));
        let by = self.number(bits);
        let by = self.saturated(&by);
        let odd = self.and(by, 7);
        let whole = self.is_zero(odd);
        self.go_on_if(whole, invalid);
        self.check_room(by, None, short);
        self.move_cursor(by);
        self.facts.advanced(constant);
        self.jump_to(next);
    }

    pub(super) fn lookahead(&mut self, dst: SlotId, skip: u32, next: NodeId, short: NodeId) {
        let width = millrace_midend::type_width(self.s.program.slots[dst].ty);
        let need = skip + width;
        let length = self.int(u64::from(need));
        self.check_room(length, Some(need), short);
        let data = self.data();
        let num = match self.facts.cursor {
            Cursor::At(at) => self.load_bits(Base::Packet, data, at + skip, width),
            Cursor::Byte if skip.is_multiple_of(8) => {
                let cursor = self.cursor();
                let bytes = self.shr(cursor, 3);
                let address = self.b.ins().iadd(data, bytes);
                self.load_bits(Base::Other, address, skip, width)
            }
            Cursor::Byte | Cursor::Bit => {
                let cursor = self.cursor();
                let at = self.plus(cursor, i64::from(skip));
                self.read_bits(data, at, width)
            }
        };
        let val = self.as_type(dst, num);
        self.write(dst, val);
        self.facts.learn(self.s.program, dst, None);
        self.jump_to(next);
    }

    pub(super) fn select(&mut self, keys: &[Expr], cases: &[(Vec<Matcher>, NodeId)], default: NodeId) {
        let nums: Vec<Num> = keys.iter().map(|key| self.number(key)).collect();
        for (matchers, target) in cases {
            let before = self.facts.clone();
            // What the specialiser learnt on this edge it told the node; the storage holds it anyway.
            let taken = self.edge(*target);
            let otherwise = self.b.create_block();
            let mut at = 0;
            for matcher in matchers {
                let width = match matcher {
                    Matcher::ValueSet(set) => self.s.program.value_sets[*set].fields.len(),
                    _ => 1,
                };
                let own = nums.get(at..at + width).unwrap_or(&[]).to_vec();
                at += width;
                let on = self.b.create_block();
                if let (Matcher::Value(value), [key]) = (matcher, own.as_slice()) {
                    // The way on is what the branch does not jump to.
                    let differs = self.compare(key, &Num::constant(value.clone()), IntCC::NotEqual);
                    self.b.ins().brif(differs, otherwise, &[], on, &[]);
                } else if let Some(matches) = self.matches(matcher, &own) {
                    self.b.ins().brif(matches, on, &[], otherwise, &[]);
                } else {
                    self.b.ins().jump(on, &[]);
                }
                self.start(on);
            }
            self.b.ins().jump(taken, &[]);
            self.start(otherwise);
            self.facts = before;
        }
        let default = self.edge(default);
        self.b.ins().jump(default, &[]);
    }

    /// Whether keys match; none: always.
    fn matches(&mut self, matcher: &Matcher, keys: &[Num]) -> Option<Value> {
        let Some(key) = keys.first() else {
            return match matcher {
                Matcher::Any => None,
                _ => Some(self.b.ins().iconst(types::I8, 0)),
            };
        };
        match matcher {
            Matcher::Any => None,
            Matcher::Value(value) => Some(self.equal(key, &Num::constant(value.clone()))),
            Matcher::Mask(value, mask) => Some(self.masked(key, value, mask)),
            Matcher::Range(low, high) => Some(self.between(key, low, high, false)),
            Matcher::RangeSigned(low, high) => Some(self.between(key, low, high, true)),
            Matcher::ValueSet(set) => {
                let host = self.host();
                let id = self.int(u64::from(set.as_u32()));
                let all = self.numbers_in_memory(0, keys);
                let member = self.call(Helper::ValueSet, &[host, id, all]);
                Some(self.b.ins().ireduce(types::I8, member))
            }
        }
    }

    /// Numbers one after another in stack memory, each as its limbs.
    pub(super) fn numbers_in_memory(&mut self, buffer: usize, nums: &[Num]) -> Value {
        let words: Vec<Value> = nums.iter().flat_map(|num| self.limbs(num)).collect();
        let address = self.buffer(buffer, 8 * words.len() as u32);
        for (at, word) in words.into_iter().enumerate() {
            self.b.ins().store(plain(), word, address, 8 * at as i32);
        }
        address
    }

    /// The bits of a value that is a number or a truth value.
    pub(super) fn bits_of(&mut self, val: Val) -> Num {
        match val {
            Val::Bits(num) => num,
            Val::Bool(truth) => {
                let limb = self.b.ins().uextend(types::I64, truth);
                Num::one(1, limb)
            }
            Val::Varbit(_) => Num::constant(Bits::zero(1)),
        }
    }
}
