//! Programs that mean more than they say are refused with the limit that they exceed, and long ones are not refused for
//! being long.

use millrace_sema::{check, limits};
use millrace_syntax::{MAX_LEVELS, Options, parse_text};
use std::fmt::Write;

/// The messages of the errors.
fn errors(text: &str) -> Vec<String> {
    let parsed = parse_text("test.p4", text, &Options::default());
    let checked = check(&parsed.program);
    let all = parsed.diagnostics.iter().chain(&checked.diagnostics);
    all.filter(|d| d.is_error()).map(|d| d.message.clone()).collect()
}

/// A first declaration, and so many that use the one before.
fn chain(first: &str, n: usize, next: impl Fn(usize, usize) -> String) -> String {
    (0..n).fold(first.to_owned(), |mut text, i| {
        let _ = writeln!(text, "\n{}", next(i + 1, i));
        text
    })
}

#[test]
fn instances_of_instances_are_counted_at_their_declaration() {
    let controls = |n| {
        chain("control c0() { apply { } }", n, |i, p| {
            format!("control c{i}() {{ c{p}() a; c{p}() b; apply {{ }} }}")
        })
    };
    let limit = limits::MAX_ELABORATED;
    let wanted =
        format!("with this there are more than {limit} instances, tables, keys, actions and entries");
    assert_eq!(errors(&controls(15)), [""; 0]);
    assert_eq!(errors(&controls(29)), [wanted.as_str()]);
    let direct = chain("control c0() { apply { } }", 29, |i, p| {
        format!("control c{i}() {{ apply {{ c{p}.apply(); c{p}.apply(); }} }}")
    });
    assert_eq!(errors(&direct), [wanted.as_str()]);
    let parsers = chain("parser p0() { state start { transition accept; } }", 29, |i, p| {
        format!("parser p{i}() {{ p{p}() a; p{p}() b; state start {{ transition accept; }} }}")
    });
    assert_eq!(errors(&parsers), [wanted]);
}

#[test]
fn names_of_instances_are_bounded_in_all() {
    let name = "n".repeat(1000);
    let text = chain("control c0() { apply { } }", 16, |i, p| {
        format!("control c{i}() {{ c{p}() {name}; c{p}() b; apply {{ }} }}")
    });
    let limit = limits::MAX_ELABORATED_BYTES;
    let wanted = format!("with this the names of instances have more than {limit} bytes");
    let found = errors(&text);
    assert!(!found.is_empty() && found.iter().all(|message| *message == wanted), "{found:?}");
}

#[test]
fn types_that_grow_with_each_use_end_the_check() {
    let text = chain("struct g0<T> { T a; }", 40, |i, p| {
        format!("struct g{i}<T> {{ g{p}<T> a; g{p}<tuple<T, T>> b; }}")
    });
    let found = errors(&format!("{text}\nstruct s {{ g40<bit<8>> g; }}"));
    let steps = format!("checking the program to here takes more than {} steps", limits::MAX_STEPS);
    assert_eq!(found.last(), Some(&steps), "{found:?}");
    let deep = chain("typedef bit<8> t0;", 1000, |i, p| format!("typedef tuple<t{p}> t{i};"));
    let limit = limits::MAX_TYPE_DEPTH;
    assert!(errors(&deep).contains(&format!("types are nested more than {limit} deep here")));
}

#[test]
fn errors_fit_their_sixteen_bits() {
    let members =
        |n: usize| (0..n).fold(String::from("error { "), |text, i| text + &format!("e{i}, ")) + "z }";
    assert_eq!(errors(&members(1000)), [""; 0]);
    let limit = limits::MAX_ERRORS;
    assert_eq!(errors(&members(limit)), [format!("the type `error` has more than {limit} members")]);
}

#[test]
fn a_stack_has_an_element() {
    let found = errors("header h_t { bit<8> a; } struct s { h_t[0] h; }");
    assert_eq!(found, ["the number of elements must be between 1 and 65536, not 0"]);
}

#[test]
fn long_chains_are_checked() {
    let n = MAX_LEVELS - 100;
    let sum = format!("bit<8> f(in bit<8> a) {{ return a{}; }}", " + a".repeat(n));
    assert_eq!(errors(&sum), [""; 0]);
    let branches: String = (0..n).map(|i| format!("else if (a == {}) {{ a = 2; }} ", i % 256)).collect();
    let chain = format!("void f(inout bit<8> a) {{ if (a == 1) {{ }} {branches} }}");
    assert_eq!(errors(&chain), [""; 0]);
}

#[test]
fn loops_in_loops_are_checked_in_time() {
    let depth = 25;
    let text = format!(
        "void f(inout bit<8> x) {{ bit<8> y; {} x = y; y = 1; {} }}",
        "for (bit<8> i in 1..2) {".repeat(depth),
        "}".repeat(depth)
    );
    let parsed = parse_text("loops.p4", &text, &Options::default());
    assert!(parsed.diagnostics.is_empty());
    let checked = check(&parsed.program);
    // `y` is set in an earlier round: only the names of the loop variables are to be reported.
    assert!(checked.diagnostics.iter().all(|d| d.code == "W0005"), "{:?}", checked.diagnostics);
}
