//! Texts that are no plans: each error has its place and says what is wrong.

use millrace_traffic::words::{MAX_TEXT, parse};

/// A text of lines after `port 1 rate 1gbit`, with its error.
fn refused(lines: &str, line: usize, column: usize, reason: &str) {
    let text = format!("port 1 rate 1gbit\n{lines}\n");
    let error = parse(&text).expect_err(lines);
    assert_eq!((error.reason.as_str(), error.line, error.column), (reason, line, column), "{text}");
}

/// The same with a root on line 2.
fn refused_under(root: &str, lines: &str, column: usize, reason: &str) {
    let line = 2 + lines.lines().count();
    refused(&format!("qdisc add root handle 1: {root}\n{lines}"), line, column, reason);
}

#[test]
fn lines_that_say_nothing() {
    refused("qdisc del root", 2, 7, "`add` has to be here, not `del`");
    refused("qdisc", 2, 6, "the line ends before `add`");
    refused("filter add", 2, 1, "there are no filters: a queue says with `classes` what it takes");
    refused("tc qdisc add", 2, 1, "a line begins with `port`, `qdisc` or `class`, not `tc`");
    refused("qdisc add dev", 2, 11, "`root` or `parent` has to be here, not `dev`");
    refused("qdisc add root pfifo", 2, 16, "`handle` has to be here, not `pfifo`");
    refused(
        "qdisc add root handle 1 pfifo",
        2,
        23,
        "`1` is no handle, such as 1: or 1:2 in hexadecimal numbers",
    );
    refused("qdisc add root handle 1:1 pfifo", 2, 23, "`1:1` is a class; a handle ends with the colon");
    refused(
        "qdisc add root handle 1: htb",
        2,
        26,
        "`htb` is no discipline (prio, rr, drr, wfq, flows, tbf, cbs, taprio) and no queue (pfifo, bfifo, red, wred, fq)",
    );
    refused("qdisc add root handle 1: rr 7", 2, 29, "`rr` ends before `7`");
    refused(
        "qdisc add root handle 1: prio bands 2 priomap 0",
        2,
        39,
        "there is no `priomap`: queues say with `classes` what they take",
    );
    let error = parse("# nothing\nqdisc add root handle 1: pfifo").unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 2, column 1: a line `port` has to come first: which port is this about?"
    );
    let error = parse("port 1 rate 1gbit rate 2gbit").unwrap_err();
    assert_eq!(error.to_string(), "line 1, column 19: `rate` stands here twice");
    assert!(parse("port 1 mtu 65536").unwrap_err().reason.contains("it may be 1 to 65535"));
    assert_eq!(parse("").map(|plans| plans.len()), Ok(0));
    assert!(parse(&"#\n".repeat(MAX_TEXT / 2 + 1)).unwrap_err().reason.contains("at most 4194304"));
}

#[test]
fn trees_that_are_none() {
    refused("", 1, 1, "port 1 has no root");
    refused(
        "qdisc add root handle 1: pfifo\nqdisc add root handle 2: pfifo classes 1",
        3,
        11,
        "there is a root already",
    );
    refused("qdisc add root handle 1: pfifo\nport 1", 3, 1, "port 1 is here already");
    refused_under("rr", "qdisc add parent 1:1 handle 1: pfifo", 1, "1: is here already");
    refused_under("rr", "qdisc add parent 2:1 handle 3: pfifo", 18, "there is no 2:");
    refused_under(
        "rr",
        "qdisc add parent 1: handle 3: pfifo",
        18,
        "1: is none of the classes 1:1 to 1:ffff of 1:",
    );
    refused_under(
        "prio bands 1",
        "qdisc add parent 1:2 handle 3: pfifo",
        18,
        "1:2 is none of the classes 1:1 to 1:1 of 1:",
    );
    refused_under(
        "pfifo",
        "qdisc add parent 1:1 handle 2: pfifo classes 0",
        18,
        "1: is a queue: nothing is under it",
    );
    refused_under(
        "rr",
        "qdisc add parent 1:1 handle 2: pfifo\nqdisc add parent 1:1 handle 3: pfifo classes 0",
        18,
        "1:1 has something under it already",
    );
    refused(
        "qdisc add root handle 1: prio bands 3\nqdisc add parent 1:2 handle 2: pfifo",
        2,
        1,
        "nothing is under 1:1",
    );
    refused("qdisc add root handle 1: tbf rate 1mbit burst 2kb", 2, 1, "nothing is under 1:1");
    // A circle away from the root.
    refused(
        "qdisc add root handle 1: pfifo\nqdisc add parent 3:1 handle 2: rr\nqdisc add parent 2:1 handle 3: rr",
        3,
        18,
        "2: is not under the root",
    );
    refused_under(
        "rr",
        "qdisc add parent 1:1 handle 2: pfifo\nqdisc add parent 1:2 handle 3: pfifo",
        1,
        "3: says no `classes`: only one queue may, for all that go nowhere else",
    );
    let deep: String =
        (2..10_000).map(|n| format!("qdisc add parent {:x}:1 handle {n:x}: rr\n", n - 1)).collect();
    refused(
        &format!("qdisc add root handle 1: rr\n{deep}qdisc add parent 270f:1 handle 2710: pfifo"),
        10,
        1,
        "9: the tree may be 8 nodes deep",
    );
}

