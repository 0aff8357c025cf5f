//! Expressions, ambiguities and recovery, on small texts.

use crate::ast::*;
use crate::{MAX_LEVELS, MAX_NESTING, Options, Parsed, parse_text};

fn parse(text: &str) -> Parsed {
    parse_text("t.p4", text, &Options::default())
}

fn accepted(text: &str) -> Program {
    let parsed = parse(text);
    let messages: Vec<_> = parsed.diagnostics.iter().map(|d| &d.message).collect();
    assert!(messages.is_empty(), "{text}\n{messages:?}");
    parsed.program
}

/// `line:column message` of every diagnostic.
fn findings(text: &str) -> Vec<String> {
    let parsed = parse(text);
    let show = |d: &crate::Diagnostic| {
        let place = parsed.sources.location(d.primary);
        format!("{}:{} {}", place.line, place.column, d.message)
    };
    parsed.diagnostics.iter().map(show).collect()
}

/// The statements of a control's apply block, in which `T` is a type, and `f`, `a`, `b`, `c` are values.
fn statements(text: &str) -> Vec<Stmt> {
    let program = accepted(&format!(
        "struct T {{}} control C(inout bit<8> a, inout bit<8> b, inout bit<8> c) {{ action f() {{}} apply {{ {text} }} }}"
    ));
    match program.declarations.into_iter().next_back() {
        Some(Declaration::Control(control)) => control.apply.statements,
        other => panic!("{other:?}"),
    }
}

/// An expression with all its structure in parentheses.
fn expression(text: &str) -> String {
    let statements = statements(&format!("a = {text};"));
    match &statements.as_slice() {
        [Stmt { kind: StmtKind::Assign { value, .. }, .. }] => show(value),
        other => panic!("{other:?}"),
    }
}

fn show(expr: &Expr) -> String {
    let all = |list: &[Expr]| list.iter().map(show).collect::<Vec<_>>().join(" ");
    match &expr.kind {
        ExprKind::Int(i) => match i.width {
            Some(w) => format!("{}{}{}", w.bits, if w.signed { "s" } else { "w" }, i.value),
            None => i.value.to_string(),
        },
        ExprKind::Bool(b) => b.to_string(),
        ExprKind::String(s) => format!("{s:?}"),
        ExprKind::Dots => "...".into(),
        ExprKind::This => "this".into(),
        ExprKind::Name(p) => show_path(p),
        ExprKind::Type(t) => show_type(t),
        ExprKind::Member(e, n) => format!("({} . {n})", show(e)),
        ExprKind::Index(e, i) => format!("(index {} {})", show(e), show(i)),
        ExprKind::Slice { base, high, low } => format!("(slice {} {} {})", show(base), show(high), show(low)),
        ExprKind::PlusSlice { base, low, width } => {
            format!("(plus {} {} {})", show(base), show(low), show(width))
        }
        ExprKind::Call { callee, type_args, args } => {
            let mut out = format!("(call {}", show(callee));
            type_args.iter().for_each(|t| out.push_str(&format!(" <{}>", show_type(t))));
            for arg in args {
                let value = arg.value.as_ref().map_or("_".into(), show);
                match &arg.name {
                    Some(name) => out.push_str(&format!(" {name}={value}")),
                    None => out.push_str(&format!(" {value}")),
                }
            }
            out + ")"
        }
        ExprKind::Cast(t, e) => format!("(cast {} {})", show_type(t), show(e)),
        ExprKind::Unary(op, e) => format!("({} {})", op.symbol(), show(e)),
        ExprKind::Binary(op, l, r) => format!("({} {} {})", op.symbol(), show(l), show(r)),
        ExprKind::Conditional { condition, then, otherwise } => {
            format!("(? {} {} {})", show(condition), show(then), show(otherwise))
        }
        ExprKind::List(list) => format!("{{{}}}", all(list)),
        ExprKind::Struct { fields, dots } => {
            let fields: Vec<_> = fields.iter().map(|f| format!("{}={}", f.name, show(&f.value))).collect();
            format!("{{{}{}}}", fields.join(" "), if dots.is_some() { " ..." } else { "" })
        }
        ExprKind::InvalidHeader => "{#}".into(),
        ExprKind::Invalid => "invalid".into(),
    }
}

