//! Clones of egress: a frame with the headers that it has before the deparser passes egress again, by the list of its session. It waits
//! in a queue of its own, before frames of ingress are copied; its bytes stay in their slot.

use super::again::{StartsAgain, Tagged, spent};
use super::build::{Top, role_of};
use super::clones::{FateClone, session_number};
use super::copies::Copy;
use super::fate::{Fate, length_now, limit, starts_at_clones, width_of};
use super::lists::PLACES;
use super::shape::Shape;
use super::stages::From;
use super::waiting::Queue;
use crate::stage::{Input, Output};
use millrace_netlist::{ModuleBuilder, NodeId};
use millrace_pipeline::{Intrinsic, PacketPath, SlotId};

/// Where clones of egress wait for their copies.
pub(super) struct ClonesWait {
    queue: Queue,
    depth: u32,
    /// There are some, and the first one.
    pub(super) some: NodeId,
    pub(super) first: NodeId,
    /// There is room for a clone of each frame in egress and on its way there, and for one more.
    pub(super) has_room: NodeId,
    /// The first one goes.
    pub(super) takes: NodeId,
    /// One has all its copies, and the bank that it meets.
    pub(super) done: NodeId,
    pub(super) of_bank: NodeId,
}

/// The queue of clones, if egress asks for any; `widths` are the bits of the parts of a fate.
pub(super) fn wait_for_copies(top: &mut Top<'_>, widths: &[u32]) -> Option<ClonesWait> {
    if !top.shape.features.clones_egress {
        return None;
    }
    let in_egress = top.egress.stage.placed.latency + 4 + PLACES;
    let m = &mut top.m;
    let depth = (2 * in_egress).next_power_of_two().max(64);
    let queue = Queue::new(m, ("clones_to_copy", "clone"), widths.iter().sum(), depth);
    let most = m.number(m.width(queue.length), u128::from(depth - in_egress));
    let has_room = m.lt(queue.length, most);
    let no = m.number(1, 0);
    let (some, first, takes, done, of_bank) = (queue.some, queue.oldest, no, no, no);
    Some(ClonesWait { queue, depth, some, first, has_room, takes, done, of_bank })
}

/// A clone that egress has asked for.
pub(super) struct Cloned {
    /// It waits for its copies.
    pub(super) kept: NodeId,
    /// The same, when the frame leaves that it is a clone of.
    pub(super) kept_with_frame: NodeId,
    /// There was no room for it.
    pub(super) lost: NodeId,
    pub(super) bank: NodeId,
    /// The port that its frame came in by first.
    pub(super) from: NodeId,
}

impl ClonesWait {
    /// Adds the clone that egress asks for, `waits` cycles before its frame leaves; gives what becomes of it.
    pub(super) fn push(
        &self,
        m: &mut ModuleBuilder,
        (wants, fate): (NodeId, &mut Fate),
        (waits, from): (u32, NodeId),
    ) -> Cloned {
        let full = m.is(self.queue.length, self.depth.into());
        let room = m.not(full);
        let (kept, lost) = (m.and(wants, room), m.and(wants, full));
        let values: Vec<NodeId> = fate.parts().into_iter().map(|part| *part).collect();
        let word = m.concat(&values);
        self.queue.connect(m, (kept, word), self.takes);
        let kept_with_frame = crate::parts::later(m, "clone_kept", kept, waits, Some(0));
        Cloned { kept, kept_with_frame, lost, bank: fate.header.bank, from }
    }
}

