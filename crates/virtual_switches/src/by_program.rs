//! The program that says which switch a frame belongs to: the port that it sends a frame to is the result that `match = { id = N }` compares.
//!
//! Each lane has a switch of its own with the program. It gets each frame of ports that have such matches, as from the port of the number that
//! the device has given the physical port; what it does to the frame is forgotten.

use crate::failure::Failure;
use millrace_backplane::Classify;
use millrace_chassis::Pipeline;
use millrace_dataplane::{Clock, EngineKind, Switch, SwitchConfig};
use std::sync::Arc;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct ByProgram {
    switch: Switch,
    clock: Clock,
}

impl ByProgram {
    pub(crate) fn new(pipeline: &Pipeline) -> Result<ByProgram, Failure> {
        let config =
            SwitchConfig { engine: EngineKind::Fastest, clock: Clock::real(), ..SwitchConfig::default() };
        let switch = Switch::new(Arc::clone(&pipeline.program), config);
        let switch = switch.map_err(|error| Failure::Invalid(format!("[classify]: {error}")))?;
        Ok(ByProgram { switch, clock: Clock::real() })
    }
}

impl Classify for ByProgram {
    fn id(&mut self, physical: u16, frame: &[u8]) -> Option<u32> {
        let outcome = self.switch.inject(physical.into(), frame, self.clock.now_ns());
        outcome.sent.first().map(|sent| sent.port)
    }
}
