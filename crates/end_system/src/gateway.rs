//! A gateway: programs of this machine that know UDP alone, such as `snmpwalk`, talk to an end system through virtual links.
//!
//! ```text
//!   program -> UDP socket of this machine -> SAP port -> virtual link -> the other end system
//!   program <- UDP socket of this machine <- SAP port <- virtual link <- its answer
//! ```
//!
//! Each program gets a SAP port of its own, whose UDP port the other end system answers to: so two programs do not get each other's answers.
//! When all [`MAX_CLIENTS`] are taken, the program that has been silent for longest loses its port.

use crate::plan::{Plan, PlanError};
use millrace_afdx::{
    Addressing, EndSystem, EndSystemId, MAX_MESSAGE, Partition, PortKind, ReceivePort, TransmitPort, UdpEnd,
    VlId,
};
use millrace_network::Network;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::str::FromStr;

/// Most gateways of an end system.
pub const MAX_GATEWAYS: usize = 16;

/// Most programs that a gateway tells apart.
pub const MAX_CLIENTS: usize = 16;

/// The first UDP port of gateways in virtual links.
const FIRST_PORT: u16 = 49_152;

/// Messages that a port keeps until the gateway takes them, which it does at once.
const DEPTH: usize = 16;

/// Datagrams of a socket that are taken in a round, so that frames do not wait for a program that never stops.
const MAX_ROUND: usize = 16;

/// What a gateway leads to: `NAME:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewaySpec {
    /// The end system.
    pub name: String,
    /// Its UDP port.
    pub port: u16,
}

impl FromStr for GatewaySpec {
    type Err = String;

    fn from_str(text: &str) -> Result<GatewaySpec, String> {
        let wrong = || format!("`{text}` is no end system with a UDP port, as M1:161 is");
        let (name, port) = text.rsplit_once(':').filter(|(name, _)| !name.is_empty()).ok_or_else(wrong)?;
        let port = port.parse().ok().filter(|port| *port != 0).ok_or_else(wrong)?;
        Ok(GatewaySpec { name: name.to_owned(), port })
    }
}

impl fmt::Display for GatewaySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name, self.port)
    }
}

/// A program, and the ports that it has.
#[derive(Debug)]
struct Client {
    address: Option<SocketAddr>,
    last_ns: u64,
    transmit: usize,
}

/// A gateway to one UDP port of one end system.
#[derive(Debug)]
pub struct Gateway {
    socket: UdpSocket,
    to: UdpEnd,
    clients: Vec<Client>,
    /// The client of a port that receives.
    by_port: HashMap<usize, usize>,
    counters: GatewayCounters,
}

/// What passed a gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GatewayCounters {
    /// Datagrams that went to the end system.
    pub sent: u64,
    /// Datagrams that were too long, or that the queue of the virtual link had no room for.
    pub refused: u64,
    /// Messages that came back and went to a program.
    pub received: u64,
    /// Messages that came for nobody, from another one than was asked, or that the system did not take.
    pub lost: u64,
}

impl Gateway {
    /// The gateway of this number of an end system; what it sends leaves in the first virtual link of the file that leads there.
    ///
    /// # Errors
    /// [`PlanError`] if no virtual link leads there, or none back.
    pub fn new(
        network: &Network,
        plan: &mut Plan,
        number: usize,
        spec: &GatewaySpec,
        socket: UdpSocket,
    ) -> Result<Gateway, PlanError> {
        let find =
            |name: &str| network.end_systems.iter().find(|es| es.name == name).map(|es| EndSystemId(es.id));
        let no_way = |from: &str, to: &str| PlanError::NoWay(from.to_owned(), to.to_owned());
        let (own, other) = (find(&plan.name), find(&spec.name));
        let (Some(own), Some(other)) = (own, other) else { return Err(no_way(&plan.name, &spec.name)) };
        let there = links(network, &plan.name, &spec.name).next();
        let there = there.ok_or_else(|| no_way(&plan.name, &spec.name))?;
        let back: Vec<VlId> = links(network, &spec.name, &plan.name).collect();
        if back.is_empty() {
            return Err(no_way(&spec.name, &plan.name));
        }
        // Nothing is measured where a gateway sends.
        plan.sends.retain(|planned| planned.vl != there);
        let addressing = Addressing::default();
        let own_ip = addressing.source_ip(own, Partition::default());
        let (mut clients, mut by_port) = (Vec::new(), HashMap::new());
        for client in 0..MAX_CLIENTS {
            // At most 256 of them.
            let udp = FIRST_PORT + (number.min(MAX_GATEWAYS - 1) * MAX_CLIENTS + client) as u16;
            let transmit = plan.es.transmitter.add_port(TransmitPort {
                kind: PortKind::Sap,
                vl: there,
                sub_vl: 0,
                partition: Partition::default(),
                source_port: udp,
                destination: None,
            })?;
            for vl in &back {
                let port = plan.es.receiver.add_port(ReceivePort {
                    kind: PortKind::Sap,
                    vl: *vl,
                    ip: Some(own_ip),
                    port: udp,
                    depth: DEPTH,
                    max_message: MAX_MESSAGE,
                })?;
                by_port.insert(port, client);
            }
            clients.push(Client { address: None, last_ns: 0, transmit });
        }
        let to = UdpEnd { ip: addressing.source_ip(other, Partition::default()), port: spec.port };
        Ok(Gateway { socket, to, clients, by_port, counters: GatewayCounters::default() })
    }

