//! Entries that do not fit the program are refused by line with the reason, and change nothing.

use crate::common::{Folder, Said, millrace};
use serde_json::json;

/// A table of each kind that refuses something of its own.
const PROGRAM: &str = r#"
#include <core.p4>
#include <v1model.p4>
header h_t { bit<32> dst; bit<16> port; bit<8> kind; }
struct headers { h_t h; }
struct metadata {}
parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout metadata meta) { apply {} }
control In(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    action set_port(bit<9> port) { sm.egress_spec = port; }
    action drop() { mark_to_drop(sm); }
    action nothing() {}
    table route {
        key = { hdr.h.dst: lpm; }
        actions = { set_port; drop; @defaultonly nothing; }
        default_action = drop();
    }
    table acl {
        key = { hdr.h.dst: ternary; hdr.h.port: range; }
        actions = { set_port; drop; }
        const default_action = drop();
    }
    table small {
        key = { hdr.h.kind: exact; }
        actions = { drop; @defaultonly nothing; }
        default_action = nothing();
        size = 2;
    }
    table fixed {
        key = { hdr.h.kind: exact; }
        actions = { drop; @defaultonly nothing; }
        default_action = nothing();
        const entries = { 1: drop(); }
    }
    apply { route.apply(); acl.apply(); small.apply(); fixed.apply(); }
}
control Out(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) { apply {} }
control C(inout headers hdr, inout metadata meta) { apply {} }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr.h); } }
V1Switch(P(), V(), In(), Out(), C(), D()) main;
"#;

/// Entries that fit.
const GOOD: &str = "table_add route set_port 10.0.0.0/8 => 1\ntable_add small drop 7 =>\n";

fn run(folder: &Folder, entries: &str) -> Said {
    let program = folder.file("tables.p4", PROGRAM);
    let entries = folder.file("entries", entries);
    let port = format!("0@pcap:programs/demo/in0.pcap,{}", folder.path("out.pcap"));
    millrace(&["run", &program, "-i", &port, "--entries", &entries])
}

/// Checks that a line after good ones is refused at that column with that reason, and that nothing came of it.
fn refused(folder: &Folder, line: &str, column: usize, reason: &str) {
    let said = run(folder, &format!("{GOOD}{line}\n"));
    assert_eq!((said.code, said.out.as_str()), (1, ""), "{line}: nothing is run");
    assert!(said.err.contains(&format!("entries:3:{column}")), "{line}: {}", said.err);
    assert!(said.err_line().contains(reason), "{line}: {}", said.err);
    assert!(said.err.ends_with("1 error\n"), "{line}: {}", said.err);
    assert!(!std::path::Path::new(&folder.path("out.pcap")).exists(), "{line}: no output is begun");
}

#[test]
fn a_command_that_does_not_fit_is_refused_with_its_place_and_the_reason() {
    let folder = Folder::new("entries-refused");
    for (line, column, reason) in [
        // Names.
        ("table_add rotue drop 1.2.3.4/32 =>", 11, "no table named `rotue`"),
        ("table_add route set_prot 1.2.3.4/32 => 1", 17, "no action named `set_prot`"),
        ("table_ad route drop 1.2.3.4/32 =>", 1, "table_add"),
        // Widths.
        (
            "table_add small drop 256 =>",
            22,
            "key field `hdr.h.kind`: the value takes 9 bits, the field has 8",
        ),
        ("table_add route set_port 1.2.3.4/32 => 512", 40, "the value takes 10 bits, the field has 9"),
        ("table_add small drop -1 =>", 22, "key field `hdr.h.kind`"),
        ("table_add small drop seven =>", 22, "key field `hdr.h.kind`"),
        // Prefixes, masks, ranges.
        ("table_add route drop 1.2.3.4/33 =>", 30, "a prefix of 33 bits is too long, the field has 32"),
        ("table_add route drop 1.2.3.4 =>", 22, "an lpm field needs a prefix length"),
        (
            "table_add acl drop 1&&&0x100000000 0->1 => 1",
            24,
            "key field `hdr.h.dst`: the value takes 33 bits",
        ),
        ("table_add acl drop 1&&&1 5->2 => 1", 26, "key field `hdr.h.port`"),
        // Parts too many and too few.
        (
            "table_add route drop 1.2.3.4/32 5 =>",
            22,
            "the key has 1 field(s) (hdr.h.dst), the entry matches on 2",
        ),
        ("table_add acl drop 1&&&1 => 1", 20, "the key has 2 field(s)"),
        ("table_add route set_port 1.2.3.4/32 =>", 1, "takes 1 argument(s) (port), 0 given"),
        ("table_add route drop 1.2.3.4/32 => 7", 36, "`In.route` has no ternary, range or optional field"),
        (
            "table_add route set_port 1.2.3.4/32 => 1 2",
            42,
            "`In.route` has no ternary, range or optional field",
        ),
        ("table_add acl drop 1&&&1 0->1 =>", 1, "`In.acl` needs a priority at the end"),
        // What the table has already, or does not take.
        (
            "table_add route drop 10.0.0.0/8 =>",
            1,
            "an entry with this match and priority is already in the table",
        ),
        ("table_add fixed drop 3 =>", 1, "`In.fixed`: the table's entries are const in the program"),
        (
            "table_add route nothing 1.2.3.4/32 =>",
            1,
            "`In.route`: action `In.nothing` is for the default action only",
        ),
        ("table_set_default acl set_port 1", 1, "`In.acl`"),
        ("table_delete small 5", 20, "no such entry in the table"),
    ] {
        refused(&folder, line, column, reason);
    }
    // Two entries fit in `small`, and one is there.
    let said = run(&folder, &format!("{GOOD}table_add small drop 8 =>\ntable_add small drop 9 =>\n"));
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert!(said.err.contains("entries:4:1"), "{}", said.err);
    assert!(
        said.err_line().contains("`In.small`: the table is full: it holds 2 entries, its limit"),
        "{}",
        said.err
    );
    // Without the line, all is well.
    assert_eq!(run(&folder, GOOD).code, 0);
}

