//! What lines of code take that come from memory.
//!
//! Functions of some lines are called in an order that no processor foresees, when all caches hold something else: whole, or only the first
//! line of each. Four of them lie in a page.

use super::{Memory, ROUNDS, ps_each};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Steps of a function. Each has at least 16 bytes of code, as it has a constant of 64 bits; where it has more, the figure is larger.
const STEPS: u64 = 64;
const BYTES_PER_STEP: u64 = 16;
/// Bytes of a cache line.
const LINE: u64 = 64;

/// What a line after the one before takes: that of whole functions, the first ones among them.
pub(super) fn follows(memory: &mut Memory) -> u64 {
    ps_each(called(memory, true), FUNCTIONS.len() as u64 * STEPS * BYTES_PER_STEP / LINE)
}

/// What a line takes that a jump leads to.
pub(super) fn jumps(memory: &mut Memory) -> u64 {
    ps_each(called(memory, false), FUNCTIONS.len() as u64)
}

/// The least time of all functions.
fn called(memory: &mut Memory, whole: bool) -> Duration {
    let mut taken = Duration::MAX;
    for round in 0..ROUNDS {
        memory.fill_caches();
        let mut x = round as u64;
        let start = Instant::now();
        for at in 0..FUNCTIONS.len() {
            // A step that is odd leads to all of them; another one in each round, so that no processor has learned the order.
            x = FUNCTIONS[at * (2 * round + 21) % FUNCTIONS.len()](x, whole);
        }
        taken = taken.min(start.elapsed());
        black_box(x);
    }
    taken
}

/// Steps of which each needs the one before.
#[inline(never)]
fn straight<const SEED: u64>(mut x: u64, whole: bool) -> u64 {
    if !whole {
        return x ^ SEED;
    }
    macro_rules! step {
        ($($number:literal)*) => {
            $(x = (x ^ const { constant(SEED * STEPS + $number) }).wrapping_mul(3);)*
        };
    }
    step!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);
    step!(32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63);
    x
}

/// Numbers that need 64 bits.
const fn constant(at: u64) -> u64 {
    (at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 << 63
}

macro_rules! functions {
    ($($seed:literal)*) => { [$(straight::<$seed>),*] };
}

static FUNCTIONS: [fn(u64, bool) -> u64; 64] = functions![
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
    32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63
];
