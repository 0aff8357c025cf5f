//! The forwarder: one program with its objects and its engines, and who listens to it.

use crate::DropReason;
use crate::attached::Attached;
use crate::drops::{Loss, loss};
use crate::tracer::Tracer;
use millrace_engine::{Context, Ended, Engines, Observer, Stage, Weights, World, shows_time};
use millrace_midend::order::Order;
use millrace_pipeline::*;
use millrace_state::{Effects, State};
use std::sync::Arc;

/// What runs, and is exchanged as a whole when another program takes over.
#[derive(Debug)]
pub(crate) struct Forwarder {
    pub(crate) program: Arc<Program>,
    pub(crate) engines: Engines,
    /// The hardware device that is there in place of the engines and of what is between them.
    pub(crate) device: Option<Box<Attached>>,
    pub(crate) state: State,
    /// What the program said to the control plane, and to its log.
    pub(crate) effects: Effects,
    pub(crate) tracer: Tracer,
    /// What the stages of the program weigh.
    pub(crate) weights: Weights,
    /// Whether the times of packets make a difference to it.
    pub(crate) reads_time: bool,
    /// Whether a packet has to wait in its queue before egress: egress looks at queues, or at what earlier packets have left.
    pub(crate) egress_waits: bool,
}

impl Forwarder {
    pub(crate) fn new(engines: Engines, state: State) -> Forwarder {
        let program = Arc::clone(state.program());
        let (weights, tracer) = (engines.weights(), Tracer::off(&program));
        let reads_time = shows_time(&program);
        let egress_waits = Order::of(&program).egress_waits;
        let effects = Effects::of(&program);
        Forwarder {
            program,
            engines,
            device: None,
            state,
            effects,
            tracer,
            weights,
            reads_time,
            egress_waits,
        }
    }

    /// Runs ingress over a packet; says why the packet is dropped.
    pub(crate) fn run_ingress(&mut self, context: &mut Context, time_ns: u64) -> Result<(), Loss> {
        self.run(Stage::Ingress, context, time_ns).map(drop)
    }

    /// Runs ingress up to its parser; gives the bits of valid headers after it, or why the packet is dropped.
    pub(crate) fn run_parser(&mut self, context: &mut Context, time_ns: u64) -> Result<u64, Loss> {
        self.run(Stage::Parser, context, time_ns)?;
        Ok(context.header_bits(&self.program))
    }

    /// Runs a stage of the program over a packet at a time; says why the packet is dropped.
    pub(crate) fn run(&mut self, stage: Stage, context: &mut Context, time_ns: u64) -> Result<Ended, Loss> {
        let mut world = World {
            state: &mut self.state,
            now_ns: time_ns,
            effects: &mut self.effects,
            observer: &mut self.tracer as &mut dyn Observer,
        };
        let ended = self.engines.run(stage, context, &mut world);
        match loss(ended.verdict, ended.number, ended.drop_site) {
            Some(loss) => Err(loss),
            None => Ok(ended),
        }
    }

    /// The drop that a packet asks for after egress, if any.
    pub(crate) fn check_drop(&self, context: &Context) -> Result<(), Loss> {
        match context.get(&self.program, Intrinsic::Drop) {
            0 => Ok(()),
            _ => Err(Loss::at(DropReason::EgressDrop, context.drop_site(&self.program))),
        }
    }

    /// Whether egress makes clones after its bodies, and not before a deparser.
    pub(crate) fn clones_after_egress(&self) -> bool {
        let is_deparser = |body: &BodyId| self.program.bodies[*body].kind == BodyKind::Deparser;
        self.program.deparse_at_ingress || !self.program.egress.iter().any(is_deparser)
    }
}
