//! Where the parts of a program stand in its source.

use millrace_midend::order::{Memory, memory as memory_of};
use millrace_pipeline::{
    Block, BlockId, Body, BodyId, BodyKind, DataItem, Inst, PAYLOAD, Program, SlotId, SourceKind, SourceLine,
    Terminator,
};
use std::collections::{BTreeMap, BTreeSet};

/// A part of a program, and its place in the source if the program knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// For people: `ingress`, `Parser.state`, a table.
    pub(crate) part: String,
    /// The file and the line.
    pub(crate) at: Option<(String, u32)>,
}

impl Place {
    /// That of what a name says: a body, state, table or object, or what begins with the name of one.
    pub(crate) fn of_name(program: &Program, name: &str) -> Place {
        let part = name.to_owned();
        let mut begin = Some(name);
        while let Some(known) = begin {
            let kinds = [SourceKind::Table, SourceKind::State, SourceKind::Body];
            let at = kinds.into_iter().find_map(|kind| line_of(program, kind, known));
            if at.is_some() {
                return Place { part, at };
            }
            begin = known.rfind(['.', ' ']).map(|end| &known[..end]);
        }
        Place { part, at: used_anywhere(program, name) }
    }

    /// That of a body.
    pub(crate) fn of_body(program: &Program, body: &Body) -> Place {
        Place { part: body.name.clone(), at: line_of(program, SourceKind::Body, &body.name) }
    }

    /// That of a block: of a state where a state starts, else of the first statement.
    pub(crate) fn of_block(program: &Program, body: &Body, block: BlockId) -> Place {
        let of_body = line_of(program, SourceKind::Body, &body.name);
        let code = &body.blocks[block];
        let own = of_body.clone().and_then(|(file, _)| Some((file, code.line?)));
        let Some(state) = state_of(body, block) else {
            let part = match own {
                Some(_) => body.name.clone(),
                None => format!("{}.{block}", body.name),
            };
            return Place { part, at: own.or(of_body) };
        };
        let part = format!("{}.{state}", body.name);
        let of_state = line_of(program, SourceKind::State, &part);
        let at = match code.state {
            Some(_) => of_state.or(own),
            None => own.or(of_state),
        };
        Place { part, at: at.or(of_body) }
    }

    /// That of a block of a control-flow graph, by the name that says where it comes from; `of` is what it belongs to.
    pub(crate) fn of_origin(program: &Program, origin: &str, of: Option<BodyId>) -> Place {
        if let Some((body, block)) = block_of(program, origin) {
            return Place::of_block(program, body, block);
        }
        let named = Place::of_name(program, origin);
        match of.filter(|_| named.at.is_none()).and_then(|body| program.bodies.get(body)) {
            Some(body) => Place::of_body(program, body),
            None => named,
        }
    }

    /// Where bodies, or actions that they apply, first make use of a thing, which blocks do of which `is` says that.
    pub(crate) fn of_use(
        program: &Program,
        bodies: &[BodyId],
        thing: &str,
        is: impl Fn(&Block) -> bool,
    ) -> Option<Place> {
        let bodies = with_actions(program, bodies);
        let bodies = || bodies.iter().filter_map(|body| program.bodies.get(*body));
        let uses = uses(program);
        let noted = bodies().find_map(|body| {
            let line = uses.get(format!("{} {thing}", body.name).as_str())?;
            Some(Place { part: body.name.clone(), at: Some((line.file.clone(), line.line)) })
        });
        noted.or_else(|| {
            bodies().find_map(|body| {
                let (block, _) = body.blocks.iter().find(|(_, block)| is(block))?;
                Some(Place::of_block(program, body, block))
            })
        })
    }

    /// Where bodies first hash the payload.
    pub(crate) fn of_payload(program: &Program, bodies: &[BodyId]) -> Option<Place> {
        let is = |inst: &Inst| matches!(inst, Inst::Hash { data, .. } if data.contains(&DataItem::Payload));
        Place::of_use(program, bodies, PAYLOAD, |block| block.insts.iter().any(is))
    }

    /// Where bodies first keep something from one packet to the next.
    pub(crate) fn of_memory(program: &Program, bodies: &[BodyId]) -> Option<(String, Place)> {
        let of = with_actions(program, bodies);
        let blocks =
            of.iter().filter_map(|body| program.bodies.get(*body)).flat_map(|body| body.blocks.values());
        let memory = blocks.flat_map(|block| &block.insts).find_map(memory_of)?;
        let name = match memory {
            Memory::Register(id) => program.registers[id].name.clone(),
            Memory::Meter(id) => program.meters[id].name.clone(),
            Memory::DirectMeter(id) => program.tables[id].name.clone(),
            Memory::Plugin(id) => program.plugins[id].name.clone(),
            Memory::Random => "random numbers".to_owned(),
            Memory::Messages => "digests and lines of the log".to_owned(),
        };
        let is = |inst: &Inst| memory_of(inst) == Some(memory);
        let place = Place::of_use(program, bodies, &name, |block| block.insts.iter().any(is))?;
        Some((name, place))
    }