#[test]
fn all_lines_are_looked_at() {
    let folder = Folder::new("entries-all");
    let said =
        run(&folder, "table_add rotue drop 1/8 =>\n# a comment\ntable_add route drop 1/33 =>\nnonsense\n");
    for place in ["entries:1:11", "entries:3:24", "entries:4:1"] {
        assert!(said.err.contains(place), "{place}: {}", said.err);
    }
    assert!(said.err_line().contains("did you mean `In.route`?"), "{}", said.err);
    assert!(said.err.ends_with("3 errors\n"), "{}", said.err);
}

#[test]
fn json_that_does_not_fit_is_refused_with_its_path_and_line() {
    let folder = Folder::new("entries-json");
    let good =
        r#"{ "table": "small", "match": { "hdr.h.kind": 7 }, "action_name": "drop", "action_params": {} }"#;
    for (entry, reason) in [
        (good, "an entry with this match and priority is already in the table"),
        (r#"{ "table": "smal", "action_name": "drop" }"#, "no table named `smal`"),
        (
            r#"{ "table": "small", "match": { "hdr.h.kind": 8 }, "action_name": "dorp" }"#,
            "no action named `dorp`",
        ),
        (r#"{ "table": "small", "match": { "hdr.h.kind": 300 }, "action_name": "drop" }"#, "takes 9 bits"),
        (r#"{ "table": "small", "match": { "kind.of": 3 }, "action_name": "drop" }"#, "kind.of"),
        (
            r#"{ "table": "route", "match": { "hdr.h.dst": ["1.2.3.4", 33] }, "action_name": "drop" }"#,
            "a prefix of 33 bits is too long",
        ),
        (
            r#"{ "table": "route", "match": { "hdr.h.dst": ["1.0.0.0", 8] }, "action_name": "set_port", "action_params": {} }"#,
            "port",
        ),
        (
            r#"{ "table": "fixed", "match": { "hdr.h.kind": 3 }, "action_name": "drop" }"#,
            "const in the program",
        ),
    ] {
        let said = run(&folder, &format!("{{ \"table_entries\": [\n{good},\n{entry}\n] }}\n"));
        assert_eq!((said.code, said.out.as_str()), (1, ""), "{entry}");
        assert!(said.err.contains("entries:3:"), "{entry}: {}", said.err);
        assert!(said.err_line().contains("table_entries[1]"), "{entry}: {}", said.err);
        assert!(said.err_line().contains(reason), "{entry}: {}", said.err);
    }
    let said = run(&folder, "{ \"table_entries\": [ }");
    assert!(said.err_line().contains("not JSON:"), "{}", said.err);
    let entries = folder.file("entries", &format!("{{ \"table_entries\": [{good}] }}"));
    let program = folder.path("tables.p4");
    let said = millrace(&[
        "trace",
        "--json",
        &program,
        "--entries",
        &entries,
        "--port",
        "0",
        "--packet",
        "00000000000007",
    ]);
    let steps = said.json()["packets"][0]["journeys"][0]["steps"].clone();
    let hit = steps.as_array().unwrap().iter().find(|step| step["table"] == "In.small").unwrap();
    assert_eq!((&hit["hit"], &hit["action"]), (&json!(true), &json!("In.drop")));
}
