//! Frames that start again: they leave by a sending side of their own, whose stream is that of a receiving side of its own, and so their
//! headers take their turn with those of ports. What goes with a frame, its *tag*, waits in a queue until its last beat has come.
//!
//! A frame that is to start again never waits for a place: a header of a port takes its turn only while fewer frames than there are
//! places are on their way. A frame of which more than one copy starts again may find none; the copy is then dropped as at any queue.

use super::build::{Header, Top, role_of};
use super::clones::{Features, session_bits};
use super::copies::CopyClone;
use super::leave::Leaving;
use super::shape::Shape;
use super::stages::From;
use super::transmit::{Side, transmit};
use super::{Counted, Reason, receive};
use crate::hardware::Stage;
use crate::stage::{Input, Output};
use millrace_netlist::{Design, InstanceId, ModuleBuilder, NodeId, address_width};
use millrace_pipeline::{Home, Intrinsic, PacketPath, Program, SlotId, Type};
use std::collections::BTreeSet;

/// What goes with a frame that starts again.
#[derive(Clone, Debug)]
pub(super) struct Tag {
    /// Metadata that some list of the program keeps, and the bits of each.
    pub(super) slots: Vec<(SlotId, u32)>,
    /// Bits of the port that the frame came in by first.
    origin: u32,
    /// Whether the program looks at the time at which a frame came in.
    keeps_time: bool,
    /// Bits of the session of a clone; 0: ingress asks for none.
    session: u32,
    /// Whether frames start again, or tags are for clones of egress alone.
    is_sent: bool,
}

/// The parts of a tag.
#[derive(Clone, Debug)]
pub(super) struct Tagged {
    /// A [`PacketPath`].
    pub(super) path: NodeId,
    /// How often it has begun ingress.
    pub(super) passes: NodeId,
    /// The port that it came in by first.
    pub(super) origin: NodeId,
    /// The session of a clone, if ingress asks for any.
    pub(super) session: Option<NodeId>,
    /// The values of [`Tag::slots`].
    pub(super) values: Vec<NodeId>,
}

/// Bits of a path, and of the number of passes.
const PATH: u32 = 3;
const PASSES: u32 = 8;
/// Bits of a time.
const TIME: u32 = 64;

impl Tag {
    /// Of a program; none: no frame starts again.
    ///
    /// # Errors
    /// A list keeps what no tag has.
    pub(super) fn of(
        program: &Program,
        (ingress, egress): (&Stage, &Stage),
        (ports, features): (u32, Features),
    ) -> Result<Option<Tag>, String> {
        let again =
            ingress.asks(program, Intrinsic::Resubmit) || egress.asks(program, Intrinsic::Recirculate);
        if !again && !features.clones() {
            return Ok(None);
        }
        let mut slots: BTreeSet<SlotId> = BTreeSet::new();
        for list in &program.field_lists {
            for slot in &list.slots {
                let kept = &program.slots[*slot];
                match (kept.home, kept.ty) {
                    (Home::Metadata, Type::Bool | Type::Bits(_)) => slots.insert(*slot),
                    _ => {
                        let (list, name) = (list.id, &kept.name);
                        return Err(format!(
                            "list {list} of what a frame keeps, which has {name}, no number of the metadata"
                        ));
                    }
                };
            }
        }
        let width = |slot: &SlotId| match program.slots[*slot].ty {
            Type::Bool => 1,
            Type::Bits(width) | Type::Varbit(width) => width,
        };
        let slots = slots.into_iter().map(|slot| (slot, width(&slot))).collect();
        let told = program.intrinsics.get(Intrinsic::IngressTimestamp).map(Input::Slot);
        let looks = |stage: &Stage| {
            let mut inputs = super::facts::needed(stage).into_iter().map(|at| stage.dataflow.inputs[at].0);
            inputs.any(|input| input == Input::Now || Some(input) == told)
        };
        let keeps_time = looks(ingress) || looks(egress);
        let session = if features.clones_ingress { session_bits() } else { 0 };
        let is_sent = again || features.clones_ingress;
        Ok(Some(Tag { slots, origin: address_width(ports), keeps_time, session, is_sent }))
    }

    /// Where a slot is among those that it keeps.
    pub(super) fn place(&self, slot: SlotId) -> Option<usize> {
        self.slots.iter().position(|(other, _)| *other == slot)
    }

    /// Bits of it without the time.
    fn own(&self) -> u32 {
        PATH + PASSES + self.origin + self.session + self.slots.iter().map(|(_, width)| width).sum::<u32>()
    }

    /// Bits of it, as it is sent with a frame; 0: none is.
    pub(super) fn sent(&self) -> u32 {
        match (self.is_sent, self.keeps_time) {
            (false, _) => 0,
            (true, false) => self.own(),
            (true, true) => self.own() + TIME,
        }
    }

