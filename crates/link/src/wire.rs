//! Records on the wire: a length of 4 bytes, a kind of one byte, and what the kind says; numbers have their highest byte first.
//!
//! A record is decoded only when all of it is there and its length is one that its kind may have. Nothing is allocated for a length that
//! was only announced.

use crate::device::{Event, Shape};
use crate::limits::{MAX_FRAME, MAX_RECORD, MAX_TEXT, MAX_WORDS, VERSION};
use std::fmt;

/// What a client says to the server of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToDevice {
    /// The first record: whether the client wants the frames and messages of the device.
    Hello {
        /// Whether it does.
        frames: bool,
    },
    /// Reads registers from an address on.
    Read {
        /// Comes back with the answer.
        tag: u32,
        /// The address of the first.
        address: u32,
        /// How many.
        words: u16,
    },
    /// Writes registers, in this order.
    Write {
        /// Comes back with the answer.
        tag: u32,
        /// Addresses and words.
        writes: Vec<(u32, u32)>,
    },
    /// A frame for a port.
    Frame {
        /// The port.
        port: u16,
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// Something for a part of the device that understands texts.
    Ask {
        /// Comes back with the answer.
        tag: u32,
        /// The number of the part.
        part: u16,
        /// The text.
        text: String,
    },
}

/// What the server says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToHost {
    /// The answer to a hello.
    Hello(Shape),
    /// The registers that were read.
    Words {
        /// That of the request.
        tag: u32,
        /// The registers.
        words: Vec<u32>,
    },
    /// All registers were written.
    Done {
        /// That of the request.
        tag: u32,
    },
    /// What a part of the device has answered.
    Said {
        /// That of the request.
        tag: u32,
        /// The text.
        text: String,
    },
    /// A request was not done.
    Refused(Refused),
    /// What comes from the device by itself.
    Event(Event),
    /// Frames and messages that this client was too slow for, since it was told last.
    Lost {
        /// Frames.
        frames: u64,
        /// Messages.
        messages: u64,
    },
}

/// A request that was not done, or not to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// That of the request; of a hello 0.
    pub tag: u32,
    /// How many of its writes were done.
    pub done: u32,
    /// Why.
    pub why: String,
}

/// Why bytes are no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireError {
    /// A record is announced that is longer than any.
    TooLong(u32),
    /// No such kind of record.
    Kind(u8),
    /// A record of a kind has another length than its kind says.
    Length(u8, usize),
    /// The peer speaks another version, or another protocol.
    Version(u16),
    /// More words than a request may have.
    Words(usize),
    /// A frame, message or text that is longer than such may be.
    Bytes(usize),
    /// A text that is not UTF-8.
    Text,
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WireError::TooLong(length) => {
                write!(
                    f,
                    "a record of {length} bytes is announced, and {MAX_RECORD} are the most (MAX_RECORD)"
                )
            }
            WireError::Kind(kind) => write!(f, "there is no record of kind {kind}"),
            WireError::Length(kind, length) => {
                write!(f, "a record of kind {kind} does not have {length} bytes")
            }
            WireError::Version(other) => {
                write!(f, "the peer speaks version {other} of the host link, this is version {VERSION}")
            }
            WireError::Words(words) => {
                write!(f, "a request for {words} words, and {MAX_WORDS} are the most (MAX_WORDS)")
            }
            WireError::Bytes(bytes) => write!(f, "{bytes} bytes are more than such a record may carry"),
            WireError::Text => f.write_str("a text is not UTF-8"),
        }
    }
}

impl std::error::Error for WireError {}

const HELLO: u8 = 1;
const READ: u8 = 2;
const WRITE: u8 = 3;
const FRAME: u8 = 4;
const WORDS: u8 = 5;
const DONE: u8 = 6;
const REFUSED: u8 = 7;
const MESSAGE: u8 = 8;
const LOST: u8 = 9;
const ASK: u8 = 10;
const SAID: u8 = 11;

/// The length of the record that begins with these four bytes.
///
/// # Errors
/// No record is that long.
pub(crate) fn length(head: [u8; 4]) -> Result<usize, WireError> {
    let length = u32::from_be_bytes(head);
    match usize::try_from(length) {
        Ok(bytes) if (1..=MAX_RECORD).contains(&bytes) => Ok(bytes),
        _ => Err(WireError::TooLong(length)),
    }
}

