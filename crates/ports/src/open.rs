//! From the name of a port to the port.

use crate::af_packet::PacketPort;
use crate::null::NullPort;
use crate::pcap::PcapPort;
use crate::port::{Port, PortError};
use crate::spec::{Driver, InterfaceSpec};
use crate::tap::TapPort;

/// Opens what is behind a port with the driver that its name asks for.
///
/// # Errors
/// [`PortError`], as the driver says.
pub fn open(interface: &InterfaceSpec) -> Result<Box<dyn Port>, PortError> {
    Ok(match interface.driver {
        Driver::Packet => Box::new(PacketPort::open(&interface.args)?),
        Driver::Tap => Box::new(TapPort::open(&interface.args)?),
        Driver::Null => Box::new(NullPort::open(&interface.args)?),
        Driver::Pcap => Box::new(PcapPort::open(&interface.args)?),
    })
}
