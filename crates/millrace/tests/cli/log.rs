//! The log and what ends up on a terminal, while a switch runs.

use crate::common::{Folder, millrace};
use crate::live::{Live, http, wait_for};
use std::io::Write;
use std::process::{Command, Stdio};

const RUN: [&str; 6] = ["run", "programs/router.p4", "-i", "0@null:-", "-i", "1@null:-"];

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn a_hang_up_opens_the_log_again() {
    let folder = Folder::new("log-hup");
    let (log, old) = (folder.path("log"), folder.path("log.1"));
    let mut switch = Live::start(&[&RUN[..], &["--log", &log, "--metrics", "0"]].concat());
    switch.metrics();
    switch.hears("router is running").unwrap();
    std::fs::rename(&log, &old).unwrap();
    switch.signal("HUP");
    wait_for("a new file", || read(&log).contains("log opened again"));
    switch.signal("TERM");
    assert_eq!(switch.ended().code, 0);
    assert!(read(&old).contains("start") && !read(&old).contains("asked to end"), "{}", read(&old));
    assert!(read(&log).contains("asked to end"), "{}", read(&log));
}

#[test]
fn a_hang_up_without_a_file_ends_with_statistics() {
    // Whoever runs the tests may have the signal ignored, which processes inherit.
    let mut command = Command::new("env");
    command.arg("--default-signal=HUP").arg(env!("CARGO_BIN_EXE_millrace")).args(RUN).arg("--json");
    let mut switch = Live::of(command.current_dir(crate::common::root()));
    switch.hears("router is running").unwrap();
    switch.signal("HUP");
    let said = switch.ended();
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(said.json()["ok"], true);
}

#[test]
fn nohup_goes_on() {
    let mut command = Command::new("nohup");
    command.arg(env!("CARGO_BIN_EXE_millrace")).args(RUN).current_dir(crate::common::root());
    let mut switch = Live::of(command.stdin(Stdio::null()));
    switch.hears("router is running").unwrap();
    switch.signal("HUP");
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(std::fs::metadata(format!("/proc/{}/exe", switch.id())).is_ok());
    switch.signal("TERM");
    assert_eq!(switch.ended().code, 0);
}

#[test]
fn the_level_is_changed_while_it_runs() {
    let folder = Folder::new("log-level");
    let log = folder.path("log");
    // Packets come at intervals for as long as it runs.
    let args = ["run", "programs/router.p4", "--entries", "programs/router.entries", "-i"];
    let ports = ["0@null:programs/demo/in0.pcap", "-i", "1@null:-", "--log", &log, "--log-level", "warn"];
    let mut switch = Live::start(&[&args[..], &ports, &["--metrics", "0"]].concat());
    let address = switch.metrics();
    switch.hears("router is running").unwrap();
    let level = |args: &[&str]| millrace(&[&["log"], args, &["--metrics", &address]].concat());
    assert_eq!(level(&[]).out, "warn\n");
    assert!(!read(&log).contains("start"));
    let set = level(&["debug", "--json"]);
    assert_eq!((&set.json()["ok"], &set.json()["level"]), (&true.into(), &"debug".into()));
    assert_eq!(level(&[]).out, "debug\n");
    assert!(read(&log).contains("log level from=\"warn\" to=\"debug\""), "{}", read(&log));
    assert!(!read(&log).contains("ipv4_lpm"));
    assert_eq!(level(&["trace"]).code, 0);
    wait_for("stories of packets", || read(&log).contains("ipv4_lpm"));
    assert_eq!(level(&["off"]).out, "off\n");
    // Only from here, by programs, to levels that there are.
    let put = |lines: &str| http(&address, &format!("PUT {lines}"));
    assert_eq!(put("/log?level=loud HTTP/1.1\r\nHost: localhost").0, 400);
    assert_eq!(put("/log?level=info HTTP/1.1\r\nHost: localhost\r\nOrigin: http://x.example").0, 403);
    assert_eq!(put("/log?level=info HTTP/1.1\r\nHost: x.example").0, 403);
    assert_eq!(level(&[]).out, "off\n");
    assert_eq!(level(&["loud"]).code, 2);
}

/// A program whose names hold what a terminal obeys.
fn hostile(folder: &Folder) -> String {
    let source = r#"
        #include <v1model.p4>
        struct H {} struct M {}
        parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) { state start { transition accept; } }
        control V(inout H h, inout M m) { apply {} }
        control I(inout H h, inout M m, inout standard_metadata_t s) {
            @name("evil\x1b]0;title\x07") action a() { s.egress_spec = 1; }
            @name("evil\x1b[2Jtable") table t {
                key = { s.ingress_port : exact; } actions = { a; } default_action = a();
            }
            apply { t.apply(); }
        }
        control E(inout H h, inout M m, inout standard_metadata_t s) { apply {} }
        control D(packet_out p, in H h) { apply {} }
        V1Switch(P(), V(), I(), E(), V(), D()) main;
    "#;
    // The bytes themselves: P4 has no such escapes.
    folder.file("hostile.p4", &source.replace("\\x1b", "\x1b").replace("\\x07", "\x07"))
}

