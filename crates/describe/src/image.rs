//! Images: a compiled program as a file, which runs without its source.
//!
//! An image is JSON text, one object:
//!
//! | key | value |
//! | --- | --- |
//! | `millrace_image` | the version of the format, a number |
//! | `program` | the name of the program |
//! | `architecture` | the architecture that it was written for |
//! | `p4info` | its P4Info, protobuf text |
//! | `controller_headers` | the widths of the fields of `packet_in` and `packet_out` in the data plane |
//! | `ir` | the program itself, the text form of the pipeline IR |
//! | `actions`, `header_types`, `pipelines`, ... | the [description](crate::bmv2) for clients of bmv2 |
//!
//! Name, architecture and description are for others; the IR has them too.
//!
//! Keys that are not known are left alone, so that a later version can add some that do not change the meaning.

use crate::bmv2;
use crate::p4info::{Description, to_text};
use millrace_messages::config::P4Info;
use millrace_pipeline::{Program, limits, text, verify};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The version of the format that is written, and the newest that is read.
pub const IMAGE_VERSION: u64 = 2;
/// Longest image that is read, in bytes.
pub const MAX_IMAGE: usize = 32 << 20;

const VERSION: &str = "millrace_image";
const HEADERS: &str = "controller_headers";

/// A compiled program with its description.
#[derive(Clone, Debug, PartialEq)]
pub struct Image {
    /// The program, which is verified.
    pub program: Arc<Program>,
    /// What controllers see of it.
    pub p4info: P4Info,
    /// The widths of the fields of controller headers in the data plane, by the name of the header: P4Info has those that
    /// controllers see.
    pub controller_headers: BTreeMap<String, Vec<u32>>,
}

/// Why bytes are no image that can be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageError {
    /// It has more than [`MAX_IMAGE`] bytes: so many.
    TooLong(usize),
    /// It is no JSON text: why.
    Json(String),
    /// It ends too early.
    Truncated,
    /// It is JSON text for bmv2, which p4c wrote.
    Bmv2,
    /// It is JSON text of another kind.
    Foreign,
    /// Its version is not known: newer than this program.
    Version(u64),
    /// A key is missing or has a value of a wrong kind.
    Key(&'static str),
    /// Its P4Info is not understood: why.
    P4Info(String),
    /// The text of the IR is not understood, or the program breaks its rules.
    Ir(String),
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImageError::TooLong(bytes) => {
                write!(f, "the image has {bytes} bytes, the limit is {MAX_IMAGE}")
            }
            ImageError::Json(error) => write!(f, "the image is no JSON text: {error}"),
            ImageError::Truncated => f.write_str("the image is cut off: its end is missing"),
            ImageError::Bmv2 => f.write_str(
                "this is JSON that p4c wrote for bmv2, not an image of Millrace: \
                 compile the P4 program with `millrace compile` or with the p4c that comes with it",
            ),
            ImageError::Foreign => {
                write!(
                    f,
                    "this JSON text is not an image of Millrace: it has no `{VERSION}` (`millrace compile PROG -o IMAGE` makes one)"
                )
            }
            ImageError::Version(version) => write!(
                f,
                "the image has version {version} of the format, which is newer than this Millrace: \
                 it reads version {IMAGE_VERSION} (`millrace compile PROG -o IMAGE` makes one that it reads)"
            ),
            ImageError::Key(key) => {
                write!(f, "the image is damaged: `{key}` is missing or not what it should be")
            }
            ImageError::P4Info(reason) => write!(f, "the image is damaged: its P4Info is wrong: {reason}"),
            ImageError::Ir(reason) => write!(f, "the image is damaged: its program is wrong: {reason}"),
        }
    }
}

impl std::error::Error for ImageError {}

impl Image {
    /// The image of a verified program with its description.
    pub fn new(program: Arc<Program>, description: Description) -> Image {
        let Description { info, controller_headers } = description;
        Image { program, p4info: info, controller_headers }
    }

    /// Whether that is meant to be an image, and not the text of a program: P4 has nothing that begins with a brace.
    pub fn looks_like(bytes: &[u8]) -> bool {
        bytes.trim_ascii_start().first() == Some(&b'{')
    }

    /// Reads an image and checks its program.
    ///
    /// # Errors
    /// [`ImageError`].
    pub fn read(bytes: &[u8]) -> Result<Image, ImageError> {
        let keys = Keys::read(bytes)?;
        let program = keys.program()?;
        let controller_headers = keys.0.get(HEADERS).and_then(headers).ok_or(ImageError::Key(HEADERS))?;
        let p4info = millrace_messages::text::read(keys.word("p4info")?).map_err(ImageError::P4Info)?;
        Ok(Image { program, p4info, controller_headers })
    }
}

/// Reads and checks the program of an image, or of what [`text_without_p4info`] has made.
///
/// # Errors
/// [`ImageError`].
pub fn read_program(bytes: &[u8]) -> Result<Arc<Program>, ImageError> {
    Keys::read(bytes)?.program()
}

/// As an image is written, of a program alone: [`read_program`] reads it.
pub fn text_without_p4info(program: &Program) -> String {
    format!("{:#}\n", object(program))
}

/// The keys of an image that follow from its program.
fn object(program: &Program) -> Value {
    let mut object = bmv2::description(program);
    object[VERSION] = IMAGE_VERSION.into();
    object["architecture"] = program.architecture.as_str().into();
    object["ir"] = text::print(program).into();
    object
}

/// The keys of an image. Values that are not read are left out.
struct Keys(BTreeMap<String, Value>);

