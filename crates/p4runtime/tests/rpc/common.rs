//! A switch with its server, and a client as controllers have them.

use millrace_chassis::{Listener, Making, empty_program};
use millrace_dataplane::{Control, Notice, PortId, Summary, Switch, SwitchConfig, Worker};
use millrace_p4runtime::{CpuLink, DeviceConfig, Listen, Server, cpu_port};
use millrace_p4runtime_api::p4::config::v1::P4Info;
use millrace_p4runtime_api::v1::p4_runtime_client::P4RuntimeClient;
use millrace_p4runtime_api::v1::*;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};

pub(crate) const DEVICE: u64 = 3;
pub(crate) const CPU_PORT: PortId = 510;
pub(crate) const ALL: &str = include_str!("../programs/all.p4");

/// A switch with two ports, a port to the controller, and a server; it starts without a program.
pub(crate) struct Device {
    pub(crate) server: Option<Server>,
    pub(crate) control: Control,
    /// What is at ports 1 and 2.
    pub(crate) ports: [CpuLink; 2],
    worker: Option<JoinHandle<Summary>>,
}

/// A program that drops everything, until a controller brings another.
fn nothing() -> Switch {
    let config = SwitchConfig { engine: millrace_quiet::engine(), ..SwitchConfig::default() };
    Switch::new(empty_program().unwrap(), config).unwrap()
}

impl Device {
    pub(crate) fn start() -> Device {
        Device::listening(Listen { address: ([127, 0, 0, 1], 0).into(), tls: None, allow_plaintext: false })
    }

    pub(crate) fn listening(listen: Listen) -> Device {
        let making = Making { engine: millrace_quiet::engine(), count_lookups: true, ..Making::default() };
        Device::making(listen, making, CPU_PORT)
    }

    /// One whose programs are made like that, with that port to the controller.
    pub(crate) fn making(listen: Listen, making: Making, cpu: PortId) -> Device {
        let (one, link_one) = cpu_port().unwrap();
        let (two, link_two) = cpu_port().unwrap();
        let (port_cpu, link_cpu) = cpu_port().unwrap();
        let ports: Vec<(PortId, Box<dyn millrace_drivers::QueuePair>)> =
            vec![(1, Box::new(one)), (2, Box::new(two)), (cpu, Box::new(port_cpu))];
        let mut worker = Worker::new(nothing(), ports).unwrap();
        let (control, notices) = (worker.control(), worker.notices());
        let device = DeviceConfig {
            device_id: DEVICE,
            making,
            ports: [1, 2, cpu].into(),
            links: Default::default(),
            cpu_port: Some((cpu, link_cpu)),
            pipeline: None,
        };
        let server = Server::start(&listen, device, control.clone()).unwrap();
        let feed = server.feed();
        let worker = std::thread::spawn(move || worker.run());
        std::thread::spawn(move || {
            for notice in notices {
                match notice {
                    Notice::Digest { program, message } => feed.digest(&program, &message),
                    Notice::PortFailed { port, error } => feed.port_failed(port, &error),
                    Notice::Log(_) | Notice::Story(_) => {}
                }
            }
        });
        Device { server: Some(server), control, ports: [link_one, link_two], worker: Some(worker) }
    }

    pub(crate) fn address(&self) -> String {
        format!("http://{}", self.server.as_ref().unwrap().address())
    }

    /// A client that is the primary, with the program of all objects.
    pub(crate) async fn ready(&self) -> Client {
        let mut client = Client::primary(self, 1).await;
        client.set(set_forwarding_pipeline_config_request::Action::VerifyAndCommit, ALL).await.unwrap();
        client
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        drop(self.server.take());
        self.control.stop();
        if let Some(worker) = self.worker.take() {
            worker.join().unwrap();
        }
    }
}

/// A controller.
pub(crate) struct Client {
    pub(crate) calls: P4RuntimeClient<Channel>,
    pub(crate) stream: Stream,
    pub(crate) election: Option<Uint128>,
    pub(crate) role: String,
    names: Names,
}

impl std::ops::Deref for Client {
    type Target = Names;

    fn deref(&self) -> &Names {
        &self.names
    }
}

pub(crate) struct Stream {
    pub(crate) say: mpsc::Sender<StreamMessageRequest>,
    pub(crate) hear: Streaming<StreamMessageResponse>,
}

pub(crate) fn election(id: u64) -> Uint128 {
    Uint128 { high: 0, low: id }
}

impl Client {
    pub(crate) async fn connect(device: &Device) -> Client {
        let channel = tonic::transport::Endpoint::from_shared(device.address()).unwrap().connect().await;
        Client::over(channel.unwrap()).await
    }

    pub(crate) async fn over(channel: Channel) -> Client {
        let mut calls = P4RuntimeClient::new(channel).max_decoding_message_size(64 << 20);
        let stream = Stream::open(&mut calls).await;
        Client {
            calls,
            stream,
            election: None,
            role: String::new(),
            names: Names { info: P4Info::default() },
        }
    }

