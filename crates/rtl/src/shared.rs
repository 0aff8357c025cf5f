//! Objects that several stages ask: one unit for each, and what keeps frames of these stages apart.
//!
//! A stage is one pipeline, so its frames come to all objects in the same order. Frames of two stages come at any distance. A pair of
//! stages that have objects in common takes frames only so far apart that every one of these objects is as if one frame had been through
//! before the other came, and the same one at each object ([`apart`]). So all that frames do to objects is as if they passed their stages
//! one after the other, in some order: no value that a frame has read is written by another one before the frame writes it back.
//!
//! A stage says in which cycles it takes a frame (`takes`), and takes none while it is held up (`hold`). Of two frames that are not to
//! come in one cycle, that of the earlier stage goes first. The later one has its turn all the same: what comes to a later stage comes of
//! what an earlier one has let pass, and a device has room for so many of these only.

use crate::assemble::{HOLD, TAKES};
use crate::hardware::{Hardware, Part, Stage};
use crate::objects::{AllUnits, NoUnit, ObjectUnit, Request};
use crate::parts::{Countdown, later};
use crate::slots::{Slot, apart};
use crate::stage::{Access, ObjectKey, input_width};
use crate::tables::TableUnit;
use millrace_netlist::{Design, ModuleBuilder, NodeId};
use millrace_pipeline::Program;
use std::collections::{BTreeMap, BTreeSet};

/// The objects of several stages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared {
    pub(crate) objects: Vec<SharedObject>,
    /// Objects that have no unit, also those of one stage alone.
    pub(crate) refused: BTreeMap<ObjectKey, NoUnit>,
    pairs: Vec<Pair>,
}

/// An object of several stages.
#[derive(Clone, Debug)]
pub(crate) struct SharedObject {
    /// Its unit. The accesses of its ports are numbers of `accesses`.
    pub(crate) unit: ObjectUnit,
    /// The number of the stage, and of the access there.
    accesses: Vec<(usize, usize)>,
    /// The stages.
    pub(crate) stages: Vec<usize>,
    /// Each two of them that it keeps apart.
    pairs: Vec<Pair>,
    /// So many cycles take a frame of each stage at least, one after the other.
    pub(crate) interval: u32,
}

/// Two stages with objects in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pair {
    stages: [usize; 2],
    /// A frame of the second stage comes at least so many cycles after one of the first,
    after: i64,
    /// or so many before it.
    before: i64,
}

impl Pair {
    /// For the sake of an object; none: however frames of the two come, it is right.
    fn of(key: ObjectKey, stages: &[Stage], [first, second]: [usize; 2]) -> Option<Pair> {
        let slots = |stage: usize| stages[stage].placed.slots.get(&key).map_or(&[][..], Vec::as_slice);
        let (of_first, of_second) = (slots(first), slots(second));
        let after = apart(key, of_first, of_second)?;
        let before = apart(key, of_second, of_first)?;
        Some(Pair { stages: [first, second], after, before })
    }

    /// So many cycles take a frame of each at least, one after the other.
    fn interval(self) -> u32 {
        u32::try_from(self.after + self.before).unwrap_or(1).max(1)
    }

    /// By how many cycles a frame of the second stage may not be later than one of the first: from the first number to the second.
    fn kept_from_second(self) -> Option<(u32, u32)> {
        range(0.max(1 - self.before), self.after - 1)
    }

    /// By how many cycles a frame of the first stage may not be later than one of the second. What comes in one cycle is the other's.
    fn kept_from_first(self) -> Option<(u32, u32)> {
        range(1.max(1 - self.after), self.before - 1)
    }
}

fn range(low: i64, high: i64) -> Option<(u32, u32)> {
    let (low, high) = (u32::try_from(low).ok()?, u32::try_from(high).ok()?);
    (low <= high).then_some((low, high))
}

