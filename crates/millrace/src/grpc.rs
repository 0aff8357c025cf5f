//! The P4Runtime options of `millrace run`.

use crate::cli::GrpcArgs;
use crate::findings::Failure;
use millrace_control::image::Image;
use millrace_p4runtime::{CpuLink, Listen, Pipeline, Tls};
use millrace_ports::Port;
use millrace_switch::PortId;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::Path;

/// The port that IANA has for P4Runtime.
const DEFAULT_PORT: u16 = 9559;

/// Where and how to listen, if at all.
pub(crate) fn listen(args: &GrpcArgs) -> Result<Option<Listen>, Failure> {
    let Some(address) = &args.grpc else { return Ok(None) };
    let read = |path: &Path| std::fs::read(path).map_err(|error| Failure::failed(path.display(), error));
    let tls = match (&args.grpc_cert, &args.grpc_key) {
        (Some(certificate), Some(key)) => Some(Tls {
            certificate: read(certificate)?,
            key: read(key)?,
            client_authority: args.grpc_client_ca.as_deref().map(read).transpose()?,
        }),
        _ => None,
    };
    Ok(Some(Listen { address: self::address(address)?, tls, allow_plaintext: args.grpc_allow_plaintext }))
}

/// Where a P4Runtime server is.
pub(crate) fn address(text: &str) -> Result<SocketAddr, Failure> {
    resolve(text, DEFAULT_PORT)
}

/// An address, a name or either with a port.
pub(crate) fn resolve(text: &str, default_port: u16) -> Result<SocketAddr, Failure> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok((address, default_port).into());
    }
    let found = match text.contains(':') {
        true => text.to_socket_addrs(),
        false => (text, default_port).to_socket_addrs(),
    };
    found.ok().and_then(|mut addresses| addresses.next()).ok_or_else(|| {
        Failure::Usage(format!("`{text}` is no address to listen on, as in 127.0.0.1:{default_port}"))
    })
}

/// The program as controllers see it. What they get as its device config is the image, which they can set again.
pub(crate) fn pipeline(image: Image) -> Result<Pipeline, Failure> {
    let device_config = image.to_string().into_bytes();
    Pipeline::new(image, device_config).map_err(Failure::Failed)
}

/// Adds the port behind which the controller is.
pub(crate) fn cpu_port(
    args: &GrpcArgs,
    ports: &mut Vec<(PortId, Box<dyn Port>)>,
) -> Result<Option<(PortId, CpuLink)>, Failure> {
    let Some(number) = args.cpu_port else { return Ok(None) };
    let (port, link) =
        millrace_p4runtime::cpu_port().map_err(|error| Failure::failed("the CPU port", error))?;
    ports.push((number, Box::new(port)));
    Ok(Some((number, link)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_may_leave_out_the_port() {
        assert_eq!(resolve("127.0.0.1", DEFAULT_PORT).unwrap().to_string(), "127.0.0.1:9559");
        assert_eq!(resolve("::1", DEFAULT_PORT).unwrap().to_string(), "[::1]:9559");
        assert_eq!(resolve("127.0.0.1:50051", DEFAULT_PORT).unwrap().to_string(), "127.0.0.1:50051");
        assert_eq!(resolve("[::1]:0", DEFAULT_PORT).unwrap().port(), 0);
        assert!(resolve("127.0.0.1:x", DEFAULT_PORT).is_err() && resolve("", DEFAULT_PORT).is_err());
    }
}
