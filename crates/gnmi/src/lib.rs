//! The gNMI service of a running switch: its interfaces, by the paths of OpenConfig that clients of Stratum use.
//!
//! ```text
//!  Get, Set, Subscribe        path: what a request means      tree: the leaves that there are
//!        |                           \                        /
//!        +-> Target::snapshot ------> leaves that match -----> value: as JSON, or as scalars
//!        +-> Target::apply  <-------- set: leaves that may be written
//! ```
//!
//! The tree is made of a [`Snapshot`] when it is asked for, and forgotten: the switch is the only place where state is.
//! Everything has a bound: paths, subscriptions and streams, leaves that a stream compares, how often it does.
//!
//! It never knows where interfaces come from: that is the [`Target`]'s.

mod get;
mod path;
pub mod proto;
mod service;
mod set;
mod subscribe;
mod target;
mod tree;
mod value;

pub use path::{MAX_ELEMENTS, MAX_PATHS};
pub use service::{DEFINITIONS, GNMI_VERSION, MAX_MESSAGE, Service, server};
pub use subscribe::{MAX_SUBSCRIBERS, MAX_SUBSCRIPTIONS, MAX_TRACKED, MIN_INTERVAL, STALL};
pub use target::{Change, Counters, Health, Interface, Kinds, Setting, Snapshot, Target};
