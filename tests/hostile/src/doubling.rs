//! Programs of a few lines that mean many things: each declaration uses the one before twice.

use crate::program::{Program, V1, bare, body, ingress, old_ingress, repeat, top};
use crate::{Family, Size};

/// The families; what they get is how often they double.
pub(crate) const FAMILIES: &[Family] = &[
    Family { name: "x2-controls", size: Size::Doublings, make: controls },
    Family { name: "x2-controls-direct", size: Size::Doublings, make: controls_direct },
    Family { name: "x2-control-calls", size: Size::Doublings, make: control_calls },
    Family { name: "x2-control-tables", size: Size::Doublings, make: control_tables },
    Family { name: "x2-parsers", size: Size::Doublings, make: parsers },
    Family { name: "x2-parsers-direct", size: Size::Doublings, make: parsers_direct },
    Family { name: "x2-parser-calls", size: Size::Doublings, make: parser_calls },
    Family { name: "x2-functions", size: Size::Doublings, make: functions },
    Family { name: "x2-functions-value", size: Size::Doublings, make: functions_value },
    Family { name: "x2-functions-empty", size: Size::Doublings, make: functions_empty },
    Family { name: "x2-functions-constant", size: Size::Doublings, make: functions_constant },
    Family { name: "x2-functions-generic", size: Size::Doublings, make: functions_generic },
    Family { name: "x2-actions", size: Size::Doublings, make: actions },
    Family { name: "x2-actions-in-table", size: Size::Doublings, make: actions_in_table },
    Family { name: "x2-actions-empty", size: Size::Doublings, make: actions_empty },
    Family { name: "x2-structs", size: Size::Doublings, make: structs },
    Family { name: "x2-structs-unused", size: Size::Doublings, make: structs_unused },
    Family { name: "x2-structs-empty", size: Size::Doublings, make: structs_empty },
    Family { name: "x2-structs-of-headers", size: Size::Doublings, make: structs_of_headers },
    Family { name: "x2-structs-in-header", size: Size::Doublings, make: structs_in_header },
    Family { name: "x2-structs-local", size: Size::Doublings, make: structs_local },
    Family { name: "x2-structs-compared", size: Size::Doublings, make: structs_compared },
    Family { name: "x2-structs-default", size: Size::Doublings, make: structs_default },
    Family { name: "x2-structs-digest", size: Size::Doublings, make: structs_digest },
    Family { name: "x2-structs-of-stacks", size: Size::Doublings, make: structs_of_stacks },
    Family { name: "x2-structs-constructor", size: Size::Doublings, make: structs_constructor },
    Family { name: "x2-structs-key", size: Size::Doublings, make: structs_key },
    Family { name: "x2-unions", size: Size::Doublings, make: unions },
    Family { name: "x2-generic-structs", size: Size::Doublings, make: generic_structs },
    Family { name: "x2-generic-nested", size: Size::Doublings, make: generic_nested },
    Family { name: "x2-generic-arguments", size: Size::Doublings, make: generic_arguments },
    Family { name: "x2-generic-polymorphic", size: Size::Doublings, make: generic_polymorphic },
    Family { name: "x2-generic-headers", size: Size::Doublings, make: generic_headers },
    Family { name: "x2-generic-inferred", size: Size::Doublings, make: generic_inferred },
    Family { name: "x2-tuples", size: Size::Doublings, make: tuples },
    Family { name: "x2-tuples-in-line", size: Size::Doublings, make: tuples_in_line },
    Family { name: "x2-arrays", size: Size::Doublings, make: arrays },
    Family { name: "x2-stack-sizes", size: Size::Doublings, make: stack_sizes },
    Family { name: "x2-constant-tuples", size: Size::Doublings, make: constant_tuples },
    Family { name: "x2-constant-structs", size: Size::Doublings, make: constant_structs },
    Family { name: "x2-constant-lists", size: Size::Doublings, make: constant_lists },
    Family { name: "x2-constant-strings", size: Size::Doublings, make: constant_strings },
    Family { name: "x2-constant-squares", size: Size::Doublings, make: constant_squares },
    Family { name: "x2-constant-shifts", size: Size::Doublings, make: constant_shifts },
    Family { name: "x2-constant-widths", size: Size::Doublings, make: constant_widths },
    Family { name: "x2-constant-sums", size: Size::Doublings, make: constant_sums },
    Family { name: "x2-expressions", size: Size::Doublings, make: expressions },
    Family { name: "x2-concatenations", size: Size::Doublings, make: concatenations },
    Family { name: "x2-loops", size: Size::Doublings, make: loops },
    Family { name: "x2-loops-calls", size: Size::Doublings, make: loops_calls },
    Family { name: "x2-packages", size: Size::Doublings, make: packages },
    Family { name: "x2-constructor-arguments", size: Size::Doublings, make: constructor_arguments },
    Family { name: "x2-instances-local", size: Size::Doublings, make: instances_local },
    Family { name: "x2-macros", size: Size::Doublings, make: macros },
    Family { name: "x2-macros-empty", size: Size::Doublings, make: macros_empty },
    Family { name: "x2-macros-function", size: Size::Doublings, make: macros_function },
    Family { name: "x2-macros-arguments", size: Size::Doublings, make: macros_arguments },
    Family { name: "x2-macros-pasted", size: Size::Doublings, make: macros_pasted },
    Family { name: "x2-macros-string", size: Size::Doublings, make: macros_string },
    Family { name: "x2-macros-condition", size: Size::Doublings, make: macros_condition },
    Family { name: "x2-annotations", size: Size::Doublings, make: annotations },
    Family { name: "x2-old-controls", size: Size::Doublings, make: old_controls },
    Family { name: "x2-old-actions", size: Size::Doublings, make: old_actions },
    Family { name: "x2-old-actions-empty", size: Size::Doublings, make: old_actions_empty },
    Family { name: "x2-old-field-lists", size: Size::Doublings, make: old_field_lists },
    Family { name: "x2-old-field-lists-used", size: Size::Doublings, make: old_field_lists_used },
    Family { name: "x2-old-parsers", size: Size::Doublings, make: old_parsers },
    Family { name: "x2-old-expressions", size: Size::Doublings, make: old_expressions },
];

