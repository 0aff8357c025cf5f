//! Running the bodies of ingress and egress over one packet, in the engine that the packet is in.

use crate::DropReason;
use crate::context::Context;
use crate::flight::{Next, Origin};
use crate::jit::{Part, drop_reason};
use crate::switch::Switch;
use millrace_interp::{Abort, Ending, World};
use millrace_jit::Verdict;
use millrace_pipeline::*;
use std::sync::Arc;

impl Switch {
    /// A packet that no body has seen.
    pub(crate) fn new_context(&mut self, bytes: &[u8]) -> Context {
        self.engine.context(bytes)
    }

    /// Runs ingress; gives the bits of valid headers behind the parser, or why the packet is dropped.
    pub(crate) fn run_ingress(&mut self, context: &mut Context) -> Result<u64, DropReason> {
        self.run_code(Part::Ingress, context).transpose()?;
        match context {
            Context::Interp(context) => self.interpret_ingress(context, false),
            Context::Jit(context) => Ok(context.storage.parsed_bits(0)),
        }
    }

    /// Runs ingress up to its parser; gives the bits of valid headers behind it, or why the packet is dropped.
    pub(crate) fn run_parser(&mut self, context: &mut Context) -> Result<u64, DropReason> {
        self.run_code(Part::Parser, context).transpose()?;
        if let Context::Interp(interp) = context {
            self.interpret_ingress(interp, true)?;
        }
        Ok(context.header_bits(&self.program))
    }

    /// Runs egress and makes the clones that it asks for; says why the packet is dropped. A packet that is not has its
    /// other requests in its storage.
    pub(crate) fn run_egress(
        &mut self,
        context: &mut Context,
        origin: &mut Origin,
        parsed_bits: u64,
    ) -> Result<(), DropReason> {
        let Some(ended) = self.run_code(Part::Egress, context) else {
            return self.interpret_egress(context, origin, parsed_bits);
        };
        let mut ended = ended?;
        while let (Verdict::CloneBeforeDeparser, nth) = ended {
            self.clone_egress(context, origin, parsed_bits);
            ended = self.run_code(Part::Tail(nth), context).unwrap_or(Err(DropReason::StepLimit))?;
        }
        if ended.0 == Verdict::Forward {
            // Nothing was asked for, and the storage has not been written.
            for role in [Intrinsic::Truncate, Intrinsic::Recirculate] {
                context.set(&self.program, role, 0);
            }
            return Ok(());
        }
        self.finish_egress(context, origin, parsed_bits)
    }

    /// What compiled code leaves to the switch behind egress: a clone, if none was made before, and a drop.
    pub(crate) fn finish_egress(
        &mut self,
        context: &Context,
        origin: &mut Origin,
        parsed_bits: u64,
    ) -> Result<(), DropReason> {
        if self.program.deparse_at_ingress || !self.has_deparser_in_egress() {
            self.clone_egress(context, origin, parsed_bits);
        }
        self.check_drop(context)
    }

    fn check_drop(&self, context: &Context) -> Result<(), DropReason> {
        match context.get(&self.program, Intrinsic::Drop) {
            0 => Ok(()),
            _ => Err(DropReason::EgressDrop),
        }
    }

    fn has_deparser_in_egress(&self) -> bool {
        self.program.egress.iter().any(|body| self.program.bodies[*body].kind == BodyKind::Deparser)
    }

    /// Runs a part of the program's code. None: the packet is the interpreter's, perhaps from now on, because there is no
    /// such code.
    fn run_code(&mut self, part: Part, context: &mut Context) -> Option<Result<(Verdict, u32), DropReason>> {
        let Context::Jit(own) = context else { return None };
        let jit = self.engine.jit.as_mut()?;
        match jit.run(part, own, &mut self.state, &mut self.effects, self.now_ns) {
            Ok((verdict, number)) => Some(match drop_reason(verdict, number) {
                Some(reason) => Err(reason),
                None => Ok((verdict, number)),
            }),
            Err(error) => {
                self.effects.log.push(format!("{error}; the interpreter goes on"));
                self.engine.jit = None;
                *context = own.interpreted(&self.program);
                None
            }
        }
    }

    fn interpret_ingress(
        &mut self,
        context: &mut millrace_interp::Context,
        only_parser: bool,
    ) -> Result<u64, DropReason> {
        let program = Arc::clone(&self.program);
        let mut parsed_bits = 0;
        for body in &program.ingress {
            if let Next::Behind = self.interpret(*body, context)? {
                break;
            }
            if program.bodies[*body].kind == BodyKind::Parser {
                parsed_bits = context.phv.header_bits(&program);
                if only_parser {
                    break;
                }
            }
        }
        Ok(parsed_bits)
    }

    fn interpret_egress(
        &mut self,
        context: &mut Context,
        origin: &mut Origin,
        parsed_bits: u64,
    ) -> Result<(), DropReason> {
        let program = Arc::clone(&self.program);
        // Where headers pass through the traffic manager, a clone has them as they are in front of the deparser; else it
        // starts from the bytes behind it.
        let mut cloned = false;
        for body in &program.egress {
            if !program.deparse_at_ingress && program.bodies[*body].kind == BodyKind::Deparser {
                self.clone_egress(context, origin, parsed_bits);
                cloned = true;
                self.check_drop(context)?;
            }
            let Context::Interp(interp) = context else { break };
            if let Next::Behind = self.interpret(*body, interp)? {
                break;
            }
        }
        if !cloned {
            self.clone_egress(context, origin, parsed_bits);
        }
        self.check_drop(context)
    }

    /// Runs a body; tells what happens then, or why the packet is dropped.
    fn interpret(
        &mut self,
        body: BodyId,
        context: &mut millrace_interp::Context,
    ) -> Result<Next, DropReason> {
        let mut world = World {
            state: &mut self.state,
            now_ns: self.now_ns,
            effects: &mut self.effects,
            observer: &mut self.tracer,
        };
        match self.engine.interp.run(body, context, &mut world) {
            Ending::Done => Ok(Next::Body),
            Ending::Rejected { code } => match self.program.on_reject {
                OnReject::Drop => Err(DropReason::ParserError(code)),
                OnReject::Continue => Ok(Next::Body),
                OnReject::PassOn => Ok(Next::Behind),
            },
            Ending::Aborted(Abort::Assert) => Err(DropReason::Assert),
            Ending::Aborted(Abort::StepLimit) => Err(DropReason::StepLimit),
        }
    }
}
