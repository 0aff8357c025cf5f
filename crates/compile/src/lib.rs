//! From the text of a program to a verified program, with all that was found on the way.
//!
//! ```
//! use millrace_compile::{Options, Source, Standard, check};
//!
//! let checked = check(Source::Text("demo.p4", "const bit<8> x = 300s;"), Standard::P4_16, &Options::default());
//! assert!(checked.has_errors());
//! assert!(checked.render(&checked.findings[0]).contains("demo.p4:1"));
//! ```
//!
//! It never runs a program and never says anything itself: who calls shows what was found.

use millrace_lower::{advice, advice_for_workers, chains, is_foreign, lower_from};
use millrace_p4_14::{LIBRARY, translate};
use millrace_pipeline::{Program, verify};
use millrace_sema::hir;
use millrace_syntax::{Diagnostic, Diagnostics, Parsed, Severity, SourceMap, p4_14, parse_path, parse_text};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

pub use millrace_lower::{AskedChain, check_port, set_drop_port};
pub use millrace_syntax::Options;

/// Where a program comes from.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// A file. That it cannot be read is a finding.
    Path(&'a Path),
    /// A name, which findings show, and the text. Quoted includes are looked for next to the name.
    Text(&'a str, &'a str),
}

/// The language of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standard {
    /// P4_16.
    #[default]
    P4_16,
    /// P4_14, which becomes P4_16 first.
    P4_14,
}

impl Standard {
    /// The language of a program for which nobody says it: by the ending `.p4_14` of its name, else by what only P4_14 declares
    /// outside of braces (`header_type h {`, `control ingress {`), before any preprocessing.
    pub fn of(path: &Path, text: &str) -> Standard {
        if path.extension().is_some_and(|ending| ending == "p4_14") || has_declaration_of_p4_14(text) {
            return Standard::P4_14;
        }
        Standard::P4_16
    }
}

/// A macro as it is written on command lines: `NAME` defines 1, `NAME=VALUE` the value.
pub fn definition(text: &str) -> (String, String) {
    let (name, value) = text.split_once('=').unwrap_or((text, "1"));
    (name.to_owned(), value.to_owned())
}

/// The bytes of a line of the preprocessor, with the lines that go on with it.
fn directive(text: &str) -> usize {
    let mut ends = text.match_indices('\n').map(|(at, _)| at);
    let is_last = |at: &usize| !text[..*at].trim_end_matches('\r').ends_with('\\');
    ends.find(is_last).unwrap_or(text.len())
}

/// Whether a text declares something as P4_14 alone does, before it declares something as P4_16 alone does. Reads the text at
/// most once, comments and lines of the preprocessor left out.
fn has_declaration_of_p4_14(text: &str) -> bool {
    let mut words: [&str; 2] = ["", ""];
    let mut depth = 0usize;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let skip = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '#' => directive(rest),
            '{' => {
                let [kind, _] = words;
                if depth == 0 && matches!(kind, "header_type" | "parser" | "control" | "table" | "field_list")
                {
                    return true;
                }
                // Most programs of P4_16 begin with their types.
                if depth == 0 && matches!(kind, "header" | "struct" | "header_union" | "enum") {
                    return false;
                }
                depth += 1;
                1
            }
            '}' => {
                depth = depth.saturating_sub(1);
                words = ["", ""];
                1
            }
            c if c.is_alphanumeric() || c == '_' => {
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                words = [words[1], &rest[..end]];
                end
            }
            c => {
                if !c.is_whitespace() {
                    words = ["", ""];
                }
                c.len_utf8()
            }
        };
        rest = &rest[skip..];
    }
    false
}

/// A program as the front end understands it.
#[derive(Debug)]
pub struct Checked {
    /// The typed program; incomplete when there are errors.
    pub typed: hir::Program,
    /// The texts that findings are in.
    pub sources: SourceMap,
    /// Errors and warnings in the order in which they were found.
    pub findings: Vec<Diagnostic>,
    /// Findings that were too many to be kept.
    pub suppressed: usize,
    /// The file's name without its ending.
    name: String,
    errors: bool,
}

/// Why a program that was found right has no IR.
#[derive(Clone, Debug)]
pub enum LowerError {
    /// It asks for something that this switch has not, or not so much of.
    Found(Vec<Diagnostic>),
    /// What became of it breaks rules of the IR: a mistake of the compiler. Engines rely on these rules, so it is not run.
    Broken(Vec<String>),
}

impl fmt::Display for LowerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LowerError::Found(found) => match found.first() {
                Some(first) => f.write_str(&first.message),
                None => f.write_str("the program cannot be lowered"),
            },
            LowerError::Broken(rules) => {
                f.write_str("the compiled program breaks rules of the IR (a bug):")?;
                rules.iter().try_for_each(|rule| write!(f, "\n  {rule}"))
            }
        }
    }
}

