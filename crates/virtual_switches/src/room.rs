//! Room for what is under way: the bytes of requests and answers of all clients, over the socket and over gRPC.
//!
//! A line does not say how long it will be. So one that is longer than a small one takes room for the longest at once, and gives back what
//! it has not used when it is there: no two lines wait for each other half-way.

use millrace_ctl_api::MAX_REQUEST;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Most bytes of requests and answers under way together, beyond what each may have in any case ([`ALLOWANCE`]).
pub const MAX_UNDER_WAY: usize = 4 * MAX_REQUEST;
/// Of these most for all tenants together: the operator is not kept out.
pub const MAX_UNDER_WAY_OF_TENANTS: usize = 2 * MAX_REQUEST;
/// Of these most for one tenant.
pub const MAX_UNDER_WAY_OF_TENANT: usize = MAX_REQUEST;
/// Bytes of a request or an answer for which there always is room.
pub const ALLOWANCE: usize = 1 << 20;
/// How long a request or an answer waits for room.
pub const ROOM_TIME: Duration = Duration::from_secs(10);

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Room {
    taken: Mutex<Taken>,
    more: Condvar,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    of_tenants: usize,
    of_tenant: BTreeMap<String, usize>,
}

/// There was none in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoRoom;

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "requests and answers of all clients take at most {MAX_UNDER_WAY} bytes together (MAX_UNDER_WAY), those of a tenant \
             {MAX_UNDER_WAY_OF_TENANT} (MAX_UNDER_WAY_OF_TENANT), and within {} seconds there was no room for this one: try again",
            ROOM_TIME.as_secs()
        )
    }
}

impl std::error::Error for NoRoom {}

/// What one client has of it, given back when this goes.
#[derive(Debug)]
pub(crate) struct Held {
    room: Arc<Room>,
    tenant: Option<String>,
    bytes: usize,
}

impl Room {
    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For a client of a tenant, or the operator's; at first nothing.
    pub(crate) fn of(self: &Arc<Room>, tenant: Option<String>) -> Held {
        Held { room: Arc::clone(self), tenant, bytes: 0 }
    }
}

impl Taken {
    fn fits(&self, tenant: Option<&String>, bytes: usize) -> bool {
        let of_tenant = |name| self.of_tenant.get(name).copied().unwrap_or(0);
        self.all + bytes <= MAX_UNDER_WAY
            && tenant.is_none_or(|name| {
                self.of_tenants + bytes <= MAX_UNDER_WAY_OF_TENANTS
                    && of_tenant(name) + bytes <= MAX_UNDER_WAY_OF_TENANT
            })
    }

    fn set(&mut self, tenant: Option<&String>, before: usize, after: usize) {
        self.all = self.all - before + after;
        let Some(tenant) = tenant else { return };
        self.of_tenants = self.of_tenants - before + after;
        let own = self.of_tenant.get(tenant).copied().unwrap_or(0) - before + after;
        match own {
            0 => drop(self.of_tenant.remove(tenant)),
            own => drop(self.of_tenant.insert(tenant.clone(), own)),
        }
    }
}

impl Held {
    /// Whether it has any.
    pub(crate) fn is_some(&self) -> bool {
        self.bytes > 0
    }

    /// Takes room for so many bytes, when it has none, and waits for it until a time. What is small needs none.
    pub(crate) fn take(&mut self, bytes: usize, until: Instant) -> Result<(), NoRoom> {
        if bytes <= ALLOWANCE {
            return Ok(());
        }
        let Held { room, tenant, bytes: own } = self;
        let mut taken = room.taken();
        while !taken.fits(tenant.as_ref(), bytes) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(NoRoom);
            }
            taken = room.more.wait_timeout(taken, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        taken.set(tenant.as_ref(), 0, bytes);
        *own += bytes;
        Ok(())
    }

    /// Gives back what is more than so many bytes need.
    pub(crate) fn keep(&mut self, bytes: usize) {
        let kept = if bytes <= ALLOWANCE { 0 } else { bytes.min(self.bytes) };
        if kept < self.bytes {
            self.room.taken().set(self.tenant.as_ref(), self.bytes, kept);
            self.bytes = kept;
            self.room.more.notify_all();
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.keep(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Instant {
        Instant::now()
    }

    #[test]
    fn all_together_have_a_limit_and_a_tenant_has_its_own() {
        let room = Arc::<Room>::default();
        let tenant = |name: &str| room.of(Some(name.to_owned()));
        let (mut red, mut more, mut blue, mut green) =
            (tenant("red"), tenant("red"), tenant("blue"), tenant("green"));
        red.take(MAX_REQUEST, now()).unwrap();
        assert_eq!(more.take(MAX_REQUEST, now()), Err(NoRoom), "a tenant has one large request at a time");
        more.take(ALLOWANCE, now()).unwrap();
        blue.take(MAX_REQUEST, now()).unwrap();
        assert_eq!(green.take(ALLOWANCE + 1, now()), Err(NoRoom), "tenants have half");
        let mut operators = [room.of(None), room.of(None), room.of(None)];
        operators[0].take(MAX_REQUEST, now()).unwrap();
        operators[1].take(MAX_REQUEST, now()).unwrap();
        assert_eq!(operators[2].take(ALLOWANCE + 1, now()), Err(NoRoom));
        // What is not used goes to others.
        blue.keep(2 << 20);
        operators[2].take(MAX_REQUEST - (2 << 20), now()).unwrap();
        drop((red, more, blue, operators));
        assert!(room.taken().all == 0 && room.taken().of_tenants == 0 && room.taken().of_tenant.is_empty());
        green.take(MAX_REQUEST, now()).unwrap();
    }

    #[test]
    fn who_finds_none_waits_and_has_it_when_another_goes() {
        let room = Arc::<Room>::default();
        let mut first = room.of(None);
        first.take(MAX_UNDER_WAY, now()).unwrap();
        let mut second = room.of(None);
        let begun = now();
        assert_eq!(second.take(MAX_REQUEST, begun + Duration::from_millis(50)), Err(NoRoom));
        assert!(begun.elapsed() >= Duration::from_millis(50));
        let waits = std::thread::spawn(move || second.take(MAX_REQUEST, now() + ROOM_TIME).map(|()| second));
        std::thread::sleep(Duration::from_millis(50));
        assert!(!waits.is_finished());
        drop(first);
        let second = waits.join().unwrap().unwrap();
        assert_eq!(room.taken().all, MAX_REQUEST);
        drop(second);
    }
}
