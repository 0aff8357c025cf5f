//! What belongs to one worker alone: its readers of the tables, its part of the counters, its copies of what only control
//! writes, and its random numbers.

use crate::LookupCounts;
use crate::plugins::Callers;
use crate::random::Random;
use crate::shared::Shared;
use crate::tables::Tables;
use millrace_pipeline::entity::PrimaryMap;
use millrace_pipeline::*;
use millrace_tables::{
    AttachedPart, CounterPart, Meter, TableReader, ValueSet,
    engines::{Domain, Worker},
};

pub(crate) struct Own {
    pub(crate) tables: PrimaryMap<TableId, TablePart>,
    pub(crate) lookups: PrimaryMap<TableId, LookupCounts>,
    pub(crate) counters: PrimaryMap<CounterId, CounterPart>,
    /// Copies: control writes those of each worker while no packet passes.
    pub(crate) value_sets: PrimaryMap<ValueSetId, ValueSet>,
    /// Copies too.
    pub(crate) hashes: PrimaryMap<HashId, Crc>,
    pub(crate) random: Random,
    pub(crate) plugins: Callers,
    pub(crate) domain: Domain,
    /// Reads the tables for engines that run over this state. It sleeps while they do not.
    pub(crate) worker: Worker,
}

/// A worker's way into a table.
pub(crate) struct TablePart {
    pub(crate) reader: TableReader,
    pub(crate) attached: AttachedPart,
}

impl Own {
    pub(crate) fn new(domain: Domain, hashes: PrimaryMap<HashId, Crc>) -> Own {
        let mut worker = domain.worker();
        worker.sleep();
        Own {
            tables: PrimaryMap::new(),
            lookups: PrimaryMap::new(),
            counters: PrimaryMap::new(),
            value_sets: PrimaryMap::new(),
            hashes,
            random: Random::new(0),
            plugins: Callers::default(),
            domain,
            worker,
        }
    }
}

/// What takes back the writes to the objects that a state reaches without its [`Tables`].
#[derive(Default)]
pub(crate) struct Noted {
    /// None: nothing is noted.
    undo: Option<Vec<ObjectUndo>>,
    /// What all this, and the tables, were before a reset that can be undone.
    pub(crate) before_reset: Option<Box<BeforeReset>>,
}

/// The objects of a program before a reset.
pub(crate) struct BeforeReset {
    pub(crate) tables: Tables,
    pub(crate) shared: Shared,
    pub(crate) own: Own,
    pub(crate) noted: Noted,
}

/// What takes one write back.
pub(crate) enum ObjectUndo {
    Register(RegisterId, u64, Bits),
    /// The limbs of all cells.
    Registers(RegisterId, Vec<u64>),
    Meter(MeterId, u64, Box<Meter>),
    Meters(MeterId, Vec<(u64, Meter)>),
    Values(ValueSetId, Box<ValueSet>),
}

impl Noted {
    /// From now on writes note what undoes them.
    pub(crate) fn note(&mut self) {
        self.undo = Some(Vec::new());
    }

    pub(crate) fn notes(&self) -> bool {
        self.undo.is_some()
    }

    pub(crate) fn note_undo(&mut self, undo: impl FnOnce() -> ObjectUndo) {
        if let Some(noted) = &mut self.undo {
            noted.push(undo());
        }
    }

    pub(crate) fn has_noted_set(&self, set: ValueSetId) -> bool {
        let mut noted = self.undo.iter().flatten();
        noted.any(|undo| matches!(undo, ObjectUndo::Values(of, _) if *of == set))
    }

    /// All that was written stays.
    pub(crate) fn keep(&mut self) {
        *self = Noted::default();
    }

    /// Takes back all writes since [`Noted::note`].
    pub(crate) fn undo(&mut self, shared: &mut Shared, own: &mut Own) {
        for undo in self.undo.take().unwrap_or_default().into_iter().rev() {
            match undo {
                ObjectUndo::Register(id, index, value) => {
                    shared.registers[id].write(index, &crate::pack::limbs(&value));
                }
                ObjectUndo::Registers(id, before) => shared.registers[id].restore(&before),
                ObjectUndo::Meter(id, index, before) => _ = shared.meters[id].put(index, *before),
                ObjectUndo::Meters(id, before) => shared.meters[id].restore(&before),
                ObjectUndo::Values(id, before) => own.value_sets[id] = *before,
            }
        }
    }
}
