//! A MAC of 10 Gbit/s on XGMII, 64 bits at 156.25 MHz.

#[cfg(test)]
pub(super) mod monitor;
mod receive;
#[cfg(test)]
pub(super) mod sent;
mod transmit;

pub use receive::xgmii_receive;
pub use transmit::xgmii_transmit;

use crate::*;

/// Control characters.
const START: u32 = 0xfb;
const TERMINATE: u32 = 0xfd;
const ERROR: u32 = 0xfe;
const IDLE: u32 = 0x07;

/// Whether the character at a lane is that control character.
fn is_control(m: &mut ModuleBuilder, (data, control): (NodeId, NodeId), lane: u32, character: u32) -> NodeId {
    let byte = m.slice(data, lane * 8, 8);
    let (same, flag) = (m.is(byte, character.into()), m.bit(control, lane));
    m.and(same, flag)
}

#[cfg(test)]
mod tests;
