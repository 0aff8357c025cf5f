//! The P4Runtime server of running switches, one or several (P4Runtime 1.5.0).
//!
//! ```text
//!  clients --gRPC--> service: pipeline config, write, read, streams                  (one thread of its own)
//!                        |
//!                    devices: which one, and may the client          (the access list: `millrace-access`)
//!                        |
//!                    device: arbitration, quota of requests
//!                        |  requests, decoded and checked      ^ digests, frames of the CPU port
//!                        v                                     |
//!                    worker of the switch, between two rounds
//! ```
//!
//! It promises:
//! - **The data path never waits for it**: a request reaches the worker decoded and is short; batches are applied in
//!   parts, except where the client asks for all at once. What goes to a client is a queue that loses what it cannot hold.
//! - **Everything has a bound**: messages, queues, clients, roles, metadata. Of what devices share each has its part.
//! - **A refused update changes nothing**, and a batch that was begun is done to its end, whether or not its client waits.
//!
//! It never knows a port driver but its own, the [`cpu_port`].

mod arbitration;
mod budget;
mod caller;
mod catalog;
mod connections;
mod cpu_port;
mod data;
mod device;
mod devices;
mod digests;
mod forwarding;
mod greeting;
mod idle;
mod initial;
mod interfaces;
mod line;
mod opened;
mod p4info;
mod packets;
mod peers;
mod programs;
mod read;
mod reconcile;
mod refusal;
mod requests;
mod role_config;
mod routes;
mod server;
mod service;
mod session;
mod shadow;
mod status;
mod streams;
mod tasks;
mod translation;
mod value;
mod weight;
mod write;

pub use arbitration::{MAX_CLIENTS_PER_ROLE, MAX_ROLES};
pub use budget::{
    ALLOWANCE, MAX_IN_FLIGHT, MAX_MESSAGE, MAX_REQUEST, MAX_STREAM_MESSAGE, MESSAGE_TIME,
    RESERVED_FOR_PRIMARIES,
};
pub use caller::RemoteCaller;
pub use connections::GREETING_TIME;
pub use cpu_port::{CPU_QUEUE, CpuLink, CpuPort, FromSwitch, SendError, ToSwitch, cpu_port};
pub use devices::{AddError, Devices, MAX_DEVICES, Policy, Served, Share};
pub use initial::InitialEntries;
pub use line::{MAX_STREAM_BACKLOG, MAX_STREAMS_OF_CONNECTION, StreamAnswers};
pub use opened::{DeviceConfig, Feed};
pub use peers::{MAX_CONNECTIONS, MAX_CONNECTIONS_OF_PEER};
pub use read::{Answers, MAKING_TIME, MAX_READ_BACKLOG, STALL, TAKING_TIME};
pub use requests::Usage;
pub use role_config::MAX_ROLE_IDS;
pub use routes::{Another, MAX_SMALL_MESSAGE};
pub use server::{Listen, MAX_CALLS, MAX_KEY_BYTES, Server, SharedServer, StartError, Tls, service};
pub use service::Service;
pub use session::ARBITRATION_TIME;
pub use streams::{MAX_STREAMS, MAX_STREAMS_OF_PEER};
