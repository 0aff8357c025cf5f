//! What this machine takes at most for an instruction, for cache lines of data and of code from memory, and to start a batch, as it was
//! measured.
//!
//! A maximum of many short rounds would be that of the interruptions. So each figure is the least of some rounds in which the
//! same work is done again: what the work itself takes when nothing interrupts it.

mod code;

use std::hint::black_box;
use std::time::{Duration, Instant};

/// What was measured, in picoseconds, rounded up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figures {
    /// An instruction whose data is in the nearest cache and whose branches are mispredicted as often as a program's can be.
    pub ps_per_instruction: u64,
    /// A cache line that comes from memory, each asked for when the one before has come.
    pub ps_per_line: u64,
    /// A cache line of several that are asked for at once.
    pub ps_per_line_at_once: u64,
    /// A cache line of code that comes from memory, after the one before.
    pub ps_per_line_of_code: u64,
    /// A cache line of code that comes from memory, which a jump leads to.
    pub ps_per_jump: u64,
    /// To read the clock twice and to call: what surrounds a batch at least.
    pub ps_per_batch: u64,
}

impl Figures {
    /// All of them, in the order in which a calibration has them.
    pub fn all(&self) -> [u64; 6] {
        [
            self.ps_per_instruction,
            self.ps_per_line,
            self.ps_per_line_at_once,
            self.ps_per_line_of_code,
            self.ps_per_jump,
            self.ps_per_batch,
        ]
    }
}

/// Rounds of each measurement.
const ROUNDS: usize = 9;
/// Cache lines of the memory that is walked through: more than caches have.
const LINES: usize = 1 << 22;
/// Lines that one round visits.
const VISITS: usize = 1 << 17;
/// Walks at once: a processor can wait for more lines, and code that asks for fewer takes no longer than one after the other.
const AT_ONCE: usize = 4;
/// Turns of a round of instructions.
const TURNS: u64 = 1 << 16;
/// Instructions of a turn of [`instructions`], at least: fewer make the figure larger.
const PER_TURN: u64 = 8;

/// Measures; it takes about a second.
pub fn calibrate() -> Figures {
    let mut memory = Memory::new();
    Figures {
        ps_per_instruction: instructions(),
        ps_per_line: memory.lines::<1>(),
        ps_per_line_at_once: memory.lines::<AT_ONCE>(),
        ps_per_line_of_code: code::follows(&mut memory),
        ps_per_jump: code::jumps(&mut memory),
        ps_per_batch: batch(),
    }
}

/// The least time of some rounds.
fn least(mut round: impl FnMut()) -> Duration {
    let times = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        round();
        start.elapsed()
    });
    times.min().unwrap_or_default()
}

fn ps_each(time: Duration, count: u64) -> u64 {
    let ps = time.as_nanos().saturating_mul(1000).div_ceil(u128::from(count.max(1)));
    u64::try_from(ps).unwrap_or(u64::MAX).max(1)
}

/// Each turn multiplies, loads what the product says, and branches by a bit of it that nobody can foresee: a turn waits for
/// all three, and every other branch is mispredicted.
fn instructions() -> u64 {
    let table: Vec<u64> = (0..512u64).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let mut x = 1u64;
    let time = least(|| {
        for _ in 0..TURNS {
            x = x.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(table[(x >> 55) as usize]);
            if black_box(x) >> 63 != 0 {
                x ^= x >> 7;
            }
        }
    });
    black_box(x);
    ps_each(time, TURNS * PER_TURN)
}

/// Words of a cache line.
const WORDS: usize = 8;

/// Memory in which each line says which one is next, in an order that no processor foresees.
struct Memory(Vec<u64>);

impl Memory {
    fn new() -> Memory {
        let mut memory = vec![0u64; LINES * WORDS];
        // Steps by an odd number visit all lines; the bits are mixed so that neighbours are far apart.
        let mixed = |at: usize| (at.wrapping_mul(0x9e37_79b1) ^ at >> 7) % LINES;
        let mut order: Vec<u32> = (0..LINES as u32).collect();
        for at in 0..LINES {
            order.swap(at, mixed(at));
        }
        for at in 0..LINES {
            memory[order[at] as usize * WORDS] = u64::from(order[(at + 1) % LINES]);
        }
        Memory(memory)
    }

    /// Some walks at once, each through a part of the memory of its own.
    fn lines<const WALKS: usize>(&mut self) -> u64 {
        let mut at: [usize; WALKS] = std::array::from_fn(|walk| walk * (LINES / WALKS));
        let time = least(|| {
            for _ in 0..VISITS / WALKS {
                for at in &mut at {
                    *at = self.0[*at * WORDS] as usize;
                }
            }
        });
        black_box(at);
        ps_each(time, VISITS as u64)
    }

    /// Has all caches hold something else.
    fn fill_caches(&mut self) {
        self.0.iter_mut().skip(1).step_by(WORDS).for_each(|word| *word = word.wrapping_add(1));
        black_box(&self.0);
    }
}

fn batch() -> u64 {
    const CALLS: u64 = 1 << 12;
    let time = least(|| {
        for _ in 0..CALLS {
            black_box(Instant::now());
        }
    });
    // The clock is read before and after.
    ps_each(time, CALLS).saturating_mul(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_from_memory_takes_longer_than_an_instruction() {
        let found = calibrate();
        assert!(found.ps_per_line > found.ps_per_instruction, "{found:?}");
        assert!(found.ps_per_line > found.ps_per_line_at_once, "{found:?}");
        assert!(found.ps_per_line_of_code > found.ps_per_instruction, "{found:?}");
        assert!(found.ps_per_jump > found.ps_per_line_of_code, "{found:?}");
        assert!(found.ps_per_instruction > 0 && found.ps_per_batch > 0);
    }
}
