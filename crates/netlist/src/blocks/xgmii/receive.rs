//! The receiving half: from XGMII to a stream of frames without their check sequence.

use super::super::checksum::{advanced, is_right, of_data};
use super::super::mac::{End, count_received, filter};
use super::super::once;
use super::{START, TERMINATE, is_control};
use crate::*;

/// The receiving half of a MAC. Inputs: `data` and `control` of XGMII; `enable`; `station`, the address of the port, the first byte of
/// it highest, and `promiscuous`, when frames for others are taken too. Output: the stream `m`, which does not wait for `tready`;
/// `tuser` says at the last beat that the frame is bad: its check sequence is wrong, it is shorter than 64 bytes or longer than
/// `longest` with it, or a control character is in it. [`RECEIVE_COUNTERS`](super::super::RECEIVE_COUNTERS) are outputs too.
///
/// A frame starts in lane 0 or 4. Its last four bytes are its check sequence, so a word is held until the next is known: the first beat
/// comes four cycles after the start character. A start in the word that ends another frame is none.
///
/// A word takes four cycles: in the first it is moved to its lane, in the second it is held, or ends the frame, in the third its part
/// of the check sequence is added, and the verdict is known in the fourth. So the last beat leaves in the fourth, others in the second.
/// They do not meet: the next frame begins one word after the end at the earliest, and its first beat waits for its second word.
pub fn xgmii_receive(design: &mut Design, longest: u32) -> ModuleId {
    once(design, format!("xgmii_receive_{longest}"), |m| receive(m, longest))
}

/// A word of a frame, its first byte in the lowest lane.
struct Word {
    data: NodeId,
    control: NodeId,
    /// A bit for each lane: whether it is before the first control character.
    there: NodeId,
    /// The word before a frame, one within it without control characters, the one that ends it.
    begins: NodeId,
    full: NodeId,
    ended: NodeId,
}

pub(super) fn receive(m: &mut ModuleBuilder, longest: u32) {
    let output = m.output_stream("m", StreamShape::frames(64, 1));
    let (word, odd) = word(m);

    // The first word has the address.
    let held = m.kept("held", word.data, word.full, None);
    let holds = m.delayed("holds", word.full, Some(0));
    let empty = m.not(holds);
    let first = m.and(word.full, empty);
    let addressed = filter(m, word.data, first);
    let gives = m.and(holds, addressed.wanted);

    // Bytes of the last word that are not the check sequence go out by themselves.
    let more = m.bit(word.there, 4);
    let tail = m.and(word.ended, more);
    let goes = m.or(word.full, tail);
    let whole = m.and(gives, goes);
    let closes = m.and(gives, word.ended);
    let (low, high) = (m.slice(word.there, 0, 4), m.slice(word.there, 4, 4));
    let (none, four, all) = (m.number(4, 0), m.number(4, 0xf), m.number(8, 0xff));
    let (of_tail, of_held) = (m.concat(&[none, high]), m.concat(&[low, four]));
    let (last_data, last_keep) = (m.mux(more, word.data, held), m.mux(more, of_tail, of_held));
    // The verdict is there two cycles later.
    let later = |m: &mut ModuleBuilder, name: &str, value: NodeId, reset: Option<u128>| {
        let next = m.delayed(&format!("next_{name}"), value, reset);
        m.delayed(name, next, reset)
    };
    let closes = later(m, "closes", closes, Some(0));
    let (last_data, last_keep) =
        (later(m, "last_data", last_data, None), later(m, "last_keep", last_keep, None));
    let end = end_of(m, &word, longest).delayed(m);
    let (out, keep) = (m.mux(closes, last_data, held), m.mux(closes, last_keep, all));
    let user = m.and(closes, end.bad);
    let valid = m.or(closes, whole);
    let beat = Beat { data: Some(out), keep: Some(keep), last: Some(closes), user: Some(user) };
    m.drive_stream(&output, &beat, valid);

    let ended = later(m, "ended", word.ended, Some(0));
    let begun = later(m, "begun", holds, None);
    count_received(m, &end, &addressed, (ended, begun, odd));
}

