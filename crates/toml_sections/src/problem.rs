//! What is wrong with a file, with its places.

use crate::limits::MAX_PROBLEMS;
use millrace_printable::printable_line;
use millrace_syntax::{Diagnostic, SourceMap, Span, render};
use serde::Serialize;
use std::fmt;
use std::ops::Range;

/// Longest piece of the file that a message repeats, in characters.
const LONGEST_QUOTE: usize = 64;

/// Everything that is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Problems {
    /// The name of the file.
    pub file: String,
    /// The problems by their place in the file, at most [`MAX_PROBLEMS`].
    pub problems: Vec<Problem>,
    /// How many more there are.
    pub more: usize,
    #[serde(skip)]
    text: String,
    #[serde(skip)]
    rest: Option<Rest>,
}

/// The end of a text, when that was put together of two.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rest {
    /// What problems call it.
    name: String,
    /// The byte that it starts at.
    from: usize,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Problem {
    /// What sort of mistake it is.
    pub kind: Kind,
    /// What is wrong, in one line.
    pub message: String,
    /// Where.
    pub place: Place,
    /// Other places that matter, and why.
    pub others: Vec<(Place, String)>,
    /// What would put it right.
    pub help: Option<String>,
}

/// A piece of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The line of its start, from 1.
    pub line: usize,
    /// The column of its start, from 1, in characters.
    pub column: usize,
    /// Its bytes.
    pub bytes: Range<usize>,
}

/// What sort of mistake a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The text is no TOML.
    Syntax,
    /// There is no key or section of this name.
    UnknownKey,
    /// A key that has to be there is not.
    Missing,
    /// A value is of another type.
    Type,
    /// A value is of the right type, but means nothing.
    Value,
    /// A value or a count is out of its limits.
    Limit,
    /// Two things have one name, number or address.
    Duplicate,
    /// A name of something that is not in the file.
    UnknownName,
    /// Two keys contradict each other, or one needs another.
    Conflict,
    /// Two virtual ports claim the same frames.
    Claim,
    /// Guarantees are more than there is.
    Guarantee,
    /// A file is not there, or not where it may be.
    File,
    /// A path leads where there is no link, or takes a node twice.
    Route,
    /// More is to pass than can.
    Load,
    /// The check sum is that of another configuration.
    Crc,
}

impl Kind {
    /// The name, as JSON and diagnostics have it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Syntax => "syntax",
            Kind::UnknownKey => "unknown-key",
            Kind::Missing => "missing",
            Kind::Type => "type",
            Kind::Value => "value",
            Kind::Limit => "limit",
            Kind::Duplicate => "duplicate",
            Kind::UnknownName => "unknown-name",
            Kind::Conflict => "conflict",
            Kind::Claim => "claim",
            Kind::Guarantee => "guarantee",
            Kind::File => "file",
            Kind::Route => "route",
            Kind::Load => "load",
            Kind::Crc => "crc",
        }
    }

    /// Whether it can come of another mistake, in a text that is no TOML: what could not be read is missing elsewhere.
    fn can_follow(self) -> bool {
        !matches!(self, Kind::Syntax | Kind::UnknownKey | Kind::Type | Kind::Value | Kind::Limit)
    }
}

impl Problems {
    /// The text was put together of two: what is from a byte on, where a line starts, is another one with a name of its own. Its lines are counted
    /// from 1. Of a problem that has places in both, that in the first is its place.
    #[must_use]
    pub fn with_rest(mut self, from: usize, name: &str) -> Problems {
        let lines = self.text.bytes().take(from).filter(|byte| *byte == b'\n').count();
        let renumber = |place: &mut Place| {
            if place.bytes.start >= from {
                place.line = place.line.saturating_sub(lines).max(1);
            }
        };
        for problem in &mut self.problems {
            renumber(&mut problem.place);
            problem.others.iter_mut().for_each(|(place, _)| renumber(place));
            if problem.place.bytes.start >= from
                && let Some((first, why)) =
                    problem.others.iter_mut().find(|(other, _)| other.bytes.start < from)
            {
                std::mem::swap(first, &mut problem.place);
                *why = "there already".to_owned();
            }
        }
        self.problems.sort_by_key(|problem| (problem.place.bytes.start, problem.place.bytes.end));
        self.rest = Some(Rest { name: name.to_owned(), from });
        self
    }

    /// The name of the text that a place is in.
    fn name_of(&self, place: &Place) -> &str {
        match &self.rest {
            Some(rest) if place.bytes.start >= rest.from => &rest.name,
            _ => &self.file,
        }
    }

    /// All as diagnostics for a terminal, with lines and carets. `colour` adds terminal escapes.
    pub fn render(&self, colour: bool) -> String {
        let mut shown = self.render_each(colour).concat();
        if self.more > 0 {
            shown.push_str(&format!("{} more problems (MAX_PROBLEMS is {MAX_PROBLEMS})\n", self.more));
        }
        shown
    }

    /// As [`Problems::render`], each alone.
    pub fn render_each(&self, colour: bool) -> Vec<String> {
        let mut map = SourceMap::new();
        let from = self.rest.as_ref().map_or(self.text.len(), |rest| rest.from);
        let (first, rest) = self.text.split_at_checked(from).unwrap_or((&self.text, ""));
        let first = map.add(self.file.as_str(), first, None);
        let rest = self.rest.as_ref().and_then(|of| map.add(of.name.as_str(), rest, None));
        let span = |place: &Place| {
            let Range { start, end } = place.bytes;
            let (file, before) = if self.rest.is_some() && start >= from { (rest, from) } else { (first, 0) };
            file.map_or_else(Span::default, |file| {
                Span::new(file, (start - before) as u32, (end - before) as u32)
            })
        };
        let show = |problem: &Problem| {
            let mut diagnostic =
                Diagnostic::error(problem.kind.name(), span(&problem.place), problem.message.as_str());
            for (place, why) in &problem.others {
                diagnostic = diagnostic.with_secondary(span(place), why.as_str());
            }
            diagnostic.help.clone_from(&problem.help);
            render(&diagnostic, &map, colour)
        };
        self.problems.iter().map(show).collect()
    }