/// A first declaration, and one for each doubling that uses its predecessor; the number of the last.
fn chain(n: usize, first: &str, next: impl Fn(usize, usize) -> String) -> String {
    format!("{first}\n{}", repeat(n, |i| next(i + 1, i)))
}

fn controls(n: usize) -> Program {
    let top = chain(n, "control c0(inout bit<32> x) { apply { x = x + 1; } }", |i, p| {
        format!(
            "control c{i}(inout bit<32> x) {{ c{p}() a; c{p}() b; apply {{ a.apply(x); b.apply(x); }} }}\n"
        )
    });
    V1 { top, locals: format!("c{n}() c;"), body: "c.apply(m.x);".into(), ..V1::default() }.program()
}

fn controls_direct(n: usize) -> Program {
    let top = chain(n, "control c0(inout bit<32> x) { apply { x = x + 1; } }", |i, p| {
        format!("control c{i}(inout bit<32> x) {{ apply {{ c{p}.apply(x); c{p}.apply(x); }} }}\n")
    });
    V1 { top, body: format!("c{n}.apply(m.x);"), ..V1::default() }.program()
}

fn control_calls(n: usize) -> Program {
    let top = chain(n, "control c0(inout bit<32> x) { apply { x = x + 1; } }", |i, p| {
        format!("control c{i}(inout bit<32> x) {{ c{p}() a; apply {{ a.apply(x); a.apply(x); }} }}\n")
    });
    V1 { top, locals: format!("c{n}() c;"), body: "c.apply(m.x);".into(), ..V1::default() }.program()
}

fn control_tables(n: usize) -> Program {
    let first = "control c0(inout bit<32> x) { action a(bit<32> d) { x = d; } action b() { x = 1; }\n\
                 table t { key = { x : exact; } actions = { a; b; NoAction; } size = 16; } apply { t.apply(); } }";
    let top = chain(n, first, |i, p| {
        format!(
            "control c{i}(inout bit<32> x) {{ c{p}() a; c{p}() b; apply {{ a.apply(x); b.apply(x); }} }}\n"
        )
    });
    V1 { top, locals: format!("c{n}() c;"), body: "c.apply(m.x);".into(), ..V1::default() }.program()
}

