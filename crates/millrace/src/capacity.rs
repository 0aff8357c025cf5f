//! `--capacity`: how many entries the hardware of tables holds.

use crate::findings::{Failure, once_each};
use clap::Args;
use millrace_pipeline::Program;
use millrace_rtl::tables::MAX_CAPACITY;
use millrace_rtl::{Capacities, without_unit};

#[derive(Debug, Args)]
pub(crate) struct CapacityArgs {
    /// How many entries the hardware of a table holds, or members of groups that of a selector, if not as many as the program declares
    /// up to 4096, or 512 for masks and several ranges
    #[arg(long, value_name = "TABLE=N", value_parser = capacity)]
    capacity: Vec<(String, u64)>,
}

/// `TABLE=N`.
fn capacity(text: &str) -> Result<(String, u64), String> {
    let (table, entries) = text.split_once('=').ok_or("a capacity is TABLE=N")?;
    if table.is_empty() {
        return Err("no table is named: a capacity is TABLE=N".into());
    }
    let entries: u64 = entries.parse().map_err(|_| format!("`{entries}` is no number of entries"))?;
    match (1..=MAX_CAPACITY).contains(&entries) {
        true => Ok((table.to_owned(), entries)),
        false => Err(format!("a unit holds 1 to {MAX_CAPACITY} entries")),
    }
}

impl CapacityArgs {
    pub(crate) fn is_given(&self) -> bool {
        !self.capacity.is_empty()
    }

    /// For programs that may come later, whichever tables they have.
    pub(crate) fn of_any(&self) -> Result<Capacities, Failure> {
        once_each("--capacity", self.capacity.iter().map(|(table, _)| table))?;
        Ok(self.capacity.iter().cloned().collect())
    }

    /// Each of something that the program has.
    pub(crate) fn of(&self, program: &Program) -> Result<Capacities, Failure> {
        let capacities = self.of_any()?;
        match without_unit(&capacities, program) {
            Some(name) => {
                let why = format!("--capacity: {} has no table or action selector {name}", program.name);
                Err(Failure::Failed(why))
            }
            None => Ok(capacities),
        }
    }
}
