//! The parts of the product that the simulation runs: the regulator of an end system, the accounts of a switch, the queues of a port.

pub(super) use millrace_afdx::{Bag, Regulator};
pub(super) use millrace_tables::{Account, AccountConfig, AccountTest};
pub(super) use millrace_traffic::{Arrival, Egress, Next};
