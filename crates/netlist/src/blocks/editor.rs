//! An editor: new bytes, then the rest of a frame that lies in a memory, as a stream.

#[cfg(test)]
pub(super) mod monitor;

use super::{first_lanes, once};
use crate::*;

/// The widths of an editor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EditorShape {
    /// Bits of `tdata`: a power of two of bytes.
    pub data: u32,
    /// The most bytes that are put before the rest.
    pub emitted: u32,
    /// Bits of the number of a word of a frame.
    pub word: u32,
    /// By how many lanes the old bytes may move: bit *n* for a move by *n* of them to the back, round the end of a beat.
    pub moves: u64,
}

impl EditorShape {
    /// All moves within a beat of so many bits.
    pub fn all_moves(data: u32) -> u64 {
        u64::MAX >> (64 - (data / 8).clamp(1, 64))
    }

    /// The moves that there may be; no move, if none is named.
    fn lanes(self) -> Vec<u32> {
        let moves = match self.moves & Self::all_moves(self.data) {
            0 => 1,
            moves => moves,
        };
        (0..self.bytes()).filter(|by| moves >> by & 1 == 1).collect()
    }

    /// The bytes of a word.
    pub fn bytes(self) -> u32 {
        self.data / 8
    }

    /// The bits of a byte's number within a word.
    pub fn lane(self) -> u32 {
        address_width(self.bytes())
    }

    /// The bits of lengths and places in bytes.
    pub fn place(self) -> u32 {
        self.word + self.lane() + 1
    }

    /// The bits of what an editor is told of how old bytes move.
    pub fn moved(self) -> u32 {
        self.place() + 1
    }
}

/// How the old bytes of a frame move, as an editor is told: lowest the lanes, then the number of the step that it begins with, highest
/// whether they move to the front. The frame has so many new bytes before the byte `payload_from` of the old ones; both have the bits of
/// [`EditorShape::place`]. It takes two sums, so it is computed once and not by each editor.
pub fn editor_moves(
    m: &mut ModuleBuilder,
    shape: EditorShape,
    emitted_bytes: NodeId,
    payload_from: NodeId,
) -> NodeId {
    let (lane, place) = (shape.lane(), shape.place());
    let by = m.sub(emitted_bytes, payload_from);
    let (lanes, words) = (m.slice(by, 0, lane), m.slice(by, lane, place - lane));
    let forward = m.bit(by, place - 1);
    // With `words` negative the word before the first beat is read too: -words - 1.
    let inverted = m.not(words);
    let negative = m.add_number(inverted, 1);
    let first = m.mux(forward, inverted, negative);
    m.concat(&[forward, first, lanes])
}

/// An editor of frames in a memory. Inputs: `start` with `emitted` (the first byte highest), `emitted_bytes` and `moves` (as
/// [`editor_moves`] has them); `available` says whether the word `word` may be read, `ends` whether it is the last, `less` its bytes
/// less one and `bad` whether the frame is bad then; `stored` is what the memory gave for the last `word` with `read`, from the next
/// cycle on until the next `read`. Outputs: `take`, when the next frame is started; `read` and `word`; `done`, with the last beat or
/// in place of it if the frame has no bytes; the stream `m`, whose `tuser` says at the last beat that the frame is bad; `emits`, when
/// a beat of the frame that was taken last is at the output from the next cycle on; `moves_on`, when `word` is another one from the
/// next cycle on; `soon`, when a beat is at the output in the next cycle if none is taken in this one.
///
/// The old bytes move by their lanes and by words, so each beat but its first `emitted_bytes` is made of two words, which
/// are turned by so many *lanes*: the last bytes of the one before, then the first of this one. The memory is read a word a cycle; a
/// frame follows the one before it after one cycle without a beat, or two where the old bytes move to the front.
///
/// # Panics
/// The width is no power of two of bytes from 2 to 64.
pub fn editor(design: &mut Design, shape: EditorShape) -> ModuleId {
    assert!(shape.data.is_power_of_two() && (16..=512).contains(&shape.data), "words of 2 to 64 bytes");
    let EditorShape { data, emitted, word, moves } = shape;
    let of_moves = match moves == EditorShape::all_moves(data) {
        true => String::new(),
        false => format!("_{moves:x}"),
    };
    once(design, format!("editor_{data}_{emitted}_{word}{of_moves}"), |m| edit(m, shape))
}

/// A step of an editor: what the memory gave, turned by the lanes of the frame.
struct Step {
    turned: NodeId,
    bad: NodeId,
    /// It is the frame's last word.
    last: NodeId,
    /// Where its end comes to lie, counted from the start of the beat.
    end: NodeId,
    /// That is within the beat.
    fits: NodeId,
}

