//! The Thrift interface of bmv2's `simple_switch`: its types and calls, how they are written on the wire, and a client.
//!
//! ```no_run
//! let mut client = millrace_thrift_api::Client::connect(("localhost", millrace_thrift_api::DEFAULT_PORT)).unwrap();
//! println!("{} entries", client.bm_mt_get_num_entries("Ingress.routes".to_owned()).unwrap());
//! ```
//!
//! Each service is a list of calls, which is written once: [`standard_calls!`], [`simple_pre_lag_calls!`],
//! [`simple_switch_calls!`] and [`millrace_calls!`]. The methods of the [`Client`] are made from these lists here, and the
//! server of `millrace_thrift` makes from them what it answers.
//!
//! It never links a switch: a client needs neither a data path nor a code generator.

mod call;
mod client;
mod interface;
pub mod limits;
pub mod wire;

pub use call::{CallError, Undeclared};
pub use client::Client;
pub use interface::*;

/// The port of bmv2.
pub const DEFAULT_PORT: u16 = 9090;
