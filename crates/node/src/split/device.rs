//! The device of a program that is taken apart: its parts as simulated hardware, over the host link.

use super::cut::{Cut, StageParts};
use super::live::Live;
use super::packet::{Head, Packet, decode, encode, head};
use millrace_link::{Device, Event, Fault, Shape};
use millrace_pipeline::semantics::Value;
use millrace_pipeline::*;
use millrace_rtl::{Frame, Hardware, Objects, Options, Part, Refusal, Running, Said, Sim};
use millrace_state::{Effects, State};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// What is asked of the device.
pub(super) const INGRESS: u8 = 0;
pub(super) const PARSER: u8 = 1;
pub(super) const EGRESS: u8 = 2;
pub(super) const GO_ON: u8 = 3;
/// What it answers: a table is to be applied, or a verdict of the program.
pub(super) const AT_SITE: u8 = 0xff;
/// The part cannot be run.
pub(super) const FAILED: u8 = 0xfe;

/// Most answers that wait to be polled.
const MAX_ANSWERS: usize = 256;

/// Serves the hardware of a program to the part of it that is in software.
#[derive(Debug)]
pub struct SplitDevice {
    cut: Arc<Cut>,
    stages: [Stage; 2],
    capacities: BTreeMap<TableId, u64>,
    state: Option<State>,
    answers: VecDeque<Vec<u8>>,
}

/// The hardware of a stage.
#[derive(Debug, Default)]
struct Stage {
    before: Option<Running>,
    middle: Option<Running>,
    after: Option<Running>,
}

impl SplitDevice {
    /// The hardware of a program that was taken apart. It takes frames when it has objects.
    ///
    /// # Errors
    /// What hardware cannot do.
    pub fn new(cut: &Arc<Cut>) -> Result<SplitDevice, Refusal> {
        let mut capacities = BTreeMap::new();
        let mut make = |of: &StageParts, is_ingress: bool| -> Result<Stage, Refusal> {
            let first = if is_ingress { &[Part::Ingress, Part::Parser][..] } else { &[Part::Egress] };
            let mut running = |program: &Option<Arc<Program>>, parts: &[Part]| {
                let simulate = |program: &Arc<Program>| {
                    let hardware = Hardware::of_parts(Arc::clone(program), Options::default(), parts)?;
                    capacities.extend(hardware.capacities());
                    hardware.simulate(Sim::InProcess)
                };
                program.as_ref().map(simulate).transpose()
            };
            Ok(Stage {
                before: running(&of.before, first)?,
                middle: running(&of.middle, &[Part::Egress])?,
                after: running(&of.after, &[Part::Egress])?,
            })
        };
        let stages = [make(&cut.stages[0], true)?, make(&cut.stages[1], false)?];
        // What is in software takes as many entries as the program says.
        capacities.retain(|table, _| !cut.in_software.contains(table));
        Ok(SplitDevice { cut: Arc::clone(cut), stages, capacities, state: None, answers: VecDeque::new() })
    }

    /// How many entries the tables in hardware take.
    pub fn capacities(&self) -> &BTreeMap<TableId, u64> {
        &self.capacities
    }

    /// Gives it its objects, which are those of the program as a whole.
    pub fn with_objects(self, state: State) -> SplitDevice {
        SplitDevice { state: Some(state), ..self }
    }

    /// The answer to a request.
    fn run(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let asked = head(bytes)?;
        let cut = Arc::clone(&self.cut);
        let (stage, start): (usize, &Live) = match asked.kind {
            INGRESS | PARSER => (0, &cut.stages[0].start),
            EGRESS => (1, &cut.stages[1].start),
            GO_ON => {
                let site = cut.sites.get(usize::from(asked.site.checked_sub(1)? / 2))?;
                (site.stage, &site.answered)
            }
            _ => return None,
        };
        let mut packet = decode(&cut.wide, start, bytes)?;
        let said = self.stage(stage, &asked, &mut packet);
        let mut answer = Head { number: asked.number, ..Head::default() };
        let ended_at = packet.slots.get(&cut.ended_at).map_or(0, |value| value.as_bits().to_u64_saturating());
        let site = cut.sites.get((ended_at as usize).wrapping_sub(1));
        let slots = match (said, site) {
            (Ok(None), Some(site)) => {
                (answer.kind, answer.site) = (AT_SITE, ended_at as u16 - 1);
                &site.asked
            }
            (Ok(said), _) => {
                let said = said.unwrap_or_default();
                (answer.kind, answer.site, answer.detail) = (said.verdict, said.drop_site, said.number);
                &cut.stages[stage].end
            }
            (Err(why), _) => {
                tracing::warn!(%why, "a part of a program in hardware does not run");
                answer.kind = FAILED;
                &cut.stages[stage].end
            }
        };
        Some(encode(&cut.wide, &answer, slots, &packet))
    }

