//! Commands and JSON on a switch: what they do, what they refuse, and that a refused file changes nothing.

use crate::commands::Executor;
use crate::entries::{Loaded, MAX_SHOWN, load};
use crate::sample::switch;
use millrace_commands::{Refusal, diagnostics};
use millrace_dataplane::Switch;
use std::ops::ControlFlow;

/// Runs commands one by one, as at a prompt, and gives what they answer.
fn run(switch: &mut Switch, text: &str) -> String {
    let mut answers = String::new();
    let handle = switch.state().handle();
    let mut tables = handle.lock();
    let mut executor = Executor::new(switch, &mut tables);
    millrace_commands::read(text, |line| {
        match line.and_then(|line| executor.run(&line)) {
            Ok(reply) => answers += &reply.to_string(),
            Err(refusal) => answers += &format!("refused at `{}`: {refusal}\n", &text[refusal.at.clone()]),
        }
        ControlFlow::Continue(())
    });
    answers
}

fn refusals(text: &str) -> Vec<Refusal> {
    load(&mut switch(), text).unwrap_err()
}

/// Line, the text pointed at, the message.
fn told(text: &str) -> Vec<(usize, &str, String)> {
    refusals(text).into_iter().map(|r| (r.line(text), &text[r.at.clone()], r.to_string())).collect()
}

#[test]
fn entries_are_added_shown_changed_and_removed() {
    let mut switch = switch();
    assert_eq!(
        run(
            &mut switch,
            "table_add route set_nhop 10.0.1.0/24 => 08:00:00:00:01:11 1\ntable_num_entries route"
        ),
        "entry has been created with handle 0\n1\n"
    );
    assert_eq!(
        run(&mut switch, "table_dump_entry ingress.route 0"),
        "Dumping entry 0x0\nMatch key:\n* hdr.ipv4.dst        : LPM       0a000100/24\n\
         Action entry: ingress.set_nhop - 080000000111, 001\n"
    );
    run(&mut switch, "table_modify route drop 0");
    assert!(run(&mut switch, "table_dump route").contains("Action entry: ingress.drop - \n"));
    assert!(run(&mut switch, "table_dump_entry_from_key route 10.0.1.7/24").contains("entry 0x0"));
    assert_eq!(run(&mut switch, "table_set_timeout route 0 5"), "");
    assert_eq!(run(&mut switch, "table_delete route 0\ntable_num_entries route"), "0\n");
    assert_eq!(run(&mut switch, "table_delete route 0"), "refused at `0`: no such entry in the table\n");
}

/// Each command may show a whole table: what a short text shows is bounded.
#[test]
fn what_commands_show_is_bounded() {
    let mut switch = switch();
    let entries: String = (0..4u32)
        .map(|at| {
            format!("table_add route set_nhop 10.{}.{}.0/24 => 08:00:00:00:01:11 1\n", at / 256, at % 256)
        })
        .collect();
    assert!(load(&mut switch, &entries).is_ok());
    let one = run(&mut switch, "table_dump route").len();
    let often = "table_dump route\n".repeat(MAX_SHOWN / one + 1);
    let refused = load(&mut switch, &format!("table_clear acl\n{often}table_clear route\n")).unwrap_err();
    assert_eq!(refused.len(), 1);
    assert!(refused[0].message.contains("(MAX_SHOWN)") && refused[0].line(&often) > 5000, "{refused:?}");
    assert_eq!(run(&mut switch, "table_num_entries route"), "4\n");
}

#[test]
fn of_bmv2_the_smallest_priority_wins_and_is_shown_as_written() {
    let mut switch = switch();
    run(&mut switch, "table_add acl drop 1&&&1 0->511 => 7\ntable_add acl drop 0&&&0 3->4 => 0");
    let priorities: Vec<u32> = {
        let table = switch.state().table_named("acl").unwrap();
        switch.state().tables().entries(table).map(|entry| entry.priority).collect()
    };
    assert!(priorities[1] > priorities[0]);
    let dump = run(&mut switch, "table_dump acl");
    assert!(dump.contains("* hdr.ipv4.src        : TERNARY   00000001 &&& 00000001\n"), "{dump}");
    assert!(dump.contains("* port                : RANGE     000 -> 1ff\nPriority: 7\n"), "{dump}");
}

