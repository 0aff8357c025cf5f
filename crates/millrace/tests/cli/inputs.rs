//! `--input` and `--output`: chains around ports that replay captures, and what `check` says of wrong ones.

use crate::common::{Folder, frames, millrace, root};
use serde_json::json;

/// Whether a frame is IPv4 without tags.
fn is_ipv4(frame: &[u8]) -> bool {
    frame[12..14] == [8, 0]
}

/// What comes in by port 0 in the demonstration.
fn demonstration() -> Vec<Vec<u8>> {
    frames(root().join("programs/demo/in0.pcap").to_str().unwrap())
}

/// Runs the router on the packets of its demonstration.
fn run(folder: &Folder, more: &[&str]) -> crate::common::Said {
    let ports = [0, 1].map(|port| {
        format!("{port}@pcap:programs/demo/in{port}.pcap,{}", folder.path(&format!("out{port}.pcap")))
    });
    let mut args = vec!["run", "programs/router.p4", "-i", &ports[0], "-i", &ports[1]];
    args.extend(["--entries", "programs/router.entries"]);
    args.extend(more);
    millrace(&args)
}

#[test]
fn the_program_sees_what_the_input_passes_and_the_rest_is_told_as_flows() {
    let folder = Folder::new("inputs-run");
    let all = run(&folder, &["--json"]).json();
    let sent_before = frames(&folder.path("out1.pcap"));
    let rest = folder.path("rest.json");
    let input = format!("0:filter \"ip\" else account {rest}");
    let said = run(&folder, &["--input", &input, "--output", "1:filter \"not udp\"", "--json"]).json();
    let came = demonstration();
    let passed = came.iter().filter(|frame| is_ipv4(frame)).count();
    assert!(passed > 0 && passed < came.len(), "the packets of the demonstration test something");
    assert_eq!(all["ports"][0]["rx_packets"], json!(came.len()));
    assert_eq!(said["ports"][0]["rx_packets"], json!(passed));
    // What left by port 1 before, less what did not come in any more and what the output keeps.
    let wanted: Vec<Vec<u8>> =
        sent_before.iter().filter(|frame| is_ipv4(frame) && frame[23] != 17).cloned().collect();
    assert!(!wanted.is_empty() && wanted.len() < sent_before.len(), "the output keeps something");
    assert_eq!(frames(&folder.path("out1.pcap")), wanted);
    let step = &said["inputs"][0];
    assert_eq!(
        (&step["plugin"], &step["packets"], &step["passed"]),
        (&json!("filter"), &json!(came.len()), &json!(passed))
    );
    assert_eq!((&step["accounted"], &step["dropped"]), (&json!(came.len() - passed), &json!(0)));
    assert_eq!(said["inputs"][1]["direction"], json!("output"));
    let text = std::fs::read_to_string(&rest).unwrap();
    let flows: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let packets: u64 = flows.iter().map(|flow| flow["packets"].as_u64().unwrap()).sum();
    let bytes: u64 = flows.iter().map(|flow| flow["bytes"].as_u64().unwrap()).sum();
    let of_rest = came.iter().filter(|frame| !is_ipv4(frame));
    assert_eq!((packets as usize, bytes as usize), (came.len() - passed, of_rest.map(Vec::len).sum()));
    assert_eq!(step["flows"]["records"], json!(flows.len()));
}