impl Shared {
    /// The objects that several of the stages ask and that frames change, those that a unit has room for. `is_shared` says which,
    /// `all` counts what units have.
    pub(crate) fn of(
        (program, tables): (&Program, &[TableUnit]),
        stages: &[Stage],
        is_shared: impl Fn(ObjectKey) -> bool,
        all: &mut AllUnits,
    ) -> Shared {
        let keys: BTreeSet<ObjectKey> =
            stages.iter().flat_map(|stage| stage.placed.slots.keys().copied()).collect();
        let keys = keys.into_iter().filter(|key| is_shared(*key));
        let (mut objects, mut refused) = (Vec::new(), BTreeMap::new());
        for key in keys {
            let object = SharedObject::of((program, tables), stages, key)
                .and_then(|object| Ok(SharedObject { unit: all.add(object.unit)?, ..object }));
            match object {
                Ok(object) => objects.push(object),
                Err(why) => drop(refused.insert(key, why)),
            }
        }
        let mut pairs: Vec<Pair> = Vec::new();
        for pair in objects.iter().flat_map(|object| &object.pairs) {
            match pairs.iter_mut().find(|other| other.stages == pair.stages) {
                Some(other) => {
                    (other.after, other.before) =
                        (other.after.max(pair.after), other.before.max(pair.before));
                }
                None => pairs.push(*pair),
            }
        }
        Shared { objects, refused, pairs }
    }

    /// Whether it has the unit of an object.
    pub(crate) fn has(&self, key: ObjectKey) -> bool {
        self.objects.iter().any(|object| object.unit.key == key)
    }

    /// Whether a stage asks for any of them.
    pub(crate) fn is_asked_by(&self, stage: usize) -> bool {
        self.objects.iter().any(|object| object.stages.contains(&stage))
    }

    /// So many cycles take a frame of each stage at least, one after the other; 1: nothing keeps them apart.
    pub(crate) fn interval(&self) -> u32 {
        self.pairs.iter().map(|pair| pair.interval()).max().unwrap_or(1)
    }
}

impl SharedObject {
    fn of(
        tables: (&Program, &[TableUnit]),
        stages: &[Stage],
        key: ObjectKey,
    ) -> Result<SharedObject, NoUnit> {
        let (mut slots, mut own, mut accesses, mut askers) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut latency = 0;
        for (number, stage) in stages.iter().enumerate() {
            let Some(of_stage) = stage.placed.slots.get(&key) else { continue };
            askers.push(number);
            latency = latency.max(stage.placed.latency);
            let base = own.len();
            own.extend(stage.dataflow.accesses.iter().cloned());
            accesses.extend((0..stage.dataflow.accesses.len()).map(|at| (number, at)));
            let moved = |slot: &Slot| Slot {
                accesses: slot.accesses.iter().map(|at| base + at).collect(),
                ..slot.clone()
            };
            slots.extend(of_stage.iter().map(moved));
        }
        // Reads of two stages may come in one cycle, so none of them share a port of the memory.
        let unit = ObjectUnit::of(tables, (key, &slots), &own, (0, latency))?;
        let both = askers.iter().flat_map(|second| askers.iter().map(|first| [*first, *second]));
        let both = both.filter(|[first, second]| first < second);
        let pairs: Vec<Pair> = both.filter_map(|both| Pair::of(key, stages, both)).collect();
        let own = askers.iter().filter_map(|stage| stages[*stage].placed.intervals.get(&key).copied());
        let interval = pairs.iter().map(|pair| pair.interval()).chain(own).max().unwrap_or(1);
        Ok(SharedObject { unit, accesses, stages: askers, pairs, interval })
    }

    /// Its accesses: their numbers at the ports of the unit, their stage, and their number there.
    fn asked(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        let numbers = self.unit.slots.iter().flat_map(|slot| slot.accesses.iter().copied());
        numbers.map(|at| (at, self.accesses[at].0, self.accesses[at].1))
    }
}

