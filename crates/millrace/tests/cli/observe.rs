//! What can be seen of a run: captures, the log.

use crate::common::{Folder, frames, millrace, root};
use serde_json::Value;

/// The arguments of a run of the router over the packets of the demonstration.
fn router(folder: &Folder) -> Vec<String> {
    let port = |n: u32| format!("{n}@pcap:programs/demo/in{n}.pcap,{}", folder.path(&format!("out{n}.pcap")));
    let (first, second) = (port(0), port(1));
    let args =
        ["run", "programs/router.p4", "--entries", "programs/router.entries", "-i", &first, "-i", &second];
    args.map(str::to_owned).to_vec()
}

fn run(args: &[String], more: &[&str]) -> crate::common::Said {
    let args: Vec<&str> = args.iter().map(String::as_str).chain(more.iter().copied()).collect();
    millrace(&args)
}

#[test]
fn captures_hold_what_came_in_and_went_out() {
    let folder = Folder::new("captures");
    let captures = folder.path("captures");
    let said = run(&router(&folder), &["--pcap", &captures]);
    assert_eq!(said.code, 0, "{}", said.err);
    for (port, received) in [(0, 6), (1, 3)] {
        let came_in = frames(&format!("{captures}/port{port}_in.pcap"));
        let given = root().join(format!("programs/demo/in{port}.pcap"));
        assert_eq!(came_in, frames(given.to_str().unwrap()));
        assert_eq!(came_in.len(), received);
        let went_out = frames(&format!("{captures}/port{port}_out.pcap"));
        assert_eq!(went_out, frames(&folder.path(&format!("out{port}.pcap"))));
        assert_eq!(went_out.len(), 3);
    }
}

#[test]
fn a_capture_that_is_cut_is_told() {
    let folder = Folder::new("captures-cut");
    let said = run(&router(&folder), &["--pcap", &folder.path("captures"), "--pcap-max", "0"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("port 0: 9 frames are missing in its capture"), "{}", said.err);
    let file = folder.file("file", "");
    let said = run(&router(&folder), &["--pcap", &file]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("file: File exists"), "{}", said.err);
}

#[test]
fn the_log_tells_start_ports_and_end_as_text_and_as_json() {
    let folder = Folder::new("log");
    let log = folder.path("log");
    let args = router(&folder);
    assert_eq!(run(&args, &["--log", &log, "--log-format", "json"]).code, 0);
    let text = std::fs::read_to_string(&log).unwrap();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |message: &str| -> Vec<&Value> {
        events.iter().filter(|event| event["message"] == message).collect()
    };
    assert_eq!(of("start")[0]["program"], "router");
    assert_eq!(of("port up").len(), 2);
    // Six and three came in, three of them were dropped: expired, a wrong checksum, ARP.
    let end = of("end")[0];
    assert_eq!((&end["rx_packets"], &end["tx_packets"], &end["drops"]), (&9.into(), &6.into(), &3.into()));
    assert!(events.iter().all(|event| event["timestamp"].is_string() && event["level"] == "INFO"));

    let said = run(&args, &["--log-level", "info"]);
    assert!(said.err.contains(" INFO ") && said.err.contains("rx_packets=9"), "{}", said.err);
    let quiet = run(&args, &[]);
    assert!(!quiet.err.contains("INFO"), "{}", quiet.err);
    let refused = run(&args, &["--log", "/nowhere/log"]);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("/nowhere/log"), "{}", refused.err);
}
