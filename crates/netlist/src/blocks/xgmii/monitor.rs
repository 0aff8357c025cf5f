//! The receiving half with a monitor of its stream, whose output `fault` is 1 when the stream breaks a rule.

use super::super::mac::monitor::{beat_faults, next, output, register};
use super::receive::receive;
use crate::*;

/// For any characters that come: all bytes of a beat but those of the last are there, and in the last they are the first ones, at least
/// one; a beat that is marked as bad is the last; each word of a frame that is wanted is one beat, the same word, in the cycle in which
/// it is held, or if it is the last beat two cycles later; two beats never meet in one cycle; and a frame that has begun to leave has a last
/// beat before another begins.
pub(crate) fn monitored() -> Design {
    let mut m = ModuleBuilder::new("monitored_receive");
    receive(&mut m, 2052);
    let [valid, last, user, keep, data] =
        ["m_tvalid", "m_tlast", "m_tuser", "m_tkeep", "m_tdata"].map(|name| output(&m, name));
    let [inside, holds, held, wanted, soon, closes] =
        ["inside", "holds", "held", "wanted", "next_closes", "closes"].map(|name| register(&m, name));
    let [full, ended] = ["word_full", "word_ended"].map(|name| register(&m, name));
    let mut wrong = beat_faults(&mut m, (valid, last, user, keep)).to_vec();

    // What begins is within a frame, and a whole word of it is held a cycle later, until another one comes or the frame ends.
    for (of, there) in [("shifted", inside), ("held", holds)] {
        let (_, event) = next(&m, of);
        let happened = m.delayed(&format!("{of}_happened"), event, Some(0));
        let absent = m.not(there);
        wrong.push(m.and(happened, absent));
    }
    let (outside, no_end) = (m.not(inside), m.not(ended));
    wrong.push(m.and(full, outside));
    let was_inside = m.delayed("was_inside", inside, Some(0));
    let no_word = m.not(full);
    wrong.push(m.all(&[was_inside, no_word, no_end]));
    wrong.push(m.all(&[holds, no_word, no_end]));
    wrong.push(m.and(full, ended));

    // A word that is held is the beat, or the last one two cycles later, and nothing else is.
    let (word, _) = next(&m, "held");
    let word = m.delayed("word_before", word, None);
    let owed = m.and(holds, wanted);
    let changed = m.ne(held, word);
    wrong.push(m.and(holds, changed));
    let other = m.ne(data, word);
    let gives = m.and(owed, valid);
    wrong.push(m.and(gives, other));
    let absent = m.not(valid);
    let later = m.and(owed, absent);
    let (late, late_word) = (m.delayed("next_late", later, Some(0)), m.delayed("next_late_word", word, None));
    let (late, late_word) = (m.delayed("late", late, Some(0)), m.delayed("late_word", late_word, None));
    let not_last = m.not(last);
    let other = m.ne(data, late_word);
    let lost = m.any(&[absent, not_last, other]);
    wrong.push(m.and(late, lost));
    wrong.push(m.and(closes, holds));
    let neither = m.or(owed, closes);
    let neither = m.not(neither);
    wrong.push(m.and(valid, neither));

    // Within a frame of the stream.
    let (open_register, open) = m.register("open", 1, Some(0));
    let goes_on = m.mux(valid, not_last, open);
    m.set_next(open_register, goes_on);
    let continues = m.any(&[owed, soon, closes]);
    let broken_off = m.not(continues);
    wrong.push(m.and(open, broken_off));
    // The last beat is the rest of a frame that has begun to leave, or its first one too.
    let closed = m.or(open, late);
    let closed = m.not(closed);
    wrong.push(m.and(closes, closed));
    let bad = m.any(&wrong);
    m.output("fault", bad);
    let mut design = Design::new();
    design.add(m.finish());
    design
}
