//! Plugins before and after a program: what a port receives, and what it sends, passes a chain of steps that filter, sample,
//! share out by hash, classify by lists, and account in flows.
//!
//! A [`Chain`] is a text; [`Inputs`] opens the chains of a switch and puts each around the queue pair of its port, so that a switch
//! needs to know nothing of them and a port without a chain is what it was.
//!
//! ```
//! use millrace_inputs::filter::Filter;
//! let filter = Filter::compile("udp port 53 and not net 10.0.0.0/8").unwrap();
//! assert!(!filter.selects(&[0; 64]));
//! assert!("filter \"tcp\" | sample 1/100".parse::<millrace_inputs::Chain>().is_ok());
//! ```
//!
//! A [`Plan`] has the chains of the operator and those that a program asks for; [`ProgramChains`] has those of a program that takes
//! over from one that runs ready before it does.
//!
//! It promises:
//! - **All is bounded**: expressions, instructions for a frame, lists, flows, records of a second; each has a limit with a name.
//! - **Nothing waits, locks or allocates while packets pass.** Files are written by a thread of their own. Only ports that replay
//!   captures wait for the disk, since time stands still there.
//! - **Each packet that does not go on is counted**, with the step that kept it.
//!
//! It never knows P4: a chain sees bytes of frames.

pub mod chain;
mod classes;
mod error;
pub mod filter;
pub mod flows;
mod headers;
mod inputs;
mod port;
mod ports;
mod selector;
mod status;
mod succession;

pub use chain::Chain;
pub use classes::{MAX_LIST_ENTRIES, MAX_LIST_FILE};
pub use error::{InputError, TextError};
pub use headers::{MAX_EXTENSIONS, MAX_TAGS};
pub use inputs::Inputs;
pub use ports::{MAX_PORT_RANGES, Plan, PortChain};
pub use status::{FlowStatus, InputsStatus, Place, StepStatus};
pub use succession::{PreparedChains, ProgramChains};
