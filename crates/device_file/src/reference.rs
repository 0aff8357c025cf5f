//! The reference of the keys, as docs/chassis.md has it.

use crate::keys::{Absent, Form, Key, SECTIONS};
use crate::limits::{MAX_LIST, MAX_NAME, MAX_TEXT, WHOLE};
use crate::quantity::{Measure, show};
use crate::reader::words;

/// All sections with their keys, as Markdown: for each key how it is written, what holds without it, its limit, and what it
/// means.
pub fn reference() -> String {
    let mut text = String::new();
    for section in SECTIONS {
        text.push_str(&format!("### {}\n\n{}\n\n", section.header, section.means));
        text.push_str("| key | written as | default | limit | means |\n| --- | --- | --- | --- | --- |\n");
        for key in section.keys {
            let form = words(&key.form).replace('|', "\\|");
            let (name, means) = (key.name, key.means);
            text.push_str(&format!("| `{name}` | {form} | {} | {} | {means} |\n", default(key), limit(key)));
        }
        text.push('\n');
    }
    text
}

fn default(key: &Key) -> String {
    match (key.absent, key.form) {
        (Absent::Mistake, _) => "has to be there".into(),
        (Absent::Is(words), _) => words.into(),
        (Absent::Number(number), Form::Quantity(measure, ..)) => format!("`\"{}\"`", show(number, measure)),
        (Absent::Number(number), _) => format!("`{number}`"),
        (Absent::Text(text), _) => format!("`\"{text}\"`"),
        (Absent::Flag(flag), _) => format!("`{flag}`"),
    }
}

fn limit(key: &Key) -> String {
    match key.form {
        Form::Number(least, most, name) => format!("{least} to {most} (`{name}`)"),
        Form::Numbers(least, most, name) => format!("each {least} to {most} (`{name}`)"),
        Form::Quantity(Measure::Share, ..) => format!("{} (`WHOLE`)", show(WHOLE, Measure::Share)),
        Form::Quantity(measure, most, name) => format!("{} (`{name}`)", show(most, measure)),
        Form::Name => format!("{MAX_NAME} bytes (`MAX_NAME`)"),
        Form::Names(most, name) => format!("{most} names (`{name}`)"),
        Form::Text | Form::Address => format!("{MAX_TEXT} bytes (`MAX_TEXT`)"),
        Form::Texts => format!("{MAX_LIST} texts (`MAX_LIST`)"),
        Form::Special(_, limit) | Form::Sections(limit) => limit.into(),
        Form::Flag | Form::Word(_) | Form::Words(_) | Form::Section => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MAX_FILE;

    /// UPDATE_EXPECT=1 writes it into the page.
    #[test]
    fn the_page_has_the_keys_of_the_crate() {
        const START: &str = "<!-- The keys, from here to the end, come from the crate `device_file`; a test compares them. -->\n";
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/chassis.md");
        let page = std::fs::read_to_string(path).expect("the page");
        let (before, _) = page.split_once(START).expect("the start of the reference");
        let file = format!("A file has at most {MAX_FILE} bytes (`MAX_FILE`).");
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