fn show_path(path: &Path) -> String {
    format!("{}{}", if path.absolute { "." } else { "" }, path.name)
}

fn show_type(ty: &Type) -> String {
    let all = |list: &[Type]| list.iter().map(show_type).collect::<Vec<_>>().join(",");
    match &ty.kind {
        TypeKind::Bool => "bool".into(),
        TypeKind::Error => "error".into(),
        TypeKind::MatchKind => "match_kind".into(),
        TypeKind::String => "string".into(),
        TypeKind::Void => "void".into(),
        TypeKind::Int => "int".into(),
        TypeKind::Bits(None) => "bit".into(),
        TypeKind::Bits(Some(w)) => format!("bit<{}>", show(w)),
        TypeKind::SignedBits(w) => format!("int<{}>", show(w)),
        TypeKind::Varbit(w) => format!("varbit<{}>", show(w)),
        TypeKind::DontCare => "_".into(),
        TypeKind::Name(p) => show_path(p),
        TypeKind::Specialized(p, args) => format!("{}<{}>", show_path(p), all(args)),
        TypeKind::Stack(t, n) => format!("{}[{}]", show_type(t), show(n)),
        TypeKind::Tuple(args) => format!("tuple<{}>", all(args)),
        TypeKind::List(t) => format!("list<{}>", show_type(t)),
        TypeKind::Invalid => "invalid".into(),
    }
}

#[test]
fn operators_bind_as_specified() {
    assert_eq!(expression("1 + 2 * 3"), "(+ 1 (* 2 3))");
    assert_eq!(expression("1 - 2 - 3"), "(- (- 1 2) 3)");
    assert_eq!(expression("a ++ b + c"), "(+ (++ a b) c)");
    assert_eq!(expression("a |+| b |-| c"), "(|-| (|+| a b) c)");
    assert_eq!(expression("a == b && c < 1 || true"), "(|| (&& (== a b) (< c 1)) true)");
    // Unlike C: comparisons bind looser than bit operators.
    assert_eq!(expression("a & b == c"), "(== (& a b) c)");
    assert_eq!(expression("a | b ^ c & 1 << 2"), "(| a (^ b (& c (<< 1 2))))");
    assert_eq!(expression("a >> 1 >> b"), "(>> (>> a 1) b)");
    assert_eq!(expression("-a + ~b * !c"), "(+ (- a) (* (~ b) (! c)))");
    assert_eq!(expression("- a.x[1]"), "(- (index (a . x) 1))");
    assert_eq!(expression("true ? a : false ? b : c"), "(? true a (? false b c))");
    assert_eq!(expression("(a + b) * c"), "(* (+ a b) c)");
}

#[test]
fn a_space_between_two_brackets_makes_no_shift() {
    assert_eq!(findings("const int x = 1 > > 2;"), ["1:19 expected an expression, found `>`"]);
}

