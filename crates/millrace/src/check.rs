//! `millrace check`.

use crate::cli::CheckArgs;
use crate::findings::{Failure, Findings};
use crate::inputs;
use crate::output::say_line;
use crate::source::{STANDARD_INPUT, find_all};
use serde_json::json;
use std::path::Path;

/// Checks each program, also after one that is wrong.
pub(crate) fn check(args: &CheckArgs, findings: &mut Findings) -> Result<(), Failure> {
    if args.paths.iter().filter(|path| *path == Path::new(STANDARD_INPUT)).count() > 1 {
        return Err(Failure::Usage("standard input (`-`) can be read once".into()));
    }
    inputs::check(&args.input)?;
    if let [path] = args.paths.as_slice() {
        find_all(path, &args.source, args.cores, findings)?;
        if args.json {
            say_line(json!({ "ok": true, "diagnostics": findings.list() }));
        }
        return Ok(());
    }
    let mut files = Vec::new();
    let mut ok = true;
    for path in &args.paths {
        let failure = find_all(path, &args.source, args.cores, findings).err();
        failure.iter().for_each(Failure::show);
        let error = match &failure {
            Some(Failure::Failed(message) | Failure::Usage(message)) => Some(message),
            _ => None,
        };
        ok &= failure.is_none();
        files.push(json!({ "file": path.display().to_string(), "ok": failure.is_none(), "error": error }));
    }
    if args.json {
        say_line(json!({ "ok": ok, "diagnostics": findings.list(), "files": files }));
    }
    if ok { Ok(()) } else { Err(Failure::Told) }
}
