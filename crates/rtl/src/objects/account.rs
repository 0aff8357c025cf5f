//! Credit accounts as the software has them: the policing of ARINC 664 part 7, exact, in the cycles of a meter.
//!
//! A credit is kept in units of 1 / BAG byte, in which it grows by Smax for each nanosecond and *n* bytes cost *n* BAG. Software writes
//! the products of the configuration, so a packet takes two: Smax times the time, and its bytes times BAG.
//!
//! | cycle | what is done |
//! | --- | --- |
//! | 0, 1 | as in a meter |
//! | 2 | whether the time fills the account; the products, each in two parts |
//! | 3 | their sums |
//! | 4 | the credits are read |
//! | 5 | what was earned is added |
//! | 6 | credits overflow, both pay or none does |
//! | 7 | as in a meter |

use super::meter::{Bucket, Memories, Travel, saturated};
use crate::parts::later;
use millrace_netlist::{ModuleBuilder, NodeId};

/// Bits of a credit: at most `MAX_FRAME` times the sum of the longest BAG and jitter, which is less than 2^50.
pub(super) const CREDIT: u32 = 50;
/// Bits of Smax, BAG in nanoseconds, and of what fills an empty account, in nanoseconds.
const SMAX: u32 = 16;
const BAG: u32 = 31;
const WINDOW: u32 = 34;
/// Bits of what Smax bytes cost.
const FRAME: u32 = SMAX + BAG;

/// The fields of a configuration, from its lowest bit on, and their widths.
pub(super) mod field {
    /// Smax.
    pub(crate) const SMAX: (u32, u32) = (0, super::SMAX);
    /// The BAG.
    pub(crate) const BAG: (u32, u32) = (16, super::BAG);
    /// BAG and jitter.
    pub(crate) const WINDOW: (u32, u32) = (47, super::WINDOW);
    /// A full credit.
    pub(crate) const FULL: (u32, u32) = (81, super::CREDIT);
    /// Smax times BAG.
    pub(crate) const FRAME: (u32, u32) = (131, super::FRAME);
    /// Whether bytes are tested, and whether frames are.
    pub(crate) const TESTS: (u32, u32) = (178, 2);
    /// Whether there is a configuration.
    pub(crate) const IS_THERE: u32 = 180;
}

/// Bits of a configuration.
pub(super) const CONFIG: u32 = field::IS_THERE + 1;

/// Bits of a number of bytes; more cost more than any account has, as a BAG has at least 10^4 nanoseconds.
const BYTES: u32 = 38;
/// Bits of the half of a factor.
const HALF: u32 = 19;
/// Bits of a cost.
const COST: u32 = BYTES + BAG + 1;

/// A configuration in some cycle.
struct Config {
    is_there: NodeId,
    full: NodeId,
    frame: NodeId,
    tests: NodeId,
}

impl Config {
    fn of(m: &mut ModuleBuilder, word: NodeId) -> Config {
        let mut part = |(low, width): (u32, u32)| m.slice(word, low, width);
        Config {
            full: part(field::FULL),
            frame: part(field::FRAME),
            tests: part(field::TESTS),
            is_there: part((field::IS_THERE, 1)),
        }
    }

    fn next(&self, m: &mut ModuleBuilder, cycle: u32) -> Config {
        let mut delay = |what: &str, value| m.delayed(&format!("{what}_{cycle}"), value, None);
        Config {
            is_there: delay("configured", self.is_there),
            full: delay("full", self.full),
            frame: delay("frame", self.frame),
            tests: delay("tests", self.tests),
        }
    }
}

impl Memories {
    /// Cycles 1 to 6: whether a packet is admitted, as its colour in cycle 6.
    pub(super) fn admitted(
        &self,
        m: &mut ModuleBuilder,
        (t1, word, passed): (Travel, NodeId, NodeId),
    ) -> (Travel, NodeId) {
        let passed = m.delayed("passed", passed, None);
        let [smax, bag, window] = [field::SMAX, field::BAG, field::WINDOW].map(|(low, width)| {
            let value = m.slice(word, low, width);
            m.delayed(&format!("factor{low}"), value, None)
        });
        let mut config = Config::of(m, word).next(m, 2);
        let mut travel = t1.next(m, 2);
        // Cycle 2. A time that fills the account earns all of it; a shorter one fits the bits of a window.
        let wide = m.resize(window, 64);
        let is_short = m.lt(passed, wide);
        let short = m.resize(passed, WINDOW);
        let gained = product(m, "gained", smax, short);
        let bytes = saturated(m, travel.bytes, BYTES);
        let cost = product(m, "cost", bag, bytes);
        let is_short = later(m, "is_short", is_short, 2, None);
        for cycle in 3..=4 {
            (config, travel) = (config.next(m, cycle), travel.next(m, cycle));
        }
        // Cycle 4.
        let gained = m.mux(is_short, gained, config.full);
        let gained = m.delayed("gained_5", gained, None);
        let cost = m.resize(cost, COST);
        let cost = m.delayed("cost_5", cost, None);
        let active = m.all(&[travel.enable, travel.inside, config.is_there]);
        let kept = self.tokens.read(m, "packet", active, travel.address);
        (config, travel) = (config.next(m, 5), travel.next(m, 5));
        // Cycle 5.
        let frame = m.resize(config.frame, COST);
        let zero = m.number(COST, 0);
        let credits = [(0, cost), (1, frame)].map(|(number, cost)| {
            let is_tested = m.bit(config.tests, number);
            let cost = m.mux(is_tested, cost, zero);
            let credit = m.slice(kept, number * CREDIT, CREDIT);
            Bucket::add(m, number, (credit, gained), config.full, cost)
        });
        // Cycle 6.
        (config, travel) = (config.next(m, 6), travel.next(m, 6));
        let passes = m.and(credits[0].pays, credits[1].pays);
        let red = m.bit(travel.color, 1);
        let not_red = m.not(red);
        let next = [1, 0].map(|at: usize| m.mux(passes, credits[at].left, credits[at].filled));
        let next = m.concat(&next);
        let metered = m.all(&[travel.enable, travel.inside, config.is_there]);
        let admits = m.and(metered, not_red);
        self.tokens_write.prepare(m, admits, travel.address, next);
        let (green, refused) = (m.number(8, 0), m.number(8, 2));
        let passes = m.and(passes, not_red);
        let color = m.mux(passes, green, refused);
        (travel, m.mux(metered, color, green))
    }
}

/// A product, two cycles later: of the halves of the second factor, then their sum.
fn product(m: &mut ModuleBuilder, name: &str, one: NodeId, other: NodeId) -> NodeId {
    let (width, has) = (m.width(one) + m.width(other), m.width(other));
    let parts = [(0, HALF), (HALF, has - HALF)].map(|(low, bits)| {
        let part = m.slice(other, low, bits);
        let inner = m.width(one) + bits;
        let (one, part) = (m.resize(one, inner), m.resize(part, inner));
        let product = m.mul(one, part);
        m.delayed(&format!("{name}_product{low}"), product, None)
    });
    let [low, high] = parts.map(|part| m.resize(part, width));
    let high = m.shl_by(high, HALF);
    let sum = m.add(low, high);
    m.delayed(&format!("{name}_sum"), sum, None)
}
