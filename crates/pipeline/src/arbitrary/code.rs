//! Random bodies, instructions and expressions.

use super::Generator;
use crate::*;

/// What the code of one body may name.
pub(super) struct Scope {
    kind: BodyKind,
    /// The slots, locals of the body among them.
    slots: Vec<SlotId>,
    /// Locals that guard loops, which nothing else writes.
    counters: Vec<SlotId>,
}

impl Generator {
    pub(super) fn action_body(&mut self, name: &str, params: &[SlotId]) -> BodyId {
        let mut scope = self.scope(name, BodyKind::Action);
        scope.slots.extend(params);
        let mut body = BodyBuilder::new(name, BodyKind::Action);
        self.blocks(&mut body, &scope, 2);
        self.finish(body)
    }

    pub(super) fn body(&mut self, name: &str, kind: BodyKind, size: usize) -> BodyId {
        let scope = self.scope(name, kind);
        let mut body = BodyBuilder::new(name, kind);
        self.blocks(&mut body, &scope, size);
        self.finish(body)
    }

    fn finish(&mut self, body: BodyBuilder) -> BodyId {
        body.finish(&mut self.b).expect("a terminator in every block")
    }

    fn scope(&mut self, name: &str, kind: BodyKind) -> Scope {
        let mut slots = self.readable.clone();
        for local in 0..self.rng.below(5) {
            let ty = self.ty();
            slots.push(self.b.local(&format!("{name}.l{local}"), ty));
        }
        let counters = (0..2).map(|c| self.b.local(&format!("{name}.i{c}"), Type::Bits(8))).collect();
        Scope { kind, slots, counters }
    }

    fn blocks(&mut self, body: &mut BodyBuilder, scope: &Scope, size: usize) {
        let count = 1 + self.rng.below(size);
        let mut blocks = vec![body.entry()];
        for index in 1..=count {
            let named = scope.kind == BodyKind::Parser && self.rng.one_in(2);
            blocks.push(if named { body.create_state(format!("s{index}")) } else { body.create_block() });
        }
        let mut counters = scope.counters.clone();
        for (index, block) in blocks.iter().enumerate() {
            body.switch_to(*block);
            for _ in 0..self.rng.below(self.size + 1) {
                let Some(inst) = self.inst(scope) else { continue };
                let results = match inst {
                    Inst::Call { results, .. } => results,
                    _ => 0,
                };
                body.push(inst);
                for index in 0..results {
                    if let Some((dst, _)) = self.bits_slot(scope) {
                        body.push(Inst::CallResult { dst, index });
                    }
                }
            }
            let later = &blocks[index + 1..];
            if later.is_empty() {
                self.last(body, scope);
            } else if scope.kind == BodyKind::Parser && self.rng.one_in(5) && self.extract_first(body) {
                // Going back is fine where the cursor moved: the packet ends sometime.
                let cond = self.expr(scope, Type::Bool, 2);
                let back = blocks[self.rng.below(index + 1)];
                body.branch(cond, back, later[0]);
            } else if scope.kind == BodyKind::Control && self.rng.one_in(6) && !counters.is_empty() {
                let counter = counters.remove(0);
                let back = blocks[self.rng.below(index + 1)];
                body.assign(counter, Expr::read(counter).add(Expr::bits(8, 1)));
                body.branch(Expr::read(counter).lt(Expr::bits(8, 5)), back, later[0]);
            } else {
                self.terminator(body, scope, later);
            }
        }
    }

    /// Extracts the first header; whether that moves the cursor.
    fn extract_first(&mut self, body: &mut BodyBuilder) -> bool {
        let header = HeaderId::from_u32(0);
        body.extract(header);
        self.b.program().headers[header].fixed_bits > 0
    }

    fn last(&mut self, body: &mut BodyBuilder, scope: &Scope) {
        match scope.kind {
            BodyKind::Parser if self.rng.one_in(4) => body.reject(),
            BodyKind::Action if self.rng.one_in(4) => body.exit(),
            _ => body.end(),
        }
    }

