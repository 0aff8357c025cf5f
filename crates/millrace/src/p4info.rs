//! `millrace p4info`.

use crate::cli::P4infoArgs;
use crate::findings::{Failure, Findings};
use crate::source::{load_any, write_output};

pub(crate) fn p4info(args: &P4infoArgs, findings: &mut Findings) -> Result<(), Failure> {
    let loaded = load_any(&args.program.path, &args.program.source, findings)?;
    write_output(args.output.as_deref(), &loaded.p4info())
}
