//! Frames that lie in memory, switched a burst at a time.

use crate::PortId;
use crate::switch::Switch;
use millrace_ports::Burst;
use millrace_ports::null::Written;

impl Switch {
    /// Switches the frames of a burst, which come in on one port, at the time that the clock shows now, and hands on
    /// what leaves, in order. Of the burst's memory it changes at most what [`Switch::written`] says.
    pub fn switch_burst(&mut self, port: PortId, burst: &mut Burst<'_>, mut sent: impl FnMut(PortId, &[u8])) {
        let memory = &*burst.memory;
        let frames = burst.places.iter().filter_map(|place| {
            let frame = memory.get(place.at as usize..)?.get(..place.len as usize)?;
            Some((port, frame))
        });
        let outcome = self.inject_batch(frames, 0);
        outcome.outputs().for_each(|(port, frame)| sent(port, frame));
    }

    /// What [`Switch::switch_burst`] may change of a frame and its surroundings.
    pub fn written(&self) -> Written {
        Written::default()
    }

    /// The name of what runs the program.
    pub fn engine_name(&self) -> &'static str {
        self.engine.name()
    }
}
