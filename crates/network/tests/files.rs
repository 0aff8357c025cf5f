//! The files in `files/`: next to each is what comes of it, the file that says the same with every default written, or what is wrong with it
//! as a terminal shows it; `.report` are reports of `millrace bounds`, cut down to what matters. The files in `import/`, each in the format of
//! another tool: next to each is the network that it is read as, with notes. UPDATE_EXPECT=1 writes what is expected.

use expect_test::expect_file;
use millrace_filetests::{Harness, files};
use millrace_network::Network;
use millrace_network::import::{Format, Source, import};
use std::panic::catch_unwind;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    Harness::default()
        .each("files", files(&tests.join("files"), "toml"), file)
        .each("wopanets", files(&tests.join("import"), "xml"), imported)
        .each("saihu", files(&tests.join("import"), "json"), imported)
        .each(
            "net2plan",
            files(&tests.join("import"), "csv").into_iter().filter(|path| is_vls(path)).collect(),
            imported,
        )
        .run()
}

/// Of three tables of CSV, that of virtual links stands for all.
fn is_vls(path: &Path) -> bool {
    path.to_string_lossy().ends_with(".vls.csv")
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn file(path: &Path) -> Result<(), String> {
    let mut reports =
        |name: &str| read(&path.with_file_name(name)).map_err(|_| "there is no such file".to_owned());
    let comes = match Network::parse_with_reports(&name_of(path), &read(path)?, &mut reports) {
        Ok(network) => network.to_toml(),
        Err(problems) => problems.render(false),
    };
    compare(&path.with_extension("expected"), &comes)
}

fn imported(path: &Path) -> Result<(), String> {
    let mut files = vec![(name_of(path), read(path)?)];
    if is_vls(path) {
        for table in ["switches", "stations"] {
            let other = path.with_extension("").with_extension(format!("{table}.csv"));
            files.push((name_of(&other), read(&other)?));
        }
    }
    let format = Format::of(&files[0].1).ok_or("it looks like no format")?;
    let sources: Vec<Source<'_>> = files.iter().map(|(name, text)| Source { name, text }).collect();
    let comes = match import(format, &sources) {
        Ok(imported) => {
            let notes: String = imported.notes.iter().map(|note| format!("# {note}\n")).collect();
            notes + &imported.network.to_toml()
        }
        Err(problems) => problems.render(false),
    };
    compare(&path.with_extension("expected"), &comes)
}

fn compare(expected: &Path, comes: &str) -> Result<(), String> {
    // It shows the difference before it panics.
    catch_unwind(|| expect_file![expected].assert_eq(comes))
        .map_err(|_| format!("{}: UPDATE_EXPECT=1 writes what comes of it", expected.display()))
}
