//! Diagnostics as people read them: the message, the line, the caret.
//!
//! Only the lines that are shown go to the renderer, so the cost does not grow with the file, and labels that would
//! make it slow or unreadable (a line of thousands of characters, two places far apart) are said in words.

use foldhash::{HashMap, HashMapExt};

use ariadne::{Cache, Color, Config, IndexType, Label, Report, ReportKind, Source};

use crate::diagnostic::{Diagnostic, Severity};
use crate::span::{FileId, SourceFile, SourceMap, Span};

/// Last line of a file that is shown. The renderer counts lines from the start of what it is given, so the lines
/// before an excerpt are given to it as empty ones.
const MAX_LINE_NUMBER: usize = 200_000;

/// Longest line, in bytes, that is shown.
const MAX_LINE: usize = 500;

/// Most lines between two labels of one file that are shown in one excerpt.
const MAX_EXCERPT_LINES: usize = 400;

/// Most macro expansions and includes that are named.
const MAX_NOTES: usize = 6;

/// A diagnostic as text with line ends, for standard error. `colour` adds terminal escapes.
pub fn render(diagnostic: &Diagnostic, sources: &SourceMap, colour: bool) -> String {
    let mut notes = diagnostic.notes.clone();
    let mut labels = vec![(diagnostic.primary, diagnostic.label.clone())];
    for (span, text) in &diagnostic.secondary {
        labels.push((*span, text.clone()));
    }
    provenance(diagnostic.primary, sources, &mut labels, &mut notes);
    let rendered = with_source(diagnostic, &labels, &mut notes, sources, colour);
    rendered.unwrap_or_else(|| plain(diagnostic, &labels, &notes, sources))
}

/// A diagnostic in the lines that gcc writes and editors jump by: `file:line:column: error: message`, and a `note` for each other
/// place, each note and the help.
pub fn render_lines(diagnostic: &Diagnostic, sources: &SourceMap) -> String {
    let severity = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let at = sources.presumed_location(diagnostic.primary);
    let mut text = format!("{at}: {severity}: {} [{}]\n", diagnostic.message, diagnostic.code);
    let mut note = |place: &dyn std::fmt::Display, words: &str| {
        text.push_str(&format!("{place}: note: {words}\n"));
    };
    for (span, words) in &diagnostic.secondary {
        note(&sources.presumed_location(*span), words);
    }
    diagnostic.notes.iter().for_each(|words| note(&at, words));
    if let Some(help) = &diagnostic.help {
        note(&at, help);
    }
    text
}

/// Adds how a place came to be: macro, include, `#line`.
fn provenance(span: Span, sources: &SourceMap, labels: &mut Vec<(Span, String)>, notes: &mut Vec<String>) {
    for expansion in sources.expansions_of(span).take(MAX_NOTES) {
        labels.push((expansion.definition, format!("in macro `{}` defined here", expansion.name)));
    }
    for include in sources.includes_of(span.file).take(MAX_NOTES) {
        notes.push(format!("included from {}", sources.location(include)));
    }
    let presumed = sources.presumed_location(span);
    if presumed != sources.location(span) {
        notes.push(format!("according to #line this is {presumed}"));
    }
}

/// The lines of one file that are shown.
struct Excerpt<'a> {
    file: &'a SourceFile,
    first: usize,
    last: usize,
}

impl<'a> Excerpt<'a> {
    fn around(file: &'a SourceFile, span: Span) -> Option<Self> {
        let line = file.line_index(shown_start(file, span));
        (line < MAX_LINE_NUMBER && file.line_range(line).len() <= MAX_LINE).then_some(Self {
            file,
            first: line,
            last: line,
        })
    }

    /// Takes in another line, unless that makes too much of it.
    fn include(&mut self, span: Span) -> bool {
        let Some(other) = Self::around(self.file, span) else { return false };
        let (first, last) = (self.first.min(other.first), self.last.max(other.last));
        let fits = last - first <= MAX_EXCERPT_LINES
            && (first..=last).all(|line| self.file.line_range(line).len() <= MAX_LINE);
        if fits {
            (self.first, self.last) = (first, last);
        }
        fits
    }

    fn start(&self) -> usize {
        self.file.line_range(self.first).start
    }

    fn source(&self) -> Source<String> {
        let text = &self.file.text[self.start()..self.file.line_range(self.last).end];
        // Ariadne counts other characters as line ends, too; as spaces they keep our lines and its lines the same.
        let is_break = |c: char| matches!(c, '\r' | '\x0b' | '\x0c' | '\u{85}' | '\u{2028}' | '\u{2029}');
        let text: String = text
            .chars()
            .flat_map(|c| {
                if is_break(c) { [' '; 3].into_iter().take(c.len_utf8()) } else { [c; 3].into_iter().take(1) }
            })
            .collect();
        Source::from("\n".repeat(self.first) + &text)
    }

    /// A span as bytes of the excerpt, cut at the end of its first line.
    fn range(&self, span: Span) -> std::ops::Range<usize> {
        let shown = shown_start(self.file, span);
        let line = self.file.line_range(self.file.line_index(shown));
        let text = &self.file.text;
        let text_end = line.start + text[line.clone()].trim_end().len();
        let start = floor_boundary(text, (shown as usize).clamp(line.start, line.end));
        let end = (span.end as usize).min(text_end).max(start);
        let mut end = floor_boundary(text, end);
        if end == start {
            // An empty label shows at no character: take the next one, if the line has one.
            end += text[start..line.end].chars().next().map_or(0, char::len_utf8);
        }
        // After the empty lines.
        let place = |at: usize| at - self.start() + self.first;
        place(start)..place(end.max(start))
    }
}

