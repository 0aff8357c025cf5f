//! `run`: the demonstration, capture files, entries that do not fit, signals.

use crate::common::{Folder, Said, command, frames, millrace, root};
use crate::live::Live;
use serde_json::json;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
fn the_demonstration_says_what_came_in_and_went_out() {
    let said = millrace(&["run"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{}", said.out);
    let lines: Vec<&str> = said.out.lines().collect();
    assert_eq!(
        lines[0],
        "programs/router.p4 with programs/router.entries, packets from programs/demo/in0.pcap and programs/demo/in1.pcap"
    );
    // The ping: the router's addresses, one hop less.
    assert_eq!(
        lines[2],
        "in   port 0  06:00:00:00:00:00 > 02:00:00:00:00:00  10.0.0.2 > 10.0.1.2  icmp  ttl 64  60 bytes"
    );
    assert_eq!(
        lines[3],
        "out  port 1  02:00:00:00:00:01 > 06:00:00:00:00:01  10.0.0.2 > 10.0.1.2  icmp  ttl 63  60 bytes"
    );
    assert_eq!(said.out.matches("\nin   port").count(), 9);
    assert_eq!(said.out.matches("\nout  port").count(), 6);
    // Expired, wrong checksum, ARP.
    assert_eq!(said.out.matches("\ndrop         ingress_drop").count(), 3);
    let site = "mark_to_drop in RouterIngress.drop (router.p4:106), called at line 143";
    assert_eq!(said.out.matches(&format!("\ndrop         ingress_drop: {site}\n")).count(), 3);
    let end = format!("dropped:\n         3  ingress_drop\n         3  by the program: {site}\n");
    assert!(said.out.ends_with(&end), "{}", said.out);
    let object = millrace(&["run", "--json"]).json();
    assert_eq!(object["ok"], json!(true));
    assert_eq!(object["drops"], json!({ "ingress_drop": 3 }));
    let wanted = json!([{
        "file": "router.p4", "line": 106, "block": "RouterIngress.drop", "request": "mark_to_drop",
        "called_at": 143, "tables": [], "packets": 3,
    }]);
    assert_eq!((&object["drop_sites"], &object["losses"]), (&wanted, &json!([])));
    assert_eq!(object["packets"].as_array().unwrap().len(), 9);
    assert_eq!(object["ports"][0]["rx_packets"], json!(6));
}

#[test]
fn capture_files_go_in_and_come_out() {
    let folder = Folder::new("run-pcap");
    let outputs = [folder.path("out0.pcap"), folder.path("out1.pcap")];
    let ports = [
        format!("0@pcap:programs/demo/in0.pcap,{}", outputs[0]),
        format!("1@pcap:programs/demo/in1.pcap,{}", outputs[1]),
    ];
    let args = [
        "run",
        "programs/router.p4",
        "-i",
        &ports[0],
        "-i",
        &ports[1],
        "--entries",
        "programs/router.entries",
    ];
    let said = millrace(&args);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.starts_with("router is running on 0@pcap:"), "{}", said.err);
    assert!(said.out.contains("dropped:\n         3  ingress_drop\n"), "{}", said.out);
    let (to_0, to_1) = (frames(&outputs[0]), frames(&outputs[1]));
    assert_eq!((to_0.len(), to_1.len()), (3, 3));
    // The router's own address, and a time to live of 63.
    assert_eq!((&to_1[0][6..12], to_1[0][22]), (&[2, 0, 0, 0, 0, 1][..], 63));
    assert_eq!((&to_0[0][..6], to_0[0][22]), (&[6, 0, 0, 0, 0, 0][..], 63));
    // A run over captures is deterministic to the byte.
    let before: Vec<Vec<u8>> = outputs.iter().map(|path| std::fs::read(path).unwrap()).collect();
    let object = millrace(&[&args[..], &["--json"]].concat()).json();
    let after: Vec<Vec<u8>> = outputs.iter().map(|path| std::fs::read(path).unwrap()).collect();
    assert_eq!(before, after);
    assert_eq!((&object["ok"], &object["ports"][1]["tx_packets"]), (&json!(true), &json!(3)));
    assert_eq!(object["drops"], json!({ "ingress_drop": 3 }));
}

/// What each port of arrival gets, for a drop port and none: 1 gives the program's own 511, 2 drops, 3 gives 7 and 4 drops
/// in egress. Six frames come from each.
#[test]
fn another_drop_port_leaves_the_program_its_own_511() {
    let folder = Folder::new("run-drop-port");
    let program = folder.file("ports.p4", PORTS);
    let out = |number: u32| folder.path(&format!("out{number}.pcap"));
    let ports: Vec<String> = [1, 2, 3, 4, 7, 511]
        .map(|number| match number {
            ..=4 => format!("{number}@pcap:programs/demo/in0.pcap,{}", out(number)),
            _ => format!("{number}@pcap:{},{}", folder.path("none.pcap"), out(number)),
        })
        .into();
    // The header of a capture file alone.
    let capture = std::fs::read(root().join("programs/demo/in0.pcap")).unwrap();
    std::fs::write(folder.path("none.pcap"), &capture[..24]).unwrap();
    for (drop_port, [to_7, to_511]) in [(None, [6, 0]), (Some("7"), [0, 6]), (Some("0"), [6, 6])] {
        for engine in ["interp", "jit"] {
            let mut args = vec!["run", &program, "--engine", engine];
            ports.iter().for_each(|port| args.extend(["-i", port]));
            drop_port.iter().for_each(|port| args.extend(["--drop-port", port]));
            let said = millrace(&args);
            assert_eq!(said.code, 0, "{}", said.err);
            let sent = [7, 511].map(|number| frames(&out(number)).len());
            assert_eq!(sent, [to_7, to_511], "{engine} {drop_port:?}");
        }
    }
}

/// Gives each port of arrival its own way.
const PORTS: &str = "#include <core.p4>
#include <v1model.p4>
struct h_t { }
struct m_t { }
parser P(packet_in p, out h_t h, inout m_t m, inout standard_metadata_t s) { state start { transition accept; } }
control V(inout h_t h, inout m_t m) { apply { } }
control I(inout h_t h, inout m_t m, inout standard_metadata_t s) {
    apply {
        if (s.ingress_port == 2) { mark_to_drop(s); }
        else if (s.ingress_port == 1) { s.egress_spec = 511; }
        else { s.egress_spec = 7; }
    }
}
control E(inout h_t h, inout m_t m, inout standard_metadata_t s) {
    apply { if (s.ingress_port == 4) { mark_to_drop(s); } }
}
control D(packet_out p, in h_t h) { apply { } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
";

fn run_with_entries(folder: &Folder, text: &str) -> Said {
    let entries = folder.file("entries", text);
    let port = format!("0@pcap:programs/demo/in0.pcap,{}", folder.path("out.pcap"));
    millrace(&["run", "programs/router.p4", "-i", &port, "--entries", &entries])
}

#[test]
fn json_entries_run_too() {
    let folder = Folder::new("run-json");
    let entries = r#"{ "table_entries": [
        { "table": "RouterIngress.ipv4_lpm", "match": { "hdr.ipv4.dst": ["10.0.1.0", 24] },
          "action_name": "RouterIngress.set_nhop", "action_params": { "dmac": "06:00:00:00:00:01", "port": 0 } },
        { "table": "RouterEgress.send_frame", "match": { "standard_metadata.egress_port": 0 },
          "action_name": "RouterEgress.rewrite_smac", "action_params": { "smac": "02:00:00:00:00:00" } } ] }"#;
    let said = run_with_entries(&folder, entries);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(frames(&folder.path("out.pcap")).len(), 2);
}

