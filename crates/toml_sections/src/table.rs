//! Reads a table of the file by the forms of its keys.

use crate::limits::{MAX_LIST, MAX_NAME, MAX_TEXT};
use crate::problem::{Finding, Findings, Kind, nearest, quoted};
use crate::quantity::{self, Measure};
use crate::section::{Absent, Form, Key, Section};
use millrace_listen::Address;
use std::ops::Range;
use std::str::FromStr;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value with its place.
pub type Placed<T> = (T, Range<usize>);

/// A table of the file and the section that it belongs to. Each key is read once, and a mistake in its value is told then.
#[derive(Clone, Debug)]
pub struct Table<'t> {
    section: &'static Section,
    /// None of a table that is not written.
    entries: Option<&'t DeTable<'t>>,
    at: Range<usize>,
}

impl<'t> Table<'t> {
    /// A table; tells its unknown keys.
    pub fn new(
        section: &'static Section,
        entries: &'t DeTable<'t>,
        at: Range<usize>,
        findings: &mut Findings,
    ) -> Table<'t> {
        for key in entries.keys() {
            if section.key(key.get_ref()).is_some() {
                continue;
            }
            findings.push_with(|| {
                let known = || section.keys.iter().map(|key| key.name);
                let help = match nearest(key.get_ref(), known()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("known keys: {}", known().collect::<Vec<_>>().join(", ")),
                };
                let message = format!("there is no key {} in {}", quoted(key.get_ref()), section.header);
                Finding::new(Kind::UnknownKey, key.span(), message).help(help)
            });
        }
        Table { section, entries: Some(entries), at }
    }

    /// A table that is not written: each key has what holds without it.
    pub fn absent(section: &'static Section) -> Table<'static> {
        Table { section, entries: None, at: 0..0 }
    }

    /// Where the value of a key is; of a key that is not there, the header of the table.
    pub fn at(&self, key: &str) -> Range<usize> {
        self.value(key).map_or(self.at.clone(), Spanned::span)
    }

    /// Where the header of the table is, or the table itself if it has none.
    pub fn header(&self) -> Range<usize> {
        self.at.clone()
    }

    /// Whether a key is there.
    pub fn has(&self, key: &str) -> bool {
        self.value(key).is_some()
    }

    /// The value of a key as it is written.
    pub fn value(&self, key: &str) -> Option<&'t Spanned<DeValue<'t>>> {
        self.entries?.get(key)
    }

    /// Tells that a key is not there that has to be.
    pub fn missing(&self, key: &str, findings: &mut Findings) {
        let message = format!("`{key}` is missing in {}", self.section.header);
        findings.push(Finding::new(Kind::Missing, self.at.clone(), message));
    }

    /// Tells that a value is of another type.
    pub fn wrong_type(&self, name: &str, value: &Spanned<DeValue<'_>>, findings: &mut Findings) {
        let is = value.get_ref().type_str();
        let message = format!("`{name}` is of the type {is}: write {}", words(&self.key(name).form));
        findings.push(Finding::new(Kind::Type, value.span(), message));
    }

    /// A number, in the smallest unit if it has a unit; none if it is not there and has no default, or if it is wrong.
    pub fn number(&self, name: &str, findings: &mut Findings) -> Option<u64> {
        let key = self.key(name);
        let Some(value) = self.present(key, findings) else {
            return match key.absent {
                Absent::Number(number) => Some(number),
                _ => None,
            };
        };
        match key.form {
            Form::Number(least, most, limit) => self.whole(name, value, (least, most, limit), findings),
            Form::Quantity(measure, most, limit) => {
                let DeValue::String(text) = value.get_ref() else {
                    self.wrong_type(name, value, findings);
                    return None;
                };
                match quantity::parse(text, measure) {
                    Ok(amount) if amount <= most => Some(amount),
                    Ok(_) => {
                        let most = match measure {
                            Measure::Share => "100%".to_owned(),
                            _ => format!("{} ({limit})", quantity::show(most, measure)),
                        };
                        let message = format!("`{name}` is {}: at most {most}", quoted(text));
                        findings.push(Finding::new(Kind::Limit, value.span(), message));
                        None
                    }
                    Err(why) => {
                        let message = format!("`{name}` is {}: {why}", quoted(text));
                        findings.push(Finding::new(Kind::Value, value.span(), message));
                        None
                    }
                }
            }
            _ => None,
        }
    }

    /// Exactly two texts that are read as something else, each with its place. The key has to be there; `refusal` says what is wrong with a
    /// text that cannot be read.
    pub fn pair<T: FromStr>(
        &self,
        name: &str,
        refusal: impl Fn(&str) -> String,
        findings: &mut Findings,
    ) -> Option<[Placed<T>; 2]> {
        let Some(value) = self.value(name) else {
            self.missing(name, findings);
            return None;
        };
        let elements = match value.get_ref().as_array() {
            Some(elements) if elements.len() == 2 => elements,
            _ => {
                self.wrong_type(name, value, findings);
                return None;
            }
        };
        let mut read = Vec::new();
        for element in elements.iter() {
            let Some(text) = element.get_ref().as_str() else {
                self.wrong_type(name, element, findings);
                continue;
            };
            match text.parse() {
                Ok(one) => read.push((one, element.span())),
                Err(_) => findings.push(Finding::new(Kind::Value, element.span(), refusal(text))),
            }
        }
        read.try_into().ok()
    }

    /// Several numbers.
    pub fn numbers(&self, name: &str, findings: &mut Findings) -> Vec<Placed<u64>> {
        let key = self.key(name);
        let (Some(value), Form::Numbers(least, most, limit)) = (self.present(key, findings), key.form) else {
            return Vec::new();
        };
        let DeValue::Array(elements) = value.get_ref() else {
            self.wrong_type(name, value, findings);
            return Vec::new();
        };
        let mut read = Vec::new();
        for element in elements.iter() {
            if let Some(number) = self.whole(name, element, (least, most, limit), findings) {
                read.push((number, element.span()));
            }
        }
        read
    }

    /// A flag.
    pub fn flag(&self, name: &str, findings: &mut Findings) -> bool {
        let key = self.key(name);
        match (self.present(key, findings), key.absent) {
            (Some(value), _) => match value.get_ref() {
                DeValue::Boolean(flag) => *flag,
                _ => {
                    self.wrong_type(name, value, findings);
                    false
                }
            },
            (None, absent) => matches!(absent, Absent::Flag(true)),
        }
    }

    /// A name, a text, a word or an address; its default if it is not there.
    pub fn text(&self, name: &str, findings: &mut Findings) -> Option<String> {
        let key = self.key(name);
        let Some(value) = self.present(key, findings) else {
            return match key.absent {
                Absent::Text(text) => Some(text.to_owned()),
                _ => None,
            };
        };
        let DeValue::String(text) = value.get_ref() else {
            self.wrong_type(name, value, findings);
            return None;
        };
        self.checked(key, text, value.span(), findings)
    }

    /// Several names, texts or words. Where the form allows one or several, one alone is a list of one.
    pub fn texts(&self, name: &str, findings: &mut Findings) -> Vec<Placed<String>> {
        let key = self.key(name);
        let Some(value) = self.present(key, findings) else { return Vec::new() };
        let (most, limit) = match key.form {
            Form::Names(most, limit) | Form::Labels(most, limit) => (most, limit),
            _ => (MAX_LIST, "MAX_LIST"),
        };
        let single = std::slice::from_ref(value);
        let elements = match (value.get_ref(), key.form) {
            (DeValue::Array(elements), _) => elements.get(..).unwrap_or_default(),
            (DeValue::String(_), Form::Names(..)) => single,
            _ => {
                self.wrong_type(name, value, findings);
                return Vec::new();
            }
        };
        if elements.len() > most {
            let message = format!("`{name}` has {} elements: at most {most} ({limit})", elements.len());
            findings.push(Finding::new(Kind::Limit, value.span(), message));
            return Vec::new();
        }
        let mut read: Vec<Placed<String>> = Vec::new();
        for element in elements {
            let DeValue::String(text) = element.get_ref() else {
                self.wrong_type(name, element, findings);
                continue;
            };
            let Some(text) = self.checked(key, text, element.span(), findings) else { continue };
            match read.iter().find(|(known, _)| *known == text) {
                Some((_, first)) => {
                    let message = format!("{} is twice in `{name}`", quoted(&text));
                    let finding = Finding::new(Kind::Duplicate, element.span(), message);
                    findings.push(finding.also(first.clone(), "first here"));
                }
                None => read.push((text, element.span())),
            }
        }
        read
    }

    /// The table of a key.
    pub fn table(&self, name: &str, section: &'static Section, findings: &mut Findings) -> Option<Table<'t>> {
        let value = self.value(name)?;
        match value.get_ref() {
            DeValue::Table(entries) => Some(Table::new(section, entries, value.span(), findings)),
            DeValue::Array(_) if matches!(self.key(name).form, Form::Section) => {
                let header = section.header;
                let message = format!("`{name}` is there once: write {header}");
                findings.push(Finding::new(Kind::Type, value.span(), message));
                None
            }
            _ => {
                self.wrong_type(name, value, findings);
                None
            }
        }
    }

    /// The tables of a key, at most so many.
    pub fn tables(
        &self,
        name: &str,
        section: &'static Section,
        (most, limit): (usize, &str),
        findings: &mut Findings,
    ) -> Vec<Table<'t>> {
        let Some(value) = self.value(name) else { return Vec::new() };
        let DeValue::Array(elements) = value.get_ref() else {
            let header = section.header;
            let message = format!("`{name}` is a list of tables: write {header}");
            findings.push(Finding::new(Kind::Type, value.span(), message));
            return Vec::new();
        };
        if let Some(over) = elements.get(most) {
            let message =
                format!("there are {} of {}: at most {most} ({limit})", elements.len(), section.header);
            findings.push(Finding::new(Kind::Limit, over.span(), message));
        }
        let mut tables = Vec::new();
        for element in elements.iter().take(most) {
            match element.get_ref() {
                DeValue::Table(entries) => {
                    tables.push(Table::new(section, entries, element.span(), findings));
                }
                other => {
                    let message = format!("`{name}` has the type {}: a table is expected", other.type_str());
                    findings.push(Finding::new(Kind::Type, element.span(), message));
                }
            }
        }
        tables
    }

    fn key(&self, name: &str) -> &'static Key {
        let key = self.section.key(name);
        key.unwrap_or_else(|| unreachable!("{} has no key {name}", self.section.header))
    }

    /// The value of a key; tells if it has to be there and is not.
    fn present(&self, key: &Key, findings: &mut Findings) -> Option<&'t Spanned<DeValue<'t>>> {
        let value = self.value(key.name);
        if value.is_none() && matches!(key.absent, Absent::Mistake) {
            self.missing(key.name, findings);
        }
        value
    }

    fn whole(
        &self,
        name: &str,
        value: &Spanned<DeValue<'_>>,
        (least, most, limit): (u64, u64, &str),
        findings: &mut Findings,
    ) -> Option<u64> {
        let DeValue::Integer(integer) = value.get_ref() else {
            self.wrong_type(name, value, findings);
            return None;
        };
        let number = i128::from_str_radix(integer.as_str(), integer.radix()).unwrap_or(i128::MAX);
        match u64::try_from(number) {
            Ok(number) if (least..=most).contains(&number) => Some(number),
            _ => {
                let is = quoted(&integer.to_string());
                let message = format!("`{name}` is {is}: {least} to {most} is expected ({limit})");
                findings.push(Finding::new(Kind::Limit, value.span(), message));
                None
            }
        }
    }

    /// A text as its key wants it.
    fn checked(&self, key: &Key, text: &str, at: Range<usize>, findings: &mut Findings) -> Option<String> {
        let name = key.name;
        let mut refuse = |kind, why: String| {
            findings.push(Finding::new(kind, at.clone(), format!("`{name}` is {}: {why}", quoted(text))));
            None
        };
        if text.len() > MAX_TEXT {
            return refuse(Kind::Limit, format!("at most {MAX_TEXT} bytes (MAX_TEXT)"));
        }
        if text.is_empty() || text.chars().any(char::is_control) {
            return refuse(
                Kind::Value,
                "a text that is not empty and has no control characters is expected".into(),
            );
        }
        match key.form {
            Form::Name | Form::Names(..) | Form::Label | Form::Labels(..) if text.len() > MAX_NAME => {
                refuse(Kind::Limit, format!("at most {MAX_NAME} bytes (MAX_NAME)"))
            }
            Form::Name | Form::Names(..) if !is_name(text) => {
                refuse(Kind::Value, "a name of letters, digits, `_`, `-` and `.` is expected".into())
            }
            Form::Label | Form::Labels(..) if text.contains([':', ',']) => {
                refuse(Kind::Value, "a name without `:` and `,` is expected".into())
            }
            Form::Word(known) | Form::Words(known) if !known.contains(&text) => {
                let why = format!("one of {} is expected", known.join(", "));
                let help = nearest(text, known.iter().copied()).map(|near| format!("did you mean `{near}`?"));
                let finding = Finding::new(Kind::Value, at, format!("`{name}` is {}: {why}", quoted(text)));
                findings.push(match help {
                    Some(help) => finding.help(help),
                    None => finding,
                });
                None
            }
            Form::Address => match text.parse::<Address>() {
                Ok(address) => Some(address.to_string()),
                Err(error) => {
                    let message = format!("`{name}`: {error}");
                    findings.push(Finding::new(Kind::Value, at, cut(message)));
                    None
                }
            },
            _ => Some(text.to_owned()),
        }
    }
}