    fn terminator(&mut self, body: &mut BodyBuilder, scope: &Scope, later: &[BlockId]) {
        let mut target = || later[self.rng.below(later.len().min(4))];
        let (a, b, c) = (target(), target(), target());
        match self.rng.below(8) {
            0 => body.goto(a),
            1 => self.last(body, scope),
            2 | 3 => {
                let cond = self.expr(scope, Type::Bool, 3);
                body.branch(cond, a, b);
            }
            4 | 5 if scope.kind == BodyKind::Control => {
                let table = self.table(scope);
                let hit = if self.rng.one_in(2) { self.slot(scope, Type::Bool) } else { None };
                let ran = if self.rng.one_in(2) { self.slot(scope, Type::Bits(16)) } else { None };
                body.apply(table, hit, ran, a, b);
            }
            4..6 => body.goto(a),
            _ => {
                let sets = scope.kind == BodyKind::Parser && self.rng.one_in(3);
                let mut types = if sets { vec![Type::Bits(8), Type::Bits(16)] } else { Vec::new() };
                types.extend((0..1 + self.rng.below(2)).map(|_| self.ty()));
                let keys: Vec<Expr> = types.iter().map(|ty| self.expr(scope, *ty, 2)).collect();
                let cases = (0..self.rng.below(4))
                    .map(|i| Case { matchers: self.matchers(&types, sets), target: [a, b, c, a][i] })
                    .collect();
                body.select(keys, cases, c);
            }
        }
    }

    fn matchers(&mut self, types: &[Type], sets: bool) -> Vec<Matcher> {
        let mut matchers = Vec::new();
        let mut rest = types;
        if sets && self.rng.one_in(2) {
            matchers.push(Matcher::ValueSet(ValueSetId::from_u32(0)));
            rest = &types[2..];
        }
        for ty in rest {
            let width = ty.fixed_bits();
            let (a, b) = (self.rng.bits(width), self.rng.bits(width));
            matchers.push(match self.rng.below(5) {
                0 => Matcher::Any,
                1 => Matcher::Mask(a, b),
                2 => Matcher::Range(a, b),
                3 => Matcher::RangeSigned(a, b),
                _ => Matcher::Value(a),
            });
        }
        matchers
    }

    fn slot(&mut self, scope: &Scope, ty: Type) -> Option<SlotId> {
        let fitting: Vec<SlotId> =
            scope.slots.iter().copied().filter(|s| self.b.program().slots[*s].ty == ty).collect();
        self.rng.pick(&fitting).copied()
    }

    /// A slot that holds a number, and its width.
    fn bits_slot(&mut self, scope: &Scope) -> Option<(SlotId, u32)> {
        let p = self.b.program();
        let fitting: Vec<(SlotId, u32)> =
            scope.slots.iter().filter_map(|s| Some((*s, p.slots[*s].ty.bits()?))).collect();
        self.rng.pick(&fitting).copied()
    }

    fn header(&mut self, varbit: Option<bool>) -> Option<HeaderId> {
        let p = self.b.program();
        let has = |h: &Header| h.fields.iter().any(|f| matches!(p.slots[*f].ty, Type::Varbit(_)));
        let fitting: Vec<HeaderId> =
            p.headers.iter().filter(|(_, h)| varbit.is_none_or(|v| v == has(h))).map(|(id, _)| id).collect();
        self.rng.pick(&fitting).copied()
    }

    fn inst(&mut self, scope: &Scope) -> Option<Inst> {
        let inst = match (scope.kind, self.rng.below(24)) {
            (BodyKind::Parser, 0 | 1 | 8..11) => Inst::Extract(self.header(Some(false))?),
            (BodyKind::Parser, 11) => {
                let bits = Expr::bits(32, [0, 8, 64, 160, 168, 5][self.rng.below(6)]);
                Inst::ExtractVar { header: self.header(Some(true))?, bits }
            }
            (BodyKind::Parser, 12) => {
                Inst::Advance { bits: Expr::bits(32, [0, 8, 16, 4][self.rng.below(4)]) }
            }
            (BodyKind::Parser, 13) => {
                Inst::Lookahead { dst: self.bits_slot(scope)?.0, skip: self.rng.below(9) as u32 }
            }
            (BodyKind::Deparser, 8..18) => Inst::Emit(self.header(None)?),
            (_, 0..2) => Inst::SetValid(self.header(None)?),
            (_, 2..4) => Inst::SetInvalid(self.header(None)?),
            (_, 4..8) => self.effect(scope)?,
            _ => {
                let dst = *self.rng.pick(&scope.slots)?;
                let ty = self.b.program().slots[dst].ty;
                Inst::Assign { dst, value: self.expr(scope, ty, 3) }
            }
        };
        Some(inst)
    }

