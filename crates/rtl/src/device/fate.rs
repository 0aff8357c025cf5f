//! What ingress says of a frame, and what of it egress is given.

use super::again::{StartsAgain, spent};
use super::build::{Header, Top, role_of};
use super::clones::FateClone;
use super::facts::needed;
use super::shape::Shape;
use super::stages::{From, Placed};
use super::{CLASS_BITS, Reason};
use crate::stage::{Input, Output};
use millrace_midend::Verdict;
use millrace_netlist::{ModuleBuilder, NodeId};
use millrace_pipeline::{Home, Intrinsic, SlotId, Type};

/// What ingress says of a frame.
#[derive(Clone)]
pub(super) struct Fate {
    pub(super) header: Header,
    /// A [`Reason`] to drop it.
    pub(super) reason: NodeId,
    pub(super) group: NodeId,
    /// A bit for each port, of as many as there may be; 0: not asked for.
    pub(super) ports: NodeId,
    pub(super) port: NodeId,
    pub(super) class: NodeId,
    /// Headers that egress emits itself have none here.
    pub(super) emitted: [NodeId; 3],
    /// The inputs of later stages that come from ingress.
    pub(super) kept: Vec<(Input, NodeId)>,
    /// Whether it is resubmitted. Of a frame that is, what its tag keeps of the metadata; of others what ingress left there.
    pub(super) again: Option<StartsAgain>,
    pub(super) clone: Option<FateClone>,
    /// The most bytes that the program lets it have; none: no frame is cut.
    pub(super) most: Option<NodeId>,
}

impl Fate {
    pub(super) fn of(top: &mut Top<'_>, header: Header) -> Fate {
        let verdict = reason_by(top, From::Ingress);
        let mut clone = FateClone::of_ingress(top, &header);
        let is_clone = clone.as_ref().map(|clone| clone.is_clone);
        let group = asked_in_short(top, Intrinsic::MulticastGroup, &header);
        let ports = asked_in_short(top, Intrinsic::EgressPorts, &header);
        let port = asked_in_short(top, Intrinsic::EgressSpec, &header);
        let priority = asked(top, Intrinsic::Priority, &header);
        let drop = asked(top, Intrinsic::Drop, &header);
        let again = resubmission(top, &header, is_clone);
        let m = &mut top.m;
        let none = m.is(group, 0);
        let drops = m.and(none, drop);
        let (dropped, no) = (m.number(4, Reason::IngressDrop as u128), m.number(4, 0));
        let of_program = m.mux(drops, dropped, no);
        let fine = m.is(verdict, 0);
        let of_program = match &again {
            Some((asks, reason, _)) => m.mux(*asks, *reason, of_program),
            None => of_program,
        };
        let mut reason = m.mux(fine, of_program, verdict);
        if let Some(clone) = &mut clone {
            clone.asks = m.and(clone.asks, fine);
            let of_parser = reason_by(top, From::Parser);
            reason = top.m.mux(clone.is_clone, of_parser, reason);
        }
        let m = &mut top.m;
        let highest = m.number(CLASS_BITS, u128::from(top.shape.highest_class()));
        let above = m.lt(highest, priority);
        let class = m.mux(above, highest, priority);
        let class = m.slice(class, 0, top.shape.class_bits());
        let emitted = match top.egress.stage.may_say(Output::Deparsed) || top.tail.is_some() {
            true => [no; 3],
            false => emitted(top, From::Ingress, is_clone),
        };
        let kept = kept(top, &header, is_clone);
        let again = again.map(|(asks, why, values)| {
            let m = &mut top.m;
            let may = m.is(why, 0);
            StartsAgain { asks: m.all(&[asks, may, fine]), values }
        });
        let most = top.shape.features.cuts.then(|| most(top, &header, is_clone));
        Fate { header, reason, group, ports, port, class, emitted, kept, again, clone, most }
    }