    /// The tag of a frame from a port.
    pub(super) fn of_port(&self, m: &mut ModuleBuilder, port: u32) -> NodeId {
        let path = m.number(PATH, PacketPath::Normal as u128);
        let (passes, origin) = (m.number(PASSES, 1), m.number(self.origin, port.into()));
        let values = self.slots.iter().map(|(_, width)| m.number(*width, 0)).collect();
        let session = (self.session > 0).then(|| m.number(self.session, 0));
        Tagged { path, passes, origin, session, values }.word(m)
    }

    /// The parts of a tag without a time.
    pub(super) fn parts(&self, m: &mut ModuleBuilder, tag: NodeId) -> Tagged {
        let mut high = self.own();
        let mut next = |width: u32| {
            high -= width;
            m.slice(tag, high, width)
        };
        let (path, passes, origin) = (next(PATH), next(PASSES), next(self.origin));
        let session = (self.session > 0).then(|| next(self.session));
        let values = self.slots.iter().map(|(_, width)| next(*width)).collect();
        Tagged { path, passes, origin, session, values }
    }

    /// A tag without its time, and the time: that of the tag, or now where a frame begins ingress with a time of its own.
    pub(super) fn with_time(&self, m: &mut ModuleBuilder, tag: NodeId, now: NodeId) -> (NodeId, NodeId) {
        let own = m.slice(tag, 0, self.own());
        if !self.keeps_time {
            return (own, now);
        }
        (own, m.slice(tag, self.own(), TIME))
    }
}

impl Tagged {
    pub(super) fn word(self, m: &mut ModuleBuilder) -> NodeId {
        let mut all = vec![self.path, self.passes, self.origin];
        all.extend(self.session);
        all.extend(self.values);
        m.concat(&all)
    }
}