#[test]
fn defaults_are_set_and_reset() {
    let mut switch = switch();
    run(&mut switch, "table_set_default route set_nhop => 08:00:00:00:00:01 2");
    assert!(run(&mut switch, "table_dump route").contains("ingress.set_nhop - 080000000001, 002"));
    run(&mut switch, "table_reset_default route");
    assert!(
        run(&mut switch, "table_dump route").contains("Dumping default entry\nAction entry: ingress.drop")
    );
    assert!(run(&mut switch, "table_set_default fixed drop").contains("default action is const"));
}

#[test]
fn profiles_have_members_and_groups() {
    let mut switch = switch();
    let text = "act_prof_create_member paths set_nhop 1 1\n\
                table_indirect_create_member spread set_nhop 2 2\n\
                act_prof_create_group paths\n\
                act_prof_add_member_to_group paths 0 0\n\
                act_prof_add_member_to_group paths 1 0\n\
                table_indirect_add spread 5 => 1\n\
                table_indirect_add_with_group spread 6 => 0\n";
    assert_eq!(
        run(&mut switch, text),
        "member has been created with handle 0\nmember has been created with handle 1\n\
         group has been created with handle 0\nentry has been created with handle 0\n\
         entry has been created with handle 1\n"
    );
    let dump = run(&mut switch, "table_dump spread");
    for part in ["Index: member(1)", "Index: group(0)", "Dumping group 0\nMembers: [0, 1]\n"] {
        assert!(dump.contains(part), "{part} in {dump}");
    }
    assert!(run(&mut switch, "act_prof_delete_member paths 1").contains("still used"));
    run(&mut switch, "act_prof_remove_member_from_group paths 0 0\ntable_indirect_set_default spread 1");
    assert!(run(&mut switch, "table_dump spread").contains("default entry\nIndex: member(1)\n"));
    assert_eq!(run(&mut switch, "table_indirect_set_default_with_group spread 0"), "");
    assert!(run(&mut switch, "table_dump spread").contains("default entry\nIndex: group(0)\n"));
    assert!(run(&mut switch, "table_indirect_set_default_with_group spread 7").contains("group 7"));
    assert!(run(&mut switch, "table_add spread drop 1 =>").contains("give a member or a group"));
    assert!(run(&mut switch, "table_indirect_add route 1.2.3.4/32 => 0").contains("no action profile"));
}

#[test]
fn multicast_and_clone_sessions() {
    let mut switch = switch();
    let text = "mc_mgrp_create 1113\nmc_node_create 5 0 3\nmc_node_create 10 7\nmc_node_associate 1113 0\n\
                mc_node_associate 1113 1\nmirroring_add 5 7\nmirroring_add_mc 6 1113\n";
    run(&mut switch, text);
    assert_eq!(
        run(&mut switch, "mc_dump"),
        "==========\nMC ENTRIES\n**********\nmgrp(1113)\n\
         \x20 -> (L1h=0, rid=5) -> (ports=[0, 3], lags=[])\n\
         \x20 -> (L1h=1, rid=10) -> (ports=[7], lags=[])\n==========\nLAGS\n==========\n"
    );
    assert_eq!(run(&mut switch, "mirroring_get 5"), "MirroringSessionConfig(mgid=None, port=7)\n");
    assert_eq!(run(&mut switch, "mirroring_get 6"), "MirroringSessionConfig(mgid=1113, port=None)\n");
    run(&mut switch, "mirroring_delete 5\nmc_node_dissociate 1113 0\nmc_node_update 1 8");
    assert_eq!(run(&mut switch, "mirroring_get 5"), "refused at `5`: no clone session 5\n");
    assert!(
        run(&mut switch, "mc_dump").contains("mgrp(1113)\n  -> (L1h=1, rid=10) -> (ports=[8], lags=[])\n=")
    );
    assert_eq!(run(&mut switch, "mc_node_create 1 3 3"), "refused at `3`: port 3 is listed twice\n");
    assert!(run(&mut switch, "mc_node_associate 9 1").contains("no multicast group 9"));
}

