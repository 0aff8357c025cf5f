//! Programs that come from somebody other than a controller.

use crate::common::{ALL, Client, DEVICE, Device, frame, leaving};
use millrace_chassis::{Candidate, MAX_WAITING_PROGRAMS, Making, Programs};
use millrace_dataplane::{EngineKind, Keep, ObjectRequest, Request};
use millrace_p4runtime_api::client::{self, swap};
use millrace_p4runtime_api::v1::entity::Entity;
use millrace_p4runtime_api::v1::get_forwarding_pipeline_config_request::ResponseType;
use millrace_p4runtime_api::v1::*;
use millrace_swap_report::Report;
use std::time::{Duration, Instant};
use tonic::Code;

/// Lets a program take over, from outside of the runtime as others do.
async fn start(programs: &Programs, candidate: Candidate, keep: Option<Keep>) -> Result<Report, String> {
    let programs = programs.clone();
    tokio::task::spawn_blocking(move || programs.start(candidate, keep)).await.unwrap()
}

#[tokio::test]
async fn controllers_find_a_program_that_another_brought() {
    let mut device = Device::start();
    let mut client = device.ready().await;
    client.insert(Entity::TableEntry(client.route([10, 1, 0, 0], 16, 2))).await.unwrap();
    let table_id = client.table("route");
    let routes = vec![Entity::TableEntry(TableEntry { table_id, ..TableEntry::default() })];
    let programs = device.server.as_ref().unwrap().programs();
    assert!(programs.prepare(b"control c() {").unwrap_err().contains("device_config.p4:1"));

    let renamed = format!("{ALL}// Another.\n");
    let candidate = programs.prepare(renamed.as_bytes()).unwrap();
    let report = start(&programs, candidate, Some(Keep::Everything)).await.unwrap();
    assert!(report.dropped.is_empty(), "{report:?}");
    assert!(report.kept.iter().any(|item| item.name == "In.route" && item.count == 1), "{report:?}");
    let config = client.config(ResponseType::All).await.unwrap();
    assert_eq!(config.p4_device_config, renamed.as_bytes());
    assert_eq!(config.cookie, None);
    assert_eq!(client.read_all(routes.clone()).await.unwrap().len(), 1);
    device.ports[0].send(frame(1, [10, 1, 2, 3])).unwrap();
    assert_eq!(leaving(&mut device, 1).await, frame(1, [10, 1, 2, 3]));

    // With what was written to it before, and nothing else.
    let mut candidate = programs.prepare(ALL.as_bytes()).unwrap();
    let value = millrace_pipeline::Bits::new(32, 9);
    let register = candidate.switch.state().register_named("In.last").unwrap();
    candidate.switch.state_mut().set_register(register, 1, &value).unwrap();
    assert_eq!(start(&programs, candidate, None).await, Ok(Report::default()));
    assert_eq!(client.read_all(routes.clone()).await.unwrap().len(), 0);
    let running = device.control.ask(Request::Look).unwrap().program;
    let read = |to| Request::Objects(running, ObjectRequest::Registers(vec![register], 1..2, to));
    assert_eq!(device.control.ask(read).unwrap(), Ok(vec![vec![value]]));

    let candidate = programs.prepare(ALL.as_bytes()).unwrap();
    device.server = None;
    let refused = start(&programs, candidate, None).await.unwrap_err();
    assert!(refused.contains("not running"), "{refused}");
}

#[tokio::test]
async fn the_client_swaps_alone_or_in_the_place_of_a_controller() {
    let device = Device::start();
    let address = device.server.as_ref().unwrap().address();
    let to = |election_id| client::Device { address, device_id: DEVICE, election_id, tls: None };
    let swap = |to: client::Device, keep: &'static str| async move {
        tokio::task::spawn_blocking(move || swap(&to, ALL.as_bytes().to_vec(), keep)).await.unwrap()
    };
    assert_eq!(swap(to(None), "everything").await, Ok(Report::default()));

    let mut controller = Client::primary(&device, 7).await;
    controller.set(set_forwarding_pipeline_config_request::Action::VerifyAndCommit, ALL).await.unwrap();
    controller.insert(Entity::TableEntry(controller.route([10, 1, 0, 0], 16, 2))).await.unwrap();
    let refused = swap(to(None), "everything").await.unwrap_err();
    assert!(refused.contains("--election-id 7"), "{refused}");
    let refused = swap(to(Some(6)), "everything").await.unwrap_err();
    assert!(refused.contains("only the primary client may write"), "{refused}");
    let report = swap(to(Some(7)), "everything").await.unwrap();
    assert_eq!(report.kept.iter().find(|item| item.name == "In.route").map(|item| item.count), Some(1));
    assert!(swap(to(Some(7)), "all").await.unwrap_err().contains("`everything`, `compatible` or `nothing`"));
    assert_eq!(swap(to(Some(7)), "nothing").await, Ok(Report::default()));
    let elsewhere = client::Device { device_id: DEVICE + 1, ..to(Some(7)) };
    assert!(swap(elsewhere, "nothing").await.unwrap_err().contains("no device"));
}

