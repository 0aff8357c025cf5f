//! A controller that is the primary of each instance, over one P4Runtime server.

use crate::model::{CELLS, Held};
use millrace_p4runtime_api::p4::config::v1::{P4Info, Preamble};
use millrace_p4runtime_api::v1::entity::Entity as What;
use millrace_p4runtime_api::v1::p4_runtime_client::P4RuntimeClient;
use millrace_p4runtime_api::v1::*;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};

const ELECTION: Option<Uint128> = Some(Uint128 { high: 0, low: 1 });

/// What keeps it the primary of a device.
type Stream = (mpsc::Sender<StreamMessageRequest>, Streaming<StreamMessageResponse>);

pub(crate) struct Controller {
    runtime: Runtime,
    calls: P4RuntimeClient<Channel>,
    streams: BTreeMap<u64, Stream>,
    ids: Ids,
}

/// The ids of the program's objects.
#[derive(Clone, Copy)]
struct Ids {
    steer: u32,
    send: u32,
    seen: u32,
    counted: u32,
}

impl Ids {
    fn of(info: &P4Info) -> Ids {
        fn id<'a>(mut preambles: impl Iterator<Item = &'a Option<Preamble>>, name: &str) -> u32 {
            preambles.find_map(|known| known.as_ref().filter(|known| known.alias == name)).unwrap().id
        }
        Ids {
            steer: id(info.tables.iter().map(|known| &known.preamble), "steer"),
            send: id(info.actions.iter().map(|known| &known.preamble), "send"),
            seen: id(info.registers.iter().map(|known| &known.preamble), "seen"),
            counted: id(info.counters.iter().map(|known| &known.preamble), "counted"),
        }
    }
}

/// The number in bytes without leading zeros.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn bytes(number: u64) -> Vec<u8> {
    let all = number.to_be_bytes();
    let first = all.iter().position(|byte| *byte != 0).unwrap_or(all.len() - 1);
    all[first..].to_vec()
}

impl Controller {
    /// To a server; what the program has is asked of a device.
    pub(crate) fn connect(server: SocketAddr, device_id: u64) -> Controller {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (calls, info) = runtime.block_on(async {
            let mut calls = P4RuntimeClient::connect(format!("http://{server}")).await.unwrap();
            let request = GetForwardingPipelineConfigRequest { device_id, response_type: 0 };
            let answer = calls.get_forwarding_pipeline_config(request).await.unwrap().into_inner();
            (calls, answer.config.unwrap().p4info.unwrap())
        });
        Controller { runtime, calls, streams: BTreeMap::new(), ids: Ids::of(&info) }
    }

    /// Becomes the primary of a device that has come.
    pub(crate) fn arbitrate(&mut self, device_id: u64) {
        let calls = &mut self.calls;
        let stream = self.runtime.block_on(async {
            let (say, said) = mpsc::channel(4);
            let arbitration =
                MasterArbitrationUpdate { device_id, election_id: ELECTION, ..Default::default() };
            let update = Some(stream_message_request::Update::Arbitration(arbitration));
            say.send(StreamMessageRequest { update }).await.unwrap();
            let mut hear = calls.stream_channel(ReceiverStream::new(said)).await.unwrap().into_inner();
            hear.message().await.unwrap();
            (say, hear)
        });
        self.streams.insert(device_id, stream);
    }

    /// The code that the stream of a device that has gone ends with.
    pub(crate) fn ended(&mut self, device_id: u64) -> Code {
        // The other half stays: a client that says no more ends the stream too.
        let (_say, mut hear) = self.streams.remove(&device_id).unwrap();
        self.runtime.block_on(async {
            loop {
                match hear.message().await {
                    Ok(Some(_)) => {}
                    Ok(None) => return Code::Ok,
                    Err(status) => return status.code(),
                }
            }
        })
    }

