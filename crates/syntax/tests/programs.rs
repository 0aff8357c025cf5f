//! Whole programs: those in `accepted/` have no findings, those in `refused/` have exactly the findings that their comments announce
//! (see `millrace_marked`), in the order of their lines. Each is a test with its name.

use millrace_filetests::{Harness, files};
use millrace_marked::differences;
use millrace_syntax::{Options, Parsed, builtin_includes, parse_path, parse_text, render};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    Harness::default()
        .each("accepted", files(&folder("accepted"), "p4"), has_no_findings)
        .each("refused", files(&folder("refused"), "p4"), has_the_announced_findings)
        .test("embedded_includes_have_no_findings", embedded_includes_have_no_findings)
        .run()
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

fn rendered(parsed: &Parsed) -> String {
    parsed.diagnostics.iter().map(|d| render(d, &parsed.sources, false)).collect()
}

fn has_no_findings(path: &Path) -> Result<(), String> {
    let parsed = parse_path(path, &Options::default());
    if !parsed.diagnostics.is_empty() {
        return Err(rendered(&parsed));
    }
    assert!(parsed.program.declarations.len() > 5);
    Ok(())
}

fn embedded_includes_have_no_findings() -> Result<(), String> {
    for name in builtin_includes() {
        let parsed = parse_text("main.p4", &format!("#include <{name}>\n"), &Options::default());
        assert!(parsed.diagnostics.is_empty(), "{}", rendered(&parsed));
        assert!(!parsed.program.declarations.is_empty(), "{name}");
    }
    Ok(())
}

fn has_the_announced_findings(path: &Path) -> Result<(), String> {
    let parsed = parse_path(path, &Options::default());
    let problems = differences(path, &parsed.sources, parsed.diagnostics.iter());
    if !problems.is_empty() {
        return Err(problems.join("\n"));
    }
    let lines: Vec<u32> =
        parsed.diagnostics.iter().map(|d| parsed.sources.location(d.primary).line).collect();
    assert!(lines.is_sorted(), "{lines:?}");
    for diagnostic in &parsed.diagnostics {
        let place = parsed.sources.location(diagnostic.primary).to_string();
        assert!(render(diagnostic, &parsed.sources, false).contains(&place), "{place}");
    }
    Ok(())
}
