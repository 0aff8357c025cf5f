//! Traps: what an agent tells without being asked, of versions 1 (RFC 1157, 4.1.6) and 2c (RFC 3416, 4.2.6).
//!
//! One event is one message, made for the version of each target. A trap is a datagram: nobody says whether it has come.

use crate::agent::{Agent, MAX_RESPONSE};
use crate::mib::{
    IF_ADMIN_STATUS, IF_INDEX, IF_OPER_STATUS, MODE, MODE_CHANGED, PREVIOUS_MODE, SYS_OBJECT_ID, SYS_UP_TIME,
    TRAP_OID, TRAPS, interface, mode_number,
};
use crate::value::{Value, address, identifier};
use millrace_listen::{Address, AddressError};
use rasn::types::OctetString;
use rasn_smi::v1::TimeTicks;
use rasn_snmp::{v1, v2, v2c};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// The port of whoever takes traps (RFC 3417).
pub const TRAP_PORT: u16 = 162;
/// Most targets of traps.
pub const MAX_TRAP_TARGETS: usize = 8;

/// A version of traps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrapVersion {
    /// Version 1.
    V1,
    /// Version 2c.
    #[default]
    V2c,
}

/// Who is told: `ADDR`, `v2c:ADDR` or `v1:ADDR`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrapAddress {
    version: TrapVersion,
    address: Address,
}

impl FromStr for TrapAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<TrapAddress, AddressError> {
        let (version, rest) = match text.split_once(':') {
            Some(("v1", rest)) => (TrapVersion::V1, rest),
            Some(("v2c", rest)) => (TrapVersion::V2c, rest),
            _ => (TrapVersion::V2c, text),
        };
        Ok(TrapAddress { version, address: rest.parse()? })
    }
}

impl fmt::Display for TrapAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = if self.version == TrapVersion::V1 { "v1:" } else { "" };
        write!(f, "{version}{}", self.address)
    }
}

impl TrapAddress {
    /// The target. A name is looked up.
    ///
    /// # Errors
    /// Nobody knows the name.
    pub fn resolve(&self) -> Result<TrapTarget, AddressError> {
        Ok(TrapTarget { version: self.version, address: self.address.resolve(TRAP_PORT)? })
    }
}

/// Who is told, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrapTarget {
    /// In which version.
    pub version: TrapVersion,
    /// Where.
    pub address: SocketAddr,
}

/// What is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The agent has started.
    ColdStart,
    /// The link of a port has come up or gone down.
    Link { port: u32, is_up: bool, is_enabled: bool },
    /// The mode has changed.
    Mode { from: String, to: String },
}

/// An event as both versions tell it.
struct Told {
    /// Its name (version 2).
    name: Vec<u32>,
    /// Who defines it, and its numbers (version 1).
    enterprise: Vec<u32>,
    generic: u32,
    specific: u32,
    bindings: Vec<(Vec<u32>, Value)>,
}

/// `coldStart`, `linkDown`, `linkUp` and `enterpriseSpecific` of version 1; their numbers below `snmpTraps` are one more.
const COLD_START: u32 = 0;
const LINK_DOWN: u32 = 2;
const LINK_UP: u32 = 3;
const ENTERPRISE_SPECIFIC: u32 = 6;