    /// Runs the parts of a stage; none: a table is to be applied.
    fn stage(&mut self, stage: usize, asked: &Head, packet: &mut Packet) -> Result<Option<Ended>, String> {
        let cut = Arc::clone(&self.cut);
        let parts = &mut self.stages[stage];
        let state = self.state.as_mut().ok_or("the device has no objects")?;
        let mut objects = Working { state, now_ns: asked.now_ns, effects: Effects::default() };
        let number = |number: u16| Value::Bits(Bits::new(16, number.into()));
        if asked.kind != GO_ON {
            let part = match asked.kind {
                INGRESS => Part::Ingress,
                PARSER => Part::Parser,
                _ => Part::Egress,
            };
            let ended = objects.run(&mut parts.before, part, &cut.wide, packet)?;
            if ended.verdict != Ended::default().verdict || asked.kind == PARSER {
                return Ok(Some(ended));
            }
        }
        if parts.middle.is_some() {
            packet.slots.insert(cut.goes_on_at, number(if asked.kind == GO_ON { asked.site } else { 0 }));
            packet.slots.insert(cut.ended_at, number(0));
            let ended = objects.run(&mut parts.middle, Part::Egress, &cut.wide, packet)?;
            let is_at_site = packet.slots.get(&cut.ended_at).is_some_and(Value::as_bool);
            if ended.verdict != Ended::default().verdict {
                packet.slots.insert(cut.ended_at, number(0));
                return Ok(Some(ended));
            }
            if is_at_site {
                return Ok(None);
            }
        }
        objects.run(&mut parts.after, Part::Egress, &cut.wide, packet).map(Some)
    }
}

/// How a stage ended, as the link carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ended {
    verdict: u8,
    number: u32,
    drop_site: u16,
}

impl Default for Ended {
    fn default() -> Ended {
        Ended { verdict: millrace_midend::Verdict::Stopped as u8, number: 0, drop_site: 0 }
    }
}

/// What the parts work on.
struct Working<'a> {
    state: &'a mut State,
    now_ns: u64,
    effects: Effects,
}

impl Working<'_> {
    /// Runs a part, if there is one.
    fn run(
        &mut self,
        of: &mut Option<Running>,
        part: Part,
        program: &Program,
        packet: &mut Packet,
    ) -> Result<Ended, String> {
        let Some(running) = of else { return Ok(Ended::default()) };
        let mut objects =
            Objects { state: &mut *self.state, now_ns: self.now_ns, effects: &mut self.effects };
        let said = running.run(part, &Kept { program, packet }, &mut objects)?;
        let ended = Ended { verdict: said.verdict as u8, number: said.number, drop_site: said.drop_site };
        keep(said, part, packet);
        Ok(ended)
    }
}

fn keep(said: Said, part: Part, packet: &mut Packet) {
    for (header, valid) in said.valid {
        match valid {
            true => packet.valid.insert(header),
            false => packet.valid.remove(&header),
        };
    }
    packet.slots.extend(said.slots);
    packet.cursor = said.cursor;
    if let Part::Ingress | Part::Parser = part {
        packet.parsed_bits = said.parsed_bits;
    }
    if let Some(bytes) = said.bytes {
        packet.bytes = bytes;
    }
}

struct Kept<'a> {
    program: &'a Program,
    packet: &'a Packet,
}

impl Frame for Kept<'_> {
    fn bytes(&self) -> &[u8] {
        &self.packet.bytes
    }

    /// Of an invalid header 0, as in the interpreter.
    fn slot(&self, slot: SlotId) -> Value {
        let of = &self.program.slots[slot];
        let is_there = match of.home {
            Home::Header { header, .. } => self.packet.valid.contains(&header),
            Home::Metadata | Home::Local => true,
        };
        let kept = self.packet.slots.get(&slot).filter(|_| is_there);
        kept.cloned().unwrap_or_else(|| Value::zero(of.ty))
    }

    fn is_valid(&self, header: HeaderId) -> bool {
        self.packet.valid.contains(&header)
    }

    fn cursor(&self) -> usize {
        self.packet.cursor
    }
}

impl Device for SplitDevice {
    fn shape(&self) -> Shape {
        Shape { name: self.cut.wide.name.clone(), bytes: 4, ports: 1 }
    }

    /// How many answers wait.
    fn read(&mut self, _: u32) -> Result<u32, Fault> {
        Ok(self.answers.len() as u32)
    }

    fn write(&mut self, address: u32, _: u32) -> Result<(), Fault> {
        Err(Fault::new(format_args!("{address:#x} cannot be written")))
    }

    fn send(&mut self, _: u16, frame: &[u8]) -> Result<(), Fault> {
        if self.answers.len() >= MAX_ANSWERS {
            return Err(Fault::new(format_args!("{MAX_ANSWERS} answers wait (MAX_ANSWERS)")));
        }
        let answer = self.run(frame).ok_or_else(|| Fault::new("it is no request of this program"))?;
        self.answers.push_back(answer);
        Ok(())
    }

    fn poll(&mut self, tell: &mut dyn FnMut(Event)) -> Result<(), Fault> {
        for bytes in self.answers.drain(..) {
            tell(Event::Frame { port: 0, bytes });
        }
        Ok(())
    }
}
