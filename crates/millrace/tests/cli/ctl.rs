//! `millrace ctl`: what a device is asked for, and what of its answer is said. The device here answers what a test has it answer.

use crate::common::{Folder, Said, millrace, millrace_with_input, root};
use millrace_device_file::{MAX_FILE, MAX_SHOWN};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread::{self, JoinHandle};

const DONE: &str = r#"{"changed":{"done":["l2: done"],"kept":[]}}"#;
const PROGRAM: &str = "programs/l2_switch.p4";

/// A device that takes one client.
struct Device {
    folder: Folder,
    thread: JoinHandle<Vec<String>>,
}

impl Device {
    /// Is ready, and answers one request.
    fn new(name: &str, answer: &str) -> Device {
        let folder = Folder::new(&format!("ctl-{name}"));
        let listener = UnixListener::bind(folder.path("socket")).unwrap();
        let answers = ["{\"ready\":{\"device\":\"edge\"}}".to_owned(), answer.to_owned()];
        Device { folder, thread: thread::spawn(move || serve(listener.accept().unwrap().0, &answers)) }
    }

    /// What it was told by a client, if one came.
    fn told(self) -> Vec<String> {
        // One that says nothing, in place of a client that did not come.
        drop(UnixStream::connect(self.folder.path("socket")));
        self.thread.join().unwrap()
    }

    /// Runs a command, and gives what it said and what the device was asked for.
    fn ask(self, args: &[&str]) -> (Said, Value) {
        let socket = self.folder.path("socket");
        let said = millrace(&[&["ctl"], args, &["--socket", &socket]].concat());
        let told = self.told();
        assert_eq!(told.first().map(String::as_str), Some("{\"version\":1}"), "{args:?}: {}", said.err);
        let request = told.get(1).unwrap_or_else(|| panic!("{args:?}: no request: {}", said.err));
        (said, serde_json::from_str(request).unwrap())
    }
}

/// The lines that a client says, each of which has one answer.
fn serve(stream: UnixStream, answers: &[String]) -> Vec<String> {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let mut stream = stream;
    let mut told = Vec::new();
    for answer in answers {
        let Some(line) = lines.next() else { break };
        told.push(line.unwrap());
        writeln!(stream, "{answer}").unwrap();
    }
    told
}

#[test]
fn each_command_is_one_request() {
    let text = "[[switch]]\nname = \"l3\"\n";
    let folder = Folder::new("ctl-files");
    let file = folder.file("part.toml", text);
    let place = folder.path("");
    let place = place.trim_end_matches('/');
    let requests: [(&[&str], Value); 13] = [
        (&["apply", &file], json!({ "apply": { "text": text, "folder": place, "dry_run": false } })),
        (
            &["apply", "--dry-run", &file],
            json!({ "apply": { "text": text, "folder": place, "dry_run": true } }),
        ),
        (&["load", &file], json!({ "load": { "text": text, "folder": place } })),
        (&["remove", "l2"], json!({ "remove": { "switch": "l2" } })),
        (&["start", "l2"], json!({ "start": { "switch": "l2" } })),
        (&["stop", "l2"], json!({ "stop": { "switch": "l2" } })),
        (
            &["link", "l2:1", "router:2"],
            json!({ "load": { "text": "[[link]]\nbetween = [\"l2:1\", \"router:2\"]\n", "folder": "/" } }),
        ),
        (
            &["link", "l2:1", "r:2", "--delay", "1ms", "--rate", "1\"", "--loss", "0.1%", "--waiting", "9"],
            json!({ "load": { "text": "[[link]]\nbetween = [\"l2:1\", \"r:2\"]\ndelay = \"1ms\"\nrate = \"1\\\"\"\nloss = \"0.1%\"\nwaiting = 9\n",
                    "folder": "/" } }),
        ),
        (&["unlink", "l2:1", "router:2"], json!({ "unlink": { "between": ["l2:1", "router:2"] } })),
        (&["rollback", "l2"], json!({ "rollback": { "switch": "l2" } })),
        (&["restore", "l2", &file], json!({ "restore": { "switch": "l2", "snapshot": text } })),
        (&["shadow", "l2"], json!({ "shadow": { "switch": "l2", "program": null, "end": false } })),
        (&["shadow", "l2", "--end"], json!({ "shadow": { "switch": "l2", "program": null, "end": true } })),
    ];
    for (args, request) in requests {
        let (said, asked) = Device::new("each", DONE).ask(args);
        assert_eq!((said.code, said.out.as_str()), (0, "done: l2: done\n"), "{args:?}: {}", said.err);
        assert_eq!(asked, request, "{args:?}");
    }
}