    /// Where bodies first write a slot.
    pub(crate) fn of_write(program: &Program, bodies: &[BodyId], slot: SlotId) -> Option<Place> {
        let name = &program.slots[slot].name;
        Place::of_use(program, bodies, name, |block| block.insts.iter().any(|inst| inst.dst() == Some(slot)))
    }

    /// The first of some bodies that is of a kind.
    pub(crate) fn of_kind(program: &Program, bodies: &[BodyId], kind: BodyKind) -> Option<Place> {
        let mut bodies = bodies.iter().filter_map(|body| program.bodies.get(*body));
        bodies.find(|body| body.kind == kind).map(|body| Place::of_body(program, body))
    }
}

/// Bodies and, after them, the actions that they apply.
pub(crate) fn with_actions(program: &Program, bodies: &[BodyId]) -> Vec<BodyId> {
    let mut all: Vec<BodyId> = bodies.to_vec();
    let mut at = 0;
    while let Some(body) = all.get(at).and_then(|body| program.bodies.get(*body)) {
        at += 1;
        for block in body.blocks.values() {
            if let Terminator::Apply { table, .. } = &block.term {
                let actions = program.tables[*table].actions.iter();
                let new: Vec<BodyId> = actions
                    .map(|listed| program.actions[listed.action].body)
                    .filter(|of| !all.contains(of))
                    .collect();
                all.extend(new);
            }
        }
    }
    all
}

/// The slot that a body reads a slot of the switch by, and where.
pub(crate) fn read_as(program: &Program, bodies: &[BodyId], slot: SlotId) -> Option<(String, Place)> {
    let (told, uses) = (&program.slots[slot].name, uses(program));
    with_actions(program, bodies).iter().filter_map(|body| program.bodies.get(*body)).find_map(|body| {
        let begin = format!("{} {told} ", body.name);
        let (name, line) = uses.range(begin.as_str()..).next()?;
        let field = name.strip_prefix(&begin)?.to_owned();
        Some((field, Place { part: body.name.clone(), at: Some((line.file.clone(), line.line)) }))
    })
}

/// The body and the block of a program that a block of a control-flow graph comes from.
pub(crate) fn block_of<'a>(program: &'a Program, origin: &str) -> Option<(&'a Body, BlockId)> {
    let (body, block) = origin.rsplit_once('.')?;
    let block = BlockId::from_u32(block.strip_prefix("block")?.parse().ok()?);
    let body = program.bodies.values().find(|other| other.name == body)?;
    body.blocks.is_valid(block).then_some((body, block))
}

/// The state that a block of a parser is in: the one that starts there, or the first that leads there without another.
fn state_of(body: &Body, block: BlockId) -> Option<&str> {
    if let Some(state) = &body.blocks[block].state {
        return Some(state);
    }
    let mut seen = BTreeSet::new();
    for from in body.postorder().into_iter().rev() {
        let Some(state) = &body.blocks[from].state else { continue };
        let mut waiting = vec![from];
        while let Some(at) = waiting.pop() {
            if at == block {
                return Some(state);
            }
            body.blocks[at].term.for_each_successor(&mut |to| {
                if body.blocks[to].state.is_none() && seen.insert(to) {
                    waiting.push(to);
                }
            });
        }
    }
    None
}

fn line_of(program: &Program, kind: SourceKind, name: &str) -> Option<(String, u32)> {
    let line = program.source_lines.iter().find(|line| line.kind == kind && line.name == name)?;
    Some((line.file.clone(), line.line))
}

/// Where bodies make use of things.
fn uses(program: &Program) -> BTreeMap<&str, &SourceLine> {
    let lines = program.source_lines.iter().filter(|line| line.kind == SourceKind::Use);
    lines.map(|line| (line.name.as_str(), line)).collect()
}

/// Where any body first makes use of a thing.
fn used_anywhere(program: &Program, thing: &str) -> Option<(String, u32)> {
    let is_it = |line: &&SourceLine| {
        line.kind == SourceKind::Use && line.name.strip_suffix(thing).is_some_and(|body| body.ends_with(' '))
    };
    let line = program.source_lines.iter().find(is_it)?;
    Some((line.file.clone(), line.line))
}
