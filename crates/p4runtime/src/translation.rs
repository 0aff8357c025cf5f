//! Values that look otherwise to the controller (`@p4runtime_translation`).
//!
//! A number of the controller is the same number in the data plane, as long as it fits there. For a type that is a text
//! to the controller, a text of decimal digits is that number and any other text gets a number of its own when it is
//! first written; what is read is the text that was written. Requests that only ask take no number.

use crate::refusal::Refusal;
use crate::value;
use millrace_p4runtime_api::config::{P4NamedType, P4TypeInfo, p4_new_type_spec, p4_new_type_translation};
use millrace_pipeline::Bits;
use prost::bytes::Bytes;
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

/// Most texts of one type.
const MAX_TEXTS: usize = 1 << 16;
/// Most bytes of a text.
const MAX_TEXT: usize = 1024;

/// What becomes of a text that has no number yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NewText {
    /// It gets one: it is written.
    Named,
    /// It is not known: something is looked for by it.
    Unknown,
}

/// How the values of one field look to the controller.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Codec {
    /// In the data plane.
    pub(crate) width: u32,
    /// To the controller.
    sdn_width: u32,
    /// The type whose values are texts.
    text_of: Option<String>,
}

impl Codec {
    pub(crate) fn new(
        data: u32,
        sdn: i32,
        type_name: Option<&P4NamedType>,
        types: Option<&P4TypeInfo>,
    ) -> Codec {
        let text_of = type_name.filter(|named| {
            let declared = types.and_then(|types| types.new_types.get(&named.name));
            match declared.and_then(|declared| declared.representation.as_ref()) {
                Some(p4_new_type_spec::Representation::TranslatedType(translation)) => {
                    matches!(translation.sdn_type, Some(p4_new_type_translation::SdnType::SdnString(_)))
                }
                _ => false,
            }
        });
        let sdn_width = u32::try_from(sdn).ok().filter(|width| *width > 0).unwrap_or(data);
        Codec { width: data, sdn_width, text_of: text_of.map(|named| named.name.clone()) }
    }

    pub(crate) fn read(
        &self,
        bytes: &[u8],
        texts: &Mutex<Texts>,
        new_text: NewText,
    ) -> Result<Bits, Refusal> {
        match &self.text_of {
            None => value::unsigned(bytes, self.width.min(self.sdn_width)),
            Some(name) => {
                let text = std::str::from_utf8(bytes)
                    .ok()
                    .filter(|text| !text.is_empty() && text.len() <= MAX_TEXT)
                    .ok_or_else(|| {
                        Refusal::invalid(format!("a text of 1 to {MAX_TEXT} bytes is expected"))
                    })?;
                let mut texts = texts.lock().unwrap_or_else(PoisonError::into_inner);
                match new_text {
                    NewText::Named => texts.number(name, text, self.width),
                    NewText::Unknown => texts
                        .known(name, text, self.width)
                        .ok_or_else(|| Refusal::not_found(format!("there is no `{name}` called {text}"))),
                }
            }
        }
    }

    pub(crate) fn write(&self, value: &Bits, texts: &Texts) -> Bytes {
        match &self.text_of {
            None => value::canonical(value),
            Some(name) => texts.text(name, value).into(),
        }
    }

    /// Whether a controller may leave bits of a value open: texts have no bits.
    pub(crate) fn is_text(&self) -> bool {
        self.text_of.is_some()
    }

    /// The type whose values are texts.
    pub(crate) fn text_of(&self) -> Option<&str> {
        self.text_of.as_deref()
    }
}

/// Numbers by type.
pub(crate) type Numbers = HashMap<String, HashSet<Bits>>;

/// The texts that stand for numbers, by type.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    types: HashMap<String, Known>,
    /// How many texts have found no number.
    refused: u64,
}

#[derive(Debug, Default)]
struct Known {
    numbers: HashMap<String, Bits>,
    texts: HashMap<Bits, String>,
    next: u128,
}

impl Texts {
    /// The number of a text that has one: that it was given, or that it is.
    fn known(&self, name: &str, text: &str, width: u32) -> Option<Bits> {
        let known = self.types.get(name);
        if let Some(number) = known.and_then(|known| known.numbers.get(text)) {
            return Some(number.clone());
        }
        let plain = plain(text).map(u128::from).filter(|number| fits(*number, width))?;
        let value = Bits::new(width, plain);
        known.is_none_or(|known| !known.texts.contains_key(&value)).then_some(value)
    }

    /// How many texts have found no number until now.
    pub(crate) fn refused(&self) -> u64 {
        self.refused
    }

    /// Forgets the texts of all other numbers.
    pub(crate) fn keep(&mut self, held: &Numbers) {
        for (name, known) in &mut self.types {
            let is_held = |number: &Bits| held.get(name).is_some_and(|held| held.contains(number));
            known.numbers.retain(|_, number| is_held(number));
            known.texts.retain(|number, _| is_held(number));
            known.next = 0;
        }
    }

