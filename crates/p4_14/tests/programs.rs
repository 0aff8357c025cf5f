//! Every program in `tests/accept` becomes a sound P4_16 program. Every program in `tests/reject` gives exactly the
//! findings that its comments announce (see `millrace_marked`). Each is a test with its name.

use millrace_filetests::{Harness, files};
use millrace_marked::{differences, unannounced_codes};
use millrace_p4_14::{LIBRARY, Translated, translate};
use millrace_sema::{check, hir};
use millrace_syntax::{Diagnostic, Options, p4_14, render};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    Harness::default()
        .each("accept", files(&folder("accept"), "p4"), is_accepted)
        .each("reject", files(&folder("reject"), "p4"), gets_the_announced_findings)
        .test("every_code_is_tested", every_code_is_tested)
        .test("pieces_of_programs_do_no_harm", pieces_of_programs_do_no_harm)
        .test("growth_is_bounded", growth_is_bounded)
        .run()
}

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

fn is_accepted(path: &Path) -> Result<(), String> {
    let mut parsed = p4_14::parse_path(path, &Options::default());
    let mut found: Vec<Diagnostic> = parsed.diagnostics.clone().into_iter().collect();
    found.extend(findings(&mut parsed));
    let found: Vec<String> = found.iter().map(|d| render(d, &parsed.sources, false)).collect();
    if found.is_empty() { Ok(()) } else { Err(found.join("\n")) }
}

fn gets_the_announced_findings(path: &Path) -> Result<(), String> {
    let mut parsed = p4_14::parse_path(path, &Options::default());
    assert!(parsed.diagnostics.is_empty(), "{} has syntax errors", path.display());
    let found = findings(&mut parsed);
    let problems = differences(path, &parsed.sources, &found);
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

fn every_code_is_tested() -> Result<(), String> {
    let codes = unannounced_codes(include_str!("../src/codes.rs"), folder("reject"));
    if codes.is_empty() { Ok(()) } else { Err(format!("no test has {codes:?}")) }
}

/// Programs with pieces cut out, joined or doubled: there are findings, and nothing worse.
fn pieces_of_programs_do_no_harm() -> Result<(), String> {
    let mut texts = Vec::new();
    for name in ["accept", "../../../tests/p4_14"] {
        texts.extend(files(&folder(name), "p4").iter().map(|p| std::fs::read_to_string(p).unwrap()));
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
    Ok(())
}

/// What unfolds beyond all bounds ends in a finding.
fn growth_is_bounded() -> Result<(), String> {
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
    Ok(())
}
