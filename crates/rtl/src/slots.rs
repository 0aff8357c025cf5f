//! Which accesses share a port of a unit, and how far apart frames have to come for the sake of an object.

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

/// From the first cycle of a frame in which an object takes part to the last, so that frames take turns.
fn interval(object: ObjectKey, slots: &[Slot]) -> u32 {
    let span = |slots: &mut dyn Iterator<Item = u32>| -> Option<(u32, u32)> {
        slots.fold(None, |span, at| {
            let (first, last) = span.unwrap_or((at, at));
            Some((first.min(at), last.max(at)))
        })
    };
    let all = span(&mut slots.iter().map(|slot| slot.cycle)).unwrap_or((0, 0));
    match object {
        // Nothing here writes them.
        ObjectKey::Table(_) | ObjectKey::ValueSet(_) | ObjectKey::Hash(_) | ObjectKey::Random => 1,
        ObjectKey::Register(_) => {
            let (reads, writes): (Vec<&Slot>, Vec<&Slot>) =
                slots.iter().partition(|slot| matches!(slot.unit, Unit::RegisterRead(_)));
            let Some(writes) = span(&mut writes.iter().map(|slot| slot.cycle)) else { return 1 };
            let own = writes.1 - writes.0 + 1;
            let answers = span(&mut reads.iter().map(|slot| slot.cycle + slot.unit.latency()));
            let Some(answers) = answers else { return own };
            // An answer has all that was written before its cycle: what the frame before wrote, and nothing of the frame after.
            own.max((writes.1 + 1).saturating_sub(answers.0)).max(answers.1.saturating_sub(writes.0))
        }
        ObjectKey::Meter(_) | ObjectKey::DirectMeter(_) => all.1 - all.0 + METER_INTERVAL,
        ObjectKey::Counter(_) | ObjectKey::DirectCounter(_) | ObjectKey::Hits(_) | ObjectKey::Messages => {
            all.1 - all.0 + 1
        }
    }
}
