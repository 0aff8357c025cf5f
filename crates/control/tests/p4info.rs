//! P4Info of whole programs: what is in it and under which names. Ids of names are tested where they are made; here only
//! their first byte matters, and that references meet what they refer to.

use millrace_control::p4info::*;
use millrace_sema::check;
use millrace_syntax::{Options, parse_text};

fn describe_text(text: &str) -> P4Info {
    let parsed = parse_text("test.p4", text, &Options::default());
    assert!(!parsed.diagnostics.has_errors(), "{:?}", parsed.diagnostics);
    let checked = check(&parsed.program);
    assert!(!checked.diagnostics.has_errors(), "{:?}", checked.diagnostics);
    describe(&checked.program)
}

/// A program for v1model with this ingress, and these declarations before it.
fn v1model(declarations: &str, parser: &str, ingress: &str) -> P4Info {
    describe_text(&format!(
        "#include <core.p4>\n#include <v1model.p4>\nheader h_t {{ bit<16> kind; bit<8> ttl; }}\n\
         struct H {{ h_t h; }}\nstruct M {{ bit<8> a; }}\n{declarations}\n\
         parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t s) {{ {parser} }}\n\
         control V(inout H hdr, inout M m) {{ apply {{}} }}\n\
         control I(inout H hdr, inout M m, inout standard_metadata_t s) {{ {ingress} }}\n\
         control E(inout H hdr, inout M m, inout standard_metadata_t s) {{ apply {{}} }}\n\
         control D(packet_out p, in H hdr) {{ apply {{ p.emit(hdr.h); }} }}\n\
         V1Switch(P(), V(), I(), E(), V(), D()) main;\n"
    ))
}

const START: &str = "state start { p.extract(hdr.h); transition accept; }";

fn names<'a, T>(list: &'a [T], preamble: impl Fn(&'a T) -> &'a Preamble) -> Vec<&'a str> {
    list.iter().map(|item| preamble(item).name.as_str()).collect()
}

#[test]
fn tables_that_are_applied_with_their_actions() {
    let info = v1model(
        "",
        START,
        r#"
        action unused() {}
        action a(@id(7) bit<9> port, bit<8> x) { s.egress_spec = port; m.a = x; }
        @hidden action secret() {}
        @name(".global") action named() {}
        action called(bit<8> x) { m.a = x; }
        table never { actions = { unused; } }
        @brief("what") @id(0x02000009) table t {
            key = { hdr.h.kind: ternary @name("kind"); hdr.h.isValid(): exact; hdr.h.ttl: selector; m.a: range; }
            actions = { a; @tableonly named; secret; }
            const default_action = a(3, 4);
            size = 5;
            const entries = { (1, true, _, 0 .. 3): named(); }
        }
        table second { actions = { @defaultonly a; NoAction; } support_timeout = true; }
        apply { if (t.apply().hit) { called(1); } else { switch (second.apply().action_run) { default: {} } } }
        "#,
    );
    assert_eq!(names(&info.tables, |t| &t.preamble), ["I.t", "I.second"]);
    let t = &info.tables[0];
    assert_eq!((t.preamble.id, t.preamble.alias.as_str()), (0x0200_0009, "t"));
    assert_eq!(t.preamble.notes.brief.as_deref(), Some("what"));
    let keys: Vec<(u32, &str, Option<u32>, Option<MatchType>)> =
        t.match_fields.iter().map(|f| (f.id, f.name.as_str(), f.bitwidth, f.match_type.clone())).collect();
    let known = |kind| Some(MatchType::Known(kind));
    assert_eq!(
        keys,
        [
            (1, "kind", Some(16), known("TERNARY")),
            (2, "hdr.h.$valid$", Some(1), known("EXACT")),
            // A selector field is no match field, but has a number.
            (4, "m.a", Some(8), known("RANGE")),
        ]
    );
    let scopes: Vec<_> = t.action_refs.iter().map(|reference| reference.scope).collect();
    assert_eq!(scopes, [None, Some("TABLE_ONLY"), None]);
    assert_eq!(t.const_default_action, Some(t.action_refs[0].id));
    let default = t.initial_default.as_ref().unwrap();
    assert_eq!(default.arguments, [(7, vec![0, 3]), (2, vec![4])]);
    assert_eq!((t.size, t.is_const, t.has_initial_entries, t.idle_timeout), (5, true, true, false));
    let second = &info.tables[1];
    assert_eq!((second.size, second.idle_timeout, second.is_const), (1024, true, false));
    assert_eq!(second.action_refs[0].scope, Some("DEFAULT_ONLY"));
    assert_eq!(second.initial_default.as_ref().unwrap().id, second.action_refs[1].id);
    // Hidden ones are not shown; one that is only called has nothing that a controller could give.
    assert_eq!(names(&info.actions, |a| &a.preamble), ["I.a", "global", "NoAction", "I.called"]);
    assert!(info.actions.iter().all(|action| action.preamble.id >> 24 == 1));
    let params: Vec<(u32, &str)> = info.actions[0].params.iter().map(|p| (p.id, p.name.as_str())).collect();
    assert_eq!(params, [(7, "port"), (2, "x")]);
    assert!(info.actions[3].params.is_empty());
    assert_eq!(info.pkg_info.unwrap().arch, "v1model");
}