#[test]
fn registers_counters_meters_and_value_sets() {
    let mut switch = switch();
    run(&mut switch, "register_write last 1 0x10\ncounter_write count 2 3 400");
    assert_eq!(run(&mut switch, "register_read last 1"), "last[1]= 16\n");
    assert_eq!(run(&mut switch, "register_read last"), "last= 0, 16, 0\n");
    assert_eq!(
        run(&mut switch, "counter_read ingress.count 2"),
        "ingress.count[2]= (400 bytes, 3 packets)\n"
    );
    run(&mut switch, "register_reset last\ncounter_reset count");
    assert_eq!(run(&mut switch, "register_read last 1\ncounter_read count 2").matches("= 0\n").count(), 1);
    run(&mut switch, "meter_set_rates meter 1 0.000005:4 0.00002:5\nmeter_array_set_rates meter 1:1 2.5:2");
    assert_eq!(
        run(&mut switch, "meter_get_rates meter 1"),
        "0: info rate = 1, burst size = 1\n1: info rate = 2.5, burst size = 2\n"
    );
    assert!(run(&mut switch, "meter_set_rates meter 0 2:1 1:1").contains("peak rate is below"));
    assert!(run(&mut switch, "account_set meter 0 2ms 0us 64 both").contains("a meter has rates and bursts"));
    assert!(run(&mut switch, "account_get meter 1").contains("`meter` is a meter"));
    run(&mut switch, "account_set links 1 2ms 500us 200 both");
    assert_eq!(
        run(&mut switch, "account_get links 1"),
        "2ms 500us 200 both\npassed: 0 bytes, 0 packets\nrefused: 0 bytes, 0 packets\n"
    );
    assert!(run(&mut switch, "account_get links 0").starts_with("not configured\n"));
    run(&mut switch, "account_array_set links 12500us 10001ns 1518 frames");
    assert!(run(&mut switch, "account_get links 0").starts_with("12500us 10001ns 1518 frames\n"));
    for (command, refusal) in [
        ("account_set links 2 2ms 0us 64 both", "meter 2 does not exist, there are 2"),
        (
            "account_set links 0 9us 0us 64 both",
            "a BAG of 9000 ns is outside of the limits, 10000 to 1310000000 ns",
        ),
        ("account_set links 0 2ms 11s 64 both", "a jitter of 11000000000 ns is above the limit"),
        ("account_set links 0 2ms 0us 65536 both", "an Smax of 65536 bytes is outside of the limits"),
        ("meter_set_rates links 0 1:1 1:1", "a meter has rates and bursts, an account has"),
        ("meter_get_rates links 0", "`links` is an account"),
    ] {
        let said = run(&mut switch, command);
        assert!(said.contains(refusal), "{command}: {said}");
    }
    run(&mut switch, "pvs_add types 0x12 3\npvs_add types 0x123\npvs_add types 0x7ff");
    assert_eq!(run(&mut switch, "pvs_get types"), "0x12 0x3\n0x7f 0xf\n");
    run(&mut switch, "pvs_remove types 0x123");
    assert_eq!(run(&mut switch, "pvs_get types"), "0x7f 0xf\n");
    assert!(run(&mut switch, "register_write last 3 1").contains("no cell 3"));
    assert!(
        run(&mut switch, "register_write last 0 0x1000000000000").contains("takes 49 bits, the field has 48")
    );
    // A direct counter is read by the handle of the entry.
    run(&mut switch, "table_add route drop 0.0.0.0/0 =>");
    assert_eq!(run(&mut switch, "counter_read hits 0"), "hits[0]= (0 bytes, 0 packets)\n");
}

#[test]
fn what_there_is_is_shown() {
    let mut switch = switch();
    let tables = run(&mut switch, "show_tables");
    assert!(
        tables.contains("ingress.route                  [implementation=None, mk=hdr.ipv4.dst(lpm, 32)]\n")
    );
    assert!(tables.contains("[implementation=ingress.paths, mk=port(exact, 9)]"));
    assert!(run(&mut switch, "show_actions").contains("[dmac(48),\tport(9)]"));
    assert!(run(&mut switch, "table_info acl").contains("ingress.drop"));
    assert!(run(&mut switch, "show_pvs").contains("[high(exact, 8),\tlow(exact, 4)]"));
    switch.inject(3, &[0; 14], 0);
    assert!(run(&mut switch, "show_ports").contains("\n3                  1              0\n"));
    assert!(run(&mut switch, "help table_add").starts_with("table_add TABLE ACTION MATCH ... =>"));
    assert!(run(&mut switch, "help").lines().count() > 100);
    assert!(
        run(&mut switch, "set_queue_depth 5\nset_queue_rate 100 1\nset_queue_depth 0").contains("holds 1 to")
    );
}

