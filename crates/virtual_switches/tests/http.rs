//! Metrics, status and captures over HTTP: who reads what, and what is captured.

mod lab;

use lab::{CROSS_FILE, Folder, Lab, file, frame, switch, wait_for};
use millrace_ctl_api::Request;
use millrace_drivers::CaptureFile;
use millrace_observe::server::SCRAPE_TIME;
use millrace_observe_api::{ChassisStatus, Client, ClientError, Status};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

const OPERATOR: &str = "token-of-the-operator";
const RED: &str = "token-of-red-tenant";
const BLUE: &str = "token-of-blue-tenant";
const DEVICE: &str = "http = \"127.0.0.1:0\"\noperator-token-file = \"operator.token\"\naudit = \"audit.log\"\ncaptures = \"captures\"";

fn tenant(name: &str, roles: &str) -> String {
    format!("[[tenant]]\nname = \"{name}\"\ntoken-file = \"{name}.token\"\nroles = [{roles}]\n")
}

fn tenants() -> String {
    [tenant("red", "\"read\", \"capture\""), tenant("blue", "\"read\"")].concat()
}

/// Switches of red, of blue, and of the operator alone.
fn switches() -> String {
    [
        switch("r", 10, &format!("{CROSS_FILE}\ntenant = \"red\"")),
        switch("b", 20, &format!("{CROSS_FILE}\ntenant = \"blue\"")),
        switch("o", 30, CROSS_FILE),
    ]
    .concat()
}

fn folder() -> Folder {
    let folder = Folder::new();
    for (name, token) in [("operator", OPERATOR), ("red", RED), ("blue", BLUE)] {
        folder.write(&format!("{name}.token"), token);
    }
    folder
}

