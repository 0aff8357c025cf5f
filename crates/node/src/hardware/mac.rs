//! A MAC as a block: the two halves of a link's MAC, with a buffer of whole frames next to each.
//!
//! ```text
//!  link --> receiving half --> filter, counts --> queue --> m
//!  link <-- sending half <---- up?, counts <----- queue <-- s
//! ```
//!
//! A link cannot wait, and blocks can: so what comes waits in a queue until blocks take it, and is there as a whole before it goes on, as
//! nobody knows earlier that its check sequence is right. What leaves is whole before it starts, as a link takes a beat in each cycle.

use super::modules::{FACTS, LENGTH, WIDTH, add_up, counter, length_of, parts, shape};
use super::queue::queue;
use crate::blocks::{MAC_ERRORS, RMON};
use crate::limits::{MAX_FRAME, MAX_TO_SEND};
use crate::model::MacLink;
use millrace_netlist::*;

/// Bytes of frames that wait for blocks, and of those that wait for the link.
const MAC_BYTES: u32 = 1 << 14;

/// Bytes of the check sequence.
const CHECK_SEQUENCE: u128 = 4;

/// The MAC of a link. Its inputs are `up`, `promiscuous`, `port`, which frames say they came in by, and `station` with `filters`: whether
/// frames to one other station are left out. `room` says that a frame of any length that comes to `s` now is not lost. It has an output
/// for each counter of the register map: what is counted in this cycle.
pub(super) fn mac(design: &mut Design, link: MacLink) -> ModuleId {
    let name = format!("mac_{}", link.word());
    if let Some(known) = design.module_named(&name) {
        return known;
    }
    let mut m = ModuleBuilder::new(&name);
    let up = m.input("up", 1);
    let longest = MAX_FRAME as u32 + CHECK_SEQUENCE as u32;
    let halves = link.of_devices().mac(design, WIDTH, longest);
    let (receiving, sending) = halves.unwrap_or_else(|| unreachable!("these links have MACs"));
    receive(design, &mut m, (link, receiving), up);
    transmit(design, &mut m, (link, sending), up);
    design.add(m.finish())
}

fn receive(design: &mut Design, m: &mut ModuleBuilder, (link, half): (MacLink, ModuleId), up: NodeId) {
    let half = m.instance(design, half, "receive");
    for (name, width) in link.of_devices().receives() {
        let value = m.input(&format!("rx_{name}"), *width);
        m.connect(half, name, value);
    }
    // It takes all frames: those that are left out, or come while the port is down, are counted here.
    for (name, width, value) in [("enable", 1, 1), ("promiscuous", 1, 1), ("station", 48, 0)] {
        let value = m.number(width, value);
        m.connect(half, name, value);
    }
    for name in MAC_ERRORS {
        let count = m.output_of(half, name);
        m.output(&format!("rx.{name}"), count);
    }
    let (beat, valid) = m.stream_from(half, "m");
    let always = m.number(1, 1);
    m.connect_ready(half, "m", always);
    let (data, keep, last, bad) = parts(&beat);
    let frame = Frame::new(m, "rx", data, (valid, last));

    let is_up = frame.of_first(m, "rx_up", up);
    let (station, filters) = (m.input("station", 48), m.input("filters", 1));
    let promiscuous = m.input("promiscuous", 1);
    let own = m.eq(frame.destination, station);
    let own = frame.of_first(m, "rx_own", own);
    let open = m.not(filters);
    let wanted = m.any(&[frame.group, own, open, promiscuous]);

    let good = m.not(bad);
    let ends = m.all(&[valid, last, good]);
    let counted = m.and(ends, is_up);
    let takes = m.and(counted, wanted);
    let (is_down, unwanted) = (m.not(is_up), m.not(wanted));
    let came_down = m.and(ends, is_down);
    let filtered = m.and(counted, unwanted);
    counter(m, "rx.down", came_down);
    counter(m, "rx.filtered", filtered);
    let length = length_of(m, "rx_length", keep, (valid, last));
    frame.count(m, "rx", counted, length);

    let room = queue(design, MAX_TO_SEND as u32, MAC_BYTES);
    let room = m.instance(design, room, "received");
    let forget = m.not(takes);
    m.connect(room, "forget", forget);
    let port = m.input("port", 16);
    let others = m.constant(Bits::zero(FACTS - 16));
    let facts = m.concat(&[port, others]);
    m.connect_stream(room, "s", &Beat { user: Some(facts), ..beat }, valid);
    let lost = m.output_of(room, "lost");
    m.output("rx.lost", lost);
    let output = m.output_stream("m", shape());
    let (beat, valid) = m.stream_from(room, "m");
    m.connect_ready(room, "m", output.ready);
    m.drive_stream(&output, &beat, valid);
}

