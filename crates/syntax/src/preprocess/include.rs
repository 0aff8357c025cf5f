//! Which file an `#include` means.
//!
//! `"name"` is looked for next to the including file, then in the include folders in order, then among the embedded
//! files; `<name>` the same without the first step.

use foldhash::{HashMap, HashMapExt};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::builtin::builtin_include;
use crate::file::read_text;
use crate::span::MAX_FILE_BYTES;

/// Before the name of an embedded file where file names are shown.
const BUILTIN_PREFIX: &str = "p4include/";

/// Where a text came from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Origin {
    /// A file.
    Disk(PathBuf),
    /// An embedded file.
    Builtin(String),
    /// Text given by the caller.
    Text(String),
}

impl Origin {
    /// The name that diagnostics show.
    pub(crate) fn display_name(&self) -> String {
        match self {
            Self::Disk(path) => path.display().to_string(),
            Self::Builtin(name) => format!("{BUILTIN_PREFIX}{name}"),
            Self::Text(name) => name.clone(),
        }
    }

    /// The name of a file next to this one.
    fn sibling(&self, name: &str) -> Origin {
        match self {
            Self::Builtin(own) => {
                let folder = own.rsplit_once('/').map_or("", |(folder, _)| folder);
                let joined = Path::new(folder).join(name);
                Self::Builtin(joined.to_string_lossy().into_owned())
            }
            Self::Disk(path) => Self::Disk(path.parent().unwrap_or(Path::new("")).join(name)),
            Self::Text(own) => Self::Disk(Path::new(own).parent().unwrap_or(Path::new("")).join(name)),
        }
    }
}

/// Reads files, each once.
#[derive(Debug, Default)]
pub(crate) struct Loader {
    include_dirs: Vec<PathBuf>,
    on_disk: bool,
    texts: HashMap<Origin, Arc<str>>,
}

impl Loader {
    pub(crate) fn new(include_dirs: Vec<PathBuf>, on_disk: bool) -> Self {
        Self { include_dirs, on_disk, texts: HashMap::new() }
    }

    /// Finds and reads an included file. None when it is nowhere; an error when it is there and cannot be read.
    pub(crate) fn include(
        &mut self,
        name: &str,
        quoted: bool,
        from: &Origin,
    ) -> Option<(Origin, io::Result<Arc<str>>)> {
        let sibling = quoted.then(|| from.sibling(name));
        let in_dirs: Vec<Origin> = self.include_dirs.iter().map(|dir| Origin::Disk(dir.join(name))).collect();
        let embedded = Origin::Builtin(name.to_owned());
        for origin in sibling.into_iter().chain(in_dirs).chain([embedded]) {
            if let Origin::Disk(path) = &origin
                && !(self.on_disk && path.is_file())
            {
                // Not to be read, not there, a folder, or a device or pipe that might never end.
                continue;
            }
            match self.read(&origin) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                result => return Some((origin, result)),
            }
        }
        None
    }

    /// Reads a file. Invalid UTF-8 is replaced, for comments and strings in other encodings.
    pub(crate) fn read(&mut self, origin: &Origin) -> io::Result<Arc<str>> {
        if let Some(text) = self.texts.get(origin) {
            return Ok(text.clone());
        }
        let text: Arc<str> = match origin {
            Origin::Disk(path) => read_text(path, MAX_FILE_BYTES as u64)?.into(),
            Origin::Builtin(name) => builtin_include(name).ok_or(io::ErrorKind::NotFound)?.into(),
            Origin::Text(_) => return Err(io::ErrorKind::NotFound.into()),
        };
        self.texts.insert(origin.clone(), text.clone());
        Ok(text)
    }
}
