//! Whose turn it is among the queues of a port: strict priority, round robin, deficit round robin, chosen while it runs.

use super::once;
use crate::*;

/// Cycles from a change of the ring or of a deficit to the choice of deficit round robin: one for the deficits with their quanta, one for
/// the comparison, one for what the choice leaves.
pub const SETTLES: u32 = 3;

/// How a scheduler orders queues: the values of its input `mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discipline {
    /// The queue of the highest number that has a frame.
    Priority = 0,
    /// A frame each, in turn.
    RoundRobin = 1,
    /// A quantum of bytes each, in turn.
    Deficit = 2,
}

/// Which of `queues` queues sends next. Inputs: `mode` (2 bits, a [`Discipline`]); for each queue `quantumN` and `lengthN`, the bytes of
/// the frame at its head, of `bits` bits; `enqueue` with `class`, when a frame comes to a queue; `take`, when the choice is used.
/// Outputs: `valid` and `choice`; for each queue `countN`, its frames, of `count_bits` bits.
///
/// Queues that have frames stand in a ring, in which one that becomes ready comes last. In round robin the first sends and goes to the
/// end. In deficit round robin the first gets its quantum once a turn and sends while its deficit covers the frame at its head; then it
/// goes to the end. With quanta of at least the longest frame the second is covered whenever the first is not, so there is always a
/// choice; with a smaller quantum it sends all the same, and its deficit ends at 0. A queue that runs empty loses its deficit.
///
/// Within a cycle the choice comes first, then the new frame: what comes in a cycle is not chosen in it. In deficit round robin the sums
/// and comparisons of a choice have [`SETTLES`] cycles: `valid` is 1 when for so long no queue has sent or has got its first frame. The
/// lengths of queues that have frames have to be right when `countN` is, and quanta change rarely: what was computed with the one before
/// may count once more.
///
/// # Panics
/// `queues` is 0 or more than 16.
pub fn scheduler(design: &mut Design, queues: u32, bits: u32, count_bits: u32) -> ModuleId {
    assert!((1..=16).contains(&queues), "1 to 16 queues");
    once(design, format!("scheduler_{queues}x{bits}_{count_bits}"), |m| {
        let mode = m.input("mode", 2);
        let quanta = (0..queues).map(|at| m.input(&format!("quantum{at}"), bits)).collect();
        let lengths = (0..queues).map(|at| m.input(&format!("length{at}"), bits)).collect();
        let (enqueue, class) = (m.input("enqueue", 1), m.input("class", address_width(queues)));
        let take = m.input("take", 1);
        let of = Asked { mode, quanta, lengths, enqueue, class, take };
        let scheduled = schedule(m, &of, count_bits);
        m.output("valid", scheduled.valid);
        m.output("choice", scheduled.choice);
        for (at, count) in scheduled.counts.iter().enumerate() {
            m.output(&format!("count{at}"), *count);
        }
    })
}

/// The inputs of a scheduler.
struct Asked {
    mode: NodeId,
    quanta: Vec<NodeId>,
    lengths: Vec<NodeId>,
    enqueue: NodeId,
    class: NodeId,
    take: NodeId,
}

/// What a scheduler says, and what is inside it, for a monitor.
#[cfg_attr(not(test), allow(dead_code))]
struct Scheduled {
    valid: NodeId,
    choice: NodeId,
    counts: Vec<NodeId>,
    deficits: Vec<NodeId>,
    ring: Ring,
    /// The ring after this cycle.
    next: Ring,
    /// The first of the ring has had its quantum in this turn.
    given: NodeId,
    sends: NodeId,
    /// Cycles since the last change, up to [`SETTLES`], and what is in the stages of the choice.
    age: NodeId,
    stages: Stages,
}

/// The queues that have frames, in the order of their turns.
#[derive(Clone)]
struct Ring {
    entries: Vec<NodeId>,
    /// Which entries there are: ones from the lowest bit on.
    filled: Vec<NodeId>,
}

