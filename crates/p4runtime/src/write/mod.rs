//! Writing: what the updates of a batch ask for, and having the switch do it.
//!
//! An update is understood in two steps. Decoding needs nothing but the program and happens on the server's thread, so
//! that nonsense never reaches the worker. What is left is an [`Op`], which is applied by the worker between two rounds,
//! where it meets entries, members and limits.

mod batch;
mod cells;
mod profile;
mod replication;
mod table;

use batch::{CHUNK, Change};

pub(crate) use cells::cells;

pub(crate) use replication::{effective_copies, port_bytes};
pub(crate) use table::meter_message;

use crate::catalog::Catalog;
use crate::proto::v1::write_request::Atomicity;
use crate::proto::v1::{Update, entity::Entity, packet_replication_engine_entry, update};
use crate::refusal::Refusal;
use millrace_switch::PortId;
use prost::bytes::Bytes;
use std::collections::BTreeSet;

/// What is known of the device's ports.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ports {
    pub(crate) known: BTreeSet<PortId>,
    pub(crate) cpu: Option<PortId>,
}

/// The number that P4Runtime has for the port of the CPU.
const SDN_PORT_CPU: u32 = 0xffff_fffd;

impl Ports {
    /// A port as controllers write it.
    pub(crate) fn read(&self, bytes: &[u8]) -> Result<PortId, Refusal> {
        let port =
            crate::value::unsigned(bytes, 32).map_err(|error| Refusal::invalid(error.message).of("port"))?;
        self.number(port.to_u64_saturating() as u32)
    }

    pub(crate) fn number(&self, port: u32) -> Result<PortId, Refusal> {
        match port {
            SDN_PORT_CPU => self.cpu.ok_or_else(|| Refusal::invalid("the device has no CPU port")),
            _ => Ok(port),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Insert,
    Modify,
    Delete,
}

/// An update that is understood.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Entry(Box<table::EntryOp>),
    Default(Box<table::DefaultOp>),
    DirectCounter(table::DirectOp<Option<millrace_state::CounterValue>>),
    DirectMeter(table::DirectOp<Option<millrace_state::MeterConfig>>),
    Member(profile::MemberOp),
    Group(profile::GroupOp),
    Counter(cells::CounterOp),
    Meter(cells::MeterOp),
    Register(cells::RegisterOp),
    ValueSet(cells::ValueSetOp),
    Digest(cells::DigestOp),
    Multicast(replication::MulticastOp),
    Clone(replication::CloneOp),
}

/// Understands updates.
pub(crate) struct Decoder<'a> {
    pub(crate) catalog: &'a Catalog,
    pub(crate) ports: &'a Ports,
    /// The role of the writer.
    pub(crate) role: &'a str,
}

impl Decoder<'_> {
    pub(crate) fn update(&self, update: Update) -> Result<Op, Refusal> {
        let kind = match update.r#type() {
            update::Type::Insert => Kind::Insert,
            update::Type::Modify => Kind::Modify,
            update::Type::Delete => Kind::Delete,
            update::Type::Unspecified => return Err(Refusal::invalid("the type of the update is missing")),
        };
        let entity = update.entity.and_then(|entity| entity.entity);
        match entity.ok_or_else(|| Refusal::invalid("the entity is missing"))? {
            Entity::TableEntry(entry) => self.table_entry(kind, entry),
            Entity::DirectCounterEntry(entry) => self.direct_counter(kind, entry),
            Entity::DirectMeterEntry(entry) => self.direct_meter(kind, entry),
            Entity::ActionProfileMember(member) => self.member(kind, member),
            Entity::ActionProfileGroup(group) => self.group(kind, group),
            Entity::CounterEntry(entry) => self.counter(kind, entry),
            Entity::MeterEntry(entry) => self.meter(kind, entry),
            Entity::RegisterEntry(entry) => self.register(kind, entry),
            Entity::ValueSetEntry(entry) => self.value_set(kind, entry),
            Entity::DigestEntry(entry) => self.digest(kind, entry),
            Entity::PacketReplicationEngineEntry(entry) => match entry.r#type {
                Some(packet_replication_engine_entry::Type::MulticastGroupEntry(entry)) => {
                    self.multicast(kind, entry)
                }
                Some(packet_replication_engine_entry::Type::CloneSessionEntry(entry)) => {
                    self.clone_session(kind, entry)
                }
                None => Err(Refusal::invalid("neither a multicast group nor a clone session")),
            },
            Entity::ExternEntry(entry) => Err(Refusal::not_found(format!(
                "no extern type {:#x}: the externs of the program have entities of their own",
                entry.extern_type_id
            ))),
        }
    }
}

