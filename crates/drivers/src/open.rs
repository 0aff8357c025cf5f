//! From the name of a port to the port.

use crate::af_packet::PacketPort;
use crate::null::NullPort;
use crate::pcap::PcapPort;
use crate::port::{Port, PortError};
use crate::spec::{Driver, InterfaceSpec};
use crate::stream::StreamPort;
use crate::tap::TapPort;

/// Opens a port with the driver that its name asks for.
///
/// # Errors
/// [`PortError`], as the driver says.
pub fn open(interface: &InterfaceSpec) -> Result<Box<dyn Port>, PortError> {
    open_among(interface, 1)
}

/// As [`open`], for a switch with so many ports: those that need memory for frames share it.
///
/// # Errors
/// As there.
pub fn open_among(interface: &InterfaceSpec, ports: usize) -> Result<Box<dyn Port>, PortError> {
    Ok(match interface.driver {
        Driver::Packet => Box::new(PacketPort::open_among(&interface.args, ports)?),
        Driver::Tap => Box::new(TapPort::open(&interface.args)?),
        Driver::Null => Box::new(NullPort::open(&interface.args)?),
        Driver::Stream => Box::new(StreamPort::open(&interface.args)?),
        Driver::Pcap => Box::new(PcapPort::open(&interface.args)?),
    })
}
