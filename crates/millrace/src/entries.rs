//! Entries files.

use crate::findings::{Failure, Findings};
use crate::output::tell;
use crate::progress::Progress;
use millrace_control::entries::load;
use millrace_switch::Switch;
use std::path::Path;

/// Largest entries file that is read, in bytes.
const MAX_BYTES: u64 = 4 << 30;

/// Loads a file into a switch. What its commands show goes to standard error, so that `--json` stays one object.
pub(crate) fn load_file(switch: &mut Switch, path: &Path, findings: &mut Findings) -> Result<(), Failure> {
    let text = read(path)?;
    let name = path.display().to_string();
    let progress = Progress::start(format!("loading {name}"));
    let loaded = load(switch, &text);
    drop(progress);
    match loaded {
        Ok(loaded) => {
            tell(loaded.text);
            Ok(())
        }
        Err(refusals) => Err(findings.refused(&name, &text, &refusals, "entry")),
    }
}

/// Reads a text file; bytes that are not UTF-8 become the replacement character.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    let failed = |error: std::io::Error| Failure::failed(format!("cannot read {}", path.display()), error);
    let length = std::fs::metadata(path).map_err(failed)?.len();
    if length > MAX_BYTES {
        return Err(Failure::Failed(format!("{} is longer than {MAX_BYTES} bytes", path.display())));
    }
    let bytes = std::fs::read(path).map_err(failed)?;
    Ok(match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}