const PARSER: &str = "parser p0(packet_in p, out h_t h) { state start { p.extract(h); transition accept; } }";

fn parsers(n: usize) -> Program {
    let top = chain(n, PARSER, |i, p| {
        format!(
            "parser p{i}(packet_in p, out h_t h) {{ p{p}() a; p{p}() b; \
             state start {{ a.apply(p, h); b.apply(p, h); transition accept; }} }}\n"
        )
    });
    let states = format!("p{n}() q; state start {{ q.apply(p, hdr.h); transition accept; }}");
    V1 { top, states, ..V1::default() }.program()
}

fn parsers_direct(n: usize) -> Program {
    let top = chain(n, PARSER, |i, p| {
        format!(
            "parser p{i}(packet_in p, out h_t h) {{ \
             state start {{ p{p}.apply(p, h); p{p}.apply(p, h); transition accept; }} }}\n"
        )
    });
    let states = format!("state start {{ p{n}.apply(p, hdr.h); transition accept; }}");
    V1 { top, states, ..V1::default() }.program()
}

fn parser_calls(n: usize) -> Program {
    let top = chain(n, PARSER, |i, p| {
        format!(
            "parser p{i}(packet_in p, out h_t h) {{ p{p}() a; \
             state start {{ a.apply(p, h); transition next; }} \
             state next {{ a.apply(p, h); transition accept; }} }}\n"
        )
    });
    let states = format!("p{n}() q; state start {{ q.apply(p, hdr.h); transition accept; }}");
    V1 { top, states, ..V1::default() }.program()
}

fn functions(n: usize) -> Program {
    let top = chain(n, "void f0(inout bit<32> x) { x = x + 1; }", |i, p| {
        format!("void f{i}(inout bit<32> x) {{ f{p}(x); f{p}(x); }}\n")
    });
    V1 { top, body: format!("f{n}(m.x);"), ..V1::default() }.program()
}

fn functions_value(n: usize) -> Program {
    let top = chain(n, "bit<32> f0(in bit<32> x) { return x + 1; }", |i, p| {
        format!("bit<32> f{i}(in bit<32> x) {{ return f{p}(x) + f{p}(x); }}\n")
    });
    V1 { top, body: format!("m.x = f{n}(m.x);"), ..V1::default() }.program()
}

fn functions_empty(n: usize) -> Program {
    let top = chain(n, "void f0() { }", |i, p| format!("void f{i}() {{ f{p}(); f{p}(); }}\n"));
    V1 { top, body: format!("f{n}();"), ..V1::default() }.program()
}

fn functions_constant(n: usize) -> Program {
    let top = chain(n, "bit<32> f0(in bit<32> x) { return 1; }", |i, p| {
        format!("bit<32> f{i}(in bit<32> x) {{ return f{p}(1) + f{p}(2); }}\n")
    });
    V1 { top, body: format!("m.x = f{n}(3);"), ..V1::default() }.program()
}

fn functions_generic(n: usize) -> Program {
    let top = chain(n, "T f0<T>(in T x) { return x; }", |i, p| {
        format!("T f{i}<T>(in T x) {{ T y = f{p}(x); return f{p}(y); }}\n")
    });
    V1 { top, body: format!("m.x = f{n}(m.x);"), ..V1::default() }.program()
}

fn actions(n: usize) -> Program {
    let locals =
        chain(n, "action a0() { m.x = m.x + 1; }", |i, p| format!("action a{i}() {{ a{p}(); a{p}(); }}\n"));
    ingress(locals, format!("a{n}();"))
}

fn actions_in_table(n: usize) -> Program {
    let locals =
        chain(n, "action a0() { m.x = m.x + 1; }", |i, p| format!("action a{i}() {{ a{p}(); a{p}(); }}\n"));
    ingress(format!("{locals} table t {{ key = {{ m.y : exact; }} actions = {{ a{n}; }} }}"), "t.apply();")
}

fn actions_empty(n: usize) -> Program {
    let locals = chain(n, "action a0() { }", |i, p| format!("action a{i}() {{ a{p}(); a{p}(); }}\n"));
    ingress(locals, format!("a{n}();"))
}

