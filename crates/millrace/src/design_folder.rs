//! Folders that designs are written to. Whoever synthesises a folder takes all that is in it, so what an earlier design has left there goes.
//!
//! A list in the folder says which files are of the design, and what was in them: what somebody else has put there, or has changed, stays.

use crate::findings::Failure;
use crate::output::note_line;
use crc::{CRC_32_ISO_HDLC, Crc};
use millrace_syntax::read_text;
use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Component, Path};

/// The file with the list: a line for each other file.
const LIST: &str = "design.files";
/// The longest list that is read.
const MAX_BYTES: u64 = 1 << 20;

/// The files of a design: their names, with folders in the folder of the design, and their text.
#[derive(Debug, Default)]
pub(crate) struct DesignFiles(Vec<(String, String)>);

/// A file as it was written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Written {
    name: String,
    bytes: u64,
    crc: u32,
}

impl Written {
    fn new(name: &str, text: &[u8]) -> Written {
        let crc = Crc::<u32>::new(&CRC_32_ISO_HDLC).checksum(text);
        Written { name: name.to_owned(), bytes: text.len() as u64, crc }
    }

    /// Of a line of a list: only names within the folder count.
    fn of_line(line: &str) -> Option<Written> {
        let (bytes, rest) = line.split_once(' ')?;
        let (crc, name) = rest.split_once(' ')?;
        let is_within = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        let crc = u32::from_str_radix(crc, 16).ok()?;
        (is_within && !name.is_empty()).then_some(Written {
            name: name.to_owned(),
            bytes: bytes.parse().ok()?,
            crc,
        })
    }

    /// Whether the folder has it as it was written; none: it has none of that name.
    fn is_as_written(&self, folder: &Path) -> Option<bool> {
        let path = folder.join(&self.name);
        let about = fs::symlink_metadata(&path).ok()?;
        let is_same = || fs::read(&path).is_ok_and(|text| Written::new(&self.name, &text) == *self);
        Some(about.is_file() && about.len() == self.bytes && is_same())
    }
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:08x} {}", self.bytes, self.crc, self.name)
    }
}

impl DesignFiles {
    /// Another one; one of that name is replaced.
    pub(crate) fn add(&mut self, name: impl Into<String>, text: impl Into<String>) {
        let (name, text) = (name.into(), text.into());
        match self.0.iter_mut().find(|(other, _)| *other == name) {
            Some((_, old)) => *old = text,
            None => self.0.push((name, text)),
        }
    }

    /// Writes all of them, and removes those of an earlier design. Gives their paths.
    pub(crate) fn write(&self, folder: &Path) -> Result<Vec<String>, Failure> {
        let list = folder.join(LIST);
        let before: BTreeSet<Written> = match read_text(&list, MAX_BYTES) {
            Ok(text) => text.lines().filter_map(Written::of_line).collect(),
            Err(_) => BTreeSet::new(),
        };
        let now: BTreeSet<Written> =
            self.0.iter().map(|(name, text)| Written::new(name, text.as_bytes())).collect();
        create(folder)?;
        // If writing ends early, the next design knows both.
        write(&list, &lines(before.union(&now)))?;
        for (name, text) in &self.0 {
            let path = folder.join(name);
            path.parent().map_or(Ok(()), create)?;
            write(&path, text)?;
        }
        let is_now = |name: &str| self.0.iter().any(|(other, _)| other == name);
        before.iter().filter(|old| !is_now(&old.name)).for_each(|old| remove(folder, old));
        write(&list, &lines(now.iter()))?;
        Ok(self.0.iter().map(|(name, _)| folder.join(name).display().to_string()).collect())
    }
}

fn lines<'a>(files: impl Iterator<Item = &'a Written>) -> String {
    files.map(|file| format!("{file}\n")).collect()
}

fn create(folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| Failure::failed(folder.display(), error))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| Failure::failed(path.display(), error))
}

/// Removes a file of an earlier design, and folders that are empty then.
fn remove(folder: &Path, old: &Written) {
    let path = folder.join(&old.name);
    let removed = match old.is_as_written(folder) {
        None => return,
        Some(true) => fs::remove_file(&path).map_err(|error| error.to_string()),
        Some(false) => Err("it was changed".to_owned()),
    };
    match removed {
        Ok(()) => {
            let folders =
                Path::new(&old.name).ancestors().skip(1).filter(|name| !name.as_os_str().is_empty());
            // One that is not empty stays, and those around it.
            let _ = folders.map(|name| fs::remove_dir(folder.join(name))).find(Result::is_err);
        }
        Err(why) => note_line(format_args!("{} is of an earlier design and stays: {why}", path.display())),
    }
}
