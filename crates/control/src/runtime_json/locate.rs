//! Where in a JSON text a value stands.
//!
//! The parser does not keep places; they are looked for when something is to be reported. The text is known to be right,
//! so the scanner only has to find its way.

use super::node::Step;
use std::ops::Range;

/// The place of the value at a path. When the way is lost, that of the last value on it.
pub(super) fn locate(text: &str, path: &[Step]) -> Range<usize> {
    let scanner = Scanner { bytes: text.as_bytes() };
    let mut at = scanner.blank(0);
    let mut place = at..scanner.value_end(at);
    for step in path {
        let found = match step {
            Step::Key(key) => scanner.member(at, key),
            Step::Index(index) => scanner.element(at, *index),
        };
        let Some(found) = found else { break };
        at = found;
        place = at..scanner.value_end(at);
    }
    // One line is enough to show.
    let line_end = text.get(place.start..place.end).and_then(|value| value.find('\n'));
    place.start..line_end.map_or(place.end, |newline| place.start + newline)
}

struct Scanner<'a> {
    bytes: &'a [u8],
}

impl Scanner<'_> {
    fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }

    fn blank(&self, mut at: usize) -> usize {
        while matches!(self.byte(at), b' ' | b'\t' | b'\r' | b'\n') {
            at += 1;
        }
        at
    }

    /// After the string that starts at `at`.
    fn string_end(&self, at: usize) -> usize {
        let mut at = at + 1;
        while at < self.bytes.len() {
            match self.byte(at) {
                b'\\' => at += 2,
                b'"' => return at + 1,
                _ => at += 1,
            }
        }
        self.bytes.len()
    }

    /// After the value that starts at `at`.
    fn value_end(&self, at: usize) -> usize {
        match self.byte(at) {
            b'"' => self.string_end(at),
            b'{' | b'[' => {
                let (mut at, mut depth) = (at, 0usize);
                while at < self.bytes.len() {
                    match self.byte(at) {
                        b'"' => {
                            at = self.string_end(at);
                            continue;
                        }
                        b'{' | b'[' => depth += 1,
                        b'}' | b']' => {
                            depth -= 1;
                            if depth == 0 {
                                return at + 1;
                            }
                        }
                        _ => {}
                    }
                    at += 1;
                }
                self.bytes.len()
            }
            _ => {
                let end = self.bytes.get(at..).and_then(|rest| {
                    rest.iter()
                        .position(|byte| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n'))
                });
                end.map_or(self.bytes.len(), |end| at + end)
            }
        }
    }

    /// The value of a member of the object at `at`; of a key given twice the last, as the parser has it.
    fn member(&self, at: usize, key: &str) -> Option<usize> {
        let mut found = None;
        let mut at = self.blank(at + 1);
        while self.byte(at) == b'"' {
            let end = self.string_end(at);
            let name: Option<String> =
                self.bytes.get(at..end).and_then(|text| serde_json::from_slice(text).ok());
            let value = self.blank(self.blank(end) + 1);
            if name.as_deref() == Some(key) {
                found = Some(value);
            }
            at = self.blank(self.value_end(value));
            if self.byte(at) == b',' {
                at = self.blank(at + 1);
            }
        }
        found
    }

    fn element(&self, at: usize, index: usize) -> Option<usize> {
        let mut at = self.blank(at + 1);
        for _ in 0..index {
            at = self.blank(self.value_end(at));
            if self.byte(at) != b',' {
                return None;
            }
            at = self.blank(at + 1);
        }
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_its_way() {
        let text = r#" { "a\"": 1, "list" : [ {"x": "}]"}, [2, 3], {"y": true } ], "a": {} }"#;
        let find = |path: &[Step]| &text[locate(text, path)];
        let (key, index) = (|key: &str| Step::Key(key.into()), Step::Index);
        assert_eq!(find(&[key("a\"")]), "1");
        assert_eq!(find(&[key("list"), index(0), key("x")]), "\"}]\"");
        assert_eq!(find(&[key("list"), index(1), index(1)]), "3");
        assert_eq!(find(&[key("list"), index(2), key("y")]), "true");
        assert_eq!(find(&[key("a")]), "{}");
        assert_eq!(find(&[key("list"), index(9)]), "[ {\"x\": \"}]\"}, [2, 3], {\"y\": true } ]");
    }
}
