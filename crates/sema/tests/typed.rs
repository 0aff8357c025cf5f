//! What the typed program holds for programs whose meaning is known by hand.

use millrace_sema::hir::*;
use millrace_sema::{Constant, check, evaluate};
use millrace_syntax::{Options, parse_text};
use num_bigint::BigInt;

fn program(text: &str) -> Program {
    let parsed = parse_text("test.p4", text, &Options::default());
    let checked = check(&parsed.program);
    for d in parsed.diagnostics.iter().chain(&checked.diagnostics) {
        assert!(!d.is_error(), "{}", millrace_syntax::render(d, &parsed.sources, false));
    }
    let broken = verify(&checked.program);
    assert!(broken.is_empty(), "{broken:?}");
    checked.program
}

fn control<'p>(p: &'p Program, name: &str) -> &'p Control {
    p.controls.values().find(|c| c.name == name).unwrap()
}

fn int(e: &Expr) -> i64 {
    match &e.kind {
        ExprKind::Int(v) => i64::try_from(v.clone()).unwrap(),
        other => panic!("no number: {other:?}"),
    }
}

#[test]
fn keys_are_named_as_p4c_and_bmv2_name_them() {
    let p = program(
        r#"#include <core.p4>
        header H { bit<8> f; bit<16> g; @name("renamed") bit<8> r; }
        struct M { bit<8> x; }
        struct S { H h; H[4] s; @name("inner") M m; @name(".away") M n; tuple<bit<8>, bool> t; }
        const bit<8> top = 0x11;
        const int last = 3;
        control C(inout S hdr, in bit<8> p) {
            table t {
                key = {
                    hdr.h.f : exact;
                    hdr.h.isValid() : exact;
                    hdr.s[1].g : exact;
                    hdr.s[last].r : exact;
                    hdr.h.g[7:4] : exact;
                    hdr.h.g[3+:2] : exact;
                    hdr.h.f & 0x0F : exact;
                    hdr.h.f & 8w0b1_0001 : exact;
                    hdr.h.f + 1 : exact @name("sum");
                    .top : exact;
                    p : exact;
                    hdr.m.x : exact;
                    hdr.n.x : exact;
                    hdr.t[1] : exact;
                    8w0x3648 : exact;
                    4s15 : exact;
                }
                actions = { NoAction; }
            }
            apply { t.apply(); }
        }"#,
    );
    let table = p.tables.values().next().unwrap();
    let names: Vec<&str> = table.keys.iter().map(|k| k.name.as_str()).collect();
    let wanted = [
        "hdr.h.f",
        "hdr.h.$valid$",
        "hdr.s[1].g",
        "hdr.s[3].renamed",
        "hdr.h.g[7:4]",
        "hdr.h.g[4:3]",
        "hdr.h.f & 0xf",
        "hdr.h.f & 0b10001",
        "sum",
        "17",
        "p",
        "hdr.inner.x",
        "away.x",
        "hdr.t[1]",
        "0x48",
        "-1",
    ];
    assert_eq!(names, wanted);
}

#[test]
fn an_instance_made_in_place_is_named_after_its_property() {
    let p = program(
        r#"#include <core.p4>
        extern E { E(bit<32> n); }
        control C(in bit<8> x) {
            table a { key = { x : exact; } actions = { NoAction; } @name("given") @note implementation = E(1); }
            @name("named") table b { actions = { NoAction; } implementation = E(2); }
            apply { a.apply(); b.apply(); }
        }"#,
    );
    let properties: Vec<&Property> = p.tables.values().map(|t| &t.properties[0]).collect();
    let made = |property: &Property| match property.value.kind {
        ExprKind::Instance(id) => p.instances[id].clone(),
        _ => panic!(),
    };
    assert_eq!(properties[0].annotations.len(), 2);
    let (first, second) = (made(properties[0]), made(properties[1]));
    assert_eq!((first.name, first.annotations.len()), (None, 2));
    assert_eq!(second.name.as_deref(), Some("named.implementation"));
}

#[test]
fn structured_annotations_are_evaluated() {
    let p = program(
        r#"const bit<8> c = 4;
        @a[c + 1, "x" ++ "y", c == 4] @b[k = -1] struct S { bit<8> f; }"#,
    );
    let mut values: Vec<String> = p.annotation_values.values().map(|v| format!("{v:?}")).collect();
    values.sort();
    assert_eq!(values, ["Bool(true)", "Int(-1)", "Int(5)", "String(\"xy\")"]);
}

