//! Forwarding while entries change: another thread asks for changes, the thread that forwards makes a few between two
//! bursts. So each packet meets its table before a change or behind it.

use crate::clock::Stopwatch;
use crate::report::{ChurnReport, Rate};
use crate::worker::Worker;
use millrace_pipeline::{EntryMatch, MatchKind, TableId};
use millrace_state::{EntryIndex, EntryView, EntryWrite, Target};
use millrace_switch::Switch;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

/// Most entries that change.
const MAX_ENTRIES: usize = 20_000;
/// Most changes between two bursts.
const MAX_AT_ONCE: usize = 8;
/// How often changes are asked for.
const INTERVAL: Duration = Duration::from_millis(1);

/// Why entries cannot be changed.
pub(crate) const NOTHING_TO_CHANGE: &str =
    "no table has two entries with different actions that may be changed";

/// What an entry does, and what it does while it is changed.
#[derive(Clone, Debug)]
struct Changing {
    index: EntryIndex,
    before: Target,
    behind: Target,
    /// A more specific entry that does what this one does; it comes and goes.
    part: Option<EntryWrite>,
}

/// A change of the table: what happens to the entry of that number.
#[derive(Clone, Copy, Debug)]
struct Change {
    number: usize,
    step: Step,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// It does something else.
    Change,
    /// Its part comes.
    Insert,
    /// It does again what it did.
    Restore,
    /// Its part goes.
    Remove,
}

/// The entries of one table that change.
#[derive(Clone, Debug)]
pub(crate) struct Churn {
    table: TableId,
    entries: Vec<Changing>,
}

impl Churn {
    /// Entries of the table that has most; none when there is nothing to change.
    pub(crate) fn of(switch: &Switch) -> Option<Churn> {
        let (program, state) = (switch.program(), switch.state());
        let table = program.tables.keys().max_by_key(|id| state.entry_count(*id))?;
        let all: Vec<EntryView> = state.entries(table).filter(|entry| !entry.is_const).collect();
        let by_prefix = program.tables[table].keys.iter().rposition(|key| key.kind == MatchKind::Lpm);
        let step = all.len().div_ceil(MAX_ENTRIES).max(1);
        let entries: Vec<Changing> = (all.iter().zip(all.iter().cycle().skip(1)).step_by(step))
            .filter(|(entry, next)| entry.target != next.target)
            .map(|(entry, next)| Changing {
                index: entry.index,
                before: entry.target.clone(),
                behind: next.target.clone(),
                part: by_prefix.and_then(|key| part(switch, table, entry, key)),
            })
            .collect();
        (!entries.is_empty()).then_some(Churn { table, entries })
    }

    /// Changes all entries, or changes them back; says how many could not be changed.
    fn change_all(&self, switch: &mut Switch, step: Step) -> u64 {
        let changes = (0..self.entries.len()).map(|number| Change { number, step });
        changes.map(|change| u64::from(!self.make(switch, change, &mut None))).sum()
    }

    /// The changes of one entry, one after the other: behind them all is as it was.
    fn changes(&self, number: usize) -> impl Iterator<Item = Change> {
        let number = number % self.entries.len();
        let steps: &[Step] = match self.entries[number].part {
            Some(_) => &[Step::Change, Step::Insert, Step::Restore, Step::Remove],
            None => &[Step::Change, Step::Restore],
        };
        steps.iter().map(move |step| Change { number, step: *step })
    }

    /// Makes a change; false when it was refused. `inserted` is the entry that was inserted last.
    fn make(&self, switch: &mut Switch, change: Change, inserted: &mut Option<EntryIndex>) -> bool {
        let entry = &self.entries[change.number];
        let now_ns = if let Step::Insert = change.step { switch.now_ns() } else { 0 };
        let state = switch.state_mut();
        match change.step {
            Step::Change => state.modify(self.table, entry.index, &entry.behind).is_ok(),
            Step::Restore => state.modify(self.table, entry.index, &entry.before).is_ok(),
            Step::Insert => {
                let part = entry.part.as_ref();
                *inserted = part.and_then(|part| state.insert(self.table, part, now_ns).ok());
                inserted.is_some()
            }
            Step::Remove => inserted.take().is_some_and(|index| state.remove(self.table, index).is_ok()),
        }
    }

