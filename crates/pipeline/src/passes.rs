//! Passes: each keeps a verified program verified, and what it does to every packet.

mod blocks;

pub use blocks::remove_unreachable_blocks;

use crate::Program;

/// All passes.
pub fn optimize(program: &mut Program) {
    program.bodies.values_mut().for_each(remove_unreachable_blocks);
}