    /// All of it but whether it is there. What egress needs of the time is among what is kept: the header's is for frames with tags.
    pub(super) fn parts(&mut self) -> Vec<&mut NodeId> {
        let Header { valid: _, port, slot, length, time, bank, tag } = &mut self.header;
        let mut all = vec![bank, port, slot, length, &mut self.reason, &mut self.group];
        all.extend(tag.is_some().then_some(time));
        all.extend([&mut self.ports, &mut self.port, &mut self.class]);
        all.extend(&mut self.emitted);
        all.extend(self.kept.iter_mut().map(|(_, value)| value));
        all.extend(tag);
        all.extend(&mut self.most);
        if let Some(StartsAgain { asks, values }) = &mut self.again {
            all.push(asks);
            all.extend(values);
        }
        if let Some(FateClone { asks, is_clone, of_egress, session, values, parsed }) = &mut self.clone {
            all.extend([asks, is_clone, of_egress, session]);
            all.extend(parsed);
            all.extend(values);
        }
        all
    }

    /// The same with other values.
    pub(super) fn with(&self, valid: NodeId, values: &[NodeId]) -> Fate {
        let mut other = self.clone();
        other.header.valid = valid;
        other.parts().into_iter().zip(values).for_each(|(part, value)| *part = *value);
        other
    }
}

/// What ingress asks the switch for.
pub(super) fn asked(top: &mut Top<'_>, role: Intrinsic, header: &Header) -> NodeId {
    let width = width_of(role.ty());
    let Some(slot) = top.program.intrinsics.get(role) else { return top.m.number(width, 0) };
    let value = top.output_by(From::Ingress, Output::Slot(slot));
    match value.or_else(|| top.before_ingress(slot, header)) {
        Some(value) => top.m.resize(value, width),
        None => top.m.number(width, 0),
    }
}

/// The same without the highest bits that are never 1, where nothing goes with frames that start again; at least a bit.
fn asked_in_short(top: &mut Top<'_>, role: Intrinsic, header: &Header) -> NodeId {
    let slot = top.program.intrinsics.get(role).filter(|_| header.tag.is_none());
    let value = slot.and_then(|slot| top.ingress.output_in_short(&mut top.m, Output::Slot(slot)));
    let value = value.unwrap_or_else(|| asked(top, role, header));
    let is_nothing = top.m.as_constant(value).is_some_and(|bits| bits.is_zero());
    if is_nothing && header.tag.is_none() { top.m.number(1, 0) } else { value }
}

/// Whether a frame asks to be resubmitted, why it may not, and what its tag keeps.
fn resubmission(
    top: &mut Top<'_>,
    header: &Header,
    is_clone: Option<NodeId>,
) -> Option<(NodeId, NodeId, Vec<NodeId>)> {
    let tag = top.tag_of(header)?;
    let asks = asked(top, Intrinsic::Resubmit, header);
    let list = asked(top, Intrinsic::ResubmitList, header);
    let after = top.after_stage(From::Ingress, |top, _, slot| top.before_ingress(slot, header));
    let kept = top.kept_by(list, &after);
    let is_spent = top.is_spent(&tag);
    let m = &mut top.m;
    let reason = spent(m, is_spent);
    let asks = match is_clone {
        Some(is_clone) => {
            let other = m.not(is_clone);
            m.and(asks, other)
        }
        None => asks,
    };
    let values = kept.iter().zip(after).zip(tag.values).map(|((kept, after), restored)| {
        let of_ingress = m.mux(asks, *kept, after);
        is_clone.map_or(of_ingress, |is_clone| m.mux(is_clone, restored, of_ingress))
    });
    let values = values.collect();
    Some((asks, reason, values))
}

/// The most bytes that a frame may have by what a program asks for; 0 is nothing.
pub(super) fn limit(m: &mut ModuleBuilder, asked: NodeId) -> NodeId {
    let most = m.number(m.width(asked).max(Shape::LENGTH), u128::from(Shape::NO_LIMIT));
    let asked = m.resize(asked, m.width(most));
    let (none, above) = (m.is(asked, 0), m.lt(most, asked));
    let unlimited = m.or(none, above);
    let bytes = m.mux(unlimited, most, asked);
    m.slice(bytes, 0, Shape::LENGTH)
}

