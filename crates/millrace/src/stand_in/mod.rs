//! Millrace under the names of p4c and bmv2: their options, their exit codes, our libraries.

mod compiler;
mod driver;
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
        "simple_switch" => |args| switch::main(switch::Target::SimpleSwitch, args),
        "simple_switch_grpc" => |args| switch::main(switch::Target::SimpleSwitchGrpc, args),
        _ => return None,
    };
    Some(run(args.collect()))
}