impl std::error::Error for LowerError {}

/// Reads a program and checks its names and types.
pub fn check(source: Source<'_>, standard: Standard, options: &Options) -> Checked {
    let path = match source {
        Source::Path(path) => path,
        Source::Text(name, _) => Path::new(name),
    };
    let name = path.file_stem().map_or_else(|| "program".into(), |stem| stem.to_string_lossy().into_owned());
    let parsed = match (standard, source) {
        (Standard::P4_16, Source::Path(path)) => parse_path(path, options),
        (Standard::P4_16, Source::Text(name, text)) => parse_text(name, text, options),
        (Standard::P4_14, Source::Path(path)) => as_p4_16(p4_14::parse_path(path, options)),
        (Standard::P4_14, Source::Text(name, text)) => as_p4_16(p4_14::parse_text(name, text, options)),
    };
    let Parsed { program, sources, diagnostics } = parsed;
    let checked = millrace_sema::check(&program);
    let mut all =
        Checked { typed: checked.program, sources, findings: Vec::new(), suppressed: 0, name, errors: false };
    // After syntax errors the checker would report what it could not see.
    let after = (!diagnostics.has_errors()).then_some(checked.diagnostics);
    [Some(diagnostics), after].into_iter().flatten().for_each(|found| all.add(found));
    if !all.errors {
        all.add(advice(&all.typed));
    }
    all
}

impl Checked {
    /// Whether the program is wrong.
    pub fn has_errors(&self) -> bool {
        self.errors
    }

    /// Lowers a program without errors to a verified one.
    ///
    /// # Errors
    /// [`LowerError`].
    pub fn lower(&self) -> Result<Arc<Program>, LowerError> {
        let program = lower_from(&self.typed, &self.name, Some(&self.sources)).map_err(LowerError::Found)?;
        verify(&program)
            .map_err(|broken| LowerError::Broken(broken.iter().map(ToString::to_string).collect()))?;
        Ok(Arc::new(program))
    }

    /// The chains of plugins that a program without errors asks for, in whose text nobody has looked yet.
    pub fn chains(&self) -> Vec<AskedChain> {
        // What is wrong with the annotations is found when the program is lowered.
        if self.errors { Vec::new() } else { chains(&self.typed).unwrap_or_default() }
    }

    /// Adds what the caller has found in the program.
    pub fn find(&mut self, finding: Diagnostic) {
        self.errors |= finding.severity == Severity::Error;
        self.findings.push(finding);
    }

    /// Finds also what several workers of one switch mean for the program.
    pub fn find_for_workers(&mut self) {
        if !self.errors {
            self.add(advice_for_workers(&self.typed));
        }
    }

    /// Lowers a program without errors too, only to find out what is wrong with it: a `select` on a value that is not known, two
    /// longest-prefix keys in a table, a limit. A program that is not for a switch of ours ([`is_foreign`]) gets a warning.
    pub fn find_all(&mut self) {
        if self.errors {
            return;
        }
        match self.lower() {
            Ok(_) => {}
            Err(LowerError::Found(found)) => {
                for mut finding in found {
                    if is_foreign(&finding) {
                        finding.severity = Severity::Warning;
                        finding.notes.push("it was checked, and cannot be compiled".into());
                    }
                    self.errors |= finding.severity == Severity::Error;
                    self.findings.push(finding);
                }
            }
            Err(LowerError::Broken(rules)) => {
                let message =
                    format!("the compiled program breaks rules of the IR (a bug): {}", rules.join("; "));
                self.errors = true;
                self.findings.push(Diagnostic::error("internal", Default::default(), message));
            }
        }
    }

    /// A finding as text with its line and a caret, without colours.
    pub fn render(&self, finding: &Diagnostic) -> String {
        millrace_syntax::render(finding, &self.sources, false)
    }

    fn add(&mut self, found: Diagnostics) {
        self.errors |= found.has_errors();
        self.suppressed += found.suppressed();
        self.findings.extend(found);
    }
}