fn struct_chain(n: usize, first: &str) -> String {
    chain(n, first, |i, p| format!("struct s{i} {{ s{p} a; s{p} b; }}\n"))
}

fn structs(n: usize) -> Program {
    let top = struct_chain(n, "struct s0 { bit<32> v; }");
    V1 { top, meta: format!("s{n} s;"), ..V1::default() }.program()
}

fn structs_unused(n: usize) -> Program {
    top(struct_chain(n, "struct s0 { bit<32> v; }"))
}

fn structs_empty(n: usize) -> Program {
    let top = struct_chain(n, "struct s0 { }");
    V1 { top, meta: format!("s{n} s;"), ..V1::default() }.program()
}

fn structs_of_headers(n: usize) -> Program {
    let top = struct_chain(n, "struct s0 { h_t h; }");
    V1 { top, headers: format!("s{n} s;"), ..V1::default() }.program()
}

fn structs_in_header(n: usize) -> Program {
    let top = format!("{} header big {{ s{n} s; }}", struct_chain(n, "struct s0 { bit<32> v; }"));
    V1 { top, headers: "big s;".into(), deparser: "p.emit(hdr.s);".into(), ..V1::default() }.program()
}

fn structs_local(n: usize) -> Program {
    let top = struct_chain(n, "struct s0 { bit<32> v; }");
    V1 { top, body: format!("s{n} s; s{n} t; s = t;"), ..V1::default() }.program()
}

fn structs_compared(n: usize) -> Program {
    let top = struct_chain(n, "struct s0 { bit<32> v; }");
    V1 { top, body: format!("s{n} s; s{n} t; if (s == t) {{ m.x = 1; }}"), ..V1::default() }.program()
}

fn structs_default(n: usize) -> Program {
    let top = struct_chain(n, "struct s0 { bit<32> v; }");
    V1 { top, body: format!("s{n} s = ...;"), ..V1::default() }.program()
}

fn structs_digest(n: usize) -> Program {
    let top = struct_chain(n, "struct s0 { bit<32> v; }");
    V1 { top, body: format!("s{n} s; digest<s{n}>(1, s);"), ..V1::default() }.program()
}

fn structs_of_stacks(n: usize) -> Program {
    let top = struct_chain(n, "struct s0 { h_t[8] h; }");
    V1 { top, headers: format!("s{n} s;"), ..V1::default() }.program()
}

fn structs_constructor(n: usize) -> Program {
    let first = "struct s0 { bit<32> v; }";
    let top = format!("{} control k(inout bit<32> x)(s{n} s) {{ apply {{ }} }}", struct_chain(n, first));
    let init = (0..n.min(18)).fold("{ 1 }".to_string(), |init, _| format!("{{ {init}, {init} }}"));
    V1 { top, locals: format!("k({init}) c;"), body: "c.apply(m.x);".into(), ..V1::default() }.program()
}

fn structs_key(n: usize) -> Program {
    let top = struct_chain(n, "struct s0 { bit<32> v; }");
    let states = format!("state start {{ s{n} s; transition select(s) {{ default: accept; }} }}");
    V1 { top, states, ..V1::default() }.program()
}

fn unions(n: usize) -> Program {
    let first = "header_union u_t { h_t a; h_t b; } struct s0 { u_t u; }";
    V1 { top: struct_chain(n, first), headers: format!("s{n} s;"), ..V1::default() }.program()
}

fn generic_structs(n: usize) -> Program {
    let ty = (0..n.min(18)).fold("bit<8>".to_string(), |ty, _| format!("G<{ty}, {ty}>"));
    let top = format!("struct G<T, U> {{ T a; U b; }}\ntypedef {ty} big;");
    V1 { top, meta: "big g;".into(), ..V1::default() }.program()
}

fn generic_nested(n: usize) -> Program {
    let top = chain(n, "struct g0<T> { T a; }", |i, p| {
        format!("struct g{i}<T> {{ g{p}<T> a; g{p}<tuple<T, T>> b; }}\n")
    });
    V1 { top, meta: format!("g{n}<bit<8>> g;"), ..V1::default() }.program()
}

