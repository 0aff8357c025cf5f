//! What an action of a table finds in a header that it has made invalid.
//!
//! The fields of an invalid header read 0 here. In bmv2 they keep what they held, and programs that take a header off rely
//! on it: they count by a field of the header after `setInvalid`. So an action reads what the field held, up to the end
//! of the block that made the header invalid.

use millrace_pipeline::{BodyKind, Expr, HeaderId, Home, Inst, Program, Slot, SlotId, Type};
use std::collections::BTreeMap;

/// Has actions read the fields of headers that they made invalid.
pub(super) fn keep(program: &mut Program) {
    let actions = program.bodies.keys().filter(|body| program.bodies[*body].kind == BodyKind::Action);
    for body in actions.collect::<Vec<_>>() {
        for block in program.bodies[body].blocks.keys() {
            let insts = std::mem::take(&mut program.bodies[body].blocks[block].insts);
            let kept = Block::default().keep(insts, program);
            program.bodies[body].blocks[block].insts = kept;
        }
    }
}

#[derive(Default)]
struct Block {
    insts: Vec<Inst>,
    /// Headers that are invalid since an instruction.
    invalid: BTreeMap<HeaderId, usize>,
    /// Fields of them, with the locals that have what they held.
    kept: BTreeMap<SlotId, SlotId>,
}

impl Block {
    fn keep(mut self, insts: Vec<Inst>, program: &mut Program) -> Vec<Inst> {
        for mut inst in insts {
            if !self.invalid.is_empty() {
                inst.for_each_expr_mut(&mut |expr| {
                    expr.walk_mut(&mut |part| {
                        if let Expr::Read(slot) = part {
                            *slot = self.held(*slot, program);
                        }
                    });
                });
            }
            if let Some(header) = inst.header_changed() {
                self.invalid.remove(&header);
                let fields = &program.headers[header].fields;
                self.kept.retain(|field, _| !fields.contains(field));
            }
            if let Inst::SetInvalid(header) = inst {
                self.invalid.insert(header, self.insts.len());
            }
            self.insts.push(inst);
        }
        self.insts
    }

    /// What to read in place of a slot.
    fn held(&mut self, slot: SlotId, program: &mut Program) -> SlotId {
        if let Some(local) = self.kept.get(&slot) {
            return *local;
        }
        let Slot { name, ty, home } = &program.slots[slot];
        let Home::Header { header, .. } = home else { return slot };
        let (Some(at), Type::Bits(_)) = (self.invalid.get(header).copied(), ty) else { return slot };
        let name = format!("{name}.held{}", program.slots.len());
        let local = program.slots.push(Slot { name, ty: *ty, home: Home::Local });
        self.insts.insert(at, Inst::Assign { dst: local, value: Expr::Read(slot) });
        self.invalid.values_mut().filter(|later| **later >= at).for_each(|later| *later += 1);
        self.kept.insert(slot, local);
        local
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_pipeline::{text, verify};

    #[test]
    fn an_action_reads_what_it_has_taken_off() {
        let mut program = text::parse(
            "program p architecture v1model errors (NoError) \
             header h: h_t { a: bit<8> b: bit<8> } header g: h_t { c: bit<8> } \
             metadata x: bit<8> metadata y: bit<8> \
             action f () = f \
             body action f { block0: set_invalid h set_invalid g x = add(h.a, g.c) y = h.a set_valid h x = h.a end } \
             body control c { block0: set_invalid h x = h.a end }",
        )
        .unwrap();
        keep(&mut program);
        assert_eq!(verify(&program), Ok(()));
        let text = program.to_string();
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let at = lines.iter().position(|line| *line == "body action f {").unwrap();
        let shown: Vec<String> = lines[at + 2..at + 10]
            .iter()
            .map(|line| line.replace(".held5", "'").replace(".held6", "'"))
            .collect();
        assert_eq!(
            shown,
            [
                "h.a' = h.a",
                "set_invalid h",
                "g.c' = g.c",
                "set_invalid g",
                "x = add(h.a', g.c')",
                "y = h.a'",
                "set_valid h",
                "x = h.a"
            ]
        );
        // A control has no such reading: what follows may be reached on other paths.
        assert!(text.contains("set_invalid h\n    x = h.a\n"), "{text}");
    }
}
