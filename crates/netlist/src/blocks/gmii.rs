//! A MAC of 1 Gbit/s on GMII (IEEE 802.3, clause 35), full duplex: an octet in each cycle of 125 MHz.

#[cfg(test)]
pub(super) mod monitor;
mod receive;
#[cfg(test)]
pub(super) mod sent;
mod transmit;

pub use receive::gmii_receive;
pub use transmit::gmii_transmit;

/// Octets of the preamble, and the one after it, which starts the frame.
const PREAMBLE: u32 = 0x55;
const START: u32 = 0xd5;

#[cfg(test)]
mod tests;
