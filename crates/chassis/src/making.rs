//! From a program's bytes to a switch that may take over.

use crate::compile::compile;
use crate::error::{ProgramError, Why};
use crate::modes::Modes;
use crate::pipeline::Pipeline;
use millrace_compile::check_port;
use millrace_dataplane::{
    BuildError, Cancel, EngineKind, HardwareConfig, Moment, Switch, SwitchConfig, SwitchError,
};
use millrace_inputs::ProgramChains;
use std::sync::Arc;
use tracing::warn;

/// How programs that are brought to a running switch are made to run.
#[derive(Clone, Debug, Default)]
pub struct Making {
    /// What runs them.
    pub engine: EngineKind,
    /// Their hardware.
    pub hardware: HardwareConfig,
    /// Whether they count the lookups of their tables.
    pub count_lookups: bool,
    /// The port number that means drop to them; none: as their architecture has it.
    pub drop_port: Option<u32>,
    /// What has the chains of plugins ready that they ask for; none: they get none.
    pub chains: Option<ProgramChains>,
    /// The mode of the switch, which says whether programs are taken now, and which they are told; none: they always are.
    pub modes: Option<Modes>,
}

impl Making {
    /// The program of an image or a text, as it runs here.
    ///
    /// # Errors
    /// It is none, or nobody waits for it any more.
    pub fn pipeline(&self, config: &[u8], cancel: &Cancel) -> Result<Pipeline, ProgramError> {
        let mut pipeline = compile(config, cancel)?;
        if let Some(port) = self.drop_port {
            pipeline.set_drop_port(port).map_err(ProgramError::invalid)?;
        }
        Ok(pipeline)
    }

    /// A switch that runs it, made to take over from the one that runs now; with `at_once` for that alone, and to keep what
    /// there is.
    ///
    /// # Errors
    /// It cannot run here, or nobody waits for it any more.
    pub fn switch(
        &self,
        pipeline: &Pipeline,
        running: &Moment,
        at_once: bool,
        cancel: &Cancel,
    ) -> Result<Switch, ProgramError> {
        if let Some(modes) = &self.modes {
            modes.check_load().map_err(ProgramError::invalid)?;
        }
        if let Some(port) = running.largest_port {
            check_port(&pipeline.program, port).map_err(ProgramError::invalid)?;
        }
        let Making { engine, count_lookups, .. } = *self;
        let asked = pipeline.program.chains.iter().map(|chain| (chain.is_output, chain.text.as_str()));
        let chains = self.chains.as_ref().map(|chains| chains.prepare(asked)).transpose();
        let chains = chains.map_err(|error| {
            let message = format!("a chain of plugins that the program asks for cannot be had: {error}");
            ProgramError::invalid(message)
        })?;
        let hardware = self.hardware.clone();
        let cancel = cancel.clone();
        let config = SwitchConfig { engine, hardware, count_lookups, cancel, ..SwitchConfig::default() };
        let make = if at_once { Switch::successor } else { Switch::alongside };
        let mut switch =
            make(Arc::clone(&pipeline.program), config, &running.tables).map_err(|error| match error {
                SwitchError::Cancelled => ProgramError::new(Why::Cancelled, error.to_string()),
                SwitchError::State(BuildError::Quota { .. }) => {
                    ProgramError::new(Why::TooMany, error.to_string())
                }
                error => ProgramError::invalid(format!("the device config cannot be realized: {error}")),
            })?;
        if let Some(reason) = switch.without_code() {
            warn!(program = pipeline.program.name, reason, "the interpreter runs the program");
        }
        if let Some(modes) = &self.modes {
            modes.set_up(&mut switch);
        }
        if let Some(chains) = chains {
            switch.at_exchange(|| chains.start());
        }
        Ok(switch)
    }
}
