//! Clones of frames and their sessions.
//!
//! A clone of ingress is a frame that starts again: as it came, cut as its session says. Its header then passes the parser of clones
//! instead of ingress, and goes on as a frame with a list of copies of its own.

use super::Reason;
use super::again::Tagged;
use super::build::{Header, Top};
use super::control::SESSION_WORDS;
use super::counts::NOTHING;
use super::fate::{Fate, asked};
use super::shape::Shape;
use super::stages::{From, Placed};
use crate::groups::{NODES, SESSIONS, SessionWord, session_width};
use crate::hardware::{Part, Stage};
use crate::parts::later;
use crate::place::Place;
use crate::refusal::Refusal;
use crate::software_port::PortKind;
use crate::stage::{Input, Output};
use millrace_netlist::{Beat, InstanceId, MemoryId, ModuleBuilder, NodeId, address_width};
use millrace_pipeline::{BodyKind, Intrinsic, PacketPath, Program, SlotId};
use std::collections::BTreeMap;

/// What a device has for frames that are cloned or cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Features {
    /// Ingress asks for clones.
    pub(super) clones_ingress: bool,
    /// Egress does.
    pub(super) clones_egress: bool,
    /// Frames may be cut: by the program or by a session.
    pub(super) cuts: bool,
}

impl Features {
    pub(super) fn of(program: &Program, ingress: &Stage, egress: &Stage) -> Features {
        let clones_ingress = ingress.asks(program, Intrinsic::Clone);
        let clones_egress = egress.asks(program, Intrinsic::Clone);
        let truncates = [ingress, egress].iter().any(|stage| stage.asks(program, Intrinsic::Truncate));
        let cuts = truncates || clones_ingress || clones_egress;
        Features { clones_ingress, clones_egress, cuts }
    }

    pub(super) fn clones(self) -> bool {
        self.clones_ingress || self.clones_egress
    }
}

/// Bits of the number of a session; the highest says that it is none that a device has.
pub(super) fn session_bits() -> u32 {
    address_width(SESSIONS) + 1
}

/// What of the clones of a frame.
#[derive(Clone)]
pub(super) struct FateClone {
    /// A clone is to be made of it before its own copies.
    pub(super) asks: NodeId,
    /// It is a clone.
    pub(super) is_clone: NodeId,
    /// It was cloned in egress.
    pub(super) of_egress: NodeId,
    /// Of the clone.
    pub(super) session: NodeId,
    /// What the tag of the clone keeps of the metadata.
    pub(super) values: Vec<NodeId>,
    /// The bytes of headers when the frame was parsed, where clones of egress need them.
    pub(super) parsed: Option<NodeId>,
}

impl FateClone {
    /// What ingress says, or the tag of a clone.
    pub(super) fn of_ingress(top: &mut Top<'_>, header: &Header) -> Option<FateClone> {
        let features = top.shape.features;
        if !features.clones() {
            return None;
        }
        let Tagged { path, session, .. } = top.tag_of(header)?;
        let parsed = features.clones_egress.then(|| parsed_bytes(top, header));
        if !features.clones_ingress {
            let (no, session) = (top.m.number(1, 0), top.m.number(session_bits(), 0));
            let values = Vec::new();
            return Some(FateClone { asks: no, is_clone: no, of_egress: no, session, values, parsed });
        }
        let asks = asked(top, Intrinsic::Clone, header);
        let number = asked(top, Intrinsic::CloneSession, header);
        let list = asked(top, Intrinsic::CloneList, header);
        let after = top.after_stage(From::Ingress, |top, _, slot| top.before_ingress(slot, header));
        let values = top.kept_by(list, &after);
        let m = &mut top.m;
        let is_clone = m.is(path, PacketPath::IngressClone as u128);
        let other = m.not(is_clone);
        let number = session_number(m, number);
        let session = session.map_or(number, |session| m.mux(is_clone, session, number));
        let of_egress = m.number(1, 0);
        Some(FateClone { asks: m.and(asks, other), is_clone, of_egress, session, values, parsed })
    }
}

