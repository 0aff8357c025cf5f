//! A MAC of 10 Gbit/s on XGMII, 64 bits at 156.25 MHz.

#[cfg(test)]
pub(super) mod monitor;
mod receive;
mod transmit;

pub use receive::{RECEIVE_COUNTERS, xgmii_receive};
pub use transmit::{TRANSMIT_COUNTERS, xgmii_transmit};

use crate::*;

/// Control characters.
const START: u32 = 0xfb;
const TERMINATE: u32 = 0xfd;
const ERROR: u32 = 0xfe;
const IDLE: u32 = 0x07;

/// A counter of 32 bits at the output of that name, that many more with an event.
fn count(m: &mut ModuleBuilder, name: &str, event: NodeId, by: NodeId) {
    let (register, value) = m.register(&format!("{name}_count"), 32, Some(0));
    let by = m.resize(by, 32);
    let next = m.add(value, by);
    m.set_next(register, next);
    m.set_enable(register, event);
    m.output(name, value);
}

/// Whether the character at a lane is that control character.
fn is_control(m: &mut ModuleBuilder, (data, control): (NodeId, NodeId), lane: u32, character: u32) -> NodeId {
    let byte = m.slice(data, lane * 8, 8);
    let (same, flag) = (m.is(byte, character.into()), m.bit(control, lane));
    m.and(same, flag)
}

#[cfg(test)]
mod tests;
