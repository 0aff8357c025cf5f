//! The executables with the names of p4c and bmv2: files, exit codes, signals.

use crate::common::{Folder, Said, frames_so_far, millrace, root};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const BASIC: &str = "programs/router.p4";

fn start(executable: &str) -> Command {
    let mut command = Command::new(executable);
    command.current_dir(root()).env("NO_COLOR", "1");
    command
}

fn p4c_bm2_ss(args: &[&str]) -> Said {
    start(env!("CARGO_BIN_EXE_p4c-bm2-ss")).args(args).output().unwrap().into()
}

fn p4c(args: &[&str]) -> Said {
    start(env!("CARGO_BIN_EXE_p4c")).args(args).output().unwrap().into()
}

/// As the Makefile of the P4 tutorials calls it, and with all forms of P4Info.
#[test]
fn the_compiler_writes_p4info_and_an_image() {
    let folder = Folder::new("p4c-bm2-ss");
    let [image, text, json, binary] = ["a.json", "a.txtpb", "a.p4info.json", "a.bin"].map(|n| folder.path(n));
    let infos = format!("{text},{json},{binary}");
    let said =
        p4c_bm2_ss(&["--p4v", "16", "--p4runtime-files", &infos, "-o", &image, "--emit-externs", BASIC]);
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (0, "", ""));
    // Scripts read it as JSON.
    let read = |path: &str| std::fs::read_to_string(path).unwrap();
    let object: serde_json::Value = serde_json::from_str(&read(&image)).unwrap();
    assert_eq!((&object["program"], &object["architecture"]), (&"router".into(), &"v1model".into()));
    assert_eq!(read(&text), millrace(&["p4info", BASIC]).out);
    let described: serde_json::Value = serde_json::from_str(&read(&json)).unwrap();
    assert_eq!(described["pkgInfo"]["arch"], "v1model");
    // pkg_info is field 1; its arch, field 5, is a string of 7 bytes.
    let bytes = std::fs::read(&binary).unwrap();
    assert_eq!(bytes[0], 0x0a);
    assert!(bytes.windows(9).any(|part| part == b"\x2a\x07v1model"));
    let old = folder.path("old");
    let said = p4c_bm2_ss(&["--p4runtime-file", &old, "--p4runtime-format", "text", BASIC]);
    assert_eq!((said.code, read(&old)), (0, read(&text)));
}

#[test]
fn the_compiler_says_what_is_wrong_and_ends_with_1() {
    let folder = Folder::new("p4c-wrong");
    let broken = folder.file("broken.p4", "const bit<8> x = y;\n");
    let image = folder.path("a.json");
    let said = p4c_bm2_ss(&["-o", &image, &broken]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("broken.p4:1:18"), "{}", said.err);
    assert!(!Path::new(&image).exists());
    for wrong in [&["--bogus", BASIC][..], &[], &["--std", "p4-15", BASIC], &["--arch", "psa", BASIC]] {
        assert_eq!(p4c_bm2_ss(wrong).code, 1, "{wrong:?}");
    }
    let said = p4c_bm2_ss(&["--p4runtime-files", "a.xml", BASIC]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains(".txtpb, .txt, .json and .bin"), "{}", said.err);
    assert_eq!((p4c_bm2_ss(&["--version"]).code, p4c_bm2_ss(&["--help"]).code), (0, 0));
}

#[test]
fn warnings_can_be_hidden_and_be_errors() {
    let folder = Folder::new("p4c-warnings");
    let program = folder.file("warns.p4", "const bit<8> x = 300;\n");
    let warned = p4c_bm2_ss(&[&program]).err;
    assert!(warned.contains("Warning"), "{warned}");
    assert!(!p4c_bm2_ss(&["--Wdisable", &program]).err.contains("Warning"));
    let said = p4c_bm2_ss(&["--Werror", &program]);
    assert!(said.code == 1 && said.err.contains("warnings are errors"), "{}", said.err);
}

