//! Copies through egress, and what is sent of them.

use super::Reason;
use super::again::{StartsAgain, spent};
use super::build::Top;
use super::clones_of_egress::{Cloned, ClonesWait, after_egress};
use super::copies::Copy;
use super::fate::{Fate, emitted, limit, reason_by};
use super::shape::Shape;
use super::stages::From;
use crate::parts::later;
use crate::stage::Output;
use millrace_midend::Verdict;
use millrace_netlist::{ModuleBuilder, NodeId};
use millrace_pipeline::Intrinsic;
use std::collections::BTreeMap;

/// A copy after egress.
pub(super) struct Leaving {
    pub(super) copy: Copy,
    /// A [`Reason`] to drop it.
    pub(super) reason: NodeId,
    /// It goes to its queue.
    pub(super) goes: NodeId,
    /// The port that it was for in egress, and whether there is such a port and it came there.
    pub(super) to: NodeId,
    pub(super) has_port: NodeId,
    pub(super) emitted: NodeId,
    pub(super) emitted_bytes: NodeId,
    pub(super) payload_from: NodeId,
    /// What it takes of the link, where the length is known.
    pub(super) bytes: NodeId,
    /// How it starts again; none: no frame does.
    pub(super) again: Option<StartsAgain>,
    /// The most bytes that it may have; none: no frame is cut.
    pub(super) most: Option<NodeId>,
    /// The clone that egress has asked for; none: it asks for none.
    pub(super) cloned: Option<Cloned>,
}

pub(super) fn leave(top: &mut Top<'_>, copy: Copy, clones: Option<&ClonesWait>) -> Leaving {
    let stage = top.egress.stage;
    let m = &mut top.m;
    let mut given: BTreeMap<String, NodeId> = BTreeMap::new();
    let fine = m.is(copy.reason, 0);
    let mut enters = vec![copy.header.valid, fine];
    if let Some(starts) = copy.starts {
        enters.push(m.not(starts));
    }
    let enters = m.all(&enters);
    given.insert("valid".to_owned(), enters);
    given.insert(top.bank_input.clone(), copy.header.bank);
    for ((input, width), port) in stage.dataflow.inputs.iter().zip(&stage.ports.inputs) {
        let value = copy.given.iter().find(|(other, _)| other == input).map(|(_, value)| *value);
        given.insert(port.clone(), value.unwrap_or_else(|| m.number(*width, 0)));
    }
    top.egress.connect(m, &given);
    let ready = top.egress.ready(m);
    let valid = m.and(copy.header.valid, ready);
    let mut copy = copy.later(m, "egress", valid, stage.placed.latency);
    let mut ended = Ended::of(top, From::Egress, &copy, None);
    let mut cloned = None;
    if let Some(clones) = clones {
        (copy, cloned) = clone(top, clones, copy, &mut ended);
    }
    let again = starts_again(top, &copy, &ended);
    let reason = reason(top, &copy, &ended, again.as_ref());
    let m = &mut top.m;
    let to = copy.port;
    let mut has_port = vec![copy.is_port, m.is(copy.reason, 0)];
    if let Some((_, again)) = &again {
        // What is to start again is dropped where it has no port, but for what the program said before.
        let asks = m.not(again.asks);
        let said = m.reduce_or(ended.verdict);
        let said = m.or(said, ended.dropped);
        has_port.push(m.or(asks, said));
    }
    if let Some(starts) = copy.starts {
        has_port.push(m.not(starts));
    }
    let has_port = m.all(&has_port);
    if let Some((_, again)) = &again {
        let side = m.number(top.shape.port_bits(), top.shape.ports.into());
        copy.port = m.mux(again.asks, side, copy.port);
    }
    let again = again.map(|(_, again)| again);
    let fine = m.is(reason, 0);
    let goes = m.and(fine, copy.header.valid);
    let [bits, length, from] = ended.emitted;
    // What starts again without egress is the frame as it came.
    let [length, from] = match copy.starts {
        Some(starts) => [length, from].map(|bytes| {
            let zero = m.number(m.width(bytes), 0);
            m.mux(starts, zero, bytes)
        }),
        None => [length, from],
    };
    let (more, less) = (m.resize(length, Shape::LENGTH), m.resize(from, Shape::LENGTH));
    let sum = m.add(copy.header.length, more);
    let bytes = m.sub(sum, less);
    let most = most(m, &copy, &ended);
    let bytes = match most {
        Some(most) => {
            let cut = m.lt(most, bytes);
            m.mux(cut, most, bytes)
        }
        None => bytes,
    };
    let bytes = m.add_number(bytes, u128::from(top.shape.link.overhead()));
    let (emitted, emitted_bytes, payload_from) = (bits, length, from);
    Leaving {
        copy,
        reason,
        goes,
        to,
        has_port,
        emitted,
        emitted_bytes,
        payload_from,
        bytes,
        again,
        most,
        cloned,
    }
}

