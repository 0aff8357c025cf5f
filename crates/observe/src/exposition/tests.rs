use super::*;
use millrace_observe_api::{
    ConfigurationStatus, DeviceDirection, DeviceStatus, Distribution, KindsStatus, ModeStatus, OutsideStatus,
    PhysicalStatus, PlanStatus, Process,
};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

fn sizes(first: u64) -> BTreeMap<String, u64> {
    [("64".to_owned(), first), ("65-127".to_owned(), first + 1)].into()
}

fn kinds(first: u64) -> KindsStatus {
    KindsStatus { unicast: first, multicast: first + 1, broadcast: first + 2, sizes: sizes(first + 3) }
}

fn status() -> Arc<Status> {
    let port = PortStatus {
        port: 3,
        up: true,
        enabled: true,
        interface: Some("eth0".into()),
        spec: Some("packet:eth0".into()),
        mac: Some("02:00:00:00:00:17".into()),
        speed_mbps: Some(1000),
        mtu: Some(1500),
        rx_packets: 11,
        rx_bytes: 12,
        rx_drops: 13,
        rx_missed: 14,
        rx_errors: 15,
        rx_truncated: 16,
        tx_packets: 17,
        tx_bytes: 18,
        tx_drops: 19,
        tx_refused: 20,
        rx_filtered: 24,
        rx_kinds: Some(kinds(100)),
        tx_kinds: Some(kinds(200)),
        device: Some(DeviceStatus {
            rx: DeviceDirection {
                packets: 301,
                bytes: 302,
                errors: 303,
                dropped: 304,
                sizes: Some(sizes(310)),
            },
            tx: DeviceDirection { packets: 305, bytes: 306, errors: 307, dropped: 308, sizes: None },
            rx_errors: [("crc".to_owned(), 309)].into(),
        }),
    };
    let table = |name: &str, hits, misses| TableStatus {
        table: name.into(),
        entries: 21,
        max_entries: 22,
        hits,
        misses,
        bytes: 23,
    };
    let mut ranges = vec![0; 37];
    // Three up to 256 ns, two up to 1024 ns, one above 2^35 ns.
    (ranges[2], ranges[8], ranges[10], ranges[36]) = (1, 2, 2, 1);
    Arc::new(Status {
        version: "1.2.3".into(),
        program: "a \"quoted\\\" program".into(),
        engine: "jit".into(),
        now_ns: 1,
        ports: vec![port],
        drops: [("ingress_drop".to_owned(), 31), ("parser_error:NoMatch".to_owned(), 0)].into(),
        drop_sites: vec![DropSiteStatus {
            place: "a.p4:7".into(),
            block: "c.drop".into(),
            request: "mark_to_drop".into(),
            called_at: 9,
            tables: vec!["c.t".into(), "c.u".into()],
            packets: 30,
        }],
        tables: vec![table("c.t", Some(41), Some(42)), table("c.u", None, None)],
        queues: vec![QueueStatus { port: 3, priority: 1, packets: 51, max_packets: 52, drops: 53 }],
        plans: vec![plan()],
        bursts: Distribution { count: 3, sum: 67, ranges: vec![1, 1, 0, 0, 0, 0, 1] },
        latency_ns: Distribution { count: 6, sum: 1_500_000_000, ranges },
        lost_notices: 61,
        workers: vec![
            WorkerStatus { processor: Some(4), rx_packets: 62, queue_pairs: Vec::new() },
            WorkerStatus {
                processor: None,
                rx_packets: 63,
                queue_pairs: vec![QueuePairStatus { port: 3, queue: 1 }],
            },
        ],
        inputs: vec![StepStatus {
            port: 3,
            direction: "input".into(),
            step: 2,
            plugin: "filter".into(),
            packets: 90,
            passed: 81,
            accounted: 5,
            dropped: 4,
            flows: Some(FlowStatus { file: "f".into(), flows: 82, records: 83, lost: 84, error: None }),
        }],
        plugins: vec![PluginStatus {
            name: "find".into(),
            state: "on".into(),
            loads: 101,
            failures: 102,
            callers: 103,
            calls: 104,
            fuel: 105,
            nanoseconds: 106,
            traps: 107,
            over_budget: 108,
            unanswered: 109,
            drops: 110,
            rewrites: 111,
            replies: 112,
        }],
        captures: vec![CaptureStatus {
            port: 3,
            incoming: String::new(),
            outgoing: String::new(),
            packets: 71,
            lost: 72,
            error: None,
        }],
        process: Process { start_seconds: 1e9, cpu_seconds: 0.25, resident_bytes: 81, virtual_bytes: 82 },
        mode: ModeStatus { mode: "passive".into(), previous: "init".into(), since_ns: 141, changes: 142 },
        configuration: ConfigurationStatus::default(),
        afdx: None,
        own_end_system: None,
    })
}

