//! Memory that packets will touch after the lookup of a staged table, asked for while packets before them go on.
//!
//! The entry of a table often names what its packets touch next: its own counter, and cells of objects whose index is an argument of
//! its action, such as the account of a virtual link. With many entries each of these is a cache line that is far away, and a
//! processor that waits for them packet by packet overlaps two packets at most. In the loop after the lookup the results of
//! all packets are there. So each packet asks for the record of the packet [`RECORD`] places after it, and for what that of the packet
//! [`CELLS`] places after it names.
//!
//! A request changes nothing and needs no valid address, so what is not sure may be asked for: another action may run, or none, and
//! an index may be outside.

use super::fields::plain;
use super::lookup::Lookups;
use super::objects::COUNTER_BYTES;
use super::ops::Operations;
use crate::abi::ObjectEnv;
use crate::objects::{Numbers, Object};
use crate::stage::Stage;
use cranelift_codegen::ir::{InstBuilder, Value};
use millrace_midend::cfg::{Cfg, Op};
use millrace_pipeline::*;
use millrace_state::AccountCell;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::mem::offset_of;

/// How many packets ahead the record of an action is asked for, and the cells that it names.
const RECORD: u32 = 8;
const CELLS: u32 = 4;

/// Most slots that an index is followed through.
const MAX_CHAIN: usize = 8;

/// Most cells that a packet asks for.
const MAX_CELLS: usize = 4;

/// Where the environment says the start of an object's cells.
const BASE: usize = offset_of!(ObjectEnv, base);

/// A cell that an argument of an action names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Named {
    object: Object,
    action: usize,
    param: usize,
}

/// The cells that arguments of a table's actions name.
fn named(program: &Program, cfg: &Cfg, numbers: &Numbers, table: TableId) -> Vec<Named> {
    let (mut found, values) = (BTreeSet::new(), only_values(program));
    for op in cfg.blocks.values().flat_map(|block| &block.ops) {
        let (object, index) = match op {
            Op::Inst(Inst::Meter { meter, index, .. }) => (Object::Account(*meter), index),
            Op::Inst(
                Inst::RegisterRead { register, index, .. } | Inst::RegisterWrite { register, index, .. },
            ) => (Object::Register(*register), index),
            _ => continue,
        };
        if numbers.contains_key(&object)
            && let Some((action, param)) = argument(program, &values, table, index)
        {
            found.insert(Named { object, action, param });
        }
    }
    found.into_iter().take(MAX_CELLS).collect()
}

/// The argument of a table's action that an index is.
fn argument(
    program: &Program,
    values: &FxHashMap<SlotId, Option<&Expr>>,
    table: TableId,
    index: &Expr,
) -> Option<(usize, usize)> {
    let mut index = index;
    for _ in 0..MAX_CHAIN {
        let slot = loop {
            match index {
                Expr::ZeroExtend(inner, _) | Expr::Slice(inner, _, 0) => index = inner,
                Expr::Read(slot) => break *slot,
                _ => return None,
            }
        };
        let actions = program.tables[table].actions.iter().enumerate();
        let mut params = actions.filter_map(|(action, listed)| {
            let params = &program.actions[listed.action].params;
            Some((action, params.iter().position(|param| *param == slot)?))
        });
        if let Some(found) = params.next() {
            return Some(found);
        }
        index = values.get(&slot).copied().flatten()?;
    }
    None
}

/// The values of slots that are assigned at one place; none of those that are written at several, or by something else.
fn only_values(program: &Program) -> FxHashMap<SlotId, Option<&Expr>> {
    let mut values = FxHashMap::default();
    let blocks = program.bodies.values().flat_map(|body| body.blocks.values());
    for inst in blocks.flat_map(|block| &block.insts) {
        let Some(slot) = inst.dst() else { continue };
        let value = match inst {
            Inst::Assign { value, .. } => Some(value),
            _ => None,
        };
        values.entry(slot).and_modify(|known| *known = None).or_insert(value);
    }
    values
}

/// What packets of a staged table's loop ask for.
pub(super) struct Wanted {
    table: TableId,
    cells: Vec<Named>,
}

impl Wanted {
    pub(super) fn of(
        program: &Program,
        cfg: &Cfg,
        numbers: &Numbers,
        (table, stage): (TableId, &Stage),
    ) -> Wanted {
        // What a selector gives is more than the number of a record.
        let profile = program.tables[table].profile;
        let selects = profile.is_some_and(|profile| program.profiles[profile].selector.is_some());
        let cells = match !stage.by_loads && !selects {
            true => named(program, cfg, numbers, table),
            false => Vec::new(),
        };
        Wanted { table, cells }
    }

    /// Asks for it. `address` is the packet's in an array of `u32` of the stage memory, `last` that of the last packet.
    pub(super) fn ask_for<'a>(
        &self,
        ops: &mut Operations<'a>,
        lookups: &Lookups<'a>,
        stage: &Stage,
        (address, last): (Value, Value),
    ) {
        if self.cells.is_empty() {
            return;
        }
        let [far, near] = [RECORD, CELLS].map(|packets| {
            // Or the last one.
            let ahead = ops.e().plus(address, 4 * i64::from(packets));
            ops.ins().umin(ahead, last)
        });
        let [far_record, record] = [far, near].map(|place| {
            let slot = ops.ins().uload32(plain(), place, stage.slots as i32);
            lookups.of(&mut ops.slots.packet, self.table).record_of(slot)
        });
        ops.e().prefetch(far_record);
        for Named { object, action, param } in self.cells.iter().copied() {
            let index = ops.argument_of(record, self.table, action, param);
            let index = ops.e().low(&index);
            let bytes = if matches!(object, Object::Account(_)) { AccountCell::BYTES as u32 } else { 8 };
            if let Some(base) = ops.on_objects().object(object, BASE) {
                let cell = ops.e().element(base, index, bytes);
                ops.e().prefetch(cell);
            }
        }
        if let Some(starts) = ops.on_objects().object(Object::DirectCounter(self.table), BASE) {
            let entry = ops.ins().uload32(plain(), near, stage.entries as i32);
            // That of the first entry, where none was found.
            let one = ops.e().int(1);
            let entry = ops.ins().umax(entry, one);
            let index = ops.e().plus(entry, -1);
            let start = ops.e().piece_start(starts, index);
            let cell = ops.e().element(start, index, COUNTER_BYTES);
            ops.e().prefetch(cell);
        }
    }
}
