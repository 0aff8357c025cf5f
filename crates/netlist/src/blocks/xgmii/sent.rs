//! The sending half with a monitor of its characters, whose output `fault` is 1 when they are not what was taken, or break a rule.

use super::super::mac::monitor::{input, output};
use super::super::mac::taken::{FRAME, PLACE, Taken};
use super::transmit::transmit;
use super::{ERROR, IDLE, START, TERMINATE};
use crate::*;

/// Bits of the length of a gap.
const GAP: u32 = 6;

/// For any frames, at any time, of which beats may be missing: characters are idle, or a frame with its preamble, that starts in lane 0 or
/// 4, at least 9 characters after the terminator of the one before it and 12 less a deficit of at most 3; a frame has the bytes that
/// were taken, each once and in order, then zeros up to 60, then four of the check sequence, which are not looked at; one of which a beat
/// was missing, and no other, has error characters.
///
/// What comes in from outside is free. As soon as it breaks the rules of a stream, nothing that follows counts.
pub(crate) fn monitored() -> Design {
    let mut m = ModuleBuilder::new("monitored_transmit");
    transmit(&mut m);
    let m = &mut m;
    let (taken, fine) = Taken::watch(m, 60);
    // What is said to be there soon is there in the next cycle.
    let (soon, valid) = (input(m, "s_soon"), input(m, "s_tvalid"));
    let due = m.delayed("due", soon, Some(0));
    let absent = m.not(valid);
    let broken = m.and(due, absent);
    let kept = m.not(broken);
    let (told_register, told) = m.register("told_right", 1, Some(1));
    let told = m.and(told, kept);
    m.set_next(told_register, told);
    let fine = m.and(fine, told);
    let wrong = Sent::watch(m, &taken);
    let bad = m.and(fine, wrong);
    m.output("fault", bad);
    let mut design = Design::new();
    design.add(std::mem::replace(m, ModuleBuilder::new("")).finish());
    design
}

/// Where the characters are, lane by lane.
#[derive(Clone, Copy)]
struct Sent {
    /// Within a frame, and the character of it that is next.
    inside: NodeId,
    at: NodeId,
    /// Characters since the terminator, with it, and what gaps were too short.
    gap: NodeId,
    deficit: NodeId,
    /// The number of the frame, and whether it had an error.
    frame: NodeId,
    broken: NodeId,
}

impl Sent {
    /// Looks at the characters of a cycle; gives whether something is wrong.
    fn watch(m: &mut ModuleBuilder, taken: &Taken) -> NodeId {
        let names = [("inside", 1, 0), ("at", PLACE, 0), ("gap", GAP, 63), ("deficit", GAP, 0)];
        let names = names.into_iter().chain([("frame", FRAME, 0), ("broken", 1, 0)]);
        let registers: Vec<(RegisterId, NodeId)> = names
            .map(|(name, width, first)| m.register(&format!("sent_{name}"), width, Some(first)))
            .collect();
        let mut now = Sent {
            inside: registers[0].1,
            at: registers[1].1,
            gap: registers[2].1,
            deficit: registers[3].1,
            frame: registers[4].1,
            broken: registers[5].1,
        };
        let (data, control) = (output(m, "data"), output(m, "control"));
        let mut wrong = Vec::new();
        for lane in 0..8 {
            let (byte, is_control) = (m.slice(data, lane * 8, 8), m.bit(control, lane));
            now = now.after(m, (byte, is_control), lane % 4 == 0, taken, &mut wrong);
        }
        let next = [now.inside, now.at, now.gap, now.deficit, now.frame, now.broken];
        registers.iter().zip(next).for_each(|((register, _), next)| m.set_next(*register, next));
        m.any(&wrong)
    }

    /// After one more character.
    fn after(
        self,
        m: &mut ModuleBuilder,
        (byte, is_control): (NodeId, NodeId),
        may_start: bool,
        taken: &Taken,
        wrong: &mut Vec<NodeId>,
    ) -> Sent {
        let [starts, ends, fails, idles] = [START, TERMINATE, ERROR, IDLE].map(|character| {
            let same = m.is(byte, character.into());
            m.and(is_control, same)
        });
        let (outside, is_data) = (m.not(self.inside), m.not(is_control));
        let is_of = m.eq(self.frame, taken.number);

        // Outside are starts and idle characters, inside all but these; a start has its lane.
        let known = m.any(&[starts, idles]);
        let unknown = m.not(known);
        wrong.push(m.and(outside, unknown));
        let of_frame = m.any(&[is_data, ends, fails]);
        let other = m.not(of_frame);
        wrong.push(m.and(self.inside, other));
        if !may_start {
            wrong.push(starts);
        }
        // The gap.
        let (nine, twelve) = (m.number(GAP, 9), m.number(GAP, 12));
        let close = m.lt(self.gap, nine);
        wrong.push(m.and(starts, close));
        let is_short = m.lt(self.gap, twelve);
        let lack = m.sub(twelve, self.gap);
        let more = m.add(self.deficit, lack);
        let rest = m.sub(self.gap, twelve);
        let paid = m.le(self.deficit, rest);
        let (none, less) = (m.number(GAP, 0), m.sub(self.deficit, rest));
        let less = m.mux(paid, none, less);
        let deficit = m.mux(is_short, more, less);
        let three = m.number(GAP, 3);
        let over = m.lt(three, deficit);
        wrong.push(m.and(starts, over));

        let is_there = m.and(self.inside, is_data);
        wrong.extend(taken.wrong_character(m, (is_there, is_of), (self.at, byte)));
        // Errors are in frames of which a beat was missing, and in no others.
        let ended = m.all(&[self.inside, ends, is_of]);
        wrong.push(taken.wrong_end(m, ended, (self.at, self.broken)));
        let of_whole = m.not(taken.missed);
        wrong.push(m.all(&[self.inside, fails, is_of, of_whole]));

        let (one, zero, gap_one) = (m.number(PLACE, 1), m.number(1, 0), m.number(GAP, 1));
        let moves = m.add_number(self.at, 1);
        let longest = m.reduce_and(self.gap);
        let longer = m.add_number(self.gap, 1);
        let longer = m.mux(longest, self.gap, longer);
        let is_in = m.or(self.inside, starts);
        let stays = m.not(ends);
        let next_frame = m.add_number(self.frame, 1);
        let broken = m.or(self.broken, fails);
        Sent {
            inside: m.and(is_in, stays),
            at: m.mux(starts, one, moves),
            gap: m.mux(ends, gap_one, longer),
            deficit: m.mux(starts, deficit, self.deficit),
            frame: m.mux(ends, next_frame, self.frame),
            broken: m.mux(starts, zero, broken),
        }
    }
}
