//! What has to be computed again: the operations and registers whose operands have changed.
//!
//! In most cycles most of a design stands still: while software writes a register of a device, some ten words of thousands change.
//! So each place has a list of its *readers*, the steps that compute with it and the registers that take it at the edge. A place that
//! changes marks its readers, and a cycle computes what is marked. As steps are in an order in which operands come first, a step marks
//! only steps after it, and one pass over the marks in order is enough. Where much has changed, the machine computes all steps in
//! runs, which takes a sixth of the time for each of them; the marks of steps then mean nothing, and all registers and memories are
//! marked.

use super::run::MemoryState;
use super::schedule::{Run, Step};
use super::wide::Wide;
use super::words::Code;

/// One of so many steps may have changed operands for the cycle to go by marks, and of so many may be computed by marks.
const FEW_MARKED: usize = 24;
const FEW_COMPUTED: usize = 6;
/// For at most so many cycles all is computed without a look at marks, after cycles in which too much had changed.
const LONGEST_BUSY: u32 = 64;

/// A set of numbers below a limit, as bits.
struct Marks(Vec<u64>);

impl Marks {
    fn none(count: u32) -> Marks {
        Marks(vec![0; count.div_ceil(64) as usize])
    }

    fn add(&mut self, number: u32) {
        self.0[number as usize / 64] |= 1 << (number % 64);
    }

    /// Adds all numbers below `count`, which is the limit.
    fn add_all(&mut self, count: u32) {
        self.0.fill(u64::MAX);
        if let Some(last) = self.0.last_mut() {
            *last >>= count.wrapping_neg() % 64;
        }
    }

    /// Takes the first number of those from the one of word `at` on, and goes on to its word.
    fn take_from(&mut self, at: &mut usize) -> Option<u32> {
        while let Some(word) = self.0.get_mut(*at) {
            if *word != 0 {
                let number = *at as u32 * 64 + word.trailing_zeros();
                *word &= *word - 1;
                return Some(number);
            }
            *at += 1;
        }
        None
    }
}

/// The readers of places, and which of them are marked.
pub(super) struct Activity {
    /// The operation of each step.
    pub(super) codes: Vec<Code>,
    steps: Marks,
    /// Words of registers whose next value may differ from the one that they have.
    registers: Marks,
    /// Memories of which the next edge may change a word, or what a clocked read has given.
    memories: Marks,
    count: Counts,
    /// The readers of place `p` are those from `starts[p]` to `starts[p + 1]`: first the numbers of steps, then those of words of
    /// registers, then those of memories.
    starts: Vec<u32>,
    readers: Vec<u32>,
    /// For each memory the steps that read it at once.
    reads: Vec<Vec<u32>>,
    /// How many times all is computed whatever is marked, and how many times it will be when too much has changed again.
    busy: u32,
    next_busy: u32,
}

struct Counts {
    steps: u32,
    registers: u32,
    memories: u32,
}

impl Activity {
    /// All is marked. `next` has the place that each word of a register takes, by the place of that word.
    pub(super) fn new(
        (runs, steps): (&[Run], &[Step]),
        (wides, memories): (&[Wide], &[MemoryState]),
        next: &[u32],
        places: usize,
    ) -> Activity {
        let mut codes = vec![Code::State; steps.len()];
        runs.iter().for_each(|run| codes[run.steps.clone()].fill(run.code));
        let mut pairs = Vec::new();
        let mut reads = vec![Vec::new(); memories.len()];
        for (at, (step, code)) in (0..).zip(steps.iter().zip(&codes)) {
            operands(*code, step, wides, &mut |place| pairs.push((place, at)));
            if *code == Code::Read {
                reads[step.b as usize].push(at);
            }
        }
        let [steps, registers, memory_count] =
            [steps.len(), next.len(), memories.len()].map(|count| count as u32);
        let count = Counts { steps, registers, memories: memory_count };
        pairs.extend(next.iter().zip(steps..).map(|(place, reader)| (*place, reader)));
        for (memory, reader) in memories.iter().zip(steps + registers..) {
            memory.operands(&mut |place| pairs.push((place, reader)));
        }
        pairs.sort_unstable();
        pairs.dedup();
        let mut starts = vec![0; places + 1];
        pairs.iter().for_each(|(place, _)| starts[*place as usize + 1] += 1);
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let readers = pairs.into_iter().map(|(_, reader)| reader).collect();
        let [steps, registers, memories] = [steps, registers, memory_count].map(Marks::none);
        let mut activity = Activity {
            codes,
            steps,
            registers,
            memories,
            count,
            starts,
            readers,
            reads,
            busy: 0,
            next_busy: 1,
        };
        activity.mark_all();
        activity
    }

    /// A place has another value.
    pub(super) fn mark(&mut self, place: u32) {
        let from = self.starts[place as usize] as usize;
        let to = self.starts[place as usize + 1] as usize;
        for reader in &self.readers[from..to] {
            let Some(register) = reader.checked_sub(self.count.steps) else {
                self.steps.add(*reader);
                continue;
            };
            match register.checked_sub(self.count.registers) {
                None => self.registers.add(register),
                Some(memory) => self.memories.add(memory),
            }
        }
    }

