//! Every program in `tests/accept` is accepted, and what comes out is sound. Every program in `tests/reject` gives exactly the
//! findings that its comments announce (see `millrace_marked`).

use millrace_marked::{differences, programs, unannounced_codes};
use millrace_sema::{check, hir};
use millrace_syntax::{Options, parse_path, render};
use std::path::{Path, PathBuf};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

#[test]
fn sound_programs_are_accepted() {
    for path in programs(folder("accept")) {
        let parsed = parse_path(&path, &Options::default());
        let checked = check(&parsed.program);
        let errors: Vec<String> = parsed
            .diagnostics
            .iter()
            .chain(&checked.diagnostics)
            .filter(|d| d.is_error())
            .map(|d| render(d, &parsed.sources, false))
            .collect();
        assert!(errors.is_empty(), "{}:\n{}", path.display(), errors.join("\n"));
        let broken = hir::verify(&checked.program);
        assert!(broken.is_empty(), "{}:\n{}", path.display(), broken.join("\n"));
    }
}

#[test]
fn faulty_programs_get_the_announced_findings() {
    let mut problems = Vec::new();
    for path in programs(folder("reject")) {
        let parsed = parse_path(&path, &Options::default());
        assert!(parsed.diagnostics.is_empty(), "{} has syntax errors", path.display());
        let checked = check(&parsed.program);
        problems.extend(differences(&path, &parsed.sources, checked.diagnostics.iter()));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn loops_in_loops_are_checked_in_time() {
    let depth = 25;
    let text = format!(
        "void f(inout bit<8> x) {{ bit<8> y; {} x = y; y = 1; {} }}",
        "for (bit<8> i in 1..2) {".repeat(depth),
        "}".repeat(depth)
    );
    let parsed = millrace_syntax::parse_text("loops.p4", &text, &Options::default());
    assert!(parsed.diagnostics.is_empty());
    let checked = check(&parsed.program);
    // `y` is set in an earlier round: only the names of the loop variables are to be reported.
    assert!(checked.diagnostics.iter().all(|d| d.code == "W0005"), "{:?}", checked.diagnostics);
}

#[test]
fn every_code_is_tested() {
    let codes = unannounced_codes(include_str!("../src/codes.rs"), folder("reject"));
    assert!(codes.is_empty(), "no test has {codes:?}");
}
