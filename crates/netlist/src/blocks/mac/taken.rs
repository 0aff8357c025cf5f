//! What a sending half has taken of a frame: what monitors compare with what it sends.

use super::monitor::{beat_faults, have_held, input, kept_from_start, output};
use crate::*;

/// Bits of the place of a character, and of the number of a frame.
pub(in crate::blocks) const PLACE: u32 = 9;
pub(in crate::blocks) const FRAME: u32 = 2;
/// Characters before the first byte of a frame: the preamble, and the one that starts the frame.
const BEFORE: u128 = 8;
const PREAMBLE: u128 = 0x55;
const START: u128 = 0xd5;
/// Bytes of the check sequence.
const CHECK: u128 = 4;

/// What is known of one byte of one frame, which may be any: its place and the number of the frame are free, and stay as they are.
pub(in crate::blocks) struct Taken {
    /// Bytes that a frame has at least, without its check sequence.
    least: u128,
    place: NodeId,
    /// The number of the frame.
    pub(in crate::blocks) number: NodeId,
    /// The byte: whether it was there, and its value.
    has: NodeId,
    byte: NodeId,
    /// Whether the end of the frame has been taken, how long it was, and whether it was marked as bad.
    ended: NodeId,
    length: NodeId,
    pub(in crate::blocks) is_bad: NodeId,
    /// A beat of it was missing.
    pub(in crate::blocks) missed: NodeId,
}

impl Taken {
    /// Looks at the stream `s` of the module, of 64 bits; also gives whether it has kept the rules. A frame that is
    /// sent has at least so many bytes without its check sequence.
    pub(in crate::blocks) fn watch(m: &mut ModuleBuilder, least: u128) -> (Taken, NodeId) {
        let place = kept_from_start(m, "place", PLACE);
        let number = kept_from_start(m, "number", FRAME);
        let [valid, last, keep, data, user] =
            ["s_tvalid", "s_tlast", "s_tkeep", "s_tdata", "s_tuser"].map(|name| input(m, name));
        let ready = output(m, "s_tready");
        let passes = m.and(valid, ready);
        let goes_on = m.not(last);
        let begun = m.kept("taken_begun", goes_on, passes, Some(0));
        let ends = m.and(passes, last);
        let (frame_register, frame) = m.register("taken_frame", FRAME, Some(0));
        let one_more = m.add_number(frame, 1);
        m.set_next(frame_register, one_more);
        m.set_enable(frame_register, ends);
        let (at_register, at) = m.register("taken_at", PLACE, Some(0));
        let (zero, further) = (m.number(PLACE, 0), m.add_number(at, 8));
        let next = m.mux(last, zero, further);
        m.set_next(at_register, next);
        m.set_enable(at_register, passes);

        let is_of = m.eq(frame, number);
        let (one, absent) = (m.number(1, 1), m.not(valid));
        let misses = m.all(&[begun, ready, absent, is_of]);
        let missed = m.kept("missed", one, misses, Some(0));
        let offset = m.sub(place, at);
        let eight = m.number(PLACE, 8);
        let inside = m.lt(offset, eight);
        let lane = m.slice(offset, 0, 3);
        let lanes: Vec<NodeId> = (0..8).map(|lane| m.slice(data, lane * 8, 8)).collect();
        let keeps: Vec<NodeId> = (0..8).map(|lane| m.bit(keep, lane)).collect();
        let (byte, is_kept) = (m.choose(lane, &lanes), m.choose(lane, &keeps));
        // What comes after a beat that was missing is thrown away.
        let follows = m.not(missed);
        let found = m.all(&[passes, is_of, inside, is_kept, follows]);
        let of_end = m.and(ends, is_of);
        let has = m.kept("has", one, found, Some(0));
        let byte = m.kept("byte", byte, found, Some(0));
        let ended = m.kept("ended", one, of_end, Some(0));
        let bytes = keeps.iter().fold(at, |sum, bit| {
            let bit = m.resize(*bit, PLACE);
            m.add(sum, bit)
        });
        let length = m.kept("whole", bytes, of_end, Some(0));
        let is_bad = m.kept("is_marked", user, of_end, Some(0));

        // A beat that is offered stays, and is a right one; the mark counts in the last alone, so it may be anything in others.
        let beat = m.concat(&[valid, last, user, keep, data]);
        let before = m.delayed("offered", beat, Some(0));
        let waits = m.not(ready);
        let waits = m.and(valid, waits);
        let waited = m.delayed("waited", waits, Some(0));
        let changed = m.ne(beat, before);
        let changed = m.and(waited, changed);
        let [early, empty, gap, _] = beat_faults(m, (valid, last, user, keep));
        let breaks = m.any(&[changed, early, empty, gap]);
        let holds = m.not(breaks);
        let fine = have_held(m, holds);
        (Taken { least, place, number, has, byte, ended, length, is_bad, missed }, fine)
    }

    /// What is wrong with a character of any frame, which is at that place of it, of this frame if `is_of`: those of the preamble are what
    /// they are; a byte of this frame is the one that was taken, or 0 after the end and before the place of the check sequence; there is
    /// none after that. Of a frame of which a beat was missing only what was taken counts.
    pub(in crate::blocks) fn wrong_character(
        &self,
        m: &mut ModuleBuilder,
        (is_there, is_of): (NodeId, NodeId),
        (at, byte): (NodeId, NodeId),
    ) -> [NodeId; 5] {
        let before = m.number(PLACE, BEFORE);
        let is_before = m.lt(at, before);
        let starts = m.is(at, BEFORE - 1);
        let (of_preamble, of_start) = (m.number(8, PREAMBLE), m.number(8, START));
        let due = m.mux(starts, of_start, of_preamble);
        let other_before = m.ne(byte, due);

        let is_body = m.not(is_before);
        let is_byte = m.all(&[is_there, is_body, is_of]);
        let body = m.sub(at, before);
        let here = m.eq(body, self.place);
        let here = m.and(is_byte, here);
        let other = m.ne(byte, self.byte);
        let (absent, early, is_whole) = (m.not(self.has), m.not(self.ended), m.not(self.missed));
        let least = m.number(PLACE, self.least);
        let is_padded = m.lt(self.place, least);
        let some = m.reduce_or(byte);
        let all = self.characters(m);
        let is_over = m.le(all, at);
        [
            m.all(&[is_there, is_before, other_before]),
            m.all(&[here, self.has, other]),
            m.all(&[here, absent, early, is_whole]),
            m.all(&[here, absent, is_padded, some, is_whole]),
            m.all(&[is_byte, self.ended, is_over, is_whole]),
        ]
    }

    /// Whether it is wrong that the frame ends after so many characters: it is not all of it, or a beat was missing and nothing says so.
    pub(in crate::blocks) fn wrong_end(
        &self,
        m: &mut ModuleBuilder,
        ends: NodeId,
        (at, broken): (NodeId, NodeId),
    ) -> NodeId {
        let all = self.characters(m);
        let complete = m.eq(at, all);
        let complete = m.and(complete, self.ended);
        let right = m.mux(self.missed, broken, complete);
        let wrong = m.not(right);
        m.and(ends, wrong)
    }

    /// Characters of the whole frame, with its preamble and its check sequence.
    fn characters(&self, m: &mut ModuleBuilder) -> NodeId {
        let least = m.number(PLACE, self.least);
        let is_long = m.lt(least, self.length);
        let length = m.mux(is_long, self.length, least);
        m.add_number(length, BEFORE + CHECK)
    }
}
