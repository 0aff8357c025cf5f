//! How the code for bursts looks its tables up: by loads packet by packet, or staged, which means for the packets of a burst
//! together. Packet by packet wins where a table is in the nearest caches, staged where its memory has to be waited for,
//! and where a lookup is a call.

use crate::order::{Memory, memory};
use millrace_jit::{Options, Shape, shapes};
use millrace_pipeline::*;
use millrace_state::State;
use std::collections::BTreeMap;

/// From this many bytes on that lookups touch, a table that is looked up by loads is staged: half of a small second-level
/// cache, of which packets take their part.
const STAGED_BYTES: usize = 256 << 10;
/// From this many bytes on the lines of an exact table are asked for early: in a cache they are there about as soon.
const FAR_BYTES: usize = 16 << 20;
/// So many tables that are looked up by calls are staged although they are empty.
const FEW_CALLS: usize = 2;
/// Most tables that are staged.
const MAX_STAGED: usize = 60;
/// What a lookup of an entry touches at least: a cache line.
const LINE: usize = 64;

/// The best options for the tables as they are.
pub(crate) fn choose(program: &Program, state: &mut State) -> Options {
    let shapes = shapes(state);
    // Loops without calls are better code; for many tables that no packet hits they would take too long to make.
    let few_calls = shapes.iter().filter(|shape| **shape == Shape::Call).count() <= FEW_CALLS;
    let is_staged = |table: &TableId| {
        let entries = state.reader(*table).entries() as usize;
        match shapes.get(table.as_u32() as usize).copied().unwrap_or_default() {
            Shape::Call => entries > 0 || few_calls,
            Shape::Direct => false,
            Shape::Two { .. } | Shape::Lines(_) => entries * LINE > STAGED_BYTES,
        }
    };
    let all = in_order(program);
    let staged = all.iter().copied().filter(is_staged).take(MAX_STAGED).collect();
    let staged = keeping_order(program, staged, &all);
    let is_far = |table: &TableId| match shapes.get(table.as_u32() as usize) {
        Some(Shape::Two { .. }) => true,
        Some(Shape::Lines(_)) => state.reader(*table).entries() as usize * LINE > FAR_BYTES,
        _ => false,
    };
    let far = staged.iter().copied().filter(is_far).collect();
    Options { staged, far, shapes, ..Options::default() }
}

/// What to stage of these tables so that the order of packets is kept. Where ways meet of which only some passed a staged
/// table, one more table that all come to keeps it, of `all` tables in order. Where there is none, the last ones are not
/// staged.
fn keeping_order(program: &Program, mut staged: Vec<TableId>, all: &[TableId]) -> Vec<TableId> {
    let keeps_order = |staged: &Vec<TableId>| Phases::of(program, staged).keep_order();
    if keeps_order(&staged) {
        return staged;
    }
    let with = |more: &TableId| {
        let both = all.iter().filter(|table| staged.contains(table) || *table == more);
        both.copied().collect::<Vec<_>>()
    };
    let others = all.iter().filter(|table| !staged.contains(table) && staged.len() < MAX_STAGED);
    if let Some(more) = others.map(with).find(keeps_order) {
        return more;
    }
    while !keeps_order(&staged) {
        staged.pop();
    }
    staged
}

/// Whether two options give the same code.
pub(crate) fn are_same(one: &Options, other: &Options) -> bool {
    one.staged == other.staged && one.far == other.far && one.shapes == other.shapes
}

/// The tables of a program in the order in which packets come to them: staged in any other order they would not all be.
fn in_order(program: &Program) -> Vec<TableId> {
    let mut tables = Vec::new();
    for body in program.ingress.iter().chain(&program.egress) {
        let body = &program.bodies[*body];
        for block in body.postorder().into_iter().rev() {
            if let Terminator::Apply { table, .. } = body.blocks[block].term
                && !tables.contains(&table)
            {
                tables.push(table);
            }
        }
    }
    tables
}

/// In which loops over the burst each memory of a program is used. Behind the lookup of the staged table number `n` a packet
/// is in loop `n`, from 1 on, until then in loop 0; within a loop packets keep their order.
struct Phases<'p> {
    program: &'p Program,
    staged: &'p [TableId],
    /// Sets of loops, a bit each.
    used: BTreeMap<Memory, u64>,
}

