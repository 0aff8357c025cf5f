//! `millrace compile`.

use crate::cli::{CompileArgs, Emit};
use crate::findings::{Failure, Findings};
use crate::source::{load, write_output};

pub(crate) fn compile(args: &CompileArgs, findings: &mut Findings) -> Result<(), Failure> {
    let program = load(&args.program, &args.source, findings)?.lower(findings)?;
    match args.emit {
        Emit::Ir => write_output(args.output.as_deref(), &millrace_pipeline::text::print(&program)),
    }
}
