//! A device with many virtual switches, described in one TOML file: text to a checked model, or all that is wrong, each with
//! file, line and caret.
//!
//! - [`DeviceFile::parse`] reads a text. It runs nothing and opens nothing. Every mistake is told at once.
//! - [`DeviceFile::parse_with_files`] also looks whether the files that it names are there.
//! - [`DeviceFile::to_toml`] writes the text of a model.
//! - [`order`] says in which order claims to frames are looked at.
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
mod order;
mod parse;
mod print;
mod reference;

pub use changes::{Change, Changes, Kept, Missing, changes};
pub use limits::*;
pub use millrace_toml_sections::{Kind, Place, Problem, Problems, toml_string};
pub use model::*;
pub use named::{Named, named};
pub use order::{Looked, Misplaced, order};
pub use reference::reference;

use std::path::Path;

impl DeviceFile {
    /// Reads the text of a file of up to [`MAX_SHOWN`] bytes. `name` is what problems call the file.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub fn parse(name: &str, text: &str) -> Result<DeviceFile, Problems> {
        read(name, text, None, (MAX_SHOWN, "MAX_SHOWN"))
    }

    /// As [`DeviceFile::parse`], and looks whether files and folders that are named are there, and whether those of a tenant
    /// are in its folder whatever links of the file system say. Paths that do not start at the root start at `folder`, that of
    /// the file.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub fn parse_with_files(name: &str, text: &str, folder: &Path) -> Result<DeviceFile, Problems> {
        read(name, text, Some(folder), (MAX_SHOWN, "MAX_SHOWN"))
    }

    /// As [`DeviceFile::parse_with_files`] with a folder and else as [`DeviceFile::parse`], of a text of up to [`MAX_WHOLE`] bytes: that of a
    /// device as it runs, with what is to be added to it.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub fn parse_whole(name: &str, text: &str, folder: Option<&Path>) -> Result<DeviceFile, Problems> {
        read(name, text, folder, (MAX_WHOLE, "MAX_WHOLE"))
    }

    /// The same, if what was changed of it keeps all rules of a file.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub fn checked(&self) -> Result<DeviceFile, Problems> {
        read("the device", &self.to_toml(), None, (usize::MAX, "none"))
    }
}

fn read(name: &str, text: &str, folder: Option<&Path>, limit: (usize, &str)) -> Result<DeviceFile, Problems> {
    millrace_toml_sections::read_document(name, text, limit, |document, findings| {
        let mut draft = parse::draft(document, findings);
        check::check(&mut draft, findings);
        if let Some(folder) = folder {
            files::check(&draft, folder, findings);
        }
        Some(draft.finish())
    })
}
