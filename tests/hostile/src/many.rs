//! Programs with as many of one thing as fit.

use crate::program::{Program, V1, bare, body, count, fill, ingress, repeat, top};
use crate::{Family, Size};

macro_rules! families {
    ($($name:literal $make:expr;)*) => { &[$(Family { name: $name, size: Size::Bytes, make: $make }),*] };
}

/// The families; what they get is the number of bytes.
pub(crate) const FAMILIES: &[Family] = families! {
    "many-constants" |n| top(fill(n, |i| format!("const bit<8> k{i} = 1;\n")));
    "many-typedefs" |n| top(fill(n, |i| format!("typedef bit<8> t{i};\n")));
    "many-types" |n| top(fill(n, |i| format!("type bit<8> t{i};\n")));
    "many-structs" |n| top(fill(n, |i| format!("struct s{i} {{ }}\n")));
    "many-headers" |n| top(fill(n, |i| format!("header h{i} {{ }}\n")));
    "many-headers-used" |n| {
        let n = count(n, 40);
        V1 { top: repeat(n, |i| format!("header h{i} {{bit<8> a;}}\n")), headers: repeat(n, |i| format!("h{i} f{i};")), ..V1::default() }.program()
    };
    "many-unions" |n| top(fill(n, |i| format!("header_union u{i} {{ h_t a; }}\n")));
    "many-enums" |n| top(fill(n, |i| format!("enum e{i} {{ a }}\n")));
    "many-externs" |n| top(fill(n, |i| format!("extern x{i} {{ x{i}(); }}\n")));
    "many-extern-functions" |n| top(fill(n, |i| format!("extern void x{i}();\n")));
    "many-overloads" |n| top(fill(n, |i| format!("extern void x({});\n", repeat(i % 300, |j| format!("{}bit<1> a{j}", if j == 0 { "" } else { "," })))));
    "many-overloaded-calls" |n| V1 { top: repeat(200, |i| format!("extern void x(in bit<{}> a{i});\n", i + 1)),
        body: fill(n, |_| "x(a1=m.x);"), ..V1::default() }.program();
    "many-functions" |n| top(fill(n, |i| format!("void f{i}() {{ }}\n")));
    "many-functions-called" |n| {
        let n = count(n, 28);
        V1 { top: repeat(n, |i| format!("void f{i}() {{ }}\n")), body: repeat(n, |i| format!("f{i}();")), ..V1::default() }.program()
    };
    "many-actions-top" |n| top(fill(n, |i| format!("action a{i}() {{ }}\n")));
    "many-controls" |n| top(fill(n, |i| format!("control c{i}() {{ apply {{ }} }}\n")));
    "many-control-types" |n| top(fill(n, |i| format!("control c{i}();\n")));
    "many-parsers" |n| top(fill(n, |i| format!("parser p{i}(packet_in p) {{ state start {{ }} }}\n")));
    "many-packages" |n| top(fill(n, |i| format!("package p{i}();\n")));
    "many-match-kinds" |n| top(fill(n, |i| format!("match_kind {{ k{i} }}\n")));
    "many-match-kind-members" |n| top(format!("match_kind {{ z{} }}\n", fill(n, |i| format!(",k{i}"))));
    "many-errors" |n| top(fill(n, |i| format!("error {{ k{i} }}\n")));
    "many-error-members" |n| top(format!("error {{ z{} }}\n", fill(n, |i| format!(",k{i}"))));
    "many-enum-members" |n| top(format!("enum e {{ z{} }}\n", fill(n, |i| format!(",k{i}"))));
    "many-enum-members-with-values" |n| top(format!("enum bit<32> e {{ z=0{} }}\n", fill(n, |i| format!(",k{i}={i}"))));
    "many-enum-members-same-value" |n| top(format!("enum bit<32> e {{ z=0{} }}\n", fill(n, |i| format!(",k{i}=7"))));
    "many-enum-uses" |n| {
        let n = count(n, 40);
        V1 { top: format!("enum e {{ z{} }}\n", repeat(n, |i| format!(",k{i}"))), body: format!("e v = e.z;\n{}", repeat(n, |i| format!("v=e.k{i};"))), ..V1::default() }.program()
    };
    "many-error-uses" |n| {
        let n = count(n, 40).min(60000);
        V1 { top: format!("error {{ z{} }}\n", repeat(n, |i| format!(",k{i}"))), body: format!("error v = error.z;\n{}", repeat(n, |i| format!("v=error.k{i};"))), ..V1::default() }.program()
    };
    "many-struct-fields" |n| top(format!("struct s {{ {} }}\n", fill(n, |i| format!("bit<8> f{i};"))));
    "many-struct-fields-used" |n| V1 { meta: fill(n, |i| format!("bit<8> f{i};")), ..V1::default() }.program();
    "many-struct-fields-assigned" |n| {
        let n = count(n, 40);
        V1 { meta: repeat(n, |i| format!("bit<8> f{i};")), body: repeat(n, |i| format!("m.f{i}=1;")), ..V1::default() }.program()
    };
    "many-struct-fields-copied" |n| {
        let n = count(n, 60);
        V1 { meta: repeat(1000, |i| format!("bit<8> f{i};")), body: fill(n * 50, |_| "{meta_t o = m; m = o;}"), ..V1::default() }.program()
    };
    "many-struct-fields-listed" |n| {
        let n = count(n, 40);
        V1 { top: format!("struct s {{ {} }}\n", repeat(n, |i| format!("bit<8> f{i};"))),
            body: format!("s v = {{ {}1 }}; s w = v; if (v == w) {{ m.x = 1; }}", "1,".repeat(n - 1)), ..V1::default() }.program()
    };
    "many-struct-fields-named" |n| {
        let n = count(n, 40);
        V1 { top: format!("struct s {{ {} }}\n", repeat(n, |i| format!("bit<8> f{i};"))),
            body: format!("s v = {{ {}}};", repeat(n, |i| format!("{}f{i}=1", if i == 0 { "" } else { "," }))), ..V1::default() }.program()
    };
    "many-header-fields" |n| V1 { top: format!("header s {{ {} }}\n", fill(n, |i| format!("bit<8> f{i};"))),
        headers: "s s;".into(), deparser: "p.emit(hdr.s);".into(), ..V1::default() }.program();
    "many-header-fields-assigned" |n| {
        let n = count(n, 40);
        V1 { top: format!("header s {{ {} }}\n", repeat(n, |i| format!("bit<8> f{i};"))), headers: "s s;".into(),
            body: repeat(n, |i| format!("hdr.s.f{i}=1;")), deparser: "p.emit(hdr.s);".into(), ..V1::default() }.program()
    };
    "many-union-members" |n| V1 { top: format!("header_union u {{ {} }}\n", fill(n, |i| format!("h_t f{i};"))),
        headers: "u s;".into(), deparser: "p.emit(hdr.s);".into(), ..V1::default() }.program();
    "many-union-members-assigned" |n| {
        let n = count(n, 40).min(2000);
        V1 { top: format!("header_union u {{ {} }}\n", repeat(n, |i| format!("h_t f{i};"))),
        headers: "u s;".into(), body: repeat(n, |i| format!("hdr.s.f{i}.setValid();")), ..V1::default() }.program()
    };
    "many-headers-emitted" |n| {
        let n = count(n, 30);
        V1 { headers: repeat(n, |i| format!("h_t f{i};")), deparser: repeat(n, |i| format!("p.emit(hdr.f{i});")), ..V1::default() }.program()
    };
    "many-stacks" |n| V1 { headers: fill(n, |i| format!("h_t[2] f{i};")), ..V1::default() }.program();
    "many-stack-accesses" |n| V1 { headers: "h_t[1000] s;".into(), body: fill(n, |_| "hdr.s[m.x].a=m.x;"), ..V1::default() }.program();
    "many-stack-pushes" |n| V1 { headers: "h_t[1000] s;".into(), body: fill(n, |_| "hdr.s.push_front(1);"), ..V1::default() }.program();
    "many-stack-copies" |n| V1 { headers: "h_t[1000] s; h_t[1000] t;".into(), body: fill(n, |_| "hdr.s=hdr.t;"), ..V1::default() }.program();
    "many-stack-comparisons" |n| V1 { headers: "h_t[1000] s; h_t[1000] t;".into(), body: fill(n, |_| "if(hdr.s==hdr.t)m.x=1;"), ..V1::default() }.program();
    "many-array-reads" |n| V1 { meta: "bit<32>[1000] s;".into(), body: fill(n, |_| "m.x=m.s[m.x];"), ..V1::default() }.program();
    "many-tuple-members" |n| V1 { meta: format!("tuple<{}bit<1>> t;", "bit<1>,".repeat(count(n, 7))), ..V1::default() }.program();
    "many-type-parameters" |n| top(format!("struct g<{}Z> {{ Z a; }}\n", fill(n, |i| format!("T{i},"))));
    "many-type-parameters-used" |n| {
        let n = count(n, 16);
        V1 { top: format!("struct g<{}Z> {{ Z a; }}\n", repeat(n, |i| format!("T{i},"))), meta: format!("g<{}bit<1>> g;", "bit<1>,".repeat(n)), ..V1::default() }.program()
    };
    "many-generic-uses" |n| V1 { top: "struct g<T> { T a; }".into(), meta: fill(n, |i| format!("g<bit<{}>> f{i};", i % 60000 + 1)), ..V1::default() }.program();
    "many-generic-calls" |n| V1 { top: "void f<T>(in T a) { }".into(), body: fill(n, |i| format!("f<bit<{}>>(1);", i % 60000 + 1)), ..V1::default() }.program();
    "many-bit-types" |n| top(fill(n, |i| format!("typedef bit<{}> t{i};\n", i % 65000 + 1)));
    "many-parameters" |n| top(format!("void f({}in bit<1> z) {{ }}\n", fill(n, |i| format!("in bit<1> a{i},"))));
    "many-parameters-called" |n| {
        let n = count(n, 24);
        V1 { top: format!("void f({}in bit<1> z) {{ }}\n", repeat(n, |i| format!("in bit<1> a{i},"))), body: format!("f({}1);", "1,".repeat(n)), ..V1::default() }.program()
    };
    "many-parameters-named" |n| {
        let n = count(n, 30);
        V1 { top: format!("void f({}in bit<1> z) {{ }}\n", repeat(n, |i| format!("in bit<1> a{i},"))), body: format!("f({}z=1);", repeat(n, |i| format!("a{i}=1,"))), ..V1::default() }.program()
    };
    "many-parameters-inout" |n| {
        let n = count(n, 36);
        V1 { top: format!("void f({}in bit<1> z) {{ }}\n", repeat(n, |i| format!("inout bit<32> a{i},"))), body: format!("f({}1);", "m.x,".repeat(n)), ..V1::default() }.program()
    };
    "many-action-parameters" |n| ingress(format!("action a({}bit<1> z) {{ }} table t {{ key = {{ m.x : exact; }} actions = {{ a; }} }}",
        fill(n, |i| format!("bit<1> a{i},"))), "t.apply();");
    "many-control-parameters" |n| top(format!("control c({}in bit<1> z) {{ apply {{ }} }}\n", fill(n, |i| format!("in bit<1> a{i},"))));
    "many-constructor-parameters" |n| {
        let n = count(n, 20);
        V1 { top: format!("control c()({}bit<1> z) {{ apply {{ }} }}\n", repeat(n, |i| format!("bit<1> a{i},"))),
            locals: format!("c({}1) k;", "1,".repeat(n)), body: "k.apply();".into(), ..V1::default() }.program()
    };
    "many-extern-methods" |n| top(format!("extern X {{ {} }}", fill(n, |i| format!("void m{i}();"))));
    "many-extern-method-overloads" |n| top(format!("extern X {{ {} }}", fill(n, |i| format!("void m(in bit<1> a{i});"))));
    "many-instances" |n| V1 { top: "control c() { apply { } }".into(), locals: fill(n, |i| format!("c() k{i};\n")), ..V1::default() }.program();
    "many-instances-applied" |n| {
        let n = count(n, 24);
        V1 { top: "control c(inout bit<32> x) { apply { x=x+1; } }".into(), locals: repeat(n, |i| format!("c() k{i};\n")),
            body: repeat(n, |i| format!("k{i}.apply(m.x);")), ..V1::default() }.program()
    };
    "many-direct-applications" |n| V1 { top: "control c(inout bit<32> x) { apply { x=x+1; } }".into(), body: fill(n, |_| "c.apply(m.x);"), ..V1::default() }.program();
    "many-direct-applications-of-parsers" |n| V1 { top: "parser q(packet_in p) { state start { transition accept; } }".into(),
        states: format!("state start {{ {} transition accept; }}", fill(n, |_| "q.apply(p);")), ..V1::default() }.program();
    "many-counters" |n| V1 { locals: fill(n, |i| format!("counter(1, CounterType.packets) k{i};\n")), ..V1::default() }.program();
    "many-registers" |n| V1 { locals: fill(n, |i| format!("register<bit<8>>(1) k{i};\n")), ..V1::default() }.program();
    "many-registers-used" |n| {
        let n = count(n, 52);
        V1 { locals: repeat(n, |i| format!("register<bit<32>>(1) k{i};\n")), body: repeat(n, |i| format!("k{i}.read(m.x, 0);")), ..V1::default() }.program()
    };
    "many-global-instances" |n| V1 { top: fill(n, |i| format!("counter(1, CounterType.packets) k{i};\n")), ..V1::default() }.program();
    "many-value-sets" |n| V1 { parser_locals: fill(n, |i| format!("value_set<bit<32>>(1) k{i};\n")), ..V1::default() }.program();
    "many-tables" |n| ingress(fill(n, |i| format!("table t{i} {{ actions = {{ NoAction; }} }}\n")), "");
    "many-tables-applied" |n| {
        let n = count(n, 52);
        ingress(repeat(n, |i| format!("table t{i} {{ actions = {{ NoAction; }} }}\n")), repeat(n, |i| format!("t{i}.apply();")))
    };
    "many-table-applications" |n| ingress("table t { actions = { NoAction; } }", fill(n, |_| "t.apply();"));
    "many-actions" |n| ingress(fill(n, |i| format!("action a{i}() {{ }}\n")), "");
    "many-actions-of-a-table" |n| {
        let n = count(n, 24);
        ingress(format!("{}table t {{ key = {{ m.x : exact; }} actions = {{ {} }} }}", repeat(n, |i| format!("action a{i}(){{}}\n")),
            repeat(n, |i| format!("a{i};"))), "t.apply();")
    };
    "many-uses-of-an-action" |n| ingress(format!("action a() {{ m.x=1; }} table t {{ key = {{ m.x : exact; }} actions = {{ {} }} }}", fill(n, |_| "a;")), "t.apply();");
    "many-actions-of-many-tables" |n| {
        let (actions, n) = (200, count(n, 850));
        let list = repeat(actions, |i| format!("a{i};"));
        ingress(format!("{}{}", repeat(actions, |i| format!("action a{i}(){{m.x=1;}}\n")),
            repeat(n, |i| format!("table t{i} {{ key = {{ m.x : exact; }} actions = {{ {list} }} }}"))), repeat(n, |i| format!("t{i}.apply();")))
    };
    "many-tables-of-a-large-action" |n| {
        let n = n / 2;
        let k = count(n, 70);
        ingress(format!("action a() {{ {} }}\n{}", fill(n, |_| "m.x=m.x+1;"),
            repeat(k, |i| format!("table t{i} {{ actions = {{ a; }} }}\n"))), repeat(k, |i| format!("t{i}.apply();")))
    };
    "many-calls-of-a-large-action" |n| ingress(format!("action a() {{ {} }}\n", fill(n / 2, |_| "m.x=m.x+1;")), fill(n / 2, |_| "a();"));
    "many-instances-of-a-large-control" |n| V1 {
        top: format!("control c(inout bit<32> x) {{ apply {{ {} }} }}", fill(n / 2, |_| "x=x+1;")),
        body: fill(n / 2, |_| "c.apply(m.x);"), ..V1::default() }.program();
    "many-keys" |n| ingress(format!("table t {{ key = {{ {} }} actions = {{ NoAction; }} }}", fill(n, |_| "m.x : exact;")), "t.apply();");
    "many-keys-named" |n| ingress(format!("table t {{ key = {{ {} }} actions = {{ NoAction; }} }}", fill(n, |i| format!("m.x : exact @name(\"k{i}\");"))), "t.apply();");
    "many-properties" |n| ingress(format!("table t {{ {} actions = {{ NoAction; }} }}", fill(n, |i| format!("p{i} = 1;"))), "t.apply();");
    "many-entries" |n| entries(fill(n, |i| format!("{i}:NoAction();")), "exact");
    "many-entries-same" |n| entries(fill(n, |_| "1:NoAction();".to_string()), "exact");
    "many-entries-ternary" |n| entries(fill(n, |i| format!("{i}&&&0xffff:NoAction();")), "ternary");
    "many-entries-lpm" |n| entries(fill(n, |i| format!("{}&&&0xfffffff0:NoAction();", i * 16)), "lpm");
    "many-entries-range" |n| entries(fill(n, |i| format!("{i}..{}:NoAction();", i + 3)), "range");
    "many-entries-default" |n| entries(fill(n, |_| "_:NoAction();".to_string()), "ternary");
    "many-entries-priority" |n| ingress(format!("table t {{ key = {{ m.x : ternary; }} actions = {{ NoAction; }} largest_priority_wins=false; entries = {{ {} }} }}",
        fill(n, |i| format!("priority={i}:{i}&&&3:NoAction();"))), "t.apply();");
    "many-statements" |n| body(fill(n, |_| "m.x=1;"));
    "many-statements-chained" |n| body(fill(n, |_| "m.x=m.x+m.y;"));
    "many-empty-statements" |n| body(";".repeat(n));
    "many-blocks" |n| body("{}".repeat(n / 2));
    "many-ifs" |n| body(fill(n, |_| "if(m.x==1)m.y=1;"));
    "many-empty-ifs" |n| body(fill(n, |_| "if(m.x==1){}"));
    "many-ifs-in-functions" |n| V1 { top: format!("bit<32> f(in bit<32> x) {{ {} return 0; }}", fill(n, |i| format!("if(x=={i})return {i};"))),
        body: "m.x=f(m.x);".into(), ..V1::default() }.program();
    "many-exits" |n| body(fill(n, |_| "if(m.x==1)exit;"));
    "many-loops" |n| body(fill(n, |_| "for(bit<8> i in 0..1)m.x=m.x+1;"));
    "many-variables" |n| body(fill(n, |i| format!("bit<8> v{i};")));
    "many-variables-assigned" |n| body(fill(n, |i| format!("bit<8> v{i}=1;")));
    "many-variables-chained" |n| body(format!("bit<8> v0=1;{}", repeat(count(n, 20), |i| format!("bit<8> v{}=v{i};", i + 1))));
    "many-variables-shadowed" |n| body(fill(n, |_| "{bit<8> v;}"));
    "many-variables-of-a-control" |n| ingress(fill(n, |i| format!("bit<8> v{i};")), "");
    "many-uninitialised" |n| body(fill(n, |i| format!("bit<32> v{i};m.x=v{i};")));
    "many-branches-of-a-switch" |n| body(format!("switch(m.x) {{ {} }}", fill(n, |i| format!("{i}:{{}}"))));
    "many-branches-of-a-switch-full" |n| body(format!("switch(m.x) {{ {} default: {{}} }}", fill(n, |i| format!("{i}:{{m.y={i};}}"))));
    "many-branches-of-a-switch-through" |n| body(format!("switch(m.x) {{ {} default: {{ m.y=1; }} }}", fill(n, |i| format!("{i}:"))));
    "many-branches-of-a-switch-same" |n| body(format!("switch(m.x) {{ {} }}", fill(n, |_| "1:{}")));
    "many-switches-on-actions" |n| {
        let n = count(n, 44);
        ingress(format!("{}table t {{ key = {{ m.x : exact; }} actions = {{ {} }} }}", repeat(n, |i| format!("action a{i}(){{}}\n")),
            repeat(n, |i| format!("a{i};"))), format!("switch (t.apply().action_run) {{ {} }}", repeat(n, |i| format!("a{i}: {{ m.y={i}; }}"))))
    };
    "many-switches-on-enums" |n| {
        let n = count(n, 36);
        V1 { top: format!("enum e {{ z{} }}\n", repeat(n, |i| format!(",k{i}"))), meta: "e v;".into(),
            body: format!("switch(m.v) {{ {} }}", repeat(n, |i| format!("e.k{i}:{{m.y={i};}}"))), ..V1::default() }.program()
    };
    "many-states" |n| V1 { states: format!("state start {{ transition accept; }} {}", fill(n, |i| format!("state s{i} {{ transition accept; }}\n"))), ..V1::default() }.program();
    "many-states-in-a-row" |n| V1 { states: format!("state start {{ transition s0; }} {} state end {{ transition accept; }}",
        { let n = count(n, 44); repeat(n, |i| format!("state s{i} {{ m.x=m.x+1; transition {}; }}\n", if i + 1 == n { "end".into() } else { format!("s{}", i + 1) })) }), ..V1::default() }.program();
    "many-states-extracting" |n| V1 { headers: "h_t[10] s;".into(), states: format!("state start {{ transition s0; }} {} state end {{ transition accept; }}",
        { let n = count(n, 60); repeat(n, |i| format!("state s{i} {{ p.extract(hdr.s.next); transition {}; }}\n", if i + 1 == n { "end".into() } else { format!("s{}", i + 1) })) }), ..V1::default() }.program();
    "many-states-selecting" |n| V1 { states: format!("state start {{ transition s0; }} {} state end {{ transition accept; }}",
        { let n = count(n, 84); repeat(n, |i| format!("state s{i} {{ p.extract(hdr.h); transition select(hdr.h.a) {{ 1: s0; 2: {}; }} }}\n", if i + 1 == n { "end".into() } else { format!("s{}", i + 1) })) }), ..V1::default() }.program();
    "many-cases-of-a-select" |n| select(fill(n, |i| format!("{i}: accept;")));
    "many-cases-of-a-select-mask" |n| select(fill(n, |i| format!("{i} &&& 0xff: accept;")));
    "many-cases-of-a-select-range" |n| select(fill(n, |i| format!("{i}..{}: accept;", i + 5)));
    "many-cases-of-a-select-same" |n| select(fill(n, |_| "1: accept;"));
    "many-cases-of-a-select-default" |n| select(fill(n, |_| "_: accept;"));
    "many-cases-of-a-select-variable" |n| select(fill(n, |_| "m.x: accept;"));
    "many-cases-of-a-select-full" |n| {
        let n = count(n, 60);
        V1 { states: format!("state start {{ transition select(m.x) {{ {} }} }}\n{}", repeat(n, |i| format!("{i}: s{i};")),
            repeat(n, |i| format!("state s{i} {{ m.y={i}; transition accept; }}\n"))), ..V1::default() }.program()
    };
    "many-keys-of-a-select" |n| V1 { states: format!("state start {{ transition select({}m.x) {{ default: accept; }} }}", fill(n, |_| "m.x,")), ..V1::default() }.program();
    "many-extracts" |n| V1 { states: format!("state start {{ {} transition accept; }}", fill(n, |_| "p.extract(hdr.h);")), ..V1::default() }.program();
    "many-lookaheads" |n| V1 { states: format!("state start {{ {} transition accept; }}", fill(n, |_| "m.x=p.lookahead<bit<32>>();")), ..V1::default() }.program();
    "many-verifies" |n| V1 { states: format!("state start {{ {} transition accept; }}", fill(n, |_| "verify(m.x==1,error.NoError);")), ..V1::default() }.program();
    "many-annotations" |n| top(format!("{} const int k = 1;", fill(n, |i| format!("@a{i} "))));
    "many-annotations-name" |n| ingress(format!("{} action a() {{ }}", fill(n, |i| format!("@name(\"a{i}\") "))), "");
    "many-annotations-of-tables" |n| ingress(fill(n, |i| format!("@name(\"x\") @id({i}) table t{i} {{ actions = {{ NoAction; }} }}\n")), "");
    "many-annotation-tokens" |n| top(format!("@a({}) const int k = 1;", "x ".repeat(n / 2)));
    "many-annotation-pairs" |n| top(format!("@a[{}z=1] const int k = 1;", fill(n, |i| format!("k{i}=1,"))));
    "many-annotation-values" |n| top(format!("@a[{}1] const int k = 1;", "1,".repeat(n / 2)));
    "many-arguments-of-a-log" |n| body(format!("log_msg(\"{}\", {{ {}m.x }});", "{}".repeat(n / 6), "m.x,".repeat(n / 6)));
    "many-hash-fields" |n| body(format!("hash(m.x, HashAlgorithm.crc16, 32w0, {{ {}m.x }}, 32w16);", "m.x,".repeat(n / 4)));
    "many-hashes" |n| body(fill(n, |_| "hash(m.x, HashAlgorithm.crc16, 32w0, { m.x, m.y }, 32w16);"));
    "many-digests" |n| body(fill(n, |_| "digest<h_t>(1, hdr.h);"));
    "many-clones" |n| body(fill(n, |_| "clone_preserving_field_list(CloneType.I2E,1,1);"));
    "many-field-lists" |n| V1 { meta: fill(n, |i| format!("@field_list({}) bit<8> f{i};", i % 255)), body: repeat(200, |i| format!("clone_preserving_field_list(CloneType.I2E,1,{i});")), ..V1::default() }.program();
    "many-undeclared" |n| body(fill(n, |i| format!("v{i}=1;")));
    "many-undeclared-near" |n| {
        let n = count(n, 40);
        V1 { top: repeat(n, |i| format!("const int variable{i}=1;\n")), body: repeat(n, |i| format!("variablf{i}=1;")), ..V1::default() }.program()
    };
    "many-undeclared-long" |n| {
        let long = "a".repeat(1000);
        let n = count(n, 2100);
        V1 { top: repeat(n, |i| format!("const int {long}{i}=1;\n")), body: repeat(n, |i| format!("{long}b{i}=1;")), ..V1::default() }.program()
    };
    "many-undeclared-types" |n| top(fill(n, |i| format!("const t{i} k{i} = 1;\n")));
    "many-undeclared-members" |n| V1 { meta: fill(n / 2, |i| format!("bit<8> f{i};")), body: fill(n / 2, |i| format!("m.g{i}=1;")), ..V1::default() }.program();
    "many-wrong-types" |n| body(fill(n, |_| "m.x=true;"));
    "many-wrong-structs" |n| V1 { meta: repeat(500, |i| format!("bit<8> field{i};")), body: fill(n, |_| "m=hdr;"), ..V1::default() }.program();
    "many-wrong-generics" |n| V1 { top: "struct G<T> { T a; }\nvoid f<T>(in T a, in T b) { }".into(), body: fill(n, |_| "f(m,hdr);"), ..V1::default() }.program();
    "many-duplicates" |n| top(fill(n, |_| "const int k=1;\n"));
    "many-duplicate-fields" |n| top(format!("struct s {{ {} }}", fill(n, |_| "bit<8> f;")));
    "many-duplicate-names" |n| ingress(fill(n, |i| format!("@name(\"x\") table t{i} {{ actions = {{ NoAction; }} }}\n")), "");
    "many-syntax-errors" |n| bare(fill(n, |_| "x;\n"));
    "many-syntax-errors-in-a-line" |n| bare(fill(n, |_| "const ; "));
    "many-syntax-errors-in-a-body" |n| body(fill(n, |_| "x y;"));
    "many-warnings" |n| body(fill(n, |_| "bit<32> v; m.x=v;").replace("bit<32> v;", "{bit<32> v;").replace("m.x=v;", "m.x=v;}"));
    "many-divisions-by-zero" |n| body(fill(n, |_| "m.x=m.x/0;"));
    "many-large-widths" |n| body(fill(n, |i| format!("bit<60000> v{i}=1;v{i}=v{i}+1;")));
    "many-large-shifts" |n| body(fill(n, |_| "m.x=(bit<32>)(1<<65535);"));
    "many-large-slices" |n| body(fill(n, |_| "m.x=(60000w1<<59999)[59999:59968];"));
    "many-recursive-calls" |n| top(fill(n, |i| format!("void f{i}() {{ f{i}(); }}\n")));
    "many-lists" |n| V1 { top: format!("const list<bit<8>> l = {{ {} 1 }};", "1,".repeat(n / 2)), ..V1::default() }.program();
    "many-members-of-a-list-expression" |n| body(format!("m = {{ {} 1 }};", "1,".repeat(n / 2)));
    "many-conditions" |n| body(fill(n, |_| "m.x=m.y==1?m.x:m.y;"));
    "many-mux-chains" |n| body(fill(n, |_| "if(m.x==1&&m.y==2||hdr.h.isValid())m.x=3;"));
    "many-operators-assign" |n| body(fill(n, |_| "m.x+=1;"));
    "many-validities" |n| V1 { headers: repeat(1000, |i| format!("h_t f{i};")), body: fill(n, |i| format!("hdr.f{}.setValid();", i % 1000)), ..V1::default() }.program();
    "many-validity-branches" |n| V1 { headers: repeat(1000, |i| format!("h_t f{i};")), body: fill(n, |i| format!("if(hdr.f{}.isValid())hdr.f{}.setInvalid();", i % 1000, i % 999)), ..V1::default() }.program();
    "many-slots-and-branches" |n| V1 { meta: repeat(10_000, |i| format!("bit<8> f{i};")), body: fill(n / 2, |i| format!("if(m.x=={i})m.f{}=1;", i % 10_000)), ..V1::default() }.program();
    "many-locals-and-branches" |n| body(fill(n, |i| format!("bit<32> v{i};if(m.x=={i})v{i}=m.y;else v{i}=1;m.y=v{i};")));
};

fn entries(list: String, kind: &str) -> Program {
    ingress(
        format!(
            "table t {{ key = {{ m.x : {kind}; }} actions = {{ NoAction; }} const entries = {{ {list} }} }}"
        ),
        "t.apply();",
    )
}

fn select(cases: impl std::fmt::Display) -> Program {
    V1 { states: format!("state start {{ transition select(m.x) {{ {cases} }} }}"), ..V1::default() }
        .program()
}
