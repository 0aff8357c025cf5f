//! The machine that runs a scheduled design.

use super::activity::Activity;
use super::lower::{Lowered, limbs};
use super::schedule::{Run, Schedule, Step};
use super::wide::Wide;
use super::words::{Code, Word, moved};

/// What is computed in each cycle whatever else is: all that state takes, and all signals but those that only have a name.
pub(super) fn roots(lowered: &Lowered) -> Vec<Word> {
    let mut roots = Vec::new();
    for register in &lowered.registers {
        roots.extend(register.state.iter().chain(&register.next));
    }
    for memory in &lowered.memories {
        for write in &memory.writes {
            roots.extend([write.enable, write.address]);
            roots.extend(write.data.iter().chain(write.mask.iter().flatten()));
        }
        for read in memory.reads.iter().filter(|read| !read.state.is_empty()) {
            roots.extend([read.enable, read.address]);
            roots.extend(&read.state);
        }
    }
    for signal in lowered.signals.iter().filter(|signal| signal.kind != super::SignalKind::Value) {
        roots.extend(&signal.words);
    }
    roots
}

/// A memory as it is.
pub(super) struct MemoryState {
    pub(super) width: u32,
    pub(super) depth: u32,
    /// Words of 64 bits of one of its words.
    pub(super) limbs: u32,
    pub(super) words: Vec<u64>,
    never_collides: bool,
    writes: Vec<Write>,
    reads: Vec<Read>,
}

impl MemoryState {
    /// Part `limb` of the word at an address; 0 beyond the end.
    #[inline(always)]
    pub(super) fn word(&self, address: u64, limb: u32) -> u64 {
        if address < u64::from(self.depth) {
            self.words[address as usize * self.limbs as usize + limb as usize]
        } else {
            0
        }
    }
}

impl MemoryState {
    /// The places of all that its ports take at the edge.
    pub(super) fn operands(&self, visit: &mut dyn FnMut(u32)) {
        self.reads.iter().flat_map(|port| [port.enable, port.address]).for_each(&mut *visit);
        for port in &self.writes {
            [port.enable, port.address].iter().chain(&port.data).for_each(|place| visit(*place));
            port.mask.iter().flatten().for_each(|place| visit(*place));
        }
    }

    /// How many pairs of a clocked read and a write are about one word at the coming edge.
    fn collisions(&self, slots: &[u64]) -> u64 {
        let slot = |place: u32| slots[place as usize];
        let writes = self.writes.iter().filter(|port| slot(port.enable) != 0);
        let same = |write: &Write| {
            let read = |port: &&Read| slot(port.enable) != 0 && slot(port.address) == slot(write.address);
            self.reads.iter().filter(read).count() as u64
        };
        writes.map(same).sum()
    }
}

/// A write port, with places of words.
struct Write {
    enable: u32,
    address: u32,
    data: Box<[u32]>,
    mask: Option<Box<[u32]>>,
}

/// A clocked read port, with places of words.
struct Read {
    enable: u32,
    address: u32,
    /// Its first word of state; the others follow.
    state: u32,
}

/// State, and the program that computes a cycle.
pub(super) struct Machine {
    /// All words: state, then constants, then what is computed.
    pub(super) slots: Vec<u64>,
    pub(super) memories: Vec<MemoryState>,
    pub(super) reset: bool,
    /// How often a memory was read where it was written, against its promise.
    pub(super) collisions: u64,
    schedule: Vec<Run>,
    steps: Vec<Step>,
    wides: Vec<Wide>,
    /// The places of what registers take, by their words of state.
    next: Vec<u32>,
    pub(super) activity: Activity,
    /// What state takes at the edge: places and values.
    coming: Vec<(u32, u64)>,
    /// Words of registers with the value that they have while the reset is active.
    resets: Vec<(u32, u64)>,
    room: [Vec<u64>; 2],
}

