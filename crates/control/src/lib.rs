//! The control side: what a program shows to its control plane, and what the control plane may say.
//!
//! - [`p4info`] describes a program as P4Runtime does, with the ids of p4c.
//! - [`bmv2`] describes it as bmv2 does, for clients of bmv2.
//! - [`commands`] understands the runtime commands of bmv2 (`table_add`, `mc_mgrp_create`, ...), one a line.
//! - [`runtime_json`] understands the P4Runtime JSON of the P4 tutorials.
//! - [`entries`] loads a file of either kind.
//! - [`saved`] writes the state of a switch as such commands.
//! - [`image`] is a compiled program with its description as a file.
//! - [`value`] and [`matching`] read single values and match fields; test languages use them too.
//!
//! It promises that what does not fit the program is refused with the place in the text, the reason and, where one is
//! near, what was probably meant ([`Refusal`]); and that a refused command, and a file with one, changes nothing.
//!
//! It never touches a packet.

pub mod bmv2;
pub mod commands;
pub mod entries;
pub mod image;
pub mod matching;
mod near;
pub mod p4info;
mod priority;
mod refusal;
pub mod runtime_json;
#[cfg(test)]
mod sample;
pub mod saved;
#[cfg(test)]
mod tests;
pub mod value;

pub use near::nearest;
pub use priority::{bmv2_priority, from_bmv2_priority};
pub use refusal::{MAX_REFUSALS, Refusal, diagnostics};