    /// Goes on with the texts that a type had in another program, as far as their numbers fit.
    pub(crate) fn take(&mut self, name: &str, width: u32, before: &Texts) {
        let Some(known) = before.types.get(name).filter(|_| !self.types.contains_key(name)) else { return };
        let fitting = known.numbers.iter().filter_map(|(text, number)| {
            Some((text.clone(), value::unsigned(&number.to_bytes(), width).ok()?))
        });
        let numbers: HashMap<String, Bits> = fitting.collect();
        let texts = numbers.iter().map(|(text, number)| (number.clone(), text.clone())).collect();
        self.types.insert(name.to_owned(), Known { numbers, texts, next: known.next });
    }

    fn number(&mut self, name: &str, text: &str, width: u32) -> Result<Bits, Refusal> {
        let known = self.types.entry(name.to_owned()).or_default();
        if let Some(number) = known.numbers.get(text) {
            return Ok(number.clone());
        }
        let fits = |number: u128| fits(number, width);
        let own = plain(text).map(u128::from);
        let number = match own {
            Some(number) => number,
            None => loop {
                known.next += 1;
                if !fits(known.next) || !known.texts.contains_key(&Bits::new(width, known.next)) {
                    break known.next;
                }
            },
        };
        let value = Bits::new(width, if fits(number) { number } else { 0 });
        if !fits(number) || known.numbers.len() >= MAX_TEXTS {
            // One that does not fit would not if others were freed.
            self.refused += u64::from(own.is_none_or(fits));
            return Err(Refusal::exhausted(format!("there is no number left for the text of a `{name}`")));
        }
        if let Some(other) = known.texts.get(&value) {
            return Err(Refusal::invalid(format!("{text} stands for `{other}` already")));
        }
        known.numbers.insert(text.to_owned(), value.clone());
        known.texts.insert(value.clone(), text.to_owned());
        Ok(value)
    }

    fn text(&self, name: &str, value: &Bits) -> Vec<u8> {
        let known = self.types.get(name).and_then(|known| known.texts.get(value));
        known.cloned().unwrap_or_else(|| value.to_biguint().to_string()).into_bytes()
    }
}

/// The number that a text of digits is.
fn plain(text: &str) -> Option<u64> {
    text.parse::<u64>().ok().filter(|number| number.to_string() == text)
}

fn fits(number: u128, width: u32) -> bool {
    width >= 128 || number >> width == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_as_they_were_written() {
        let texts = Mutex::default();
        let codec = Codec { width: 9, sdn_width: 9, text_of: Some("port_t".into()) };
        let number = |text: &str| codec.read(text.as_bytes(), &texts, NewText::Named);
        assert_eq!(number("7"), Ok(Bits::new(9, 7)));
        let first = number("Ethernet0").unwrap();
        let second = number("Ethernet4").unwrap();
        assert_ne!(first, second);
        assert_eq!(number("Ethernet0"), Ok(first.clone()));
        assert!(number("512").is_err() && number("").is_err());
        assert_eq!(texts.lock().unwrap().refused(), 0, "nothing that is freed would help");
        // Who only looks for something has no text named.
        let known = |text: &str| codec.read(text.as_bytes(), &texts, NewText::Unknown);
        assert_eq!((known("Ethernet0"), known("8")), (number("Ethernet0"), Ok(Bits::new(9, 8))));
        for text in ["Ethernet8", "1", "512"] {
            assert_eq!(known(text).unwrap_err().code, tonic::Code::NotFound, "{text}");
        }
        assert_eq!(texts.lock().unwrap().types["port_t"].numbers.len(), 3);
        let texts = texts.lock().unwrap();
        assert_eq!(codec.write(&second, &texts), "Ethernet4");
        assert_eq!(codec.write(&Bits::new(9, 300), &texts), "300");
    }

    #[test]
    fn numbers_must_fit_both_sides() {
        let texts = Mutex::default();
        let wide = Codec { width: 9, sdn_width: 32, text_of: None };
        let read = |bytes: &[u8]| wide.read(bytes, &texts, NewText::Unknown);
        assert_eq!(read(&[0, 0, 1, 0xff]), Ok(Bits::new(9, 511)));
        assert!(read(&[2, 0]).is_err());
    }

    #[test]
    fn another_program_goes_on_with_the_texts_whose_numbers_fit() {
        let mut before = Texts::default();
        for text in ["300", "a", "b"] {
            before.number("port_t", text, 9).unwrap();
        }
        let mut after = Texts::default();
        after.take("port_t", 8, &before);
        after.take("other_t", 8, &before);
        assert_eq!(after.known("port_t", "b", 8), Some(Bits::new(8, 2)));
        assert_eq!((after.known("port_t", "300", 8), after.types.len()), (None, 1));
        assert_eq!(after.number("port_t", "c", 8), Ok(Bits::new(8, 3)));
        assert_eq!(after.text("port_t", &Bits::new(8, 1)), b"a");
    }
}