fn priorities(properties: &str) -> Vec<i64> {
    let p = program(&format!(
        r#"#include <core.p4>
        control C(in bit<8> x) {{
            table t {{
                key = {{ x : ternary; }}
                actions = {{ NoAction; }}
                {properties}
            }}
            apply {{ t.apply(); }}
        }}"#
    ));
    let table = p.tables.values().next().unwrap();
    table.entries.iter().map(|e| int(e.priority.as_ref().unwrap())).collect()
}

#[test]
fn entries_get_the_priorities_of_the_specification() {
    let plain = "entries = { 1 : NoAction; 2 : NoAction; 3 : NoAction; }";
    assert_eq!(priorities(plain), [3, 2, 1]);
    assert_eq!(priorities(&format!("priority_delta = 10; {plain}")), [21, 11, 1]);
    assert_eq!(priorities(&format!("largest_priority_wins = false; {plain}")), [1, 2, 3]);
    // The example of the specification, "Entry priorities".
    let mixed = "largest_priority_wins = false; priority_delta = 10;
        @noWarn(\"duplicate_priorities\")
        entries = {
            const priority=10: 1 : NoAction;
                               2 : NoAction;
                               3 : NoAction;
            const              4 : NoAction;
                  priority=40: 5 : NoAction;
                               6 : NoAction;
        }";
    assert_eq!(priorities(mixed), [10, 20, 30, 40, 40, 50]);
}

#[test]
fn exact_tables_have_no_priorities() {
    let p = program(
        r#"#include <core.p4>
        control C(in bit<8> x) {
            table t { key = { x : exact; } actions = { NoAction; } const entries = { 1 : NoAction; } }
            apply { t.apply(); }
        }"#,
    );
    let table = p.tables.values().next().unwrap();
    assert!(table.const_entries && table.entries[0].priority.is_none());
}

fn constant(declarations: &str, ty: &str, value: &str) -> Expr {
    let p = program(&format!(
        "{declarations} const {ty} value = {value};
         control C(out {ty} x) {{ apply {{ x = value; }} }}"
    ));
    let StmtKind::Assign { rhs, .. } = &control(&p, "C").body[0].kind else { panic!() };
    rhs.clone()
}

#[test]
fn constants_are_folded_by_the_rules_of_their_types() {
    let cases = [
        ("bit<8>", "250 + 10", 4),
        ("bit<8>", "8w250 |+| 10", 255),
        ("bit<8>", "8w5 |-| 10", 0),
        ("int<8>", "8s100 + 8s100", -56),
        ("int<8>", "8s100 |+| 8s100", 127),
        ("int<8>", "-8s128 |-| 8s1", -128),
        ("bit<8>", "~8w1", 254),
        ("int<8>", "~8s0", -1),
        ("int<8>", "-8s100 >> 2", -25),
        ("bit<8>", "8w0xF0 >> 4", 15),
        ("bit<8>", "8w1 << 9", 0),
        ("bit<16>", "8w0x12 ++ 8w0x34", 0x1234),
        ("bit<16>", "8s1 ++ -8s1 == 16s0x01FF ? 16w1 : 16w2", 1),
        ("int<16>", "8s1 ++ 8w0xFF", 0x01FF),
        ("bit<4>", "(-1)[3:0]", 15),
        ("bit<4>", "16w0xABCD[7:4]", 0xC),
        ("bit<4>", "16w0xABCD[8+:4]", 0xB),
        ("int<8>", "(int<8>)8w200", -56),
        ("bit<16>", "(bit<16>)(int<16>)-8s1", 0xFFFF),
        ("bit<1>", "(bit<1>)true", 1),
        ("bit<8>", "17 / 5 + 17 % 5", 5),
        ("bit<8>", "((1 << 70) >> 68)", 4),
        ("bit<8>", "{ 1, { 2, 8w3 } }[1][1]", 3),
    ];
    for (ty, text, wanted) in cases {
        assert_eq!(int(&constant("", ty, text)), wanted, "{text}");
    }
}

#[test]
fn enumerations_fold_to_their_numbers() {
    let e = "enum bit<8> E { a = 3, b = a + 1 }";
    assert_eq!(int(&constant(e, "bit<8>", "E.b")), 4);
    assert_eq!(int(&constant(e, "bit<8>", "E.a + E.b << 1")), 14);
    assert_eq!(int(&constant(e, "E", "(E)(E.a + 4)")), 7);
    assert_eq!(constant(e, "bool", "E.a == 3").kind_bool(), Some(true));
}

trait KindBool {
    fn kind_bool(&self) -> Option<bool>;
}

impl KindBool for Expr {
    fn kind_bool(&self) -> Option<bool> {
        match self.kind {
            ExprKind::Bool(value) => Some(value),
            _ => None,
        }
    }
}

#[test]
fn arguments_come_in_parameter_order_with_defaults_filled_in() {
    let p = program(
        "extern void f(in bit<8> a, in bit<8> b = 7, out bit<8> c);
         control C(inout bit<8> x) { apply { f(c = x, a = 1); } }",
    );
    let StmtKind::Call(call) = &control(&p, "C").body[0].kind else { panic!() };
    let values: Vec<&Expr> = call.args.iter().map(|a| a.value.as_ref().unwrap()).collect();
    assert_eq!((int(values[0]), int(values[1])), (1, 7));
    assert!(matches!(values[2].kind, ExprKind::Var(_)));
    assert_eq!(call.args[2].direction, Direction::Out);
}

#[test]
fn generic_functions_are_instantiated_once_for_each_list_of_types() {
    let p = program(
        "T id<T>(in T x) { return x; }
         control C(inout bit<8> x, inout bit<16> y) { apply { x = id(x); x = id(x); y = id(y); } }",
    );
    let widths: Vec<&TyKind> = p.functions.values().map(|f| p.types.kind(f.ret)).collect();
    assert_eq!(widths, [&TyKind::Bits(8), &TyKind::Bits(16)]);
}

#[test]
fn labels_that_fall_through_share_statements() {
    let p = program(
        "control C(inout bit<8> x) {
            apply { switch (x) { 1: 2: { x = 3; } 4: {} 5: default: { x = 0; } } }
         }",
    );
    let StmtKind::SwitchValue { cases, default, .. } = &control(&p, "C").body[0].kind else { panic!() };
    let labels: Vec<Vec<i64>> = cases.iter().map(|c| c.labels.iter().map(int).collect()).collect();
    assert_eq!(labels, [vec![1, 2], vec![4]]);
    // The label 5 means what `default` means.
    assert_eq!(default.as_ref().unwrap().len(), 1);
}

