//! Writing: what the updates of a batch ask for, and having the switch do it.
//!
//! An update is understood in two steps. Decoding needs nothing but the program and happens on the server's thread, so
//! that nonsense never reaches the worker. The result is an [`Op`]. Tables are written by the server's thread, while packets
//! go on; objects of the worker, multicast groups and clone sessions by the worker, which is asked ([`millrace_dataplane::Request`]).
//! A batch that packets must see as a whole is written while the worker takes none ([`millrace_dataplane::Pause`]).

mod actions;
mod batch;
mod cells;
mod direct;
mod matches;
mod one_shot;
mod profile;
mod replication;
mod table;
mod texts;

use batch::{CHUNK, Change, Destination};

pub(crate) use cells::{cells, meter_message};
pub(crate) use direct::Direct;
pub(crate) use replication::{effective_copies, port_bytes};

use crate::catalog::Catalog;
use crate::forwarding::Loaded;
use crate::refusal::Refusal;
use millrace_dataplane::{PortId, Request};
use millrace_p4runtime_api::v1::write_request::Atomicity;
use millrace_p4runtime_api::v1::{Update, entity::Entity, packet_replication_engine_entry, update};
use millrace_state::ObjectWrite;
use prost::bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

/// What is known of the device's ports. Copies are of the same device.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ports {
    known: Arc<RwLock<BTreeSet<PortId>>>,
    cpu: Option<PortId>,
}

/// The number that P4Runtime has for the port of the CPU.
const SDN_PORT_CPU: u32 = 0xffff_fffd;

impl Ports {
    pub(crate) fn new(known: BTreeSet<PortId>, cpu: Option<PortId>) -> Ports {
        Ports { known: Arc::new(RwLock::new(known)), cpu }
    }

    /// Whether the device has a port.
    pub(crate) fn has(&self, port: PortId) -> bool {
        self.known.read().unwrap_or_else(PoisonError::into_inner).contains(&port)
    }

    /// A port came or went.
    pub(crate) fn set(&self, port: PortId, is_there: bool) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        match is_there {
            true => known.insert(port),
            false => known.remove(&port),
        };
    }

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

/// An update that is understood, by who does it.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// To tables, by this thread.
    Tables(TablesOp),
    /// To objects of the worker.
    Objects(Vec<ObjectWrite>),
    /// To multicast groups and clone sessions.
    Replication(replication::ReplicationOp),
}

/// An update to tables and all that is written as they are.
#[derive(Clone, Debug)]
pub(crate) enum TablesOp {
    Entry(Box<table::EntryOp>),
    Default(Box<table::DefaultOp>),
    DirectCounter(direct::DirectOp<Option<millrace_state::CounterValue>>),
    DirectMeter(direct::DirectOp<direct::MeterWrite>),
    Member(profile::MemberOp),
    Group(profile::GroupOp),
    Counter(cells::CounterOp),
    Digest(cells::DigestOp),
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

/// Whether an update starts a timer.
fn needs_time(catalog: &Catalog, update: &Update) -> bool {
    match update.entity.as_ref().and_then(|entity| entity.entity.as_ref()) {
        Some(Entity::TableEntry(entry)) => {
            catalog.tables.get(entry.table_id).is_ok_and(|table| table.idle_timeout)
        }
        _ => false,
    }
}

/// Understands updates. Where there are no numbers left for texts, those that nothing has are freed, if they may be: all entries are looked at
/// for that, so it is done once.
async fn decode(
    decoder: &Decoder<'_>,
    loaded: &Loaded,
    updates: Vec<Update>,
    may_free: &mut bool,
) -> Result<Vec<Result<Op, Refusal>>, tonic::Status> {
    let Some(refused) = decoder.catalog.refused_texts().filter(|_| *may_free) else {
        return Ok(updates.into_iter().map(|update| decoder.update(update)).collect());
    };
    let ops = updates.iter().cloned().map(|update| decoder.update(update)).collect();
    if decoder.catalog.refused_texts() == Some(refused) {
        return Ok(ops);
    }
    *may_free = false;
    texts::free(decoder.catalog, loaded).await?;
    Ok(updates.into_iter().map(|update| decoder.update(update)).collect())
}

/// Writes a batch to a loaded program; gives what became of each update.
pub(crate) async fn write(
    loaded: &mut Loaded,
    ports: &Ports,
    role: &str,
    updates: Vec<Update>,
    atomicity: Atomicity,
) -> Result<Vec<Result<(), Refusal>>, tonic::Status> {
    let catalog = Arc::clone(&loaded.catalog);
    let decoder = Decoder { catalog: &catalog, ports, role };
    let stops = atomicity != Atomicity::ContinueOnError;
    let mut to = Destination {
        target: &loaded.target,
        program: Arc::clone(&catalog.program),
        tables: loaded.target.tables().await?,
        now_ns: 0,
    };
    if updates.iter().any(|update| needs_time(&catalog, update)) {
        to.now_ns = to.target.now_ns().await?;
    }
    let _pause = match atomicity {
        Atomicity::DataplaneAtomic => Some(to.target.ask(Request::Pause).await?),
        _ => None,
    };
    let count = updates.len();
    let mut results: Vec<Result<(), Refusal>> = Vec::with_capacity(count);
    let mut updates = updates.into_iter().peekable();
    let mut change = Change::new(std::mem::take(&mut loaded.shadow), stops);
    let (mut failed, mut may_free) = (None, true);
    while updates.peek().is_some() && failed.is_none() {
        let part = updates.by_ref().take(CHUNK).collect();
        // What was done may come back, with its texts.
        may_free &= results.is_empty() || !stops;
        let ops = decode(&decoder, loaded, part, &mut may_free).await?;
        results.extend(change.apply(&to, ops).await?);
        failed = results.iter().position(Result::is_err).filter(|_| stops);
    }
    if let Some(failed) = failed {
        change.roll_back(&to).await?;
        let aborted =
            || Refusal::new(tonic::Code::Aborted, "not done, as another update of the batch failed");
        let reason = results.swap_remove(failed);
        results.clear();
        results.resize_with(count, || Err(aborted()));
        results[failed] = reason;
    } else if stops {
        change.commit(&mut to.tables.lock());
    }
    loaded.shadow = change.shadow;
    Ok(results)
}
