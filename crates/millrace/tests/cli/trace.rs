//! `trace`: the story of a packet.

use crate::common::millrace;
use serde_json::json;

const TRACE: [&str; 4] = ["trace", "programs/router.p4", "--port", "0"];
const ENTRIES: [&str; 2] = ["--entries", "programs/router.entries"];

#[test]
fn the_story_of_a_forwarded_packet() {
    let said = millrace(&[&TRACE[..], &ENTRIES, &["--packet", "programs/demo/in0.pcap"]].concat());
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let first = said.out.split("\n\npacket of").next().unwrap();
    // In this order: states, headers with values, the table with key, entry and action, what changes, the bytes out.
    let mut rest = first;
    for part in [
        "packet of 60 bytes on port 0 at 0 ns",
        "RouterParser (router.p4:68)",
        "state start (router.p4:72)",
        "extract hdr.ethernet",
        "type = 0x0800",
        "select (hdr.ethernet.type = 0x0800): case 1",
        "state ipv4 (router.p4:81)",
        "ttl = 0x40",
        "dst = 0x0a000102",
        "hdr.ipv4.ttl = 0x3f (was 0x40)",
        "table RouterIngress.ipv4_lpm (router.p4:114)",
        "key hdr.ipv4.dst = 0x0a000102 in 0x0a000100/24",
        // The second route of the file: handles count from 0.
        "hit entry 1",
        "action RouterIngress.set_nhop(dmac = 0x060000000001, port = 0x001) (router.p4:109)",
        "to port 1",
        "egress, port 1",
        "table RouterEgress.send_frame",
        "action RouterEgress.rewrite_smac(smac = 0x020000000001)",
        "hdr.ipv4.checksum = ",
        "emit hdr.ipv4",
        "sent on port 1, 60 bytes",
        "0000: 06 00 00 00 00 01 02 00 00 00 00 01 08 00 45 00",
    ] {
        let at = rest.find(part).unwrap_or_else(|| panic!("{part}\nis not in\n{rest}"));
        rest = &rest[at + part.len()..];
    }
    assert!(!said.out.contains("switch."), "slots that the program does not have: {}", said.out);
    assert_eq!(said.out.matches("packet of ").count(), 6, "one story for each packet of the capture");
}

#[test]
fn the_story_of_a_dropped_packet_says_why() {
    let expired = "020000000000 060000000000 0800 45000014000000000111 a4d6 0a000002 0a000102";
    let said = millrace(&[&TRACE[..], &ENTRIES, &["--packet", expired]].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains("ttl = 0x01"), "{}", said.out);
    assert!(!said.out.contains("table RouterIngress"), "{}", said.out);
    let site = "mark_to_drop in RouterIngress.drop (router.p4:106), called at line 143";
    assert!(said.out.ends_with(&format!("dropped: ingress_drop: {site}\n")), "{}", said.out);
    let miss = "020000000000 060000000000 0800 45000014000000004011 65d6 0a000002 0a000102";
    let said = millrace(&[&TRACE[..], &["--packet", miss]].concat());
    assert!(said.out.contains("miss\n      action RouterIngress.drop()"), "{}", said.out);
    let site = "mark_to_drop in RouterIngress.drop (router.p4:106), of one of the tables RouterIngress.ipv4_lpm, \
                RouterIngress.ipv6_lpm\n";
    assert!(said.out.ends_with(site), "{}", said.out);
}

#[test]
fn priorities_are_shown_as_they_were_written() {
    let args = ["trace", "programs/firewall.p4", "--port", "0", "--entries", "programs/firewall.entries"];
    let said = millrace(&[&args[..], &["--packet", "programs/demo/in0.pcap"]].concat());
    assert!(said.out.contains("hit entry 7 priority 40"), "{}", said.out);
}

