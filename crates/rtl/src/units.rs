//! What tables and objects answer that have no unit in hardware, and what becomes of messages, from the objects of the running program.
//!
//! A stage's pipeline has the units outside, at named ports. In simulation the place of those that are not there is taken by the
//! [`State`] that the rest of the switch has, too.

use crate::stage::{Input, LENGTH_BITS, LookupAnswer, Unit, crc_parameters};
use crate::tables::call_data;
use millrace_pipeline::semantics::{Value, VarbitValue};
use millrace_pipeline::*;
use millrace_state::{Color, DigestMessage, Effects, EntryIndex, State, format_log};

/// The objects that units work on, and when.
pub struct Objects<'a> {
    /// The objects of the program.
    pub state: &'a mut State,
    /// The time in nanoseconds.
    pub now_ns: u64,
    /// Messages and lines.
    pub effects: &'a mut Effects,
}

impl Objects<'_> {
    /// An input that comes from the objects, and not with the frame.
    pub(crate) fn given(&self, input: Input) -> Option<Bits> {
        match input {
            Input::Now => Some(Bits::new(64, u128::from(self.now_ns))),
            Input::Parameters(hash) => Some(crc_parameters(self.state.own_hash(hash).parameters())),
            _ => None,
        }
    }

    /// Does one access; gives the answer, as wide as asked for.
    pub(crate) fn access(&mut self, unit: &Unit, inputs: &[(Bits, Type)], answer: u32) -> Option<Bits> {
        let bits = |at: usize| inputs.get(at).map_or_else(|| Bits::zero(1), |(bits, _)| bits.clone());
        let number = |at: usize| bits(at).to_u64_saturating();
        let color = |at: usize| match number(at) {
            0 => Color::Green,
            1 => Color::Yellow,
            _ => Color::Red,
        };
        let given = match unit {
            Unit::Lookup(table) => self.lookup(*table, inputs, answer),
            Unit::Member(set) => {
                let keys: Vec<Bits> = inputs.iter().map(|(bits, _)| bits.clone()).collect();
                Bits::new(1, u128::from(self.state.is_member(*set, &keys)))
            }
            Unit::Hit(table) => {
                self.state.record(*table, EntryIndex(number(0) as u32), self.now_ns);
                return None;
            }
            Unit::Count(counter) => {
                self.state.count(*counter, number(0), number(1));
                return None;
            }
            Unit::CountDirect(table) => {
                self.state.count_direct(*table, EntryIndex(number(0) as u32), number(1));
                return None;
            }
            Unit::Meter(meter) => {
                let color = self.state.meter(*meter, number(0), self.now_ns, number(1), color(2));
                Bits::new(8, color as u128)
            }
            Unit::MeterDirect(table) => {
                let entry = EntryIndex(number(0) as u32);
                Bits::new(8, self.state.meter_direct(*table, entry, self.now_ns, number(1), color(2)) as u128)
            }
            Unit::RegisterRead(register) => self.state.register_read(*register, number(0)),
            Unit::RegisterWrite(register) => {
                self.state.register_write(*register, number(0), &bits(1));
                return None;
            }
            Unit::Random => self.state.random(&bits(0), &bits(1)),
            Unit::Digest(digest) => {
                let values = inputs.iter().map(value).collect();
                self.effects.send(&DigestMessage { digest: *digest, values });
                return None;
            }
            Unit::Log(format) => {
                let values: Vec<Value> = inputs.iter().map(value).collect();
                self.effects.say(format_log(format, &values));
                return None;
            }
        };
        Some(given.zero_extend(answer.max(1)))
    }

    fn lookup(&mut self, id: TableId, inputs: &[(Bits, Type)], answer: u32) -> Bits {
        let program = std::sync::Arc::clone(self.state.program());
        let table = &program.tables[id];
        let all: Vec<Bits> = inputs.iter().map(|(bits, _)| bits.clone()).collect();
        let (keys, hash) = all.split_at(table.keys.len().min(all.len()));
        let hash = hash.first().map_or(0, Bits::to_u64_saturating);
        let found = self.state.lookup_by_hash(id, keys, hash, self.now_ns);
        let width = answer - LookupAnswer::DATA;
        let call = ActionCall { action: found.action, args: found.args.clone() };
        let data = call_data(&program, table, &call, width);
        data.concat(&Bits::new(32, u128::from(found.entry.0)))
            .concat(&Bits::new(16, found.action as u128))
            .concat(&Bits::new(1, u128::from(found.is_hit())))
    }
}

/// The value that an input of an access stands for.
fn value((bits, ty): &(Bits, Type)) -> Value {
    match ty {
        Type::Bool => Value::Bool(!bits.is_zero()),
        Type::Bits(_) => Value::Bits(bits.clone()),
        Type::Varbit(most) => {
            let length = bits.slice(most + LENGTH_BITS - 1, *most).to_u64_saturating();
            varbit(&bits.slice(most - 1, 0), length)
        }
    }
}

/// The varbit of that length whose first bit is the highest one.
pub(crate) fn varbit(bits: &Bits, length: u64) -> Value {
    let most = bits.width();
    match u32::try_from(length).unwrap_or(u32::MAX).min(most) {
        0 => Value::Varbit(VarbitValue::EMPTY),
        length => Value::Varbit(VarbitValue::new(bits.slice(most - 1, most - length))),
    }
}
