//! What of a program no device does, and where the program asks for it.

use super::facts::needed;
use crate::assemble::View;
use crate::emit::object;
use crate::hardware::{Hardware, Part, Stage};
use crate::place::{Place, read_as};
use crate::refusal::{Construct, Refusal};
use crate::stage::{Input, ObjectKey, Output};
use millrace_midend::Verdict;
use millrace_midend::order::{Order, may_set, read_of_queues};
use millrace_pipeline::{Block, BodyId, BodyKind, HashId, Inst, Intrinsic, Program};

/// The bodies of a stage.
fn bodies_of(program: &Program, part: Part) -> &[BodyId] {
    match part {
        Part::Ingress | Part::Parser => &program.ingress,
        Part::Egress | Part::Tail(_) => &program.egress,
    }
}

/// What of a program no device does.
pub(super) fn check_program(program: &Program, queues: u32) -> Result<(), Refusal> {
    if let Some(slot) = program.intrinsics.get(Intrinsic::SendTime)
        && may_set(program, Intrinsic::SendTime)
    {
        let place = Place::of_write(program, &program.ingress, slot);
        return Err(Refusal::of_device("packets that wait for a time".to_owned(), place));
    }
    if program.deparse_at_ingress && !program.egress.is_empty() {
        let place = Place::of_kind(program, &program.egress, BodyKind::Parser);
        return Err(Refusal::of_device("a parser in egress".to_owned(), place));
    }
    if let Some(role) = read_of_queues(program) {
        return Err(looks_at_queues(program, role));
    }
    // Frames pass egress before their queue: in the order in which they leave it, if a port has one queue.
    if Order::of(program).egress_waits && queues > 1 {
        let memory = Place::of_memory(program, &program.egress);
        let what = memory.as_ref().map_or(String::new(), |(name, _)| format!(" ({name})"));
        let why = format!(
            "an egress that looks at what earlier packets have left{what}, with more than one queue a port"
        );
        return Err(Refusal::of_device(why, memory.map(|(_, place)| place)));
    }
    Ok(())
}

/// A program that looks at what queues tell, or at the time: at which field of its metadata, and where first.
fn looks_at_queues(program: &Program, role: Intrinsic) -> Refusal {
    let bodies: Vec<BodyId> = program.egress.iter().chain(&program.ingress).copied().collect();
    let slot = program.intrinsics.get(role);
    let (field, place) = match slot.and_then(|slot| read_as(program, &bodies, slot)) {
        Some((field, place)) => (field, Some(place)),
        None => {
            let reads = |block: &Block| {
                let mut found = false;
                block.for_each_expr(&mut |expr| expr.for_each_read(&mut |read| found |= Some(read) == slot));
                found
            };
            let name = slot.map_or(role.name(), |slot| &program.slots[slot].name);
            (name.to_owned(), Place::of_use(program, &bodies, name, reads))
        }
    };
    let what = if role == Intrinsic::EgressTimestamp { "at the time" } else { "at queues" };
    Refusal::of_device(format!("an egress that looks {what} ({field})"), place)
}

/// What of a stage no device does.
pub(super) fn check_stage(hardware: &Hardware, stage: &Stage) -> Result<(), Refusal> {
    let program = &*hardware.program;
    let bodies = bodies_of(program, stage.part);
    let design = hardware.design(stage, View::InDevice);
    let top = design.top().map(|top| &design.modules[top]);
    for (access, ports) in stage.dataflow.accesses.iter().zip(&stage.ports.accesses) {
        let asks =
            ports.answer.as_ref().is_some_and(|port| top.is_some_and(|top| top.input_named(port).is_some()));
        let key = access.unit.object();
        if asks && !hardware.shared.has(key) {
            let name = object(program, &access.unit);
            let why = hardware.no_unit(stage, key).map_or("it has no unit".to_owned(), |why| why.to_string());
            let why = format!("{} {name}, as {why}", access.unit.kind());
            return Err(Refusal::of_device(why, Some(Place::of_name(program, name))));
        }
    }
    let verdict = stage.dataflow.output(Output::Verdict);
    let verdicts = verdict.and_then(|wire| stage.dataflow.graph.values(wire)).unwrap_or(&[]);
    if verdicts.contains(&(Verdict::Plugin as u64)) {
        return Err(Refusal::of_device("what a plugin has dropped".to_owned(), None));
    }
    for at in needed(stage) {
        match stage.dataflow.inputs[at].0 {
            Input::Rest(_) => {
                let why = "a hash or checksum over the payload".to_owned();
                return Err(Refusal::of_device(why, Place::of_payload(program, bodies)));
            }
            Input::Parameters(hash) => return Err(own_hash(program, bodies, hash)),
            _ => {}
        }
    }
    if stage.part == Part::Egress && stage.ports.window > 0 {
        let place = Place::of_kind(program, bodies, BodyKind::Parser);
        return Err(Refusal::of_device("an egress that reads the frame".to_owned(), place));
    }
    Ok(())
}

