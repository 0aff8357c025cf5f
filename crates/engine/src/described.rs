//! The code that a program would run as with its tables as they are, described for who asks what it costs.

use crate::common::Common;
use crate::{Stage, schedule};
use millrace_jit::{Compiled, Effort, JitError, Options};
use millrace_midend::machine::MachineCode;
use millrace_midend::{Plan, Start};
use millrace_pipeline::Program;
use millrace_state::State;
use std::sync::Arc;

/// A piece of code of a program.
pub struct Described {
    /// `burst`, or the stage that single packets pass.
    pub name: &'static str,
    /// Where its packets come from.
    pub start: Start,
    /// The code.
    pub compiled: Compiled,
    /// What it is made of.
    pub code: MachineCode,
}

impl std::fmt::Debug for Described {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Described").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The program as it is compiled, and the code that its packets pass with the tables as they are: one function for bursts, or, where the
/// order of packets forbids bursts, ingress and egress for one packet at a time. It is the best code that there is, which a switch
/// starts with or makes soon.
///
/// # Errors
/// The code cannot be made.
pub fn described(
    program: &Arc<Program>,
    state: &mut State,
) -> Result<(Arc<Program>, Vec<Described>), JitError> {
    let common = Common::of(program);
    let program = Arc::clone(&common.program);
    let order = common.order;
    let make = |name, plan: &Plan, options: &Options| -> Result<Described, JitError> {
        let (compiled, code) = Compiled::described(&program, plan, options)?;
        Ok(Described { name, start: plan.start, compiled, code })
    };
    if order.is_free && order.egress_is_plain {
        let options = Options { effort: Effort::Speed, ..schedule::choose(&program, state) };
        let burst = make("burst", &Plan::through(&program, true), &options)?;
        return Ok((program, vec![burst]));
    }
    let options = Options::default();
    let stages = [Stage::Ingress, Stage::Egress].map(|stage| match stage {
        Stage::Egress => make("egress", &Plan::egress(&program), &options),
        _ => make("ingress", &Plan::ingress(&program), &options),
    });
    let stages = stages.into_iter().collect::<Result<_, _>>()?;
    Ok((program, stages))
}