#[test]
fn literals() {
    assert_eq!(expression("8w0xFF + 4s3 + 1_000"), "(+ (+ 8w255 4s3) 1000)");
    assert_eq!(expression(r#"log("a\"b" ++ "c")"#), r#"(call log (++ "a\"b" "c"))"#);
    assert_eq!(findings("const int x = 0b12;"), ["1:15 `2` is not a digit in base 2"]);
}

#[test]
fn casts_and_parentheses() {
    assert_eq!(expression("(bit<8>) a + b"), "(+ (cast bit<8> a) b)");
    assert_eq!(expression("(T) - a"), "(cast T (- a))");
    assert_eq!(expression("(a) - b"), "(- a b)");
    assert_eq!(expression("(T) {1, 2}"), "(cast T {1 2})");
    assert_eq!(expression("(Unknown) {1, 2}"), "(cast Unknown {1 2})");
    assert_eq!(expression("(Unknown) b"), "(cast Unknown b)");
    assert_eq!(expression("(Unknown) - b"), "(- Unknown b)");
    assert_eq!(expression("(T[2]) {{}, {}}"), "(cast T[2] {{} {}})");
    assert_eq!(expression("(G<bit<8>, _>) {...}"), "(cast G<bit<8>,_> {...})");
    assert_eq!(expression("(list<T>) {}"), "(cast list<T> {})");
    assert_eq!(expression("(.T) a"), "(cast .T a)");
    assert_eq!(expression("(bit<16>)(bit<8>) a"), "(cast bit<16> (cast bit<8> a))");
    assert_eq!(expression("(error.NoError == b)"), "(== (error . NoError) b)");
    assert_eq!(expression("(tuple<bit<8>, bool>) { a, true }"), "(cast tuple<bit<8>,bool> {a true})");
}

#[test]
fn angle_brackets() {
    assert_eq!(expression("g<bit<8>>(a)"), "(call g <bit<8>> a)");
    assert_eq!(expression("g<H<bit<8>>>(a)"), "(call g <H<bit<8>>> a)");
    assert_eq!(expression("x.m<_, T[2]>()"), "(call (x . m) <_> <T[2]>)");
    assert_eq!(expression("a < b"), "(< a b)");
    // Both of these are values, so nothing is called.
    assert_eq!(expression("a < b > (c)"), "(> (< a b) c)");
    assert_eq!(expression("g(a < b, b > (c))"), "(call g (< a b) (> b c))");
    assert_eq!(expression("a < 1 << 2"), "(< a (<< 1 2))");
    assert_eq!(expression("g<>(a)"), "(call g a)");
}

#[test]
fn widths_may_be_expressions() {
    assert_eq!(expression("(bit<(a + 1)>) b"), "(cast bit<(+ a 1)> b)");
    assert_eq!(expression("(bit<a + 1>) b"), "(cast bit<(+ a 1)> b)");
    assert_eq!(expression("g<bit<a ^ 3>>(b)"), "(call g <bit<(^ a 3)>> b)");
    assert_eq!(expression("(bit<(a > 1 ? 2 : 3)>) b"), "(cast bit<(? (> a 1) 2 3)> b)");
}

#[test]
fn members_slices_and_calls() {
    assert_eq!(expression("a.b.c[3:0]"), "(slice ((a . b) . c) 3 0)");
    assert_eq!(expression("a[b +: 4]"), "(plus a b 4)");
    assert_eq!(expression("a[b+1+:4]"), "(plus a (+ b 1) 4)");
    assert_eq!(expression("t.apply().hit"), "((call (t . apply)) . hit)");
    assert_eq!(expression("E.key"), "(E . key)");
    assert_eq!(expression("f(x = 1, _, y = _)"), "(call f x=1 _ y=_)");
    assert_eq!(expression(".a + .f()"), "(+ .a (call .f))");
    assert_eq!(expression("this.x(1)"), "(call (this . x) 1)");
    assert_eq!(
        expression("apply + key + state + list + priority"),
        "(+ (+ (+ (+ apply key) state) list) priority)"
    );
}

#[test]
fn braces() {
    assert_eq!(expression("{1, {2}, 3,}"), "{1 {2} 3}");
    assert_eq!(expression("{}"), "{}");
    assert_eq!(expression("{x = 1, key = {y = 2,}}"), "{x=1 key={y=2}}");
    assert_eq!(expression("{x = 1, ...}"), "{x=1 ...}");
    assert_eq!(expression("{1, ...}"), "{1 ...}");
    assert_eq!(expression("{#}"), "{#}");
    assert_eq!(expression("..."), "...");
    assert_eq!(findings("const T x = {1, y = 2};").len(), 1);
    assert_eq!(findings("const T x = {y = 1, 2};").len(), 1);
}

fn statement_kinds(text: &str) -> Vec<String> {
    let kind = |s: &Stmt| match &s.kind {
        StmtKind::Variable(v) => format!("{} {}", show_type(&v.ty), v.name),
        StmtKind::Constant(c) => format!("const {}", c.name),
        StmtKind::Call(e) => show(e),
        StmtKind::Assign { op, target, value } => {
            format!("{} {}= {}", show(target), op.map_or("", BinaryOp::symbol), show(value))
        }
        StmtKind::ForIn(f) => match &f.collection {
            ForCollection::Range(low, high) => {
                format!("{} in {}..{}", f.variable.name, show(low), show(high))
            }
            ForCollection::Expr(e) => format!("{} in {}", f.variable.name, show(e)),
        },
        StmtKind::For(f) => format!("for {} {} {}", f.init.len(), show(&f.condition), f.update.len()),
        other => format!("{other:?}").split(['(', ' ']).next().unwrap_or_default().to_owned(),
    };
    statements(text).iter().map(kind).collect()
}

#[test]
fn declarations_and_statements_are_told_apart() {
    assert_eq!(
        statement_kinds("T x; T[2] y; g(a); a[1] = b; G<T> z; g<T>(a); C.apply(); C<T>.apply(a);"),
        [
            "T x",
            "T[2] y",
            "(call g a)",
            "(index a 1) = b",
            "G<T> z",
            "(call g <T> a)",
            "(call (C . apply))",
            "(call (C<T> . apply) a)",
        ]
    );
    assert_eq!(
        statement_kinds("Unknown x = 1; .T y; error e; list<T> l; const bit c = 1; bit<8> d[4];"),
        ["Unknown x", ".T y", "error e", "list<T> l", "const c", "bit<8>[4] d",]
    );
    assert_eq!(
        statement_kinds("list l; (a) = 1; a.x[7:0] = b; this.m(); ;"),
        ["list l", "a = 1", "(slice (a . x) 7 0) = b", "(call (this . m))", "Empty",]
    );
}

#[test]
fn compound_assignments() {
    let text = "a += 1; a -= 1; a *= 1; a /= 1; a %= 1; a |+|= 1; a |-|= 1; a <<= 1; a >>= 1; a &= 1; a |= 1; a ^= 1;";
    let operators: Vec<_> = statement_kinds(text).iter().map(|s| s[2..s.len() - 3].to_owned()).collect();
    assert_eq!(operators, ["+", "-", "*", "/", "%", "|+|", "|-|", "<<", ">>", "&", "|", "^"]);
}

#[test]
fn loops() {
    assert_eq!(
        statement_kinds(
            "for (bit<8> i = 0, bit<8> j = 1; i < 4; i += 1, f()) { break; continue; }
             for (a = 0; a < 4; a = a + 1) f();
             for (; true;) {}
             for (bit<8> i in 0 .. a - 1) a = i;
             @unroll for (T t in s.stack) {}"
        ),
        ["for 2 (< i 4) 2", "for 1 (< a 4) 1", "for 0 true 0", "i in 0..(- a 1)", "t in (s . stack)"]
    );
}

#[test]
fn wrong_statements_are_named() {
    let control = |text: &str| findings(&format!("control C() {{ apply {{\n{text}\n}} }}"));
    assert_eq!(control("f() = 1;"), ["2:1 this cannot be assigned to"]);
    assert_eq!(control("f()();"), ["2:1 this cannot be called in a statement"]);
    assert_eq!(control("a + 1;").len(), 1);
    assert_eq!(control("E() e;"), ["2:1 an instantiation cannot stand among statements"]);
    assert_eq!(control("@x return;"), ["2:1 a statement of this kind takes no annotations"]);
    assert_eq!(control("if (true) bit x;"), ["2:11 a declaration cannot stand here"]);
    assert_eq!(control("switch (1) { {1}: {} }").len(), 1);
}

#[test]
fn keysets() {
    let program = accepted(
        "parser P(bit<8> a) { state start { transition select(a, a) {
            (1, _): x; (1 &&& 2, 3 .. 4): x; (default, _): x; (a): x; (a + 1) * 2: x; (bit<8>) 1: x;
            (1 &&& 2): x; _: x; default: reject; {1, 2}: x; E.A: x; } } }",
    );
    let Some(Declaration::Parser(parser)) = program.declarations.first() else { panic!() };
    let Some(Transition::Select(select)) = &parser.states[0].transition else { panic!() };
    fn kind(k: &Keyset) -> String {
        match &k.kind {
            KeysetKind::Value(e) => show(e),
            KeysetKind::Mask(a, b) => format!("{}&{}", show(a), show(b)),
            KeysetKind::Range(a, b) => format!("{}..{}", show(a), show(b)),
            KeysetKind::Default => "default".into(),
            KeysetKind::DontCare => "_".into(),
            KeysetKind::Tuple(list) => format!("({})", list.iter().map(kind).collect::<Vec<_>>().join(",")),
        }
    }
    let all: Vec<_> = select.cases.iter().map(|c| kind(&c.keyset)).collect();
    assert_eq!(
        all,
        [
            "(1,_)",
            "(1&2,3..4)",
            "(default,_)",
            "a",
            "(* (+ a 1) 2)",
            "(cast bit<8> 1)",
            "1&2",
            "_",
            "default",
            "{1 2}",
            "(E . A)"
        ]
    );
    assert_eq!(select.subjects.len(), 2);
}

