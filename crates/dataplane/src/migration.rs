//! Another program in place of the one that runs, between two batches, with what control and packets have written.
//!
//! All that takes time is done by the thread that wants the change: the objects of the new program, its code for the tables
//! as they are, the entries that have to be copied. Then the worker exchanges both between two rounds, which takes
//! microseconds; no packet is lost.

use crate::quotas::Quotas;
use crate::requests::{Moment, Reply, Request, RequestError};
use crate::switch::{Switch, SwitchError};
use crate::worker::{Control, Message};
use millrace_engine::Hold;
use millrace_state::{BuildError, Carried, Held, Migration, NotNow, State};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What has to go on under the new program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// All entries, default actions, members, groups and values of value sets, or the change is refused.
    Everything,
    /// What has a place in the new program.
    Compatible,
}

/// A change that was made.
#[derive(Debug)]
pub struct Swapped {
    /// What ran until then. Large tables take a while to be freed.
    pub before: Switch,
    /// What has become of its objects.
    pub migration: Migration,
}

/// Why the program that runs goes on.
#[derive(Clone, Debug, PartialEq)]
pub enum SwapError {
    /// The worker has ended.
    Ended,
    /// Others write without a pause.
    Busy,
    /// This was to be kept and cannot be ([`Keep::Everything`]).
    NoPlace(Vec<Carried>),
    /// The objects of the new program cannot be made again.
    State(BuildError),
    /// Its code cannot be made.
    Switch(SwitchError),
}

/// A change that was not made.
#[derive(Debug)]
pub struct SwapFailed {
    /// Why.
    pub error: SwapError,
    /// The program that was to run, as it was made; none when that is not to be had again.
    pub next: Option<Box<Switch>>,
}

