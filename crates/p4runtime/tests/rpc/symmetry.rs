//! Byte strings longer than they need to be: understood, and read again in the one form that the specification has.

use crate::common::{Client, Device, exact, lpm, update};
use crate::replication::{multicast, replica};
use millrace_p4runtime_api::v1::entity::Entity;
use millrace_p4runtime_api::v1::packet_replication_engine_entry::Type;
use millrace_p4runtime_api::v1::*;
use tonic::Code;

/// A port with so many zero bytes in front.
fn port(zeroes: usize, number: u8) -> prost::bytes::Bytes {
    [vec![0; zeroes], vec![number]].concat().into()
}

#[tokio::test]
async fn replicas() {
    let device = Device::start();
    let mut client = device.ready().await;
    let replicas = |zeroes: usize| {
        let first = Replica {
            port_kind: Some(replica::PortKind::Port(port(zeroes, 1))),
            backup_replicas: vec![BackupReplica { port: port(zeroes, 2), instance: 3 }],
            ..replica(0, 1)
        };
        vec![first, Replica { port_kind: Some(replica::PortKind::Port(port(zeroes, 0))), ..replica(0, 2) }]
    };
    let session = |zeroes: usize| {
        Entity::PacketReplicationEngineEntry(PacketReplicationEngineEntry {
            r#type: Some(Type::CloneSessionEntry(CloneSessionEntry {
                session_id: 5,
                replicas: replicas(zeroes),
                ..CloneSessionEntry::default()
            })),
        })
    };
    client.insert(multicast(3, replicas(3))).await.unwrap();
    client.insert(session(1)).await.unwrap();
    assert_eq!(client.read(multicast(3, vec![])).await, [multicast(3, replicas(0))]);
    assert_eq!(client.read(session(0)).await, [session(0)]);
    client.modify(multicast(3, replicas(9))).await.unwrap();
    assert_eq!(client.read(multicast(0, vec![])).await, [multicast(3, replicas(0))]);
}

