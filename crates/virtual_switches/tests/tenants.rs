//! Who may ask what, of which switch.

mod lab;

use lab::{CROSS_FILE, Folder, Lab, OPERATOR, file, switch};
use millrace_access::Token;
use millrace_ctl_api::{Answer, RefusalKind, Request};
use millrace_virtual_switches::Client;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const RED: &str = "token-of-red-tenant";
const BLUE: &str = "token-of-blue-tenant";

fn tenant(name: &str, roles: &str) -> String {
    format!("[[tenant]]\nname = \"{name}\"\ntoken-file = \"{name}.token\"\nroles = [{roles}]\n")
}

fn lab(roles: &str) -> Lab {
    let folder = Folder::new();
    folder.write("red.token", RED);
    folder.write("blue.token", BLUE);
    let switches = [
        switch("r", 10, &format!("{CROSS_FILE}\ntenant = \"red\"")),
        switch("b", 20, &format!("{CROSS_FILE}\ntenant = \"blue\"")),
        switch("o", 30, CROSS_FILE),
    ];
    let tenants = [tenant("red", roles), tenant("blue", "\"read\"")].concat();
    let text = file("audit = \"audit.log\"", &[tenants, switches.concat()].concat());
    Lab::within(folder, &text)
}

fn client(token: &str) -> Client {
    Client::WithToken(Token::presented(token.as_bytes()))
}

/// Every request that names a switch, with the role that it takes; none: it is the operator's.
fn requests(switch: &str) -> Vec<(Request, &'static [&'static str])> {
    let switch = || switch.to_owned();
    vec![
        (Request::Stats { switch: Some(switch()) }, &["read"]),
        (Request::Remove { switch: switch() }, &["nobody"]),
        (Request::Stop { switch: switch() }, &["life-cycle"]),
        (Request::Start { switch: switch() }, &["life-cycle"]),
        (
            Request::Swap {
                switch: switch(),
                program: "no program".into(),
                keep_everything: false,
                probation: None,
            },
            &["swap"],
        ),
        (Request::Rollback { switch: switch() }, &["swap"]),
        (Request::Snapshot { switch: switch() }, &["read", "life-cycle"]),
        (Request::Restore { switch: switch(), snapshot: "none".into() }, &["life-cycle"]),
        (Request::Shadow { switch: switch(), program: None, end: false }, &["swap", "capture"]),
    ]
}

/// Requests of the whole device.
fn of_device() -> Vec<Request> {
    let (text, folder) = (String::new(), "/".to_owned());
    vec![
        Request::Show,
        Request::Apply { text: text.clone(), folder: folder.clone(), files: BTreeMap::new(), dry_run: true },
        Request::Load { text, folder, files: BTreeMap::new() },
        Request::Unlink { between: ["r:2".into(), "b:2".into()] },
    ]
}

#[test]
fn every_request_takes_its_role() {
    const ROLES: [&str; 5] = ["read", "write", "swap", "capture", "life-cycle"];
    for given in ROLES.map(|role| vec![role]).into_iter().chain([ROLES.to_vec(), vec!["read", "life-cycle"]])
    {
        let words: Vec<String> = given.iter().map(|role| format!("\"{role}\"")).collect();
        let lab = lab(&words.join(", "));
        let red = client(RED);
        for (request, needs) in requests("r") {
            let answer = lab.device.answer(&red, &request);
            let is_forbidden =
                matches!(&answer, Answer::Refused(refused) if refused.kind == RefusalKind::Forbidden);
            let may = needs.iter().all(|role| given.contains(role));
            assert_eq!(is_forbidden, !may, "{given:?} {request:?} {answer:?}");
        }
        // Switches of others are as if they were not there.
        for other in ["b", "o", "nobody"] {
            for (request, needs) in requests(other) {
                let Answer::Refused(refused) = lab.device.answer(&red, &request) else {
                    panic!("{request:?}")
                };
                let expected =
                    if needs == ["nobody"] { RefusalKind::Forbidden } else { RefusalKind::NotFound };
                assert_eq!(refused.kind, expected, "{request:?}");
                if refused.kind == RefusalKind::NotFound {
                    assert_eq!(refused.message, format!("there is no switch `{other}`"));
                }
            }
        }
        for request in of_device() {
            let Answer::Refused(refused) = lab.device.answer(&red, &request) else { panic!("{request:?}") };
            assert_eq!(refused.kind, RefusalKind::Forbidden, "{request:?}");
        }
        let Answer::Switches(list) = lab.device.answer(&red, &Request::List) else { panic!() };
        let seen: Vec<&str> = list.iter().map(|switch| switch.name.as_str()).collect();
        assert_eq!(seen, if given.contains(&"read") { vec!["r"] } else { vec![] });
    }
}

#[test]
fn nobody_is_refused_and_the_operator_is_not() {
    let lab = lab("\"read\"");
    let stranger = client("token-of-nobody-at-all");
    let all = requests("r").into_iter().map(|(request, _)| request).chain(of_device());
    for request in all.chain([Request::List, Request::Graph, Request::Stats { switch: None }]) {
        let Answer::Refused(refused) = lab.device.answer(&stranger, &request) else { panic!("{request:?}") };
        assert_eq!(refused.kind, RefusalKind::Unknown, "{request:?}");
    }
    for (request, _) in requests("r") {
        if let Answer::Refused(refused) = lab.device.answer(&OPERATOR, &request) {
            assert!(!matches!(refused.kind, RefusalKind::Unknown | RefusalKind::Forbidden), "{refused:?}");
        }
    }
}

