//! Bodies: blocks, instructions, terminators, and who may use a local slot.

use super::{Location, Verifier};
use crate::*;
use cranelift_entity::{EntityRef, SecondaryMap, packed_option::PackedOption};

impl Verifier<'_> {
    pub(super) fn bodies(&mut self) {
        let p = self.program;
        self.unique_names("body", p.bodies.values().map(|b| b.name.as_str()));
        let blocks: usize = p.bodies.values().map(|b| b.blocks.len()).sum();
        self.at_most(Location::Program, "blocks", blocks as u64, limits::MAX_BLOCKS as u64);
        let insts: usize = p.bodies.values().flat_map(|b| b.blocks.values()).map(|b| b.insts.len()).sum();
        self.at_most(Location::Program, "instructions", insts as u64, limits::MAX_INSTS as u64);
        for body in p.bodies.values() {
            self.require(body.blocks.is_valid(body.entry), Location::Body(body), || {
                format!("its entry {} does not exist", body.entry)
            });
            for (id, block) in &body.blocks {
                for (index, inst) in block.insts.iter().enumerate() {
                    let location = Location::Inst(body, id, index);
                    self.allowed(location, body.kind, inst);
                    self.inst(location, inst);
                    self.follows_call(location, &block.insts[..index], inst);
                }
                self.terminator(Location::Terminator(body, id), body, &block.term);
            }
        }
        self.locals();
    }

    fn allowed(&mut self, location: Location<'_>, kind: BodyKind, inst: &Inst) {
        let (wanted, what) = match inst {
            Inst::Extract(_) | Inst::ExtractVar { .. } => (BodyKind::Parser, "extracts"),
            Inst::Advance { .. } => (BodyKind::Parser, "advances"),
            Inst::Lookahead { .. } => (BodyKind::Parser, "looks ahead"),
            Inst::Emit(_) => (BodyKind::Deparser, "emits"),
            Inst::Call { .. } => {
                let fits = matches!(kind, BodyKind::Control | BodyKind::Action);
                return self.require(fits, location, || "only a control or an action calls a plugin".into());
            }
            _ => return,
        };
        self.require(kind == wanted, location, || format!("only a {} {what}", wanted.name()));
    }

    /// Results are read right after their call, and of those that it gives.
    fn follows_call(&mut self, location: Location<'_>, before: &[Inst], inst: &Inst) {
        let Inst::CallResult { index, .. } = inst else { return };
        let of = before.iter().rev().find(|inst| !matches!(inst, Inst::CallResult { .. }));
        let given = match of {
            Some(Inst::Call { results, .. }) => *results,
            _ => 0,
        };
        self.require(*index < given, location, || format!("the call before it gives {given} results"));
    }

    /// A cell of a register; gives its width.
    fn cell(&mut self, location: Location<'_>, register: RegisterId, index: &Expr) -> Option<u32> {
        self.bits_expr(location, index, "the index");
        self.exists(location, register, self.program.registers.is_valid(register));
        self.program.registers.get(register).map(|register| register.width)
    }

    fn inst(&mut self, location: Location<'_>, inst: &Inst) {
        let p = self.program;
        match inst {
            Inst::Assign { dst, value } => {
                if let Some(slot) = self.slot(location, *dst) {
                    self.expr_of_type(location, value, slot.ty, "the value");
                }
            }
            Inst::SetValid(header) | Inst::SetInvalid(header) | Inst::Emit(header) => {
                self.header(location, *header);
            }
            Inst::Extract(header) => self.varbit_fields(location, *header, 0),
            Inst::ExtractVar { header, bits } => {
                self.varbit_fields(location, *header, 1);
                self.expr_of_type(location, bits, Type::Bits(32), "the length");
            }
            Inst::Advance { bits } => self.expr_of_type(location, bits, Type::Bits(32), "the distance"),
            Inst::Lookahead { dst, skip } => {
                self.bits_slot(location, *dst);
                self.at_most(location, "bits to skip", u64::from(*skip), u64::from(limits::MAX_VARBIT));
            }
            Inst::Count { counter, index } => {
                self.exists(location, *counter, p.counters.is_valid(*counter));
                self.bits_expr(location, index, "the index");
            }
            Inst::CountDirect(table) => {
                self.direct(location, *table, "counter", |table| table.direct_counter.is_some());
            }
            Inst::Meter { meter, index, color, length, dst } => {
                self.exists(location, *meter, p.meters.is_valid(*meter));
                self.bits_expr(location, index, "the index");
                self.metered(location, [color, length], *dst);
            }
            Inst::MeterDirect { table, color, length, dst } => {
                self.direct(location, *table, "meter", |table| table.direct_meter.is_some());
                self.metered(location, [color, length], *dst);
            }
            Inst::RegisterRead { dst, register, index } => {
                if let Some(width) = self.cell(location, *register, index) {
                    self.slot_of_type(location, *dst, Type::Bits(width));
                }
            }
            Inst::RegisterWrite { register, index, value } => {
                if let Some(width) = self.cell(location, *register, index) {
                    self.expr_of_type(location, value, Type::Bits(width), "the value");
                }
            }
            Inst::AtomicBegin { index } => {
                if let Some(index) = index {
                    self.bits_expr(location, index, "the index");
                }
            }
            Inst::AtomicEnd => {}
            Inst::Hash { dst, algorithm, own, data } => {
                self.bits_slot(location, *dst);
                if let Some(own) = own {
                    self.exists(location, *own, p.hashes.is_valid(*own));
                    self.require(
                        p.hashes.get(*own).is_none_or(|own| own.algorithm == *algorithm),
                        location,
                        || format!("{own} is not a hash by {}", algorithm.name()),
                    );
                }
                data.iter().for_each(|item| self.data_item(location, item));
            }
            Inst::Random { dst, low, high } => {
                if let Some(width) = self.bits_slot(location, *dst) {
                    self.expr_of_type(location, low, Type::Bits(width), "the lowest number");
                    self.expr_of_type(location, high, Type::Bits(width), "the highest number");
                }
            }
            Inst::Digest { digest, values } => {
                self.exists(location, *digest, p.digests.is_valid(*digest));
                if let Some(digest) = p.digests.get(*digest) {
                    self.members(location, digest, values);
                }
            }
            Inst::Call { dst, plugin, args, results } => {
                self.bits_slot(location, *dst);
                self.exists(location, *plugin, p.plugins.is_valid(*plugin));
                self.call_words(location, args, *results);
            }
            Inst::CallResult { dst, index: _ } => {
                self.bits_slot(location, *dst);
            }
            Inst::Stop { cond } => self.expr_of_type(location, cond, Type::Bool, "the condition"),
            Inst::Log { format: _, args } => args.iter().for_each(|arg| {
                self.expr(location, arg);
            }),
            Inst::Assert { cond, text: _ } => self.expr_of_type(location, cond, Type::Bool, "the condition"),
        }
    }

    /// The values of a message.
    fn members(&mut self, location: Location<'_>, digest: &Digest, values: &[Expr]) {
        let (given, wanted) = (values.len(), digest.members.len());
        self.require(given == wanted, location, || {
            format!("{given} values for the {wanted} members of digest {}", digest.name)
        });
        for (value, (name, ty)) in values.iter().zip(&digest.members) {
            self.expr_of_type(location, value, *ty, name);
        }
    }

    /// A table that has such a direct object.
    fn direct(&mut self, location: Location<'_>, table: TableId, what: &str, has: impl Fn(&Table) -> bool) {
        self.exists(location, table, self.program.tables.is_valid(table));
        if let Some(table) = self.program.tables.get(table) {
            self.require(has(table), location, || format!("table {} has no direct {what}", table.name));
        }
    }

    /// The words of a call.
    fn call_words(&mut self, location: Location<'_>, args: &[Expr], results: u32) {
        let most = limits::MAX_PLUGIN_WORDS as u64;
        self.at_most(location, "arguments", args.len() as u64, most);
        self.at_most(location, "results", u64::from(results), most);
        for arg in args {
            let ty = self.expr(location, arg);
            let fits = ty.is_none_or(|ty| matches!(ty, Type::Bits(width) if width <= 64));
            self.require(fits, location, || {
                "an argument of a plugin has at most 64 bits, and is no truth value".into()
            });
        }
    }

    fn varbit_fields(&mut self, location: Location<'_>, header: HeaderId, wanted: usize) {
        let Some(header) = self.header(location, header) else { return };
        let slots = &self.program.slots;
        let is_varbit = |f: &&SlotId| slots.get(**f).is_some_and(|s| matches!(s.ty, Type::Varbit(_)));
        let found = header.fields.iter().filter(is_varbit).count();
        self.require(found == wanted, location, || {
            format!("header {} has {found} varbit fields, not {wanted}", header.name)
        });
    }

    fn exists(&mut self, location: Location<'_>, id: impl EntityRef + std::fmt::Display, exists: bool) {
        self.require(exists, location, || format!("{id} does not exist"));
    }

    /// What a meter is told of the packet besides its index, and where its colour goes.
    fn metered(&mut self, location: Location<'_>, [color, length]: [&Option<Expr>; 2], dst: SlotId) {
        for (told, what) in [(color, "the colour"), (length, "the length")] {
            if let Some(told) = told {
                self.bits_expr(location, told, what);
            }
        }
        self.bits_slot(location, dst);
    }

    fn data_item(&mut self, location: Location<'_>, item: &DataItem) {
        match item {
            DataItem::Value(value) => {
                let ty = self.expr(location, value);
                self.require(ty != Some(Type::Bool), location, || "a truth value has no bits to hash".into());
            }
            DataItem::Header(header) => {
                self.header(location, *header);
            }
            DataItem::Payload => {}
        }
    }

    fn terminator(&mut self, location: Location<'_>, body: &Body, term: &Terminator) {
        term.for_each_successor(&mut |to| self.exists(location, to, body.blocks.is_valid(to)));
        match term {
            Terminator::Goto(_) | Terminator::End => {}
            Terminator::Branch { cond, .. } => self.expr_of_type(location, cond, Type::Bool, "the condition"),
            Terminator::Select { keys, cases, default: _ } => self.select(location, keys, cases),
            Terminator::Apply { table, hit, action, .. } => {
                self.require(body.kind == BodyKind::Control, location, || {
                    "only a control applies tables".into()
                });
                self.exists(location, *table, self.program.tables.is_valid(*table));
                if let Some(hit) = hit {
                    self.slot_of_type(location, *hit, Type::Bool);
                }
                if let Some(action) = action {
                    self.slot_of_type(location, *action, Type::Bits(16));
                }
            }
            Terminator::Reject => {
                self.require(body.kind == BodyKind::Parser, location, || "only a parser rejects".into());
            }
            Terminator::Exit => {
                self.require(body.kind == BodyKind::Action, location, || "only an action exits".into());
            }
        }
    }

    fn select(&mut self, location: Location<'_>, keys: &[Expr], cases: &[Case]) {
        let mut widths = Vec::new();
        for key in keys {
            match self.expr(location, key) {
                Some(Type::Bits(width)) => widths.push(width),
                Some(Type::Bool) => widths.push(1),
                Some(ty) => return self.report(location, format!("a key is {ty}")),
                None => return,
            }
        }
        for case in cases {
            let mut rest = widths.as_slice();
            let mut fits = true;
            for matcher in &case.matchers {
                let count = match matcher {
                    Matcher::ValueSet(set) => {
                        self.exists(location, *set, self.program.value_sets.is_valid(*set));
                        self.program.value_sets.get(*set).map_or(1, |s| s.fields.len())
                    }
                    _ => 1,
                };
                let Some((taken, after)) = rest.split_at_checked(count) else {
                    fits = false;
                    break;
                };
                rest = after;
                self.matcher(location, matcher, taken);
            }
            self.require(fits && rest.is_empty(), location, || {
                format!("a case does not have a matcher for each of {} keys", keys.len())
            });
        }
    }

    fn matcher(&mut self, location: Location<'_>, matcher: &Matcher, widths: &[u32]) {
        match matcher {
            Matcher::Any => {}
            Matcher::Value(a) => self.width_is(location, a, widths[0]),
            Matcher::Mask(a, b) | Matcher::Range(a, b) | Matcher::RangeSigned(a, b) => {
                self.width_is(location, a, widths[0]);
                self.width_is(location, b, widths[0]);
            }
            Matcher::ValueSet(set) => {
                let Some(set) = self.program.value_sets.get(*set) else { return };
                for ((field, width, _), key) in set.fields.iter().zip(widths) {
                    self.require(width == key, location, || {
                        format!("field {field} of value set {} has {width} bits, the key {key}", set.name)
                    });
                }
            }
        }
    }

    pub(super) fn width_is(&mut self, location: Location<'_>, bits: &Bits, width: u32) {
        self.require(bits.width() == width, location, || format!("{bits} where {width} bits are wanted"));
    }

    /// A local slot is named by one body only: by its code, the tables it applies, or as a parameter of its action.
    fn locals(&mut self) {
        let p = self.program;
        let mut owner: SecondaryMap<SlotId, PackedOption<BodyId>> = SecondaryMap::new();
        for action in p.actions.values() {
            for param in action.params.iter().filter(|s| p.slots.is_valid(**s)) {
                self.claim(&mut owner, action.body, *param);
            }
        }
        for (id, body) in &p.bodies {
            let mut used = Vec::new();
            body.for_each_slot(p, &mut |slot| used.push(slot));
            used.sort_unstable();
            used.dedup();
            used.into_iter().for_each(|slot| self.claim(&mut owner, id, slot));
        }
    }

    fn claim(&mut self, owner: &mut SecondaryMap<SlotId, PackedOption<BodyId>>, body: BodyId, slot: SlotId) {
        let p = self.program;
        let (Some(found), Some(user)) = (p.slots.get(slot), p.bodies.get(body)) else { return };
        if found.home != Home::Local {
            return;
        }
        match owner[slot].expand() {
            None => owner[slot] = body.into(),
            Some(first) => self.require(first == body, Location::Body(user), || {
                format!("{} is local to body {}", found.name, p.bodies[first].name)
            }),
        }
    }
}
