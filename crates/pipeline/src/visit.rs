//! Walking over code: the expressions and slots of instructions and terminators, and the edges of the graph.

use crate::{Block, BlockId, Body, DataItem, Expr, HeaderId, Home, Inst, Program, SlotId, Table, Terminator};
use cranelift_entity::EntityRef;
use std::collections::BTreeSet;

impl Expr {
    /// Calls `f` with this and every expression below it.
    pub fn walk<'a>(&'a self, f: &mut impl FnMut(&'a Expr)) {
        f(self);
        match self {
            Expr::Const(_)
            | Expr::Bool(_)
            | Expr::Read(_)
            | Expr::IsValid(_)
            | Expr::PacketLength
            | Expr::Cursor => {}
            Expr::Unary(_, a)
            | Expr::Slice(a, _, _)
            | Expr::ZeroExtend(a, _)
            | Expr::SignExtend(a, _)
            | Expr::BoolToBits(a) => a.walk(f),
            Expr::Binary(_, a, b) | Expr::Concat(a, b) => {
                a.walk(f);
                b.walk(f);
            }
            Expr::Mux(c, a, b) => {
                c.walk(f);
                a.walk(f);
                b.walk(f);
            }
        }
    }

    /// As [`Expr::walk`], to change them: what `f` makes of an expression is walked next.
    pub fn walk_mut(&mut self, f: &mut impl FnMut(&mut Expr)) {
        f(self);
        match self {
            Expr::Const(_)
            | Expr::Bool(_)
            | Expr::Read(_)
            | Expr::IsValid(_)
            | Expr::PacketLength
            | Expr::Cursor => {}
            Expr::Unary(_, a)
            | Expr::Slice(a, _, _)
            | Expr::ZeroExtend(a, _)
            | Expr::SignExtend(a, _)
            | Expr::BoolToBits(a) => a.walk_mut(f),
            Expr::Binary(_, a, b) | Expr::Concat(a, b) => {
                [a, b].into_iter().for_each(|part| part.walk_mut(f))
            }
            Expr::Mux(c, a, b) => [c, a, b].into_iter().for_each(|part| part.walk_mut(f)),
        }
    }

    /// Calls `f` with every slot that is read; a slot read twice comes twice.
    pub fn for_each_read(&self, f: &mut impl FnMut(SlotId)) {
        self.walk(&mut |e| {
            if let Expr::Read(slot) = e {
                f(*slot);
            }
        });
    }

    /// Whether that slot is read.
    pub fn reads(&self, slot: SlotId) -> bool {
        let mut found = false;
        self.for_each_read(&mut |s| found |= s == slot);
        found
    }

    /// The number of nodes.
    pub fn size(&self) -> usize {
        let mut nodes = 0;
        self.walk(&mut |_| nodes += 1);
        nodes
    }
}

impl Inst {
    /// The slot that this writes by itself. (Extracting and validity change the fields of a header as well.)
    pub fn dst(&self) -> Option<SlotId> {
        match self {
            Inst::Assign { dst, .. }
            | Inst::Lookahead { dst, .. }
            | Inst::Meter { dst, .. }
            | Inst::MeterDirect { dst, .. }
            | Inst::RegisterRead { dst, .. }
            | Inst::Hash { dst, .. }
            | Inst::Random { dst, .. }
            | Inst::Call { dst, .. }
            | Inst::CallResult { dst, .. } => Some(*dst),
            _ => None,
        }
    }

    /// Whether this may change the payload, and the length of the packet.
    pub fn rewrites(&self, program: &Program) -> bool {
        matches!(self, Inst::Call { plugin, .. } if program.plugins.get(*plugin).is_some_and(|plugin| plugin.rewrites))
    }

    /// The header whose validity and fields this changes.
    pub fn header_changed(&self) -> Option<HeaderId> {
        match self {
            Inst::SetValid(h)
            | Inst::SetInvalid(h)
            | Inst::Extract(h)
            | Inst::ExtractVar { header: h, .. } => Some(*h),
            _ => None,
        }
    }

