//! `check`, `p4info`, `compile` and wrong usage: exit status, what is said, and where.

use crate::common::{Folder, millrace};
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
    let said = millrace(&["check", program]);
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
