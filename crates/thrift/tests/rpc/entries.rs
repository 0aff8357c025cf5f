//! Tables and action profiles.

use crate::common::{Device, refused, table};
use millrace_pipeline::{ActionCall, Bits, EntryMatch};
use millrace_state::{EntryWrite, Target};
use millrace_thrift_api::*;
use std::collections::BTreeSet;

fn lpm(address: [u8; 4], prefix_length: i32) -> MatchKey {
    let lpm = Some(MatchLpm { key: address.to_vec(), prefix_length });
    vec![MatchParam { kind: MatchType::Lpm, lpm, ..MatchParam::default() }]
}

fn ternary(key: &[u8], mask: &[u8]) -> MatchParam {
    let ternary = Some(MatchTernary { key: key.to_vec(), mask: mask.to_vec() });
    MatchParam { kind: MatchType::Ternary, ternary, ..MatchParam::default() }
}

fn add(
    client: &mut Client,
    address: [u8; 4],
    length: i32,
    port: u8,
) -> Result<i32, CallError<InvalidTableOperation>> {
    let data = vec![vec![0, port]];
    let options = EntryOptions { priority: Some(0) };
    client.bm_mt_add_entry("In.route".into(), lpm(address, length), "In.forward".into(), data, options)
}

#[test]
fn handles_are_those_of_bmv2() {
    let device = Device::start();
    let mut client = device.client();
    let route = || "In.route".to_owned();
    assert_eq!([1, 2, 3].map(|net| add(&mut client, [10, net, 0, 0], 16, net).unwrap()), [0, 1, 2]);
    client.bm_mt_delete_entry(route(), 1).unwrap();
    client.bm_mt_delete_entry(route(), 0).unwrap();
    // Number 0 of version 1, then number 1 of version 1, then a new one.
    assert_eq!(
        [4, 5, 6].map(|net| add(&mut client, [10, net, 0, 0], 16, net).unwrap()),
        [1 << 24, (1 << 24) + 1, 3]
    );
    assert_eq!(refused(client.bm_mt_delete_entry(route(), 0)).code, TableCode::ExpiredHandle);
    assert_eq!(refused(client.bm_mt_delete_entry(route(), 4)).code, TableCode::InvalidHandle);
    assert_eq!(refused(client.bm_mt_get_entry(route(), -1)).code, TableCode::InvalidHandle);
    let handles: Vec<i32> =
        client.bm_mt_get_entries(route()).unwrap().iter().map(|entry| entry.entry_handle).collect();
    assert_eq!(handles.iter().copied().collect::<BTreeSet<i32>>(), [2, 3, 1 << 24, (1 << 24) + 1].into());
    client.bm_mt_clear_entries(route(), false).unwrap();
    assert_eq!(client.bm_mt_get_num_entries(route()).unwrap(), 0);
    assert_eq!(add(&mut client, [10, 0, 0, 0], 8, 1).unwrap(), 0);
}

#[test]
fn entries_of_others_get_handles_too() {
    let device = Device::start();
    let mut client = device.client();
    assert_eq!(add(&mut client, [10, 0, 0, 0], 8, 1).unwrap(), 0);
    let write = |net: u128| EntryWrite {
        matches: vec![EntryMatch::Lpm(Bits::new(32, net << 24), 8)],
        priority: 0,
        target: Target::Action(ActionCall { action: 1, args: vec![] }),
        idle_timeout_ns: 0,
    };
    let (table, handle) = table(&device, "In.route");
    let index = handle.lock().insert(table, &write(11), 0).unwrap();
    let entry = client.bm_mt_get_entry("In.route".into(), 1).unwrap();
    assert_eq!(entry.match_key, lpm([11, 0, 0, 0], 8));
    assert_eq!(entry.action_entry.action_name.as_deref(), Some("In.drop"));
    // Others take it away, and add another one: as many as before.
    handle.lock().remove(table, index).unwrap();
    handle.lock().insert(table, &write(12), 0).unwrap();
    let handles: BTreeSet<i32> =
        client.bm_mt_get_entries("In.route".into()).unwrap().iter().map(|entry| entry.entry_handle).collect();
    assert_eq!(handles.len(), 2);
    assert!(handles.contains(&0));
}

