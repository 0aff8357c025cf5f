//! The text of a file to a checked model.

mod check;
mod keys;
mod parse;

use crate::limits::MAX_FILE;
use crate::model::NodeFile;
use millrace_toml_sections::{Problems, read_document};

impl NodeFile {
    /// Reads the text of a file. `name` is what problems call it.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub fn parse(name: &str, text: &str) -> Result<NodeFile, Problems> {
        read_document(name, text, (MAX_FILE, "MAX_FILE"), |document, findings| {
            let draft = parse::draft(document, findings);
            check::check(draft, findings)
        })
    }
}

/// All sections of the file with their keys, as Markdown.
pub fn reference() -> String {
    millrace_toml_sections::reference(&keys::SECTIONS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UPDATE_EXPECT=1 writes it into the page.
    #[test]
    fn the_page_has_the_keys_of_the_crate() {
        const START: &str =
            "<!-- The keys, from here to the end, come from the crate `node`; a test compares them. -->\n";
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/node.md");
        let page = std::fs::read_to_string(path).expect("the page");
        let (before, _) = page.split_once(START).expect("the start of the reference");
        let wanted = format!("{before}{START}\n{}", reference().trim_end()) + "\n";
        expect_test::expect_file![path].assert_eq(&wanted);
    }
}
