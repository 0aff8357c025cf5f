//! `millrace node`: function blocks on captures, on interfaces, and through their registers.

use crate::common::{Folder, frames, millrace, root};
use crate::live::{Live, Namespace, is_root, wait_for};

const FILE: &str = "programs/nodes/octet_switch.toml";

#[test]
fn a_node_runs_on_captures_and_says_what_it_has_counted() {
    let folder = Folder::new("node-pcap");
    let out = |port: usize| folder.path(&format!("out{port}.pcap"));
    let attach: Vec<String> =
        (0..3).map(|port| format!("p{port}=pcap:programs/demo/in{}.pcap,{}", port % 2, out(port))).collect();
    let mut args = vec!["node", FILE, "--json"];
    attach.iter().for_each(|attach| args.extend(["--attach", attach]));
    let said = millrace(&args);
    assert_eq!(said.code, 0, "{}", said.err);
    let registers = &said.json()["registers"];
    let came: usize = (0..3)
        .map(|port| frames(root().join(format!("programs/demo/in{}.pcap", port % 2)).to_str().unwrap()).len())
        .sum();
    assert_eq!(registers["node.arrivals"], came);
    // Each frame met an entry or none.
    let matches: u64 =
        (0..16).filter_map(|entry| registers[format!("forward.entry{entry}.matches")].as_u64()).sum();
    assert_eq!(matches + registers["forward.misses"].as_u64().unwrap_or(0), came as u64);
    for port in 0..3 {
        let sent = registers[format!("p{port}.tx.frames")].as_u64().unwrap_or(0);
        assert_eq!(frames(&out(port)).len() as u64, sent, "port {port}");
    }
    let said = millrace(&["node", "check", FILE]);
    assert!(said.code == 0 && said.out.contains("forward.out -> spread.in (FFI)"), "{}", said.out);
    let said = millrace(&["node", "check", "programs/nodes/nat.toml"]);
    assert!(said.code == 0 && said.out.contains("nat: p4 in hardware"), "{}", said.err);
}

#[test]
fn what_is_wrong_with_a_file_is_told() {
    let folder = Folder::new("node-wrong");
    let file =
        folder.file("node.toml", "[[block]]\nname = \"q\"\nkind = \"queue\"\nframes = 0\nfunction = \"f\"\n");
    let said = millrace(&["node", "check", &file]);
    assert_eq!(said.code, 1);
    assert!(
        said.err.contains("1 to 65536 is expected (MAX_DEPTH)") && said.err.contains("there is no function"),
        "{}",
        said.err
    );
    assert_eq!(millrace(&["node"]).code, 2);
    let said = millrace(&["node", FILE, "--attach", "q=lo"]);
    assert!(said.code == 1 && said.err.contains("there is no MAC `q`"), "{}", said.err);
    let said = millrace(&["node", "read", FILE, "no.such", "--server", "127.0.0.1:1"]);
    assert!(said.code == 1 && said.err.contains("there is no register `no.such`"), "{}", said.err);
}

