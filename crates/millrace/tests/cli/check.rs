//! `check`, `p4info`, `compile` and wrong usage: exit status, what is said, and where.

use crate::common::{Folder, millrace, millrace_with_input, root};
use serde_json::json;

const BROKEN: &str = "#include <core.p4>\n\nconst bit<8> x = y;\nbit<8> f() { return 1 }\n";

#[test]
fn a_sound_program_is_accepted_in_silence() {
    for program in ["programs/router.p4", "programs/l2_switch.p4", "programs/firewall.p4"] {
        let said = millrace(&["check", program]);
        assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (0, "", ""), "{program}");
    }
    assert_eq!(
        millrace(&["check", "--json", "programs/router.p4"]).json(),
        json!({ "ok": true, "diagnostics": [] })
    );
}

#[test]
fn mistakes_are_named_with_their_lines() {
    let folder = Folder::new("check-broken");
    let program = folder.file("broken.p4", BROKEN);
    let said = millrace(&["check", &program]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert!(said.err.contains("broken.p4:4:"), "{}", said.err);
    assert!(said.err.ends_with("1 error\n"), "{}", said.err);
    let said = millrace(&["check", "--json", &program]);
    let object = said.json();
    assert_eq!((said.code, &object["ok"], &object["diagnostics"][0]["line"]), (1, &json!(false), &json!(4)));
    let program = folder.file("unknown.p4", "const bit<8> x = y;\n");
    let said = millrace(&["check", &program]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("unknown.p4:1:18"), "{}", said.err);
}

/// A program for v1model with that in its ingress control.
fn v1model(ingress: &str) -> String {
    format!(
        "#include <core.p4>
#include <v1model.p4>
header h_t {{ bit<32> a; bit<32> b; }}
struct H {{ h_t h; }}
struct M {{}}
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {{
    state start {{ p.extract(h.h); transition accept; }}
}}
control V(inout H h, inout M m) {{ apply {{}} }}
control I(inout H h, inout M m, inout standard_metadata_t s) {{
{ingress}
}}
control E(inout H h, inout M m, inout standard_metadata_t s) {{ apply {{}} }}
control D(packet_out p, in H h) {{ apply {{ p.emit(h); }} }}
V1Switch(P(), V(), I(), E(), V(), D()) main;
"
    )
}

#[test]
fn check_finds_what_compile_finds() {
    let folder = Folder::new("check-as-compile");
    for (name, ingress, said) in [
        (
            "two-lpm.p4",
            "table t { key = { h.h.a : lpm; h.h.b : lpm; } actions = { NoAction; } } apply { t.apply(); }",
            "lpm",
        ),
        (
            "indirect.p4",
            "counter(8, CounterType.packets) c;
             table t { key = { h.h.a : exact; } actions = { NoAction; } counters = c; } apply { t.apply(); }",
            "counters",
        ),
    ] {
        let program = folder.file(name, &v1model(ingress));
        let checked = millrace(&["check", &program]);
        let compiled = millrace(&["compile", &program, "--emit", "ir"]);
        assert_eq!((checked.code, compiled.code), (1, 1), "{name}: {}", checked.err);
        assert!(checked.err.contains(said) && checked.err.contains(&format!("{name}:")), "{}", checked.err);
        assert_eq!(checked.err, compiled.err);
    }
    // A library of parsers and controls is no mistake, but nothing can run it.
    let library = folder.file("library.p4", "#include <core.p4>\nheader h_t { bit<8> a; }\n");
    let said = millrace(&["check", &library]);
    assert!(said.code == 0 && said.err.contains("Warning: the program has no `main`"), "{}", said.err);
}

#[test]
fn habits_of_other_languages_get_a_hint() {
    let folder = Folder::new("check-hints");
    let header = "header ";
    for (name, ingress, said) in [
        ("assign.p4", "apply { if (h.h.a = 1) { } }", "`==` compares"),
        ("while.p4", "apply { while (h.h.a < 3) { h.h.a = 4; } }", "P4 has no `while`"),
        ("type.p4", "apply { uint16_t x; }", "`bit<16>`"),
        ("fraction.p4", "apply { float x; }", "no numbers with a fraction"),
        ("mac.p4", "apply { bit<48> x = \"00:11:22:33:44:5F\"; }", "`0x00112233445f`"),
        ("ip.p4", "apply { if (h.h.a == \"10.0.0.1\") { } }", "`0x0a000001`"),
        ("dotted.p4", "apply { h.h.a = 10.0.0.1; }", "`0x0a000001`"),
        ("increment.p4", "apply { h.h.a++; }", "`x = x + 1`"),
        (
            "later.p4",
            "table t { key = { h.h.a : exact; } actions = { later; } } action later() {} apply { t.apply(); }",
            "move the declaration up",
        ),
    ] {
        let program = folder.file(name, &v1model(ingress));
        let checked = millrace(&["check", &program]);
        assert!(checked.code == 1 && checked.err.contains(said), "{name}: {}", checked.err);
    }
    for (name, ingress, said) in [
        ("egress-port.p4", "apply { s.egress_port = 3; }", "`egress_spec` chooses the port"),
        (
            "list.p4",
            "apply { clone_preserving_field_list(CloneType.I2E, 5, 3); }",
            "field list 3 has no fields",
        ),
    ] {
        let program = folder.file(name, &v1model(ingress));
        let checked = millrace(&["check", &program]);
        assert!(checked.code == 0 && checked.err.contains(said), "{name}: {}", checked.err);
    }
    let text = v1model("apply {}").replace("struct H { h_t h; }", "struct H { h_t h; h_t[3] st; }");
    let program = folder.file("stack.p4", &text.replace("p.extract(h.h)", "p.extract(h.st)"));
    let checked = millrace(&["check", &program]);
    assert!(checked.code == 1 && checked.err.contains("`.next`"), "{}", checked.err);
    let odd = v1model("apply {}").replacen(header, "header odd_t { bit<3> x; bit<6> y; }\nheader ", 1);
    let checked = millrace(&["check", &folder.file("odd.p4", &odd)]);
    assert!(
        checked.code == 0 && checked.err.contains("9 bits, which do not fill 2 bytes"),
        "{}",
        checked.err
    );
}

#[test]
fn editors_get_one_line_for_each_place() {
    let folder = Folder::new("check-gcc");
    let program = folder.file("wrong.p4", "const bit<8> x = 1;\nconst bit<8> x = y;\n");
    let said = millrace(&["check", "--diagnostics", "gcc", &program]);
    let expected = [
        ":2:14: error: `x` is declared twice in this scope [E0102]",
        ":1:14: note: first declared here",
        ":2:18: error: no value named `y` is visible here [E0101]",
    ];
    for line in expected {
        assert!(said.err.lines().any(|l| l == format!("{program}{line}")), "{line}\n{}", said.err);
    }
}

#[test]
fn p4_14_is_recognised() {
    assert_eq!(millrace(&["check", "programs/nat_14.p4"]).code, 0);
    let said = millrace(&["check", "--std", "p4-16", "programs/nat_14.p4"]);
    assert!(said.code == 1, "{}", said.err);
    let folder = Folder::new("check-14");
    let text = include_str!("../../../../programs/nat_14.p4");
    assert_eq!(millrace(&["check", &folder.file("nat.p4_14", text)]).code, 0);
}

#[test]
fn actions_of_one_name_are_entered_by_the_table_that_has_them() {
    let folder = Folder::new("check-one-name");
    let program = folder.file(
        "nop.p4",
        &v1model(
            "@name(\".nop\") action nop_0() {}
             @name(\".nop\") action nop_1() {}
             action send(@name(\"port\") bit<9> p) { s.egress_spec = p; }
             table t { key = { h.h.a : exact; } actions = { nop_0; send; } }
             table u { key = { h.h.b : exact; } actions = { nop_1; send; } }
             apply { t.apply(); u.apply(); }",
        ),
    );
    let info = millrace(&["p4info", &program]);
    assert_eq!((info.code, info.out.matches("name: \"nop\"").count()), (0, 1), "{}", info.out);
    let test = folder.file(
        "nop.stf",
        "add I.t h.h.a:1 send(port:3)\nadd I.t h.h.a:2 nop()\nadd I.u h.h.b:2 nop()\nadd I.u h.h.b:5 send(port:4)
packet 0 00000001 00000002\nexpect 3 00000001 00000002\npacket 0 00000002 00000005\nexpect 4 00000002 00000005\n",
    );
    for engine in ["interp", "jit"] {
        let said = millrace(&["stf", &program, &test, "--engine", engine]);
        assert_eq!(said.code, 0, "{engine}: {}{}", said.out, said.err);
    }
    let image = folder.path("nop.json");
    assert_eq!(millrace(&["compile", &program, "-o", &image]).code, 0);
    let image: serde_json::Value = serde_json::from_slice(&std::fs::read(image).unwrap()).unwrap();
    let actions = image["actions"].as_array().unwrap();
    for (at, action) in actions.iter().enumerate() {
        assert_eq!(action["id"], at, "clients of bmv2 take an id for a position: {actions:?}");
    }
    assert_eq!(actions.iter().find(|a| a["name"] == "I.send").unwrap()["runtime_data"][0]["name"], "port");
}

#[test]
fn several_programs_are_checked_also_after_a_wrong_one() {
    let folder = Folder::new("check-several");
    let broken = folder.file("broken.p4", BROKEN);
    let programs = ["programs/router.p4", &broken, "nowhere.p4", "programs/firewall.p4"];
    let said = millrace(&[&["check"], &programs[..]].concat());
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert!(said.err.contains("broken.p4:4:") && said.err.contains("nowhere.p4"), "{}", said.err);
    let said = millrace(&[&["check", "--json"], &programs[..]].concat());
    let object = said.json();
    let oks: Vec<_> = (0..4).map(|at| object["files"][at]["ok"].clone()).collect();
    assert_eq!((said.code, oks), (1, vec![json!(true), json!(false), json!(false), json!(true)]));
    assert_eq!((&object["ok"], &object["files"][1]["file"]), (&json!(false), &json!(broken)));
    assert!(object["diagnostics"].as_array().is_some_and(|list| !list.is_empty()));
    let said = millrace(&["check", "programs/router.p4", "programs/firewall.p4"]);
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (0, "", ""));
}

#[test]
fn a_program_may_come_from_standard_input() {
    let text = std::fs::read_to_string(root().join("programs/router.p4")).unwrap();
    let said = millrace_with_input(&["check", "-"], &text);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let said = millrace_with_input(&["check", "--json", "programs/firewall.p4", "-"], BROKEN);
    let object = said.json();
    assert_eq!((said.code, &object["files"][1]), (1, &json!({ "file": "-", "ok": false, "error": null })));
    assert_eq!(
        (&object["diagnostics"][0]["file"], &object["diagnostics"][0]["line"]),
        (&json!("<stdin>"), &json!(4))
    );
    assert_eq!(millrace_with_input(&["check", "-", "-"], &text).code, 2);
}

#[test]
fn includes_and_macros_come_from_the_command_line() {
    let folder = Folder::new("check-options");
    let program =
        folder.file("main.p4", "#include \"part.p4\"\n#ifdef WIDE\nconst bit<WIDE> x = PART;\n#endif\n");
    std::fs::create_dir_all(folder.path("inc")).unwrap();
    folder.file("inc/part.p4", "#define PART 300\n");
    assert_eq!(millrace(&["check", &program]).code, 1, "the included file is not found");
    let include = folder.path("inc");
    let ok = |arguments: &[&str]| millrace(&[&["check", &program, "-I", &include], arguments].concat()).code;
    assert_eq!(ok(&[]), 0);
    assert_eq!(ok(&["-D", "WIDE=16"]), 0);
    assert_eq!(ok(&["-DWIDE"]), 0, "as 1, a value that is cut");
    assert_eq!(ok(&["-D", "WIDE=x"]), 1);
}

#[test]
fn a_file_that_is_not_there_is_an_error_and_wrong_usage_another() {
    let said = millrace(&["check", "nowhere.p4"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("nowhere.p4"), "{}", said.err);
    for wrong in [
        &["check"][..],
        &["chekc", "programs/router.p4"],
        &["check", "--fast", "programs/router.p4"],
        &["check", "--std", "c99", "programs/router.p4"],
        &["stf", "programs/router.p4"],
        &["stf", "--engine", "fpga", "programs/router.p4", "programs/router.stf"],
        &["compile", "programs/router.p4"],
        &[],
    ] {
        let said = millrace(wrong);
        assert_eq!(said.code, 2, "{wrong:?}: {}", said.err);
        assert!(!said.err.is_empty(), "{wrong:?}");
    }
    assert_eq!(millrace(&["--version"]).code, 0);
    assert_eq!(millrace(&["run", "--help"]).code, 0);
}

#[test]
fn both_languages_are_read_by_every_command() {
    let program = "tests/p4_14/state.p4";
    for args in [
        &["check", "--std", "p4-14", program][..],
        &["p4info", "--std", "p4-14", program],
        &["compile", "--std", "p4-14", "--emit", "ir", program],
        &["trace", "--std", "p4-14", program, "--port", "0", "--packet", "01020304050600"],
    ] {
        let said = millrace(args);
        assert_eq!(said.code, 0, "{args:?}: {}", said.err);
    }
    // Findings are shown in the program as it was written, also those of what it became.
    let said = millrace(&["check", "--std", "p4-14", "programs/router.p4"]);
    assert_eq!(said.code, 1);
    let said = millrace(&["check", "--std", "p4-16", program]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("state.p4:3:"), "{}", said.err);
}

#[test]
fn p4info_has_the_ids_of_p4c() {
    // Names, and so ids, of the basic exercise of the P4 tutorials; the numbers are those of its build.
    let folder = Folder::new("p4info");
    let program = folder.file("basic.p4", BASIC);
    let output = folder.path("basic.p4info.txtpb");
    let said = millrace(&["p4info", &program, "-o", &output]);
    assert_eq!((said.code, said.out.as_str()), (0, ""), "{}", said.err);
    let text = std::fs::read_to_string(&output).unwrap();
    assert_eq!(text, millrace(&["p4info", &program]).out);
    for part in [
        "pkg_info {\n  arch: \"v1model\"\n}\n",
        "tables {\n  preamble {\n    id: 37375156\n    name: \"MyIngress.ipv4_lpm\"\n    alias: \"ipv4_lpm\"\n  }\n",
        "  match_fields {\n    id: 1\n    name: \"hdr.ipv4.dstAddr\"\n    bitwidth: 32\n    match_type: LPM\n  }\n",
        "  action_refs {\n    id: 28792405\n  }\n  action_refs {\n    id: 25652968\n  }\n",
        "  action_refs {\n    id: 21257015\n  }\n",
        "  initial_default_action {\n    action_id: 25652968\n  }\n  size: 1024\n}\n",
        "    id: 28792405\n    name: \"MyIngress.ipv4_forward\"\n    alias: \"ipv4_forward\"\n  }\n  params {\n    id: 1\n    \
         name: \"dstAddr\"\n    bitwidth: 48\n  }\n  params {\n    id: 2\n    name: \"port\"\n    bitwidth: 9\n  }\n",
    ] {
        assert!(text.contains(part), "{part}\nin\n{text}");
    }
}

#[test]
fn p4info_is_written_for_older_controllers_and_in_all_forms() {
    use millrace_p4runtime_api::config::P4Info;
    use prost::Message;
    let folder = Folder::new("p4info-forms");
    let program = folder.file("basic.p4", BASIC);
    let newest = millrace(&["p4info", &program]).out;
    let older = millrace(&["p4info", &program, "--p4runtime", "1.3"]).out;
    // What 1.3 does not have, as p4info.proto of its release says; all else stays as it is.
    let without = newest.replace("  initial_default_action {\n    action_id: 25652968\n  }\n", "");
    assert_ne!(without, newest);
    assert_eq!(older, without);
    assert_eq!(millrace(&["p4info", &program, "--p4runtime", "1.4"]).out, newest);
    let decoded = |args: &[&str], file: &str| {
        let said = millrace(&[&["p4info", &program, "-o", file], args].concat());
        assert_eq!(said.code, 0, "{}", said.err);
        P4Info::decode(&*std::fs::read(file).unwrap()).unwrap()
    };
    let (all, some) = (folder.path("all.bin"), folder.path("some.p4info"));
    let mut described = decoded(&[], &all);
    described.tables.iter_mut().for_each(|table| table.initial_default_action = None);
    assert_eq!(decoded(&["--format", "binary", "--p4runtime", "1.3"], &some), described);
    let json = folder.path("basic.json");
    assert_eq!(millrace(&["p4info", &program, "-o", &json]).code, 0);
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    assert_eq!(json["pkgInfo"]["arch"], "v1model");
    let said = millrace(&["p4info", &program, "--p4runtime", "1.2"]);
    assert_eq!(said.code, 2);
}

#[test]
fn the_ir_reads_back() {
    let said = millrace(&["compile", "programs/router.p4", "--emit", "ir"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let program = millrace_pipeline::text::parse(&said.out).unwrap();
    assert_eq!(millrace_pipeline::text::print(&program), said.out);
    assert!(program.tables.values().any(|table| table.name == "RouterIngress.ipv4_lpm"));
}

const BASIC: &str = r#"
#include <core.p4>
#include <v1model.p4>
header ipv4_t { bit<32> dstAddr; }
struct headers { ipv4_t ipv4; }
struct metadata {}
parser MyParser(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    state start { packet.extract(hdr.ipv4); transition accept; }
}
control MyVerifyChecksum(inout headers hdr, inout metadata meta) { apply {} }
control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    action drop() { mark_to_drop(standard_metadata); }
    action ipv4_forward(bit<48> dstAddr, bit<9> port) { standard_metadata.egress_spec = port; }
    table ipv4_lpm {
        key = { hdr.ipv4.dstAddr: lpm; }
        actions = { ipv4_forward; drop; NoAction; }
        size = 1024;
        default_action = drop();
    }
    apply { ipv4_lpm.apply(); }
}
control MyEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) { apply {} }
control MyComputeChecksum(inout headers hdr, inout metadata meta) { apply {} }
control MyDeparser(packet_out packet, in headers hdr) { apply { packet.emit(hdr.ipv4); } }
V1Switch(MyParser(), MyVerifyChecksum(), MyIngress(), MyEgress(), MyComputeChecksum(), MyDeparser()) main;
"#;

#[test]
fn what_several_workers_mean_is_said_when_it_is_asked_for() {
    let folder = Folder::new("check-workers");
    let program = folder.file(
        "cells.p4",
        "#include <v1model.p4>
struct none {}
register<bit<32>>(16) last;
parser p(packet_in b, out none h, inout none m, inout standard_metadata_t s) {
    state start { transition accept; }
}
control empty(inout none h, inout none m) { apply {} }
control i(inout none h, inout none m, inout standard_metadata_t s) {
    register<bit<32>>(16) seen;
    apply {
        bit<32> count;
        seen.read(count, 1);
        last.write(0, count);
        seen.write(1, count + 1);
        if (count > 4) { seen.write(1, 0); }
        random(count, 0, 9);
        last.read(count, 0);
    }
}
control e(inout none h, inout none m, inout standard_metadata_t s) { apply {} }
control d(packet_out b, in none h) { apply {} }
V1Switch(p(), empty(), i(), e(), empty(), d()) main;
",
    );
    let codes = |args: &[&str]| {
        let said = millrace(&[&["check", "--json", &program], args].concat()).json();
        let found = said["diagnostics"].as_array().unwrap().clone();
        found
            .iter()
            .map(|one| (one["code"].clone(), one["line"].clone(), one["column"].clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(codes(&[]), []);
    assert_eq!(codes(&["--cores", "1"]), []);
    // Statements that follow one another are one step, and a register that is written before it is read loses nothing.
    let expected = [("shared-register", 15, 26), ("own-random", 16, 9)];
    assert_eq!(
        codes(&["--cores", "2"]),
        expected.map(|(code, line, column)| (json!(code), json!(line), json!(column)))
    );
    let said = millrace(&["check", "--cores", "65", &program]);
    assert!(said.code == 2 && said.err.contains("1..=64"), "{}", said.err);
}

/// A program that looks like P4_14 says so where it is wrong; nothing that a macro of several lines has is taken for that.
#[test]
fn the_language_that_is_assumed_is_told() {
    let folder = Folder::new("check-language");
    let old = folder.file(
        "old.p4",
        "header_type h_t { fields { f : 8; } }\nheader h_t h;\nparser start { return nowhere; }\n",
    );
    let said = millrace(&["check", &old]);
    assert!(said.code == 1 && said.err.contains("it is read as P4_14"), "{}", said.err);
    let said = millrace(&["check", "--std", "p4-14", &old]);
    assert!(said.code == 1 && !said.err.contains("it is read as P4_14"), "{}", said.err);
    let text = "#include <core.p4>\ncontrol c(inout bit<8> x) {\n#define BODY \\\n    { } \\\n}\n    action a() { }\n    \
                table t { actions = { a; } }\n    apply { t.apply(); }\n}\n";
    let new = folder.file("new.p4", text);
    assert_eq!(millrace(&["check", &new]).code, 0, "{}", millrace(&["check", &new]).err);
    // Macros that are defined without a word, and not.
    let asks =
        folder.file("asks.p4", "#include <core.p4>\n#ifdef __TARGET_BMV2__\nconst bit<8> x = y;\n#endif\n");
    assert_eq!(millrace(&["check", &asks]).code, 1);
    assert_eq!(millrace(&["check", "-U", "__TARGET_BMV2__", &asks]).code, 0);
}
