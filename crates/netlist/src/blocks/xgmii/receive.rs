//! The receiving half: from XGMII to a stream of frames without their check sequence.

use super::super::checksum::{after, is_right};
use super::super::mac::{End, count_received, filter, longer};
use super::super::{first_lanes, once};
use super::{START, TERMINATE, is_control};
use crate::*;

/// The receiving half of a MAC. Inputs: `data` and `control` of XGMII; `enable`; `station`, the address of the port, the first byte of
/// it highest, and `promiscuous`, when frames for others are taken too. Output: the stream `m`, which does not wait for `tready`;
/// `tuser` says at the last beat that the frame is bad: its check sequence is wrong, it is shorter than 64 bytes or longer than
/// `longest` with it, or a control character is in it. [`RECEIVE_COUNTERS`](super::super::RECEIVE_COUNTERS) are outputs too.
///
/// A frame starts in lane 0 or 4. Its last four bytes are its check sequence, so a word is held until the next is known: the first beat
/// comes three cycles after the start character. A start within a frame ends that, as bad, and begins another.
pub fn xgmii_receive(design: &mut Design, longest: u32) -> ModuleId {
    once(design, format!("xgmii_receive_{longest}"), |m| receive(m, longest))
}

/// A word of a frame, its first byte in the lowest lane.
struct Aligned {
    data: NodeId,
    /// Bytes before the first control character; 8 if there is none.
    bytes: NodeId,
    ends: NodeId,
    terminates: NodeId,
}

pub(super) fn receive(m: &mut ModuleBuilder, longest: u32) {
    let (data, control) = (m.input("data", 64), m.input("control", 8));
    let enable = m.input("enable", 1);
    let output = m.output_stream("m", StreamShape::frames(64, 1));
    let (before_data, before_control) =
        (m.delayed("before", data, Some(0)), m.delayed("before_control", control, Some(0xff)));
    let (shifted_register, shifted) = m.register("shifted", 1, Some(0));
    let (inside_register, inside) = m.register("inside", 1, Some(0));

    let late = |m: &mut ModuleBuilder, now: NodeId, before: NodeId| {
        let half = m.width(now) / 2;
        let (low, high) = (m.slice(now, 0, half), m.slice(before, half, half));
        m.concat(&[low, high])
    };
    let (late_data, late_control) = (late(m, data, before_data), late(m, control, before_control));
    let early = starts(m, before_data, before_control);
    let delayed = starts(m, late_data, late_control);
    let begins = m.or(early.0, delayed.0);
    let begins = m.and(begins, enable);
    let odd = m.or(early.1, delayed.1);
    let odd = m.and(odd, enable);
    m.set_next(shifted_register, delayed.0);
    m.set_enable(shifted_register, begins);

    let word = (m.mux(shifted, late_data, before_data), m.mux(shifted, late_control, before_control));
    let word = aligned(m, word);
    let goes_on = m.not(word.ends);
    let still = m.and(inside, goes_on);
    let next_inside = m.or(begins, still);
    m.set_next(inside_register, next_inside);
    let full = m.and(inside, goes_on);
    let ended = m.and(inside, word.ends);
    let end = end_of(m, &word, (begins, full), longest);

    // The first word has the address.
    let (held_register, held) = m.register("held", 64, None);
    m.set_next(held_register, word.data);
    m.set_enable(held_register, full);
    let (holds_register, holds) = m.register("holds", 1, Some(0));
    m.set_next(holds_register, full);
    let empty = m.not(holds);
    let first = m.and(full, empty);
    let addressed = filter(m, word.data, first);
    let wanted = addressed.wanted;

    // Bytes of the last word that are not the check sequence go out by themselves.
    let four = m.number(4, 4);
    let has_tail = m.lt(four, word.bytes);
    let (tail_register, tail) = m.register("tail", 1, Some(0));
    let next_tail = m.all(&[ended, holds, wanted, has_tail]);
    m.set_next(tail_register, next_tail);
    let tail_data = m.delayed("tail_data", word.data, None);
    let rest = m.sub(word.bytes, four);
    let tail_bytes = m.delayed("tail_bytes", rest, None);
    let tail_bad = m.delayed("tail_bad", end.bad, None);
    let no_tail = m.not(has_tail);
    let last_held = m.and(ended, no_tail);
    let last = m.or(tail, last_held);
    let left = m.add(word.bytes, four);
    let eight = m.number(4, 8);
    let of_held = m.mux(last_held, left, eight);
    let count_out = m.mux(tail, tail_bytes, of_held);
    let keep = first_lanes(m, count_out, 8);
    let out = m.mux(tail, tail_data, held);
    let bad = m.mux(tail, tail_bad, end.bad);
    let user = m.and(bad, last);
    let gives = m.all(&[inside, holds, wanted]);
    let valid = m.or(gives, tail);
    let beat = Beat { data: Some(out), keep: Some(keep), last: Some(last), user: Some(user) };
    m.drive_stream(&output, &beat, valid);

    count_received(m, &end, &addressed, (ended, holds, odd));
}

/// Whether a word is the start of a frame, and whether it is one that is not as it should be.
fn starts(m: &mut ModuleBuilder, data: NodeId, control: NodeId) -> (NodeId, NodeId) {
    let start = is_control(m, (data, control), 0, START);
    let rest = m.slice(data, 8, 56);
    let preamble = m.is(rest, 0xd5_5555_5555_5555);
    let alone = m.is(control, 1);
    let right = m.and(preamble, alone);
    let wrong = m.not(right);
    (m.and(start, right), m.and(start, wrong))
}

fn aligned(m: &mut ModuleBuilder, (data, control): (NodeId, NodeId)) -> Aligned {
    let ends = m.reduce_or(control);
    let choices: Vec<(NodeId, NodeId)> =
        (0..8).map(|at| (m.bit(control, at), m.number(4, at.into()))).collect();
    let eight = m.number(4, 8);
    let bytes = m.first(&choices, eight);
    let terminators: Vec<(NodeId, NodeId)> =
        (0..8).map(|at| (m.bit(control, at), is_control(m, (data, control), at, TERMINATE))).collect();
    let no = m.number(1, 0);
    let terminates = m.first(&terminators, no);
    Aligned { data, bytes, ends, terminates }
}

/// Check sequence and length up to this word.
fn end_of(m: &mut ModuleBuilder, word: &Aligned, (begins, full): (NodeId, NodeId), longest: u32) -> End {
    let (crc_register, crc) = m.register("crc", 32, None);
    let masked: Vec<NodeId> = (0..8u32)
        .rev()
        .map(|at| {
            let number = m.number(4, at.into());
            let there = m.lt(number, word.bytes);
            let (byte, mask) = (m.slice(word.data, at * 8, 8), m.repeat(there, 8));
            m.and(byte, mask)
        })
        .collect();
    let masked = m.concat(&masked);
    let next = after(m, crc, masked, 8);
    let first = m.number(32, 0xffff_ffff);
    let next_crc = m.mux(begins, first, next);
    m.set_next(crc_register, next_crc);
    let changes = m.or(begins, full);
    m.set_enable(crc_register, changes);
    let low = m.slice(word.bytes, 0, 3);
    let right = is_right(m, next, low);
    let check = m.not(right);

    let (length_register, length) = m.register("length", 16, None);
    let now = longer(m, length, word.bytes);
    let zero = m.number(16, 0);
    let next_length = m.mux(begins, zero, now);
    m.set_next(length_register, next_length);
    m.set_enable(length_register, changes);
    let broken = m.not(word.terminates);
    End::new(m, now, (check, broken), longest)
}
