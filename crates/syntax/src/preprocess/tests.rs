//! Each feature of the preprocessor, seen through the tokens it gives.

use super::*;

fn run(text: &str) -> Preprocessed {
    preprocess_text("t.p4", text, &Options::default())
}

/// The tokens, separated by spaces; the diagnostics' messages after a bar, if any.
fn show(text: &str) -> String {
    let result = run(text);
    let mut out: Vec<&str> = result.tokens.iter().map(|t| t.spelling(&result.interner)).collect();
    out.pop();
    let mut out = out.join(" ");
    for diagnostic in &result.diagnostics {
        out.push_str(" | ");
        out.push_str(&diagnostic.message);
    }
    out
}

#[test]
fn object_macros() {
    assert_eq!(show("#define N 8\n#define T bit < N >\nT x;"), "bit < 8 > x ;");
    assert_eq!(show("#define A B\n#define B A\nA"), "A");
    assert_eq!(show("#define A 1\n#undef A\nA"), "A");
    assert_eq!(show("#define EMPTY\na EMPTY b"), "a b");
    assert_eq!(show("#define LONG a \\\n  b\nLONG c"), "a b c");
    // An opening parenthesis after white space is part of the body.
    assert_eq!(show("#define P (x)\nP"), "( x )");
}

#[test]
fn function_macros() {
    assert_eq!(show("#define ADD(a, b) ((a) + (b))\nADD(1, f(2, 3))"), "( ( 1 ) + ( f ( 2 , 3 ) ) )");
    assert_eq!(show("#define F() x\nF() F"), "x F");
    assert_eq!(show("#define F(x) [x]\nF()"), "[ ]");
    assert_eq!(show("#define F(x) f(x)\n#define G F\nG(1) G\n(2)"), "f ( 1 ) f ( 2 )");
    // Arguments are expanded before they are put in place, and the result is looked at again.
    assert_eq!(show("#define f(a) a*g\n#define g(a) f(a)\nf(2)(9)"), "2 * 9 * g");
    assert_eq!(show("#define ID(x) x\nID(ID)(1)"), "ID ( 1 )");
    assert_eq!(show("#define V(...) f(__VA_ARGS__)\nV(1, 2) V()"), "f ( 1 , 2 ) f ( )");
    assert_eq!(show("#define L(fmt, ...) log(fmt, ## __VA_ARGS__)\nL(\"a\") L(\"a\", b)"), {
        "log ( \"a\" ) log ( \"a\" , b )"
    });
    assert_eq!(show("#define L(args...) f(args)\nL(1, 2)"), "f ( 1 , 2 )");
}

#[test]
fn pasting_and_stringifying() {
    assert_eq!(show("#define CAT(a, b) a##b\nCAT(he, ader) CAT(8w, 5) CAT(, x) CAT(x, )"), "header 8w5 x x");
    assert_eq!(show("#define S(x) #x\n#define X(x) S(x)\n#define N 4\nS(N + \"a\\b\") X(N)"), {
        r#""N + \"a\\b\"" "4""#
    });
    assert_eq!(show("#define H {#}\nH"), "{#}");
    // What makes no token stays two.
    assert_eq!(show("#define CAT(a, b) a##b\nCAT(x, .)"), "x .");
}

#[test]
fn wrong_invocations_are_reported() {
    assert_eq!(show("#define F(a, b) a b\nF(1)"), " | macro `F` takes 2 arguments, 1 were given");
    assert_eq!(show("#define F(a) a\nF(1"), " | the invocation of macro `F` has no closing `)`");
    assert_eq!(show("#define F(a, a) a"), " | two parameters of this macro have the same name");
    assert_eq!(show("#define __LINE__ 3\n"), " | `__LINE__` cannot be defined");
    assert_eq!(show("#define A 1\n#define A 2\nA"), "2 | macro `A` is defined again, differently");
    assert_eq!(show("#define A 1\n#define A 1\nA"), "1");
    assert_eq!(show("#nonsense\n#\na"), "a | unknown directive `#nonsense`: this line is left out");
    assert_eq!(show("a\n # it's here, \"b\nc"), "a c | unknown directive `#it`: this line is left out");
}

