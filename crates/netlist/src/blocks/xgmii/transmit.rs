//! The sending half: from a stream of frames to XGMII, with preamble, padding, check sequence and gap.

use super::super::checksum::{Ending, after};
use super::super::mac::{bytes_of, count_sent, drain};
use super::super::once;
use super::{ERROR, IDLE, START, TERMINATE};
use crate::*;

/// The sending half of a MAC. Inputs: the stream `s`, whose `tuser` at the last beat has the frame sent with a wrong check sequence;
/// `s_soon`, which may say between two frames that the first beat of the next is there in the next cycle, as it is not taken before the
/// preamble has left. Outputs: `data` and `control` of XGMII, and [`TRANSMIT_COUNTERS`](super::super::TRANSMIT_COUNTERS).
///
/// A frame is made as if it started in lane 0; if it starts in lane 4, all words are moved by half a word. The gap is 12 characters on
/// average (*deficit idle count*): where the next start is not at a multiple of four, it is up to three shorter, and longer again once
/// the deficit would be above three.
pub fn xgmii_transmit(design: &mut Design) -> ModuleId {
    once(design, "xgmii_transmit".to_owned(), transmit)
}

/// A word of a frame before its check sequence is known.
struct Step {
    data: NodeId,
    bytes: NodeId,
    start: NodeId,
    there: NodeId,
    last: NodeId,
    bad: NodeId,
    abort: NodeId,
    shift: NodeId,
}

impl Step {
    /// A cycle later.
    fn delayed(self, m: &mut ModuleBuilder, name: &str) -> Step {
        let mut later = |part: &str, value: NodeId, reset: Option<u128>| {
            m.delayed(&format!("{name}_{part}"), value, reset)
        };
        Step {
            data: later("data", self.data, None),
            bytes: later("bytes", self.bytes, None),
            start: later("start", self.start, Some(0)),
            there: later("there", self.there, Some(0)),
            last: later("last", self.last, Some(0)),
            bad: later("bad", self.bad, None),
            abort: later("abort", self.abort, Some(0)),
            shift: later("shift", self.shift, Some(0)),
        }
    }

    /// Whether it has more than four bytes.
    fn has_many(&self, m: &mut ModuleBuilder) -> NodeId {
        let four = m.number(4, 4);
        m.lt(four, self.bytes)
    }
}

pub(super) fn transmit(m: &mut ModuleBuilder) {
    let input = m.input_stream("s", StreamShape::frames(64, 1));
    let (sending_register, sending) = m.register("sending", 1, Some(0));
    let (padding_register, padding) = m.register("padding", 1, Some(0));
    let (draining_register, draining) = m.register("draining", 1, Some(0));
    let (word_register, word) = m.register("word", 4, Some(0));
    let (gap_register, gap) = m.register("gap", 3, Some(0));
    let (shift_register, shift) = m.register("shift", 1, Some(0));

    // A frame starts when the gap is over.
    let idle = m.not(sending);
    let open = m.is(gap, 0);
    let clear = m.not(draining);
    let may = m.all(&[idle, open, clear]);
    let soon = m.input("s_soon", 1);
    let comes = m.or(input.valid, soon);
    let start = m.and(may, comes);
    let taking = m.not(padding);
    let taking = m.and(sending, taking);
    let ready = m.or(taking, draining);
    m.set_ready(&input, ready);
    let beat = input.beat;
    let comes = m.and(taking, input.valid);
    let tlast = beat.last.expect("frames");
    let (tkeep, tdata) = (beat.keep.expect("frames"), beat.data.expect("frames"));
    let abort = drain(m, (draining_register, draining), taking, (input.valid, tlast));

    // Words 0 to 7 are there in any frame, the last one with at least 4 bytes.
    let early = {
        let seven = m.number(4, 7);
        m.lt(word, seven)
    };
    let at_seven = m.is(word, 7);
    let ended = m.and(comes, tlast);
    let pads = m.and(ended, early);
    let going = m.or(comes, padding);
    let late = m.not(early);
    let of_stream = m.and(ended, late);
    let of_padding = m.and(padding, late);
    let last = m.or(of_stream, of_padding);
    let goes_on = m.not(last);
    let still = m.and(padding, goes_on);
    let next_padding = m.or(pads, still);
    m.set_next(padding_register, next_padding);
    let stops = m.or(last, abort);
    let not_stops = m.not(stops);
    let still = m.and(sending, not_stops);
    let next_sending = m.or(start, still);
    m.set_next(sending_register, next_sending);
    let more = m.add_number(word, 1);
    let top = m.is(word, 8);
    let next_word = m.mux(top, word, more);
    let zero4 = m.number(4, 0);
    let next_word = m.mux(start, zero4, next_word);
    m.set_next(word_register, next_word);
    let moves = m.or(start, going);
    m.set_enable(word_register, moves);

    let (data, stream_bytes) = masked(m, tdata, tkeep, comes);
    let four = m.number(4, 4);
    let few = m.lt(stream_bytes, four);
    let fill = m.and(at_seven, few);
    let stream_bytes = m.mux(fill, four, stream_bytes);
    let eight = m.number(4, 8);
    let of_last = m.mux(padding, four, stream_bytes);
    let bytes = m.mux(last, of_last, eight);
    let (bad_register, bad_before) = m.register("bad_before", 1, Some(0));
    let tuser = beat.user.expect("frames");
    let bad_now = m.and(ended, tuser);
    let bad = m.or(bad_now, bad_before);
    let fresh = m.not(start);
    let bad_next = m.and(bad, fresh);
    m.set_next(bad_register, bad_next);

    let shift_now = gaps(m, (last, abort, bytes), (start, may), (gap_register, gap), (shift_register, shift));
    let there = m.or(going, start);
    let there = m.or(there, abort);
    let step = Step { data, bytes, start, there, last, bad, abort, shift: shift_now };
    let step = step.delayed(m, "step");
    count_frames(m, &step);
    let (step, ending) = checked(m, step);
    encode(m, &step, &ending);
}