impl Ring {
    /// Without a number, if `on`.
    fn remove(&self, m: &mut ModuleBuilder, number: NodeId, on: NodeId) -> Ring {
        let (mut entries, mut filled) = (Vec::new(), Vec::new());
        let mut before = m.number(1, 0);
        let zero = (m.number(m.width(number), 0), m.number(1, 0));
        for at in 0..self.entries.len() {
            let same = m.eq(self.entries[at], number);
            let here = m.all(&[same, self.filled[at], on]);
            before = m.or(before, here);
            let next = self.entries.get(at + 1).copied().unwrap_or(zero.0);
            let next_filled = self.filled.get(at + 1).copied().unwrap_or(zero.1);
            entries.push(m.mux(before, next, self.entries[at]));
            filled.push(m.mux(before, next_filled, self.filled[at]));
        }
        Ring { entries, filled }
    }

    /// With a number at the end, if `on`.
    fn append(&self, m: &mut ModuleBuilder, number: NodeId, on: NodeId) -> Ring {
        let (mut entries, mut filled) = (Vec::new(), Vec::new());
        let mut all_before = on;
        for at in 0..self.entries.len() {
            let free = m.not(self.filled[at]);
            let here = m.and(all_before, free);
            entries.push(m.mux(here, number, self.entries[at]));
            filled.push(m.or(self.filled[at], here));
            all_before = m.and(all_before, self.filled[at]);
        }
        Ring { entries, filled }
    }
}

/// What is asked of the number of a queue's frames at the begin of a cycle, from the cycle before: whether there is one, and no other.
struct Frames {
    some: (RegisterId, NodeId),
    single: (RegisterId, NodeId),
}

impl Frames {
    /// Of each queue.
    fn of(m: &mut ModuleBuilder, queues: u32) -> Vec<Frames> {
        let [some, single] = ["some", "single"].map(|name| {
            let of_queues = (0..queues).map(|queue| m.register(&format!("{name}{queue}"), 1, Some(0)));
            of_queues.collect::<Vec<(RegisterId, NodeId)>>()
        });
        some.into_iter().zip(single).map(|(some, single)| Frames { some, single }).collect()
    }

    /// The number becomes one more if it `changes` and one `comes`, one less if none does. Gives whether the frame that comes is the only one.
    fn connect(
        &self,
        m: &mut ModuleBuilder,
        count: NodeId,
        (changes, comes, goes): (NodeId, NodeId, NodeId),
    ) -> NodeId {
        let [none, one, two] = [0, 1, 2].map(|frames| m.is(count, frames));
        let (other, there) = (m.not(one), m.not(none));
        let stays = m.or(comes, other);
        let some = m.mux(changes, stays, there);
        m.set_next(self.some.0, some);
        let becomes_one = m.mux(comes, none, two);
        let single = m.mux(changes, becomes_one, one);
        m.set_next(self.single.0, single);
        let none = m.not(self.some.1);
        let leaves = m.and(self.single.1, goes);
        let new = m.or(none, leaves);
        m.and(new, comes)
    }
}

/// What the choice of deficit round robin is made of, in the order in which it is known.
#[cfg_attr(not(test), allow(dead_code))]
struct Stages {
    looked: Looked,
    compared: Compared,
    turn: Turn,
}

/// The first and the second of the ring: what they may send, and the frames at their heads.
struct Looked {
    has: NodeId,
    quantum: NodeId,
    length: NodeId,
    other_has: NodeId,
    other_length: NodeId,
}

/// Whether the first may send its frame, and what it has with another quantum.
struct Compared {
    covered: NodeId,
    again: NodeId,
}

/// What a choice of deficit round robin is.
struct Turn {
    /// The first gives its turn away, and the second sends.
    passes: NodeId,
    /// The deficit of the choice after it has sent.
    left: NodeId,
}