#[test]
fn conditionals() {
    assert_eq!(show("#if 1\na\n#else\nb\n#endif\nc"), "a c");
    assert_eq!(show("#if 0\na\n#elif 1\nb\n#elif 1\nc\n#else\nd\n#endif"), "b");
    assert_eq!(show("#ifdef X\na\n#else\nb\n#endif\n#ifndef X\nc\n#endif"), "b c");
    assert_eq!(show("#define X\n#if defined(X) && !defined Y\na\n#endif"), "a");
    assert_eq!(show("#if 0\n#if 1\na\n#else\nb\n#endif\n#else\nc\n#endif"), "c");
    assert_eq!(show("#define V 3\n#if V >= 3\na\n#endif"), "a");
    // Skipped text need not be made of tokens.
    assert_eq!(show("#if 0\nit's \"not closed\n/* #endif */ #else\n#endif\nb"), "b");
    assert_eq!(show("#if 0\n#elif 1 / 0\n#endif"), " | division by zero");
    assert_eq!(show("#if 1\n#elif 1 / 0\n#endif"), "");
}

/// The first two are what `cpp -C -undef -nostdinc -x assembler-with-cpp`, as p4c calls it, makes of the same texts.
#[test]
fn directives_in_a_string_of_several_lines_are_carried_out() {
    let text = "s(\"a\n#ifdef X\nb \\\"\n#else\n c // #\n # endif\n#1 e\n#define N 4\nd\") N";
    assert_eq!(show(text), "s ( \"a\n\n\n\n c // #\n\n#1 e\n\nd\" ) 4");
    let with_x = format!("#define X\n{text}");
    assert_eq!(show(&with_x), "s ( \"a\n\nb \\\"\n\n\n\n#1 e\n\nd\" ) 4");
    // The end may be in one of the groups.
    assert_eq!(show("\"a\n#if 1\nb\"\n#else\nc\"\n#endif\nx"), "\"a\n\nb\" x");
    assert_eq!(show("\"a\n#if 0\nb\"\n#else\nc\"\n#endif\nx"), "\"a\n\n\n\nc\" x");
    assert_eq!(show("\"a\n#error no\n\" x"), "\"a\n\n\" x | #error: no");
    let open = "\"a\n#if 0\n\" x";
    assert_eq!(
        show(open),
        "\"a\n\n\" | this string has no end | this condition has no `#endif`",
        "a string whose end is left out"
    );
    // Within one line there are no directives, and other lines with `#` are text.
    assert_eq!(show("\"#if 0\" \"a\n#x\n#pragma y\n# include <z>\né\""), {
        "\"#if 0\" \"a\n#x\n#pragma y\n# include <z>\né\""
    });
    let place = run("\"a\n#if 1\n\" x\n#endif\ny");
    let places: Vec<_> = place.tokens.iter().map(|t| place.sources.location(t.span).to_string()).collect();
    assert_eq!(places, ["t.p4:1:1", "t.p4:3:3", "t.p4:5:1", "t.p4:5:2"]);
}

#[test]
fn unbalanced_conditionals_are_reported() {
    assert_eq!(show("#if 1\na"), "a | this condition has no `#endif`");
    assert_eq!(show("#if 0\na"), " | this condition has no `#endif`");
    assert_eq!(show("#endif"), " | `#endif` without `#if`");
    assert_eq!(show("#else"), " | `#else` without `#if`");
    assert_eq!(show("#if 1\n#else\n#else\n#endif"), " | this condition already had its `#else`");
}

