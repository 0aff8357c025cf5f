//! What the control plane says, done to a switch.
//!
//! - [`commands`] runs the runtime commands of bmv2 (`table_add`, `mc_mgrp_create`, ...).
//! - [`runtime_json`] understands the P4Runtime JSON of the P4 tutorials.
//! - [`entries`] loads a file of either kind.
//! - [`saved`] writes the state of a switch as such commands.
//!
//! It promises that a refused command, and a file with one, changes nothing. It never touches a packet.

pub mod commands;
pub mod entries;
pub mod runtime_json;
#[cfg(test)]
mod sample;
pub mod saved;
#[cfg(test)]
mod tests;
