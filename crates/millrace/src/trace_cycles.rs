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
        let there: Vec<&AccessReport> =
            accesses.iter().filter(|access| access.kind == kind && access.object == object).collect();
        cycles.extend(may_be(&asked, step, &there).iter().map(|access| StepCycles {
            step,
            asked: access.cycle,
            answered: (access.answered_bits > 0).then_some(access.cycle + access.latency),
        }));
    }
    cycles
}

/// Which of those that hardware has the one at a place may be, of all that a frame makes: as they are made in their order, as many as were
/// made before are before it, and so after it.
fn may_be<'t, K: PartialEq, T>(made: &[K], at: usize, there: &'t [T]) -> &'t [T] {
    let as_this = |others: &[K]| others.iter().filter(|other| **other == made[at]).count();
    let (before, after) = (as_this(&made[..at]), as_this(&made[at + 1..]));
    there.get(before..there.len().saturating_sub(after)).unwrap_or(&[])
}

fn starts(steps: &[Step], reported: &[StartReport]) -> Vec<StartCycles> {
    let mut body = "";
    let (mut numbers, mut made) = (Vec::new(), Vec::new());
    for (number, step) in steps.iter().enumerate() {
        match step {
            Step::Block { name, .. } => {
                body = name;
                made.push((body, None));
            }
            Step::State { name, .. } => made.push((body, Some(name.as_str()))),
            _ => continue,
        }
        numbers.push(number);
    }
    let mut cycles: Vec<StartCycles> = Vec::new();
    for (at, step) in numbers.into_iter().enumerate() {
        let there: Vec<u32> = reported
            .iter()
            .filter(|start| (start.body.as_str(), start.state.as_deref()) == made[at])
            .map(|start| start.cycle)
            .collect();
        let may_be = may_be(&made, at, &there);
        let (first, last) = match (may_be.iter().min(), may_be.iter().max()) {
            (Some(first), Some(last)) => (*first, *last),
            // It always follows what is before it, and is one with that.
            _ => match cycles.last() {
                Some(before) => (before.known, before.or_until.unwrap_or(before.known)),
                None => continue,
            },
        };
        cycles.push(StartCycles { step, known: first, or_until: (last > first).then_some(last) });
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
