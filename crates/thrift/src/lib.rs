//! The Thrift interface of bmv2's `simple_switch`: a server for a running switch, and a client.
//!
//! ```text
//!  simple_switch_CLI, scripts --TCP--> server: one thread a connection     client <-- millrace shell
//!                                         |
//!                                      device: names, handles, codes of bmv2
//!                                       |  tables, profiles, counters: their handle, at once
//!                                       |  all else: worker of the switch, between two rounds
//! ```
//!
//! It promises:
//! - **Clients of bmv2 work unchanged**: names and numbers of the calls, exceptions and their codes, entry handles, and the
//!   description of the program ([`millrace_control::bmv2`]) are bmv2's. docs/bmv2-cli.md lists what differs.
//! - **Everything has a bound**: connections, messages, lists, nesting, the time that a message takes.
//! - **A refused call changes nothing.**
//!
//! The binary protocol is that of the library `thrift`; calls go over TCP, buffered, several services on one connection.

mod call;
mod client;
mod device;
mod interface;
mod limits;
mod server;
mod wire;

pub use call::{CallError, Undeclared};
pub use client::Client;
pub use device::{DeviceConfig, PortMaker, PortName};
pub use interface::*;
pub use limits::{MAX_CONNECTIONS, MAX_LIST, MAX_MESSAGE, MAX_NESTING, MESSAGE_TIME};
pub use server::{Feed, Server, serve};

/// The port of bmv2.
pub const DEFAULT_PORT: u16 = 9090;