#[test]
fn annotation_bodies() {
    let program = accepted(
        "@a @b(free ( form ) § it's) @c[1, 2 + 3,] @d[x = 1, y = \"s\"] @name(\"n\" \"m\") @id(-5) @match @e[]
         @pragma p one 2
         const bit x = 1;",
    );
    let annotations = program.declarations[0].annotations();
    assert_eq!(annotations.len(), 9);
    let tokens = |i: usize| match &annotations[i].body {
        AnnotationBody::Tokens(t) => t.iter().map(|t| t.text.to_string()).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!(tokens(1), ["free", "(", "form", ")", "§", "it", "'", "s"]);
    assert!(matches!(&annotations[2].body, AnnotationBody::Expressions(e) if e.len() == 2));
    assert!(matches!(&annotations[3].body, AnnotationBody::KeyValues(e) if e.len() == 2));
    assert_eq!(annotations[4].string().as_deref(), Some("nm"));
    assert_eq!(annotations[5].integer(), Some((-5).into()));
    assert!(matches!(annotations[6].body, AnnotationBody::None));
    assert!(matches!(&annotations[7].body, AnnotationBody::Expressions(e) if e.is_empty()));
    assert_eq!((annotations[8].name.as_str(), tokens(8)), ("p", vec!["one".into(), "2".into()]));
    assert_eq!(findings("@a(b const bit x = 1;")[0], "1:22 this annotation has no closing `)`");
}

#[test]
fn typedefs_of_structures_become_two_declarations() {
    let program = accepted("typedef struct S { bit<8> x; } T; type bit<9> P; const T x = (T) { 1 };");
    let names: Vec<_> = program.declarations.iter().filter_map(|d| d.name()).map(|n| n.as_str()).collect();
    assert_eq!(names, ["S", "T", "P", "x"]);
}

#[test]
fn spans_cover_what_was_written() {
    let text = "const bit<8> x = (1 + 2) * 3;\naction f(in T a) { a.b[1:0] = x; }";
    let parsed = parse(text);
    let of = |span| parsed.sources.text(span);
    let Declaration::Constant(c) = &parsed.program.declarations[0] else { panic!() };
    assert_eq!((of(c.span), of(c.ty.span), of(c.name.span)), (&text[..29], "bit<8>", "x"));
    assert_eq!(of(c.value.span), "(1 + 2) * 3");
    let ExprKind::Binary(_, left, _) = &c.value.kind else { panic!() };
    assert_eq!(of(left.span), "(1 + 2)");
    let Declaration::Action(a) = &parsed.program.declarations[1] else { panic!() };
    assert_eq!((of(a.span), of(a.params[0].span)), (&text[30..], "in T a"));
    let StmtKind::Assign { target, .. } = &a.body.statements[0].kind else { panic!() };
    assert_eq!((of(a.body.statements[0].span), of(target.span)), ("a.b[1:0] = x;", "a.b[1:0]"));
}

#[test]
fn expression_ids_are_unique() {
    let program = accepted("const bit<8> x = 1 + 2; const bit<8> y = x;");
    assert_eq!(program.expr_count, 6);
}

#[test]
fn depth_is_limited_in_every_direction() {
    let n = 20_000;
    let deep = [
        format!("const int x = {}1{};", "(".repeat(n), ")".repeat(n)),
        format!("const int x = {}1;", "-".repeat(n)),
        format!("const int x = 1{};", " + 1".repeat(n)),
        format!("const int x = a{};", ".b".repeat(n)),
        format!("const int x = a{};", "[0]".repeat(n)),
        format!("const int x = {}1;", "1 ? ".repeat(n)),
        format!("const int x = {}1;", "1 ? 1 : ".repeat(n)),
        format!("const int x = {};", "{".repeat(n)),
        format!("const int x = {};", "(bit<8>)".repeat(n)),
        format!("const {}x = 1;", "list<".repeat(n)),
        format!("const T{} x = 1;", "[1]".repeat(n)),
        format!("const {}1> x = 1;", "bit<(".repeat(n)),
        format!("control C() {{ apply {} }}", "{".repeat(n)),
        format!("control C() {{ apply {{ {} ; }} }}", "if (a) ".repeat(n)),
        format!("control C() {{ apply {{ {} ; }} }}", "if (a) ; else ".repeat(n)),
        format!("control C() {{ apply {{ {} }} }}", "switch (a) { 1: {".repeat(n)),
        format!("control C() {{ apply {{ {} }} }}", "for (;a;) ".repeat(n)),
        format!("E() e = {}", "{ E() e = ".repeat(n)),
        format!("@a[{}] const int x = 1;", "{".repeat(n)),
        format!("a{};", "<a".repeat(n)),
        format!("const int x = a{};", "<b".repeat(n)),
    ];
    for text in deep {
        let parsed = parse(&text);
        assert!(parsed.diagnostics.has_errors(), "{}", &text[..60]);
        drop(parsed);
    }
    let most = MAX_NESTING - 3;
    accepted(&format!("const int x = {}1{};", "(".repeat(most), ")".repeat(most)));
}

#[test]
fn chains_are_no_nesting() {
    let most = MAX_LEVELS - 2;
    let sum = |n: usize| format!("const int x = 1{};", " + 1".repeat(n));
    let branches =
        |n: usize| format!("control C() {{ apply {{ if (a) ; {} }} }}", "else if (b) ; ".repeat(n));
    accepted(&sum(most));
    accepted(&branches(most - 20));
    for text in [sum(MAX_LEVELS), branches(MAX_LEVELS)] {
        let messages: Vec<String> = parse(&text).diagnostics.iter().map(|d| d.message.clone()).collect();
        assert_eq!(messages[0], format!("this is a chain of more than {MAX_LEVELS} operators or branches"));
    }
    // Chains inside of chains are as high as they are together.
    let inner = format!("(1{})", " + 1".repeat(MAX_LEVELS / 2));
    let both = format!("const int x = {inner}{};", " + 1".repeat(MAX_LEVELS / 2));
    assert!(parse(&both).diagnostics.has_errors());
    let apart = format!("const int x = 1{} + {inner};", " + 1".repeat(MAX_LEVELS / 3));
    accepted(&apart);
}

fn height(expr: &Expr) -> usize {
    let args =
        |list: &[Argument]| list.iter().filter_map(|a| a.value.as_ref()).map(height).max().unwrap_or(0);
    1 + match &expr.kind {
        ExprKind::Call { callee, args: list, .. } => height(callee).max(args(list)),
        ExprKind::Member(base, _) => height(base),
        ExprKind::List(list) => list.iter().map(height).max().unwrap_or(0),
        _ => 0,
    }
}

#[test]
fn chains_inside_of_arguments_add_up() {
    let grow = |open: &str, close: &str| {
        let suffix = format!("{close}{}", ".x".repeat(40));
        format!("const int x = {}1{};", open.repeat(100), suffix.repeat(100))
    };
    for text in [grow("f(", ")"), grow("{", "}"), grow("a[", "]"), grow("((bit<(", ")>) a)")] {
        assert_eq!(parse(&text).diagnostics.iter().next().map(|d| d.code), Some("limit"), "{}", &text[..40]);
    }
    let program = accepted(&format!("const int x = f({{a{}}}){};", ".x".repeat(50), ".y".repeat(60)));
    let Declaration::Constant(c) = &program.declarations[0] else { panic!() };
    assert_eq!(height(&c.value), 1 + 50 + 1 + 1 + 60);
}

#[test]
fn several_errors_are_reported_each_at_its_place() {
    let text = "\
struct S {
    bit<8> a
    bit<8> b;
    bit<> c;
    bit<8> d;
}
const bit<8> x = ;
control C(inout S s) {
    action f() { s.a = s.b + ; s.b = 1; }
    table t {
        key = { s.a exact; s.b: exact; }
        actions = { f; 1; g; }
        size = 10;
    }
    apply {
        s.a = 1
        if (s.a == ) { s.b = 2; }
        t.apply();
    }
}
const bit<8> y = 2;
";
    assert_eq!(
        findings(text),
        [
            "2:13 expected `;`, found keyword `bit`",
            "4:9 expected an expression, found `>`",
            "7:18 expected an expression, found `;`",
            "9:30 expected an expression, found `;`",
            "11:21 expected `:`, found `exact`",
            "12:24 expected an action's name, found `1`",
            "16:16 expected `;`, found keyword `if`",
            "17:20 expected an expression, found `)`",
        ]
    );
    let parsed = parse(text);
    let names: Vec<_> =
        parsed.program.declarations.iter().filter_map(|d| d.name()).map(|n| n.as_str()).collect();
    assert_eq!(names, ["S", "C", "y"]);
    let Declaration::Control(control) = &parsed.program.declarations[1] else { panic!() };
    assert_eq!(control.locals.len(), 2);
    assert_eq!(control.apply.statements.len(), 2);
}

