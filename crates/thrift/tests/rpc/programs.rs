//! Another program, as bmv2 has it and with what there is.

use crate::common::{Device, refused, table};
use millrace_dataplane::Request;
use millrace_swap_report::Report;
use millrace_thrift_api::*;

const ALL: &str = include_str!("../../../p4runtime/tests/programs/all.p4");

fn route() -> String {
    "In.route".to_owned()
}

/// A route to a port, for the addresses 10.`second`.0.0/16.
fn add(client: &mut Client, second: u8) -> i32 {
    let lpm = MatchLpm { key: vec![10, second, 0, 0], prefix_length: 16 };
    let key = vec![MatchParam { kind: MatchType::Lpm, lpm: Some(lpm), ..MatchParam::default() }];
    let added = client.bm_mt_add_entry(
        route(),
        key,
        "In.forward".into(),
        vec![vec![0, 1]],
        EntryOptions { priority: Some(0) },
    );
    added.unwrap()
}

#[test]
fn a_loaded_program_takes_what_is_written_and_starts_with_it() {
    let device = Device::start();
    let mut client = device.client();
    add(&mut client, 1);
    assert_eq!(refused(client.bm_swap_configs()).code, SwapCode::NotOngoing);
    let wrong = refused(client.bm_load_new_config("control c() {".into()));
    assert!(wrong.reason.unwrap().contains("device_config.p4:1"));
    let bmv2 = refused(client.bm_load_new_config(r#"{"pipelines": [], "header_types": []}"#.into()));
    assert!(bmv2.reason.unwrap().contains("for bmv2"));

    client.bm_load_new_config(ALL.into()).unwrap();
    assert_eq!(refused(client.bm_load_new_config(ALL.into())).code, SwapCode::Ongoing);
    assert_eq!(refused(client.swap_program(ALL.into(), Keep::Nothing)).code, SwapCode::Ongoing);
    // Other clients write to it too. What runs is left alone.
    let mut other = device.client();
    assert_eq!(other.bm_mt_get_num_entries(route()).unwrap(), 0);
    assert_eq!(add(&mut client, 2), 0);
    assert_eq!(add(&mut client, 3), 1);
    client.bm_mt_delete_entry(route(), 0).unwrap();
    client.bm_register_write("In.last".into(), 2, 77).unwrap();
    client.bm_mc_mgrp_create(5).unwrap();
    assert_eq!(routes(&device), 1);
    let groups = device.control.ask(Request::Replication).unwrap();
    assert_eq!(groups.groups().count(), 1, "groups belong to no program");

    client.mirroring_session_add(7, MirroringSession { port: Some(2), mgid: None }).unwrap();

    client.bm_swap_configs().unwrap();
    let groups = device.control.ask(Request::Replication).unwrap();
    assert_eq!(groups.groups().map(|(id, _)| id).collect::<Vec<_>>(), [5], "also of one that takes over");
    assert_eq!(other.mirroring_session_get(7).unwrap().port, Some(2));
    assert_eq!(other.bm_mt_get_num_entries(route()).unwrap(), 1);
    assert_eq!(other.bm_register_read("In.last".into(), 2).unwrap(), 77);
    assert_eq!(refused(client.bm_mt_delete_entry(route(), 0)).code, TableCode::InvalidHandle);
    client.bm_mt_delete_entry(route(), 1).unwrap();
    assert_eq!(refused(client.bm_swap_configs()).code, SwapCode::NotOngoing);
    // Version 1 of the lowest free number.
    assert_eq!(add(&mut client, 4), 1 << 24);
}

/// How many routes the program that runs has.
fn routes(device: &Device) -> u32 {
    let (routes, tables) = table(device, "In.route");
    tables.lock().entry_count(routes)
}

#[test]
fn a_reset_of_a_loaded_program_leaves_the_one_that_runs() {
    let device = Device::start();
    let mut client = device.client();
    add(&mut client, 1);
    client.bm_load_new_config(ALL.into()).unwrap();
    add(&mut client, 2);
    client.bm_reset_state().unwrap();
    assert_eq!(client.bm_mt_get_num_entries(route()).unwrap(), 0);
    assert_eq!(routes(&device), 1);
}

#[test]
fn a_program_goes_on_with_what_there_is() {
    let device = Device::start();
    let mut client = device.client();
    add(&mut client, 1);
    add(&mut client, 2);
    let report = client.swap_program(ALL.into(), Keep::Everything).unwrap();
    let report: Report = serde_json::from_str(&report).unwrap();
    let routes = report.kept.iter().find(|item| item.name == "In.route").unwrap();
    assert_eq!((routes.count, routes.what.as_str()), (2, "entries"));
    assert!(report.dropped.is_empty());
    assert_eq!(client.bm_mt_get_num_entries(route()).unwrap(), 2);

    let without = ALL.replace("table route", "table roads").replace("route.apply", "roads.apply");
    let kept = refused(client.swap_program(without.clone(), Keep::Everything));
    assert!(kept.reason.unwrap().contains("2 entries of table `In.route`"));
    assert_eq!(client.bm_mt_get_num_entries(route()).unwrap(), 2);
    let report = client.swap_program(without, Keep::Compatible).unwrap();
    let report: Report = serde_json::from_str(&report).unwrap();
    assert_eq!(report.dropped.iter().map(|item| item.count).sum::<u64>(), 2);
    assert_eq!(client.bm_mt_get_num_entries("In.roads".into()).unwrap(), 0);
    assert_eq!(
        client.swap_program(ALL.into(), Keep::Nothing).unwrap(),
        r#"{"kept":[],"dropped":[],"more":0}"#
    );
}

/// Clients compare the file of a program with theirs; another program was not made from it.
#[test]
fn a_file_is_told_of_its_program_alone() {
    assert_eq!(Device::made_from("{ }", true).client().bm_get_config().unwrap(), "{ }");
    let other = Device::made_from("{ }", false).client().bm_get_config().unwrap();
    millrace_describe::image::read_program(other.as_bytes()).unwrap();
}
