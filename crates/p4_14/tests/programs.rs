//! Every program in `tests/accept` becomes a sound P4_16 program. Every program in `tests/reject` gives exactly the
//! findings that its comments announce: `//~ ERROR E1401 part of the message` on the line of the finding, or `//~^ ...` on
//! the line below it.

use millrace_p4_14::{LIBRARY, Translated, translate};
use millrace_sema::{check, hir};
use millrace_syntax::{Diagnostic, FileId, Options, p4_14, render};
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

/// What the translation found, and if it found no error, what the checker finds in its result.
fn findings(parsed: &mut p4_14::Parsed) -> Vec<Diagnostic> {
    let library = parsed.library(LIBRARY);
    let Translated { program, diagnostics } = translate(&parsed.program, library);
    let mut all: Vec<Diagnostic> = diagnostics.into_iter().collect();
    let checked = check(&program);
    if !all.iter().any(Diagnostic::is_error) {
        all.extend(checked.diagnostics.into_iter().filter(Diagnostic::is_error));
        if !all.iter().any(Diagnostic::is_error) {
            let broken = hir::verify(&checked.program);
            assert!(broken.is_empty(), "{}", broken.join("\n"));
            match millrace_lower::lower(&checked.program, "test") {
                Ok(program) => millrace_pipeline::verify(&program).unwrap(),
                Err(found) => all.extend(found),
            }
        }
    }
    all
}

#[test]
fn sound_programs_are_accepted() {
    for path in programs("accept") {
        let mut parsed = p4_14::parse_path(&path, &Options::default());
        let mut found: Vec<Diagnostic> = parsed.diagnostics.clone().into_iter().collect();
        found.extend(findings(&mut parsed));
        let found: Vec<String> = found.iter().map(|d| render(d, &parsed.sources, false)).collect();
        assert!(found.is_empty(), "{}:\n{}", path.display(), found.join("\n"));
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
        let mut parsed = p4_14::parse_path(&path, &Options::default());
        assert!(parsed.diagnostics.is_empty(), "{} has syntax errors", path.display());
        let mut wanted = expected(&std::fs::read_to_string(&path).unwrap());
        for d in &findings(&mut parsed) {
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
fn every_code_is_tested() {
    let source = include_str!("../src/codes.rs");
    let mut codes: BTreeSet<&str> = source.lines().filter_map(|l| l.split('"').nth(1)).collect();
    assert!(codes.len() > 10);
    for path in programs("reject") {
        for (_, _, code, _) in expected(&std::fs::read_to_string(&path).unwrap()) {
            codes.remove(code.as_str());
        }
    }
    assert!(codes.is_empty(), "no test has {codes:?}");
}

/// Programs with pieces cut out, joined or doubled: there are findings, and nothing worse.
#[test]
fn pieces_of_programs_do_no_harm() {
    let mut texts = Vec::new();
    for folder in ["accept", "../../../tests/p4_14"] {
        texts.extend(programs(folder).iter().map(|p| std::fs::read_to_string(p).unwrap()));
    }
    for text in &texts {
        let lines: Vec<&str> = text.lines().collect();
        for cut in (0..lines.len()).step_by(9) {
            for (from, to) in [(cut, cut + 1), (cut, cut + 5), (0, cut)] {
                let kept = |i: &usize| !(from..to).contains(i);
                let piece: Vec<&str> = (0..lines.len()).filter(kept).map(|i| lines[i]).collect();
                let mut parsed = p4_14::parse_text("piece.p4", &piece.join("\n"), &Options::default());
                findings(&mut parsed);
            }
        }
    }
}

/// What unfolds beyond all bounds ends in a finding.
#[test]
fn growth_is_bounded() {
    let mut controls = String::from("parser start { return ingress; } control ingress { c0(); }\n");
    for i in 0..40 {
        controls += &format!("control c{i} {{ c{0}(); c{0}(); }}\n", i + 1);
    }
    controls += "control c40 { if (true) { } }\n";
    let mut actions = String::from(
        "parser start { return ingress; } control ingress { apply(t); } table t { actions { a0; } }\n",
    );
    for i in 0..40 {
        actions += &format!("action a{i}() {{ a{0}(); a{0}(); }}\n", i + 1);
    }
    actions += "action a40() { no_op(); }\n";
    let mut lists = String::from(
        "parser start { return ingress; } control ingress { }\nheader_type h { fields { f : 8; } } metadata h m;\n",
    );
    for i in 0..40 {
        lists += &format!("field_list l{i} {{ l{0}; l{0}; }}\n", i + 1);
    }
    lists += "field_list l40 { m.f; } action a() { resubmit(l0); }\n";
    for text in [controls, actions, lists] {
        let mut parsed = p4_14::parse_text("grows.p4", &text, &Options::default());
        let found = findings(&mut parsed);
        assert!(
            found.iter().any(|d| d.code == "E1416"),
            "{:?}",
            found.iter().map(|d| &d.message).collect::<Vec<_>>()
        );
    }
}
