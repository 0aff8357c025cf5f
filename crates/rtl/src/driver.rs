//! Software's part of tables in hardware: what changed in them is written to their units.

use crate::tables::{Contents, Full, TableUnit};
use millrace_pipeline::Bits;
use millrace_state::State;
use std::fmt;

/// How software reaches the units of a stage: simulated ones, or those of a device through its registers.
pub trait SoftwareAccess {
    /// Why an access failed.
    type Error;

    /// Writes a word of a port, by its number in [`crate::Hardware::software_ports`].
    ///
    /// # Errors
    /// The device cannot be reached.
    fn write(&mut self, port: usize, address: u64, word: &Bits) -> Result<(), Self::Error>;

    /// Has frames that come from now on meet that bank, and waits until none meets the other one any more.
    ///
    /// # Errors
    /// The device cannot be reached.
    fn use_bank(&mut self, bank: bool) -> Result<(), Self::Error>;
}

/// Why tables were not written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DriverError<E> {
    /// The entries of a table do not fit its unit. Nothing was written.
    Full(Full),
    /// The device could not be reached. Frames meet the tables before the write or after it; the next update writes all words.
    Device(E),
}

impl<E: fmt::Display> fmt::Display for DriverError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DriverError::Full(full) => full.fmt(f),
            DriverError::Device(error) => error.fmt(f),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for DriverError<E> {}

/// What has been written to the tables of a stage.
#[derive(Debug)]
pub struct Driver {
    /// The number of the port of each.
    tables: Vec<(usize, Contents)>,
    /// The bank that frames meet.
    bank: bool,
    /// The device may hold anything.
    is_unknown: bool,
}

impl Driver {
    /// Of a device as it starts: all words are 0, and frames meet bank 0. `units` are the units of its tables with the numbers of their
    /// ports.
    pub fn new(units: impl IntoIterator<Item = (usize, TableUnit)>) -> Driver {
        let tables = units.into_iter().map(|(port, unit)| (port, Contents::new(unit))).collect();
        Driver { tables, bank: false, is_unknown: false }
    }

    /// The units of its tables.
    pub fn units(&self) -> impl Iterator<Item = &TableUnit> {
        self.tables.iter().map(|(_, contents)| contents.unit())
    }

    /// From now on the device may hold anything: the next update writes all words.
    pub fn forget(&mut self) {
        self.is_unknown = true;
    }

    /// Writes what has changed in the tables of a state since the last update, all of it between two frames: first to the bank that no
    /// frame meets, then, when frames meet that one, to the other. Says whether anything was written.
    ///
    /// # Errors
    /// [`DriverError`].
    pub fn update<D: SoftwareAccess>(
        &mut self,
        state: &State,
        device: &mut D,
    ) -> Result<bool, DriverError<D::Error>> {
        let tables = state.tables();
        for (_, contents) in &mut self.tables {
            contents.update(state.program(), &tables).map_err(DriverError::Full)?;
        }
        drop(tables);
        if self.is_unknown {
            self.tables.iter_mut().for_each(|(_, contents)| contents.change_all());
        }
        let changes = self.tables.iter_mut().map(|(port, contents)| (*port, contents.take_changes()));
        let changes: Vec<(usize, Vec<(u64, Bits)>)> =
            changes.filter(|(_, words)| !words.is_empty()).collect();
        if changes.is_empty() {
            return Ok(false);
        }
        let written = self.write(&changes, device);
        self.is_unknown = written.is_err();
        written.map(|()| true).map_err(DriverError::Device)
    }

    fn write<D: SoftwareAccess>(
        &mut self,
        changes: &[(usize, Vec<(u64, Bits)>)],
        device: &mut D,
    ) -> Result<(), D::Error> {
        if self.is_unknown {
            // An earlier change of the bank may have failed.
            device.use_bank(self.bank)?;
        }
        for turn in 0..2 {
            let other = !self.bank;
            for (port, words) in changes {
                for (address, word) in words {
                    device.write(*port, address + u64::from(other), word)?;
                }
            }
            if turn == 0 {
                self.bank = other;
                device.use_bank(other)?;
            }
        }
        Ok(())
    }
}
