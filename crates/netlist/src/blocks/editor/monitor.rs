//! An editor with a monitor of its stream, whose output `fault` is 1 when a beat is not what it should be.

use super::super::mac::monitor::{have_held, input, kept_from_start, output};
use super::{EditorShape, edit, editor_moves};
use crate::*;

/// Beats of two bytes, up to three new bytes, frames of up to two words.
const SHAPE: EditorShape = EditorShape { data: 16, emitted: 3, word: 1, moves: 3 };
/// Bytes of the memory.
const MEMORY: u32 = 4;
/// Bits of places in the new frame.
const PLACE: u32 = 4;

/// For any contents of the memory, any lengths, any time at which words are there and beats are taken: the beats of a frame have the new
/// bytes, then the old ones from `payload_from` on, each once and in order, and nothing else; the last is marked, also as bad if the
/// frame is; one that is not taken stays; `done` comes once for each frame.
///
/// What comes in from outside is free. As soon as it breaks the rules that the editor asks for, nothing that follows counts.
pub(crate) fn monitored() -> Design {
    let mut m = ModuleBuilder::new("monitored_editor");
    edit(&mut m, SHAPE);
    let mut rules = Vec::new();

    // The memory, as it is in the first cycle, and what it gives.
    let bytes = kept_from_start(&mut m, "bytes", 8 * MEMORY);
    let length = kept_from_start(&mut m, "length", PLACE);
    let is_bad = kept_from_start(&mut m, "is_bad", 1);
    let (some, most) = (m.reduce_or(length), m.number(PLACE, MEMORY.into()));
    rules.extend([some, m.le(length, most)]);
    let (read, word) = (output(&m, "read"), output(&m, "word"));
    let last_byte = {
        let one = m.number(PLACE, 1);
        m.sub(length, one)
    };
    let last_word = m.slice(last_byte, 1, 1);
    let ends = m.eq(word, last_word);
    let (low, high) = (m.slice(bytes, 0, 16), m.slice(bytes, 16, 16));
    let data = m.mux(word, high, low);
    let less = m.bit(last_byte, 0);
    // Of what follows the last word nothing is known.
    let beyond = m.lt(last_word, word);
    let kept = m.kept("given", data, read, Some(0));
    let inside = m.not(beyond);
    let known = m.kept("known", inside, read, Some(0));
    let stored = input(&m, "stored");
    let same = m.eq(stored, kept);
    let unknown = m.not(known);
    rules.push(m.or(same, unknown));
    // How many bytes the last word has less than all, and whether the frame is bad, is of no meaning in another one.
    let (told_end, told_less, told_bad) = (input(&m, "ends"), input(&m, "less"), input(&m, "bad"));
    let right_end = m.eq(told_end, ends);
    let (right_less, right_bad, other) = (m.eq(told_less, less), m.eq(told_bad, is_bad), m.not(ends));
    let right_told = m.and(right_less, right_bad);
    let right_told = m.or(right_told, other);
    let right = m.and(right_end, right_told);
    let not_read = m.not(read);
    rules.push(m.any(&[right, not_read, beyond]));

    // The frame that was taken last.
    let take = output(&m, "take");
    let (new, count, from) =
        (input(&m, "emitted"), input(&m, "emitted_bytes"), m.input("payload_from", SHAPE.place()));
    let moves = editor_moves(&mut m, SHAPE, count, from);
    let told = input(&m, "moves");
    rules.push(m.eq(told, moves));
    let fits = {
        let most = m.number(m.width(count), SHAPE.emitted.into());
        let fits = m.le(count, most);
        let from = m.resize(from, PLACE);
        let within = m.le(from, length);
        let both = m.and(fits, within);
        let idle = m.not(take);
        m.or(both, idle)
    };
    rules.push(fits);
    let (count, from) = (m.resize(count, PLACE), m.resize(from, PLACE));
    let new = m.kept("new", new, take, Some(0));
    let count = m.kept("count", count, take, Some(0));
    let from = m.kept("from", from, take, Some(0));
    let all = m.add(count, length);
    let all = m.sub(all, from);

    let monitor = Monitor { bytes, is_bad, new, count, from, all };
    let wrong = monitor.wrong(&mut m, take);

    let holds = m.all(&rules);
    let fine = have_held(&mut m, holds);
    let bad = m.and(fine, wrong);
    m.output("fault", bad);
    let mut design = Design::new();
    design.add(m.finish());
    design
}

