//! What the agent counts of its own messages: the group `snmp` (RFC 3418, and what RFC 1213 had before it).

use std::sync::atomic::{AtomicU32, Ordering};

/// A counter of the group, by its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Count {
    InPkts = 1,
    OutPkts = 2,
    InBadVersions = 3,
    InBadCommunityNames = 4,
    InBadCommunityUses = 5,
    InAsnParseErrs = 6,
    InTotalReqVars = 13,
    InGetRequests = 15,
    InGetNexts = 16,
    InSetRequests = 17,
    InGetResponses = 18,
    InTraps = 19,
    OutTooBigs = 20,
    OutNoSuchNames = 21,
    OutGenErrs = 24,
    OutGetResponses = 28,
    OutTraps = 29,
    SilentDrops = 31,
}

/// The numbers of all counters of the group; those that this agent has no use for stay 0. 30 is `snmpEnableAuthenTraps`.
pub(crate) const COUNTERS: [u32; 29] = [
    1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 24, 25, 26, 27, 28, 29, 31,
    32,
];

/// The counters.
#[derive(Debug)]
pub struct Statistics([AtomicU32; 33]);

impl Default for Statistics {
    fn default() -> Statistics {
        Statistics(std::array::from_fn(|_| AtomicU32::new(0)))
    }
}

impl Statistics {
    /// Counts one.
    pub(crate) fn count(&self, what: Count) {
        self.add(what, 1);
    }

    /// Counts so many. Counters of 32 bits wrap.
    pub(crate) fn add(&self, what: Count, many: u32) {
        self.0[what as usize].fetch_add(many, Ordering::Relaxed);
    }

    /// A counter by its number in the group; 0 of one that there is not.
    pub fn get(&self, number: u32) -> u32 {
        self.0.get(number as usize).map_or(0, |count| count.load(Ordering::Relaxed))
    }
}