/// What egress says of a copy, or what is left of it after a clone.
struct Ended {
    /// A [`Reason`] of the verdict.
    verdict: NodeId,
    dropped: NodeId,
    recirculates: NodeId,
    list: NodeId,
    /// What is in the slots of its tag.
    after: Vec<NodeId>,
    /// What the program asks for to cut it, if egress wrote that.
    truncate: Option<NodeId>,
    emitted: [NodeId; 3],
}

impl Ended {
    /// `before` is what egress left to the rest of it.
    fn of(top: &mut Top<'_>, from: From, copy: &Copy, before: Option<&Ended>) -> Ended {
        let asked = |top: &mut Top<'_>, role: Intrinsic, width: u32, before: Option<NodeId>| {
            let slot = top.program.intrinsics.get(role);
            let said = slot.and_then(|slot| top.output_by(from, Output::Slot(slot)));
            said.or(before).unwrap_or_else(|| top.m.number(width, 0))
        };
        let verdict = reason_by(top, from);
        let dropped = asked(top, Intrinsic::Drop, 1, before.map(|before| before.dropped));
        let recirculates = asked(top, Intrinsic::Recirculate, 1, before.map(|before| before.recirculates));
        let list = asked(top, Intrinsic::RecirculateList, 32, before.map(|before| before.list));
        let known = before.map_or(&copy.kept, |before| &before.after).clone();
        let after = top.after_stage(from, |_, at, _| known.get(at).copied());
        let slot = top.program.intrinsics.get(Intrinsic::Truncate);
        let written = slot.and_then(|slot| top.output_by(from, Output::Slot(slot)));
        let truncate = match written.filter(|_| top.shape.features.cuts) {
            Some(asked) => Some(limit(&mut top.m, asked)),
            None => before.and_then(|before| before.truncate),
        };
        let emitted = match top.egress.stage.may_say(Output::Deparsed) || from == From::Tail {
            true => emitted(top, from, None),
            false => resized(top, copy.emitted),
        };
        Ended { verdict, dropped, recirculates, list, after, truncate, emitted }
    }

    fn parts(&mut self) -> Vec<&mut NodeId> {
        let mut all = vec![&mut self.verdict, &mut self.dropped, &mut self.recirculates, &mut self.list];
        all.extend(&mut self.after);
        all.extend(&mut self.truncate);
        all.extend(&mut self.emitted);
        all
    }
}

