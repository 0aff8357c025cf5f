//! Lowers programs and prints their IR: `lower [-q] [-O] [-I DIR]... PROGRAM...`. With `-O` all
//! passes run before. With `-q` only what failed is printed, one
//! line for each program. Every result is verified.

use millrace_syntax::{Diagnostic, Options, SourceMap, parse_path, render};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut quiet = false;
    let mut passes = false;
    let mut options = Options::default();
    let mut programs = Vec::new();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "-q" => quiet = true,
            "-O" => passes = true,
            "-I" => options.include_dirs.extend(args.next().map(PathBuf::from)),
            _ => programs.push(PathBuf::from(arg)),
        }
    }
    let mut failed = 0;
    for path in &programs {
        match lower(path, &options, passes) {
            Ok(text) if quiet => drop(text),
            Ok(text) => print!("{text}"),
            Err((stage, message)) => {
                failed += 1;
                if quiet {
                    println!("{}: {stage}: {}", path.display(), message.lines().next().unwrap_or(""));
                } else {
                    eprintln!("{stage}: {message}");
                }
            }
        }
    }
    if quiet {
        println!("{} of {} programs lowered", programs.len() - failed, programs.len());
    }
    ExitCode::from(u8::from(failed > 0))
}

fn lower(path: &Path, options: &Options, passes: bool) -> Result<String, (&'static str, String)> {
    let parsed = parse_path(path, options);
    errors("syntax", parsed.diagnostics.iter(), &parsed.sources)?;
    let checked = millrace_sema::check(&parsed.program);
    errors("sema", checked.diagnostics.iter(), &parsed.sources)?;
    let name = path.file_stem().and_then(|s| s.to_str()).unwrap_or("program");
    let mut program = match millrace_lower::lower(&checked.program, name) {
        Ok(program) => program,
        Err(diagnostics) => {
            errors("lower", diagnostics.iter(), &parsed.sources)?;
            return Err(("lower", "no reason given".into()));
        }
    };
    verify("verify", &program)?;
    if passes {
        millrace_pipeline::passes::optimize(&mut program);
        verify("passes", &program)?;
    }
    Ok(program.to_string())
}

fn verify(stage: &'static str, program: &millrace_pipeline::Program) -> Result<(), (&'static str, String)> {
    if let Err(errors) = millrace_pipeline::verify(program) {
        let list: Vec<String> = errors.iter().map(ToString::to_string).collect();
        return Err((stage, list.join("\n")));
    }
    Ok(())
}

fn errors<'a>(
    stage: &'static str,
    diagnostics: impl Iterator<Item = &'a Diagnostic>,
    sources: &SourceMap,
) -> Result<(), (&'static str, String)> {
    let list: Vec<String> = diagnostics
        .filter(|d| d.is_error())
        .map(|d| format!("{} ({:?})\n{}", d.message, sources.location(d.primary), render(d, sources, false)))
        .collect();
    if list.is_empty() { Ok(()) } else { Err((stage, list.join("\n"))) }
}