#[test]
fn tuples_become_structures_member_by_member() {
    let p = program(
        "struct S { bit<8> a; bit<16> b; }
         control C(out S s) { apply { s = { 1, 2 }; s = { b = 3, ... }; } }",
    );
    let members = |i: usize| {
        let StmtKind::Assign { rhs, .. } = &control(&p, "C").body[i].kind else { panic!() };
        let ExprKind::Aggregate(members) = &rhs.kind else { panic!() };
        members.iter().map(int).collect::<Vec<_>>()
    };
    assert_eq!((members(0), members(1)), (vec![1, 2], vec![0, 3]));
}

#[test]
fn constructor_parameters_are_evaluated_when_they_are_known() {
    let p = program(
        "control C(out bit<8> x)(bit<8> n) {
            const bit<8> twice = n + n;
            apply { x = twice * 3; }
         }
         control T(out bit<8> x);
         package Top(T t);
         Top(C(5)) main;",
    );
    let c = control(&p, "C");
    let [Local::Var(twice, Some(init))] = c.locals.as_slice() else { panic!() };
    let n = c.ctor_params[0];
    let five = |v: VarId| (v == n).then(|| Constant::Int(BigInt::from(5)));
    let value = evaluate(&p, init, &five).unwrap();
    assert_eq!(value, Constant::Int(BigInt::from(10)));
    let StmtKind::Assign { rhs, .. } = &c.body[0].kind else { panic!() };
    assert!(evaluate(&p, rhs, &|_| None).is_err());
    let known = evaluate(&p, rhs, &|v| (v == *twice).then(|| value.clone())).unwrap();
    assert_eq!(known, Constant::Int(BigInt::from(30)));
    let main = &p.instances[p.main.unwrap()];
    let [CtorArg::Expr(arg)] = main.args.as_slice() else { panic!() };
    let ExprKind::Instance(inner) = arg.kind else { panic!() };
    assert!(matches!(p.types.kind(p.instances[inner].ty), TyKind::Control(_)));
}