#[test]
fn the_hardware_of_a_node_is_served_by_another_process() {
    let folder = Folder::new("node-served");
    let file = in_hardware(&folder);
    let out = |of: &str, port: usize| folder.path(&format!("{of}{port}.pcap"));
    let run = |file: &str, of: &str, more: &[&str]| {
        let attach =
            (0..3).map(|port| format!("p{port}=pcap:programs/demo/in{}.pcap,{}", port % 2, out(of, port)));
        let attach: Vec<String> = attach.collect();
        let mut args = [&["node", file, "--json"][..], more].concat();
        attach.iter().for_each(|attach| args.extend(["--attach", attach]));
        millrace(&args)
    };
    let wanted = run(FILE, "software", &[]);
    assert_eq!(wanted.code, 0, "{}", wanted.err);
    let mut server = Live::start(&["node", "serve", &file, "board", "--listen", "0"]);
    let at = server.hears("host link: ").unwrap_or_else(|| panic!("{:?}", server.said));
    let said = run(&file, "hardware", &["--device-at", &format!("board={at}")]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(said.json()["registers"], wanted.json()["registers"]);
    for port in 0..3 {
        assert!(frames(&out("software", port)) == frames(&out("hardware", port)), "port {port}");
    }
    server.signal("TERM");
    assert_eq!(server.ended().code, 0);
    let said = run(&file, "none", &["--device-at", "board=1"]);
    assert!(
        said.code == 1 && said.err.contains("the device `board` at 127.0.0.1:1: there is no server"),
        "{}",
        said.err
    );
    let said = millrace(&["node", "serve", &file, "bord"]);
    assert!(said.code == 1 && said.err.contains("there is no device `bord`"), "{}", said.err);
    let said = millrace(&["node", "serve", FILE, "board"]);
    assert!(said.code == 1 && said.err.contains("no block of `board` is in hardware"), "{}", said.err);
}

/// The switch of octets, all of it but the program that answers in hardware; gives its file.
fn in_hardware(folder: &Folder) -> String {
    let text = std::fs::read_to_string(root().join(FILE)).unwrap();
    let programs = root().join("programs");
    let text = text
        .replace("device = \"board\"\n", "device = \"board\"\nplacement = \"hardware\"\n")
        .replace("\"../", &format!("\"{}/", programs.display()));
    folder.file("node.toml", &text)
}

#[test]
fn the_hardware_of_a_node_is_written_with_its_registers() {
    let folder = Folder::new("node-written");
    let file = in_hardware(&folder);
    for (bus, signal) in [("axi4-lite", "s_axi_awaddr"), ("avalon-mm", "avs_address")] {
        let to = folder.path(bus);
        let said = millrace(&["node", &file, "-o", &to, "--bus", bus, "--target", "ecp5"]);
        assert_eq!(said.code, 0, "{}", said.err);
        for of in ["block forward ", "block p2 ", "registers and bus ", "total "] {
            assert!(said.out.lines().any(|line| line.trim_start().starts_with(of)), "{of}: {}", said.out);
        }
        let read = |name: &str| std::fs::read_to_string(format!("{to}/{name}")).unwrap();
        assert!(read("node.sv").contains(signal));
        assert!(read("registers.h").contains("MILLRACE_PORT_FORWARD_ENTRIES"));
        assert!(read("registers.md").contains("| `queue0.frames` |"));
        let map: serde_json::Value = serde_json::from_str(&read("registers.json")).unwrap();
        let named =
            |name: &str| map["words"].as_array().unwrap().iter().find(|word| word["name"] == name).cloned();
        for (name, kind) in
            [("p1.up", "settings"), ("serve2.quantum1", "settings"), ("p0.rx.octets", "counts")]
        {
            let port = named(name).unwrap_or_else(|| panic!("{name}"))["port"].as_u64().unwrap() as usize;
            assert_eq!(map["ports"][port]["kind"], kind, "{name}");
        }
        // 6400 ps of XGMII.
        assert!(read("node_nextpnr.sh").contains("--freq 156.25"));
    }
    assert_eq!(millrace(&["node", &file, "--bus", "axi4-lite"]).code, 2);
}

#[test]
fn a_program_of_a_board_is_written_with_registers_of_its_own() {
    const FILE: &str = "programs/nodes/nat_board.toml";
    let folder = Folder::new("node-program");
    let to = folder.path("build");
    let said = millrace(&["node", FILE, "-o", &to, "--target", "xc7"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.lines().any(|line| line.trim_start().starts_with("block nat ")), "{}", said.out);
    let read = |name: &str| std::fs::read_to_string(format!("{to}/{name}")).unwrap();
    let top = read("node.sv");
    for port in ["[63:0] now_ns", " s_axi_awaddr", " nat_s_axi_awaddr", " outside_rx_data"] {
        assert!(top.contains(port), "{port}");
    }
    assert!(read("registers.md").contains("| `nat.frames` |"));
    assert!(read("nat/registers.h").contains("NATINGRESS_BINDING_IN"));
    // Tables in software: the rest of the program is simulated by itself.
    let said = millrace(&["node", "programs/nodes/nat.toml", "-o", &folder.path("none")]);
    assert!(
        said.code == 1 && said.err.contains("no block of the node is in hardware, or all"),
        "{}",
        said.err
    );

    let zeros = folder.path("zeros");
    std::fs::write(&zeros, [0; 512]).unwrap();
    let serve =
        |more: &[&str]| millrace(&[&["node", "serve", FILE, "board", "--uio", &zeros], more].concat());
    let said = serve(&[]);
    assert!(said.code == 2 && said.err.contains("are missing: --uio nat=PATH"), "{}", said.err);
    let said = serve(&["--uio", "gnat=/dev/uio1"]);
    assert!(said.code == 1 && said.err.contains("`gnat` is no program that is part of"), "{}", said.err);
    let said = serve(&["--uio", &format!("nat={zeros}"), "--map", "nat=x"]);
    assert!(said.code == 2 && said.err.contains("`x` is no number of a map"), "{}", said.err);
    let said = serve(&["--uio", &format!("nat={zeros}")]);
    assert!(said.code == 1 && said.err.contains("no registers of this kind"), "{}", said.err);
}

#[test]
fn mapped_registers_have_to_be_those_of_the_design() {
    let folder = Folder::new("node-mapped");
    let file = in_hardware(&folder);
    let zeros = folder.path("zeros");
    std::fs::write(&zeros, [0; 512]).unwrap();
    // The frames of the program that answers go between hardware and software.
    let said = millrace(&["node", "serve", &file, "board", "--uio", &zeros]);
    assert!(said.code == 1 && said.err.contains("mapped registers carry none"), "{}", said.err);
    let file = "programs/nodes/board.toml";
    let said = millrace(&["node", "serve", file, "board", "--uio", &zeros]);
    assert!(
        said.code == 1 && said.err.contains("no registers of this kind: ident 0x00000000"),
        "{}",
        said.err
    );
    let said = millrace(&["node", "serve", file, "board", "--uio", &folder.path("none")]);
    assert!(said.code == 1 && said.err.contains("cannot open"), "{}", said.err);
    assert_eq!(millrace(&["node", "serve", file, "board", "--map", "1"]).code, 2);
}

/// An ARP request for 10.0.0.1, which the responder answers for; prints the operation and the sender of the reply.
const ASK: &str = "
import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.bind((sys.argv[1], 0)); s.settimeout(10)
mac = bytes.fromhex('020000000009')
s.send(b'\\xff' * 6 + mac + bytes.fromhex('08060001080006040001') + mac + bytes([10, 0, 0, 9]) + bytes(6) + bytes([10, 0, 0, 1]) + bytes(18))
while True:
    frame = s.recv(2048)
    if frame[:6] == mac and frame[12:14] == b'\\x08\\x06':
        print(frame[20:22].hex(), '.'.join(map(str, frame[28:32]))); break
";

#[test]
fn a_node_on_interfaces_answers_and_is_controlled() {
    if !is_root("a_node_on_interfaces_answers_and_is_controlled") {
        return;
    }
    let Some(namespace) = Namespace::new("node") else { return };
    for port in 0..3 {
        namespace.pair(&format!("veth{port}"), &format!("peer{port}"));
    }
    let mut node: Live = namespace.start(&["node", FILE, "--listen", "0"]);
    let server = node.hears("host link: ").unwrap_or_else(|| panic!("{:?}", node.said));
    let ask = || namespace.command("python3").args(["-c", ASK, "peer0"]).output().unwrap();
    let answer = ask();
    assert_eq!(
        String::from_utf8_lossy(&answer.stdout).trim(),
        "0002 10.0.0.1",
        "{}",
        String::from_utf8_lossy(&answer.stderr)
    );
    let read = |name: &str| {
        let said = namespace.millrace(&["node", "read", FILE, name, "--server", &server, "--json"]);
        assert_eq!(said.code, 0, "{}", said.err);
        said.json()["registers"][name].as_u64().unwrap()
    };
    wait_for("the answer is counted", || read("answers.answers") == 1 && read("p0.tx.frames") == 1);
    assert_eq!(read("forward.entry3.matches"), 1);
    let write =
        |args: &[&str]| namespace.millrace(&[&["node", "write", FILE, "--server", &server], args].concat());
    assert_eq!(write(&["p0.up=0", "serve1.discipline=2"]).code, 0);
    assert_eq!((read("p0.up"), read("serve1.discipline")), (0, 2));
    let said = write(&["serve1.discipline=7"]);
    assert!(said.code == 1 && said.err.contains("7 is no discipline"), "{}", said.err);
    assert_eq!(write(&["queue0.frames=1"]).code, 1);
    node.signal("TERM");
}

/// The node of the file with captures at its ports, and where its registers are served.
fn started(folder: &Folder) -> (Live, String) {
    let attach: Vec<String> = (0..3)
        .map(|port| format!("p{port}=pcap:programs/demo/in0.pcap,{}", folder.path(&format!("{port}"))))
        .collect();
    let mut args = vec!["node", FILE, "--listen", "0"];
    attach.iter().for_each(|attach| args.extend(["--attach", attach]));
    let mut node = Live::start(&args);
    let at = node.hears("host link: ").unwrap_or_else(|| panic!("{:?}", node.said));
    (node, at)
}

#[test]
fn a_program_of_a_running_node_takes_commands() {
    let folder = Folder::new("node-commands");
    let (node, at) = started(&folder);
    let run = |block: &str, text: &str| {
        let commands = folder.file("commands", text);
        millrace(&["node", "commands", FILE, block, &commands, "--server", &at, "--json"])
    };
    let said = run("answers", "table_num_entries addresses\n");
    assert_eq!(said.code, 0, "{}", said.err);
    let before = said.json()["text"].as_str().unwrap().to_owned();
    assert_eq!(run("answers", "table_clear addresses\n").code, 0);
    let after = run("answers", "table_num_entries addresses\n").json()["text"].as_str().unwrap().to_owned();
    assert!(before != after && after.contains('0'), "{before} {after}");
    let said = run("answers", "table_clear addresses\ntable_clear adresses\n");
    assert!(said.code == 1 && said.err.contains("2: "), "{}", said.err);
    let said = run("queue0", "table_clear addresses\n");
    assert!(said.code == 1 && said.err.contains("runs no program"), "{}", said.err);
    let said = run("queue9", "");
    assert!(said.code == 1 && said.err.contains("there is no block `queue9`"), "{}", said.err);
    node.signal("TERM");
    assert_eq!(node.ended().code, 0);
}

/// The file of another node has other registers at the same addresses; one with other entries has the same.
#[test]
fn only_the_file_of_a_running_node_reaches_its_registers() {
    let folder = Folder::new("node-other-file");
    let text = std::fs::read_to_string(root().join(FILE)).unwrap();
    let (node, at) = started(&folder);
    let mac = "[[block]]\nname = \"more\"\nfunction = \"ports\"\nkind = \"mac\"\nport = 9\n\n[[block]]";
    let loops = "\n[[connection]]\nfrom = \"more.rx\"\nto = \"more.tx\"\n";
    let more = folder.file("more.toml", &(text.replacen("[[block]]", mac, 1) + loops));
    let named = text.replacen("name = \"octet_switch\"", "name = \"octet\"", 1);
    let named = folder.file("named.toml", &named);
    let commands = folder.file("commands", "table_num_entries addresses\n");
    for file in [&more, &named] {
        for args in [
            &["node", "read", file, "serve1.discipline"][..],
            &["node", "write", file, "serve1.discipline=1"],
            &["node", "commands", file, "answers", &commands],
        ] {
            let said = millrace(&[args, &["--server", &at]].concat());
            let why = format!("{file} does not describe what is served at ");
            assert!(said.code == 1 && said.err.contains(&why), "{args:?}: {}", said.err);
            assert!(said.err.contains("that is `octet_switch registers "), "{}", said.err);
        }
    }
    let disciplines = folder.file("same.toml", &text.replace("\"priority\"", "\"round-robin\""));
    let said = millrace(&["node", "read", &disciplines, "serve1.discipline", "--server", &at]);
    assert!(said.code == 0 && said.out.starts_with("serve1.discipline "), "{}{}", said.out, said.err);
    node.signal("TERM");
    // Nor does that of a memory, or of a device of another design.
    let gates = "programs/nodes/gates.toml";
    let mut memory = Live::start(&["node", "memory", gates, "opened", "--listen", "0"]);
    let at = memory.hears("host link: ").unwrap_or_else(|| panic!("{:?}", memory.said));
    let said = millrace(&["node", "read", gates, "--server", &at]);
    assert!(said.code == 1 && said.err.contains("that is `opened`"), "{}", said.err);
    memory.signal("TERM");
}

/// A capture of one datagram from one address and port to others.
fn capture(folder: &Folder, name: &str, from: (u8, u16), to: (u8, u16)) -> String {
    let mut frame = vec![2; 12];
    frame.extend([8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, from.0, 10, 0, 0, to.0]);
    frame.extend([from.1, to.1, 8, 0].map(u16::to_be_bytes).concat());
    frame.resize(60, 0);
    let head = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1, 0, 0, 60, 60].map(u32::to_le_bytes).concat();
    let path = folder.path(name);
    std::fs::write(&path, [head, frame].concat()).unwrap();
    path
}

#[test]
fn nodes_of_two_processes_share_a_memory() {
    let folder = Folder::new("node-memory");
    // With a longer lease: the processes of a busy machine may pause for longer than a quarter of a second.
    let gates = std::fs::read_to_string(root().join("programs/nodes/gates.toml")).unwrap();
    let gates = gates.replace("words = 2048\n", "words = 2048\nlease = 5000\n");
    let gates = gates.replace("gate.p4", root().join("programs/nodes/gate.p4").to_str().unwrap());
    assert_eq!(gates.matches("lease").count(), 1);
    let gates = folder.file("gates.toml", &gates);
    let out = capture(&folder, "out.pcap", (1, 1000), (2, 53));
    let back = capture(&folder, "back.pcap", (2, 53), (1, 1000));
    let mut server = Live::start(&["node", "memory", &gates, "opened", "--listen", "0"]);
    let at = server.hears("host link: ").unwrap_or_else(|| panic!("{:?}", server.said));
    let none = folder.path("none.pcap");
    std::fs::write(&none, &std::fs::read(&out).unwrap()[..24]).unwrap();
    // A frame comes by one MAC, and nothing by the others.
    let run = |by: &str, frame: &str| {
        let attach = ["left_inside", "left_outside", "right_inside", "right_outside"].map(|mac| {
            let from = if mac == by { frame } else { &none };
            format!("{mac}=pcap:{from},{}", folder.path(&format!("{mac}.pcap")))
        });
        let memory = format!("opened={at}");
        let mut args = vec!["node", &gates, "--json", "--memory-at", &memory];
        attach.iter().for_each(|attach| args.extend(["--attach", attach]));
        let said = millrace(&args);
        assert_eq!(said.code, 0, "{}", said.err);
        said.json()["registers"].clone()
    };
    let registers = run("right_outside", &back);
    assert!(registers["right_inside.tx.frames"].is_null() && registers["right.dropped"] == 1, "{registers}");
    let registers = run("left_inside", &out);
    assert!(registers["left_outside.tx.frames"] == 1 && registers["left.memory.frames"] == 1, "{registers}");
    let registers = run("right_outside", &back);
    assert!(
        registers["right_inside.tx.frames"] == 1 && registers["right.memory.lost"].is_null(),
        "{registers}"
    );
    server.signal("TERM");
    assert_eq!(server.ended().code, 0);
    let said = millrace(&["node", &gates, "--memory-at", "opened=1"]);
    let why = "block `left`: the memory `opened` at 127.0.0.1:1: there is no server";
    assert!(said.code == 1 && said.err.contains(why), "{}", said.err);
    let said = millrace(&["node", "memory", &gates, "closed"]);
    assert!(said.code == 1 && said.err.contains("there is no memory `closed`"), "{}", said.err);
}
