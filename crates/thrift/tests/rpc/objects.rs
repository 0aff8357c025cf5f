//! Counters, meters, registers, value sets, multicast, and the switch itself.

use crate::common::{Device, refused};
use crate::ports::{Wire, add, start};
use millrace_chassis::Listener;
use millrace_dataplane::Request;
use millrace_thrift_api::*;
use std::sync::mpsc::channel;
use std::time::Duration;

fn rates(committed: f64, peak: f64) -> Vec<MeterRate> {
    [committed, peak].map(|units_per_micros| MeterRate { units_per_micros, burst_size: 10 }).into()
}

#[test]
fn meters_have_two_rates() {
    let device = Device::start();
    let mut client = device.client();
    let meter = || "In.limits".to_owned();
    assert_eq!(client.bm_meter_get_rates(meter(), 0).unwrap(), []);
    client.bm_meter_set_rates(meter(), 3, rates(0.25, 0.5)).unwrap();
    assert_eq!(client.bm_meter_get_rates(meter(), 3).unwrap(), rates(0.25, 0.5));
    assert_eq!(
        refused(client.bm_meter_set_rates(meter(), 16, rates(1.0, 1.0))).code,
        MeterCode::InvalidIndex
    );
    assert_eq!(
        refused(client.bm_meter_set_rates(meter(), -1, rates(1.0, 1.0))).code,
        MeterCode::InvalidIndex
    );
    assert_eq!(refused(client.bm_meter_set_rates(meter(), 0, vec![])).code, MeterCode::BadRates);
    for wrong in [f64::NAN, -1.0, f64::INFINITY, 1e300] {
        let set = client.bm_meter_set_rates(meter(), 3, rates(wrong, wrong));
        assert_eq!(refused(set).code, MeterCode::InvalidRate);
    }
    let negative = vec![MeterRate { units_per_micros: 1.0, burst_size: -1 }; 2];
    assert_eq!(refused(client.bm_meter_set_rates(meter(), 3, negative)).code, MeterCode::InvalidBurst);
    assert_eq!(
        refused(client.bm_meter_array_set_rates("x".into(), rates(1.0, 1.0))).code,
        MeterCode::InvalidName
    );
    assert_eq!(client.bm_meter_get_rates(meter(), 3).unwrap(), rates(0.25, 0.5));
}

#[test]
fn registers_are_read_and_written_in_ranges() {
    let device = Device::start();
    let mut client = device.client();
    let last = || "In.last".to_owned();
    client.bm_register_write_range(last(), 2, 5, -1).unwrap();
    // A cell has 32 bits.
    let ones = 0xffff_ffff;
    assert_eq!(client.bm_register_read_all(last()).unwrap(), [0, 0, ones, ones, ones, 0, 0, 0]);
    for (start, end) in [(5, 9), (-1, 2), (4, 3), (0, i32::MIN)] {
        let written = client.bm_register_write_range(last(), start, end, 7);
        assert_eq!(refused(written).code, RegisterCode::InvalidIndex, "{start} {end}");
    }
    assert_eq!(refused(client.bm_register_write(last(), i32::MAX, 7)).code, RegisterCode::InvalidIndex);
    assert_eq!(refused(client.bm_register_read("x".into(), 0)).code, RegisterCode::InvalidName);
    client.bm_register_reset(last()).unwrap();
    assert_eq!(client.bm_register_read(last(), 3).unwrap(), 0);
}

#[test]
fn value_sets_take_a_value_twice_without_an_error() {
    let device = Device::start();
    let mut client = device.client();
    let set = || "Parse.ip_types".to_owned();
    // With a byte too many, as bmv2's own tool sends it.
    client.bm_parse_vset_add(set(), vec![0, 0x86, 0xdd]).unwrap();
    client.bm_parse_vset_add(set(), vec![0x86, 0xdd]).unwrap();
    assert_eq!(client.bm_parse_vset_get(set()).unwrap(), [[0x86, 0xdd]]);
    client.bm_parse_vset_remove(set(), vec![0x08, 0x00]).unwrap();
    assert_eq!(refused(client.bm_parse_vset_add(set(), vec![1, 0, 0])).code, ValueSetCode::Error);
    assert_eq!(refused(client.bm_parse_vset_clear("x".into())).code, ValueSetCode::InvalidName);
    client.bm_parse_vset_clear(set()).unwrap();
    assert_eq!(client.bm_parse_vset_get(set()).unwrap(), Vec::<Vec<u8>>::new());
}

