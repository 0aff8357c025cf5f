//! Making programs takes memory and time, so one is made at a time for a switch, whoever brings it: a P4Runtime client, or
//! another through [`crate::Programs`]. Few wait for their turn, only while somebody waits for them, and others are
//! refused.

use crate::error::{ProgramError, Why};
use millrace_dataplane::Cancel;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Most programs that wait until another has been made.
pub const MAX_WAITING_PROGRAMS: usize = 4;
/// How often one that waits looks whether somebody still waits for it.
const LOOK: Duration = Duration::from_millis(10);

/// The turns of one switch.
#[derive(Clone, Debug, Default)]
pub struct Turns(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    now: Mutex<Now>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Now {
    is_taken: bool,
    waiting: usize,
}

/// A program may be made until this goes.
#[derive(Debug)]
pub struct Turn(Arc<Shared>);

/// A place among those that wait, given back when it goes.
struct Waiting<'a>(&'a Shared);

impl Turns {
    /// Waits until nobody else makes a program. Blocks the thread: for one that serves a single client.
    ///
    /// # Errors
    /// [`MAX_WAITING_PROGRAMS`] wait, or nobody waits for this one any more.
    pub fn take(&self, cancel: &Cancel) -> Result<Turn, ProgramError> {
        let waiting = self.wait()?;
        loop {
            still_wanted(cancel)?;
            if let Some(turn) = self.turn() {
                return Ok(turn);
            }
            let now = self.0.now();
            if now.is_taken {
                drop(waiting.0.changed.wait_timeout(now, LOOK));
            }
        }
    }

    /// The same for a task: threads of the runtime are few, and whoever has the turn needs one.
    ///
    /// # Errors
    /// As [`Turns::take`].
    pub async fn taken(&self, cancel: &Cancel) -> Result<Turn, ProgramError> {
        let _waiting = self.wait()?;
        loop {
            still_wanted(cancel)?;
            if let Some(turn) = self.turn() {
                return Ok(turn);
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn wait(&self) -> Result<Waiting<'_>, ProgramError> {
        let mut now = self.0.now();
        if now.is_taken && now.waiting >= MAX_WAITING_PROGRAMS {
            return Err(ProgramError::new(
                Why::TooMany,
                format!(
                    "a program is being made and {MAX_WAITING_PROGRAMS} more wait, which is the limit \
                     (MAX_WAITING_PROGRAMS)"
                ),
            ));
        }
        now.waiting += 1;
        Ok(Waiting(&self.0))
    }

    fn turn(&self) -> Option<Turn> {
        let is_taken = std::mem::replace(&mut self.0.now().is_taken, true);
        (!is_taken).then(|| Turn(Arc::clone(&self.0)))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.now().waiting -= 1;
    }
}

/// Refuses what nobody waits for any more.
pub(crate) fn still_wanted(cancel: &Cancel) -> Result<(), ProgramError> {
    match cancel.is_cancelled() {
        true => Err(ProgramError::new(Why::Cancelled, "nobody waits for the program any more")),
        false => Ok(()),
    }
}

impl Shared {
    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.now().is_taken = false;
        self.0.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn until(turns: &Turns, waiting: usize) {
        while turns.0.now().waiting != waiting {
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn one_at_a_time_and_few_wait() {
        let turns = Turns::default();
        let first = turns.take(&Cancel::default()).unwrap();
        let cancels: Vec<Cancel> = (0..MAX_WAITING_PROGRAMS).map(|_| Cancel::default()).collect();
        let waits = |cancel: &Cancel| {
            let (turns, cancel) = (turns.clone(), cancel.clone());
            thread::spawn(move || turns.take(&cancel).map(drop).map_err(|refusal| refusal.why))
        };
        let threads: Vec<_> = cancels.iter().map(waits).collect();
        until(&turns, MAX_WAITING_PROGRAMS);
        let refused = turns.take(&Cancel::default()).unwrap_err();
        assert_eq!(refused.why, Why::TooMany);
        assert!(refused.message.contains("MAX_WAITING_PROGRAMS"), "{}", refused.message);
        // Those that nobody waits for any more go at once, and make room.
        cancels.iter().skip(1).for_each(Cancel::cancel);
        until(&turns, 1);
        drop(first);
        let ends: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert_eq!(ends[0], Ok(()));
        assert!(ends[1..].iter().all(|end| *end == Err(Why::Cancelled)), "{ends:?}");
        assert!(turns.take(&Cancel::default()).is_ok());
    }

    #[test]
    fn what_is_there_cannot_be_cancelled() {
        let (settled, cancelled) = (Cancel::default(), Cancel::default());
        assert!(settled.settle());
        settled.cancel();
        assert!(!settled.is_cancelled() && settled.settle());
        drop(cancelled.on_drop());
        assert!(cancelled.is_cancelled() && !cancelled.settle());
    }
}
