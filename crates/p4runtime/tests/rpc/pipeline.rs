//! Setting and getting programs.

use crate::common::{ALL, Client, DEVICE, Device, frame, leaving, update};
use millrace_p4runtime_api::v1::entity::Entity;
use millrace_p4runtime_api::v1::get_forwarding_pipeline_config_request::ResponseType;
use millrace_p4runtime_api::v1::set_forwarding_pipeline_config_request::Action;
use millrace_p4runtime_api::v1::*;
use millrace_p4runtime_api::{KEEP_KEY, REPORT_KEY};
use millrace_swap_report::{Item, Report};
use std::time::Duration;
use tonic::Code;

#[tokio::test]
async fn capabilities_say_the_version() {
    let device = Device::start();
    let mut client = Client::connect(&device).await;
    let answer = client.calls.capabilities(CapabilitiesRequest::default()).await.unwrap().into_inner();
    assert_eq!(answer.p4runtime_api_version, "1.5.0");
    let elsewhere = CapabilitiesRequest { device_id: DEVICE + 1 };
    assert_eq!(client.calls.capabilities(elsewhere).await.unwrap_err().code(), Code::NotFound);
}

#[tokio::test]
async fn without_a_program_there_is_nothing_to_read_or_write() {
    let device = Device::start();
    let mut client = Client::primary(&device, 1).await;
    assert_eq!(client.config(ResponseType::All).await, None);
    let read = client.read_all(vec![Entity::TableEntry(TableEntry::default())]).await.unwrap_err();
    assert_eq!(read.code(), Code::FailedPrecondition);
    let updates = vec![update(update::Type::Insert, Entity::TableEntry(TableEntry::default()))];
    let written = client.write_with(Default::default(), updates).await.unwrap_err();
    assert_eq!(written.code(), Code::FailedPrecondition);
}

#[tokio::test]
async fn lookups_are_counted_in_programs_that_controllers_bring() {
    let device = Device::start();
    device.ready().await;
    let report = device.control.report(Duration::from_secs(10)).unwrap();
    assert_eq!((report.lookups.len(), report.lookups[0].lookups), (6, 0));
}

#[tokio::test]
async fn a_program_is_verified_committed_and_given_back() {
    let mut device = Device::start();
    let mut client = Client::primary(&device, 1).await;
    client.set(Action::Verify, ALL).await.unwrap();
    assert_eq!(client.config(ResponseType::All).await, None);
    let refused = client.set(Action::VerifyAndCommit, "control c() {").await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().contains("device_config.p4:1"), "{}", refused.message());
    for action in [Action::Verify, Action::VerifyAndSave, Action::VerifyAndCommit, Action::ReconcileAndCommit]
    {
        assert_eq!(client.set(action, "").await.unwrap_err().code(), Code::InvalidArgument, "{action:?}");
    }
    assert_eq!(client.set(Action::Unspecified, ALL).await.unwrap_err().code(), Code::InvalidArgument);

    client.set(Action::VerifyAndCommit, ALL).await.unwrap();
    let all = client.config(ResponseType::All).await.unwrap();
    assert_eq!(all.p4_device_config, ALL.as_bytes());
    assert_eq!(all.cookie.unwrap().cookie, 77);
    assert_eq!(all.p4info.as_ref().unwrap().tables.len(), 6);
    let cookie = client.config(ResponseType::CookieOnly).await.unwrap();
    assert!(cookie.p4info.is_none() && cookie.p4_device_config.is_empty() && cookie.cookie.is_some());
    let info = client.config(ResponseType::P4infoAndCookie).await.unwrap();
    assert!(info.p4info.is_some() && info.p4_device_config.is_empty() && info.cookie.is_some());
    let config = client.config(ResponseType::DeviceConfigAndCookie).await.unwrap();
    assert!(config.p4info.is_none() && !config.p4_device_config.is_empty());

    // It forwards.
    client.insert(Entity::TableEntry(client.route([10, 1, 0, 0], 16, 2))).await.unwrap();
    device.ports[0].send(frame(1, [10, 1, 2, 3])).unwrap();
    assert_eq!(leaving(&mut device, 1).await, frame(1, [10, 1, 2, 3]));
}

#[tokio::test]
async fn a_controllers_p4info_must_be_the_programs() {
    let device = Device::start();
    let mut client = device.ready().await;
    let mut wrong = client.info.clone();
    wrong.tables[0].preamble.as_mut().unwrap().id += 1;
    let request = |info| SetForwardingPipelineConfigRequest {
        device_id: DEVICE,
        election_id: client.election,
        action: Action::VerifyAndCommit as i32,
        config: Some(ForwardingPipelineConfig {
            p4info: Some(info),
            p4_device_config: ALL.as_bytes().to_vec().into(),
            cookie: None,
        }),
        ..Default::default()
    };
    let refused = client.calls.set_forwarding_pipeline_config(request(wrong)).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().starts_with("p4info: the program has no `In."), "{}", refused.message());
    // One that knows less, and names it otherwise, is fine, and comes back as it was given.
    let mut fewer = client.info.clone();
    fewer.tables.truncate(2);
    fewer.pkg_info = None;
    client.calls.set_forwarding_pipeline_config(request(fewer.clone())).await.unwrap();
    assert_eq!(client.config(ResponseType::All).await.unwrap().p4info, Some(fewer));
}

