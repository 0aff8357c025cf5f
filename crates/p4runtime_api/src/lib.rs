//! P4Runtime 1.5.0 as gRPC has it: the messages ([`v1`], [`config`]) with the service, whose client and server are made from the
//! interface definitions, and a [`client`] that brings a switch another program.
//!
//! The server of a switch is in `millrace_p4runtime`.
//!
//! It never links a switch: a client needs neither a data path nor a code generator.

pub mod client;
pub mod election;
mod proto;

pub use proto::{config, google, p4, stratum, v1};

/// The version of P4Runtime that the server speaks.
pub const API_VERSION: &str = "1.5.0";
/// The key of the metadata of a request that says what to keep: `everything`, `compatible` or `nothing`.
pub const KEEP_KEY: &str = "millrace-keep";
/// The key of the metadata of the answer that has a [`millrace_swap_report::Report`], as JSON.
pub const REPORT_KEY: &str = "millrace-swap-bin";