#[test]
fn what_does_not_fit_has_bmv2s_code_and_changes_nothing() {
    let device = Device::start();
    let mut client = device.client();
    add(&mut client, [10, 0, 0, 0], 8, 1).unwrap();
    assert_eq!(refused(add(&mut client, [10, 0, 0, 9], 8, 1)).code, TableCode::Duplicate, "the same prefix");
    assert_eq!(refused(add(&mut client, [10, 0, 0, 0], 33, 1)).code, TableCode::BadMatchKey);
    assert_eq!(refused(add(&mut client, [10, 0, 0, 0], -1, 1)).code, TableCode::BadMatchKey);
    let mut try_add = |table: &str, key: MatchKey, action: &str, data: ActionData| {
        let options = EntryOptions { priority: None };
        refused(client.bm_mt_add_entry(table.into(), key, action.into(), data, options)).code
    };
    let key = || lpm([11, 0, 0, 0], 8);
    assert_eq!(try_add("route", key(), "In.forward", vec![vec![1]]), TableCode::InvalidTableName);
    assert_eq!(try_add("In.route", key(), "In.learn", vec![]), TableCode::InvalidActionName);
    assert_eq!(try_add("In.route", key(), "In.forward", vec![]), TableCode::BadActionData);
    // A port has 9 bits.
    assert_eq!(try_add("In.route", key(), "In.forward", vec![vec![2, 0]]), TableCode::BadActionData);
    assert_eq!(try_add("In.route", vec![], "In.drop", vec![]), TableCode::BadMatchKey);
    assert_eq!(
        try_add("In.route", vec![ternary(&[0; 4], &[0; 4])], "In.drop", vec![]),
        TableCode::BadMatchKey
    );
    assert_eq!(try_add("In.route", vec![MatchParam::default()], "In.drop", vec![]), TableCode::BadMatchKey);
    assert_eq!(try_add("In.ecmp", key(), "In.drop", vec![]), TableCode::WrongTableType);
    assert_eq!(try_add("In.fixed", vec![], "In.drop", vec![]), TableCode::BadMatchKey);
    assert_eq!(client.bm_mt_get_num_entries("In.route".into()).unwrap(), 1);
    let table = || "In.route".to_owned();
    assert_eq!(refused(client.bm_mt_set_entry_ttl(table(), 0, 5)).code, TableCode::AgeingDisabled);
    assert_eq!(refused(client.bm_mt_get_meter_rates(table(), 0)).code, TableCode::MetersDisabled);
    assert_eq!(refused(client.bm_mt_read_counter("In.acl".into(), 0)).code, TableCode::InvalidHandle);
    assert_eq!(refused(client.bm_mt_reset_counters("In.acl".into())).code, TableCode::CountersDisabled);
    assert_eq!(
        refused(client.bm_mt_clear_entries("In.fixed".into(), false)).code,
        TableCode::ImmutableEntries
    );
    let constant = client.bm_mt_set_default_action("In.fixed".into(), "In.drop".into(), vec![]);
    assert_eq!(refused(constant).code, TableCode::DefaultEntryIsConst);
    client.bm_mt_reset_default_entry("In.fixed".into()).unwrap();
}

#[test]
fn the_smallest_priority_wins_and_is_shown() {
    let device = Device::start();
    let mut client = device.client();
    let range = Some(MatchRange { start: vec![6], end: vec![17] });
    let key = vec![
        ternary(&[10, 0, 0, 1], &[255, 255, 0, 0]),
        MatchParam { kind: MatchType::Range, range, ..MatchParam::default() },
        ternary(&[0, 0], &[0, 0]),
    ];
    let options = EntryOptions { priority: Some(7) };
    let acl = || "In.acl".to_owned();
    let handle =
        client.bm_mt_add_entry(acl(), key.clone(), "In.drop".into(), vec![], options.clone()).unwrap();
    let entry = client.bm_mt_get_entry_from_key(acl(), key.clone(), options).unwrap();
    assert_eq!((entry.entry_handle, entry.options.priority), (handle, Some(7)));
    // Bits outside the mask are not kept.
    assert_eq!(entry.match_key[0], ternary(&[10, 0, 0, 0], &[255, 255, 0, 0]));
    let (of, tables) = table(&device, "In.acl");
    let kept: Vec<_> = tables.lock().entries(of).map(|entry| entry.priority).collect();
    // Inside the largest wins: 2^31 - 1 - 7.
    assert_eq!(kept, [2_147_483_640]);
    let other = EntryOptions { priority: Some(8) };
    assert_eq!(
        refused(client.bm_mt_get_entry_from_key(acl(), key.clone(), other)).code,
        TableCode::BadMatchKey
    );
    let negative = EntryOptions { priority: Some(-1) };
    assert_eq!(
        refused(client.bm_mt_add_entry(acl(), key, "In.drop".into(), vec![], negative)).code,
        TableCode::Error
    );
}