fn plan() -> PlanStatus {
    let queue = PlanQueueStatus {
        handle: "10:2".into(),
        packets: 121,
        bytes: 122,
        sent: 123,
        sent_bytes: 124,
        marked: 125,
        drops: [("early_drop".to_owned(), 126)].into(),
        largest_packets: 127,
        largest_bytes: 128,
        delay_ns: 129,
        largest_delay_ns: 130,
    };
    PlanStatus { port: 3, plan: String::new(), queues: vec![queue] }
}

#[test]
fn every_number_has_its_name_and_labels() {
    let text = metrics(&status());
    let lines: Vec<&str> = text.lines().collect();
    for line in [
        "millrace_tc_waiting_packets{port=\"3\",queue=\"10:2\"} 121",
        "millrace_tc_waiting_bytes{port=\"3\",queue=\"10:2\"} 122",
        "millrace_tc_sent_packets_total{port=\"3\",queue=\"10:2\"} 123",
        "millrace_tc_sent_bytes_total{port=\"3\",queue=\"10:2\"} 124",
        "millrace_tc_marked_packets_total{port=\"3\",queue=\"10:2\"} 125",
        "millrace_tc_drops_total{port=\"3\",queue=\"10:2\",reason=\"early_drop\"} 126",
        "millrace_tc_largest_bytes{port=\"3\",queue=\"10:2\"} 128",
        "millrace_tc_delay_nanoseconds_total{port=\"3\",queue=\"10:2\"} 129",
        "millrace_tc_largest_delay_nanoseconds{port=\"3\",queue=\"10:2\"} 130",
        "millrace_program_drops_total{place=\"a.p4:7\",block=\"c.drop\",request=\"mark_to_drop\",called_at=\"9\",table=\"c.t,c.u\"} 30",
        "millrace_build_info{version=\"1.2.3\"} 1",
        "millrace_port_info{port=\"3\",interface=\"eth0\",mac=\"02:00:00:00:00:17\",spec=\"packet:eth0\"} 1",
        "millrace_port_speed_bytes{port=\"3\"} 125000000",
        "millrace_program_info{program=\"a \\\"quoted\\\\\\\" program\",engine=\"jit\"} 1",
        "millrace_mode{mode=\"passive\"} 1",
        "millrace_mode{mode=\"operational\"} 0",
        "millrace_mode_changes_total 142",
        "millrace_port_up{port=\"3\"} 1",
        "millrace_port_receive_packets_total{port=\"3\"} 11",
        "millrace_port_receive_bytes_total{port=\"3\"} 12",
        "millrace_port_receive_drops_total{port=\"3\"} 13",
        "millrace_port_receive_missed_total{port=\"3\"} 14",
        "millrace_port_receive_errors_total{port=\"3\"} 15",
        "millrace_port_receive_truncated_total{port=\"3\"} 16",
        "millrace_port_transmit_packets_total{port=\"3\"} 17",
        "millrace_port_transmit_bytes_total{port=\"3\"} 18",
        "millrace_port_transmit_drops_total{port=\"3\"} 19",
        "millrace_port_transmit_refused_total{port=\"3\"} 20",
        "millrace_port_receive_filtered_total{port=\"3\"} 24",
        "millrace_port_receive_kinds_total{port=\"3\",kind=\"unicast\"} 100",
        "millrace_port_receive_kinds_total{port=\"3\",kind=\"multicast\"} 101",
        "millrace_port_receive_sizes_total{port=\"3\",size=\"65-127\",counted_by=\"port\"} 104",
        "millrace_port_receive_sizes_total{port=\"3\",size=\"64\",counted_by=\"device\"} 310",
        "millrace_port_transmit_kinds_total{port=\"3\",kind=\"broadcast\"} 202",
        "millrace_port_transmit_sizes_total{port=\"3\",size=\"64\",counted_by=\"port\"} 203",
        "millrace_port_device_packets_total{port=\"3\",direction=\"receive\"} 301",
        "millrace_port_device_errors_total{port=\"3\",direction=\"transmit\"} 307",
        "millrace_port_device_drops_total{port=\"3\",direction=\"receive\"} 304",
        "millrace_port_device_receive_errors_total{port=\"3\",kind=\"crc\"} 309",
        "millrace_drops_total{reason=\"ingress_drop\"} 31",
        "millrace_drops_total{reason=\"parser_error:NoMatch\"} 0",
        "millrace_table_entries{table=\"c.u\"} 21",
        "millrace_table_max_entries{table=\"c.t\"} 22",
        "millrace_table_memory_bytes{table=\"c.t\"} 23",
        "millrace_table_lookups_total{table=\"c.t\",result=\"hit\"} 41",
        "millrace_table_lookups_total{table=\"c.t\",result=\"miss\"} 42",
        "millrace_queue_packets{port=\"3\",priority=\"1\"} 51",
        "millrace_queue_max_packets{port=\"3\",priority=\"1\"} 52",
        "millrace_queue_drops_total{port=\"3\",priority=\"1\"} 53",
        "millrace_worker_receive_packets_total{worker=\"0\",processor=\"4\"} 62",
        "millrace_worker_receive_packets_total{worker=\"1\",processor=\"\"} 63",
        "millrace_worker_queue_pair{worker=\"1\",port=\"3\",queue=\"1\"} 1",
        "millrace_burst_packets_bucket{le=\"1.0\"} 1",
        "millrace_burst_packets_bucket{le=\"32.0\"} 2",
        "millrace_burst_packets_bucket{le=\"64.0\"} 3",
        "millrace_burst_packets_bucket{le=\"+Inf\"} 3",
        "millrace_burst_packets_count 3",
        "millrace_burst_packets_sum 67.0",
        "millrace_latency_seconds_bucket{le=\"2.56e-7\"} 3",
        "millrace_latency_seconds_bucket{le=\"0.000001024\"} 5",
        "millrace_latency_seconds_bucket{le=\"34.359738368\"} 5",
        "millrace_latency_seconds_bucket{le=\"+Inf\"} 6",
        "millrace_latency_seconds_count 6",
        "millrace_latency_seconds_sum 1.5",
        "millrace_notices_lost_total 61",
        "millrace_capture_packets_total{port=\"3\"} 71",
        "millrace_capture_lost_total{port=\"3\"} 72",
        "millrace_plugin_on{plugin=\"find\"} 1",
        "millrace_plugin_calls_total{plugin=\"find\"} 104",
        "millrace_plugin_fuel_total{plugin=\"find\"} 105",
        "millrace_plugin_nanoseconds_total{plugin=\"find\"} 106",
        "millrace_plugin_failures_total{plugin=\"find\",reason=\"trap\"} 107",
        "millrace_plugin_failures_total{plugin=\"find\",reason=\"over_budget\"} 108",
        "millrace_plugin_unanswered_total{plugin=\"find\"} 109",
        "millrace_plugin_drops_total{plugin=\"find\"} 110",
        "millrace_plugin_rewrites_total{plugin=\"find\"} 111",
        "millrace_plugin_replies_total{plugin=\"find\"} 112",
        "millrace_input_packets_total{port=\"3\",direction=\"input\",step=\"2\",plugin=\"filter\",result=\"passed\"} 81",
        "millrace_input_packets_total{port=\"3\",direction=\"input\",step=\"2\",plugin=\"filter\",result=\"accounted\"} 5",
        "millrace_input_packets_total{port=\"3\",direction=\"input\",step=\"2\",plugin=\"filter\",result=\"dropped\"} 4",
        "millrace_input_flows{port=\"3\",direction=\"input\",step=\"2\",plugin=\"filter\"} 82",
        "millrace_input_flow_records_total{port=\"3\",direction=\"input\",step=\"2\",plugin=\"filter\"} 83",
        "millrace_input_flow_records_lost_total{port=\"3\",direction=\"input\",step=\"2\",plugin=\"filter\"} 84",
        "process_resident_memory_bytes 81",
        "process_virtual_memory_bytes 82",
        "process_start_time_seconds 1000000000.0",
        "process_cpu_seconds_total 0.25",
    ] {
        assert!(lines.contains(&line), "{line}\nis not in\n{text}");
    }
    assert!(!text.contains("millrace_table_lookups_total{table=\"c.u\""), "its lookups are not counted");
    assert_eq!(lines.last(), Some(&"# EOF"));
}

