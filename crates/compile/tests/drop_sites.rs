//! Every place of a program that asks for a drop is known by its line, its block and the tables that run it.

use millrace_compile::{Options, Source, Standard, check};
use millrace_pipeline::{Program, text};
use std::path::Path;
use std::sync::Arc;

fn compile(source: Source<'_>, standard: Standard) -> Arc<Program> {
    let checked = check(source, standard, &Options::default());
    assert!(!checked.has_errors(), "{:?}", checked.findings.first().map(|found| checked.render(found)));
    checked.lower().unwrap()
}

fn of_file(path: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    sites(&compile(Source::Path(&path), Standard::P4_16))
}

/// All places; first those that nothing asked for.
fn sites(program: &Program) -> Vec<String> {
    assert_eq!(text::parse(&program.to_string()).unwrap().drop_sites, program.drop_sites, "the text form");
    program.drop_sites.iter().map(ToString::to_string).collect()
}

const V1MODEL: &str = r"
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; }
struct headers { h_t h; }
struct meta { }
parser P(packet_in p, out headers hdr, inout meta m, inout standard_metadata_t sm) {
    state start { p.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout meta m) { apply { } }
control Inner(inout standard_metadata_t sm) { apply {
    mark_to_drop(sm);
} }
control I(inout headers hdr, inout meta m, inout standard_metadata_t sm) {
    Inner() inner;
    action refuse() {
        mark_to_drop(sm);
    }
    action shared() {
        sm.egress_spec = 511;
    }
    action send(bit<9> port) {
        sm.egress_spec = port;
    }
    action keep() { sm.egress_spec = 3; }
    table t { key = { hdr.h.a : exact; } actions = { refuse; shared; send; keep; } }
    table u { actions = { shared; keep; } }
    apply {
        t.apply();
        u.apply();
        if (hdr.h.a == 7) {
            refuse();
        }
        if (hdr.h.a == 8) { inner.apply(sm); }
    }
}
control E(inout headers hdr, inout meta m, inout standard_metadata_t sm) { apply {
    if (hdr.h.a == 9) { mark_to_drop(sm); }
} }
control C(inout headers hdr, inout meta m) { apply { } }
control D(packet_out p, in headers hdr) { apply { p.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
";

#[test]
fn v1model_drops_where_it_is_marked_and_where_the_drop_port_is_or_may_be_written() {
    let found = sites(&compile(Source::Text("folder/demo.p4", V1MODEL), Standard::P4_16));
    // What sends to port 3 asks for nothing, and an action called directly is another place than one that a table runs.
    let wanted = [
        "",
        "mark_to_drop in I.refuse (demo.p4:17), of table I.t",
        "sm.egress_spec in I.shared (demo.p4:20), of one of the tables I.t, I.u",
        "sm.egress_spec in I.send (demo.p4:23), of table I.t",
        "mark_to_drop in I.refuse (demo.p4:17), called at line 32",
        "mark_to_drop in I.inner (demo.p4:12), called at line 34",
        "mark_to_drop in E (demo.p4:38)",
    ];
    assert_eq!(found.len(), wanted.len(), "{found:#?}");
    for site in wanted {
        assert!(found.iter().any(|found| found == site), "{site}: {found:#?}");
    }
}

#[test]
fn psa_drops_also_what_nothing_sends() {
    let wanted = [
        "no request to send the packet in ingress (psa_externs.p4:100)",
        "ingress_drop in ingress (psa_externs.p4:145)",
    ];
    assert_eq!(of_file("tests/programs/psa_externs.p4"), wanted);
    let found = of_file("tests/programs/psa_paths.p4");
    assert!(found.contains(&"ostd.drop in ingress (psa_paths.p4:130)".into()), "{found:#?}");
    assert!(found.contains(&"egress_drop in egress (psa_paths.p4:213)".into()), "{found:#?}");
}

#[test]
fn filters_and_cards_tell_the_state_that_rejects() {
    let found = of_file("tests/programs/ebpf_filter.p4");
    assert!(found[0].starts_with("the packet was not accepted in "), "{found:#?}");
    assert!(
        found.iter().any(|site| site.starts_with("reject in ") && site.contains(".start (")),
        "{found:#?}"
    );
    let found = of_file("tests/programs/xdp_redirect.p4");
    assert!(found[0].starts_with("no action was chosen in "), "{found:#?}");
    let drop = |site: &&String| site.contains(".drop (xdp_redirect.p4:51), of table ");
    assert_eq!(found.iter().filter(drop).count(), 1, "{found:#?}");
    assert!(!found.iter().any(|site| site.contains("xdp_redirect.p4:46")), "a redirection: {found:#?}");
    let found = of_file("tests/programs/sume_switch.p4");
    assert!(found[0].starts_with("no destination port in "), "{found:#?}");
    assert!(found.iter().any(|site| site.contains("(sume_switch.p4:75)")), "{found:#?}");
    let found = of_file("tests/programs/ubpf_switch.p4");
    for line in [57, 58, 59, 60] {
        assert!(found.iter().any(|site| site.contains(&format!("(ubpf_switch.p4:{line})"))), "{found:#?}");
    }
    let found = of_file("tests/programs/pna_nic.p4");
    for line in [58, 68] {
        assert!(found.iter().any(|site| site.contains(&format!("(pna_nic.p4:{line})"))), "{found:#?}");
    }
}

#[test]
fn p4_14_drops_have_the_lines_of_the_program() {
    let text = "header_type h { fields { f : 8; } }\nheader h a;\nparser start { extract(a); return ingress; }\n\
                action gone() {\n  drop();\n}\naction on() { modify_field(standard_metadata.egress_spec, 1); }\n\
                table t { reads { a.f : exact; } actions { gone; on; } }\ncontrol ingress { apply(t); }";
    let found = sites(&compile(Source::Text("old.p4", text), Standard::P4_14));
    let wanted = ["", "mark_to_drop in gone (old.p4:5), of table t", "no egress port was set in ingress"];
    assert_eq!(found, wanted);
}

#[test]
fn too_many_places_share_the_last_number() {
    let calls = "mark_to_drop(sm);\n".repeat(5000);
    let text = V1MODEL.replace("inner.apply(sm);", &calls);
    let program = compile(Source::Text("demo.p4", &text), Standard::P4_16);
    assert_eq!(program.drop_sites.len(), millrace_pipeline::limits::MAX_DROP_SITES);
    assert_eq!(program.drop_sites.last().unwrap().to_string(), "one of many more places");
}