impl ToDevice {
    /// The record with its length.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            ToDevice::Hello { frames } => Record::of(HELLO).u16(VERSION).byte(u8::from(*frames)).end(),
            ToDevice::Read { tag, address, words } => {
                Record::of(READ).u32(*tag).u32(*address).u16(*words).end()
            }
            ToDevice::Write { tag, writes } => {
                let record = Record::of(WRITE).u32(*tag);
                writes.iter().fold(record, |record, (address, word)| record.u32(*address).u32(*word)).end()
            }
            ToDevice::Frame { port, bytes } => Record::of(FRAME).u16(*port).bytes(bytes).end(),
            ToDevice::Ask { tag, part, text } => {
                Record::of(ASK).u32(*tag).u16(*part).bytes(text.as_bytes()).end()
            }
        }
    }

    /// Of a record without its length.
    ///
    /// # Errors
    /// It is none that a client may send.
    pub fn decode(record: &[u8]) -> Result<ToDevice, WireError> {
        let mut fields = Fields::of(record)?;
        let said = match fields.kind {
            HELLO => {
                version(fields.u16()?)?;
                ToDevice::Hello { frames: fields.byte()? != 0 }
            }
            READ => {
                let (tag, address, words) = (fields.u32()?, fields.u32()?, fields.u16()?);
                at_most(usize::from(words), MAX_WORDS).map_err(WireError::Words)?;
                ToDevice::Read { tag, address, words }
            }
            WRITE => {
                let tag = fields.u32()?;
                at_most(fields.left() / 8, MAX_WORDS).map_err(WireError::Words)?;
                let mut writes = Vec::with_capacity(fields.left() / 8);
                while fields.left() > 0 {
                    writes.push((fields.u32()?, fields.u32()?));
                }
                ToDevice::Write { tag, writes }
            }
            FRAME => ToDevice::Frame { port: fields.u16()?, bytes: fields.bytes(MAX_FRAME)? },
            ASK => {
                let (tag, part) = (fields.u32()?, fields.u16()?);
                ToDevice::Ask { tag, part, text: fields.text_of(MAX_FRAME)? }
            }
            kind => return Err(WireError::Kind(kind)),
        };
        fields.end(said)
    }
}

impl ToHost {
    /// The record with its length.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            ToHost::Hello(shape) => {
                let record = Record::of(HELLO).u16(VERSION).u32(shape.bytes).u16(shape.ports);
                record.bytes(shape.name.as_bytes()).end()
            }
            ToHost::Words { tag, words } => {
                words.iter().fold(Record::of(WORDS).u32(*tag), |record, word| record.u32(*word)).end()
            }
            ToHost::Done { tag } => Record::of(DONE).u32(*tag).end(),
            ToHost::Said { tag, text } => Record::of(SAID).u32(*tag).bytes(text.as_bytes()).end(),
            ToHost::Refused(Refused { tag, done, why }) => {
                Record::of(REFUSED).u32(*tag).u32(*done).bytes(why.as_bytes()).end()
            }
            ToHost::Event(Event::Frame { port, bytes }) => Record::of(FRAME).u16(*port).bytes(bytes).end(),
            ToHost::Event(Event::Message { kind, bytes }) => {
                Record::of(MESSAGE).u32(*kind).bytes(bytes).end()
            }
            ToHost::Lost { frames, messages } => Record::of(LOST).u64(*frames).u64(*messages).end(),
        }
    }

    /// Of a record without its length.
    ///
    /// # Errors
    /// It is none that a server may send.
    pub fn decode(record: &[u8]) -> Result<ToHost, WireError> {
        let mut fields = Fields::of(record)?;
        let said = match fields.kind {
            HELLO => {
                version(fields.u16()?)?;
                let (bytes, ports) = (fields.u32()?, fields.u16()?);
                ToHost::Hello(Shape { name: fields.text()?, bytes, ports })
            }
            WORDS => {
                let tag = fields.u32()?;
                at_most(fields.left() / 4, MAX_WORDS).map_err(WireError::Words)?;
                let mut words = Vec::with_capacity(fields.left() / 4);
                while fields.left() > 0 {
                    words.push(fields.u32()?);
                }
                ToHost::Words { tag, words }
            }
            DONE => ToHost::Done { tag: fields.u32()? },
            SAID => ToHost::Said { tag: fields.u32()?, text: fields.text_of(MAX_FRAME)? },
            REFUSED => {
                let (tag, done) = (fields.u32()?, fields.u32()?);
                ToHost::Refused(Refused { tag, done, why: fields.text()? })
            }
            FRAME => ToHost::Event(Event::Frame { port: fields.u16()?, bytes: fields.bytes(MAX_FRAME)? }),
            MESSAGE => ToHost::Event(Event::Message { kind: fields.u32()?, bytes: fields.bytes(MAX_FRAME)? }),
            LOST => ToHost::Lost { frames: fields.u64()?, messages: fields.u64()? },
            kind => return Err(WireError::Kind(kind)),
        };
        fields.end(said)
    }
}

