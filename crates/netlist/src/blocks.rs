//! Library blocks: circuits that every design needs, made with [`crate::ModuleBuilder`].
//!
//! Each function gives the module of the block with those parameters, which is in the design once: its name has them all. The
//! reset brings each block to the state of its first cycle.

mod arbiter;
mod checksum;
mod editor;
mod fifo;
mod gmii;
mod mac;
#[cfg(test)]
mod proofs;
mod registers;
mod scheduler;
mod slice;
mod xgmii;

pub use arbiter::{priority_arbiter, round_robin_arbiter};
pub use editor::{EditorShape, editor, editor_moves};
pub use fifo::fifo;
pub use gmii::{gmii_receive, gmii_transmit};
pub use mac::{RECEIVE_COUNTERS, TRANSMIT_COUNTERS};
pub use registers::{avalon_mm, axi4_lite};
pub use scheduler::{Discipline, SETTLES, scheduler};
pub use slice::register_slice;
pub use xgmii::{xgmii_receive, xgmii_transmit};

use crate::*;

/// The module of that name, made if it is not there.
fn once(design: &mut Design, name: String, make: impl FnOnce(&mut ModuleBuilder)) -> ModuleId {
    design.module_named(&name).unwrap_or_else(|| {
        let mut m = ModuleBuilder::new(&name);
        make(&mut m);
        design.add(m.finish())
    })
}

/// A shape as part of a name: `64_8_1_2` is 64 bits of data, 8 of keep, last, 2 of user.
fn shape_name(shape: StreamShape) -> String {
    format!("{}_{}_{}_{}", shape.data, shape.keep, shape.last, shape.user)
}

/// A bit for each of so many lanes that has one of the first `bytes` bytes.
fn first_lanes(m: &mut ModuleBuilder, bytes: NodeId, lanes: u32) -> NodeId {
    let kept: Vec<NodeId> = (0..lanes)
        .rev()
        .map(|at| {
            let at = m.number(m.width(bytes), at.into());
            m.lt(at, bytes)
        })
        .collect();
    m.concat(&kept)
}
