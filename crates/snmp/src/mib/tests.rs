//! The objects of a status that is written by hand, by the names that the modules give them.

use super::*;
use crate::value::Value;
use crate::view::{Cell, Width};
use millrace_observe_api::{
    AfdxPortStatus, AfdxStatus, ConfigurationStatus, DeviceDirection, DeviceStatus, Distribution,
    KindsStatus, ModeStatus, OwnEndSystemStatus, PlanQueueStatus, PlanStatus, Process, QueueStatus,
    VirtualLinkStatus,
};

fn kinds(first: u64) -> KindsStatus {
    let names = ["0-63", "64", "65-127", "128-255", "256-511", "512-1023", "1024-1518", "1519-max"];
    let sizes = (first + 3..).zip(names).map(|(count, name)| (name.to_owned(), count)).collect();
    KindsStatus { unicast: first, multicast: first + 1, broadcast: first + 2, sizes }
}

/// A switch with an interface, a capture that does not look at kinds, and the port of the CPU.
fn status() -> Status {
    let device = DeviceStatus {
        rx: DeviceDirection { errors: 30, ..DeviceDirection::default() },
        tx: DeviceDirection { errors: 31, ..DeviceDirection::default() },
        rx_errors: [("crc", 32), ("alignment", 33), ("length", 34), ("overrun", 35), ("missed", 36)]
            .map(|(kind, count)| (kind.to_owned(), count))
            .into(),
    };
    let first = PortStatus {
        port: 0,
        up: true,
        enabled: true,
        interface: Some("eth0".to_owned()),
        spec: Some("packet:eth0".to_owned()),
        mac: Some("02:00:00:00:00:0a".to_owned()),
        speed_mbps: Some(10_000),
        mtu: Some(1500),
        rx_packets: 11,
        rx_bytes: (1 << 32) + 12,
        rx_drops: 13,
        rx_missed: 14,
        rx_errors: 15,
        tx_packets: 16,
        tx_bytes: 17,
        tx_drops: 18,
        rx_kinds: Some(kinds(40)),
        tx_kinds: Some(kinds(60)),
        device: Some(device),
        ..PortStatus::default()
    };
    let second = PortStatus {
        port: 7,
        enabled: false,
        up: true,
        spec: Some("pcap:in.pcap".to_owned()),
        rx_packets: 21,
        ..PortStatus::default()
    };
    let cpu = PortStatus { port: 510, up: true, enabled: true, ..PortStatus::default() };
    // What no interface number is for.
    let far = PortStatus { port: u32::MAX, ..PortStatus::default() };
    let queue = PlanQueueStatus {
        handle: "10:".to_owned(),
        packets: 1,
        bytes: 2,
        sent: 3,
        sent_bytes: 4,
        drops: [("queue_full", 5), ("buffer_full", 6), ("too_old", 7), ("early_drop", 8)]
            .map(|(reason, count)| (reason.to_owned(), count))
            .into(),
        largest_packets: 9,
        largest_bytes: 10,
        largest_delay_ns: 11_001,
        ..PlanQueueStatus::default()
    };
    let link = VirtualLinkStatus {
        port: 0,
        vl: 65_535,
        frames: Some(1 << 33),
        bytes: Some(71),
        too_short: Some(72),
        too_long: Some(73),
        policed: Some(74),
        mode: Some(75),
        aged: None,
    };
    Status {
        version: "1".to_owned(),
        program: "afdx".to_owned(),
        engine: "jit".to_owned(),
        now_ns: 0,
        ports: vec![first, second, cpu, far],
        drops: [("mode".to_owned(), 3), ("ingress_drop".to_owned(), (1 << 32) + 1)].into(),
        drop_sites: Vec::new(),
        tables: Vec::new(),
        queues: vec![QueueStatus { port: 7, priority: 2, packets: 80, max_packets: 81, drops: 82 }],
        plans: vec![PlanStatus { port: 0, plan: String::new(), queues: vec![queue] }],
        bursts: Distribution::default(),
        latency_ns: Distribution::default(),
        lost_notices: 0,
        workers: Vec::new(),
        captures: Vec::new(),
        inputs: Vec::new(),
        plugins: Vec::new(),
        process: Process::default(),
        mode: ModeStatus { mode: "passive".to_owned(), previous: "init".to_owned(), since_ns: 0, changes: 2 },
        configuration: ConfigurationStatus {
            part_number: Some("AB-1".to_owned()),
            crc: Some(0x1c29_1ca3),
            fault: Some("wrong".to_owned()),
        },
        afdx: Some(AfdxStatus {
            ports: vec![AfdxPortStatus {
                port: 0,
                bad_length: Some(90),
                bad_prefix: Some(91),
                unknown_vl: Some(92),
                aged: Some(93),
            }],
            virtual_links: vec![VirtualLinkStatus { vl: 1, ..VirtualLinkStatus::default() }, link],
        }),
        own_end_system: Some(OwnEndSystemStatus {
            frames: 201,
            discarded: 202,
            echoes: 203,
            requests: 204,
            answers: 205,
            no_way: 206,
            busy: 207,
            refused: 208,
        }),
    }
}