    /// Its socket, which is not waited for by reading it.
    pub(crate) fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// What passed.
    pub fn counters(&self) -> GatewayCounters {
        self.counters
    }

    /// Where it leads.
    pub fn to(&self) -> UdpEnd {
        self.to
    }

    /// Sends what programs have written; whether there may be more at once.
    pub(crate) fn send(&mut self, now_ns: u64, es: &mut EndSystem) -> bool {
        // One byte more tells a datagram that is too long from one that fits.
        let mut buffer = [0; MAX_MESSAGE + 1];
        for _ in 0..MAX_ROUND {
            let (length, from) = match self.socket.recv_from(&mut buffer) {
                Ok(received) => received,
                // Of a program that has gone, which a message was sent to: the next one may be there.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => continue,
                Err(_) => return false,
            };
            let client = self.client_of(from);
            let client = &mut self.clients[client];
            (client.address, client.last_ns) = (Some(from), now_ns);
            match es.transmitter.send_to(now_ns, client.transmit, self.to, &buffer[..length]) {
                Ok(()) => self.counters.sent += 1,
                Err(_) => self.counters.refused += 1,
            }
        }
        true
    }

    /// The ports of a program: those that it has, or free ones, or those of the one that has been silent for longest.
    fn client_of(&self, from: SocketAddr) -> usize {
        let known = self.clients.iter().position(|client| client.address == Some(from));
        let silent = || {
            let last = |client: &&Client| (client.address.is_some(), client.last_ns);
            let clients = self.clients.iter().enumerate();
            clients.min_by_key(|(_, client)| last(client)).map_or(0, |(place, _)| place)
        };
        known.unwrap_or_else(silent)
    }

    /// Gives programs what came to this port; whether it is one of the gateway's.
    pub(crate) fn received(&mut self, es: &mut EndSystem, port: usize) -> bool {
        let Some(client) = self.by_port.get(&port) else { return false };
        let address = self.clients[*client].address;
        while let Some(message) = es.receiver.take(port) {
            // Anybody may send to the port by that virtual link, as the source address is not checked: who was not asked has nothing to say.
            let told = address.filter(|_| message.source == self.to);
            let is_told = told.is_some_and(|address| self.socket.send_to(&message.data, address).is_ok());
            *(if is_told { &mut self.counters.received } else { &mut self.counters.lost }) += 1;
        }
        true
    }
}

/// The virtual links from one end system to another one, as the file has them.
fn links<'n>(network: &'n Network, from: &'n str, to: &'n str) -> impl Iterator<Item = VlId> + 'n {
    let leads = move |vl: &&millrace_network::Vl| vl.source == from && vl.ends().any(|end| end == to);
    network.vls.iter().filter(leads).map(|vl| VlId(vl.id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_gateway() {
        let spec: GatewaySpec = "M1:161".parse().unwrap();
        assert_eq!((spec.name.as_str(), spec.port, spec.to_string().as_str()), ("M1", 161, "M1:161"));
        for wrong in ["", "M1", "M1:", "M1:0", ":161", "M1:65536", "M1:x"] {
            assert!(wrong.parse::<GatewaySpec>().is_err(), "{wrong}");
        }
    }
}