#[test]
fn what_a_tenant_does_tells_nothing_of_others() {
    let lab = lab("\"read\", \"life-cycle\"");
    let red = client(RED);
    for request in [
        Request::Stop { switch: "r".into() },
        Request::Start { switch: "r".into() },
        Request::Start { switch: "r".into() },
    ] {
        let Answer::Changed(changed) = lab.device.answer(&red, &request) else { panic!("{request:?}") };
        assert_eq!(changed.kept, ["keep switch r with its state"], "{request:?}");
        assert!(changed.done.iter().all(|line| line.ends_with("switch r")), "{request:?}: {changed:?}");
    }
    let Answer::Changed(changed) = lab.ask(&Request::Stop { switch: "r".into() }) else { panic!() };
    assert!(changed.kept.contains(&"keep tenant blue".to_owned()), "the operator sees all: {changed:?}");
}

#[test]
fn a_tenant_sees_nothing_of_others() {
    let lab = lab("\"read\"");
    let red = client(RED);
    lab.passes(20);
    let Answer::Stats(stats) = lab.device.answer(&red, &Request::Stats { switch: None }) else { panic!() };
    assert_eq!((stats.physical.len(), stats.unclassified, stats.switches.len()), (0, None, 1));
    let Answer::Graph(graph) = lab.device.answer(&red, &Request::Graph) else { panic!() };
    assert_eq!(graph.switches, [("r".to_owned(), "steer".to_owned())]);
    assert!(graph.links.iter().all(|link| link.from.0 == "r"));
    // Names of the ports that it is at, not what they are.
    assert_eq!(graph.physical, [("p0".to_owned(), String::new()), ("p1".to_owned(), String::new())]);
    let link = "[[link]]\nbetween = [\"r:7\", \"b:7\"]\n";
    lab.change(&Request::Load { text: link.into(), folder: lab.folder.text(), files: BTreeMap::new() });
    for (client, other) in [(&red, "link"), (&OPERATOR, "b:7")] {
        let Answer::Switches(list) = lab.device.answer(client, &Request::List) else { panic!() };
        assert_eq!(list[0].ports.get(&7).map(String::as_str), Some(other));
    }
    let Answer::Graph(graph) = lab.device.answer(&red, &Request::Graph) else { panic!() };
    assert!(graph.links.iter().all(|link| link.to.0 != "b"), "{graph:?}");
}

#[test]
fn tenants_come_and_go_and_changes_are_in_the_log() {
    let lab = lab("\"read\", \"life-cycle\"");
    let red = client(RED);
    let stop = Request::Stop { switch: "r".into() };
    assert!(matches!(lab.device.answer(&red, &stop), Answer::Changed(_)));
    assert!(matches!(lab.device.answer(&client(BLUE), &stop), Answer::Refused(_)));
    // The switch goes to the operator alone.
    let Answer::Text(text) = lab.ask(&Request::Show) else { panic!() };
    let text = text.replace("tenant = \"red\"\n", "");
    lab.change(&lab.apply(&text));
    let Answer::Refused(refused) = lab.device.answer(&red, &Request::Start { switch: "r".into() }) else {
        panic!()
    };
    assert_eq!(refused.kind, RefusalKind::NotFound);
    drop(lab.device);
    let log = std::fs::read_to_string(lab.folder.0.join("audit.log")).unwrap();
    let lines: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told = lines
        .iter()
        .map(|line| (line["who"].as_str(), line["what"].as_str().unwrap(), line["result"] == "ok"));
    let expected = [
        (Some("red"), "stop r", true),
        (Some("blue"), "stop r", false),
        (Some("operator"), "apply", true),
        (Some("red"), "start r", false),
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected);
}

/// A program is compiled while others change the device: meanwhile the switch goes, and another tenant has one with its name.
#[test]
fn a_program_comes_to_the_switch_that_it_was_for_alone() {
    let lab = lab("\"swap\"");
    let long = "hdr.ethernet.src = hdr.ethernet.src + 1; ".repeat(12_000);
    let swap = Request::Swap {
        switch: "r".into(),
        program: include_str!("programs/steer.p4")
            .replace("send(bit<9> port) {", &format!("send(bit<9> port) {{ {long}")),
        keep_everything: true,
        probation: None,
    };
    let (device, swapping) = (Arc::clone(&lab.device), swap.clone());
    let red = std::thread::spawn(move || device.answer(&client(RED), &swapping));
    std::thread::sleep(Duration::from_millis(50));
    lab.change(&Request::Remove { switch: "r".into() });
    let text = switch("r", 10, &format!("{CROSS_FILE}\ntenant = \"blue\""));
    lab.change(&Request::Load { text, folder: lab.folder.text(), files: BTreeMap::new() });
    let Answer::Refused(refused) = red.join().unwrap() else { panic!("it runs on the switch of another") };
    assert_eq!(refused.kind, RefusalKind::NotFound, "{refused:?}");
    // With its own program the source stays as it is.
    lab.passes(10);
    lab.change(&swap);
}
