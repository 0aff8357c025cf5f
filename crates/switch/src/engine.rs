//! The seam between the switch and what runs the program's code.
//!
//! The switch asks one thing of an engine: to run one body over one packet. All else (which body when, copies, queues)
//! is the switch's, so that every engine has the same meaning there.

use crate::tracer::Tracer;
use millrace_interp::{Context, Ending, Interp, World};
use millrace_pipeline::{BodyId, Program};
use std::sync::Arc;

/// What runs the code of a program.
#[derive(Debug)]
pub(crate) enum Engine {
    /// The reference interpreter.
    Interp(Interp),
}

impl Engine {
    pub(crate) fn interp(program: &Arc<Program>) -> Engine {
        Engine::Interp(Interp::new(Arc::clone(program)))
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Engine::Interp(_) => "interp",
        }
    }

    pub(crate) fn run(&self, body: BodyId, context: &mut Context, world: &mut World<'_, Tracer>) -> Ending {
        match self {
            Engine::Interp(interp) => interp.run(body, context, world),
        }
    }
}
