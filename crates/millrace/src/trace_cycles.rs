//! The cycles of a trace: when the hardware of the program does what the interpreter tells.
//!
//! Each access of a stage to a table or an object has one cycle, whichever the frame. A program that asks an object at several places has
//! several accesses to it; a frame that makes fewer of them than there are leaves open which, so all that may be are told.

use millrace_dataplane::{Journey, JourneyKind, StageCycles, Step, StepCycles, Trace};
use millrace_rtl::{AccessReport, Report};

/// Adds the cycles of a program's hardware to a trace of it.
pub(crate) fn add(trace: &mut Trace, report: &Report) {
    for journey in &mut trace.journeys {
        let name = match journey.kind {
            JourneyKind::Ingress => "ingress",
            JourneyKind::Reparse => "parser",
            JourneyKind::Egress => "egress",
        };
        let Some(stage) = report.stages.iter().find(|stage| stage.name == name) else { continue };
        let steps = steps(journey, &stage.accesses);
        journey.hardware = Some(StageCycles { last: stage.latency, period_ps: report.period_ps, steps });
    }
}

fn steps(journey: &Journey, accesses: &[AccessReport]) -> Vec<StepCycles> {
    let asked: Vec<Option<(&str, &str)>> = journey.steps.iter().map(asked).collect();
    let mut cycles = Vec::new();
    for (step, of) in asked.iter().enumerate() {
        let Some((kind, object)) = *of else { continue };
        let made = || asked.iter().enumerate().filter(|(_, other)| **other == Some((kind, object)));
        let there: Vec<&AccessReport> =
            accesses.iter().filter(|access| access.kind == kind && access.object == object).collect();
        let before = made().filter(|(other, _)| *other < step).count();
        let after = made().count() - before - 1;
        // As accesses are made in their order, as many as were made before are before it, and so after it.
        let may_be = there.len().saturating_sub(after);
        cycles.extend(there.get(before..may_be).unwrap_or(&[]).iter().map(|access| StepCycles {
            step,
            asked: access.cycle,
            answered: (access.answered_bits > 0).then_some(access.cycle + access.latency),
        }));
    }
    cycles
}

/// What a step asks, in the words of the report.
fn asked(step: &Step) -> Option<(&str, &str)> {
    match step {
        Step::Table { table, .. } => Some(("table", table)),
        Step::RegisterRead { register, .. } => Some(("read", register)),
        Step::RegisterWrite { register, .. } => Some(("write", register)),
        Step::Count { counter, .. } => Some(("count", counter)),
        Step::Meter { meter, .. } => Some(("meter", meter)),
        Step::Digest { digest, .. } => Some(("digest", digest)),
        Step::Log { .. } => Some(("log", "lines")),
        _ => None,
    }
}
