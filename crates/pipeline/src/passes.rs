//! Passes: each keeps a verified program verified, and keeps what it does to every packet, the state that it leaves in
//! counters, meters and registers, and what it tells the control plane. Only the number of blocks entered becomes less,
//! so a program that would have hit [`crate::limits::MAX_STEPS`] may finish.
//!
//! All passes take verified programs. Slots, headers and objects keep their numbers; blocks do not.

mod atomic;
mod blocks;
mod constants;
mod copies;
mod dataflow;
mod dead;
mod forward;
mod validity;

pub use atomic::make_atomic;
pub use blocks::{merge_blocks, remove_unreachable_blocks};
pub use constants::fold_constants;
pub use copies::propagate_copies;
pub use dead::remove_dead_assignments;
pub use forward::forward_temporaries;
pub use validity::use_validity;

use crate::{Program, verify};

/// A pass over a whole program.
type Pass = fn(&mut Program);

/// The passes by name, in the order in which [`optimize`] runs them.
const PASSES: &[(&str, Pass)] = &[
    ("fold constants", fold_constants),
    ("use validity", use_validity),
    ("propagate copies", propagate_copies),
    ("fold constants", fold_constants),
    ("remove unreachable blocks", remove_all_unreachable_blocks),
    ("merge blocks", merge_blocks),
    ("forward temporaries", forward_temporaries),
    ("remove dead assignments", remove_dead_assignments),
];

/// Runs all passes, twice: what the later ones bring out the earlier ones use. Builds with debug assertions verify the
/// program after each pass.
pub fn optimize(program: &mut Program) {
    for (name, pass) in PASSES.iter().chain(PASSES) {
        pass(program);
        debug_assert_eq!(verify(program), Ok(()), "after the pass: {name}");
    }
}

fn remove_all_unreachable_blocks(program: &mut Program) {
    program.bodies.values_mut().for_each(remove_unreachable_blocks);
}