#[test]
fn missing_braces_end_at_the_next_declaration() {
    let text = "control C() {\n apply {\n  if (true) {\n   f();\n\nstruct S { bit<8> x; }\nconst bit y = ;\n";
    assert_eq!(
        findings(text),
        ["6:1 expected `}`, found keyword `struct`", "7:15 expected an expression, found `;`"]
    );
    let text = "enum E { A, B; C }\nstruct S {\n}\n}\nconst bit x = 1;";
    assert_eq!(findings(text), ["1:14 expected `}`, found `;`", "4:1 expected a declaration, found `}`"]);
}

#[test]
fn what_belongs_elsewhere_is_named() {
    assert_eq!(findings("bit<8> x;"), ["1:8 a variable cannot be declared at the top level"]);
    assert_eq!(findings("table t { }"), ["1:1 a table is declared inside a control"]);
    assert_eq!(findings("control C() { }"), ["1:9 a control needs an `apply` block"]);
    assert_eq!(findings("parser P() { }"), ["1:8 a parser needs at least one state"]);
    assert_eq!(
        findings("parser P() { state start { return; } }"),
        ["1:28 a `return` cannot stand in a parser state"]
    );
    assert_eq!(findings("control C() { bit f() { return 1; } apply {} }")[0], {
        "1:19 a function is declared at the top level only"
    });
    assert_eq!(findings("extern E { m(); void E2(); }")[0], {
        "1:12 `m` has no return type, and is no constructor of `E`"
    });
    assert_eq!(findings("enum E {}"), ["1:6 an enumeration needs at least one member"]);
    assert_eq!(findings("const void x = 1;"), ["1:7 `void` is not a type of values"]);
    assert_eq!(findings("const list<bit, bit> x = 1;"), ["1:7 `list` takes one type argument"]);
}