impl Hardware {
    /// The units of objects that several stages ask, as a design of its own: its ports are those of the stages, each after the name of
    /// its stage. None: there are none.
    pub fn shared_design(&self) -> Option<Design> {
        if self.shared.objects.is_empty() {
            return None;
        }
        let mut design = Design::new();
        let modules: Vec<_> = (self.shared.objects.iter())
            .map(|object| design.add(object.unit.module(&format!("shared_{}", object.unit.name))))
            .collect();
        let mut m = ModuleBuilder::new("shared");
        let mut held: BTreeMap<usize, Vec<NodeId>> = BTreeMap::new();
        let mut takes: BTreeMap<usize, NodeId> = BTreeMap::new();
        for pair in &self.shared.pairs {
            let [first, second] = pair.stages;
            let keeps = [(first, second, pair.kept_from_second()), (second, first, pair.kept_from_first())];
            for (by, held_up, cycles) in keeps {
                let Some(cycles) = cycles else { continue };
                let takes = *takes.entry(by).or_insert_with(|| m.input(&self.shared_port(by, TAKES), 1));
                let name =
                    format!("{}_after_{}", self.stages[held_up].part.name(), self.stages[by].part.name());
                let holds = since(&mut m, &name, takes, cycles);
                held.entry(held_up).or_default().push(holds);
            }
        }
        for (object, module) in self.shared.objects.iter().zip(modules) {
            let mut requests = BTreeMap::new();
            for (number, stage, at) in object.asked() {
                let ports = &self.stages[stage].ports.accesses[at];
                let access = &self.stages[stage].dataflow.accesses[at];
                let enable = m.input(&self.shared_port(stage, &ports.enable), 1);
                let inputs = ports.inputs.iter().zip(&access.inputs);
                let inputs =
                    inputs.map(|(port, (_, ty))| m.input(&self.shared_port(stage, port), input_width(*ty)));
                let inputs = inputs.collect();
                requests.insert(number, Request { enable, inputs });
            }
            let connected = object.unit.connect(&mut m, (&design, module), &requests);
            for (number, answer) in connected.answers {
                let (stage, at) = object.accesses[number];
                let Access { answer: width, .. } = self.stages[stage].dataflow.accesses[at];
                if let Some(port) = &self.stages[stage].ports.accesses[at].answer {
                    let answer = m.resize(answer, width);
                    m.output(&self.shared_port(stage, port), answer);
                }
            }
            for stage in &object.stages {
                held.entry(*stage).or_default().extend(connected.busy);
            }
        }
        for stage in self.shared_stages() {
            let hold = m.any(held.get(&stage).map_or(&[], Vec::as_slice));
            m.output(&self.shared_port(stage, HOLD), hold);
        }
        design.add(m.finish());
        Some(design)
    }

    /// The stages that ask for objects of several.
    fn shared_stages(&self) -> impl Iterator<Item = usize> {
        (0..self.stages.len()).filter(|stage| self.shared.is_asked_by(*stage))
    }

    fn shared_port(&self, stage: usize, port: &str) -> String {
        shared_port(self.stages[stage].part, port)
    }

    /// The ports of a stage by which it asks for objects of several.
    pub(crate) fn shared_ports_of(&self, stage: usize) -> BTreeSet<String> {
        let mut ports = BTreeSet::new();
        for (_, _, at) in
            self.shared.objects.iter().flat_map(SharedObject::asked).filter(|asked| asked.1 == stage)
        {
            let of = &self.stages[stage].ports.accesses[at];
            ports.extend(
                [of.enable.clone()].into_iter().chain(of.inputs.iter().cloned()).chain(of.answer.clone()),
            );
        }
        if self.shared.is_asked_by(stage) {
            ports.extend([HOLD, TAKES].map(str::to_owned));
        }
        ports
    }
}

/// The port of the units of several stages for a port of a stage.
pub(crate) fn shared_port(part: Part, port: &str) -> String {
    format!("{}.{port}", part.name())
}

