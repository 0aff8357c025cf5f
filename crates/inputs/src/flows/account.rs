//! Counting packets in flows, and handing flows over to the thread that writes them.

use super::table::{FlowRecord, FlowTable};
use super::writer::{END_TIME, Outlet};
use crate::headers::Headers;
use std::time::{Duration, Instant};

/// Most flows that are told in a second of the port's time; those beyond are lost, and counted. What the end of a port tells does not
/// count.
pub const MAX_RECORDS_A_SECOND: u32 = 100_000;

/// Flows that have ended are looked for after each batch: so many at most, twice what a batch can add.
const EXPIRED: usize = 128;
/// So long a port that replays a capture waits for the disk before it looks again.
const WAIT: Duration = Duration::from_micros(200);
const SECOND: u64 = 1_000_000_000;

/// The flows of one direction of a queue pair.
pub(crate) struct Account {
    table: FlowTable,
    hatch: Hatch,
}

/// Where flows leave.
struct Hatch {
    outlet: Outlet,
    /// Whether the port replays a capture: then there is time to wait.
    is_replay: bool,
    /// Whether the disk took nothing for so long that it is not waited for any more.
    is_late: bool,
    second: u64,
    told: u32,
}

impl Account {
    pub(super) fn new(table: FlowTable, outlet: Outlet, is_replay: bool) -> Account {
        let hatch = Hatch { outlet, is_replay, is_late: false, second: 0, told: 0 };
        Account { table, hatch }
    }

    /// Counts packets, each with its length and time.
    pub(crate) fn count<'h>(&mut self, packets: impl Iterator<Item = (&'h Headers, usize, u64)>) {
        let mut last_ns = 0;
        for (headers, bytes, now_ns) in packets {
            self.table.count(headers, bytes, now_ns, |record| self.hatch.tell(record, now_ns));
            last_ns = now_ns;
        }
        if last_ns > 0 {
            self.expire(last_ns);
        }
    }

    /// Tells flows that have ended.
    pub(crate) fn expire(&mut self, now_ns: u64) {
        self.table.expire(now_ns, EXPIRED, |record| self.hatch.tell(record, now_ns));
        self.hatch.outlet.flows(self.table.len());
    }
}

impl Hatch {
    fn tell(&mut self, record: &FlowRecord, now_ns: u64) {
        let second = now_ns / SECOND;
        if second != self.second {
            (self.second, self.told) = (second, 0);
        }
        if self.told == MAX_RECORDS_A_SECOND {
            return self.outlet.lost();
        }
        self.told += 1;
        self.put(record, self.is_replay);
    }

    fn put(&mut self, record: &FlowRecord, may_wait: bool) {
        if may_wait && !self.is_late && self.outlet.is_full() {
            let begun = Instant::now();
            while self.outlet.is_full() && !self.is_late {
                std::thread::sleep(WAIT);
                self.is_late = begun.elapsed() > END_TIME;
            }
        }
        self.outlet.put(record);
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.table.end(|record| self.hatch.put(record, true));
        self.hatch.outlet.flows(0);
    }
}
