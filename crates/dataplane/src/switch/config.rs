//! How a switch is set up, and why it cannot be.

use super::KnownPorts;
use crate::{Clock, HardwareConfig, QueueConfig, QueueError, Quotas};
use millrace_engine::{Compiler, EngineError, EngineKind};
use millrace_midend::Cancel;
use millrace_state::{BuildError, PluginHost};
use std::fmt;
use std::sync::Arc;

/// Most ports of a switch.
pub const MAX_PORTS: usize = 4096;

/// Most copies and passes that come of one packet. Each replication divides what is left between the copies, so that
/// no configuration makes a packet explode.
pub const MAX_COPIES: u32 = 1 << 14;

/// How a switch is set up.
#[derive(Clone, Debug)]
pub struct SwitchConfig {
    /// The ports that exist.
    pub ports: KnownPorts,
    /// What queues are like at first.
    pub queues: QueueConfig,
    /// How often a packet may begin ingress or be cloned in egress: one more and it is dropped.
    pub max_passes: u32,
    /// What it cannot exceed. Of a program that may take over from one that runs, those of that one hold.
    pub quotas: Quotas,
    /// The clock. A worker has its own, unless this one [is followed](Clock::Followed).
    pub clock: Clock,
    /// Where the program's random numbers start.
    pub seed: u64,
    /// What runs the program.
    pub engine: EngineKind,
    /// The hardware of programs.
    pub hardware: HardwareConfig,
    /// Whether compiled code counts the lookups of tables. (The interpreter always does.)
    pub count_lookups: bool,
    /// Whether somebody still waits for the switch to be made. To be settled before it runs.
    pub cancel: Cancel,
    /// Runs the plugins that the program calls; none: those of the program that it takes over from, else they are missing.
    pub plugins: Option<Arc<dyn PluginHost>>,
    /// Makes code that packets do not wait for. Switches that share it take turns.
    pub compiler: Compiler,
}

impl Default for SwitchConfig {
    /// Any port, one queue each, 128 passes, [`crate::DEFAULT_PACKET_MEMORY`], no quotas, a simulated clock at 0, seed 0, the reference interpreter; lookups
    /// are not counted.
    fn default() -> SwitchConfig {
        SwitchConfig {
            ports: KnownPorts::Any,
            queues: QueueConfig::default(),
            max_passes: 128,
            quotas: Quotas::default(),
            clock: Clock::simulated(),
            seed: 0,
            engine: EngineKind::Interp,
            hardware: HardwareConfig::default(),
            count_lookups: false,
            cancel: Cancel::default(),
            plugins: None,
            compiler: Compiler::default(),
        }
    }
}

/// Why a switch cannot be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SwitchError {
    /// The program has objects that cannot be made.
    State(BuildError),
    /// The engine does not take the program.
    Engine(String),
    /// Nobody waits for it any more ([`SwitchConfig::cancel`]).
    Cancelled,
    /// The queues cannot be like that.
    Queues(QueueError),
    /// More than [`MAX_PORTS`] ports.
    TooManyPorts(usize),
}

impl fmt::Display for SwitchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SwitchError::State(error) => error.fmt(f),
            SwitchError::Engine(reason) => f.write_str(reason),
            SwitchError::Cancelled => f.write_str("nobody waits for the program any more"),
            SwitchError::Queues(error) => error.fmt(f),
            SwitchError::TooManyPorts(given) => {
                write!(f, "a switch has at most {MAX_PORTS} ports, {given} given")
            }
        }
    }
}

impl std::error::Error for SwitchError {}

impl SwitchError {
    /// The engines refuse something.
    pub(crate) fn of_engines(error: EngineError) -> SwitchError {
        SwitchError::Engine(error.0)
    }
}
