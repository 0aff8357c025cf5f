//! What belongs to the worker of a state alone: its way into the tables, its part of the counters, and the objects that
//! the program itself writes.

use crate::LookupCounts;
use crate::tables::Tables;
use millrace_pipeline::entity::PrimaryMap;
use millrace_pipeline::*;
use millrace_tables::{
    AttachedPart, CounterPart, Meter, MeterArray, RegisterArray, TableReader, ValueSet,
    engines::{Domain, Worker},
};

pub(crate) struct Own {
    pub(crate) tables: PrimaryMap<TableId, TablePart>,
    pub(crate) lookups: PrimaryMap<TableId, LookupCounts>,
    pub(crate) counters: PrimaryMap<CounterId, CounterPart>,
    pub(crate) meters: PrimaryMap<MeterId, MeterArray>,
    pub(crate) registers: PrimaryMap<RegisterId, RegisterArray>,
    pub(crate) value_sets: PrimaryMap<ValueSetId, ValueSet>,
    pub(crate) domain: Domain,
    /// Reads the tables for engines that run over this state. It sleeps while they do not.
    pub(crate) worker: Worker,
    /// What undoes the writes since [`Own::note`].
    undo: Option<Vec<OwnUndo>>,
    /// What all this, and the tables, were before a reset that can be undone.
    pub(crate) before_reset: Option<Box<(Tables, Own)>>,
}

/// A worker's way into a table.
pub(crate) struct TablePart {
    pub(crate) reader: TableReader,
    pub(crate) attached: AttachedPart,
}

/// What takes one write back.
pub(crate) enum OwnUndo {
    Register(RegisterId, u64, Bits),
    Registers(RegisterId, RegisterArray),
    Meter(MeterId, u64, Box<Meter>),
    Meters(MeterId, MeterArray),
    Values(ValueSetId, Box<ValueSet>),
}

impl Own {
    pub(crate) fn new(domain: Domain) -> Own {
        let mut worker = domain.worker();
        worker.sleep();
        Own {
            tables: PrimaryMap::new(),
            lookups: PrimaryMap::new(),
            counters: PrimaryMap::new(),
            meters: PrimaryMap::new(),
            registers: PrimaryMap::new(),
            value_sets: PrimaryMap::new(),
            domain,
            worker,
            undo: None,
            before_reset: None,
        }
    }

    /// From now on writes note what undoes them.
    pub(crate) fn note(&mut self) {
        self.undo = Some(Vec::new());
    }

    pub(crate) fn notes(&self) -> bool {
        self.undo.is_some()
    }

    pub(crate) fn note_undo(&mut self, undo: impl FnOnce() -> OwnUndo) {
        if let Some(noted) = &mut self.undo {
            noted.push(undo());
        }
    }

    pub(crate) fn has_noted_set(&self, set: ValueSetId) -> bool {
        let mut noted = self.undo.iter().flatten();
        noted.any(|undo| matches!(undo, OwnUndo::Values(of, _) if *of == set))
    }

    /// All that was written stays.
    pub(crate) fn keep(&mut self) {
        (self.undo, self.before_reset) = (None, None);
    }

    /// Takes back all writes since [`Own::note`].
    pub(crate) fn undo(&mut self) {
        for undo in self.undo.take().unwrap_or_default().into_iter().rev() {
            match undo {
                OwnUndo::Register(id, index, value) => {
                    self.registers[id].write(index, &crate::pack::limbs(&value));
                }
                OwnUndo::Registers(id, before) => self.registers[id] = before,
                OwnUndo::Meter(id, index, before) => self.meters[id].put(index, *before),
                OwnUndo::Meters(id, before) => self.meters[id] = before,
                OwnUndo::Values(id, before) => self.value_sets[id] = *before,
            }
        }
    }
}
