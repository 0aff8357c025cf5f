//! Accounts: packets counted in flows, which are told to a file.

mod account;
mod format;
mod table;
mod writer;

use crate::error::InputError;
pub(crate) use account::Account;
pub use account::MAX_RECORDS_A_SECOND;
pub use format::Format;
use format::Teller;
use std::sync::Arc;
use table::FlowTable;
pub use table::Timeouts;
pub use writer::WAITING_RECORDS;
pub(crate) use writer::{END_TIME, FlowCounts, Writer};

/// Most flows of a table that may be asked for.
pub const MAX_FLOWS: u32 = 1 << 20;
/// Flows of a table when nothing else is asked for.
pub const DEFAULT_FLOWS: u32 = 1 << 16;
/// A flow that goes on is told so often when nothing else is asked for, in seconds.
pub const DEFAULT_ACTIVE: u32 = 60;
/// A flow has ended after so long without packets when nothing else is asked for, in seconds.
pub const DEFAULT_INACTIVE: u32 = 15;
/// Longest timeout, in seconds: a day.
pub const MAX_TIMEOUT: u32 = 86_400;

/// What was asked of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AccountSpec {
    pub(crate) file: String,
    pub(crate) format: Format,
    pub(crate) flows: u32,
    pub(crate) timeouts: Timeouts,
}

impl AccountSpec {
    /// The flows of a port, told to the file of that number.
    pub(crate) fn open(
        &self,
        (writer, sink): (&Writer, usize),
        (port, is_output): (u32, bool),
        counts: &Arc<FlowCounts>,
        is_replay: bool,
    ) -> Result<Account, InputError> {
        let table = FlowTable::new(self.flows, self.timeouts)?;
        let outlet = writer.outlet(sink, Teller { port, is_output }, counts);
        Ok(Account::new(table, outlet, is_replay))
    }
}