/// The bytes of valid headers after the parser.
fn parsed_bytes(top: &mut Top<'_>, header: &Header) -> NodeId {
    let bits = top.said_by(From::Ingress, Output::ParsedBits, 32);
    let of_clone = top.output_by(From::Parser, Output::ParsedBits);
    let path = top.tag_of(header).map(|tag| tag.path);
    let m = &mut top.m;
    let bits = match (of_clone, path) {
        (Some(of_clone), Some(path)) => {
            let is_clone = m.is(path, PacketPath::IngressClone as u128);
            m.mux(is_clone, of_clone, bits)
        }
        _ => bits,
    };
    m.slice(bits, 3, Shape::LENGTH)
}

/// The number of a session as devices have it.
pub(super) fn session_number(m: &mut ModuleBuilder, number: NodeId) -> NodeId {
    let bits = address_width(SESSIONS);
    let low = m.resize(number, bits);
    let high = m.shr_by(number, bits);
    let beyond = m.reduce_or(high);
    m.concat(&[beyond, low])
}

/// A session, as a word of its memory has it.
pub(super) struct OfSession {
    pub(super) exists: NodeId,
    /// Its group does not exist.
    pub(super) no_group: NodeId,
    /// Its copies, as the word of a group has them.
    pub(super) list: NodeId,
    pub(super) truncate: NodeId,
    pub(super) class: NodeId,
}

/// The words of all sessions.
pub(super) struct SessionMemory {
    memory: MemoryId,
    pub(super) width: u32,
}

impl SessionMemory {
    /// Software writes only words of the bank that no frame meets.
    pub(super) fn new(top: &mut Top<'_>) -> SessionMemory {
        let m = &mut top.m;
        let (words, width) = (SESSION_WORDS, session_width());
        let memory = m.memory("sessions", width, words, Vec::new());
        let [enable, address, data] = top.control.memory(m, "sessions", PortKind::Sessions, (words, width));
        m.write(memory, enable, address, data);
        m.promise_no_collision(memory);
        SessionMemory { memory, width }
    }

    /// The word of the session of a frame, a cycle later.
    pub(super) fn read(&self, m: &mut ModuleBuilder, fate: &Fate, enable: NodeId) -> NodeId {
        let session = fate.clone.as_ref().map(|clone| clone.session);
        let session = session.unwrap_or_else(|| m.number(session_bits(), 0));
        let low = m.resize(session, address_width(SESSIONS));
        let place = m.concat(&[low, fate.header.bank]);
        m.read_clocked(self.memory, place, Some(enable))
    }
}

impl OfSession {
    /// By its word, and its number.
    pub(super) fn of(top: &mut Top<'_>, word: NodeId, session: NodeId) -> OfSession {
        let m = &mut top.m;
        let beyond = m.bit(session, address_width(SESSIONS));
        let part = |m: &mut ModuleBuilder, (low, width): (u32, u32)| m.slice(word, low, width);
        let there = part(m, SessionWord::EXISTS);
        let known = m.not(beyond);
        OfSession {
            exists: m.and(there, known),
            no_group: part(m, SessionWord::NO_GROUP),
            list: part(m, SessionWord::LIST),
            truncate: part(m, SessionWord::TRUNCATE),
            class: {
                let class = part(m, SessionWord::CLASS);
                let highest = m.number(m.width(class), u128::from(top.shape.highest_class()));
                let above = m.lt(highest, class);
                let class = m.mux(above, highest, class);
                m.resize(class, top.shape.class_bits())
            },
        }
    }
}

/// What of a frame's copies is for the sake of clones.
pub(super) struct Turn {
    /// This copy is the clone, which starts again.
    pub(super) starts: NodeId,
    /// Copies go by the list of a session.
    pub(super) by_list: NodeId,
    /// Why this copy is dropped, if `decides`.
    pub(super) reason: NodeId,
    pub(super) decides: NodeId,
    /// Whether it is the last, if `decides`.
    pub(super) last: NodeId,
    pub(super) list: NodeId,
    pub(super) truncate: NodeId,
    pub(super) class: NodeId,
    pub(super) is_clone: NodeId,
    stepped: (millrace_netlist::RegisterId, NodeId),
}