#[test]
fn nested_controls_and_stateful_objects() {
    let info = v1model(
        r#"
        type bit<12> Index_t;
        struct sent_t { bit<8> ttl; error e; }
        control Sub(inout M m)(bit<32> cells) {
            counter(cells, CounterType.packets_and_bytes) c;
            action a() { m.a = 1; c.count(0); }
            table t { actions = { a; } }
            apply { t.apply(); }
        }
        "#,
        "value_set<bit<16>>(4) kinds; state start { p.extract(hdr.h); transition select(hdr.h.kind) { kinds: accept; default: accept; } }",
        r#"
        Sub(8) one;
        @name("two") Sub(16) other;
        direct_counter(CounterType.bytes) dc;
        direct_meter<bit<8>>(MeterType.packets) dm;
        meter(3, MeterType.bytes) met;
        register<bit<48>>(10) reg;
        @max_group_size(16) action_selector(HashAlgorithm.crc16, 100, 14) sel;
        action n(Index_t i) { dm.read(m.a); }
        table t { key = { hdr.h.ttl: lpm; } actions = { n; } counters = dc; meters = dm; }
        table u { key = { hdr.h.ttl: exact; hdr.h.kind: selector; } actions = { n; } implementation = sel; }
        apply { one.apply(m); other.apply(m); t.apply(); u.apply(); digest<sent_t>(1, { hdr.h.ttl, s.parser_error }); }
        "#,
    );
    assert_eq!(names(&info.tables, |t| &t.preamble), ["I.one.t", "I.two.t", "I.t", "I.u"]);
    let counters: Vec<_> = info.counters.iter().map(|c| (c.preamble.name.as_str(), c.unit, c.size)).collect();
    assert_eq!(counters, [("I.one.c", "BOTH", 8), ("I.two.c", "BOTH", 16)]);
    let t = &info.tables[2];
    assert_eq!(t.direct_resources, [info.direct_counters[0].preamble.id, info.direct_meters[0].preamble.id]);
    assert_eq!((info.direct_counters[0].unit, info.direct_counters[0].table), ("BYTES", t.preamble.id));
    assert_eq!(
        (info.direct_meters[0].unit, info.meters[0].unit, info.meters[0].size),
        ("PACKETS", "BYTES", 3)
    );
    let profile = &info.action_profiles[0];
    assert_eq!(info.tables[3].implementation, Some(profile.preamble.id));
    assert_eq!((profile.with_selector, profile.size, profile.max_group_size), (true, 100, Some(16)));
    assert_eq!(profile.table_ids, [info.tables[3].preamble.id]);
    assert_eq!((info.registers[0].size, &info.registers[0].type_spec), (10, &TypeSpec::Bit(48)));
    let set = &info.value_sets[0];
    assert_eq!((set.preamble.name.as_str(), set.size, set.matches[0].bitwidth), ("P.kinds", 4, Some(16)));
    assert_eq!(info.digests[0].type_spec, TypeSpec::Named("struct", "sent_t".into()));
    let types = info.type_info.unwrap();
    let members = [("ttl".to_owned(), TypeSpec::Bit(8)), ("e".to_owned(), TypeSpec::Error)];
    assert_eq!(types.structs, [("sent_t".to_owned(), members.to_vec())]);
    assert_eq!(types.error.unwrap()[0], "NoError");
    assert_eq!(types.new_types[0].0, "Index_t");
    assert_eq!(
        info.actions.iter().find(|a| a.preamble.name == "I.n").unwrap().params[0].type_name.as_deref(),
        Some("Index_t")
    );
    for (id, kind) in [
        (t.preamble.id, 0x02),
        (set.preamble.id, 0x03),
        (profile.preamble.id, 0x11),
        (info.counters[0].preamble.id, 0x12),
        (info.direct_counters[0].preamble.id, 0x13),
        (info.meters[0].preamble.id, 0x14),
        (info.direct_meters[0].preamble.id, 0x15),
        (info.registers[0].preamble.id, 0x16),
        (info.digests[0].preamble.id, 0x17),
    ] {
        assert_eq!(id >> 24, kind);
    }
}