#[test]
fn multicast_and_clones() {
    let device = Device::start();
    let mut client = device.client();
    assert_eq!(client.bm_mc_mgrp_create(5).unwrap(), 5);
    assert_eq!(refused(client.bm_mc_mgrp_create(5)).code, PreCode::InvalidGroup);
    assert_eq!(refused(client.bm_mc_mgrp_create(0)).code, PreCode::InvalidGroup);
    let node = client.bm_mc_node_create(9, "110".into(), "1".into()).unwrap();
    client.bm_mc_node_associate(5, node).unwrap();
    client.bm_mc_set_lag_membership(0, "1000".into()).unwrap();
    let copies = device.control.ask(|to| Request::Group(5, to)).unwrap().unwrap();
    assert_eq!(copies.iter().map(|copy| (copy.port, copy.rid)).collect::<Vec<_>>(), [(1, 9), (2, 9), (3, 9)]);
    // Refused as a whole: a link aggregation group has a number below 256.
    let lags = format!("1{}", "0".repeat(256));
    assert_eq!(refused(client.bm_mc_node_update(node, "1".into(), lags.clone())).code, PreCode::Error);
    assert_eq!(refused(client.bm_mc_node_create(1, "1".into(), lags)).code, PreCode::Error);
    assert_eq!(
        refused(client.bm_mc_node_create(1, "1".repeat(5000), String::new())).code,
        PreCode::TableFull
    );
    assert_eq!(refused(client.bm_mc_node_create(-1, "1".into(), String::new())).code, PreCode::Error);
    let described: serde_json::Value = serde_json::from_str(&client.bm_mc_get_entries().unwrap()).unwrap();
    assert_eq!(described["l1_handles"].as_array().unwrap().len(), 1);
    assert_eq!(described["l2_handles"][0]["ports"], serde_json::json!([1, 2]));

    let session = MirroringSession { port: Some(3), mgid: Some(5) };
    client.mirroring_session_add(7, session.clone()).unwrap();
    assert_eq!(client.mirroring_session_get(7).unwrap(), session);
    assert_eq!(client.mirroring_mapping_get_egress_port(7).unwrap(), 3);
    client.mirroring_session_delete(7).unwrap();
    assert_eq!(refused(client.mirroring_session_delete(7)).code, MirroringCode::NotFound);
    assert_eq!(
        (client.mirroring_mapping_delete(7).unwrap(), client.mirroring_mapping_get_egress_port(7).unwrap()),
        (1, -1)
    );
    client.mirroring_mapping_add(8, 1).unwrap();
    client.bm_reset_state().unwrap();
    assert_eq!(refused(client.bm_mc_mgrp_destroy(5)).code, PreCode::InvalidGroupHandle);
    client.mirroring_session_get(8).unwrap();
}

#[test]
fn the_switch_itself() {
    let device = Device::start();
    let mut client = device.client();
    let text = client.bm_get_config().unwrap();
    let described: serde_json::Value = serde_json::from_str(&text).unwrap();
    let tables = described["pipelines"][0]["tables"].as_array().unwrap();
    let acl = tables.iter().find(|table| table["name"] == "In.acl").unwrap();
    assert_eq!(acl["key"][2]["match_type"], "ternary", "bmv2 has no optional fields");
    assert_eq!(client.bm_get_config_md5().unwrap().len(), 16);
    let id =
        |client: &mut Client, name: &str| client.bm_get_id_from_name(ResourceType::MatchTable, name.into());
    assert_eq!(Some(i64::from(id(&mut client, "In.acl").unwrap())), acl["id"].as_i64());
    assert_eq!(refused(id(&mut client, "acl")).code, IdCode::InvalidName);
    let info = client.bm_mgmt_get_info().unwrap();
    assert_eq!((info.device_id, info.thrift_port), (1, i32::from(device.address().port())));
    device.server.feed().port_failed(2, "broken");
    let ports = client.bm_dev_mgr_show_ports().unwrap();
    let shown: Vec<(i32, &str, bool)> =
        ports.iter().map(|port| (port.port_num, port.iface_name.as_str(), port.is_up)).collect();
    assert_eq!(shown, [(1, "mrt1", true), (2, "mrt2", false)]);
    assert_eq!(client.set_all_egress_queue_depths(100).unwrap(), 0);
    // Ports have one class of service, and queues hold something.
    assert_eq!(client.set_egress_priority_queue_rate(1, 1, 100).unwrap(), 1);
    assert_eq!(
        (client.set_egress_queue_depth(1, 0).unwrap(), client.set_egress_queue_depth(-1, 9).unwrap()),
        (1, 1)
    );
    let earlier = client.get_time_elapsed_us().unwrap();
    assert!(client.get_time_elapsed_us().unwrap() >= earlier);
    assert!(client.get_time_since_epoch_us().unwrap() > 1_700_000_000_000_000);
}

#[test]
fn a_switch_that_has_ended_says_so() {
    let device = Device::start();
    let mut client = device.client();
    device.control.stop();
    // The worker may still be in its last round.
    let answer = (0..100).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        client.bm_get_config().err()
    });
    assert_eq!(answer.unwrap().to_string(), "the switch is not running any more");
}

