//! Texts that are hard to read: long tokens, many lines, macros, includes.

use crate::program::{V1, bare, body, count, fill, repeat, top};
use crate::{Family, Size};

macro_rules! families {
    ($($name:literal $make:expr;)*) => { &[$(Family { name: $name, size: Size::Bytes, make: $make }),*] };
}

/// The families; what they get is the number of bytes.
pub(crate) const FAMILIES: &[Family] = families! {
    "text-decimal" |n| top(format!("const int k = {};", "7".repeat(n)));
    "text-hexadecimal" |n| top(format!("const int k = 0x{};", "7".repeat(n)));
    "text-binary" |n| top(format!("const int k = 0b{};", "1".repeat(n)));
    "text-octal" |n| top(format!("const int k = 0o{};", "7".repeat(n)));
    "text-underscores" |n| top(format!("const int k = 1{};", "_".repeat(n)));
    "text-width" |n| top(format!("const int k = {}w1;", "7".repeat(n)));
    "text-width-type" |n| top(format!("typedef bit<{}> t;", "7".repeat(n)));
    "text-decimals" |n| top(fill(n, |i| format!("const int k{i} = {};\n", "7".repeat(4000))));
    "text-decimals-in-a-body" |n| body(fill(n, |_| format!("m.x=(bit<32>)({}%7);\n", "7".repeat(4000))));
    "text-decimals-same" |n| body(fill(n, |_| "m.x=(bit<32>)0xffffffffffffffffffffffffffffffffffffffff;"));
    "text-decimal-too-large" |n| body(format!("m.x = {};", "7".repeat(n)));
    "text-identifier" |n| top(format!("const int k{} = 1;", "k".repeat(n)));
    "text-identifier-unknown" |n| top(format!("const int k{} = l{};", "k".repeat(n / 2), "k".repeat(n / 2)));
    "text-identifiers" |n| top(fill(n, |i| format!("const int k{}{i} = 1;", "k".repeat(10_000))));
    "text-identifier-of-a-control" |n| {
        let name = "c".repeat(n / 2);
        V1 { top: format!("control {name}() {{ {} apply {{ }} }}", fill(n / 2, |i| format!("counter(1,CounterType.packets) k{i};"))),
            body: format!("{name}.apply();"), ..V1::default() }.program()
    };
    "text-identifier-of-a-struct" |n| {
        V1 { top: format!("struct s {{ {} }}", fill(n / 2, |i| format!("bit<1> f{i};"))), meta: format!("s {};", "c".repeat(n / 2)), ..V1::default() }.program()
    };
    "text-identifier-of-a-type" |n| {
        let name = "c".repeat(n / 2);
        V1 { top: format!("header {name} {{ bit<8> a; }}"), headers: format!("{name}[10000] s;"), ..V1::default() }.program()
    };
    "text-name-of-a-control" |n| V1 {
        top: "control c() { action a() {} table t { actions = { a; } } apply { t.apply(); } }".into(),
        locals: format!("@name(\"{}\") c() k;", "c".repeat(n / 2)), body: "k.apply();".into(), ..V1::default() }.program();
    "text-name-in-errors" |n| V1 { top: format!("struct {} {{ }}", "s".repeat(n / 2)),
        body: format!("{} v; {}", "s".repeat(n / 2), fill(n / 2, |_| "m.x=v;")), ..V1::default() }.program();
    "text-type-in-errors" |n| V1 { top: format!("typedef tuple<{}bit<8>> t;", "bit<8>,".repeat(count(n / 2, 7))),
        body: format!("t v; {}", fill(n / 2, |_| "m.x=v;")), ..V1::default() }.program();
    "text-string" |n| top(format!("const string k = \"{}\";", "s".repeat(n)));
    "text-string-escapes" |n| top(format!("const string k = \"{}\";", "\\\"".repeat(n / 2)));
    "text-string-open" |n| top(format!("const string k = \"{}", "s".repeat(n)));
    "text-string-lines" |n| top(format!("const string k = \"{}\";", "s\n".repeat(n / 2)));
    "text-strings" |n| body(fill(n, |i| format!("log_msg(\"{i}\");")));
    "text-strings-open" |n| bare("\"\n".repeat(n / 2));
    "text-comment" |n| top(format!("/*{}*/", "c".repeat(n)));
    "text-comment-open" |n| bare(format!("/*{}", "/*".repeat(n / 2)));
    "text-comments" |n| top("/**/".repeat(n / 4));
    "text-line-comments" |n| top("//\n".repeat(n / 3));
    "text-comment-stars" |n| bare(format!("/{}", "*".repeat(n)));
    "text-newlines" |n| bare("\n".repeat(n));
    "text-blanks" |n| bare(" ".repeat(n));
    "text-carriage-returns" |n| bare("\r".repeat(n));
    "text-nul" |n| bare("\0".repeat(n));
    "text-not-ascii" |n| bare("\u{1d538}".repeat(n / 4));
    "text-continuations" |n| bare("\\\n".repeat(n / 2));
    "text-continued-identifier" |n| top(format!("const int {}k = 1;", "k\\\n".repeat(n / 3)));
    "text-continued-comment" |n| top(format!("// {}\n", "\\\n".repeat(n / 2)));
    "text-line-with-errors" |n| bare(fill(n, |_| "` "));
    "text-long-line-of-errors" |n| body(fill(n, |_| "u = 1; "));
    "text-hashes" |n| bare("#\n".repeat(n / 2));
    "text-hash-in-a-line" |n| bare("#".repeat(n));
    "text-unknown-directives" |n| bare("#x\n".repeat(n / 3));
    "text-line-directives" |n| body(fill(n, |i| format!("\n#line {i} \"f{i}.p4\"\nm.x=1;")));
    "text-line-directives-with-errors" |n| body(fill(n, |i| format!("\n#line {i} \"f{i}.p4\"\nu=1;")));
    "text-errors-by-directive" |n| bare("#error\n".repeat(n / 7));
    "text-pragmas" |n| bare("#pragma x\n".repeat(n / 10));
    "text-pragma-once" |n| bare("#pragma once\n".repeat(n / 13));
    "text-elifs" |n| bare(format!("#if 0\n{}#endif\n", "#elif 0\n".repeat(n / 8)));
    "text-ifs" |n| bare("#if 0\n#endif\n".repeat(n / 13));
    "text-ifdefs" |n| bare(fill(n, |i| format!("#ifdef A{i}\n#endif\n")));
    "text-skipped" |n| bare(format!("#if 0\n{}\n#endif\n", "x \" ' ".repeat(n / 6)));
    "text-defines" |n| bare(fill(n, |i| format!("#define A{i} 1\n")));
    "text-defines-again" |n| bare("#define A 1\n#define A 2\n".repeat(n / 24));
    "text-defines-same-large" |n| bare(format!("#define A {}\n", "1 ".repeat(500)).repeat(count(n, 1010)));
    "text-undefs" |n| bare(fill(n, |i| format!("#undef A{i}\n")));
    "text-define-body" |n| bare(format!("#define A {}\n", "1 ".repeat(n / 2)));
    "text-define-body-used" |n| top(format!("#define A {}\n{}", "; ".repeat(n / 4), "A\n".repeat(n / 4)));
    "text-define-body-unused-argument" |n| top(format!("#define F(x)\n{}", fill(n, |_| format!("F({})\n", "1 ".repeat(100)))));
    "text-define-parameters" |n| bare(format!("#define F({}z) z\n", fill(n, |i| format!("a{i},"))));
    "text-define-parameters-used" |n| {
        let n = count(n, 18);
        bare(format!("#define F({}z) {}\nF({}1)\n", repeat(n, |i| format!("a{i},")), repeat(n, |i| format!("a{i} ")), "1,".repeat(n)))
    };
    "text-define-pastes" |n| bare(format!("#define F(a) a{}\nF(x)\n", "##a".repeat(n / 3)));
    "text-define-strings" |n| bare(format!("#define F(a) {}\nF({})\n", "#a ".repeat(n / 6), "x ".repeat(n / 4)));
    "text-macro-argument" |n| bare(format!("#define F(a) a a\nF({})\n", "x ".repeat(n / 2)));
    "text-macro-arguments" |n| bare(format!("#define F(...) __VA_ARGS__\nF({})\n", "x,".repeat(n / 2)));
    "text-macro-open" |n| bare(format!("#define F(a) a\n{}", "F(".repeat(n / 2)));
    "text-macro-names-only" |n| bare(format!("#define F(a) a\n{}", "F ".repeat(n / 2)));
    "text-macro-names-in-lines" |n| bare(format!("#define F(a) a\n{}", "F\n".repeat(n / 2)));
    "text-macro-uses" |n| body(format!("\n#define A m.x=1;\n{}", "A ".repeat(n / 2)));
    "text-macro-errors" |n| body(format!("\n#define A u=1;\n{}", "A ".repeat(n / 2)));
    "text-macro-self" |n| bare(format!("#define A A A A A A A A\n{}", "A ".repeat(n / 2)));
    "text-macro-rescans" |n| bare(format!("#define f(a) a*g\n#define g(a) f(a)\nf(2){}", "(9)".repeat(n / 3)));
    "text-macro-empty-arguments" |n| bare(format!("#define F(a,b) a b\n{}", "F(,)".repeat(n / 4)));
    "text-include-core" |n| bare("#include <core.p4>\n".repeat(n / 19));
    "text-include-v1model" |n| bare("#include <v1model.p4>\n".repeat(n / 22));
    "text-include-missing" |n| bare(fill(n, |i| format!("#include \"missing{i}.p4\"\n")));
    "text-include-itself" |n| bare("#include \"hostile.p4\"\n".repeat(n / 22));
    "text-include-device" |_| bare("#include \"/dev/zero\"\n");
    "text-include-long" |n| bare(format!("#include \"{}\"\n", "a".repeat(n)));
    "text-line-numbers" |n| body(fill(n, |_| "m.x=__LINE__;"));
    "text-file-names" |n| body(format!("\n#line 1 \"{}\"\n{}", "f".repeat(n / 2), fill(n / 2, |_| "log_msg(__FILE__);")));
    "text-condition-numbers" |n| bare(format!("#if {}\n#endif\n", "9".repeat(n)));
    "text-too-long" |n| bare("const int k = 1;\n".repeat(n / 2));
};
