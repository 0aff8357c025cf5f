//! `millrace tc` and `run --tc`: how ports serve what leaves by them.

use crate::common::{Folder, millrace, root};
use crate::live::{Live, wait_for};
use serde_json::{Value, json};

const PLAN: &str = "# The link is slow, so that what comes from memory waits.
port 1 rate 10mbit
qdisc add root handle 1: prio bands 2
qdisc add parent 1:1 handle 10: pfifo limit 100 classes 6-7
qdisc add parent 1:2 handle 20: fq flows 4 quantum 1600b limit 50
";

fn write(folder: &Folder, name: &str, text: &str) -> String {
    let path = folder.path(name);
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn the_plans_of_a_file_are_checked_without_a_switch() {
    let folder = Folder::new("tc-check");
    let file = write(&folder, "plan.tc", PLAN);
    let said = millrace(&["tc", "check", &file]);
    let told = "port 1: 5 queues, at most 300 packets\n";
    assert_eq!((said.code, said.out.as_str()), (0, told), "{}", said.err);
    assert_eq!(millrace(&["tc", "check", &file, "--json"]).json(), json!({ "ok": true, "ports": [1] }));
    // As editors of other systems write it.
    let marked = write(&folder, "plan.tc", &format!("\u{feff}{}", PLAN.replace('\n', "\r\n")));
    assert_eq!(millrace(&["tc", "check", &marked]).out, told);
    for (from, to, message) in [
        ("quantum 1600b", "quantum 100b", "plan.tc:5:"),
        (
            "quantum 1600b",
            "quantum 100b",
            "quantum is 100 bytes, the longest frame takes 1542 bytes on the wire",
        ),
        ("bands 2", "bands 3", "plan.tc:3:"),
        ("classes 6-7", "classes 6-9", "plan.tc:4:"),
        ("prio bands", "priority", "plan.tc:3:"),
    ] {
        let wrong = write(&folder, "plan.tc", &PLAN.replace(from, to));
        let said = millrace(&["tc", "check", &wrong]);
        assert!(said.code == 1 && said.err.contains(message), "{to}: {}", said.err);
    }
    for endless in [["tc", "check", "/dev/zero"], ["tc", "replace", "/dev/zero"]] {
        let said = millrace(&endless);
        let message = "/dev/zero: the file is larger than the limit of ";
        assert!(said.code == 1 && said.err.contains(message), "{endless:?}: {}", said.err);
    }
    let said = millrace(&["run", "programs/router.p4", "-i", "0@null:-", "--tc", &file, "--priorities", "2"]);
    assert_eq!(said.code, 2, "{}", said.err);
}

/// Those of the page, and the line that it puts into the first of them.
#[test]
fn the_plans_that_the_page_shows_are_plans() {
    let folder = Folder::new("tc-page");
    let page = std::fs::read_to_string(root().join("docs/traffic.md")).unwrap();
    let blocks: Vec<String> = page
        .split("\n\n")
        .filter(|block| block.lines().all(|line| line.starts_with("    ")))
        .map(|block| block.lines().map(|line| format!("{}\n", line.trim_start())).collect())
        .collect();
    let plans: Vec<&String> =
        blocks.iter().filter(|text| text.starts_with("port ") && text.contains("root")).collect();
    assert_eq!(plans.len(), 4);
    for plan in &plans {
        let said = millrace(&["tc", "check", &write(&folder, "plan.tc", plan)]);
        assert_eq!(said.code, 0, "{plan}{}", said.err);
    }
    let set = page.split("tc set --port 1 \"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    let plan = write(&folder, "plan.tc", plans[0]);
    let mut switch = Live::start(&[
        "run",
        "programs/router.p4",
        "-i",
        "1@null:-",
        "--metrics",
        "127.0.0.1:0",
        "--tc",
        &plan,
    ]);
    let said = millrace(&["tc", "set", "--port", "1", set, "--metrics", &switch.metrics()]);
    assert!(
        said.code == 0 && said.out.contains(set.rsplit(": ").next().unwrap()),
        "{}{}",
        said.out,
        said.err
    );
}

/// A plan is there from the start, lines of it change, another one takes its place, and it goes, while frames pass. What is wrong is refused,
/// and the port goes on.
#[test]
fn a_running_switch_changes_its_plans() {
    let folder = Folder::new("tc");
    let file = write(&folder, "plan.tc", PLAN);
    let ports = ["-i", "0@null:programs/demo/in0.pcap", "-i", "1@null:-", "-i", "2@null:-"];
    let router = ["run", "programs/router.p4", "--entries", "programs/router.entries"];
    let served = ["--metrics", "127.0.0.1:0", "--json", "--tc", &file];
    let mut switch = Live::start(&[&router[..], &ports, &served].concat());
    let address = switch.metrics();
    let tc = |words: &[&str]| millrace(&[&["tc"], words, &["--metrics", &address]].concat());
    let plans = || tc(&["show", "--json"]).json()["plans"].clone();
    let queue = |handle: &str| -> Value {
        let plans = plans();
        let queues = plans[0]["queues"].as_array().unwrap();
        queues.iter().find(|queue| queue["handle"] == handle).cloned().unwrap_or_default()
    };
    wait_for("the queue is full", || queue("20:1")["drops"]["queue_full"].as_u64() > Some(0));
    let told = tc(&["show", "1"]);
    assert!(told.out.starts_with("port 1 rate 10mbit"), "{}", told.out);
    assert!(told.out.contains("20:1 dropped: queue_full "), "{}", told.out);
    assert_eq!(tc(&["show", "2"]).out, "");

    let set = tc(&["set", "qdisc add parent 1:2 handle 20: fq flows 4 quantum 1600b limit 9", "--port", "1"]);
    assert!(set.code == 0 && set.out.contains("limit 9"), "{} {}", set.out, set.err);
    wait_for("it holds fewer", || queue("20:1")["packets"].as_u64() <= Some(4 * 9));
    for (words, message) in [
        (&["set", "--port", "1", "class add parent 1:"][..], "`class` with a `classid`"),
        (&["set", "--port", "1", "qdisc add parent 1:3 handle 30: pfifo"], "line "),
        (&["set", "--port", "9", "qdisc add root handle 1: pfifo"], "there is no port 9"),
        (&["del", "9"], "there is no port 9"),
        (&["replace", "no/such/file"], "no/such/file"),
        (&["ingress", "0", "--class", "8"], "there is no 8"),
    ] {
        let said = tc(words);
        assert!(said.code == 1 && said.err.contains(message), "{words:?}: {}", said.err);
    }
    assert!(tc(&["show"]).out.contains("limit 9"), "the port goes on");

    let other = write(&folder, "other.tc", "port 2\nqdisc add root handle 1: pfifo limit 77\n");
    let replaced = tc(&["replace", &other]);
    assert!(replaced.out.starts_with("port 2 "), "{} {}", replaced.out, replaced.err);
    assert!(!replaced.out.contains("port 1"), "a port that is not named has none: {}", replaced.out);
    assert_eq!(
        tc(&["ingress", "0", "--class", "7", "--quantum", "9000"]).out,
        "port 0: class 7, quantum 9000 bytes\n"
    );
    assert_eq!(tc(&["ingress", "0", "--off"]).out, "all ports are alike\n");
    assert_eq!(tc(&["del", "2", "--json"]).json(), json!({ "ok": true, "plans": [] }));
    switch.signal("INT");
    let end = switch.ended().json();
    let count = |port: usize, of: &str| end["ports"][port][of].as_u64().unwrap();
    let drops: u64 = end["drops"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    let sent: u64 = (0..3).map(|port| count(port, "tx_packets")).sum();
    assert_eq!(count(0, "rx_packets"), sent + drops, "each packet is counted once: {end}");
}
