//! Thrift servers of switches: whom their clients act as, and what these may do.

mod lab;

use lab::{CROSS_FILE, Folder, Lab, file, switch};
use millrace_ctl_api::{Answer, Request};
use millrace_device_file::DeviceFile;
use millrace_thrift_api::{CallError, Client, Keep};

const ROLES: [&str; 5] = ["read", "write", "swap", "capture", "life-cycle"];

/// A switch with a Thrift server.
fn served(name: &str, vid: u16, keys: &str) -> String {
    switch(name, vid, &format!("{CROSS_FILE}\nthrift = \"127.0.0.1:0\"\n{keys}"))
}

/// Switches of `red`, of `blue` and of the operator, whose Thrift clients act as these, and one of `red` whose act as the operator.
fn lab(roles: &[&str]) -> Lab {
    let folder = Folder::new();
    let tenant = |name: &str, roles: &[&str]| {
        folder.write(&format!("{name}.token"), &format!("token-of-{name}-tenant"));
        let roles: Vec<String> = roles.iter().map(|role| format!("\"{role}\"")).collect();
        format!(
            "[[tenant]]\nname = \"{name}\"\ntoken-file = \"{name}.token\"\nroles = [{}]\n",
            roles.join(", ")
        )
    };
    let rest = [
        tenant("red", roles),
        tenant("blue", &ROLES),
        served("r", 10, "tenant = \"red\"\nthrift-as = \"red\""),
        served("b", 20, "tenant = \"blue\"\nthrift-as = \"blue\""),
        served("o", 30, "thrift-as = \"operator\""),
        served("ro", 40, "tenant = \"red\"\nthrift-as = \"operator\""),
    ];
    Lab::within(folder, &file("audit = \"audit.log\"", &rest.concat()))
}

fn client(lab: &Lab, switch: &str) -> Client {
    Client::connect(lab.device.thrift(switch).unwrap()).unwrap()
}

/// Why a call was refused by whoever decides about rights; none: it got further.
fn no_right<T, E>(asked: Result<T, CallError<E>>) -> Option<String> {
    match asked {
        Err(CallError::Failed(error)) => Some(error.message),
        Err(CallError::Broken(error)) => panic!("{error}"),
        Ok(_) | Err(CallError::Declared(_)) => None,
    }
}

