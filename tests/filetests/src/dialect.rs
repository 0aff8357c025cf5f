//! The directives in the comments of a file.

use std::fmt;
use std::ops::Range;

/// Words that mean the same in all folders.
const CHECKS: [&str; 5] = ["in", "check", "check-not", "error", "expected"];

/// How far the lines of an expected text stand from the comment sign.
pub(crate) const INDENT: &str = "   ";

/// `WORD: TEXT` in a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directive {
    /// Counted from 1.
    pub line: usize,
    /// What stands before the colon.
    pub word: String,
    /// What stands after it, without blanks at its ends.
    pub text: String,
}

/// A check of what a test gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// The checks that follow look at the part of the output that starts with this text.
    In(String),
    /// This line comes next or later.
    Line(String),
    /// No line has this text.
    Not(String),
    /// One of the errors has this text.
    Error(String),
    /// The part is this text.
    Expected {
        /// The text, as it stands in the file.
        text: String,
        /// The lines of the file that hold it, counted from 0.
        lines: Range<usize>,
        /// What stands before the comment sign.
        margin: String,
    },
}

/// A `test` directive and what follows it up to the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) line: usize,
    pub(crate) kind: String,
    pub(crate) args: String,
    /// The checks, each with its line.
    pub(crate) checks: Vec<(usize, Check)>,
    /// Directives of the kind's own.
    pub(crate) script: Vec<Directive>,
}

/// What is wrong with a line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Counted from 1.
    pub(crate) line: usize,
    pub(crate) message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl Fault {
    pub(crate) fn new(line: usize, message: impl Into<String>) -> Fault {
        Fault { line, message: message.into() }
    }
}

/// The sections of a source whose comments start with `sign`. `words_of` gives the own words of a kind of test; none: there is no
/// such kind.
pub(crate) fn sections<'k>(
    source: &str,
    sign: &str,
    words_of: &dyn Fn(&str) -> Option<&'k [&'k str]>,
) -> Result<Vec<Section>, Fault> {
    let lines: Vec<&str> = source.lines().collect();
    let mut sections: Vec<Section> = Vec::new();
    let mut own: &[&str] = &[];
    let mut at = 0;
    while at < lines.len() {
        let number = at + 1;
        let (line, Some(comment)) = (lines[at], lines[at].trim_start().strip_prefix(sign)) else {
            at += 1;
            continue;
        };
        at += 1;
        let Some((word, text)) = directive(comment.trim(), own).map_err(|why| Fault::new(number, why))?
        else {
            continue;
        };
        if word == "test" {
            let (kind, args) = text.split_once(' ').unwrap_or((text, ""));
            let Some(words) = words_of(kind) else {
                return Err(Fault::new(number, format!("there is no test `{kind}` here")));
            };
            own = words;
            let (kind, args) = (kind.to_owned(), args.trim().to_owned());
            sections.push(Section { line: number, kind, args, checks: Vec::new(), script: Vec::new() });
            continue;
        }
        let Some(section) = sections.last_mut() else {
            return Err(Fault::new(number, format!("`{word}` stands before any `test`")));
        };
        if own.contains(&word) {
            section.script.push(Directive { line: number, word: word.to_owned(), text: text.to_owned() });
            continue;
        }
        let check = match word {
            "expected" => {
                if !text.is_empty() {
                    return Err(Fault::new(number, "the expected text starts on the next line"));
                }
                let margin = line[..line.len() - line.trim_start().len()].to_owned();
                let from = at;
                let mut block = Vec::new();
                while let Some(line) = lines.get(at).and_then(|line| expected_line(line, sign)) {
                    block.push(line);
                    at += 1;
                }
                Check::Expected { text: block.join("\n"), lines: from..at, margin }
            }
            _ if text.is_empty() => return Err(Fault::new(number, format!("`{word}` needs a text"))),
            "in" => Check::In(text.to_owned()),
            "check" => Check::Line(text.to_owned()),
            "check-not" => Check::Not(text.to_owned()),
            _ => Check::Error(text.to_owned()),
        };
        section.checks.push((number, check));
    }
    match sections.is_empty() {
        true => Err(Fault::new(1, format!("there is no `{sign} test`"))),
        false => Ok(sections),
    }
}

