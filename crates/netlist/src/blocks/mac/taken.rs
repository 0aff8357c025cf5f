//! What a sending half has taken of a frame: what monitors compare with what it sends.

use super::monitor::{Kept, input, kept_from_start, output};
use crate::*;

/// Bits of the place of a character, and of the number of a frame.
pub(in crate::blocks) const PLACE: u32 = 9;
pub(in crate::blocks) const FRAME: u32 = 2;
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
        let (begun_register, begun) = m.register("taken_begun", 1, Some(0));
        let goes_on = m.not(last);
        m.set_next(begun_register, goes_on);
        m.set_enable(begun_register, passes);
        let ends = m.and(passes, last);
        let frame = Kept::new(m, "taken_frame", FRAME);
        let one_more = m.add_number(frame.value, 1);
        frame.set(m, one_more, ends);
        let at = Kept::new(m, "taken_at", PLACE);
        let (zero, further) = (m.number(PLACE, 0), m.add_number(at.value, 8));
        let next = m.mux(last, zero, further);
        at.set(m, next, passes);

        let is_of = m.eq(frame.value, number);
        let offset = m.sub(place, at.value);
        let eight = m.number(PLACE, 8);
        let inside = m.lt(offset, eight);
        let lane = m.slice(offset, 0, 3);
        let lanes: Vec<NodeId> = (0..8).map(|lane| m.slice(data, lane * 8, 8)).collect();
        let keeps: Vec<NodeId> = (0..8).map(|lane| m.bit(keep, lane)).collect();
        let (byte, is_kept) = (m.choose(lane, &lanes), m.choose(lane, &keeps));
        // What comes after a beat that was missing is thrown away.
        let missed = Kept::new(m, "missed", 1);
        let follows = m.not(missed.value);
        let found = m.all(&[passes, is_of, inside, is_kept, follows]);
        let (one, of_end) = (m.number(1, 1), m.and(ends, is_of));
        let has = Kept::new(m, "has", 1).set(m, one, found);
        let byte = Kept::new(m, "byte", 8).set(m, byte, found);
        let ended = Kept::new(m, "ended", 1).set(m, one, of_end);
        let bytes = keeps.iter().fold(at.value, |sum, bit| {
            let bit = m.resize(*bit, PLACE);
            m.add(sum, bit)
        });
        let length = Kept::new(m, "whole", PLACE).set(m, bytes, of_end);
        let is_bad = Kept::new(m, "is_marked", 1).set(m, user, of_end);
        let absent = m.not(valid);
        let misses = m.all(&[begun, ready, absent, is_of]);
        let missed = missed.set(m, one, misses);

        // A beat that is offered stays; all of its bytes are there but in the last one, which has the first ones.
        let beat = m.concat(&[valid, last, user, keep, data]);
        let before = m.delayed("offered", beat, Some(0));
        let waits = m.not(ready);
        let waits = m.and(valid, waits);
        let waited = m.delayed("waited", waits, Some(0));
        let changed = m.ne(beat, before);
        let breaks = m.and(waited, changed);
        let full = m.reduce_and(keep);
        let whole = m.or(full, last);
        let next = m.add_number(keep, 1);
        let gap = m.and(next, keep);
        let is_first = m.is(gap, 0);
        let some = m.reduce_or(keep);
        let right = m.all(&[whole, is_first, some]);
        let right = m.or(absent, right);
        let kept = m.not(breaks);
        let holds = m.and(right, kept);
        let (register, before) = m.register("fine", 1, Some(1));
        let fine = m.and(holds, before);
        m.set_next(register, fine);
        (Taken { least, place, number, has, byte, ended, length, is_bad, missed }, fine)
    }

    /// What is wrong with a byte of the frame, which is at that place of it: it is the one that was taken, or 0 after the end and before
    /// the place of the check sequence; there is none after that. Of a frame of which a beat was missing only what was taken counts.
    pub(in crate::blocks) fn wrong_byte(
        &self,
        m: &mut ModuleBuilder,
        is_byte: NodeId,
        (at, byte): (NodeId, NodeId),
    ) -> [NodeId; 4] {
        let here = m.eq(at, self.place);
        let here = m.and(is_byte, here);
        let other = m.ne(byte, self.byte);
        let (absent, early, is_whole) = (m.not(self.has), m.not(self.ended), m.not(self.missed));
        let least = m.number(PLACE, self.least);
        let is_padded = m.lt(self.place, least);
        let some = m.reduce_or(byte);
        let all = self.characters(m);
        let is_over = m.le(all, at);
        [
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

    /// Characters of the whole frame, with its check sequence.
    fn characters(&self, m: &mut ModuleBuilder) -> NodeId {
        let least = m.number(PLACE, self.least);
        let is_long = m.lt(least, self.length);
        let length = m.mux(is_long, self.length, least);
        m.add_number(length, CHECK)
    }
}
