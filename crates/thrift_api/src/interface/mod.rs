//! The interface of bmv2: its types and calls with the field numbers that they have on the wire.
//!
//! Names, numbers and meanings are those of bmv2, so that its clients work unchanged. Most calls have a first argument that
//! names one of several programs in the switch; as there is always one, it is neither read nor sent. The service `millrace` is
//! what bmv2 has no call for.

mod codes;
mod millrace;
mod simple_pre_lag;
mod simple_switch;
mod standard;
mod types;

pub use types::*;