#[test]
fn what_does_not_fit_is_refused_by_line_with_the_reason() {
    let text = "# bad in many lines\n\
                table_add rotue drop 1.2.3.4/32 =>\n\
                table_add route set_hop 1.2.3.4/32 => 1 1\n\
                table_add route drop 1.2.3.4/33 =>\n\
                table_add route drop 1.2.3.4 =>\n\
                table_add route set_nhop 1.2.3.4/32 => 1 512\n\
                table_add route set_nhop 1.2.3.4/32 => 1\n\
                table_add route drop 1.2.3.4/32 5 =>\n\
                table_add acl drop 1&&&1 0->1 =>\n\
                table_add route drop 1.2.3.4/32 => 7\n\
                table_add route only_default 1.2.3.4/32 =>\n\
                table_add fixed drop 3 =>\n\
                table_clear fixed\n";
    let expected = [
        (2, "rotue", "no table named `rotue`"),
        (3, "set_hop", "no action named `set_hop`"),
        (4, "33", "key field `hdr.ipv4.dst`: a prefix of 33 bits is too long, the field has 32"),
        (5, "1.2.3.4", "key field `hdr.ipv4.dst`: an lpm field needs a prefix length"),
        (6, "512", "parameter `port` of `ingress.set_nhop`: the value takes 10 bits, the field has 9"),
        (7, "1", "action `ingress.set_nhop` takes 2 argument(s) (dmac, port), 1 given"),
        (8, "1.2.3.4/32 5", "the key has 1 field(s) (hdr.ipv4.dst), the entry matches on 2"),
        (9, "table_add acl drop 1&&&1 0->1 =>", "`ingress.acl` needs a priority at the end"),
        (10, "7", "`ingress.route` has no ternary, range or optional field, so its entries have no priority"),
        (
            11,
            "table_add route only_default 1.2.3.4/32 =>",
            "`ingress.route`: action `ingress.only_default` is for the",
        ),
        (12, "table_add fixed drop 3 =>", "`ingress.fixed`: the table's entries are const in the program"),
        (13, "fixed", "the table's entries are const in the program"),
    ];
    let told = told(text);
    assert_eq!(told.len(), expected.len(), "{told:#?}");
    for ((line, at, message), expected) in told.iter().zip(expected) {
        assert_eq!((*line, *at), (expected.0, expected.1), "{message}");
        assert!(message.starts_with(expected.2), "{message}");
    }
    assert!(told[0].2.ends_with("(did you mean `ingress.route`?)"), "{}", told[0].2);
    assert!(told[1].2.ends_with("(did you mean `ingress.set_nhop`?)"), "{}", told[1].2);
}

#[test]
fn a_refused_file_changes_nothing() {
    let mut switch = switch();
    run(&mut switch, "table_add route drop 9.9.9.9/32 =>\nmc_mgrp_create 1");
    let before = run(&mut switch, "table_dump route\ntable_dump acl\nmc_dump\nregister_read last");
    // Duplicate, then full.
    let text = "table_clear route\ntable_add acl drop 0&&&0 0->1 => 1\ntable_add acl drop 0&&&0 0->1 => 1\n\
                mc_mgrp_create 2\nmc_mgrp_destroy 1\nregister_write last 0 1\nset_queue_depth 9\n\
                table_add acl drop 0&&&0 0->1 => 2\ntable_add acl drop 0&&&0 0->1 => 3";
    let refused = load(&mut switch, text).unwrap_err();
    let told: Vec<(usize, &str)> = refused.iter().map(|r| (r.line(text), r.message.as_str())).collect();
    assert_eq!(
        told,
        [
            (3, "`ingress.acl`: an entry with this match and priority is already in the table"),
            (9, "`ingress.acl`: the table is full: it holds 2 entries, its limit"),
        ]
    );
    assert_eq!(run(&mut switch, "table_dump route\ntable_dump acl\nmc_dump\nregister_read last"), before);
    // A command alone changes nothing either when it is refused.
    run(&mut switch, "table_add acl drop 0&&&0 0->1 => 1\ntable_add acl set_nhop 0&&&0 2->3 => 1 1 x");
    assert_eq!(run(&mut switch, "table_num_entries acl"), "1\n");
}