impl fmt::Display for SwapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SwapError::Ended => RequestError.fmt(f),
            SwapError::Busy => write!(f, "others write to the tables without a pause"),
            SwapError::NoPlace(lost) => {
                f.write_str("the new program has no place for ")?;
                for (at, carried) in lost.iter().take(MAX_TOLD).enumerate() {
                    let comma = if at == 0 { "" } else { ", " };
                    write!(
                        f,
                        "{comma}{} {} of {} `{}`",
                        carried.count, carried.what, carried.kind, carried.name
                    )?;
                    write!(f, " ({})", carried.dropped.as_deref().unwrap_or_default())?;
                }
                match lost.len().checked_sub(MAX_TOLD) {
                    None | Some(0) => Ok(()),
                    Some(more) => write!(f, " and {more} more"),
                }
            }
            SwapError::State(error) => error.fmt(f),
            SwapError::Switch(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SwapError {}

/// Most objects that an error names.
const MAX_TOLD: usize = 8;
/// How often what was copied may have changed before it could be used.
const MAX_COPIES: u32 = 4;
/// How long others may have the tables.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two attempts to have them.
const PAUSE: Duration = Duration::from_micros(50);

/// A program that is prepared to take over with the objects of the one that runs.
pub(crate) struct Exchange {
    prepared: Box<Prepared>,
    to: Reply<Exchanged>,
}

/// The switch of the leading worker with its program, and those of the other workers with the same.
pub(crate) struct Prepared {
    next: Switch,
    others: Vec<Switch>,
    migration: Migration,
}

/// What ran until now, or why it goes on, with the program that was prepared.
type Exchanged = Result<Box<Prepared>, (NotNow, Box<Prepared>)>;

/// Has the switches of all workers change programs, if that can be now.
pub(crate) fn answer(first: &mut Switch, others: &mut [&mut Switch], exchange: Exchange) {
    let Exchange { mut prepared, to } = exchange;
    to.give(match succeed(first, others, &mut prepared) {
        Ok(()) => Ok(prepared),
        Err(reason) => Err((reason, prepared)),
    });
}

fn succeed(first: &mut Switch, others: &mut [&mut Switch], prepared: &mut Prepared) -> Result<(), NotNow> {
    let Prepared { next, others: nexts, migration } = prepared;
    migration.can_take(first.state(), next.state())?;
    // As the program until now has it, with the objects that it has until now.
    others.iter_mut().for_each(|switch| switch.run_empty());
    first.succeed(next, migration)?;
    for (switch, next) in others.iter_mut().zip(nexts) {
        switch.succeed_too(next, migration);
    }
    Ok(())
}

impl Control {
    /// Has a switch's program go on in place of the one that runs, with its objects, as far as `keep` says; ports,
    /// counters of ports, queue settings, multicast groups and clone sessions stay. The switch was made for this
    /// ([`Switch::alongside`]; any other costs more time), and nothing was written to it. Waits until it is done, so it is not
    /// for the worker to call.
    ///
    /// # Errors
    /// [`SwapFailed`]: the program that runs goes on, with all its objects.
    pub fn swap(&self, mut next: Switch, keep: Keep) -> Result<Swapped, SwapFailed> {
        for _ in 0..MAX_COPIES {
            let now = next.state().handle();
            let prepared = self.now().and_then(|(moment, quotas)| prepare(moment, quotas, &mut next, keep));
            let (migration, hold) = match prepared {
                Ok(prepared) => prepared,
                Err(error) => return Err(SwapFailed::new(error, next)),
            };
            match self.exchange(next, migration) {
                Ok(Prepared { next: before, mut migration, .. }) => {
                    drop(hold);
                    migration.finish(before.state(), &now);
                    return Ok(Swapped { before, migration });
                }
                Err(NotMade::Ended) => return Err(SwapFailed { error: SwapError::Ended, next: None }),
                Err(NotMade::Busy(back)) => return Err(SwapFailed::new(SwapError::Busy, *back)),
                Err(NotMade::Refused(error, back)) => {
                    return Err(SwapFailed::new(SwapError::Switch(error), *back));
                }
                Err(NotMade::Changed(back)) => next = *back,
            }
            if let Err(error) = next.start_over() {
                return Err(SwapFailed::new(SwapError::State(error), next));
            }
        }
        Err(SwapFailed::new(SwapError::Busy, next))
    }

    /// The switch as it is, with its quotas and what it holds of them.
    fn now(&self) -> Result<(Moment, (Quotas, Held)), SwapError> {
        let ended = |_| SwapError::Ended;
        Ok((self.ask(Request::Look).map_err(ended)?, self.ask(Request::Quotas).map_err(ended)?))
    }

    /// Has the worker change programs, as soon as nobody has the tables.
    fn exchange(&self, mut next: Switch, migration: Migration) -> Result<Prepared, NotMade> {
        let others = match next.share_with(self.workers() - 1) {
            Ok(others) => others,
            Err(error) => return Err(NotMade::Refused(error, Box::new(next))),
        };
        let (mut prepared, start) = (Box::new(Prepared { next, others, migration }), Instant::now());
        loop {
            let exchange = |to| Message::Exchange(Box::new(Exchange { prepared, to }));
            match self.send(exchange).map_err(|_| NotMade::Ended)? {
                Ok(made) => return Ok(*made),
                Err((NotNow::Changed, back)) => return Err(NotMade::Changed(Box::new(back.next))),
                Err((NotNow::Busy, back)) if start.elapsed() > PATIENCE => {
                    return Err(NotMade::Busy(Box::new(back.next)));
                }
                Err((NotNow::Busy, back)) => prepared = back,
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// As [`Control::swap`], of a switch that no worker runs.
///
/// # Errors
/// [`SwapFailed`]: it goes on with its program.
pub fn swap_at_rest(switch: &mut Switch, mut next: Switch, keep: Keep) -> Result<Swapped, SwapFailed> {
    let now = next.state().handle();
    let quotas = (switch.quotas(), switch.state().account().held());
    let (migration, hold) = match prepare(Moment::of(switch), quotas, &mut next, keep) {
        Ok(prepared) => prepared,
        Err(error) => return Err(SwapFailed::new(error, next)),
    };
    let mut prepared = Prepared { next, others: Vec::new(), migration };
    let made = succeed(switch, &mut [], &mut prepared);
    let Prepared { next, mut migration, .. } = prepared;
    // Only others that have a handle on its tables can hold it up.
    if made.is_err() {
        return Err(SwapFailed::new(SwapError::Busy, next));
    }
    drop(hold);
    migration.finish(next.state(), &now);
    Ok(Swapped { before: next, migration })
}

/// Copies what has to be copied, and makes the code, while the program until now goes on. Gives also what holds back the code that has time.
fn prepare(
    moment: Moment,
    (quotas, held): (Quotas, Held),
    next: &mut Switch,
    keep: Keep,
) -> Result<(Migration, Option<Hold>), SwapError> {
    let Moment { tables, values, now_ns, .. } = moment;
    if !Migration::is_possible(&tables, &next.forwarder.state) {
        next.forwarder.state =
            State::alongside(Arc::clone(&next.forwarder.program), &tables).map_err(SwapError::State)?;
    }
    let mut migration = Migration::new(&tables, &next.forwarder.state);
    if !migration.fills(&next.forwarder.state) {
        next.start_over().map_err(SwapError::State)?;
    }
    migration.copy(&tables, &mut next.forwarder.state, &values, now_ns);
    let lost: Vec<Carried> = migration.dropped().cloned().collect();
    if keep == Keep::Everything && !lost.is_empty() {
        return Err(SwapError::NoPlace(lost));
    }
    let groups = held - tables.lock().held();
    let wanted = migration.held_after(&tables, &next.forwarder.state) + groups;
    let over = quotas.limits().check(wanted).err();
    if let Some(error) = over {
        return Err(SwapError::State(Migration::refusal(&next.forwarder.state, error)));
    }
    let engines = &mut next.forwarder.engines;
    let fitted = migration.foresee(&tables, &mut next.forwarder.state, |state| engines.fit(state));
    let hold = fitted.map_err(|error| SwapError::Switch(SwitchError::of_engines(error)))?;
    Ok((migration, hold))
}

/// Why the worker did not change programs.
enum NotMade {
    Ended,
    Busy(Box<Switch>),
    Changed(Box<Switch>),
    /// There are no switches for the other workers.
    Refused(SwitchError, Box<Switch>),
}

impl SwapFailed {
    /// Gives the switch back as it was made.
    fn new(error: SwapError, mut next: Switch) -> SwapFailed {
        // One whose objects cannot be made again is of no use.
        let whole = next.start_over().is_ok();
        SwapFailed { error, next: whole.then(|| Box::new(next)) }
    }
}
