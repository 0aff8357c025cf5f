//! A packet node made of function blocks.
//!
//! ```text
//!  mac --> octet_selector --> tcam --> demultiplexer --> queue --> scheduler --> mac
//!                                            |
//!                                            +--> manager
//! ```
//!
//! [`NodeFile::parse`] reads a file that says which blocks there are, where they are placed, and what is connected; [`Graph`] runs it.
//! Blocks make functions, functions make services, on one device or several. They meet over [interfaces](interface) that are the same
//! in software, on the host link and in hardware.
//!
//! It promises:
//! - **Every frame leaves, waits, or is counted as lost.**
//! - **Everything is bounded** ([`limits`]), and a value out of its limit is refused with the limit's name and its place in the file.
//!
//! It never opens what a file names: who runs a node gives it texts and frames.

#![forbid(unsafe_code)]

pub mod blocks;
mod describe;
mod device;
mod file;
mod graph;
pub mod hardware;
pub mod interface;
mod lease;
pub mod limits;
mod model;
mod ports;
mod registers;
pub mod split;

pub use device::{NodeDevice, Shared};
pub use file::reference;
pub use graph::{Counts, Graph, GraphError};
pub use lease::{LeaseError, SharedMemory, Sharer};
pub use model::*;
pub use ports::{Ports, Round};
pub use registers::{MAP_BYTES, Mapped, WINDOW_WORDS, check_served, map};
