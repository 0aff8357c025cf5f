//! Which tables may be looked up for a whole batch at once, so that the order of packets is kept.
//!
//! A table that is staged is looked up for all packets of a batch together. After the lookup each packet goes on in
//! another loop over the batch. Memory that a program keeps from packet to packet (a register, a counter) shows in
//! which order packets come to it, so each such memory has to be used in one loop only.
//!
//! Example: packets 1 and 2 both write register `r`, packet 1 after the staged table `t`, packet 2 without a lookup.
//! Loop 0 runs both packets before loop 1 runs what follows `t`, so packet 2 would write `r` first. Here `r` is used in
//! loops 0 and 1 (two bits in `Phases::used`), so `t` is not staged; or one more table is, to which both packets come
//! before `r`.

use crate::order::{Memory, memory};
use millrace_pipeline::*;
use std::collections::BTreeMap;

/// Most tables that are staged.
pub const MAX_STAGED: usize = 60;
/// The tables of a program in the order in which packets come to them: staged in any other order they would not all be.
pub fn in_order(program: &Program) -> Vec<TableId> {
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

/// What to stage of these tables so that the order of packets is kept. Where paths join of which only some passed a
/// staged table, one more table that all paths come to keeps the order, of `all` tables in order. Where there is none,
/// the last ones are not staged.
pub fn keeping_order(program: &Program, mut staged: Vec<TableId>, all: &[TableId]) -> Vec<TableId> {
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

/// In which loops over the burst each memory of a program is used. After the lookup of the staged table number `n` a
/// packet is in loop `n`, from 1 on, until then in loop 0; within a loop packets keep their order.
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

    /// Follows packets that may be in these loops through a body; gives the loops that they may be in after it.
    fn body(&mut self, id: BodyId, at: u64) -> u64 {
        let body = &self.program.bodies[id];
        let (mut entered, mut after) = (BTreeMap::from([(body.entry, at)]), at);
        let mut waiting = vec![body.entry];
        while let Some(id) = waiting.pop() {
            let block = &body.blocks[id];
            let mut at = entered.get(&id).copied().unwrap_or(0);
            block.insts.iter().filter_map(memory).for_each(|memory| self.note(memory, at));
            if let Terminator::Apply { table, .. } = &block.term {
                at = self.apply(*table, at);
            }
            after |= at;
            block.term.for_each_successor(&mut |to| {
                let before = entered.entry(to).or_insert(0);
                if *before | at != *before {
                    *before |= at;
                    waiting.push(to);
                }
            });
        }
        after
    }

    fn apply(&mut self, table: TableId, at: u64) -> u64 {
        let mut at = at;
        if let Some(number) = self.staged.iter().position(|staged| *staged == table) {
            // Bit `n` is loop `n`. The lookup moves packets from loops 0 to `number` into loop `number + 1`, whose bit is
            // `2 << number`; packets that are in this loop or a later one look the table up where they are.
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

    /// Whether order is kept where the only table is staged, with something before it and after it.
    fn keeps_order(front: &str, after: &str) -> bool {
        let blocks = format!(
            "block0: {front} branch eq(y, 1w1), block1, block2
             block1: apply t, next = block2, exit = block2
             block2: {after} end"
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
        // A packet that does not come to the table is there first.
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
