//! Programs that nest, as deep as their size allows.

use crate::program::{V1, bare, body, count, ingress, old_ingress, repeat, top};
use crate::{Family, Size};

/// The families; what they get is the number of bytes.
pub(crate) const FAMILIES: &[Family] = &[
    Family {
        name: "deep-parentheses",
        size: Size::Bytes,
        make: |n| body(nest(n, "m.x = ", "(", "m.x", ")", ";")),
    },
    Family {
        name: "deep-unclosed",
        size: Size::Bytes,
        make: |n| body(nest(n, "m.x = ", "(", "m.x", "", ";")),
    },
    Family { name: "deep-braces", size: Size::Bytes, make: |n| body(nest(n, "", "{", "", "}", "")) },
    Family { name: "deep-braces-unclosed", size: Size::Bytes, make: |n| bare("{".repeat(n)) },
    Family {
        name: "deep-blocks-of-ifs",
        size: Size::Bytes,
        make: |n| body(nest(n, "", "if(m.x==1){", "", "}", "")),
    },
    Family {
        name: "deep-ifs",
        size: Size::Bytes,
        make: |n| body(nest(n, "", "if(m.x==1) ", "m.y=1;", "", "")),
    },
    Family { name: "deep-not", size: Size::Bytes, make: |n| body(nest(n, "m.x = ", "~", "m.x", "", ";")) },
    Family { name: "deep-minus", size: Size::Bytes, make: |n| body(nest(n, "m.x = ", "- ", "m.x", "", ";")) },
    Family {
        name: "deep-casts",
        size: Size::Bytes,
        make: |n| body(nest(n, "m.x = ", "(bit<32>)", "m.x", "", ";")),
    },
    Family {
        name: "deep-conditional",
        size: Size::Bytes,
        make: |n| body(nest(n, "m.x = ", "m.y==1?m.y:", "m.x", "", ";")),
    },
    Family {
        name: "deep-conditional-left",
        size: Size::Bytes,
        make: |n| body(nest(n, "bool b = ", "", "m.x==1", "?true:false", ";")),
    },
    Family { name: "deep-sum", size: Size::Bytes, make: |n| body(nest(n, "m.x = ", "m.y+", "m.x", "", ";")) },
    Family {
        name: "deep-sum-right",
        size: Size::Bytes,
        make: |n| body(nest(n, "m.x = ", "m.y+(", "m.x", ")", ";")),
    },
    Family {
        name: "deep-sum-constant",
        size: Size::Bytes,
        make: |n| body(nest(n, "m.x = ", "1+", "1", "", ";")),
    },
    Family {
        name: "deep-and",
        size: Size::Bytes,
        make: |n| body(nest(n, "bool b = ", "m.x==1&&", "true", "", ";")),
    },
    Family {
        name: "deep-or-if",
        size: Size::Bytes,
        make: |n| body(nest(n, "if (", "m.x==1||", "true", "", ") m.x=1;")),
    },
    Family {
        name: "deep-concat",
        size: Size::Bytes,
        make: |n| body(nest(n, "m.x = (bit<32>)(", "1w1++", "1w1", "", ");")),
    },
    Family {
        name: "deep-slices",
        size: Size::Bytes,
        make: |n| body(nest(n, "m.x = m.x", "[31:0]", "", "", ";")),
    },
    Family { name: "deep-members", size: Size::Bytes, make: |n| body(nest(n, "m.x = m", ".x", "", "", ";")) },
    Family {
        name: "deep-indices",
        size: Size::Bytes,
        make: |n| body(nest(n, "m.x = m", "[1]", "", "", ";")),
    },
    Family {
        name: "deep-calls",
        size: Size::Bytes,
        make: |n| {
            V1 {
                top: "bit<32> f(in bit<32> x) { return x; }".into(),
                body: nest(n, "m.x = ", "f(", "m.x", ")", ";"),
                ..V1::default()
            }
            .program()
        },
    },
    Family {
        name: "deep-call-of-call",
        size: Size::Bytes,
        make: |n| body(nest(n, "m.x", "()", "", "", ";")),
    },
    Family { name: "deep-lists", size: Size::Bytes, make: |n| body(nest(n, "m = ", "{", "1", "}", ";")) },
    Family {
        name: "deep-structs-of-values",
        size: Size::Bytes,
        make: |n| body(nest(n, "m = ", "{x=", "1", "}", ";")),
    },
    Family {
        name: "deep-types",
        size: Size::Bytes,
        make: |n| top(nest(n, "typedef ", "tuple<", "bit<1>", ">", " t;")),
    },
    Family {
        name: "deep-types-stack",
        size: Size::Bytes,
        make: |n| top(nest(n, "typedef h_t", "[2]", "", "", " t;")),
    },
    Family {
        name: "deep-else-if",
        size: Size::Bytes,
        make: |n| body(nest(n, "if (m.x==0) m.y=1;", "else if(m.x==1)m.y=1;", "", "", "")),
    },
    Family {
        name: "deep-else-if-different",
        size: Size::Bytes,
        make: |n| {
            body(format!(
                "if (m.x==0) m.y=1;{}",
                repeat(count(n, 30), |i| format!("else if(m.x=={i})m.y={i};"))
            ))
        },
    },
    Family {
        name: "deep-else-if-sequence",
        size: Size::Bytes,
        make: |n| {
            body(format!(
                "if (m.x==0) m.y=1;{}",
                repeat(count(n, 48), |i| format!("else if(m.x=={i}){{m.y={i};m.x=m.y+1;}}"))
            ))
        },
    },
    Family {
        name: "deep-loops",
        size: Size::Bytes,
        make: |n| body(nest(n, "", "for (bit<8> i in 0..1) ", "m.x=1;", "", "")),
    },
    Family {
        name: "deep-switches",
        size: Size::Bytes,
        make: |n| body(nest(n, "", "switch(m.x){1:{", "", "}}", "")),
    },
    Family {
        name: "deep-annotations",
        size: Size::Bytes,
        make: |n| top(nest(n, "@a", "(", "", ")", " const int k = 1;")),
    },
    Family {
        name: "deep-annotations-structured",
        size: Size::Bytes,
        make: |n| top(nest(n, "@a[k=", "{", "1", "}", "] const int k = 1;")),
    },
    Family {
        name: "deep-keysets",
        size: Size::Bytes,
        make: |n| {
            V1 {
                states: nest(n, "state start { transition select(m.x) { ", "(", "1", ")", ": accept; } }"),
                ..V1::default()
            }
            .program()
        },
    },
    Family {
        name: "deep-keysets-mask",
        size: Size::Bytes,
        make: |n| {
            V1 {
                states: nest(n, "state start { transition select(m.x) { ", "1&&&", "1", "", ": accept; } }"),
                ..V1::default()
            }
            .program()
        },
    },
    Family {
        name: "chain-functions",
        size: Size::Bytes,
        make: |n| {
            let n = count(n, 52);
            V1 {
                top: format!(
                    "void f0(inout bit<32> x) {{ x = 1; }}\n{}",
                    repeat(n, |i| format!("void f{}(inout bit<32> x) {{ f{i}(x); }}\n", i + 1))
                ),
                body: format!("f{n}(m.x);"),
                ..V1::default()
            }
            .program()
        },
    },
    Family {
        name: "chain-actions",
        size: Size::Bytes,
        make: |n| {
            let n = count(n, 28);
            ingress(
                format!(
                    "action a0() {{ m.x = 1; }}\n{}",
                    repeat(n, |i| format!("action a{}() {{ a{i}(); }}\n", i + 1))
                ),
                format!("a{n}();"),
            )
        },
    },
    Family {
        name: "chain-controls",
        size: Size::Bytes,
        make: |n| {
            let n = count(n, 60);
            V1 {
                top: format!(
                    "control c0() {{ apply {{ }} }}\n{}",
                    repeat(n, |i| format!("control c{}() {{ apply {{ c{i}.apply(); }} }}\n", i + 1))
                ),
                body: format!("c{n}.apply();"),
                ..V1::default()
            }
            .program()
        },
    },
    Family {
        name: "chain-parsers",
        size: Size::Bytes,
        make: |n| {
            let n = count(n, 90);
            V1 {
                top: format!(
                    "parser p0(packet_in p) {{ state start {{ transition accept; }} }}\n{}",
                    repeat(n, |i| format!(
                        "parser p{}(packet_in p) {{ state start {{ p{i}.apply(p); transition accept; }} }}\n",
                        i + 1
                    ))
                ),
                states: format!("state start {{ p{n}.apply(p); transition accept; }}"),
                ..V1::default()
            }
            .program()
        },
    },
    Family {
        name: "chain-structs",
        size: Size::Bytes,
        make: |n| {
            let n = count(n, 30);
            V1 {
                top: format!(
                    "struct s0 {{ bit<8> v; }}\n{}",
                    repeat(n, |i| format!("struct s{} {{ s{i} a; }}\n", i + 1))
                ),
                meta: format!("s{n} s;"),
                ..V1::default()
            }
            .program()
        },
    },
    Family {
        name: "chain-typedefs",
        size: Size::Bytes,
        make: |n| {
            let n = count(n, 22);
            V1 {
                top: format!("typedef bit<32> t0;\n{}", repeat(n, |i| format!("typedef t{i} t{};\n", i + 1))),
                meta: format!("t{n} s;"),
                ..V1::default()
            }
            .program()
        },
    },
    Family {
        name: "chain-types",
        size: Size::Bytes,
        make: |n| {
            let n = count(n, 22);
            V1 {
                top: format!("type bit<32> t0;\n{}", repeat(n, |i| format!("type t{i} t{};\n", i + 1))),
                meta: format!("t{n} s;"),
                ..V1::default()
            }
            .program()
        },
    },
    Family {
        name: "chain-generics",
        size: Size::Bytes,
        make: |n| {
            let n = count(n, 24);
            V1 {
                top: format!(
                    "struct G<T> {{ T a; }} typedef bit<32> t0;\n{}",
                    repeat(n, |i| format!("typedef G<t{i}> t{};\n", i + 1))
                ),
                meta: format!("t{n} s;"),
                ..V1::default()
            }
            .program()
        },
    },
    Family {
        name: "chain-tuples",
        size: Size::Bytes,
        make: |n| {
            let n = count(n, 28);
            V1 {
                top: format!(
                    "typedef bit<32> t0;\n{}",
                    repeat(n, |i| format!("typedef tuple<t{i}> t{};\n", i + 1))
                ),
                meta: format!("t{n} s;"),
                ..V1::default()
            }
            .program()
        },
    },
    Family {
        name: "chain-constants",
        size: Size::Bytes,
        make: |n| {
            let n = count(n, 30);
            V1 {
                top: format!(
                    "const bit<32> k0 = 1;\n{}",
                    repeat(n, |i| format!("const bit<32> k{} = k{i} + 1;\n", i + 1))
                ),
                body: format!("m.x = k{n};"),
                ..V1::default()
            }
            .program()
        },
    },
    Family {
        name: "chain-integers",
        size: Size::Bytes,
        make: |n| {
            let n = count(n, 30);
            V1 {
                top: format!(
                    "const int k0 = 1;\n{}",
                    repeat(n, |i| format!("const int k{} = k{i} * 3;\n", i + 1))
                ),
                ..V1::default()
            }
            .program()
        },
    },
    Family {
        name: "chain-shifts",
        size: Size::Bytes,
        make: |n| {
            let n = count(n, 32);
            V1 {
                top: format!(
                    "const int k0 = 1;\n{}",
                    repeat(n, |i| format!("const int k{} = k{i}+(1<<65535);\n", i + 1))
                ),
                ..V1::default()
            }
            .program()
        },
    },
    Family {
        name: "chain-states",
        size: Size::Bytes,
        make: |n| {
            let n = count(n, 32);
            V1 {
                states: format!(
                    "state start {{ transition s{n}; }} state s0 {{ transition accept; }}\n{}",
                    repeat(n, |i| format!("state s{} {{ transition s{i}; }}\n", i + 1))
                ),
                ..V1::default()
            }
            .program()
        },
    },
    Family {
        name: "chain-macros",
        size: Size::Bytes,
        make: |n| {
            let n = count(n, 22);
            V1 {
                top: format!("#define A0 1\n{}", repeat(n, |i| format!("#define A{} A{i}\n", i + 1))),
                body: format!("m.x = A{n};"),
                ..V1::default()
            }
            .program()
        },
    },
    Family {
        name: "deep-macro-calls",
        size: Size::Bytes,
        make: |n| {
            V1 {
                top: "#define F(x) x\n".into(),
                body: nest(n, "m.x = ", "F(", "1", ")", ";"),
                ..V1::default()
            }
            .program()
        },
    },
    Family {
        name: "deep-conditions",
        size: Size::Bytes,
        make: |n| bare(nest(n, "", "#if 1\n", "", "#endif\n", "")),
    },
    Family {
        name: "deep-conditions-off",
        size: Size::Bytes,
        make: |n| bare(nest(n, "", "#if 0\n", "", "#endif\n", "")),
    },
    Family {
        name: "deep-conditions-unclosed",
        size: Size::Bytes,
        make: |n| bare("#if 1\n".repeat(count(n, 6))),
    },
    Family {
        name: "deep-condition-parentheses",
        size: Size::Bytes,
        make: |n| bare(nest(n, "#if ", "(", "1", ")", "\n#endif\n")),
    },
    Family {
        name: "deep-condition-not",
        size: Size::Bytes,
        make: |n| bare(nest(n, "#if ", "!", "1", "", "\n#endif\n")),
    },
    Family {
        name: "deep-condition-sum",
        size: Size::Bytes,
        make: |n| bare(nest(n, "#if ", "1+", "1", "", "\n#endif\n")),
    },
    Family {
        name: "deep-condition-choice",
        size: Size::Bytes,
        make: |n| bare(nest(n, "#if ", "1?1:", "1", "", "\n#endif\n")),
    },
    Family {
        name: "deep-old-parentheses",
        size: Size::Bytes,
        make: |n| {
            old_ingress(
                "action a() {} table t { actions { a; } }",
                nest(n, "if (", "(", "m.x == 1", ")", ") { apply(t); }"),
            )
        },
    },
    Family {
        name: "deep-old-sum",
        size: Size::Bytes,
        make: |n| {
            old_ingress(
                "action a() {} table t { actions { a; } }",
                nest(n, "if (", "m.x+", "m.x", "", " == 1) { apply(t); }"),
            )
        },
    },
    Family {
        name: "deep-old-else-if",
        size: Size::Bytes,
        make: |n| {
            old_ingress(
                "action a() {} table t { actions { a; } }",
                nest(n, "if (m.x == 1) { } ", "else if (m.x == 1) { } ", "", "", ""),
            )
        },
    },
    Family {
        name: "deep-old-chains-of-chains",
        size: Size::Bytes,
        make: |n| {
            let chain = nest(n / 40, "if (m.x == 1) { } ", "else if (m.x == 1) { } ", "else { ", "", "");
            let text = chain.repeat(40) + &"}".repeat(40);
            old_ingress("action a() {} table t { actions { a; } }", text)
        },
    },
    Family {
        name: "deep-chains-of-chains",
        size: Size::Bytes,
        make: |n| {
            let chain = nest(n / 40, "if (m.x == 1) ; ", "else if (m.x == 1) ; ", "else { ", "", "");
            body(chain.repeat(40) + &"}".repeat(40))
        },
    },
    Family {
        name: "deep-sums-of-sums",
        size: Size::Bytes,
        make: |n| {
            let sum = nest(n / 40, "(", "m.x + ", "", "", "");
            body(format!("m.x = {} m.x {};", sum.repeat(40), ")".repeat(40)))
        },
    },
    Family {
        name: "deep-old-controls-with-chains",
        size: Size::Bytes,
        make: |n| {
            let chain = "else if (m.x == 1) { } ".repeat(count(n / 50, 24));
            let calls = repeat(50, |i| {
                format!("control c{} {{ if (m.x == 1) {{ }} {chain} else {{ c{i}(); }} }}\n", i + 1)
            });
            old_ingress(format!("control c0 {{ }}\n{calls}"), "c50();")
        },
    },
    Family {
        name: "deep-old-ifs",
        size: Size::Bytes,
        make: |n| {
            old_ingress(
                "action a() {} table t { actions { a; } }",
                nest(n, "", "if (m.x == 1) { ", "", "}", ""),
            )
        },
    },
    Family {
        name: "deep-old-not",
        size: Size::Bytes,
        make: |n| {
            old_ingress(
                "action a() {} table t { actions { a; } }",
                nest(n, "if (", "not ", "valid(h)", "", ") { apply(t); }"),
            )
        },
    },
    Family {
        name: "chain-old-controls",
        size: Size::Bytes,
        make: |n| {
            let n = count(n, 30);
            old_ingress(
                format!("control c0 {{ }}\n{}", repeat(n, |i| format!("control c{} {{ c{i}(); }}\n", i + 1))),
                format!("c{n}();"),
            )
        },
    },
    Family {
        name: "chain-old-actions",
        size: Size::Bytes,
        make: |n| {
            let n = count(n, 32);
            old_ingress(
                format!(
                    "action a0() {{ modify_field(m.x, 1); }}\n{}table t {{ actions {{ a{n}; }} }}",
                    repeat(n, |i| format!("action a{}() {{ a{i}(); }}\n", i + 1))
                ),
                "apply(t);",
            )
        },
    },
    Family {
        name: "chain-old-field-lists",
        size: Size::Bytes,
        make: |n| {
            let n = count(n, 30);
            old_ingress(
                format!(
                    "field_list l0 {{ m.x; }}\n{}field_list_calculation s {{ input {{ l{n}; }} algorithm : crc16; output_width : 16; }}\n\
            action a() {{ modify_field_with_hash_based_offset(m.x, 0, s, 16); }} table t {{ actions {{ a; }} }}",
                    repeat(n, |i| format!("field_list l{} {{ l{i}; }}\n", i + 1))
                ),
                "apply(t);",
            )
        },
    },
    Family {
        name: "chain-old-parsers",
        size: Size::Bytes,
        make: |n| {
            let n = count(n, 36);
            old_ingress(
                format!(
                    "{}parser p{n} {{ return ingress; }}",
                    repeat(n, |i| format!("parser p{i} {{ return p{}; }}\n", i + 1))
                ),
                "",
            )
        },
    },
];

/// Something inside itself, in all so many bytes.
fn nest(bytes: usize, before: &str, open: &str, middle: &str, close: &str, after: &str) -> String {
    let n = count(bytes, open.len() + close.len());
    format!("{before}{}{middle}{}{after}", open.repeat(n), close.repeat(n))
}