/// The form of a value in a few words.
pub fn words(form: &Form) -> String {
    match form {
        Form::Number(..) => "a number".into(),
        Form::Numbers(..) => "a list of numbers".into(),
        Form::Quantity(measure, ..) => measure.form().into(),
        Form::Flag => "true or false".into(),
        Form::Name | Form::Label => "a name".into(),
        Form::Names(..) => "a name or a list of names".into(),
        Form::Labels(..) => "a list of names".into(),
        Form::Text => "a text".into(),
        Form::Texts => "a list of texts".into(),
        Form::Word(known) => format!("one of \"{}\"", known.join("\", \"")),
        Form::Words(known) => format!("a list of \"{}\"", known.join("\", \"")),
        Form::Address => "an address, such as \"127.0.0.1:9559\"".into(),
        Form::Special(form, _) => (*form).into(),
        Form::Section => "a table".into(),
        Form::Sections(_) => "tables".into(),
    }
}

/// Whether a text is a name: letters, digits, `_`, `-` and `.` of ASCII, and no sign first.
pub fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    text.bytes().all(is_plain)
        && text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// A message that repeats a text of the file, at a bearable length.
fn cut(message: String) -> String {
    match message.char_indices().nth(300) {
        Some((end, _)) => format!("{}...", &message[..end]),
        None => message,
    }
}