/// What is known of the memory and of the frame that was taken last.
struct Monitor {
    bytes: NodeId,
    is_bad: NodeId,
    new: NodeId,
    count: NodeId,
    from: NodeId,
    /// Bytes of the new frame.
    all: NodeId,
}

impl Monitor {
    /// Whether something is wrong in this cycle.
    fn wrong(&self, m: &mut ModuleBuilder, take: NodeId) -> NodeId {
        let mut wrong = Vec::new();
        let [valid, data, keep, last, user] =
            ["m_tvalid", "m_tdata", "m_tkeep", "m_tlast", "m_tuser"].map(|name| output(m, name));
        let (ready, done) = (input(m, "m_tready"), output(m, "done"));

        // The beat that is made for the next cycle belongs to the frame that was taken last; the one at the output may be the last of the
        // frame before. So each beat is looked at in the first cycle at the output, next to what its frame was in the cycle before.
        let emits = output(m, "emits");
        let (place_register, place) = m.register("place", PLACE, Some(0));
        let (two, zero) = (m.number(PLACE, 2), m.number(PLACE, 0));
        let after = m.add(place, two);
        let after = m.mux(emits, after, place);
        let next = m.mux(take, zero, after);
        m.set_next(place_register, next);
        let mut expected = Vec::new();
        for lane in 0..2 {
            let lane = m.number(PLACE, lane);
            let at = m.add(place, lane);
            expected.push((m.lt(at, self.all), self.byte(m, at)));
        }
        let is_last = m.le(self.all, after);
        let is_bad = m.and(is_last, self.is_bad);
        let word = m.concat(&[is_bad, is_last, expected[1].0, expected[0].0, expected[1].1, expected[0].1]);
        let beat = m.kept("expected", word, emits, Some(0));
        let mask = {
            let lanes: Vec<NodeId> = [17, 16].map(|bit| m.bit(beat, bit)).to_vec();
            let lanes: Vec<NodeId> = lanes.into_iter().map(|lane| m.repeat(lane, 8)).collect();
            let ones = m.number(4, 0xf);
            m.concat(&[ones, lanes[0], lanes[1]])
        };
        let found = m.concat(&[user, last, keep, data]);
        let differs = m.xor(found, beat);
        let differs = m.and(differs, mask);
        let differs = m.reduce_or(differs);
        wrong.push(m.and(valid, differs));

        // A beat is at the output from the cycle after it was made until it is taken, and none else.
        let (there, stays) = lasts(m, "there", emits, ready);
        wrong.push(m.xor(valid, there));
        wrong.push(m.and(emits, stays));

        // From `take` to `done` there is a frame, whose beats are made by then; no byte of one that has none.
        let (under_way, stays) = lasts(m, "under_way", take, done);
        let absent = m.not(under_way);
        wrong.push(m.and(done, absent));
        wrong.push(m.and(emits, absent));
        wrong.push(m.and(take, stays));
        let short = m.lt(after, self.all);
        wrong.push(m.and(done, short));
        let over = m.le(self.all, place);
        wrong.push(m.and(emits, over));
        m.any(&wrong)
    }

    /// A byte of the new frame.
    fn byte(&self, m: &mut ModuleBuilder, place: NodeId) -> NodeId {
        let emitted = SHAPE.emitted;
        let new: Vec<NodeId> = (0..emitted).map(|at| m.slice(self.new, 8 * (emitted - 1 - at), 8)).collect();
        let new = m.choose(place, &new);
        let old: Vec<NodeId> = (0..MEMORY).map(|at| m.slice(self.bytes, 8 * at, 8)).collect();
        let at = m.sub(place, self.count);
        let at = m.add(at, self.from);
        let old = m.choose(at, &old);
        let is_new = m.lt(place, self.count);
        m.mux(is_new, new, old)
    }
}

/// A bit that is 1 from the cycle after an event to that of another; and whether it stays so.
fn lasts(m: &mut ModuleBuilder, name: &str, begins: NodeId, ends: NodeId) -> (NodeId, NodeId) {
    let (register, is) = m.register(name, 1, Some(0));
    let stays = m.not(ends);
    let stays = m.and(is, stays);
    let next = m.or(begins, stays);
    m.set_next(register, next);
    (is, stays)
}