#[test]
fn macros_are_defined_and_undefined() {
    let folder = Folder::new("p4c-macros");
    let text =
        "#ifdef A\nconst bit<8> x = y;\n#endif\n#ifndef __TARGET_BMV2__\nconst bit<8> z = y;\n#endif\n";
    let program = folder.file("m.p4", text);
    let errors = |args: &[&str]| p4c_bm2_ss(&[args, &[program.as_str()]].concat()).err;
    assert!(errors(&["-DA"]).contains("m.p4:2:"));
    let without = errors(&["-DA", "-U", "A"]);
    assert!(!without.contains("m.p4:2:") && !without.contains("m.p4:5:"), "{without}");
}

/// The driver takes a folder, and names the image after the program.
#[test]
fn the_driver_puts_the_image_into_a_folder() {
    let folder = Folder::new("p4c");
    let (out, info) = (folder.path("build"), folder.path("router.p4info.txtpb"));
    let said = p4c(&["--target", "bmv2", "--arch", "v1model", "--p4runtime-files", &info, "-o", &out, BASIC]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    assert!(Path::new(&out).join("router.json").is_file() && Path::new(&info).is_file());
    let said = p4c(&["-###", "-Xp4c=--Wdisable", "-DA=1", "-o", &out, BASIC]);
    assert!(said.out.contains("-D A=1") && said.out.contains("--Wdisable"), "{}", said.out);
    // argparse ends with 2, the compiler with 1.
    assert_eq!(p4c(&["-b", "tofino", BASIC]).code, 2);
    assert_eq!(p4c(&[]).code, 2);
    assert_eq!(p4c(&["--bogus", BASIC]).code, 2);
    assert_eq!(p4c(&["nowhere.p4"]).code, 1);
    assert_eq!((p4c(&["--version"]).code, p4c(&["--help-targets"]).code), (0, 0));
}

fn p4c_graphs(args: &[&str]) -> Said {
    start(env!("CARGO_BIN_EXE_p4c-graphs")).args(args).output().unwrap().into()
}

/// A file for each parser and control, by its name in the program.
#[test]
fn graphs_are_files_in_a_folder() {
    let folder = Folder::new("p4c-graphs");
    let out = folder.path("");
    let said = p4c_graphs(&["--graphs-dir", &out, "-I", "programs", "-DX=1", "--std", "p4-16", BASIC]);
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (0, "", ""));
    let source = std::fs::read_to_string(root().join(BASIC)).unwrap();
    let read = |name: &str| std::fs::read_to_string(folder.path(name)).unwrap();
    for kind in ["parser ", "control "] {
        for rest in source.split(kind).skip(1) {
            let Some((name, _)) = rest.split_once('(') else { continue };
            if name.chars().all(|c| c.is_alphanumeric() || c == '_') {
                let dot = read(&format!("{name}.dot"));
                assert!(dot.starts_with(&format!("digraph \"{name}\" {{")), "{dot}");
            }
        }
    }
    assert!(!Path::new(&folder.path("fullGraph.dot")).exists());
    let said = p4c_graphs(&["--fullGraph", "--jsonOut", "--graphs-dir", &out, BASIC]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(read("fullGraph.dot").contains("compound=true"));
    let object: serde_json::Value = serde_json::from_str(&read("fullGraph.json")).unwrap();
    assert_eq!((&object["name"], &object["nodes"][0]["type"]), (&"router".into(), &"parser".into()));
    let broken = folder.file("broken.p4", "const bit<8> x = y;\n");
    let said = p4c_graphs(&["--graphs-dir", &out, &broken]);
    assert!(said.code == 1 && said.err.contains("broken.p4:1:18"), "{}", said.err);
    let said = p4c_graphs(&["--graphs-dir", &folder.path("nowhere"), BASIC]);
    assert!(said.code == 1 && said.err.contains("nowhere"), "{}", said.err);
    assert_eq!((p4c_graphs(&["--fromJSON", "x"]).code, p4c_graphs(&["--help"]).code), (1, 0));
}

/// A switch that goes when this does.
struct Running(Child);

impl Running {
    fn end(mut self) -> i32 {
        let pid = self.0.id().to_string();
        assert!(Command::new("kill").arg(&pid).status().unwrap().success());
        self.0.wait().unwrap().code().unwrap_or(-1)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn wait_for(what: &str, mut there: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !there() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_switch_listens_without_ports_and_ends_with_0_when_it_is_told() {
    let folder = Folder::new("simple_switch_grpc");
    let image = folder.path("router.json");
    assert_eq!(p4c_bm2_ss(&["-o", &image, BASIC]).code, 0);
    for program in [image.as_str(), "--no-p4"] {
        let address = format!("127.0.0.1:{}", free_port());
        let log = folder.path("log");
        let mut command = start(env!("CARGO_BIN_EXE_simple_switch_grpc"));
        command.args(["--device-id", "3", "--nanolog", "ipc:///x", program, "--log-file", &log]);
        command.args(["--", "--grpc-server-addr", &address, "--cpu-port", "510"]);
        let running = Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        wait_for("the server", || std::net::TcpStream::connect(&address).is_ok());
        let name = std::fs::read_to_string(format!("/proc/{}/comm", running.0.id())).unwrap();
        assert_eq!(name.trim(), "simple_switch_g", "as `pkill simple_switch` wants it");
        assert_eq!(running.end(), 0, "{program}");
        // As bmv2, it adds an ending.
        assert!(Path::new(&format!("{log}.txt")).is_file());
    }
}

/// Files in place of interfaces, and a port of the program's own choice that means drop.
#[test]
fn files_go_through_a_switch() {
    let folder = Folder::new("simple_switch");
    let program = folder.file("pass.p4", PASS);
    let image = folder.path("pass.json");
    assert_eq!(p4c_bm2_ss(&["-o", &image, &program]).code, 0);
    let frames_out = |target: &[&str]| {
        std::fs::copy(root().join("programs/demo/in0.pcap"), folder.path("one_in.pcap")).unwrap();
        let mut command = start(env!("CARGO_BIN_EXE_simple_switch"));
        command.args([
            "--thrift-port",
            &free_port().to_string(),
            "--use-files",
            "0",
            "-i",
            &format!("511@{}", folder.path("one")),
            &image,
        ]);
        let log = folder.path("log");
        let _ = std::fs::remove_file(format!("{log}.txt"));
        command.args(["--log-file", &log]).args(target);
        let running = Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let dealt_with = |log: &str| {
            log.matches("Transmitting packet").count() + log.matches("Dropping packet at the end").count()
        };
        wait_for("six packets", || {
            std::fs::read_to_string(format!("{log}.txt")).is_ok_and(|log| dealt_with(&log) == 6)
        });
        assert_eq!(running.end(), 0);
        frames_so_far(&folder.path("one_out.pcap")).len()
    };
    // Port 511 is the drop port, until another one is.
    assert_eq!(frames_out(&[]), 0);
    assert_eq!(frames_out(&["--", "--drop-port", "510"]), 6);
}

/// The first switch is told its entries; the others start with what it saved.
#[test]
fn a_saved_state_is_restored() {
    let folder = Folder::new("restore-state");
    let (image, saved, again) = (folder.path("router.json"), folder.path("saved"), folder.path("again"));
    assert_eq!(p4c_bm2_ss(&["-o", &image, BASIC]).code, 0);
    let entries = std::fs::read_to_string(root().join("programs/router.entries")).unwrap();
    let save = |options: &[&str], commands: &str| {
        let port = free_port().to_string();
        let mut command = start(env!("CARGO_BIN_EXE_simple_switch"));
        command.args(["--thrift-port", &port]).args(options).arg(&image);
        let running = Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        wait_for("the server", || std::net::TcpStream::connect(format!("127.0.0.1:{port}")).is_ok());
        let script = folder.file("script", commands);
        let mut shell = start(env!("CARGO_BIN_EXE_millrace"));
        shell.args(["shell", "--thrift-port", &port]).stdin(std::fs::File::open(script).unwrap());
        let said: Said = shell.output().unwrap().into();
        assert_eq!(said.code, 0, "{}{}", said.out, said.err);
        assert_eq!(running.end(), 0);
    };
    save(&[], &format!("{entries}\nserialize_state {saved}\n"));
    save(&["--restore-state", &saved], &format!("serialize_state {again}\n"));
    let text = std::fs::read_to_string(&saved).unwrap();
    assert_eq!(std::fs::read_to_string(&again).unwrap(), text);
    let commands = |text: &str| text.lines().filter(|line| line.starts_with("table_")).count();
    assert_eq!(commands(&text), commands(&entries), "{text}");

    // As with the entries themselves: three each way.
    let mut command = start(env!("CARGO_BIN_EXE_simple_switch"));
    command.args(["--thrift-port", &free_port().to_string(), "--use-files", "0", "--restore-state", &saved]);
    for port in ["0", "1"] {
        let file = format!("programs/demo/in{port}.pcap");
        std::fs::copy(root().join(file), folder.path(&format!("p{port}_in.pcap"))).unwrap();
        command.args(["-i", &format!("{port}@{}", folder.path(&format!("p{port}")))]);
    }
    let running = Running(command.arg(&image).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let sent = || ["p0_out.pcap", "p1_out.pcap"].map(|name| frames_so_far(&folder.path(name)).len());
    wait_for("three each way", || sent() == [3, 3]);
    assert_eq!(running.end(), 0);

    let wrong = folder.file("wrong", "table_add nothing x 1 =>\n");
    let refused: Said = start(env!("CARGO_BIN_EXE_simple_switch"))
        .args(["--thrift-port", &free_port().to_string(), "--restore-state", &wrong, &image])
        .output()
        .unwrap()
        .into();
    assert_eq!(refused.code, 1, "{}", refused.err);
}

/// Sends each packet to the port 511.
const PASS: &str = "#include <core.p4>
#include <v1model.p4>
header a_t { bit<8> b; }
struct h_t { a_t a; }
struct m_t { bit<9> port; }
parser P(packet_in p, out h_t h, inout m_t m, inout standard_metadata_t s) { state start { transition accept; } }
control V(inout h_t h, inout m_t m) { apply { } }
control I(inout h_t h, inout m_t m, inout standard_metadata_t s) {
    apply { m.port = s.ingress_port; s.egress_spec = m.port; }
}
control E(inout h_t h, inout m_t m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in h_t h) { apply { } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
";

#[test]
fn wrong_usage_of_a_switch_ends_with_1() {
    let switch = |args: &[&str]| -> Said {
        start(env!("CARGO_BIN_EXE_simple_switch_grpc")).args(args).output().unwrap().into()
    };
    assert_eq!(switch(&["--bogus"]).code, 1);
    assert_eq!(switch(&[]).code, 1);
    assert_eq!(switch(&["nowhere.json"]).code, 1);
    assert_eq!(switch(&["--no-p4", "-i", "0@mr-nowhere"]).code, 1);
    assert_eq!((switch(&["--version"]).code, switch(&["--help"]).code), (0, 0));
}

/// The entries as p4c numbers them: the first of three has priority 3, and what matches everything is left out.
#[test]
fn entries_of_the_source_are_a_request() {
    let folder = Folder::new("p4c-entries");
    let program = folder.file("entries.p4", ENTRIES);
    folder.file("types.p4", "typedef bit<8> small_t;\n");
    let [text, json, binary] = ["e.txtpb", "e.json", "e.bin"].map(|name| folder.path(name));
    let said = p4c_bm2_ss(&["--p4runtime-entries-files", &format!("{text},{json},{binary}"), &program]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let request: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    let updates = request["updates"].as_array().unwrap();
    let entries: Vec<_> = updates.iter().map(|update| &update["entity"]["tableEntry"]).collect();
    let priorities: Vec<_> = entries.iter().map(|entry| entry["priority"].as_i64().unwrap()).collect();
    assert_eq!(priorities, [3, 2, 1]);
    assert!(updates.iter().all(|update| update["type"] == "INSERT"));
    // 1, 3; 2, 255; 5, 6, 7 in base64.
    let ternary = |at: usize| &entries[at]["match"][0]["ternary"];
    assert_eq!((&ternary(0)["value"], &ternary(0)["mask"]), (&"AQ==".into(), &"Aw==".into()));
    assert_eq!((&ternary(1)["value"], &ternary(1)["mask"]), (&"Ag==".into(), &"/w==".into()));
    assert!(entries[2]["match"].as_array().is_none_or(Vec::is_empty), "{request}");
    let given: Vec<_> =
        entries.iter().map(|entry| &entry["action"]["action"]["params"][0]["value"]).collect();
    assert_eq!(given, ["BQ==", "Bg==", "Bw=="]);
    let text = std::fs::read_to_string(&text).unwrap();
    assert_eq!(text.matches("table_entry").count(), 3);
    assert!(text.contains("priority: 3") && text.contains("is_const: true"), "{text}");
    // Field 4 of the request, three times.
    assert_eq!(std::fs::read(&binary).unwrap()[0], 0x22);
    let single = folder.path("single");
    let said = p4c_bm2_ss(&["--p4runtime-entries-file", &single, "--p4runtime-format", "text", &program]);
    assert_eq!((said.code, std::fs::read_to_string(&single).unwrap()), (0, text));
}

#[test]
fn the_preprocessor_writes_text_and_rules() {
    let folder = Folder::new("p4c-preprocess");
    let program = folder.file("entries.p4", ENTRIES);
    let types = folder.file("types.p4", "typedef bit<8> small_t;\n");
    let out = folder.path("");
    let said = p4c(&["-E", "-D", "FIRST=8w1", "-o", &out, &program]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let text = std::fs::read_to_string(folder.path("entries.p4i")).unwrap();
    assert!(!text.contains("#include") && text.contains("typedef bit<8> small_t;"), "{text}");
    assert!(!Path::new(&folder.path("entries.json")).exists());
    // It is a program.
    assert_eq!(millrace(&["check", &folder.path("entries.p4i")]).code, 0);

    let rule = format!("entries.o: {program} {types}\n");
    assert_eq!(p4c(&["-M", &program]).out, rule);
    let said = p4c(&["-MD", "-MT", "x.json", "-MP", "-o", &out, &program]);
    assert_eq!(said.code, 0, "{}", said.err);
    let written = std::fs::read_to_string(folder.path("entries.d")).unwrap();
    assert_eq!(written, format!("x.json: {program} {types}\n\n{types}:\n"));
    assert!(Path::new(&folder.path("entries.json")).exists());
    let file = folder.path("deps");
    assert_eq!(p4c(&["-M", "-MF", &file, &program]).out, "");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), rule);
    let broken = folder.file("broken.p4", "#include \"nothing.p4\"\n");
    let said = p4c(&["-E", "-o", &out, &broken]);
    assert!(said.code == 1 && said.err.contains("nothing.p4"), "{}", said.err);
}

/// A table with entries, in two files.
const ENTRIES: &str = r#"#include <core.p4>
#include <v1model.p4>
#include "types.p4"
#ifndef FIRST
#define FIRST 8w1
#endif
struct headers_t {}
struct metadata_t { small_t x; small_t y; }
parser P(packet_in p, out headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    state start { transition accept; }
}
control V(inout headers_t h, inout metadata_t m) { apply {} }
control I(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    action set(small_t y) { m.y = y; }
    table t {
        key = { m.x: ternary; }
        actions = { set; NoAction; }
        default_action = NoAction();
        const entries = { (FIRST &&& 8w3): set(5); 8w2: set(6); _: set(7); }
    }
    apply { m.x = (small_t)s.packet_length; t.apply(); s.egress_spec = (bit<9>)m.y; }
}
control E(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) { apply {} }
control C(inout headers_t h, inout metadata_t m) { apply {} }
control D(packet_out p, in headers_t h) { apply {} }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#;
