//! `millrace p4info`.

use crate::cli::P4infoArgs;
use crate::findings::{Failure, Findings};
use crate::source::{load, write_output};
use millrace_control::p4info::describe;

pub(crate) fn p4info(args: &P4infoArgs, findings: &mut Findings) -> Result<(), Failure> {
    let checked = load(&args.program.path, &args.program.source, findings)?;
    write_output(args.output.as_deref(), &describe(checked.typed()).to_string())
}
