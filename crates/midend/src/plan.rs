//! What one compiled function does with each packet: bodies, and the contract with the switch between them.

use millrace_pipeline::{BodyId, BodyKind, Program};

/// The code of one function, as a list of steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// For people: `through`.
    pub name: &'static str,
    /// Where the packet's storage comes from.
    pub start: Start,
    /// What happens, in order.
    pub steps: Vec<Step>,
}

/// The storage at the start of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// All slots 0, all headers invalid, and what the switch says about an arrival.
    Arrival,
    /// As the packet's context holds it, which knows of no header and has the cursor at the start.
    Unparsed,
    /// As the packet's context holds it.
    Context,
}

/// One step of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Runs a body.
    Body(BodyId),
    /// Between ingress and egress: unicast to a port that has a plain queue goes on, all else ends here.
    TrafficManager {
        /// Whether the outcome tells the class of service that the packet's queue is chosen by.
        classes: bool,
    },
    /// Before a deparser of egress, where headers pass through the traffic manager: ends here for a clone, and
    /// says before which deparser of egress, counted from 0.
    CloneBeforeDeparser(u32),
    /// Ends here when egress wants the packet dropped.
    DropInEgress,
    /// After egress: drop, recirculate, truncate or send. The flag says that a clone was made already.
    Transmit {
        /// Whether a request for a clone was obeyed before the deparser.
        cloned: bool,
    },
    /// Writes the storage to the packet's context and ends.
    Stop,
}

impl Plan {
    /// Ingress from an arrival, and egress after it for packets that need nothing of the traffic manager. Without
    /// `fused` packets always stop at the traffic manager.
    pub fn through(program: &Program, fused: bool) -> Plan {
        let mut steps: Vec<Step> = program.ingress.iter().map(|body| Step::Body(*body)).collect();
        if fused {
            steps.push(Step::TrafficManager { classes: false });
            steps.extend(egress_steps(program));
        } else {
            steps.push(Step::Stop);
        }
        Plan { name: "through", start: Start::Arrival, steps }
    }

    /// Ingress from an arrival and egress, as [`Plan::through`], for ports that serve their packets by class: egress goes before
    /// the queue, which is only for programs that [cannot tell](crate::order::Order::serves_classes).
    pub fn through_by_class(program: &Program) -> Plan {
        let mut plan = Plan::through(program, true);
        for step in &mut plan.steps {
            if let Step::TrafficManager { classes } = step {
                *classes = true;
            }
        }
        plan
    }

    /// Ingress alone, from a context without headers.
    pub fn ingress(program: &Program) -> Plan {
        Plan { start: Start::Unparsed, ..Plan::bodies("ingress", &program.ingress) }
    }

    /// Ingress up to its first parser, from a context without headers: for clones that are parsed again.
    pub fn parser(program: &Program) -> Plan {
        let is_parser = |body: &BodyId| program.bodies[*body].kind == BodyKind::Parser;
        let parser = program.ingress.iter().position(is_parser);
        let bodies = &program.ingress[..parser.map_or(program.ingress.len(), |at| at + 1)];
        Plan { start: Start::Unparsed, ..Plan::bodies("parser", bodies) }
    }

    /// Egress, from a context: one without headers where they do not pass through the traffic manager.
    pub fn egress(program: &Program) -> Plan {
        let start = if program.deparse_at_ingress { Start::Unparsed } else { Start::Context };
        Plan { name: "egress", start, steps: egress_steps(program) }
    }

    /// What is left of egress after a clone before its deparser number `nth`, from a context.
    pub fn tail(program: &Program, nth: u32) -> Plan {
        let mut steps = egress_steps(program);
        let clone = steps.iter().position(|step| *step == Step::CloneBeforeDeparser(nth));
        steps.drain(..clone.map_or(0, |at| at + 1));
        Plan { name: "tail", start: Start::Context, steps }
    }

    /// Some bodies, with nothing between, from a context to a context.
    pub fn bodies(name: &'static str, bodies: &[BodyId]) -> Plan {
        let mut steps: Vec<Step> = bodies.iter().map(|body| Step::Body(*body)).collect();
        steps.push(Step::Stop);
        Plan { name, start: Start::Context, steps }
    }
}

fn egress_steps(program: &Program) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut deparsers = 0;
    for body in &program.egress {
        if program.bodies[*body].kind == BodyKind::Deparser && !program.deparse_at_ingress {
            steps.extend([Step::CloneBeforeDeparser(deparsers), Step::DropInEgress]);
            deparsers += 1;
        }
        steps.push(Step::Body(*body));
    }
    steps.push(Step::Transmit { cloned: deparsers > 0 });
    steps
}
