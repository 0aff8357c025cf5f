//! The receiving half with a monitor of its stream, whose output `fault` is 1 when the stream breaks a rule.

use super::super::mac::monitor::{beat_faults, input, output, register};
use super::START;
use super::receive::receive;
use crate::*;

/// For any octets that come: all bytes of a beat but those of the last are there, and in the last they are the first ones, at least one; a
/// beat that is marked as bad is the last; a beat of a frame has the octets that came before its newest four and have not been in a beat,
/// in their order, as soon as there are eight or the frame has ended; and a frame that has begun to leave has a last beat before another
/// begins.
pub(crate) fn monitored() -> Design {
    let mut m = ModuleBuilder::new("monitored_octets");
    receive(&mut m, 64, 2052);
    let [valid, last, user, keep, data] =
        ["m_tvalid", "m_tlast", "m_tuser", "m_tkeep", "m_tdata"].map(|name| output(&m, name));
    let [ready, inside, given, wanted, bytes, dv, er, octet, line, length] =
        ["ready", "inside", "given", "wanted", "bytes", "dv_now", "er_now", "data_now", "line", "length"]
            .map(|name| register(&m, name));
    let enable = input(&m, "enable");
    let mut wrong = beat_faults(&mut m, (valid, last, user, keep)).to_vec();
    let m = &mut m;

    // Each frame is seen, and nothing but frames.
    let both = m.and(ready, inside);
    wrong.push(both);
    let (starts, right) = (m.is(octet, START.into()), m.not(er));
    let begins = m.all(&[ready, dv, right, starts, enable]);
    let pause = m.not(dv);
    for (name, event, state) in [("began", begins, inside), ("paused", pause, ready)] {
        let happened = m.delayed(name, event, Some(0));
        let missed = m.not(state);
        wrong.push(m.and(happened, missed));
    }
    // The last octets of the frame, the newest one first.
    let (there, absent) = (m.and(inside, dv), m.not(dv));
    let ended = m.and(inside, absent);
    let mut history = vec![octet];
    for at in 1..=12 {
        let (register, value) = m.register(&format!("history{at}"), 8, None);
        m.set_next(register, history[at - 1]);
        m.set_enable(register, there);
        history.push(value);
    }
    // The line has the newest four.
    for at in 0..4u32 {
        let kept = m.slice(line, 24 - 8 * at, 8);
        let other = m.ne(kept, history[at as usize + 1]);
        let number = m.number(16, at.into());
        let filled = m.lt(number, length);
        wrong.push(m.all(&[inside, filled, other]));
    }
    // Lanes have those before them.
    for count in 1..=8u32 {
        let so_many = m.is(bytes, count.into());
        for lane in 0..count {
            let kept = m.slice(data, lane * 8, 8);
            let other = m.ne(kept, history[(4 + count - lane) as usize]);
            wrong.push(m.all(&[inside, so_many, other]));
        }
    }
    // None is left out, and none comes twice: a beat for each eight.
    let four = m.number(16, 4);
    let leaves = m.le(four, length);
    let leaves = m.and(there, leaves);
    let outside = m.not(inside);
    let (left_register, left) = m.register("left", 3, Some(0));
    let (zero, more) = (m.number(3, 0), m.add_number(left, 1));
    let more = m.mux(leaves, more, left);
    let next_left = m.mux(outside, zero, more);
    m.set_next(left_register, next_left);
    let low = m.slice(bytes, 0, 3);
    let other = m.ne(low, left);
    let (eight, none) = (m.number(4, 8), m.is(bytes, 0));
    let over = m.lt(eight, bytes);
    let gone = m.and(given, none);
    let lost = m.any(&[other, over, gone]);
    wrong.push(m.and(inside, lost));
    let full = m.is(bytes, 8);
    let goes_on = m.all(&[leaves, full, wanted]);
    let enough = m.or(given, full);
    let ends = m.all(&[ended, enough, wanted]);
    let due = m.or(goes_on, ends);
    wrong.push(m.xor(due, valid));
    let late = m.xor(last, ends);
    wrong.push(m.and(valid, late));

    // A frame of the stream ends within the frame that it is of.
    let (open_register, open) = m.register("open", 1, Some(0));
    let not_last = m.not(last);
    let next_open = m.mux(valid, not_last, open);
    m.set_next(open_register, next_open);
    let kept = m.all(&[inside, given, wanted]);
    let broken_off = m.not(kept);
    wrong.push(m.and(open, broken_off));
    let bad = m.any(&wrong);
    m.output("fault", bad);
    let mut design = Design::new();
    design.add(std::mem::replace(m, ModuleBuilder::new("")).finish());
    design
}
