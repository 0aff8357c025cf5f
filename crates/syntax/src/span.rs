//! Where a piece of program text comes from.
//!
//! A [`Span`] is a range of bytes in one source file, with the macro expansion that produced it, if any. It is
//! small and `Copy`, so every token and tree node carries one. A [`SourceMap`] owns the texts and answers what a
//! span means: file name, line, column, the chain of `#include`s and the macro that was expanded. It never fails:
//! a span that fits no file is answered with the nearest valid place.

use std::sync::Arc;

/// Most files (includes counted each time they are read) in one [`SourceMap`].
pub const MAX_FILES: usize = 10_000;

/// Most bytes in one source file. Offsets are 32 bits wide; this keeps far away from their end.
pub const MAX_FILE_BYTES: usize = 32 << 20;

/// Names one source file of a [`SourceMap`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u32);

/// Names one macro expansion of a [`SourceMap`]; 0 is "no expansion".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExpansionId(pub u32);

impl ExpansionId {
    /// The text stands in the file as it is.
    pub const NONE: Self = Self(0);
}

/// A range of bytes in one source file.
///
/// For a token out of a macro body the range is the macro's outermost invocation and `expansion` leads to the
/// definition. A token out of a macro argument keeps its own place in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
    /// The macro expansion that made the text.
    pub expansion: ExpansionId,
}

impl Span {
    /// A range of bytes of a file, not out of a macro.
    pub const fn new(file: FileId, start: u32, end: u32) -> Self {
        Self { file, start, end, expansion: ExpansionId::NONE }
    }

    /// The smallest span that covers both. Of two spans in different files (a construct that begins in one
    /// and ends in another), the first.
    pub fn to(self, other: Span) -> Span {
        if self.file != other.file {
            return self;
        }
        let expansion = if self.expansion == other.expansion { self.expansion } else { ExpansionId::NONE };
        Span { file: self.file, start: self.start.min(other.start), end: self.end.max(other.end), expansion }
    }

    /// The empty span just after this one: where something missing was expected.
    pub const fn after(self) -> Span {
        Span { start: self.end, ..self }
    }
}

/// One source text.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// The name that diagnostics show: the path as opened.
    pub name: Arc<str>,
    /// The text. Invalid UTF-8 in a file was replaced when it was read.
    pub text: Arc<str>,
    /// The `#include` that brought it in, none for the main file.
    pub included_from: Option<Span>,
    line_starts: Vec<u32>,
    line_marks: Vec<LineMark>,
}

/// A `#line` directive: from `offset` on, lines count from `line` in the file called `name`.
#[derive(Clone, Debug)]
struct LineMark {
    offset: u32,
    line: u32,
    name: Arc<str>,
}

impl SourceFile {
    fn new(name: Arc<str>, text: Arc<str>, included_from: Option<Span>) -> Self {
        let mut line_starts = vec![0];
        line_starts.extend(text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i as u32 + 1));
        Self { name, text, included_from, line_starts, line_marks: Vec::new() }
    }

    /// The 0-based line that holds a byte offset; the last line for offsets beyond the end.
    pub fn line_index(&self, offset: u32) -> usize {
        self.line_starts.partition_point(|&start| start <= offset).saturating_sub(1)
    }

    /// The bytes of a 0-based line, its newline included; empty beyond the last line.
    pub fn line_range(&self, line: usize) -> std::ops::Range<usize> {
        let end = self.text.len();
        let start = self.line_starts.get(line).map_or(end, |&s| s as usize);
        start..self.line_starts.get(line + 1).map_or(end, |&s| s as usize)
    }
}

/// A place for people: file name, 1-based line and 1-based column in characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The file's name.
    pub file: Arc<str>,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// What one macro expansion was.
#[derive(Clone, Debug)]
pub struct Expansion {
    /// The macro's name.
    pub name: Arc<str>,
    /// The name in its `#define`.
    pub definition: Span,
    /// The expansion that this one happened in, for a macro used in a macro's body.
    pub parent: ExpansionId,
}

/// The texts of all spans of a program.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    files: Vec<SourceFile>,
    expansions: Vec<Expansion>,
}

impl SourceMap {
    /// An empty map.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a text. None when the map or the text is over its limit ([`MAX_FILES`], [`MAX_FILE_BYTES`]).
    pub fn add(
        &mut self,
        name: impl Into<Arc<str>>,
        text: impl Into<Arc<str>>,
        included_from: Option<Span>,
    ) -> Option<FileId> {
        let text = text.into();
        if self.files.len() >= MAX_FILES || text.len() > MAX_FILE_BYTES {
            return None;
        }
        self.files.push(SourceFile::new(name.into(), text, included_from));
        Some(FileId(self.files.len() as u32 - 1))
    }