fn most(top: &mut Top<'_>, header: &Header, is_clone: Option<NodeId>) -> NodeId {
    let of_ingress = asked(top, Intrinsic::Truncate, header);
    let of_ingress = limit(&mut top.m, of_ingress);
    let Some(is_clone) = is_clone else { return of_ingress };
    let slot = top.program.intrinsics.get(Intrinsic::Truncate);
    let restored = slot.and_then(|slot| top.restored(slot, header));
    let m = &mut top.m;
    let of_clone = match restored {
        Some(asked) => limit(m, asked),
        None => m.number(Shape::LENGTH, u128::from(Shape::NO_LIMIT)),
    };
    m.mux(is_clone, of_clone, of_ingress)
}

/// The new headers that a stage says, their bytes, and the byte of the frame that follows them. A clone is the frame as it came.
pub(super) fn emitted(top: &mut Top<'_>, from: From, is_clone: Option<NodeId>) -> [NodeId; 3] {
    let (deparsed, bits) = (top.said_by(from, Output::Deparsed, 1), top.said_by(from, Output::Emitted, 8));
    let lengths = [Output::EmittedLength, Output::PayloadFrom].map(|output| top.said_by(from, output, 32));
    let (m, shape) = (&mut top.m, top.shape);
    let place = shape.editor().place();
    let bits = left_fit(m, vec![bits], shape.emitted_bits());
    let counts = match is_clone {
        Some(is_clone) => {
            let other = m.not(is_clone);
            m.and(deparsed, other)
        }
        None => deparsed,
    };
    let [length, from] = lengths.map(|value| {
        let value = m.slice(value, 3, place);
        let zero = m.number(place, 0);
        m.mux(counts, value, zero)
    });
    [bits, length, from]
}

/// Parts one after the other, filled up with zeros to a width.
pub(super) fn left_fit(m: &mut ModuleBuilder, mut parts: Vec<NodeId>, width: u32) -> NodeId {
    let has: u32 = parts.iter().map(|part| m.width(*part)).sum();
    if has < width {
        parts.push(m.number(width - has, 0));
    }
    m.concat(&parts)
}

/// What a verdict that is no other than to send the frame means for it.
const VERDICTS: [(Verdict, Reason); 5] = [
    (Verdict::IngressDrop, Reason::IngressDrop),
    (Verdict::EgressDrop, Reason::EgressDrop),
    (Verdict::ParserError, Reason::ParserError),
    (Verdict::Assert, Reason::Assert),
    (Verdict::StepLimit, Reason::StepLimit),
];

/// Why a stage drops the frame, as a [`Reason`].
pub(super) fn reason_by(top: &mut Top<'_>, from: From) -> NodeId {
    let verdict = top.said_by(from, Output::Verdict, 4);
    let (Some(stage), m) = top.placed(from) else { return verdict };
    let choices: Vec<(NodeId, NodeId)> = VERDICTS
        .iter()
        .filter(|(number, _)| stage.may_be(Output::Verdict, *number as u64))
        .map(|(number, reason)| (m.is(verdict, *number as u128), m.number(4, *reason as u128)))
        .collect();
    m.one_hot(4, &choices)
}

/// Whether a frame may be dropped for that reason.
pub(super) fn may_drop(top: &Top<'_>, reason: Reason) -> bool {
    let (starts_again, clones) = (top.again.is_some(), top.shape.features.clones());
    let stages = [&top.ingress, &top.egress];
    let mut verdicts = VERDICTS.iter().filter(|(_, of)| *of == reason);
    let by_verdict =
        verdicts.any(|(number, _)| stages.iter().any(|of| of.may_be(Output::Verdict, *number as u64)));
    let by_program = |of: &Placed<'_>| of.stage.asks(top.program, Intrinsic::Drop);
    match reason {
        Reason::RecirculationLimit => starts_again,
        Reason::NoCloneSession => clones,
        // What a tag keeps, the parser of clones and the rest of egress may have it dropped, too.
        _ if starts_again || clones || by_verdict => true,
        Reason::IngressDrop => by_program(&top.ingress),
        Reason::EgressDrop => by_program(&top.egress),
        Reason::NoMulticastGroup | Reason::EmptyMulticastGroup => top.shape.headers.has_groups,
        Reason::UnknownPort | Reason::PortDisabled | Reason::QueueFull => true,
        _ => false,
    }
}

