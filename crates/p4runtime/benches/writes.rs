//! How fast a controller writes and reads table entries over P4Runtime, from another thread over loopback, and what
//! becomes of the forwarding rate meanwhile.
//!
//!     cargo bench -p millrace-p4runtime

use millrace_chassis::{Making, empty_program};
use millrace_dataplane::{Control, EngineKind, PortId, Request, Switch, SwitchConfig, Worker};
use millrace_p4runtime::{DeviceConfig, Listen, Server};
use millrace_p4runtime_api::config;
use millrace_p4runtime_api::v1::p4_runtime_client::P4RuntimeClient;
use millrace_p4runtime_api::v1::*;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;

const DEVICE: u64 = 1;
const BATCH: u32 = 1000;
const ROUTES: u32 = 1_000_000;

/// A switch that forwards a capture from memory as fast as it can.
fn worker() -> Worker {
    let config = SwitchConfig { engine: EngineKind::Fastest, ..SwitchConfig::default() };
    let switch = Switch::new(empty_program().unwrap(), config).unwrap();
    let capture = concat!(env!("CARGO_MANIFEST_DIR"), "/../../programs/demo/in0.pcap");
    let ports: Vec<(PortId, Box<dyn millrace_drivers::QueuePair>)> = vec![
        (0, millrace_drivers::open(&format!("null:{capture}").parse().unwrap()).unwrap()),
        (1, millrace_drivers::open(&format!("null:{capture}").parse().unwrap()).unwrap()),
    ];
    Worker::new(switch, ports).unwrap()
}

/// Packets that came in until now.
fn received(control: &Control) -> u64 {
    control.ask(Request::Ports).unwrap().iter().map(|(_, port)| port.rx_packets).sum()
}

/// Millions of packets a second while something is done.
async fn rate_during<T>(control: &Control, work: impl Future<Output = T>) -> (f64, T) {
    let (before, start) = (received(control), Instant::now());
    let result = work.await;
    let seconds = start.elapsed().as_secs_f64();
    ((received(control) - before) as f64 / seconds / 1e6, result)
}

fn main() {
    let worker = worker();
    let control = worker.control();
    let device = DeviceConfig {
        device_id: DEVICE,
        making: Making { engine: EngineKind::Fastest, ..Making::default() },
        ports: [0, 1].into(),
        links: Default::default(),
        cpu_port: None,
        pipeline: None,
    };
    let listen = Listen { address: ([127, 0, 0, 1], 0).into(), tls: None, allow_plaintext: false };
    let server = Server::start(&listen, device, control.clone()).unwrap();
    let thread = std::thread::spawn(move || worker.run());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(measure(&server, &control));
    drop(server);
    control.stop();
    thread.join().unwrap();
}

async fn measure(server: &Server, control: &Control) {
    let mut calls = P4RuntimeClient::connect(format!("http://{}", server.address()))
        .await
        .unwrap()
        .max_decoding_message_size(64 << 20);
    let election_id = Some(Uint128 { high: 0, low: 1 });
    let (say, said) = mpsc::channel(1);
    let mut heard = calls.stream_channel(ReceiverStream::new(said)).await.unwrap().into_inner();
    let update = MasterArbitrationUpdate { device_id: DEVICE, election_id, ..Default::default() };
    let update = Some(stream_message_request::Update::Arbitration(update));
    say.send(StreamMessageRequest { update }).await.unwrap();
    heard.message().await.unwrap();
    let source = include_str!("../../../programs/router.p4");
    let request = SetForwardingPipelineConfigRequest {
        device_id: DEVICE,
        election_id,
        action: set_forwarding_pipeline_config_request::Action::VerifyAndCommit as i32,
        config: Some(ForwardingPipelineConfig {
            p4_device_config: source.as_bytes().to_vec().into(),
            ..Default::default()
        }),
        ..Default::default()
    };
    calls.set_forwarding_pipeline_config(request).await.unwrap();
    let request = GetForwardingPipelineConfigRequest { device_id: DEVICE, ..Default::default() };
    let config = calls.get_forwarding_pipeline_config(request).await.unwrap().into_inner().config.unwrap();
    let info = config.p4info.unwrap();
    let named = |preamble: &Option<config::Preamble>, alias: &str| {
        preamble.as_ref().filter(|preamble| preamble.alias == alias).map(|preamble| preamble.id)
    };
    let table_id = info.tables.iter().find_map(|table| named(&table.preamble, "ipv4_lpm")).expect("routes");
    let action_id =
        info.actions.iter().find_map(|action| named(&action.preamble, "set_nhop")).expect("an action");
    let (quiet, ()) = rate_during(control, tokio::time::sleep(Duration::from_secs(1))).await;
    println!("forwarding, nobody writes: {quiet:.2} Mpps");

    let route = |number: u32, port: u8| {
        let address = (10 << 24 | number << 4).to_be_bytes();
        let lpm = field_match::Lpm { value: address.to_vec().into(), prefix_len: 28 };
        let params = vec![
            action::Param { param_id: 1, value: vec![2, 0, 0, 0, 0, port].into() },
            action::Param { param_id: 2, value: vec![port].into() },
        ];
        let action = Action { action_id, params };
        let entry = TableEntry {
            table_id,
            r#match: vec![FieldMatch {
                field_id: 1,
                field_match_type: Some(field_match::FieldMatchType::Lpm(lpm)),
            }],
            action: Some(TableAction { r#type: Some(table_action::Type::Action(action)) }),
            ..Default::default()
        };
        Entity { entity: Some(entity::Entity::TableEntry(entry)) }
    };
    for (kind, name) in [
        (update::Type::Insert, "inserted"),
        (update::Type::Modify, "modified"),
        (update::Type::Delete, "deleted"),
    ] {
        let mut writer = calls.clone();
        let route = &route;
        let writing = async move {
            let start = Instant::now();
            for first in (0..ROUTES).step_by(BATCH as usize) {
                let updates = (first..first + BATCH).map(|number| Update {
                    r#type: kind as i32,
                    entity: Some(route(number, if kind == update::Type::Insert { 1 } else { 2 })),
                });
                let request = WriteRequest {
                    device_id: DEVICE,
                    election_id,
                    updates: updates.collect(),
                    ..Default::default()
                };
                writer.write(request).await.unwrap();
            }
            start.elapsed()
        };
        let (rate, took) = rate_during(control, writing).await;
        report(name, ROUTES, took, rate);
        if kind == update::Type::Modify {
            let (rate, (count, took)) = rate_during(control, read_all(calls.clone())).await;
            report("read", count, took, rate);
        }
    }
    drop(say);
}

async fn read_all(mut calls: P4RuntimeClient<Channel>) -> (u32, Duration) {
    let start = Instant::now();
    let entity = Entity { entity: Some(entity::Entity::TableEntry(TableEntry::default())) };
    let request = ReadRequest { device_id: DEVICE, entities: vec![entity], ..Default::default() };
    let mut answers = calls.read(request).await.unwrap().into_inner();
    let mut count = 0;
    while let Some(answer) = answers.message().await.unwrap() {
        count += answer.entities.len() as u32;
    }
    (count, start.elapsed())
}

fn report(what: &str, entries: u32, took: Duration, rate: f64) {
    let seconds = took.as_secs_f64();
    println!(
        "{entries} entries {what} in {seconds:.2} s, {:.0} thousand a second, forwarding {rate:.2} Mpps meanwhile",
        f64::from(entries) / seconds / 1e3
    );
}
