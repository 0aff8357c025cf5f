//! Why a worker cannot be made.

use super::MAX_WORKERS;
use crate::PortId;
use crate::switch::SwitchError;
use std::{fmt, io};

/// Why a worker cannot be made.
#[derive(Debug)]
pub enum RunError {
    /// The switch cannot have these ports.
    Switch(SwitchError),
    /// Two ports have one number.
    DuplicatePort(PortId),
    /// A port has neither one queue pair nor as many as there are workers.
    QueuePairs(PortId, usize),
    /// No worker, or more than [`MAX_WORKERS`].
    Workers(usize),
    /// Ports that replay captures have one worker: the order of all frames is theirs.
    Simulated,
    /// Ports that replay captures have the time of these.
    Clock,
    /// A hardware device elsewhere has a time of its own.
    Device,
    /// The operating system refused something.
    System(io::Error),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Switch(error) => error.fmt(f),
            RunError::DuplicatePort(port) => write!(f, "port {port} is given twice"),
            RunError::QueuePairs(port, pairs) => {
                write!(f, "port {port} has {pairs} queue pairs: one is needed, or one for each worker")
            }
            RunError::Workers(given) => write!(f, "a switch has 1 to {MAX_WORKERS} workers, not {given}"),
            RunError::Simulated => f.write_str(
                "ports that replay captures have one worker, which takes the frames of all in the order of their times",
            ),
            RunError::Clock => {
                f.write_str("ports that replay captures bring their own time: leave the clock out")
            }
            RunError::Device => f.write_str(
                "ports that replay captures go through a device that is simulated in this process, not through one elsewhere",
            ),
            RunError::System(error) => write!(f, "cannot make a worker: {error}"),
        }
    }
}

impl std::error::Error for RunError {}