    /// A client that is the primary of the default role.
    pub(crate) async fn primary(device: &Device, id: u64) -> Client {
        let mut client = Client::connect(device).await;
        let answer = client.arbitrate(Some(id)).await.unwrap();
        assert_eq!(answer.status.unwrap().code, Code::Ok as i32);
        client
    }

    /// The names of the program that was set last, to be kept while the client is busy.
    pub(crate) fn names(&self) -> Names {
        self.names.clone()
    }

    /// Says who it is, and gives the answer.
    pub(crate) async fn arbitrate(&mut self, id: Option<u64>) -> Result<MasterArbitrationUpdate, Status> {
        self.election = id.map(election);
        let role = (!self.role.is_empty()).then(|| Role { name: self.role.clone(), ..Role::default() });
        let update =
            MasterArbitrationUpdate { device_id: DEVICE, role, election_id: self.election, status: None };
        self.stream.tell(stream_message_request::Update::Arbitration(update)).await;
        self.stream.arbitration().await
    }

    pub(crate) async fn set(
        &mut self,
        action: set_forwarding_pipeline_config_request::Action,
        source: &str,
    ) -> Result<(), Status> {
        let config = (!source.is_empty()).then(|| ForwardingPipelineConfig {
            p4info: None,
            p4_device_config: source.as_bytes().to_vec().into(),
            cookie: Some(forwarding_pipeline_config::Cookie { cookie: 77 }),
        });
        let request = SetForwardingPipelineConfigRequest {
            device_id: DEVICE,
            role: self.role.clone(),
            election_id: self.election,
            action: action as i32,
            config,
            ..Default::default()
        };
        self.calls.set_forwarding_pipeline_config(request).await?;
        let config = self.config(get_forwarding_pipeline_config_request::ResponseType::All).await;
        self.names.info = config.and_then(|config| config.p4info).unwrap_or_default();
        Ok(())
    }

    pub(crate) async fn config(
        &mut self,
        response_type: get_forwarding_pipeline_config_request::ResponseType,
    ) -> Option<ForwardingPipelineConfig> {
        let request =
            GetForwardingPipelineConfigRequest { device_id: DEVICE, response_type: response_type as i32 };
        self.calls.get_forwarding_pipeline_config(request).await.unwrap().into_inner().config
    }

    pub(crate) async fn write_with(
        &mut self,
        atomicity: write_request::Atomicity,
        updates: Vec<Update>,
    ) -> Result<(), Status> {
        let request = WriteRequest {
            device_id: DEVICE,
            role: self.role.clone(),
            election_id: self.election,
            updates,
            atomicity: atomicity as i32,
            ..Default::default()
        };
        self.calls.write(request).await.map(drop)
    }

    pub(crate) async fn write(&mut self, kind: update::Type, entity: entity::Entity) -> Result<(), Refused> {
        let updates = vec![update(kind, entity)];
        let written = self.write_with(write_request::Atomicity::ContinueOnError, updates).await;
        written.map_err(|status| errors(&status).remove(0))
    }

    pub(crate) async fn insert(&mut self, entity: entity::Entity) -> Result<(), Refused> {
        self.write(update::Type::Insert, entity).await
    }

    pub(crate) async fn modify(&mut self, entity: entity::Entity) -> Result<(), Refused> {
        self.write(update::Type::Modify, entity).await
    }

    pub(crate) async fn delete(&mut self, entity: entity::Entity) -> Result<(), Refused> {
        self.write(update::Type::Delete, entity).await
    }

    pub(crate) async fn read_all(
        &mut self,
        entities: Vec<entity::Entity>,
    ) -> Result<Vec<entity::Entity>, Status> {
        let request = ReadRequest {
            device_id: DEVICE,
            role: self.role.clone(),
            entities: entities.into_iter().map(|entity| Entity { entity: Some(entity) }).collect(),
        };
        let mut answers = self.calls.read(request).await?.into_inner();
        let mut found = Vec::new();
        while let Some(answer) = answers.message().await? {
            found.extend(answer.entities.into_iter().filter_map(|entity| entity.entity));
        }
        Ok(found)
    }

    pub(crate) async fn read(&mut self, entity: entity::Entity) -> Vec<entity::Entity> {
        self.read_all(vec![entity]).await.unwrap()
    }
}

/// What the program has, by name.
#[derive(Clone)]
pub(crate) struct Names {
    pub(crate) info: P4Info,
}

impl Names {
    pub(crate) fn table(&self, name: &str) -> u32 {
        id(self.info.tables.iter().map(|table| &table.preamble), name)
    }

    pub(crate) fn action(&self, name: &str) -> u32 {
        id(self.info.actions.iter().map(|action| &action.preamble), name)
    }

    pub(crate) fn profile(&self, name: &str) -> u32 {
        id(self.info.action_profiles.iter().map(|profile| &profile.preamble), name)
    }

    pub(crate) fn call(&self, name: &str, params: &[&[u8]]) -> Action {
        let params = params
            .iter()
            .zip(1..)
            .map(|(value, param_id)| action::Param { param_id, value: value.to_vec().into() });
        Action { action_id: self.action(name), params: params.collect() }
    }