impl Top<'_> {
    /// The parts of a header's tag; none: no frame starts again.
    pub(super) fn tag_of(&mut self, header: &Header) -> Option<Tagged> {
        let (tag, word) = (self.again.clone()?, header.tag?);
        Some(tag.parts(&mut self.m, word))
    }

    /// Values that a list of this number keeps; others are 0.
    pub(super) fn kept_by(&mut self, list: NodeId, values: &[NodeId]) -> Vec<NodeId> {
        let Some(tag) = self.again.clone() else { return Vec::new() };
        let (m, program) = (&mut self.m, self.program);
        let each = tag.slots.iter().zip(values).map(|((slot, width), value)| {
            let lists = program.field_lists.iter().filter(|list| list.slots.contains(slot));
            let keeps: Vec<NodeId> = lists.map(|of| m.is(list, of.id.into())).collect();
            let keeps = m.any(&keeps);
            let mask = m.repeat(keeps, *width);
            m.and(mask, *value)
        });
        each.collect()
    }

    /// What ingress finds in a slot, or left in it if it did not write it.
    pub(super) fn before_ingress(&mut self, slot: SlotId, header: &Header) -> Option<NodeId> {
        let tag = self.tag_of(header);
        match role_of(self.program, slot) {
            Some(Intrinsic::IngressPort) => {
                let port = tag.map_or(header.port, |tag| tag.origin);
                Some(self.shape.number_of(&mut self.m, port))
            }
            Some(Intrinsic::IngressTimestamp) => Some(header.time),
            Some(Intrinsic::PacketLength) => Some(header.length),
            Some(Intrinsic::PacketPath) => tag.map(|tag| tag.path),
            _ => self.restored(slot, header),
        }
    }

    /// What a tag has for a slot.
    pub(super) fn restored(&mut self, slot: SlotId, header: &Header) -> Option<NodeId> {
        let at = self.again.as_ref()?.place(slot)?;
        Some(self.tag_of(header)?.values[at])
    }

    /// What is in the slots of tags after a stage: what it left there, or what it found, which `before` says.
    pub(super) fn after_stage(
        &mut self,
        from: From,
        mut before: impl FnMut(&mut Top<'_>, usize, SlotId) -> Option<NodeId>,
    ) -> Vec<NodeId> {
        let slots = self.again.as_ref().map(|tag| tag.slots.clone()).unwrap_or_default();
        let mut values = Vec::new();
        for (at, (slot, width)) in slots.into_iter().enumerate() {
            let written = self.output_by(from, Output::Slot(slot));
            let value = written.or_else(|| before(self, at, slot));
            values.push(match value {
                Some(value) => self.m.resize(value, width),
                None => self.m.number(width, 0),
            });
        }
        values
    }

    /// Whether a frame that asks to start again has done so as often as it may.
    pub(super) fn is_spent(&mut self, tag: &Tagged) -> NodeId {
        let m = &mut self.m;
        let most = m.number(PASSES, super::MAX_PASSES.into());
        m.le(most, tag.passes)
    }

    /// What a frame that leaves is given to start again with.
    fn tag_again(&mut self, leaving: &Leaving) -> Option<NodeId> {
        let tag = self.again.clone()?;
        let again = leaving.again.as_ref()?;
        let before = self.tag_of(&leaving.copy.header)?;
        let m = &mut self.m;
        let resubmitted = m.number(PATH, PacketPath::Resubmit as u128);
        let recirculated = m.number(PATH, PacketPath::Recirculate as u128);
        let starts = leaving.copy.starts?;
        let mut path = m.mux(starts, resubmitted, recirculated);
        let mut passes = m.add_number(before.passes, 1);
        if let Some(CopyClone { starts: is_clone, .. }) = leaving.copy.clone {
            // It does not begin ingress.
            let cloned = m.number(PATH, PacketPath::IngressClone as u128);
            path = m.mux(is_clone, cloned, path);
            passes = m.mux(is_clone, before.passes, passes);
        }
        let session = leaving.copy.clone.as_ref().filter(|_| tag.session > 0).map(|clone| clone.session);
        let word =
            Tagged { path, passes, origin: before.origin, session, values: again.values.clone() }.word(m);
        if !tag.keeps_time {
            return Some(word);
        }
        let time = m.mux(starts, leaving.copy.header.time, self.now);
        Some(m.concat(&[time, word]))
    }

    /// The sides for frames that start again.
    pub(super) fn sides_again(&mut self, design: &mut Design) -> Option<(InstanceId, InstanceId)> {
        self.again.as_ref().filter(|tag| tag.is_sent)?;
        let shape = self.shape.again();
        let (receiving, sending) =
            (receive::receive(design, &shape, true), transmit(design, &shape, Side::Again));
        let m = &mut self.m;
        let (from, to) =
            (m.instance(design, receiving, "receive_again"), m.instance(design, sending, "transmit_again"));
        let (beat, valid) = m.stream_from(to, "m");
        m.connect_stream(from, "s", &beat, valid);
        let ready = m.ready_of(from, "s");
        m.connect_ready(to, "m", ready);
        // They wait for their end: so each of their words is there when it is to leave.
        let whole = m.number(1, 1);
        m.connect(from, "whole", whole);
        let (mode, quantum) = (m.number(2, 0), m.number(Shape::LENGTH, 0));
        m.connect(to, "mode", mode);
        m.connect(to, "quantum0", quantum);
        for name in receive::COUNTERS {
            let count = m.output_of(from, name);
            self.control.shows(&format!("again.rx_{name}"), count);
        }
        for (name, port) in [("length", "count0"), ("queue_full", "full")] {
            let count = m.output_of(to, port);
            self.control.shows(&format!("again.{name}"), count);
        }
        let empty = m.output_of(to, "empty");
        self.control.counts(Counted::Drops(Reason::TxRefused), empty);
        Some((from, to))
    }

    /// Connects them, when it is known what leaves.
    pub(super) fn connect_again(
        &mut self,
        (from, to): (InstanceId, InstanceId),
        (load_register, load): (millrace_netlist::RegisterId, NodeId),
        (enters, leaving): (NodeId, &Leaving),
    ) {
        let Some(tag) = self.tag_again(leaving) else { return };
        let m = &mut self.m;
        m.connect(to, "tag", tag);
        let of_frame = m.output_of(to, "tag_sent");
        m.connect(from, "tag", of_frame);
        let accepted = m.output_of(to, "accepted");
        // Frames that are between their port and their last copy, and those that are to start again.
        let (lost, empty) = (m.output_of(from, "lost"), m.output_of(to, "empty"));
        let mut ends = m.and(leaving.copy.header.valid, leaving.copy.last);
        if let Some(clone) = &leaving.copy.clone {
            // Clones of egress are not counted.
            let other = m.not(clone.of_egress);
            ends = m.and(ends, other);
        }
        let wide = |m: &mut ModuleBuilder, bit: NodeId| m.resize(bit, 16);
        let (enters, accepted) = (wide(m, enters), wide(m, accepted));
        let (ends, lost, empty) = (wide(m, ends), wide(m, lost), wide(m, empty));
        let more = m.add(enters, accepted);
        let less = m.add(ends, lost);
        // One without bytes ends where it is sent.
        let less = m.add(less, empty);
        let next = m.add(load, more);
        let next = m.sub(next, less);
        m.set_next(load_register, next);
    }

    /// Whether a header of a port may take its turn, by the frames that are on their way.
    pub(super) fn admits(&mut self, load: NodeId) -> NodeId {
        let most = u128::from(self.shape.places_again() - 1);
        let m = &mut self.m;
        let most = m.number(16, most);
        m.lt(load, most)
    }
}

/// Of a frame that leaves ingress or egress: whether, and with what, it starts again.
#[derive(Clone)]
pub(super) struct StartsAgain {
    pub(super) asks: NodeId,
    /// The values of the slots of its tag.
    pub(super) values: Vec<NodeId>,
}

/// The reason of a frame that asks to start again.
pub(super) fn spent(m: &mut ModuleBuilder, spent: NodeId) -> NodeId {
    let (limit, none) = (m.number(4, Reason::RecirculationLimit as u128), m.number(4, Reason::Sent as u128));
    m.mux(spent, limit, none)
}