    fn effect(&mut self, scope: &Scope) -> Option<Inst> {
        let index = self.expr(scope, Type::Bits(8), 1);
        let color = if self.rng.one_in(2) { Some(self.expr(scope, Type::Bits(8), 1)) } else { None };
        let length = if self.rng.one_in(4) { Some(self.expr(scope, Type::Bits(16), 1)) } else { None };
        let register = RegisterId::from_u32(self.rng.below(2) as u32);
        let width = self.b.program().registers[register].width;
        Some(match self.rng.below(13) {
            9 => Inst::AtomicBegin { index: self.rng.one_in(2).then_some(index) },
            10 => Inst::AtomicEnd,
            11 if matches!(scope.kind, BodyKind::Control | BodyKind::Action) => {
                let args = (0..self.rng.below(3)).map(|_| self.expr(scope, Type::Bits(48), 2)).collect();
                let (dst, results) = (self.bits_slot(scope)?.0, self.rng.below(3) as u32);
                Inst::Call { dst, plugin: PluginId::from_u32(0), args, results }
            }
            11 => Inst::AtomicEnd,
            12 => Inst::Stop { cond: index.eq(Expr::bits(8, 18)) },
            0 => Inst::Count { counter: CounterId::from_u32(self.rng.below(2) as u32), index },
            1 => {
                let meter = MeterId::from_u32(self.rng.below(2) as u32);
                Inst::Meter { meter, index, color, length, dst: self.bits_slot(scope)?.0 }
            }
            2 => Inst::RegisterRead { dst: self.slot(scope, Type::Bits(width))?, register, index },
            3 => Inst::RegisterWrite { register, index, value: self.expr(scope, Type::Bits(width), 2) },
            4 => {
                let algorithm = *self.rng.pick(HashAlgorithm::ALL)?;
                let own = self.b.program().hashes.iter().find(|(_, own)| own.algorithm == algorithm);
                let own = own.map(|(own, _)| own).filter(|_| self.rng.one_in(2));
                let mut data = vec![DataItem::Value(index)];
                if let Some(header) = self.header(None)
                    && self.rng.one_in(2)
                {
                    data.push(DataItem::Header(header));
                }
                if self.rng.one_in(3) {
                    data.push(DataItem::Payload);
                }
                Inst::Hash { dst: self.bits_slot(scope)?.0, algorithm, own, data }
            }
            5 => {
                let (dst, width) = self.bits_slot(scope)?;
                let (low, high) =
                    (self.expr(scope, Type::Bits(width), 1), self.expr(scope, Type::Bits(width), 1));
                Inst::Random { dst, low, high }
            }
            6 => {
                let values = vec![self.expr(scope, Type::Bits(48), 2), self.expr(scope, Type::Bool, 2)];
                Inst::Digest { digest: DigestId::from_u32(0), values }
            }
            7 => Inst::Log {
                format: "random {} {}".into(),
                args: vec![index, self.expr(scope, Type::Bool, 2)],
            },
            _ => Inst::Assert { cond: index.ne(Expr::bits(8, 17)), text: "not 17".into() },
        })
    }

    /// An expression of that type, about that deep.
    pub(super) fn expr(&mut self, scope: &Scope, ty: Type, depth: usize) -> Expr {
        if depth == 0 || self.rng.one_in(4) {
            return self.leaf(scope, ty);
        }
        let sub = depth - 1;
        match ty {
            Type::Bool => match self.rng.below(6) {
                0 => Expr::Unary(UnaryOp::Not, Box::new(self.expr(scope, ty, sub))),
                1 => self.two(scope, [BinaryOp::BoolAnd, BinaryOp::BoolOr][sub % 2], ty, sub),
                2 => self.mux(scope, ty, sub),
                _ => {
                    let of = self.ty();
                    let ops: &[BinaryOp] = match of {
                        Type::Bits(_) => &[
                            BinaryOp::Eq,
                            BinaryOp::Ne,
                            BinaryOp::Lt,
                            BinaryOp::Le,
                            BinaryOp::LtSigned,
                            BinaryOp::LeSigned,
                        ],
                        _ => &[BinaryOp::Eq, BinaryOp::Ne],
                    };
                    let op = ops[self.rng.below(ops.len())];
                    self.two(scope, op, of, sub)
                }
            },
            Type::Bits(width) => self.number(scope, width, sub),
            Type::Varbit(_) => self.mux(scope, ty, sub),
        }
    }