#[tokio::test]
async fn groups_and_their_ports() {
    use action_profile_action::WatchKind;
    let device = Device::start();
    let mut client = device.ready().await;
    let names = client.names();
    let one_shot = |zeroes: usize| {
        let action = |number: u8, watch_kind| ActionProfileAction {
            action: Some(names.call("forward", &[&port(zeroes, number)])),
            weight: 2,
            watch_kind,
        };
        #[allow(deprecated)]
        let numbered = WatchKind::Watch(2);
        let actions = vec![
            action(1, Some(WatchKind::WatchPort(port(zeroes, 1)))),
            action(2, Some(numbered)),
            action(2, None),
            action(0, Some(WatchKind::WatchPort(Default::default()))),
        ];
        let set = ActionProfileActionSet { action_profile_actions: actions, ..Default::default() };
        TableEntry {
            table_id: names.table("ecmp"),
            r#match: vec![lpm(1, &[10, 0, 0, 0], 8)],
            action: Some(TableAction { r#type: Some(table_action::Type::ActionProfileActionSet(set)) }),
            ..TableEntry::default()
        }
    };
    client.insert(Entity::TableEntry(one_shot(2))).await.unwrap();
    let all = TableEntry { table_id: names.table("ecmp"), ..TableEntry::default() };
    assert_eq!(client.read(Entity::TableEntry(all.clone())).await, [Entity::TableEntry(one_shot(0))]);

    // What a later version has, and would be lost, is refused: the group's own action.
    let mut with_own = one_shot(0);
    with_own.r#match = vec![lpm(1, &[11, 0, 0, 0], 8)];
    if let Some(TableAction { r#type: Some(table_action::Type::ActionProfileActionSet(set)) }) =
        &mut with_own.action
    {
        set.group_action = Some(names.call("drop", &[]));
    }
    let refused = client.insert(Entity::TableEntry(with_own)).await.unwrap_err();
    assert_eq!(refused.code, Code::Unimplemented, "{refused:?}");
    client.delete(Entity::TableEntry(one_shot(0))).await.unwrap();

    let group = |zeroes: usize, max_size| {
        Entity::ActionProfileGroup(ActionProfileGroup {
            action_profile_id: names.profile("ecmp_members"),
            group_id: 1,
            members: vec![action_profile_group::Member {
                member_id: 1,
                weight: 1,
                watch_kind: Some(action_profile_group::member::WatchKind::WatchPort(port(zeroes, 2))),
            }],
            max_size,
        })
    };
    let member = ActionProfileMember {
        action_profile_id: names.profile("ecmp_members"),
        member_id: 1,
        action: Some(names.call("forward", &[&[0, 1]])),
    };
    client.insert(Entity::ActionProfileMember(member)).await.unwrap();
    let refused = client.insert(group(1, 65_537)).await.unwrap_err();
    assert_eq!(refused.code, Code::ResourceExhausted, "no group is ever that large: {refused:?}");
    client.insert(group(1, 65_536)).await.unwrap();
    assert_eq!(client.read(group(0, 0)).await, [group(0, 65_536)]);
}

/// A table whose values are texts to the controller, each a number of eight bits.
const NAMES: &str = r#"
#include <core.p4>
#include <v1model.p4>
@p4runtime_translation("", string) type bit<8> place_t;
header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
struct headers_t { ethernet_t ethernet; }
struct meta_t { place_t place; }
parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start { packet.extract(hdr.ethernet); transition accept; }
}
control Verify(inout headers_t hdr, inout meta_t meta) { apply {} }
control In(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    action go(place_t to) { meta.place = to; }
    table places { key = { meta.place: exact; } actions = { go; } }
    apply { places.apply(); }
}
control Out(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) { apply {} }
control Compute(inout headers_t hdr, inout meta_t meta) { apply {} }
control Deparse(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.ethernet); } }
V1Switch(Parse(), Verify(), In(), Out(), Compute(), Deparse()) main;
"#;

#[tokio::test]
async fn texts_are_named_by_what_is_written_alone_and_stay_through_other_programs() {
    use set_forwarding_pipeline_config_request::Action::{ReconcileAndCommit, VerifyAndCommit};
    let device = Device::start();
    let mut client = Client::primary(&device, 1).await;
    client.set(VerifyAndCommit, NAMES).await.unwrap();
    let names = client.names();
    let entry = |from: &str, to: &str| TableEntry {
        table_id: names.table("places"),
        r#match: vec![exact(1, from.as_bytes())],
        action: names.run("go", &[to.as_bytes()]),
        ..TableEntry::default()
    };
    // There are 255 numbers, and many more texts that are only asked for.
    for number in 0..300 {
        let absent = entry(&format!("nowhere {number}"), "");
        assert_eq!(client.delete(Entity::TableEntry(absent.clone())).await.unwrap_err().code, Code::NotFound);
        let key = TableEntry { action: None, ..absent };
        assert_eq!(client.read(Entity::TableEntry(key)).await, []);
    }
    let (there, back) = (entry("here", "there"), entry("there", "here"));
    client.insert(Entity::TableEntry(there.clone())).await.unwrap();
    client.set(ReconcileAndCommit, NAMES).await.unwrap();
    client.insert(Entity::TableEntry(back.clone())).await.unwrap();
    let all = TableEntry { table_id: names.table("places"), ..TableEntry::default() };
    assert_eq!(
        client.read(Entity::TableEntry(all)).await,
        [Entity::TableEntry(there.clone()), Entity::TableEntry(back)]
    );
    client.delete(Entity::TableEntry(there)).await.unwrap();
}

#[tokio::test]
async fn numbers_of_texts_that_nothing_has_are_given_to_others() {
    use update::Type::{Delete, Insert};
    let device = Device::start();
    let mut client = Client::primary(&device, 1).await;
    let action = set_forwarding_pipeline_config_request::Action::VerifyAndCommit;
    client.set(action, NAMES).await.unwrap();
    let names = client.names();
    let entry = |from: String, to: &str| {
        Entity::TableEntry(TableEntry {
            table_id: names.table("places"),
            r#match: vec![exact(1, from.as_bytes())],
            action: names.run("go", &[to.as_bytes()]),
            ..TableEntry::default()
        })
    };
    let all = |kind, round: u32| {
        let each = (0..100).map(|number| entry(format!("place {round} {number}"), "stays"));
        each.map(|entity| update(kind, entity)).collect::<Vec<_>>()
    };
    // Ten times a hundred texts, of which there is room for 255 at a time.
    let kept = entry("kept".into(), "stays");
    client.insert(kept.clone()).await.unwrap();
    for round in 0..10 {
        for atomicity in
            [write_request::Atomicity::ContinueOnError, write_request::Atomicity::RollbackOnError]
        {
            client.write_with(atomicity, all(Insert, round)).await.unwrap();
            client.write_with(atomicity, all(Delete, round)).await.unwrap();
        }
    }
    let table = TableEntry { table_id: names.table("places"), ..TableEntry::default() };
    assert_eq!(client.read(Entity::TableEntry(table)).await, [kept]);
    // More than there are numbers at a time are refused, and what was there before is as it was.
    for round in 10..12 {
        client.write_with(write_request::Atomicity::ContinueOnError, all(Insert, round)).await.unwrap();
    }
    let status = client.write_with(write_request::Atomicity::RollbackOnError, all(Insert, 12)).await;
    let refused = crate::common::errors(&status.unwrap_err());
    assert!(refused.iter().any(|error| error.code == Code::ResourceExhausted), "{:?}", refused[0]);
    // All entries are looked at for what can be freed, and that once a request: what it deletes after that is freed by the next one.
    let mut updates = all(Insert, 12);
    updates.extend([all(Delete, 10), all(Delete, 11), all(Insert, 13)].concat());
    let status = client.write_with(write_request::Atomicity::ContinueOnError, updates).await;
    let refused = status.unwrap_err();
    assert!(refused.message().contains("147 of 400 refused (54-100, 301-400)"), "{refused:?}");
    client.write_with(write_request::Atomicity::ContinueOnError, all(Insert, 13)).await.unwrap();
}