#[test]
fn direct_application_makes_an_instance_of_its_own() {
    let p = program(
        "control Inner(inout bit<8> x) { apply {} }
         control Outer(inout bit<8> x) { apply { Inner.apply(x); Inner.apply(x); } }",
    );
    let locals = &control(&p, "Outer").locals;
    let names: Vec<Option<&str>> = locals
        .iter()
        .map(|l| match l {
            Local::Instance(id) => p.instances[*id].name.as_deref(),
            _ => None,
        })
        .collect();
    assert_eq!(names, [Some("Inner"), Some("Inner")]);
}

#[test]
fn any_damaged_program_gives_findings_and_no_panic() {
    let whole = include_str!("accept/language.p4");
    for cut in (0..whole.len()).step_by(37).filter(|&i| whole.is_char_boundary(i)) {
        let parsed = parse_text("cut.p4", &whole[..cut], &Options::default());
        check(&parsed.program);
        let without: String = [&whole[..cut], whole.get(cut + 5..).unwrap_or("")].concat();
        let parsed = parse_text("without.p4", &without, &Options::default());
        check(&parsed.program);
    }
}

/// `open` n times, `middle`, `close` n times.
fn nested(n: usize, open: &str, middle: &str, close: &str) -> String {
    [open.repeat(n), middle.to_string(), close.repeat(n)].concat()
}

#[test]
fn nesting_up_to_the_limit_of_the_parser_fits_the_stack() {
    let n = millrace_syntax::MAX_NESTING - 8;
    let call = nested(n, "f(", "x", ")");
    let sum = nested(n, "x + (", "x", ")");
    let choice = nested(n, "x == 1 ? 1 : (", "x", ")");
    let cast = nested(n, "(bit<8>)(", "x", ")");
    let list = nested(n, "{ ", "1", " }");
    let blocks = nested(n, "{ ", "", " }");
    let ifs = nested(n / 2, "if (x == 1) { ", "", " }");
    let ty = nested(n / 2, "tuple<", "bit<8>", ">");
    let text = format!(
        "bit<8> f(in bit<8> x) {{ return x; }}
         control C(inout bit<8> x) {{
            apply {{ x = {call}; x = {sum}; x = {choice}; x = {cast}; {ty} t; t = {list}; {blocks} {ifs} }}
         }}"
    );
    let parsed = parse_text("deep.p4", &text, &Options::default());
    check(&parsed.program);
}

#[test]
fn what_doubles_with_every_line_is_refused_before_it_fills_the_memory() {
    let double = |first: &str, line: &dyn Fn(usize) -> String| {
        let mut text = first.to_string();
        (1..80).for_each(|i| text += &line(i));
        let parsed = parse_text("double.p4", &text, &Options::default());
        assert!(!parsed.diagnostics.has_errors());
        assert!(check(&parsed.program).diagnostics.has_errors());
    };
    double("const string s0 = \"ab\";", &|i| format!("const string s{i} = s{0} ++ s{0};", i - 1));
    double("struct S0 { bit<8> a; }", &|i| format!("struct S{i} {{ S{0} a; S{0} b; }}", i - 1));
    double("typedef tuple<bool, bool> T0;", &|i| format!("typedef tuple<T{0}, T{0}> T{i};", i - 1));
    let mut rows = "const tuple<bool, bool> t0 = { true, false };".to_string();
    (1..30).for_each(|i| {
        rows += &format!("const bit<8> n{i} = {{ t{0}, t{0} }} == {{ t{0}, t{0} }} ? 1 : 2;", 0)
    });
    let parsed = parse_text("rows.p4", &rows, &Options::default());
    assert!(!check(&parsed.program).diagnostics.has_errors());
    double("void f0<T>(in T x) {}", &|i| {
        let call = if i == 79 { "void go(in bit<8> x) { f78(x); }" } else { "" };
        format!("void f{i}<T>(in T x) {{ tuple<T, T> y = {{ x, x }}; f{}(y); }} {call}", i - 1)
    });
}
