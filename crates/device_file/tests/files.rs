//! The files in `files/`: next to each is what comes of it, the file that says the same with every default written, or what
//! is wrong with it as a terminal shows it. The pairs in `changes/`: next to each is what leads from the old file to the new
//! one. UPDATE_EXPECT=1 writes what is expected.

use expect_test::expect_file;
use millrace_device_file::{DeviceFile, Problems, changes};
use millrace_filetests::{Harness, files};
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    Harness::default()
        .each("files", files(&tests.join("files"), "toml"), file)
        .each("changes", old_files(&tests.join("changes")), pair)
        .run()
}

fn old_files(folder: &Path) -> Vec<PathBuf> {
    let is_old = |path: &PathBuf| path.to_string_lossy().ends_with(".old.toml");
    files(folder, "toml").into_iter().filter(is_old).collect()
}

fn read(path: &Path) -> Result<Result<DeviceFile, Problems>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(DeviceFile::parse(&name, &text))
}

fn file(path: &Path) -> Result<(), String> {
    let comes = match read(path)? {
        Ok(device) => device.to_toml(),
        Err(problems) => problems.render(false),
    };
    compare(&path.with_extension("expected"), &comes)
}

fn pair(path: &Path) -> Result<(), String> {
    let right = |path: &Path| read(path)?.map_err(|problems| problems.render(false));
    let old = right(path)?;
    let new = right(&path.with_extension("").with_extension("new.toml"))?;
    compare(&path.with_extension("").with_extension("expected"), &changes(&old, &new).to_string())
}

fn compare(expected: &Path, comes: &str) -> Result<(), String> {
    // It shows the difference before it panics.
    catch_unwind(|| expect_file![expected].assert_eq(comes))
        .map_err(|_| format!("{}: UPDATE_EXPECT=1 writes what comes of it", expected.display()))
}