/// A line of an expected text: a comment with nothing in it, or indented.
fn expected_line<'l>(line: &'l str, sign: &str) -> Option<&'l str> {
    let rest = line.trim_start().strip_prefix(sign)?.trim_end();
    if rest.is_empty() { Some("") } else { rest.strip_prefix(INDENT) }
}

/// Word and text of a comment that is a directive. Any lower-case word with a colon is one, so that a mistyped word is found; a
/// word of the dialect without its colon is a mistake too.
fn directive<'c>(comment: &'c str, own: &[&str]) -> Result<Option<(&'c str, &'c str)>, String> {
    let first = comment.split_whitespace().next().unwrap_or("");
    if first == "test" {
        return Ok(Some(("test", comment["test".len()..].trim())));
    }
    let known = |word: &str| CHECKS.contains(&word) || own.contains(&word);
    if known(first) {
        return Err(format!("`{first}` needs a colon"));
    }
    let Some((word, text)) = comment.split_once(':') else { return Ok(None) };
    let is_word = !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    match (is_word, known(word)) {
        (true, true) => Ok(Some((word, text.trim()))),
        (true, false) => Err(format!("unknown directive `{word}`")),
        (false, _) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(source: &str) -> Result<Vec<Section>, Fault> {
        sections(source, ";", &|kind| match kind {
            "plain" => Some(&[]),
            "run" => Some(&["packet"]),
            _ => None,
        })
    }

    fn fault(source: &str) -> String {
        read(source).expect_err("something is wrong").to_string()
    }

    #[test]
    fn a_section_goes_up_to_the_next_test() {
        let source = "; Words about it.\n; test plain a b\n; in: x y\ncode ; check: no directive\n  ; check: 1\n; test run\n; packet: 00 ff\n; error: E";
        let read = read(source).expect("nothing is wrong");
        let [plain, run] = read.as_slice() else { panic!("{read:?}") };
        assert_eq!((plain.line, plain.kind.as_str(), plain.args.as_str()), (2, "plain", "a b"));
        assert_eq!(plain.checks, [(3, Check::In("x y".into())), (5, Check::Line("1".into()))]);
        assert_eq!(run.script, [Directive { line: 7, word: "packet".into(), text: "00 ff".into() }]);
        assert_eq!(run.checks, [(8, Check::Error("E".into()))]);
    }

    #[test]
    fn an_expected_text_is_the_indented_comments_that_follow() {
        let source = "; test plain\n; expected:\n;   a\n;     b\n;\n;   c\n; no more of it\n;   d";
        let read = read(source).expect("nothing is wrong");
        let expected = Check::Expected { text: "a\n  b\n\nc".into(), lines: 2..6, margin: String::new() };
        assert_eq!(read[0].checks, [(2, expected)]);
    }

    #[test]
    fn mistakes_have_a_line() {
        assert_eq!(fault("code"), "line 1: there is no `; test`");
        assert_eq!(fault("\n; test other"), "line 2: there is no test `other` here");
        assert_eq!(fault("; check: x\n; test plain"), "line 1: `check` stands before any `test`");
        assert_eq!(fault("; test plain\n; chek: x"), "line 2: unknown directive `chek`");
        assert_eq!(fault("; test plain\n;check x"), "line 2: `check` needs a colon");
        assert_eq!(fault("; test plain\n; check:"), "line 2: `check` needs a text");
        assert_eq!(fault("; test plain\n; expected: x"), "line 2: the expected text starts on the next line");
        // A word of one kind is none of another.
        assert_eq!(fault("; test plain\n; packet: 00"), "line 2: unknown directive `packet`");
        assert_eq!(fault("; test run\n; packet 00"), "line 2: `packet` needs a colon");
    }
}
