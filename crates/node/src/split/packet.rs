//! What travels with a frame, and how the host link carries it.

use super::live::Live;
use crate::limits::MAX_FRAME;
use millrace_pipeline::bits::BitWriter;
use millrace_pipeline::semantics::{Value, VarbitValue};
use millrace_pipeline::{Bits, HeaderId, Program, SlotId, Type};
use std::collections::{BTreeMap, BTreeSet};

/// A packet between two parts of a program.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Packet {
    pub(super) bytes: Vec<u8>,
    /// Those that are not 0.
    pub(super) slots: BTreeMap<SlotId, Value>,
    pub(super) valid: BTreeSet<HeaderId>,
    /// In bits.
    pub(super) cursor: usize,
    pub(super) parsed_bits: u64,
}

/// What the host link carries of a packet, before its values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    /// The number of the request, which its answer has, too.
    pub(super) number: u32,
    /// What is asked, or answered.
    pub(super) kind: u8,
    /// A site, and for answers what goes with the verdict.
    pub(super) site: u16,
    pub(super) detail: u32,
    pub(super) now_ns: u64,
}

const HEAD_BYTES: usize = 4 + 1 + 2 + 4 + 8 + 4 + 8;
const LENGTH_BITS: u32 = 32;

/// A packet with its head; of its slots those of a list.
pub(super) fn encode(program: &Program, head: &Head, slots: &Live, packet: &Packet) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD_BYTES + packet.bytes.len() + 64);
    bytes.extend(head.number.to_be_bytes());
    bytes.push(head.kind);
    bytes.extend(head.site.to_be_bytes());
    bytes.extend(head.detail.to_be_bytes());
    bytes.extend(head.now_ns.to_be_bytes());
    bytes.extend((packet.cursor as u32).to_be_bytes());
    bytes.extend(packet.parsed_bits.to_be_bytes());
    let mut writer = BitWriter::new();
    for header in program.headers.keys() {
        writer.push(&Bits::new(1, u128::from(packet.valid.contains(&header))));
    }
    for slot in slots {
        let ty = program.slots[*slot].ty;
        let zero = Value::zero(ty);
        match (packet.slots.get(slot).unwrap_or(&zero), ty) {
            (Value::Varbit(varbit), _) => {
                writer.push(&Bits::new(LENGTH_BITS, varbit.len().into()));
                varbit.bits().into_iter().for_each(|bits| writer.push(bits));
            }
            (value, _) => writer.push(&value.as_bits()),
        }
    }
    bytes.extend(writer.finish());
    bytes.extend(&packet.bytes);
    bytes
}

/// Reads the head alone.
pub(super) fn head(bytes: &[u8]) -> Option<Head> {
    let at = |from: usize, length: usize| {
        let part = bytes.get(from..from + length)?;
        Some(part.iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte)))
    };
    Some(Head {
        number: at(0, 4)? as u32,
        kind: at(4, 1)? as u8,
        site: at(5, 2)? as u16,
        detail: at(7, 4)? as u32,
        now_ns: at(11, 8)?,
    })
}

/// Reads what [`encode`] wrote with the same list. None: it is no such packet.
pub(super) fn decode(program: &Program, slots: &Live, bytes: &[u8]) -> Option<Packet> {
    let number = |from: usize, length: usize| {
        let part = bytes.get(from..from + length)?;
        Some(part.iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte)))
    };
    let mut packet =
        Packet { cursor: number(19, 4)? as usize, parsed_bits: number(23, 8)?, ..Packet::default() };
    let mut at = 8 * HEAD_BYTES;
    let mut take = |width: u32| {
        let bits = Bits::read_at(bytes, at, width)?;
        at += width as usize;
        Some(bits)
    };
    for header in program.headers.keys() {
        if !take(1)?.is_zero() {
            packet.valid.insert(header);
        }
    }
    for slot in slots {
        let value = match program.slots[*slot].ty {
            Type::Bool => Value::Bool(!take(1)?.is_zero()),
            Type::Bits(width) => Value::Bits(take(width)?),
            Type::Varbit(most) => {
                let length = take(LENGTH_BITS)?.to_u64()? as u32;
                match length {
                    0 => Value::Varbit(VarbitValue::default()),
                    length if length <= most && length.is_multiple_of(8) => {
                        Value::Varbit(VarbitValue::new(take(length)?))
                    }
                    _ => return None,
                }
            }
        };
        packet.slots.insert(*slot, value);
    }
    packet.bytes = bytes.get(at.div_ceil(8)..)?.to_vec();
    let is_within = packet.bytes.len() <= MAX_FRAME && packet.cursor <= 8 * packet.bytes.len();
    is_within.then_some(packet)
}