fn generic_arguments(n: usize) -> Program {
    let top =
        chain(n, "struct G<T> { T a; T b; }\ntypedef bit<8> t0;", |i, p| format!("typedef G<t{p}> t{i};\n"));
    V1 { top, meta: format!("t{n} g;"), ..V1::default() }.program()
}

fn generic_polymorphic(n: usize) -> Program {
    let top = chain(n, "struct g0<T> { T a; }", |i, p| format!("struct g{i}<T> {{ g{p}<g{p}<T>> a; }}\n"));
    V1 { top, meta: format!("g{n}<bit<8>> g;"), ..V1::default() }.program()
}

fn generic_headers(n: usize) -> Program {
    let top = chain(n, "struct G<T, U> { T a; U b; }\ntypedef bit<8> t0;", |i, p| {
        format!("typedef G<t{p}, tuple<t{p}, t{p}>> t{i};\n")
    });
    V1 { top: format!("{top} header big<T> {{ T t; }}"), headers: format!("big<t{n}> g;"), ..V1::default() }
        .program()
}

fn generic_inferred(n: usize) -> Program {
    let calls = chain(n, "let_0", |_, _| String::new());
    let _ = calls;
    let value = (0..n.min(15)).fold("m.x".to_string(), |v, _| format!("{{ {v}, {v} }}"));
    V1 {
        top: "void f<T>(in T x) { T y = x; T z = y; }".into(),
        body: format!("f({value});"),
        ..V1::default()
    }
    .program()
}

fn tuples(n: usize) -> Program {
    let top = chain(n, "typedef bit<32> t0;", |i, p| format!("typedef tuple<t{p}, t{p}> t{i};\n"));
    V1 { top, meta: format!("t{n} t;"), ..V1::default() }.program()
}

fn tuples_in_line(n: usize) -> Program {
    let ty = (0..n.min(18)).fold("bit<8>".to_string(), |ty, _| format!("tuple<{ty}, {ty}>"));
    V1 { meta: format!("{ty} t;"), ..V1::default() }.program()
}

fn arrays(n: usize) -> Program {
    let top = chain(n, "struct s0 { bit<8> v; }", |i, p| format!("struct s{i} {{ s{p}[2] a; }}\n"));
    V1 { top, meta: format!("s{n} s;"), ..V1::default() }.program()
}

fn stack_sizes(n: usize) -> Program {
    V1 { headers: format!("h_t[{}] s;", 1u64 << n.min(40)), ..V1::default() }.program()
}

fn constant_tuples(n: usize) -> Program {
    let top = chain(n, "typedef bit<32> t0; const t0 k0 = 1;", |i, p| {
        format!("typedef tuple<t{p}, t{p}> t{i}; const t{i} k{i} = {{ k{p}, k{p} }};\n")
    });
    V1 { top, body: format!("t{n} v = k{n};"), ..V1::default() }.program()
}

fn constant_structs(n: usize) -> Program {
    let top = chain(n, "struct s0 { bit<32> v; } const s0 k0 = { 1 };", |i, p| {
        format!("struct s{i} {{ s{p} a; s{p} b; }} const s{i} k{i} = {{ k{p}, k{p} }};\n")
    });
    V1 { top, body: format!("s{n} v = k{n}; if (v == k{n}) {{ m.x = 1; }}"), ..V1::default() }.program()
}

fn constant_lists(n: usize) -> Program {
    let top =
        chain(n, "const list<tuple<bit<32>>> k0 = { { 1 } }; typedef list<tuple<bit<32>>> l0;", |i, p| {
            format!("typedef list<l{p}> l{i}; const l{i} k{i} = {{ k{p}, k{p} }};\n")
        });
    top_only(top)
}

fn top_only(text: String) -> Program {
    top(text)
}

fn constant_strings(n: usize) -> Program {
    let top = chain(n, "const string k0 = \"abcd\";", |i, p| format!("const string k{i} = k{p} ++ k{p};\n"));
    V1 { top, body: format!("log_msg(k{n});"), ..V1::default() }.program()
}

fn constant_squares(n: usize) -> Program {
    let top = chain(n, "const int k0 = 3;", |i, p| format!("const int k{i} = k{p} * k{p};\n"));
    V1 { top, body: format!("m.x = (bit<32>)(k{n} % 7);"), ..V1::default() }.program()
}

