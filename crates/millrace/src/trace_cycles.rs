//! The cycles of a trace: when the hardware of the program does what the interpreter tells.
//!
//! Each access of a stage to a table or an object has one cycle, whichever the frame. A program that asks an object at several places has
//! several accesses to it; a frame that makes fewer of them than there are leaves open which, so all that may be are told. So it is with
//! states of a parser that hardware repeats: the first and the last that it may be are told.

use millrace_dataplane::{Journey, JourneyKind, StageCycles, StartCycles, Step, StepCycles, Trace};
use millrace_rtl::{AccessReport, Report, StartReport};

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
        let starts = starts(&journey.steps, &stage.starts);
        let (last, period_ps) = (stage.latency, report.period_ps);
        journey.hardware = Some(StageCycles { last, period_ps, steps, starts });
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

fn starts(steps: &[Step], reported: &[StartReport]) -> Vec<StartCycles> {
    let mut body = "";
    let mut told: Vec<(usize, &str, Option<&str>)> = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        match step {
            Step::Block { name, .. } => {
                body = name;
                told.push((number, body, None));
            }
            Step::State { name, .. } => told.push((number, body, Some(name))),
            _ => {}
        }
    }
    let mut cycles: Vec<StartCycles> = Vec::new();
    for (at, (step, body, state)) in told.iter().enumerate() {
        let is_same = |(_, other, of): &&(usize, &str, Option<&str>)| other == body && of == state;
        let (before, after) =
            (told[..at].iter().filter(is_same).count(), told[at + 1..].iter().filter(is_same).count());
        let there: Vec<u32> = reported
            .iter()
            .filter(|start| start.body == *body && start.state.as_deref() == *state)
            .map(|start| start.cycle)
            .collect();
        let may_be = there.get(before..there.len().saturating_sub(after)).unwrap_or(&[]);
        let (first, last) = match (may_be.iter().min(), may_be.iter().max()) {
            (Some(first), Some(last)) => (*first, *last),
            // It always follows what is before it, and is one with that.
            _ => match cycles.last() {
                Some(before) => (before.known, before.or_until.unwrap_or(before.known)),
                None => continue,
            },
        };
        cycles.push(StartCycles { step: *step, known: first, or_until: (last > first).then_some(last) });
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

#[cfg(test)]
mod tests {
    use super::*;
    use millrace_dataplane::BlockKind;

    fn body(name: &str) -> Step {
        Step::Block { name: name.to_owned(), kind: BlockKind::Parser, place: None }
    }

    fn state(name: &str) -> Step {
        Step::State { name: name.to_owned(), place: None }
    }

    fn start(body: &str, state: &str, cycle: u32) -> StartReport {
        let state = (!state.is_empty()).then(|| state.to_owned());
        StartReport { body: body.to_owned(), state, cycle }
    }

    fn found(known: u32, or_until: Option<u32>) -> impl Fn(usize) -> StartCycles {
        move |step| StartCycles { step, known, or_until }
    }

    #[test]
    fn a_state_that_is_repeated_has_the_cycles_that_it_may_be() {
        let steps = [
            body("P"),
            state("start"),
            Step::Advance { bits: 8 },
            state("more"),
            state("more"),
            state("end"),
            body("I"),
        ];
        let more = [3, 5, 5, 9].map(|cycle| start("P", "more", cycle));
        // `end` is one with what is before it, and `more` of another parser is another state.
        let others = [("P", "", 0), ("P", "start", 1), ("Q", "more", 7), ("I", "", 11)];
        let reported: Vec<_> =
            others.into_iter().map(|(body, state, cycle)| start(body, state, cycle)).chain(more).collect();
        // The first of two that are made is one of the first three that there are, the second one of the last three.
        let wanted = [
            found(0, None)(0),
            found(1, None)(1),
            found(3, Some(5))(3),
            found(5, Some(9))(4),
            found(5, Some(9))(5),
            found(11, None)(6),
        ];
        assert_eq!(starts(&steps, &reported), wanted);
    }
}
