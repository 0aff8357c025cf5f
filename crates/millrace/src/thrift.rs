//! The Thrift server of `millrace run`.

use crate::added_ports::AddedPorts;
use crate::findings::Failure;
use crate::grpc::resolve;
use millrace_p4runtime::Programs;
use millrace_ports::PortSpec;
use millrace_switch::PortId;
use millrace_thrift::{DEFAULT_PORT, DeviceConfig, PortMaker, PortName, Server, serve};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

/// Serves a switch at an address, or at a port of this machine.
pub(crate) fn start(
    address: &str,
    device_id: u64,
    ports: &[PortSpec],
    maker: AddedPorts,
    programs: Programs,
    json: Option<String>,
) -> Result<Server, Failure> {
    let address = self::address(address)?;
    let failed = |error: std::io::Error| Failure::failed(format!("cannot listen on {address}"), error);
    let listener = TcpListener::bind(address).map_err(failed)?;
    let name = |spec: &PortSpec| PortName {
        number: PortId::from(spec.port),
        interface: spec.interface.args.clone(),
    };
    let (ports, maker) = (ports.iter().map(name).collect(), Some(Box::new(maker) as Box<dyn PortMaker>));
    let device = DeviceConfig { programs, device_id, ports, maker, json };
    serve(listener, device).map_err(failed)
}

/// An address, or a port of this machine.
pub(crate) fn address(text: &str) -> Result<SocketAddr, Failure> {
    // The system takes a number alone for an address, too.
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        let port =
            text.parse().map_err(|_| Failure::Usage(format!("`{text}` is no port: 0 to {}", u16::MAX)))?;
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    resolve(text, DEFAULT_PORT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_of_this_machine() {
        assert_eq!(address("9091").unwrap().to_string(), "127.0.0.1:9091");
        assert_eq!(address("10.0.0.1").unwrap().to_string(), "10.0.0.1:9090");
        assert_eq!(address("0.0.0.0:1").unwrap().to_string(), "0.0.0.0:1");
        assert!(address("70000").is_err());
    }
}
