//! What can be seen of a run: captures, the log.

use crate::common::{Folder, command, frames, millrace, root};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Stdio};
use std::time::{Duration, Instant};

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

#[test]
fn the_log_tells_the_way_of_each_packet_at_trace_alone() {
    let folder = Folder::new("log-trace");
    let log = folder.path("log");
    let args = router(&folder);
    assert_eq!(run(&args, &["--log", &log, "--log-level", "debug"]).code, 0);
    let quiet = std::fs::read_to_string(&log).unwrap();
    assert!(!quiet.contains("TRACE") && !quiet.contains("ipv4_lpm"), "{quiet}");
    let sent = [0, 1].map(|port| frames(&folder.path(&format!("out{port}.pcap"))));

    assert_eq!(run(&args, &["--log", &log, "--log-level", "trace"]).code, 0);
    let told = std::fs::read_to_string(&log).unwrap();
    let lines = |part: &str| told.lines().filter(|line| line.contains(part)).count();
    // Nine frames; of the six that go on, two have IPv6 addresses.
    assert_eq!(lines("packet of "), 9);
    assert_eq!(lines("RouterEgress.send_frame"), 6);
    assert!(lines("RouterIngress.ipv4_lpm") >= 4 && lines("RouterIngress.ipv6_lpm") >= 2, "{told}");
    assert!(told.lines().filter(|line| line.contains("ipv4_lpm")).all(|line| line.contains("TRACE")));
    // It leaves as it does without being told of.
    assert_eq!([0, 1].map(|port| frames(&folder.path(&format!("out{port}.pcap")))), sent);
}

/// A switch that runs until this goes.
struct Running {
    child: Child,
    address: String,
    /// What it says on standard error is read by nobody, but has to go somewhere.
    _errors: BufReader<ChildStderr>,
}

impl Running {
    /// The router, which gets the packets of the first input of the demonstration once.
    fn router(more: &[&str]) -> Running {
        let ports = ["-i", "0@null:programs/demo/in0.pcap,passes=1", "-i", "1@null:-"];
        let args = ["run", "programs/router.p4", "--entries", "programs/router.entries"];
        let mut child = command()
            .args(args)
            .args(ports)
            .args(["--metrics", "127.0.0.1:0"])
            .args(more)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        let address = loop {
            line.clear();
            assert!(errors.read_line(&mut line).unwrap() > 0, "it has ended");
            if let Some(found) = line.strip_prefix("metrics at http://") {
                break found.trim_end().trim_end_matches("/metrics").to_owned();
            }
        };
        Running { child, address, _errors: errors }
    }

