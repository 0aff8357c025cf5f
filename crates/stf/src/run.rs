//! Running a test on a switch of its own.

use crate::ast::{Index, MatchValue, Named, Statement, Test, Word};
use crate::names::LeftOut;
use crate::pattern::Pattern;
use crate::report::{Difference, Failure, FailureKind, Report};
use crate::{Counted, names};
use millrace_commands::Refusal;
use millrace_commands::read;
use millrace_control::commands::{Executor, Reply};
use millrace_dataplane::{Outcome, Switch, SwitchConfig, SwitchError};
use millrace_pipeline::Program;
use millrace_state::{CounterRef, EntryIndex, EntryWrite, Target};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// The time between two packets, in nanoseconds.
const PACKET_GAP_NS: u64 = 1_000_000;
/// The time that a `wait` takes, in nanoseconds.
const WAIT_NS: u64 = 1_000_000_000;

/// Runs a test from its text on a switch that is set up so. The first statement that does not fit the program ends it.
///
/// # Errors
/// The program cannot be run at all.
pub fn run(
    text: &str,
    test: &Test,
    program: Arc<Program>,
    config: SwitchConfig,
) -> Result<Report, SwitchError> {
    let mut switch = Switch::new(program, config)?;
    Ok(run_on(&mut switch, text, test, |_| ()))
}

/// Runs a test from its text on a switch that nothing has come to yet, and tells what came of each of its packets. The
/// first statement that does not fit the program ends it.
pub fn run_on(switch: &mut Switch, text: &str, test: &Test, watch: impl FnMut(&Outcome)) -> Report {
    let mut runner = Runner {
        text,
        switch,
        watch,
        now_ns: 0,
        sent: BTreeMap::new(),
        expected: BTreeMap::new(),
        named_ports: BTreeSet::new(),
        latest: 0..0,
        labels: HashMap::new(),
        report: Report::default(),
    };
    for (statement, at) in &test.statements {
        if let Err(refusal) = runner.statement(statement, at) {
            let kind = FailureKind::Refused { message: refusal.message, help: refusal.help };
            runner.report.failures.push(Failure { at: refusal.at, kind });
            return runner.report;
        }
    }
    let outcome = runner.switch.drain();
    runner.take(outcome);
    runner.compare();
    runner.report
}

struct Runner<'t, W> {
    text: &'t str,
    switch: &'t mut Switch,
    watch: W,
    now_ns: u64,
    /// What left by each port.
    sent: BTreeMap<u32, Vec<Left>>,
    expected: BTreeMap<u32, Vec<Expected>>,
    /// The ports that the test names.
    named_ports: BTreeSet<u32>,
    /// The latest `packet` statement.
    latest: Range<usize>,
    /// Entries by label.
    labels: HashMap<String, EntryIndex>,
    report: Report,
}

/// A packet that left, and the `packet` statement before it.
struct Left {
    bytes: Vec<u8>,
    cause: Range<usize>,
}

struct Expected {
    pattern: Option<Pattern>,
    at: Range<usize>,
}

