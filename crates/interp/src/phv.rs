//! The storage of one packet: the values of all slots and the validity of all headers.

use millrace_pipeline::semantics::Value;
use millrace_pipeline::*;

/// Packet header vector: everything that a program keeps for one packet.
#[derive(Clone, Debug, PartialEq)]
pub struct Phv {
    values: Vec<Value>,
    valid: Vec<bool>,
}

impl Phv {
    /// All slots 0, false or empty; all headers invalid.
    pub fn new(program: &Program) -> Phv {
        Phv {
            values: program.slots.values().map(|slot| Value::zero(slot.ty)).collect(),
            valid: vec![false; program.headers.len()],
        }
    }

    /// The value of a slot; while it is a field of an invalid header 0, false or empty.
    pub fn read(&self, program: &Program, slot: SlotId) -> Value {
        if self.is_there(program, slot) {
            self.values[slot.as_u32() as usize].clone()
        } else {
            Value::zero(program.slots[slot].ty)
        }
    }

    /// Gives a slot a value; lost while it is a field of an invalid header.
    pub fn write(&mut self, program: &Program, slot: SlotId, value: Value) {
        debug_assert!(value.fits(program.slots[slot].ty), "{value:?} for {:?}", program.slots[slot]);
        if self.is_there(program, slot) {
            self.values[slot.as_u32() as usize] = value;
        }
    }

    /// Sets a slot to 0, false or empty.
    pub fn clear(&mut self, program: &Program, slot: SlotId) {
        self.values[slot.as_u32() as usize] = Value::zero(program.slots[slot].ty);
    }

    /// Whether a header is valid.
    pub fn is_valid(&self, header: HeaderId) -> bool {
        self.valid[header.as_u32() as usize]
    }

    /// Makes a header valid; if it was not, with all fields 0.
    pub fn set_valid(&mut self, program: &Program, header: HeaderId) {
        if !self.is_valid(header) {
            self.valid[header.as_u32() as usize] = true;
            program.headers[header].fields.iter().for_each(|field| self.clear(program, *field));
        }
    }

    /// Makes a header invalid.
    pub fn set_invalid(&mut self, header: HeaderId) {
        self.valid[header.as_u32() as usize] = false;
    }

    /// Makes all headers invalid.
    pub fn invalidate_all(&mut self) {
        self.valid.fill(false);
    }

    /// The bits of a header as it stands, field by field; nothing when it is invalid.
    pub fn write_header(&self, program: &Program, header: HeaderId, to: &mut bits::BitWriter) {
        if self.is_valid(header) {
            for field in &program.headers[header].fields {
                push_value(&self.values[field.as_u32() as usize], to);
            }
        }
    }

    /// The bits that all valid headers have together.
    pub fn header_bits(&self, program: &Program) -> u64 {
        let valid = program.headers.iter().filter(|(header, _)| self.is_valid(*header));
        valid
            .map(|(_, header)| {
                let varbits = header.fields.iter().map(|field| match &self.values[field.as_u32() as usize] {
                    Value::Varbit(varbit) => u64::from(varbit.len()),
                    Value::Bool(_) | Value::Bits(_) => 0,
                });
                u64::from(header.fixed_bits) + varbits.sum::<u64>()
            })
            .sum()
    }

    fn is_there(&self, program: &Program, slot: SlotId) -> bool {
        match program.slots[slot].home {
            Home::Header { header, .. } => self.is_valid(header),
            Home::Metadata | Home::Local => true,
        }
    }
}

/// Appends the bits of a value: one of a truth value, as many as it has of a varbit.
pub(crate) fn push_value(value: &Value, to: &mut bits::BitWriter) {
    match value {
        Value::Bool(_) => to.push(&value.as_bits()),
        Value::Bits(bits) => to.push(bits),
        Value::Varbit(varbit) => varbit.bits().into_iter().for_each(|bits| to.push(bits)),
    }
}