/// A hash whose parameters the control plane sets.
fn own_hash(program: &Program, bodies: &[BodyId], hash: HashId) -> Refusal {
    let name = &program.hashes[hash].name;
    let is = |inst: &Inst| matches!(inst, Inst::Hash { own: Some(own), .. } if *own == hash);
    let place = Place::of_use(program, bodies, name, |block| block.insts.iter().any(is));
    Refusal::of_device(format!("the hash {name}, whose parameters the control plane sets"), place)
}

/// Whether new headers and what follows them are whole bytes. Egress goes on where the cursor of ingress has come to.
pub(super) fn check_bytes(program: &Program, ingress: &Stage, egress: &Stage) -> Result<(), Refusal> {
    let whole = |stage: &Stage, output: Output| {
        let (graph, mut outputs) = (&stage.dataflow.graph, stage.dataflow.outputs.iter());
        outputs.find(|(of, _)| *of == output).is_none_or(|(_, wire)| graph.zero_bits(*wire) >= 3)
    };
    let lengths = [ingress, egress].map(|stage| whole(stage, Output::EmittedLength));
    let cursor = whole(ingress, Output::Cursor);
    let of_egress = cursor || whole(egress, Output::PayloadFrom);
    let bodies = match lengths {
        [true, true] if of_egress && whole(ingress, Output::PayloadFrom) => return Ok(()),
        [false, _] => Place::of_kind(program, &program.ingress, BodyKind::Deparser),
        [_, false] => Place::of_kind(program, &program.egress, BodyKind::Deparser),
        _ => Place::of_kind(program, &program.ingress, BodyKind::Parser),
    };
    Err(Refusal::of_device("headers that are not whole bytes".to_owned(), bodies))
}

/// Whether each object that frames change has one unit: within its stage, or for ingress and egress together. Other stages, the parser of
/// clones and what is left of egress after a clone, take each frame that comes, so nothing can keep them apart from others.
pub(super) fn check_shared(hardware: &Hardware, program: &Program) -> Result<(), Refusal> {
    if let Err(Refusal { construct, part, place }) = hardware.check_shared() {
        return Err(Refusal { construct: Construct::Device(construct.to_string()), part, place });
    }
    let waits = |number: &usize| matches!(hardware.stages[*number].part, Part::Ingress | Part::Egress);
    let other = hardware.shared.objects.iter().find(|shared| !shared.stages.iter().all(waits));
    match other.and_then(|shared| Some((shared, &shared.unit.slots.first()?.unit))) {
        Some((shared, unit)) => {
            let stages = hardware.names(&shared.stages).join(" and ");
            let name = object(program, unit);
            let why = format!("{} {name}, which {stages} use", unit.kind());
            Err(Refusal::of_device(why, Some(Place::of_name(program, name))))
        }
        None => Ok(()),
    }
}

/// Whether the parser of clones has what a device does not do.
pub(super) fn check_parser(program: &Program, parser: &Stage, ingress: &Stage) -> Result<(), Refusal> {
    let place = || Place::of_kind(program, &program.ingress, BodyKind::Parser);
    let mut objects = parser.objects.iter();
    if let Some(unit) = objects.find(|unit| !matches!(unit.key, ObjectKey::ValueSet(_) | ObjectKey::Hash(_)))
    {
        return Err(Refusal::of_device(format!("clones whose parser asks {}", unit.name), place()));
    }
    match parser.placed.latency > ingress.placed.latency {
        true => Err(Refusal::of_device("clones whose parser takes longer than ingress".to_owned(), place())),
        false => Ok(()),
    }
}
