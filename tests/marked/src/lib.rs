//! Test programs whose comments announce what is found in them: `//~ ERROR E0101 part of the message` on the line of the
//! finding, or `//~^ ...` on the line below it, one `^` for each line. A warning is announced with `WARN`.

use millrace_filetests::files;
use millrace_syntax::{Diagnostic, FileId, SourceMap, render};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A finding that a comment announces.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Announced {
    /// 1-based.
    line: u32,
    severity: String,
    code: String,
    /// Part of the message.
    part: String,
}

/// Where a program's findings are not those that its comments announce, each in one text; the program is the first of the
/// sources.
///
/// # Panics
/// A finding lies in another file.
pub fn differences<'a>(
    path: &Path,
    sources: &SourceMap,
    findings: impl IntoIterator<Item = &'a Diagnostic>,
) -> Vec<String> {
    let mut problems = Vec::new();
    let mut wanted = announced(&read(path));
    for finding in findings {
        let shown = render(finding, sources, false);
        assert_eq!(finding.primary.file, FileId(0), "{shown}");
        let line = sources.location(finding.primary).line;
        let severity = if finding.is_error() { "ERROR" } else { "WARN" };
        let same = |wanted: &Announced| {
            (wanted.line, wanted.severity.as_str()) == (line, severity)
                && wanted.code == finding.code
                && finding.message.contains(&wanted.part)
        };
        match wanted.iter().position(same) {
            Some(index) => drop(wanted.remove(index)),
            None => problems.push(format!("not announced: {shown}")),
        }
    }
    problems.extend(wanted.into_iter().map(|Announced { line, severity, code, part }| {
        format!("{}:{line}: missing {severity} {code} {part}", path.display())
    }));
    problems
}

/// Those of the five-character codes (`E0101`) in a source file's string literals that no program in a folder announces.
///
/// # Panics
/// There are hardly any codes in the file.
pub fn unannounced_codes(source: &str, folder: impl AsRef<Path>) -> BTreeSet<&str> {
    let mut codes: BTreeSet<&str> = (source.lines())
        .filter_map(|line| line.split('"').nth(1))
        .filter(|literal| literal.len() == 5)
        .collect();
    assert!(codes.len() > 10, "{codes:?}");
    for path in files(folder.as_ref(), "p4") {
        for Announced { code, .. } in announced(&read(&path)) {
            codes.remove(code.as_str());
        }
    }
    codes
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn announced(text: &str) -> Vec<Announced> {
    let mut all = Vec::new();
    for (line, text) in (1u32..).zip(text.lines()) {
        for note in text.split("//~").skip(1) {
            let up = note.bytes().take_while(|byte| *byte == b'^').count();
            let mut words = note[up..].split_whitespace().map(str::to_owned);
            let (Some(severity), Some(code)) = (words.next(), words.next()) else {
                panic!("line {line}: severity and code have to follow `//~`");
            };
            let part = words.collect::<Vec<_>>().join(" ");
            all.push(Announced { line: line - up as u32, severity, code, part });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_syntax::{Options, Span, parse_path};

    #[test]
    fn comments_announce_findings_of_their_line_or_of_lines_above() {
        let text = "a //~ ERROR E0001 two  words //~ WARN W0002\nb\n//~^^ ERROR E0003 x";
        let all: Vec<_> = announced(text).into_iter().map(|a| (a.line, a.severity, a.code, a.part)).collect();
        let of = |line, severity: &str, code: &str, part: &str| {
            (line, severity.to_owned(), code.to_owned(), part.to_owned())
        };
        assert_eq!(
            all,
            [of(1, "ERROR", "E0001", "two words"), of(1, "WARN", "W0002", ""), of(1, "ERROR", "E0003", "x")]
        );
    }

    #[test]
    fn what_is_not_announced_and_what_is_missing_is_told() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/marks.p4");
        let parsed = parse_path(&path, &Options::default());
        let [told, untold] = ["told", "untold"].map(|message| {
            let text = &parsed.sources.file(FileId(0)).expect("the program").text;
            let start = text.find(&format!(" {message} ")).expect("the word in the program") as u32 + 1;
            Diagnostic::error("E0001", Span::new(FileId(0), start, start + 1), message)
        });
        let problems = differences(&path, &parsed.sources, [&told, &untold]);
        assert_eq!(problems.len(), 2, "{problems:#?}");
        assert!(
            problems[0].starts_with("not announced: ") && problems[0].contains("untold"),
            "{}",
            problems[0]
        );
        assert!(problems[1].ends_with("marks.p4:3: missing WARN W0002 not there"), "{}", problems[1]);
    }
}