    /// All as one object of JSON.
    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// One line for each: `file:line:column: error: message [kind]`.
impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.problems {
            let Problem { kind, message, place, others, help } = problem;
            let file = printable_line(self.name_of(place));
            writeln!(f, "{file}:{}:{}: error: {message} [{}]", place.line, place.column, kind.name())?;
            for (place, why) in others {
                let file = printable_line(self.name_of(place));
                writeln!(f, "{file}:{}:{}: note: {why}", place.line, place.column)?;
            }
            if let Some(help) = help {
                writeln!(f, "{file}:{}:{}: note: {help}", place.line, place.column)?;
            }
        }
        match self.more {
            0 => Ok(()),
            more => writeln!(
                f,
                "{}: {more} more problems (MAX_PROBLEMS is {MAX_PROBLEMS})",
                printable_line(&self.file)
            ),
        }
    }
}

impl std::error::Error for Problems {}

/// A problem with its bytes only; the lines are counted when all are known.
pub struct Finding {
    kind: Kind,
    message: String,
    at: Range<usize>,
    others: Vec<(Range<usize>, String)>,
    help: Option<String>,
}

impl Finding {
    /// A mistake of a sort at some bytes.
    pub fn new(kind: Kind, at: Range<usize>, message: impl Into<String>) -> Finding {
        Finding { kind, message: message.into(), at, others: Vec::new(), help: None }
    }

    /// Adds another place.
    pub fn also(mut self, at: Range<usize>, why: impl Into<String>) -> Finding {
        self.others.push((at, why.into()));
        self
    }

    /// Sets what would put it right.
    pub fn help(mut self, help: impl Into<String>) -> Finding {
        self.help = Some(help.into());
        self
    }
}

/// Findings as they are made. No more are kept than are told, but for those that may be left out again.
#[derive(Default)]
pub struct Findings {
    kept: Vec<Finding>,
    more: usize,
}

impl Findings {
    /// Adds one.
    pub fn push(&mut self, finding: Finding) {
        self.push_with(|| finding);
    }

    /// Adds one that costs something to make, or only counts it.
    pub fn push_with(&mut self, make: impl FnOnce() -> Finding) {
        match self.kept.len() < 2 * MAX_PROBLEMS {
            true => self.kept.push(make()),
            false => self.more += 1,
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.kept.len() + self.more
    }

    /// The problems of a text; none if there are no findings.
    pub fn problems(mut self, file: &str, text: &str) -> Option<Problems> {
        let lines = Lines::of(text);
        // A text that is no TOML was read as well as could be: what may come of that is no finding. A value that could not be
        // read has no place.
        let broken: Vec<usize> = self
            .kept
            .iter()
            .filter(|finding| finding.kind == Kind::Syntax)
            .map(|finding| lines.index(finding.at.start))
            .collect();
        if !broken.is_empty() {
            self.kept.retain(|finding| {
                finding.kind == Kind::Syntax
                    || !(finding.kind.can_follow()
                        || finding.at.is_empty()
                        || broken.contains(&lines.index(finding.at.start)))
            });
        }
        self.kept.sort_by_key(|finding| (finding.at.start, finding.at.end));
        self.more += self.kept.len().saturating_sub(MAX_PROBLEMS);
        self.kept.truncate(MAX_PROBLEMS);
        if self.kept.is_empty() {
            return None;
        }
        let place = |at: Range<usize>| lines.place(text, at);
        let problems = self
            .kept
            .into_iter()
            .map(|Finding { kind, message, at, others, help }| Problem {
                kind,
                message,
                place: place(at),
                others: others.into_iter().map(|(at, why)| (place(at), why)).collect(),
                help,
            })
            .collect();
        Some(Problems { file: file.to_owned(), problems, more: self.more, text: text.to_owned(), rest: None })
    }
}

/// Where the lines of a text start.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Lines {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Lines(std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect())
    }

    /// The line of a byte, from 0.
    fn index(&self, byte: usize) -> usize {
        self.0.partition_point(|start| *start <= byte) - 1
    }

    fn place(&self, text: &str, at: Range<usize>) -> Place {
        let boundary = |mut byte: usize| {
            byte = byte.min(text.len());
            while !text.is_char_boundary(byte) {
                byte -= 1;
            }
            byte
        };
        let start = boundary(at.start);
        let end = boundary(at.end).max(start);
        let line = self.index(start);
        Place { line: line + 1, column: text[self.0[line]..start].chars().count() + 1, bytes: start..end }
    }
}

/// A piece of the file as a message repeats it: short, and harmless to a terminal.
pub fn quoted(text: &str) -> String {
    match text.char_indices().nth(LONGEST_QUOTE) {
        Some((end, _)) => format!("`{}...`", printable_line(&text[..end])),
        None => format!("`{}`", printable_line(text)),
    }
}

/// The known name that another one was probably meant to be.
pub fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    // Longer names than any sane one are not compared: the cost grows with the product of the lengths.
    if name.len() > 2 * LONGEST_QUOTE {
        return None;
    }
    let name = name.replace('_', "-").to_lowercase();
    let allowed = (name.chars().count() / 3).clamp(1, 3);
    let distances = known.map(|known| (strsim::osa_distance(&name, known), known));
    distances.filter(|(distance, _)| *distance <= allowed).min().map(|(_, known)| known)
}