#[test]
fn many_refusals_are_cut() {
    let text = "nonsense\n".repeat(1000);
    assert_eq!(refusals(&text).len(), millrace_commands::MAX_REFUSALS);
}

#[test]
fn refusals_are_shown_with_line_and_caret() {
    let text = "table_add route drop 1.2.3.4/33 =>";
    let (map, shown) = diagnostics("s1.txt", text, &refusals(text), "entry");
    let rendered = millrace_syntax::render(&shown[0], &map, false);
    assert!(rendered.contains("s1.txt:1:30"), "{rendered}");
}

const JSON: &str = r#"{
  "target": "bmv2",
  "p4info": "build/basic.p4.p4info.txt",
  "table_entries": [
    { "table": "ingress.route", "default_action": true, "action_name": "ingress.drop", "action_params": {} },
    { "table": "ingress.route", "match": { "hdr.ipv4.dst": ["10.0.1.1", 32] },
      "action_name": "ingress.set_nhop", "action_params": { "dmac": "08:00:00:00:01:11", "port": 1 } },
    { "table": "acl", "match": { "port": [1, 5] }, "priority": 3, "action_name": "drop" },
    { "table": "acl", "match": { "ipv4.src": ["10.0.0.0", "0xff000000"] }, "priority": 9, "action_name": "drop" }
  ],
  "multicast_group_entries": [
    { "multicast_group_id": 1, "replicas": [{ "egress_port": 1, "instance": 1 }, { "egress_port": 2 }] }
  ],
  "clone_session_entries": [{ "clone_session_id": 100, "replicas": [{ "egress_port": 252, "instance": 1 }] }]
}"#;

#[test]
fn json_of_the_tutorials_is_loaded() {
    let mut switch = switch();
    assert_eq!(load(&mut switch, JSON), Ok(Loaded { commands: 6, text: String::new() }));
    let dump = run(&mut switch, "table_dump route");
    assert!(
        dump.contains("LPM       0a000101/32\nAction entry: ingress.set_nhop - 080000000111, 001"),
        "{dump}"
    );
    let table = switch.state().table_named("acl").unwrap();
    let priorities: Vec<u32> = switch.state().tables().entries(table).map(|entry| entry.priority).collect();
    assert_eq!(priorities, [3, 9]);
    let dump = run(&mut switch, "table_dump acl");
    assert!(
        dump.contains("TERNARY   00000000 &&& 00000000\n* port                : RANGE     001 -> 005"),
        "{dump}"
    );
    assert!(dump.contains("0a000000 &&& ff000000\n* port                : RANGE     000 -> 1ff"), "{dump}");
    assert!(run(&mut switch, "mc_dump").contains("(rid=1) -> (ports=[1]"));
    assert_eq!(run(&mut switch, "mirroring_get 100"), "MirroringSessionConfig(mgid=None, port=252)\n");
}