    fn write(&mut self, device_id: u64, kind: update::Type, entity: What) -> Result<(), Status> {
        let updates = vec![Update { r#type: kind as i32, entity: Some(Entity { entity: Some(entity) }) }];
        let request = WriteRequest { device_id, election_id: ELECTION, updates, ..WriteRequest::default() };
        self.runtime.block_on(self.calls.write(request)).map(drop)
    }

    /// Writes an entry of `steer`.
    pub(crate) fn write_entry(
        &mut self,
        device_id: u64,
        kind: update::Type,
        key: u8,
        (port, mark): (u16, u16),
    ) -> Result<(), Status> {
        let param =
            |(param_id, value): (u32, u16)| action::Param { param_id, value: bytes(value.into()).into() };
        let params = [(1, port), (2, mark)].map(param).to_vec();
        let action = table_action::Type::Action(Action { action_id: self.ids.send, params });
        let exact = field_match::Exact { value: bytes(0x0200_0000_0000 | u64::from(key)).into() };
        let entry = TableEntry {
            table_id: self.ids.steer,
            r#match: vec![FieldMatch {
                field_id: 1,
                field_match_type: Some(field_match::FieldMatchType::Exact(exact)),
            }],
            action: (kind != update::Type::Delete).then_some(TableAction { r#type: Some(action) }),
            ..TableEntry::default()
        };
        self.write(device_id, kind, What::TableEntry(entry))
    }

    pub(crate) fn set_seen(&mut self, device_id: u64, cell: usize, value: u32) -> Result<(), Status> {
        let data = P4Data { data: Some(p4_data::Data::Bitstring(bytes(value.into()).into())) };
        let index = Some(Index { index: cell as i64 });
        let entry = RegisterEntry { register_id: self.ids.seen, index, data: Some(data) };
        self.write(device_id, update::Type::Modify, What::RegisterEntry(entry))
    }

    pub(crate) fn set_counted(
        &mut self,
        device_id: u64,
        cell: usize,
        (packet_count, byte_count): (i64, i64),
    ) -> Result<(), Status> {
        let (index, data) =
            (Some(Index { index: cell as i64 }), Some(CounterData { byte_count, packet_count }));
        let entry = CounterEntry { counter_id: self.ids.counted, index, data };
        self.write(device_id, update::Type::Modify, What::CounterEntry(entry))
    }

    /// All that an instance holds.
    pub(crate) fn read(&mut self, device_id: u64) -> Result<Held, Status> {
        let Ids { steer: table_id, seen: register_id, counted: counter_id, .. } = self.ids;
        let asked = [
            What::TableEntry(TableEntry { table_id, ..TableEntry::default() }),
            What::RegisterEntry(RegisterEntry { register_id, ..RegisterEntry::default() }),
            What::CounterEntry(CounterEntry { counter_id, ..CounterEntry::default() }),
        ];
        let entities = asked.map(|entity| Entity { entity: Some(entity) }).to_vec();
        let calls = &mut self.calls;
        let found = self.runtime.block_on(async {
            let request = ReadRequest { device_id, entities, ..ReadRequest::default() };
            let mut answers = calls.read(request).await?.into_inner();
            let mut found = Vec::new();
            while let Some(answer) = answers.message().await? {
                found.extend(answer.entities.into_iter().filter_map(|entity| entity.entity));
            }
            Ok::<_, Status>(found)
        })?;
        let mut held = Held::default();
        for entity in &found {
            self.note(&mut held, entity);
        }
        assert!(found.len() == held.entries.len() + 2 * CELLS, "{found:?}");
        Ok(held)
    }

    fn note(&self, held: &mut Held, entity: &What) {
        let at = |index: &Option<Index>| index.unwrap().index as usize;
        match entity {
            What::TableEntry(entry) => {
                let Some(field_match::FieldMatchType::Exact(exact)) = &entry.r#match[0].field_match_type
                else {
                    panic!("{entry:?}")
                };
                let Some(table_action::Type::Action(call)) = entry.action.as_ref().unwrap().r#type.as_ref()
                else {
                    panic!("{entry:?}")
                };
                assert_eq!((entry.table_id, call.action_id), (self.ids.steer, self.ids.send));
                let [port, mark] = [0, 1].map(|at| number(&call.params[at].value) as u16);
                let address = number(&exact.value);
                assert_eq!(address >> 8, 0x02_0000_0000);
                assert!(held.entries.insert(address as u8, (port, mark)).is_none(), "{entry:?} comes twice");
            }
            What::RegisterEntry(entry) => {
                let Some(P4Data { data: Some(p4_data::Data::Bitstring(value)) }) = &entry.data else {
                    panic!("{entry:?}")
                };
                held.seen[at(&entry.index)] = number(value) as u32;
            }
            What::CounterEntry(entry) => {
                let CounterData { packet_count, byte_count } = entry.data.unwrap();
                held.counted[at(&entry.index)] = (packet_count, byte_count);
            }
            other => panic!("{other:?}"),
        }
    }
}
