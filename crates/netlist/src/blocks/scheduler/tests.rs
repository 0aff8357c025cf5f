//! A scheduler with a monitor, whose output `fault` is 1 in a cycle in which the scheduler is not as it should be.

use super::*;
use crate::blocks::mac::monitor::kept_from_start;

const QUEUES: u32 = 3;
const BITS: u32 = 3;
const COUNT: u32 = 2;

/// What holds in every discipline: the ring has those queues that have frames, each once; so a choice is never empty, and where there
/// is a frame there is a choice.
///
/// In a discipline with turns also that any one queue, `who`, that has frames is not passed over. In round robin it waits for at most all
/// others. In deficit round robin each choice of another either moves it forward, or takes bytes off the deficit of the queue that is
/// first, which is given no more before the turn passes; a deficit has an end, so `who` comes first.
pub(crate) fn monitored(discipline: Option<Discipline>) -> Design {
    let mut m = ModuleBuilder::new("monitored_scheduler");
    let m = &mut m;
    let mode = match discipline {
        Some(discipline) => m.number(2, discipline as u128),
        None => m.input("mode", 2),
    };
    // A frame has one to three bytes, and a quantum four to seven: more than the longest frame. The length of a queue is another one when
    // a frame of it has left, or when it had none; quanta stay.
    let (one, four) = (m.number(BITS, 1), m.number(BITS, 4));
    let (mut heads, mut quanta) = (Vec::new(), Vec::new());
    for at in 0..QUEUES {
        heads.push(m.register(&format!("length{at}"), BITS, Some(1)));
        let quantum = kept_from_start(m, &format!("quantum{at}"), BITS);
        quanta.push(m.or(quantum, four));
    }
    let lengths = heads.iter().map(|(_, length)| *length).collect();
    let (comes, class, take) = (m.input("comes", 1), m.input("class", 2), m.input("take", 1));
    let (who_register, who) = m.register("who", 2, Some(0));
    let choice = m.input("watched", 2);
    let started = {
        let one = m.number(1, 1);
        m.delayed("started", one, Some(0))
    };
    let kept = m.mux(started, who, choice);
    let known = m.number(2, QUEUES.into());
    let within = m.lt(kept, known);
    let first = m.number(2, 0);
    let kept = m.mux(within, kept, first);
    m.set_next(who_register, kept);

    // A frame comes to a queue that exists and has room: the enqueue is fed back from the counts.
    let (room_register, room) = m.register("room", QUEUES, Some((1 << QUEUES) - 1));
    let room: Vec<NodeId> = (0..QUEUES).map(|at| m.bit(room, at)).collect();
    let has_room = m.choose(class, &room);
    let exists = m.lt(class, known);
    let enqueue = m.all(&[comes, exists, has_room]);
    let of = Asked { mode, quanta, lengths, enqueue, class, take };
    let s = schedule(m, &of, COUNT);
    for (at, (register, _)) in heads.iter().enumerate() {
        let length = m.input(&format!("next_length{at}"), BITS - 1);
        let length = m.resize(length, BITS);
        let length = m.or(length, one);
        let (goes, none) = (m.is(s.choice, at as u128), m.is(s.counts[at], 0));
        let goes = m.and(goes, s.sends);
        let changes = m.or(goes, none);
        m.set_next(*register, length);
        m.set_enable(*register, changes);
    }
    // Room in the next cycle: there is less than the most now, or one less and nothing comes; frames that leave make no difference.
    let rooms: Vec<NodeId> = (0..QUEUES as usize)
        .rev()
        .map(|at| {
            let (most, nearly) = (m.is(s.counts[at], 3), m.is(s.counts[at], 2));
            let here = m.is(class, at as u128);
            let grows = m.all(&[enqueue, here, nearly]);
            let full = m.or(most, grows);
            m.not(full)
        })
        .collect();
    let rooms = m.concat(&rooms);
    m.set_next(room_register, rooms);

    let mut wrong = ring_faults(m, &s, &room);
    wrong.extend(late_stages(m, &s, &of));
    match discipline {
        Some(Discipline::RoundRobin) => wrong.extend(waits_too_long(m, &s, (who, started))),
        Some(Discipline::Deficit) => wrong.push(stands_still(m, &s, &of, (who, started))),
        _ => {}
    }
    let bad = m.any(&wrong);
    m.output("fault", bad);
    let mut design = Design::new();
    design.add(std::mem::replace(m, ModuleBuilder::new("")).finish());
    design
}

/// What is wrong with the ring.
fn ring_faults(m: &mut ModuleBuilder, s: &Scheduled, room: &[NodeId]) -> Vec<NodeId> {
    let (entries, filled) = (&s.ring.entries, &s.ring.filled);
    let mut wrong = Vec::new();
    for at in 0..QUEUES as usize {
        let outside = m.is(entries[at], QUEUES.into());
        wrong.push(m.and(outside, filled[at]));
        if let Some(next) = filled.get(at + 1) {
            let gap = m.not(filled[at]);
            wrong.push(m.and(*next, gap));
        }
        for other in at + 1..QUEUES as usize {
            let same = m.eq(entries[at], entries[other]);
            wrong.push(m.all(&[same, filled[at], filled[other]]));
        }
        let number = m.number(2, at as u128);
        let (_, inside) = position(m, &s.ring, number);
        let some = m.reduce_or(s.counts[at]);
        wrong.push(m.xor(inside, some));
        // The promise that there is room holds.
        let most = m.is(s.counts[at], 3);
        wrong.push(m.and(most, room[at]));
        let chosen = m.eq(s.choice, number);
        let empty = m.not(some);
        wrong.push(m.all(&[s.valid, chosen, empty]));
        let idle = m.not(s.ring.filled[0]);
        wrong.push(m.and(some, idle));
    }
    wrong
}