/// Whose turn it is among the copies of a frame with clones.
pub(super) fn turn(top: &mut Top<'_>, fate: &Fate, of: OfSession) -> Option<Turn> {
    let OfSession { exists, no_group, list, truncate, class } = of;
    let FateClone { asks, is_clone, .. } = fate.clone.clone()?;
    let m = &mut top.m;
    let (register, stepped) = m.register("copy_stepped", 1, Some(0));
    let first = m.not(stepped);
    let starts = m.and(asks, first);
    let fine = m.is(fate.reason, 0);
    let of_clone = m.and(is_clone, fine);
    let groupless = m.all(&[of_clone, exists, no_group, first]);
    let node_bits = address_width(NODES);
    let count = m.slice(list, node_bits, node_bits + 1);
    let none = m.is(count, 0);
    let absent = m.not(exists);
    let empty = m.or(absent, none);
    let (absent_clone, nothing) = (m.and(of_clone, absent), m.and(of_clone, empty));
    let mut number = |reason: Reason| m.number(4, reason as u128);
    let (no_session, no_group) = (number(Reason::NoCloneSession), number(Reason::NoMulticastGroup));
    let (sent, never) = (number(Reason::Sent), m.number(4, NOTHING));
    let of_start = m.mux(exists, sent, no_session);
    let reason = m.first(
        &[(starts, of_start), (absent_clone, no_session), (groupless, no_group), (nothing, never)],
        sent,
    );
    let decides = m.any(&[starts, groupless, nothing]);
    let begins = m.not(starts);
    let last = m.and(empty, begins);
    let by_list = {
        let other = m.not(groupless);
        let some = m.not(nothing);
        m.all(&[of_clone, other, some, begins])
    };
    let stepped = (register, stepped);
    Some(Turn { starts, by_list, reason, decides, last, list, truncate, class, is_clone, stepped })
}

impl Turn {
    /// Notes that the first copy was made, until the last is.
    pub(super) fn connect(&self, m: &mut ModuleBuilder, moves: NodeId, last: NodeId) {
        let (register, stepped) = self.stepped;
        let goes_on = m.not(last);
        let now = m.or(self.decides, stepped);
        let next = m.and(now, goes_on);
        m.set_next(register, next);
        m.set_enable(register, moves);
    }
}

impl Top<'_> {
    /// Sends the headers of clones through their parser, so that what it says comes with what ingress says of other headers.
    pub(super) fn run_parser(&mut self, header: &Header, takes: NodeId, window: NodeId) {
        let latency = self.ingress.stage.placed.latency;
        let Some(stage) = self.parser.as_ref().map(|parser| parser.stage) else { return };
        let Some(Tagged { path, .. }) = self.tag_of(header) else { return };
        let told = stage.dataflow.inputs.iter().map(|(input, _)| match input {
            Input::Slot(slot) if super::build::role_of(self.program, *slot).is_some() => Some(*slot),
            _ => None,
        });
        let told: Vec<SlotId> = told.flatten().collect();
        let slots: BTreeMap<SlotId, NodeId> =
            told.into_iter().filter_map(|slot| Some((slot, self.before_ingress(slot, header)?))).collect();
        let m = &mut self.m;
        let waits = latency - stage.placed.latency;
        let is_clone = m.is(path, PacketPath::IngressClone as u128);
        let valid = m.all(&[header.valid, takes, is_clone]);
        let mut given = BTreeMap::new();
        given.insert("valid".to_owned(), later(m, "clone_valid", valid, waits, Some(0)));
        given.insert(self.bank_input.clone(), later(m, "clone_bank", header.bank, waits, None));
        if stage.ports.window > 0 {
            let bits = stage.ports.window * 8;
            let frame = m.slice(window, m.width(window) - bits, bits);
            given.insert("frame".to_owned(), later(m, "clone_frame", frame, waits, None));
        }
        for (at, ((input, width), port)) in stage.dataflow.inputs.iter().zip(&stage.ports.inputs).enumerate()
        {
            let value = match input {
                Input::Length => header.length,
                Input::Now => header.time,
                Input::Slot(slot) => slots.get(slot).copied().unwrap_or_else(|| m.number(*width, 0)),
                _ => m.number(*width, 0),
            };
            let value = m.resize(value, *width);
            given.insert(port.clone(), later(m, &format!("clone_input{at}"), value, waits, None));
        }
        if let Some(parser) = &mut self.parser {
            parser.connect(m, &given);
        }
    }
}

