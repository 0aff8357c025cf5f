//! The objects of one running program: what it remembers between packets.
//!
//! A [`State`] is made from a program of the pipeline IR and has two sides. **The worker's** is the state itself: readers of
//! the tables, the worker's part of the counters, meters, registers and value sets; engines look up and count here.
//! **Control's** are the [`Tables`]: entries, default actions, action profiles, and counters as sums. Any thread gets them
//! through a [`TablesHandle`] and writes them while packets are forwarded. Objects have typed ids, and the names of the
//! program.
//!
//! It promises:
//! - **Values are [`Bits`](millrace_pipeline::Bits) at the edges and packed bytes inside**: the match engines of
//!   `millrace-tables` see no P4 and this crate is the only place that converts.
//! - **Every write is checked against the program** (which action in which table, how many arguments of which width,
//!   which kind of match, what is const) and a refused write leaves everything as it was. Errors name the object, the
//!   field, and what was expected. Several writes can be undone together: [`State::note`].
//! - **The worker takes no lock and never stops** for what control writes to tables: a packet meets each table as it was
//!   before a write or as it is after it. A writer may wait for the worker to end its batch. (The
//!   interpreter's [`State::lookup`] does take the lock.)
//! - **One priority order**: the largest number wins, as in the IR. Fronts whose users think otherwise translate.
//! - **Memory is bounded**: see [`MAX_STATE_BYTES`].
//!
//! It never reads a clock (time is an argument, in nanoseconds), never runs code of the program and never sees a
//! packet.

mod account;
mod cells;
mod effects;
mod entries;
mod error;
mod hashes;
mod journal;
mod lookup;
pub mod messages;
mod migration;
mod mirror;
mod names;
mod objects;
mod own;
mod pack;
mod plugins;
mod prices;
mod profiles;
mod random;
mod schema;
mod shared;
mod state;
mod tables;

pub use account::{Account, Charge, Held, Limits, OverQuota, Quota};
pub use cells::{CounterRef, MeterRef};
pub use effects::{DigestMessage, Effects, MAX_EFFECT, MAX_EFFECTS, format_log};
pub use entries::{EntryView, EntryWrite, Target};
pub use error::{BuildError, ObjectKind, WriteError};
pub use journal::{Journal, Recording};
pub use lookup::{Lookup, LookupCounts, Selected};
pub use messages::Digests;
pub use migration::{Carried, Migration, NotNow};
pub use mirror::Written;
pub use names::{Names, find_named};
pub use objects::ObjectWrite;
pub use plugins::{PluginAnswer, PluginCaller, PluginHost};
pub use profiles::MemberWrite;
pub use random::Random;
pub use schema::Schema;
pub use state::{MAX_STATE_BYTES, State, record_layout};
pub use tables::{Tables, TablesGuard, TablesHandle};

pub use millrace_tables::engines::{
    Line, LookupContract, LookupKind, LookupShape, NoMemory, Spread, Worker, headroom,
};
pub use millrace_tables::limits::MAX_GROUP_WEIGHT;
pub use millrace_tables::{
    Account as CreditAccount, AccountCell, AccountConfig, AccountError, AccountTest, Color, ColorCounts,
    CounterKind, CounterValue, EntryIndex, GroupMember, Meter, MeterConfig, MeterError, MeterRates,
    MeterUnit, ProfileError, REFUSED_BYTES, Rate, RecordLayout, Selection, SpecError, TableError,
    TableReader, argument_size, network_order,
};