impl Machine {
    pub(super) fn new(lowered: Lowered, schedule: Schedule) -> Machine {
        let place = |word: &Word| schedule.places[*word as usize];
        let places = |words: &[Word]| -> Box<[u32]> { words.iter().map(place).collect() };
        let mut slots = vec![0; schedule.count as usize];
        let states = lowered.states as usize;
        slots[states..states + lowered.words.constants.len()].copy_from_slice(&lowered.words.constants);
        // Registers have the first words of state, in order; then come clocked reads.
        let (mut next, mut resets) = (Vec::<u32>::new(), Vec::new());
        for register in &lowered.registers {
            next.extend(register.next.iter().map(place));
            if let Some(reset) = &register.reset {
                resets.extend(register.state.iter().map(place).zip(reset.limbs()));
            }
        }
        for (at, value) in &resets {
            slots[*at as usize] = *value;
        }
        let mut memories = Vec::new();
        for memory in &lowered.memories {
            let limbs = limbs(memory.width);
            let mut words = vec![0; memory.depth as usize * limbs as usize];
            for (at, word) in memory.initial.iter().enumerate() {
                let start = at * limbs as usize;
                words[start..].iter_mut().zip(word.limbs()).for_each(|(to, limb)| *to = limb);
            }
            let writes = memory.writes.iter().map(|port| Write {
                enable: place(&port.enable),
                address: place(&port.address),
                data: places(&port.data),
                mask: port.mask.as_deref().map(places),
            });
            let reads = memory.reads.iter().filter(|port| !port.state.is_empty());
            let reads = reads.map(|port| Read {
                enable: place(&port.enable),
                address: place(&port.address),
                state: place(&port.state[0]),
            });
            let (width, depth, writes, reads) =
                (memory.width, memory.depth, writes.collect(), reads.collect());
            let never_collides = memory.never_collides;
            memories.push(MemoryState { width, depth, limbs, words, never_collides, writes, reads });
        }
        let activity = Activity::new(
            (&schedule.runs, &schedule.steps),
            (&lowered.wides, &memories),
            &next,
            schedule.count as usize,
        );
        let widest = lowered.wides.iter().map(|wide| wide.a.len()).max().unwrap_or(0);
        Machine {
            activity,
            coming: Vec::new(),
            slots,
            memories,
            reset: false,
            collisions: 0,
            schedule: schedule.runs,
            steps: schedule.steps,
            wides: lowered.wides,
            next,
            resets,
            room: [Vec::with_capacity(2 * widest), Vec::with_capacity(widest)],
        }
    }

    pub(super) fn steps(&self) -> usize {
        self.steps.len()
    }

    pub(super) fn runs(&self) -> usize {
        self.schedule.len()
    }

    /// Sets a word of an input or a register.
    pub(super) fn set(&mut self, place: u32, value: u64) {
        if std::mem::replace(&mut self.slots[place as usize], value) != value {
            self.activity.mark(place);
        }
        self.activity.mark_register(place);
    }

    /// Writes a word of a memory, if it has one at that address.
    pub(super) fn write(&mut self, memory: usize, address: u32, value: impl Iterator<Item = u64>) {
        let MemoryState { depth, limbs, words, .. } = &mut self.memories[memory];
        if address < *depth {
            words[address as usize * *limbs as usize..]
                .iter_mut()
                .zip(value)
                .for_each(|(to, limb)| *to = limb);
            self.activity.mark_memory(memory as u32);
        }
    }

    /// Computes all values that differ from those of the cycle before.
    pub(super) fn settle(&mut self) {
        if !self.activity.is_busy() && self.activity.is_low() && self.settle_marked() {
            self.activity.computed_marked();
            return;
        }
        let parts = (self.memories.as_slice(), self.wides.as_slice());
        for run in &self.schedule {
            let steps = &self.steps[run.steps.clone()];
            compute(run.code, steps, &mut self.slots, parts, &mut self.room);
        }
        self.activity.computed_all();
    }

    /// Computes what is marked; false if that has become too much.
    fn settle_marked(&mut self) -> bool {
        let parts = (self.memories.as_slice(), self.wides.as_slice());
        let (mut at, mut left) = (0, self.activity.most());
        while let Some(number) = self.activity.next_step(&mut at) {
            if left == 0 {
                return false;
            }
            left -= 1;
            let (code, step) = (self.activity.codes[number as usize], self.steps[number as usize]);
            if code == Code::Wide {
                let [room, out] = &mut self.room;
                self.wides[step.a as usize].run(&self.slots, room, out);
                for (place, value) in (step.to..).zip(out.iter()) {
                    if std::mem::replace(&mut self.slots[place as usize], *value) != *value {
                        self.activity.mark(place);
                    }
                }
                continue;
            }
            let before = self.slots[step.to as usize];
            compute(code, &[step], &mut self.slots, parts, &mut self.room);
            if self.slots[step.to as usize] != before {
                self.activity.mark(step.to);
            }
        }
        true
    }

    /// The rising edge of the clock: first all that state takes is read, then state changes.
    pub(super) fn edge(&mut self) {
        self.coming.clear();
        let mut at = 0;
        while let Some(register) = self.activity.next_register(&mut at) {
            self.coming.push((register, self.slots[self.next[register as usize] as usize]));
        }
        let mut at = 0;
        while let Some(marked) = self.activity.take_memories(at) {
            let mut left = marked;
            while left != 0 {
                self.memory_edge(at as u32 * 64 + left.trailing_zeros());
                left &= left - 1;
            }
            at += 1;
        }
        let marks = !self.activity.is_busy();
        for (place, value) in &self.coming {
            if std::mem::replace(&mut self.slots[*place as usize], *value) != *value && marks {
                self.activity.mark(*place);
            }
        }
        if self.reset {
            for (at, value) in &self.resets {
                self.slots[*at as usize] = *value;
            }
            self.activity.mark_all();
        }
    }