/// A call that takes each right: none takes `capture`.
fn calls(client: &mut Client) -> [(&'static str, Option<String>); 8] {
    let table = || "In.steer".to_owned();
    [
        ("read", no_right(client.bm_mt_get_num_entries(table()))),
        ("read", no_right(client.bm_mgmt_get_info())),
        ("read", no_right(client.get_time_elapsed_us())),
        ("write", no_right(client.bm_mt_set_default_action(table(), "In.drop".into(), Vec::new()))),
        ("write", no_right(client.bm_mc_mgrp_create(1))),
        ("swap", no_right(client.swap_program("no program".into(), Keep::Compatible))),
        ("swap", no_right(client.bm_load_new_config("{}".into()))),
        ("life-cycle", no_right(client.bm_dev_mgr_remove_port(9))),
    ]
}

fn check(client: &mut Client, given: &[&str]) {
    for (right, refused) in calls(client) {
        let expected = format!("the access list does not give this client the right `{right}`");
        let expected = (!given.contains(&right)).then_some(expected);
        assert_eq!(refused, expected, "{right} of {given:?}");
    }
}

#[test]
fn each_call_takes_its_right_of_whom_the_client_acts_as() {
    let single = ROLES.iter().map(|role| vec![*role]);
    for given in single.chain([ROLES.to_vec(), vec!["read", "write"]]) {
        let lab = lab(&given);
        check(&mut client(&lab, "r"), &given);
        // What others have does not depend on it.
        for other in ["b", "o", "ro"] {
            check(&mut client(&lab, other), &ROLES);
        }
    }
}

#[test]
fn other_rights_and_another_tenant_count_from_the_next_call_on() {
    let lab = lab(&["read"]);
    let mut red = client(&lab, "r");
    check(&mut red, &["read"]);
    let Answer::Text(shown) = lab.ask(&Request::Show) else { panic!() };
    let more = shown.replacen("roles = [\"read\"]", "roles = [\"read\", \"write\"]", 1);
    lab.change(&lab.apply(&more));
    check(&mut red, &["read", "write"]);
    // The switch goes to another tenant: its server begins again, and the connection ends with it.
    let of_r = |text: &str, key: &str, to: &str| {
        let (before, rest) = text.split_once("name = \"r\"").unwrap();
        let (keys, rest) = rest.split_once("[[").unwrap();
        format!(
            "{before}name = \"r\"{}[[{rest}",
            keys.replace(&format!("{key} = \"red\""), &format!("{key} = \"{to}\""))
        )
    };
    let other = of_r(&of_r(&more, "tenant", "blue"), "thrift-as", "blue");
    lab.change(&lab.apply(&other));
    assert!(red.get_time_elapsed_us().is_err());
    check(&mut client(&lab, "r"), &ROLES);
    // A file whose clients of Thrift act as somebody who does not see the switch, as nobody, or come from elsewhere, is none.
    for wrong in [
        of_r(&more, "tenant", "blue"),
        of_r(&more, "thrift-as", "blue"),
        of_r(&more, "thrift-as", "nobody"),
        more.replacen("thrift-as = \"red\"\n", "", 1),
        more.replacen("thrift-allow-remote = false", "thrift-allow-remote = true", 1),
        more.replacen("name = \"red\"", "name = \"operator\"", 1),
    ] {
        assert!(
            DeviceFile::parse("wrong", &more).is_ok() && DeviceFile::parse("wrong", &wrong).is_err(),
            "{wrong}"
        );
    }
}

#[test]
fn changes_and_what_is_refused_are_in_the_log() {
    let lab = lab(&["read"]);
    calls(&mut client(&lab, "r"));
    client(&lab, "o").bm_mc_mgrp_create(7).unwrap();
    drop(lab.device);
    let log = std::fs::read_to_string(lab.folder.0.join("audit.log")).unwrap();
    let lines: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told = lines.iter().map(|line| {
        assert_eq!(line["from"], "127.0.0.1, Thrift");
        (
            line["who"].as_str(),
            line["device"].as_u64(),
            line["what"].as_str().unwrap(),
            line["result"] == "ok",
        )
    });
    let red = |what| (Some("red"), Some(10), what, false);
    let expected = [
        red("bm_mt_set_default_action"),
        red("bm_mc_mgrp_create"),
        red("swap_program"),
        red("bm_load_new_config"),
        red("bm_dev_mgr_remove_port"),
        (Some("operator"), Some(30), "bm_mc_mgrp_create", true),
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected);
}

/// A file without clients lets everybody in who reaches it; once one has had some, nobody is let in without a name.
#[test]
fn without_clients_in_the_file_everybody_may() {
    let lab = Lab::new(&file("", &served("a", 10, "")));
    let mut anybody = client(&lab, "a");
    check(&mut anybody, &ROLES);
    lab.folder.write("red.token", "token-of-red-tenant");
    let Answer::Text(shown) = lab.ask(&Request::Show) else { panic!() };
    let tenant = "[[tenant]]\nname = \"red\"\ntoken-file = \"red.token\"\n";
    let with = format!("{tenant}{shown}");
    let refused = lab.refused(&lab.apply(&with));
    assert!(
        refused.problems.iter().any(|problem| problem.message.contains("clients of Thrift")),
        "{refused:?}"
    );
    let served = with.replacen("thrift-allow-remote", "thrift-as = \"operator\"\nthrift-allow-remote", 1);
    lab.change(&lab.apply(&served));
    check(&mut client(&lab, "a"), &ROLES);
    lab.change(&lab.apply(&shown));
    let mut nobody = client(&lab, "a");
    for (right, refused) in calls(&mut nobody) {
        let refused = refused.unwrap_or_else(|| panic!("{right}"));
        assert!(refused.contains("no client on the access list"), "{right}: {refused}");
    }
}