/// Where a span is shown to start. The end of a file is the end of what is written in it: after the last line break there
/// is no line that could be shown.
fn shown_start(file: &SourceFile, span: Span) -> u32 {
    if (span.start as usize) < file.text.len() {
        return span.start;
    }
    file.text.trim_end().len() as u32
}

fn floor_boundary(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The name of a file and bytes of it.
type SourceRange = (String, std::ops::Range<usize>);

/// None if the source cannot be shown.
fn with_source(
    diagnostic: &Diagnostic,
    labels: &[(Span, String)],
    notes: &mut Vec<String>,
    sources: &SourceMap,
    colour: bool,
) -> Option<String> {
    let mut excerpts: HashMap<FileId, Excerpt<'_>> = HashMap::new();
    let primary = diagnostic.primary;
    excerpts.insert(primary.file, Excerpt::around(sources.file(primary.file)?, primary)?);
    let mut shown = Vec::new();
    for (i, (span, text)) in labels.iter().enumerate() {
        let fits = match (excerpts.get_mut(&span.file), sources.file(span.file)) {
            (Some(excerpt), _) => excerpt.include(*span),
            (None, Some(file)) => Excerpt::around(file, *span).is_some_and(|e| {
                excerpts.insert(span.file, e);
                true
            }),
            (None, None) => false,
        };
        if fits {
            shown.push((i, *span, text));
        } else {
            notes.push(format!("{text}: {}", sources.location(*span)));
        }
    }
    let names = distinct_names(excerpts.keys().copied(), sources);
    let range = |span: Span| -> Option<SourceRange> {
        Some((names.get(&span.file)?.clone(), excerpts.get(&span.file)?.range(span)))
    };
    let (kind, main_colour) = match diagnostic.severity {
        Severity::Error => (ReportKind::Error, Color::Red),
        Severity::Warning => (ReportKind::Warning, Color::Yellow),
    };
    let config = Config::default().with_color(colour).with_index_type(IndexType::Byte).with_tab_width(4);
    let mut report = Report::build(kind, range(primary)?)
        .with_config(config)
        .with_code(diagnostic.code)
        .with_message(&diagnostic.message);
    for (i, span, text) in shown {
        let label_colour = if i == 0 { main_colour } else { Color::Blue };
        let label = Label::new(range(span)?).with_color(label_colour).with_order(i as i32);
        let text = if text.is_empty() { "here" } else { text.as_str() };
        report = report.with_label(label.with_message(text));
    }
    if let Some(help) = &diagnostic.help {
        report = report.with_help(help);
    }
    for note in notes.iter() {
        report = report.with_note(note);
    }
    let texts = excerpts.iter().filter_map(|(id, e)| Some((names.get(id)?.clone(), e.source())));
    let mut out = Vec::new();
    report.finish().write(Excerpts(texts.collect()), &mut out).ok()?;
    String::from_utf8(out).ok()
}

/// A name for each file; files of the same name (one read twice) get different ones.
fn distinct_names(files: impl Iterator<Item = FileId>, sources: &SourceMap) -> HashMap<FileId, String> {
    let mut ids: Vec<FileId> = files.collect();
    ids.sort();
    let mut names = HashMap::new();
    for id in ids {
        let Some(file) = sources.file(id) else { continue };
        let mut name = file.name.to_string();
        while names.values().any(|n| *n == name) {
            name.push(' ');
        }
        names.insert(id, name);
    }
    names
}

/// The excerpts as ariadne asks for them.
struct Excerpts(HashMap<String, Source<String>>);

impl Cache<String> for Excerpts {
    type Storage = String;

    fn fetch(&mut self, id: &String) -> Result<&Source<String>, impl std::fmt::Debug> {
        self.0.get(id).ok_or_else(|| format!("no excerpt of {id}"))
    }

    fn display<'a>(&self, id: &'a String) -> Option<impl std::fmt::Display + 'a> {
        Some(id.trim_end())
    }
}

/// Without source lines: for places in no file, or in lines too long to show.
fn plain(
    diagnostic: &Diagnostic,
    labels: &[(Span, String)],
    notes: &[String],
    sources: &SourceMap,
) -> String {
    let severity = match diagnostic.severity {
        Severity::Error => "Error",
        Severity::Warning => "Warning",
    };
    let mut out = format!("[{}] {severity}: {}\n", diagnostic.code, diagnostic.message);
    for (i, (span, text)) in labels.iter().enumerate() {
        if i == 0 {
            out.push_str(&format!("   --> {}", sources.location(*span)));
        } else {
            out.push_str(&format!("       {}", sources.location(*span)));
        }
        if !text.is_empty() {
            out.push_str(&format!(": {text}"));
        }
        out.push('\n');
    }
    if let Some(help) = &diagnostic.help {
        out.push_str(&format!("   Help: {help}\n"));
    }
    for note in notes {
        out.push_str(&format!("   Note: {note}\n"));
    }
    out
}

#[cfg(test)]
mod tests;
