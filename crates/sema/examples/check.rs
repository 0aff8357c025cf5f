//! Checks the programs given as arguments: `check [-q] [-I DIR]... FILE...`. Prints what was found (`-q`: only one line a
//! file) and a summary.

use millrace_sema::check;
use millrace_syntax::{Options, parse_path, render};

fn main() {
    let mut options = Options::default();
    let mut quiet = false;
    let (mut accepted, mut refused) = (0, 0);
    let mut args = std::env::args().skip(1);
    let mut files = Vec::new();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "-q" => quiet = true,
            "-I" => options.include_dirs.extend(args.next().map(Into::into)),
            _ => files.push(arg),
        }
    }
    for file in files {
        let parsed = parse_path(&file, &options);
        let checked = check(&parsed.program);
        let all: Vec<_> = parsed.diagnostics.iter().chain(&checked.diagnostics).collect();
        let errors = all.iter().filter(|d| d.is_error()).count();
        if errors == 0 {
            for broken in millrace_sema::hir::verify(&checked.program) {
                println!("BROKEN {file}: {broken}");
            }
        }
        if errors == 0 {
            accepted += 1;
        } else {
            refused += 1;
        }
        if quiet {
            let first = all.iter().find(|d| d.is_error());
            match first {
                Some(d) => {
                    println!(
                        "REFUSED {file}: {} {} at {}",
                        d.code,
                        d.message,
                        parsed.sources.location(d.primary)
                    );
                }
                None => println!("ACCEPTED {file}"),
            }
            continue;
        }
        for diagnostic in all {
            println!("{}", render(diagnostic, &parsed.sources, false));
        }
        println!("{file}: {errors} error(s)");
    }
    println!("{accepted} accepted, {refused} refused");
}
