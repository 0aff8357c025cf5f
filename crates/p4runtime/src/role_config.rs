//! What a role may do when its primary brings a config: the scheme of Stratum, `stratum.P4RoleConfig` in `Role.config`.
//!
//! A config names the objects that a role may read and write, says which packet-ins it hears of and whether it may set the
//! program. A role without one may do everything; the default role has none. It lasts until the next primary of the role.

use millrace_p4runtime_api::stratum::P4RoleConfig;
use millrace_p4runtime_api::v1::{Entity, PacketIn, entity::Entity as Kind};
use prost::Message;
use prost_types::Any;
use std::collections::BTreeSet;
use tonic::Status;

/// Most objects in one config.
pub const MAX_ROLE_IDS: usize = 8192;
/// What the type URL ends with.
const TYPE: &str = "/stratum.P4RoleConfig";

/// A config that is in force, or is asked for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RoleConfig {
    exclusive: BTreeSet<u32>,
    shared: BTreeSet<u32>,
    message: P4RoleConfig,
}

impl RoleConfig {
    /// Reads a config; an error ends the stream.
    pub(crate) fn read(any: &Any) -> Result<RoleConfig, Status> {
        if !any.type_url.ends_with(TYPE) {
            return Err(Status::invalid_argument(format!(
                "no scheme of role configs is known but stratum.P4RoleConfig: `{}`",
                any.type_url.chars().take(100).collect::<String>()
            )));
        }
        let mut message = P4RoleConfig::decode(&*any.value)
            .map_err(|error| Status::invalid_argument(format!("the role config: {error}")))?;
        if message.exclusive_p4_ids.len() + message.shared_p4_ids.len() > MAX_ROLE_IDS {
            return Err(Status::invalid_argument(format!("a role config has at most {MAX_ROLE_IDS} ids")));
        }
        if let Some(filter) = &mut message.packet_in_filter {
            if !message.receives_packet_ins {
                return Err(Status::invalid_argument("a packet-in filter without packet-ins"));
            }
            if filter.value.is_empty() {
                return Err(Status::invalid_argument("the packet-in filter is empty"));
            }
            filter.value = filter.value.slice(zeros(&filter.value)..);
        }
        let exclusive = message.exclusive_p4_ids.iter().copied().collect();
        let shared = message.shared_p4_ids.iter().copied().collect();
        Ok(RoleConfig { exclusive, shared, message })
    }

    /// It as controllers get it, with what was read.
    pub(crate) fn to_any(&self) -> Any {
        Any { type_url: format!("type.googleapis.com{TYPE}"), value: self.message.encode_to_vec() }
    }

    /// An object that only one of two roles may have, and that both ask for.
    pub(crate) fn conflict(&self, other: &RoleConfig) -> Option<u32> {
        let taken = |own: &RoleConfig, by: &RoleConfig| {
            own.exclusive.iter().find(|id| by.exclusive.contains(id) || by.shared.contains(id)).copied()
        };
        taken(self, other).or_else(|| taken(other, self))
    }

    /// Whether the role may read and write an object.
    pub(crate) fn allows(&self, id: u32) -> bool {
        self.exclusive.contains(&id) || self.shared.contains(&id)
    }

    /// Whether the role may read an entity.
    pub(crate) fn shows(&self, entity: &Kind) -> bool {
        self.allows(object(entity)) || object(entity) == 0
    }

    /// Refuses a request that names an object of others. One that names none, as with a wildcard, is let pass.
    pub(crate) fn check<'a>(
        &self,
        role: &str,
        entities: impl Iterator<Item = &'a Entity>,
    ) -> Result<(), Status> {
        let mut named = entities.filter_map(|entity| entity.entity.as_ref()).map(object);
        match named.find(|id| *id != 0 && !self.allows(*id)) {
            None => Ok(()),
            Some(id) => Err(Status::permission_denied(format!(
                "role `{role}` may not read or write the object with id {id:#010x}"
            ))),
        }
    }

    /// Whether the role may set the program.
    pub(crate) fn sets_pipeline(&self) -> bool {
        self.message.can_push_pipeline
    }

    /// Whether the role hears of a packet-in.
    pub(crate) fn hears(&self, packet: &PacketIn) -> bool {
        let wanted = |filter: &millrace_p4runtime_api::stratum::p4_role_config::PacketFilter| {
            packet.metadata.iter().any(|field| {
                field.metadata_id == filter.metadata_id && field.value[zeros(&field.value)..] == filter.value
            })
        };
        self.message.receives_packet_ins && self.message.packet_in_filter.as_ref().is_none_or(wanted)
    }
}

