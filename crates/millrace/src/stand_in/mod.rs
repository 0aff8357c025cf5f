//! Millrace under the names of p4c and bmv2: their options, their exit codes, our libraries.

mod compiler;
mod dependencies;
mod driver;
mod graphs;
mod options;
mod switch;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// Does what the name of the executable asks for; none when that is `millrace` itself.
pub(crate) fn by_name(mut args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let own = args.next()?;
    let name = Path::new(&own).file_name()?.to_str()?;
    let run: fn(Vec<OsString>) -> ExitCode = match name {
        "p4c" => driver::main,
        "p4c-bm2-ss" => compiler::main,
        "p4c-bm2-psa" => |args| compiler::main_of("p4c-bm2-psa", args),
        "p4c-bm2-pna" => |args| compiler::main_of("p4c-bm2-pna", args),
        "p4c-graphs" => graphs::main,
        "simple_switch" => |args| switch::main(switch::Target::SimpleSwitch, args),
        "psa_switch" => |args| switch::main(switch::Target::PsaSwitch, args),
        "pna_nic" => |args| switch::main(switch::Target::PnaNic, args),
        "simple_switch_grpc" => |args| switch::main(switch::Target::SimpleSwitchGrpc, args),
        "simple_switch_CLI" | "psa_switch_CLI" => {
            |args| crate::execute(in_front(["millrace", "shell"], args))
        }
        _ => return None,
    };
    Some(run(args.collect()))
}

/// A command line with these words in front.
fn in_front(words: [&str; 2], args: Vec<OsString>) -> Vec<OsString> {
    words.into_iter().map(OsString::from).chain(args).collect()
}
