//! `millrace check`.

use crate::cli::CheckArgs;
use crate::findings::{Failure, Findings};
use crate::output::say_line;
use crate::source::load_any;
use serde_json::json;

pub(crate) fn check(args: &CheckArgs, findings: &mut Findings) -> Result<(), Failure> {
    load_any(&args.program.path, &args.program.source, findings)?;
    if args.json {
        say_line(json!({ "ok": true, "diagnostics": findings.list() }));
    }
    Ok(())
}