/// Entities that can only be modified.
fn only_modify(kind: Kind, what: &str) -> Result<(), Refusal> {
    match kind {
        Kind::Modify => Ok(()),
        Kind::Insert | Kind::Delete => Err(Refusal::invalid(format!("{what} can only be modified"))),
    }
}

/// A byte string in a key or among parameters.
fn invalid(what: impl std::fmt::Display) -> impl FnOnce(Refusal) -> Refusal {
    move |refusal| match refusal.code {
        tonic::Code::OutOfRange => Refusal::invalid(refusal.message).of(what),
        _ => refusal.of(what),
    }
}

/// Numbers of protobuf that must not be negative.
fn natural(number: i64, what: &str) -> Result<u64, Refusal> {
    u64::try_from(number).map_err(|_| Refusal::invalid(format!("{what} is negative")))
}

/// Most bytes of metadata of one entry or group.
const MAX_METADATA: usize = 4096;

fn metadata(bytes: Bytes) -> Result<Bytes, Refusal> {
    if bytes.len() > MAX_METADATA {
        return Err(Refusal::invalid(format!("metadata has at most {MAX_METADATA} bytes")));
    }
    // The bytes share the memory of the whole request, which is not to be kept.
    Ok(Bytes::copy_from_slice(&bytes))
}

/// Writes a batch to a loaded program; gives what became of each update.
pub(crate) async fn write(
    loaded: &mut crate::forwarding::Loaded,
    ports: &Ports,
    role: &str,
    updates: Vec<Update>,
    atomicity: Atomicity,
) -> Result<Vec<Result<(), Refusal>>, tonic::Status> {
    let catalog = std::sync::Arc::clone(&loaded.catalog);
    let decoder = Decoder { catalog: &catalog, ports, role };
    let mut results: Vec<Result<(), Refusal>> = Vec::with_capacity(updates.len());
    let mut change = Change::new(std::mem::take(&mut loaded.shadow), atomicity != Atomicity::ContinueOnError);
    // What must be seen at once is applied at once.
    let chunk = if atomicity == Atomicity::DataplaneAtomic { usize::MAX } else { CHUNK };
    let count = updates.len();
    let mut updates = updates.into_iter().peekable();
    let mut failed = false;
    while updates.peek().is_some() && !failed {
        let ops: Vec<Result<Op, Refusal>> =
            updates.by_ref().take(chunk).map(|update| decoder.update(update)).collect();
        let stops = atomicity != Atomicity::ContinueOnError;
        let (applied, back) = loaded
            .target
            .call(move |switch| {
                let mut applied = Vec::with_capacity(ops.len());
                for op in ops {
                    let result = op.and_then(|op| change.apply(switch, op));
                    let failed = result.is_err();
                    applied.push(result);
                    if failed && stops {
                        change.roll_back(switch);
                        break;
                    }
                }
                (applied, change)
            })
            .await?;
        change = back;
        results.extend(applied);
        failed = stops && results.iter().any(Result::is_err);
    }
    if failed {
        let aborted =
            || Refusal::new(tonic::Code::Aborted, "not done, as another update of the batch failed");
        for result in results.iter_mut().filter(|result| result.is_ok()) {
            *result = Err(aborted());
        }
        results.resize_with(count, || Err(aborted()));
    } else if atomicity != Atomicity::ContinueOnError {
        change = loaded
            .target
            .call(move |switch| {
                change.commit(switch);
                change
            })
            .await?;
    }
    loaded.shadow = change.shadow;
    Ok(results)
}
