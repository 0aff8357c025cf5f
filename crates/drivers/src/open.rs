//! From the name of a port to its device.

use crate::addresses::{Addresses, FilteredDevice, Own};
use crate::af_packet::PacketDevice;
use crate::device::{Device, SingleQueue};
use crate::fcs::{self, FcsPort, LinkFcsDevice};
use crate::link::LinkName;
use crate::null::NullDevice;
use crate::pcap::PcapPort;
use crate::port::{PortError, QueuePair};
use crate::spec::{Driver, InterfaceSpec};
use crate::stream::StreamPort;
use crate::tap::TapDevice;
use crate::xdp::XdpDevice;

/// The device of the driver that the name of a port asks for. Capture files are opened, interfaces are not yet. An end system
/// (`es`) is made by whoever reads files of networks; here it is refused.
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
        Driver::Dpdk | Driver::Packet | Driver::Tap | Driver::Xdp => {
            let (args, addresses) = Addresses::take(interface.driver.name(), args)?;
            let (device, own): (Box<dyn Device>, _) = match interface.driver {
                Driver::Dpdk => dpdk(&args, addresses.as_ref())?,
                Driver::Tap => (Box::new(TapDevice::new(&args)?), own(interface)?),
                Driver::Xdp => {
                    let device = XdpDevice::new(&args, ports)?.for_addresses(addresses.clone());
                    (Box::new(device), own(interface)?)
                }
                _ => {
                    let (args, checks) = fcs::take(&args);
                    let device = PacketDevice::new(&args, ports)?.for_addresses(addresses.clone());
                    let link = link(interface)?;
                    let device: Box<dyn Device> = match checks {
                        false => Box::new(device),
                        true => Box::new(LinkFcsDevice {
                            device: Box::new(device),
                            name: name.clone(),
                            link: link.clone(),
                        }),
                    };
                    (device, Own::Link(link))
                }
            };
            match addresses {
                None => device,
                Some(addresses) => Box::new(FilteredDevice { device, name, own, addresses }),
            }
        }
        Driver::Es => {
            let reason = "an end system is a port of `millrace run` when it starts, and of nothing else";
            return Err(PortError::Arguments { driver: Driver::Es.name(), reason: reason.to_owned() });
        }
        Driver::Null => Box::new(NullDevice::new(args)?),
        Driver::Stream | Driver::Pcap => {
            let (args, checks) = fcs::take(args);
            match (interface.driver, checks) {
                (Driver::Stream, false) => Box::new(SingleQueue::new(name, StreamPort::open(&args)?)),
                (Driver::Stream, true) => {
                    Box::new(SingleQueue::new(name, FcsPort::new(Box::new(StreamPort::open(&args)?))))
                }
                (_, false) => Box::new(SingleQueue::new(name, PcapPort::open(&args)?)),
                (_, true) => Box::new(SingleQueue::new(name, FcsPort::new(Box::new(PcapPort::open(&args)?)))),
            }
        }
    })
}

/// The interface of a port.
fn link(interface: &InterfaceSpec) -> Result<LinkName, PortError> {
    LinkName::new(interface.driver.name(), interface.link().unwrap_or_default())
}

/// The address of an interface.
fn own(interface: &InterfaceSpec) -> Result<Own, PortError> {
    link(interface).map(Own::Link)
}

#[cfg(feature = "dpdk")]
fn dpdk(args: &str, addresses: Option<&Addresses>) -> Result<(Box<dyn Device>, Own), PortError> {
    let device = crate::dpdk::DpdkDevice::new(args)?.for_addresses(addresses.cloned());
    let own = Own::Known(device.mac());
    Ok((Box::new(device), own))
}

#[cfg(not(feature = "dpdk"))]
fn dpdk(_: &str, _: Option<&Addresses>) -> Result<(Box<dyn Device>, Own), PortError> {
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
