//! The files that a text names, for whoever sends their contents with it.

use crate::model::{Program, Source};
use crate::parse;
use millrace_toml_sections::Findings;
use toml::de::DeTable;

/// A file that is named, by its path as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// The source of a program.
    Program(Program),
    /// A program image.
    Image(String),
    /// The source of the classify program, which the device compiles.
    Source(Program),
    /// Entries.
    Entries(String),
    /// The token of a tenant.
    Token(String),
}

impl Named {
    /// The path.
    pub fn path(&self) -> &str {
        match self {
            Named::Program(Program { path, .. }) | Named::Source(Program { path, .. }) => path,
            Named::Image(path) | Named::Entries(path) | Named::Token(path) => path,
        }
    }
}

/// The files that switches, tenants and the classify program of a text name, each time that they do. Mistakes in the text are for
/// [`crate::DeviceFile::parse`] to tell: what cannot be read names nothing.
pub fn named(text: &str) -> Vec<Named> {
    if text.len() > crate::MAX_SHOWN {
        return Vec::new();
    }
    let Ok(document) = DeTable::parse(text) else { return Vec::new() };
    let draft = parse::draft(document.get_ref(), &mut Findings::default());
    let mut found = Vec::new();
    found.extend(draft.tenants.into_iter().filter_map(|tenant| tenant.is.token_file).map(Named::Token));
    for switch in draft.switches {
        found.push(match switch.is.source {
            Source::Image(path) => Named::Image(path),
            Source::Program(program) => Named::Program(program),
        });
        found.extend(switch.is.entries.into_iter().map(Named::Entries));
    }
    found.extend(draft.classify.map(|classify| Named::Source(classify.is)));
    found.retain(|named| !named.path().is_empty());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_names_what_can_be_read_of_it() {
        let text = "[[tenant]]\nname = \"t\"\ntoken-file = \"t.token\"\n[[switch]]\nname = \"a\"\nimage = \"a.mimg\"\nentries = [\"e\", \"f\"]\n\
                    [[switch]]\nname = \"b\"\nprogram = \"b.p4\"\ndefine = [\"X=1\"]\nnonsense = 1\n[[switch]]\nname = \"c\"\n[classify]\nprogram = \"c.p4\"\n";
        let found = named(text);
        let paths: Vec<&str> = found.iter().map(Named::path).collect();
        assert_eq!(paths, ["t.token", "a.mimg", "e", "f", "b.p4", "c.p4"]);
        assert!(matches!(&found[4], Named::Program(program) if program.define == ["X=1"]));
        assert!(named("[[switch]\n").is_empty() && named("").is_empty());
    }
}
