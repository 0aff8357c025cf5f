//! A P4Runtime device without a network, and requests made of arbitrary bytes.
//!
//! Some requests are whatever messages the bytes decode to. Others are put together so that they get further: with the ids
//! of the program's objects, keys of about the right size, and now and then something wrong.

#![allow(deprecated, reason = "older controllers use it still")]

use arbitrary::{Result, Unstructured};
use bytes::Bytes;
use http_body::Frame;
use http_body_util::StreamBody;
use millrace_chassis::{Listener, Making, Pipeline};
use millrace_dataplane::{Control, EngineKind, Summary, Switch, SwitchConfig, Worker};
use millrace_describe::image::Image;
use millrace_p4runtime::{CpuLink, DeviceConfig, Feed, Service, cpu_port, service};
use millrace_p4runtime_api::v1::p4_runtime_server::P4Runtime;
use millrace_p4runtime_api::v1::*;
use prost::Message;
use std::cell::Cell;
use std::convert::Infallible;
use std::sync::{Arc, LazyLock};
use std::thread::JoinHandle;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Status, Streaming};

const DEVICE: u64 = 1;
const CPU_PORT: u32 = 510;
/// Most requests of one input.
const MAX_REQUESTS: usize = 12;
/// The program with an object of every kind.
const SOURCE: &str = include_str!("../../crates/p4runtime/tests/programs/all.p4");

static IMAGE: LazyLock<Image> = LazyLock::new(|| {
    let parsed = millrace_syntax::parse_text("all.p4", SOURCE, &millrace_syntax::Options::default());
    let checked = millrace_sema::check(&parsed.program);
    let program = millrace_lower::lower(&checked.program, "all").expect("the program lowers");
    Image::new(Arc::new(program), millrace_describe::p4info::describe(&checked.program))
});

static PIPELINE: LazyLock<Pipeline> =
    LazyLock::new(|| Pipeline::new(IMAGE.clone(), SOURCE.as_bytes().to_vec()).expect("a description"));

/// The ids of the program's objects, as P4Info has them.
static IDS: LazyLock<Vec<u32>> = LazyLock::new(|| {
    let text = millrace_describe::p4info::to_text(&IMAGE.p4info);
    let ids = text.lines().filter_map(|line| line.trim().strip_prefix("id: "));
    ids.filter_map(|id| id.parse().ok()).filter(|id| *id > 0xffff).collect()
});

/// A request of a controller.
#[derive(Debug)]
pub enum Asked {
    /// Entities are written.
    Write(WriteRequest),
    /// Entities are read.
    Read(ReadRequest),
    /// A program is set.
    Set(SetForwardingPipelineConfigRequest),
    /// The stream says something.
    Say(StreamMessageRequest),
    /// A frame comes in.
    Frame(Vec<u8>),
    /// A link comes up or goes down.
    Link(u32, bool),
}

/// Requests made of bytes, as many as there are bytes for.
pub fn requests(input: &mut Unstructured<'_>) -> Vec<Asked> {
    let mut requests = Vec::new();
    while requests.len() < MAX_REQUESTS && !input.is_empty() {
        match request(input) {
            Ok(request) => requests.push(request),
            Err(_) => break,
        }
    }
    requests
}

