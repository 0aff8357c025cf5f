//! `run --grpc`: a controller of a switch that was started from the command line.

use crate::common::{Folder, command, millrace};
use millrace_p4runtime_api::v1::entity::Entity as Kind;
use millrace_p4runtime_api::v1::p4_runtime_client::P4RuntimeClient;
use millrace_p4runtime_api::v1::*;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use tokio_stream::StreamExt;

/// A switch that runs until this goes.
struct Running {
    child: Child,
    /// What it says: that it runs, and where it listens.
    lines: [String; 2],
}

impl Running {
    fn start(args: &[&str]) -> Running {
        let ports = ["run", "-i", "0@null:-", "-i", "1@null:-", "--grpc", "127.0.0.1:0", "--device-id", "7"];
        let mut child =
            command().args(ports).args(args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let lines = [(); 2].map(|()| {
            let mut line = String::new();
            said.read_line(&mut line).unwrap();
            line
        });
        Running { child, lines }
    }

    fn address(&self) -> String {
        let address = self.lines[1].trim_end().strip_prefix("P4Runtime: device 7 at ");
        format!("http://{}", address.unwrap_or_else(|| panic!("{:?}", self.lines)))
    }

    /// Ends it as a service manager does.
    fn end(mut self) -> Option<i32> {
        let id = self.child.id().to_string();
        assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(start.elapsed() < Duration::from_secs(10), "it does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // After `end` there is nothing left to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Talks to it as a controller does.
fn talk<T>(with: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        tokio::time::timeout(Duration::from_secs(20), with).await.expect("an answer in time")
    })
}

const ELECTION: Option<Uint128> = Some(Uint128 { high: 0, low: 1 });

type Calls = P4RuntimeClient<tonic::transport::Channel>;

/// Becomes the primary; it stays so while the stream is there.
async fn become_primary(calls: &mut Calls) -> tonic::Streaming<StreamMessageResponse> {
    let update = MasterArbitrationUpdate { device_id: 7, election_id: ELECTION, ..Default::default() };
    let first = StreamMessageRequest { update: Some(stream_message_request::Update::Arbitration(update)) };
    let said = tokio_stream::once(first).chain(tokio_stream::pending());
    let mut stream = calls.stream_channel(said).await.unwrap().into_inner();
    let answer = stream.message().await.unwrap().unwrap().update.unwrap();
    let stream_message_response::Update::Arbitration(answer) = answer else { panic!("{answer:?}") };
    assert_eq!(answer.status.unwrap().code, 0);
    stream
}

#[test]
fn a_controller_finds_the_program_and_writes_to_it() {
    let switch = Running::start(&["programs/router.p4"]);
    assert_eq!(switch.lines[0], "router is running on 0@null:-, 1@null:-\n");
    talk(async {
        let mut calls = P4RuntimeClient::connect(switch.address()).await.unwrap();
        let said = calls.capabilities(CapabilitiesRequest::default()).await.unwrap().into_inner();
        assert_eq!(said.p4runtime_api_version, "1.5.0");
        let _stream = become_primary(&mut calls).await;
        let request = GetForwardingPipelineConfigRequest { device_id: 7, ..Default::default() };
        let config =
            calls.get_forwarding_pipeline_config(request).await.unwrap().into_inner().config.unwrap();
        let info = config.p4info.unwrap();
        let id = |preamble: &Option<millrace_p4runtime_api::p4::config::v1::Preamble>, name: &str| {
            preamble.as_ref().filter(|of| of.name == name).map(|of| of.id)
        };
        let table = info.tables.iter().find_map(|of| id(&of.preamble, "RouterIngress.ipv4_lpm")).unwrap();
        let action = info.actions.iter().find_map(|of| id(&of.preamble, "RouterIngress.set_nhop")).unwrap();
        let param = |param_id, value: &[u8]| action::Param { param_id, value: value.to_vec().into() };
        let route = TableEntry {
            table_id: table,
            r#match: vec![FieldMatch {
                field_id: 1,
                field_match_type: Some(field_match::FieldMatchType::Lpm(field_match::Lpm {
                    value: vec![10, 0, 1, 0].into(),
                    prefix_len: 24,
                })),
            }],
            action: Some(TableAction {
                r#type: Some(table_action::Type::Action(Action {
                    action_id: action,
                    params: vec![param(1, &[6, 0, 0, 0, 0, 1]), param(2, &[1])],
                })),
            }),
            ..TableEntry::default()
        };
        let entity = |entry| Entity { entity: Some(Kind::TableEntry(entry)) };
        let write = WriteRequest {
            device_id: 7,
            election_id: ELECTION,
            updates: vec![Update {
                r#type: update::Type::Insert as i32,
                entity: Some(entity(route.clone())),
            }],
            ..WriteRequest::default()
        };
        calls.write(write).await.unwrap();
        let all = TableEntry { table_id: table, ..TableEntry::default() };
        let read = ReadRequest { device_id: 7, entities: vec![entity(all)], ..ReadRequest::default() };
        let found = calls.read(read).await.unwrap().into_inner().message().await.unwrap().unwrap();
        assert_eq!(found.entities, [entity(route)]);
    });
    assert_eq!(switch.end(), Some(0));
}

