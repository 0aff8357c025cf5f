//! Stages as the hardware of a program runs them, in a simulation of it.

use crate::context::InterpContext;
use crate::{Context, Ended, Engine, EngineError, Stage};
use millrace_interp::{Observer, World};
use millrace_pipeline::semantics::Value;
use millrace_pipeline::{HeaderId, Program, SlotId};
use millrace_rtl::{Capacities, Frame, Hardware, Objects, Options, Part, Refusal, Running, Said, Sim};
use millrace_state::State;
use std::sync::Arc;

/// The simulated hardware as an engine. Its packets are kept as the interpreter keeps them.
#[derive(Debug)]
pub(crate) struct Simulated {
    program: Arc<Program>,
    hardware: Running,
}

impl Simulated {
    /// For a verified program, whose tables take no more entries than its hardware holds.
    ///
    /// # Errors
    /// What hardware cannot do of it.
    pub(crate) fn new(
        program: &Arc<Program>,
        state: &State,
        sim: Sim,
        capacities: &Capacities,
    ) -> Result<Simulated, EngineError> {
        let refused = |refusal: Refusal| EngineError(refusal.to_string());
        let options = Options { capacities: capacities.clone(), ..Options::default() };
        let hardware = Hardware::new(Arc::clone(program), options).map_err(refused)?;
        let capacities: Vec<_> = hardware.capacities().collect();
        let places: Vec<_> = hardware.places().collect();
        let hardware = hardware.simulate(sim).map_err(refused)?;
        let mut tables = state.tables();
        for (table, entries) in capacities {
            tables.set_capacity(table, u32::try_from(entries).unwrap_or(u32::MAX));
        }
        for (profile, places) in places {
            tables.set_places(profile, u32::try_from(places).unwrap_or(u32::MAX));
        }
        drop(tables);
        Ok(Simulated { program: Arc::clone(program), hardware })
    }

    fn run_one(
        &mut self,
        stage: Stage,
        packet: &mut InterpContext,
        world: &mut World<'_, dyn Observer + '_>,
    ) -> Result<Ended, EngineError> {
        let part = match stage {
            Stage::Ingress => Part::Ingress,
            Stage::Parser => Part::Parser,
            Stage::Egress => Part::Egress,
            Stage::Tail(deparser) => Part::Tail(deparser),
        };
        let mut objects =
            Objects { state: &mut *world.state, now_ns: world.now_ns, effects: &mut *world.effects };
        let frame = Kept { program: &self.program, packet };
        let said = self.hardware.run(part, &frame, &mut objects).map_err(EngineError)?;
        let ended = Ended { verdict: said.verdict, number: said.number, drop_site: said.drop_site };
        self.keep(part, packet, said);
        Ok(ended)
    }

    /// Writes what a stage said to the packet.
    fn keep(&self, part: Part, packet: &mut InterpContext, said: Said) {
        let kept = &mut packet.packet;
        for (header, valid) in said.valid {
            match valid {
                true => kept.phv.set_valid(&self.program, header),
                false => kept.phv.set_invalid(header),
            }
        }
        for (slot, value) in said.slots {
            kept.phv.write(&self.program, slot, value);
        }
        kept.cursor = said.cursor;
        if let Part::Ingress | Part::Parser = part {
            packet.parsed_bits = said.parsed_bits;
        }
        if let Some(bytes) = said.bytes {
            kept.bytes = bytes;
        }
    }
}

/// A packet of the interpreter, for the hardware.
struct Kept<'a> {
    program: &'a Program,
    packet: &'a InterpContext,
}

impl Frame for Kept<'_> {
    fn bytes(&self) -> &[u8] {
        &self.packet.packet.bytes
    }

    fn slot(&self, slot: SlotId) -> Value {
        self.packet.packet.phv.read(self.program, slot)
    }

    fn is_valid(&self, header: HeaderId) -> bool {
        self.packet.packet.phv.is_valid(header)
    }

    fn cursor(&self) -> usize {
        self.packet.packet.cursor
    }
}

impl Engine for Simulated {
    fn name(&self) -> &'static str {
        "rtl"
    }

    fn context(&mut self, bytes: &[u8]) -> Context {
        Context::interpreted(&self.program, bytes.to_vec())
    }

    fn run(
        &mut self,
        stage: Stage,
        packets: &mut [Context],
        world: &mut World<'_, dyn Observer + '_>,
        ended: &mut Vec<Ended>,
    ) -> Result<(), EngineError> {
        let program = Arc::clone(&self.program);
        for packet in packets {
            let said = self.run_one(stage, packet.make_interpreted(&program), world)?;
            ended.push(said);
        }
        Ok(())
    }
}