pub(super) fn width_of(ty: Type) -> u32 {
    match ty {
        Type::Bool => 1,
        Type::Bits(width) | Type::Varbit(width) => width,
    }
}

/// What of ingress later stages need; of a clone, of its parser.
fn kept(top: &mut Top<'_>, header: &Header, is_clone: Option<NodeId>) -> Vec<(Input, NodeId)> {
    let mut kept = Vec::new();
    for (input, width) in top.carried() {
        let of_ingress = after_ingress(top, From::Ingress, input, header);
        let of_clone = is_clone.and_then(|_| after_ingress(top, From::Parser, input, header));
        let value = match (is_clone, of_ingress, of_clone) {
            // Clones of egress may have there what frames of ingress have not.
            (_, None, None) if top.shape.features.clones_egress => top.m.number(width, 0),
            (_, None, None) => continue,
            (None, Some(value), _) => value,
            (_, of_ingress, of_clone) => {
                let m = &mut top.m;
                let mut sized = |value: Option<NodeId>| match value {
                    Some(value) => m.resize(value, width),
                    None => m.number(width, 0),
                };
                let (of_clone, of_ingress) = (sized(of_clone), sized(of_ingress));
                is_clone.map_or(of_ingress, |is_clone| m.mux(is_clone, of_clone, of_ingress))
            }
        };
        kept.push((input, top.m.resize(value, width)));
    }
    kept
}

/// What an input of a later stage is after ingress or the parser of a clone; none: that is told of each copy, or is 0.
fn after_ingress(top: &mut Top<'_>, from: From, input: Input, header: &Header) -> Option<NodeId> {
    match input {
        Input::Length => Some(header.length),
        Input::Now => Some(header.time),
        Input::Rest(_) | Input::Parameters(_) => None,
        Input::Cursor => Some(top.said_by(from, Output::Cursor, 32)),
        Input::Valid(of) => Some(top.said_by(from, Output::Valid(of), 1)),
        Input::SlotLength(slot) => Some(top.said_by(from, Output::SlotLength(slot), 32)),
        Input::Slot(slot) => slot_after_ingress(top, from, slot, header),
    }
}

fn slot_after_ingress(top: &mut Top<'_>, from: From, slot: SlotId, header: &Header) -> Option<NodeId> {
    let role = role_of(top.program, slot);
    if role == Some(Intrinsic::PacketLength) {
        return length_of_stage(top, from, header);
    }
    if top.program.reset_at_egress.contains(&slot) || role.is_some_and(is_told_of_copies) {
        return None;
    }
    if from == From::Parser && starts_at_clones(top, slot) {
        return top.restored(slot, header);
    }
    let written = top.output_by(from, Output::Slot(slot));
    let told = from == From::Ingress || role.is_some();
    written.or_else(|| top.before_ingress(slot, header).filter(|_| told))
}

/// Whether a slot starts again in a clone, but for what a list keeps.
pub(super) fn starts_at_clones(top: &Top<'_>, slot: SlotId) -> bool {
    let staying = [Intrinsic::IngressPort, Intrinsic::IngressTimestamp, Intrinsic::ParserError];
    let program = top.program;
    program.slots[slot].home == Home::Metadata
        && !staying.iter().any(|role| program.intrinsics.get(*role) == Some(slot))
        && !program.stacks.values().any(|stack| stack.next == slot)
}

