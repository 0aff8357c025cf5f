//! The sending half with a monitor of its octets, whose output `fault` is 1 when they are not what was taken, or break a rule.

use super::super::mac::monitor::output;
use super::super::mac::taken::{FRAME, PLACE, Taken};
use super::transmit::transmit;
use crate::*;

/// Bits of the length of a gap, and octets that it has at least.
const GAP: u32 = 4;
const LEAST_GAP: u128 = 12;
/// Bytes that a frame has here at least, without its check sequence: with 60 the proof takes too long.
const LEAST: u128 = 10;

/// For any frames, at any time, of which beats may be missing: after at least 12 octets without `en` a frame has its preamble, the bytes
/// that were taken, each once and in order, then zeros up to [`LEAST`], then four of the check sequence, which are not looked at; one that is
/// marked as bad, or of which a beat was missing, and no other, has `er`.
///
/// What comes in from outside is free. As soon as it breaks the rules of a stream, nothing that follows counts.
pub(crate) fn monitored() -> Design {
    let mut m = ModuleBuilder::new("monitored_sender");
    transmit(&mut m, 64, LEAST + 4);
    let (taken, fine) = Taken::watch(&mut m, LEAST);
    let wrong = watch(&mut m, &taken);
    let bad = m.and(fine, wrong);
    m.output("fault", bad);
    let mut design = Design::new();
    design.add(m.finish());
    design
}

/// Looks at the octets; gives whether something is wrong.
fn watch(m: &mut ModuleBuilder, taken: &Taken) -> NodeId {
    let [octet, en, er] = ["data", "en", "er"].map(|name| output(m, name));
    let mut wrong = Vec::new();
    let inside = m.delayed("sent_inside", en, Some(0));
    let (at_register, at) = m.register("sent_at", PLACE, Some(0));
    let (frame_register, frame) = m.register("sent_frame", FRAME, Some(0));
    let (broken_register, broken) = m.register("sent_broken", 1, Some(0));
    // Octets that the gap lacks.
    let (gap_register, gap) = m.register("sent_gap", GAP, Some(0));
    let (outside, none) = (m.not(inside), m.not(en));
    let (starts, ends) = (m.and(en, outside), m.and(inside, none));
    let is_of = m.eq(frame, taken.number);

    let is_short = m.reduce_or(gap);
    wrong.push(m.and(starts, is_short));
    let (some, one) = (m.number(GAP, LEAST_GAP), m.number(GAP, 1));
    let less = m.sub(gap, one);
    let zero = m.number(GAP, 0);
    let less = m.mux(is_short, less, zero);
    let gap_next = m.mux(en, some, less);
    m.set_next(gap_register, gap_next);

    let first = m.number(PLACE, 0);
    let place = m.mux(starts, first, at);
    wrong.extend(taken.wrong_character(m, (en, is_of), (place, octet)));
    let ended = m.and(ends, is_of);
    wrong.push(taken.wrong_end(m, ended, (at, broken)));
    // What says that a frame is bad.
    let may = m.or(taken.missed, taken.is_bad);
    let may_not = m.not(may);
    let fails = m.and(en, er);
    wrong.push(m.all(&[fails, is_of, may_not]));
    let right = m.not(broken);
    wrong.push(m.all(&[ended, taken.is_bad, right]));

    let next_place = m.add_number(place, 1);
    let next_frame = m.add_number(frame, 1);
    let kept = m.or(broken, fails);
    let next_broken = m.mux(starts, fails, kept);
    for (register, next, when) in [
        (at_register, next_place, en),
        (frame_register, next_frame, ends),
        (broken_register, next_broken, en),
    ] {
        m.set_next(register, next);
        m.set_enable(register, when);
    }
    m.any(&wrong)
}
