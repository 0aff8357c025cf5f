//! Counters by flow, in a table of a fixed size.

use crate::error::InputError;
use crate::headers::{FlowKey, Headers};
use foldhash::fast::RandomState;
use std::hash::BuildHasher;

/// No flow.
const NONE: u32 = u32::MAX;

/// What is told of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowRecord {
    /// Which flow.
    pub key: FlowKey,
    /// When its first packet came, in nanoseconds of the port's time.
    pub start_ns: u64,
    /// When its last one came.
    pub end_ns: u64,
    /// Packets in that time.
    pub packets: u64,
    /// Their bytes, of frames without check sequence.
    pub bytes: u64,
    /// All flags of TCP that were set in one of them.
    pub tcp_flags: u8,
    /// Why it is told.
    pub end: FlowEnd,
}

/// Why a flow is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlowEnd {
    /// No packet came for the inactive timeout.
    Idle,
    /// It goes on, and the active timeout is over.
    Active,
    /// The table was full, and of all flows it was without packets the longest.
    Evicted,
    /// The port has ended.
    End,
}

impl FlowEnd {
    /// The word for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            FlowEnd::Idle => "idle",
            FlowEnd::Active => "active",
            FlowEnd::Evicted => "evicted",
            FlowEnd::End => "end",
        }
    }
}

#[derive(Clone, Copy)]
struct Flow {
    record: FlowRecord,
    bucket: u32,
    /// The next flow of the bucket, or the next free place.
    next: u32,
    /// Neighbours in the order of last packets.
    older: u32,
    newer: u32,
}

/// When flows are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// A flow that goes on is told so often, in nanoseconds.
    pub active_ns: u64,
    /// A flow without packets for so long has ended, in nanoseconds.
    pub inactive_ns: u64,
}

/// The flows of a port. What it takes is taken at the start.
pub(super) struct FlowTable {
    flows: Vec<Flow>,
    limit: usize,
    buckets: Box<[u32]>,
    /// Seeded at random, so that nobody can choose flows that share a bucket.
    hash: RandomState,
    free: u32,
    oldest: u32,
    newest: u32,
    len: usize,
    timeouts: Timeouts,
}