/// Whether an event was so many cycles ago: from the first number to the second.
fn since(m: &mut ModuleBuilder, name: &str, event: NodeId, (first, last): (u32, u32)) -> NodeId {
    let begins = first.max(1);
    let mut holds = Vec::new();
    if first == 0 {
        holds.push(event);
    }
    if last >= begins {
        // All events hold for as long, so that of the last one ends last.
        let starts = later(m, &format!("{name}_starts"), event, begins - 1, Some(0));
        let left = Countdown::new(m, &format!("{name}_left"), last - begins + 1);
        holds.push(m.not(left.is_over));
        left.begins_with(m, starts);
    }
    m.any(&holds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::Unit;
    use millrace_netlist::Simulator;
    use millrace_pipeline::{CounterId, MeterId, RegisterId};

    fn slots(of: &[(Unit, u32)]) -> Vec<Slot> {
        let slot = |(at, (unit, cycle)): (usize, &(Unit, u32))| Slot {
            unit: unit.clone(),
            cycle: *cycle,
            accesses: vec![at],
        };
        of.iter().enumerate().map(slot).collect()
    }

    /// Distances worked out by hand from when ports are used, answers come (two cycles after a read) and writes are done.
    #[test]
    fn frames_are_as_far_apart_as_their_accesses_need() {
        use Unit::{Count, Meter, RegisterRead, RegisterWrite};
        let id = RegisterId::from_u32(0);
        let key = ObjectKey::Register(id);
        let counts = |at: u32| slots(&[(RegisterRead(id), at), (RegisterWrite(id), at + 5)]);
        // The read of the next is answered in the cycle after the write of the one before: 2 + 5 + 1 - (7 + 2).
        assert_eq!(apart(key, &counts(2), &counts(7)), Some(-1));
        assert_eq!(apart(key, &counts(7), &counts(2)), Some(9));
        let (reads, writes) = (slots(&[(RegisterRead(id), 4)]), slots(&[(RegisterWrite(id), 1)]));
        assert_eq!(apart(key, &reads, &reads), None);
        // The answer in cycle 6 is to be without what is written in cycle 1, or with it.
        assert_eq!(apart(key, &reads, &writes), Some(5));
        assert_eq!(apart(key, &writes, &reads), Some(-4));
        let counter = CounterId::from_u32(0);
        let (one, two) = (slots(&[(Count(counter), 3)]), slots(&[(Count(counter), 8), (Count(counter), 9)]));
        assert_eq!(apart(ObjectKey::Counter(counter), &one, &two), Some(-4));
        assert_eq!(apart(ObjectKey::Counter(counter), &two, &one), Some(7));
        let meter = MeterId::from_u32(0);
        let one = slots(&[(Meter(meter), 3)]);
        assert_eq!(apart(ObjectKey::Meter(meter), &one, &one), Some(2));
    }

    #[test]
    fn what_is_kept_is_what_is_too_near() {
        for after in -9..10 {
            for before in -9..10 {
                let pair = Pair { stages: [0, 1], after, before };
                let within = |range: Option<(u32, u32)>, at: i64| {
                    range.is_some_and(|(low, high)| (i64::from(low)..=i64::from(high)).contains(&at))
                };
                for later in -20..20_i64 {
                    let kept = match later >= 0 {
                        true => within(pair.kept_from_second(), later),
                        false => within(pair.kept_from_first(), -later),
                    };
                    let fine = later >= after || -later >= before;
                    assert_eq!(kept, !fine, "after {after}, before {before}, {later} cycles later");
                }
            }
        }
    }

    #[test]
    fn events_are_remembered_for_their_cycles() {
        for (first, last) in [(0, 0), (0, 4), (1, 1), (1, 3), (2, 2), (4, 9)] {
            let mut m = ModuleBuilder::new("since");
            let event = m.input("event", 1);
            let holds = since(&mut m, "event", event, (first, last));
            m.output("holds", holds);
            let mut design = Design::new();
            design.add(m.finish());
            let mut simulator = Simulator::new(&design).unwrap();
            let event = simulator.input("event").unwrap();
            let holds = simulator.output("holds").unwrap();
            let mut rng = millrace_pipeline::arbitrary::Rng::new(u64::from(first * 16 + last));
            let mut events = Vec::new();
            for cycle in 0..300_usize {
                events.push(rng.one_in(7));
                simulator.set_u64(event, events[cycle].into());
                let wanted =
                    (first..=last).any(|ago| cycle.checked_sub(ago as usize).is_some_and(|at| events[at]));
                assert_eq!(simulator.get_u64(holds) == 1, wanted, "{first} to {last}, cycle {cycle}");
                simulator.step();
            }
        }
    }
}
