//! The `xdp` driver: a Linux interface through sockets of AF_XDP, `xdp:INTERFACE[,mode=MODE][,queue=N]...`.
//!
//! The driver takes the interface: a small program there hands each frame to the socket of the queue that it came by, before
//! the kernel's own stack sees it. Frames of queues without a socket (`queue=N` names those to be taken) go on to
//! the kernel. In the best case the network card writes frames into packets and reads them from there (zero copy); else the
//! kernel copies each once (copy), from the driver of the interface (native) or, for every interface, from its own stack
//! (generic). Without `mode=` the best that works is taken, and [`Port::remark`](crate::Port::remark) says which and why not a
//! better one.
//!
//! Frames lie in packets from the socket on and leave from there; who owns a slot of this memory is said in [`memory`]. A packet
//! from elsewhere is copied into it, and counted ([`PortStatistics::tx_copied`](crate::PortStatistics::tx_copied)).
//!
//! The sockets see frames as they lie in memory, without what the kernel notes about them. So what a sender on the same machine
//! leaves to its network card is never done: a checksum, and in generic mode segmentation; a VLAN tag that is noted aside is
//! lost. Nothing is left to be done in frames that come by a cable. At the other end of a veth the sender has to be told:
//! `ethtool -K INTERFACE tx off txvlan off`. Attaching the program in native mode switches segmentation off there.

mod arguments;
mod bpf;
mod channel;
mod device;
mod interface;
mod memory;
mod netlink;
mod program;
mod queue;
mod ring;
mod socket;
#[cfg(test)]
mod tests;

pub(crate) use arguments::interface;
pub use device::XdpDevice;

/// The name of the driver.
const DRIVER: &str = "xdp";
