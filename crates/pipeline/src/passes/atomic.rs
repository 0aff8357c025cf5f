//! Atomic sections around the accesses to registers that belong together, for programs that several workers run.
//!
//! P4 says that an action runs as a whole: other threads see the state before it or after it (P4_16, "Concurrency model").
//! Packets can tell whether that holds by registers alone: a register that an action reads and then writes. So an action whose
//! accesses lie in one block gets a section from the first of them to the last, and an action with accesses in several blocks
//! gets one from its start to its end. Statements of a control that follow one another without a branch get a section too, as
//! bmv2's compiler makes one action of them.
//!
//! A section is named by the index of its accesses where all have the same index, so that sections of different cells run
//! concurrently. In a program with a section of several indices no section has a name, and all exclude one another. A write
//! alone, to a register of some section, becomes a section of its own: it must not fall between a read and a write of another
//! worker.

use crate::*;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// Puts atomic sections around accesses to registers. A program in which no section would both read and write stays as it is.
pub fn make_atomic(program: &mut Program) {
    let mut sections: Vec<Section> = Vec::new();
    let mut lone = Vec::new();
    for (id, body) in &program.bodies {
        let found = accesses(body);
        let blocks: BTreeSet<BlockId> = found.iter().map(|access| access.block).collect();
        if body.kind == BodyKind::Action && blocks.len() > 1 && is_together(&found) {
            sections.push(Section::of_body(program, id, &found));
            continue;
        }
        for block in blocks {
            let here: Vec<&Access<'_>> = found.iter().filter(|access| access.block == block).collect();
            match is_together(here.iter().copied()) {
                true => sections.push(Section::within(program, id, &here)),
                false => lone.extend(
                    here.iter()
                        .filter(|access| access.writes)
                        .map(|access| (access.register, Section::within(program, id, &[access]))),
                ),
            }
        }
    }
    let registers: BTreeSet<RegisterId> =
        sections.iter().flat_map(|section| section.registers.iter().copied()).collect();
    sections.extend(
        lone.into_iter().filter(|(register, _)| registers.contains(register)).map(|(_, section)| section),
    );
    let are_named = sections.iter().all(|section| section.index.is_some());
    for section in sections {
        let Section { body, extent, index, .. } = section;
        extent.mark(&mut program.bodies[body], index.filter(|_| are_named));
    }
}

/// An access to a register.
struct Access<'p> {
    block: BlockId,
    /// Its place in the block.
    at: usize,
    register: RegisterId,
    index: &'p Expr,
    writes: bool,
}

fn accesses(body: &Body) -> Vec<Access<'_>> {
    let mut found = Vec::new();
    for (block, code) in &body.blocks {
        found.extend(code.insts.iter().enumerate().filter_map(|(at, inst)| match inst {
            Inst::RegisterRead { register, index, .. } => {
                Some(Access { block, at, register: *register, index, writes: false })
            }
            Inst::RegisterWrite { register, index, .. } => {
                Some(Access { block, at, register: *register, index, writes: true })
            }
            _ => None,
        }));
    }
    found
}

/// Whether accesses belong together: there are several, and other workers see the difference.
fn is_together<'a>(accesses: impl IntoIterator<Item = &'a Access<'a>>) -> bool {
    let (mut count, mut writes) = (0, false);
    for access in accesses {
        (count, writes) = (count + 1, writes | access.writes);
    }
    count > 1 && writes
}

struct Section {
    body: BodyId,
    extent: Extent,
    registers: BTreeSet<RegisterId>,
    /// Of all accesses, where they have the same and it is the same at the start of the section.
    index: Option<Expr>,
}

enum Extent {
    /// Instructions of one block. A block has one such section at most.
    Within(BlockId, RangeInclusive<usize>),
    /// The whole body.
    Body,
}