impl<W: FnMut(&Outcome)> Runner<'_, W> {
    fn statement(&mut self, statement: &Statement, at: &Range<usize>) -> Result<(), Refusal> {
        match statement {
            Statement::Packet { port, bytes } => {
                self.named_ports.insert(*port);
                self.latest = at.clone();
                self.now_ns += PACKET_GAP_NS;
                self.report.packets += 1;
                let outcome = self.switch.inject(*port, bytes, self.now_ns);
                self.take(outcome);
            }
            Statement::Expect { port, pattern } => {
                self.named_ports.insert(*port);
                let expected = Expected { pattern: pattern.clone(), at: at.clone() };
                self.expected.entry(*port).or_default().push(expected);
            }
            Statement::NoPacket => self.no_packet(at),
            Statement::Wait => {
                self.now_ns += WAIT_NS;
                let outcome = self.switch.advance_to(self.now_ns);
                self.take(outcome);
            }
            Statement::Add { table, priority, matches, action, args, label } => {
                let index = self.add(at, table, priority.as_ref(), matches, (action, args))?;
                if let Some(label) = label {
                    self.labels.insert(label.clone(), index);
                }
            }
            Statement::SetDefault { table, action, args } => {
                let id = names::table(self.switch.state(), table)?;
                let call = names::call(self.switch.state(), id, action, args, LeftOut::Missing)?;
                let set = self.switch.state().tables().set_default(id, &call);
                set.map_err(|error| Refusal::new(at.clone(), error.to_string()))?;
            }
            Statement::RemoveAll => {
                let tables: Vec<_> = self.switch.program().tables.keys().collect();
                tables.into_iter().for_each(|table| self.switch.state().tables().clear(table));
            }
            Statement::CheckCounter { counter, index, check } => {
                self.switch.settle_device();
                let (found, name) = self.counter(counter, index)?;
                if let Some((counted, comparison, wanted)) = check {
                    let (found, unit) = match counted {
                        Counted::Packets => (found.packets, "packets"),
                        Counted::Bytes => (found.bytes, "bytes"),
                    };
                    if comparison.holds(found, *wanted) {
                        self.report.passed += 1;
                    } else {
                        let wanted = format!("{unit} {} {wanted}", comparison.symbol());
                        let kind = FailureKind::Counter { counter: name, wanted, found };
                        self.report.failures.push(Failure { at: at.clone(), kind });
                    }
                }
            }
            Statement::Command => self.command(at)?,
        }
        Ok(())
    }

    /// Keeps what came of a packet.
    fn take(&mut self, outcome: Outcome) {
        (self.watch)(&outcome);
        for sent in outcome.sent {
            let left = Left { bytes: sent.bytes, cause: self.latest.clone() };
            self.sent.entry(sent.port).or_default().push(left);
        }
        self.report.log.extend(outcome.log);
    }

    /// What the latest packet made leave was not to.
    fn no_packet(&mut self, at: &Range<usize>) {
        let latest = self.latest.clone();
        let mut failures = Vec::new();
        for (port, sent) in &self.sent {
            for (position, left) in sent.iter().enumerate() {
                if left.cause == latest {
                    let (number, bytes) = (position + 1, left.bytes.clone());
                    let kind = FailureKind::Unexpected { port: *port, number, bytes };
                    failures.push(Failure { at: at.clone(), kind });
                }
            }
        }
        match failures.is_empty() {
            true => self.report.passed += 1,
            false => self.report.failures.append(&mut failures),
        }
    }

    fn add(
        &mut self,
        at: &Range<usize>,
        table: &Word,
        priority: Option<&(u32, Word)>,
        matches: &[Named<MatchValue>],
        (action, args): (&Word, &[Named<Word>]),
    ) -> Result<EntryIndex, Refusal> {
        let state = self.switch.state();
        let id = names::table(state, table)?;
        let left_out = LeftOut::next_to(matches);
        let matches = names::matches(state, id, matches)?;
        let call = names::call(state, id, action, args, left_out)?;
        // Tests give priorities also where a table has none.
        let priority = match (state.needs_priority(id), priority) {
            (true, Some((priority, _))) => priority + 1,
            (true, None) => 1,
            (false, _) => 0,
        };
        let target = match self.switch.program().tables[id].profile {
            None => Target::Action(call),
            Some(profile) => {
                // A test names an action where the program has a profile: the entry gets a member of its own.
                let action = self.switch.program().tables[id].actions[call.action].action;
                let member = millrace_state::MemberWrite { action, args: call.args };
                let made = state.tables().insert_member(profile, None, &member);
                Target::Member(made.map_err(|error| Refusal::new(at.clone(), error.to_string()))?)
            }
        };
        let entry = EntryWrite { matches, priority, target, idle_timeout_ns: 0 };
        let now = self.now_ns;
        let added = self.switch.state().tables().insert(id, &entry, now);
        added.map_err(|error| Refusal::new(at.clone(), format!("`{}`: {error}", table.text)))
    }

    fn counter(
        &self,
        counter: &Word,
        (index, place): &(Index, Range<usize>),
    ) -> Result<(millrace_state::CounterValue, String), Refusal> {
        let state = self.switch.state();
        let found = state.counter_named(&counter.text);
        let found = found.map_err(|error| Refusal::new(counter.at.clone(), error.to_string()))?;
        let (cell, shown) = match index {
            // A direct counter has the cells of its entries, which are counted from 1.
            Index::Number(number) if matches!(found, CounterRef::Direct(_)) => {
                (number.saturating_add(1), number.to_string())
            }
            Index::Number(number) => (*number, number.to_string()),
            Index::Label(label) => match self.labels.get(label) {
                Some(entry) => (entry.0.into(), format!("${label}")),
                None => return Err(Refusal::new(place.clone(), format!("no entry has the label `{label}`"))),
            },
        };
        let value = state.tables().counter_value(found, cell);
        let value = value.map_err(|error| Refusal::new(place.clone(), error.to_string()))?;
        Ok((value, format!("{}({shown})", counter.text)))
    }

    /// Runs a runtime command; its place is moved to where the statement stands.
    fn command(&mut self, at: &Range<usize>) -> Result<(), Refusal> {
        let mut result = Ok(());
        self.switch.settle_device();
        let handle = self.switch.state().handle();
        let mut tables = handle.lock();
        let mut executor = Executor::new(self.switch, &mut tables);
        let text = &self.text[at.clone()];
        let mut answers = Vec::new();
        read(text, |line| {
            match line.and_then(|line| executor.run(&line)) {
                Ok(Reply::Text(answer)) => answers.extend(answer.lines().map(str::to_owned)),
                Ok(_) => {}
                Err(refusal) => {
                    let place = refusal.at.start + at.start..refusal.at.end + at.start;
                    result = Err(Refusal { at: place, ..refusal });
                }
            }
            ControlFlow::Break(())
        });
        self.report.log.append(&mut answers);
        result
    }

    /// Compares what left with what was expected, port by port and in order.
    fn compare(&mut self) {
        for port in std::mem::take(&mut self.named_ports) {
            let expected = self.expected.remove(&port).unwrap_or_default();
            let sent = self.sent.remove(&port).unwrap_or_default();
            if let Some(any) = expected.iter().find(|expected| expected.pattern.is_none()) {
                match sent.is_empty() {
                    true => {
                        let kind = FailureKind::Missing { port, number: 1, pattern: None };
                        self.report.failures.push(Failure { at: any.at.clone(), kind });
                    }
                    false => self.report.passed += 1,
                }
                continue;
            }
            let common = expected.len().min(sent.len());
            for (position, (wanted, Left { bytes, .. })) in expected.iter().zip(&sent).enumerate() {
                let Some(pattern) = &wanted.pattern else { continue };
                if pattern.matches(bytes) {
                    self.report.passed += 1;
                    continue;
                }
                let difference =
                    Difference { port, number: position + 1, expected: pattern.clone(), got: bytes.clone() };
                let kind = FailureKind::Differs(difference);
                self.report.failures.push(Failure { at: wanted.at.clone(), kind });
            }
            for (position, wanted) in expected.into_iter().enumerate().skip(common) {
                let kind = FailureKind::Missing { port, number: position + 1, pattern: wanted.pattern };
                self.report.failures.push(Failure { at: wanted.at, kind });
            }
            for (position, Left { bytes, cause }) in sent.into_iter().enumerate().skip(common) {
                let kind = FailureKind::Unexpected { port, number: position + 1, bytes };
                self.report.failures.push(Failure { at: cause, kind });
            }
        }
        self.report.failures.sort_by_key(|failure| failure.at.start);
    }
}
