//! Port drivers: capture files, Linux interfaces, tap interfaces, devices of DPDK (with the feature `dpdk`), a loopback in memory, and captures
//! of what passes.
//!
//! A driver makes a [`Device`], which opens to one or several queue pairs, one for each worker.
//! A [`QueuePair`] takes and gives frames in batches ([`Batch`](millrace_frames::Batch)) of packets
//! ([`Packet`](millrace_frames::Packet)) that are recycled through a pool ([`PacketPool`](millrace_frames::PacketPool)). It
//! promises that nothing on this path waits, locks or, in steady state, allocates; that a frame that cannot be sent is given
//! back, not lost; and that every frame lost is counted ([`PortStatistics`]).
//!
//! A driver never looks inside a frame, with one exception that the wire demands: `packet` and `tap` finish what a
//! local sender left to the hardware (checksums, segmentation, a VLAN tag kept aside), and `xdp` checksums of senders at the other
//! end of a veth, so that the switch sees the frames that a cable would carry.

mod addresses;
mod af_packet;
mod alarm;
mod around;
mod capture;
mod capture_file;
mod device;
#[cfg(feature = "dpdk")]
mod dpdk;
mod ethtool;
mod fault;
mod fcs;
mod hardware_clock;
mod kinds;
mod link;
mod link_counters;
mod link_features;
mod link_watch;
mod memory_port;
mod netlink;
#[cfg(test)]
mod netns;
pub mod null;
mod offload;
mod open;
mod pcap;
mod port;
mod spec;
mod stamps;
mod stream;
mod tap;
#[cfg(test)]
mod testing;
mod wait;
mod xdp;

pub use addresses::MAX_ADDRESSES;
pub use af_packet::PacketDevice;
pub use alarm::Alarm;
pub use around::Around;
pub use capture::{
    CAPTURE_END_TIME, CAPTURE_RING, CaptureError, CaptureStatus, Captures, DEFAULT_CAPTURE_FILE,
    MAX_CAPTURE_FILE, MAX_CAPTURE_NAME,
};
pub use capture_file::{CaptureFile, CaptureFileError, MAX_INTERFACES, MAX_RECORD, Record};
pub use device::{Device, MAX_QUEUES, SingleQueue};
#[cfg(feature = "dpdk")]
pub use dpdk::DpdkDevice;
pub use fault::{FaultInjector, Faults};
pub use hardware_clock::HardwareClock;
pub use kinds::{CHECK_SEQUENCE, FrameKinds, SIZES};
pub use link_counters::{DirectionCounters, LinkCounters};
pub use link_watch::{LinkNews, LinkState, LinkWatch, Links, PortLink};
pub use memory_port::{FarEnd, MemoryPort, Next};
pub use null::{NullDevice, NullPort};
pub use open::{device, device_among, open, open_among};
pub use pcap::PcapPort;
pub use port::{PortError, PortStatistics, QueuePair, Received, TimeSource, Transmitted, wall_clock_ns};
pub use spec::{DRIVERS, Driver, InterfaceSpec, PortSpec, SpecError};
pub use stream::StreamPort;
pub use tap::TapDevice;
pub use wait::wait_readable;
pub use xdp::XdpDevice;