/// A program of which the interpreter is ready soon, and machine code takes long: wide numbers, many operations.
fn slow(operations: usize) -> String {
    let operation = "m.x = m.x + m.y; m.y = m.y ^ m.x; ";
    format!(
        "#include <v1model.p4>
         header a_t {{ bit<16> kind; bit<16> other; }}
         struct H {{ a_t a; }}
         struct M {{ bit<4096> x; bit<4096> y; }}
         parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {{
             state start {{ p.extract(h.a); transition accept; }}
         }}
         control V(inout H h, inout M m) {{ apply {{}} }}
         control I(inout H h, inout M m, inout standard_metadata_t s) {{
             apply {{ m.x[15:0] = h.a.kind; m.y[31:16] = h.a.other; {} s.egress_spec = m.x[8:0]; }}
         }}
         control E(inout H h, inout M m, inout standard_metadata_t s) {{ apply {{}} }}
         control C(inout H h, inout M m) {{ apply {{}} }}
         control D(packet_out p, in H h) {{ apply {{ p.emit(h.a); }} }}
         V1Switch(P(), V(), I(), E(), C(), D()) main;",
        operation.repeat(operations)
    )
}

/// Clients whose deadlines pass leave nothing that goes on for long: programs that nobody waits for are not made, and few
/// wait at a time.
#[tokio::test]
async fn pushes_that_nobody_waits_for_do_not_pile_up() {
    use set_forwarding_pipeline_config_request::Action;
    let device = Device::start();
    let mut client = device.ready().await;
    let source = slow(40);
    let mut pushes = Vec::new();
    for _ in 0..4 * MAX_WAITING_PROGRAMS {
        // A connection has few calls at a time.
        let mut calls = Client::connect(&device).await.calls;
        let config = ForwardingPipelineConfig {
            p4_device_config: source.as_bytes().to_vec().into(),
            ..ForwardingPipelineConfig::default()
        };
        let mut request = tonic::Request::new(SetForwardingPipelineConfigRequest {
            device_id: DEVICE,
            election_id: client.election,
            action: Action::VerifyAndCommit as i32,
            config: Some(config),
            ..Default::default()
        });
        request.set_timeout(Duration::from_millis(200));
        pushes.push(async move { calls.set_forwarding_pipeline_config(request).await.map(drop) });
    }
    let pushes: Vec<_> = pushes.into_iter().map(tokio::spawn).collect();
    let (mut exhausted, mut set) = (0, false);
    for push in pushes {
        let Err(status) = push.await.unwrap() else {
            set = true; // on a fast machine, within its deadline
            continue;
        };
        match status.code() {
            Code::ResourceExhausted => {
                assert!(status.message().contains("MAX_WAITING_PROGRAMS"), "{status:?}");
                exhausted += 1;
            }
            Code::Cancelled | Code::DeadlineExceeded => {}
            _ => panic!("{status:?}"),
        }
    }
    // One is made and some wait; others are refused at once.
    assert!(exhausted > 0, "all wait");
    // The next one comes after what is under way, not after all of them, and what runs until then is what ran before.
    let config = client.config(ResponseType::All).await.unwrap();
    assert!(set || config.p4_device_config == ALL.as_bytes());
    let start = Instant::now();
    // Pushes that were given up leave their places when the server hears of it.
    while let Err(status) = client.set(Action::VerifyAndCommit, &format!("{ALL}// After them.\n")).await {
        assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
        assert!(start.elapsed() < Duration::from_secs(120), "places stay taken");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let took = start.elapsed();
    println!("the next push took {took:?}");
    assert!(took < Duration::from_secs(if cfg!(debug_assertions) { 120 } else { 4 }), "{took:?}");
}

/// A program that is too large for machine code is run by the interpreter where that may be, and else refused with the
/// limit; the same over and over leaves nothing.
#[tokio::test]
async fn too_large_a_program_is_interpreted() {
    use set_forwarding_pipeline_config_request::Action;
    let device = Device::start();
    let mut client = Client::primary(&device, 1).await;
    let source = slow(5000);
    for _ in 0..3 {
        client.set(Action::VerifyAndCommit, &source).await.unwrap();
    }
    let without = device.control.ask(Request::Look).unwrap().without_code;
    assert!(without.as_deref().is_some_and(|why| why.contains("too large for machine code")), "{without:?}");
    let making = Making { engine: EngineKind::Jit, ..Making::default() };
    let programs = Programs::new(making, device.control.clone());
    let refused = tokio::task::spawn_blocking(move || programs.prepare(source.as_bytes())).await.unwrap();
    let refused = refused.expect_err("machine code was asked for");
    assert!(refused.contains("(MAX_ESTIMATE)") || refused.contains("(MAX_CODE)"), "{refused}");
}