impl Fate {
    /// The clone that egress asks for of a copy, which has what stages after ingress were given.
    pub(super) fn of_egress(top: &mut Top<'_>, copy: &Copy, valid: NodeId) -> Option<Fate> {
        let before = top.tag_of(&copy.header)?;
        let session = asked(top, copy, Intrinsic::CloneSession);
        let list = asked(top, copy, Intrinsic::CloneList);
        let after = top.after_stage(From::Egress, |_, at, _| copy.kept.get(at).copied());
        let values = top.kept_by(list, &after);
        let is_spent = top.is_spent(&before);
        let mut kept = Vec::new();
        for (input, width) in top.carried() {
            let value = of_clone(top, copy, input, &values);
            let value = value.unwrap_or_else(|| top.m.number(width, 0));
            kept.push((input, top.m.resize(value, width)));
        }
        let truncate = top.program.intrinsics.get(Intrinsic::Truncate);
        let truncate = truncate.and_then(|slot| restored(top, slot, &values));
        let class_bits = top.shape.class_bits();
        let both = top.shape.features.clones_ingress;
        let tag = top.again.clone()?;
        let m = &mut top.m;
        let most = match truncate {
            Some(asked) => limit(m, asked),
            None => m.number(Shape::LENGTH, u128::from(Shape::NO_LIMIT)),
        };
        let passes = m.add_number(before.passes, 1);
        let path = m.number(m.width(before.path), PacketPath::EgressClone as u128);
        let tagged = Tagged { path, passes, values: values.clone(), ..before };
        let header = super::build::Header { valid, tag: Some(tagged.word(m)), ..copy.header };
        let mut zero = |width: u32| m.number(width, 0);
        let ports = [Intrinsic::MulticastGroup, Intrinsic::EgressPorts, Intrinsic::EgressSpec];
        let [group, ports, port] = ports.map(|role| zero(width_of(role.ty())));
        let (class, emitted, no, yes) = (zero(class_bits), [zero(4); 3], zero(1), m.number(1, 1));
        let values_of_clone = match both {
            true => tag.slots.iter().map(|(_, width)| m.number(*width, 0)).collect(),
            false => Vec::new(),
        };
        let clone = FateClone {
            asks: no,
            is_clone: yes,
            of_egress: yes,
            session: session_number(m, session),
            values: values_of_clone,
            parsed: copy.clone.as_ref().and_then(|clone| clone.parsed),
        };
        Some(Fate {
            header,
            reason: spent(m, is_spent),
            group,
            ports,
            port,
            class,
            emitted,
            kept,
            again: Some(StartsAgain { asks: no, values }),
            clone: Some(clone),
            most: Some(most),
        })
    }
}

/// What egress asks the switch for.
fn asked(top: &mut Top<'_>, copy: &Copy, role: Intrinsic) -> NodeId {
    let slot = top.program.intrinsics.get(role);
    let value = slot.and_then(|slot| after_egress(top, copy, Input::Slot(slot)));
    let width = width_of(role.ty());
    match value {
        Some(value) => top.m.resize(value, width),
        None => top.m.number(width, 0),
    }
}

/// What the input of a stage is after egress: what egress says, or was given.
pub(super) fn after_egress(top: &mut Top<'_>, copy: &Copy, input: Input) -> Option<NodeId> {
    let output = match input {
        Input::Length => return Some(copy.header.length),
        Input::Now => return Some(copy.header.time),
        Input::Rest(_) | Input::Parameters(_) => return None,
        Input::Cursor => Output::Cursor,
        Input::Valid(header) => Output::Valid(header),
        Input::SlotLength(slot) => Output::SlotLength(slot),
        Input::Slot(slot) => Output::Slot(slot),
    };
    let given = || copy.given.iter().find(|(other, _)| *other == input).map(|(_, value)| *value);
    top.output_by(From::Egress, output).or_else(given)
}

/// The value of a slot that a list keeps.
fn restored(top: &Top<'_>, slot: SlotId, values: &[NodeId]) -> Option<NodeId> {
    values.get(top.again.as_ref()?.place(slot)?).copied()
}

/// What a clone has for an input of the stages after ingress.
fn of_clone(top: &mut Top<'_>, copy: &Copy, input: Input, values: &[NodeId]) -> Option<NodeId> {
    let slot = match input {
        Input::Now => return Some(top.now),
        Input::Slot(slot) => slot,
        other => return after_egress(top, copy, other),
    };
    match role_of(top.program, slot) {
        Some(Intrinsic::IngressPort) => {
            let origin = top.tag_of(&copy.header)?.origin;
            return Some(top.shape.number_of(&mut top.m, origin));
        }
        Some(Intrinsic::IngressTimestamp) => return Some(copy.header.time),
        Some(Intrinsic::PacketLength) => {
            let parsed = copy.clone.as_ref()?.parsed?;
            return length_now(top, (copy.header.length, parsed), |top, input| {
                after_egress(top, copy, input)
            });
        }
        _ => {}
    }
    match starts_at_clones(top, slot) {
        true => restored(top, slot, values),
        false => after_egress(top, copy, input),
    }
}