fn version(other: u16) -> Result<(), WireError> {
    if other == VERSION { Ok(()) } else { Err(WireError::Version(other)) }
}

fn at_most(number: usize, most: usize) -> Result<(), usize> {
    if number <= most { Ok(()) } else { Err(number) }
}

/// A record that is being written.
struct Record(Vec<u8>);

impl Record {
    fn of(kind: u8) -> Record {
        Record(vec![0, 0, 0, 0, kind])
    }

    fn byte(mut self, byte: u8) -> Record {
        self.0.push(byte);
        self
    }

    fn u16(self, number: u16) -> Record {
        self.bytes(&number.to_be_bytes())
    }

    fn u32(self, number: u32) -> Record {
        self.bytes(&number.to_be_bytes())
    }

    fn u64(self, number: u64) -> Record {
        self.bytes(&number.to_be_bytes())
    }

    fn bytes(mut self, bytes: &[u8]) -> Record {
        self.0.extend_from_slice(bytes);
        self
    }

    fn end(mut self) -> Vec<u8> {
        let length = u32::try_from(self.0.len() - 4).unwrap_or(u32::MAX);
        self.0[..4].copy_from_slice(&length.to_be_bytes());
        self.0
    }
}

/// A record that is being read.
struct Fields<'r> {
    kind: u8,
    length: usize,
    rest: &'r [u8],
}