fn view_of(status: &Status) -> View {
    let identity = Identity { name: "sw1".to_owned(), ..Identity::default() };
    view(Moment { identity: &identity, status, last_changes: &[(0, 500)].into(), ticks: 1000 })
}

/// What an object holds, written `kind value`; none where there is none.
fn said(view: &View, name: &str) -> Option<String> {
    let name: Vec<u32> = name.split('.').map(|part| part.parse().unwrap()).collect();
    let found = view.get(&name, Width::Wide).ok()?;
    Some(match found.cell {
        Cell::UpTime => "uptime".to_owned(),
        Cell::OfAgent(number) => format!("agent {number}"),
        Cell::Value(value) => match value {
            Value::Integer(number) => format!("integer {number}"),
            Value::Text(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) if !text.contains(|c: char| c.is_control()) => format!("text {text}"),
                _ => format!("octets {bytes:02x?}"),
            },
            Value::Name(name) => {
                let parts: Vec<String> = name.iter().map(u32::to_string).collect();
                format!("name {}", parts.join("."))
            }
            Value::Address(octets) => format!("address {octets:?}"),
            Value::Counter32(count) => format!("counter {count}"),
            Value::Counter64(count) => format!("large {count}"),
            Value::Gauge(number) => format!("gauge {number}"),
            Value::Ticks(ticks) => format!("ticks {ticks}"),
        },
    })
}

fn check(view: &View, entry: &str, index: &str, wanted: &[(u32, &str)]) {
    for (column, wanted) in wanted {
        let name = format!("{entry}.{column}.{index}");
        let wanted = (!wanted.is_empty()).then(|| (*wanted).to_owned());
        assert_eq!(said(view, &name), wanted, "{name}");
    }
}

#[test]
fn the_groups_of_the_agent_are_those_of_rfc_3418() {
    let view = view_of(&status());
    let system = [
        (1, "text "),
        (2, "name 1.3.6.1.3.6647.3"),
        (3, "uptime"),
        (5, "text sw1"),
        (7, "integer 2"),
        (8, "ticks 0"),
    ];
    check(&view, "1.3.6.1.2.1.1", "0", &system);
    check(&view, "1.3.6.1.2.1.1.9.1", "2", &[(1, ""), (2, "name 1.3.6.1.2.1.31"), (4, "ticks 0")]);
    check(
        &view,
        "1.3.6.1.2.1.11",
        "0",
        &[(1, "agent 1"), (7, ""), (30, "integer 2"), (31, "agent 31"), (33, "")],
    );
}

