//! Who reaches the servers of a switch: this machine alone, unless an option says otherwise.

use crate::common::millrace;
use crate::live::{Live, http};

const RUN: [&str; 4] = ["run", "programs/router.p4", "-i", "0@null:-"];

/// What a server says of where it listens, by its option.
const SERVERS: [(&str, &str, &str); 3] = [
    ("--grpc", "P4Runtime: device 1 at ", "--grpc-allow-plaintext"),
    ("--thrift", "Thrift: ", "--thrift-allow-remote"),
    ("--metrics", "metrics at http://", "--metrics-allow-remote"),
];

#[test]
fn a_server_for_other_machines_needs_an_option_that_the_error_names() {
    for (option, _, open) in SERVERS {
        for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
            let said = millrace(&[&RUN[..], &[option, address]].concat());
            assert_eq!(said.code, 1, "{option} {address}: {}", said.err);
            assert!(said.err.contains(open), "{option} {address}: {}", said.err);
        }
    }
}

/// The frames of all ports are no less than its tables.
#[test]
fn a_peer_on_another_machine_needs_an_option_too() {
    let run = ["run", "programs/router.p4", "--packet-in"];
    for address in ["tcp://0.0.0.0:0", "tcp://*:0", "tcp://192.0.2.1:0"] {
        let said = millrace(&[&run[..], &[address]].concat());
        assert_eq!(said.code, 1, "{address}: {}", said.err);
        assert!(said.err.contains("--packet-in-allow-remote"), "{address}: {}", said.err);
    }
    for address in ["inproc://x", "tcp://", "9092"] {
        assert_eq!(millrace(&[&run[..], &[address]].concat()).code, 2, "{address}");
    }
    let mut switch = Live::start(&[&run[..], &["tcp://*:0", "--packet-in-allow-remote"]].concat());
    let warned = switch.hears("warning: ").unwrap();
    assert!(warned.contains("send and receive packets as any port"), "{warned}");
}

#[test]
fn what_an_option_opens_is_told() {
    for (option, place, open) in SERVERS {
        let mut switch = Live::start(&[&RUN[..], &[option, "0.0.0.0:0", open]].concat());
        assert!(switch.hears(place).unwrap().starts_with("0.0.0.0:"));
        let warned = switch.hears("warning: ").unwrap();
        assert!(warned.contains("anyone who reaches it can"), "{warned}");
    }
    let mut silent = Live::start(&[&RUN[..], &["--thrift", "0", "--metrics", "0", "--grpc", "0"]].concat());
    silent.hears("Thrift: ").unwrap();
    assert!(silent.said.iter().all(|line| !line.starts_with("warning")), "{:?}", silent.said);
}

#[test]
fn a_number_alone_is_a_port_of_this_machine() {
    for (option, place, _) in SERVERS {
        for text in ["0", ":0", "localhost:0", "127.0.0.1:0"] {
            let mut switch = Live::start(&[&RUN[..], &[option, text]].concat());
            let told = switch.hears(place).unwrap_or_else(|| panic!("{option} {text}: {:?}", switch.said));
            assert!(told.starts_with("127.0.0.1:"), "{option} {text}: {told}");
        }
        for text in ["65536", "1.2.3:1", "unix:/run/x", "", "a b"] {
            let said = millrace(&[&RUN[..], &[option, text]].concat());
            assert_eq!(said.code, 2, "{option} {text}: {}", said.err);
        }
    }
}

#[test]
fn a_web_page_cannot_have_its_name_stand_for_the_switch() {
    let mut switch =
        Live::start(&[&RUN[..], &["--metrics", "0", "--metrics-host", "switch.example"]].concat());
    let address = switch.metrics();
    let get = |host: &str| http(&address, &format!("GET /status HTTP/1.1\r\nHost: {host}"));
    for host in [&address, "localhost", "[::1]:1", "switch.example", "SWITCH.example:9560"] {
        assert_eq!(get(host).0, 200, "{host}");
    }
    for host in ["attacker.example", "attacker.example:9560", "192.0.2.1"] {
        let (status, body) = get(host);
        assert_eq!(status, 403, "{host}");
        assert!(body.contains("--metrics-host") && !body.contains("router"), "{body}");
    }
    assert_eq!(http(&address, "GET /status HTTP/1.1").0, 400);
    assert_eq!(http(&address, "PUT /captures/0 HTTP/1.1\r\nHost: attacker.example").0, 403);
    assert_eq!(
        http(&address, "PUT /captures/0 HTTP/1.1\r\nHost: localhost\r\nOrigin: http://a.example").0,
        403
    );
}
