//! What can be seen of a running switch.
//!
//! A [`Server`] answers over HTTP: metrics for Prometheus, the same as JSON, and captures that are switched on and off
//! ([`server`] says under which paths), for one switch or for the many of a device ([`Switches`]), which come and go meanwhile.
//! What clients read and how they ask is in `millrace_observe_api`.
//!
//! It promises:
//! - **A scrape never makes a packet wait.** The worker copies its counters between two rounds, at most
//!   [`REPORTS_A_SECOND`] times a second whoever asks how often; all else is done by other threads.
//! - **All numbers of a switch are of one moment**; tables are looked at right after it.
//! - **A client of a device hears of the switches that it may read**, and of no other not even that they are there. Who may what is for
//!   one access list to say, over [`Switches`].
//! - **Who asks is bounded**: connections, the size of a request, the time that it takes.
//!
//! It never writes to a table, and never chooses where files go: captures are in the folder of their [`Captures`].
//!
//! [`Captures`]: millrace_drivers::Captures

mod afdx;
mod collect;
mod exposition;
mod guard;
mod observer;
mod places;
mod process;
pub mod server;
mod status;

pub use collect::REPORTS_A_SECOND;
pub use exposition::{CONTENT_TYPE, metrics, metrics_of_many};
pub use observer::Observer;
pub use server::{
    Change, DEVICE, Listen, Log, Modes, NoModes, NoPlugins, Physical, Plugins, Server, Shown, StartError,
    Switches, Watched,
};