#[test]
fn ports_are_interfaces_of_rfc_2863() {
    let view = view_of(&status());
    assert_eq!(said(&view, "1.3.6.1.2.1.2.1.0").as_deref(), Some("integer 3"));
    let if_entry = "1.3.6.1.2.1.2.2.1";
    #[rustfmt::skip]
    check(&view, if_entry, "1", &[
        (1, "integer 1"), (2, "text port 0: packet:eth0"), (3, "integer 6"), (4, "integer 1500"), (5, "gauge 4294967295"),
        (6, "octets [02, 00, 00, 00, 00, 0a]"), (7, "integer 1"), (8, "integer 1"), (9, "ticks 500"),
        (10, "counter 12"), (11, "counter 40"), (12, ""), (13, "counter 27"), (14, "counter 45"), (15, "counter 0"),
        (16, "counter 17"), (17, "counter 60"), (18, ""), (19, "counter 18"), (20, "counter 31"), (21, ""), (22, ""),
    ]);
    // A port that was switched off, without an interface, and one of another kind.
    #[rustfmt::skip]
    check(&view, if_entry, "8", &[
        (2, "text port 7: pcap:in.pcap"), (3, "integer 6"), (4, ""), (5, "gauge 0"), (6, "text "), (7, "integer 2"), (8, "integer 2"),
        (9, "ticks 0"), (11, "counter 21"), (20, "counter 0"),
    ]);
    check(
        &view,
        if_entry,
        "511",
        &[(2, "text port 510"), (3, "integer 1"), (7, "integer 1"), (8, "integer 1")],
    );
    let x_entry = "1.3.6.1.2.1.31.1.1.1";
    #[rustfmt::skip]
    check(&view, x_entry, "1", &[
        (1, "text eth0"), (2, "counter 41"), (3, "counter 42"), (4, "counter 61"), (5, "counter 62"),
        (6, "large 4294967308"), (7, "large 40"), (8, "large 41"), (9, "large 42"),
        (10, "large 17"), (11, "large 60"), (12, "large 61"), (13, "large 62"),
        (14, "integer 1"), (15, "gauge 10000"), (16, "integer 1"), (17, "integer 1"), (18, "text packet:eth0"), (19, "ticks 0"),
    ]);
    check(&view, x_entry, "8", &[(1, "text port7"), (2, ""), (7, "large 21"), (8, ""), (17, "integer 2")]);
    // Four billion and more have no number.
    let rows = |column: &[u32]| {
        let next = |name: &Vec<u32>| view.after(name, Width::Wide).map(|found| found.name());
        let walk = std::iter::successors(next(&column.to_vec()), next);
        walk.take_while(|name| name.starts_with(column)).count()
    };
    assert_eq!(rows(&[1, 3, 6, 1, 2, 1, 2, 2, 1, 1]), 3);
}

#[test]
fn frames_are_counted_as_rfc_3635_and_rfc_2819_have_it() {
    let view = view_of(&status());
    let dot3 = "1.3.6.1.2.1.10.7.2.1";
    #[rustfmt::skip]
    check(&view, dot3, "1", &[
        (1, "integer 1"), (2, "counter 33"), (3, "counter 32"), (4, ""), (10, "counter 31"), (13, "counter 34"), (16, "counter 71"),
        (19, "integer 1"), (20, "integer 2"), (21, "integer 1"),
    ]);
    check(&view, dot3, "8", &[(1, "integer 8"), (2, ""), (3, ""), (10, ""), (16, "")]);
    check(&view, dot3, "511", &[(1, "")]);
    let ether = "1.3.6.1.2.1.16.1.1.1";
    #[rustfmt::skip]
    check(&view, ether, "1", &[
        (1, "integer 1"), (2, "name 1.3.6.1.2.1.2.2.1.1.1"), (3, "counter 14"),
        // 12 bytes and a check sequence of 4 for each of 11 frames.
        (4, "counter 56"), (5, "counter 11"), (6, "counter 42"), (7, "counter 41"), (8, "counter 65"),
        (9, "counter 43"), (10, "counter 50"), (11, ""), (12, ""), (13, ""),
        (14, "counter 44"), (15, "counter 45"), (16, "counter 46"), (17, "counter 47"), (18, "counter 48"), (19, "counter 49"),
        (20, "text millrace"), (21, "integer 1"),
    ]);
    check(&view, ether, "8", &[(5, "counter 21"), (6, ""), (8, ""), (14, "")]);
}

