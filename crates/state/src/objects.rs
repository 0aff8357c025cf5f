//! Writes to the objects that a worker keeps, as values: they can wait for the worker, and each has values that take it back.

use crate::WriteError;
use crate::state::State;
use millrace_pipeline::{Bits, CrcParameters, CrcWidth, EntryMatch, HashId, MeterId, RegisterId, ValueSetId};
use millrace_tables::{ColorCounts, MeterConfig};
use std::ops::Range;

/// A write to a register, a meter, a value set, or a hash of its own.
#[derive(Clone, Debug, PartialEq)]
pub enum ObjectWrite {
    /// Sets cells of a register.
    Register {
        /// The register.
        register: RegisterId,
        /// The cells.
        cells: Range<u64>,
        /// What each of them holds afterwards.
        value: Bits,
    },
    /// Sets all cells of a register to zero.
    ResetRegister(RegisterId),
    /// Configures cells of a meter and fills their buckets.
    Meter {
        /// The meter.
        meter: MeterId,
        /// The cells.
        cells: Range<u64>,
        /// None: everything is green.
        config: Option<MeterConfig>,
    },
    /// Sets how much cells of a meter have coloured.
    MeterCounts {
        /// The meter.
        meter: MeterId,
        /// The cells.
        cells: Range<u64>,
        /// The counts of each of them afterwards.
        counts: ColorCounts,
    },
    /// Adds a member to a value set.
    InsertValue(ValueSetId, Vec<EntryMatch>),
    /// Removes a member from a value set.
    RemoveValue(ValueSetId, Vec<EntryMatch>),
    /// Replaces all members of a value set.
    ReplaceValues(ValueSetId, Vec<Vec<EntryMatch>>),
    /// Has a hash compute another CRC.
    Hash(HashId, CrcParameters),
}

impl State {
    /// Does a write. An array is written cell by cell, so an error for one cell leaves those before it written.
    ///
    /// # Errors
    /// [`WriteError`].
    pub fn write(&mut self, write: &ObjectWrite) -> Result<(), WriteError> {
        match write {
            ObjectWrite::Register { register, cells, value } => {
                cells.clone().try_for_each(|cell| self.set_register(*register, cell, value))
            }
            ObjectWrite::ResetRegister(register) => {
                self.reset_register(*register);
                Ok(())
            }
            ObjectWrite::Meter { meter, cells, config } => {
                cells.clone().try_for_each(|cell| self.set_meter(*meter, cell, *config))
            }
            ObjectWrite::MeterCounts { meter, cells, counts } => {
                cells.clone().try_for_each(|cell| self.set_meter_counts(*meter, cell, *counts))
            }
            ObjectWrite::InsertValue(set, member) => self.insert_value(*set, member),
            ObjectWrite::RemoveValue(set, member) => self.remove_value(*set, member),
            ObjectWrite::ReplaceValues(set, members) => self.replace_values(*set, members),
            ObjectWrite::Hash(hash, parameters) => match self.set_own_hash(*hash, *parameters) {
                true => Ok(()),
                false => {
                    let width = bits(self.own_hash(*hash).parameters().width);
                    Err(WriteError::CellWidth { width, found: bits(parameters.width) })
                }
            },
        }
    }

    /// The writes that take a write back, to be done in this order as long as nothing else writes there: those that set what
    /// is there now. Neighbouring cells that hold the same become one write.
    ///
    /// # Errors
    /// No such cell.
    pub fn inverse(&self, write: &ObjectWrite) -> Result<Vec<ObjectWrite>, WriteError> {
        let registers = |register: RegisterId, cells: Range<u64>| {
            self.runs(
                cells,
                |cell| self.register_value(register, cell),
                |cells, value| ObjectWrite::Register { register, cells, value },
            )
        };
        match write {
            ObjectWrite::Register { register, cells, .. } => registers(*register, cells.clone()),
            ObjectWrite::ResetRegister(register) => {
                registers(*register, 0..self.program().registers[*register].size)
            }
            ObjectWrite::Meter { meter, cells, .. } => {
                let meter = *meter;
                self.runs(
                    cells.clone(),
                    |cell| self.meter_config(meter, cell),
                    |cells, config| ObjectWrite::Meter { meter, cells, config },
                )
            }
            ObjectWrite::MeterCounts { meter, cells, .. } => {
                let meter = *meter;
                self.runs(
                    cells.clone(),
                    |cell| self.meter_counts(meter, cell),
                    |cells, counts| ObjectWrite::MeterCounts { meter, cells, counts },
                )
            }
            ObjectWrite::InsertValue(set, _)
            | ObjectWrite::RemoveValue(set, _)
            | ObjectWrite::ReplaceValues(set, _) => {
                Ok(vec![ObjectWrite::ReplaceValues(*set, self.values(*set).collect())])
            }
            ObjectWrite::Hash(hash, _) => {
                Ok(vec![ObjectWrite::Hash(*hash, self.own_hash(*hash).parameters())])
            }
        }
    }