    /// Calls `f` with every expression that this evaluates.
    pub fn for_each_expr<'a>(&'a self, f: &mut impl FnMut(&'a Expr)) {
        match self {
            Inst::SetValid(_)
            | Inst::SetInvalid(_)
            | Inst::Extract(_)
            | Inst::Lookahead { .. }
            | Inst::Emit(_)
            | Inst::AtomicEnd
            | Inst::CallResult { .. }
            | Inst::CountDirect(_) => {}
            Inst::Assign { value: e, .. }
            | Inst::ExtractVar { bits: e, .. }
            | Inst::Advance { bits: e }
            | Inst::Count { index: e, .. }
            | Inst::RegisterRead { index: e, .. }
            | Inst::Stop { cond: e }
            | Inst::Assert { cond: e, .. } => f(e),
            Inst::Meter { index, color, length, .. } => {
                f(index);
                color.iter().chain(length).for_each(f);
            }
            Inst::MeterDirect { color, length, .. } => color.iter().chain(length).for_each(f),
            Inst::AtomicBegin { index } => index.iter().for_each(f),
            Inst::RegisterWrite { index, value, .. } => {
                f(index);
                f(value);
            }
            Inst::Hash { data, .. } => data.iter().for_each(|item| {
                if let DataItem::Value(e) = item {
                    f(e);
                }
            }),
            Inst::Random { low, high, .. } => {
                f(low);
                f(high);
            }
            Inst::Digest { values, .. } | Inst::Call { args: values, .. } => values.iter().for_each(f),
            Inst::Log { args, .. } => args.iter().for_each(f),
        }
    }

    /// As [`Inst::for_each_expr`], to change them.
    pub fn for_each_expr_mut(&mut self, f: &mut impl FnMut(&mut Expr)) {
        match self {
            Inst::SetValid(_)
            | Inst::SetInvalid(_)
            | Inst::Extract(_)
            | Inst::Lookahead { .. }
            | Inst::Emit(_)
            | Inst::AtomicEnd
            | Inst::CallResult { .. }
            | Inst::CountDirect(_) => {}
            Inst::Assign { value: e, .. }
            | Inst::ExtractVar { bits: e, .. }
            | Inst::Advance { bits: e }
            | Inst::Count { index: e, .. }
            | Inst::RegisterRead { index: e, .. }
            | Inst::Stop { cond: e }
            | Inst::Assert { cond: e, .. } => f(e),
            Inst::Meter { index, color, length, .. } => {
                f(index);
                color.iter_mut().chain(length).for_each(f);
            }
            Inst::MeterDirect { color, length, .. } => color.iter_mut().chain(length).for_each(f),
            Inst::AtomicBegin { index } => index.iter_mut().for_each(f),
            Inst::RegisterWrite { index, value, .. } => {
                f(index);
                f(value);
            }
            Inst::Hash { data, .. } => data.iter_mut().for_each(|item| {
                if let DataItem::Value(e) = item {
                    f(e);
                }
            }),
            Inst::Random { low, high, .. } => {
                f(low);
                f(high);
            }
            Inst::Digest { values, .. } | Inst::Call { args: values, .. } => values.iter_mut().for_each(f),
            Inst::Log { args, .. } => args.iter_mut().for_each(f),
        }
    }
}

impl Terminator {
    /// Calls `f` with every block this may go to, once for each edge.
    pub fn for_each_successor(&self, f: &mut impl FnMut(BlockId)) {
        match self {
            Terminator::Goto(to) => f(*to),
            Terminator::Branch { then, els, .. } => {
                f(*then);
                f(*els);
            }
            Terminator::Select { cases, default, .. } => {
                cases.iter().for_each(|case| f(case.target));
                f(*default);
            }
            Terminator::Apply { next, exit, .. } => {
                f(*next);
                f(*exit);
            }
            Terminator::End | Terminator::Reject | Terminator::Exit => {}
        }
    }