/// What is known of a word with its number: whether it is the last, and if it is, its bytes less one, whether it ends after the beat, and
/// whether the frame is bad.
struct End {
    last: NodeId,
    less: NodeId,
    over: NodeId,
    bad: NodeId,
}

impl End {
    /// In registers, which take what is known of the word that is read.
    fn registers(m: &mut ModuleBuilder, lane: u32) -> (End, [RegisterId; 4]) {
        let [last, less, over, bad] = [("is_end", 1), ("less_now", lane), ("is_over", 1), ("is_bad", 1)]
            .map(|(name, bits)| m.register(name, bits, None));
        let registers = [last.0, less.0, over.0, bad.0];
        (End { last: last.1, less: less.1, over: over.1, bad: bad.1 }, registers)
    }
}

/// The frame that is edited.
struct Frame {
    /// By how many lanes its bytes move, and which of the few moves that is where there are few.
    lanes: NodeId,
    turn: NodeId,
    /// New bytes that have not gone out, the first one highest, and how many.
    emitted: NodeId,
    left: NodeId,
    /// The word before this one, turned.
    before: NodeId,
    /// That was the last, and so many bytes of it are to go out.
    ended: NodeId,
    rest: NodeId,
    bad: NodeId,
}

fn edit(m: &mut ModuleBuilder, shape: EditorShape) {
    let (lane, place) = (shape.lane(), shape.place());
    let start = m.input("start", 1);
    let emitted = m.input("emitted", shape.emitted.max(1) * 8);
    let emitted_bytes = m.input("emitted_bytes", place);
    let told = m.input("moves", shape.moved());
    let available = m.input("available", 1);
    let (at_end, less) = (m.input("ends", 1), m.input("less", lane));
    let (bad, stored) = (m.input("bad", 1), m.input("stored", shape.data));
    let output = m.output_stream("m", StreamShape::frames(shape.data, 1));

    let lanes = match shape.lanes()[..] {
        [only] => m.number(lane, only.into()),
        _ => m.slice(told, 0, lane),
    };
    let (first, forward) = (m.slice(told, lane, place - lane), m.bit(told, place));

    let (busy_register, busy) = m.register("busy", 1, Some(0));
    let (step_register, step) = m.register("step", place - lane, None);
    let (preload_register, preload) = m.register("preload", 1, None);
    let (waiting_register, waiting) = m.register("waiting", 1, Some(0));
    let (end, end_registers) = End::registers(m, lane);
    let (front_register, front) = m.register("front", 1, None);
    let (out_register, out_valid) = m.register("out_valid", 1, Some(0));
    let (frame, kept) = frame_registers(m, shape);

    // What the memory gave goes out with what it gave before. A step before the first beat only gives that.
    let this = step_of(m, shape, &frame, stored, end);
    let out_empty = m.not(out_valid);
    let out_free = m.or(out_empty, output.ready);
    let may = m.or(front, out_free);
    let goes = m.and(waiting, may);
    let is_beat = m.not(front);
    let emits = m.and(goes, is_beat);
    let ends = m.and(this.last, this.fits);
    let last_beat = m.or(frame.ended, ends);
    let last = m.mux(front, ends, last_beat);
    let finish = m.and(goes, last);
    let beat = beat_of(m, shape, &frame, &this, last_beat);
    let beat_bits = m.beat_bits(&beat);
    let out_bits = m.kept("out", beat_bits, emits, None);
    let keeps = m.not(output.ready);
    let keeps = m.and(out_valid, keeps);
    let next_out = m.or(emits, keeps);
    m.set_next(out_register, next_out);

    // The next word is read while the step before it goes.
    let idle = m.not(waiting);
    let room = m.or(idle, goes);
    // What is asked for while the last word goes, nobody looks at: so the memory does not wait for that to be known.
    let (going_on, void) = (m.not(finish), m.bit(step, place - lane - 1));
    let ready = m.or(void, available);
    let issue = m.all(&[busy, room, ready]);
    let real = m.not(void);
    let read = m.and(issue, real);
    let stands = m.not(goes);
    let stands = m.and(waiting, stands);
    let comes = m.and(issue, going_on);
    let next_waiting = m.or(comes, stands);
    m.set_next(waiting_register, next_waiting);
    // The end is known with the number of the word, and not only when the memory has given it.
    let at_end = m.and(at_end, real);
    let over = carries(m, frame.lanes, less);
    for (register, value) in end_registers.into_iter().zip([at_end, less, over, bad]) {
        m.set_next(register, value);
        m.set_enable(register, issue);
    }
    m.set_next(front_register, preload);
    m.set_enable(front_register, issue);

    let free = m.not(busy);
    let free = m.or(free, finish);
    let take = m.and(start, free);
    let next_busy = m.mux(free, start, busy);
    m.set_next(busy_register, next_busy);
    let following = m.add_number(step, 1);
    let next_step = m.mux(take, first, following);
    m.set_next(step_register, next_step);
    let moves = m.or(take, issue);
    m.set_enable(step_register, moves);
    let next_preload = m.and(take, forward);
    m.set_next(preload_register, next_preload);
    m.set_enable(preload_register, moves);

    let begin = Begin { take, lanes, emitted, emitted_bytes };
    keep_frame(m, shape, (&frame, kept), &begin, (&this, goes, emits, finish));

    let address = m.slice(step, 0, shape.word);
    m.output("take", take);
    m.output("read", read);
    m.output("word", address);
    m.output("done", finish);
    m.output("emits", emits);
    m.output("moves_on", moves);
    let follows = m.and(waiting, is_beat);
    let soon = m.or(out_valid, follows);
    m.output("soon", soon);
    let out = m.bits_beat(StreamShape::frames(shape.data, 1), out_bits);
    m.drive_stream(&output, &out, out_valid);
}

