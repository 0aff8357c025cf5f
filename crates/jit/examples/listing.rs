//! Prints what a program is compiled to: `listing [graph|clif|asm|ir|time] [TARGET] < program.mir`.

use millrace_jit::{Compiled, Options, Shape, listing};
use millrace_midend::Plan;
use millrace_pipeline::{passes, text};
use std::io::Read;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let what = args.next().unwrap_or_else(|| "asm".into());
    let target = args.next();
    let mut source = String::new();
    if let Err(error) = std::io::stdin().read_to_string(&mut source) {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    let mut program = match text::parse(&source) {
        Ok(program) => program,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    passes::optimize(&mut program);
    let shapes = vec![Shape::Two { low: 8, bytes: 2 }, Shape::Call, Shape::Direct];
    let options = Options { shapes, ..Options::default() };
    if what == "time" {
        let compiled = Compiled::new(&program, &Plan::through(&program, true), &options);
        match compiled {
            Ok(compiled) => println!("{:?}", compiled.statistics()),
            Err(error) => eprintln!("{error}"),
        }
        return ExitCode::SUCCESS;
    }
    match listing(&program, &Plan::through(&program, true), &options, target.as_deref()) {
        Ok(listing) => {
            match what.as_str() {
                "graph" => print!("{}", listing.graph),
                "clif" => print!("{}", listing.clif),
                "ir" => print!("{}", text::print(&program)),
                _ => print!("{}", listing.asm),
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
