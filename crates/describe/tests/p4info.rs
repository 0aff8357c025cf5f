//! P4Info of whole programs: what is in it and under which names. Ids of names are tested where they are made; here only
//! their first byte matters, and that references meet what they refer to.

use millrace_describe::p4info::{Description, describe, to_text};
use millrace_messages::config::action_profile::{SelectorSizeSemantics, SumOfWeights};
use millrace_messages::config::action_ref::Scope;
use millrace_messages::config::counter_spec::Unit;
use millrace_messages::config::expression::Value;
use millrace_messages::config::match_field::{Match, MatchType};
use millrace_messages::config::structured_annotation::Body;
use millrace_messages::config::table::IdleTimeoutBehavior;
use millrace_messages::config::{P4Info, Preamble, Table, meter_spec};
use millrace_messages::schema::Described;
use millrace_messages::text::read;
use millrace_sema::check;
use millrace_syntax::{Options, parse_text};

fn describe_text(text: &str) -> Description {
    let parsed = parse_text("test.p4", text, &Options::default());
    assert!(!parsed.diagnostics.has_errors(), "{:?}", parsed.diagnostics);
    let checked = check(&parsed.program);
    assert!(!checked.diagnostics.has_errors(), "{:?}", checked.diagnostics);
    describe(&checked.program)
}

/// A program for v1model with this ingress, and these declarations before it.
fn v1model(declarations: &str, parser: &str, ingress: &str) -> P4Info {
    described(declarations, parser, ingress).info
}

fn described(declarations: &str, parser: &str, ingress: &str) -> Description {
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

fn names<'a, T>(list: &'a [T], preamble: impl Fn(&'a T) -> &'a Option<Preamble>) -> Vec<&'a str> {
    list.iter().map(|item| of(preamble(item)).name.as_str()).collect()
}

fn of(preamble: &Option<Preamble>) -> &Preamble {
    preamble.as_ref().unwrap()
}