/// Has a copy cloned that egress wants to, and goes on with it after what is left of egress.
fn clone(top: &mut Top<'_>, clones: &ClonesWait, copy: Copy, ended: &mut Ended) -> (Copy, Option<Cloned>) {
    let verdict = top.said_by(From::Egress, Output::Verdict, 4);
    let m = &mut top.m;
    let (asks, fine) = (m.is(verdict, Verdict::CloneBeforeDeparser as u128), m.is(copy.reason, 0));
    let mut wants = vec![asks, fine, copy.header.valid];
    if let Some(starts) = copy.starts {
        wants.push(m.not(starts));
    }
    let wants = m.all(&wants);
    let (Some(mut fate), Some(stage)) =
        (Fate::of_egress(top, &copy, wants), top.tail.as_ref().map(|tail| tail.stage))
    else {
        return (copy, None);
    };
    let latency = stage.placed.latency;
    let from = top.tag_of(&copy.header).map_or(copy.header.port, |tag| tag.origin);
    let cloned = clones.push(&mut top.m, (wants, &mut fate), (latency, from));
    let mut given: BTreeMap<String, NodeId> = BTreeMap::new();
    given.insert("valid".to_owned(), wants);
    given.insert(top.bank_input.clone(), copy.header.bank);
    for ((input, width), port) in stage.dataflow.inputs.iter().zip(&stage.ports.inputs) {
        let value = after_egress(top, &copy, *input);
        let value = value.unwrap_or_else(|| top.m.number(*width, 0));
        given.insert(port.clone(), top.m.resize(value, *width));
    }
    if let Some(tail) = &mut top.tail {
        tail.connect(&mut top.m, &given);
    }
    for (at, part) in ended.parts().into_iter().enumerate() {
        *part = later(&mut top.m, &format!("ended{at}"), *part, latency, None);
    }
    let asks = later(&mut top.m, "clones", asks, latency, None);
    let valid = copy.header.valid;
    let copy = Copy { given: Vec::new(), ..copy }.later(&mut top.m, "tail", valid, latency);
    let mut rest = Ended::of(top, From::Tail, &copy, Some(ended));
    for (part, rest) in ended.parts().into_iter().zip(rest.parts()) {
        *part = top.m.mux(asks, *rest, *part);
    }
    (copy, Some(cloned))
}

/// Why a copy goes nowhere.
fn reason(top: &mut Top<'_>, copy: &Copy, ended: &Ended, again: Option<&(NodeId, StartsAgain)>) -> NodeId {
    let m = &mut top.m;
    let mut number = |reason: Reason| m.number(4, reason as u128);
    let (drop, unknown, down) =
        (number(Reason::EgressDrop), number(Reason::UnknownPort), number(Reason::PortDisabled));
    let none = number(Reason::Sent);
    let flags: Vec<NodeId> = (0..top.shape.ports).map(|port| m.bit(top.up, port)).collect();
    let is_up = m.choose(copy.port, &flags);
    let is_down = m.not(is_up);
    let is_unknown = m.not(copy.is_port);
    let before = m.reduce_or(copy.reason);
    let of_program = m.reduce_or(ended.verdict);
    let mut choices = vec![(before, copy.reason)];
    if let Some(starts) = copy.starts {
        choices.push((starts, none));
    }
    choices.extend([(of_program, ended.verdict), (ended.dropped, drop)]);
    if let Some((reason, again)) = again {
        choices.push((again.asks, *reason));
    }
    choices.extend([(is_unknown, unknown), (is_down, down)]);
    m.first(&choices, none)
}

/// Why a copy that asks to start again may not, and whether and with what it does.
fn starts_again(top: &mut Top<'_>, copy: &Copy, ended: &Ended) -> Option<(NodeId, StartsAgain)> {
    let starts = copy.starts?;
    let tag = top.tag_of(&copy.header)?;
    let kept = top.kept_by(ended.list, &ended.after);
    let is_spent = top.is_spent(&tag);
    let m = &mut top.m;
    let reason = spent(m, is_spent);
    let values = kept.iter().zip(&copy.kept).map(|(kept, of_ingress)| m.mux(starts, *of_ingress, *kept));
    let values = values.collect();
    let asks = m.or(starts, ended.recirculates);
    Some((reason, StartsAgain { asks, values }))
}

/// The most bytes of a copy: by its session, and by what the program asks for. What starts again without egress is cut by its session.
fn most(m: &mut ModuleBuilder, copy: &Copy, ended: &Ended) -> Option<NodeId> {
    let [of_session, of_ingress] = copy.most?;
    let asked = ended.truncate.unwrap_or(of_ingress);
    let less = m.lt(asked, of_session);
    let both = m.mux(less, asked, of_session);
    Some(copy.starts.map_or(both, |starts| m.mux(starts, of_session, both)))
}

/// What ingress has emitted, or nothing.
fn resized(top: &mut Top<'_>, [bits, length, from]: [NodeId; 3]) -> [NodeId; 3] {
    let (m, shape) = (&mut top.m, top.shape);
    let place = shape.editor().place();
    let bits = m.resize(bits, shape.emitted_bits());
    [bits, m.resize(length, place), m.resize(from, place)]
}