    /// A write for each run of cells that hold the same.
    fn runs<T: Clone + PartialEq>(
        &self,
        cells: Range<u64>,
        look: impl Fn(u64) -> Result<T, WriteError>,
        write: impl Fn(Range<u64>, T) -> ObjectWrite,
    ) -> Result<Vec<ObjectWrite>, WriteError> {
        let mut writes = Vec::new();
        let mut run: Option<(Range<u64>, T)> = None;
        for cell in cells {
            let value = look(cell)?;
            match &mut run {
                Some((cells, held)) if *held == value => cells.end = cell + 1,
                _ => {
                    writes.extend(
                        run.replace((cell..cell + 1, value)).map(|(cells, value)| write(cells, value)),
                    );
                }
            }
        }
        writes.extend(run.map(|(cells, value)| write(cells, value)));
        Ok(writes)
    }
}

fn bits(width: CrcWidth) -> u32 {
    match width {
        CrcWidth::Sixteen => 16,
        CrcWidth::ThirtyTwo => 32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_pipeline::text;
    use millrace_tables::{MeterRates, Rate};
    use std::sync::Arc;

    const PROGRAM: &str = r#"
program objects
errors (NoError)
ingress (c)
meter "m" size 3 bytes
register "r": bit<100> size 4
value_set "vs" (x: bit<8> exact) size 2
own_hash "crc" crc16_custom
body control c { block0: end }
"#;

    fn all(state: &State) -> String {
        let program = state.program();
        let registers = program.registers.iter().flat_map(|(id, made)| {
            (0..made.size).map(move |cell| state.register_read(id, cell)).collect::<Vec<_>>()
        });
        let meters = program.meters.iter().flat_map(|(id, made)| {
            (0..made.size).map(move |cell| (state.meter_config(id, cell), state.meter_counts(id, cell)))
        });
        let sets: Vec<_> = program.value_sets.keys().flat_map(|id| state.values(id)).collect();
        let hashes: Vec<_> = program.hashes.keys().map(|id| state.own_hash(id).parameters()).collect();
        format!("{:?} {:?} {sets:?} {hashes:?}", registers.collect::<Vec<_>>(), meters.collect::<Vec<_>>())
    }

    #[test]
    fn what_takes_a_write_back_leaves_all_as_it_was() {
        let program = text::parse(PROGRAM).unwrap_or_else(|error| panic!("{error}"));
        let mut state = State::new(Arc::new(program)).unwrap();
        let program = Arc::clone(state.program());
        let (register, meter) =
            (program.registers.keys().next().unwrap(), program.meters.keys().next().unwrap());
        let (set, hash) = (program.value_sets.keys().next().unwrap(), program.hashes.keys().next().unwrap());
        let member = |value| vec![EntryMatch::Exact(Bits::new(8, value))];
        let config =
            |cbs| MeterRates { cir: Rate::per_second(1), cbs, pir: Rate::per_second(2), pbs: 9 }.into();
        let parameters = CrcParameters { polynomial: 0x1021, ..state.own_hash(hash).parameters() };
        for set_up in [
            ObjectWrite::Register { register, cells: 1..3, value: Bits::new(100, 1 << 90) },
            ObjectWrite::Meter { meter, cells: 0..1, config: Some(config(4)) },
            ObjectWrite::MeterCounts { meter, cells: 1..2, counts: ColorCounts::default() },
            ObjectWrite::InsertValue(set, member(7)),
        ] {
            state.write(&set_up).unwrap();
        }
        let before = all(&state);
        for write in [
            ObjectWrite::Register { register, cells: 0..4, value: Bits::new(100, 5) },
            ObjectWrite::ResetRegister(register),
            ObjectWrite::Meter { meter, cells: 0..3, config: Some(config(5)) },
            ObjectWrite::InsertValue(set, member(8)),
            ObjectWrite::RemoveValue(set, member(7)),
            ObjectWrite::ReplaceValues(set, vec![member(1), member(2)]),
            ObjectWrite::Hash(hash, parameters),
        ] {
            let back = state.inverse(&write).unwrap();
            state.write(&write).unwrap();
            assert_ne!(all(&state), before, "{write:?}");
            back.iter().for_each(|write| state.write(write).unwrap());
            assert_eq!(all(&state), before, "{write:?}");
        }
        // Cells 0 and 3 are zero, 1 and 2 hold the same.
        assert_eq!(state.inverse(&ObjectWrite::ResetRegister(register)).unwrap().len(), 3);
        let wide = CrcParameters { width: CrcWidth::ThirtyTwo, ..parameters };
        let refused = state.write(&ObjectWrite::Hash(hash, wide));
        assert_eq!(refused, Err(WriteError::CellWidth { width: 16, found: 32 }));
    }
}
