//! File tests: a folder of sources, each with directives in its comments that say what is to become of it. Each file is a test of
//! its own, so that `cargo test -p CRATE --test filetests NAME` runs those whose names have NAME in them.
//!
//! A directive is a comment of its own line (here with `;`, the sign of the IR's text):
//!
//! - `; test KIND ARGS` starts a test. Each [`Folder`] has its kinds. What follows up to the next `test` belongs to it.
//! - `; in: TEXT`: the checks that follow look at the part of the output that starts with a line that starts with TEXT, and ends
//!   before an empty line.
//! - `; check: LINE`: that line, without the blanks around it, comes next or later in the part. `...` stands for any text.
//! - `; check-not: TEXT`: no line of the part has that text in it. `...` as above.
//! - `; error: TEXT`: an error has that text in it. There are as many errors as such directives.
//! - `; expected:`: the part is the text of the comments that follow, each indented by three blanks. With `UPDATE_EXPECT=1` in the
//!   environment the text is written there instead.
//! - `; WORD: TEXT` with a word of the kind's own.
//!
//! Any other lower-case word with a colon is an error, as is a word of these without its colon. A test whose output nothing looks
//! at fails.

mod checks;
mod dialect;

pub use dialect::Directive;

use checks::{compare, replaced};
use expect_test::expect_file;
use libtest_mimic::{Arguments, Failed, Trial};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// A test that a file asks for.
#[derive(Clone, Copy, Debug)]
pub struct Test<'a> {
    /// Where the file is.
    pub path: &'a Path,
    /// The text of the file.
    pub source: &'a str,
    /// What follows the kind.
    pub args: &'a str,
    /// The directives of the kind's own, in order.
    pub script: &'a [Directive],
}

/// What a test gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The output that the checks look at.
    Text(String),
    /// All is as the kind of test promises; there is nothing to look at.
    Holds,
    /// The source is refused: what `error:` looks at.
    Errors(Vec<String>),
}

/// A kind of test.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Its name in the `test` directive.
    pub name: &'static str,
    /// The words of directives that only this kind has.
    pub words: &'static [&'static str],
    /// Makes the output. An error is a failure of the test, whatever is checked.
    pub run: fn(&Test<'_>) -> Result<Outcome, String>,
}

/// A folder of file tests, with those in it.
#[derive(Clone, Debug)]
pub struct Folder {
    /// Where it is.
    pub path: PathBuf,
    /// What names of its files end in, without the dot.
    pub extension: &'static str,
    /// What a comment starts with.
    pub sign: &'static str,
    /// What files may ask for.
    pub kinds: &'static [Kind],
}

/// The tests of one binary (`harness = false`), with the options of any other one.
#[derive(Default)]
pub struct Harness {
    trials: Vec<Trial>,
}

impl Harness {
    /// Adds the files of a folder, each by its path in it without the extension.
    ///
    /// # Panics
    /// The folder cannot be read, or there are none.
    #[must_use]
    pub fn folder(mut self, folder: &Folder) -> Harness {
        for path in files(&folder.path, folder.extension) {
            let name = path.strip_prefix(&folder.path).unwrap_or(&path).with_extension("");
            let folder = folder.clone();
            self = self.test(&name.display().to_string(), move || {
                let source = fs::read_to_string(&path).map_err(|error| error.to_string())?;
                folder.check_file(&path, &source)
            });
        }
        self
    }

    /// Adds a test for each of some files, named by a word and the file.
    #[must_use]
    pub fn each(mut self, word: &str, files: Vec<PathBuf>, test: fn(&Path) -> Result<(), String>) -> Harness {
        for path in files {
            let name = path.file_stem().unwrap_or(path.as_os_str()).display().to_string();
            self = self.test(&format!("{word}/{name}"), move || test(&path));
        }
        self
    }

    /// Adds a test that is no file.
    #[must_use]
    pub fn test(mut self, name: &str, test: impl FnOnce() -> Result<(), String> + Send + 'static) -> Harness {
        self.trials.push(Trial::test(name, move || test().map_err(Failed::from)));
        self
    }

    /// Runs those that the command line asks for.
    pub fn run(self) -> ExitCode {
        libtest_mimic::run(&Arguments::from_args(), self.trials).exit_code()
    }
}

impl Folder {
    /// Runs the tests of a source and compares their expected texts with the file, which is written when they are to be updated.
    fn check_file(&self, path: &Path, source: &str) -> Result<(), String> {
        let wanted = self.check(path, source)?;
        if wanted == source {
            return Ok(());
        }
        // It shows the difference before it panics.
        let compared = catch_unwind(AssertUnwindSafe(|| expect_file![path].assert_eq(&wanted)));
        compared
            .map_err(|_| format!("{}: an expected text differs; UPDATE_EXPECT=1 writes it", path.display()))
    }

    /// Runs the tests of a source; gives it with its expected texts as they should be.
    ///
    /// # Errors
    /// What fails, with its line.
    pub fn check(&self, path: &Path, source: &str) -> Result<String, String> {
        let find = |name: &str| self.kinds.iter().find(|kind| kind.name == name);
        let show = |fault: dialect::Fault| format!("{}: {fault}", path.display());
        let sections =
            dialect::sections(source, self.sign, &|name| find(name).map(|kind| kind.words)).map_err(show)?;
        let mut replacements = Vec::new();
        for section in &sections {
            let fail = |message: String| show(dialect::Fault::new(section.line, message));
            let kind = find(&section.kind).ok_or_else(|| fail("no such test".into()))?;
            let test = Test { path, source, args: &section.args, script: &section.script };
            let outcome = (kind.run)(&test).map_err(fail)?;
            replacements.extend(compare(section, &outcome).map_err(show)?);
        }
        Ok(replaced(source, self.sign, &replacements))
    }
}

/// The files in a folder and in those in it whose names end in a dot and the extension, in the order of their names.
///
/// # Panics
/// The folder cannot be read, or there are none.
pub fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        for entry in entries {
            let path = entry.unwrap_or_else(|error| panic!("{}: {error}", folder.display())).path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|its| its == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "no files *.{extension} in {}", folder.display());
    found
}
