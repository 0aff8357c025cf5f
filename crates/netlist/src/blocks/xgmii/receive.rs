//! The receiving half: from XGMII to a stream of frames without their check sequence.

use super::super::checksum::{after, is_right};
use super::super::once;
use super::{START, TERMINATE, count, is_control};
use crate::*;

/// What a receiving half counts: frames that were given on, their bytes, and by length with the check sequence; those to all and to
/// many; what was wrong of others.
pub const RECEIVE_COUNTERS: [&str; 16] = [
    "frames",
    "octets",
    "length_64",
    "length_65_127",
    "length_128_255",
    "length_256_511",
    "length_512_1023",
    "length_1024_up",
    "broadcast",
    "multicast",
    "bad_check",
    "runt",
    "oversize",
    "bad_control",
    "bad_preamble",
    "filtered",
];

/// The receiving half of a MAC. Inputs: `data` and `control` of XGMII; `enable`; `station`, the address of the port, the first byte of
/// it highest, and `promiscuous`, when frames for others are taken too. Output: the stream `m`, which does not wait for `tready`;
/// `tuser` says at the last beat that the frame is bad: its check sequence is wrong, it is shorter than 64 bytes or longer than
/// `longest` with it, or a control character is in it. [`RECEIVE_COUNTERS`] are outputs too.
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

/// What is known at the end of a frame.
struct End {
    bad: NodeId,
    check: NodeId,
    short: NodeId,
    long: NodeId,
    length: NodeId,
}

pub(super) fn receive(m: &mut ModuleBuilder, longest: u32) {
    let (data, control) = (m.input("data", 64), m.input("control", 8));
    let enable = m.input("enable", 1);
    let (station, promiscuous) = (m.input("station", 48), m.input("promiscuous", 1));
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
    let (wanted_register, wanted) = m.register("wanted", 1, Some(0));
    let bytes: Vec<NodeId> = (0..6).map(|at| m.slice(word.data, at * 8, 8)).collect();
    let address = m.concat(&bytes);
    let own = m.eq(address, station);
    let group = m.bit(word.data, 0);
    let all = m.reduce_and(address);
    let takes = m.any(&[own, group, promiscuous]);
    m.set_next(wanted_register, takes);
    let empty = m.not(holds);
    let first = m.and(full, empty);
    m.set_enable(wanted_register, first);
    let (many_register, many) = m.register("many", 1, Some(0));
    m.set_next(many_register, group);
    m.set_enable(many_register, first);
    let (everyone_register, everyone) = m.register("everyone", 1, Some(0));
    m.set_next(everyone_register, all);
    m.set_enable(everyone_register, first);

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
    let kept: Vec<NodeId> = (0..8u32)
        .rev()
        .map(|at| {
            let at = m.number(4, at.into());
            m.lt(at, count_out)
        })
        .collect();
    let keep = m.concat(&kept);
    let out = m.mux(tail, tail_data, held);
    let bad = m.mux(tail, tail_bad, end.bad);
    let user = m.and(bad, last);
    let gives = m.all(&[inside, holds, wanted]);
    let valid = m.or(gives, tail);
    let beat = Beat { data: Some(out), keep: Some(keep), last: Some(last), user: Some(user) };
    m.drive_stream(&output, &beat, valid);

    let started = m.and(ended, holds);
    let unwanted = m.not(wanted);
    let filtered = m.and(started, unwanted);
    let taken = m.and(started, wanted);
    count_all(m, &end, (ended, taken, filtered), (many, everyone), (word.terminates, odd));
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
    let bytes = m.resize(word.bytes, 16);
    let now = m.add(length, bytes);
    let over = m.lt(now, length);
    let most = m.constant(Bits::ones(16));
    let now = m.mux(over, most, now);
    let zero = m.number(16, 0);
    let next_length = m.mux(begins, zero, now);
    m.set_next(length_register, next_length);
    m.set_enable(length_register, changes);
    let (least, largest) = (m.number(16, 64), m.number(16, u128::from(longest.min(0xfff0))));
    let short = m.lt(now, least);
    let long = m.lt(largest, now);
    let broken = m.not(word.terminates);
    let bad = m.any(&[check, short, long, broken]);
    End { bad, check, short, long, length: now }
}

/// A frame is counted once: as good, or as what is wrong with it first.
fn count_all(
    m: &mut ModuleBuilder,
    end: &End,
    (ended, taken, filtered): (NodeId, NodeId, NodeId),
    (many, everyone): (NodeId, NodeId),
    (terminates, odd): (NodeId, NodeId),
) {
    let one = m.number(1, 1);
    let good = m.not(end.bad);
    let good = m.and(taken, good);
    count(m, "frames", good, one);
    count(m, "octets", good, end.length);
    let limits = [64u128, 128, 256, 512, 1024];
    let mut below = m.number(1, 0);
    let mut sizes = Vec::new();
    let next = |limit: u128| if limit == 64 { 65 } else { limit };
    for limit in limits.map(next).into_iter().chain([1 << 15]) {
        let number = m.number(16, limit);
        let less = m.lt(end.length, number);
        let fresh = m.not(below);
        sizes.push(m.and(less, fresh));
        below = less;
    }
    // The largest size has no end.
    let largest = sizes.len() - 1;
    let smaller = m.any(&sizes[..largest]);
    sizes[largest] = m.not(smaller);
    for (name, size) in RECEIVE_COUNTERS[2..8].iter().zip(sizes) {
        let event = m.and(good, size);
        count(m, name, event, one);
    }
    let single = m.not(everyone);
    let (broadcast, multicast) = (m.and(good, everyone), m.all(&[good, many, single]));
    count(m, "broadcast", broadcast, one);
    count(m, "multicast", multicast, one);
    let broken = m.not(terminates);
    let control = m.and(ended, broken);
    let (short, whole) = (m.and(ended, end.short), m.not(end.short));
    let runt = m.and(short, terminates);
    let oversize = m.all(&[ended, terminates, end.long]);
    let inside = m.not(end.long);
    let check = m.all(&[ended, terminates, whole, inside, end.check]);
    count(m, "bad_check", check, one);
    count(m, "runt", runt, one);
    count(m, "oversize", oversize, one);
    count(m, "bad_control", control, one);
    count(m, "bad_preamble", odd, one);
    let fine = m.not(end.bad);
    let filtered = m.and(filtered, fine);
    count(m, "filtered", filtered, one);
}
