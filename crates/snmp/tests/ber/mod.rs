//! Messages of SNMP put together by hand, so that no library agrees with itself.

#![allow(dead_code, reason = "each test uses some")]

/// Tags.
pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const OCTETS: u8 = 0x04;
pub(crate) const NULL: u8 = 0x05;
pub(crate) const NAME: u8 = 0x06;
pub(crate) const SEQUENCE: u8 = 0x30;
pub(crate) const ADDRESS: u8 = 0x40;
pub(crate) const COUNTER32: u8 = 0x41;
pub(crate) const GAUGE: u8 = 0x42;
pub(crate) const TICKS: u8 = 0x43;
pub(crate) const COUNTER64: u8 = 0x46;
pub(crate) const NO_SUCH_OBJECT: u8 = 0x80;
pub(crate) const NO_SUCH_INSTANCE: u8 = 0x81;
pub(crate) const END_OF_VIEW: u8 = 0x82;
pub(crate) const GET: u8 = 0xa0;
pub(crate) const NEXT: u8 = 0xa1;
pub(crate) const RESPONSE: u8 = 0xa2;
pub(crate) const SET: u8 = 0xa3;
pub(crate) const BULK: u8 = 0xa5;

/// A tag, the length of the contents in its shortest form, the contents.
pub(crate) fn tlv(tag: u8, contents: &[u8]) -> Vec<u8> {
    let length = match contents.len() {
        short @ 0..=127 => vec![short as u8],
        middle @ 128..=255 => vec![0x81, middle as u8],
        long => vec![0x82, (long >> 8) as u8, long as u8],
    };
    [&[tag][..], &length, contents].concat()
}

/// A number in two's complement, without what only repeats its sign.
pub(crate) fn number(tag: u8, number: i128) -> Vec<u8> {
    let bytes = number.to_be_bytes();
    let repeats =
        |at: usize| bytes[at] == 0 && bytes[at + 1] < 128 || bytes[at] == 255 && bytes[at + 1] >= 128;
    let first = (0..bytes.len() - 1).find(|at| !repeats(*at)).unwrap_or(bytes.len() - 1);
    tlv(tag, &bytes[first..])
}

pub(crate) fn parts(name: &str) -> Vec<u32> {
    name.split('.').map(|part| part.parse().unwrap()).collect()
}

/// A name: the first two numbers as one, each in base 128.
pub(crate) fn name(name: &str) -> Vec<u8> {
    let parts = parts(name);
    let mut contents = Vec::new();
    for part in std::iter::once(parts[0] * 40 + parts[1]).chain(parts[2..].iter().copied()) {
        let digits = (0..5).rev().map(|digit| (part >> (7 * digit)) as u8 & 0x7f);
        let digits: Vec<u8> = digits.skip_while(|digit| *digit == 0).collect();
        let digits = if digits.is_empty() { vec![0] } else { digits };
        let last = digits.len() - 1;
        contents.extend(
            digits.iter().enumerate().map(|(at, digit)| if at < last { digit | 0x80 } else { *digit }),
        );
    }
    tlv(NAME, &contents)
}

/// A binding of a name and a value that is encoded already.
pub(crate) fn binding(of: &str, value: Vec<u8>) -> Vec<u8> {
    tlv(SEQUENCE, &[name(of), value].concat())
}

/// A binding without a value.
pub(crate) fn asked(of: &str) -> Vec<u8> {
    binding(of, tlv(NULL, &[]))
}

/// A whole message: version as it is written (0 or 1), what it is, the request's number, the two numbers after it, bindings.
pub(crate) fn message(
    version: u8,
    pdu: u8,
    id: i128,
    (status, index): (i128, i128),
    bindings: &[Vec<u8>],
) -> Vec<u8> {
    with_community(version, "public", pdu, id, (status, index), bindings)
}

pub(crate) fn with_community(
    version: u8,
    community: &str,
    pdu: u8,
    id: i128,
    (status, index): (i128, i128),
    bindings: &[Vec<u8>],
) -> Vec<u8> {
    let list = tlv(SEQUENCE, &bindings.concat());
    let pdu =
        tlv(pdu, &[number(INTEGER, id), number(INTEGER, status), number(INTEGER, index), list].concat());
    let version = number(INTEGER, version.into());
    tlv(SEQUENCE, &[version, tlv(OCTETS, community.as_bytes()), pdu].concat())
}