fn request(u: &mut Unstructured<'_>) -> Result<Asked> {
    Ok(match u.int_in_range(0..=16u8)? {
        0..=7 => Asked::Write(WriteRequest {
            device_id: DEVICE,
            role: role(u)?,
            election_id: Some(ELECTION),
            updates: list(u, 6, |u| {
                Ok(Update { r#type: u.int_in_range(0..=4)?, entity: Some(Entity { entity: entity(u)? }) })
            })?,
            atomicity: u.int_in_range(0..=3)?,
            ..WriteRequest::default()
        }),
        8 => Asked::Read(ReadRequest {
            device_id: DEVICE,
            role: role(u)?,
            entities: list(u, 4, |u| Ok(Entity { entity: entity(u)? }))?,
        }),
        9 => Asked::Set(SetForwardingPipelineConfigRequest {
            device_id: DEVICE,
            election_id: Some(ELECTION),
            action: u.int_in_range(0..=6)?,
            config: match u.int_in_range(0..=3u8)? {
                0 => None,
                1 => Some(ForwardingPipelineConfig { p4_device_config: value(u)?, ..Default::default() }),
                _ => Some(ForwardingPipelineConfig {
                    p4_device_config: SOURCE.as_bytes().to_vec().into(),
                    ..Default::default()
                }),
            },
            ..SetForwardingPipelineConfigRequest::default()
        }),
        10 => {
            let metadata = list(u, 3, |u| Ok(PacketMetadata { metadata_id: small(u)?, value: value(u)? }))?;
            let packet = PacketOut { payload: u.arbitrary::<Vec<u8>>()?.into(), metadata };
            say(stream_message_request::Update::Packet(packet))
        }
        11 => say(stream_message_request::Update::DigestAck(DigestListAck {
            digest_id: id(u)?,
            list_id: u.arbitrary()?,
        })),
        12 => say(stream_message_request::Update::Arbitration(MasterArbitrationUpdate {
            device_id: DEVICE,
            role: u.ratio(1, 2)?.then(|| Role { name: "r".to_owned(), ..Role::default() }),
            election_id: u.ratio(1, 2)?.then_some(ELECTION),
            status: None,
        })),
        13 => {
            let mut frame = vec![0; 60];
            frame[12] = 8;
            frame[14] = 0x45;
            u.fill_buffer(&mut frame[26..34])?;
            Asked::Frame(frame)
        }
        14 => Asked::Link(u.int_in_range(0..=3)?, u.arbitrary()?),
        // Whatever the bytes are.
        _ => {
            let bytes: Vec<u8> = u.arbitrary()?;
            match u.int_in_range(0..=3u8)? {
                0 => Asked::Write(WriteRequest {
                    device_id: DEVICE,
                    election_id: Some(ELECTION),
                    ..decode(&bytes)?
                }),
                1 => Asked::Read(ReadRequest { device_id: DEVICE, ..decode(&bytes)? }),
                2 => Asked::Set(decode(&bytes)?),
                _ => Asked::Say(decode(&bytes)?),
            }
        }
    })
}

fn decode<M: Message + Default>(bytes: &[u8]) -> Result<M> {
    M::decode(bytes).map_err(|_| arbitrary::Error::IncorrectFormat)
}

fn say(update: stream_message_request::Update) -> Asked {
    Asked::Say(StreamMessageRequest { update: Some(update) })
}

fn list<T>(
    u: &mut Unstructured<'_>,
    most: usize,
    mut item: impl FnMut(&mut Unstructured<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let count = u.int_in_range(0..=most)?;
    (0..count).map(|_| item(u)).collect()
}

fn role(u: &mut Unstructured<'_>) -> Result<String> {
    Ok(if u.ratio(1, 16)? { u.arbitrary()? } else { String::new() })
}

/// An id of the program, mostly.
fn id(u: &mut Unstructured<'_>) -> Result<u32> {
    match u.int_in_range(0..=15u8)? {
        0 => u.arbitrary(),
        1 => Ok(0),
        _ => u.choose(&IDS).copied(),
    }
}

/// The id of a field, a member, a group.
fn small(u: &mut Unstructured<'_>) -> Result<u32> {
    if u.ratio(1, 32)? { u.arbitrary() } else { u.int_in_range(0..=5) }
}

/// A byte string of about the size that keys and parameters have.
fn value(u: &mut Unstructured<'_>) -> Result<Bytes> {
    let length = *u.choose(&[1usize, 1, 2, 4, 4, 6, 0, 9])?;
    Ok(u.bytes(length.min(u.len()))?.to_vec().into())
}

fn action(u: &mut Unstructured<'_>) -> Result<Action> {
    let params = list(u, 2, |u| Ok(action::Param { param_id: small(u)?, value: value(u)? }))?;
    Ok(Action { action_id: id(u)?, params })
}

fn watch(u: &mut Unstructured<'_>) -> Result<(i32, i32)> {
    Ok((u.int_in_range(-1..=3)?, if u.ratio(1, 16)? { u.arbitrary()? } else { u.int_in_range(0..=3)? }))
}

fn field(u: &mut Unstructured<'_>) -> Result<FieldMatch> {
    use field_match::*;
    let one = match u.int_in_range(0..=4u8)? {
        0 => FieldMatchType::Exact(Exact { value: value(u)? }),
        1 => FieldMatchType::Lpm(Lpm { value: value(u)?, prefix_len: u.int_in_range(-1..=33)? }),
        2 => FieldMatchType::Ternary(Ternary { value: value(u)?, mask: value(u)? }),
        3 => FieldMatchType::Range(Range { low: value(u)?, high: value(u)? }),
        _ => FieldMatchType::Optional(Optional { value: value(u)? }),
    };
    Ok(FieldMatch { field_id: small(u)?, field_match_type: Some(one) })
}

fn counter(u: &mut Unstructured<'_>) -> Result<Option<CounterData>> {
    Ok(u.ratio(1, 3)?.then_some(CounterData { byte_count: u.arbitrary()?, packet_count: u.arbitrary()? }))
}

fn meter(u: &mut Unstructured<'_>) -> Result<Option<MeterConfig>> {
    let mut number = || if u.ratio(1, 8)? { u.arbitrary() } else { u.int_in_range(0..=1000) };
    let (cir, cburst, pir, pburst) = (number()?, number()?, number()?, number()?);
    let config = MeterConfig { cir, cburst, pir, pburst, ..MeterConfig::default() };
    Ok(u.ratio(1, 3)?.then_some(config))
}

fn colors(u: &mut Unstructured<'_>) -> Result<Option<MeterCounterData>> {
    Ok(match u.int_in_range(0..=7u8)? {
        0 => Some(MeterCounterData { green: counter(u)?, yellow: counter(u)?, red: counter(u)? }),
        1 => Some(MeterCounterData::default()),
        _ => None,
    })
}

fn index(u: &mut Unstructured<'_>) -> Result<Option<Index>> {
    let index = if u.ratio(1, 8)? { u.arbitrary()? } else { u.int_in_range(0..=17)? };
    Ok(u.ratio(7, 8)?.then_some(Index { index }))
}

fn table_entry(u: &mut Unstructured<'_>) -> Result<TableEntry> {
    let target = match u.int_in_range(0..=7u8)? {
        0 => None,
        1 | 2 => Some(table_action::Type::ActionProfileMemberId(small(u)?)),
        3 => Some(table_action::Type::ActionProfileGroupId(small(u)?)),
        4 => Some(table_action::Type::ActionProfileActionSet(ActionProfileActionSet {
            action_profile_actions: list(u, 3, |u| {
                let (weight, port) = watch(u)?;
                let watch_kind = match u.int_in_range(0..=2u8)? {
                    0 => None,
                    1 => Some(action_profile_action::WatchKind::Watch(port)),
                    _ => Some(action_profile_action::WatchKind::WatchPort(value(u)?)),
                };
                Ok(ActionProfileAction { action: Some(action(u)?), weight, watch_kind })
            })?,
            action_selection_mode: u.int_in_range(0..=3)?,
            size_semantics: u.int_in_range(0..=3)?,
        })),
        _ => Some(table_action::Type::Action(action(u)?)),
    };
    Ok(TableEntry {
        table_id: id(u)?,
        r#match: list(u, 3, field)?,
        action: target.map(|target| TableAction { r#type: Some(target) }),
        priority: if u.ratio(1, 8)? { u.arbitrary()? } else { u.int_in_range(0..=3)? },
        is_default_action: u.ratio(1, 8)?,
        counter_data: counter(u)?,
        meter_config: meter(u)?,
        meter_counter_data: colors(u)?,
        metadata: if u.ratio(1, 8)? { value(u)? } else { Bytes::new() },
        idle_timeout_ns: if u.ratio(1, 8)? { u.arbitrary()? } else { 0 },
        ..TableEntry::default()
    })
}

fn replicas(u: &mut Unstructured<'_>) -> Result<Vec<Replica>> {
    list(u, 3, |u| {
        let port_kind = match u.int_in_range(0..=2u8)? {
            0 => None,
            1 => Some(replica::PortKind::EgressPort(small(u)?)),
            _ => Some(replica::PortKind::Port(value(u)?)),
        };
        let backup_replicas = list(u, 2, |u| Ok(BackupReplica { port: value(u)?, instance: small(u)? }))?;
        Ok(Replica { instance: small(u)?, port_kind, backup_replicas })
    })
}

fn entity(u: &mut Unstructured<'_>) -> Result<Option<entity::Entity>> {
    use entity::Entity::*;
    use packet_replication_engine_entry::Type;
    let replicate = |of| PacketReplicationEngineEntry(v1_entry(of));
    Ok(Some(match u.int_in_range(0..=20u8)? {
        0 => return Ok(None),
        1 => ActionProfileMember(millrace_p4runtime_api::v1::ActionProfileMember {
            action_profile_id: id(u)?,
            member_id: small(u)?,
            action: u.ratio(7, 8)?.then_some(action(u)?),
        }),
        2 | 3 => ActionProfileGroup(millrace_p4runtime_api::v1::ActionProfileGroup {
            action_profile_id: id(u)?,
            group_id: small(u)?,
            max_size: u.int_in_range(-1..=4)?,
            members: list(u, 3, |u| {
                let (weight, port) = watch(u)?;
                let watch_kind = match u.int_in_range(0..=2u8)? {
                    0 => None,
                    1 => Some(action_profile_group::member::WatchKind::Watch(port)),
                    _ => Some(action_profile_group::member::WatchKind::WatchPort(value(u)?)),
                };
                Ok(action_profile_group::Member { member_id: small(u)?, weight, watch_kind })
            })?,
        }),
        4 => MeterEntry(millrace_p4runtime_api::v1::MeterEntry {
            meter_id: id(u)?,
            index: index(u)?,
            config: meter(u)?,
            counter_data: colors(u)?,
        }),
        5 => DirectMeterEntry(millrace_p4runtime_api::v1::DirectMeterEntry {
            table_entry: u.ratio(7, 8)?.then_some(table_entry(u)?),
            config: meter(u)?,
            counter_data: colors(u)?,
        }),
        6 => CounterEntry(millrace_p4runtime_api::v1::CounterEntry {
            counter_id: id(u)?,
            index: index(u)?,
            data: counter(u)?,
        }),
        7 => DirectCounterEntry(millrace_p4runtime_api::v1::DirectCounterEntry {
            table_entry: u.ratio(7, 8)?.then_some(table_entry(u)?),
            data: counter(u)?,
        }),
        8 | 9 => replicate(Type::MulticastGroupEntry(MulticastGroupEntry {
            multicast_group_id: small(u)?,
            replicas: replicas(u)?,
            metadata: if u.ratio(1, 4)? { value(u)? } else { Bytes::new() },
        })),
        10 => replicate(Type::CloneSessionEntry(CloneSessionEntry {
            session_id: small(u)?,
            replicas: replicas(u)?,
            class_of_service: small(u)?,
            packet_length_bytes: u.int_in_range(-1..=64)?,
            ..Default::default()
        })),
        11 => RegisterEntry(millrace_p4runtime_api::v1::RegisterEntry {
            register_id: id(u)?,
            index: index(u)?,
            data: u.ratio(7, 8)?.then_some(P4Data { data: Some(p4_data::Data::Bitstring(value(u)?)) }),
        }),
        12 => ValueSetEntry(millrace_p4runtime_api::v1::ValueSetEntry {
            value_set_id: id(u)?,
            members: list(u, 3, |u| Ok(ValueSetMember { r#match: list(u, 2, field)? }))?,
        }),
        13 => DigestEntry(millrace_p4runtime_api::v1::DigestEntry {
            digest_id: id(u)?,
            config: u.ratio(7, 8)?.then_some(digest_entry::Config {
                max_timeout_ns: u.arbitrary()?,
                max_list_size: u.int_in_range(-1..=4)?,
                ack_timeout_ns: u.arbitrary()?,
            }),
        }),
        14 => {
            ExternEntry(millrace_p4runtime_api::v1::ExternEntry { extern_id: id(u)?, ..Default::default() })
        }
        _ => TableEntry(table_entry(u)?),
    }))
}

fn v1_entry(of: packet_replication_engine_entry::Type) -> PacketReplicationEngineEntry {
    PacketReplicationEngineEntry { r#type: Some(of) }
}

const ELECTION: Uint128 = Uint128 { high: 0, low: 1 };

/// A device with a client that is the primary.
pub struct Device {
    runtime: tokio::runtime::Runtime,
    service: Service,
    feed: Feed,
    control: Control,
    worker: Option<JoinHandle<Summary>>,
    port: CpuLink,
    say: mpsc::Sender<StreamMessageRequest>,
    /// Whether packets may be under way, which write to registers.
    packets: Cell<bool>,
}

impl Device {
    /// A new one, that runs the program.
    pub fn start() -> Device {
        let config = SwitchConfig { engine: EngineKind::Interp, ..SwitchConfig::default() };
        let switch = Switch::new(Arc::clone(&PIPELINE.program), config).expect("the program runs");
        let (port, link) = cpu_port().expect("a port");
        let (cpu, cpu_link) = cpu_port().expect("a port");
        let worker = Worker::new(switch, vec![(1, Box::new(port)), (CPU_PORT, Box::new(cpu))]);
        let worker = worker.expect("a worker");
        let control = worker.control();
        let device = DeviceConfig {
            device_id: DEVICE,
            making: Making { engine: EngineKind::Interp, ..Making::default() },
            ports: [1, CPU_PORT].into(),
            links: Default::default(),
            cpu_port: Some((CPU_PORT, cpu_link)),
            pipeline: Some(PIPELINE.clone()),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let of_service = control.clone();
        let (service, feed) = runtime.block_on(async { service(device, of_service) }).expect("a service");
        let (say, said) = mpsc::channel::<StreamMessageRequest>(64);
        let worker = Some(std::thread::spawn(move || worker.run()));
        let device =
            Device { runtime, service, feed, control, worker, port: link, say, packets: Cell::new(false) };
        device.open(said);
        device
    }

    /// Opens the stream, and becomes the primary.
    fn open(&self, said: mpsc::Receiver<StreamMessageRequest>) {
        let frames = ReceiverStream::new(said).map(|message| {
            let message = message.encode_to_vec();
            let mut framed = vec![0];
            framed.extend_from_slice(&(message.len() as u32).to_be_bytes());
            framed.extend(message);
            std::result::Result::<_, Infallible>::Ok(Frame::data(Bytes::from(framed)))
        });
        let decoder = tonic_prost::ProstDecoder::<StreamMessageRequest>::default();
        let stream = Streaming::new_request(decoder, StreamBody::new(frames), None, None);
        self.runtime.block_on(async {
            let answers = self.service.stream_channel(Request::new(stream)).await.expect("a stream");
            let arbitration = MasterArbitrationUpdate {
                device_id: DEVICE,
                election_id: Some(ELECTION),
                ..MasterArbitrationUpdate::default()
            };
            let update = Some(stream_message_request::Update::Arbitration(arbitration));
            self.say.send(StreamMessageRequest { update }).await.expect("a stream");
            let mut answers = answers.into_inner();
            answers.next().await.expect("an answer").expect("an arbitration");
            // Somebody listens until the end.
            tokio::spawn(async move { while answers.next().await.is_some() {} });
        });
    }

    /// Asks, and looks at the answer.
    pub fn ask(&self, request: Asked) {
        if let Asked::Link(port, is_up) = request {
            return self.feed.link(port, is_up);
        }
        self.packets.set(self.packets.get() || matches!(request, Asked::Frame(_) | Asked::Say(_)));
        self.runtime.block_on(async {
            match request {
                Asked::Write(write) => self.write(write).await,
                Asked::Read(read) => drop(self.read(read).await),
                Asked::Set(set) => {
                    check(self.service.set_forwarding_pipeline_config(Request::new(set)).await.err());
                }
                Asked::Say(message) => {
                    // A stream that was ended for what it said takes no more.
                    let _ = self.say.send(message).await;
                    tokio::task::yield_now().await;
                }
                Asked::Frame(frame) => drop(self.port.send(frame)),
                // Told of above: this waits for room.
                Asked::Link(..) => {}
            }
        });
    }

    async fn write(&self, write: WriteRequest) {
        let is_whole = write.atomicity != write_request::Atomicity::ContinueOnError as i32;
        let before = if is_whole { self.all().await } else { Vec::new() };
        let written = self.service.write(Request::new(write)).await;
        if is_whole && written.is_err() {
            assert_eq!(before, self.all().await, "a refused batch changed something");
        }
        check(written.err());
    }

    /// Reads all that there is, sorted.
    async fn all(&self) -> Vec<Vec<u8>> {
        use entity::Entity::*;
        use millrace_p4runtime_api::v1 as p4;
        let replication = |of| PacketReplicationEngineEntry(v1_entry(of));
        let multicast = packet_replication_engine_entry::Type::MulticastGroupEntry(Default::default());
        let clones = packet_replication_engine_entry::Type::CloneSessionEntry(Default::default());
        let all = [
            TableEntry(p4::TableEntry { meter_config: Some(Default::default()), ..Default::default() }),
            TableEntry(p4::TableEntry { is_default_action: true, ..Default::default() }),
            ActionProfileMember(Default::default()),
            ActionProfileGroup(Default::default()),
            MeterEntry(Default::default()),
            RegisterEntry(Default::default()),
            replication(multicast),
            replication(clones),
            ValueSetEntry(Default::default()),
            DigestEntry(Default::default()),
        ];
        let mut found = Vec::new();
        let is_still = |entity: &entity::Entity| !matches!(entity, RegisterEntry(_)) || !self.packets.get();
        for entity in all.into_iter().filter(is_still) {
            let request = ReadRequest {
                device_id: DEVICE,
                entities: vec![Entity { entity: Some(entity) }],
                ..ReadRequest::default()
            };
            match self.read(request).await {
                Ok(entities) => found.extend(entities.iter().map(Message::encode_to_vec)),
                // As without a program.
                Err(status) => found.push(status.message().as_bytes().to_vec()),
            }
        }
        found.sort();
        found
    }

    async fn read(&self, read: ReadRequest) -> std::result::Result<Vec<Entity>, Status> {
        let answers =
            self.service.read(Request::new(read)).await.inspect_err(|status| check(Some(status.clone())));
        let mut answers = answers?.into_inner();
        let mut entities = Vec::new();
        while let Some(answer) = answers.next().await {
            entities.extend(answer.inspect_err(|status| check(Some(status.clone())))?.entities);
        }
        Ok(entities)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.control.stop();
        if let Some(worker) = self.worker.take() {
            worker.join().expect("the worker does not panic");
        }
    }
}

/// No request makes the server fail.
fn check(status: Option<Status>) {
    if let Some(status) = status {
        assert!(!matches!(status.code(), Code::Internal | Code::Unavailable), "{status:?}");
    }
}
