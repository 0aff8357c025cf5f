//! What `millrace ctl` and a running device with virtual switches say to each other over a socket of this machine, or over gRPC.
//!
//! A client connects, says who it is in one line ([`Hello`]), then asks: a line of JSON for each [`Request`], which has a line of JSON as its
//! answer ([`Answer`]). Nothing else is sent, and nothing without being asked for.
//!
//! ```text
//!  {"version":1}
//!                                      {"ready":{"device":"edge"}}
//!  {"swap":{"switch":"l2","program":"..."}}
//!                                      {"changed":{"done":["..."],"kept":[]}}
//! ```
//!
//! Over gRPC ([`proto`]) the same bytes go in [`parts`]; only who the client is, and the contents of files, are told in another way.
//!
//! It promises that each line has a bound ([`MAX_HELLO`], [`MAX_REQUEST`], [`MAX_ANSWER`]). It never links a switch.

#![forbid(unsafe_code)]

mod answer;
mod client;
mod line;
pub mod parts;
pub mod proto;
mod remote;
mod request;

pub use answer::{
    Answer, Changed, GraphStatus, LinkStatus, PhysicalStatus, PortStatus, Problem, RefusalKind, Refused,
    ShadowStatus, Stats, SwitchStats, SwitchStatus,
};
pub use client::{Client, ClientError};
pub use line::{LineError, line_of, read_line, write_line};
pub use request::{Hello, Probation, Request};

/// The definitions of the gRPC service, encoded, for server reflection.
pub const DEFINITIONS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/definitions.bin"));
/// The version of what is said.
pub const VERSION: u32 = 1;
/// Longest line of a [`Hello`], in bytes.
pub const MAX_HELLO: usize = 4096;
/// Longest line of a [`Request`], in bytes: an image, with what JSON makes of its quotes.
pub const MAX_REQUEST: usize = 80 << 20;
/// Longest line of an [`Answer`], in bytes.
pub const MAX_ANSWER: usize = 256 << 20;
