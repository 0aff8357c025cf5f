//! Metadata that go with a packet where all else starts again: through clone, resubmission, recirculation, and past the
//! deparser of ingress.
//!
//! Scalars are kept where they are. Headers are not: all are invalid before a parser. What has headers in it is
//! packed into slots of its own before and unpacked after.

use millrace_pipeline::{FieldList, SlotId};

use super::blocks::Typed;
use crate::code::Code;
use crate::context::Lowering;
use crate::fail::Lower;
use crate::value::Value;

/// Metadata that are carried.
#[derive(Clone)]
pub(super) struct Carried {
    pub(super) data: Typed,
    /// A slot for each scalar, validity and `nextIndex`; none where the data are kept in place.
    packed: Option<Vec<SlotId>>,
}

impl Carried {
    /// Prepares to carry data of that storage.
    pub(super) fn new(cx: &mut Lowering<'_>, data: Typed, name: &str) -> Carried {
        let value = Value::read(&data.storage);
        let packed = value.has_headers().then(|| {
            let mut types = Vec::new();
            value.for_each(&mut |e| types.push(e.ty(cx.ir.program())));
            types.into_iter().map(|ty| cx.ir.metadata(&format!("{name}.carried"), ty)).collect()
        });
        Carried { data, packed }
    }

    /// Lets the data be carried by the copies that name the list of that number, with other slots.
    pub(super) fn declare_list(&self, cx: &mut Lowering<'_>, id: u32, others: Option<SlotId>) {
        let mut slots: Vec<SlotId> = others.into_iter().collect();
        match &self.packed {
            Some(packed) => slots.extend(packed),
            None => self.data.storage.for_each_slot(&mut |slot| slots.push(slot)),
        }
        cx.ir.program_mut().field_lists.push(FieldList { id, slots });
    }

    /// Where the data are made: they start as 0.
    pub(super) fn start(&self, code: &mut Code<'_, '_>) {
        code.reset(&self.data.storage);
    }

    /// Where the data are ready.
    pub(super) fn pack(&self, code: &mut Code<'_, '_>) {
        let Some(packed) = &self.packed else { return };
        let mut values = Vec::new();
        let value = Value::read(&self.data.storage);
        value.for_each(&mut |e| values.push(e.clone()));
        for (slot, value) in packed.iter().zip(values) {
            code.assign(*slot, value);
        }
    }

    /// Where the data arrive.
    pub(super) fn unpack(&self, code: &mut Code<'_, '_>) -> Lower<()> {
        let Some(packed) = &self.packed else { return Ok(()) };
        let mut slots = packed.iter().copied();
        let value = Value::read(&self.data.storage);
        let value = value.map(&mut |e| slots.next().map_or(e, millrace_pipeline::Expr::Read));
        code.store_in(&self.data.storage, value)
    }
}
