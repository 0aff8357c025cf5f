//! `--engine device`: a whole hardware device, simulated in the process or served, in place of an engine and the traffic manager.

use crate::common::{Folder, frames, millrace};
use crate::live::Live;
use serde_json::json;
use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

/// A served device is written whole, word by word, each some cycles of a simulation.
const WRITTEN: Duration = Duration::from_secs(150);

#[test]
fn tests_of_programs_pass_on_a_device() {
    for name in ["l2_switch", "firewall", "cookbook/mirror"] {
        let (program, test) = (format!("programs/{name}.p4"), format!("programs/{name}.stf"));
        let said = millrace(&["stf", "--engine", "device", "--device", "width=128", &program, &test]);
        assert_eq!(said.code, 0, "{program}: {}", said.err);
        assert!(said.out.starts_with(&format!("{test}: ok (")), "{program}: {}", said.out);
    }
}

/// A table takes as many entries as its unit was asked to hold.
#[test]
fn units_hold_what_they_are_asked_to() {
    for engine in ["rtl", "device"] {
        let test = ["stf", "programs/l2_switch.p4", "programs/l2_switch.stf", "--engine", engine];
        let with = |capacity: &str| millrace(&[&test[..], &["--capacity", capacity]].concat());
        let said = with("dmac=2");
        assert!(said.code == 1 && said.err.contains("`dmac`: the table is full: it holds 2"), "{}", said.err);
        // More than one that is not asked for anything.
        assert_eq!(with("SwitchIngress.dmac=5000").code, 0);
        assert!(with("mac=2").err.contains("l2_switch has no table or action selector mac"));
        assert!(with("dmac=65537").err.contains("a unit holds 1 to 65536 entries"));
    }
}

/// What leaves is what leaves another engine, with the same drops; the same each time.
#[test]
fn captures_go_through_a_device() {
    let folder = Folder::new("run-device");
    let run = |more: &[&str], name: &str| {
        let outputs = [folder.path(&format!("{name}0.pcap")), folder.path(&format!("{name}1.pcap"))];
        let ports = [
            format!("0@pcap:programs/demo/in0.pcap,{}", outputs[0]),
            format!("1@pcap:programs/demo/in1.pcap,{}", outputs[1]),
        ];
        let program = ["run", "programs/router.p4", "--entries", "programs/router.entries", "--json"];
        let object = millrace(&[&program[..], &["-i", &ports[0], "-i", &ports[1]], more].concat()).json();
        (outputs.map(|path| frames(&path)), object)
    };
    let device = ["--engine", "device", "--device", "width=256,queues=1"];
    let (sent, object) = run(&device, "device");
    let (wanted, of_engine) = run(&["--engine", "interp"], "interp");
    assert_eq!(sent, wanted);
    assert_eq!((sent[0].len(), sent[1].len()), (3, 3));
    for counted in ["rx_packets", "rx_bytes", "rx_drops", "tx_packets", "tx_bytes", "tx_drops"] {
        for port in 0..2 {
            assert_eq!(object["ports"][port][counted], of_engine["ports"][port][counted], "{counted}");
        }
    }
    assert_eq!((&object["drops"], &object["ok"]), (&json!({ "ingress_drop": 3 }), &json!(true)));
    assert_eq!(run(&device, "again").0, sent);
    let by_octets = ["--engine", "device", "--device", "link=gmii,width=128,queues=1"];
    assert_eq!(run(&by_octets, "gmii").0, sent);
}

#[test]
fn what_a_device_cannot_do_is_refused_at_the_start() {
    let program = "programs/l2_switch.p4";
    let run = ["run", program, "--engine", "device", "-i", "0@null:-"];
    for (more, code, why) in [
        (&["--cores", "0,1"][..], 1, "--cores: a hardware device has one worker"),
        (&["--priorities", "2"], 1, "--priorities: the device has queues of its own"),
        (&["--queue-depth", "7"], 1, "--queue-depth: the device has queues of its own"),
        (&["--wait-for-links"], 1, "--wait-for-links"),
        (&["--log-level", "trace"], 1, "--log-level: hardware tells no stories"),
        (&["--device", "ports=2", "-i", "16@null:-"], 1, "port 16: the device has the ports 0, 1 ("),
        (
            &["--device", "numbers=0:7", "--grpc", "0", "--cpu-port", "510"],
            1,
            "port 510: the device has the ports 0, 7 (",
        ),
        (&["--device", "numbers=0:7,ports=3"], 2, "2 numbers for 3 ports: each port has one"),
        (&["--device", "numbers=0:0"], 2, "ports with the numbers 0:0: each has another one"),
        (&["--device-at", "/dev/uio0"], 1, "only its registers are mapped"),
        (&["--device-at", "127.0.0.1:1"], 1, "there is no server of the host link"),
        (&["--device", "speed=4"], 2, "--device: "),
        (&["--sim", "verilator"], 2, "--sim is for --engine rtl"),
    ] {
        let said = millrace(&[&run[..], more].concat());
        assert_eq!(said.code, code, "{more:?}: {}", said.err);
        assert!(said.err.contains(why), "{more:?}: {}", said.err);
    }
    for (args, why) in [
        (&["run", program, "-i", "0@null:-", "--device", "ports=2"][..], "--device is for --engine device"),
        (
            &["run", program, "-i", "0@null:-", "--capacity", "dmac=2"],
            "--capacity is for --engine rtl and --engine device",
        ),
        (
            &["stf", "--engine", "device", "--device-at", "1", program, "programs/l2_switch.stf"],
            "--device-at is for `run`",
        ),
        (
            &["bench", "--engine", "device", program, "--trace", "programs/demo/in0.pcap"],
            "--engine device is for `run PROG` and `stf`",
        ),
        (&["run", "--engine", "device"], "--engine device is for `run PROG` and `stf`"),
    ] {
        let said = millrace(args);
        assert_eq!(said.code, 2, "{args:?}: {}", said.err);
        assert!(said.err.contains(why), "{args:?}: {}", said.err);
    }
    let said = millrace(&["run", "programs/cookbook/aqm.p4", "--engine", "device", "-i", "0@null:-"]);
    assert!(said.code == 1 && said.err.contains("queue"), "{}", said.err);
}

