//! A message as it comes: read whole, bounded in bytes and time, before anything is made of it.
//!
//! The binary protocol announces lengths of strings and lists, and the library takes memory for what is announced. Here
//! memory is taken for bytes that have come; what is decoded then lies in memory, so that no length is beyond it.

use crate::limits::Charge;
use millrace_thrift_api::limits::{MAX_LIST, MAX_MESSAGE, MAX_NESTING};
use std::io::{self, ErrorKind, Read};

/// Bytes that are read at a time.
const PART: usize = 16 << 10;
/// The longest name of a call.
const MAX_NAME: usize = 1024;

/// Reads one message, with what its memory counts for.
///
/// # Errors
/// The connection is broken or too slow, or what comes is no message within the limits.
pub(crate) fn read(from: &mut impl Read, charge: &mut Charge) -> io::Result<Vec<u8>> {
    let mut message = Message { from, charge, bytes: Vec::new() };
    let first = message.number()?;
    match first >> 16 {
        // With a version: type, name, sequence number.
        0x8001 => {
            let length = message.length(MAX_NAME)?;
            message.more(length)?;
            message.more(4)?;
        }
        0x8000.. => return Err(wrong("another version of the protocol")),
        // Without: the length of the name, the name, type, sequence number.
        _ => {
            message.more(limited(first, MAX_NAME)?)?;
            message.more(5)?;
        }
    }
    message.value(STRUCT, 0)?;
    Ok(message.bytes)
}

const STRUCT: u8 = 12;

struct Message<'a, R> {
    from: &'a mut R,
    charge: &'a mut Charge,
    bytes: Vec<u8>,
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

/// A length that was announced.
fn limited(length: u32, most: usize) -> io::Result<usize> {
    let is_fine = |length: &usize| *length <= most;
    usize::try_from(length).ok().filter(is_fine).ok_or_else(|| wrong("a length above its limit"))
}

impl<R: Read> Message<'_, R> {
    /// Takes so many bytes more.
    fn more(&mut self, count: usize) -> io::Result<()> {
        if self.bytes.len() + count > MAX_MESSAGE {
            return Err(wrong("the message is too long"));
        }
        let mut left = count;
        while left > 0 {
            let part = left.min(PART);
            self.charge.take(part)?;
            self.bytes.try_reserve(part).map_err(|_| ErrorKind::OutOfMemory)?;
            let start = self.bytes.len();
            self.bytes.resize(start + part, 0);
            self.from.read_exact(&mut self.bytes[start..])?;
            left -= part;
        }
        Ok(())
    }

    fn byte(&mut self) -> io::Result<u8> {
        self.more(1)?;
        Ok(self.bytes[self.bytes.len() - 1])
    }

    fn number(&mut self) -> io::Result<u32> {
        self.more(4)?;
        let last = self.bytes.last_chunk::<4>().ok_or_else(|| wrong("a number"))?;
        Ok(u32::from_be_bytes(*last))
    }

    fn length(&mut self, most: usize) -> io::Result<usize> {
        limited(self.number()?, most)
    }

    /// Takes a value of a type (Thrift's binary protocol, "Struct" and "List and Set").
    fn value(&mut self, kind: u8, depth: usize) -> io::Result<()> {
        if depth > MAX_NESTING {
            return Err(wrong("too deep"));
        }
        match kind {
            2 | 3 => self.more(1),
            6 => self.more(2),
            8 => self.more(4),
            4 | 10 => self.more(8),
            16 => self.more(16),
            11 => {
                let length = self.length(MAX_MESSAGE)?;
                self.more(length)
            }
            STRUCT => loop {
                match self.byte()? {
                    0 => return Ok(()),
                    kind => {
                        self.more(2)?;
                        self.value(kind, depth + 1)?;
                    }
                }
            },
            13 => {
                let (key, value) = (self.byte()?, self.byte()?);
                for _ in 0..self.length(MAX_LIST)? {
                    self.value(key, depth + 1)?;
                    self.value(value, depth + 1)?;
                }
                Ok(())
            }
            14 | 15 => {
                let element = self.byte()?;
                for _ in 0..self.length(MAX_LIST)? {
                    self.value(element, depth + 1)?;
                }
                Ok(())
            }
            _ => Err(wrong("no type of the protocol")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Budget;
    use std::sync::Arc;

    fn taken(mut bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut charge = Charge::new(&Arc::<Budget>::default());
        read(&mut bytes, &mut charge)
    }

    #[test]
    fn a_message_is_taken_to_its_end_and_no_further() {
        let mut call = vec![0x80, 1, 0, 1, 0, 0, 0, 1, b'x', 0, 0, 0, 7];
        // A list of two structures, a map of a byte to a set, an i64.
        call.extend([15, 0, 1, 12, 0, 0, 0, 2, 8, 0, 1, 0, 0, 0, 5, 0, 0]);
        call.extend([13, 0, 2, 3, 14, 0, 0, 0, 1, 9, 6, 0, 0, 0, 1, 0, 3]);
        call.extend([10, 0, 3, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
        let two = [&call[..], &call].concat();
        assert_eq!(taken(&two).unwrap(), call);
        for cut in 0..call.len() {
            assert_eq!(taken(&call[..cut]).unwrap_err().kind(), ErrorKind::UnexpectedEof, "{cut}");
        }
        let older = [&[0, 0, 0, 1, b'x', 1, 0, 0, 0, 7][..], &[0]].concat();
        assert_eq!(taken(&older).unwrap(), older);
    }

    #[test]
    fn announced_lengths_take_no_memory() {
        let call = [0x80, 1, 0, 1, 0, 0, 0, 1, b'x', 0, 0, 0, 7];
        let mut charge = Charge::new(&Arc::<Budget>::default());
        // A string of 8 MiB, of which nothing comes.
        let bytes = [&call[..], &[11, 0, 1, 0, 0x7f, 0, 0]].concat();
        let mut message = Message { from: &mut &bytes[..], charge: &mut charge, bytes: Vec::new() };
        message.more(call.len()).unwrap();
        assert!(message.value(STRUCT, 0).is_err());
        assert!(message.bytes.capacity() < 4 * PART, "{}", message.bytes.capacity());
    }
}