    /// Asks for changes at a rate until it is told to stop and the last entry is as it was.
    fn ask(&self, per_second: f64, changes: &SyncSender<Change>, stop: &AtomicBool) {
        let (start, mut asked) = (Instant::now(), 0u64);
        for number in 0.. {
            if stop.load(Ordering::Acquire) {
                return;
            }
            for change in self.changes(number) {
                // The last entry is finished without waiting.
                let early = || asked as f64 > start.elapsed().as_secs_f64() * per_second;
                while early() && !stop.load(Ordering::Acquire) {
                    std::thread::sleep(INTERVAL);
                }
                if changes.send(change).is_err() {
                    return;
                }
                asked += 1;
            }
        }
    }
}

/// One half of what an entry matches, when its prefix can be longer and nothing has that half yet.
fn part(switch: &Switch, table: TableId, entry: &EntryView, key: usize) -> Option<EntryWrite> {
    let mut matches = entry.matches.clone();
    match matches.get_mut(key)? {
        EntryMatch::Lpm(value, length) if *length < value.width() => *length += 1,
        _ => return None,
    }
    if switch.state().find(table, &matches, entry.priority).is_ok() {
        return None;
    }
    Some(EntryWrite { matches, priority: entry.priority, target: entry.target.clone(), idle_timeout_ns: 0 })
}

/// Makes the changes that wait, and counts them.
struct Making<'c> {
    churn: &'c Churn,
    changes: Receiver<Change>,
    inserted: Option<EntryIndex>,
    made: u64,
    refused: u64,
    ended: bool,
}

impl Making<'_> {
    fn some(&mut self, switch: &mut Switch) {
        for _ in 0..MAX_AT_ONCE {
            match self.changes.try_recv() {
                Ok(change) => match self.churn.make(switch, change, &mut self.inserted) {
                    true => self.made += 1,
                    false => self.refused += 1,
                },
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => {
                    self.ended = true;
                    return;
                }
            }
        }
    }
}

/// Forwards for that long while so many changes a second are made, after a round without gave `quiet`; then looks at each
/// frame on its own, also under changes.
pub(crate) fn measure(
    worker: &mut Worker,
    churn: &Churn,
    per_second: f64,
    length: Duration,
    quiet: f64,
) -> ChurnReport {
    let before = worker.one_by_one(|_| ());
    let mut wrong = churn.change_all(&mut worker.switch, Step::Change);
    let behind = worker.one_by_one(|_| ());
    wrong += churn.change_all(&mut worker.switch, Step::Restore);

    let stop = AtomicBool::new(false);
    let (sender, receiver) = sync_channel(1 << 14);
    let mut making = Making { churn, changes: receiver, inserted: None, made: 0, refused: 0, ended: false };
    let (rate, seconds, made, found) = std::thread::scope(|scope| {
        let stop = &stop;
        // The sender goes with its thread, so that the receiver sees the end.
        scope.spawn(move || churn.ask(per_second, &sender, stop));
        let start = Instant::now();
        let rate: Rate = worker.round_with(&mut Stopwatch::new(), length, |switch| making.some(switch));
        let (seconds, made) = (start.elapsed().as_secs_f64(), making.made);
        let found = worker.one_by_one(|switch| making.some(switch));
        stop.store(true, Ordering::Release);
        while !making.ended {
            making.some(&mut worker.switch);
        }
        (rate, seconds, made, found)
    });
    let right = |at: usize| found.get(at) == before.get(at) || found.get(at) == behind.get(at);
    wrong += (0..before.len().max(found.len())).filter(|at| !right(*at)).count() as u64;
    wrong += making.refused;
    ChurnReport {
        asked: per_second,
        made: made as f64 / seconds,
        mpps: rate.cpu_mpps,
        ratio: if quiet > 0.0 { rate.cpu_mpps / quiet } else { 0.0 },
        wrong,
        checked: found.len() as u64,
    }
}