/// The registers of a [`Frame`].
struct FrameRegisters {
    lanes: RegisterId,
    turn: RegisterId,
    emitted: RegisterId,
    left: RegisterId,
    before: RegisterId,
    ended: RegisterId,
    rest: RegisterId,
    bad: RegisterId,
}

/// A frame that is started.
struct Begin {
    take: NodeId,
    lanes: NodeId,
    emitted: NodeId,
    emitted_bytes: NodeId,
}

fn frame_registers(m: &mut ModuleBuilder, shape: EditorShape) -> (Frame, FrameRegisters) {
    let lane = shape.lane();
    let lanes = m.register("lanes", lane, None);
    let turn = m.register("turn", address_width(shape.lanes().len() as u32), None);
    let emitted = m.register("emitted_now", shape.emitted.max(1) * 8, None);
    let left = m.register("left", shape.place(), None);
    let before = m.register("before", shape.data, None);
    let ended = m.register("ended", 1, Some(0));
    let rest = m.register("rest", lane + 1, None);
    let bad = m.register("bad", 1, None);
    let frame = Frame {
        lanes: lanes.1,
        turn: turn.1,
        emitted: emitted.1,
        left: left.1,
        before: before.1,
        ended: ended.1,
        rest: rest.1,
        bad: bad.1,
    };
    let registers = FrameRegisters {
        lanes: lanes.0,
        turn: turn.0,
        emitted: emitted.0,
        left: left.0,
        before: before.0,
        ended: ended.0,
        rest: rest.0,
        bad: bad.0,
    };
    (frame, registers)
}

/// What the registers of the frame take.
fn keep_frame(
    m: &mut ModuleBuilder,
    shape: EditorShape,
    (frame, registers): (&Frame, FrameRegisters),
    begin: &Begin,
    (this, goes, emits, finish): (&Step, NodeId, NodeId, NodeId),
) {
    let (lane, place) = (shape.lane(), shape.place());
    let Begin { take, lanes, emitted, emitted_bytes } = *begin;
    let (emitted_now, left, ended) = (frame.emitted, frame.left, frame.ended);
    m.set_next(registers.lanes, lanes);
    m.set_enable(registers.lanes, take);
    let numbered: Vec<(NodeId, NodeId)> = (0..)
        .zip(shape.lanes())
        .map(|(number, by)| (m.is(lanes, by.into()), m.number(m.width(frame.turn), number)))
        .collect();
    let turn = m.one_hot(m.width(frame.turn), &numbered);
    m.set_next(registers.turn, turn);
    m.set_enable(registers.turn, take);
    let is_long = m.width(emitted_now) > shape.data;
    let next_emitted = match is_long {
        true => {
            let shifted = m.shl_by(emitted_now, shape.data);
            m.mux(take, emitted, shifted)
        }
        // After the first beat none of these is left.
        false => emitted,
    };
    m.set_next(registers.emitted, next_emitted);
    let bytes = m.number(place, shape.bytes().into());
    let fewer = m.lt(left, bytes);
    let less = m.sub(left, bytes);
    let zero = m.number(place, 0);
    let less = m.mux(fewer, zero, less);
    let next_left = m.mux(take, emitted_bytes, less);
    m.set_next(registers.left, next_left);
    let changes = m.or(take, emits);
    m.set_enable(registers.emitted, if is_long { changes } else { take });
    m.set_enable(registers.left, changes);

    m.set_next(registers.before, this.turned);
    m.set_enable(registers.before, goes);
    let over = m.not(this.fits);
    let over = m.and(this.last, over);
    let fresh = m.not(finish);
    let next_ended = m.and(over, fresh);
    let next_ended = m.mux(goes, next_ended, ended);
    m.set_next(registers.ended, next_ended);
    let rest = m.slice(this.end, 0, lane);
    let rest = m.resize(rest, lane + 1);
    m.set_next(registers.rest, rest);
    m.set_enable(registers.rest, goes);
    m.set_next(registers.bad, this.bad);
    m.set_enable(registers.bad, goes);
}

