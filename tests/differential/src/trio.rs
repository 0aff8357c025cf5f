//! Three switches in step.

use crate::memory::memory;
use millrace_dataplane::{DigestMessage, EngineKind, Outcome, PortId, Switch, SwitchConfig, SwitchError};
use millrace_frames::{Burst, HEADROOM, Place, TAILROOM};
use millrace_pipeline::Program;
use std::fmt::{self, Debug};
use std::sync::Arc;

/// The reference interpreter, compiled code packet by packet, and compiled code over bursts.
#[derive(Debug)]
pub struct Trio {
    /// What the others are compared with.
    pub interp: Switch,
    single: Switch,
    burst: Switch,
    /// Batches so far.
    batches: u32,
}

/// Something that is not the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference(String);

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Trio {
    /// Three switches with a program, each set up in the same way.
    ///
    /// # Errors
    /// The program cannot be run at all.
    pub fn new(
        program: &Arc<Program>,
        config: &SwitchConfig,
        mut set_up: impl FnMut(&mut Switch),
    ) -> Result<Trio, SwitchError> {
        let mut make = |engine| {
            let mut switch = Switch::new(Arc::clone(program), SwitchConfig { engine, ..config.clone() })?;
            set_up(&mut switch);
            Ok(switch)
        };
        Ok(Trio {
            interp: make(EngineKind::Interp)?,
            single: make(EngineKind::Jit)?,
            burst: make(EngineKind::Jit)?,
            batches: 0,
        })
    }

    /// A batch of packets comes in on a port at a time; gives what became of it.
    ///
    /// # Errors
    /// Something is not the same.
    pub fn packets(
        &mut self,
        port: PortId,
        packets: &[Vec<u8>],
        time_ns: u64,
    ) -> Result<Outcome, Difference> {
        let frames = || packets.iter().map(|packet| (port, packet.as_slice()));
        let wanted = self.interp.inject_batch(frames(), time_ns);
        let found = self.single.inject_batch(frames(), time_ns);
        compare("packet by packet", "outcome", &wanted, &found)?;
        // The first batch meets the code that a program starts with, the others the best.
        if self.batches == 1 {
            self.burst.use_best_code().map_err(|error| Difference(format!("no code: {error}")))?;
        }
        self.batches += 1;
        let found = in_a_burst(&mut self.burst, port, packets, time_ns);
        let sent: Vec<(PortId, Vec<u8>)> =
            wanted.outputs().map(|(port, bytes)| (port, bytes.to_vec())).collect();
        compare("in a burst", "packets", &sent, &found.sent)?;
        compare("in a burst", "messages", &wanted.digests, &found.digests)?;
        compare("in a burst", "log", &wanted.log, &found.log)?;
        for (way, switch) in [("packet by packet", &self.single), ("in a burst", &self.burst)] {
            compare(way, "counters", self.interp.counters(), switch.counters())?;
        }
        Ok(wanted)
    }

    /// Compares all state.
    ///
    /// # Errors
    /// Something is not the same.
    pub fn state(&self) -> Result<(), Difference> {
        for (way, switch) in [("packet by packet", &self.single), ("in a burst", &self.burst)] {
            let (wanted, found) = (memory(&self.interp), memory(switch));
            for (wanted, found) in wanted.iter().zip(&found) {
                compare(way, "memories", wanted, found)?;
            }
            compare(way, "sizes of the memory", &wanted.len(), &found.len())?;
        }
        Ok(())
    }
}

/// What left a switch.
struct Left {
    sent: Vec<(PortId, Vec<u8>)>,
    digests: Vec<DigestMessage>,
    log: Vec<String>,
}

/// Switches packets as a burst at a time.
fn in_a_burst(switch: &mut Switch, port: PortId, packets: &[Vec<u8>], time_ns: u64) -> Left {
    let mut waited = switch.advance_to(time_ns);
    let mut sent: Vec<(PortId, Vec<u8>)> =
        waited.outputs().map(|(port, bytes)| (port, bytes.to_vec())).collect();
    let mut memory = Vec::new();
    let mut places = Vec::new();
    for packet in packets {
        memory.resize(memory.len() + HEADROOM, 0);
        places.push(Place { at: memory.len() as u32, len: packet.len() as u32 });
        memory.extend_from_slice(packet);
    }
    memory.resize(memory.len() + TAILROOM, 0);
    let mut burst = Burst::new(&mut memory, &places, HEADROOM).expect("packets with room on both sides");
    switch.switch_burst(port, &mut burst, |port, output| sent.push((port, output.bytes.to_vec())));
    let (digests, log) = switch.take_messages();
    waited.digests.extend(digests);
    waited.log.extend(log);
    Left { sent, digests: waited.digests, log: waited.log }
}

fn compare<T: PartialEq + Debug>(way: &str, what: &str, wanted: &T, found: &T) -> Result<(), Difference> {
    if wanted == found {
        return Ok(());
    }
    let (wanted, found) = (format!("{wanted:?}"), format!("{found:?}"));
    let same = wanted.bytes().zip(found.bytes()).take_while(|(a, b)| a == b).count();
    let part = |text: &str| -> String { text.chars().skip(same.saturating_sub(200)).take(600).collect() };
    Err(Difference(format!(
        "{way}, the {what} differ\n  interpreter: ...{}\n  compiled:    ...{}",
        part(&wanted),
        part(&found)
    )))
}
