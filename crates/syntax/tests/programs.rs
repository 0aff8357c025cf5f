//! Whole programs: those in `accepted/` have no findings, those in `refused/` have exactly the findings that their
//! `//~` comments name, each on its line.

use std::fs;
use std::path::{Path, PathBuf};

use millrace_syntax::{Options, Parsed, builtin_includes, parse_path, parse_text, render};

fn programs(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

fn rendered(parsed: &Parsed) -> String {
    parsed.diagnostics.iter().map(|d| render(d, &parsed.sources, false)).collect()
}

#[test]
fn accepted_programs_have_no_findings() {
    for path in programs("accepted") {
        let parsed = parse_path(&path, &Options::default());
        assert!(parsed.diagnostics.is_empty(), "{}", rendered(&parsed));
        assert!(parsed.program.declarations.len() > 5, "{}", path.display());
    }
}

#[test]
fn embedded_includes_have_no_findings() {
    for name in builtin_includes() {
        let parsed = parse_text("main.p4", &format!("#include <{name}>\n"), &Options::default());
        assert!(parsed.diagnostics.is_empty(), "{}", rendered(&parsed));
        assert!(!parsed.program.declarations.is_empty(), "{name}");
    }
}

/// Line and text of each `//~` comment; `//~@-1` is about the line before.
fn expected(text: &str) -> Vec<(u32, String)> {
    let mut all = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let Some((_, comment)) = line.split_once("//~") else { continue };
        let line = i as u32 + 1;
        match comment.strip_prefix("@-1") {
            Some(rest) => all.push((line - 1, rest.trim().to_owned())),
            None => all.push((line, comment.trim().to_owned())),
        }
    }
    all
}

#[test]
fn refused_programs_have_the_findings_they_name() {
    for path in programs("refused") {
        let parsed = parse_path(&path, &Options::default());
        let text = fs::read_to_string(&path).unwrap();
        let found: Vec<(u32, String)> = parsed
            .diagnostics
            .iter()
            .map(|d| (parsed.sources.location(d.primary).line, d.message.clone()))
            .collect();
        let expected = expected(&text);
        let same = found.len() == expected.len()
            && found.iter().zip(&expected).all(|(f, e)| f.0 == e.0 && f.1.contains(&e.1));
        assert!(same, "{}\nexpected {expected:#?}\nfound {found:#?}", path.display());
        for diagnostic in &parsed.diagnostics {
            let place = parsed.sources.location(diagnostic.primary).to_string();
            assert!(render(diagnostic, &parsed.sources, false).contains(&place), "{place}");
        }
    }
}