#[test]
fn wrong_usage_is_told_from_what_cannot_be_opened() {
    for (args, code, message) in [
        (&["run", "programs/router.p4"][..], 2, "a port is missing"),
        (&["run", "-i", "0@veth0"], 2, "PROG is missing"),
        (&["run", "--entries", "programs/router.entries"], 2, "PROG is missing"),
        (&["run", "programs/router.p4", "-i", "veth0"], 2, "PORT@INTERFACE is expected"),
        (&["run", "programs/router.p4", "-i", "0@pacp:x"], 2, "did you mean `pcap`?"),
        (&["run", "programs/router.p4", "-i", "0@eth0,fcs=check,fcs=check"], 2, "`fcs=` is given twice"),
        (&["run", "programs/router.p4", "-i", "0@pcap:/nowhere/in.pcap"], 1, "/nowhere/in.pcap"),
        (&["run", "programs/router.p4", "-i", "0@no-such-interface"], 1, "no-such-interface"),
        (&["run", "programs/router.p4", "-i", "0@pcap:programs/router.p4"], 1, "programs/router.p4"),
        (
            &["run", "programs/router.p4", "-i", "0@pcap:programs/demo/in0.pcap", "--snmp-community", "own"],
            2,
            "--snmp ADDR",
        ),
    ] {
        let said = millrace(args);
        assert_eq!(said.code, code, "{args:?}: {}", said.err);
        assert!(said.err.contains(message), "{args:?}: {}", said.err);
    }
    let twice = ["-i", "0@pcap:programs/demo/in0.pcap", "-i", "0@pcap:programs/demo/in1.pcap"];
    let said = millrace(&[&["run", "programs/router.p4", "--json"], &twice[..]].concat());
    assert_eq!(said.code, 1);
    assert_eq!(said.json()["error"], json!("port 0 is given twice"));
}

