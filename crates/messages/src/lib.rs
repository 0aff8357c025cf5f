//! The messages of P4Runtime 1.5.0, P4Info among them, generated from the interface definitions in `proto/`.
//!
//! - A message is a structure ([`p4`], [`google`], [`stratum`]); prost reads and writes its binary form.
//! - [`schema`] has the definitions as static tables: what fields a message has, and of which kinds.
//! - [`text`] reads and writes protobuf's text form and [`json`] writes its JSON form, for messages that are [`Described`]. Both
//!   go by way of the binary form with the tables, so that no message needs code of its own.
//! - [`wire`] walks over the binary form, without making structures of it.
//!
//! It knows neither gRPC nor a program.

mod generated;
pub mod json;
pub mod schema;
pub mod text;
mod view;
pub mod wire;

pub use generated::{google, p4, stratum};
pub use p4::config::v1 as config;
pub use p4::v1;
pub use schema::Described;

/// The definitions of the messages and of the service, as a set of file descriptors in protobuf's binary form.
pub const DEFINITIONS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/definitions.bin"));
