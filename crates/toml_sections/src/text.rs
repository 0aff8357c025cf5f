//! Values as the text of a file.

use crate::quantity::{Measure, show};
use std::fmt::{self, Write};

/// Lines of keys.
#[derive(Debug)]
pub struct Out<'o>(&'o mut String);

impl Out<'_> {
    /// What is written.
    pub fn text_of(write: impl FnOnce(&mut Out<'_>) -> fmt::Result) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = write(&mut Out(&mut text));
        text
    }

    /// The header of a table, after an empty line.
    pub fn header(&mut self, header: &str) -> fmt::Result {
        let line_end = if self.0.is_empty() { "" } else { "\n" };
        writeln!(self.0, "{line_end}{header}")
    }

    /// A value as it is shown.
    pub fn plain(&mut self, key: &str, value: impl fmt::Display) -> fmt::Result {
        writeln!(self.0, "{key} = {value}")
    }

    /// A value if there is one.
    pub fn optional(&mut self, key: &str, value: Option<impl fmt::Display>) -> fmt::Result {
        value.map_or(Ok(()), |value| self.plain(key, value))
    }

    /// A number with its unit if there is one.
    pub fn quantity(&mut self, key: &str, value: Option<u64>, measure: Measure) -> fmt::Result {
        value.map_or(Ok(()), |value| self.text(key, &show(value, measure)))
    }

    /// A text.
    pub fn text(&mut self, key: &str, value: &str) -> fmt::Result {
        self.plain(key, toml_string(value))
    }

    /// A text if there is one.
    pub fn some(&mut self, key: &str, value: &Option<String>) -> fmt::Result {
        value.as_ref().map_or(Ok(()), |value| self.text(key, value))
    }

    /// Texts if there are some.
    pub fn list(&mut self, key: &str, values: &[String]) -> fmt::Result {
        if values.is_empty() { Ok(()) } else { self.texts(key, values.iter().map(String::as_str)) }
    }

    /// A list of texts.
    pub fn texts<'v>(&mut self, key: &str, values: impl Iterator<Item = &'v str>) -> fmt::Result {
        let values: Vec<String> = values.map(toml_string).collect();
        self.plain(key, format_args!("[{}]", values.join(", ")))
    }
}

/// A basic string of TOML.
pub fn toml_string(text: &str) -> String {
    let mut literal = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => literal.extend(['\\', c]),
            c if c.is_control() => literal.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => literal.push(c),
        }
    }
    literal.push('"');
    literal
}