fn constant_shifts(n: usize) -> Program {
    let top = chain(n, "const int k0 = 1;", |i, p| format!("const int k{i} = k{p} << 65535;\n"));
    V1 { top, body: format!("m.x = (bit<32>)(k{n} >> 7);"), ..V1::default() }.program()
}

fn constant_widths(n: usize) -> Program {
    let top = chain(n, "const bit<8> k0 = 1;", |i, p| {
        format!("const bit<{}> k{i} = k{p} ++ k{p};\n", 8u128 << i.min(100))
    });
    V1 { top, ..V1::default() }.program()
}

fn constant_sums(n: usize) -> Program {
    let top = chain(n, "const int k0 = 1;", |i, p| format!("const int k{i} = k{p} + k{p};\n"));
    V1 { top, body: format!("m.x = (bit<32>)(k{n} % 7);"), ..V1::default() }.program()
}

fn expressions(n: usize) -> Program {
    let sum = (0..n.min(16)).fold("m.x".to_string(), |sum, _| format!("({sum} + {sum})"));
    body(format!("m.x = {sum};"))
}

fn concatenations(n: usize) -> Program {
    let body_text = repeat(n, |i| format!("bit<{}> v{} = v{i} ++ v{i};\n", 2u128 << i.min(100), i + 1));
    body(format!("bit<1> v0 = 1;\n{body_text}"))
}

fn loops(n: usize) -> Program {
    let open = repeat(n, |i| format!("for (bit<8> i{i} in 0 .. 1) {{\n"));
    body(format!("{open} m.x = m.x + 1; {}", "}".repeat(n)))
}

fn loops_calls(n: usize) -> Program {
    let top = chain(n, "void f0(inout bit<32> x) { x = x + 1; }", |i, p| {
        format!("void f{i}(inout bit<32> x) {{ for (bit<8> i in 0 .. 9) {{ f{p}(x); f{p}(x); }} }}\n")
    });
    V1 { top, body: format!("f{n}(m.x);"), ..V1::default() }.program()
}

fn packages(n: usize) -> Program {
    let chain =
        chain(n, "extern X { X(); } package K0(X x);", |i, p| format!("package K{i}(K{p} a, K{p} b);\n"));
    let value =
        (0..n.min(15)).enumerate().fold("K0(X())".to_string(), |v, (i, _)| format!("K{}({v}, {v})", i + 1));
    bare(format!(
        "{chain}\nK{}({}) main;",
        n.min(15),
        value.split_once('(').map_or("", |v| v.1).trim_end_matches(')')
    ))
}

fn constructor_arguments(n: usize) -> Program {
    let top = chain(n, "control c0(inout bit<32> x)(bit<32> k) { apply { x = x + k; } }", |i, p| {
        format!(
            "control c{i}(inout bit<32> x)(bit<32> k) {{ c{p}(k + 1) a; c{p}(k + {i}) b; \
             apply {{ a.apply(x); b.apply(x); }} }}\n"
        )
    });
    V1 { top, locals: format!("c{n}(1) c;"), body: "c.apply(m.x);".into(), ..V1::default() }.program()
}

fn instances_local(n: usize) -> Program {
    let top = chain(n, "control c0() { apply { } }", |i, p| {
        format!("control c{i}() {{ c{p}() a; c{p}() b; apply {{ }} }}\n")
    });
    V1 { top, locals: format!("c{n}() c;"), ..V1::default() }.program()
}

fn macros(n: usize) -> Program {
    let text = chain(n, "#define A0 m.x=1;", |i, p| format!("#define A{i} A{p} A{p}\n"));
    V1 { top: text, body: format!("A{n}"), ..V1::default() }.program()
}

fn macros_empty(n: usize) -> Program {
    let text = chain(n, "#define A0", |i, p| format!("#define A{i} A{p} A{p}\n"));
    V1 { top: text, body: format!("A{n}"), ..V1::default() }.program()
}