/// A message within the field of one that is described, from its text.
fn parsed<M: Described, T>(text: &str, part: impl Fn(M) -> T) -> T {
    part(read(text).unwrap())
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
    assert_eq!((of(&t.preamble).id, of(&t.preamble).alias.as_str()), (0x0200_0009, "t"));
    assert_eq!(of(&t.preamble).doc.as_ref().unwrap().brief, "what");
    let keys: Vec<(u32, &str, i32, Option<Match>)> =
        t.match_fields.iter().map(|f| (f.id, f.name.as_str(), f.bitwidth, f.r#match.clone())).collect();
    let known = |kind: MatchType| Some(Match::MatchType(kind.into()));
    assert_eq!(
        keys,
        [
            (1, "kind", 16, known(MatchType::Ternary)),
            (2, "hdr.h.$valid$", 1, known(MatchType::Exact)),
            // A selector field is no match field, but has a number.
            (4, "m.a", 8, known(MatchType::Range)),
        ]
    );
    let scopes: Vec<_> = t.action_refs.iter().map(|reference| reference.scope()).collect();
    assert_eq!(scopes, [Scope::TableAndDefault, Scope::TableOnly, Scope::TableAndDefault]);
    assert_eq!(t.const_default_action_id, t.action_refs[0].id);
    let default = t.initial_default_action.as_ref().unwrap();
    let arguments: Vec<(u32, &[u8])> = default.arguments.iter().map(|a| (a.param_id, &*a.value)).collect();
    assert_eq!(arguments, [(7, &[0, 3][..]), (2, &[4])]);
    let notifies = |table: &Table| table.idle_timeout_behavior() == IdleTimeoutBehavior::NotifyControl;
    assert_eq!((t.size, t.is_const_table, t.has_initial_entries, notifies(t)), (5, true, true, false));
    let second = &info.tables[1];
    assert_eq!((second.size, notifies(second), second.is_const_table), (1024, true, false));
    assert_eq!(second.action_refs[0].scope(), Scope::DefaultOnly);
    assert_eq!(second.initial_default_action.as_ref().unwrap().action_id, second.action_refs[1].id);
    // Hidden ones are not shown; one that is only called has nothing that a controller could give.
    assert_eq!(names(&info.actions, |a| &a.preamble), ["I.a", "global", "NoAction", "I.called"]);
    assert!(info.actions.iter().all(|action| of(&action.preamble).id >> 24 == 1));
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
        @single_rate_two_color meter(3, MeterType.bytes) met;
        register<bit<48>>(10) reg;
        @max_group_size(16) action_selector(HashAlgorithm.crc16, 100, 14) sel;
        action n(Index_t i) { dm.read(m.a); }
        table t { key = { hdr.h.ttl: lpm; } actions = { n; } counters = dc; meters = dm; }
        table u { key = { hdr.h.ttl: exact; hdr.h.kind: selector; } actions = { n; } implementation = sel; }
        apply { one.apply(m); other.apply(m); t.apply(); u.apply(); digest<sent_t>(1, { hdr.h.ttl, s.parser_error }); }
        "#,
    );
    assert_eq!(names(&info.tables, |t| &t.preamble), ["I.one.t", "I.two.t", "I.t", "I.u"]);
    let counters: Vec<_> = info
        .counters
        .iter()
        .map(|c| (of(&c.preamble).name.as_str(), c.spec.unwrap().unit(), c.size))
        .collect();
    assert_eq!(counters, [("I.one.c", Unit::Both, 8), ("I.two.c", Unit::Both, 16)]);
    let t = &info.tables[2];
    let (counter, meter) = (&info.direct_counters[0], &info.direct_meters[0]);
    assert_eq!(t.direct_resource_ids, [of(&counter.preamble).id, of(&meter.preamble).id]);
    assert_eq!((counter.spec.unwrap().unit(), counter.direct_table_id), (Unit::Bytes, of(&t.preamble).id));
    assert_eq!(
        (meter.spec.unwrap().unit(), meter.direct_table_id),
        (meter_spec::Unit::Packets, of(&t.preamble).id)
    );
    assert_eq!((info.meters[0].spec.unwrap().unit(), info.meters[0].size), (meter_spec::Unit::Bytes, 3));
    let types = [info.meters[0].spec, meter.spec].map(|spec| spec.unwrap().r#type());
    assert_eq!(types, [meter_spec::Type::SingleRateTwoColor, meter_spec::Type::TwoRateThreeColor]);
    let profile = &info.action_profiles[0];
    assert_eq!(info.tables[3].implementation_id, of(&profile.preamble).id);
    assert_eq!((profile.with_selector, profile.size, profile.max_group_size), (true, 100, 16));
    assert_eq!(profile.table_ids, [of(&info.tables[3].preamble).id]);
    let spec = |text: &str| {
        parsed(&format!("registers {{ type_spec {{ {text} }} }}"), |info: P4Info| {
            info.registers[0].type_spec.clone()
        })
    };
    let register = &info.registers[0];
    assert_eq!((register.size, &register.type_spec), (10, &spec("bitstring { bit { bitwidth: 48 } }")));
    let set = &info.value_sets[0];
    assert_eq!((of(&set.preamble).name.as_str(), set.size, set.r#match[0].bitwidth), ("P.kinds", 4, 16));
    assert_eq!(info.digests[0].type_spec, spec("struct { name: \"sent_t\" }"));
    let types = info.type_info.as_ref().unwrap();
    let members: Vec<_> =
        types.structs["sent_t"].members.iter().map(|m| (m.name.as_str(), m.type_spec.clone())).collect();
    assert_eq!(members, [("ttl", spec("bitstring { bit { bitwidth: 8 } }")), ("e", spec("error {}"))]);
    assert_eq!(types.structs.len(), 1);
    assert_eq!(types.error.as_ref().unwrap().members[0], "NoError");
    assert!(types.new_types.keys().eq(["Index_t"]));
    let n = info.actions.iter().find(|a| of(&a.preamble).name == "I.n").unwrap();
    assert_eq!(n.params[0].type_name.as_ref().unwrap().name, "Index_t");
    for (id, kind) in [
        (of(&t.preamble).id, 0x02),
        (of(&set.preamble).id, 0x03),
        (of(&profile.preamble).id, 0x11),
        (of(&info.counters[0].preamble).id, 0x12),
        (of(&info.direct_counters[0].preamble).id, 0x13),
        (of(&info.meters[0].preamble).id, 0x14),
        (of(&info.direct_meters[0].preamble).id, 0x15),
        (of(&info.registers[0].preamble).id, 0x16),
        (of(&info.digests[0].preamble).id, 0x17),
    ] {
        assert_eq!(id >> 24, kind);
    }
}

#[test]
fn packets_of_the_controller_and_translated_types() {
    let Description { info, controller_headers } = described(
        r#"
        @p4runtime_translation("example.org/port", 32) type bit<9> Port_t;
        @p4runtime_translation("example.org/name", string) type bit<9> Name_t;
        enum bit<8> Kind { A = 1, B = 255 }
        @controller_header("packet_in") header in_t { @brief("no field for it") Port_t port; @id(9) bit<7> pad; Kind kind; }
        "#,
        START,
        "action a(Name_t n, Kind k) {} table t { key = { (Port_t) 1: exact @name(\"p\"); } actions = { a; } } apply { t.apply(); }",
    );
    let header = &info.controller_packet_metadata[0];
    assert_eq!((of(&header.preamble).name.as_str(), of(&header.preamble).id >> 24), ("packet_in", 4));
    let fields: Vec<_> = header.metadata.iter().map(|f| (f.id, f.name.as_str(), f.bitwidth)).collect();
    assert_eq!(fields, [(1, "port", 32), (9, "pad", 7), (2, "kind", 8)]);
    assert_eq!(controller_headers, [("packet_in".to_owned(), vec![9, 7, 8])].into());
    let action = info.actions.iter().find(|a| of(&a.preamble).name == "I.a").unwrap();
    assert_eq!(
        (action.params[0].bitwidth, &*action.params[0].type_name.as_ref().unwrap().name),
        (0, "Name_t")
    );
    let text = to_text(&info);
    assert_eq!(read::<P4Info>(&text).as_ref(), Ok(&info));
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
            @name("shared") @max_group_size(200) @selector_size_semantics("sum_of_weights") @weights_disallowed
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
    assert_eq!((shared.max_group_size, shared.size), (200, 64));
    let weights = SelectorSizeSemantics::SumOfWeights(SumOfWeights {});
    assert_eq!(shared.selector_size_semantics, Some(weights));
    // What p4c has no field for it shows as an annotation.
    assert_eq!(of(&shared.preamble).annotations, ["@weights_disallowed"]);
    assert_eq!([true, false], [0, 1].map(|at| info.action_profiles[at].weights_disallowed));
    let implementations: Vec<_> = info.tables.iter().map(|t| t.implementation_id).collect();
    assert_eq!(implementations, [of(&shared.preamble).id, of(&info.action_profiles[1].preamble).id]);
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
    let notes = &of(&info.tables[0].preamble).structured_annotations;
    let Some(Body::ExpressionList(list)) = &notes[0].body else { panic!("{:?}", notes[0]) };
    let values: Vec<_> = list.expressions.iter().map(|e| e.value.clone().unwrap()).collect();
    let wanted = [Value::Int64Value(13), Value::BoolValue(true), Value::StringValue("s".into())];
    assert_eq!((notes[0].name.as_str(), &values[..]), ("one", &wanted[..]));
    let Some(Body::KvPairList(list)) = &notes[1].body else { panic!("{:?}", notes[1]) };
    let pair = &list.kv_pairs[0];
    let value = pair.value.as_ref().unwrap().value.clone();
    assert_eq!((notes[1].name.as_str(), list.kv_pairs.len()), ("two", 1));
    assert_eq!((pair.key.as_str(), value), ("size", Some(Value::Int64Value(12))));
}

#[test]
fn annotations_are_texts_as_p4c_writes_them() {
    let info = v1model(
        "",
        START,
        r#"
        action a() {}
        @oneshot() @plain @words(a, "b" ,4w3) @empty[]
        @lines("x
#if 0
y
#endif
z") table t { actions = { a; } }
        apply { t.apply(); }
        "#,
    );
    let preamble = of(&info.tables[0].preamble);
    let wanted = ["@oneshot", "@plain", "@words(a , \"b\" , 4w3)", "@lines(\"x\n\n\n\nz\")"];
    assert_eq!(preamble.annotations, wanted);
    assert_eq!(
        (preamble.structured_annotations[0].name.as_str(), &preamble.structured_annotations[0].body),
        ("empty", &None)
    );
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
    assert_eq!(describe_text("const bit<8> x = 1;"), Description::default());
}
