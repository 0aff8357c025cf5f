//! The crate through its public face.

mod common;
mod model;
mod refusals;
mod rules;
mod tags;