    /// As [`Terminator::for_each_successor`], to change them.
    pub fn for_each_successor_mut(&mut self, f: &mut impl FnMut(&mut BlockId)) {
        match self {
            Terminator::Goto(to) => f(to),
            Terminator::Branch { then, els, .. } => {
                f(then);
                f(els);
            }
            Terminator::Select { cases, default, .. } => {
                cases.iter_mut().for_each(|case| f(&mut case.target));
                f(default);
            }
            Terminator::Apply { next, exit, .. } => {
                f(next);
                f(exit);
            }
            Terminator::End | Terminator::Reject | Terminator::Exit => {}
        }
    }

    /// Calls `f` with every expression that this evaluates (not with a table's keys).
    pub fn for_each_expr<'a>(&'a self, f: &mut impl FnMut(&'a Expr)) {
        match self {
            Terminator::Branch { cond, .. } => f(cond),
            Terminator::Select { keys, .. } => keys.iter().for_each(f),
            _ => {}
        }
    }

    /// As [`Terminator::for_each_expr`], to change them.
    pub fn for_each_expr_mut(&mut self, f: &mut impl FnMut(&mut Expr)) {
        match self {
            Terminator::Branch { cond, .. } => f(cond),
            Terminator::Select { keys, .. } => keys.iter_mut().for_each(f),
            _ => {}
        }
    }
}

impl Block {
    /// Calls `f` with every expression that this evaluates.
    pub fn for_each_expr<'a>(&'a self, f: &mut impl FnMut(&'a Expr)) {
        self.insts.iter().for_each(|inst| inst.for_each_expr(f));
        self.term.for_each_expr(f);
    }

    /// As [`Block::for_each_expr`], to change them.
    pub fn for_each_expr_mut(&mut self, f: &mut impl FnMut(&mut Expr)) {
        self.insts.iter_mut().for_each(|inst| inst.for_each_expr_mut(f));
        self.term.for_each_expr_mut(f);
    }
}

impl Table {
    /// What a lookup evaluates: the fields of the key, then what the selector hashes.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        self.keys.iter().map(|key| &key.value).chain(&self.selector_inputs)
    }
}

impl Body {
    /// The blocks that the entry reaches, in postorder: but for loops, a block comes after its successors.
    pub fn postorder(&self) -> Vec<BlockId> {
        let mut seen = vec![false; self.blocks.len()];
        let mut order = Vec::with_capacity(self.blocks.len());
        let mut stack = Vec::with_capacity(self.blocks.len() + 1);
        stack.push((self.entry, false));
        while let Some((block, done)) = stack.pop() {
            if done {
                order.push(block);
            } else if seen.get_mut(block.index()).is_some_and(|seen| !std::mem::replace(seen, true)) {
                stack.push((block, true));
                self.blocks[block].term.for_each_successor(&mut |next| stack.push((next, false)));
            }
        }
        order
    }

    /// Whether a run can come to a block twice.
    pub fn has_loop(&self) -> bool {
        let order = self.postorder();
        let mut rank = cranelift_entity::SecondaryMap::<BlockId, usize>::with_capacity(self.blocks.len());
        order.iter().enumerate().for_each(|(i, block)| rank[*block] = i);
        let mut found = false;
        for block in &order {
            self.blocks[*block].term.for_each_successor(&mut |to| found |= rank[to] >= rank[*block]);
        }
        found
    }

    /// Calls `f` with every slot that this reads or writes by its name, also in the tables that it applies; not with the
    /// fields of headers that are read or written as a whole. A slot named twice comes twice.
    pub fn for_each_slot(&self, program: &Program, f: &mut impl FnMut(SlotId)) {
        for block in self.blocks.values() {
            block.for_each_expr(&mut |expr| expr.for_each_read(f));
            block.insts.iter().filter_map(Inst::dst).for_each(&mut *f);
            if let Terminator::Apply { table, hit, action, .. } = &block.term {
                hit.iter().chain(action).copied().for_each(&mut *f);
                if let Some(table) = program.tables.get(*table) {
                    table.exprs().for_each(|expr| expr.for_each_read(f));
                    table.direct_meter.iter().filter_map(|meter| meter.at_hit).for_each(&mut *f);
                }
            }
        }
    }