#[test]
fn a_controller_brings_the_program() {
    let switch = Running::start(&["--cpu-port", "510"]);
    talk(async {
        let mut calls = P4RuntimeClient::connect(switch.address()).await.unwrap();
        let _stream = become_primary(&mut calls).await;
        let request = || GetForwardingPipelineConfigRequest { device_id: 7, ..Default::default() };
        let none = calls.get_forwarding_pipeline_config(request()).await.unwrap().into_inner();
        assert_eq!(none.config, None);
        let source = std::fs::read(crate::common::root().join("programs/l2_switch.p4")).unwrap();
        let config = ForwardingPipelineConfig { p4_device_config: source.into(), ..Default::default() };
        let set = SetForwardingPipelineConfigRequest {
            device_id: 7,
            election_id: ELECTION,
            action: set_forwarding_pipeline_config_request::Action::VerifyAndCommit as i32,
            config: Some(config),
            ..Default::default()
        };
        calls.set_forwarding_pipeline_config(set).await.unwrap();
        let config = calls.get_forwarding_pipeline_config(request()).await.unwrap().into_inner().config;
        assert!(!config.unwrap().p4info.unwrap().tables.is_empty());
    });
    assert_eq!(switch.end(), Some(0));
}

#[test]
fn what_cannot_be_listened_on_is_told() {
    let port = ["run", "programs/router.p4", "-i", "0@null:-"];
    for (args, code, message) in [
        (&["--grpc", "0.0.0.0:0"][..], 1, "anyone there could write to the switch"),
        (&["--grpc", "no where"], 2, "is no address to listen on"),
        (&["--grpc", "nowhere:x"], 2, "`x` is no port"),
        (&["--grpc", "192.0.2.1:0", "--grpc-allow-plaintext"], 1, "cannot listen on 192.0.2.1:0"),
        (&["--grpc", "127.0.0.1:0", "--grpc-cert", "/nowhere", "--grpc-key", "/nowhere"], 1, "/nowhere"),
        (&["--grpc", "127.0.0.1:0", "--grpc-cert", "/nowhere"], 2, "--grpc-key"),
    ] {
        let said = millrace(&[&port, args].concat());
        assert_eq!(said.code, code, "{args:?}: {}", said.err);
        assert!(said.err.contains(message), "{args:?}: {}", said.err);
    }
}

/// Servers and clients refuse a key that others may read; under the name of bmv2 it is taken, with a warning.
#[test]
fn a_key_that_others_may_read_is_refused() {
    let folder = Folder::new("grpc-key-exposed");
    let (certificate, key) = (folder.file("a.pem", "none"), folder.with_mode("key.pem", "none", 0o644));
    let run = ["run", "programs/router.p4", "-i", "0@null:-", "--grpc", "127.0.0.1:0"];
    let tls = ["--grpc-cert", certificate.as_str(), "--grpc-key", key.as_str()];
    let swap = ["swap", "programs/router.p4", "--grpc", "127.0.0.1:1", "--grpc-ca", certificate.as_str()];
    let exposed = format!("{key}: others may read or change it (mode 0644), so it is no secret: chmod ");
    for args in [[&run[..], &tls].concat(), [&swap[..], &tls].concat()] {
        let said = millrace(&args);
        assert!(said.code == 1 && said.err.contains(&format!("error: {exposed}")), "{args:?}: {}", said.err);
    }
    let said = millrace(&[&run[..], &tls, &["--grpc-key-exposed"]].concat());
    assert!(said.code == 1 && said.err.contains(&format!("warning: {exposed}")), "{}", said.err);
    assert!(said.err.contains("TLS"), "goes on to what is no key: {}", said.err);
}
