//! Units of each kind: next to plain models, and in the tools that make chips of them.

mod hits;
mod models;
mod tools;

use super::*;
use millrace_pipeline::{CounterId, DigestId, MeterId, RegisterId, Type, ValueSetId};

fn slot(unit: Unit, at: usize) -> Slot {
    Slot { unit, cycle: at as u32, accesses: vec![at] }
}

fn unit(key: ObjectKey, kind: Kind, slots: &[Unit], inputs: &[&[u32]]) -> ObjectUnit {
    let slots = slots.iter().enumerate().map(|(at, unit)| slot(unit.clone(), at)).collect();
    let inputs = inputs.iter().map(|widths| widths.to_vec()).collect();
    ObjectUnit { key, name: "object".to_owned(), kind, slots, inputs, wait: 4 }
}

fn register(size: u32, one_read: bool) -> ObjectUnit {
    let id = RegisterId::from_u32(0);
    let kind = Kind::Register { width: 40, size, initial: Some(Bits::new(40, 77)), one_read };
    let slots = [Unit::RegisterRead(id), Unit::RegisterRead(id), Unit::RegisterWrite(id)];
    unit(ObjectKey::Register(id), kind, &slots, &[&[32], &[3], &[8, 40]])
}

fn counter(size: u32) -> ObjectUnit {
    let id = CounterId::from_u32(0);
    let slots = [Unit::Count(id), Unit::Count(id)];
    unit(ObjectKey::Counter(id), Kind::Counter { size }, &slots, &[&[32, 32], &[3, 32]])
}

fn meter(size: u32, measure: Measure) -> ObjectUnit {
    let id = MeterId::from_u32(0);
    unit(ObjectKey::Meter(id), Kind::Meter { size, measure }, &[Unit::Meter(id)], &[&[8, 32, 2, 64]])
}

fn messages(depth: u32) -> ObjectUnit {
    let id = DigestId::from_u32(0);
    let message = |access| Message { access, unit: Unit::Digest(id), values: vec![Type::Bits(20)] };
    let kind = Kind::Messages { depth, messages: vec![message(0), message(1)] };
    let slots = [Unit::Digest(id), Unit::Digest(id)];
    unit(ObjectKey::Messages, kind, &slots, &[&[21], &[21]])
}

fn values() -> ObjectUnit {
    let id = ValueSetId::from_u32(0);
    let fields = vec![(8, MatchKind::Exact), (12, MatchKind::Ternary), (6, MatchKind::Range)];
    unit(ObjectKey::ValueSet(id), Kind::Values { fields, size: 4 }, &[Unit::Member(id)], &[&[8, 12, 6]])
}
