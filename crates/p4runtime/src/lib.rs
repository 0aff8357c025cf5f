//! The P4Runtime server of a running switch (P4Runtime 1.5.0).
//!
//! ```text
//!  clients --gRPC--> service: arbitration, pipeline config, write, read, streams     (one thread of its own)
//!                        |  requests, decoded and checked      ^ digests, frames of the CPU port
//!                        v                                     |
//!                    worker of the switch, between two rounds
//! ```
//!
//! It promises:
//! - **The data path never waits for it**: a request reaches the worker decoded and is short; batches are applied in
//!   parts, except where the client asks for all at once. What goes to a client is a queue that loses what it cannot hold.
//! - **Everything has a bound**: messages, queues, clients, roles, metadata.
//! - **A refused update changes nothing**, and a batch that was begun is done to its end, whether or not its client waits.
//!
//! It never knows a port driver but its own, the [`cpu_port`].

mod arbitration;
mod budget;
mod catalog;
pub mod client;
mod compile;
mod connections;
mod cpu_port;
mod data;
mod device;
mod digests;
mod forwarding;
mod greeting;
mod idle;
mod initial;
mod interfaces;
mod p4info;
mod packets;
mod peers;
mod programs;
pub mod proto;
mod read;
mod reconcile;
mod refusal;
mod report;
mod role_config;
mod routes;
mod server;
mod service;
mod shadow;
mod status;
mod streams;
mod tasks;
mod translation;
mod turns;
mod value;
mod weight;
mod write;

pub use arbitration::{MAX_CLIENTS_PER_ROLE, MAX_ROLES};
pub use budget::{
    ALLOWANCE, MAX_IN_FLIGHT, MAX_MESSAGE, MAX_REQUEST, MAX_STREAM_MESSAGE, MESSAGE_TIME,
    RESERVED_FOR_PRIMARIES,
};
pub use connections::GREETING_TIME;
pub use cpu_port::{CPU_QUEUE, CpuLink, CpuPort, SendError, cpu_port};
pub use initial::InitialEntries;
pub use peers::{MAX_CONNECTIONS, MAX_CONNECTIONS_OF_PEER};
pub use programs::{Candidate, Making, Programs};
pub use read::{Answers, MAX_READ_BACKLOG, STALL, TAKING_TIME};
pub use report::{Item, KEEP_KEY, MAX_REPORT, REPORT_KEY, Report};
pub use role_config::MAX_ROLE_IDS;
pub use routes::MAX_SMALL_MESSAGE;
pub use server::{DeviceConfig, Feed, Listen, MAX_CALLS, Server, StartError, Tls, service};
pub use service::{ARBITRATION_TIME, Service};
pub use streams::{
    MAX_STREAM_BACKLOG, MAX_STREAMS, MAX_STREAMS_OF_CONNECTION, MAX_STREAMS_OF_PEER, StreamAnswers,
};
pub use turns::MAX_WAITING_PROGRAMS;

use millrace_describe::image::Image;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The version of P4Runtime that the server speaks.
pub const API_VERSION: &str = "1.5.0";

/// A program with what controllers are told of it.
#[derive(Clone, Debug)]
pub struct Pipeline {
    /// The verified program.
    pub(crate) program: Arc<millrace_pipeline::Program>,
    /// Its description.
    pub(crate) p4info: proto::config::P4Info,
    /// The widths of the fields of controller headers in the data plane, by the name of the header.
    pub(crate) controller_headers: BTreeMap<String, Vec<u32>>,
    /// What it was made from: the text of a P4_16 program, or an image.
    pub(crate) device_config: Vec<u8>,
}

impl Pipeline {
    /// The pipeline of an image, which was made from that device config.
    ///
    /// # Errors
    /// What is wrong with its P4Info.
    pub fn new(image: Image, device_config: Vec<u8>) -> Result<Pipeline, String> {
        let Image { program, p4info, controller_headers } = image;
        p4info::check_describes(&p4info, &program)?;
        Ok(Pipeline { program, p4info, controller_headers, device_config })
    }

    /// Gives it another port that means drop.
    ///
    /// # Errors
    /// As [`millrace_compile::set_drop_port`] says.
    pub fn set_drop_port(&mut self, port: u32) -> Result<(), String> {
        millrace_compile::set_drop_port(Arc::make_mut(&mut self.program), port)
    }

    /// The program.
    pub fn program(&self) -> &Arc<millrace_pipeline::Program> {
        &self.program
    }
}

/// A program that drops every packet, for a switch that waits for a controller to bring one.
///
/// # Errors
/// None, unless the compiler is broken.
pub fn empty_program() -> Result<Arc<millrace_pipeline::Program>, String> {
    let source = include_bytes!("empty.p4");
    let made = compile::compile(source, None, &millrace_dataplane::Cancel::default())
        .map(|pipeline| pipeline.program);
    let mut program = made.map_err(|refusal| refusal.message)?;
    // It has no architecture whose ports would bound those of the programs to come.
    std::sync::Arc::make_mut(&mut program).architecture = "none".into();
    Ok(program)
}
