//! The programs in `filetests/`, each a text of the IR with directives as `millrace_filetests` has them.
//!
//! - `; test parse`: gives the message of the parser, with line and column.
//! - `; test verify`: the program is well formed, or `; error:` names each error of the verifier.
//! - `; test roundtrip`: printing and parsing give the program again.
//! - `; test print`: the text, but for comments and blank lines, is what printing gives.
//! - `; test optimize`: gives the program optimised.

use millrace_filetests::{Folder, Harness, Kind, Outcome, Test};
use millrace_pipeline::{Program, passes, text, verify};
use std::fs;
use std::path::Path;
use std::process::ExitCode;

const KINDS: &[Kind] = &[
    Kind { name: "parse", words: &[], run: parse },
    Kind { name: "verify", words: &[], run: verified },
    Kind { name: "roundtrip", words: &[], run: roundtrip },
    Kind { name: "print", words: &[], run: prints_as_written },
    Kind { name: "optimize", words: &[], run: optimize },
];

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = Folder { path: root.join("filetests"), extension: "mir", sign: ";", kinds: KINDS };
    let documented = {
        let (folder, page) = (folder.clone(), root.join("../../docs/dev/ir.md"));
        move || documented_program(&folder, &page)
    };
    Harness::default().folder(&folder).test("documented_program", documented).run()
}

/// The program that the documentation starts with.
fn documented_program(folder: &Folder, page: &Path) -> Result<(), String> {
    let text = fs::read_to_string(page).map_err(|error| error.to_string())?;
    let program = text.split("```").nth(1).ok_or("no program in the documentation")?;
    folder.check(page, &format!("; test verify\n; test roundtrip\n; test print\n{program}")).map(drop)
}

fn parse(test: &Test<'_>) -> Result<Outcome, String> {
    Ok(match text::parse(test.source) {
        Ok(_) => Outcome::Holds,
        Err(error) => Outcome::Errors(vec![error.to_string()]),
    })
}

fn parsed(source: &str) -> Result<Program, String> {
    text::parse(source).map_err(|error| format!("does not parse: {error}"))
}

fn errors(program: &Program) -> Vec<String> {
    verify(program).err().unwrap_or_default().iter().map(|error| error.to_string()).collect()
}

/// A program that is well formed.
fn sound(source: &str) -> Result<Program, String> {
    let program = parsed(source)?;
    match errors(&program).as_slice() {
        [] => Ok(program),
        errors => Err(format!("not well formed: {errors:#?}")),
    }
}

fn verified(test: &Test<'_>) -> Result<Outcome, String> {
    let errors = errors(&parsed(test.source)?);
    Ok(if errors.is_empty() { Outcome::Holds } else { Outcome::Errors(errors) })
}

fn roundtrip(test: &Test<'_>) -> Result<Outcome, String> {
    let program = sound(test.source)?;
    let printed = text::print(&program);
    let again = text::parse(&printed).map_err(|e| format!("its text does not parse: {e}\n{printed}"))?;
    if again != program {
        return Err(format!("another program after printing and parsing:\n{printed}"));
    }
    if text::print(&again) != printed { Err("it prints differently".into()) } else { Ok(Outcome::Holds) }
}

fn prints_as_written(test: &Test<'_>) -> Result<Outcome, String> {
    let plain = |text: &str| -> Vec<String> {
        let lines = text.lines().map(|l| l.trim_end().to_string());
        lines.filter(|l| !l.is_empty() && !l.trim_start().starts_with(';')).collect()
    };
    let (printed, written) = (plain(&text::print(&sound(test.source)?)), plain(test.source));
    match printed.iter().zip(&written).find(|(a, b)| a != b) {
        Some((printed, written)) => Err(format!("prints {printed:?} for {written:?}")),
        None if printed.len() != written.len() => {
            Err(format!("prints {} lines for {}", printed.len(), written.len()))
        }
        None => Ok(Outcome::Holds),
    }
}

fn optimize(test: &Test<'_>) -> Result<Outcome, String> {
    let mut program = sound(test.source)?;
    passes::optimize(&mut program);
    let printed = text::print(&program);
    match verify(&program) {
        Ok(()) => Ok(Outcome::Text(printed)),
        Err(errors) => Err(format!("broken by optimising: {errors:#?}\n{printed}")),
    }
}
