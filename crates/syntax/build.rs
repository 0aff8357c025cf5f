//! Embeds the include files of the project: writes a table of their names and texts for `src/builtin.rs`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let missing = |name: &str| io::Error::other(format!("{name} is not set"));
    let manifest =
        PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or_else(|| missing("CARGO_MANIFEST_DIR"))?);
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or_else(|| missing("OUT_DIR"))?);
    let root = fs::canonicalize(manifest.join("../../p4include"))?;
    println!("cargo::rerun-if-changed={}", root.display());

    let mut files = Vec::new();
    collect(&root, &mut files)?;
    files.sort();
    let mut table = String::from("&[\n");
    for file in files {
        let name = file.strip_prefix(&root).map_err(io::Error::other)?;
        let name = name.components().map(|c| c.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/");
        writeln!(table, "    ({name:?}, include_str!({:?})),", file.display().to_string())
            .map_err(io::Error::other)?;
    }
    table.push_str("]\n");
    fs::write(out.join("builtin.rs"), table)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|e| e == "p4") {
            files.push(path);
        }
    }
    Ok(())
}