    /// The file, if the id is one of this map.
    pub fn file(&self, id: FileId) -> Option<&SourceFile> {
        self.files.get(id.0 as usize)
    }

    /// All files, the main file first.
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// Records a macro expansion.
    pub fn add_expansion(&mut self, expansion: Expansion) -> ExpansionId {
        self.expansions.push(expansion);
        ExpansionId(self.expansions.len() as u32)
    }

    /// The expansion that a span is of, none for text that stands in the file.
    pub fn expansion(&self, id: ExpansionId) -> Option<&Expansion> {
        self.expansions.get((id.0 as usize).checked_sub(1)?)
    }

    /// The macro expansions that a span is of, innermost first; at most 64.
    pub fn expansions_of(&self, span: Span) -> impl Iterator<Item = &Expansion> {
        std::iter::successors(self.expansion(span.expansion), |e| self.expansion(e.parent)).take(64)
    }

    /// The `#include` directives that brought a file in, innermost first.
    pub fn includes_of(&self, file: FileId) -> impl Iterator<Item = Span> + '_ {
        let from = |id: FileId| self.file(id).and_then(|f| f.included_from);
        std::iter::successors(from(file), move |span| from(span.file)).take(256)
    }

    /// Records a `#line` directive: the text from `offset` on is line `line` of the file called `name`.
    pub fn mark_line(&mut self, file: FileId, offset: u32, line: u32, name: Arc<str>) {
        if let Some(file) = self.files.get_mut(file.0 as usize) {
            file.line_marks.push(LineMark { offset, line, name });
        }
    }

    /// The text of a span; empty when it fits no file.
    pub fn text(&self, span: Span) -> &str {
        let file = self.file(span.file);
        file.and_then(|f| f.text.get(span.start as usize..span.end as usize)).unwrap_or("")
    }

    /// Where a span begins in the text as it was read.
    pub fn location(&self, span: Span) -> Location {
        let Some(file) = self.file(span.file) else {
            return Location { file: "<unknown>".into(), line: 1, column: 1 };
        };
        let line = file.line_index(span.start);
        let start = file.line_range(line).start;
        let column = file.text.get(start..span.start as usize).map_or(0, |s| s.chars().count());
        Location { file: file.name.clone(), line: line as u32 + 1, column: column as u32 + 1 }
    }

    /// Where a span begins according to `#line` directives; the same as [`location`](Self::location) without any.
    pub fn presumed_location(&self, span: Span) -> Location {
        let mut location = self.location(span);
        let Some(file) = self.file(span.file) else { return location };
        let before = file.line_marks.partition_point(|m| m.offset <= span.start);
        if let Some(mark) = before.checked_sub(1).and_then(|i| file.line_marks.get(i)) {
            let since = (location.line - 1).saturating_sub(file.line_index(mark.offset) as u32);
            location.line = mark.line.saturating_add(since);
            location.file = mark.name.clone();
        }
        location
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_characters_from_one() {
        let mut map = SourceMap::new();
        let file = map.add("a.p4", "ab\nçd e\n", None).unwrap();
        let at = |start| map.location(Span::new(file, start, start)).to_string();
        assert_eq!(at(0), "a.p4:1:1");
        assert_eq!(at(1), "a.p4:1:2");
        assert_eq!(at(3), "a.p4:2:1");
        // The cedilla takes two bytes, one column.
        assert_eq!(at(5), "a.p4:2:2");
        assert_eq!(at(9), "a.p4:3:1");
        assert_eq!(at(1000), "a.p4:3:1");
    }

    #[test]
    fn unknown_files_have_a_place_too() {
        let map = SourceMap::new();
        let span = Span::new(FileId(7), 3, 4);
        assert_eq!(map.location(span).line, 1);
        assert_eq!(map.text(span), "");
        assert_eq!(map.presumed_location(span).column, 1);
    }

    #[test]
    fn line_marks_renumber_what_follows() {
        let mut map = SourceMap::new();
        let file = map.add("out.i", "x\ny\nz\nw\n", None).unwrap();
        map.mark_line(file, 4, 10, "in.p4".into());
        assert_eq!(map.presumed_location(Span::new(file, 2, 3)).to_string(), "out.i:2:1");
        assert_eq!(map.presumed_location(Span::new(file, 4, 5)).to_string(), "in.p4:10:1");
        assert_eq!(map.presumed_location(Span::new(file, 6, 7)).to_string(), "in.p4:11:1");
    }

    #[test]
    fn spans_join_within_a_file_only() {
        let (a, b) = (Span::new(FileId(0), 5, 7), Span::new(FileId(0), 1, 3));
        assert_eq!(a.to(b), Span::new(FileId(0), 1, 7));
        assert_eq!(a.to(Span::new(FileId(1), 0, 100)), a);
        assert_eq!(a.after(), Span::new(FileId(0), 7, 7));
    }
}