impl Event {
    /// None of a port that is no interface.
    fn told(&self) -> Option<Told> {
        let generic = |generic: u32, bindings| Told {
            name: [&TRAPS[..], &[generic + 1]].concat(),
            enterprise: SYS_OBJECT_ID.to_vec(),
            generic,
            specific: 0,
            bindings,
        };
        Some(match self {
            Event::ColdStart => generic(COLD_START, Vec::new()),
            Event::Link { port, is_up, is_enabled } => {
                let index = interface(*port)?;
                let of_port = |column: &[u32], value| ([column, &[index]].concat(), Value::Integer(value));
                let status = |is_up: bool| if is_up { 1 } else { 2 };
                let bindings = vec![
                    of_port(&IF_INDEX, i32::try_from(index).ok()?),
                    of_port(&IF_ADMIN_STATUS, status(*is_enabled)),
                    of_port(&IF_OPER_STATUS, status(*is_up)),
                ];
                generic(if *is_up { LINK_UP } else { LINK_DOWN }, bindings)
            }
            Event::Mode { from, to } => Told {
                name: MODE_CHANGED.to_vec(),
                // Its name without the last two numbers, as the one before the last is 0 (RFC 3584, 3.2).
                enterprise: MODE_CHANGED[..MODE_CHANGED.len() - 2].to_vec(),
                generic: ENTERPRISE_SPECIFIC,
                specific: MODE_CHANGED[MODE_CHANGED.len() - 1],
                bindings: vec![
                    (MODE.to_vec(), Value::Integer(mode_number(to)?)),
                    (PREVIOUS_MODE.to_vec(), Value::Integer(mode_number(from)?)),
                ],
            },
        })
    }

    /// The message for a target, from an agent that has that address of its own; none of what cannot be told.
    pub(crate) fn message(&self, agent: &Agent, version: TrapVersion, own: IpAddr) -> Option<Vec<u8>> {
        let told = self.told()?;
        let community = OctetString::from_slice(agent.community());
        let message = match version {
            TrapVersion::V1 => {
                let data = told.v1(agent.ticks(), own)?;
                rasn::ber::encode(&v1::Message { version: 0.into(), community, data })
            }
            TrapVersion::V2c => {
                let data = told.v2(agent.ticks())?;
                rasn::ber::encode(&v2c::Message { version: 1.into(), community, data })
            }
        };
        message.ok().filter(|message| message.len() <= MAX_RESPONSE)
    }
}

impl Told {
    fn v1(self, ticks: u32, own: IpAddr) -> Option<v1::Trap> {
        let bindings = self
            .bindings
            .iter()
            .map(|(name, value)| Some(v1::VarBind { name: identifier(name)?, value: value.v1()? }));
        // Version 1 has no other addresses than those of IPv4: then it says none.
        let octets = match own.to_canonical() {
            IpAddr::V4(own) => own.octets(),
            IpAddr::V6(_) => [0; 4],
        };
        Some(v1::Trap {
            enterprise: identifier(&self.enterprise)?,
            agent_addr: address(octets),
            generic_trap: self.generic.into(),
            specific_trap: self.specific.into(),
            time_stamp: TimeTicks(ticks),
            variable_bindings: bindings.collect::<Option<_>>()?,
        })
    }

    fn v2(self, ticks: u32) -> Option<v2::Trap> {
        let first = [
            (SYS_UP_TIME.to_vec(), Value::Ticks(ticks)),
            (TRAP_OID.to_vec(), Value::Name(self.name.as_slice().into())),
        ];
        let bindings = first.iter().chain(&self.bindings).map(|(name, value)| {
            Some(v2::VarBind { name: identifier(name)?, value: v2::VarBindValue::Value(value.v2()?) })
        });
        let variable_bindings = bindings.collect::<Option<_>>()?;
        // Nobody answers, so one number is as good as another; most agents count.
        let request_id = (ticks & i32::MAX as u32) as i32;
        Some(v2::Trap(v2::Pdu { request_id, error_status: 0, error_index: 0, variable_bindings }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_written_with_their_version() {
        for (text, version, address) in [
            ("10.0.0.1", TrapVersion::V2c, "10.0.0.1:162"),
            ("v1:10.0.0.1:1162", TrapVersion::V1, "10.0.0.1:1162"),
            ("v2c:[fd00::1]", TrapVersion::V2c, "[fd00::1]:162"),
            ("1162", TrapVersion::V2c, "127.0.0.1:1162"),
        ] {
            let target = text.parse::<TrapAddress>().unwrap().resolve().unwrap();
            assert_eq!(target, TrapTarget { version, address: address.parse().unwrap() }, "{text}");
        }
        for wrong in ["", "v3:10.0.0.1", "v1:", "10.0.0.1:99999"] {
            assert!(wrong.parse::<TrapAddress>().is_err(), "{wrong}");
        }
    }
}