fn step_of(
    m: &mut ModuleBuilder,
    shape: EditorShape,
    frame: &Frame,
    stored: NodeId,
    End { last, less, over, bad }: End,
) -> Step {
    let lane = shape.lane();
    let fits = m.not(over);
    let (lanes, less) = (m.resize(frame.lanes, lane + 2), m.resize(less, lane + 2));
    let end = m.add(lanes, less);
    let end = m.add_number(end, 1);
    let turned = turned(m, shape, frame, stored);
    Step { turned, bad, last, end, fits }
}

/// Whether a sum of two numbers does not fit their bits. A few of them are lookup tables after each other, without the carry chain, which
/// takes longer to get to.
fn carries(m: &mut ModuleBuilder, a: NodeId, b: NodeId) -> NodeId {
    let mut carry = m.number(1, 0);
    for at in 0..m.width(a) {
        let (a, b) = (m.bit(a, at), m.bit(b, at));
        let (both, either) = (m.and(a, b), m.or(a, b));
        let passes = m.and(either, carry);
        carry = m.or(both, passes);
    }
    carry
}

/// The moves that are chosen from at once: as many as a lookup table of six inputs does.
const AT_ONCE: usize = 4;

/// A word with its bytes moved by the lanes of the frame to the back, the last ones to the front.
fn turned(m: &mut ModuleBuilder, shape: EditorShape, frame: &Frame, word: NodeId) -> NodeId {
    let by = |m: &mut ModuleBuilder, word: NodeId, lanes: u32| match 8 * (lanes % shape.bytes()) {
        0 => word,
        bits => {
            let (low, high) = (m.slice(word, 0, shape.data - bits), m.slice(word, shape.data - bits, bits));
            m.concat(&[low, high])
        }
    };
    let all = shape.lanes();
    if all.len() <= AT_ONCE {
        let words: Vec<NodeId> = all.iter().map(|lanes| by(m, word, *lanes)).collect();
        return m.choose(frame.turn, &words);
    }
    // Two bits of the number of lanes at once, without those by which no move differs.
    let mut word = word;
    for low in (0..shape.lane()).step_by(2) {
        let bits = 2.min(shape.lane() - low);
        let words: Vec<NodeId> = (0..1 << bits)
            .map(|digit| {
                let is_there = all.iter().any(|lanes| lanes >> low & 3 == digit);
                let digit = if is_there { digit } else { all[0] >> low & 3 };
                by(m, word, digit << low)
            })
            .collect();
        let digit = m.slice(frame.lanes, low, bits);
        word = m.choose(digit, &words);
    }
    word
}

fn beat_of(m: &mut ModuleBuilder, shape: EditorShape, frame: &Frame, this: &Step, last: NodeId) -> Beat {
    let (bytes, lane) = (shape.bytes(), shape.lane());
    // The first bytes are of the word before.
    let furthest = shape.lanes().last().copied().unwrap_or(0);
    let most = m.width(frame.emitted) / 8;
    let mut parts = Vec::new();
    for at in (0..bytes).rev() {
        let old = m.slice(this.turned, at * 8, 8);
        let old = match at < furthest {
            true => {
                let number = m.number(lane, at.into());
                let (is_before, before) = (m.lt(number, frame.lanes), m.slice(frame.before, at * 8, 8));
                m.mux(is_before, before, old)
            }
            false => old,
        };
        parts.push(match at < most {
            true => {
                let new = m.slice(frame.emitted, (most - 1 - at) * 8, 8);
                let place = m.number(m.width(frame.left), at.into());
                let is_new = m.lt(place, frame.left);
                m.mux(is_new, new, old)
            }
            false => old,
        });
    }
    let data = m.concat(&parts);
    let all = m.number(lane + 1, bytes.into());
    let end = m.slice(this.end, 0, lane + 1);
    let ends = m.and(this.last, this.fits);
    let some = m.mux(ends, end, all);
    let count = m.mux(frame.ended, frame.rest, some);
    let keep = first_lanes(m, count, bytes);
    let bad = m.mux(frame.ended, frame.bad, this.bad);
    let user = m.and(bad, last);
    Beat { data: Some(data), keep: Some(keep), last: Some(last), user: Some(user) }
}