#[test]
fn messages_and_pragmas() {
    assert_eq!(show("#error no way\na"), "a | #error: no way");
    assert_eq!(show("#warning beware\n#pragma once\n#pragma other stuff\na"), "a | #warning: beware");
    assert!(!run("#warning beware").diagnostics.has_errors());
}

#[test]
fn line_and_file() {
    assert_eq!(show("__LINE__\n__LINE__ __FILE__"), "1 2 \"t.p4\"");
    assert_eq!(show("#line 100 \"x.p4\"\n__LINE__ __FILE__\n__LINE__"), "100 \"x.p4\" 101");
    assert_eq!(show("# 7 \"y.p4\" 2\n__LINE__ __FILE__"), "7 \"y.p4\"");
    assert_eq!(show("#line x"), " | `#line` needs a line number");
}

#[test]
fn predefined_macros_can_be_left_out() {
    let text = "#ifdef __MILLRACE__\nyes\n#endif\n__TARGET_BMV2__ __p4c__ X F(3)";
    assert_eq!(show(text), "yes 1 __p4c__ X F ( 3 )");
    let defines = vec![("X".to_owned(), "1".to_owned()), ("F(a)".to_owned(), "a + a\n;".to_owned())];
    let options = Options { predefined: false, defines, ..Options::default() };
    let result = preprocess_text("t.p4", text, &options);
    let tokens: Vec<_> = result.tokens.iter().map(|t| t.spelling(&result.interner)).collect();
    assert_eq!(tokens.join(" ").trim(), "__TARGET_BMV2__ __p4c__ 1 3 + 3 ;");
    let undefines = vec!["__TARGET_BMV2__".to_owned(), "X".to_owned()];
    let result = preprocess_text("t.p4", text, &Options { undefines, ..options });
    let tokens: Vec<_> = result.tokens.iter().map(|t| t.spelling(&result.interner)).collect();
    assert_eq!(tokens.join(" ").trim(), "__TARGET_BMV2__ __p4c__ X 3 + 3 ;");
}

#[test]
fn embedded_files_are_found_under_both_forms() {
    for text in ["#include <core.p4>\n", "#include \"core.p4\"\n", "#define C <core.p4>\n#include C\n"] {
        let result = run(text);
        assert!(result.diagnostics.is_empty(), "{text}");
        assert!(result.tokens.len() > 100, "{text}");
    }
    assert_eq!(show("#include <no.p4>"), " | cannot find the include file `no.p4`");
    assert_eq!(
        show("#include \"third/party/core.p4\""),
        " | cannot find the include file `third/party/core.p4`"
    );
    assert_eq!(show("#include </dev/zero>"), " | cannot find the include file `/dev/zero`");
    assert_eq!(show("#include core"), " | `#include` needs a file's name in quotes or angle brackets");
    assert_eq!(show("#include <core.p4> x\n").matches('|').count(), 1);
}

#[test]
fn files_beside_and_in_folders() {
    let folder = std::env::temp_dir().join(format!("millrace-include-{}", std::process::id()));
    let inner = folder.join("inner");
    std::fs::create_dir_all(&inner).unwrap();
    let write = |path: PathBuf, text: &str| std::fs::write(path, text).unwrap();
    write(folder.join("main.p4"), "#include \"inner/a.p4\"\n#include <b.p4>\n#include \"loop.p4\"\nend");
    write(inner.join("a.p4"), "#pragma once\n#include \"b.p4\"\n#include \"a.p4\"\nfrom_a");
    write(inner.join("b.p4"), "#ifndef B\n#define B\nfrom_b\n#endif\n");
    write(folder.join("loop.p4"), "#include \"loop.p4\"\n");
    let options = Options { include_dirs: vec![inner.clone()], ..Options::default() };
    let result = preprocess_file(folder.join("main.p4"), &options);
    let tokens: Vec<_> = result.tokens.iter().map(|t| t.spelling(&result.interner)).collect();
    std::fs::remove_dir_all(&folder).unwrap();
    // The loop ends the input.
    assert_eq!(tokens.join(" ").trim(), "from_b from_a");
    let messages: Vec<_> = result.diagnostics.iter().map(|d| &d.message).collect();
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(messages[0].starts_with("includes are nested more than 64 deep: "), "{messages:?}");
    assert!(messages[0].ends_with("loop.p4 includes itself"), "{messages:?}");
}