#[test]
fn packets_of_the_controller_and_translated_types() {
    let info = v1model(
        r#"
        @p4runtime_translation("example.org/port", 32) type bit<9> Port_t;
        @p4runtime_translation("example.org/name", string) type bit<9> Name_t;
        enum bit<8> Kind { A = 1, B = 255 }
        @controller_header("packet_in") header in_t { Port_t port; @id(9) bit<7> pad; Kind kind; }
        "#,
        START,
        "action a(Name_t n, Kind k) {} table t { key = { (Port_t) 1: exact @name(\"p\"); } actions = { a; } } apply { t.apply(); }",
    );
    let header = &info.controller_packet_metadata[0];
    assert_eq!((header.preamble.name.as_str(), header.preamble.id >> 24), ("packet_in", 4));
    let fields: Vec<_> = header.metadata.iter().map(|f| (f.id, f.name.as_str(), f.bitwidth)).collect();
    assert_eq!(fields, [(1, "port", Some(32)), (9, "pad", Some(7)), (2, "kind", Some(8))]);
    let action = info.actions.iter().find(|a| a.preamble.name == "I.a").unwrap();
    assert_eq!((action.params[0].bitwidth, action.params[0].type_name.as_deref()), (None, Some("Name_t")));
    let text = info.to_string();
    for part in [
        "serializable_enums {\n    key: \"Kind\"\n    value {\n      underlying_type {\n        bitwidth: 8\n      }\n",
        "        name: \"B\"\n        value: \"\\377\"\n",
        "translated_type {\n        uri: \"example.org/name\"\n        sdn_string {\n        }\n",
    ] {
        assert!(text.contains(part), "{part}\nin\n{text}");
    }
}

#[test]
fn instances_made_in_place_have_the_annotations_of_their_property() {
    let info = v1model(
        "",
        START,
        r#"
        action a() {}
        table t {
            key = { hdr.h.ttl: exact; hdr.h.kind: selector; }
            actions = { a; }
            @name("shared") @max_group_size(200) @selector_size_semantics("sum_of_weights")
            implementation = action_selector(HashAlgorithm.crc16, 32w64, 32w14);
        }
        @name("renamed") table u {
            key = { hdr.h.ttl: exact; }
            actions = { a; }
            implementation = action_profile(32w8);
        }
        apply { t.apply(); u.apply(); }
        "#,
    );
    assert_eq!(names(&info.action_profiles, |p| &p.preamble), ["shared", "I.renamed.implementation"]);
    let shared = &info.action_profiles[0];
    assert_eq!((shared.max_group_size, shared.size), (Some(200), 64));
    assert_eq!(shared.semantics, Some(SizeSemantics::SumOfWeights));
    assert!(shared.preamble.notes.annotations.is_empty());
    let implementations: Vec<_> = info.tables.iter().map(|t| t.implementation).collect();
    assert_eq!(implementations, [Some(shared.preamble.id), Some(info.action_profiles[1].preamble.id)]);
}

#[test]
fn structured_annotations_may_name_constants() {
    let info = v1model(
        "const bit<8> limit = 12;",
        START,
        r#"
        action a() {}
        @one[limit + 1, limit > 4, "s"] @two[size = limit] table t { actions = { a; } }
        apply { t.apply(); }
        "#,
    );
    let notes = &info.tables[0].preamble.notes.structured;
    let values = vec![Literal::Int(13), Literal::Bool(true), Literal::String("s".into())];
    assert_eq!((notes[0].name.as_str(), &notes[0].body), ("one", &StructuredBody::List(values)));
    let pairs = vec![("size".to_owned(), Literal::Int(12))];
    assert_eq!((notes[1].name.as_str(), &notes[1].body), ("two", &StructuredBody::Pairs(pairs)));
}

#[test]
fn what_no_packet_meets_is_not_shown() {
    let info = v1model(
        "const bool off = false;",
        START,
        r#"
        action a() {}
        action b() {}
        table t { actions = { a; } }
        apply { if (off) { t.apply(); } else { b(); } if (!off) { exit; } else { a(); } }
        "#,
    );
    assert!(info.tables.is_empty());
    assert_eq!(names(&info.actions, |a| &a.preamble), ["I.b"]);
}

#[test]
fn a_program_without_main_shows_nothing() {
    let info = describe_text("const bit<8> x = 1;");
    assert_eq!(info, P4Info::default());
}