impl Keys {
    /// Of a version that this program knows.
    fn read(bytes: &[u8]) -> Result<Keys, ImageError> {
        if bytes.len() > MAX_IMAGE {
            return Err(ImageError::TooLong(bytes.len()));
        }
        let keys: Keys = serde_json::from_slice(bytes).map_err(|error| {
            if error.is_eof() { ImageError::Truncated } else { ImageError::Json(error.to_string()) }
        })?;
        let version = keys.0.get(VERSION).ok_or_else(|| {
            let is_bmv2 = keys.0.contains_key("pipelines") && keys.0.contains_key("header_types");
            if is_bmv2 { ImageError::Bmv2 } else { ImageError::Foreign }
        })?;
        match version.as_u64().ok_or(ImageError::Key(VERSION))? {
            1..=IMAGE_VERSION => Ok(keys),
            0 => Err(ImageError::Key(VERSION)),
            newer => Err(ImageError::Version(newer)),
        }
    }

    fn word(&self, key: &'static str) -> Result<&str, ImageError> {
        self.0.get(key).and_then(Value::as_str).ok_or(ImageError::Key(key))
    }

    fn program(&self) -> Result<Arc<Program>, ImageError> {
        let program = text::parse(self.word("ir")?).map_err(|error| ImageError::Ir(error.to_string()))?;
        verify(&program)
            .map_err(|errors| ImageError::Ir(errors.first().map(ToString::to_string).unwrap_or_default()))?;
        Ok(Arc::new(program))
    }
}

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Keys, D::Error> {
        from.deserialize_map(KeysVisitor)
    }
}

struct KeysVisitor;

impl<'de> Visitor<'de> for KeysVisitor {
    type Value = Keys;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
        let mut keys = BTreeMap::new();
        while let Some(key) = map.next_key::<String>()? {
            let value = match [VERSION, HEADERS, "p4info", "ir"].contains(&key.as_str()) {
                true => map.next_value()?,
                false => map.next_value::<IgnoredAny>().map(|_| Value::Null)?,
            };
            keys.insert(key, value);
        }
        Ok(Keys(keys))
    }
}

/// The widths of the fields of controller headers.
fn headers(value: &Value) -> Option<BTreeMap<String, Vec<u32>>> {
    let width = |value: &Value| {
        let width = u32::try_from(value.as_u64()?).ok()?;
        (1..=limits::MAX_WIDTH).contains(&width).then_some(width)
    };
    let header = |(name, widths): (&String, &Value)| {
        Some((name.clone(), widths.as_array()?.iter().map(width).collect::<Option<_>>()?))
    };
    value.as_object()?.iter().map(header).collect()
}

impl fmt::Display for Image {
    /// The image as it is written to a file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut object = object(&self.program);
        object["p4info"] = to_text(&self.p4info).into();
        object[HEADERS] = self.controller_headers.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        writeln!(f, "{object:#}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image() -> Image {
        let program = text::parse(
            "program \"a \\\"b\\\"\" architecture \"v1model\" errors (NoError) metadata x: bit<8> \
             body control c { block0: x = 8w1 end }",
        );
        Image {
            program: Arc::new(program.unwrap()),
            p4info: millrace_messages::text::read("pkg_info { arch: \"v1model\" }").unwrap(),
            controller_headers: [("packet_in".into(), vec![9, 7])].into(),
        }
    }

    fn refused(text: &str) -> ImageError {
        Image::read(text.as_bytes()).unwrap_err()
    }

    #[test]
    fn what_is_written_is_read() {
        let written = image().to_string();
        assert!(Image::looks_like(written.as_bytes()));
        assert_eq!(Image::read(written.as_bytes()), Ok(image()));
    }

    #[test]
    fn programs_are_no_images() {
        for program in ["#include <core.p4>", "/* { */", "", " \n", "header_type h {"] {
            assert!(!Image::looks_like(program.as_bytes()), "{program}");
        }
    }

    /// Whatever the place where it is cut.
    #[test]
    fn a_truncated_image_is_refused() {
        let written = image().to_string();
        for end in 1..written.trim_end().len() {
            assert_eq!(refused(&written[..end]), ImageError::Truncated, "{end}");
        }
    }

    #[test]
    fn other_files_are_refused_with_what_they_are() {
        assert_eq!(refused("{\"header_types\": [], \"pipelines\": [], \"__meta__\": {}}"), ImageError::Bmv2);
        assert_eq!(refused("{\"a\": 1}"), ImageError::Foreign);
        assert_eq!(refused("{\"millrace_image\": 3}"), ImageError::Version(3));
        assert_eq!(refused("{\"millrace_image\": \"1\"}"), ImageError::Key(VERSION));
        assert_eq!(refused("{\"millrace_image\": 1, \"p4info\": \"\"}"), ImageError::Key("ir"));
        assert!(matches!(refused("{]"), ImageError::Json(_)));
        assert!(matches!(refused("[]"), ImageError::Json(_)));
        assert!(matches!(Image::read(b"{\"\xff\": 1}"), Err(ImageError::Json(_))));
        let long = vec![b' '; MAX_IMAGE + 1];
        assert_eq!(Image::read(&long), Err(ImageError::TooLong(MAX_IMAGE + 1)));
    }

    /// An engine would rely on what the verifier checks.
    #[test]
    fn a_program_that_breaks_rules_is_refused() {
        let written = image().to_string();
        for (from, to) in [("8w1", "9w1"), ("8w1", "?"), ("bit<8>", "bit<0>")] {
            let broken = written.replacen(from, to, 1);
            assert_ne!(broken, written);
            assert!(matches!(refused(&broken), ImageError::Ir(_)), "{to}");
        }
    }

    #[test]
    fn p4info_that_is_not_understood_is_refused() {
        let written = image().to_string();
        let broken = written.replacen("pkg_info {", "pkg_info [", 1);
        assert_ne!(broken, written);
        assert_eq!(refused(&broken), ImageError::P4Info("4:10: `{` is expected there".into()));
    }
}