#[tokio::test]
async fn what_is_written_to_a_saved_program_is_there_when_it_is_committed() {
    let mut device = Device::start();
    let mut client = device.ready().await;
    assert_eq!(client.set(Action::Commit, "").await.unwrap_err().code(), Code::NotFound);
    client.insert(Entity::TableEntry(client.route([10, 1, 0, 0], 16, 2))).await.unwrap();

    client.set(Action::VerifyAndSave, ALL).await.unwrap();
    let wildcard = Entity::TableEntry(TableEntry { table_id: client.table("route"), ..Default::default() });
    assert!(client.read(wildcard.clone()).await.is_empty(), "reads mean the saved program");
    client.insert(Entity::TableEntry(client.route([10, 2, 0, 0], 16, 2))).await.unwrap();
    // The old one forwards on.
    device.ports[0].send(frame(1, [10, 2, 0, 1])).unwrap();
    device.ports[0].send(frame(1, [10, 1, 0, 1])).unwrap();
    let sent = leaving(&mut device, 1).await;
    assert_eq!(sent, frame(1, [10, 1, 0, 1]));

    let with_config = client.set(Action::Commit, ALL).await.unwrap_err();
    assert_eq!(with_config.code(), Code::InvalidArgument);
    client.set(Action::Commit, "").await.unwrap();
    assert_eq!(client.read(wildcard).await.len(), 1);
    device.ports[0].send(frame(1, [10, 1, 0, 1])).unwrap();
    device.ports[0].send(frame(1, [10, 2, 0, 1])).unwrap();
    let sent = leaving(&mut device, 1).await;
    assert_eq!(sent, frame(1, [10, 2, 0, 1]));
}

#[tokio::test]
async fn another_program_takes_over_with_what_was_written() {
    let mut device = Device::start();
    let mut client = device.ready().await;
    let metadata = TableEntry { metadata: vec![1, 2, 3].into(), ..client.route([10, 1, 0, 0], 16, 2) };
    client.insert(Entity::TableEntry(metadata.clone())).await.unwrap();
    device.ports[0].send(frame(1, [10, 1, 0, 1])).unwrap();
    leaving(&mut device, 1).await;

    // The same tables, more of them, and another order of the actions.
    let other = ALL
        .replace("actions = { forward; drop; to_cpu; @defaultonly", "actions = { to_cpu; drop; forward; @defaultonly")
        .replace("    table sources {", "    table more { key = { hdr.ipv4.id: exact; } actions = { drop; NoAction; } }\n    table sources {")
        .replace("sources.apply();", "sources.apply(); more.apply();");
    client.set(Action::ReconcileAndCommit, &other).await.unwrap();
    assert_eq!(client.info.tables.len(), 7);
    let mut wanted = metadata;
    wanted.counter_data = Some(CounterData { byte_count: 60, packet_count: 1 });
    let request = TableEntry {
        table_id: client.table("route"),
        counter_data: Some(CounterData::default()),
        ..Default::default()
    };
    assert_eq!(client.read(Entity::TableEntry(request)).await, [Entity::TableEntry(wanted)]);
    let id = crate::common::id(client.info.counters.iter().map(|counter| &counter.preamble), "ports");
    let index = Some(Index { index: 1 });
    let read = client.read(Entity::CounterEntry(CounterEntry { counter_id: id, index, data: None })).await;
    let data = Some(CounterData { byte_count: 60, packet_count: 1 });
    assert_eq!(read, [Entity::CounterEntry(CounterEntry { counter_id: id, index, data })]);
    device.ports[0].send(frame(1, [10, 1, 0, 1])).unwrap();
    let sent = leaving(&mut device, 1).await;
    assert_eq!(sent, frame(1, [10, 1, 0, 1]));

    // A program without a place for the route is refused, and nothing changes.
    let without = other.replace(
        "hdr.ipv4.dst: lpm; }\n        actions = { to_cpu",
        "hdr.ipv4.dst: exact; }\n        actions = { to_cpu",
    );
    assert_ne!(without, other);
    let refused = client.set(Action::ReconcileAndCommit, &without).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().contains("In.route"), "{}", refused.message());
    let wildcard = Entity::TableEntry(TableEntry { table_id: client.table("route"), ..Default::default() });
    assert_eq!(client.read(wildcard).await.len(), 1);
}