#[test]
fn a_file_from_here_has_its_folder_from_the_root() {
    let (said, asked) = Device::new("relative", DONE).ask(&["load", "rustfmt.toml"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(asked["load"]["folder"], root().to_str().unwrap());
}

/// A program is compiled here: the device gets an image, of the source or as it is in its file.
#[test]
fn programs_are_sent_as_images() {
    let swap = ["swap", "l2", PROGRAM];
    let (said, asked) = Device::new("swap", DONE).ask(&swap);
    assert_eq!(said.code, 0, "{}", said.err);
    let swapped = &asked["swap"];
    let image = swapped["program"].as_str().unwrap();
    let compiled = millrace(&["compile", PROGRAM, "--emit", "image"]).out;
    assert!(!compiled.is_empty() && image == compiled, "{image}\nis not\n{compiled}");
    assert_eq!(
        (&swapped["switch"], &swapped["keep_everything"], &swapped["probation"]),
        (&json!("l2"), &json!(false), &Value::Null)
    );
    let folder = Folder::new("ctl-image");
    let file = folder.file("l2.image", &compiled);
    let probation = ["--probation", "30", "--max-drops", "0.5%", "--keep-everything"];
    let (said, asked) =
        Device::new("probation", DONE).ask(&[&["swap", "l2", &file][..], &probation].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    let probation = json!({ "seconds": 30, "max_drops": 5000 });
    let wanted = json!({ "swap": { "switch": "l2", "program": compiled, "keep_everything": true, "probation": probation } });
    assert!(asked == wanted, "{}", said.err);
    let (said, asked) = Device::new("shadow", DONE).ask(&["shadow", "l2", &file]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(asked == json!({ "shadow": { "switch": "l2", "program": compiled, "end": false } }));
}

#[test]
fn a_wrong_program_is_told_here_and_no_device_is_asked() {
    for command in ["swap", "shadow"] {
        let no_device = ["--socket", "/nowhere/socket"];
        let args = [&["ctl", command, "l2", "-"][..], &no_device].concat();
        let said = millrace_with_input(&args, "control c( { }");
        assert_eq!(said.code, 1);
        assert!(said.err.contains("<stdin>:1:") && !said.err.contains("no device"), "{}", said.err);
        let said = millrace_with_input(&[&args[..], &["--json"]].concat(), "control c( { }").json();
        assert_eq!((&said["ok"], &said["diagnostics"][0]["line"]), (&json!(false), &json!(1)), "{said}");
    }
}

const SWITCHES: &str = r#"{"switches":[{"name":"l2","device_id":1,"tenant":null,"program":"l2.p4","engine":"jit","is_running":true,"worker":0,
    "ports":{"0":"p0"},"can_roll_back":false,"has_shadow":false}]}"#;
const STATS: &str = r#"{"stats":{"physical":[],"unclassified":null,"switches":[{"name":"l2","ports":[],"drops":{},"losses":{},"used_ns":0,"requests":0,
    "refused_requests":0,"lost_notices":0}]}}"#;
const GRAPH: &str = r#"{"graph":{"physical":[["p0","null:-"]],"switches":[["l2","l2.p4"]],
    "links":[{"from":["l2",0],"to":["p0",null],"label":""}]}}"#;