/// The word that comes, moved to the lane where its frame starts, in registers; and whether something comes that is no start of a frame.
fn word(m: &mut ModuleBuilder) -> (Word, NodeId) {
    let (data, control) = (m.input("data", 64), m.input("control", 8));
    let enable = m.input("enable", 1);
    let (before_data, before_control) =
        (m.delayed("before", data, Some(0)), m.delayed("before_control", control, Some(0xff)));
    let late = |m: &mut ModuleBuilder, now: NodeId, before: NodeId| {
        let half = m.width(now) / 2;
        let (low, high) = (m.slice(now, 0, half), m.slice(before, half, half));
        m.concat(&[low, high])
    };
    let (late_data, late_control) = (late(m, data, before_data), late(m, control, before_control));
    let early = starts(m, before_data, before_control);
    let delayed = starts(m, late_data, late_control);
    let (shifted_register, shifted) = m.register("shifted", 1, Some(0));
    let (data, control) =
        (m.mux(shifted, late_data, before_data), m.mux(shifted, late_control, before_control));
    let lanes: Vec<NodeId> = (0..8)
        .rev()
        .map(|lane| {
            let up_to = m.slice(control, 0, lane + 1);
            let some = m.reduce_or(up_to);
            m.not(some)
        })
        .collect();
    let there = m.concat(&lanes);
    let goes_on = lanes[0];
    let ends = m.not(goes_on);
    let (inside_register, inside) = m.register("inside", 1, Some(0));
    let (full, ended) = (m.and(inside, goes_on), m.and(inside, ends));

    let outside = m.not(ended);
    let starts = m.or(early.0, delayed.0);
    let begins = m.all(&[starts, enable, outside]);
    let close = m.and(starts, ended);
    let odd = m.any(&[early.1, delayed.1, close]);
    let odd = m.and(odd, enable);
    m.set_next(shifted_register, delayed.0);
    m.set_enable(shifted_register, begins);
    let next_inside = m.or(begins, full);
    m.set_next(inside_register, next_inside);
    let word = Word {
        data: m.delayed("word", data, None),
        control: m.delayed("word_control", control, None),
        there: m.delayed("word_there", there, None),
        begins: m.delayed("word_begins", begins, Some(0)),
        full: m.delayed("word_full", full, Some(0)),
        ended: m.delayed("word_ended", ended, Some(0)),
    };
    (word, m.delayed("word_odd", odd, Some(0)))
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

/// Check sequence and length up to this word, a cycle after it.
fn end_of(m: &mut ModuleBuilder, word: &Word, longest: u32) -> End {
    let masked: Vec<NodeId> = (0..8u32)
        .rev()
        .map(|at| {
            let there = m.bit(word.there, at);
            let (byte, mask) = (m.slice(word.data, at * 8, 8), m.repeat(there, 8));
            m.and(byte, mask)
        })
        .collect();
    let masked = m.concat(&masked);
    let added = of_data(m, masked, 8);
    let added = m.delayed("added", added, None);
    let (begins, full) =
        (m.delayed("check_begins", word.begins, Some(0)), m.delayed("check_full", word.full, Some(0)));
    // What the check sequence would be after eight bytes more that are 0: so a word is only added to it.
    let (crc_register, crc) = m.register("crc", 32, None);
    let now = m.xor(crc, added);
    let next = advanced(m, now, 8);
    let first = m.number(32, 0xffff_ffff);
    let first = advanced(m, first, 8);
    let next_crc = m.mux(begins, first, next);
    m.set_next(crc_register, next_crc);
    let changes = m.or(begins, full);
    m.set_enable(crc_register, changes);
    let choices: Vec<(NodeId, NodeId)> = (0..8)
        .map(|at| {
            let there = m.bit(word.there, at);
            (m.not(there), m.number(4, at.into()))
        })
        .collect();
    let eight = m.number(4, 8);
    let bytes = m.first(&choices, eight);
    let low = m.slice(bytes, 0, 3);
    let low = m.delayed("check_bytes", low, None);
    let right = is_right(m, now, low);
    let check = m.not(right);

    // The word that ends a frame has less than eight bytes. Where the number of words stays at the largest one the frame is too long.
    let (words_register, words) = m.register("words", 13, None);
    let most = m.reduce_and(words);
    let more = m.add_number(words, 1);
    let more = m.mux(most, words, more);
    let zero = m.number(13, 0);
    let next_words = m.mux(word.begins, zero, more);
    m.set_next(words_register, next_words);
    let changes = m.or(word.begins, word.full);
    m.set_enable(words_register, changes);
    let words = m.delayed("check_words", words, None);
    let length = m.concat(&[words, low]);

    // The first control character ends the frame as it should, or breaks it.
    let terminators: Vec<(NodeId, NodeId)> = (0..8)
        .map(|at| (m.bit(word.control, at), is_control(m, (word.data, word.control), at, TERMINATE)))
        .collect();
    let no = m.number(1, 0);
    let terminates = m.first(&terminators, no);
    let broken = m.not(terminates);
    let broken = m.delayed("check_broken", broken, None);
    End::new(m, length, (check, broken), longest)
}
