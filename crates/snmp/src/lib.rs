//! An SNMP agent: versions 1 and 2c, read only, over UDP or wherever else a datagram comes from.
//!
//! ```text
//!  status of the switch -> mib: objects -> View, sorted, made at most twice a second
//!                                            |
//!  datagram -> Agent: version, community -> v1, v2c: get, next, bulk -> datagram
//!
//!  links, modes -> Feed -> traps
//! ```
//!
//! It promises:
//! - **A request never makes a packet wait.** The objects are made of the status that `/status` tells too, whose numbers are of one moment
//!   and are copied by the worker between two rounds.
//! - **Everything that a datagram can cause has a bound**: [`MAX_REQUEST`], [`MAX_BINDINGS`], [`MAX_NAME`], [`MAX_RESPONSE`].
//! - **A datagram that is wrong is dropped and counted**, in the group `snmp`.
//!
//! It never writes to a switch: no object can be set. It never tells a number that nobody has counted.

mod agent;
mod mib;
mod server;
mod statistics;
mod traps;
mod v1;
mod v2c;
mod value;
mod view;

pub use agent::{Agent, MAX_BINDINGS, MAX_COMMUNITY, MAX_NAME, MAX_REQUEST, MAX_RESPONSE};
pub use mib::{Identity, Moment, view};
pub use server::{AskStatus, FRESH, Feed, Listen, MAX_AGE, Server, StartError};
pub use statistics::Statistics;
pub use traps::{MAX_TRAP_TARGETS, TRAP_PORT, TrapAddress, TrapTarget, TrapVersion};
pub use value::Value;
pub use view::{Builder, Cell, Found, Missing, Rows, View, Width};