const SHADOW: &str =
    r#"{"shadow":{"program":"new","compared":2,"same":2,"different":0,"left_out":0,"differences":[]}}"#;

#[test]
fn answers_are_told_for_people_and_as_json() {
    let one_line = |text: &str| text.replace("\n    ", "");
    let asked: [(&[&str], &str, Value, &str); 7] = [
        (
            &["list"],
            SWITCHES,
            json!("list"),
            "switch  device id  tenant  program  engine  worker  state    ports\n\
             l2              1  -       l2.p4    jit          0  running  0@p0\n",
        ),
        (
            &["stats"],
            STATS,
            json!({ "stats": { "switch": null } }),
            "switch l2\n  nothing was dropped\n  0.000 ms of its worker, 0 requests of P4Runtime and 0 refused, 0 messages left out\n",
        ),
        (
            &["stats", "l3"],
            r#"{"stats":{"physical":[],"unclassified":null,"switches":[]}}"#,
            json!({ "stats": { "switch": "l3" } }),
            "no switches\n",
        ),
        (
            &["graph"],
            GRAPH,
            json!("graph"),
            "physical ports\n  p0: null:-\nswitches\n  l2: l2.p4\n    port 0 - physical port p0\n",
        ),
        (&["show"], r#"{"text":"[device]\n"}"#, json!("show"), "[device]\n"),
        (&["snapshot", "l2"], r#"{"text":"{}\n"}"#, json!({ "snapshot": { "switch": "l2" } }), "{}\n"),
        (
            &["shadow", "l2"],
            SHADOW,
            json!({ "shadow": { "switch": "l2", "program": null, "end": false } }),
            "candidate new: 2 packets compared, 2 the same, 0 different, 0 left out\n",
        ),
    ];
    for (args, answer, request, wanted) in asked {
        let answer = one_line(answer);
        let (said, asked) = Device::new("people", &answer).ask(args);
        assert_eq!((said.code, said.out.as_str()), (0, wanted), "{args:?}: {}", said.err);
        assert_eq!(asked, request, "{args:?}");
        let (said, asked) = Device::new("json", &answer).ask(&[args, &["--json"]].concat());
        let mut wanted: Value = serde_json::from_str(&answer).unwrap();
        wanted["ok"] = true.into();
        assert_eq!((said.code, said.json()), (0, wanted), "{args:?}: {}", said.err);
        assert_eq!(asked, request, "{args:?}");
    }
    let dot = "graph \"edge\" {\n  \"port p0\" [shape=box, label=\"p0\\nnull:-\"];\n  \"switch l2\" [label=\"l2\\nl2.p4\"];\n  \
               \"switch l2\" -- \"port p0\" [taillabel=\"0\"];\n}\n";
    let (said, _) = Device::new("dot", &one_line(GRAPH)).ask(&["graph", "--form", "dot"]);
    assert_eq!((said.code, said.out.as_str()), (0, dot), "{}", said.err);
    let (said, _) = Device::new("form-json", &one_line(GRAPH)).ask(&["graph", "--form", "json"]);
    assert_eq!(said.json()["graph"]["links"][0]["from"], json!(["l2", 0]));
}

#[test]
fn a_snapshot_goes_to_a_file() {
    let folder = Folder::new("ctl-snapshot");
    let file = folder.path("l2.snapshot");
    let args = ["snapshot", "l2", "-o", &file];
    let (said, _) = Device::new("to-file", r#"{"text":"state\n"}"#).ask(&args);
    assert_eq!((said.code, said.out.as_str()), (0, ""), "{}", said.err);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "state\n");
    let (said, _) = Device::new("to-file", r#"{"text":"other\n"}"#).ask(&[&args[..], &["--json"]].concat());
    assert_eq!(said.json(), json!({ "ok": true, "output": file, "bytes": 6 }));
    let (said, _) = Device::new("to-file", DONE).ask(&args);
    assert_eq!((said.code, said.err.as_str()), (1, "error: the device does not answer with a text\n"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "other\n", "it stays as it was");
}

#[test]
fn a_refusal_is_told_with_its_places() {
    let problem = json!({ "line": 2, "column": 8, "message": "l4 is unknown", "shown": "edge.toml:2:8: l4 is unknown" });
    let refused =
        json!({ "refused": { "kind": "invalid", "message": "the file is wrong", "problems": [problem] } });
    let folder = Folder::new("ctl-refused");
    let file = folder.file("edge.toml", "[device]\n");
    let (said, _) = Device::new("refusal", &refused.to_string()).ask(&["apply", &file]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert_eq!(said.err, "edge.toml:2:8: l4 is unknown\nerror: the file is wrong\n");
    let (said, _) = Device::new("refusal", &refused.to_string()).ask(&["apply", &file, "--json"]);
    let wanted =
        json!({ "ok": false, "error": "the file is wrong", "kind": "invalid", "diagnostics": [problem] });
    assert_eq!((said.code, said.json()), (1, wanted));
}

/// The device knows the text alone.
#[test]
fn what_is_wrong_with_a_file_is_told_with_its_name() {
    let shown = "   ╭─[ the file:2:8 ]\n   ├─[ the device as it runs:9:1 ]\n";
    let problem = json!({ "line": 2, "column": 8, "message": "wrong", "shown": shown });
    let refused = json!({ "refused": { "kind": "invalid", "message": "wrong", "problems": [problem] } });
    let folder = Folder::new("ctl-file-named");
    let file = folder.file("edge.toml", "[device]\n");
    for verb in ["apply", "load"] {
        let (said, _) = Device::new("named", &refused.to_string()).ask(&[verb, &file]);
        let place = format!("[ {file}:2:8 ]");
        assert!(
            said.err.contains(&place) && said.err.contains("[ the device as it runs:9:1 ]"),
            "{}",
            said.err
        );
    }
}

/// What a device says only shows on a terminal.
#[test]
fn a_device_cannot_control_the_terminal() {
    let answer = json!({ "changed": { "done": ["a\u{1b}[2J\nerror: b"], "kept": [] } });
    let (said, _) = Device::new("terminal", &answer.to_string()).ask(&["start", "l2"]);
    assert_eq!(said.out, "done: a\\u001b[2J\\u000aerror: b\n");
    let refused = json!({ "refused": { "kind": "failed", "message": "\u{1b}]0;x\u{7}" } });
    let (said, _) = Device::new("terminal", &refused.to_string()).ask(&["start", "l2"]);
    assert_eq!(said.err, "error: \\u001b]0;x\\u0007\n");
}

#[test]
fn a_text_that_is_too_long_to_be_applied_is_shown_with_a_warning() {
    for (length, is_too_long) in [(MAX_SHOWN, false), (MAX_SHOWN + 1, true)] {
        let text = "#".repeat(length);
        let device = Device::new("shown", &format!("{{\"text\":\"{text}\"}}"));
        let socket = device.folder.path("socket");
        let said = millrace(&["ctl", "show", "--socket", &socket]);
        assert!(said.code == 0 && said.out == text, "{}", said.err);
        let warning = format!("{length} bytes, and a file at most {MAX_SHOWN} (MAX_SHOWN)");
        assert_eq!(said.err.contains(&warning), is_too_long, "{}", said.err);
        let file = device.folder.file("shown.toml", &said.out);
        let said = millrace(&["ctl", "apply", &file, "--socket", "/nowhere"]);
        assert_eq!((said.code, said.err.contains("the limit of")), (1, is_too_long), "{}", said.err);
        device.told();
    }
}

#[test]
fn the_token_of_a_tenant_comes_from_its_file() {
    let device = Device::new("token", DONE);
    let file = device.folder.secret("token", "0123456789abcdef\n");
    let socket = device.folder.path("socket");
    let said = millrace(&["ctl", "start", "l2", "--socket", &socket, "--token-file", &file]);
    assert_eq!(said.code, 0, "{}", said.err);
    let empty = device.folder.secret("empty", " \n");
    let said = millrace(&["ctl", "list", "--socket", &socket, "--token-file", &empty]);
    assert!(said.code == 1 && said.err.contains("it holds no token"), "{}", said.err);
    assert_eq!(device.told()[0], r#"{"version":1,"token":"0123456789abcdef"}"#);
}

#[test]
fn without_a_device_it_is_said_where_it_was_looked_for() {
    let folder = Folder::new("ctl-nowhere");
    let path = folder.path("socket");
    let said = millrace(&["ctl", "list", "--socket", &path]);
    let told = format!("error: no device listens at {path}: ");
    assert!(said.code == 1 && said.err.starts_with(&told), "{}", said.err);
    assert!(said.err.contains("`millrace chassis FILE` starts one"), "{}", said.err);
    let told = millrace(&["ctl", "list", "--socket", &path, "--json"]).json();
    assert_eq!(told["ok"], false);
    // No name of a test's own device would be there by chance.
    let said = millrace(&["ctl", "--device", "no-such-device-of-a-test", "list"]);
    let told = "error: no device listens at /run/millrace/no-such-device-of-a-test.sock: ";
    assert!(said.code == 1 && said.err.starts_with(told), "{}", said.err);
}

#[test]
fn wrong_usage_ends_with_2() {
    let wrong: [&[&str]; 17] = [
        &[],
        &["start"],
        &["list", "l2"],
        &["list", "--socket", "a", "--device", "b"],
        &["--socket", "a", "list", "--device", "b"],
        &["list", "--device", "../b"],
        &["graph", "--form", "svg"],
        &["link", "l2:1"],
        &["link", "l2", "router:1"],
        &["link", "l2:1", "router:65536"],
        &["link", "l2:1", "router:1", "--waiting", "0"],
        &["unlink", "l2:1", "router"],
        &["swap", "l2"],
        &["swap", "l2", PROGRAM, "--probation", "30"],
        &["swap", "l2", PROGRAM, "--max-drops", "1%"],
        &["swap", "l2", PROGRAM, "--probation", "30", "--max-drops", "101%"],
        &["shadow", "l2", PROGRAM, "--end"],
    ];
    for args in wrong {
        let said = millrace(&[&["ctl"], args].concat());
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{args:?}: {}", said.err);
    }
    let said = millrace(&["ctl", "graph", "--form", "dot", "--json"]);
    assert_eq!((said.code, &said.json()["ok"]), (2, &Value::Bool(false)), "{}", said.err);
}

#[test]
fn files_that_cannot_be_sent_are_told() {
    let folder = Folder::new("ctl-wrong-files");
    let binary = folder.path("binary");
    std::fs::write(&binary, b"ab\xff").unwrap();
    let [part, whole] = [("part", MAX_FILE), ("whole", MAX_SHOWN)]
        .map(|(name, most)| folder.file(name, &"#".repeat(most + 1)));
    for (args, message) in [
        (["apply", "no-such.toml", ""], "no-such.toml"),
        (["load", &binary, ""], "it is no text: the byte at 2 is not UTF-8"),
        (["load", &part, ""], "2097152"),
        (["apply", &whole, ""], "5242880"),
        (["restore", "l2", "no-such-snapshot"], "no-such-snapshot"),
    ] {
        let args: Vec<&str> = args.into_iter().filter(|arg| !arg.is_empty()).collect();
        let said = millrace(&[&["ctl"], &args[..], &["--socket", "/nowhere/socket"]].concat());
        assert!(said.code == 1 && said.err.contains(message), "{args:?}: {}", said.err);
        assert!(!said.err.contains("no device"), "{args:?}: {}", said.err);
    }
}
