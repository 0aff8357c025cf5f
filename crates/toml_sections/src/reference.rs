//! The reference of the keys, as the documentation has it.

use crate::limits::{MAX_LIST, MAX_NAME, MAX_TEXT, WHOLE};
use crate::quantity::{Measure, show};
use crate::section::{Absent, Form, Key, Section};
use crate::table::words;

/// All sections with their keys, as Markdown: for each key how it is written, what holds without it, its limit, and what it
/// means.
pub fn reference(all: &[&Section]) -> String {
    let mut text = String::new();
    for section in all {
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
        Form::Name | Form::Label => format!("{MAX_NAME} bytes (`MAX_NAME`)"),
        Form::Names(most, name) | Form::Labels(most, name) => format!("{most} names (`{name}`)"),
        Form::Text | Form::Address => format!("{MAX_TEXT} bytes (`MAX_TEXT`)"),
        Form::Texts => format!("{MAX_LIST} texts (`MAX_LIST`)"),
        Form::Special(_, limit) | Form::Sections(limit) => limit.into(),
        Form::Flag | Form::Word(_) | Form::Words(_) | Form::Section => String::new(),
    }
}
