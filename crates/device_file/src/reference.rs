//! The reference of the keys, as docs/chassis.md has it.

use crate::keys::SECTIONS;

/// All sections with their keys, as Markdown: for each key how it is written, what holds without it, its limit, and what it
/// means.
pub fn reference() -> String {
    millrace_toml_sections::reference(&SECTIONS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MAX_FILE, MAX_SHOWN};

    /// UPDATE_EXPECT=1 writes it into the page.
    #[test]
    fn the_page_has_the_keys_of_the_crate() {
        const START: &str = "<!-- The keys, from here to the end, come from the crate `device_file`; a test compares them. -->\n";
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/chassis.md");
        let page = std::fs::read_to_string(path).expect("the page");
        let (before, _) = page.split_once(START).expect("the start of the reference");
        let file = format!(
            "A file has at most {MAX_SHOWN} bytes (`MAX_SHOWN`), one that `load` adds {MAX_FILE} (`MAX_FILE`)"
        );
        assert!(before.contains(&file), "{file}");
        let wanted = format!("{before}{START}\n{}", reference().trim_end()) + "\n";
        expect_test::expect_file![path].assert_eq(&wanted);
    }
    #[test]
    fn the_example_of_the_page_is_right() {
        let page = include_str!("../../../docs/chassis.md");
        let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
        let read = crate::DeviceFile::parse("chassis.md", example.expect("an example"));
        assert!(read.is_ok(), "{}", read.err().map(|problems| problems.render(false)).unwrap_or_default());
    }
}
