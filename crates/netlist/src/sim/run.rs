//! The machine that runs a scheduled design.

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
    /// What the state will be: words of registers and of clocked reads.
    coming: Vec<u64>,
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
        let (mut next, mut resets) = (Vec::new(), Vec::new());
        for register in &lowered.registers {
            next.extend(register.next.iter().map(place));
            if let Some(reset) = &register.reset {
                resets.extend(register.state.iter().map(place).zip(reset.limbs()));
            }
        }
        for (at, value) in &resets {
            slots[*at as usize] = *value;
        }
        let mut reading = 0;
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
            let reads: Vec<Read> = reads
                .map(|port| {
                    reading += port.state.len();
                    Read {
                        enable: place(&port.enable),
                        address: place(&port.address),
                        state: place(&port.state[0]),
                    }
                })
                .collect();
            let (width, depth, writes) = (memory.width, memory.depth, writes.collect());
            let never_collides = memory.never_collides;
            memories.push(MemoryState { width, depth, limbs, words, never_collides, writes, reads });
        }
        let widest = lowered.wides.iter().map(|wide| wide.a.len()).max().unwrap_or(0);
        Machine {
            coming: vec![0; next.len() + reading],
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

    /// Computes all values.
    pub(super) fn settle(&mut self) {
        for at in 0..self.schedule.len() {
            let run = self.schedule[at].clone();
            self.run(&run);
        }
    }

    fn run(&mut self, run: &Run) {
        let w = self.slots.as_mut_slice();
        let steps = &self.steps[run.steps.clone()];
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
        match run.code {
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
                    w[s.to as usize] = self.memories[s.b as usize].word(w[s.a as usize], s.c);
                }
            }
            Code::Wide => {
                let [room, out] = &mut self.room;
                for s in steps {
                    self.wides[s.a as usize].run(w, room, out);
                    w[s.to as usize..][..out.len()].copy_from_slice(out);
                }
            }
        }
    }

    /// The rising edge of the clock: first all that state takes is read, then state changes.
    pub(super) fn edge(&mut self) {
        for (to, from) in self.coming.iter_mut().zip(&self.next) {
            *to = self.slots[*from as usize];
        }
        for memory in &mut self.memories {
            if memory.never_collides {
                self.collisions += memory.collisions(&self.slots);
            }
            for port in &memory.reads {
                let limbs = memory.limbs as usize;
                let to = port.state as usize;
                let address = self.slots[port.address as usize];
                if self.slots[port.enable as usize] != 0 && address < u64::from(memory.depth) {
                    let from = address as usize * limbs;
                    self.coming[to..to + limbs].copy_from_slice(&memory.words[from..from + limbs]);
                } else {
                    self.coming[to..to + limbs].copy_from_slice(&self.slots[to..to + limbs]);
                }
            }
            for port in &memory.writes {
                let address = self.slots[port.address as usize];
                if self.slots[port.enable as usize] == 0 || address >= u64::from(memory.depth) {
                    continue;
                }
                let start = address as usize * memory.limbs as usize;
                for (at, data) in port.data.iter().enumerate() {
                    let mask = port.mask.as_ref().map_or(u64::MAX, |mask| self.slots[mask[at] as usize]);
                    let word = &mut memory.words[start + at];
                    *word = (*word & !mask) | (self.slots[*data as usize] & mask);
                }
            }
        }
        self.slots[..self.coming.len()].copy_from_slice(&self.coming);
        if self.reset {
            for (at, value) in &self.resets {
                self.slots[*at as usize] = *value;
            }
        }
    }
}