    /// A register has a value that it has not taken from its place.
    pub(super) fn mark_register(&mut self, place: u32) {
        if place < self.count.registers {
            self.registers.add(place);
        }
    }

    /// A memory has another word.
    pub(super) fn mark_memory(&mut self, memory: u32) {
        self.memories.add(memory);
        self.reads[memory as usize].iter().for_each(|step| self.steps.add(*step));
    }

    /// All has to be computed.
    pub(super) fn mark_all(&mut self) {
        self.steps.add_all(self.count.steps);
        self.registers.add_all(self.count.registers);
        self.memories.add_all(self.count.memories);
    }

    /// Whether few steps are marked.
    pub(super) fn is_low(&self) -> bool {
        let marked: u32 = self.steps.0.iter().map(|word| word.count_ones()).sum();
        marked as usize * FEW_MARKED <= self.count.steps as usize
    }

    /// How many steps are computed by marks before all are.
    pub(super) fn most(&self) -> usize {
        self.count.steps as usize / FEW_COMPUTED
    }

    /// Takes the next marked step, from the one of word `at` of the marks on.
    pub(super) fn next_step(&mut self, at: &mut usize) -> Option<u32> {
        self.steps.take_from(at)
    }

    /// Whether all is computed next whatever is marked, so that there is no need to mark steps.
    pub(super) fn is_busy(&self) -> bool {
        self.busy > 0
    }

    /// What is marked has been computed.
    pub(super) fn computed_marked(&mut self) {
        self.next_busy = 1;
    }

    /// All steps have been computed, whatever was marked. Marks are looked at the less often the longer they have not helped: then
    /// they cost next to nothing where all is in motion.
    pub(super) fn computed_all(&mut self) {
        match self.busy.checked_sub(1) {
            Some(less) => self.busy = less,
            None => {
                self.busy = self.next_busy;
                self.next_busy = (2 * self.next_busy).min(LONGEST_BUSY);
            }
        }
        self.steps.0.fill(0);
        self.registers.add_all(self.count.registers);
        self.memories.add_all(self.count.memories);
    }

    /// Takes the next marked word of a register, as [`Activity::next_step`] does with steps.
    pub(super) fn next_register(&mut self, at: &mut usize) -> Option<u32> {
        self.registers.take_from(at)
    }

    /// The memories that are marked, as words of bits.
    pub(super) fn take_memories(&mut self, at: usize) -> Option<u64> {
        self.memories.0.get_mut(at).map(std::mem::take)
    }
}

/// The places that a step computes with.
fn operands(code: Code, step: &Step, wides: &[Wide], visit: &mut dyn FnMut(u32)) {
    match code {
        Code::State | Code::Constant | Code::Part => (),
        Code::Wide => {
            let wide = &wides[step.a as usize];
            wide.a.iter().chain(&wide.b).for_each(|place| visit(*place));
        }
        Code::Not | Code::Repeat | Code::NotZero | Code::Parity | Code::Read => visit(step.a),
        Code::AddCarry | Code::Carry | Code::LtOr | Code::Mux => {
            [step.a, step.b, step.c].into_iter().for_each(visit)
        }
        _ => [step.a, step.b].into_iter().for_each(visit),
    }
}

#[cfg(test)]
mod tests {
    use crate::arbitrary::{self, Rng};
    use crate::*;

    /// Of random designs whose inputs mostly stay, all signals and memories are those of a simulator that computes all in each cycle.
    #[test]
    fn marks_miss_nothing() {
        let mut few = 0;
        for seed in 0..400 {
            let design = arbitrary::design(seed, 20 + seed as usize % 200);
            let (mut sim, mut all) = (Simulator::new(&design).unwrap(), Simulator::new(&design).unwrap());
            let mut rng = Rng::new(!seed);
            let settable =
                |id: &SignalId| matches!(sim.describe(*id).1, SignalKind::Input | SignalKind::Register);
            let inputs: Vec<SignalId> = sim.signals().filter(settable).collect();
            for cycle in 0..60 {
                if !inputs.is_empty() && rng.one_in(2) {
                    let (input, value) = (inputs[rng.below(inputs.len())], rng.next_u64());
                    [&mut sim, &mut all].into_iter().for_each(|sim| sim.set_u64(input, value));
                }
                let reset = rng.one_in(40);
                [&mut sim, &mut all].into_iter().for_each(|sim| sim.set_reset(reset));
                few += usize::from(sim.machine.activity.is_low() && sim.work().1 >= super::FEW_MARKED);
                all.machine.activity.mark_all();
                all.stale = true;
                for signal in all.signals().collect::<Vec<_>>() {
                    let name = sim.describe(signal).0.to_owned();
                    assert_eq!(
                        sim.get(signal),
                        all.get(signal),
                        "seed {seed}, cycle {cycle}, {name}\n{design}"
                    );
                }
                [&mut sim, &mut all].into_iter().for_each(Simulator::step);
                for (memory, other) in sim.machine.memories.iter().zip(&all.machine.memories) {
                    assert_eq!(memory.words, other.words, "seed {seed}, cycle {cycle}\n{design}");
                }
                assert_eq!(sim.collisions(), all.collisions(), "seed {seed}, cycle {cycle}\n{design}");
            }
        }
        assert!(few > 3000, "cycles with few marks: {few}");
    }
}
