//! The files that a text names, for a device on another machine: their contents go with the text.

use super::{image, text, token_file};
use crate::cli::{Diagnostics, SourceArgs, Standard};
use crate::findings::{Failure, Findings};
use millrace_ctl_api::MAX_REQUEST;
use millrace_device_file::{Named, Program, Std, named};
use std::collections::BTreeMap;
use std::path::Path;

/// The contents of the files of this machine that a text names: those whose paths start at the folder of its file. What starts at the root
/// is a file of the device.
pub(super) fn files(
    file: &Path,
    written: &str,
    findings: &mut Findings,
) -> Result<BTreeMap<String, String>, Failure> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for named in named(written).into_iter().filter(|named| !Path::new(named.path()).is_absolute()) {
        let path = folder.join(named.path());
        let content = match &named {
            Named::Program(program) => image(&path, &source(program, folder), findings)?,
            Named::Image(_) | Named::Entries(_) | Named::Source(_) => text(&path, MAX_REQUEST as u64)?,
            Named::Token(_) => token_file(&path)?,
        };
        let name = named.path().to_owned();
        if files.get(&name).is_some_and(|known| *known != content) {
            let reason = "two switches compile it with other keys, or it is no program only: one of them needs a copy of it";
            return Err(Failure::failed(path.display(), reason));
        }
        files.insert(name, content);
    }
    Ok(files)
}

/// How the device would compile a program.
fn source(program: &Program, folder: &Path) -> SourceArgs {
    let Program { std, include, define, .. } = program;
    SourceArgs {
        include_dirs: include.iter().map(|path| folder.join(path)).collect(),
        defines: define.clone(),
        undefines: Vec::new(),
        std: Some(match std {
            Std::P4_16 => Standard::P4_16,
            Std::P4_14 => Standard::P4_14,
        }),
        diagnostics: Diagnostics::Full,
    }
}
