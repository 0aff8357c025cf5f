//! `millrace rtl`: what it says of the hardware of a program.

use crate::common::millrace;

/// The parser is in ingress, the deparser in egress, and controls where they are applied. The total of each stage is that of its parts.
#[test]
fn rtl_tells_what_each_part_takes() {
    let said = millrace(&["rtl", "programs/router.p4", "--json"]).json();
    let stages = [
        ("ingress", ["parser RouterParser", "control RouterVerifyChecksum", "control RouterIngress"]),
        ("egress", ["control RouterEgress", "control RouterComputeChecksum", "deparser RouterDeparser"]),
    ];
    let areas = said["areas"].as_array().unwrap();
    assert_eq!(areas.len(), stages.len(), "{areas:?}");
    for (area, (stage, bodies)) in areas.iter().zip(stages) {
        let parts = area["parts"].as_array().unwrap();
        let part = |name: &str| parts.iter().find(|part| part["part"] == *name);
        assert_eq!(area["of"], stage);
        for body in bodies {
            let takes = part(body).unwrap_or_else(|| panic!("{body} in {area}"));
            assert!(takes["luts"].as_u64() > Some(0) && takes["ffs"] == 0, "{takes}");
        }
        let is_body =
            |name: &str| ["parser ", "control ", "deparser "].iter().any(|kind| name.starts_with(kind));
        let found = parts.iter().filter_map(|part| part["part"].as_str()).filter(|name| is_body(name));
        assert_eq!(found.count(), bodies.len(), "{area}");
        let registers = part("pipeline registers").unwrap();
        assert!(registers["luts"] == 0 && registers["ffs"].as_u64() > Some(0), "{registers}");
        for key in ["luts", "ffs", "memory_luts", "memory_bits", "blocks", "multipliers"] {
            let all: u64 = parts.iter().filter_map(|part| part[key].as_u64()).sum();
            assert_eq!(area["total"][key], all, "{key} of {area}");
        }
    }
    let text = millrace(&["rtl", "programs/router.p4"]).out;
    assert!(text.lines().any(|line| line.trim_start().starts_with("parser RouterParser ")), "{text}");
}
