//! The sending half: from a stream of frames to GMII, with preamble, padding, check sequence and gap.

use super::super::checksum::after;
use super::super::mac::{bytes_of, count_sent, drain};
use super::super::once;
use super::{PREAMBLE, START};
use crate::*;

/// The sending half of a MAC. Input: the stream `s` of so many bits (64 to 512), whose `tuser` at the last beat has the frame end with a
/// wrong check sequence and `er`. Outputs: `data`, `en` and `er` of GMII, and [`TRANSMIT_COUNTERS`](super::super::TRANSMIT_COUNTERS).
///
/// A frame starts when its first beat is there: seven octets of preamble and the one that starts the frame. The first beat is taken then,
/// and each other one with the last octet of the one before; one that is not there in time ends the frame as a bad one. The gap is 12
/// octets.
///
/// # Panics
/// The width is no power of two from 64 to 512.
pub fn gmii_transmit(design: &mut Design, width: u32) -> ModuleId {
    assert!(width.is_power_of_two() && (64..=512).contains(&width), "beats of 64 to 512 bits");
    once(design, format!("gmii_transmit_{width}"), |m| transmit(m, width, LEAST))
}

/// Bytes that a frame has at least, with its check sequence.
const LEAST: u128 = 64;
/// Octets between two frames, less the one in which the next is seen.
const GAP: u128 = 11;

/// What is sent, each for some octets; nothing between frames, after the gap.
struct Phases {
    preamble: NodeId,
    body: NodeId,
    padding: NodeId,
    check: NodeId,
}

/// What happens in this cycle.
struct Events {
    /// A frame begins, a beat is taken, it is not there in time.
    start: NodeId,
    takes: NodeId,
    abort: NodeId,
}

/// The beat whose octets are sent.
struct Word {
    octet: NodeId,
    /// That is its last one.
    ends: NodeId,
    is_last: NodeId,
    is_bad: NodeId,
    registers: [RegisterId; 4],
    data: NodeId,
    left: NodeId,
}

/// One whose frames have at least so many bytes.
pub(super) fn transmit(m: &mut ModuleBuilder, width: u32, least: u128) {
    let input = m.input_stream("s", StreamShape::frames(width, 1));
    let word = Word::new(m, width);
    let names = ["preamble", "body", "padding", "check", "gap", "draining"];
    let flags = names.map(|name| m.register(name, 1, Some(0)));
    let [preamble, body, padding, check, gap, draining] = flags.map(|(_, flag)| flag);
    let (step_register, step) = m.register("step", 4, Some(0));
    let at = |m: &mut ModuleBuilder, flag: NodeId, number: u128| {
        let there = m.is(step, number);
        m.and(flag, there)
    };
    let (preamble_ends, check_ends) = (at(m, preamble, 7), at(m, check, 3));
    let gap_ends = at(m, gap, GAP - 1);

    let busy = m.any(&[preamble, body, padding, check, gap, draining]);
    let idle = m.not(busy);
    let start = m.and(idle, input.valid);
    let more = m.not(word.is_last);
    let next_beat = m.all(&[body, word.ends, more]);
    let wants = m.or(preamble_ends, next_beat);
    let ready = m.or(wants, draining);
    m.set_ready(&input, ready);
    let takes = m.and(wants, input.valid);
    let tlast = input.beat.last.expect("frames");
    let abort = drain(m, (flags[5].0, draining), wants, (input.valid, tlast));
    let ends = m.all(&[body, word.ends, word.is_last]);
    let (length_register, length) = m.register("length", 16, None);
    let octets = m.add_number(length, 1);
    let least = m.number(16, least);
    let short = m.lt(octets, least);
    let enough = m.not(short);
    let at_end = m.or(ends, padding);
    let last = m.and(at_end, enough);
    let events = Events { start, takes, abort };
    word.follow(m, &input.beat, (body, events.takes));

    let phases = Phases { preamble, body, padding, check };
    let goes_on = m.not(word.ends);
    let body_next = m.and(body, goes_on);
    let body_next = m.or(body_next, takes);
    let padding_next = m.and(at_end, short);
    let until = |m: &mut ModuleBuilder, flag: NodeId, begins: &[NodeId], end: NodeId| {
        let stays = m.not(end);
        let stays = m.and(flag, stays);
        let begins = m.any(begins);
        m.or(begins, stays)
    };
    let preamble_next = until(m, preamble, &[start], preamble_ends);
    let check_next = until(m, check, &[last, abort], check_ends);
    let gap_next = until(m, gap, &[check_ends], gap_ends);
    let nexts = [preamble_next, body_next, padding_next, check_next, gap_next];
    flags.iter().zip(nexts).for_each(|((register, _), next)| m.set_next(*register, next));
    let (zero, following) = (m.number(4, 0), m.add_number(step, 1));
    let begins = m.any(&[start, last, abort, check_ends]);
    let next_step = m.mux(begins, zero, following);
    m.set_next(step_register, next_step);

    // With the check sequence.
    let check_bytes = m.number(16, 4);
    let next_length = m.mux(start, check_bytes, octets);
    m.set_next(length_register, next_length);
    let moves = m.any(&[start, body, padding]);
    m.set_enable(length_register, moves);
    encode(m, &phases, &events, (&word, step));
    count_sent(m, (last, abort), (octets, word.is_bad));
}

