//! The files in `files/`: next to each is what comes of it, the file that says the same with every default written, or what
//! is wrong with it as a terminal shows it. UPDATE_EXPECT=1 writes that.

use expect_test::expect_file;
use millrace_device_file::DeviceFile;
use millrace_filetests::{Harness, files};
use std::panic::catch_unwind;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files");
    Harness::default().each("files", files(&folder, "toml"), file).run()
}

fn file(path: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let comes = match DeviceFile::parse(&name, &text) {
        Ok(device) => device.to_toml(),
        Err(problems) => problems.render(false),
    };
    let expected = path.with_extension("expected");
    // It shows the difference before it panics.
    catch_unwind(|| expect_file![&expected].assert_eq(&comes))
        .map_err(|_| format!("{}: UPDATE_EXPECT=1 writes what comes of it", expected.display()))
}