fn macros_function(n: usize) -> Program {
    let text = chain(n, "#define A0(x) x", |i, p| format!("#define A{i}(x) A{p}(x x)\n"));
    V1 { top: text, body: format!("A{n}(m.x = 1;)"), ..V1::default() }.program()
}

fn macros_arguments(n: usize) -> Program {
    let text = "#define F(x) x x\n";
    let value = (0..n).fold("m.x = 1;".to_string(), |v, _| format!("F({v})"));
    V1 { top: text.into(), body: value, ..V1::default() }.program()
}

fn macros_pasted(n: usize) -> Program {
    let text = "#define CAT(a, b) CAT_(a, b)\n#define CAT_(a, b) a ## b\n#define A0 a\n";
    let next = repeat(n, |i| format!("#define A{} CAT(A{i}, A{i})\n", i + 1));
    V1 { top: format!("{text}{next}"), body: format!("bit<8> A{n} = 1;"), ..V1::default() }.program()
}

fn macros_string(n: usize) -> Program {
    let text = "#define S(x) S_(x)\n#define S_(x) #x\n#define A0 \"\\\\\"\n";
    let next = repeat(n, |i| format!("#define A{} S(A{i})\n", i + 1));
    V1 { top: format!("{text}{next}"), body: format!("log_msg(A{n});"), ..V1::default() }.program()
}

fn macros_condition(n: usize) -> Program {
    let text = chain(n, "#define A0 1", |i, p| format!("#define A{i} A{p} + A{p}\n"));
    top(format!("{text}\n#if A{n} > 7\nconst int k = 1;\n#endif"))
}

fn annotations(n: usize) -> Program {
    let text = chain(n, "#define A0 @a(1)", |i, p| format!("#define A{i} A{p} A{p}\n"));
    top(format!("{text}\nA{n} const int k = 1;"))
}

fn old_controls(n: usize) -> Program {
    let top = chain(
        n,
        "action add() { modify_field(m.x, m.y); }\ntable t { actions { add; } }\n\
                        control c0 { if (m.x == 1) { if (m.y == 2) { } } }",
        |i, p| format!("control c{i} {{ c{p}(); c{p}(); }}\n"),
    );
    old_ingress(top, format!("c{n}(); apply(t);"))
}

fn old_actions(n: usize) -> Program {
    let top = chain(n, "action a0() { modify_field(m.x, m.y); }", |i, p| {
        format!("action a{i}() {{ a{p}(); a{p}(); }}\n")
    });
    old_ingress(format!("{top}\ntable t {{ actions {{ a{n}; }} }}"), "apply(t);")
}

fn old_actions_empty(n: usize) -> Program {
    let top = chain(n, "action a0() { }", |i, p| format!("action a{i}() {{ a{p}(); a{p}(); }}\n"));
    old_ingress(format!("{top}\ntable t {{ actions {{ a{n}; }} }}"), "apply(t);")
}

fn old_lists(n: usize) -> String {
    chain(n, "field_list l0 { m.x; }", |i, p| format!("field_list l{i} {{ l{p}; l{p}; }}\n"))
}

fn old_field_lists(n: usize) -> Program {
    old_ingress(old_lists(n), "")
}

fn old_field_lists_used(n: usize) -> Program {
    let top = format!(
        "{}\nfield_list_calculation s {{ input {{ l{n}; }} algorithm : crc16; output_width : 16; }}\n\
         action a() {{ modify_field_with_hash_based_offset(m.x, 0, s, 16); }} table t {{ actions {{ a; }} }}",
        old_lists(n)
    );
    old_ingress(top, "apply(t);")
}

fn old_parsers(n: usize) -> Program {
    let top = repeat(n, |i| {
        format!(
            "parser p{i} {{ extract(h); return select(h.a) {{ 0 : p{}; 1 : p{}; default : ingress; }} }}\n",
            i + 1,
            i + 1
        )
    });
    old_ingress(format!("{top} parser p{n} {{ return ingress; }}"), "")
}

fn old_expressions(n: usize) -> Program {
    let sum = (0..n.min(15)).fold("m.x".to_string(), |sum, _| format!("({sum} + {sum})"));
    let top = format!("action a() {{ modify_field(m.x, {sum}); }} table t {{ actions {{ a; }} }}");
    old_ingress(top, "apply(t);")
}