#[test]
fn names_cannot_control_the_terminal() {
    let folder = Folder::new("escapes");
    let program = hostile(&folder);
    let is_plain = |what: &str, text: &str| {
        assert!(text.contains("evil"), "{what}: {text}");
        assert!(!text.chars().any(|c| c.is_control() && c != '\n' && c != '\t'), "{what}: {text:?}");
    };
    let story = millrace(&["trace", &program, "--port", "0", "--packet", "00112233445566778899aabbccdd"]);
    is_plain("trace", &story.out);
    let log = folder.path("log");
    let args = ["run", &program, "-i", "0@null:-", "--metrics", "0", "--thrift", "0", "--log", &log];
    let mut switch = Live::start(&args);
    let address = switch.metrics();
    let thrift = switch.hears("Thrift: 127.0.0.1:").unwrap();
    is_plain("top", &millrace(&["top", "--once", &address]).out);
    let mut shell = crate::common::command()
        .args(["shell", "--thrift-port", &thrift])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    shell.stdin.take().unwrap().write_all(b"show_tables\nshow_actions\n").unwrap();
    let shown = shell.wait_with_output().unwrap().stdout;
    is_plain("shell", &String::from_utf8(shown).unwrap());
    // A file of a name, and a line of a program in a diagnostic.
    let wrong = folder.file("evil\x1b[2J.p4", "const bit<8> evil = \x1b[2J;\n");
    let said = millrace(&["check", &wrong, "--color", "always"]);
    let shown = said.err.replace("\x1b[", "");
    assert!(said.err.contains("\x1b[") && !said.err.contains("\x1b[2J"), "{:?}", said.err);
    assert!(!shown.contains('\x1b'), "{shown:?}");
    is_plain("check", &millrace(&["check", &wrong, "--color", "never"]).err);
    let swapped = millrace(&["swap", &program, "--thrift", &thrift, "--keep", "nothing"]);
    assert_eq!(swapped.code, 0, "{}", swapped.err);
    let missing = folder.path("evil\x1b[2J.pcap");
    is_plain("an error", &millrace(&["run", &program, "-i", &format!("0@pcap:{missing}")]).err);
    assert!(!read(&log).contains('\x1b'));
}

#[test]
fn colour_and_quiet_are_options_of_every_command() {
    let wrong = ["check", "programs/no-such-program.p4"];
    let coloured = |more: &[&str]| millrace(&[&wrong[..], more].concat()).err.contains("\x1b[");
    assert!(coloured(&["--color", "always"]));
    assert!(!coloured(&["--color", "never"]) && !coloured(&["--color", "auto"]) && !coloured(&[]));
    let folder = Folder::new("quiet");
    let log = folder.path("log");
    let switch = Live::start(&[&RUN[..], &["-q", "--metrics", "0", "--log", &log]].concat());
    wait_for("the switch", || read(&log).contains("metrics address="));
    switch.signal("TERM");
    let said = switch.ended();
    assert_eq!(said.err, "");
    assert!(said.out.starts_with("port "), "{}", said.out);
    let failed = millrace(&["-q", "run", "programs/router.p4", "-i", "0@null:-", "--metrics", "0.0.0.0:0"]);
    assert!(failed.err.starts_with("error: "), "{}", failed.err);
}

#[test]
fn json_is_one_object_whatever_the_command() {
    let folder = Folder::new("json");
    let output = folder.path("out");
    for args in [
        &["p4info", "programs/router.p4"][..],
        &["p4info", "programs/router.p4", "-o", &output],
        &["compile", "programs/router.p4", "-o", &output],
        &["compile", "programs/router.p4", "--emit", "ir"],
        &["compile", "programs/router.p4", "--time"],
        &["check", "programs/router.p4"],
    ] {
        let said = millrace(&[args, &["--json"]].concat());
        assert_eq!((said.code, &said.json()["ok"]), (0, &true.into()), "{args:?} {}", said.err);
    }
    let info = millrace(&["p4info", "programs/router.p4", "--json"]).json();
    assert!(info["p4info"]["tables"].as_array().is_some_and(|tables| tables.len() == 3), "{info}");
    for args in [
        &["p4info", "programs/none.p4"][..],
        &["compile", "programs/none.p4", "--emit", "ir"],
        &["top", "127.0.0.1:1"],
        &["capture", "on", "1", "--metrics", "127.0.0.1:1"],
        &["log", "--metrics", "127.0.0.1:1"],
        &["swap", "programs/router.p4", "--thrift", "127.0.0.1:1"],
    ] {
        let said = millrace(&[args, &["--json"]].concat());
        assert_eq!((said.code, &said.json()["ok"]), (1, &false.into()), "{args:?} {}", said.err);
    }
    let pcaps = folder.path("captures");
    let mut switch = Live::start(&[&RUN[..], &["--metrics", "0", "--pcap-dir", &pcaps]].concat());
    let address = switch.metrics();
    let on = millrace(&["capture", "on", "1", "--metrics", &address, "--json"]).json();
    assert_eq!((&on["ok"], &on["capture"]["port"]), (&true.into(), &1.into()));
    let top = millrace(&["top", &address, "--json"]).json();
    assert_eq!((&top["ok"], &top["status"]["program"]), (&true.into(), &"router".into()));
}

#[test]
fn help_has_examples() {
    let commands = [
        "check", "p4info", "compile", "stf", "run", "swap", "shell", "trace", "bench", "top", "capture",
        "log",
    ];
    for command in commands {
        let help = millrace(&["help", command]).out;
        let examples = help.split_once("Examples:\n").unwrap_or_else(|| panic!("{command}: {help}")).1;
        assert!(examples.contains(&format!("millrace {command}")), "{examples}");
    }
    assert!(millrace(&["--help"]).out.contains("Examples:"));
}
