//! Roles with a config of Stratum's scheme: what they read and write, which packets they hear of, who sets the program.

use crate::common::{Client, DEVICE, Device, election, frame};
use millrace_p4runtime_api::stratum::{P4RoleConfig, p4_role_config::PacketFilter};
use millrace_p4runtime_api::v1::entity::Entity;
use millrace_p4runtime_api::v1::set_forwarding_pipeline_config_request::Action;
use millrace_p4runtime_api::v1::stream_message_response::Update as Heard;
use millrace_p4runtime_api::v1::*;
use prost::Message;
use prost_types::Any;
use tonic::{Code, Status};

fn any(config: &P4RoleConfig) -> Any {
    Any { type_url: "type.googleapis.com/stratum.P4RoleConfig".into(), value: config.encode_to_vec() }
}

/// A client that asks for a role with a config, and the answer.
async fn join(
    device: &Device,
    role: &str,
    id: u64,
    config: Any,
) -> (Client, Result<MasterArbitrationUpdate, Status>) {
    let mut client = Client::connect(device).await;
    client.role = role.into();
    client.election = Some(election(id));
    let update = MasterArbitrationUpdate {
        device_id: DEVICE,
        role: Some(Role { name: role.into(), config: Some(config), ..Role::default() }),
        election_id: client.election,
        status: None,
    };
    client.stream.tell(stream_message_request::Update::Arbitration(update)).await;
    let answer = client.stream.arbitration().await;
    (client, answer)
}

fn table(table_id: u32) -> Entity {
    Entity::TableEntry(TableEntry { table_id, ..TableEntry::default() })
}

#[tokio::test]
async fn a_role_reads_and_writes_its_own_objects_alone() {
    let device = Device::start();
    let mut all = device.ready().await;
    all.insert(Entity::TableEntry(all.route([10, 0, 0, 0], 8, 1))).await.unwrap();
    let (route, acl) = (all.table("route"), all.table("acl"));
    let config = P4RoleConfig {
        exclusive_p4_ids: vec![acl],
        shared_p4_ids: vec![all.table("next")],
        ..Default::default()
    };
    let (mut guard, answer) = join(&device, "guard", 1, any(&config)).await;
    let answer = answer.unwrap();
    assert_eq!(answer.status.unwrap().code, Code::Ok as i32);
    assert_eq!(answer.role.unwrap().config, Some(any(&config)));

    let entry = Entity::TableEntry(all.route([11, 0, 0, 0], 8, 1));
    let updates = vec![crate::common::update(update::Type::Insert, entry.clone())];
    let refused = guard.write_with(Default::default(), updates.clone()).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    assert!(refused.message().contains("role `guard` may not"), "{}", refused.message());
    let rule = TableEntry {
        table_id: acl,
        r#match: vec![crate::common::ternary(1, &[10, 0, 0, 1], &[255, 255, 255, 255])],
        priority: 1,
        action: all.run("drop", &[]),
        ..TableEntry::default()
    };
    guard.insert(Entity::TableEntry(rule)).await.unwrap();
    // Nothing of a batch with something of others is done.
    let both = [updates, vec![crate::common::update(update::Type::Delete, table(acl))]].concat();
    assert_eq!(guard.write_with(Default::default(), both).await.unwrap_err().code(), Code::PermissionDenied);

    let denied = guard.read_all(vec![table(route)]).await.unwrap_err();
    assert_eq!(denied.code(), Code::PermissionDenied);
    let seen = guard.read(table(0)).await;
    assert!(matches!(&seen[..], [Entity::TableEntry(entry)] if entry.table_id == acl), "{seen:?}");
    let counters = Entity::CounterEntry(CounterEntry::default());
    assert!(guard.read(counters.clone()).await.is_empty());
    assert!(!all.read(counters).await.is_empty());
    // The default role may do everything still, and so may a role without a config.
    all.insert(entry).await.unwrap();
    let refused = guard.set(Action::VerifyAndCommit, crate::common::ALL).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    assert!(refused.message().contains("may not set the program"), "{}", refused.message());
    // The next primary brings a config of its own.
    let config = P4RoleConfig { can_push_pipeline: true, ..config };
    let (mut guard, _) = join(&device, "guard", 2, any(&config)).await;
    guard.set(Action::VerifyAndCommit, crate::common::ALL).await.unwrap();
}

#[tokio::test]
async fn packet_ins_go_to_the_roles_that_ask_for_them() {
    let device = Device::start();
    let mut all = device.ready().await;
    let role = |reason: Option<&'static [u8]>, receives_packet_ins| {
        let packet_in_filter = reason.map(|value| PacketFilter { metadata_id: 2, value: value.into() });
        any(&P4RoleConfig { packet_in_filter, receives_packet_ins, ..Default::default() })
    };
    let (mut deaf, _) = join(&device, "deaf", 1, role(None, false)).await;
    let (mut hears, _) = join(&device, "hears", 1, role(None, true)).await;
    // The number has a byte more than it needs.
    let (mut fives, _) = join(&device, "fives", 1, role(Some(&[0, 5]), true)).await;
    for (net, reason) in [(10, 5), (11, 6)] {
        let action = all.run("to_cpu", &[&[reason]]);
        let route = TableEntry { action, ..all.route([net, 0, 0, 0], 8, 1) };
        all.insert(Entity::TableEntry(route)).await.unwrap();
        device.ports[1].send(frame(1, [net, 0, 0, 1])).unwrap();
    }
    let reason = |heard: Heard| match heard {
        Heard::Packet(packet) => packet.metadata[1].value[0],
        other => panic!("{other:?}"),
    };
    for expected in [5, 6] {
        assert_eq!(reason(all.stream.next().await.unwrap()), expected);
        assert_eq!(reason(hears.stream.next().await.unwrap()), expected);
    }
    assert_eq!(reason(fives.stream.next().await.unwrap()), 5);
    assert!(fives.stream.is_silent().await);
    assert!(deaf.stream.is_silent().await);
}

#[tokio::test]
async fn configs_that_end_a_stream() {
    let device = Device::start();
    let owner = P4RoleConfig { exclusive_p4_ids: vec![7], shared_p4_ids: vec![8], ..Default::default() };
    let (_owner, answer) = join(&device, "owner", 1, any(&owner)).await;
    answer.unwrap();
    let shares = P4RoleConfig { shared_p4_ids: vec![8], ..Default::default() };
    let (_shares, answer) = join(&device, "shares", 1, any(&shares)).await;
    answer.unwrap();
    for (role, config) in [
        ("", any(&shares)),
        ("other", Any::default()),
        ("other", any(&owner)),
        ("other", any(&P4RoleConfig { exclusive_p4_ids: vec![8], ..Default::default() })),
        ("other", any(&P4RoleConfig { shared_p4_ids: vec![7], ..Default::default() })),
    ] {
        let (_, answer) = join(&device, role, 9, config).await;
        assert_eq!(answer.unwrap_err().code(), Code::InvalidArgument, "{role}");
    }
}
