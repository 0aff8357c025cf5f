//! What models that Verilator makes have in common: its library, compiled once a process. That takes seconds, while a small model takes
//! one.

use std::ffi::OsString;
use std::path::Path;
use std::sync::OnceLock;

/// The objects, by the names of their files.
static OBJECTS: OnceLock<Vec<(OsString, Vec<u8>)>> = OnceLock::new();

/// Makes the folder of a model, and puts the library there if this process has compiled it before: make finds it, and is content.
///
/// # Errors
/// It cannot be made.
pub fn put(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir(folder)?;
    for (name, object) in OBJECTS.get().into_iter().flatten() {
        std::fs::write(folder.join(name), object)?;
    }
    Ok(())
}

/// Keeps what was compiled in the folder of a model for the next one. What cannot be read is compiled again.
pub fn keep(folder: &Path) {
    if OBJECTS.get().is_some() {
        return;
    }
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let of_library = |name: &OsString| {
        name.to_str().is_some_and(|name| name.starts_with("verilated") && name.ends_with(".o"))
    };
    let objects = entries.filter(|entry| of_library(&entry.file_name()));
    let objects = objects.map(|entry| Ok((entry.file_name(), std::fs::read(entry.path())?)));
    if let Ok(objects) = objects.collect::<std::io::Result<Vec<_>>>() {
        // Two models that were made at the same time have the same.
        OBJECTS.get_or_init(|| objects);
    }
}
