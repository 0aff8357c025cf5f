//! P4_14 programs with as many of one thing as fit.

use crate::program::{count, fill, old, old_ingress, repeat};
use crate::{Family, Size};

macro_rules! families {
    ($($name:literal $make:expr;)*) => { &[$(Family { name: $name, size: Size::Bytes, make: $make }),*] };
}

/// The families; what they get is the number of bytes.
pub(crate) const FAMILIES: &[Family] = families! {
    "old-header-types" |n| old_ingress(fill(n, |i| format!("header_type t{i} {{ fields {{ a : 8; }} }}\n")), "");
    "old-fields" |n| old_ingress(format!("header_type t {{ fields {{ {} }} }} metadata t u;", fill(n, |i| format!("a{i} : 8;"))), "");
    "old-fields-of-a-header" |n| old_ingress(format!("header_type t {{ fields {{ {} }} }} header t u;", fill(n, |i| format!("a{i} : 8;"))), "");
    "old-headers" |n| old_ingress(fill(n, |i| format!("header h_t h{i};\n")), "");
    "old-headers-extracted" |n| {
        let n = count(n, 44);
        old_ingress(format!("{} parser s {{ {} return ingress; }}", repeat(n, |i| format!("header h_t h{i};\n")), repeat(n, |i| format!("extract(h{i});"))), "")
    };
    "old-headers-in-states" |n| {
        let n = count(n, 90);
        old_ingress(format!("{} parser s{n} {{ return ingress; }}", repeat(n, |i| format!("header h_t h{i}; parser s{i} {{ extract(h{i}); return s{}; }}\n", i + 1))), "")
            .entry("start", "s0")
    };
    "old-metadata" |n| old_ingress(fill(n, |i| format!("metadata m_t m{i};\n")), "");
    "old-metadata-initial" |n| old_ingress(fill(n, |i| format!("metadata m_t m{i} {{ x : {i}; }}\n")), "");
    "old-stacks" |n| old_ingress(fill(n, |i| format!("header h_t h{i}[4];\n")), "");
    "old-states" |n| old_ingress(fill(n, |i| format!("parser s{i} {{ return ingress; }}\n")), "");
    "old-states-in-a-row" |n| {
        let n = count(n, 44);
        old_ingress(format!("{} parser s{n} {{ return ingress; }}", repeat(n, |i| format!("parser s{i} {{ extract(h); return s{}; }}\n", i + 1))), "").entry("start", "s0")
    };
    "old-states-selecting" |n| {
        let n = count(n, 90);
        old_ingress(format!("{} parser s{n} {{ return ingress; }}", repeat(n, |i| format!("parser s{i} {{ extract(h); return select(h.a) {{ 1 : s{}; default : ingress; }} }}\n", i + 1))), "").entry("start", "s0")
    };
    "old-cases" |n| old_ingress(format!("parser s {{ return select(m.x) {{ {} default : ingress; }} }}", fill(n, |i| format!("{i} : ingress;"))), "").entry("start", "s");
    "old-cases-masked" |n| old_ingress(format!("parser s {{ return select(m.x) {{ {} default : ingress; }} }}", fill(n, |i| format!("{i} mask 255 : ingress;"))), "").entry("start", "s");
    "old-keys-of-a-select" |n| old_ingress(format!("parser s {{ return select({}m.x) {{ default : ingress; }} }}", fill(n, |_| "m.x,")), "").entry("start", "s");
    "old-set-metadata" |n| old_ingress(format!("parser s {{ {} return ingress; }}", fill(n, |_| "set_metadata(m.x, 1);")), "").entry("start", "s");
    "old-value-sets" |n| old_ingress(fill(n, |i| format!("parser_value_set v{i};\n")), "");
    "old-exceptions" |n| old_ingress(fill(n, |i| format!("parser_exception e{i} {{ return ingress; }}\n")), "");
    "old-exceptions-raised" |n| {
        let n = count(n, 120);
        old_ingress(repeat(n, |i| format!("parser_exception e{i} {{ return ingress; }}\nparser s{i} {{ return select(m.x) {{ 1 : parse_error e{i}; default : s{}; }} }}\n", i + 1))
            + &format!("parser s{n} {{ return ingress; }}"), "").entry("start", "s0")
    };
    "old-actions" |n| old_ingress(fill(n, |i| format!("action a{i}() {{ }}\n")), "");
    "old-actions-of-a-table" |n| {
        let n = count(n, 28);
        old_ingress(format!("{} table t {{ actions {{ {} }} }}", repeat(n, |i| format!("action a{i}() {{ }}\n")), repeat(n, |i| format!("a{i};"))), "apply(t);")
    };
    "old-action-parameters" |n| old_ingress(format!("action a({}z) {{ }} table t {{ actions {{ a; }} }}", fill(n, |i| format!("a{i},"))), "apply(t);");
    "old-action-parameters-used" |n| {
        let n = count(n, 40);
        old_ingress(format!("action a({}z) {{ {} }} table t {{ actions {{ a; }} }}", repeat(n, |i| format!("a{i},")), repeat(n, |i| format!("modify_field(m.x,a{i});"))), "apply(t);")
    };
    "old-primitives" |n| old_ingress(format!("action a() {{ {} }} table t {{ actions {{ a; }} }}", fill(n, |_| "modify_field(m.x,m.y);")), "apply(t);");
    "old-tables" |n| old_ingress(fill(n, |i| format!("table t{i} {{ actions {{ nothing; }} }}\n")), "");
    "old-tables-applied" |n| {
        let n = count(n, 52);
        old_ingress(repeat(n, |i| format!("table t{i} {{ actions {{ nothing; }} }}\n")), repeat(n, |i| format!("apply(t{i});")))
    };
    "old-table-keys" |n| old_ingress(format!("table t {{ reads {{ {} }} actions {{ nothing; }} }}", fill(n, |_| "m.x : exact;")), "apply(t);");
    "old-table-branches" |n| {
        let n = count(n, 44);
        old_ingress(format!("{} table t {{ actions {{ {} }} }}", repeat(n, |i| format!("action a{i}() {{ }}\n")), repeat(n, |i| format!("a{i};"))),
            format!("apply(t) {{ {} }}", repeat(n, |i| format!("a{i} {{ }}"))))
    };
    "old-controls" |n| old_ingress(fill(n, |i| format!("control c{i} {{ }}\n")), "");
    "old-controls-called" |n| {
        let n = count(n, 28);
        old_ingress(repeat(n, |i| format!("control c{i} {{ }}\n")), repeat(n, |i| format!("c{i}();")))
    };
    "old-calls-of-a-control" |n| old_ingress("table t { actions { nothing; } }\ncontrol c { if (m.x == 1) { apply(t); } }", fill(n, |_| "c();"));
    "old-calls-of-a-large-control" |n| old_ingress(format!("control c {{ {} }}", fill(n / 2, |_| "if (m.x == 1) { }")), fill(n / 2, |_| "c();"));
    "old-applications" |n| old_ingress("table t { actions { nothing; } }", fill(n, |_| "apply(t);"));
    "old-ifs" |n| old_ingress("table t { actions { nothing; } }", fill(n, |_| "if (m.x == 1) { }"));
    "old-counters" |n| old_ingress(fill(n, |i| format!("counter c{i} {{ type : packets; instance_count : 1; }}\n")), "");
    "old-direct-counters" |n| {
        let n = count(n, 100);
        old_ingress(repeat(n, |i| format!("table t{i} {{ actions {{ nothing; }} }} counter c{i} {{ type : packets; direct : t{i}; }}\n")), "")
    };
    "old-meters" |n| old_ingress(fill(n, |i| format!("meter c{i} {{ type : packets; instance_count : 1; }}\n")), "");
    "old-registers" |n| old_ingress(fill(n, |i| format!("register c{i} {{ width : 8; instance_count : 1; }}\n")), "");
    "old-field-lists" |n| old_ingress(fill(n, |i| format!("field_list l{i} {{ m.x; }}\n")), "");
    "old-field-list-fields" |n| old_ingress(format!("field_list l {{ {} }} action a() {{ generate_digest(1, l); }} table t {{ actions {{ a; }} }}", fill(n, |_| "m.x;")), "apply(t);");
    "old-field-lists-of-a-large-list" |n| old_ingress(format!("field_list k {{ {} }} field_list l {{ {} }} action a() {{ generate_digest(1, l); }} table t {{ actions {{ a; }} }}",
        fill(n / 2, |_| "m.x;"), fill(n / 2, |_| "k;")), "apply(t);");
    "old-field-lists-recursive" |n| old_ingress(fill(n, |i| format!("field_list l{i} {{ l{i}; }}\n")), "");
    "old-calculations" |n| old_ingress(format!("field_list l {{ m.x; }} {}", fill(n, |i| format!("field_list_calculation k{i} {{ input {{ l; }} algorithm : crc16; output_width : 16; }}\n"))), "");
    "old-calculated-fields" |n| old_ingress(format!("field_list l {{ m.x; }} field_list_calculation k {{ input {{ l; }} algorithm : crc16; output_width : 16; }} {}",
        fill(n, |_| "calculated_field h.a { update k; }\n")), "");
    "old-action-profiles" |n| old_ingress(fill(n, |i| format!("action_profile p{i} {{ actions {{ nothing; }} size : 1; }}\n")), "");
    "old-selectors" |n| old_ingress(fill(n, |i| format!("action_selector p{i} {{ selection_key : k; }}\n")), "");
    "old-pragmas" |n| old_ingress(format!("{} action a() {{ }}", fill(n, |i| format!("@pragma x{i} y\n"))), "");
    "old-undeclared" |n| old_ingress("", fill(n, |i| format!("apply(u{i});")));
    "old-undeclared-fields" |n| old_ingress(format!("action a() {{ {} }} table t {{ actions {{ a; }} }}", fill(n, |i| format!("modify_field(m.u{i},1);"))), "apply(t);");
    "old-duplicates" |n| old_ingress(fill(n, |_| "action a() { }\n"), "");
    "old-syntax-errors" |n| old(fill(n, |_| "x y;\n"));
    "old-hash" |n| old_ingress(format!("field_list l {{ m.x; }} field_list_calculation k {{ input {{ l; }} algorithm : crc16; output_width : 16; }} action a() {{ {} }} table t {{ actions {{ a; }} }}",
        fill(n, |_| "modify_field_with_hash_based_offset(m.x,0,k,16);")), "apply(t);");
    "old-blackboxes" |n| old_ingress(fill(n, |i| format!("blackbox_type b{i} {{ }}\n")), "");
    "old-number" |n| old_ingress(format!("action a() {{ modify_field(m.x, {}); }} table t {{ actions {{ a; }} }}", "7".repeat(n)), "apply(t);");
    "old-numbers" |n| old_ingress(format!("action a() {{ {} }} table t {{ actions {{ a; }} }}", fill(n, |_| format!("modify_field(m.x, 32w0x{});", "7".repeat(1000)))), "apply(t);");
    "old-field-width" |n| old_ingress(format!("header_type t {{ fields {{ a : {}; }} }}", "7".repeat(n)), "");
    "old-table-size" |n| old_ingress(format!("table t {{ actions {{ nothing; }} size : {}; }}", "7".repeat(n)), "apply(t);");
    "old-instances" |n| old_ingress(format!("register r {{ width : 8; instance_count : {}; }}", "7".repeat(n)), "");
    "old-pushes" |n| old_ingress(format!("header h_t s[200]; action a() {{ {} }} table t {{ actions {{ a; }} }}", fill(n, |_| "push(s,1);")), "apply(t);");
    "old-latest" |n| old_ingress(format!("header h_t s[200]; parser k {{ {} return ingress; }}", fill(n, |_| "extract(s[next]);set_metadata(m.x,latest.a);")), "").entry("start", "k");
    "old-checksums" |n| old_ingress(format!("field_list l {{ h.a; }} field_list_calculation k {{ input {{ l; }} algorithm : csum16; output_width : 16; }} {}",
        fill(n, |i| format!("header h_t g{i}; calculated_field g{i}.a {{ update k if (valid(g{i})); }}\n"))), "");
};
