//! The connections that are open, and which of them gives way when there is no place for another.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::AbortHandle;

/// Most connections at a time. For one more the one of least use is closed.
pub const MAX_CONNECTIONS: usize = 16;
/// An answer that takes longer than this gives way to a newcomer.
const LONG: Duration = Duration::from_secs(1);

/// All connections that have a place.
#[derive(Debug, Default)]
pub(crate) struct Places {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    next: u64,
    open: BTreeMap<u64, Open>,
}

#[derive(Debug)]
struct Open {
    from: IpAddr,
    since: Instant,
    /// Whether its request is there.
    has_asked: bool,
    task: Option<AbortHandle>,
}

/// A place, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    places: Arc<Places>,
    id: u64,
}

impl Places {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a connection, if there is one, or another one gives way: whoever has not asked yet, else whose answer
    /// takes long; of these one of the address that has most, and of these the oldest.
    pub(crate) fn admit(self: &Arc<Places>, from: IpAddr) -> Option<Permit> {
        let mut known = self.known();
        if known.open.len() >= MAX_CONNECTIONS {
            let mut by_address: HashMap<IpAddr, usize> = HashMap::new();
            known.open.values().for_each(|open| *by_address.entry(open.from).or_default() += 1);
            let of_use = known.open.iter().filter(|(_, open)| !open.has_asked || open.since.elapsed() > LONG);
            let order =
                |(_, open): &(&u64, &Open)| (open.has_asked, Reverse(by_address[&open.from]), open.since);
            let victim = of_use.min_by_key(order).map(|(id, _)| *id)?;
            if let Some(task) = known.open.remove(&victim).and_then(|open| open.task) {
                task.abort();
            }
        }
        known.next += 1;
        let id = known.next;
        known.open.insert(id, Open { from, since: Instant::now(), has_asked: false, task: None });
        Some(Permit { places: Arc::clone(self), id })
    }
}

impl Permit {
    /// What its connection is served by, for others to end.
    pub(crate) fn served_by(places: &Places, id: u64, task: AbortHandle) {
        match places.known().open.get_mut(&id) {
            Some(open) => open.task = Some(task),
            // It is done, or gave way already.
            None => task.abort(),
        }
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// The request is there.
    pub(crate) fn asked(&self) {
        if let Some(open) = self.places.known().open.get_mut(&self.id) {
            (open.has_asked, open.since) = (true, Instant::now());
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.places.known().open.remove(&self.id);
    }
}