    /// An answer, by a client that knows nothing of ours: the status line, and what comes after it.
    fn ask(&self, request: &str) -> (String, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        // Who asks too much is answered, and the connection closed, before all of it was taken.
        let _ = stream.write_all(format!("{request}\r\n\r\n").as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8(answer).unwrap();
        let (first, rest) = answer.split_once("\r\n").unwrap();
        (first.to_owned(), rest.to_owned())
    }

    fn get(&self, path: &str) -> (String, String) {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: localhost"))
    }

    /// The metrics once the first input has come.
    fn metrics(&self) -> String {
        let start = Instant::now();
        loop {
            let (status, text) = self.get("/metrics");
            assert_eq!(status, "HTTP/1.1 200 OK");
            if text.contains("millrace_port_receive_packets_total{port=\"0\"} 6\n") {
                return text;
            }
            assert!(start.elapsed() < Duration::from_secs(20), "{text}");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn metrics_have_the_numbers_of_the_run() {
    let switch = Running::router(&[]);
    let text = switch.metrics();
    assert!(text.contains("content-type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"));
    // Six packets: two of IPv4 and one of IPv6 are routed to port 1, the others are expired, damaged, and ARP. Only those
    // three are looked up, and all of them hit.
    for line in [
        "millrace_port_receive_bytes_total{port=\"0\"} 364",
        "millrace_port_receive_drops_total{port=\"0\"} 3",
        "millrace_port_transmit_packets_total{port=\"1\"} 3",
        "millrace_port_transmit_bytes_total{port=\"1\"} 184",
        "millrace_port_up{port=\"0\"} 0",
        "millrace_port_up{port=\"1\"} 1",
        "millrace_drops_total{reason=\"ingress_drop\"} 3",
        "millrace_program_drops_total{place=\"router.p4:106\",block=\"RouterIngress.drop\",request=\"mark_to_drop\",\
         called_at=\"143\",table=\"\"} 3",
        "millrace_drops_total{reason=\"queue_full\"} 0",
        "millrace_table_entries{table=\"RouterIngress.ipv4_lpm\"} 5",
        "millrace_table_lookups_total{table=\"RouterIngress.ipv4_lpm\",result=\"hit\"} 2",
        "millrace_table_lookups_total{table=\"RouterIngress.ipv4_lpm\",result=\"miss\"} 0",
        "millrace_table_lookups_total{table=\"RouterIngress.ipv6_lpm\",result=\"hit\"} 1",
        "millrace_table_lookups_total{table=\"RouterEgress.send_frame\",result=\"hit\"} 3",
        "millrace_burst_packets_bucket{le=\"8.0\"} 1",
        "millrace_burst_packets_sum 6.0",
        "millrace_latency_seconds_count 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    let (_, status) = switch.get("/status");
    let (_, body) = status.split_once("\r\n\r\n").unwrap();
    let status: Value = serde_json::from_str(body).unwrap();
    assert_eq!((&status["program"], &status["ports"][0]["rx_packets"]), (&"router".into(), &6.into()));
    let site = &status["drop_sites"][0];
    assert_eq!((&site["place"], &site["packets"]), (&"router.p4:106".into(), &3.into()));

    let page = millrace(&["top", "--once", &switch.address]);
    assert_eq!(page.code, 0, "{}", page.err);
    assert!(page.out.starts_with("millrace 0.1.0  router ("), "{}", page.out);
    let line = page.out.lines().find(|line| line.starts_with("ingress_drop")).unwrap();
    assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["ingress_drop", "0", "3"]);
}

/// A simulated device counts what an engine does.
#[test]
fn metrics_of_a_device_have_the_numbers_of_an_engine() {
    let switch = Running::router(&["--engine", "device", "--device", "width=256,queues=1"]);
    let wanted = [
        "millrace_port_receive_packets_total{port=\"0\"} 6",
        "millrace_port_receive_drops_total{port=\"0\"} 3",
        "millrace_port_transmit_drops_total{port=\"1\"} 0",
        "millrace_port_transmit_packets_total{port=\"1\"} 3",
        "millrace_drops_total{reason=\"ingress_drop\"} 3",
        "millrace_table_lookups_total{table=\"RouterIngress.ipv4_lpm\",result=\"hit\"} 2",
        "millrace_table_lookups_total{table=\"RouterIngress.ipv4_lpm\",result=\"miss\"} 0",
        "millrace_table_lookups_total{table=\"RouterIngress.ipv6_lpm\",result=\"hit\"} 1",
        "millrace_table_lookups_total{table=\"RouterEgress.send_frame\",result=\"hit\"} 3",
    ];
    let start = Instant::now();
    loop {
        let (_, text) = switch.get("/metrics");
        match wanted.iter().find(|line| !text.lines().any(|found| found == **line)) {
            None => break,
            Some(line) => assert!(start.elapsed() < Duration::from_secs(120), "{line}\n{text}"),
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn captures_are_switched_while_it_runs() {
    let folder = Folder::new("switched");
    let switch = Running::router(&["--pcap-dir", &folder.path("")]);
    let capture = |args: &[&str]| millrace(&[&["capture"], args, &["--metrics", &switch.address]].concat());
    let on = capture(&["on", "1", "--name", "mine"]);
    assert_eq!((on.code, on.out), (0, format!("{0}mine_in.pcap\n{0}mine_out.pcap\n", folder.path(""))));
    let (_, listed) = switch.get("/captures");
    assert!(listed.contains("mine_in.pcap"), "{listed}");
    let again = capture(&["on", "1"]);
    assert_eq!((again.code, again.err.as_str()), (1, "error: the capture of port 1 is on already\n"));
    let off = capture(&["off", "1"]);
    assert_eq!(off.code, 0, "{}", off.err);
    let mode = millrace(&["mode", "show", "--metrics", &switch.address]).out;
    assert!(mode.starts_with("operational for ") && mode.ends_with("before that init; 1 change\n"), "{mode}");
    assert!(frames(&folder.path("mine_in.pcap")).is_empty());
    for (args, message) in [
        (&["off", "1"][..], "the capture of port 1 is not on"),
        (&["on", "7"], "there is no port 7"),
        (&["on", "0", "--name", "../out"], "`../out` cannot name a capture"),
    ] {
        let said = capture(args);
        assert_eq!(said.code, 1);
        assert!(said.err.contains(message), "{}", said.err);
    }
    // A web page may make a browser send a request, which says so.
    let (status, _) = switch.ask("PUT /captures/1 HTTP/1.1\r\nHost: localhost\r\nOrigin: http://elsewhere");
    assert_eq!(status, "HTTP/1.1 403 Forbidden");
}

#[test]
fn wrong_requests_are_refused_and_the_switch_goes_on() {
    let switch = Running::router(&[]);
    for (request, status) in [
        ("GET /elsewhere HTTP/1.1\r\nHost: localhost", "HTTP/1.1 404 Not Found"),
        ("POST /metrics HTTP/1.1\r\nHost: localhost", "HTTP/1.1 405 Method Not Allowed"),
        ("GET /captures/1 HTTP/1.1\r\nHost: localhost", "HTTP/1.1 405 Method Not Allowed"),
        ("PUT /captures/x HTTP/1.1\r\nHost: localhost", "HTTP/1.1 400 Bad Request"),
        ("PUT /captures/1?file=/etc/x HTTP/1.1\r\nHost: localhost", "HTTP/1.1 400 Bad Request"),
        ("PUT /captures/1 HTTP/1.1\r\nHost: localhost", "HTTP/1.1 409 Conflict"),
        ("nonsense", "HTTP/1.1 400 Bad Request"),
        (
            &format!("GET / HTTP/1.1\r\nLong: {}", "x".repeat(17_000)),
            "HTTP/1.1 431 Request Header Fields Too Large",
        ),
        (&format!("GET / HTTP/1.1{}", "\r\nA: b".repeat(65)), "HTTP/1.1 431 Request Header Fields Too Large"),
    ] {
        assert_eq!(switch.ask(request).0, status, "{request:.60}");
    }
    let idle: Vec<TcpStream> = (0..10).map(|_| TcpStream::connect(&switch.address).unwrap()).collect();
    switch.metrics();
    drop(idle);

    let nobody = millrace(&["top", "127.0.0.1:1"]);
    assert_eq!(nobody.code, 1);
    assert!(nobody.err.contains("no switch answers at 127.0.0.1:1"), "{}", nobody.err);
    let remote = ["run", "programs/router.p4", "-i", "0@null:-", "--metrics", "0.0.0.0:0"];
    let refused = millrace(&remote);
    assert_eq!(refused.code, 1);
    assert!(
        refused.err.contains("--metrics 0.0.0.0:0: other machines reach this address"),
        "{}",
        refused.err
    );
}
