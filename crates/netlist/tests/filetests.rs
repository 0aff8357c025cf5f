//! The designs in `filetests/`, each a text with directives as `millrace_filetests` has them.
//!
//! - `; test parse`: gives the message of the parser, with line and column.
//! - `; test verify`: the design is well formed, or `; error:` names each error of the verifier.
//! - `; test roundtrip`: printing and parsing give the design again.
//! - `; test print`: the text, but for comments and blank lines, is what printing gives.
//! - `; test optimize`: gives the design optimised.
//! - `; test delay-lines`: gives the design with memories for chains of registers.
//! - `; test verilog`: gives its SystemVerilog, the files after each other; where Verilator is installed, it has nothing to say about it.
//! - `; test sim`: gives the outputs of each cycle, a line each. `; set: NAME=VALUE ...` sets inputs from the next cycle on (`reset` is
//!   the reset), `; run: N` runs that many cycles, `; show: register NAME` and `; show: memory NAME ADDRESS` add a line with what those hold.

#[allow(dead_code)]
mod common;

use common::tools;
use millrace_filetests::{Folder, Harness, Kind, Outcome, Test};
use millrace_netlist::{Bits, Design, Simulator, passes, text, verify, verilog};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

const KINDS: &[Kind] = &[
    Kind { name: "parse", words: &[], run: parse },
    Kind { name: "verify", words: &[], run: verified },
    Kind { name: "roundtrip", words: &[], run: roundtrip },
    Kind { name: "print", words: &[], run: prints_as_written },
    Kind { name: "optimize", words: &[], run: optimize },
    Kind { name: "delay-lines", words: &[], run: delay_lines },
    Kind { name: "borrows", words: &[], run: borrows },
    Kind { name: "verilog", words: &[], run: to_verilog },
    Kind { name: "sim", words: &["set", "run", "show"], run: simulate },
];

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = Folder { path: root.join("filetests"), extension: "net", sign: ";", kinds: KINDS };
    let documented = {
        let (folder, page) = (folder.clone(), root.join("../../docs/dev/netlist.md"));
        move || documented_design(&folder, &page)
    };
    Harness::default().folder(&folder).test("documented_design", documented).run()
}

/// The design that the documentation starts with.
fn documented_design(folder: &Folder, page: &Path) -> Result<(), String> {
    let text = fs::read_to_string(page).map_err(|error| error.to_string())?;
    let design = text.split("```").nth(1).ok_or("no design in the documentation")?;
    folder.check(page, &format!("; test verify\n; test roundtrip\n; test print\n{design}")).map(drop)
}

fn parse(test: &Test<'_>) -> Result<Outcome, String> {
    Ok(match text::parse(test.source) {
        Ok(_) => Outcome::Holds,
        Err(error) => Outcome::Errors(vec![error.to_string()]),
    })
}

fn parsed(source: &str) -> Result<Design, String> {
    text::parse(source).map_err(|error| format!("does not parse: {error}"))
}

/// A design that is well formed.
fn sound(source: &str) -> Result<Design, String> {
    let design = parsed(source)?;
    verify(&design).map_err(|errors| format!("not well formed: {errors:#?}"))?;
    Ok(design)
}

fn verified(test: &Test<'_>) -> Result<Outcome, String> {
    Ok(match verify(&parsed(test.source)?) {
        Ok(()) => Outcome::Holds,
        Err(errors) => Outcome::Errors(errors.iter().map(|error| error.to_string()).collect()),
    })
}

fn roundtrip(test: &Test<'_>) -> Result<Outcome, String> {
    let design = sound(test.source)?;
    let printed = text::print(&design);
    let again = text::parse(&printed).map_err(|e| format!("its text does not parse: {e}\n{printed}"))?;
    if again != design {
        return Err(format!("another design after printing and parsing:\n{printed}"));
    }
    if text::print(&again) != printed { Err("it prints differently".into()) } else { Ok(Outcome::Holds) }
}