/// Whether egress finds something else in a slot of that role than what ingress left.
pub(super) fn is_told_of_copies(role: Intrinsic) -> bool {
    matches!(
        role,
        Intrinsic::Drop
            | Intrinsic::Clone
            | Intrinsic::CloneSession
            | Intrinsic::CloneList
            | Intrinsic::Recirculate
            | Intrinsic::RecirculateList
            | Intrinsic::PacketPath
            | Intrinsic::EgressPort
            | Intrinsic::EgressRid
            | Intrinsic::EnqueueTimestamp
            | Intrinsic::EnqueueDepth
            | Intrinsic::QueueDelay
            | Intrinsic::DequeueDepth
            | Intrinsic::QueueId
            | Intrinsic::EgressTimestamp
    )
}

/// The bytes of the frame after ingress or the parser of a clone.
fn length_of_stage(top: &mut Top<'_>, from: From, header: &Header) -> Option<NodeId> {
    let parsed = top.said_by(from, Output::ParsedBits, 32);
    let before = top.m.shr_by(parsed, 3);
    let said = |top: &mut Top<'_>, input: Input| match input {
        Input::Valid(of) => Some(top.said_by(from, Output::Valid(of), 1)),
        Input::SlotLength(slot) => Some(top.said_by(from, Output::SlotLength(slot), 32)),
        _ => None,
    };
    length_now(top, (header.length, before), said)
}

/// The bytes of a frame of that length, of which so many were headers when it was parsed, with the headers that are valid now. `said` has
/// which are, and the bits of fields of varying length.
pub(super) fn length_now(
    top: &mut Top<'_>,
    (length, before): (NodeId, NodeId),
    said: impl Fn(&mut Top<'_>, Input) -> Option<NodeId>,
) -> Option<NodeId> {
    let mut bits = top.m.number(32, 0);
    for (id, of) in &top.program.headers {
        let valid = said(top, Input::Valid(id))?;
        let mut own = top.m.number(32, 0);
        for slot in &of.fields {
            let Home::Header { .. } = top.program.slots[*slot].home else { continue };
            let width = match top.program.slots[*slot].ty {
                Type::Varbit(_) => said(top, Input::SlotLength(*slot))?,
                ty => top.m.number(32, u128::from(width_of(ty))),
            };
            own = top.m.add(own, width);
        }
        let m = &mut top.m;
        let zero = m.number(32, 0);
        let own = m.mux(valid, own, zero);
        bits = m.add(bits, own);
    }
    let m = &mut top.m;
    let now = m.shr_by(bits, 3);
    let (length, before) = (m.resize(length, 32), m.resize(before, 32));
    let more = m.add(length, now);
    let short = m.lt(more, before);
    let (zero, rest) = (m.number(32, 0), m.sub(more, before));
    Some(m.mux(short, zero, rest))
}

impl Top<'_> {
    /// The inputs of the stages after ingress, each once, with their bits.
    pub(super) fn carried(&self) -> Vec<(Input, u32)> {
        let mut all: Vec<(Input, u32)> = Vec::new();
        for placed in [Some(&self.egress), self.tail.as_ref()].into_iter().flatten() {
            let inputs = &placed.stage.dataflow.inputs;
            let needed = needed(placed.stage).into_iter().map(|at| inputs[at]);
            let new = needed.filter(|(input, _)| !all.iter().any(|(other, _)| other == input));
            let new: Vec<(Input, u32)> = new.collect();
            all.extend(new);
        }
        if self.shape.features.clones_egress {
            // The length of a clone has those of all headers.
            let fields = self.program.headers.values().flat_map(|header| &header.fields);
            let varbits = fields.filter(|slot| matches!(self.program.slots[**slot].ty, Type::Varbit(_)));
            let lengths = varbits.map(|slot| (Input::SlotLength(*slot), 32));
            let new = lengths.filter(|(input, _)| !all.iter().any(|(other, _)| other == input));
            let new: Vec<(Input, u32)> = new.collect();
            all.extend(new);
        }
        all
    }
}