/// Cuts a stream of frames at the most bytes that each may have: of the beat of the `stream` at the output of an instance.
pub(super) fn cut(
    m: &mut ModuleBuilder,
    shape: &Shape,
    (from, most): (InstanceId, NodeId),
    (mut beat, there): (Beat, NodeId),
    output: &millrace_netlist::OutStream,
) {
    let bytes = shape.width / 8;
    let (first_register, first) = m.register("cut_first", 1, Some(1));
    let (left_register, left) = m.register("cut_left", Shape::LENGTH, None);
    let (skip_register, skips) = m.register("cut_skips", 1, Some(0));
    let left = m.mux(first, most, left);
    let all = m.number(Shape::LENGTH, bytes.into());
    let reaches = m.le(left, all);
    let nothing = m.is(left, 0);
    let lanes: Vec<NodeId> = (0..bytes)
        .rev()
        .map(|lane| {
            let lane = m.number(Shape::LENGTH, lane.into());
            m.lt(lane, left)
        })
        .collect();
    let lanes = m.concat(&lanes);
    let last = beat.last.unwrap_or(reaches);
    beat.keep = beat.keep.map(|keep| m.and(keep, lanes));
    beat.last = Some(m.or(last, reaches));
    let hides = m.or(skips, nothing);
    let shows = m.not(hides);
    let valid = m.and(there, shows);
    let ready = m.or(hides, output.ready);
    m.connect_ready(from, "m", ready);
    let moves = m.and(there, ready);
    let more = m.not(last);
    let cuts = m.or(skips, reaches);
    let next_skips = m.and(cuts, more);
    let less = m.sub(left, all);
    for (register, next) in [(first_register, last), (left_register, less), (skip_register, next_skips)] {
        m.set_next(register, next);
        m.set_enable(register, moves);
    }
    m.drive_stream(output, &beat, valid);
}

/// The parser of clones, if ingress asks for any.
pub(super) fn parser_of(stages: &[Stage], features: Features) -> Option<&Stage> {
    stages.iter().find(|stage| features.clones_ingress && stage.part == Part::Parser)
}

/// What is left of egress after a clone, if it asks for any.
///
/// # Errors
/// Egress may be cloned before more than one deparser.
pub(super) fn tail_of<'a>(
    program: &Program,
    stages: &'a [Stage],
    features: Features,
) -> Result<Option<&'a Stage>, Refusal> {
    if !features.clones_egress {
        return Ok(None);
    }
    let mut tails = stages.iter().filter(|stage| matches!(stage.part, Part::Tail(_)));
    let why = match (tails.next(), tails.next()) {
        (Some(tail), None) => return Ok(Some(tail)),
        (None, _) => "clones after the deparser of egress",
        _ => "clones in an egress with more than one deparser",
    };
    let place = Place::of_kind(program, &program.egress, BodyKind::Deparser);
    Err(Refusal::of_device(why.to_owned(), place))
}

/// The stages that are there.
pub(super) fn placed<'a, 'b>(stages: &[Option<&'b Placed<'a>>]) -> Vec<&'b Placed<'a>> {
    stages.iter().copied().flatten().collect()
}