/// The rules of the format that Prometheus checks first: each family is described once, before its samples, which
/// stand together; each sample is there once, and is a number.
#[test]
fn the_text_is_well_formed() {
    assert!(families_of(&metrics(&status())) > 25);
}

/// How many families a text has that is well formed.
fn families_of(text: &str) -> usize {
    let (mut families, mut samples) = (HashSet::new(), HashSet::new());
    let mut family = "";
    for line in text.strip_suffix("# EOF\n").unwrap().lines() {
        match line.strip_prefix("# ") {
            Some(words) => {
                let [what, name, rest] = words.splitn(3, ' ').collect::<Vec<_>>()[..] else {
                    panic!("{line}")
                };
                assert!(["HELP", "TYPE", "UNIT"].contains(&what) && !rest.is_empty(), "{line}");
                assert!(what != "UNIT" || name.ends_with(rest), "{line}");
                if what == "HELP" {
                    assert!(families.insert(name), "{line}");
                    family = name;
                }
                assert_eq!(name, family);
            }
            None => {
                let (key, value) = line.rsplit_once(' ').unwrap();
                assert!(key.starts_with(family) && samples.insert(key), "{line}");
                value.parse::<f64>().unwrap();
            }
        }
    }
    families.len()
}

fn device() -> ChassisStatus {
    let mut other = (*status()).clone();
    other.ports[0].rx_packets = 1011;
    other.plans.clear();
    let outside = OutsideStatus { used_ns: 1_500_000_000, losses: [("inbox_full".to_owned(), 401)].into() };
    ChassisStatus {
        version: "1.2.3".into(),
        device: "edge".into(),
        physical: vec![PhysicalStatus {
            name: "p0".into(),
            spec: "packet:eth0".into(),
            rx_packets: 411,
            rx_bytes: 412,
            rx_missed: 413,
            rx_errors: 414,
            tx_packets: 415,
            tx_bytes: 416,
            tx_refused: 417,
            failure: None,
        }],
        unclassified: Some(421),
        switches: [("a".to_owned(), (*status()).clone()), ("b".to_owned(), other)].into(),
        outside: [("a".to_owned(), outside)].into(),
        silent: vec!["c".into()],
        process: Some(status().process),
    }
}

