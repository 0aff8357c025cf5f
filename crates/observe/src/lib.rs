//! What can be seen of a running switch.
//!
//! A [`Server`] answers over HTTP: metrics for Prometheus, the same as JSON, and captures that are switched on and off
//! ([`server`] says under which paths). A [`Client`] asks it; [`top`] shows what it hears on a terminal.
//!
//! It promises:
//! - **A scrape never makes a packet wait.** The worker copies its counters between two rounds, at most
//!   [`REPORTS_A_SECOND`] times a second whoever asks how often; all else is done by other threads.
//! - **All numbers of the switch are of one moment**; tables are looked at right after it.
//! - **Who asks is bounded**: connections, the size of a request, the time that it takes.
//!
//! It never writes to a table, and never chooses where files go: captures are in the folder of their [`Captures`].
//!
//! [`Captures`]: millrace_drivers::Captures

mod client;
mod collect;
mod exposition;
mod guard;
mod places;
mod process;
pub mod server;
mod status;
pub mod top;

pub use client::{Client, ClientError};
pub use collect::REPORTS_A_SECOND;
pub use exposition::{CONTENT_TYPE, metrics};
pub use process::Process;
pub use server::{Listen, Log, Server, Shown, StartError};
pub use status::{
    CaptureStatus, Distribution, DropSiteStatus, LogStatus, PortStatus, QueueStatus, Status, TableStatus,
};

/// The port that the server listens on when none is given.
pub const DEFAULT_PORT: u16 = millrace_listen::METRICS.default_port;