/// When nothing has changed for long enough the stages of a choice have what they should; and a choice is known then at the latest.
fn late_stages(m: &mut ModuleBuilder, s: &Scheduled, of: &Asked) -> Vec<NodeId> {
    let Stages { looked, compared, turn } = &s.stages;
    let now = Looked::of(m, &s.ring, s.given, (&s.deficits, &of.quanta, &of.lengths));
    let next = now.compare(m);
    let last = now.turn(m, &next, &s.ring);
    // Of a queue that is not there nothing is asked.
    let (first, second) = (s.ring.filled[0], s.ring.filled[1]);
    let pairs = [
        (1, first, looked.has, now.has),
        (1, first, looked.quantum, now.quantum),
        (1, first, looked.length, now.length),
        (1, second, looked.other_has, now.other_has),
        (1, second, looked.other_length, now.other_length),
        (2, first, compared.covered, next.covered),
        (2, first, compared.again, next.again),
        (3, first, turn.passes, last.passes),
        (3, first, turn.left, last.left),
    ];
    let mut wrong = Vec::new();
    for (cycles, there, is, due) in pairs {
        let least = m.number(2, cycles);
        let settled = m.le(least, s.age);
        let other = m.ne(is, due);
        wrong.push(m.all(&[settled, there, other]));
    }
    // So long it takes, and no longer.
    let (now, next) = (s.ring.filled.clone(), s.next.filled.clone());
    let (now, next) = (m.concat(&now), m.concat(&next));
    let moved = m.ne(now, next);
    let is_deficit = m.is(of.mode, Discipline::Deficit as u128);
    let at_once = m.not(is_deficit);
    let changes = m.any(&[s.sends, moved, at_once]);
    let (quiet_register, quiet) = m.register("quiet", 2, Some(0));
    let (none, more) = (m.number(2, 0), m.add_number(quiet, 1));
    let is_over = m.is(quiet, SETTLES.into());
    let more = m.mux(is_over, quiet, more);
    let more = m.mux(changes, none, more);
    m.set_next(quiet_register, more);
    wrong.push(m.ne(quiet, s.age));
    let unknown = m.not(s.valid);
    wrong.push(m.all(&[is_over, s.ring.filled[0], unknown]));
    wrong
}

/// Where a queue stands in a ring, and whether it does.
fn position(m: &mut ModuleBuilder, ring: &Ring, who: NodeId) -> (NodeId, NodeId) {
    let (mut place, mut inside) = (m.number(2, 0), m.number(1, 0));
    for (at, (entry, filled)) in (0u128..).zip(ring.entries.iter().zip(&ring.filled)) {
        let same = m.eq(*entry, who);
        let here = m.and(same, *filled);
        let number = m.number(2, at);
        place = m.mux(here, number, place);
        inside = m.or(inside, here);
    }
    (place, inside)
}

/// More than all others were served while `who` had frames.
fn waits_too_long(m: &mut ModuleBuilder, s: &Scheduled, (who, started): (NodeId, NodeId)) -> Vec<NodeId> {
    let (waited_register, waited) = m.register("waited", 3, Some(0));
    let (place, inside) = position(m, &s.ring, who);
    let own = m.eq(s.choice, who);
    let other = m.not(own);
    let (served, passed) = (m.and(s.sends, own), m.and(s.sends, other));
    let more = m.add_number(waited, 1);
    let next = m.mux(passed, more, waited);
    let zero = m.number(3, 0);
    let fresh = m.not(inside);
    let unknown = m.not(started);
    let again = m.any(&[served, fresh, unknown]);
    let next = m.mux(again, zero, next);
    m.set_next(waited_register, next);
    let place = m.resize(place, 3);
    let sum = m.add(waited, place);
    let most = m.number(3, u128::from(QUEUES - 1));
    let late = m.lt(most, sum);
    vec![m.and(late, inside)]
}

/// Another was served, and yet `who` stands where it was and the first has no less than before.
fn stands_still(
    m: &mut ModuleBuilder,
    s: &Scheduled,
    of: &Asked,
    (who, started): (NodeId, NodeId),
) -> NodeId {
    let (place, inside) = position(m, &s.ring, who);
    let (next_place, _) = position(m, &s.next, who);
    let own = m.eq(s.choice, who);
    let other = m.not(own);
    let moved = m.lt(next_place, place);
    let stands = m.not(moved);
    // What the first may still send in its turn, before and after.
    let first = s.ring.entries[0];
    let (deficit, quantum) = (m.choose(first, &s.deficits), m.choose(first, &of.quanta));
    let (wide, quantum) = (m.resize(deficit, BITS + 2), m.resize(quantum, BITS + 2));
    let filled = m.add(wide, quantum);
    let before = m.mux(s.given, wide, filled);
    let before = m.delayed("before", before, Some(0));
    let first_before = m.delayed("first_before", first, Some(0));
    let after = m.choose(first_before, &s.deficits);
    let after = m.resize(after, BITS + 2);
    let less = m.lt(after, before);
    let not_less = m.not(less);
    let not_given = m.not(s.given);
    let no_progress = m.or(not_less, not_given);
    // The first may give its turn away once it has sent in it.
    let is_first = m.eq(first, who);
    let has_sent = m.and(is_first, s.given);
    let has_not = m.not(has_sent);
    let passed_over = m.all(&[inside, s.sends, other, stands, started, has_not]);
    let passed_over = m.delayed("passed_over", passed_over, Some(0));
    m.and(passed_over, no_progress)
}
