//! Parses P4 programs and prints what is wrong with them.
//!
//! ```text
//! cargo run --release -p millrace-syntax --example parse -- [-I DIR] [-D NAME[=VALUE]] [--time] FILE...
//! ```

use std::process::ExitCode;
use std::time::Instant;

use millrace_syntax::{Options, parse_path, render};

fn main() -> ExitCode {
    let mut options = Options::default();
    let mut files = Vec::new();
    let mut time = false;
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "-I" => options.include_dirs.extend(args.next().map(Into::into)),
            "-D" => {
                let definition = args.next().unwrap_or_default();
                let (name, value) = definition.split_once('=').unwrap_or((&definition, "1"));
                options.defines.push((name.to_owned(), value.to_owned()));
            }
            "--time" => time = true,
            _ => files.push(arg),
        }
    }
    let mut failed = 0;
    for file in &files {
        let start = Instant::now();
        let parsed = parse_path(file, &options);
        let elapsed = start.elapsed();
        for diagnostic in &parsed.diagnostics {
            eprint!("{}", render(diagnostic, &parsed.sources, false));
        }
        if time {
            println!("{file}: {:.2} ms", elapsed.as_secs_f64() * 1e3);
        }
        failed += usize::from(parsed.diagnostics.has_errors());
    }
    println!("{} of {} files without errors", files.len() - failed, files.len());
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
