//! A text to the tables of TOML that are in it, and what its reader makes of these.

use crate::limits::MAX_RECOVERY;
use crate::problem::{Finding, Findings, Kind, Problems};
use toml::de::DeTable;

/// Reads a text of at most so many bytes, a limit with a name, which `name` is what problems call. `read` makes something of the document and tells what is
/// wrong with it; it may make nothing if something is.
///
/// # Errors
/// Everything that is wrong.
pub fn read_document<T>(
    name: &str,
    text: &str,
    (most, limit): (usize, &str),
    read: impl for<'t> FnOnce(&'t DeTable<'t>, &mut Findings) -> Option<T>,
) -> Result<T, Problems> {
    let mut findings = Findings::default();
    if text.len() > most {
        let message = format!("the file has {} bytes: at most {most} ({limit})", text.len());
        findings.push(Finding::new(Kind::Limit, 0..0, message));
        return findings.problems(name, "").map_or_else(|| unreachable!("a finding was made"), Err);
    }
    let (document, errors) = match DeTable::parse(text) {
        Ok(document) => (document, Vec::new()),
        // Of a text that is no TOML a part is read: mistakes of TOML cost more than what is right.
        Err(first) => {
            let end = first.span().map_or(0, |at| at.start).saturating_add(MAX_RECOVERY);
            let (document, mut errors) = DeTable::parse_recoverable(lines_to(text, end));
            if errors.is_empty() {
                errors.push(first);
            }
            (document, errors)
        }
    };
    for error in &errors {
        findings.push(Finding::new(Kind::Syntax, error.span().unwrap_or(0..0), error.message()));
    }
    let made = read(document.get_ref(), &mut findings);
    match findings.problems(name, text) {
        Some(problems) => Err(problems),
        None => Ok(made.unwrap_or_else(|| unreachable!("what is not made has a finding"))),
    }
}

/// The lines of a text that end before a byte.
fn lines_to(text: &str, end: usize) -> &str {
    match text.as_bytes().get(..end) {
        Some(part) => {
            &text[..part.iter().rposition(|byte| *byte == b'\n').map_or(0, |line_end| line_end + 1)]
        }
        None => text,
    }
}