    /// The edge at a memory: its clocked reads give what was there before its writes.
    fn memory_edge(&mut self, number: u32) {
        let (memory, slots) = (&mut self.memories[number as usize], &self.slots);
        if memory.never_collides {
            self.collisions += memory.collisions(slots);
        }
        for port in &memory.reads {
            let address = slots[port.address as usize];
            if slots[port.enable as usize] != 0 && address < u64::from(memory.depth) {
                let from = address as usize * memory.limbs as usize;
                for (place, word) in (port.state..).zip(&memory.words[from..from + memory.limbs as usize]) {
                    if slots[place as usize] != *word {
                        self.coming.push((place, *word));
                    }
                }
            }
        }
        let mut written = false;
        for port in &memory.writes {
            let address = slots[port.address as usize];
            if slots[port.enable as usize] == 0 || address >= u64::from(memory.depth) {
                continue;
            }
            written = true;
            let start = address as usize * memory.limbs as usize;
            for (at, data) in port.data.iter().enumerate() {
                let mask = port.mask.as_ref().map_or(u64::MAX, |mask| slots[mask[at] as usize]);
                let word = &mut memory.words[start + at];
                *word = (*word & !mask) | (slots[*data as usize] & mask);
            }
        }
        // It stays marked: its reads may give what was written now.
        if written {
            self.activity.mark_memory(number);
        }
    }
}

/// Computes steps of one operation.
fn compute(
    code: Code,
    steps: &[Step],
    w: &mut [u64],
    (memories, wides): (&[MemoryState], &[Wide]),
    [room, out]: &mut [Vec<u64>; 2],
) {
    // One loop for each operation: `a`, `b` and `c` are words, `n` is the number in `c`.
    macro_rules! each {
        (|$a:ident| $value:expr) => {
            for s in steps {
                let $a = w[s.a as usize];
                w[s.to as usize] = $value;
            }
        };
        (|$a:ident, # $n:ident| $value:expr) => {
            for s in steps {
                let ($a, $n) = (w[s.a as usize], s.c);
                w[s.to as usize] = $value;
            }
        };
        (|$a:ident, $b:ident| $value:expr) => {
            for s in steps {
                let ($a, $b) = (w[s.a as usize], w[s.b as usize]);
                w[s.to as usize] = $value;
            }
        };
        (|$a:ident, $b:ident, # $n:ident| $value:expr) => {
            for s in steps {
                let ($a, $b, $n) = (w[s.a as usize], w[s.b as usize], s.c);
                w[s.to as usize] = $value;
            }
        };
        (|$a:ident, $b:ident, $c:ident| $value:expr) => {
            for s in steps {
                let ($a, $b, $c) = (w[s.a as usize], w[s.b as usize], w[s.c as usize]);
                w[s.to as usize] = $value;
            }
        };
    }
    match code {
        Code::State | Code::Constant | Code::Part => (),
        Code::Not => each!(|a, #n| !a & (u64::MAX >> n)),
        Code::And => each!(|a, b| a & b),
        Code::Or => each!(|a, b| a | b),
        Code::Xor => each!(|a, b| a ^ b),
        Code::Add => each!(|a, b, #n| a.wrapping_add(b) & (u64::MAX >> n)),
        Code::Sub => each!(|a, b, #n| a.wrapping_sub(b) & (u64::MAX >> n)),
        Code::Mul => each!(|a, b, #n| a.wrapping_mul(b) & (u64::MAX >> n)),
        Code::AddCarry => each!(|a, b, c| a.wrapping_add(b).wrapping_add(c)),
        Code::Carry => each!(|a, b, c| {
            let (sum, first) = a.overflowing_add(b);
            u64::from(first | sum.overflowing_add(c).1)
        }),
        Code::Eq => each!(|a, b| u64::from(a == b)),
        Code::Lt => each!(|a, b| u64::from(a < b)),
        Code::LtOr => each!(|a, b, c| u64::from(a < b) | (u64::from(a == b) & c)),
        Code::LtSigned => each!(|a, b, #n| u64::from(((a << n) as i64) < ((b << n) as i64))),
        Code::Shl => each!(|a, b, #n| if b < 64 { (a << b) & (u64::MAX >> n) } else { 0 }),
        Code::Shr => each!(|a, b, #_n| if b < 64 { a >> b } else { 0 }),
        Code::ShrSigned => each!(|a, b, #n| (((a << n) as i64 >> b.min(63)) as u64) >> n),
        Code::Repeat => each!(|a, #n| a.wrapping_neg() & (u64::MAX >> n)),
        Code::NotZero => each!(|a| u64::from(a != 0)),
        Code::Parity => each!(|a| u64::from(a.count_ones() & 1)),
        Code::Mux => each!(|a, b, c| if a != 0 { b } else { c }),
        Code::Insert => each!(|a, b, #n| a | moved(b, n)),
        Code::Read => {
            for s in steps {
                w[s.to as usize] = memories[s.b as usize].word(w[s.a as usize], s.c);
            }
        }
        Code::Wide => {
            for s in steps {
                wides[s.a as usize].run(w, room, out);
                w[s.to as usize..][..out.len()].copy_from_slice(out);
            }
        }
    }
}
