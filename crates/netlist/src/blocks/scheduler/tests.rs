//! A scheduler with a monitor, whose output `fault` is 1 in a cycle in which the scheduler is not as it should be.

use super::*;

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
    // A frame has one to three bytes, and a quantum four to seven: more than the longest frame.
    let (one, four) = (m.number(BITS, 1), m.number(BITS, 4));
    let (mut lengths, mut quanta) = (Vec::new(), Vec::new());
    for at in 0..QUEUES {
        let length = m.input(&format!("length{at}"), BITS - 1);
        let length = m.resize(length, BITS);
        lengths.push(m.or(length, one));
        let quantum = m.input(&format!("quantum{at}"), BITS);
        quanta.push(m.or(quantum, four));
    }
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
        let idle = m.not(s.valid);
        wrong.push(m.and(some, idle));
    }
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