impl FlowTable {
    /// A table for at most so many flows, at least one.
    pub(super) fn new(limit: u32, timeouts: Timeouts) -> Result<FlowTable, InputError> {
        let limit = limit.max(1) as usize;
        let mut flows = Vec::new();
        let mut buckets = Vec::new();
        let count = limit.next_power_of_two();
        let has_room = flows.try_reserve_exact(limit).is_ok() && buckets.try_reserve_exact(count).is_ok();
        if !has_room {
            return Err(InputError::Memory);
        }
        buckets.resize(count, NONE);
        let hash = RandomState::default();
        let (free, oldest, newest) = (NONE, NONE, NONE);
        Ok(FlowTable { flows, limit, buckets: buckets.into(), hash, free, oldest, newest, len: 0, timeouts })
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Counts a packet. `tell` gets the flows that are to be told because of it.
    pub(super) fn count(
        &mut self,
        headers: &Headers,
        bytes: usize,
        now_ns: u64,
        mut tell: impl FnMut(&FlowRecord),
    ) {
        // As many as there are: a power of two.
        let bucket = self.hash.hash_one(headers.key) as usize & (self.buckets.len() - 1);
        let mut at = self.buckets[bucket];
        while at != NONE && self.flows[at as usize].record.key != headers.key {
            at = self.flows[at as usize].next;
        }
        if at == NONE {
            if self.len == self.limit {
                self.remove(self.oldest, FlowEnd::Evicted, &mut tell);
            }
            at = self.insert(bucket as u32, headers.key, now_ns);
        } else {
            let record = &mut self.flows[at as usize].record;
            if now_ns.saturating_sub(record.start_ns) >= self.timeouts.active_ns {
                tell(&FlowRecord { end: FlowEnd::Active, ..*record });
                *record = FlowRecord { start_ns: now_ns, packets: 0, bytes: 0, tcp_flags: 0, ..*record };
            }
            self.unlink(at);
        }
        self.link_newest(at);
        let record = &mut self.flows[at as usize].record;
        record.end_ns = now_ns.max(record.end_ns);
        record.packets += 1;
        record.bytes += bytes as u64;
        record.tcp_flags |= headers.tcp_flags;
    }

    /// Tells flows that have ended, and no more than a batch of them has packets twice over: the rest waits for the next call.
    pub(super) fn expire(&mut self, now_ns: u64, most: usize, mut tell: impl FnMut(&FlowRecord)) {
        for _ in 0..most {
            let oldest = self.oldest;
            let Some(flow) = self.flows.get(oldest as usize).filter(|_| oldest != NONE) else { return };
            if now_ns.saturating_sub(flow.record.end_ns) < self.timeouts.inactive_ns {
                return;
            }
            self.remove(oldest, FlowEnd::Idle, &mut tell);
        }
    }

    /// Tells all flows.
    pub(super) fn end(&mut self, mut tell: impl FnMut(&FlowRecord)) {
        while self.oldest != NONE {
            self.remove(self.oldest, FlowEnd::End, &mut tell);
        }
    }

    fn insert(&mut self, bucket: u32, key: FlowKey, now_ns: u64) -> u32 {
        let end = FlowEnd::End;
        let record =
            FlowRecord { key, start_ns: now_ns, end_ns: now_ns, packets: 0, bytes: 0, tcp_flags: 0, end };
        let flow = Flow { record, bucket, next: self.buckets[bucket as usize], older: NONE, newer: NONE };
        let at = if self.free == NONE {
            self.flows.push(flow);
            self.flows.len() as u32 - 1
        } else {
            let at = self.free;
            self.free = self.flows[at as usize].next;
            self.flows[at as usize] = flow;
            at
        };
        self.buckets[bucket as usize] = at;
        self.len += 1;
        at
    }

    fn remove(&mut self, at: u32, end: FlowEnd, tell: &mut impl FnMut(&FlowRecord)) {
        self.unlink(at);
        let Flow { record, bucket, next, .. } = self.flows[at as usize];
        tell(&FlowRecord { end, ..record });
        let mut before = self.buckets[bucket as usize];
        if before == at {
            self.buckets[bucket as usize] = next;
        } else {
            while self.flows[before as usize].next != at {
                before = self.flows[before as usize].next;
            }
            self.flows[before as usize].next = next;
        }
        self.flows[at as usize].next = self.free;
        self.free = at;
        self.len -= 1;
    }

    fn unlink(&mut self, at: u32) {
        let Flow { older, newer, .. } = self.flows[at as usize];
        match older {
            NONE => self.oldest = newer,
            older => self.flows[older as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => self.flows[newer as usize].older = older,
        }
    }

    fn link_newest(&mut self, at: u32) {
        let before = std::mem::replace(&mut self.newest, at);
        let flow = &mut self.flows[at as usize];
        (flow.older, flow.newer) = (before, NONE);
        match before {
            NONE => self.oldest = at,
            before => self.flows[before as usize].newer = at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn headers(number: u16) -> Headers {
        let key = FlowKey { source_port: number, version: 4, protocol: 17, ..FlowKey::default() };
        Headers { key, tcp_flags: number as u8 }
    }

    fn table(limit: u32, active_ns: u64, inactive_ns: u64) -> FlowTable {
        FlowTable::new(limit, Timeouts { active_ns, inactive_ns }).unwrap()
    }

    #[test]
    fn a_full_table_tells_the_flow_that_was_idle_longest() {
        let mut table = table(2, 1000, 1000);
        let mut told = Vec::new();
        for (number, now_ns) in [(1, 10), (2, 20), (1, 30), (3, 40)] {
            table.count(&headers(number), 100, now_ns, |record| told.push(*record));
        }
        assert_eq!(told.len(), 1);
        assert_eq!((told[0].key.source_port, told[0].end, told[0].packets), (2, FlowEnd::Evicted, 1));
        table.end(|record| told.push(*record));
        let rest: Vec<_> =
            told[1..].iter().map(|r| (r.key.source_port, r.packets, r.bytes, r.start_ns, r.end_ns)).collect();
        assert_eq!(rest, [(1, 2, 200, 10, 30), (3, 1, 100, 40, 40)]);
        assert_eq!(table.len(), 0);
    }

    #[test]
    fn timeouts_tell_flows_that_end_and_flows_that_go_on() {
        let mut table = table(8, 100, 50);
        let mut told = Vec::new();
        for now_ns in [0, 40, 80, 100, 120] {
            table.count(&headers(7), 10, now_ns, |record| {
                told.push((record.end, record.packets, record.end_ns))
            });
        }
        assert_eq!(told, [(FlowEnd::Active, 3, 80)]);
        table.expire(169, 10, |record| told.push((record.end, record.packets, record.end_ns)));
        assert_eq!(told.len(), 1);
        table.expire(170, 10, |record| told.push((record.end, record.packets, record.end_ns)));
        assert_eq!(told[1], (FlowEnd::Idle, 2, 120));
    }

    proptest! {
        /// Whatever is told when, nothing is lost and nothing counted twice.
        #[test]
        fn all_packets_are_told(packets in proptest::collection::vec((0u16..12, 0u64..40, 60usize..1500), 0..400), limit in 1u32..9) {
            let mut table = table(limit, 70, 60);
            let (mut told, mut counted) = (BTreeMap::new(), BTreeMap::new());
            let mut now_ns = 0;
            let mut tell = |record: &FlowRecord| {
                let sums = told.entry(record.key.source_port).or_insert((0, 0));
                *sums = (sums.0 + record.packets, sums.1 + record.bytes);
            };
            for (number, later, bytes) in packets {
                now_ns += later;
                table.count(&headers(number), bytes, now_ns, &mut tell);
                table.expire(now_ns, 3, &mut tell);
                prop_assert!(table.len() <= limit as usize);
                let sums = counted.entry(number).or_insert((0, 0));
                *sums = (sums.0 + 1, sums.1 + bytes as u64);
            }
            table.end(&mut tell);
            prop_assert_eq!(told, counted);
        }
    }
}
