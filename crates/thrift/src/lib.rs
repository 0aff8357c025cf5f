//! A server of bmv2's Thrift interface for a running switch. The interface itself is in [`millrace_thrift_api`].
//!
//! ```text
//!  simple_switch_CLI, scripts --TCP--> server: one thread a connection
//!                                         |
//!                                      device: names, handles, codes of bmv2
//!                                       |  tables, profiles, counters: their handle, at once
//!                                       |  all else: worker of the switch, between two rounds
//! ```
//!
//! It promises:
//! - **Clients of bmv2 work unchanged**: names and numbers of the calls, exceptions and their codes, entry handles, and the
//!   description of the program ([`millrace_describe::bmv2`]) are bmv2's. docs/bmv2-cli.md lists what differs.
//! - **Everything has a bound**: connections, messages, lists, nesting, the time that a message takes.
//! - **A refused call changes nothing.**
//!
//! The binary protocol is that of the library `thrift`; calls go over TCP, buffered, several services on one connection.

mod answer;
mod caller;
mod device;
mod guard;
mod limits;
mod message;
mod notify;
mod packet_in;
mod places;
mod server;
mod services;
mod sp;

pub use device::{DeviceConfig, PortMaker, PortName};
pub use guard::Guard;
pub use limits::{
    ALLOWANCE, FIRST_CALL_TIME, IDLE_TIME, MAX_CONNECTIONS, MAX_CONNECTIONS_OF_PEER, MAX_IN_FLIGHT,
    MESSAGE_TIME,
};
pub use notify::{MAX_SAMPLES, MAX_SUBSCRIBERS, MAX_UNACKNOWLEDGED, MAX_WAITING, Publisher};
pub use packet_in::{
    MAX_PEERS, MAX_WAITING_FRAMES, PacketIn, PacketInPort, PacketInServer, PortChange, Refusal, ToPeer,
    packet_in,
};
pub use server::{Feed, Server, serve};
pub use sp::NanomsgListener;

/// What a [`Guard`] is asked about.
pub use millrace_access::Right;
