use crate::p4_14::ast::{ApplyLabel, BinaryOp, Declaration, ExprKind, Index, Return, Stmt, UnaryOp};
use crate::p4_14::{Parsed, parse_text};
use crate::{Options, render};

fn read(text: &str) -> Parsed {
    parse_text("t.p4", text, &Options::default())
}

#[track_caller]
fn sound(text: &str) -> Vec<Declaration> {
    let parsed = read(text);
    let found: Vec<String> = parsed.diagnostics.iter().map(|d| render(d, &parsed.sources, false)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
    parsed.program.declarations
}

/// Lines of the errors.
fn errors(text: &str) -> Vec<u32> {
    let parsed = read(text);
    parsed.diagnostics.iter().map(|d| parsed.sources.location(d.primary).line).collect()
}

#[test]
fn widths_stand_before_an_apostrophe() {
    let all = sound("metadata t m { a : 16'0x2a; b : 0'7; c : -0b1_01; d : 12; }");
    let Declaration::Instance(instance) = &all[0] else { panic!() };
    let numbers: Vec<String> = instance.initial.iter().map(|(_, e)| format!("{:?}", e.kind)).collect();
    let ExprKind::Int { value, width } = &instance.initial[0].1.kind else { panic!("{numbers:?}") };
    assert_eq!((u32::try_from(value).unwrap(), *width), (42, Some(16)));
    assert!(matches!(&instance.initial[1].1.kind, ExprKind::Int { width: None, .. }));
    assert!(matches!(&instance.initial[2].1.kind, ExprKind::Unary(..)));
    assert_eq!(errors("metadata t m { a : 8s1; }"), [1]);
}

#[test]
fn what_programs_write_besides() {
    let all = sound(
        "header_type t { fields { bit<32> a; int<4> b; c : 8w4; } } action a(x) { h[0].a = x + 1; m.b = 2; }",
    );
    let Declaration::HeaderType(ty) = &all[0] else { panic!() };
    assert_eq!(ty.fields.iter().map(|f| f.signed).collect::<Vec<_>>(), [false, true, false]);
    let Declaration::Action(action) = &all[1] else { panic!() };
    assert_eq!(action.body[0].name.as_str(), "modify_field");
    assert_eq!(action.body[1].args.len(), 2);
}

#[test]
fn pragmas_are_lines_and_belong_to_what_follows() {
    let all = sound(
        "@pragma parser_value_set_size 10\n@pragma x\nparser_value_set s;\ncontrol c { @pragma y ;\n }",
    );
    let Declaration::ValueSet(set) = &all[0] else { panic!() };
    assert_eq!(set.pragmas.len(), 2);
    assert_eq!(set.pragmas[0].words[0].as_str(), "10");
}

#[test]
fn words_of_the_language_are_names_elsewhere() {
    sound("header_type exact { fields { length : 8; type : 4; } } header exact table; control control { }");
    assert_eq!(errors("header_type default { fields { a : 8; } }"), [1]);
}

#[test]
fn expressions_bind_as_in_c_but_for_comparisons() {
    let all = sound("control c { if (not valid(h) or a.b & 0xf == 1 << 2 and x[last].y >> 1 > 3) { } }");
    let Declaration::Control(control) = &all[0] else { panic!() };
    let Stmt::If { condition, .. } = &control.body[0] else { panic!() };
    let shown = format!("{:?}", condition.kind);
    let order: Vec<usize> = ["Or", "Not", "And,", "Eq", "BitAnd", "Shl", "Gt", "Shr"]
        .iter()
        .map(|op| shown.find(op).unwrap())
        .collect();
    assert!(order.is_sorted(), "{order:?} {shown}");
}

#[test]
fn a_negation_holds_a_comparison() {
    let all = sound("control c { if (not a.b == 0 and !a.c > 1 or not valid(h)) { } }");
    let Declaration::Control(control) = &all[0] else { panic!() };
    let Stmt::If { condition, .. } = &control.body[0] else { panic!() };
    let ExprKind::Binary(BinaryOp::Or, left, _) = &condition.kind else { panic!() };
    let ExprKind::Binary(BinaryOp::And, first, second) = &left.kind else { panic!() };
    for (side, compared) in [(first, BinaryOp::Eq), (second, BinaryOp::Gt)] {
        let ExprKind::Unary(UnaryOp::Not, inner) = &side.kind else { panic!("{side:?}") };
        assert!(matches!(&inner.kind, ExprKind::Binary(op, ..) if *op == compared), "{inner:?}");
    }
}

#[test]
fn a_branch_may_be_one_statement() {
    let all = sound(
        "control c { if (valid(h)) apply(t); else if (valid(g)) d(); else apply(u) { hit { } } \
         if (valid(h)) if (valid(g)) d(); else e(); f(); }",
    );
    let Declaration::Control(control) = &all[0] else { panic!() };
    assert_eq!(control.body.len(), 3);
    let Stmt::If { then, otherwise, .. } = &control.body[0] else { panic!() };
    assert!(matches!(then[..], [Stmt::Apply { .. }]));
    let [Stmt::If { then, otherwise, .. }] = &otherwise[..] else { panic!() };
    assert!(matches!((&then[..], &otherwise[..]), ([Stmt::Call { .. }], [Stmt::Apply { .. }])));
    // An `else` belongs to the last `if`.
    let Stmt::If { then, otherwise, .. } = &control.body[1] else { panic!() };
    assert!(otherwise.is_empty());
    assert!(matches!(&then[..], [Stmt::If { otherwise, .. }] if otherwise.len() == 1));
}

#[test]
fn an_if_after_an_else_is_a_statement_of_its_own() {
    let all = sound("control c { if (valid(h)) { a(); } else { b(); } if (valid(g)) { d(); } }");
    let Declaration::Control(control) = &all[0] else { panic!() };
    let [first, second] = &control.body[..] else { panic!("{:?}", control.body) };
    let called = |body: &[Stmt]| match body {
        [Stmt::Call { control, .. }] => control.as_str().to_owned(),
        other => panic!("{other:?}"),
    };
    let Stmt::If { then, otherwise, .. } = first else { panic!() };
    assert_eq!((called(then), called(otherwise)), ("a".to_owned(), "b".to_owned()));
    let Stmt::If { then, otherwise, .. } = second else { panic!() };
    assert_eq!((called(then), otherwise.len()), ("d".to_owned(), 0));
}

#[test]
fn applies_have_cases() {
    let all =
        sound("control c { apply(t) { hit { apply(u); } miss { d(); } } apply(v) { a, b { } default { } } }");
    let Declaration::Control(control) = &all[0] else { panic!() };
    let Stmt::Apply { cases, .. } = &control.body[1] else { panic!() };
    assert!(matches!(&cases[0].labels[1], ApplyLabel::Action(a) if a.as_str() == "b"));
    assert!(matches!(cases[1].labels[0], ApplyLabel::Default(_)));
}

#[test]
fn parsers_end_with_a_return() {
    let all = sound(
        "parser p { extract(h[next]); set_metadata(m.f, current(8, 4)); return select(latest.x, h[1].y) { 1, 2 mask 3 : q; \
         s : ingress; default : parse_error e; } } parser q { return ingress; } parser r { parse_error e; }",
    );
    let Declaration::ParserState(state) = &all[0] else { panic!() };
    let crate::p4_14::ast::ParserStmt::Extract(header, _) = &state.statements[0] else { panic!() };
    assert!(matches!(header.index, Some(Index::Next(_))));
    let Some(Return::Select { cases, .. }) = &state.ending else { panic!() };
    assert_eq!(cases.iter().map(|c| c.values.len()).collect::<Vec<_>>(), [2, 1, 0]);
    assert_eq!(errors("parser p { extract(h); }"), [1]);
}

#[test]
fn one_run_reports_all_errors() {
    let text = "header_type t { fields { a 8; b : 4; } }\nheader t;\ntable x { reads { a.b : ; }\n actions { a; } foo; }\n\
                control c {\n apply(; \n if (a.b == ) { }\n d();\n}\nnonsense\naction a() { f(1; }";
    assert_eq!(errors(text), [1, 2, 3, 4, 6, 7, 10, 11]);
    let parsed = read(text);
    assert_eq!(parsed.program.declarations.len(), 4);
}

#[test]
fn heights_are_bounded() {
    let deep = format!("control c {{ if ({}1{} == 1) {{ }} }}", "(".repeat(400), ")".repeat(400));
    assert!(!errors(&deep).is_empty());
    let long = format!("control c {{ if (1{} == 1) {{ }} }}", "+1".repeat(400));
    assert!(!errors(&long).is_empty());
    let negated = format!("control c {{ if ({} true) {{ }} }}", "not ".repeat(400));
    assert!(!errors(&negated).is_empty());
    let unbraced = format!("control c {{ {} d(); }}", "if (true) ".repeat(4000));
    assert!(!errors(&unbraced).is_empty());
    let nested = format!("control c {{ {} }}", "if (true) {".repeat(4000));
    assert!(!errors(&nested).is_empty());
    let chain = format!("control c {{ if (true) {{ }} {} }}", "else if (true) { }".repeat(4000));
    assert!(!errors(&chain).is_empty());
}

#[test]
fn pieces_of_programs_never_panic() {
    let text = "header_type t { fields { a : 8 (signed); } length : a; } metadata t m { a : 3'4; }\n@pragma x y\n\
                parser p { extract(h[last]); return select(latest.a) { 1 mask 2 : p; default : parse_error e; } }\n\
                table t { reads { h.a mask 3 : exact; } actions { a; } default_action : a(1); }\n\
                control c { apply(t) { hit { c(); } } if (valid(h) and not (h.a == -1)) { } else if (true) { } }";
    for end in 0..text.len() {
        read(&text[..end]);
        read(&text[end..]);
        read(&format!("{}{}", &text[..end], &text[(end + 7).min(text.len())..]));
    }
}