#[test]
fn the_summary_names_each_step() {
    let folder = Folder::new("inputs-text");
    let said = run(&folder, &["--input", "0:filter \"arp\" | sample 1/2"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let count = demonstration().len();
    let arp = demonstration().iter().filter(|frame| frame[12..14] == [8, 6]).count();
    let first = format!(
        "port 0 input 1 filter: {count} packets, {arp} passed, 0 accounted, {} dropped\n",
        count - arp
    );
    assert!(said.out.contains(&first), "{}", said.out);
    assert!(said.out.contains("port 0 input 2 sample: "), "{}", said.out);
}

#[test]
fn a_wrong_chain_is_refused_with_its_place_before_anything_is_opened() {
    let folder = Folder::new("inputs-wrong");
    let said = run(&folder, &["--input", "0:filter \"tcp prot 80\""]);
    assert_eq!(said.code, 2);
    assert!(
        said.err.contains(
            "`and`, `or` or the end was expected\n  0:filter \"tcp prot 80\"\n                ^^^^"
        ),
        "{}",
        said.err
    );
    assert!(!std::path::Path::new(&folder.path("out0.pcap")).exists());
    let said = run(&folder, &["--output", "7:sample 1/2"]);
    assert!(
        said.code == 2 && said.err.contains("a chain is of port 7, which is not given by `-i`"),
        "{}",
        said.err
    );
}

#[test]
fn check_says_what_is_wrong_with_a_chain() {
    let said = millrace(&["check", "--input", "filter \"host nowhere\""]);
    assert_eq!(said.code, 1);
    assert!(
        said.err
            .contains("names of hosts are not looked up\n  filter \"host nowhere\"\n               ^^^^^^^"),
        "{}",
        said.err
    );
    let said = millrace(&["check", "--input", "prefix dst \"10.0.0.0/8, 10.0.0.0/8\""]);
    assert!(said.code == 1 && said.err.contains("entry 2: 10.0.0.0/8 is there twice"), "{}", said.err);
    let folder = Folder::new("inputs-check");
    let file = folder.path("never.json");
    let right = format!("exact dport \"53, 80 drop\" miss=pass | account {file}");
    let said = millrace(&["check", "--json", "--input", &right]);
    assert_eq!((said.code, said.json()["ok"].clone()), (0, json!(true)));
    assert!(!std::path::Path::new(&file).exists(), "check makes no file");
    assert_eq!(millrace(&["check"]).code, 2);
}

/// The router, asking for chains.
fn asking(folder: &Folder, annotations: &str) -> String {
    let router = std::fs::read_to_string(root().join("programs/router.p4")).unwrap();
    let main = router.find("V1Switch(").unwrap();
    folder.file("asking.p4", &format!("{}{annotations}\n{}", &router[..main], &router[main..]))
}

/// Runs a program on the packets of the router's demonstration.
fn run_program(folder: &Folder, program: &str, more: &[&str]) -> crate::common::Said {
    let ports = [0, 1].map(|port| {
        format!("{port}@pcap:programs/demo/in{port}.pcap,{}", folder.path(&format!("out{port}.pcap")))
    });
    let mut args = vec!["run", program, "-i", &ports[0], "-i", &ports[1], "--json"];
    args.extend(["--entries", "programs/router.entries"]);
    args.extend(more);
    millrace(&args)
}

#[test]
fn a_program_asks_for_chains_and_the_command_line_comes_first() {
    let folder = Folder::new("inputs-asked");
    let program =
        asking(&folder, "@input(\"0:filter 'ip'\") @input(\"*:sample 1/2\") @output(\"1:filter 'not udp'\")");
    let image = folder.path("asking.image");
    let compiled = millrace(&["compile", &program, "-o", &image]);
    assert_eq!(compiled.code, 0, "{}", compiled.err);
    let plugins = |said: &serde_json::Value| -> Vec<String> {
        let of_step =
            |step: &serde_json::Value| format!("{} {} {}", step["port"], step["direction"], step["plugin"]);
        said["inputs"].as_array().unwrap().iter().map(of_step).collect()
    };
    let came = demonstration();
    let passed = came.iter().filter(|frame| is_ipv4(frame)).count();
    for program in [&program, &image] {
        let said = run_program(&folder, program, &[]).json();
        assert_eq!(
            plugins(&said),
            ["0 \"input\" \"filter\"", "1 \"input\" \"sample\"", "1 \"output\" \"filter\""]
        );
        assert_eq!(said["ports"][0]["rx_packets"], json!(passed));
    }
    let said = run_program(&folder, &program, &["--input", "0-1:filter \"arp\""]).json();
    assert_eq!(
        plugins(&said),
        ["0 \"input\" \"filter\"", "1 \"input\" \"filter\"", "1 \"output\" \"filter\""]
    );
    let arp = came.iter().filter(|frame| frame[12..14] == [8, 6]).count();
    assert_eq!(said["ports"][0]["rx_packets"], json!(arp));
    let said = run_program(&folder, &program, &["--no-program-inputs"]).json();
    assert_eq!((plugins(&said), &said["ports"][0]["rx_packets"]), (vec![], &json!(came.len())));
}

#[test]
fn a_chain_of_a_port_that_is_not_there_is_told_and_two_of_one_port_are_refused() {
    let folder = Folder::new("inputs-missing");
    let program = asking(&folder, "@input(\"5-6:sample 1/2\")");
    let log = folder.path("log");
    let said = run_program(&folder, &program, &["--log", &log]);
    assert_eq!(said.code, 0, "{}", said.err);
    let told = std::fs::read_to_string(&log).unwrap();
    assert!(
        told.contains("the program asks for a chain of a port that is not there") && told.contains("5-6"),
        "{told}"
    );
    let program = asking(&folder, "@input(\"0:sample 1/2\") @input(\"0-1:sample 1/3\")");
    let said = run_program(&folder, &program, &[]);
    let wanted = "port 0 has two chains for its input that the program asks for";
    assert!(said.code == 1 && (said.err.clone() + &said.out).contains(wanted), "{}{}", said.err, said.out);
}

#[test]
fn check_says_where_a_chain_of_a_program_is_wrong() {
    let folder = Folder::new("inputs-program");
    let check = |annotations: &str| millrace(&["check", &asking(&folder, annotations)]);
    let line = |said: &crate::common::Said, wanted: &str| {
        assert!(said.code == 1 && said.err.contains(wanted), "{}: {}", said.code, said.err);
    };
    let said = check("@input(\"0:filter 'tcp prot 80'\")");
    line(&said, "`and`, `or` or the end was expected");
    // The place is that of `prot`, after `@input("0:filter 'tcp `.
    line(&said, ":23 ]");
    line(&check("@output(\"0;filter 'tcp'\")"), "`PORTS:CHAIN` was expected");
    line(&check("@input(7)"), "`@input` takes a text");
    line(&check("@input(\"0:prefix dst @/nowhere/list\")"), "cannot read /nowhere/list");
    let said = check("@input(\"0:sample 1/\" \"x\")");
    line(&said, "a share, as 1/100, was expected");
    // It is looked at when the program is compiled or run, too.
    let program = asking(&folder, "@input(\"0:filtre\")");
    let said = millrace(&["compile", &program, "-o", &folder.path("image")]);
    line(&said, "there is no plugin `filtre`");
    // Elsewhere it asks for nothing.
    let router = std::fs::read_to_string(root().join("programs/router.p4")).unwrap();
    let at = router.find("control RouterIngress").unwrap();
    let misplaced = format!("{}@input(\"0:sample 1/2\")\n{}", &router[..at], &router[at..]);
    let said = millrace(&["check", &folder.file("misplaced.p4", &misplaced)]);
    assert!(said.code == 0 && said.err.contains("`@input` asks for nothing here"), "{}", said.err);
}