impl Word {
    fn new(m: &mut ModuleBuilder, width: u32) -> Word {
        let (data_register, data) = m.register("word", width, None);
        let (left_register, left) = m.register("left", address_width(width / 8 + 1), None);
        let (last_register, is_last) = m.register("is_last", 1, None);
        let (bad_register, is_bad) = m.register("is_bad", 1, None);
        let (octet, ends) = (m.slice(data, 0, 8), m.is(left, 1));
        let registers = [data_register, left_register, last_register, bad_register];
        Word { octet, ends, is_last, is_bad, registers, data, left }
    }

    /// Takes a beat, or moves on by an octet.
    fn follow(&self, m: &mut ModuleBuilder, beat: &Beat, (body, takes): (NodeId, NodeId)) {
        let signal = |signal: Option<NodeId>| signal.expect("a stream of frames");
        let [data, left, last, bad] = self.registers;
        let (keep, tlast, tuser) = (signal(beat.keep), signal(beat.last), signal(beat.user));
        let rest = m.shr_by(self.data, 8);
        let next = m.mux(takes, signal(beat.data), rest);
        let (bytes, one) = (bytes_of(m, keep), m.number(m.width(self.left), 1));
        let fewer = m.sub(self.left, one);
        let next_left = m.mux(takes, bytes, fewer);
        let moves = m.or(takes, body);
        let is_bad = m.and(tuser, tlast);
        for (register, next, when) in
            [(data, next, moves), (left, next_left, moves), (last, tlast, takes), (bad, is_bad, takes)]
        {
            m.set_next(register, next);
            m.set_enable(register, when);
        }
    }
}

/// The octets of each phase, a cycle later at the pins.
fn encode(m: &mut ModuleBuilder, phases: &Phases, events: &Events, (word, step): (&Word, NodeId)) {
    let (crc_register, crc) = m.register("crc", 32, None);
    let zero = m.number(8, 0);
    let octet = m.mux(phases.body, word.octet, zero);
    let summed = after(m, crc, octet, 1);
    let rest = m.shr_by(crc, 8);
    let first = m.number(32, 0xffff_ffff);
    let next = m.first(&[(phases.preamble, first), (phases.check, rest)], summed);
    m.set_next(crc_register, next);

    // A frame that was broken off has no right end either.
    let (broken_register, broken) = m.register("broken", 1, Some(0));
    let whole = m.not(events.start);
    let kept = m.or(broken, events.abort);
    let next = m.and(kept, whole);
    m.set_next(broken_register, next);
    let bad = m.or(word.is_bad, broken);
    let low = m.slice(crc, 0, 8);
    let right = m.not(low);
    let sequence = m.mux(bad, low, right);
    let ends = m.is(step, 7);
    let (of_preamble, start) = (m.number(8, PREAMBLE.into()), m.number(8, START.into()));
    let of_preamble = m.mux(ends, start, of_preamble);
    let data = m.first(&[(phases.preamble, of_preamble), (phases.check, sequence)], octet);
    let en = m.any(&[phases.preamble, phases.body, phases.padding, phases.check]);
    let er = m.and(phases.check, bad);
    for (name, value) in [("data", data), ("en", en), ("er", er)] {
        let value = m.delayed(&format!("{name}_out"), value, Some(0));
        m.output(name, value);
    }
}