fn schedule(m: &mut ModuleBuilder, of: &Asked, count_bits: u32) -> Scheduled {
    let Asked { mode, enqueue, class, take, .. } = *of;
    let (queues, number_bits) = (of.quanta.len() as u32, m.width(class));
    let bits = m.width(of.quanta[0]);
    let counts: Vec<(RegisterId, NodeId)> =
        (0..queues).map(|at| m.register(&format!("count{at}"), count_bits, Some(0))).collect();
    let deficits: Vec<(RegisterId, NodeId)> =
        (0..queues).map(|at| m.register(&format!("deficit{at}"), bits + 1, Some(0))).collect();
    let entries: Vec<(RegisterId, NodeId)> =
        (0..queues).map(|at| m.register(&format!("ring{at}"), number_bits, Some(0))).collect();
    let filled: Vec<(RegisterId, NodeId)> =
        (0..queues).map(|at| m.register(&format!("filled{at}"), 1, Some(0))).collect();
    let (given_register, given) = m.register("given", 1, Some(0));
    let ring = Ring {
        entries: entries.iter().map(|(_, value)| *value).collect(),
        filled: filled.iter().map(|(_, value)| *value).collect(),
    };
    let is_round_robin = m.is(mode, Discipline::RoundRobin as u128);
    let is_deficit = m.is(mode, Discipline::Deficit as u128);

    let values: Vec<NodeId> = deficits.iter().map(|(_, value)| *value).collect();
    // Each stage reads those before it, which stay as they are until something changes.
    let looked = Looked::of(m, &ring, given, (&values, &of.quanta, &of.lengths)).registered(m);
    let compared = looked.compare(m).registered(m);
    let turn = looked.turn(m, &compared, &ring).registered(m);
    let second = ring.entries.get(1).copied().unwrap_or(ring.entries[0]);
    let by_deficit = m.mux(turn.passes, second, ring.entries[0]);
    let frames = Frames::of(m, queues);
    let highest: Vec<(NodeId, NodeId)> =
        (0..queues).rev().map(|at| (frames[at as usize].some.1, m.number(number_bits, at.into()))).collect();
    let lowest = m.number(number_bits, 0);
    let by_priority = m.first(&highest, lowest);
    let in_turn = m.mux(is_round_robin, ring.entries[0], by_priority);
    let choice = m.mux(is_deficit, by_deficit, in_turn);
    let (age_register, age) = m.register("age", 2, Some(0));
    let is_settled = m.is(age, SETTLES.into());
    let at_once = m.not(is_deficit);
    let is_known = m.or(at_once, is_settled);
    let valid = m.and(ring.filled[0], is_known);
    let sends = m.and(take, valid);

    // Counts, and whether the choice runs empty.
    let held: Vec<NodeId> = counts.iter().map(|(_, value)| *value).collect();
    let are_single: Vec<NodeId> = frames.iter().map(|of| of.single.1).collect();
    let empties = m.choose(choice, &are_single);
    let mut fresh = m.number(1, 0);
    for (at, (register, count)) in (0..).zip(&counts) {
        let of = &frames[at as usize];
        let (goes, comes) = (m.is(choice, at), m.is(class, at));
        let (goes, comes) = (m.and(goes, sends), m.and(comes, enqueue));
        let (more, one) = (m.add_number(*count, 1), m.number(count_bits, 1));
        let less = m.sub(*count, one);
        let next = m.mux(comes, more, less);
        m.set_next(*register, next);
        let changes = m.xor(goes, comes);
        m.set_enable(*register, changes);
        let new = of.connect(m, *count, (changes, comes, goes));
        fresh = m.or(fresh, new);
    }

    // The ring changes in this order: the queue that passes its turn on goes to the end, the queue that has sent leaves or stays, a
    // queue with its first frame is added at the end.
    let passes = m.all(&[turn.passes, is_deficit, sends]);
    let passed = ring.remove(m, ring.entries[0], passes).append(m, ring.entries[0], passes);
    let ends = m.or(empties, is_round_robin);
    let ends = m.and(ends, sends);
    let stays = m.not(empties);
    let again = m.all(&[is_round_robin, sends, stays]);
    let sent = passed.remove(m, choice, ends).append(m, choice, again);
    let next = sent.append(m, class, fresh);
    for at in 0..queues as usize {
        m.set_next(entries[at].0, next.entries[at]);
        m.set_next(filled[at].0, next.filled[at]);
    }
    let goes_on = m.and(is_deficit, stays);
    let idle = m.and(given, is_deficit);
    let next_given = m.mux(sends, goes_on, idle);
    m.set_next(given_register, next_given);
    for (at, (register, deficit)) in (0..).zip(&deficits) {
        let (chosen, first) = (m.is(choice, at), m.is(ring.entries[0], at));
        let zero = m.number(bits + 1, 0);
        let left = m.mux(empties, zero, turn.left);
        let gives = m.and(first, turn.passes);
        let kept = m.mux(gives, looked.has, *deficit);
        let after = m.mux(chosen, left, kept);
        let after = m.mux(sends, after, *deficit);
        let next = m.mux(is_deficit, after, zero);
        m.set_next(*register, next);
    }
    let changes = m.any(&[sends, fresh, at_once]);
    let (none, older) = (m.number(2, 0), m.add_number(age, 1));
    let older = m.mux(is_settled, age, older);
    let age_next = m.mux(changes, none, older);
    m.set_next(age_register, age_next);
    let stages = Stages { looked, compared, turn };
    Scheduled { valid, choice, counts: held, deficits: values, ring, next, given, sends, age, stages }
}