    /// The local slots of all that [`Body::for_each_slot`] names.
    pub fn locals(&self, program: &Program) -> BTreeSet<SlotId> {
        let mut named = BTreeSet::new();
        self.for_each_slot(program, &mut |slot| {
            named.insert(slot);
        });
        named.retain(|slot| program.slots[*slot].home == Home::Local);
        named
    }

    /// For each block the number of edges that enter it from reachable blocks; the entry has one more.
    pub fn edges_in(&self) -> cranelift_entity::SecondaryMap<BlockId, u32> {
        let mut edges = cranelift_entity::SecondaryMap::with_capacity(self.blocks.len());
        edges[self.entry] = 1;
        for block in self.postorder() {
            self.blocks[block].term.for_each_successor(&mut |next| {
                if self.blocks.is_valid(next) {
                    edges[next] += 1;
                }
            });
        }
        edges
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BodyKind;

    fn block(term: Terminator) -> Block {
        Block { state: None, line: None, insts: Vec::new(), term }
    }

    #[test]
    fn postorder_and_edges() {
        let id = BlockId::from_u32;
        let mut blocks = cranelift_entity::PrimaryMap::new();
        blocks.push(block(Terminator::Branch { cond: Expr::Bool(true), then: id(1), els: id(2) }));
        blocks.push(block(Terminator::Goto(id(2))));
        blocks.push(block(Terminator::End));
        blocks.push(block(Terminator::Goto(id(2))));
        let body = Body { name: "b".into(), kind: BodyKind::Control, blocks, entry: id(0) };
        assert_eq!(body.postorder(), [id(2), id(1), id(0)]);
        assert!(!body.has_loop());
        let mut looping = body.clone();
        looping.blocks[id(2)].term = Terminator::Goto(id(1));
        assert!(looping.has_loop());
        looping.blocks[id(2)].term = Terminator::Goto(id(2));
        assert!(looping.has_loop());
        let edges = body.edges_in();
        assert_eq!((edges[id(0)], edges[id(1)], edges[id(2)], edges[id(3)]), (1, 1, 2, 0));
    }

    #[test]
    fn slots_of_a_body() {
        let text = r#"
            program p
            ingress (c)
            header h: h_t { a: bit<8> }
            metadata m: bit<8>
            metadata color: bit<2>
            local read: bit<8>
            local written: bit<8>
            local key: bit<8>
            local hashed: bit<8>
            local hit: bool
            local other: bit<8>
            profile ap size 4 selector crc16 width 14 max_group_size 4
            action a () = a
            table t {
                key k: exact = key
                action a
                default a()
                size 4
                profile ap
                selector_input hashed
                direct_meter dm packets at_hit color
            }
            body action a { block0: end }
            body action b { block0: other = 8w1 end }
            body control c {
            block0:
                set_valid h
                written = m
                m = read
                apply t, hit = hit, next = block1, exit = block1
            block1:
                end
            }
        "#;
        let program = crate::text::parse(text).expect("IR text");
        let names = |slots: BTreeSet<SlotId>| {
            slots.into_iter().map(|slot| program.slots[slot].name.as_str()).collect::<Vec<_>>()
        };
        let control = &program.bodies[program.ingress[0]];
        let mut named = BTreeSet::new();
        control.for_each_slot(&program, &mut |slot| {
            named.insert(slot);
        });
        assert_eq!(names(named), ["m", "color", "read", "written", "key", "hashed", "hit"]);
        assert_eq!(names(control.locals(&program)), ["read", "written", "key", "hashed", "hit"]);
    }

    #[test]
    fn expression_walks() {
        let slot = SlotId::from_u32(3);
        let e =
            Expr::Concat(Box::new(Expr::Read(slot)), Box::new(Expr::Slice(Box::new(Expr::Read(slot)), 1, 0)));
        assert_eq!(e.size(), 4);
        assert!(e.reads(slot) && !e.reads(SlotId::from_u32(4)));
    }
}
