//! Port drivers behind one trait: capture files, Linux interfaces, tap interfaces.
//!
//! A [`Port`] takes and gives frames in batches ([`Batch`]) of packets ([`Packet`]) that are recycled through a pool
//! ([`PacketPool`]). It promises that nothing on this way waits, locks or, in steady state, allocates; that a frame that
//! cannot be sent is given back, not lost; and that every frame lost is counted ([`PortStatistics`]).
//!
//! A driver never looks inside a frame, with one exception that the wire demands: the `packet` driver finishes what a
//! local sender left to the hardware (checksums, segmentation, a VLAN tag kept aside), so that the switch sees the
//! frames that a cable would carry.

mod packet;
mod port;
mod spec;

pub use packet::{Batch, FrameLengthError, HEADROOM, MAX_BATCH, MAX_FRAME, Packet, PacketPool};
pub use port::{Port, PortError, PortStatistics, Received, TimeSource, Transmitted};
pub use spec::{DRIVERS, Driver, InterfaceSpec, PortSpec, SpecError};