#[test]
fn several_clients_write_at_once() {
    const CLIENTS: u8 = 6;
    const EACH: u8 = 50;
    let device = Device::start();
    let handles: BTreeSet<i32> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let mut client = device.client();
                scope.spawn(move || {
                    let added = (0..EACH).map(|net| add(&mut client, [10, number, net, 0], 24, 1).unwrap());
                    added.collect::<Vec<i32>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(handles, (0..i32::from(CLIENTS) * i32::from(EACH)).collect());
}

#[test]
fn members_and_groups() {
    let device = Device::start();
    let mut client = device.client();
    let profile = || "In.ecmp_members".to_owned();
    let mut member = |port: u8| {
        client.bm_mt_act_prof_add_member(profile(), "In.forward".into(), vec![vec![port]]).unwrap()
    };
    assert_eq!([member(1), member(2)], [0, 1]);
    assert_eq!(client.bm_mt_act_prof_create_group(profile()).unwrap(), 0);
    client.bm_mt_act_prof_add_member_to_group(profile(), 1, 0).unwrap();
    let twice = client.bm_mt_act_prof_add_member_to_group(profile(), 1, 0);
    assert_eq!(refused(twice).code, TableCode::MemberInGroup);
    assert_eq!(
        client.bm_mt_act_prof_get_groups(profile()).unwrap(),
        [Group { grp_handle: 0, mbr_handles: vec![1] }]
    );
    let members = client.bm_mt_act_prof_get_members(profile()).unwrap();
    assert_eq!(
        members[0],
        Member { mbr_handle: 0, action_name: "In.forward".into(), action_data: vec![vec![0, 1]] }
    );
    let options = EntryOptions::default();
    let entry = client
        .bm_mt_indirect_ws_add_entry("In.ecmp".into(), lpm([10, 0, 0, 0], 8), 0, options.clone())
        .unwrap();
    let held = client.bm_mt_get_entry("In.ecmp".into(), entry).unwrap().action_entry;
    assert_eq!((held.action_type, held.grp_handle), (ActionEntryType::Group, Some(0)));
    assert_eq!(refused(client.bm_mt_act_prof_delete_group(profile(), 0)).code, TableCode::GroupStillUsed);
    client.bm_mt_indirect_modify_entry("In.ecmp".into(), entry, 0).unwrap();
    client.bm_mt_act_prof_delete_group(profile(), 0).unwrap();
    assert_eq!(refused(client.bm_mt_act_prof_delete_member(profile(), 0)).code, TableCode::MemberStillUsed);
    client.bm_mt_act_prof_delete_member(profile(), 1).unwrap();
    assert_eq!(refused(client.bm_mt_act_prof_get_member(profile(), 1)).code, TableCode::InvalidMember);
    // A profile without a selector has no groups, and its tables take none.
    assert_eq!(
        refused(client.bm_mt_act_prof_create_group("In.nexthops".into())).code,
        TableCode::NoSelection
    );
    let key = vec![MatchParam {
        kind: MatchType::Exact,
        exact: Some(MatchExact { key: vec![1] }),
        ..MatchParam::default()
    }];
    let group = client.bm_mt_indirect_ws_add_entry("In.next".into(), key, 0, options);
    assert_eq!(refused(group).code, TableCode::WrongTableType);
    client.bm_mt_indirect_set_default_member("In.ecmp".into(), 0).unwrap();
    let default = client.bm_mt_get_default_entry("In.ecmp".into()).unwrap();
    assert_eq!((default.action_type, default.mbr_handle), (ActionEntryType::Member, Some(0)));
    assert_eq!(client.bm_mt_act_prof_create_group(profile()).unwrap(), 0);
    client.bm_mt_indirect_ws_set_default_group("In.ecmp".into(), 0).unwrap();
    let default = client.bm_mt_get_default_entry("In.ecmp".into()).unwrap();
    assert_eq!((default.action_type, default.grp_handle), (ActionEntryType::Group, Some(0)));
    assert_eq!(refused(client.bm_mt_act_prof_delete_group(profile(), 0)).code, TableCode::GroupStillUsed);
    let unknown = client.bm_mt_indirect_ws_set_default_group("In.ecmp".into(), 9);
    assert_eq!(refused(unknown).code, TableCode::InvalidGroup);
    let other = client.bm_mt_indirect_ws_set_default_group("In.next".into(), 0);
    assert_eq!(refused(other).code, TableCode::WrongTableType);
    client.bm_mt_indirect_reset_default_entry("In.ecmp".into()).unwrap();
    client.bm_mt_act_prof_delete_group(profile(), 0).unwrap();
}
