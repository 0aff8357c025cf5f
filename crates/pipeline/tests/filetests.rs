//! Runs the programs in `filetests/`: each is a text of the IR with directives in its comments.
//!
//! - `; test verify`: the program is well formed.
//! - `; test verifier-error: TEXT`: the verifier reports it; TEXT is part of one of its errors. Several such lines
//!   want several errors, and then there is no other.
//! - `; test parse-error: TEXT`: the parser reports it; TEXT is part of its message with line and column.
//! - `; test roundtrip`: printing and parsing give the program again.
//! - `; test print`: the text, but for comments and blank lines, is what printing gives.
//! - `; test optimize`: the program optimised prints the lines of the `; check: ` directives in that order, possibly
//!   with others between; `; check-not: TEXT` wants no line with TEXT at all.

use millrace_pipeline::{Program, passes, text, verify};
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn filetests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests");
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.sort();
    assert!(files.len() > 15, "the programs are missing");
    let mut failures = Vec::new();
    for file in &files {
        let source = fs::read_to_string(file).expect("a file that was just listed");
        if let Err(message) = run(&source) {
            let name = file.strip_prefix(&root).unwrap_or(file);
            failures.push(format!("{}: {message}", name.display()));
        }
    }
    assert!(failures.is_empty(), "{} of {} failed:\n{}", failures.len(), files.len(), failures.join("\n"));
}

/// The program that the documentation starts with.
#[test]
fn documented_program() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/dev/ir.md");
    let docs = fs::read_to_string(docs).expect("docs/dev/ir.md");
    let program = docs.split("```").nth(1).expect("a program in the documentation");
    run(&format!("; test verify\n; test roundtrip\n; test print\n{program}")).unwrap();
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of file tests") {
        let path = entry.expect("a folder that can be read").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|e| e == "mir") {
            files.push(path);
        }
    }
}

fn run(source: &str) -> Result<(), String> {
    let directives: Vec<&str> =
        source.lines().filter_map(|line| line.trim_start().strip_prefix("; ")).map(str::trim).collect();
    let values = |prefix: &str| -> Vec<&str> {
        directives.iter().filter_map(|d| d.strip_prefix(prefix)).map(str::trim).collect()
    };
    let tests = values("test ");
    if tests.is_empty() {
        return Err("no `; test` directive".into());
    }
    let parsed = text::parse(source);
    let wanted = values("test parse-error:");
    if let Some(wanted) = wanted.first() {
        return match parsed {
            Err(error) if error.to_string().contains(wanted) => Ok(()),
            Err(error) => Err(format!("another error: {error}")),
            Ok(_) => Err("no error".into()),
        };
    }
    let program = parsed.map_err(|e| format!("does not parse: {e}"))?;
    let errors: Vec<String> =
        verify(&program).err().unwrap_or_default().iter().map(|e| e.to_string()).collect();
    let wanted = values("test verifier-error:");
    for text in &wanted {
        if !errors.iter().any(|e| e.contains(text)) {
            return Err(format!("no error with {text:?} among {errors:#?}"));
        }
    }
    if errors.len() != wanted.len() {
        return Err(format!("{} errors, not {}: {errors:#?}", errors.len(), wanted.len()));
    }
    for test in tests {
        match test {
            "verify" => {}
            "roundtrip" => roundtrip(&program)?,
            "print" => prints_as_written(source, &program)?,
            "optimize" => optimize(program.clone(), &values("check:"), &values("check-not:"))?,
            test if test.starts_with("verifier-error:") => {}
            test => return Err(format!("unknown test {test:?}")),
        }
    }
    Ok(())
}

fn roundtrip(program: &Program) -> Result<(), String> {
    let printed = text::print(program);
    let again = text::parse(&printed).map_err(|e| format!("its text does not parse: {e}\n{printed}"))?;
    if again != *program {
        return Err(format!("another program after printing and parsing:\n{printed}"));
    }
    if text::print(&again) != printed { Err("it prints differently".into()) } else { Ok(()) }
}

fn prints_as_written(source: &str, program: &Program) -> Result<(), String> {
    let plain = |text: &str| -> Vec<String> {
        let lines = text.lines().map(|l| l.trim_end().to_string());
        lines.filter(|l| !l.is_empty() && !l.trim_start().starts_with(';')).collect()
    };
    let (printed, written) = (plain(&text::print(program)), plain(source));
    match printed.iter().zip(&written).find(|(a, b)| a != b) {
        Some((printed, written)) => Err(format!("prints {printed:?} for {written:?}")),
        None if printed.len() != written.len() => {
            Err(format!("prints {} lines for {}", printed.len(), written.len()))
        }
        None => Ok(()),
    }
}

fn optimize(mut program: Program, checks: &[&str], checks_not: &[&str]) -> Result<(), String> {
    passes::optimize(&mut program);
    let printed = text::print(&program);
    if let Err(errors) = verify(&program) {
        return Err(format!("broken by optimising: {errors:#?}\n{printed}"));
    }
    let mut lines = printed.lines().map(str::trim);
    for check in checks {
        if !lines.any(|line| line == *check) {
            return Err(format!("no line {check:?} (any more) in:\n{printed}"));
        }
    }
    match checks_not.iter().find(|c| printed.contains(**c)) {
        Some(text) => Err(format!("{text:?} is still in:\n{printed}")),
        None => Ok(()),
    }
}