    pub(crate) fn run(&self, name: &str, params: &[&[u8]]) -> Option<TableAction> {
        Some(TableAction { r#type: Some(table_action::Type::Action(self.call(name, params))) })
    }

    /// Who it is for, in the program of a small device.
    pub(crate) fn station(&self, last: u8, action: Option<TableAction>) -> TableEntry {
        let r#match = vec![exact(1, &[2, 0, 0, 0, 0, last])];
        TableEntry { table_id: self.table("stations"), r#match, action, ..TableEntry::default() }
    }

    /// An entry of `route`.
    pub(crate) fn route(&self, address: [u8; 4], prefix_len: i32, port: u8) -> TableEntry {
        TableEntry {
            table_id: self.table("route"),
            r#match: vec![lpm(1, &address, prefix_len)],
            action: self.run("forward", &[&[port]]),
            ..TableEntry::default()
        }
    }
}

pub(crate) fn id<'a>(
    preambles: impl Iterator<Item = &'a Option<millrace_p4runtime_api::p4::config::v1::Preamble>>,
    name: &str,
) -> u32 {
    let mut preambles = preambles.flatten();
    let found = preambles.find(|known| known.alias == name);
    found.unwrap_or_else(|| panic!("no `{name}`")).id
}

impl Stream {
    pub(crate) async fn open(calls: &mut P4RuntimeClient<Channel>) -> Stream {
        let (say, said) = mpsc::channel(64);
        let hear = calls.stream_channel(ReceiverStream::new(said)).await.unwrap().into_inner();
        Stream { say, hear }
    }

    pub(crate) async fn tell(&self, update: stream_message_request::Update) {
        let _ = self.say.send(StreamMessageRequest { update: Some(update) }).await;
    }

    /// The next message, within ten seconds; an error when the stream has ended.
    pub(crate) async fn next(&mut self) -> Result<stream_message_response::Update, Status> {
        let message = tokio::time::timeout(Duration::from_secs(10), self.hear.message()).await;
        let message = message.expect("a message of the stream")?;
        message.and_then(|message| message.update).ok_or_else(|| Status::cancelled("the stream has ended"))
    }

    /// Whether nothing comes for a while.
    pub(crate) async fn is_silent(&mut self) -> bool {
        tokio::time::timeout(Duration::from_millis(300), self.hear.message()).await.is_err()
    }

    pub(crate) async fn arbitration(&mut self) -> Result<MasterArbitrationUpdate, Status> {
        match self.next().await? {
            stream_message_response::Update::Arbitration(update) => Ok(update),
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) fn update(kind: update::Type, entity: entity::Entity) -> Update {
    Update { r#type: kind as i32, entity: Some(Entity { entity: Some(entity) }) }
}

pub(crate) fn wrapped(entity: Option<entity::Entity>) -> Entity {
    Entity { entity }
}

pub(crate) fn exact(field_id: u32, value: &[u8]) -> FieldMatch {
    let exact = field_match::Exact { value: value.to_vec().into() };
    FieldMatch { field_id, field_match_type: Some(field_match::FieldMatchType::Exact(exact)) }
}

pub(crate) fn lpm(field_id: u32, value: &[u8], prefix_len: i32) -> FieldMatch {
    let lpm = field_match::Lpm { value: value.to_vec().into(), prefix_len };
    FieldMatch { field_id, field_match_type: Some(field_match::FieldMatchType::Lpm(lpm)) }
}

pub(crate) fn ternary(field_id: u32, value: &[u8], mask: &[u8]) -> FieldMatch {
    let ternary = field_match::Ternary { value: value.to_vec().into(), mask: mask.to_vec().into() };
    FieldMatch { field_id, field_match_type: Some(field_match::FieldMatchType::Ternary(ternary)) }
}

/// What an update was refused with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refused {
    pub(crate) code: Code,
    pub(crate) message: String,
}

/// The errors in the details of a status.
pub(crate) fn errors(status: &Status) -> Vec<Refused> {
    use prost::Message;
    assert_eq!(status.code(), Code::Unknown, "{status:?}");
    let details = millrace_p4runtime_api::google::rpc::Status::decode(status.details()).unwrap();
    assert_eq!((details.code, details.message.as_str()), (Code::Unknown as i32, status.message()));
    let each = details.details.iter().map(|any| {
        assert_eq!(any.type_url, "type.googleapis.com/p4.v1.Error");
        let error = Error::decode(&*any.value).unwrap();
        Refused { code: Code::from_i32(error.canonical_code), message: error.message }
    });
    each.collect()
}

/// An IPv4 packet in an Ethernet frame of 60 bytes.
pub(crate) fn frame(source: u8, destination: [u8; 4]) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, 0xff]);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, source]);
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14] = 0x45;
    frame[22] = 64;
    frame[23] = 17;
    frame[26..30].copy_from_slice(&[10, 0, 0, source]);
    frame[30..34].copy_from_slice(&destination);
    frame
}

/// The next frame that leaves at port 1 or 2 (place 0 or 1).
pub(crate) async fn leaving(device: &mut Device, place: usize) -> Vec<u8> {
    let frame = tokio::time::timeout(Duration::from_secs(10), device.ports[place].receive_async()).await;
    frame.expect("a frame").expect("a switch that runs")
}
