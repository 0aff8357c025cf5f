//! Whether the output of a test is as its checks say.

use crate::Outcome;
use crate::dialect::{Check, Fault, INDENT, Section};
use std::ops::Range;

/// Lines of a file, counted from 0, that are not as they should be, and the text that they should hold.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Replacement {
    pub(crate) lines: Range<usize>,
    pub(crate) margin: String,
    pub(crate) text: String,
}

/// Compares an outcome with the checks of its section; gives expected texts that the outcome differs from.
pub(crate) fn compare(section: &Section, outcome: &Outcome) -> Result<Vec<Replacement>, Fault> {
    match outcome {
        Outcome::Holds => match section.checks.first() {
            Some((line, _)) => {
                Err(Fault::new(*line, format!("`test {}` gives nothing to look at", section.kind)))
            }
            None => Ok(Vec::new()),
        },
        Outcome::Errors(found) => errors(section, found).map(|()| Vec::new()),
        Outcome::Text(_) if section.checks.is_empty() => Err(Fault::new(section.line, "nothing is checked")),
        Outcome::Text(text) => compare_text(section, text),
    }
}

fn errors(section: &Section, found: &[String]) -> Result<(), Fault> {
    let list = |found: &[String]| found.iter().map(|error| format!("\n    {error}")).collect::<String>();
    let mut wanted = 0;
    for (line, check) in &section.checks {
        let Check::Error(text) = check else {
            return Err(Fault::new(*line, format!("there is no output, but errors:{}", list(found))));
        };
        wanted += 1;
        if !found.iter().any(|error| error.contains(text)) {
            return Err(Fault::new(*line, format!("no such error among:{}", list(found))));
        }
    }
    match wanted == found.len() {
        true => Ok(()),
        false => Err(Fault::new(section.line, format!("{wanted} errors wanted, found:{}", list(found)))),
    }
}

fn compare_text(section: &Section, text: &str) -> Result<Vec<Replacement>, Fault> {
    let all: Vec<&str> = text.trim_end().lines().collect();
    let mut part = all.as_slice();
    let mut at = 0;
    let mut looked = true;
    let mut replacements = Vec::new();
    for (line, check) in &section.checks {
        let fault = |message: String| Err(Fault::new(*line, message));
        looked = true;
        match check {
            Check::In(start) => {
                let Some(found) = part_from(&all, start) else {
                    return fault(format!("no part starts with `{start}`:\n{text}"));
                };
                (part, at, looked) = (found, 0, false);
            }
            Check::Line(wanted) => match part[at..].iter().position(|line| is_line(wanted, line)) {
                Some(offset) => at += offset + 1,
                None => {
                    return fault(format!("no line `{wanted}` (any more) in:\n{}", part[at..].join("\n")));
                }
            },
            Check::Not(text) => {
                if let Some(found) = part.iter().find(|line| has_text(text, line)) {
                    return fault(format!(
                        "`{text}` is in the line `{}` of:\n{}",
                        found.trim(),
                        part.join("\n")
                    ));
                }
            }
            Check::Error(error) => return fault(format!("no error, so not `{error}`")),
            Check::Expected { text: expected, lines, margin } => {
                let found: Vec<&str> = part.iter().map(|line| line.trim_end()).collect();
                let found = found.join("\n");
                if found.is_empty() {
                    return fault("the output is empty".into());
                }
                if found != *expected {
                    replacements.push(Replacement {
                        lines: lines.clone(),
                        margin: margin.clone(),
                        text: found,
                    });
                }
            }
        }
    }
    match looked {
        true => Ok(replacements),
        false => Err(Fault::new(section.line, "nothing is checked in the last part")),
    }
}

/// The lines from the first one that starts with a text up to an empty one.
fn part_from<'l, 't>(lines: &'l [&'t str], start: &str) -> Option<&'l [&'t str]> {
    let from = &lines[lines.iter().position(|line| line.starts_with(start))?..];
    let end = from.iter().position(|line| line.trim().is_empty()).unwrap_or(from.len());
    Some(&from[..end])
}

/// Whether a line, without the blanks around it, is as wanted; `...` stands for any text.
fn is_line(wanted: &str, line: &str) -> bool {
    let mut rest = line.trim();
    let mut pieces = wanted.split("...");
    let Some(after) = rest.strip_prefix(pieces.next().unwrap_or("")) else { return false };
    rest = after;
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else { return rest.is_empty() };
    for piece in pieces {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last)
}

