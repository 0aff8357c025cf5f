//! Where the servers of a switch listen: how an address is written, and the one rule for who may reach it.
//!
//! Who reaches a server of a switch can write to its tables, replace its program or read what passes, and most protocols
//! ask for no password. So a server listens on this machine only, unless the operator says otherwise with an option of
//! that server ([`Service::open_option`]): [`bind`] refuses other addresses, and its error names the option. All
//! servers listen through it. What an operator has opened is told in words by [`exposure`].
//!
//! An address ([`Address`]) is written in one way for all servers and clients: `9559` and `:9559` are ports of this machine.

mod address;

pub use address::{Address, AddressError};

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};

/// A server of the switch, with the words for its errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// Its name.
    pub name: &'static str,
    /// The option that says where it listens.
    pub option: &'static str,
    /// The option that lets other machines reach it.
    pub open_option: &'static str,
    /// What anybody who reaches it can do.
    pub harm: &'static str,
    /// The port that it has when none is given.
    pub default_port: u16,
}

/// P4Runtime over gRPC.
pub const P4RUNTIME: Service = Service {
    name: "P4Runtime",
    option: "--grpc",
    open_option: "--grpc-allow-plaintext",
    harm: "write to the switch and replace its program",
    default_port: 9559,
};

/// The same of a device with many switches, with the words of its file.
pub const P4RUNTIME_OF_DEVICE: Service =
    Service { option: "grpc", open_option: "grpc-allow-plaintext", ..P4RUNTIME };

/// The Thrift interface of bmv2.
pub const THRIFT: Service = Service {
    name: "Thrift",
    option: "--thrift",
    open_option: "--thrift-allow-remote",
    harm: "write to the switch and replace its program",
    default_port: 9090,
};

/// The same of a switch among many of a device, with the words of its file.
pub const THRIFT_OF_SWITCH: Service =
    Service { option: "thrift", open_option: "thrift-allow-remote", ..THRIFT };

/// Metrics and captures over HTTP.
pub const METRICS: Service = Service {
    name: "metrics",
    option: "--metrics",
    open_option: "--metrics-allow-remote",
    harm: "read the metrics",
    default_port: 9560,
};

/// Notifications of bmv2 over nanomsg.
pub const NOTIFICATIONS: Service = Service {
    name: "notifications",
    option: "--notifications",
    open_option: "--thrift-allow-remote",
    harm: "read what the program tells its controller",
    default_port: 9091,
};

/// Frames of all ports over nanomsg.
pub const PACKET_IN: Service = Service {
    name: "packet-in",
    option: "--packet-in",
    open_option: "--packet-in-allow-remote",
    harm: "send and receive packets as any port of the switch",
    default_port: 9092,
};

/// SNMP over UDP.
pub const SNMP: Service = Service {
    name: "SNMP",
    option: "--snmp",
    open_option: "--snmp-allow-remote",
    harm: "read the status of the switch with the word of its community, which is sent as it is",
    default_port: 161,
};

/// Datagrams that go to an end system of AFDX through virtual links.
pub const GATEWAY: Service = Service {
    name: "gateway",
    option: "--udp",
    open_option: "--udp-allow-remote",
    harm: "send messages in a virtual link",
    default_port: 1161,
};

/// Registers and frames of a hardware device.
pub const LINK: Service = Service {
    name: "host link",
    option: "--listen",
    open_option: "--link-allow-remote",
    harm: "read and write the registers of the device and send frames through it",
    default_port: 9561,
};

/// Who is let in by a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Whoever reaches it.
    Anybody,
    /// Whoever reaches it; nobody listens in (TLS without an authority for clients).
    AnybodyEncrypted,
    /// Clients with a token that they send as it is; whoever listens in has it then.
    WithToken,
    /// Clients that are known, over TLS: by a certificate that an authority has signed (mutual TLS), or by a token.
    Known,
}

/// Why a server does not listen.
#[derive(Debug)]
pub enum ListenError {
    /// Other machines reach the address, and the operator has not said that they may.
    Exposed(&'static Service, SocketAddr),
    /// The system does not give the address.
    Refused(&'static Service, SocketAddr, io::Error),
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenError::Exposed(service, address) => {
                let Service { option, open_option, harm, .. } = service;
                write!(
                    f,
                    "{option} {address}: other machines reach this address, and anyone there could {harm}. \
                     {open_option} allows it; {option} {} is for this machine only",
                    address.port()
                )?;
                match service.name == P4RUNTIME.name {
                    true => {
                        write!(f, "; {option}-cert, {option}-key and {option}-client-ca ask for certificates")
                    }
                    false => Ok(()),
                }
            }
            ListenError::Refused(service, address, error) => {
                let option = service.option;
                write!(f, "cannot listen on {address}: {error}")?;
                match error.kind() {
                    io::ErrorKind::AddrInUse => {
                        write!(f, " (another process listens there; {option} names another address)")
                    }
                    io::ErrorKind::AddrNotAvailable => {
                        write!(f, " (no interface of this machine has the address; {option} names another)")
                    }
                    io::ErrorKind::PermissionDenied => {
                        write!(
                            f,
                            " (ports below 1024 need root or CAP_NET_BIND_SERVICE; {option} names another)"
                        )
                    }
                    _ => Ok(()),
                }
            }
        }
    }
}

