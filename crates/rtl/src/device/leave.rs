//! Copies through egress, and what is sent of them.

use super::Reason;
use super::again::{StartsAgain, spent};
use super::build::Top;
use super::copies::Copy;
use super::fate::{emitted, limit, reason_by};
use super::shape::Shape;
use super::stages::From;
use crate::stage::Output;
use millrace_netlist::NodeId;
use millrace_pipeline::Intrinsic;
use std::collections::BTreeMap;

/// A copy after egress.
pub(super) struct Leaving {
    pub(super) copy: Copy,
    /// A [`Reason`] to drop it.
    pub(super) reason: NodeId,
    /// It goes to its queue.
    pub(super) goes: NodeId,
    /// Always 1: each entry of the pipeline is a copy.
    pub(super) is_copy: NodeId,
    pub(super) emitted: NodeId,
    pub(super) emitted_bytes: NodeId,
    pub(super) payload_from: NodeId,
    /// What it takes of the link, where the length is known.
    pub(super) bytes: NodeId,
    /// How it starts again; none: no frame does.
    pub(super) again: Option<StartsAgain>,
    /// The most bytes that it may have; none: no frame is cut.
    pub(super) most: Option<NodeId>,
}

pub(super) fn leave(top: &mut Top<'_>, copy: Copy) -> Leaving {
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
    let mut copy = copy.later(m, valid, stage.placed.latency);
    let again = starts_again(top, &copy);
    let of_egress = reason_by(top, From::Egress);
    let m = &mut top.m;
    let dropped = match top.program.intrinsics.get(Intrinsic::Drop) {
        Some(slot) => top.egress.said(m, Output::Slot(slot), 1),
        None => m.number(1, 0),
    };
    let reason = {
        let mut number = |reason: Reason| m.number(4, reason as u128);
        let (drop, unknown, down) =
            (number(Reason::EgressDrop), number(Reason::UnknownPort), number(Reason::PortDisabled));
        let none = number(Reason::Sent);
        let flags: Vec<NodeId> = (0..top.shape.ports).map(|port| m.bit(top.up, port)).collect();
        let is_up = m.choose(copy.port, &flags);
        let is_down = m.not(is_up);
        let is_unknown = m.not(copy.is_port);
        let before = m.reduce_or(copy.reason);
        let of_program = m.reduce_or(of_egress);
        let mut choices = vec![(before, copy.reason)];
        if let Some(starts) = copy.starts {
            choices.push((starts, none));
        }
        choices.extend([(of_program, of_egress), (dropped, drop)]);
        if let Some((reason, again)) = &again {
            choices.push((again.asks, *reason));
        }
        choices.extend([(is_unknown, unknown), (is_down, down)]);
        m.first(&choices, none)
    };
    if let Some((_, again)) = &again {
        let side = m.number(top.shape.port_bits(), top.shape.ports.into());
        copy.port = m.mux(again.asks, side, copy.port);
    }
    let again = again.map(|(_, again)| again);
    let fine = m.is(reason, 0);
    let goes = m.and(fine, copy.header.valid);
    let is_copy = m.number(1, 1);
    let [bits, length, from] = match top.egress.stage.may_say(Output::Deparsed) {
        true => emitted(top, From::Egress, None),
        false => resized(top, copy.emitted),
    };
    let m = &mut top.m;
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
    let most = most(top, &copy);
    let m = &mut top.m;
    let bytes = match most {
        Some(most) => {
            let cut = m.lt(most, bytes);
            m.mux(cut, most, bytes)
        }
        None => bytes,
    };
    let bytes = m.add_number(bytes, u128::from(top.shape.overhead));
    Leaving {
        copy,
        reason,
        goes,
        is_copy,
        emitted: bits,
        emitted_bytes: length,
        payload_from: from,
        bytes,
        again,
        most,
    }
}

/// Why a copy that asks to start again may not, and whether and with what it does.
fn starts_again(top: &mut Top<'_>, copy: &Copy) -> Option<(NodeId, StartsAgain)> {
    let starts = copy.starts?;
    let tag = top.tag_of(&copy.header)?;
    let recirculates = after_egress(top, Intrinsic::Recirculate, 1);
    let list = after_egress(top, Intrinsic::RecirculateList, 32);
    let after = top.after_stage(From::Egress, |_, at, _| copy.kept.get(at).copied());
    let kept = top.kept_by(list, &after);
    let is_spent = top.is_spent(&tag);
    let m = &mut top.m;
    let reason = spent(m, is_spent);
    let values = kept.iter().zip(&copy.kept).map(|(kept, of_ingress)| m.mux(starts, *of_ingress, *kept));
    let values = values.collect();
    let asks = m.or(starts, recirculates);
    Some((reason, StartsAgain { asks, values }))
}

/// What egress asks the switch for.
fn after_egress(top: &mut Top<'_>, role: Intrinsic, width: u32) -> NodeId {
    match top.program.intrinsics.get(role) {
        Some(slot) => top.said_by(From::Egress, Output::Slot(slot), width),
        None => top.m.number(width, 0),
    }
}

/// The most bytes of a copy: by its session, and by what the program asks for. What starts again without egress is cut by its session.
fn most(top: &mut Top<'_>, copy: &Copy) -> Option<NodeId> {
    let [of_session, of_ingress] = copy.most?;
    let slot = top.program.intrinsics.get(Intrinsic::Truncate);
    let written = slot.and_then(|slot| top.output_by(From::Egress, Output::Slot(slot)));
    let m = &mut top.m;
    let asked = written.map_or(of_ingress, |asked| limit(m, asked));
    let less = m.lt(asked, of_session);
    let both = m.mux(less, asked, of_session);
    Some(copy.starts.map_or(both, |starts| m.mux(starts, of_session, both)))
}

/// What ingress has emitted, or nothing.
fn resized(top: &mut Top<'_>, [bits, length, from]: [NodeId; 3]) -> [NodeId; 3] {
    let (m, shape) = (&mut top.m, top.shape);
    let place = shape.editor().place();
    let bits = m.resize(bits, shape.emitted.max(1) * 8);
    [bits, m.resize(length, place), m.resize(from, place)]
}