#[test]
fn shares_of_classes() {
    let class = "class add parent 1: classid 1:1";
    refused_under(
        "drr",
        "qdisc add parent 1:1 handle 2: pfifo",
        18,
        "there is no class 1:1: a line `class add` has to say its share",
    );
    refused_under("drr", &format!("{class} wfq weight 1"), 1, "1: is drr: its classes have a quantum");
    for weight in [0, 65_536] {
        let reason = format!("weight is {weight}, it may be 1 to 65535");
        refused_under("wfq", &format!("{class} wfq weight {weight}"), 44, &reason);
    }
    refused("qdisc add root handle 1: flows 2 wfq weight 1,0", 2, 45, "weight is 0, it may be 1 to 65535");
    refused_under("wfq", &format!("{class} drr quantum 2kb"), 1, "1: is wfq: its classes have a weight");
    refused_under(
        "rr",
        &format!("{class} drr quantum 2kb"),
        1,
        "1: has no classes to add: only drr and wfq have",
    );
    refused_under(
        "drr",
        &format!("{class} drr quantum 2kb\n{class} drr quantum 2kb"),
        1,
        "1:1 is here already",
    );
    refused_under("drr", &format!("{class} htb"), 33, "a class is of `drr` or `wfq`, not of `htb`");
    refused_under("drr", "class add parent 1: classid 2:1 drr quantum 2kb", 29, "`2:1` is no class of `1:`");
    refused_under("drr", "class add parent 3: classid 3:1 drr quantum 2kb", 1, "there is no 3:");
    refused_under(
        "drr",
        &format!(
            "{class} drr quantum 2kb\nqdisc add parent 1:1 handle 2: pfifo\n\
        class add parent 1: classid 1:2 drr quantum 2kb"
        ),
        1,
        "nothing is under 1:2",
    );
    refused_under("drr", &format!("{class} drr quantum 2kb 7"), 49, "the line should end before `7`");
}

#[test]
fn options_of_disciplines() {
    let root = |kind: &str, column: usize, reason: &str| {
        refused(&format!("qdisc add root handle 1: {kind}"), 2, column, reason);
    };
    root("tbf rate 1mbit burst 2kb limit 9", 51, "`limit` is said of the queue under it, not of tbf");
    root("tbf rate 1mbit peakrate 3", 41, "tbf has no `peakrate`; it has rate, burst");
    root("cbs hicredit 3", 26, "cbs needs an idleslope above 0");
    root("cbs idleslope -1", 30, "an idle slope is not negative");
    root("cbs idleslope 1000 locredit 7", 54, "`7` is positive; the low credit is 0 or less");
    root(
        "taprio sched-entry H 01 1ms",
        45,
        "`H` is for frame preemption, which there is not; an entry only sets gates: S",
    );
    root("taprio sched-entry S 100 1ms", 47, "`100` is no mask of 8 gates: a hexadecimal number of 00 to ff");
    root(
        "taprio num_tc 3",
        33,
        "there is no `num_tc`: class N is gate N - 1, queues say with `classes` what they take, the clock is the switch's",
    );
    root("flows 0 rr", 32, "flows is 0, it may be 1 to 65536");
    root("flows 2 red", 34, "flows take turns by `prio`, `rr`, `drr` or `wfq`, not by `red`");
    root("fq limit 7", 26, "fq needs flows and a quantum");
    root("red limit 1mb min 30kb", 26, "`red` needs min and max");
    root(
        "red limit 1mb avpkt 1000",
        40,
        "there is no `avpkt`: `average N` follows the length by 2^-N a packet",
    );
    root("pfifo classes 8", 40, "`8` is no list of classes of 0 to 7, such as 0,2-5");
    root("pfifo classes 3-2", 40, "`3-2` is no list of classes of 0 to 7, such as 0,2-5");
    root("pfifo limit 0", 38, "limit is 0, it may be 1 to 4194304");
    root("pfifo limit -1", 38, "`-1` is no limit: a number of 1 to 4194304");
    root("pfifo ats rate 1mbit burst 2kb", 32, "ats needs a rate, a burst and a residence");
    root("wred limit 1mb curve 0 min 1kb max 2kb curve 1 min 1kb", 65, "`curve` needs min and max");
}

#[test]
fn a_send_slope_has_to_fit() {
    refused(
        "qdisc add root handle 1: cbs idleslope 20000 sendslope -970000\nqdisc add parent 1: handle 2: pfifo",
        2,
        46,
        "send slope is -970000000 bit/s, it has to be -980000000 bit/s: the idle slope less the rate of the port",
    );
}

#[test]
fn what_is_wrong_with_a_plan_has_the_line_of_its_node() {
    refused(
        "qdisc add root handle 1: drr\nclass add parent 1: classid 1:1 drr quantum 1541\nqdisc add parent 1:1 handle 2: pfifo",
        3,
        1,
        "1:1: quantum is 1541 bytes, the longest frame takes 1542 bytes on the wire",
    );
    refused("qdisc add root handle 1: pfifo classes 1", 1, 1, "class 0 goes to no queue");
    refused(
        "qdisc add root handle 1: fq flows 9 quantum 1542 bytes 1517",
        2,
        1,
        "1:1: room for 1517 bytes, the longest frame has 1518 bytes",
    );
    refused(
        "qdisc add root handle 1: rr\nqdisc add parent 1:1 handle 2: pfifo\nqdisc add parent 1:2 handle 3: pfifo classes 0-7",
        3,
        1,
        "2: no class goes to this queue",
    );
}

#[test]
fn the_examples_of_the_users_page_are_plans() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/traffic.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mut examples: Vec<String> = Vec::new();
    let mut before = "";
    for line in page.lines() {
        match line.strip_prefix("    ") {
            Some(text) if before.is_empty() => examples.push(format!("{text}\n")),
            Some(text) => examples.last_mut().unwrap().push_str(&format!("{text}\n")),
            None => {}
        }
        before = line;
    }
    examples.retain(|example| example.starts_with("port ") && !example.contains('['));
    assert_eq!(examples.len(), 4);
    for example in examples {
        parse(&example).unwrap_or_else(|error| panic!("{error}\n{example}"));
    }
}
