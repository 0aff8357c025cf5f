//! Port drivers behind one trait: capture files, Linux interfaces, tap interfaces, a loopback in memory, and
//! captures of what passes.
//!
//! A [`Port`] takes and gives frames in batches ([`Batch`]) of packets ([`Packet`]) that are recycled through a pool
//! ([`PacketPool`]). It promises that nothing on this way waits, locks or, in steady state, allocates; that a frame that
//! cannot be sent is given back, not lost; and that every frame lost is counted ([`PortStatistics`]).
//!
//! A driver never looks inside a frame, with one exception that the wire demands: the `packet` driver finishes what a
//! local sender left to the hardware (checksums, segmentation, a VLAN tag kept aside), so that the switch sees the
//! frames that a cable would carry.

mod af_packet;
mod burst;
mod capture;
mod fault;
mod link;
mod link_watch;
mod memory;
mod memory_port;
#[cfg(test)]
mod netns;
pub mod null;
mod open;
mod packet;
mod pcap;
mod pool;
mod port;
mod slots;
mod spec;
mod tap;
mod wait;

pub use af_packet::PacketPort;
pub use burst::{Burst, Place, TAILROOM};
pub use capture::{
    CAPTURE_RING, CaptureError, CaptureStatus, Captures, DEFAULT_CAPTURE_FILE, MAX_CAPTURE_FILE,
    MAX_CAPTURE_NAME,
};
pub use fault::{FaultInjector, Faults};
pub use link_watch::{LinkWatch, Links};
pub use memory_port::{FarEnd, MemoryPort, Next};
pub use null::NullPort;
pub use open::open;
pub use packet::{FrameLengthError, HEADROOM, MAX_FRAME, Packet};
pub use pcap::PcapPort;
pub use pool::{Batch, MAX_BATCH, PacketPool};
pub use port::{Port, PortError, PortStatistics, Received, TimeSource, Transmitted, wall_clock_ns};
pub use spec::{DRIVERS, Driver, InterfaceSpec, PortSpec, SpecError};
pub use tap::TapPort;
pub use wait::wait_readable;
