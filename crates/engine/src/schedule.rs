//! How the code for bursts looks its tables up: by loads packet by packet, or staged, which means for the packets of a burst
//! together. Packet by packet wins where a table is in the nearest caches, staged where its memory has to be waited for,
//! and where a lookup is a call.

use millrace_jit::{Options, Shape, shapes};
use millrace_midend::schedule::{MAX_STAGED, in_order, keeping_order};
use millrace_pipeline::*;
use millrace_state::State;

/// From this many bytes on that lookups touch, a table that is looked up by loads is staged: half of a small second-level
/// cache, of which packets take their part.
const STAGED_BYTES: usize = 256 << 10;
/// From this many bytes on the lines of an exact table are asked for early: in a cache they are there about as soon.
const FAR_BYTES: usize = 16 << 20;
/// So many tables that are looked up by calls are staged although they are empty.
const FEW_CALLS: usize = 2;
/// What a lookup of an entry touches at least: a cache line.
const LINE: usize = 64;

/// The best options for the tables as they are.
pub(crate) fn choose(program: &Program, state: &mut State) -> Options {
    let shapes = shapes(state);
    // Loops without calls are better code; for many tables that no packet hits they would take too long to make.
    let few_calls = shapes.iter().filter(|shape| **shape == Shape::Call).count() <= FEW_CALLS;
    let is_staged = |table: &TableId| {
        let entries = state.reader(*table).entries() as usize;
        match shapes.get(table.as_u32() as usize).copied().unwrap_or_default() {
            Shape::Call => entries > 0 || few_calls,
            Shape::Direct | Shape::NoKey => false,
            Shape::Two { .. } | Shape::Lines(_) => entries * LINE >= STAGED_BYTES,
        }
    };
    let all = in_order(program);
    let staged = all.iter().copied().filter(is_staged).take(MAX_STAGED).collect();
    let staged = keeping_order(program, staged, &all);
    let is_far = |table: &TableId| match shapes.get(table.as_u32() as usize) {
        Some(Shape::Two { .. }) => true,
        Some(Shape::Lines(_)) => state.reader(*table).entries() as usize * LINE > FAR_BYTES,
        _ => false,
    };
    let far = staged.iter().copied().filter(is_far).collect();
    Options { staged, far, shapes, ..Options::default() }
}

/// Whether two options give the same code.
pub(crate) fn are_same(one: &Options, other: &Options) -> bool {
    one.staged == other.staged && one.far == other.far && one.shapes == other.shapes
}