impl Phases<'_> {
    fn of<'p>(program: &'p Program, staged: &'p [TableId]) -> Phases<'p> {
        let mut phases = Phases { program, staged, used: BTreeMap::new() };
        let mut at = 1;
        for body in program.ingress.iter().chain(&program.egress) {
            at = phases.body(*body, at);
        }
        phases
    }

    /// Whether packets come to each memory in their order.
    fn keep_order(&self) -> bool {
        self.used.values().all(|loops| loops.is_power_of_two())
    }

    /// Follows packets that may be in these loops through a body; gives the loops that they may be in behind it.
    fn body(&mut self, id: BodyId, at: u64) -> u64 {
        let body = &self.program.bodies[id];
        let (mut entered, mut behind) = (BTreeMap::from([(body.entry, at)]), at);
        let mut waiting = vec![body.entry];
        while let Some(id) = waiting.pop() {
            let block = &body.blocks[id];
            let mut at = entered.get(&id).copied().unwrap_or(0);
            block.insts.iter().filter_map(memory).for_each(|memory| self.note(memory, at));
            if let Terminator::Apply { table, .. } = &block.term {
                at = self.apply(*table, at);
            }
            behind |= at;
            block.term.for_each_successor(&mut |to| {
                let before = entered.entry(to).or_insert(0);
                if *before | at != *before {
                    *before |= at;
                    waiting.push(to);
                }
            });
        }
        behind
    }

    fn apply(&mut self, table: TableId, at: u64) -> u64 {
        let mut at = at;
        if let Some(number) = self.staged.iter().position(|staged| *staged == table) {
            let earlier = at & ((2 << number) - 1);
            at = at & !earlier | if earlier == 0 { 0 } else { 2 << number };
        }
        let described = &self.program.tables[table];
        if described.direct_meter.is_some() {
            self.note(Memory::DirectMeter(table), at);
        }
        for listed in &described.actions {
            self.body(self.program.actions[listed.action].body, at);
        }
        at
    }

    fn note(&mut self, memory: Memory, at: u64) {
        *self.used.entry(memory).or_default() |= at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program with these tables and blocks.
    fn program(tables: &[&str], blocks: &str) -> Program {
        let table =
            |name: &&str| format!("table {name} {{ key x: exact = x action nop default nop() size 4 }}\n");
        let tables: String = tables.iter().map(table).collect();
        let program = text::parse(&format!(
            "program t architecture test errors (NoError)
             ingress (ingress) egress ()
             intrinsic egress_spec = port
             metadata port: bit<32> metadata x: bit<8> metadata y: bit<1>
             register r: bit<8> size 4
             action nop () = nop
             {tables}
             body action nop {{ block0: end }}
             body control ingress {{ {blocks} }}"
        ));
        program.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Whether order is kept where the only table is staged, with something in front of it and behind it.
    fn keeps_order(front: &str, behind: &str) -> bool {
        let blocks = format!(
            "block0: {front} branch eq(y, 1w1), block1, block2
             block1: apply t, next = block2, exit = block2
             block2: {behind} end"
        );
        let program = program(&["t"], &blocks);
        let staged: Vec<TableId> = program.tables.keys().collect();
        Phases::of(&program, &staged).keep_order()
    }

    #[test]
    fn what_is_used_in_one_loop_is_used_in_order() {
        let write = "register_write r, 8w0, 8w1";
        assert!(keeps_order("", ""));
        assert!(keeps_order(write, ""));
        // Who does not come to the table is there first.
        assert!(!keeps_order("", write));
        assert!(!keeps_order(write, write));
    }

    #[test]
    fn one_more_table_brings_packets_together() {
        let program = program(
            &["some", "every"],
            "block0: branch eq(y, 1w1), block1, block2
             block1: apply some, next = block2, exit = block2
             block2: apply every, next = block3, exit = block3
             block3: register_write r, 8w0, 8w1 end",
        );
        let tables: Vec<TableId> = program.tables.keys().collect();
        assert_eq!(in_order(&program), tables);
        assert_eq!(keeping_order(&program, tables[..1].to_vec(), &tables), tables);
        assert_eq!(keeping_order(&program, tables[1..].to_vec(), &tables), tables[1..]);
        assert_eq!(keeping_order(&program, tables[..1].to_vec(), &tables[..1]), []);
    }
}
