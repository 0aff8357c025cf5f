//! The `xdp` driver: a Linux interface through sockets of AF_XDP, `xdp:INTERFACE[,mode=MODE][,queue=N]...`.
//!
//! The driver takes the interface: a small program there hands each frame to the socket of the queue that it came by, before
//! the kernel's own stack sees it. Frames of queues without a socket (`queue=N` names those to be taken) go on to
//! the kernel. In the best case the network card writes frames into packets and reads them from there (zero copy); else the
//! kernel copies each once (copy), from the driver of the interface (native) or, for every interface, from its own stack
//! (generic). Without `mode=` the best that works is taken, and [`QueuePair::remark`](crate::QueuePair::remark) says which and why not a
//! better one.
//!
//! Frames lie in packets from the socket on and leave from there; who owns a slot of this memory is said in [`memory`]. A packet
//! from elsewhere is copied into it, and counted ([`PortStatistics::tx_copied`](crate::PortStatistics::tx_copied)).
//!
//! The sockets see frames as they lie in memory, without what the kernel notes about them: a checksum that the sender left to its
//! network card, segments still to be cut, a VLAN tag aside. There is none of that in frames that come by a cable, but in those of
//! senders of the same machine, at the other end of a veth. There the driver finishes checksums of TCP and UDP, which it knows by
//! the sum in their field (`offload/begun.rs`). A program in native mode has the kernel switch segmentation off at the other end; in
//! generic mode it does not, and frames longer than a slot are lost and counted as missed until the sender is told:
//! `ethtool -K INTERFACE tx off`. Checksums inside tunnels and tags of VLAN interfaces have to be switched off there in both modes:
//! `ethtool -K INTERFACE tx off txvlan off`.

mod arguments;
mod bpf;
mod channel;
mod device;
mod interface;
mod memory;
mod netlink;
mod program;
mod queue;
mod requests;
mod ring;
mod socket;
#[cfg(test)]
mod tests;

pub use device::XdpDevice;

/// The name of the driver.
const DRIVER: &str = "xdp";