#[test]
fn json_and_wrong_packets() {
    let said = millrace(&[&TRACE[..], &ENTRIES, &["--json", "--packet", "programs/demo/in0.pcap"]].concat());
    let object = said.json();
    assert_eq!((said.code, &object["ok"]), (0, &json!(true)));
    let packets = object["packets"].as_array().unwrap();
    assert_eq!(packets.len(), 6);
    assert_eq!(packets[0]["journeys"][1]["fates"][0]["fate"], json!("sent"));
    let table =
        packets[0]["journeys"][0]["steps"].as_array().unwrap().iter().find(|step| step["step"] == "table");
    assert_eq!(table.unwrap()["entry"], json!(1));
    for wrong in ["xyz", "123", "", "nowhere.pcap"] {
        let said = millrace(&[&TRACE[..], &["--packet", wrong]].concat());
        assert_eq!(said.code, 2, "{wrong}: {}", said.err);
    }
    let said = millrace(&[&TRACE[..], &["--packet", "programs/router.p4"]].concat());
    assert_eq!(said.code, 1);
    assert!(said.err.contains("neither a pcap nor a pcapng file"), "{}", said.err);
    assert_eq!(millrace(&[&TRACE[..], &["--packet", "00:11:22"]].concat()).code, 0);
}

/// With the hardware as engine the story says in which cycle tables are asked and answer, as the report of the hardware has it.
#[test]
fn the_story_of_hardware_has_cycles() {
    let packet = ["--packet", "programs/demo/in0.pcap"];
    let said = millrace(&[&TRACE[..], &ENTRIES, &packet, &["--engine", "rtl", "--json"]].concat());
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let story: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let made = millrace(&["rtl", "programs/router.p4", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&made.out).unwrap();
    for (journey, table) in [(0, "RouterIngress.ipv4_lpm"), (1, "RouterEgress.send_frame")] {
        let of = &story["packets"][0]["journeys"][journey];
        let stage = &report["stages"][journey];
        let access = stage["accesses"].as_array().unwrap().iter().find(|one| one["object"] == table).unwrap();
        let steps = of["steps"].as_array().unwrap();
        let step = steps.iter().position(|step| step["table"] == table).unwrap();
        let cycle = access["cycle"].as_u64().unwrap();
        let answered = cycle + access["latency"].as_u64().unwrap();
        assert_eq!(of["hardware"]["steps"], json!([{ "step": step, "asked": cycle, "answered": answered }]));
        assert_eq!(of["hardware"]["last"], stage["latency"]);
        // Parsers, states, controls and deparsers, each in its order, and what they wait for.
        let starts = of["hardware"]["starts"].as_array().unwrap();
        let number = |start: &serde_json::Value| start["step"].as_u64().unwrap() as usize;
        let named = |start| steps[number(start)]["name"].as_str().unwrap();
        let names: Vec<&str> = starts.iter().map(named).collect();
        let known: Vec<u64> = starts.iter().map(|start| start["known"].as_u64().unwrap()).collect();
        match journey {
            0 => {
                let wanted = ["RouterParser", "start", "ipv4", "RouterVerifyChecksum", "RouterIngress"];
                assert_eq!(names, wanted);
                assert!(known.is_sorted() && known[4] <= cycle, "{known:?}");
            }
            _ => {
                assert_eq!(names, ["RouterEgress", "RouterComputeChecksum", "RouterDeparser"]);
                // Whether the entry drops the frame is known with the answer.
                assert_eq!(known, [0, 0, answered]);
            }
        }
        assert_eq!(of["hardware"]["period_ps"], 6400);
        let text = millrace(&[&TRACE[..], &ENTRIES, &packet, &["--engine", "rtl"]].concat());
        assert!(
            text.out.contains(&format!("asked in cycle {cycle}, answered in cycle {answered}")),
            "{}",
            text.out
        );
    }
    // Not of another engine.
    let said = millrace(&[&TRACE[..], &ENTRIES, &packet, &["--engine", "interp", "--json"]].concat());
    assert!(!said.out.contains("hardware"));
}
