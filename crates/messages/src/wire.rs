//! Protobuf's binary form, field by field.

/// What a field has in the binary form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A number of any length.
    Varint(u64),
    /// Four or eight bytes.
    Fixed(&'a [u8]),
    /// A text, bytes, a message, or numbers one after the other.
    Bytes(&'a [u8]),
}

/// The fields of a message, with their numbers. It ends at the first field that cannot be understood; groups are none.
#[derive(Clone, Debug)]
pub struct Fields<'a>(&'a [u8]);

/// The fields of a message.
pub fn fields(message: &[u8]) -> Fields<'_> {
    Fields(message)
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u64, Value<'a>);

    fn next(&mut self) -> Option<(u64, Value<'a>)> {
        let tag = varint(&mut self.0)?;
        let value = match tag & 7 {
            0 => Value::Varint(varint(&mut self.0)?),
            1 => Value::Fixed(self.take(8)?),
            2 => {
                let length = usize::try_from(varint(&mut self.0)?).ok()?;
                Value::Bytes(self.take(length)?)
            }
            5 => Value::Fixed(self.take(4)?),
            _ => return None,
        };
        Some((tag >> 3, value))
    }
}

impl<'a> Fields<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }
}

/// Takes a number off the front.
pub fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for (at, byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * at as u32).min(63);
        if byte & 0x80 == 0 {
            *bytes = &bytes[at + 1..];
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_all_lengths() {
        let bytes = [0x08, 0xac, 0x02, 0x12, 2, b'a', b'b', 0x1d, 1, 2, 3, 4, 0x21, 1, 2, 3, 4, 5, 6, 7, 8];
        let found: Vec<_> = fields(&bytes).collect();
        let wanted = [
            (1, Value::Varint(300)),
            (2, Value::Bytes(b"ab")),
            (3, Value::Fixed(&[1, 2, 3, 4])),
            (4, Value::Fixed(&[1, 2, 3, 4, 5, 6, 7, 8])),
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn nonsense_comes_to_an_end() {
        for bytes in
            [&[0xff; 30][..], &[0x1a, 0xff, 0xff, 0xff, 0xff, 0x0f], &[0x0b, 0x0b], &[0x1a], &[0x0d, 1]]
        {
            assert_eq!(fields(bytes).next(), None, "{bytes:?}");
        }
    }
}