#[test]
fn numbers_of_many_switches_have_the_name_of_their_switch() {
    let text = metrics_of_many(&device());
    let lines: Vec<&str> = text.lines().collect();
    for line in [
        "millrace_build_info{version=\"1.2.3\"} 1",
        "millrace_device_info{device=\"edge\"} 1",
        "millrace_switch_up{switch=\"a\"} 1",
        "millrace_switch_up{switch=\"b\"} 1",
        "millrace_switch_up{switch=\"c\"} 0",
        "millrace_switch_used_seconds_total{switch=\"a\"} 1.5",
        "millrace_switch_losses_total{switch=\"a\",reason=\"inbox_full\"} 401",
        "millrace_unclassified_packets_total 421",
        "millrace_physical_up{physical=\"p0\"} 1",
        "millrace_physical_info{physical=\"p0\",spec=\"packet:eth0\"} 1",
        "millrace_physical_receive_packets_total{physical=\"p0\"} 411",
        "millrace_physical_receive_bytes_total{physical=\"p0\"} 412",
        "millrace_physical_receive_missed_total{physical=\"p0\"} 413",
        "millrace_physical_receive_errors_total{physical=\"p0\"} 414",
        "millrace_physical_transmit_packets_total{physical=\"p0\"} 415",
        "millrace_physical_transmit_bytes_total{physical=\"p0\"} 416",
        "millrace_physical_transmit_refused_total{physical=\"p0\"} 417",
        "millrace_port_receive_packets_total{switch=\"a\",port=\"3\"} 11",
        "millrace_port_receive_packets_total{switch=\"b\",port=\"3\"} 1011",
        "millrace_tc_sent_packets_total{switch=\"a\",port=\"3\",queue=\"10:2\"} 123",
        "millrace_notices_lost_total{switch=\"b\"} 61",
        "process_resident_memory_bytes 81",
    ] {
        assert!(lines.contains(&line), "{line}\nis not in\n{text}");
    }
    // As many families as of one switch, and those of the device.
    assert_eq!(families_of(&text), families_of(&metrics(&status())) + 14);
    let of_switches =
        lines.iter().filter(|line| line.starts_with("millrace_p") && !line.starts_with("millrace_physical"));
    assert!(of_switches.clone().count() > 40);
    for line in of_switches {
        assert!(line.contains("switch=\"a\"") || line.contains("switch=\"b\""), "{line}");
    }
    assert!(!text.contains("switch=\"b\",port=\"3\",queue=\"10:2\""), "{text}");
}

#[test]
fn a_client_without_rights_to_the_device_has_no_numbers_of_it() {
    let none = ChassisStatus { version: "1.2.3".into(), device: "edge".into(), ..ChassisStatus::default() };
    let text = metrics_of_many(&none);
    assert_eq!(families_of(&text), 2, "{text}");
}

#[test]
fn what_there_is_nothing_of_is_left_out() {
    let mut none = (*status()).clone();
    none.queues.clear();
    none.captures.clear();
    let text = metrics(&Arc::new(none));
    assert!(!text.contains("millrace_queue") && !text.contains("millrace_capture"), "{text}");
}
