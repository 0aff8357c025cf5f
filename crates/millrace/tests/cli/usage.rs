//! `compile --report`: what of the switch a program uses.

use crate::common::{Folder, millrace};
use serde_json::json;

/// Sets a multicast group that is never other than 0, and declares what no packet meets.
const PROGRAM: &str = r#"
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<128> b; }
header never_t { bit<8> a; }
struct headers_t { h_t h; never_t never; }
struct metadata_t { bit<16> group; }
parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start { packet.extract(hdr.h); transition accept; }
}
control Check(inout headers_t hdr, inout metadata_t meta) { apply { } }
control In(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    counter(4, CounterType.packets) used;
    counter(4, CounterType.packets) unused;
    register<bit<8>>(4) cells;
    action copy() { clone(CloneType.I2E, 1); }
    action send(bit<9> port) { std.egress_spec = port; }
    table applied { key = { hdr.h.a : exact; } actions = { send; } }
    table other { key = { hdr.h.a : ternary; } actions = { copy; } }
    apply {
        std.mcast_grp = meta.group;
        used.count(1);
        if (hdr.h.b + 1 == 7) { applied.apply(); } else { hdr.h.a = hdr.h.a |-| 1; }
        if (false) { other.apply(); cells.write(0, 1); }
    }
}
control Out(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) { apply { } }
control Deparse(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.h); } }
V1Switch(Parse(), Check(), In(), Out(), Check(), Deparse()) main;
"#;

#[test]
fn what_packets_cannot_reach_is_not_used() {
    let folder = Folder::new("usage");
    let path = folder.path("some.p4");
    std::fs::write(&path, PROGRAM).unwrap();
    let done = millrace(&["compile", &path, "--report", "--json"]);
    assert_eq!(done.code, 0, "{}", done.err);
    let report = done.json();
    let used: serde_json::Map<_, _> = report["uses"]
        .as_object()
        .unwrap()
        .iter()
        .filter(|(_, places)| !places.as_array().unwrap().is_empty())
        .map(|(key, places)| (key.clone(), places.clone()))
        .collect();
    let expected = json!({ "extract": ["Parse"], "exact": ["In.applied"], "counters": ["In"], "wide": ["In"], "drop": ["In"], "unicast": ["In"] });
    assert_eq!(serde_json::Value::Object(used), expected);
    let surplus = json!([
        { "kind": "counter", "name": "In.unused" }, { "kind": "header", "name": "hdr.never" }, { "kind": "register", "name": "In.cells" }
    ]);
    assert_eq!((&report["surplus"], &report["header_bits"]), (&surplus, &json!(8 + 128 + 8)));
}

#[test]
fn the_text_says_what_is_not_there() {
    let done = millrace(&["compile", "programs/router.p4", "--report"]);
    assert_eq!(done.code, 0, "{}", done.err);
    let (used, rest) = done.out.split_once("Not used").unwrap();
    assert!(used.contains("longest prefix keys: RouterIngress.ipv4_lpm, RouterIngress.ipv6_lpm\n"), "{used}");
    assert!(
        rest.contains("  packets are cloned\n") && rest.contains("Nothing of the program is surplus."),
        "{rest}"
    );
    let both = millrace(&["compile", "programs/router.p4", "--report", "--time"]);
    assert_eq!(both.code, 2);
}