/// Whether a line has a text somewhere; `...` stands for any text.
fn has_text(text: &str, line: &str) -> bool {
    is_line(&format!("...{text}..."), line)
}

/// A source with expected texts replaced, as comments with that sign.
pub(crate) fn replaced(source: &str, sign: &str, replacements: &[Replacement]) -> String {
    let lines: Vec<&str> = source.split_inclusive('\n').collect();
    let mut whole = String::new();
    let mut at = 0;
    for Replacement { lines: old, margin, text } in replacements {
        lines[at..old.start].iter().for_each(|line| whole.push_str(line));
        if !whole.ends_with('\n') {
            whole.push('\n');
        }
        for line in text.lines() {
            let indent = if line.is_empty() { "" } else { INDENT };
            whole.push_str(&format!("{margin}{sign}{indent}{line}\n"));
        }
        at = old.end;
    }
    lines[at..].iter().for_each(|line| whole.push_str(line));
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::sections;

    const OUTPUT: &str = "one {\n  a\n  b\n}\n\ntwo {\n  b = 12\n  a\n}\n";

    fn result(checks: &str, outcome: Outcome) -> Result<Vec<Replacement>, String> {
        let source = format!("; test plain\n{checks}");
        let sections = sections(&source, ";", &|_| Some(&[])).expect("sound directives");
        compare(&sections[0], &outcome).map_err(|fault| fault.to_string())
    }

    fn passes(checks: &str) -> bool {
        result(checks, Outcome::Text(OUTPUT.into())).is_ok()
    }

    #[test]
    fn lines_come_in_order_within_a_part() {
        assert!(passes("; check: a\n; check: b\n; check: a"));
        assert!(!passes("; check: b = 12\n; check: b"));
        assert!(!passes("; in: one\n; check: b\n; check: a"));
        // Each part is looked at from its start.
        assert!(passes("; in: two\n; check: a\n; in: one\n; check: a\n; check: }"));
        assert!(!passes("; in: three\n; check: a"));
        // A line is a whole line, but for what `...` stands for.
        assert!(!passes("; check: b = 1"));
        assert!(passes("; check: b = ...2") && passes("; check: ...12") && passes("; check: b..."));
        assert!(!passes("; check: b = ...3") && !passes("; check: b = 12...2"));
    }

    #[test]
    fn no_line_of_a_part_has_what_is_not_wanted() {
        assert!(passes("; in: one\n; check-not: 12") && !passes("; in: two\n; check-not: 12"));
        assert!(!passes("; check-not: b...2") && passes("; check-not: b...3"));
        // Lines that were passed already count.
        assert!(!passes("; check: two {\n; check-not: one"));
    }

    #[test]
    fn something_has_to_be_checked() {
        assert_eq!(result("", Outcome::Text(OUTPUT.into())), Err("line 1: nothing is checked".into()));
        assert!(!passes("; check: a\n; in: two"));
        assert_eq!(result("", Outcome::Holds), Ok(Vec::new()));
        assert!(result("; check: a", Outcome::Holds).is_err());
        assert!(!passes("; error: a"));
    }

    #[test]
    fn errors_are_those_that_are_named() {
        let two = || Outcome::Errors(vec!["first x".into(), "second y".into()]);
        assert!(result("; error: x\n; error: second", two()).is_ok());
        for checks in ["", "; error: x", "; error: x\n; error: z", "; check: first x"] {
            assert!(result(checks, two()).is_err(), "{checks}");
        }
    }

    #[test]
    fn an_expected_text_is_replaced_where_it_differs() {
        let block = "; in: two\n; expected:\n;   two {\n;     b = 12\n;     a\n;   }\n; end";
        assert_eq!(result(block, Outcome::Text(OUTPUT.into())), Ok(Vec::new()));
        assert!(result("; expected:", Outcome::Text(String::new())).is_err());
        let found = result(block, Outcome::Text("two\n\n".into())).expect("a difference is no fault");
        let source = format!("; test plain\n{block}\ncode\n");
        let wanted = "; test plain\n; in: two\n; expected:\n;   two\n; end\ncode\n";
        assert_eq!(replaced(&source, ";", &found), wanted);
        // A text that is not there yet, at the end of a file without a line end.
        let missing = result("; expected:", Outcome::Text("a\n\nb".into())).expect("no fault");
        let source = "; test plain\n; expected:";
        assert_eq!(replaced(source, ";", &missing), format!("{source}\n;   a\n;\n;   b\n"));
    }
}
