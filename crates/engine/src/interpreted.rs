//! Stages as the reference interpreter runs them: body by body, as the program lists them.

use crate::context::InterpContext;
use crate::{Context, Ended, Engine, EngineError, Stage};
use millrace_interp::{Abort, Ending, Interp, Observer, World};
use millrace_midend::Verdict;
use millrace_pipeline::*;
use std::sync::Arc;

/// The interpreter as an engine.
#[derive(Debug)]
pub struct Interpreted(Interp);

/// What happens when a body has run.
enum Next {
    /// The next body runs.
    Body,
    /// The bodies that follow are left out.
    End,
}

impl Interpreted {
    /// For a verified program.
    pub fn new(program: Arc<Program>) -> Interpreted {
        Interpreted(Interp::new(program))
    }

    pub(crate) fn work(&self) -> &Work {
        self.0.work()
    }

    pub(crate) fn program(&self) -> &Arc<Program> {
        self.0.program()
    }

    /// Runs a stage over one packet.
    pub(crate) fn run_one(
        &self,
        stage: Stage,
        packet: &mut InterpContext,
        world: &mut World<'_, dyn Observer + '_>,
    ) -> Ended {
        let ended = match stage {
            Stage::Ingress => self.ingress(false, packet, world),
            Stage::Parser => self.ingress(true, packet, world),
            Stage::Egress => self.egress(None, packet, world),
            Stage::Tail(deparser) => self.egress(Some(deparser), packet, world),
        };
        ended.unwrap_or_else(|loss| loss)
    }

    /// `Err`: the packet is dropped.
    fn ingress(
        &self,
        only_parser: bool,
        packet: &mut InterpContext,
        world: &mut World<'_, dyn Observer + '_>,
    ) -> Result<Ended, Ended> {
        let program = self.program();
        packet.parsed_bits = 0;
        for body in &program.ingress {
            if let Next::End = self.body(*body, packet, world)? {
                break;
            }
            if program.bodies[*body].kind == BodyKind::Parser {
                packet.parsed_bits = packet.packet.phv.header_bits(program);
                if only_parser {
                    break;
                }
            }
        }
        Ok(Ended::STOPPED)
    }

    /// Egress from its start, or from the deparser of a number on, whose clone has been made. `Err`: the packet is dropped.
    fn egress(
        &self,
        from: Option<u32>,
        packet: &mut InterpContext,
        world: &mut World<'_, dyn Observer + '_>,
    ) -> Result<Ended, Ended> {
        let program = self.program();
        let mut deparsers = 0;
        let mut runs = from.is_none();
        for body in &program.egress {
            // Where headers pass through the traffic manager, a clone has them as they are before the deparser; else it
            // starts from the bytes after it.
            if !program.deparse_at_ingress && program.bodies[*body].kind == BodyKind::Deparser {
                let number = deparsers;
                deparsers += 1;
                if runs && packet.packet.get(program, Intrinsic::Clone) != 0 {
                    return Ok(Ended { number, ..Ended::of(Verdict::CloneBeforeDeparser) });
                }
                runs |= from == Some(number);
                if runs && packet.packet.get(program, Intrinsic::Drop) != 0 {
                    return Err(Ended {
                        drop_site: self.drop_site(packet),
                        ..Ended::of(Verdict::EgressDrop)
                    });
                }
            }
            if runs && let Next::End = self.body(*body, packet, world)? {
                break;
            }
        }
        Ok(Ended::STOPPED)
    }

    /// Runs a body; tells what happens then, or why the packet is dropped.
    fn body(
        &self,
        body: BodyId,
        packet: &mut InterpContext,
        world: &mut World<'_, dyn Observer + '_>,
    ) -> Result<Next, Ended> {
        match self.0.run(body, &mut packet.packet, world) {
            Ending::Done => Ok(Next::Body),
            Ending::Rejected { code } => match self.program().on_reject {
                OnReject::Drop => Err(Ended {
                    verdict: Verdict::ParserError,
                    number: u32::from(code),
                    drop_site: self.drop_site(packet),
                }),
                OnReject::Continue => Ok(Next::Body),
                OnReject::PassOn => Ok(Next::End),
            },
            Ending::Aborted(Abort::Assert) => Err(Ended::of(Verdict::Assert)),
            Ending::Aborted(Abort::Plugin) => Err(Ended::of(Verdict::Plugin)),
            Ending::Aborted(Abort::StepLimit) => Err(Ended::of(Verdict::StepLimit)),
        }
    }

    fn drop_site(&self, packet: &InterpContext) -> u16 {
        packet.packet.get(self.program(), Intrinsic::DropSite) as u16
    }
}

impl Engine for Interpreted {
    fn name(&self) -> &'static str {
        "interp"
    }

    fn context(&mut self, bytes: &[u8]) -> Context {
        Context::interpreted(self.program(), bytes.to_vec())
    }

    fn run(
        &mut self,
        stage: Stage,
        packets: &mut [Context],
        world: &mut World<'_, dyn Observer + '_>,
        ended: &mut Vec<Ended>,
    ) -> Result<(), EngineError> {
        for packet in packets {
            ended.push(self.run_one(stage, packet.make_interpreted(self.0.program()), world));
        }
        Ok(())
    }
}
