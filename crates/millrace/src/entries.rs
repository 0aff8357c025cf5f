//! Entries files.

use crate::findings::{Failure, Findings};
use crate::output::tell;
use crate::progress::Progress;
use millrace_control::entries::load;
use millrace_dataplane::Switch;
use millrace_syntax::{read_file, read_text};
use std::path::Path;

/// Largest entries file that is read, in bytes.
const MAX_BYTES: u64 = 4 << 30;

/// Largest file of a configuration that is read, in bytes: more than any reader takes.
const MAX_CONFIG: u64 = 64 << 20;

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

/// Reads a text file of at most so many bytes, all of which have to be UTF-8.
pub(crate) fn read_utf8(path: &Path, max: u64) -> Result<String, Failure> {
    let bytes = read_file(path, max)
        .map_err(|error| Failure::failed(format!("cannot read {}", path.display()), error))?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let before = &error.as_bytes()[..at];
        let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        let column = 1 + String::from_utf8_lossy(&before[line_start..]).chars().count();
        let place = format!("{}:{line}:{column}", path.display());
        Failure::failed(place, format!("it is no text: the byte at {at} is not UTF-8"))
    })
}

/// As [`read_utf8`], for a text whose reader has a limit of its own, and says so with the place. A byte order mark at its beginning is no part of it.
pub(crate) fn read_config(path: &Path) -> Result<String, Failure> {
    let mut text = read_utf8(path, MAX_CONFIG)?;
    if text.starts_with('\u{feff}') {
        text.remove(0);
    }
    Ok(text)
}

/// Reads a text file; bytes that are not UTF-8 become the replacement character.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    read_text(path, MAX_BYTES)
        .map_err(|error| Failure::failed(format!("cannot read {}", path.display()), error))
}