/// Sets a program, asking for what is to be kept; gives what the answer says of it.
async fn set_keeping(
    client: &mut Client,
    action: Action,
    source: &str,
    keep: &'static str,
) -> Result<Option<Report>, tonic::Status> {
    let config = (!source.is_empty()).then(|| ForwardingPipelineConfig {
        p4_device_config: source.as_bytes().to_vec().into(),
        ..Default::default()
    });
    let mut request = tonic::Request::new(SetForwardingPipelineConfigRequest {
        device_id: DEVICE,
        election_id: client.election,
        action: action as i32,
        config,
        ..Default::default()
    });
    request.metadata_mut().insert(KEEP_KEY, keep.parse().unwrap());
    let answer = client.calls.set_forwarding_pipeline_config(request).await?;
    let report = answer.metadata().get_bin(REPORT_KEY).map(|report| report.to_bytes().unwrap());
    Ok(report.map(|report| serde_json::from_slice(&report).unwrap()))
}

fn lines(items: &[Item]) -> Vec<String> {
    items.iter().map(|item| format!("{} {} {}", item.name, item.count, item.what)).collect()
}

#[tokio::test]
async fn a_change_that_keeps_what_fits_says_what_it_dropped() {
    let mut device = Device::start();
    let mut client = device.ready().await;
    let watched = TableEntry { metadata: vec![9].into(), ..client.route([10, 1, 0, 0], 16, 2) };
    client.insert(Entity::TableEntry(watched.clone())).await.unwrap();
    let to_cpu = TableEntry { action: client.run("to_cpu", &[&[1]]), ..client.route([10, 2, 0, 0], 16, 2) };
    client.insert(Entity::TableEntry(to_cpu)).await.unwrap();
    device.ports[0].send(frame(1, [10, 1, 0, 1])).unwrap();
    leaving(&mut device, 1).await;

    // `route` without `to_cpu`, and smaller registers.
    let other = ALL
        .replace("actions = { forward; drop; to_cpu; @defaultonly", "actions = { drop; forward; @defaultonly")
        .replace("register<bit<32>>(8) last", "register<bit<32>>(4) last");
    let refused = client.set(Action::ReconcileAndCommit, &other).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(
        refused
            .message()
            .contains("1 entries of table `In.route` (action `In.to_cpu` is not in the new program)"),
        "{}",
        refused.message()
    );
    let report =
        set_keeping(&mut client, Action::VerifyAndCommit, &other, "compatible").await.unwrap().unwrap();
    assert_eq!(lines(&report.dropped), ["In.route 1 entries"]);
    assert_eq!(
        lines(&report.kept),
        ["In.route 1 entries", "In.ports 16 cells", "In.limits 16 cells", "In.last 4 cells"]
    );
    let wildcard = TableEntry {
        table_id: client.table("route"),
        counter_data: Some(CounterData::default()),
        ..Default::default()
    };
    let mut wanted = watched.clone();
    wanted.counter_data = Some(CounterData { byte_count: 60, packet_count: 1 });
    assert_eq!(client.read(Entity::TableEntry(wildcard.clone())).await, [Entity::TableEntry(wanted)]);
    device.ports[0].send(frame(1, [10, 1, 0, 1])).unwrap();
    leaving(&mut device, 1).await;

    // A saved program takes over the same way, unless it was written to; then nothing changes.
    client.set(Action::VerifyAndSave, ALL).await.unwrap();
    client.insert(Entity::TableEntry(client.route([10, 3, 0, 0], 16, 2))).await.unwrap();
    let refused = set_keeping(&mut client, Action::Commit, "", "compatible").await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    client.set(Action::VerifyAndSave, ALL).await.unwrap();
    let report = set_keeping(&mut client, Action::Commit, "", "everything").await.unwrap().unwrap();
    assert_eq!((report.dropped, lines(&report.kept)[0].as_str()), (vec![], "In.route 1 entries"));
    let mut wanted = watched;
    wanted.counter_data = Some(CounterData { byte_count: 120, packet_count: 2 });
    assert_eq!(client.read(Entity::TableEntry(wildcard.clone())).await, [Entity::TableEntry(wanted)]);
    device.ports[0].send(frame(1, [10, 1, 0, 1])).unwrap();
    leaving(&mut device, 1).await;

    // Without asking, a commit starts from nothing, and says nothing of what there was.
    assert_eq!(set_keeping(&mut client, Action::VerifyAndCommit, ALL, "nothing").await.unwrap(), None);
    assert!(client.read(Entity::TableEntry(wildcard)).await.is_empty());
    let wrong = set_keeping(&mut client, Action::VerifyAndCommit, ALL, "some").await.unwrap_err();
    assert_eq!(wrong.code(), Code::InvalidArgument);
}