fn count_frames(m: &mut ModuleBuilder, step: &Step) {
    let (length_register, length) = m.register("length", 16, None);
    let wide = m.resize(step.bytes, 16);
    let sum = m.add(length, wide);
    let check = m.number(16, 4);
    let next_length = m.mux(step.start, check, sum);
    m.set_next(length_register, next_length);
    m.set_enable(length_register, step.there);
    let last = m.delayed("sent_last", step.last, Some(0));
    let abort = m.delayed("sent_abort", step.abort, Some(0));
    let (octets, bad) = (m.delayed("sent_octets", sum, None), m.delayed("sent_bad", step.bad, None));
    count_sent(m, (last, abort), (octets, bad));
}

/// The bytes of a beat with zeros after the end of the frame, and how many there are.
fn masked(m: &mut ModuleBuilder, data: NodeId, keep: NodeId, comes: NodeId) -> (NodeId, NodeId) {
    let parts: Vec<NodeId> = (0..8u32)
        .rev()
        .map(|at| {
            let (byte, kept) = (m.slice(data, at * 8, 8), m.bit(keep, at));
            let kept = m.and(kept, comes);
            let mask = m.repeat(kept, 8);
            m.and(byte, mask)
        })
        .collect();
    let all = m.concat(&parts);
    (all, bytes_of(m, keep))
}

/// When the next frame may start, and in which half of a word; gives the half of the frame that starts now.
fn gaps(
    m: &mut ModuleBuilder,
    (last, abort, bytes): (NodeId, NodeId, NodeId),
    (start, may): (NodeId, NodeId),
    (gap_register, gap): (RegisterId, NodeId),
    (shift_register, shift): (RegisterId, NodeId),
) -> NodeId {
    let (planned_register, planned) = m.register("planned_shift", 1, Some(0));
    let (deficit_register, deficit) = m.register("deficit", 2, Some(0));
    // The end of the frame is at that place of a word of four characters.
    let over = m.slice(bytes, 0, 2);
    let (wide_deficit, wide_over) = (m.resize(deficit, 3), m.resize(over, 3));
    let sum = m.add(wide_deficit, wide_over);
    let three = m.number(3, 3);
    let early = m.le(sum, three);
    let four = m.number(3, 4);
    let back = m.sub(four, wide_over);
    let paid = m.lt(wide_deficit, back);
    let zero3 = m.number(3, 0);
    let less = m.sub(wide_deficit, back);
    let less = m.mux(paid, zero3, less);
    let next_deficit = m.mux(early, sum, less);
    let next_deficit = m.slice(next_deficit, 0, 2);

    // Halves from the start of the word with the terminator to the next start.
    let lane = m.add_number(bytes, 4);
    let second_word = {
        let three = m.number(4, 3);
        m.lt(three, bytes)
    };
    let in_high = m.bit(lane, 2);
    let wait = m.number(3, 4);
    let early_wait = m.number(3, 3);
    let wait = m.mux(early, early_wait, wait);
    let (shift3, high3) = (m.resize(shift, 3), m.resize(in_high, 3));
    let halves = m.add(wait, shift3);
    let halves = m.add(halves, high3);
    let words = m.slice(halves, 1, 2);
    let words = m.resize(words, 3);
    let second = m.resize(second_word, 3);
    let words = m.add(words, second);
    let one = m.number(3, 1);
    let next_gap = m.sub(words, one);
    let next_shift = m.bit(halves, 0);

    let some = m.reduce_or(gap);
    let less = m.sub(gap, one);
    let counted = m.mux(some, less, gap);
    let longest = m.number(3, 4);
    let after_abort = m.mux(abort, longest, counted);
    let next = m.mux(last, next_gap, after_abort);
    m.set_next(gap_register, next);
    // A frame that comes later starts in lane 0.
    let no = m.number(1, 0);
    let not_start = m.not(start);
    let late = m.and(may, not_start);
    let late = m.or(late, abort);
    let kept = m.mux(late, no, planned);
    let next_planned = m.mux(last, next_shift, kept);
    m.set_next(planned_register, next_planned);
    let none = m.number(2, 0);
    let kept = m.mux(late, none, deficit);
    let next = m.mux(last, next_deficit, kept);
    m.set_next(deficit_register, next);
    let now = m.mux(start, planned, shift);
    m.set_next(shift_register, now);
    now
}

