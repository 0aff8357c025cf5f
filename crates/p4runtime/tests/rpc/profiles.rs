//! Action profiles: members, groups, one-shot groups, watch ports.

use crate::batches::action_set;
use crate::common::{Device, Names, exact, frame, lpm};
use millrace_p4runtime::proto::v1::entity::Entity;
use millrace_p4runtime::proto::v1::*;
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
    assert_eq!(crate::common::leaving(&mut device, 1).await, frame(1, [10, 0, 0, 1]));
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

#[tokio::test]
async fn a_member_whose_port_is_down_is_left_out() {
    let device = Device::start();
    let mut client = device.ready().await;
    let set = action_set(&client, &[1, 2]);
    let entry = ecmp(&client, table_action::Type::ActionProfileActionSet(set));
    client.insert(Entity::TableEntry(entry.clone())).await.unwrap();
    let feed = device.server.as_ref().unwrap().feed();
    tokio::task::spawn_blocking(move || feed.port_failed(1)).await.unwrap();
    // What is read does not change.
    let wildcard = Entity::TableEntry(TableEntry { table_id: entry.table_id, ..Default::default() });
    assert_eq!(client.read(wildcard).await, [Entity::TableEntry(entry)]);
    let groups = device.control.call(|switch| {
        let state = switch.state();
        let profile = state.profile_named("ecmp_members").unwrap();
        let groups: Vec<usize> = state.tables().groups(profile).map(|(_, members)| members.len()).collect();
        groups
    });
    let mut left = groups.unwrap();
    for _ in 0..100 {
        if left == [1] {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        left = device
            .control
            .call(|switch| {
                let state = switch.state();
                let profile = state.profile_named("ecmp_members").unwrap();
                state.tables().groups(profile).map(|(_, members)| members.len()).collect()
            })
            .unwrap();
    }
    assert_eq!(left, [1]);
    // Packets of all flows go out at the other port.
    for source in 1..20 {
        device.ports[0].send(frame(source, [10, 0, 0, 1])).unwrap();
    }
    let mut device = device;
    for source in 1..20 {
        assert_eq!(crate::common::leaving(&mut device, 1).await, frame(source, [10, 0, 0, 1]));
    }
}