#[test]
fn a_file_that_is_not_there() {
    let result = preprocess_file("/no/such/file.p4".into(), &Options::default());
    assert_eq!(result.diagnostics.error_count(), 1);
    assert_eq!(result.tokens.len(), 1);
    assert_eq!(&*result.sources.files()[0].name, "/no/such/file.p4");
}

#[test]
fn macros_cannot_blow_up() {
    let mut text = String::from("#define A0 x x x x x x x x\n");
    for i in 1..12 {
        let body = format!("A{} ", i - 1).repeat(8);
        text.push_str(&format!("#define A{i} {body}\n"));
    }
    text.push_str("A11");
    let result = run(&text);
    assert_eq!(result.diagnostics.iter().next().map(|d| d.code), Some("limit"));
    assert!(result.tokens.len() <= MAX_TOKENS);
}

#[test]
fn made_texts_are_bounded() {
    // Each is twice as long as the one before: strings by their quotes, words by themselves.
    let mut strings = String::from("#define S(x) S_(x)\n#define S_(x) #x\n#define A0 \"\\\\\"\n");
    let mut words = String::from("#define D(a) D_(a, a)\n#define D_(a, b) a ## b\n#define A0 a\n");
    for i in 1..28 {
        strings.push_str(&format!("#define A{i} S(A{})\n", i - 1));
        words.push_str(&format!("#define A{i} D(A{})\n", i - 1));
    }
    let repeated = format!("#define F(a) a{}\nF({})\n", "##a".repeat(10_000), "x".repeat(1000));
    for text in [strings + "A27", words + "A27", repeated] {
        let found: Vec<String> = run(&text).diagnostics.iter().map(|d| d.message.clone()).collect();
        assert_eq!(
            found,
            [format!("`#`, `##` and `__FILE__` make more than {MAX_MADE_BYTES} bytes of text")]
        );
    }
}

#[test]
fn nested_arguments_cannot_overflow_the_stack() {
    let text = format!("#define F(x) x\n{}1{}", "F(".repeat(10_000), ")".repeat(10_000));
    assert_eq!(run(&text).diagnostics.iter().next().map(|d| d.code), Some("limit"));
    let mut text = String::from("#define A0 x\n");
    for i in 1..1000 {
        text.push_str(&format!("#define A{i} A{}\n", i - 1));
    }
    text.push_str("A999");
    assert_eq!(run(&text).diagnostics.iter().next().map(|d| d.code), Some("limit"));
}

#[test]
fn tokens_know_where_they_came_from() {
    let text = "#define PAIR(a) a + one\n#define WRAP PAIR(two)\nx WRAP PAIR(y)";
    let result = run(text);
    let places: Vec<_> = result
        .tokens
        .iter()
        .map(|t| {
            let spelling = t.spelling(&result.interner);
            let names: Vec<_> = result.sources.expansions_of(t.span).map(|e| e.name.to_string()).collect();
            format!("{spelling}@{} {}", result.sources.text(t.span), names.join("<"))
        })
        .collect();
    assert_eq!(
        places,
        [
            "x@x ",
            "two@WRAP WRAP",
            "+@WRAP PAIR<WRAP",
            "one@WRAP PAIR<WRAP",
            "y@y ",
            "+@PAIR PAIR",
            "one@PAIR PAIR",
            "@ "
        ]
    );
}

#[test]
fn the_end_is_in_the_main_file() {
    let result = run("#include <core.p4>\nx");
    let end = result.tokens.last().unwrap();
    assert_eq!(result.sources.location(end.span).to_string(), "t.p4:2:2");
}