fn transmit(design: &mut Design, m: &mut ModuleBuilder, (link, half): (MacLink, ModuleId), up: NodeId) {
    let input = m.input_stream("s", shape());
    let waiting = queue(design, MAX_TO_SEND as u32, MAC_BYTES);
    let waiting = m.instance(design, waiting, "to_send");
    let never = m.number(1, 0);
    m.connect(waiting, "forget", never);
    m.connect_stream(waiting, "s", &input.beat, input.valid);
    let ready = m.ready_of(waiting, "s");
    m.set_ready(&input, ready);
    let (lost, room) = (m.output_of(waiting, "lost"), m.output_of(waiting, "room"));
    m.output("tx.lost", lost);
    m.output("room", room);

    let half = m.instance(design, half, "transmit");
    let (beat, valid) = m.stream_from(waiting, "m");
    let (data, _, last, _) = parts(&beat);
    let taken = m.ready_of(half, "s");
    // A frame that has begun ends, also if the port goes down meanwhile; what waits then is forgotten. It has begun when its first beat is
    // there: the link sends a preamble before it takes that.
    let (begun_register, begun) = m.register("tx_begun", 1, Some(0));
    let waits = m.not(begun);
    let begins = m.and(valid, waits);
    let held = m.kept("tx_up", up, begins, Some(0));
    let is_up = m.mux(begun, held, up);
    let is_down = m.not(is_up);
    let ready = m.or(is_down, taken);
    let take = m.and(valid, ready);
    m.connect_ready(waiting, "m", ready);
    let ends = m.and(take, last);
    let goes_on = m.not(ends);
    m.set_next(begun_register, goes_on);
    m.set_enable(begun_register, valid);
    let goes = m.and(valid, is_up);
    m.connect_stream(half, "s", &Beat { user: Some(never), ..beat }, goes);
    if let Some(told) = link.of_devices().told_of_frames() {
        m.connect(half, told, never);
    }
    for name in link.of_devices().transmits() {
        let value = m.output_of(half, name);
        m.output(&format!("tx_{name}"), value);
    }

    let (sent, forgotten) = (m.and(ends, is_up), m.and(ends, is_down));
    counter(m, "tx.down", forgotten);
    let frame = Frame::new(m, "tx", data, (take, last));
    let length = m.output_of(waiting, "head");
    frame.count(m, "tx", sent, length);
}

/// What is known of the frame of a beat.
struct Frame {
    first: NodeId,
    take: NodeId,
    /// The destination, in the first beat.
    destination: NodeId,
    /// It is for many, and for all: in each beat.
    group: NodeId,
    everyone: NodeId,
}

impl Frame {
    /// Of beats with this data; whether one is taken, and is the last.
    fn new(m: &mut ModuleBuilder, direction: &str, data: NodeId, (take, last): (NodeId, NodeId)) -> Frame {
        let (register, first) = m.register(&format!("{direction}_is_first"), 1, Some(1));
        m.set_next(register, last);
        m.set_enable(register, take);
        let bytes: Vec<NodeId> = (0..6).map(|at| m.slice(data, 8 * at, 8)).collect();
        let destination = m.concat(&bytes);
        let (group, everyone) = (m.bit(data, 0), m.reduce_and(destination));
        let mut frame = Frame { first, take, destination, group, everyone };
        frame.group = frame.of_first(m, &format!("{direction}_group"), group);
        frame.everyone = frame.of_first(m, &format!("{direction}_everyone"), everyone);
        frame
    }

    /// What a value was in the first beat.
    fn of_first(&self, m: &mut ModuleBuilder, name: &str, value: NodeId) -> NodeId {
        let begins = m.and(self.take, self.first);
        let held = m.kept(name, value, begins, Some(0));
        m.mux(self.first, value, held)
    }

    /// The counters of a direction, as the software's `Rmon` has them: a frame of that length, without its check sequence, is counted.
    fn count(&self, m: &mut ModuleBuilder, direction: &str, counted: NodeId, length: NodeId) {
        let check = m.number(LENGTH, CHECK_SEQUENCE);
        let length = m.add(length, check);
        let (single, not_all) = (m.not(self.group), m.not(self.everyone));
        let always = m.number(1, 1);
        let mut events = vec![always, always, single, m.and(self.group, not_all), self.everyone];
        let mut below = m.number(1, 0);
        for limit in [65, 128, 256, 512, 1024, 1519] {
            let limit = m.number(LENGTH, limit);
            let less = m.lt(length, limit);
            let fresh = m.not(below);
            events.push(m.and(less, fresh));
            below = less;
        }
        events.push(m.not(below));
        for (name, event) in RMON.into_iter().zip(events) {
            let (step, name) = (m.and(counted, event), format!("{direction}.{name}"));
            match name.ends_with("octets") {
                true => add_up(m, &name, step, length),
                false => counter(m, &name, step),
            }
        }
    }
}
