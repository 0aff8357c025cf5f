//! The connections that are open, and which of them gives way when there is no place for another.

use crate::limits::{MAX_CONNECTIONS, MAX_CONNECTIONS_OF_PEER};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// A call that takes longer than this gives way to a newcomer.
const LONG: Duration = Duration::from_secs(1);
/// Most threads of connections, with those that gave way and are not done yet.
const MAX_THREADS: usize = 2 * MAX_CONNECTIONS;

/// What a connection does; the first gives way first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// It has not asked for anything yet.
    New,
    /// It rests between two calls.
    Idle,
    /// A message is coming.
    Reading,
    /// Its call is being answered.
    Working,
}

/// What a connection does, as its thread says.
#[derive(Debug)]
pub(crate) struct Activity {
    begun: Instant,
    phase: AtomicU8,
    /// Since when, in milliseconds.
    since: AtomicU64,
}

impl Activity {
    /// It does something else now.
    pub(crate) fn set(&self, phase: Phase) {
        self.since.store(self.begun.elapsed().as_millis() as u64, Relaxed);
        self.phase.store(phase as u8, Relaxed);
    }

    /// What it does, and since when.
    fn get(&self) -> (Phase, u64) {
        let phases = [Phase::New, Phase::Idle, Phase::Reading, Phase::Working];
        (phases[usize::from(self.phase.load(Relaxed)) % phases.len()], self.since.load(Relaxed))
    }
}

/// The connections that are open.
#[derive(Debug)]
pub(crate) struct Connections {
    begun: Instant,
    next: u64,
    threads: usize,
    open: HashMap<u64, Open>,
}

#[derive(Debug)]
struct Open {
    stream: TcpStream,
    from: IpAddr,
    activity: Arc<Activity>,
}

impl Default for Connections {
    fn default() -> Connections {
        Connections { begun: Instant::now(), next: 0, threads: 0, open: HashMap::new() }
    }
}

impl Connections {
    /// A place for a connection: its number, what it does, and whether another one gave way. None when all are of more use.
    pub(crate) fn admit(&mut self, stream: TcpStream, from: IpAddr) -> Option<(u64, Arc<Activity>, bool)> {
        if self.threads >= MAX_THREADS {
            return None;
        }
        let mut by_address: HashMap<IpAddr, usize> = HashMap::new();
        self.open.values().for_each(|open| *by_address.entry(open.from).or_default() += 1);
        let is_full = by_address.get(&from).is_some_and(|count| *count >= MAX_CONNECTIONS_OF_PEER);
        let gives_way = is_full || self.open.len() >= MAX_CONNECTIONS;
        if gives_way {
            let now = self.begun.elapsed().as_millis() as u64;
            let candidates = self.open.iter().filter(|(_, open)| !is_full || open.from == from);
            let of_use = candidates.filter_map(|(id, open)| {
                let (phase, since) = open.activity.get();
                let is_long = now.saturating_sub(since) > LONG.as_millis() as u64;
                let gives_way = phase != Phase::Working || is_long;
                gives_way.then_some(((phase, Reverse(by_address[&open.from]), since, *id), *id))
            });
            // Of those that do the same: of the address that has most, the one that has done it longest.
            let (_, victim) = of_use.min_by_key(|(order, _)| *order)?;
            self.close(victim);
        }
        self.next += 1;
        self.threads += 1;
        let activity = Activity { begun: self.begun, phase: AtomicU8::new(0), since: AtomicU64::new(0) };
        activity.set(Phase::New);
        let activity = Arc::new(activity);
        self.open.insert(self.next, Open { stream, from, activity: Arc::clone(&activity) });
        Some((self.next, activity, gives_way))
    }

    /// Its thread has ended.
    pub(crate) fn leave(&mut self, id: u64) {
        self.threads -= 1;
        self.close(id);
    }

    fn close(&mut self, id: u64) {
        if let Some(open) = self.open.remove(&id) {
            let _ = open.stream.shutdown(Shutdown::Both);
        }
    }

    pub(crate) fn close_all(&mut self) {
        for (_, open) in self.open.drain() {
            let _ = open.stream.shutdown(Shutdown::Both);
        }
    }
}