fn as_p4_16(mut parsed: p4_14::Parsed) -> Parsed {
    let library = parsed.library(LIBRARY);
    let p4_14::Parsed { program, sources, mut diagnostics } = parsed;
    let translated = translate(&program, library);
    // After syntax errors names are missing that were only not understood.
    if !diagnostics.has_errors() {
        diagnostics.extend(translated.diagnostics);
    }
    Parsed { program: translated.program, sources, diagnostics }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str, standard: Standard) -> Checked {
        check(Source::Text("folder/demo.p4", text), standard, &Options::default())
    }

    #[test]
    fn a_right_program_is_lowered_under_its_name() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs/router.p4");
        let checked = check(Source::Path(&path), Standard::P4_16, &Options::default());
        assert!(!checked.has_errors());
        assert_eq!(checked.lower().unwrap().name, "router");
    }

    #[test]
    fn p4_14_is_recognised() {
        let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs");
        for entry in std::fs::read_dir(programs).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.extension().is_some_and(|ending| ending == "p4") {
                let is_14 = path.to_str().unwrap().ends_with("_14.p4");
                let text = std::fs::read_to_string(&path).unwrap();
                assert_eq!(Standard::of(&path, &text) == Standard::P4_14, is_14, "{}", path.display());
            }
        }
        let of = |name: &str, text: &str| Standard::of(Path::new(name), text);
        assert_eq!(of("x.p4_14", ""), Standard::P4_14);
        assert_eq!(
            of("x.p4", "// header_type h {\n/* control c { */ parser p() { state start { } }"),
            Standard::P4_16
        );
        assert_eq!(of("x.p4", "#include \"a.p4\"\ncontrol ingress { apply(t); }"), Standard::P4_14);
        assert_eq!(of("x.p4", "header_type"), Standard::P4_16);
        // A macro of several lines is no part of what is around it.
        let text = |end: &str| {
            format!(
                "control c(inout h x) {{\n#define KEY \\{end}\n}} \\{end}\n}}\ntable t {{ key = {{ }} }} }}"
            )
        };
        assert_eq!(of("x.p4", &text("")), Standard::P4_16);
        assert_eq!(of("x.p4", &text("\r")), Standard::P4_16);
    }

    #[test]
    fn syntax_errors_come_alone() {
        let checked = text("control c() { apply { x = 1 } } const bit<8> y = z;", Standard::P4_16);
        assert!(checked.has_errors() && checked.findings.iter().all(|found| found.code == "syntax"));
        let shown = checked.render(&checked.findings[0]);
        assert!(shown.contains("folder/demo.p4:1:28"), "after the 1: {shown}");
    }

    #[test]
    fn p4_14_is_read_as_such() {
        let checked = text(
            "header_type h { fields { f : 8; } }\nheader h a;\nparser start { extract(b); return ingress; }\ncontrol ingress { }",
            Standard::P4_14,
        );
        assert!(checked.has_errors());
        let first = &checked.findings[0];
        assert_eq!(checked.sources.location(first.primary).line, 3, "{}", checked.render(first));
    }

    #[test]
    fn a_file_that_is_not_there_is_a_finding() {
        let checked = check(Source::Path(Path::new("/nowhere.p4")), Standard::P4_16, &Options::default());
        assert!(checked.has_errors() && checked.findings[0].message.contains("/nowhere.p4"));
    }

    #[test]
    fn long_chains_become_code() {
        let sum = format!("m.x = m.x{};", " + m.y".repeat(1000));
        let branches: String =
            (0..1000).map(|i| format!("else if (m.x == {i}) {{ m.y = {i} + 1; }}\n")).collect();
        let program = format!(
            "#include <core.p4>\n#include <v1model.p4>\nstruct h_t {{}} struct m_t {{ bit<16> x; bit<16> y; }}
             parser P(packet_in p, out h_t h, inout m_t m, inout standard_metadata_t s) {{
                 state start {{ transition accept; }} }}
             control V(inout h_t h, inout m_t m) {{ apply {{}} }}
             control I(inout h_t h, inout m_t m, inout standard_metadata_t s) {{
                 apply {{ {sum} if (m.x == 7) {{ }} {branches} }} }}
             control E(inout h_t h, inout m_t m, inout standard_metadata_t s) {{ apply {{}} }}
             control D(packet_out p, in h_t h) {{ apply {{}} }}
             V1Switch(P(), V(), I(), E(), V(), D()) main;"
        );
        let checked = text(&program, Standard::P4_16);
        let found: Vec<_> = checked.findings.iter().map(|f| &f.message).collect();
        assert!(!checked.has_errors(), "{found:?}");
        assert!(checked.lower().is_ok());
        let branches: String = (0..1000).map(|i| format!("else if (m.x == {i}) {{ apply(t); }}\n")).collect();
        let program = format!(
            "header_type m_t {{ fields {{ x : 16; }} }} metadata m_t m; parser start {{ return ingress; }}
             action a() {{ }} table t {{ actions {{ a; }} }}
             control ingress {{ if (m.x == 7) {{ }} {branches} }}"
        );
        let checked = text(&program, Standard::P4_14);
        let found: Vec<_> = checked.findings.iter().map(|f| &f.message).collect();
        assert!(!checked.has_errors(), "{found:?}");
        assert!(checked.lower().is_ok());
    }

    #[test]
    fn a_program_without_a_switch_cannot_be_lowered() {
        let mut checked = text("const bit<8> x = 3;", Standard::P4_16);
        assert!(!checked.has_errors());
        checked.find_all();
        assert!(!checked.has_errors() && checked.findings[0].message == "the program has no `main`");
        assert!(matches!(checked.lower(), Err(LowerError::Found(found)) if !found.is_empty()));
    }
}
