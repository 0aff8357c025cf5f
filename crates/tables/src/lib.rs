//! Match engines and stateful objects, over byte strings and indices.
//!
//! This crate holds what a switch remembers between packets: the tables with their entries, action profiles,
//! parser value sets, counters, meters, accounts and registers.
//!
//! It promises:
//! - **A batch of keys in, a batch of small entry indices out** ([`Table::lookup`]). The engine of a table is
//!   chosen from its key schema and can be replaced by a faster one without any caller noticing.
//! - **One priority order**: the larger number wins, and among equals the entry inserted first. Fronts whose
//!   users think otherwise (smallest wins) translate.
//! - **A rejected write changes nothing**, and its error is a sentence an operator understands.
//! - **Equal action data is stored once** per table and is named by a small [`ActionDataId`].
//! - **Every size has a written limit**, checked at creation ([`limits`]).
//! - **Time is what the caller says it is**, in nanoseconds. Nothing here reads a clock, so a run with a simulated
//!   clock is deterministic.
//!
//! It never knows P4: names, types and headers stay outside. An action is a number, its arguments are bytes.
//!
//! # Values
//! A value of `width` bits is a big-endian byte string of exactly `ceil(width / 8)` bytes whose unused high bits
//! are zero. A packed key is the concatenation of the values of all key fields, in the order of the schema.

mod account;
mod account_cell;
mod action;
mod attached;
mod cell_lock;
mod counter;
mod direct_meter;
pub mod engines;
mod entry;
mod error;
mod heap;
mod key;
pub mod limits;
mod meter;
pub mod prices;
mod profile;
mod published;
mod record;
mod register;
mod slots;
mod store;
mod table;
mod value_set;

pub use account::{Account, AccountConfig, AccountTest, MAX_BAG_NS, MAX_FRAME, MAX_JITTER_NS, MIN_BAG_NS};
pub use account_cell::AccountCell;
pub use action::{ActionCall, ActionDataId};
pub use attached::AttachedPart;
pub use cell_lock::CellLocks;
pub use counter::{CounterArray, CounterKind, CounterPart, CounterValue};
pub use entry::{Entry, EntryIndex, EntrySpec, EntryTarget, GroupRef, MemberRef, TargetRef};
pub use error::{AccountError, MeterError, ProfileError, SpecError, TableError};
pub use key::{FieldMatch, KeyField, KeySchema, MatchKind};
pub use meter::{
    Color, ColorCounts, METER_BYTES, Meter, MeterArray, MeterConfig, MeterRates, MeterUnit, REFUSED_BYTES,
    Rate,
};
pub use profile::{ActionProfile, GroupMember, ProfileSpec, Selection};
pub use published::TableReader;
pub use record::{RecordLayout, argument_size, network_order};
pub use register::RegisterArray;
pub use slots::GroupSlots;
pub use table::{Table, TableSpec, Taken};
pub use value_set::ValueSet;
