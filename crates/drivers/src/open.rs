//! From the name of a port to its device.

use crate::af_packet::PacketDevice;
use crate::device::{Device, SingleQueue};
use crate::null::NullDevice;
use crate::pcap::PcapPort;
use crate::port::{PortError, QueuePair};
use crate::spec::{Driver, InterfaceSpec};
use crate::stream::StreamPort;
use crate::tap::TapDevice;
use crate::xdp::XdpDevice;

/// The device of the driver that the name of a port asks for. Capture files are opened, interfaces are not yet.
///
/// # Errors
/// [`PortError`], as the driver says.
pub fn device(interface: &InterfaceSpec) -> Result<Box<dyn Device>, PortError> {
    device_among(interface, 1)
}

/// As [`device`], for a switch with so many ports: those that need memory for frames share it.
///
/// # Errors
/// As there.
pub fn device_among(interface: &InterfaceSpec, ports: usize) -> Result<Box<dyn Device>, PortError> {
    let args = &interface.args;
    let name = interface.to_string();
    Ok(match interface.driver {
        Driver::Dpdk => dpdk(args)?,
        Driver::Packet => Box::new(PacketDevice::new(args, ports)?),
        Driver::Tap => Box::new(TapDevice::new(args)?),
        Driver::Xdp => Box::new(XdpDevice::new(args, ports)?),
        Driver::Null => Box::new(NullDevice::new(args)?),
        Driver::Stream => Box::new(SingleQueue::new(name, StreamPort::open(args)?)),
        Driver::Pcap => Box::new(SingleQueue::new(name, PcapPort::open(args)?)),
    })
}

#[cfg(feature = "dpdk")]
fn dpdk(args: &str) -> Result<Box<dyn Device>, PortError> {
    Ok(Box::new(crate::dpdk::DpdkDevice::new(args)?))
}

#[cfg(not(feature = "dpdk"))]
fn dpdk(_: &str) -> Result<Box<dyn Device>, PortError> {
    let reason =
        "this executable is built without it: `cargo build --release --features dpdk`, with DPDK's libraries";
    Err(PortError::Arguments { driver: Driver::Dpdk.name(), reason: reason.to_owned() })
}

/// Opens a port to one queue pair, for a switch with one worker.
///
/// # Errors
/// [`PortError`], as the driver says.
pub fn open(interface: &InterfaceSpec) -> Result<Box<dyn QueuePair>, PortError> {
    open_among(interface, 1)
}

/// As [`open`], for a switch with so many ports: those that need memory for frames share it.
///
/// # Errors
/// As there.
pub fn open_among(interface: &InterfaceSpec, ports: usize) -> Result<Box<dyn QueuePair>, PortError> {
    let device = device_among(interface, ports)?;
    let (name, limit) = (device.name().to_owned(), device.max_queues());
    let opened = device.open(1)?.pop();
    opened.ok_or(PortError::Queues { device: name, asked: 1, limit })
}

#[cfg(test)]
mod tests {
    #[cfg(not(feature = "dpdk"))]
    #[test]
    fn a_build_without_dpdk_says_so() {
        let error = super::open(&"dpdk:net_null0".parse().unwrap()).err().unwrap().to_string();
        assert!(error.starts_with("dpdk: this executable is built without it: `cargo build"), "{error}");
    }
}
