//! Byte strings (specification, "Bytestrings"): the shortest big-endian string that fits the number is what the server
//! sends; any longer one of the same number is understood.

use crate::refusal::Refusal;
use millrace_pipeline::Bits;
use prost::bytes::Bytes;

/// A number of a `bit<W>`.
pub(crate) fn unsigned(bytes: &[u8], width: u32) -> Result<Bits, Refusal> {
    if bytes.is_empty() {
        return Err(Refusal::out_of_range("an empty byte string is no number"));
    }
    let short = without_zeroes(bytes);
    let bits = short.len() as u64 * 8 - short.first().map_or(0, |first| u64::from(first.leading_zeros()));
    if bits > u64::from(width) {
        return Err(Refusal::out_of_range(format!("the number takes {bits} bits, the field has {width}")));
    }
    Ok(Bits::from_bytes(width, short))
}

/// A number of an `int<W>`, in two's complement.
pub(crate) fn signed(bytes: &[u8], width: u32) -> Result<Bits, Refusal> {
    if bytes.is_empty() {
        return Err(Refusal::out_of_range("an empty byte string is no number"));
    }
    let short = without_sign_bytes(bytes);
    let sign = short[0] & 0x80 != 0;
    let same = if sign { short[0].leading_ones() } else { short[0].leading_zeros() };
    let bits = short.len() as u64 * 8 - u64::from(same) + 1;
    if bits > u64::from(width) {
        return Err(Refusal::out_of_range(format!(
            "the number takes {bits} bits with its sign, the field has {width}"
        )));
    }
    let given = u32::try_from(short.len() * 8).unwrap_or(u32::MAX);
    let value = Bits::from_bytes(given, short);
    Ok(if given < width { value.sign_extend(width) } else { Bits::from_bytes(width, short) })
}

/// The canonical string of an unsigned number that a client wrote, in memory of its own: what is kept of a request is not
/// to keep all of it.
pub(crate) fn shortest(bytes: &[u8]) -> Bytes {
    Bytes::copy_from_slice(match without_zeroes(bytes) {
        [] => &bytes[..bytes.len().min(1)],
        short => short,
    })
}

/// The canonical string of an unsigned number.
pub(crate) fn canonical(value: &Bits) -> Bytes {
    let bytes = value.to_bytes();
    let short = without_zeroes(&bytes);
    Bytes::copy_from_slice(if short.is_empty() { &[0] } else { short })
}

/// The canonical string of a signed number.
pub(crate) fn canonical_signed(value: &Bits) -> Bytes {
    let whole = value.width().div_ceil(8) * 8;
    let bytes = value.sign_extend(whole.max(8)).to_bytes();
    Bytes::copy_from_slice(without_sign_bytes(&bytes))
}

fn without_zeroes(bytes: &[u8]) -> &[u8] {
    let first = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len());
    &bytes[first..]
}

/// Without the bytes in front that only repeat the sign; at least one stays.
fn without_sign_bytes(mut bytes: &[u8]) -> &[u8] {
    while let [first @ (0 | 0xff), second, ..] = bytes
        && (first & 0x80) == (second & 0x80)
    {
        bytes = &bytes[1..];
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use tonic::Code;

    /// The specification's table "Examples of Valid Bytestring Encoding".
    #[test]
    fn the_specifications_valid_strings() {
        for (width, value, bytes, symmetric) in [
            (8, 99, &b"\x63"[..], true),
            (16, 99, b"\x00\x63", false),
            (16, 99, b"\x63", true),
            (16, 12388, b"\x30\x64", true),
            (16, 12388, b"\x00\x30\x64", false),
            (12, 99, b"\x00\x63", false),
            (12, 99, b"\x63", true),
            (12, 99, b"\x00\x00\x63", false),
        ] {
            let read = unsigned(bytes, width).unwrap();
            assert_eq!(read, Bits::new(width, value));
            assert_eq!(canonical(&read) == bytes, symmetric);
        }
        for (width, value, bytes, symmetric) in [
            (8, 99i128, &b"\x63"[..], true),
            (8, -99, b"\x9d", true),
            (8, -99, b"\xff\x9d", false),
            (12, -739, b"\xfd\x1d", true),
            (16, 0, b"\x00\x00", false),
            (16, 0, b"\x00", true),
        ] {
            let read = signed(bytes, width).unwrap();
            assert_eq!(read, Bits::new(width, value as u128), "{bytes:?}");
            assert_eq!(canonical_signed(&read) == bytes, symmetric, "{bytes:?}");
        }
    }

    /// The specification's table "Examples of Invalid Bytestring Encoding".
    #[test]
    fn the_specifications_invalid_strings() {
        for (width, bytes) in [
            (8, &b"\x01\x63"[..]),
            (8, b""),
            (16, b"\x01\x00\x63"),
            (12, b"\x10\x63"),
            (12, b"\x01\x00\x63"),
            (12, b"\x00\x40\x63"),
        ] {
            assert_eq!(unsigned(bytes, width).unwrap_err().code, Code::OutOfRange, "{bytes:?}");
        }
        for (width, bytes) in [(8, &b"\x00\x9d"[..]), (12, b"\x8d\x1d"), (16, b"")] {
            assert_eq!(signed(bytes, width).unwrap_err().code, Code::OutOfRange, "{bytes:?}");
        }
    }

    #[test]
    fn zero_has_one_byte() {
        assert_eq!(canonical(&Bits::zero(48)), &b"\0"[..]);
        assert_eq!(unsigned(&[0; 100], 1), Ok(Bits::zero(1)));
        assert_eq!(canonical(&Bits::ones(128)), vec![0xff; 16]);
        let shortest = [&b"\0\0\x01\0"[..], b"\0\0", b"\x07", b""].map(shortest);
        assert_eq!(shortest, [&b"\x01\0"[..], b"\0", b"\x07", b""]);
    }
}