/// A board whose registers another machine serves has its own ports.
#[test]
fn frames_of_a_served_board_go_by_its_own_ports() {
    let folder = Folder::new("served-board");
    let program = "programs/l2_switch.p4";
    let said = millrace(&["rtl", program, "--device", "--ports", "2", "-o", &folder.path("out")]);
    assert_eq!(said.code, 0, "{}", said.err);
    let map = std::fs::read_to_string(folder.path("out/registers.json")).unwrap();
    let map: serde_json::Value = serde_json::from_str(&map).unwrap();
    let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
    let cookie = number(map["cookie"].as_str().unwrap());
    let mut registers = vec![0; map["bytes"].as_u64().unwrap() as usize];
    registers[..4].copy_from_slice(&(map["ident"].as_u64().unwrap() as u32).to_le_bytes());
    registers[4..8].copy_from_slice(&(map["version"].as_u64().unwrap() as u32).to_le_bytes());
    registers[8..16].copy_from_slice(&cookie.to_le_bytes());
    let file = folder.path("registers");
    std::fs::write(&file, registers).unwrap();
    let mut server = Live::start(&["link", "serve", "--uio", &file, "--listen", "0"]);
    let address = server.hears("host link: ").unwrap();
    let device = ["--engine", "device", "--device", "ports=2", "--device-at", &address];
    let said = millrace(&[&["run", program, "-i", "0@null:-"][..], &device].concat());
    assert!(
        said.code == 1 && said.err.contains("frames go by the ports of the device itself"),
        "{}",
        said.err
    );
}

/// A served device is one of the program, or is refused; it is the same whatever way the source was named.
#[test]
fn a_served_device_is_of_the_program() {
    let folder = Folder::new("served-device");
    let copy = folder.path("other.p4");
    std::fs::copy(crate::common::root().join("programs/l2_switch.p4"), &copy).unwrap();
    let shape = ["--ports", "2", "--width", "256", "--capacity", "dmac=64"];
    let serve = ["link", "serve", "--simulate", "programs/l2_switch.p4", "--listen", "0"];
    let mut server = Live::start(&[&serve[..], &shape].concat());
    let address = server.hears("host link: ").unwrap();
    let run = |words: &str, capacity: &str| {
        let args =
            ["run", "programs/l2_switch.p4", "-i", "0@pcap:programs/demo/in0.pcap", "--engine", "device"];
        let to = ["--device-at", &address, "--device", words, "--capacity", capacity];
        millrace(&[&args[..], &to].concat())
    };
    for (words, capacity) in [("ports=3,width=256", "dmac=64"), ("ports=2,width=256", "dmac=4096")] {
        let said = run(words, capacity);
        assert!(said.code == 1 && said.err.contains("of another program"), "{}", said.err);
    }
    let said = run("ports=2,width=256", "SwitchIngress.dmac=64");
    assert!(said.code == 1 && said.err.contains("captures"), "{}", said.err);
    let mut switch = Live::start(&[
        "run",
        &copy,
        "--engine",
        "device",
        "--device-at",
        &address,
        "--device",
        "ports=2,width=256",
        "--capacity",
        "dmac=64",
        "--thrift",
        "0",
    ]);
    let thrift = switch.hears_within(WRITTEN, "Thrift: 127.0.0.1:").unwrap();
    let shell = crate::common::command()
        .args(["shell", "--thrift-port", &thrift])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut shell = shell.unwrap();
    let commands = b"table_add dmac forward 06:00:00:00:00:02 => 1\ntable_num_entries dmac\n";
    shell.stdin.take().unwrap().write_all(commands).unwrap();
    let shown = String::from_utf8(shell.wait_with_output().unwrap().stdout).unwrap();
    assert!(shown.lines().any(|line| line.ends_with('1')), "{shown}");
}