impl ListenError {
    /// The same in the words of another service.
    #[must_use]
    pub fn of(self, service: &'static Service) -> ListenError {
        match self {
            ListenError::Exposed(_, address) => ListenError::Exposed(service, address),
            ListenError::Refused(_, address, error) => ListenError::Refused(service, address, error),
        }
    }
}

impl std::error::Error for ListenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ListenError::Exposed(..) => None,
            ListenError::Refused(.., error) => Some(error),
        }
    }
}

/// Whether only this machine reaches an address.
pub fn is_local(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

/// Listens at an address; one that other machines reach is taken only when the operator has said so (`is_open`), or when
/// the server speaks TLS.
///
/// # Errors
/// [`ListenError`].
pub fn bind(
    service: &'static Service,
    address: SocketAddr,
    admission: Admission,
    is_open: bool,
) -> Result<TcpListener, ListenError> {
    if !is_local(address) && !is_open && matches!(admission, Admission::Anybody | Admission::WithToken) {
        return Err(ListenError::Exposed(service, address));
    }
    TcpListener::bind(address).map_err(|error| ListenError::Refused(service, address, error))
}

/// As [`bind`], of a server over UDP, whose clients are known by nothing that others could not send too.
///
/// # Errors
/// [`ListenError`].
pub fn bind_udp(
    service: &'static Service,
    address: SocketAddr,
    is_open: bool,
) -> Result<UdpSocket, ListenError> {
    if !is_local(address) && !is_open {
        return Err(ListenError::Exposed(service, address));
    }
    UdpSocket::bind(address).map_err(|error| ListenError::Refused(service, address, error))
}

/// What an operator should know of a server that listens at an address: who can do what. None where only this machine
/// reaches it, or where clients are known over TLS.
pub fn exposure(service: &Service, address: SocketAddr, admission: Admission) -> Option<String> {
    let Service { name, option, harm, .. } = service;
    match admission {
        Admission::Known => None,
        Admission::AnybodyEncrypted => Some(format!(
            "{name} at {address}: TLS without {option}-client-ca authenticates no client, anyone who reaches this \
             address can {harm}"
        )),
        Admission::Anybody | Admission::WithToken if is_local(address) => None,
        Admission::WithToken => Some(format!(
            "{name} at {address} takes tokens without TLS: anyone who listens in on the network can {harm} with them"
        )),
        Admission::Anybody => {
            Some(format!("{name} at {address} asks nobody who they are: anyone who reaches it can {harm}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVICES: [&Service; 5] = [&P4RUNTIME, &THRIFT, &METRICS, &NOTIFICATIONS, &PACKET_IN];

    #[test]
    fn other_machines_are_let_in_by_option_only() {
        for service in SERVICES {
            for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:9", "[::ffff:192.0.2.1]:9"] {
                let refused = bind(service, address.parse().unwrap(), Admission::Anybody, false).unwrap_err();
                assert!(matches!(refused, ListenError::Exposed(..)), "{address}");
                let said = refused.to_string();
                assert!(said.contains(service.open_option) && said.contains(service.harm), "{said}");
            }
            for address in ["127.0.0.1:0", "127.1.2.3:0", "[::1]:0", "[::ffff:127.0.0.1]:0"] {
                // A machine without IPv6 has no such address.
                match bind(service, address.parse().unwrap(), Admission::Anybody, false) {
                    Ok(_) | Err(ListenError::Refused(..)) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            assert!(bind(service, "0.0.0.0:0".parse().unwrap(), Admission::Anybody, true).is_ok());
        }
        let exposed = bind_udp(&SNMP, "0.0.0.0:0".parse().unwrap(), false).unwrap_err();
        assert!(exposed.to_string().contains("--snmp-allow-remote allows it"), "{exposed}");
        assert!(bind_udp(&SNMP, "0.0.0.0:0".parse().unwrap(), true).is_ok());
        assert!(bind_udp(&SNMP, "127.0.0.1:0".parse().unwrap(), false).is_ok());
        let anywhere = "0.0.0.0:0".parse().unwrap();
        assert!(bind(&P4RUNTIME, anywhere, Admission::AnybodyEncrypted, false).is_ok());
        assert!(bind(&P4RUNTIME, anywhere, Admission::Known, false).is_ok());
        assert!(bind(&METRICS, anywhere, Admission::WithToken, false).is_err());
    }

    #[test]
    fn what_is_open_is_told() {
        let (here, anywhere) = ("127.0.0.1:1".parse().unwrap(), "0.0.0.0:1".parse().unwrap());
        assert_eq!(exposure(&THRIFT, here, Admission::Anybody), None);
        assert!(exposure(&THRIFT, anywhere, Admission::Anybody).unwrap().contains("asks nobody"));
        assert_eq!(exposure(&METRICS, here, Admission::WithToken), None);
        assert!(exposure(&METRICS, anywhere, Admission::WithToken).unwrap().contains("without TLS"));
        for address in [here, anywhere] {
            let said = exposure(&P4RUNTIME, address, Admission::AnybodyEncrypted).unwrap();
            assert!(said.contains("authenticates no client"), "{said}");
            assert_eq!(exposure(&P4RUNTIME, address, Admission::Known), None);
        }
    }

    #[test]
    fn an_address_in_use_names_the_option() {
        let first = TcpListener::bind("127.0.0.1:0").unwrap();
        let taken = bind(&METRICS, first.local_addr().unwrap(), Admission::Anybody, false).unwrap_err();
        assert!(taken.to_string().contains("--metrics names another address"), "{taken}");
    }
}