/// An option that would do nothing is refused, with what it needs.
#[test]
fn options_that_would_do_nothing_are_refused() {
    let run = ["run", "programs/router.p4", "-i", "0@null:-"];
    for (words, message) in [
        ("--pcap-max 1", "--pcap <DIR>|--pcap-dir <DIR>"),
        ("--pcap-dir /nowhere", "--metrics <ADDR|PORT>|--thrift <ADDR|PORT>"),
        ("--device-id 3", "--grpc <ADDR|PORT>|--thrift <ADDR|PORT>"),
        ("--grpc-cert a.pem --grpc-key b.pem", "--grpc <ADDR|PORT>"),
    ] {
        let said = millrace(&[&run[..], &words.split(' ').collect::<Vec<_>>()].concat());
        assert_eq!(said.code, 2, "{words}: {}", said.err);
        assert!(said.err.contains("required arguments were not provided"), "{words}: {}", said.err);
        assert!(said.err.contains(message), "{words}: {}", said.err);
    }
    let network = "programs/networks/small.toml";
    for (words, message) in [
        ("run --thrift 0", "PROG is missing: --thrift needs a program"),
        ("run --metrics 0 --json", "PROG is missing: --metrics needs a program"),
        ("run --tc plans.tc", "PROG is missing: --tc needs a program"),
        ("run programs/router.p4 -i 0@null:- --packet-in-ports 4", "cannot be used with"),
        ("run programs/router.p4 --thrift 0 --packet-in-ports 4", "--packet-in <ADDR>"),
        ("run -D X", "PROG is missing: -D needs a program"),
        ("run --grpc 0 -I folder", "PROG is missing: -I needs a program"),
        ("trace --from 1 -D X --port 0 --packet 00", "-D is for a source"),
        (&format!("es {network} --name ES1 -i A@tap:x --seed 1"), "--misbehave <FAULT>"),
        (&format!("es {network} --name ES1 -i A@tap:x --silent --bytes 64"), "cannot be used with"),
        (&format!("network export {network} --to mininet --network B"), "--network is for --to wopanets"),
        ("capture off 1 --name x", "--name is for `on`"),
        ("plugin list x", "`x` says nothing"),
        ("plugin off x y.wasm", "`y.wasm`: a file is for `load`"),
        ("link serve --simulate programs/router.p4 --map 1", "cannot be used with"),
        ("link serve --uio /dev/uio0 -D X", "-D is for --simulate"),
        ("node programs/nodes/nat_board.toml -o x --device-at a=1", "cannot be used with"),
        (
            "rtl programs/router.p4 --capacity routes=5 --capacity routes=6",
            "--capacity: `routes` is given twice",
        ),
        ("rtl programs/router.p4 --capacity =5", "no table is named: a capacity is TABLE=N"),
        ("rtl programs/router.p4 --capacity routes=", "`` is no number of entries"),
        ("rtl programs/router.p4 --device --numbers 0:a", "`a` is no number of a port: 0 to 4294967295"),
        ("node a.toml --attach p0=null:- --attach p0=tap:x", "--attach: `p0` is given twice"),
        ("node a.toml --device-at board=1 --device-at board=2", "--device-at: `board` is given twice"),
        ("compile programs/router.p4 --emit ir --target x86-64", "--target is for --emit clif"),
        ("compile programs/router.p4 --time -o x", "-o: what --time says"),
    ] {
        let said = millrace(&words.split(' ').collect::<Vec<_>>());
        assert_eq!(said.code, 2, "{words}: {}", said.err);
        assert!(said.err.contains(message), "{words}: {}", said.err);
    }
}

/// Controllers are tried against a switch that only has the CPU port, and clients of Thrift add ports.
#[test]
fn a_switch_with_a_server_needs_no_port() {
    for args in [&["run", "--grpc", "0"][..], &["run", "programs/router.p4", "--thrift", "0"]] {
        let mut switch = Live::start(args);
        assert_eq!(switch.hears("").unwrap().split_once(" is running on ").unwrap().1, "no port");
        let server = if args[1] == "--grpc" { "P4Runtime: device 1 at " } else { "Thrift: " };
        assert!(switch.hears(server).is_some(), "{:?}", switch.said);
    }
}

/// Needs the right to make a TAP interface; without it there is nothing to test.
#[test]
fn a_live_switch_ends_when_it_is_told_to() {
    let port = format!("0@tap:mr{}", std::process::id() % 100_000);
    let mut child = command()
        .args(["run", "programs/router.p4", "-i", &port, "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    errors.read_line(&mut ready).unwrap();
    if ready.starts_with("error:") {
        child.wait().unwrap();
        println!("a_live_switch_ends_when_it_is_told_to: skipped, {}", ready.trim_end());
        return;
    }
    assert!(ready.starts_with("router is running on 0@tap:mr"), "{ready}");
    let signalled =
        std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(signalled.success());
    let start = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None => assert!(start.elapsed() < Duration::from_secs(10), "it does not end"),
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!(status.code(), Some(0), "{out}");
    let object: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&object["ok"], &object["ports"][0]["port"]), (&json!(true), &json!(0)));
}