/// A sum that stays at the most that it can hold.
fn saturated(m: &mut ModuleBuilder, a: NodeId, b: NodeId) -> NodeId {
    let wide = m.width(a);
    let (a, b) = (m.resize(a, wide + 1), m.resize(b, wide + 1));
    let sum = m.add(a, b);
    let over = m.bit(sum, wide);
    let (low, most) = (m.slice(sum, 0, wide), m.constant(Bits::ones(wide)));
    m.mux(over, most, low)
}

impl Looked {
    fn of(
        m: &mut ModuleBuilder,
        ring: &Ring,
        given: NodeId,
        (deficits, quanta, lengths): (&[NodeId], &[NodeId], &[NodeId]),
    ) -> Looked {
        let wide = m.width(deficits[0]);
        let of = |m: &mut ModuleBuilder, who: NodeId| {
            let (quantum, length) = (m.choose(who, quanta), m.choose(who, lengths));
            (m.choose(who, deficits), quantum, m.resize(length, wide))
        };
        let first = ring.entries[0];
        let (deficit, quantum, length) = of(m, first);
        let filled = saturated(m, deficit, quantum);
        let has = m.mux(given, deficit, filled);
        let second = ring.entries.get(1).copied().unwrap_or(first);
        let (other, other_quantum, other_length) = of(m, second);
        let other_has = saturated(m, other, other_quantum);
        Looked { has, quantum, length, other_has, other_length }
    }

    fn compare(&self, m: &mut ModuleBuilder) -> Compared {
        let covered = m.le(self.length, self.has);
        Compared { covered, again: saturated(m, self.has, self.quantum) }
    }

    /// The first, if its deficit covers its frame, else the second, else again the first when it is alone.
    fn turn(&self, m: &mut ModuleBuilder, compared: &Compared, ring: &Ring) -> Turn {
        let two = ring.filled.get(1).copied().unwrap_or_else(|| m.number(1, 0));
        let short = m.not(compared.covered);
        let passes = m.and(short, two);
        let own = m.mux(compared.covered, self.has, compared.again);
        let sends = m.mux(passes, self.other_has, own);
        let bytes = m.mux(passes, self.other_length, self.length);
        let enough = m.le(bytes, sends);
        let rest = m.sub(sends, bytes);
        let zero = m.number(m.width(rest), 0);
        Turn { passes, left: m.mux(enough, rest, zero) }
    }

    fn registered(self, m: &mut ModuleBuilder) -> Looked {
        Looked {
            has: m.delayed("looked_has", self.has, None),
            quantum: m.delayed("looked_quantum", self.quantum, None),
            length: m.delayed("looked_length", self.length, None),
            other_has: m.delayed("looked_other_has", self.other_has, None),
            other_length: m.delayed("looked_other_length", self.other_length, None),
        }
    }
}

impl Compared {
    fn registered(self, m: &mut ModuleBuilder) -> Compared {
        Compared {
            covered: m.delayed("compared_covered", self.covered, None),
            again: m.delayed("compared_again", self.again, None),
        }
    }
}

impl Turn {
    fn registered(self, m: &mut ModuleBuilder) -> Turn {
        Turn {
            passes: m.delayed("turn_passes", self.passes, None),
            left: m.delayed("turn_left", self.left, None),
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
