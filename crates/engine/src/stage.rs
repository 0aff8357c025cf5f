//! The seam: stages of a program, and what an engine says about them.

use crate::Context;
use millrace_interp::{Observer, World};
use millrace_midend::Verdict;
use std::fmt;

/// A part of a program that runs without the switch in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Ingress.
    Ingress,
    /// Ingress up to its first parser: for clones, which are parsed again.
    Parser,
    /// Egress, up to a clone before a deparser.
    Egress,
    /// The rest of egress after a clone before its deparser of that number, counted from 0.
    Tail(u32),
}

/// What a stage said about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// How it ended. [`Verdict::Stopped`]: the packet's context holds what the program asks for.
    pub verdict: Verdict,
    /// What goes with the verdict: the parser's error, or the number of the deparser.
    pub number: u32,
    /// Where the program asked for a drop.
    pub drop_site: u16,
}

impl Ended {
    /// The stage is done, and the context holds what it asks for.
    pub const STOPPED: Ended = Ended { verdict: Verdict::Stopped, number: 0, drop_site: 0 };

    /// An end with nothing else to say.
    pub fn of(verdict: Verdict) -> Ended {
        Ended { verdict, ..Ended::STOPPED }
    }
}

/// Why an engine cannot run a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineError(pub String);

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for EngineError {}

/// Runs the stages of one program.
pub trait Engine: fmt::Debug + Send {
    /// What people call it.
    fn name(&self) -> &'static str;

    /// A packet of these bytes that no stage has seen.
    fn context(&mut self, bytes: &[u8]) -> Context;

    /// Another packet like one of this engine.
    fn copy(&mut self, of: &Context) -> Context {
        of.clone()
    }

    /// Takes the memory of a packet that is done.
    fn take_back(&mut self, context: Context) {
        drop(context);
    }

    /// Runs a stage over packets that this engine has made, in order, and appends to `ended` what it said of each.
    ///
    /// # Errors
    /// The stage cannot be run; the packets are as they were, and nothing is appended.
    fn run(
        &mut self,
        stage: Stage,
        packets: &mut [Context],
        world: &mut World<'_, dyn Observer + '_>,
        ended: &mut Vec<Ended>,
    ) -> Result<(), EngineError>;
}
