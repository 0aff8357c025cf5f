//! Every program in `tests/accept` becomes a sound P4_16 program. Every program in `tests/reject` gives exactly the
//! findings that its comments announce (see `millrace_marked`).

use millrace_marked::{differences, programs, unannounced_codes};
use millrace_p4_14::{LIBRARY, Translated, translate};
use millrace_sema::{check, hir};
use millrace_syntax::{Diagnostic, Options, p4_14, render};
use std::path::{Path, PathBuf};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
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
    for path in programs(folder("accept")) {
        let mut parsed = p4_14::parse_path(&path, &Options::default());
        let mut found: Vec<Diagnostic> = parsed.diagnostics.clone().into_iter().collect();
        found.extend(findings(&mut parsed));
        let found: Vec<String> = found.iter().map(|d| render(d, &parsed.sources, false)).collect();
        assert!(found.is_empty(), "{}:\n{}", path.display(), found.join("\n"));
    }
}

#[test]
fn faulty_programs_get_the_announced_findings() {
    let mut problems = Vec::new();
    for path in programs(folder("reject")) {
        let mut parsed = p4_14::parse_path(&path, &Options::default());
        assert!(parsed.diagnostics.is_empty(), "{} has syntax errors", path.display());
        let found = findings(&mut parsed);
        problems.extend(differences(&path, &parsed.sources, &found));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn every_code_is_tested() {
    let codes = unannounced_codes(include_str!("../src/codes.rs"), folder("reject"));
    assert!(codes.is_empty(), "no test has {codes:?}");
}

/// Programs with pieces cut out, joined or doubled: there are findings, and nothing worse.
#[test]
fn pieces_of_programs_do_no_harm() {
    let mut texts = Vec::new();
    for name in ["accept", "../../../tests/p4_14"] {
        texts.extend(programs(folder(name)).iter().map(|p| std::fs::read_to_string(p).unwrap()));
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
