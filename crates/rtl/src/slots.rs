//! Which accesses share a port of a unit, and how far apart frames have to come for the sake of an object: frames of one stage
//! ([`intervals`]), and of two stages that ask the same one ([`apart`]).

use crate::exclusive::Conditions;
use crate::stage::{Dataflow, METER_INTERVAL, ObjectKey, Unit};
use std::collections::BTreeMap;

/// Accesses to one object in one cycle of which a frame makes at most one: they share a port of the unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    /// What they do.
    pub(crate) unit: Unit,
    /// The cycle.
    pub(crate) cycle: u32,
    /// Their numbers.
    pub(crate) accesses: Vec<usize>,
}

/// Whether two accesses to one object could share a port.
fn alike(one: &Unit, other: &Unit) -> bool {
    match (one, other) {
        (Unit::Digest(_) | Unit::Log(_), Unit::Digest(_) | Unit::Log(_)) => true,
        // A copy of the table for each place.
        (Unit::Lookup(_), _) => false,
        _ => one == other,
    }
}

/// Accesses in the order of the program, those that exclude each other and do the same together.
fn groups(
    dataflow: &Dataflow,
    conditions: &Conditions,
    accesses: &[usize],
    fits: impl Fn(usize, usize) -> bool,
) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for at in accesses {
        let unit = &dataflow.accesses[*at].unit;
        let joins = |group: &&mut Vec<usize>| {
            let mut others = group.iter();
            others.all(|other| {
                alike(&dataflow.accesses[*other].unit, unit)
                    && fits(*other, *at)
                    && conditions.exclude(*other, *at)
            })
        };
        match groups.iter_mut().find(joins) {
            Some(group) => group.push(*at),
            None => groups.push(vec![*at]),
        }
    }
    groups
}

/// The ports of all objects, in the order of the program.
pub(crate) fn slots(
    dataflow: &Dataflow,
    conditions: &Conditions,
    objects: &BTreeMap<ObjectKey, Vec<usize>>,
    access: &[u32],
) -> BTreeMap<ObjectKey, Vec<Slot>> {
    let of = |accesses: &Vec<usize>| {
        let groups = groups(dataflow, conditions, accesses, |one, other| access[one] == access[other]);
        let slot = |accesses: Vec<usize>| Slot {
            unit: dataflow.accesses[accesses[0]].unit.clone(),
            cycle: access[accesses[0]],
            accesses,
        };
        groups.into_iter().map(slot).collect()
    };
    objects.iter().map(|(object, accesses)| (*object, of(accesses))).collect()
}

/// The cycles to which accesses had better be moved: those that exclude each other to that of the last of them, and such without
/// an answer to cycles that follow each other.
pub(crate) fn aligned(
    dataflow: &Dataflow,
    conditions: &Conditions,
    objects: &BTreeMap<ObjectKey, Vec<usize>>,
    access: &[u32],
) -> Vec<u32> {
    let mut moved = access.to_vec();
    for (object, accesses) in objects {
        if let ObjectKey::Table(_) | ObjectKey::ValueSet(_) = object {
            continue;
        }
        let groups = groups(dataflow, conditions, accesses, |_, _| true);
        let last = |group: &Vec<usize>| group.iter().map(|at| access[*at]).max().unwrap_or(0);
        let end = groups.iter().map(last).max().unwrap_or(0);
        let follows = matches!(
            object,
            ObjectKey::Counter(_) | ObjectKey::DirectCounter(_) | ObjectKey::Hits(_) | ObjectKey::Messages
        );
        for (before, group) in groups.iter().rev().enumerate() {
            let target = match follows {
                true => last(group).max(end.saturating_sub(before as u32)),
                false => last(group),
            };
            group.iter().for_each(|at| moved[*at] = target);
        }
    }
    moved
}

/// The fewest cycles from one frame to the next for each object.
pub(crate) fn intervals(slots: &BTreeMap<ObjectKey, Vec<Slot>>) -> BTreeMap<ObjectKey, u32> {
    slots.iter().map(|(object, slots)| (*object, interval(*object, slots))).collect()
}

/// So many cycles apart frames have to come, such that each finds the object as the one before has left it.
fn interval(object: ObjectKey, slots: &[Slot]) -> u32 {
    apart(object, slots, slots).and_then(|cycles| u32::try_from(cycles).ok()).unwrap_or(1).max(1)
}

/// The fewest cycles from a frame that makes some accesses to one that makes others (fewer than 0: the second one may come first), such
/// that the object is as if the first frame were through before the second one came. None: however they come, it is.
pub(crate) fn apart(object: ObjectKey, first: &[Slot], next: &[Slot]) -> Option<i64> {
    match object {
        // Nothing here writes them.
        ObjectKey::Table(_) | ObjectKey::ValueSet(_) | ObjectKey::Hash(_) | ObjectKey::Random => None,
        ObjectKey::Register(_) => {
            let (reads, writes) = answers_and_writes(first);
            let (next_reads, next_writes) = answers_and_writes(next);
            // An answer has all that was written before its cycle: what the frame before wrote, and nothing of the frame after.
            let sees = writes.zip(next_reads).map(|(write, answer)| write.1 + 1 - answer.0);
            let is_hidden = reads.zip(next_writes).map(|(answer, write)| answer.1 - write.0);
            let in_turn = writes.zip(next_writes).map(|(write, next)| write.1 + 1 - next.0);
            [sees, is_hidden, in_turn].into_iter().flatten().max()
        }
        ObjectKey::Meter(_) | ObjectKey::DirectMeter(_) => turns(first, next, METER_INTERVAL),
        ObjectKey::Counter(_) | ObjectKey::DirectCounter(_) | ObjectKey::Hits(_) | ObjectKey::Messages => {
            turns(first, next, 1)
        }
    }
}

/// Frames take turns: from the last access of one to the first of the next it takes so many cycles.
fn turns(first: &[Slot], next: &[Slot], cycles: u32) -> Option<i64> {
    let at = |slot: &Slot| i64::from(slot.cycle);
    Some(first.iter().map(at).max()? - next.iter().map(at).min()? + i64::from(cycles))
}

/// The first cycle and the last.
type Span = Option<(i64, i64)>;

/// When answers to reads come, and when is written.
fn answers_and_writes(slots: &[Slot]) -> (Span, Span) {
    let (reads, writes): (Vec<&Slot>, Vec<&Slot>) =
        slots.iter().partition(|slot| matches!(slot.unit, Unit::RegisterRead(_)));
    let answers = reads.iter().map(|slot| i64::from(slot.cycle + slot.unit.latency()));
    (span(answers), span(writes.iter().map(|slot| slot.cycle.into())))
}

fn span(cycles: impl Iterator<Item = i64>) -> Span {
    cycles.fold(None, |span, at| {
        let (first, last) = span.unwrap_or((at, at));
        Some((first.min(at), last.max(at)))
    })
}