/// The word a cycle later, and the check sequence with the most of its bytes.
fn checked(m: &mut ModuleBuilder, step: Step) -> (Step, Ending) {
    let (crc_register, crc) = m.register("crc", 32, None);
    let next = after(m, crc, step.data, 8);
    let first = m.number(32, 0xffff_ffff);
    let next = m.mux(step.start, first, next);
    m.set_next(crc_register, next);
    m.set_enable(crc_register, step.there);
    let many = step.has_many(m);
    let ending = Ending::new(m, crc, (step.data, many)).delayed(m);
    (step.delayed(m, "checked"), ending)
}

/// Puts check sequence and control characters to the words, and in the next cycle moves them to their lanes.
fn encode(m: &mut ModuleBuilder, step: &Step, ending: &Ending) {
    // The word that ends the frame, and the next: the last one to four bytes of data with what follows them, after four others or none.
    let idle = |m: &mut ModuleBuilder, lanes: u32| -> Vec<NodeId> {
        (0..lanes).map(|_| m.number(8, IDLE.into())).collect()
    };
    let good = m.not(step.bad);
    let flips = m.repeat(good, 32);
    let (low, high) = (m.slice(step.data, 0, 32), m.slice(step.data, 32, 32));
    let many = step.has_many(m);
    let rest = m.mux(many, high, low);
    let mut ends = Vec::new();
    for bytes in 1..=4u32 {
        let check = ending.after(m, bytes);
        let mut parts = idle(m, 12 - bytes - 5);
        parts.push(m.number(8, TERMINATE.into()));
        parts.push(m.xor(check, flips));
        parts.push(m.slice(rest, 0, bytes * 8));
        ends.push(m.concat(&parts));
    }
    let number = m.add_number(step.bytes, 15);
    let number = m.slice(number, 0, 3);
    let of_rest = m.slice(number, 0, 2);
    let end = m.choose(of_rest, &ends);
    let mut parts = idle(m, 4);
    parts.push(end);
    let (far, near) = (m.concat(&[end, low]), m.concat(&parts));
    let end_data = m.mux(many, far, near);
    let controls: Vec<NodeId> =
        (1..=8u32).map(|bytes| m.number(16, u128::from((0xffffu32 << (bytes + 4)) & 0xffff))).collect();
    let end_control = m.choose(number, &controls);
    let (end_data, end_control) =
        (m.delayed("end_data", end_data, None), m.delayed("end_control", end_control, None));
    let preamble = m.number(64, 0xd555_5555_5555_5500 | u128::from(START));
    let errors = m.number(64, u128::from(u64::from(ERROR) * 0x0101_0101_0101_0101));
    let (none, all, one) = (m.number(8, 0), m.number(8, 0xff), m.number(8, 1));
    let data = m.first(&[(step.start, preamble), (step.abort, errors)], step.data);
    let control = m.first(&[(step.start, one), (step.abort, all)], none);
    let (data, control) = (m.delayed("plain_data", data, None), m.delayed("plain_control", control, None));
    let there = m.delayed("plain_there", step.there, Some(0));
    let (last, abort) =
        (m.delayed("plain_last", step.last, Some(0)), m.delayed("plain_abort", step.abort, Some(0)));
    let shift = m.delayed("plain_shift", step.shift, Some(0));

    // What does not go into the word of the end is the next word.
    let idles = idle(m, 8);
    let idles = m.concat(&idles);
    let (spill_register, spill) = m.register_with("spill", 64, Some(Bits::new(64, 0x0707_0707_0707_0707)));
    let (spill_control_register, spill_control) = m.register("spill_control", 8, Some(0xff));
    let stop = m.number(64, 0x0707_0707_0707_0700 | u128::from(TERMINATE));
    let (end_low, end_high) = (m.slice(end_data, 0, 64), m.slice(end_data, 64, 64));
    let (control_low, control_high) = (m.slice(end_control, 0, 8), m.slice(end_control, 8, 8));
    let next_spill = m.first(&[(abort, stop), (last, end_high)], idles);
    m.set_next(spill_register, next_spill);
    let next_control = m.mux(last, control_high, all);
    m.set_next(spill_control_register, next_control);
    let now = m.first(&[(last, end_low), (there, data)], spill);
    let now_control = m.first(&[(last, control_low), (there, control)], spill_control);

    let high = m.slice(now, 32, 32);
    let before = {
        let (register, value) = m.register_with("before", 32, Some(Bits::new(32, 0x0707_0707)));
        m.set_next(register, high);
        value
    };
    let control_high = m.slice(now_control, 4, 4);
    let before_control = m.delayed("before_control", control_high, Some(0xf));
    let (low, control_low) = (m.slice(now, 0, 32), m.slice(now_control, 0, 4));
    let (moved, moved_control) = (m.concat(&[low, before]), m.concat(&[control_low, before_control]));
    let data = m.mux(shift, moved, now);
    let control = m.mux(shift, moved_control, now_control);
    m.output("data", data);
    m.output("control", control);
}