/// Of two switches with the same program, the second is told what the first one saved.
#[test]
fn a_saved_state_makes_another_switch_alike() {
    let first = Device::start();
    let mut client = first.client();
    assert_eq!(client.bm_serialize_state().unwrap(), "# The state of \"all\"\n");
    let key = |byte: u8| {
        let lpm = MatchLpm { key: vec![10, byte, 0, 0], prefix_length: 16 };
        vec![MatchParam { kind: MatchType::Lpm, lpm: Some(lpm), ..MatchParam::default() }]
    };
    for (byte, port) in [(0, 1), (1, 2)] {
        let (name, action) = ("In.route".to_owned(), "In.forward".to_owned());
        let data = vec![vec![0, port]];
        client.bm_mt_add_entry(name, key(byte), action, data, EntryOptions::default()).unwrap();
    }
    client.bm_register_write("In.last".into(), 2, 77).unwrap();
    client.bm_meter_set_rates("In.limits".into(), 3, rates(0.25, 0.5)).unwrap();
    let node = client.bm_mc_node_create(4, "110".into(), String::new()).unwrap();
    client.bm_mc_mgrp_create(5).unwrap();
    client.bm_mc_node_associate(5, node).unwrap();
    client.mirroring_mapping_add(8, 1).unwrap();
    let text = client.bm_serialize_state().unwrap();
    for line in [
        "table_add In.route In.forward 0x0a000000/16 => 0x001\n",
        "table_add In.route In.forward 0x0a010000/16 => 0x002\n",
        "meter_set_rates In.limits 3 0.25:10 0.5:10\n",
        "mc_node_create 4 1 2\nmc_mgrp_create 5\nmc_node_associate 5 0\nmirroring_add 8 1\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let second = Device::after(&text);
    let mut other = second.client();
    assert_eq!(other.bm_serialize_state().unwrap(), text);
    // Handles are the same, and what is read by them.
    for handle in [0, 1] {
        let entry = |client: &mut Client| client.bm_mt_get_entry("In.route".into(), handle).unwrap();
        assert_eq!(entry(&mut client), entry(&mut other));
    }
    assert_eq!(other.bm_register_read("In.last".into(), 2).unwrap(), 77);
}

/// Puts a CRC over the first nine bytes, after them.
const CHECKSUM: &str = r#"
#include <core.p4>
#include <v1model.p4>
header data_t { bit<72> digits; bit<16> sum; }
struct headers_t { data_t data; }
struct nothing_t {}
parser P(packet_in p, out headers_t h, inout nothing_t m, inout standard_metadata_t s) {
    state start { p.extract(h.data); transition accept; }
}
control V(inout headers_t h, inout nothing_t m) { apply {} }
control In(inout headers_t h, inout nothing_t m, inout standard_metadata_t s) {
    apply {
        hash(h.data.sum, HashAlgorithm.crc16_custom, 16w0, { h.data.digits }, 32w65536);
        s.egress_spec = 9;
    }
}
control E(inout headers_t h, inout nothing_t m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in headers_t h) { apply { p.emit(h.data); } }
V1Switch(P(), V(), In(), E(), V(), D()) main;
"#;

#[test]
fn crcs_take_other_parameters() {
    let (sends, incoming) = channel();
    let (outgoing, receives) = channel();
    let (device, _) = start(vec![Wire(incoming, outgoing, Vec::new())]);
    let mut client = device.client();
    add(&mut client, "wire", 9, "").unwrap();
    let xmodem = || Crc16Config {
        polynomial: 0x1021,
        initial_remainder: 0,
        final_xor_value: 0,
        data_reflected: false,
        remainder_reflected: false,
    };
    let calc = || "calc".to_owned();
    assert_eq!(refused(client.bm_set_crc16_custom_parameters(calc(), xmodem())).code, CrcCode::InvalidName);
    client.swap_program(CHECKSUM.into(), Keep::Nothing).unwrap();
    assert!(client.bm_get_config().unwrap().contains("crc16_custom"));
    let sum = || {
        sends.send(b"123456789--".to_vec()).unwrap();
        receives.recv_timeout(Duration::from_secs(10)).unwrap()[9..].to_vec()
    };
    // The check values of CRC-16/ARC, CRC-16/XMODEM and, with all bits of its ends set, CRC-16/GENIBUS.
    assert_eq!(sum(), [0xbb, 0x3d]);
    client.bm_set_crc16_custom_parameters(calc(), xmodem()).unwrap();
    assert_eq!(sum(), [0x31, 0xc3]);
    let genibus = Crc16Config { initial_remainder: -1, final_xor_value: -1, ..xmodem() };
    client.bm_set_crc16_custom_parameters(calc(), genibus).unwrap();
    assert_eq!(sum(), [0xd6, 0x4e]);
    let wide = Crc32Config {
        polynomial: 0x04c1_1db7,
        initial_remainder: 0,
        final_xor_value: 0,
        data_reflected: false,
        remainder_reflected: false,
    };
    assert_eq!(refused(client.bm_set_crc32_custom_parameters(calc(), wide)).code, CrcCode::WrongType);
    assert_eq!(sum(), [0xd6, 0x4e]);
}
