//! Action profiles: members, groups, one-shot groups, watch ports.

use crate::batches::action_set;
use crate::common::{ALL, Client, Device, Names, exact, frame, leaving, lpm};
use millrace_chassis::Listener;
use millrace_dataplane::{Moment, Request};
use millrace_p4runtime_api::v1::entity::Entity;
use millrace_p4runtime_api::v1::*;
use tonic::Code;

fn member(client: &Names, profile: &str, member_id: u32, port: u8) -> Entity {
    Entity::ActionProfileMember(ActionProfileMember {
        action_profile_id: client.profile(profile),
        member_id,
        action: Some(client.call("forward", &[&[port]])),
    })
}

fn group(client: &Names, group_id: u32, members: &[(u32, i32, u8)]) -> ActionProfileGroup {
    let members = members.iter().map(|(member_id, weight, port)| action_profile_group::Member {
        member_id: *member_id,
        weight: *weight,
        watch_kind: (*port != 0)
            .then(|| action_profile_group::member::WatchKind::WatchPort(vec![*port].into())),
    });
    ActionProfileGroup {
        action_profile_id: client.profile("ecmp_members"),
        group_id,
        members: members.collect(),
        max_size: 8,
    }
}

fn ecmp(client: &Names, action: table_action::Type) -> TableEntry {
    TableEntry {
        table_id: client.table("ecmp"),
        r#match: vec![lpm(1, &[10, 0, 0, 0], 8)],
        action: Some(TableAction { r#type: Some(action) }),
        ..TableEntry::default()
    }
}

#[tokio::test]
async fn members_and_groups_are_written_and_read() {
    let device = Device::start();
    let mut client = device.ready().await;
    let (one, two) = (member(&client, "ecmp_members", 1, 1), member(&client, "ecmp_members", 2, 2));
    client.insert(one.clone()).await.unwrap();
    client.insert(two.clone()).await.unwrap();
    assert_eq!(client.insert(one.clone()).await.unwrap_err().code, Code::AlreadyExists);
    let all = Entity::ActionProfileMember(ActionProfileMember::default());
    assert_eq!(client.read(all).await, [one.clone(), two.clone()]);
    let both = group(&client, 1, &[(1, 1, 1), (2, 3, 0)]);
    client.insert(Entity::ActionProfileGroup(both.clone())).await.unwrap();
    let all = Entity::ActionProfileGroup(ActionProfileGroup::default());
    assert_eq!(client.read(all.clone()).await, [Entity::ActionProfileGroup(both.clone())]);

    let entry = ecmp(&client, table_action::Type::ActionProfileGroupId(1));
    client.insert(Entity::TableEntry(entry.clone())).await.unwrap();
    let wildcard = TableEntry { table_id: entry.table_id, ..Default::default() };
    assert_eq!(client.read(Entity::TableEntry(wildcard)).await, [Entity::TableEntry(entry.clone())]);

    let unknown = ecmp(&client, table_action::Type::ActionProfileGroupId(9));
    let direct = ecmp(&client, table_action::Type::Action(client.call("drop", &[])));
    let one_shot = ecmp(&client, table_action::Type::ActionProfileActionSet(action_set(&client, &[1])));
    use update::Type::{Delete, Insert, Modify};
    let groups = |members: &[(u32, i32, u8)]| Entity::ActionProfileGroup(group(&client, 1, members));
    for (kind, entity, code) in [
        (Delete, one.clone(), Code::FailedPrecondition),
        (Delete, Entity::ActionProfileGroup(both.clone()), Code::FailedPrecondition),
        (Modify, Entity::TableEntry(unknown), Code::NotFound),
        (Modify, Entity::TableEntry(direct), Code::InvalidArgument),
        (Modify, Entity::TableEntry(one_shot), Code::InvalidArgument),
        (Modify, groups(&[(1, 1, 0), (1, 1, 0)]), Code::InvalidArgument),
        (Modify, groups(&[(1, 0, 0)]), Code::InvalidArgument),
        (Modify, groups(&[(1, 9, 0)]), Code::InvalidArgument),
        (Modify, groups(&[(3, 1, 0)]), Code::NotFound),
        (Modify, groups(&[(1, 1, 77)]), Code::InvalidArgument),
        (
            Modify,
            Entity::ActionProfileGroup(ActionProfileGroup { max_size: 9, ..both.clone() }),
            Code::InvalidArgument,
        ),
        (Insert, Entity::ActionProfileGroup(both.clone()), Code::AlreadyExists),
        (
            Insert,
            Entity::ActionProfileGroup(ActionProfileGroup {
                action_profile_id: client.profile("nexthops"),
                ..both.clone()
            }),
            Code::InvalidArgument,
        ),
        (Insert, member(&client, "ecmp_members", 0, 1), Code::InvalidArgument),
        (Insert, member(&client, "ecmp_members", 0x8000_0000, 1), Code::InvalidArgument),
        (Modify, member(&client, "ecmp_members", 5, 1), Code::NotFound),
    ] {
        let refused = client.write(kind, entity).await.unwrap_err();
        assert_eq!(refused.code, code, "{refused:?}");
    }
    assert_eq!(client.read(all).await, [Entity::ActionProfileGroup(both.clone())]);

    client.delete(Entity::TableEntry(entry)).await.unwrap();
    client.delete(Entity::ActionProfileGroup(both)).await.unwrap();
    client.delete(one).await.unwrap();
    client.delete(two).await.unwrap();
}

/// What a group costs before it is refused grows as its members do, also with as many as a request has room for.
#[tokio::test]
async fn a_group_with_more_members_than_there_can_be_is_refused() {
    let device = Device::start();
    let mut client = device.ready().await;
    let members: Vec<_> = (1..1_000_000).map(|id| (id, 1, 0)).collect();
    let large = ActionProfileGroup { max_size: 0, ..group(&client, 1, &members) };
    let refused = client.insert(Entity::ActionProfileGroup(large)).await.unwrap_err();
    assert_eq!(refused.code, Code::ResourceExhausted, "{refused:?}");
    let twice = group(&client, 1, &[(1, 1, 0), (2, 1, 0), (1, 1, 0)]);
    let refused = client.insert(Entity::ActionProfileGroup(twice)).await.unwrap_err();
    assert_eq!(refused.message, "member 1 is given twice");
}

#[tokio::test]
async fn a_profile_without_selector_has_members_only() {
    let device = Device::start();
    let mut client = device.ready().await;
    client.insert(member(&client, "nexthops", 4, 2)).await.unwrap();
    let names = client.names();
    let entry = |action| TableEntry {
        table_id: names.table("next"),
        r#match: vec![exact(1, &[0])],
        action: Some(TableAction { r#type: Some(action) }),
        ..TableEntry::default()
    };
    client.insert(Entity::TableEntry(entry(table_action::Type::ActionProfileMemberId(4)))).await.unwrap();
    let refused = client.modify(Entity::TableEntry(entry(table_action::Type::ActionProfileGroupId(4)))).await;
    assert_eq!(refused.unwrap_err().code, Code::InvalidArgument);
    // What the member does, the packet feels; and what it is changed to.
    device.ports[0].send(frame(1, [10, 0, 0, 1])).unwrap();
    let mut device = device;
    assert_eq!(leaving(&mut device, 1).await, frame(1, [10, 0, 0, 1]));
}

#[tokio::test]
async fn one_shot_groups_come_back_and_go_with_their_entry() {
    let device = Device::start();
    let mut client = device.ready().await;
    let names = client.names();
    let shot =
        |ports: &[u8]| ecmp(&names, table_action::Type::ActionProfileActionSet(action_set(&names, ports)));
    let (first, second) = (shot(&[1, 2, 1]), shot(&[2]));
    client.insert(Entity::TableEntry(first.clone())).await.unwrap();
    let wildcard = Entity::TableEntry(TableEntry { table_id: first.table_id, ..Default::default() });
    assert_eq!(client.read(wildcard.clone()).await, [Entity::TableEntry(first.clone())]);
    // Its members and group are nobody's business.
    assert_eq!(client.read(Entity::ActionProfileMember(Default::default())).await, []);
    assert_eq!(client.read(Entity::ActionProfileGroup(Default::default())).await, []);
    let refused = client.insert(member(&client, "ecmp_members", 1, 1)).await.unwrap_err();
    assert_eq!(refused.code, Code::InvalidArgument);

    client.modify(Entity::TableEntry(second.clone())).await.unwrap();
    assert_eq!(client.read(wildcard).await, [Entity::TableEntry(second.clone())]);
    client.delete(Entity::TableEntry(second)).await.unwrap();
    // Nothing is left: the profile holds 64 members, and takes them all.
    for round in 0..3 {
        let full = shot(&[1; 64]);
        client
            .insert(Entity::TableEntry(full.clone()))
            .await
            .unwrap_or_else(|error| panic!("{round}: {error:?}"));
        client.delete(Entity::TableEntry(full)).await.unwrap();
    }
    let refused = client.insert(Entity::TableEntry(shot(&[1; 65]))).await.unwrap_err();
    assert_eq!(refused.code, Code::ResourceExhausted);
    client.insert(member(&client, "ecmp_members", 1, 1)).await.unwrap();
}

/// Says that a port is broken.
async fn fail(device: &Device, port: u32) {
    let feed = device.server.as_ref().unwrap().feed();
    tokio::task::spawn_blocking(move || feed.port_failed(port, "broken")).await.unwrap();
}

/// Says that a link is up or down.
async fn link(device: &Device, port: u32, is_up: bool) {
    let feed = device.server.as_ref().unwrap().feed();
    tokio::task::spawn_blocking(move || feed.link(port, is_up)).await.unwrap();
}

/// Waits until the groups have so many members for the packets.
async fn members_are(device: &Device, wanted: &[usize]) {
    let found = || {
        let Moment { program, tables, .. } = device.control.ask(Request::Look).unwrap();
        let profiles = program.profiles.iter();
        let (profile, _) =
            profiles.into_iter().find(|(_, made)| made.name.ends_with("ecmp_members")).unwrap();
        let tables = tables.lock();
        tables.groups(profile).map(|(_, members)| members.len()).collect::<Vec<_>>()
    };
    for _ in 0..500 {
        if found() == wanted {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(found(), wanted);
}

#[tokio::test]
async fn a_port_that_comes_up_again_gets_its_members_back() {
    let device = Device::start();
    let mut client = device.ready().await;
    for port in [1, 2] {
        client.insert(member(&client.names(), "ecmp_members", port.into(), port)).await.unwrap();
    }
    // A group that is made while a port is down, before and after another program came.
    link(&device, 1, false).await;
    client.set(set_forwarding_pipeline_config_request::Action::ReconcileAndCommit, ALL).await.unwrap();
    let both = Entity::ActionProfileGroup(group(&client, 1, &[(1, 1, 1), (2, 1, 2)]));
    client.insert(both.clone()).await.unwrap();
    members_are(&device, &[1]).await;
    assert_eq!(client.read(both.clone()).await, std::slice::from_ref(&both));
    // Its members are in use, all of them.
    for port in [1, 2] {
        let names = client.names();
        let refused = client.delete(member(&names, "ecmp_members", port.into(), port)).await.unwrap_err();
        assert_eq!(refused.code, Code::FailedPrecondition, "{refused:?}");
    }
    link(&device, 1, true).await;
    members_are(&device, &[2]).await;
    link(&device, 1, true).await;
    link(&device, 2, false).await;
    members_are(&device, &[1]).await;
    // What is broken stays so, whatever its link does.
    fail(&device, 1).await;
    members_are(&device, &[0]).await;
    link(&device, 1, true).await;
    link(&device, 2, true).await;
    members_are(&device, &[1]).await;
    assert_eq!(client.read(both.clone()).await, [both]);
}

#[tokio::test]
async fn a_port_that_was_removed_cannot_be_watched_until_it_is_added() {
    let device = Device::start();
    let mut client = device.ready().await;
    for port in [1, 2] {
        client.insert(member(&client.names(), "ecmp_members", port.into(), port)).await.unwrap();
    }
    let both = Entity::ActionProfileGroup(group(&client, 1, &[(1, 1, 1), (2, 1, 2)]));
    client.insert(both).await.unwrap();
    fail(&device, 1).await;
    let feed = device.server.as_ref().unwrap().feed();
    tokio::task::spawn_blocking(move || feed.port_removed(1)).await.unwrap();
    // What the server hears it takes in order.
    link(&device, 2, false).await;
    members_are(&device, &[0]).await;
    let other = Entity::ActionProfileGroup(group(&client, 2, &[(1, 1, 1)]));
    assert_eq!(client.insert(other.clone()).await.unwrap_err().code, Code::InvalidArgument);
    let feed = device.server.as_ref().unwrap().feed();
    tokio::task::spawn_blocking(move || feed.port_added(1)).await.unwrap();
    members_are(&device, &[1]).await;
    client.insert(other).await.unwrap();
    members_are(&device, &[1, 1]).await;
}

/// A table whose default action is not what an empty group does, and two selectors with limits of their own.
const SELECTORS: &str = r#"
#include <core.p4>
#include <v1model.p4>
header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
struct headers_t { ethernet_t ethernet; }
struct meta_t {}
parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start { packet.extract(hdr.ethernet); transition accept; }
}
control Verify(inout headers_t hdr, inout meta_t meta) { apply {} }
control In(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    @max_group_size(8) action_selector(HashAlgorithm.crc16, 64, 16) weights;
    @max_group_size(3) @selector_size_semantics("sum_of_members") @max_member_weight(4)
    action_selector(HashAlgorithm.crc16, 64, 16) members;
    action forward(bit<9> port) { std.egress_spec = port; }
    table by_weight {
        key = { hdr.ethernet.type: exact; hdr.ethernet.dst: selector; }
        actions = { forward; }
        const default_action = forward(2);
        implementation = weights;
    }
    table by_member {
        key = { hdr.ethernet.type: exact; hdr.ethernet.dst: selector; }
        actions = { forward; }
        const default_action = forward(2);
        implementation = members;
    }
    apply {
        std.egress_spec = 1;
        if (hdr.ethernet.type == 0x800) { by_weight.apply(); } else { by_member.apply(); }
    }
}
control Out(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) { apply {} }
control Compute(inout headers_t hdr, inout meta_t meta) { apply {} }
control Deparse(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.ethernet); } }
V1Switch(Parse(), Verify(), In(), Out(), Compute(), Deparse()) main;
"#;

async fn with_selectors(device: &Device) -> Client {
    let mut client = Client::primary(device, 1).await;
    client.set(set_forwarding_pipeline_config_request::Action::VerifyAndCommit, SELECTORS).await.unwrap();
    client
}

/// An entry for IPv4 with a group: ports with weights.
fn choice(client: &Names, table: &str, members: &[(u8, i32)]) -> (TableEntry, ActionProfileActionSet) {
    let members = members.iter().map(|(port, weight)| ActionProfileAction {
        action: Some(client.call("forward", &[&[*port]])),
        weight: *weight,
        watch_kind: Some(action_profile_action::WatchKind::WatchPort(vec![*port].into())),
    });
    let set = ActionProfileActionSet { action_profile_actions: members.collect(), ..Default::default() };
    let entry = TableEntry {
        table_id: client.table(table),
        r#match: vec![exact(1, &[8, 0])],
        ..TableEntry::default()
    };
    (entry, set)
}

fn with(entry: &TableEntry, set: ActionProfileActionSet) -> Entity {
    let action = Some(TableAction { r#type: Some(table_action::Type::ActionProfileActionSet(set)) });
    Entity::TableEntry(TableEntry { action, ..entry.clone() })
}

#[tokio::test]
async fn a_group_whose_ports_are_all_down_does_nothing() {
    let mut device = Device::start();
    let mut client = with_selectors(&device).await;
    let (entry, set) = choice(&client, "by_weight", &[(2, 1)]);
    // Without the entry the default action runs.
    device.ports[0].send(frame(1, [10, 0, 0, 1])).unwrap();
    leaving(&mut device, 1).await;
    client.insert(with(&entry, set)).await.unwrap();
    device.ports[0].send(frame(2, [10, 0, 0, 1])).unwrap();
    leaving(&mut device, 1).await;
    link(&device, 2, false).await;
    // With an empty group nothing does: what the program chose before stays. The change takes a moment.
    let mut source = 3;
    loop {
        device.ports[0].send(frame(source, [10, 0, 0, 1])).unwrap();
        let [one, two] = &mut device.ports;
        tokio::select! {
            back = one.receive_async() => {
                assert_eq!(back.unwrap(), frame(source, [10, 0, 0, 1]));
                break;
            }
            _ = two.receive_async() => source += 1,
        }
        assert!(source < 100, "the group is not empty");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_group_may_select_at_random() {
    use action_profile_action_set::ActionSelectionMode::{Hash, Random};
    let mut device = Device::start();
    let mut client = with_selectors(&device).await;
    let (entry, set) = choice(&client, "by_weight", &[(1, 1), (2, 1)]);
    for mode in [Hash, Random] {
        let set = ActionProfileActionSet { action_selection_mode: mode as i32, ..set.clone() };
        match mode {
            Hash => client.insert(with(&entry, set.clone())).await.unwrap(),
            _ => client.modify(with(&entry, set.clone())).await.unwrap(),
        }
        let wildcard = TableEntry { table_id: entry.table_id, ..Default::default() };
        assert_eq!(client.read(Entity::TableEntry(wildcard)).await, [with(&entry, set)]);
        let mut left = [0, 0];
        for _ in 0..64 {
            // Packets of one flow.
            device.ports[0].send(frame(1, [10, 0, 0, 1])).unwrap();
            let [one, two] = &mut device.ports;
            tokio::select! {
                _ = one.receive_async() => left[0] += 1,
                _ = two.receive_async() => left[1] += 1,
            }
        }
        match mode {
            Hash => assert!(left == [64, 0] || left == [0, 64], "{left:?}"),
            // Less than 10 of 64 at random: once in a hundred million times.
            _ => assert!(left[0] >= 10 && left[1] >= 10, "{left:?}"),
        }
    }
    let unknown = ActionProfileActionSet { action_selection_mode: 9, ..set };
    assert_eq!(client.modify(with(&entry, unknown)).await.unwrap_err().code, Code::InvalidArgument);
}

#[tokio::test]
async fn the_size_of_a_group_is_that_of_its_selector_or_its_own() {
    use action_profile_action_set::SizeSemantics::{
        DefaultSizeDeterminedByActionSelector as Default, SumOfMembers, SumOfWeights,
    };
    let device = Device::start();
    let mut client = with_selectors(&device).await;
    for (table, size, members, fits) in [
        // At most a sum of 8.
        ("by_weight", Default, &[(1, 4), (2, 4)][..], true),
        ("by_weight", Default, &[(1, 4), (2, 5)], false),
        ("by_weight", SumOfWeights, &[(1, 4), (2, 5)], false),
        // At most 8 members.
        ("by_weight", SumOfMembers, &[(1, 4), (2, 4), (1, 1)], true),
        ("by_weight", SumOfMembers, &[(1, 1); 9], false),
        // At most 3 members, of at most 4.
        ("by_member", Default, &[(1, 1), (2, 1), (1, 1)], true),
        ("by_member", Default, &[(1, 1), (2, 1), (1, 1), (2, 1)], false),
        ("by_member", Default, &[(1, 5)], false),
        ("by_member", SumOfMembers, &[(1, 5)], false),
        // At most a sum of 3.
        ("by_member", SumOfWeights, &[(1, 3)], true),
        ("by_member", SumOfWeights, &[(1, 2), (2, 2)], false),
    ] {
        let (entry, set) = choice(&client, table, members);
        let written =
            client.insert(with(&entry, ActionProfileActionSet { size_semantics: size as i32, ..set })).await;
        match fits {
            true => {
                written.unwrap_or_else(|refused| panic!("{table} {size:?} {members:?}: {refused:?}"));
                client.delete(Entity::TableEntry(entry)).await.unwrap();
            }
            false => assert_eq!(
                written.expect_err(&format!("{table} {size:?} {members:?}")).code,
                Code::InvalidArgument
            ),
        }
    }
}

#[tokio::test]
async fn members_have_no_weights_where_the_program_or_the_controller_says_so() {
    let device = Device::start();
    let mut client = with_selectors(&device).await;
    let (entry, set) = choice(&client.names(), "by_weight", &[(1, 0), (2, 0)]);
    let refused = client.insert(with(&entry, set.clone())).await.unwrap_err();
    assert_eq!(refused.code, Code::InvalidArgument, "{refused:?}");
    // The program, and then the P4Info of a controller for a program that does not.
    let action = set_forwarding_pipeline_config_request::Action::VerifyAndCommit;
    client
        .set(action, &SELECTORS.replace("@max_group_size(8)", "@weights_disallowed @max_group_size(8)"))
        .await
        .unwrap();
    assert!(client.info.action_profiles.iter().any(|profile| profile.weights_disallowed));
    let p4info = client.info.clone();
    for _ in 0..2 {
        client.insert(with(&entry, set.clone())).await.unwrap();
        let all = TableEntry { table_id: entry.table_id, ..TableEntry::default() };
        assert_eq!(client.read(Entity::TableEntry(all)).await, [with(&entry, set.clone())]);
        let (other, weighted) = choice(&client.names(), "by_weight", &[(1, 1), (2, 1)]);
        let other = TableEntry { r#match: vec![exact(1, &[8, 1])], ..other };
        let refused = client.insert(with(&other, weighted)).await.unwrap_err();
        assert_eq!(refused.code, Code::InvalidArgument, "{refused:?}");
        let config = ForwardingPipelineConfig {
            p4info: Some(p4info.clone()),
            p4_device_config: SELECTORS.as_bytes().to_vec().into(),
            cookie: None,
        };
        let request = SetForwardingPipelineConfigRequest {
            device_id: crate::common::DEVICE,
            election_id: client.election,
            action: action as i32,
            config: Some(config),
            ..Default::default()
        };
        client.calls.set_forwarding_pipeline_config(request).await.unwrap();
    }
}

#[tokio::test]
async fn a_member_whose_port_is_down_is_left_out() {
    let device = Device::start();
    let mut client = device.ready().await;
    let set = action_set(&client, &[1, 2]);
    let entry = ecmp(&client, table_action::Type::ActionProfileActionSet(set));
    client.insert(Entity::TableEntry(entry.clone())).await.unwrap();
    fail(&device, 1).await;
    // What is read does not change.
    let wildcard = TableEntry { table_id: entry.table_id, ..Default::default() };
    assert_eq!(client.read(Entity::TableEntry(wildcard)).await, [Entity::TableEntry(entry)]);
    members_are(&device, &[1]).await;
    // Packets of all flows go out at the other port.
    for source in 1..20 {
        device.ports[0].send(frame(source, [10, 0, 0, 1])).unwrap();
    }
    let mut device = device;
    for source in 1..20 {
        assert_eq!(leaving(&mut device, 1).await, frame(source, [10, 0, 0, 1]));
    }
}