#[test]
fn json_that_does_not_fit_is_refused_with_path_and_line() {
    let cases = [
        (
            r#"["10.0.1.1", 32]"#,
            r#"["10.0.1.1", 33]"#,
            "33",
            "table_entries[1].match.hdr.ipv4.dst[1]: a prefix of 33",
        ),
        (
            r#""port": 1 }"#,
            r#""prot": 1 }"#,
            "1",
            "table_entries[1].action_params.prot: action `ingress.set_nhop` has no",
        ),
        (
            r#""port": 1 }"#,
            r#""port": 512 }"#,
            "512",
            "table_entries[1].action_params.port: the value takes 10 bits",
        ),
        (
            r#", "port": 1 }"#,
            r#"}"#,
            "{ \"table\"",
            "table_entries[1]: action `ingress.set_nhop` needs the parameter `port`",
        ),
        (
            r#""priority": 3"#,
            r#""priority": 0"#,
            "0",
            "table_entries[2].priority: a priority is a number from 1",
        ),
        (r#""priority": 3, "#, "", "{ \"table\"", "table_entries[2]: `ingress.acl` needs a `priority`"),
        (r#""table": "acl""#, r#""table": "alc""#, "\"alc\"", "table_entries[2].table: no table named `alc`"),
        (r#""port": [1, 5]"#, r#""port": 5"#, "5", "table_entries[2].match.port: `[low, high]` is expected"),
        (
            r#""port": [1, 5]"#,
            r#""prt": 5"#,
            "5",
            "table_entries[2].match.prt: `ingress.acl` has no key field `prt`",
        ),
        (
            r#""multicast_group_id": 1"#,
            r#""multicast_group_id": 0"#,
            "0",
            "multicast_group_entries[0].multicast_group_id",
        ),
        (r#""table_entries""#, r#""table_entires""#, "[", "table_entires: there is no `table_entires`"),
        (
            r#""egress_port": 252"#,
            r#""egress_port": "x""#,
            "\"x\"",
            "clone_session_entries[0].replicas[0].egress_port: a n",
        ),
        (r#""target": "bmv2","#, r#""target": "bmv2""#, "\"", "not JSON: expected `,` or `}`"),
    ];
    for (from, to, at, message) in cases {
        let text = JSON.replacen(from, to, 1);
        let mut switch = switch();
        let refused = load(&mut switch, &text).unwrap_err();
        assert_eq!(refused.len(), 1, "{refused:?}");
        assert!(refused[0].message.starts_with(message), "{}", refused[0].message);
        assert!(text[refused[0].at.clone()].starts_with(at), "{:?}", &text[refused[0].at.clone()]);
        let entries = run(&mut switch, "table_num_entries route\ntable_num_entries acl");
        assert_eq!(entries, "0\n0\n", "nothing is changed");
        assert_eq!(switch.replication().groups().count(), 0);
    }
}

#[test]
fn any_text_is_survived() {
    for text in
        ["{", "{}", "{\"table_entries\": 7}", "\u{feff}{}", "=> => =>", "table_add\u{0}", "\"", "ééé é"]
    {
        let _ = load(&mut switch(), text);
    }
}

#[test]
fn what_clients_of_bmv2_read_is_there() {
    use millrace_describe::bmv2::{Resource, description, id};
    use serde_json::json;
    let switch = crate::sample::switch();
    let described = description(switch.program());
    let tables = described["pipelines"][0]["tables"].as_array().unwrap();
    let route = tables.iter().find(|table| table["name"] == "ingress.route").unwrap();
    assert_eq!((&route["match_type"], &route["type"]), (&json!("lpm"), &json!("simple")));
    assert_eq!(route["actions"], json!(["ingress.set_nhop", "ingress.drop", "ingress.only_default"]));
    assert_eq!(route["key"][0]["target"], json!(["scalars", "userMetadata.address"]));
    assert_eq!(described["header_types"][0]["fields"][0], json!(["userMetadata.address", 32, false]));
    let acl = tables.iter().find(|table| table["name"] == "ingress.acl").unwrap();
    assert_eq!(acl["match_type"], "range", "a ternary and a range field");
    let spread = tables.iter().find(|table| table["name"] == "ingress.spread").unwrap();
    assert_eq!(spread["type"], "indirect_ws");
    assert_eq!(spread["action_profile"], described["pipelines"][0]["action_profiles"][0]["name"]);
    let nhop = described["actions"].as_array().unwrap().iter().find(|a| a["name"] == "ingress.set_nhop");
    let data = json!([{ "name": "dmac", "bitwidth": 48 }, { "name": "port", "bitwidth": 9 }]);
    assert_eq!(nhop.unwrap()["runtime_data"], data);
    let hits = described["counter_arrays"].as_array().unwrap().iter().find(|c| c["name"] == "ingress.hits");
    assert_eq!(hits.unwrap()["binding"], "ingress.route");
    assert_eq!(
        id(switch.program(), Resource::Counter, "ingress.hits").map(u64::from),
        hits.unwrap()["id"].as_u64()
    );
    assert_eq!(id(switch.program(), Resource::Table, "ingress.nothing"), None);
}

proptest::proptest! {
    #[test]
    fn no_text_is_too_odd(text in "(table_add|table_dump|mc_node_create|register_read|\\{|[ -~]){0,4}( |\n|=>|[ -~é]){0,60}") {
        let _ = load(&mut switch(), &text);
    }

    #[test]
    fn values_that_are_read_are_shown_and_read_again(value: u128, width in 1u32..200) {
        let text = format!("{value:#x}");
        if let Ok(bits) = millrace_commands::value::parse(&text, width) {
            let shown = format!("0x{}", bits.to_hex());
            proptest::prop_assert_eq!(millrace_commands::value::parse(&shown, width), Ok(bits));
        } else {
            proptest::prop_assert!(width < 128);
        }
    }
}
