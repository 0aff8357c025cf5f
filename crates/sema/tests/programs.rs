//! Every program in `tests/accept` is accepted, and what comes out is sound. Every program in `tests/reject` gives exactly the
//! findings that its comments announce: `//~ ERROR E0101 part of the message` on the line of the finding, or `//~^ ...` on
//! the line below it.

use millrace_sema::{check, hir};
use millrace_syntax::{FileId, Options, parse_path, render};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn programs(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut all: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    all.retain(|p| p.extension().is_some_and(|e| e == "p4"));
    all.sort();
    assert!(!all.is_empty());
    all
}

#[test]
fn sound_programs_are_accepted() {
    for path in programs("accept") {
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

/// Line, severity, code, part of the message.
type Expected = (u32, String, String, String);

fn expected(text: &str) -> Vec<Expected> {
    let mut all = Vec::new();
    for (line, text) in (1u32..).zip(text.lines()) {
        for note in text.split("//~").skip(1) {
            let up = note.bytes().take_while(|b| *b == b'^').count();
            let mut words = note[up..].split_whitespace();
            let severity = words.next().unwrap().to_string();
            let code = words.next().unwrap().to_string();
            all.push((line - up as u32, severity, code, words.collect::<Vec<_>>().join(" ")));
        }
    }
    all
}

#[test]
fn faulty_programs_get_the_announced_findings() {
    let mut problems = Vec::new();
    for path in programs("reject") {
        let parsed = parse_path(&path, &Options::default());
        assert!(parsed.diagnostics.is_empty(), "{} has syntax errors", path.display());
        let checked = check(&parsed.program);
        let mut wanted = expected(&std::fs::read_to_string(&path).unwrap());
        for d in &checked.diagnostics {
            assert_eq!(d.primary.file, FileId(0), "{}", render(d, &parsed.sources, false));
            let line = parsed.sources.location(d.primary).line;
            let severity = if d.is_error() { "ERROR" } else { "WARN" };
            let found = wanted.iter().position(|(l, s, c, part)| {
                *l == line && s == severity && c == d.code && d.message.contains(part.as_str())
            });
            match found {
                Some(index) => drop(wanted.remove(index)),
                None => problems.push(format!("not announced: {}", render(d, &parsed.sources, false))),
            }
        }
        for (line, severity, code, part) in wanted {
            problems.push(format!("{}:{line}: missing {severity} {code} {part}", path.display()));
        }
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
    let source = include_str!("../src/codes.rs");
    let mut codes: BTreeSet<&str> =
        source.lines().filter_map(|l| l.split('"').nth(1)).filter(|c| c.len() == 5).collect();
    assert!(codes.len() > 50);
    for path in programs("reject") {
        let text = std::fs::read_to_string(&path).unwrap();
        for (_, _, code, _) in expected(&text) {
            codes.remove(code.as_str());
        }
    }
    assert!(codes.is_empty(), "no test has {codes:?}");
}
