//! Reading: entities with wildcards, in messages of bounded size.
//!
//! Large objects are looked at bit by bit, so that the worker is never kept for long, and the answer goes to the client
//! as it takes it ([`queue`]).

mod cells;
mod profile;
mod queue;
mod replication;
mod table;

pub use queue::{Answers, MAX_READ_BACKLOG, STALL, TAKING_TIME};
pub(crate) use queue::{Full, Queue, queue};
pub(crate) use table::{call_message, check_default, match_messages, program_entry};

use crate::forwarding::{Loaded, Lock};
use crate::refusal::Refusal;
use crate::role_config::RoleConfig;
use crate::write::Ports;
use millrace_p4runtime_api::v1::{Entity, ReadResponse, entity, packet_replication_engine_entry};
use std::time::{Duration, Instant};
use tonic::Status;

/// Most entities in one message.
pub(crate) const MAX_ENTITIES: usize = 256;
/// How long an answer may be made while others wait for the lock.
pub const MAKING_TIME: Duration = Duration::from_secs(10);

/// Why a read goes no further.
pub(crate) enum Stop {
    /// This request is wrong; the others go on.
    Refused(Refusal),
    /// The whole read is over.
    Ended(Status),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Stop {
        Stop::Refused(refusal)
    }
}

impl From<Status> for Stop {
    fn from(status: Status) -> Stop {
        Stop::Ended(status)
    }
}

impl From<Full> for Stop {
    fn from(full: Full) -> Stop {
        Stop::Ended(match full {
            Full::Left => Status::cancelled("the client has gone"),
            Full::Slow(status) => status,
        })
    }
}

/// One read.
pub(crate) struct Reader<'a> {
    pub(crate) loaded: &'a Loaded,
    pub(crate) ports: &'a Ports,
    pub(crate) role: &'a str,
    /// What the role may do; none: everything.
    pub(crate) config: Option<&'a RoleConfig>,
    pub(crate) out: &'a Queue,
    /// What the answer is made under.
    pub(crate) lock: &'a Lock,
    /// Until when it may be made while others wait for the lock.
    pub(crate) until: Instant,
}

impl Reader<'_> {
    /// Answers one request.
    pub(crate) async fn entity(&self, request: Entity) -> Result<(), Stop> {
        use entity::Entity as Kind;
        // Also one that sends nothing takes time.
        self.pause().await?;
        let Some(request) = request.entity else {
            return Err(Refusal::invalid("the entity is missing: there is no reading of everything").into());
        };
        match request {
            Kind::TableEntry(entry) => self.table_entries(entry).await,
            Kind::DirectCounterEntry(entry) => self.direct_counters(entry).await,
            Kind::DirectMeterEntry(entry) => self.direct_meters(entry).await,
            Kind::ActionProfileMember(member) => self.members(member).await,
            Kind::ActionProfileGroup(group) => self.groups(group).await,
            Kind::CounterEntry(entry) => self.counters(entry).await,
            Kind::MeterEntry(entry) => self.meters(entry).await,
            Kind::RegisterEntry(entry) => self.registers(entry).await,
            Kind::ValueSetEntry(entry) => self.value_sets(entry).await,
            Kind::DigestEntry(entry) => self.digests(entry).await,
            Kind::PacketReplicationEngineEntry(entry) => match entry.r#type {
                Some(packet_replication_engine_entry::Type::MulticastGroupEntry(entry)) => {
                    self.multicast_groups(entry).await
                }
                Some(packet_replication_engine_entry::Type::CloneSessionEntry(entry)) => {
                    self.clone_sessions(entry).await
                }
                None => Err(Refusal::invalid("neither a multicast group nor a clone session").into()),
            },
            // There are no externs but those with entities of their own.
            Kind::ExternEntry(entry) if entry.extern_type_id == 0 => Ok(()),
            Kind::ExternEntry(entry) => {
                Err(Refusal::not_found(format!("no extern type {:#x}", entry.extern_type_id)).into())
            }
        }
    }

    /// Sends to the client what is wanted of a part of an object. A part of which nothing is wanted takes time as well.
    async fn send(&self, mut entities: Vec<entity::Entity>) -> Result<(), Stop> {
        if let Some(config) = self.config {
            entities.retain(|entity| config.shows(entity));
        }
        if !entities.is_empty() {
            let entities = entities.into_iter().map(|entity| Entity { entity: Some(entity) }).collect();
            self.out.send(ReadResponse { entities }, self.lock).await?;
        }
        self.pause().await
    }

    /// Lets others be served, and ends the read where nobody is there to take its answer, or others have waited for its end for too long.
    async fn pause(&self) -> Result<(), Stop> {
        tokio::task::yield_now().await;
        if self.out.is_left() {
            return Err(Full::Left.into());
        }
        match Instant::now() >= self.until && self.lock.is_wanted() {
            true => Err(Stop::Ended(Status::aborted(format!(
                "the answer has taken {} seconds until now, and others wait for its end: read in parts",
                MAKING_TIME.as_secs()
            )))),
            false => Ok(()),
        }
    }
}
