//! The crate through its public face.

mod common;
mod refusals;
mod rules;
mod tags;