#[test]
fn an_afdx_switch_tells_of_itself() {
    let view = view_of(&status());
    let switch = "1.3.6.1.3.6647.1.1";
    #[rustfmt::skip]
    check(&view, switch, "0", &[
        (1, "integer 4"), (2, "integer 1"), (3, "ticks 0"), (4, "counter 2"), (5, "text AB-1"), (6, "octets [1c, 29, 1c, a3]"),
        (7, "integer 3"), (8, "text wrong"), (9, "text afdx"),
    ]);
    for number in 1..=8 {
        let own = said(&view, &format!("1.3.6.1.3.6647.1.6.{number}.0"));
        assert_eq!(own, Some(format!("counter {}", 200 + number)));
    }
    // `mode` and `ingress_drop` as indexes.
    check(&view, "1.3.6.1.3.6647.1.2.1", "109.111.100.101", &[(1, ""), (2, "counter 3"), (3, "large 3")]);
    let ingress_drop = "105.110.103.114.101.115.115.95.100.114.111.112";
    check(&view, "1.3.6.1.3.6647.1.2.1", ingress_drop, &[(2, "counter 1"), (3, "large 4294967297")]);
    #[rustfmt::skip]
    check(&view, "1.3.6.1.3.6647.1.3.1", "1", &[
        (1, "large 11"), (2, "large 4294967308"), (3, "large 16"), (4, "large 17"), (5, "counter 13"), (6, "counter 18"),
        (7, "counter 90"), (8, "counter 91"), (9, "counter 92"), (10, "counter 32"), (11, "counter 100"),
    ]);
    check(&view, "1.3.6.1.3.6647.1.3.1", "8", &[(1, "large 21"), (7, ""), (10, ""), (11, "counter 0")]);
    #[rustfmt::skip]
    check(&view, "1.3.6.1.3.6647.1.4.1", "1.65535", &[
        (3, "counter 0"), (4, "large 8589934592"), (5, "counter 71"), (6, "large 71"), (7, "counter 72"), (8, "counter 73"),
        (9, "counter 74"), (10, "counter 75"), (11, ""),
    ]);
    check(&view, "1.3.6.1.3.6647.1.4.1", "1.1", &[(3, "")]);
    #[rustfmt::skip]
    check(&view, "1.3.6.1.3.6647.1.5.1", "1.1", &[
        (2, "text 10:"), (3, "gauge 1"), (4, "gauge 2"), (5, "gauge 9"), (6, "gauge 10"), (7, "counter 3"), (8, "large 3"),
        (9, "large 4"), (10, "counter 11"), (11, "counter 7"), (12, "counter 8"), (13, "gauge 12"),
    ]);
    check(
        &view,
        "1.3.6.1.3.6647.1.5.1",
        "8.3",
        &[(2, "text class 2"), (3, "gauge 80"), (4, ""), (10, "counter 82"), (11, "")],
    );
}

#[test]
fn a_mode_that_began_is_told_in_the_agents_time() {
    let mut status = status();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    status.mode.since_ns = (now - std::time::Duration::from_secs(4)).as_nanos() as u64;
    let view = view_of(&status);
    let ticks = said(&view, "1.3.6.1.3.6647.1.1.3.0").unwrap();
    let ticks: u32 = ticks.strip_prefix("ticks ").unwrap().parse().unwrap();
    // Of 1000 ticks 400 ago, and what the test takes.
    assert!((500..=600).contains(&ticks), "{ticks}");
}

#[test]
fn all_objects_of_the_module_are_walked_in_order() {
    let view = view_of(&status());
    let next = |name: &Vec<u32>| view.after(name, Width::Wide).map(|found| found.name());
    let names: Vec<Vec<u32>> = std::iter::successors(next(&vec![0, 0]), next).collect();
    assert!(names.is_sorted() && names.len() == view.len());
    assert!(names.iter().all(|name| view.get(name, Width::Wide).is_ok()));
}
