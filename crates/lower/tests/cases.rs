//! Each program in `cases/` says in comments what its IR must hold:
//! - `// in: TEXT`: what follows is about the part of the IR that starts with the line TEXT (up to an empty line);
//! - `// check: LINE`: that line comes next or later in the part;
//! - `// none: LINE`: no such line in the part;
//! - `// error: TEXT`: the program is refused with a message that has this text.
//!
//! Every program that is lowered must pass the verifier, and again after all passes.

use millrace_syntax::{Options, parse_path};
use std::path::{Path, PathBuf};

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder of cases")
        .map(|entry| entry.expect("an entry").path())
        .filter(|p| p.extension().is_some_and(|e| e == "p4") && !p.ends_with("common.p4"))
        .collect();
    files.sort();
    files
}

/// The IR, or the message of the first error.
fn lower(path: &Path) -> Result<String, String> {
    let parsed = parse_path(path, &Options::default());
    let checked = millrace_sema::check(&parsed.program);
    if let Some(d) = parsed.diagnostics.iter().chain(&checked.diagnostics).find(|d| d.is_error()) {
        panic!("{}: {} at {}", path.display(), d.message, parsed.sources.location(d.primary));
    }
    let mut program =
        millrace_lower::lower(&checked.program, "case").map_err(|list| list[0].message.clone())?;
    if let Err(errors) = millrace_pipeline::verify(&program) {
        panic!("{}: {}\n{program}", path.display(), errors[0]);
    }
    let text = program.to_string();
    millrace_pipeline::passes::optimize(&mut program);
    if let Err(errors) = millrace_pipeline::verify(&program) {
        panic!("{}: after the passes: {}\n{program}", path.display(), errors[0]);
    }
    Ok(text)
}

fn part<'t>(text: &'t str, start: &str) -> Option<Vec<&'t str>> {
    let mut lines = text.lines().skip_while(|l| !l.starts_with(start)).peekable();
    lines.peek()?;
    Some(lines.take_while(|l| !l.is_empty()).map(str::trim).collect())
}

fn run(path: &Path) -> Result<(), String> {
    let source = std::fs::read_to_string(path).expect("a case");
    let wanted = |word: &str| {
        let prefix = format!("// {word}: ");
        source.lines().find_map(|l| l.strip_prefix(&prefix).map(str::to_owned))
    };
    let text = match (lower(path), wanted("error")) {
        (Err(message), Some(wanted)) if message.contains(&wanted) => return Ok(()),
        (Err(message), _) => return Err(format!("refused: {message}")),
        (Ok(_), Some(wanted)) => return Err(format!("not refused: {wanted}")),
        (Ok(text), None) => text,
    };
    let mut lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut at = 0;
    let mut checks = 0;
    for directive in source.lines() {
        if let Some(start) = directive.strip_prefix("// in: ") {
            lines = part(&text, start).ok_or_else(|| format!("no part starts with `{start}`\n{text}"))?;
            at = 0;
        } else if let Some(line) = directive.strip_prefix("// check: ") {
            checks += 1;
            match lines[at..].iter().position(|l| *l == line) {
                Some(offset) => at += offset + 1,
                None => return Err(format!("missing: {line}\nin:\n{}", lines[at..].join("\n"))),
            }
        } else if let Some(line) = directive.strip_prefix("// none: ") {
            checks += 1;
            if lines.contains(&line) {
                return Err(format!("not wanted: {line}\nin:\n{}", lines.join("\n")));
            }
        }
    }
    if checks == 0 { Err("nothing is checked".into()) } else { Ok(()) }
}

#[test]
fn every_case() {
    let mut failures = String::new();
    for path in cases() {
        if let Err(message) = run(&path) {
            failures += &format!("{}: {message}\n\n", path.file_name().unwrap_or_default().to_string_lossy());
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}