    fn number(&mut self, scope: &Scope, width: u32, depth: usize) -> Expr {
        use BinaryOp::*;
        let ty = Type::Bits(width);
        match self.rng.below(9) {
            0 => {
                let op = [UnaryOp::BitNot, UnaryOp::Neg][self.rng.below(2)];
                Expr::Unary(op, Box::new(self.expr(scope, ty, depth)))
            }
            1 => self.mux(scope, ty, depth),
            2 => {
                let wide = self.a_width().max(width);
                let low = self.rng.below((wide - width) as usize + 1) as u32;
                let of = self.expr(scope, Type::Bits(wide), depth);
                Expr::Slice(Box::new(of), low + width - 1, low)
            }
            3 if width > 1 => {
                let low = 1 + self.rng.below(width as usize - 1) as u32;
                let high = self.expr(scope, Type::Bits(width - low), depth);
                let low = self.expr(scope, Type::Bits(low), depth);
                Expr::Concat(Box::new(high), Box::new(low))
            }
            4 => {
                let of = self.a_width();
                let of = Box::new(self.expr(scope, Type::Bits(of), depth));
                if self.rng.one_in(2) { Expr::ZeroExtend(of, width) } else { Expr::SignExtend(of, width) }
            }
            5 => {
                let op = [Shl, Shr, ShrSigned][self.rng.below(3)];
                let by = self.a_width();
                let (value, by) = (self.expr(scope, ty, depth), self.expr(scope, Type::Bits(by), depth));
                Expr::Binary(op, Box::new(value), Box::new(by))
            }
            6 if width == 1 => Expr::BoolToBits(Box::new(self.expr(scope, Type::Bool, depth))),
            _ => {
                let ops = [
                    Add,
                    Sub,
                    Mul,
                    Div,
                    Mod,
                    AddSat,
                    SubSat,
                    AddSatSigned,
                    SubSatSigned,
                    And,
                    Or,
                    Xor,
                    Add,
                    Sub,
                ];
                let op = ops[self.rng.below(ops.len())];
                self.two(scope, op, ty, depth)
            }
        }
    }

    fn two(&mut self, scope: &Scope, op: BinaryOp, ty: Type, depth: usize) -> Expr {
        let (a, b) = (self.expr(scope, ty, depth), self.expr(scope, ty, depth));
        Expr::Binary(op, Box::new(a), Box::new(b))
    }

    fn mux(&mut self, scope: &Scope, ty: Type, depth: usize) -> Expr {
        let cond = self.expr(scope, Type::Bool, depth);
        let (a, b) = (self.expr(scope, ty, depth), self.expr(scope, ty, depth));
        Expr::Mux(Box::new(cond), Box::new(a), Box::new(b))
    }

    fn leaf(&mut self, scope: &Scope, ty: Type) -> Expr {
        let read = self.slot(scope, ty).map(Expr::Read);
        match (ty, self.rng.below(4), read) {
            (_, 0 | 1, Some(read)) => read,
            (Type::Bool, 2, _) => self.header(None).map_or(Expr::Bool(true), Expr::IsValid),
            (Type::Bool, _, _) => Expr::Bool(self.rng.one_in(2)),
            (Type::Bits(32), 2, _) => [Expr::PacketLength, Expr::Cursor][self.rng.below(2)].clone(),
            (Type::Bits(width), _, _) => Expr::Const(self.rng.bits(width)),
            // There is a slot of the one type of varbits that the generator uses.
            (Type::Varbit(_), _, read) => read.unwrap_or(Expr::Bool(false)),
        }
    }
}