fn lab() -> Lab {
    Lab::within(folder(), &file(DEVICE, &[tenants(), switches()].concat()))
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

/// What the device answers to a request with these lines of its head.
fn ask_with(lab: &Lab, request: &str, lines: &[String]) -> Answer {
    let mut stream = TcpStream::connect(lab.device.http().unwrap()).unwrap();
    stream.set_read_timeout(Some(lab::PATIENCE)).unwrap();
    let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    write!(stream, "{request} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head: head.to_lowercase(), body: body.to_owned() }
}

fn ask(lab: &Lab, request: &str, token: Option<&str>) -> Answer {
    let lines: Vec<String> = token.iter().map(|token| format!("Authorization: Bearer {token}")).collect();
    ask_with(lab, request, &lines)
}

fn device(lab: &Lab, token: Option<&str>) -> ChassisStatus {
    let answer = ask(lab, "GET /status", token);
    assert_eq!(answer.status, 200, "{}", answer.body);
    serde_json::from_str(&answer.body).unwrap()
}

/// The frames of a capture.
fn captured(lab: &Lab, path: &str) -> Vec<Vec<u8>> {
    let bytes = std::fs::read(lab.folder.0.join(path)).unwrap();
    let mut file = CaptureFile::new(&bytes[..]).unwrap();
    let (mut frames, mut frame) = (Vec::new(), Vec::new());
    while file.next(&mut frame).unwrap().is_some() {
        frames.push(frame.clone());
    }
    frames
}

#[test]
fn each_client_has_what_the_access_list_gives_it() {
    let lab = lab();
    // What the operator, red (who reads and captures), and blue (who reads) are told.
    let requests: &[(&str, [u16; 3])] = &[
        ("GET /", [200, 200, 200]),
        ("GET /switches", [200, 200, 200]),
        ("GET /metrics", [200, 200, 200]),
        ("GET /status", [200, 200, 200]),
        ("HEAD /status", [200, 200, 200]),
        ("GET /switches/r/status", [200, 200, 404]),
        ("GET /switches/r/metrics", [200, 200, 404]),
        ("GET /switches/r/captures", [200, 200, 404]),
        ("GET /switches/b/status", [200, 404, 200]),
        ("GET /switches/b/metrics", [200, 404, 200]),
        ("GET /switches/b/captures", [200, 404, 200]),
        ("GET /switches/o/status", [200, 404, 404]),
        ("GET /switches/o/metrics", [200, 404, 404]),
        ("GET /switches/o/captures", [200, 404, 404]),
        ("GET /switches/nobody/status", [404, 404, 404]),
        ("GET /switches/nobody/metrics", [404, 404, 404]),
        ("GET /switches/nobody/captures", [404, 404, 404]),
        ("PUT /switches/r/captures/0", [200, 200, 404]),
        ("PUT /switches/r/captures/9", [404, 404, 404]),
        ("PUT /switches/r/captures/x", [400, 400, 400]),
        ("PUT /switches/b/captures/0", [200, 404, 403]),
        ("PUT /switches/o/captures/0", [200, 404, 404]),
        ("PUT /switches/nobody/captures/0", [404, 404, 404]),
        ("DELETE /switches/b/captures/1", [409, 404, 403]),
        ("GET /switches/r/captures/0", [405, 405, 405]),
        ("POST /status", [405, 405, 405]),
        ("GET /queues", [404, 404, 404]),
        ("GET /captures", [404, 404, 404]),
        ("GET /switches/r/log", [404, 404, 404]),
        ("GET /switches/", [404, 404, 404]),
    ];
    for (request, told) in requests {
        for (token, status) in [OPERATOR, RED, BLUE].into_iter().zip(told) {
            let answer = ask(&lab, request, Some(token));
            assert_eq!(answer.status, *status, "{request} with {token}: {}", answer.body);
            if answer.status == 200
                && let Some(capture) = request.strip_prefix("PUT ")
            {
                assert_eq!(ask(&lab, request, Some(token)).status, 409, "{request}: it is on");
                assert_eq!(ask(&lab, &format!("DELETE {capture}"), Some(token)).status, 200, "{request}");
            }
        }
        // Being on this machine makes nobody the operator.
        for token in [None, Some("token-of-nobody-at-all"), Some("")] {
            let answer = ask(&lab, request, token);
            assert_eq!(answer.status, 401, "{request} with {token:?}: {}", answer.body);
            assert!(answer.head.contains("www-authenticate: bearer"), "{}", answer.head);
        }
        let bearer = |token: &str| format!("Authorization: Bearer {token}");
        for lines in [
            vec![format!("Authorization: Basic {OPERATOR}")],
            vec![format!("Authorization: {OPERATOR}")],
            vec![bearer(OPERATOR), bearer(OPERATOR)],
        ] {
            assert_eq!(ask_with(&lab, request, &lines).status, 401, "{request} with {lines:?}");
        }
    }
}

#[test]
fn what_a_client_may_not_see_looks_as_if_it_were_not_there() {
    let lab = lab();
    for request in
        ["GET /switches/NAME/status", "GET /switches/NAME/metrics", "PUT /switches/NAME/captures/0"]
    {
        let of = |name: &str| {
            let answer = ask(&lab, &request.replace("NAME", name), Some(RED));
            let lines = answer.head.lines().filter(|line| !line.starts_with("date:"));
            let lines =
                lines.filter(|line| !line.starts_with("content-length:")).collect::<Vec<_>>().join("\n");
            (lines, answer.body.replace(&format!("`{name}`"), "NAME"))
        };
        assert_eq!(of("b"), of("nobody"), "{request}");
        assert_eq!(of("o"), of("nobody"), "{request}");
        assert_eq!(of("b").1, "there is no switch NAME\n");
    }
}

#[test]
fn a_client_reads_the_numbers_of_its_own_switches() {
    let lab = lab();
    [10, 20, 30].into_iter().for_each(|vid| lab.passes(vid));
    lab.cables[0].send([frame(99, 0)]);
    wait_for(|| lab.stats().unclassified == Some(1));
    assert_eq!(ask(&lab, "GET /switches", Some(OPERATOR)).body, "[\"b\",\"o\",\"r\"]");
    assert_eq!(ask(&lab, "GET /switches", Some(RED)).body, "[\"r\"]");

    let metrics = ask(&lab, "GET /metrics", Some(OPERATOR)).body;
    let line = |text: &str| metrics.lines().any(|line| line == text);
    for name in ["r", "b", "o"] {
        assert!(
            line(&format!("millrace_port_receive_packets_total{{switch=\"{name}\",port=\"0\"}} 10")),
            "{metrics}"
        );
        assert!(line(&format!("millrace_switch_up{{switch=\"{name}\"}} 1")), "{metrics}");
        assert!(
            metrics.contains(&format!("millrace_switch_used_seconds_total{{switch=\"{name}\"}}")),
            "{metrics}"
        );
    }
    assert!(line("millrace_physical_receive_packets_total{physical=\"p0\"} 31"), "{metrics}");
    assert!(line("millrace_unclassified_packets_total 1"), "{metrics}");
    assert!(metrics.contains("process_resident_memory_bytes"), "{metrics}");
    let of_red = ask(&lab, "GET /metrics", Some(RED)).body;
    assert!(of_red.contains("millrace_port_receive_packets_total{switch=\"r\",port=\"0\"} 10"), "{of_red}");
    for hidden in ["switch=\"b\"", "switch=\"o\"", "millrace_physical", "millrace_unclassified", "process_"] {
        assert!(!of_red.contains(hidden), "{hidden}: {of_red}");
    }

    let all = device(&lab, Some(OPERATOR));
    assert_eq!(all.switches.keys().collect::<Vec<_>>(), ["b", "o", "r"]);
    assert_eq!((all.device.as_str(), all.unclassified), ("millrace", Some(1)));
    let ports = all.physical.iter().map(|port| (port.name.as_str(), port.rx_packets, port.tx_packets));
    assert_eq!(ports.collect::<Vec<_>>(), [("p0", 31, 0), ("p1", 0, 30)]);
    assert!(all.outside["r"].used_ns > 0 && all.process.is_some());
    let red = device(&lab, Some(RED));
    assert_eq!(red.switches.keys().chain(red.outside.keys()).collect::<Vec<_>>(), ["r", "r"]);
    assert_eq!((red.physical.len(), red.unclassified, red.process), (0, None, None));
    let one: Status = serde_json::from_str(&ask(&lab, "GET /switches/r/status", Some(RED)).body).unwrap();
    assert_eq!((one.program.as_str(), one.ports[0].rx_packets), ("steer", 10));
    assert_eq!(one.process.resident_bytes, 0, "the process is not the tenant's");
    let text = ask(&lab, "GET /switches/r/metrics", Some(RED)).body;
    assert!(text.contains("millrace_port_receive_packets_total{port=\"0\"} 10"), "{text}");
    assert!(!text.contains("process_"), "{text}");
}

#[test]
fn a_capture_of_a_switch_has_its_frames_alone() {
    let lab = lab();
    for port in [0, 1] {
        let answer = ask(&lab, &format!("PUT /switches/r/captures/{port}"), Some(RED));
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
    [10, 20, 30].into_iter().for_each(|vid| lab.passes(vid));
    let listed = ask(&lab, "GET /switches/r/captures", Some(RED)).body;
    assert!(
        listed.contains("captures/r/port0_in.pcap") && listed.contains("captures/r/port1_out.pcap"),
        "{listed}"
    );
    assert_eq!(ask(&lab, "GET /switches/b/captures", Some(BLUE)).body, "[]");
    for port in [0, 1] {
        assert_eq!(ask(&lab, &format!("DELETE /switches/r/captures/{port}"), Some(RED)).status, 200);
    }
    // After its end nothing is added.
    lab.passes(10);
    // As the program has them: without the tag that is stripped.
    let expected: Vec<Vec<u8>> = (0..10)
        .map(|number| {
            let mut frame = frame(10, number);
            frame.drain(12..16);
            frame
        })
        .collect();
    assert_eq!(captured(&lab, "captures/r/port0_in.pcap"), expected);
    assert_eq!(captured(&lab, "captures/r/port1_out.pcap"), expected);
    assert_eq!(captured(&lab, "captures/r/port1_in.pcap").len(), 0);
    assert!(!lab.folder.0.join("captures/b").exists() && !lab.folder.0.join("captures/o").exists());
}

/// As `millrace top` and `millrace capture` ask.
#[test]
fn the_client_asks_for_one_switch_with_its_token() {
    let lab = lab();
    let client = Client::new(lab.device.http().unwrap());
    let red = client.clone().with_token(RED);
    assert_eq!(red.switches().unwrap(), ["r"]);
    assert_eq!(red.device().unwrap().switches.keys().collect::<Vec<_>>(), ["r"]);
    let one = red.clone().of_switch("r");
    assert_eq!(one.status().unwrap().program, "steer");
    assert!(one.start_capture(1, Some("mine")).unwrap().incoming.ends_with("captures/r/mine_in.pcap"));
    assert_eq!(one.stop_capture(1).unwrap().packets, 0);
    let why = |asked: Result<Status, ClientError>| match asked {
        Err(ClientError::Refused(why)) => why,
        other => panic!("{other:?}"),
    };
    assert!(why(red.status()).ends_with("is a device with 1 switches: say which (--switch NAME)"));
    assert_eq!(why(red.of_switch("b").status()), "there is no switch `b`");
    assert!(why(client.of_switch("r").status()).contains("token"));
    assert!(!format!("{one:?}").contains(RED));
}

#[test]
fn captures_are_bounded_refused_to_web_pages_and_recorded() {
    let lab = lab();
    let bearer = format!("Authorization: Bearer {RED}");
    let page = [bearer, "Origin: http://attacker.example".to_owned()];
    assert_eq!(ask_with(&lab, "PUT /switches/r/captures/0", &page).status, 403);
    for name in ["../o/port0", ".hidden", "a/b", ""] {
        let answer = ask(&lab, &format!("PUT /switches/r/captures/0?name={name}"), Some(RED));
        assert_eq!(answer.status, 400, "{name}: {}", answer.body);
    }
    assert_eq!(ask(&lab, "PUT /switches/r/captures/0?name=mine", Some(RED)).status, 200);
    assert_eq!(ask(&lab, "PUT /switches/b/captures/0", Some(RED)).status, 404);
    assert_eq!(ask(&lab, "PUT /switches/b/captures/0", Some(BLUE)).status, 403);
    assert_eq!(ask(&lab, "PUT /switches/r/captures/0", None).status, 401);
    assert_eq!(ask(&lab, "DELETE /switches/r/captures/0", Some(OPERATOR)).status, 200);
    assert!(lab.folder.0.join("captures/r/mine_in.pcap").exists());
    let Lab { device, folder, .. } = lab;
    drop(device);
    let log = std::fs::read_to_string(folder.0.join("audit.log")).unwrap();
    let lines: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told = lines.iter().map(|line| {
        (
            line["who"].as_str(),
            line["device"].as_u64(),
            line["what"].as_str().unwrap(),
            line["result"] == "ok",
        )
    });
    let on = |switch: &str| format!("capture on of port 0 of switch {switch}");
    let off = "capture off of port 0 of switch r";
    // The page, and four names.
    let mut expected = vec![(Some("red"), Some(10), on("r"), false); 5];
    expected.extend([
        (Some("red"), Some(10), on("r"), true),
        (Some("red"), Some(20), on("b"), false),
        (Some("blue"), Some(20), on("b"), false),
        (Some("operator"), Some(10), off.to_owned(), true),
    ]);
    let expected: Vec<_> =
        expected.iter().map(|(who, device, what, ok)| (*who, *device, what.as_str(), *ok)).collect();
    assert_eq!(told.collect::<Vec<_>>(), expected);
    assert!(lines.iter().all(|line| line["from"].as_str().unwrap().starts_with("127.0.0.1:")), "{log}");
}

#[test]
fn without_a_folder_nothing_is_captured() {
    let lab = Lab::new(&file("http = \"127.0.0.1:0\"", &switch("a", 10, CROSS_FILE)));
    let answer = ask(&lab, "PUT /switches/a/captures/0", None);
    assert_eq!(answer.status, 409);
    assert_eq!(answer.body, "the device has no folder for captures: `captures` of [device] names one\n");
}

#[test]
fn a_switch_has_few_captures_at_a_time() {
    let most = millrace_observe::server::MAX_SWITCH_CAPTURES;
    let ports: String = (2..=most)
        .map(|number| {
            format!(
                "[[switch.port]]\nnumber = {number}\nphysical = \"p0\"\nmatch = {{ vlan = {} }}\n",
                100 + number
            )
        })
        .collect();
    let keys = "http = \"127.0.0.1:0\"\ncaptures = \"captures\"";
    let lab = Lab::new(&file(keys, &(switch("a", 10, CROSS_FILE) + &ports)));
    for port in 0..most {
        assert_eq!(ask(&lab, &format!("PUT /switches/a/captures/{port}"), None).status, 200);
    }
    let refused = ask(&lab, &format!("PUT /switches/a/captures/{most}"), None);
    assert!(refused.status == 409 && refused.body.contains("MAX_SWITCH_CAPTURES"), "{}", refused.body);
    assert_eq!(ask(&lab, "DELETE /switches/a/captures/0", None).status, 200);
    assert_eq!(ask(&lab, &format!("PUT /switches/a/captures/{most}"), None).status, 200);
}

#[test]
fn switches_come_and_go() {
    let lab = lab();
    let status = |name: &str| ask(&lab, &format!("GET /switches/{name}/status"), Some(OPERATOR)).status;
    assert_eq!(["r", "b", "o", "new"].map(status), [200, 200, 200, 404]);
    assert_eq!(ask(&lab, "PUT /switches/b/captures/0", Some(OPERATOR)).status, 200);
    lab.change(&Request::Remove { switch: "b".into() });
    assert_eq!(["r", "b", "o"].map(status), [200, 404, 200]);
    assert_eq!(ask(&lab, "DELETE /switches/b/captures/0", Some(OPERATOR)).status, 404);
    assert!(lab.folder.0.join("captures/b/port0_in.pcap").exists());
    assert_eq!(ask(&lab, "GET /switches", Some(OPERATOR)).body, "[\"o\",\"r\"]");
    // Another name, an owner that changes, and one that was not there.
    let changed = [
        switch("renamed", 10, &format!("{CROSS_FILE}\ntenant = \"red\"")),
        switch("o", 30, &format!("{CROSS_FILE}\ntenant = \"blue\"")),
        switch("new", 40, CROSS_FILE),
    ];
    lab.change(&lab.apply(&file(DEVICE, &[tenants(), changed.concat()].concat())));
    assert_eq!(["r", "renamed", "o", "new"].map(status), [404, 200, 200, 200]);
    assert_eq!(ask(&lab, "GET /switches", Some(RED)).body, "[\"renamed\"]");
    assert_eq!(ask(&lab, "GET /switches", Some(BLUE)).body, "[\"o\"]");
    lab.passes(40);
    // What was told a moment ago is told again.
    wait_for(|| device(&lab, Some(OPERATOR)).switches["new"].ports[0].rx_packets == 10);
}

#[test]
fn without_an_access_list_everybody_reads_until_there_is_one() {
    let folder = folder();
    let keys = "http = \"127.0.0.1:0\"";
    let before = file(keys, &switch("r", 10, CROSS_FILE));
    let lab = Lab::within(folder, &before);
    let paths = ["GET /metrics", "GET /status", "GET /switches", "GET /switches/r/status"];
    for path in paths {
        assert_eq!(ask(&lab, path, None).status, 200, "{path}");
        assert_eq!(ask(&lab, path, Some("any-token-of-anybody")).status, 200, "{path}");
    }
    assert_eq!(device(&lab, None).physical.len(), 2);
    let owned = switch("r", 10, &format!("{CROSS_FILE}\ntenant = \"red\""));
    lab.change(&lab.apply(&file(keys, &[tenants(), owned].concat())));
    for path in paths {
        assert_eq!(ask(&lab, path, None).status, 401, "{path}");
        assert_eq!(ask(&lab, path, Some(RED)).status, 200, "{path}");
    }
    // A file without one does not open what was closed.
    lab.change(&lab.apply(&before));
    for path in paths {
        assert_eq!(ask(&lab, path, None).status, 401, "{path}");
        assert_eq!(ask(&lab, path, Some(RED)).status, 401, "{path}");
    }
}

#[test]
fn only_hosts_of_the_file_are_answered() {
    let keys = "http = \"127.0.0.1:0\"\nhttp-hosts = [\"edge.example\"]";
    let lab = Lab::new(&file(keys, &switch("a", 10, CROSS_FILE)));
    let with_host = |host: &str| {
        let mut stream = TcpStream::connect(lab.device.http().unwrap()).unwrap();
        write!(stream, "GET /switches HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(with_host("edge.example").starts_with("HTTP/1.1 200"));
    let refused = with_host("other.example");
    assert!(refused.starts_with("HTTP/1.1 403") && refused.contains("`http-hosts` of [device]"), "{refused}");
}

/// As many switches as a large device has: all of them answer in time, and packets pass meanwhile.
#[test]
fn many_switches_are_scraped_at_once() {
    const SWITCHES: u16 = 256;
    let all: String = (1..=SWITCHES).map(|vid| switch(&format!("s{vid}"), vid, CROSS_FILE)).collect();
    let lab = Lab::new(&file("http = \"127.0.0.1:0\"", &all));
    let begun = Instant::now();
    let metrics = ask(&lab, "GET /metrics", None);
    let took = begun.elapsed();
    assert_eq!(metrics.status, 200);
    assert!(took < 2 * SCRAPE_TIME, "{took:?}");
    let up =
        metrics.body.lines().filter(|line| line.starts_with("millrace_switch_up{") && line.ends_with(" 1"));
    assert_eq!(up.count(), usize::from(SWITCHES));
    let families = metrics.body.lines().filter(|line| line.starts_with("# HELP millrace_port_up "));
    assert_eq!(families.count(), 1);
    println!("{SWITCHES} switches: {took:?}, {} bytes", metrics.body.len());
    std::thread::scope(|scope| {
        let scraped =
            scope.spawn(|| (0..3).map(|_| ask(&lab, "GET /metrics", None).status).collect::<Vec<_>>());
        (0..20).for_each(|_| lab.passes(7));
        assert_eq!(scraped.join().unwrap(), [200; 3]);
    });
}