impl<'r> Fields<'r> {
    fn of(record: &'r [u8]) -> Result<Fields<'r>, WireError> {
        let (kind, rest) = record.split_first().ok_or(WireError::TooLong(0))?;
        Ok(Fields { kind: *kind, length: record.len(), rest })
    }

    fn left(&self) -> usize {
        self.rest.len()
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (first, rest) = self.rest.split_first_chunk().ok_or(WireError::Length(self.kind, self.length))?;
        self.rest = rest;
        Ok(*first)
    }

    fn byte(&mut self) -> Result<u8, WireError> {
        self.array().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Result<u16, WireError> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, WireError> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, WireError> {
        self.array().map(u64::from_be_bytes)
    }

    fn bytes(&mut self, most: usize) -> Result<Vec<u8>, WireError> {
        at_most(self.rest.len(), most).map_err(WireError::Bytes)?;
        Ok(std::mem::take(&mut self.rest).to_vec())
    }

    fn text(&mut self) -> Result<String, WireError> {
        self.text_of(MAX_TEXT)
    }

    fn text_of(&mut self, most: usize) -> Result<String, WireError> {
        String::from_utf8(self.bytes(most)?).map_err(|_| WireError::Text)
    }

    fn end<T>(self, said: T) -> Result<T, WireError> {
        if self.rest.is_empty() { Ok(said) } else { Err(WireError::Length(self.kind, self.length)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn to_device() -> impl Strategy<Value = ToDevice> {
        prop_oneof![
            any::<bool>().prop_map(|frames| ToDevice::Hello { frames }),
            (any::<u32>(), any::<u32>(), 0..=4096u16).prop_map(|(tag, address, words)| ToDevice::Read {
                tag,
                address,
                words
            }),
            (any::<u32>(), vec(any::<(u32, u32)>(), 0..20))
                .prop_map(|(tag, writes)| ToDevice::Write { tag, writes }),
            (any::<u16>(), vec(any::<u8>(), 0..200))
                .prop_map(|(port, bytes)| ToDevice::Frame { port, bytes }),
            (any::<u32>(), any::<u16>(), ".{0,40}").prop_map(|(tag, part, text)| ToDevice::Ask {
                tag,
                part,
                text
            }),
        ]
    }

    fn to_host() -> impl Strategy<Value = ToHost> {
        prop_oneof![
            (".{0,40}", any::<u32>(), any::<u16>()).prop_map(|(name, bytes, ports)| ToHost::Hello(Shape {
                name,
                bytes,
                ports
            })),
            (any::<u32>(), vec(any::<u32>(), 0..20)).prop_map(|(tag, words)| ToHost::Words { tag, words }),
            any::<u32>().prop_map(|tag| ToHost::Done { tag }),
            (any::<u32>(), ".{0,40}").prop_map(|(tag, text)| ToHost::Said { tag, text }),
            (any::<u32>(), any::<u32>(), ".{0,40}").prop_map(|(tag, done, why)| ToHost::Refused(Refused {
                tag,
                done,
                why
            })),
            (any::<u16>(), vec(any::<u8>(), 0..200))
                .prop_map(|(port, bytes)| ToHost::Event(Event::Frame { port, bytes })),
            (any::<u32>(), vec(any::<u8>(), 0..200))
                .prop_map(|(kind, bytes)| ToHost::Event(Event::Message { kind, bytes })),
            any::<(u64, u64)>().prop_map(|(frames, messages)| ToHost::Lost { frames, messages }),
        ]
    }

    proptest! {
        #[test]
        fn what_is_encoded_decodes_to_the_same(device in to_device(), host in to_host()) {
            let record = device.encode();
            prop_assert_eq!(length([record[0], record[1], record[2], record[3]]), Ok(record.len() - 4));
            prop_assert_eq!(ToDevice::decode(&record[4..]), Ok(device));
            prop_assert_eq!(ToHost::decode(&host.encode()[4..]), Ok(host));
        }

        /// Whatever decodes is the record of what it decodes to.
        #[test]
        fn any_bytes_are_a_record_or_an_error(record in vec(any::<u8>(), 0..80)) {
            if let Ok(said) = ToDevice::decode(&record) {
                let again = said.encode();
                // Any byte but 0 says yes.
                let is_hello = matches!(said, ToDevice::Hello { frames: true });
                prop_assert!(again[4..] == record[..] || is_hello);
            }
            if let Ok(said) = ToHost::decode(&record) {
                prop_assert_eq!(&said.encode()[4..], &record[..]);
            }
        }
    }

    #[test]
    fn records_by_hand() {
        let read = ToDevice::Read { tag: 7, address: 0x10, words: 2 };
        assert_eq!(read.encode(), [0, 0, 0, 11, 2, 0, 0, 0, 7, 0, 0, 0, 0x10, 0, 2]);
        assert_eq!(ToHost::Done { tag: 7 }.encode(), [0, 0, 0, 5, 6, 0, 0, 0, 7]);
    }

    #[test]
    fn what_is_too_long_is_refused_before_it_is_there() {
        assert_eq!(length(0u32.to_be_bytes()), Err(WireError::TooLong(0)));
        assert_eq!(length(u32::MAX.to_be_bytes()), Err(WireError::TooLong(u32::MAX)));
        assert_eq!(length((MAX_RECORD as u32).to_be_bytes()), Ok(MAX_RECORD));
        let most = ToDevice::Write { tag: 0, writes: vec![(0, 0); MAX_WORDS] }.encode();
        assert!(most.len() - 4 <= MAX_RECORD);
        assert!(ToDevice::decode(&most[4..]).is_ok());
        let more = ToDevice::Write { tag: 0, writes: vec![(0, 0); MAX_WORDS + 1] }.encode();
        assert_eq!(ToDevice::decode(&more[4..]), Err(WireError::Words(MAX_WORDS + 1)));
        let frame = ToHost::Event(Event::Frame { port: 0, bytes: vec![0; MAX_FRAME + 1] }).encode();
        assert_eq!(ToHost::decode(&frame[4..]), Err(WireError::Bytes(MAX_FRAME + 1)));
        let text = ToDevice::Ask { tag: 0, part: 0, text: "x".repeat(MAX_FRAME + 1) }.encode();
        assert_eq!(ToDevice::decode(&text[4..]), Err(WireError::Bytes(MAX_FRAME + 1)));
        assert_eq!(ToDevice::decode(&[10, 0, 0, 0, 0, 0, 0, 0xff]), Err(WireError::Text));
        assert_eq!(ToDevice::decode(&[1, 0, 9, 0]), Err(WireError::Version(9)));
        assert_eq!(ToDevice::decode(&[5]), Err(WireError::Kind(5)));
    }
}
