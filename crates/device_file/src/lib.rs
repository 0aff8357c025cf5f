//! A device with many virtual switches, described in one TOML file: text to a checked model, or all that is wrong, each with
//! file, line and caret.
//!
//! - [`DeviceFile::parse`] reads a text. It runs nothing and opens nothing. Every mistake is told at once.
//! - [`DeviceFile::parse_with_files`] also looks whether the files that it names are there.
//! - [`DeviceFile::to_toml`] writes the text of a model.
//! - [`changes`] says what takes a running device from one file to another.
//!
//! The keys with their defaults and limits are in docs/chassis.md, which is written from `keys.rs`.

#![forbid(unsafe_code)]

mod changes;
mod check;
mod files;
mod folder;
mod keys;
mod limits;
mod model;
mod named;
mod parse;
mod print;
mod problem;
mod quantity;
mod reader;
mod reference;

pub use changes::{Change, Changes, Kept, Missing, changes};
pub use limits::*;
pub use model::*;
pub use named::{Named, named};
pub use print::toml_string;
pub use problem::{Kind, Place, Problem, Problems};
pub use reference::reference;

use problem::{Finding, Findings};
use std::path::Path;
use toml::de::DeTable;

impl DeviceFile {
    /// Reads the text of a file. `name` is what problems call the file.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub fn parse(name: &str, text: &str) -> Result<DeviceFile, Problems> {
        read(name, text, None)
    }

    /// As [`DeviceFile::parse`], and looks whether files and folders that are named are there, and whether those of a tenant
    /// are in its folder whatever links of the file system say. Paths that do not start at the root start at `folder`, that of
    /// the file.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub fn parse_with_files(name: &str, text: &str, folder: &Path) -> Result<DeviceFile, Problems> {
        read(name, text, Some(folder))
    }
}

fn read(name: &str, text: &str, folder: Option<&Path>) -> Result<DeviceFile, Problems> {
    let mut findings = Findings::default();
    if text.len() > MAX_FILE {
        let message = format!("the file has {} bytes: at most {MAX_FILE} (MAX_FILE)", text.len());
        findings.push(Finding::new(Kind::Limit, 0..0, message));
        return findings.problems(name, "").map_or_else(|| unreachable!("a finding was made"), Err);
    }
    let (document, errors) = match DeTable::parse(text) {
        Ok(document) => (document, Vec::new()),
        // Of a text that is no TOML a part is read: mistakes of TOML cost more than what is right.
        Err(first) => {
            let end = first.span().map_or(0, |at| at.start).saturating_add(MAX_RECOVERY);
            let (document, mut errors) = DeTable::parse_recoverable(lines_to(text, end));
            if errors.is_empty() {
                errors.push(first);
            }
            (document, errors)
        }
    };
    for error in &errors {
        findings.push(Finding::new(Kind::Syntax, error.span().unwrap_or(0..0), error.message()));
    }
    let mut draft = parse::draft(document.get_ref(), &mut findings);
    check::check(&mut draft, &mut findings);
    if let Some(folder) = folder {
        files::check(&draft, folder, &mut findings);
    }
    match findings.problems(name, text) {
        Some(problems) => Err(problems),
        None => Ok(draft.finish()),
    }
}

/// The lines of a text that end before a byte.
fn lines_to(text: &str, end: usize) -> &str {
    match text.as_bytes().get(..end) {
        Some(part) => {
            &text[..part.iter().rposition(|byte| *byte == b'\n').map_or(0, |line_end| line_end + 1)]
        }
        None => text,
    }
}