/// How many zero bytes a number begins with that it does not need.
fn zeros(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| **byte == 0).count().min(bytes.len().saturating_sub(1))
}

/// The object of P4Info that an entity belongs to; 0 for none, or all.
fn object(entity: &Kind) -> u32 {
    let of_entry = |entry: &Option<millrace_p4runtime_api::v1::TableEntry>| {
        entry.as_ref().map_or(0, |entry| entry.table_id)
    };
    match entity {
        Kind::ExternEntry(entry) => entry.extern_id,
        Kind::TableEntry(entry) => entry.table_id,
        Kind::ActionProfileMember(member) => member.action_profile_id,
        Kind::ActionProfileGroup(group) => group.action_profile_id,
        Kind::MeterEntry(entry) => entry.meter_id,
        Kind::DirectMeterEntry(entry) => of_entry(&entry.table_entry),
        Kind::CounterEntry(entry) => entry.counter_id,
        Kind::DirectCounterEntry(entry) => of_entry(&entry.table_entry),
        Kind::PacketReplicationEngineEntry(_) => 0,
        Kind::ValueSetEntry(entry) => entry.value_set_id,
        Kind::RegisterEntry(entry) => entry.register_id,
        Kind::DigestEntry(entry) => entry.digest_id,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_p4runtime_api::stratum::p4_role_config::PacketFilter;
    use millrace_p4runtime_api::v1::PacketMetadata;

    fn config(exclusive: &[u32], shared: &[u32]) -> RoleConfig {
        let message = P4RoleConfig {
            exclusive_p4_ids: exclusive.to_vec(),
            shared_p4_ids: shared.to_vec(),
            ..P4RoleConfig::default()
        };
        RoleConfig::read(&any(&message)).unwrap()
    }

    fn any(message: &P4RoleConfig) -> Any {
        Any { type_url: format!("type.googleapis.com{TYPE}"), value: message.encode_to_vec() }
    }

    #[test]
    fn exclusive_objects_are_one_roles() {
        assert_eq!(config(&[1, 2], &[]).conflict(&config(&[3, 2], &[])), Some(2));
        assert_eq!(config(&[1], &[]).conflict(&config(&[], &[1])), Some(1));
        assert_eq!(config(&[], &[7]).conflict(&config(&[7], &[])), Some(7));
        assert_eq!(config(&[1], &[7]).conflict(&config(&[2], &[7])), None);
    }

    #[test]
    fn what_is_refused() {
        let refused =
            |message: &P4RoleConfig| RoleConfig::read(&any(message)).unwrap_err().message().to_owned();
        let filter = |value: &'static [u8]| Some(PacketFilter { metadata_id: 1, value: value.into() });
        let deaf = P4RoleConfig { packet_in_filter: filter(b"1"), ..P4RoleConfig::default() };
        assert_eq!(refused(&deaf), "a packet-in filter without packet-ins");
        let empty = P4RoleConfig {
            packet_in_filter: filter(b""),
            receives_packet_ins: true,
            ..P4RoleConfig::default()
        };
        assert_eq!(refused(&empty), "the packet-in filter is empty");
        let long = P4RoleConfig { shared_p4_ids: vec![1; MAX_ROLE_IDS + 1], ..P4RoleConfig::default() };
        assert_eq!(refused(&long), "a role config has at most 8192 ids");
        let other = Any { type_url: "type.googleapis.com/other.Config".into(), value: Vec::new() };
        assert!(RoleConfig::read(&other).is_err());
        let broken = Any { value: vec![0xff], ..any(&P4RoleConfig::default()) };
        assert!(RoleConfig::read(&broken).is_err());
    }

    #[test]
    fn numbers_are_compared_in_their_shortest_form() {
        let message = P4RoleConfig {
            packet_in_filter: Some(PacketFilter { metadata_id: 4, value: b"\0\0\xab"[..].into() }),
            receives_packet_ins: true,
            ..P4RoleConfig::default()
        };
        let config = RoleConfig::read(&any(&message)).unwrap();
        let packet = |metadata_id, value: &'static [u8]| PacketIn {
            metadata: vec![PacketMetadata { metadata_id, value: value.into() }],
            ..PacketIn::default()
        };
        assert!(config.hears(&packet(4, b"\xab")) && config.hears(&packet(4, b"\0\xab")));
        assert!(!config.hears(&packet(3, b"\xab")) && !config.hears(&packet(4, b"\xac")));
        let told = P4RoleConfig::decode(&*config.to_any().value).unwrap();
        assert_eq!(&*told.packet_in_filter.unwrap().value, b"\xab");
        assert_eq!(zeros(b"\0\0"), 1);
    }
}
