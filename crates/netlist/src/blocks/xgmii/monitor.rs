//! The receiving half with a monitor of its stream, whose output `fault` is 1 when the stream breaks a rule.

use super::super::mac::monitor::{beat_faults, next, output, register};
use super::receive::receive;
use crate::*;

/// For any characters that come: all bytes of a beat but those of the last are there, and in the last they are the first ones, at least
/// one; a beat that is marked as bad is the last; each word of a frame that is wanted is one beat, the same word, in the cycle after it;
/// two beats never meet in one cycle; and a frame that has begun to leave has a last beat before another begins.
pub(crate) fn monitored() -> Design {
    let mut m = ModuleBuilder::new("monitored_receive");
    receive(&mut m, 2052);
    let [valid, last, user, keep, data] =
        ["m_tvalid", "m_tlast", "m_tuser", "m_tkeep", "m_tdata"].map(|name| output(&m, name));
    let [inside, holds, wanted, tail] = ["inside", "holds", "wanted", "tail"].map(|name| register(&m, name));
    let (word, _) = next(&m, "held");
    let word = m.delayed("word_before", word, None);
    let mut wrong = beat_faults(&mut m, (valid, last, user, keep)).to_vec();

    // What begins is within a frame, and a whole word of a frame is held, a cycle later.
    for (of, there) in [("shifted", inside), ("held", holds)] {
        let (_, event) = next(&m, of);
        let happened = m.delayed(&format!("{of}_happened"), event, Some(0));
        let absent = m.not(there);
        wrong.push(m.and(happened, absent));
    }

    // A word that is held is the beat, and nothing else is.
    let whole = m.all(&[holds, wanted]);
    let absent = m.not(valid);
    let outside = m.not(inside);
    let other = m.ne(data, word);
    let lost = m.any(&[absent, outside, other, tail]);
    wrong.push(m.and(whole, lost));
    let neither = m.or(holds, tail);
    let neither = m.not(neither);
    wrong.push(m.and(valid, neither));

    // Within a frame of the stream.
    let (open_register, open) = m.register("open", 1, Some(0));
    let not_last = m.not(last);
    let goes_on = m.mux(valid, not_last, open);
    m.set_next(open_register, goes_on);
    let continues = m.or(whole, tail);
    let broken_off = m.not(continues);
    wrong.push(m.and(open, broken_off));
    let closed = m.not(open);
    wrong.push(m.and(tail, closed));
    let bad = m.any(&wrong);
    m.output("fault", bad);
    let mut design = Design::new();
    design.add(m.finish());
    design
}
