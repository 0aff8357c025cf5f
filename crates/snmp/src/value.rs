//! Values of objects, in the types that both versions of SNMP have for them.

use rasn::types::{FixedOctetString, Integer, ObjectIdentifier, OctetString};
use rasn_smi::{v1, v2};
use std::sync::Arc;

/// The value of an object (RFC 2578, 7.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// `INTEGER`, `Integer32`.
    Integer(i32),
    /// `OCTET STRING` and what is written as one.
    Text(Arc<[u8]>),
    /// `OBJECT IDENTIFIER`.
    Name(Arc<[u32]>),
    /// `IpAddress`.
    Address([u8; 4]),
    /// `Counter32`: wraps.
    Counter32(u32),
    /// `Counter64`: version 1 has no such type.
    Counter64(u64),
    /// `Gauge32`, `Unsigned32`: the largest number stands for all above it.
    Gauge(u32),
    /// `TimeTicks`: hundredths of a second, wrapping.
    Ticks(u32),
}

impl Value {
    /// A text, cut to so many bytes as SMIv2 lets a `DisplayString` or an `SnmpAdminString` have.
    pub fn text(text: &str) -> Value {
        const MAX_TEXT: usize = 255;
        let mut end = text.len().min(MAX_TEXT);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        Value::Text(text.as_bytes()[..end].into())
    }

    /// A counter of 32 bits: that of 64 bits without what is above them, as it would have wrapped.
    pub fn counter(count: u64) -> Value {
        Value::Counter32(count as u32)
    }

    /// A gauge: its largest number stands for all above it.
    pub fn gauge(number: u64) -> Value {
        Value::Gauge(u32::try_from(number).unwrap_or(u32::MAX))
    }

    /// Whether only version 2 has the type.
    pub(crate) fn is_wide(&self) -> bool {
        matches!(self, Value::Counter64(_))
    }

    /// As version 1 has it; none of what it has not.
    pub(crate) fn v1(&self) -> Option<v1::ObjectSyntax> {
        Some(match self {
            Value::Integer(number) => Integer::from(*number).into(),
            Value::Text(bytes) => OctetString::from_slice(bytes).into(),
            Value::Name(name) => identifier(name)?.into(),
            Value::Address(octets) => address(*octets).into(),
            Value::Counter32(count) => v1::Counter(*count).into(),
            Value::Counter64(_) => return None,
            Value::Gauge(number) => v1::Gauge(*number).into(),
            Value::Ticks(ticks) => v1::TimeTicks(*ticks).into(),
        })
    }

    /// As version 2 has it.
    pub(crate) fn v2(&self) -> Option<v2::ObjectSyntax> {
        Some(match self {
            Value::Integer(number) => Integer::from(*number).into(),
            Value::Text(bytes) => OctetString::from_slice(bytes).into(),
            Value::Name(name) => identifier(name)?.into(),
            Value::Address(octets) => address(*octets).into(),
            Value::Counter32(count) => v1::Counter(*count).into(),
            Value::Counter64(count) => v2::Counter64(*count).into(),
            Value::Gauge(number) => v1::Gauge(*number).into(),
            Value::Ticks(ticks) => v1::TimeTicks(*ticks).into(),
        })
    }
}

/// An address, as version 1 has it in its traps.
pub(crate) fn address(octets: [u8; 4]) -> v1::NetworkAddress {
    v1::NetworkAddress::Internet(v1::IpAddress(FixedOctetString::new(octets)))
}

/// A name as it is encoded; none of fewer than two numbers, or of a first number that there is not.
pub(crate) fn identifier(name: &[u32]) -> Option<ObjectIdentifier> {
    ObjectIdentifier::new(name.to_vec()).filter(|name| name.len() >= 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_wrap_and_gauges_stop() {
        assert_eq!(Value::counter((1 << 32) + 7), Value::Counter32(7));
        assert_eq!(Value::gauge(1 << 40), Value::Gauge(u32::MAX));
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let Value::Text(bytes) = Value::text(&"é".repeat(200)) else { panic!("a text") };
        assert_eq!(bytes.len(), 254);
        assert!(std::str::from_utf8(&bytes).is_ok());
    }

    #[test]
    fn version_1_has_no_counter_of_64_bits() {
        assert_eq!(Value::Counter64(1).v1(), None);
        assert!(Value::Counter64(1).v2().is_some() && Value::Counter32(1).v1().is_some());
        // A name of one number cannot be encoded.
        assert_eq!(Value::Name([1].into()).v2(), None);
    }
}
