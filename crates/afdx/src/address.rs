//! Addresses of AFDX: a virtual link is a destination address, an end system is a source address.
//!
//! | address | bytes | from |
//! | --- | --- | --- |
//! | destination MAC | `03:00:00:00` and the VL, 16 bits | the constant part can be set |
//! | source MAC | `02:00:00`, the end system, 16 bits, and the interface: `20` for network A, `40` for B | 3 bits of interface, 5 bits 0 |
//! | source IP | `10`, the end system, 16 bits, the partition | 3 bits 0, 5 bits of partition |
//! | destination IP | `224.224` and the VL, 16 bits; or the source IP of the receiver | multicast; unicast |
//!
//! The 16 bits of an end system are an identifier that the integrator of the network chooses, mostly a network and an equipment number.

use crate::limits::{LimitError, within};
use crate::scheduler::Network;
use std::fmt;
use std::net::Ipv4Addr;

/// A MAC address.
pub type Mac = [u8; 6];

/// Largest number of a partition.
pub const MAX_PARTITION: u8 = 31;

/// The identifier of a virtual link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VlId(pub u16);

impl fmt::Display for VlId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A partition of an end system: an application with addresses of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Partition(u8);

impl Partition {
    /// The partition of this number.
    ///
    /// # Errors
    /// [`LimitError`] above [`MAX_PARTITION`].
    pub fn new(number: u8) -> Result<Partition, LimitError> {
        within("the partition", number.into(), (0, MAX_PARTITION.into()), "")?;
        Ok(Partition(number))
    }

    /// Its number.
    pub fn number(self) -> u8 {
        self.0
    }
}

/// The identifier of an end system: 16 bits that are part of its MAC and IP addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EndSystemId(pub u16);

impl EndSystemId {
    /// From the number of its network and that of its equipment, as public tutorials divide it.
    pub fn from_parts(network: u8, equipment: u8) -> EndSystemId {
        EndSystemId(u16::from_be_bytes([network, equipment]))
    }
}

/// The constant parts of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addressing {
    /// The first 32 bits of a destination MAC address.
    pub destination_prefix: [u8; 4],
    /// The first 24 bits of a source MAC address.
    pub source_prefix: [u8; 3],
    /// The last byte of a source MAC address on networks A and B.
    pub interfaces: [u8; 2],
    /// The first byte of a source IP address.
    pub source_ip_prefix: u8,
    /// The first 16 bits of a multicast IP address.
    pub multicast_prefix: [u8; 2],
}

impl Default for Addressing {
    fn default() -> Addressing {
        Addressing {
            destination_prefix: [3, 0, 0, 0],
            source_prefix: [2, 0, 0],
            interfaces: [0x20, 0x40],
            source_ip_prefix: 10,
            multicast_prefix: [224, 224],
        }
    }
}

impl Addressing {
    /// The destination MAC address of a VL.
    pub fn destination_mac(&self, vl: VlId) -> Mac {
        let ([a, b, c, d], [high, low]) = (self.destination_prefix, vl.0.to_be_bytes());
        [a, b, c, d, high, low]
    }

    /// The VL of a destination MAC address; none if it is not one of AFDX.
    pub fn vl_of(&self, mac: Mac) -> Option<VlId> {
        let [a, b, c, d, high, low] = mac;
        ([a, b, c, d] == self.destination_prefix).then_some(VlId(u16::from_be_bytes([high, low])))
    }

    /// The source MAC address of an end system on a network.
    pub fn source_mac(&self, es: EndSystemId, network: Network) -> Mac {
        let ([a, b, c], [high, low]) = (self.source_prefix, es.0.to_be_bytes());
        [a, b, c, high, low, self.interfaces[network.index()]]
    }

    /// The network that the interface of a source MAC address is of; none if it is not a source address of AFDX.
    pub fn network_of(&self, mac: Mac) -> Option<Network> {
        let is_source = mac[..3] == self.source_prefix;
        Network::ALL.into_iter().find(|network| is_source && mac[5] == self.interfaces[network.index()])
    }

    /// The IP address of a partition of an end system.
    pub fn source_ip(&self, es: EndSystemId, partition: Partition) -> Ipv4Addr {
        let [high, low] = es.0.to_be_bytes();
        Ipv4Addr::new(self.source_ip_prefix, high, low, partition.0)
    }

    /// The end system and the partition of an IP address; none if it is not a source address of AFDX.
    pub fn end_system_of(&self, ip: Ipv4Addr) -> Option<(EndSystemId, Partition)> {
        let [prefix, high, low, partition] = ip.octets();
        let partition = Partition::new(partition).ok().filter(|_| prefix == self.source_ip_prefix)?;
        Some((EndSystemId::from_parts(high, low), partition))
    }

    /// The multicast IP address of a VL.
    pub fn multicast_ip(&self, vl: VlId) -> Ipv4Addr {
        let ([a, b], [high, low]) = (self.multicast_prefix, vl.0.to_be_bytes());
        Ipv4Addr::new(a, b, high, low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_by_hand() {
        let addressing = Addressing::default();
        let (vl, es) = (VlId(0x1234), EndSystemId::from_parts(0x05, 0x21));
        assert_eq!(addressing.destination_mac(vl), [3, 0, 0, 0, 0x12, 0x34]);
        assert_eq!(addressing.source_mac(es, Network::A), [2, 0, 0, 5, 0x21, 0x20]);
        assert_eq!(addressing.source_mac(es, Network::B), [2, 0, 0, 5, 0x21, 0x40]);
        assert_eq!(addressing.source_ip(es, Partition::new(3).unwrap()), Ipv4Addr::new(10, 5, 33, 3));
        assert_eq!(addressing.multicast_ip(vl), Ipv4Addr::new(224, 224, 0x12, 0x34));
        assert_eq!(addressing.vl_of([3, 0, 0, 0, 0x12, 0x34]), Some(vl));
        assert_eq!(addressing.vl_of([3, 0, 0, 1, 0x12, 0x34]), None);
        assert_eq!(addressing.network_of([2, 0, 0, 9, 9, 0x40]), Some(Network::B));
        assert_eq!(addressing.network_of([2, 0, 0, 9, 9, 0x60]), None);
        assert_eq!(addressing.network_of([2, 1, 0, 9, 9, 0x20]), None);
        let known = (es, Partition::new(3).unwrap());
        assert_eq!(addressing.end_system_of(Ipv4Addr::new(10, 5, 33, 3)), Some(known));
        assert_eq!(addressing.end_system_of(Ipv4Addr::new(10, 5, 33, 32)), None);
        assert_eq!(addressing.end_system_of(Ipv4Addr::new(11, 5, 33, 3)), None);
        let error = Partition::new(32).unwrap_err().to_string();
        assert_eq!(error, "the partition is 32: 0 to 31 is allowed");
    }

    #[test]
    fn the_prefix_can_be_set() {
        let addressing = Addressing { destination_prefix: [0x0b, 1, 2, 3], ..Addressing::default() };
        assert_eq!(addressing.destination_mac(VlId(1)), [0x0b, 1, 2, 3, 0, 1]);
        assert_eq!(
            (addressing.vl_of([0x0b, 1, 2, 3, 0, 1]), addressing.vl_of([3, 0, 0, 0, 0, 1])),
            (Some(VlId(1)), None)
        );
    }
}
