//! JSON with places: each value is a piece of the text, read when it is asked for.

use super::decimal::At;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;
use std::ops::Range;

/// A value of a text. What is in it is passed over until it is asked for, so that nesting costs no stack.
#[derive(Clone, Copy, Debug)]
pub(super) struct Json<'t> {
    text: &'t str,
    raw: &'t str,
}

/// The keys of an object and their values, in the order of the text.
struct Object<'t>(Vec<(String, &'t RawValue)>);

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut keys = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    keys.push(entry);
                }
                Ok(Object(keys))
            }
        }
        deserializer.deserialize_map(Keys)
    }
}

impl<'t> Json<'t> {
    /// The value that a text is.
    ///
    /// # Errors
    /// The text is no JSON: where and why.
    pub(super) fn parse(text: &'t str) -> Result<Json<'t>, At<String>> {
        match serde_json::from_str::<&RawValue>(text) {
            Ok(raw) => Ok(Json { text, raw: raw.get() }),
            Err(error) => {
                let lines = text.split_inclusive('\n').take(error.line().saturating_sub(1));
                let start: usize = lines.map(str::len).sum();
                let at = (start + error.column().saturating_sub(1)).min(text.len());
                let why = error.to_string();
                let why = why.split(" at line ").next().unwrap_or(&why).to_owned();
                Err(At { is: why, at: at..at })
            }
        }
    }

    /// Its bytes in the text.
    pub(super) fn at(self) -> Range<usize> {
        let start = self.raw.as_ptr() as usize - self.text.as_ptr() as usize;
        start..start + self.raw.len()
    }

    fn mistake(self, expected: &str) -> At<String> {
        At { is: format!("{expected} is expected"), at: self.at() }
    }

    /// The keys and values of an object; each key once.
    pub(super) fn object(self) -> Result<Vec<(String, Json<'t>)>, At<String>> {
        let object: Object<'t> = serde_json::from_str(self.raw).map_err(|_| self.mistake("an object"))?;
        let mut keys: Vec<(String, Json<'t>)> = Vec::with_capacity(object.0.len());
        for (key, raw) in object.0 {
            keys.push((key, Json { text: self.text, raw: raw.get() }));
        }
        let mut sorted: Vec<&str> = keys.iter().map(|(key, _)| key.as_str()).collect();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(At { is: format!("the key `{}` is there twice", pair[0]), at: self.at() });
        }
        Ok(keys)
    }

    /// The elements of a list.
    pub(super) fn list(self) -> Result<Vec<Json<'t>>, At<String>> {
        let elements: Vec<&'t RawValue> =
            serde_json::from_str(self.raw).map_err(|_| self.mistake("a list"))?;
        Ok(elements.into_iter().map(|raw| Json { text: self.text, raw: raw.get() }).collect())
    }

    /// A text.
    pub(super) fn string(self) -> Result<String, At<String>> {
        serde_json::from_str(self.raw).map_err(|_| self.mistake("a text"))
    }

    /// A number as it is written, or a text.
    pub(super) fn amount(self) -> Result<String, At<String>> {
        match self.raw.starts_with('"') {
            true => self.string(),
            false if self.raw.starts_with(|c: char| c.is_ascii_digit() || c == '-') => {
                Ok(self.raw.to_owned())
            }
            false => Err(self.mistake("a number")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_know_where_they_are() {
        let text = "{ \"a\": [1, \"two\"],\n  \"b\": 2.5 }";
        let keys = Json::parse(text).and_then(Json::object).expect("an object");
        let a = keys[0].1.list().expect("a list");
        assert_eq!((&text[a[1].at()], a[1].string().ok()), ("\"two\"", Some("two".into())));
        assert_eq!((keys[1].0.as_str(), keys[1].1.amount().ok()), ("b", Some("2.5".into())));
        assert_eq!(keys[1].1.list().unwrap_err().at, keys[1].1.at());
    }

    #[test]
    fn mistakes_have_their_place() {
        let error = Json::parse("{\n  \"a\": nonsense\n}").unwrap_err();
        assert_eq!(error.at.start, 2 + 8);
        let twice = Json::parse("{\"a\": 1, \"a\": 2}").and_then(Json::object).unwrap_err();
        assert!(twice.is.contains("twice"));
        // Depth costs no stack: what is not asked for is passed over.
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let list = Json::parse(&deep).and_then(Json::list).expect("a list");
        assert!(list.len() == 1 && list[0].object().is_err());
    }
}
