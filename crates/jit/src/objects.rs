//! Counters, registers and accounts that compiled code works on itself: which of them a plan uses, and where they lie.

use crate::abi::ObjectEnv;
use millrace_midend::cfg::{Cfg, Op};
use millrace_pipeline::*;
use millrace_state::State;
use std::collections::BTreeMap;

/// Something that is not called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Object {
    Counter(CounterId),
    DirectCounter(TableId),
    /// Of at most 64 bits.
    Register(RegisterId),
    Account(MeterId),
}

impl Object {
    /// What an operation works on itself.
    fn of(program: &Program, op: &Op) -> Option<Object> {
        let direct = |table: TableId| {
            program.tables[table].direct_counter.is_some().then_some(Object::DirectCounter(table))
        };
        match op {
            Op::Inst(Inst::Count { counter, .. }) => Some(Object::Counter(*counter)),
            Op::Inst(Inst::CountDirect(table)) | Op::AtHit { table, .. } => direct(*table),
            Op::Inst(Inst::RegisterRead { register, .. } | Inst::RegisterWrite { register, .. }) => {
                (program.registers[*register].width <= 64).then_some(Object::Register(*register))
            }
            Op::Inst(Inst::Meter { meter, color: None, .. }) => {
                (program.meters[*meter].unit == Unit::Account).then_some(Object::Account(*meter))
            }
            _ => None,
        }
    }
}

/// The objects of a plan, with the number of each in [`Env::objects`](crate::abi::Env::objects).
pub(crate) type Numbers = BTreeMap<Object, usize>;

/// Those that the code of a graph works on.
pub(crate) fn numbers(program: &Program, cfg: &Cfg) -> Numbers {
    let ops = cfg.blocks.values().flat_map(|block| &block.ops);
    let mut numbers: Numbers =
        ops.filter_map(|op| Object::of(program, op)).map(|object| (object, 0)).collect();
    numbers.values_mut().enumerate().for_each(|(at, number)| *number = at);
    numbers
}

/// Where objects are, made again for each batch in the same memory: control may put others in their place between two batches.
#[derive(Clone, Debug, Default)]
pub(crate) struct ObjectEnvs(Vec<ObjectEnv>);

// SAFETY: the pointers are read only by the batch that they were made for.
unsafe impl Send for ObjectEnvs {}

impl ObjectEnvs {
    #[inline]
    pub(crate) fn refresh(&mut self, state: &mut State, objects: &Numbers) {
        self.0.clear();
        let none = ObjectEnv { base: std::ptr::null(), refused: std::ptr::null() };
        self.0.extend(objects.keys().map(|object| match object {
            Object::Counter(counter) => ObjectEnv { base: state.counter_starts(*counter), ..none },
            Object::DirectCounter(table) => ObjectEnv { base: state.direct_counter_starts(*table), ..none },
            Object::Register(register) => {
                state.register_cells(*register).map_or(none, |cells| ObjectEnv { base: cells.cast(), ..none })
            }
            Object::Account(meter) => {
                state.accounts(*meter).map_or(none, |(cells, refused)| ObjectEnv {
                    base: cells.cast(),
                    refused: refused.cast(),
                })
            }
        }));
    }

    pub(crate) fn start(&self) -> *const ObjectEnv {
        self.0.as_ptr()
    }
}
