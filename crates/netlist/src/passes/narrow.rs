//! Values without the bits that nothing reads.
//!
//! What is read of a value is a range of its bits, from the lowest that anything reads to the highest. It follows from what is
//! read of the values that use it: all bits of an output; the same bits of both operands of a bitwise operation; of a sum the bits
//! from 0 to the highest that is read; of a register, what is read in any cycle, so that ranges of registers and of their next
//! values grow until they agree. Then each value is built again with its range alone.

use super::registers::Known;
use crate::*;

/// Builds a module again without bits that nothing reads.
pub(super) fn narrow(module: &Module) -> Module {
    super::rebuild::rebuild(module, &Known::default())
}