fn prints_as_written(test: &Test<'_>) -> Result<Outcome, String> {
    let plain = |text: &str| -> Vec<String> {
        let lines = text.lines().map(|l| l.trim_end().to_string());
        lines.filter(|l| !l.is_empty() && !l.trim_start().starts_with(';')).collect()
    };
    let (printed, written) = (plain(&text::print(&sound(test.source)?)), plain(test.source));
    match printed == written {
        true => Ok(Outcome::Holds),
        false => Err(format!("prints\n{}", printed.join("\n"))),
    }
}

fn optimize(test: &Test<'_>) -> Result<Outcome, String> {
    changed(test, passes::optimize)
}

fn delay_lines(test: &Test<'_>) -> Result<Outcome, String> {
    changed(test, passes::delay_lines)
}

fn borrows(test: &Test<'_>) -> Result<Outcome, String> {
    changed(test, passes::borrows)
}

/// What a pass makes of a design.
fn changed(test: &Test<'_>, pass: fn(&mut Design)) -> Result<Outcome, String> {
    let mut design = sound(test.source)?;
    pass(&mut design);
    let printed = text::print(&design);
    match verify(&design) {
        Ok(()) => Ok(Outcome::Text(printed)),
        Err(errors) => Err(format!("broken by the pass: {errors:#?}\n{printed}")),
    }
}

fn to_verilog(test: &Test<'_>) -> Result<Outcome, String> {
    let design = sound(test.source)?;
    if tools::has("verilator") {
        let name = test.path.file_stem().unwrap_or_default().to_string_lossy();
        tools::lint(&design, &format!("file-{name}"))?;
    }
    let files = verilog::print(&design);
    Ok(Outcome::Text(files.into_iter().map(|file| file.text).collect::<Vec<_>>().join("\n")))
}

/// A number as a text has it, decimal or hexadecimal.
fn number(text: &str) -> Result<u128, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u128::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|error| format!("{text}: {error}"))
}

fn simulate(test: &Test<'_>) -> Result<Outcome, String> {
    let design = sound(test.source)?;
    let mut sim = Simulator::new(&design).map_err(|errors| format!("{errors:?}"))?;
    let module = &design.modules[design.top().ok_or("no top")?];
    let mut out = String::new();
    for directive in test.script {
        match directive.word.as_str() {
            "set" => {
                for assignment in directive.text.split_whitespace() {
                    let (name, value) = assignment.split_once('=').ok_or("NAME=VALUE")?;
                    match sim.input(name) {
                        _ if name == "reset" => sim.set_reset(number(value)? != 0),
                        Some(input) => {
                            let width = sim.describe(input).2;
                            sim.set(input, &Bits::new(width, number(value)?));
                        }
                        None => return Err(format!("no input {name}")),
                    }
                }
            }
            "run" => {
                for _ in 0..number(&directive.text)? {
                    let _ = write!(out, "{}:", sim.cycle());
                    for port in module.outputs.values() {
                        let output = sim.output(&port.name).ok_or("an output")?;
                        let _ = write!(out, " {}={}", port.name, sim.get(output));
                    }
                    out.push('\n');
                    sim.step();
                }
            }
            _ => {
                let words: Vec<&str> = directive.text.split_whitespace().collect();
                match words[..] {
                    ["register", name] => {
                        let register = sim.register(name).ok_or_else(|| format!("no register {name}"))?;
                        let _ = writeln!(out, "register {name} = {}", sim.get(register));
                    }
                    ["memory", name, address] => {
                        let memory = sim.memory(name).ok_or_else(|| format!("no memory {name}"))?;
                        let address = number(address)? as u32;
                        let _ =
                            writeln!(out, "memory {name} {address} = {}", sim.read_memory(memory, address));
                    }
                    _ => return Err(format!("cannot show {}", directive.text)),
                }
            }
        }
    }
    Ok(Outcome::Text(out))
}