impl Section {
    /// From the first of these accesses of one block to the last.
    fn within(program: &Program, body: BodyId, accesses: &[&Access<'_>]) -> Section {
        let (first, last) = (accesses[0], accesses[accesses.len() - 1]);
        let between = &program.bodies[body].blocks[first.block].insts[first.at..last.at];
        Section {
            body,
            extent: Extent::Within(first.block, first.at..=last.at),
            registers: accesses.iter().map(|access| access.register).collect(),
            index: common(program, accesses.iter().map(|access| access.index), between),
        }
    }

    /// All of a body that has these accesses.
    fn of_body(program: &Program, body: BodyId, accesses: &[Access<'_>]) -> Section {
        let code = program.bodies[body].blocks.values().flat_map(|block| &block.insts);
        Section {
            body,
            extent: Extent::Body,
            registers: accesses.iter().map(|access| access.register).collect(),
            index: common(program, accesses.iter().map(|access| access.index), code),
        }
    }
}

/// The index that all of these are, if no instruction changes it.
fn common<'p>(
    program: &Program,
    mut indices: impl Iterator<Item = &'p Expr>,
    code: impl IntoIterator<Item = &'p Inst>,
) -> Option<Expr> {
    let first = indices.next()?;
    if !indices.all(|index| index == first) {
        return None;
    }
    let is_changed = |inst: &Inst| {
        let mut changed = inst.dst().is_some_and(|dst| first.reads(dst));
        if let Some(header) = inst.header_changed() {
            let is_of_header = |slot: SlotId| matches!(program.slots[slot].home, Home::Header { header: of, .. } if of == header);
            first.for_each_read(&mut |slot| changed |= is_of_header(slot));
            first.walk(&mut |expr| changed |= matches!(expr, Expr::IsValid(of) if *of == header));
        }
        changed
    };
    (!code.into_iter().any(is_changed)).then(|| first.clone())
}

impl Extent {
    /// Puts the instructions of a section into its body.
    fn mark(self, body: &mut Body, index: Option<Expr>) {
        match self {
            Extent::Within(block, range) => {
                let insts = &mut body.blocks[block].insts;
                insts.insert(range.end() + 1, Inst::AtomicEnd);
                insts.insert(*range.start(), Inst::AtomicBegin { index });
            }
            Extent::Body => {
                for block in body.blocks.values_mut() {
                    if matches!(block.term, Terminator::End | Terminator::Reject | Terminator::Exit) {
                        block.insts.push(Inst::AtomicEnd);
                    }
                }
                body.blocks[body.entry].insts.insert(0, Inst::AtomicBegin { index });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bodies of a program with these bodies, after the pass.
    fn made(bodies: &str) -> String {
        let source = format!(
            r#"program t errors (NoError) ingress (c)
               header h: h_t {{ i: bit<8> }}
               metadata i: bit<8> metadata j: bit<8> metadata x: bit<32> metadata y: bit<32>
               register r: bit<32> size 4 register s: bit<32> size 4
               action "act" () = act
               table t {{ key i: exact = i action "act" default "act"() size 4 }}
               {bodies}"#
        );
        let mut program = text::parse(&source).unwrap_or_else(|error| panic!("{error}"));
        make_atomic(&mut program);
        assert_eq!(verify(&program), Ok(()));
        let text = program.to_string();
        assert_eq!(text::parse(&text).as_ref(), Ok(&program), "{text}");
        text[text.find("\nbody ").unwrap()..].lines().map(str::trim).collect::<Vec<_>>().join("\n")
    }

    const APPLY: &str = "body control c { block0: apply t, next = block1, exit = block1 block1: end }";

    #[test]
    fn an_action_is_a_section_from_its_first_access_to_its_last() {
        let text = made(&format!(
            "body action act {{ block0: y = 32w7 register_read x, r, i x = add(x, 32w1) register_write r, i, x y = x end }} {APPLY}"
        ));
        let code = "y = 32w7\natomic_begin i\nregister_read x, r, i\nx = add(x, 32w1)\nregister_write r, i, x\natomic_end\ny = x\nend";
        assert!(text.contains(code), "{text}");
    }

    #[test]
    fn an_action_with_branches_is_a_section_as_a_whole() {
        let text = made(&format!(
            "body action act {{
             block0: register_read x, r, 8w1 branch eq(x, 32w0), block1, block2
             block1: register_write r, 8w1, 32w9 exit
             block2: end }} {APPLY}"
        ));
        assert!(text.contains("block0:\natomic_begin 8w1\nregister_read x, r, 8w1\nbranch"), "{text}");
        assert!(text.contains("register_write r, 8w1, 32w9\natomic_end\nexit"), "{text}");
        assert!(text.contains("block2:\natomic_end\nend"), "{text}");
    }

    #[test]
    fn an_index_that_changes_names_no_section_of_the_program() {
        let bodies = |between: &str| {
            format!(
                "body action act {{ block0: end }}
                 body control c {{
                 block0: register_read x, r, i {between} register_write r, i, x goto block1
                 block1: register_read x, s, j register_write s, j, 32w1 end }}"
            )
        };
        assert_eq!(made(&bodies("")).matches("atomic_begin i").count(), 1);
        assert_eq!(made(&bodies("")).matches("atomic_begin j").count(), 1);
        for between in ["i = 8w2", "register_read y, s, 8w0"] {
            let text = made(&bodies(between));
            assert_eq!(text.matches("atomic_begin_all\n").count(), 2, "{text}");
        }
    }

    #[test]
    fn a_write_alone_does_not_fall_into_a_section_of_its_register() {
        let text = made(
            "body action act { block0: register_read x, r, i register_write r, i, 32w1 end }
             body control c { block0: register_read y, s, 8w0 goto block1
                              block1: register_write s, j, 32w0 goto block2
                              block2: register_write r, j, 32w3 end }",
        );
        assert!(text.contains("atomic_begin j\nregister_write r, j, 32w3\natomic_end"), "{text}");
        assert!(
            text.contains("block1:\nregister_write s, j, 32w0\ngoto"),
            "nobody reads and writes s: {text}"
        );
    }

    #[test]
    fn reads_alone_and_writes_alone_need_no_section() {
        let bodies = "body action act { block0: register_read x, r, i register_read y, r, j end }
                      body control c { block0: register_write s, j, 32w0 end }";
        assert!(!made(bodies).contains("atomic"));
    }
}
