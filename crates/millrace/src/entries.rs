//! Entries files.

use crate::findings::{Failure, Findings};
use crate::output::tell;
use crate::progress::Progress;
use millrace_control::entries::load;
use millrace_dataplane::Switch;
use millrace_syntax::read_text;
use std::path::Path;

/// Largest entries file that is read, in bytes.
const MAX_BYTES: u64 = 4 << 30;

/// Loads a file into a switch. What its commands show goes to standard error, so that `--json` stays one object.
pub(crate) fn load_file(switch: &mut Switch, path: &Path, findings: &mut Findings) -> Result<(), Failure> {
    load_text(switch, path, &read(path)?, findings)
}

/// Loads what was read from a file.
pub(crate) fn load_text(
    switch: &mut Switch,
    path: &Path,
    text: &str,
    findings: &mut Findings,
) -> Result<(), Failure> {
    let name = path.display().to_string();
    let progress = Progress::start(format!("loading {name}"));
    let loaded = load(switch, text);
    drop(progress);
    match loaded {
        Ok(loaded) => {
            tell(loaded.text);
            Ok(())
        }
        Err(refusals) => Err(findings.refused(&name, text, &refusals, "entry")),
    }
}

/// Reads a text file; bytes that are not UTF-8 become the replacement character.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    read_text(path, MAX_BYTES)
        .map_err(|error| Failure::failed(format!("cannot read {}", path.display()), error))
}
