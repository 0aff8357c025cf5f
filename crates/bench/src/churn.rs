//! Forwarding while another thread changes entries, through a handle on the tables: the thread that forwards does not
//! stop, wait or take a lock for it. Each packet meets its table before a change or after it, and that is looked at.

use crate::clock::Stopwatch;
use crate::cpus;
use crate::report::{ChurnReport, Spread};
use crate::worker::{Frame, Worker};
use millrace_dataplane::Switch;
use millrace_pipeline::{EntryMatch, MatchKind, TableId};
use millrace_state::{EntryIndex, EntryView, EntryWrite, Tables, TablesHandle, Target};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Most entries that change.
const MAX_ENTRIES: usize = 20_000;
/// How long the thread that makes changes sleeps when it is early.
const INTERVAL: Duration = Duration::from_micros(50);

/// Why entries cannot be changed.
pub(crate) const NOTHING_TO_CHANGE: &str =
    "no table has two entries with different actions that may be changed";

/// What an entry does, and what it does while it is changed.
#[derive(Clone, Debug)]
struct Changing {
    index: EntryIndex,
    before: Target,
    after: Target,
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
        let (program, tables) = (switch.program(), switch.state().tables());
        let table = program.tables.keys().max_by_key(|id| tables.entry_count(*id))?;
        let all: Vec<EntryView> = tables.entries(table).filter(|entry| !entry.is_const).collect();
        let by_prefix = program.tables[table].keys.iter().rposition(|key| key.kind == MatchKind::Lpm);
        let step = all.len().div_ceil(MAX_ENTRIES).max(1);
        let entries: Vec<Changing> = (all.iter().zip(all.iter().cycle().skip(1)).step_by(step))
            .filter(|(entry, next)| entry.target != next.target)
            .map(|(entry, next)| Changing {
                index: entry.index,
                before: entry.target.clone(),
                after: next.target.clone(),
                part: by_prefix.and_then(|key| part(&tables, table, entry, key)),
            })
            .collect();
        (!entries.is_empty()).then_some(Churn { table, entries })
    }

    /// Changes all entries, or changes them back; says how many could not be changed.
    fn change_all(&self, tables: &mut Tables, step: Step) -> u64 {
        let changes = (0..self.entries.len()).map(|number| Change { number, step });
        changes.map(|change| u64::from(!self.make(tables, change, 0, &mut None))).sum()
    }

    /// The changes of one entry, one after the other: after them all is as it was.
    fn changes(&self, number: usize) -> impl Iterator<Item = Change> {
        let number = number % self.entries.len();
        let steps: &[Step] = match self.entries[number].part {
            Some(_) => &[Step::Change, Step::Insert, Step::Restore, Step::Remove],
            None => &[Step::Change, Step::Restore],
        };
        steps.iter().map(move |step| Change { number, step: *step })
    }

    /// Makes a change; false when it was refused. `inserted` is the entry that was inserted last.
    fn make(
        &self,
        tables: &mut Tables,
        change: Change,
        now_ns: u64,
        inserted: &mut Option<EntryIndex>,
    ) -> bool {
        let entry = &self.entries[change.number];
        match change.step {
            Step::Change => tables.modify(self.table, entry.index, &entry.after).is_ok(),
            Step::Restore => tables.modify(self.table, entry.index, &entry.before).is_ok(),
            Step::Insert => {
                let part = entry.part.as_ref();
                *inserted = part.and_then(|part| tables.insert(self.table, part, now_ns).ok());
                inserted.is_some()
            }
            Step::Remove => inserted.take().is_some_and(|index| tables.remove(self.table, index).is_ok()),
        }
    }

    /// Makes changes at a rate, each on its own, until it is told to stop and the last entry is as it was.
    fn run(&self, tables: &TablesHandle, per_second: f64, now_ns: u64, stop: &AtomicBool) -> Made {
        let (start, mut made, mut inserted) = (Instant::now(), Made::default(), None);
        for number in 0.. {
            if stop.load(Ordering::Acquire) {
                break;
            }
            for change in self.changes(number) {
                // The last entry is finished without waiting.
                let early = |made: &Made| made.count as f64 > start.elapsed().as_secs_f64() * per_second;
                while early(&made) && !stop.load(Ordering::Acquire) {
                    std::thread::sleep(INTERVAL);
                }
                made.count += 1;
                made.refused += u64::from(!self.make(&mut tables.lock(), change, now_ns, &mut inserted));
            }
        }
        made.seconds = start.elapsed().as_secs_f64();
        made
    }
}

/// What the thread that makes changes has made.
#[derive(Clone, Copy, Debug, Default)]
struct Made {
    count: u64,
    refused: u64,
    seconds: f64,
}

/// One half of what an entry matches, when its prefix can be longer and nothing has that half yet.
fn part(tables: &Tables, table: TableId, entry: &EntryView, key: usize) -> Option<EntryWrite> {
    let mut matches = entry.matches.clone();
    match matches.get_mut(key)? {
        EntryMatch::Lpm(value, length) if *length < value.width() => *length += 1,
        _ => return None,
    }
    if tables.find(table, &matches, entry.priority).is_ok() {
        return None;
    }
    Some(EntryWrite { matches, priority: entry.priority, target: entry.target.clone(), idle_timeout_ns: 0 })
}

/// Forwards alternately without changes and while so many a second are made, each for that long and that often; then looks at
/// each frame under changes, for as long.
pub(crate) fn measure(
    worker: &mut Worker,
    churn: &Churn,
    per_second: f64,
    length: Duration,
    rounds: u32,
) -> ChurnReport {
    let handle = worker.switch.state().handle();
    let now_ns = worker.switch.now_ns();
    let before = worker.one_by_one();
    let mut refused = churn.change_all(&mut handle.lock(), Step::Change);
    let after = worker.one_by_one();
    refused += churn.change_all(&mut handle.lock(), Step::Restore);
    let expected: Vec<[Frame; 2]> = before.into_iter().zip(after).map(|(a, b)| [a, b]).collect();

    let (here, there) = cpus::two();
    let _pinned = cpus::Pinned::to(here);
    let mut watch = Stopwatch::new();
    let mut all = Made::default();
    // Calls the function while the other thread makes changes.
    let mut meanwhile = |forward: &mut dyn FnMut()| {
        let stop = AtomicBool::new(false);
        let made = std::thread::scope(|scope| {
            let changing = scope.spawn(|| {
                let _pinned = cpus::Pinned::to(there);
                churn.run(&handle, per_second, now_ns, &stop)
            });
            forward();
            stop.store(true, Ordering::Release);
            changing.join()
        });
        // A thread that failed has refused something.
        let made = made.unwrap_or(Made { refused: 1, ..Made::default() });
        all.count += made.count;
        all.refused += made.refused;
        all.seconds += made.seconds;
    };
    let (mut quiet, mut busy) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        quiet.push(worker.round(&mut watch, length).cpu_mpps);
        meanwhile(&mut || busy.push(worker.round(&mut watch, length).cpu_mpps));
    }
    let mut found = (0, 0);
    meanwhile(&mut || found = worker.compare(&expected, length * rounds));
    let (quiet, mpps) = (Spread::of(quiet).median, Spread::of(busy).median);
    ChurnReport {
        asked: per_second,
        made: if all.seconds > 0.0 { all.count as f64 / all.seconds } else { 0.0 },
        mpps,
        quiet_mpps: quiet,
        ratio: if quiet > 0.0 { mpps / quiet } else { 0.0 },
        refused: refused + all.refused,
        wrong: found.1,
        checked: found.0,
    }
}
