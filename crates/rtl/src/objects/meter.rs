//! Meters as the software has them: two buckets of tokens in steps of 10^-15, exact (RFC 2698).
//!
//! | cycle | what is done |
//! | --- | --- |
//! | 0 | configuration and time of the last packet are read |
//! | 1 | time that has passed; the time of the last packet moves on |
//! | 2, 3 | rates times time, 16 bits of the time each, and the cost of the packet |
//! | 4 | their sums; the buckets are read |
//! | 5 | tokens are added |
//! | 6 | buckets overflow, tokens are taken, the colour is known |
//! | 7 | the buckets are written, the packet is counted by its colour, the answer is there |
//!
//! The buckets of cycle 7 are those that a packet two cycles later adds to, so packets have to come two cycles apart.

use super::ObjectUnit;
use super::counter::{Count, Counts, WORD as COUNT_BITS};
use super::memory::{Queue, Reads, Store, Write, place};
use millrace_netlist::{Module, ModuleBuilder, NodeId, address_width};

/// Bits of a bucket: 2^64 units of 10^15 steps.
pub(crate) const BUCKET: u32 = 114;
/// The configuration: CIR, CBS in steps, PIR, PBS in steps from the lowest bit on, then whether there is one.
pub(super) const CONFIG: u32 = 2 * (64 + BUCKET) + 1;
/// The buckets: committed lowest, peak, then the time of the last packet.
const TOKENS: u32 = 2 * BUCKET;
/// Bits of a word of software.
pub(super) const WORD: u32 = CONFIG;
/// Bits of the part of a meter, lowest in an address: [`part`].
pub(super) const PART_BITS: u32 = 3;
/// Bits of memory of a meter: configuration, buckets, time, counts by colour.
pub(super) const CELL_BITS: u32 = CONFIG + TOKENS + 64 + 4 * COUNT_BITS;
/// Steps of a unit.
const STEPS: u64 = 1_000_000_000_000_000;

/// The parts of a meter, each a word of software.
pub(crate) mod part {
    /// Its configuration.
    pub(crate) const CONFIG: u64 = 0;
    /// Its buckets.
    pub(crate) const TOKENS: u64 = 1;
    /// The time of the last packet.
    pub(crate) const LAST: u64 = 2;
    /// What it counted in green; yellow and red follow.
    pub(crate) const COUNTS: u64 = 4;
    /// The number of parts, one of which is not there.
    pub(crate) const ALL: u64 = 8;
}

/// What goes with a packet from cycle to cycle.
struct Travel {
    enable: NodeId,
    inside: NodeId,
    address: NodeId,
    bytes: NodeId,
    color: NodeId,
}

impl Travel {
    fn next(&self, m: &mut ModuleBuilder, cycle: u32) -> Travel {
        let mut delay = |what: &str, value, reset| m.delayed(&format!("{what}_{cycle}"), value, reset);
        Travel {
            enable: delay("enable", self.enable, Some(0)),
            inside: delay("inside", self.inside, None),
            address: delay("cell", self.address, None),
            bytes: delay("bytes", self.bytes, None),
            color: delay("before", self.color, None),
        }
    }
}

impl ObjectUnit {
    pub(super) fn meter(&self, name: &str, size: u32, packets: bool) -> Module {
        let mut m = ModuleBuilder::new(name);
        let bits = address_width(size);
        let queue = Queue::new(&mut m, self.address(), WORD, self.wait);
        let reads = Reads::new(&mut m, self.address());
        let (first, now) = self.requests(&mut m, size);
        let cell = |m: &mut ModuleBuilder, address: NodeId| {
            let cell = m.shr_by(address, PART_BITS);
            let part = m.slice(address, 0, PART_BITS);
            (m.resize(cell, bits), part)
        };
        let (written, part) = cell(&mut m, queue.address);
        let parts = [part::CONFIG, part::TOKENS, part::LAST].map(|of| m.is(part, of.into()));
        let counts_part = m.bit(part, 2);
        let (asked, asked_part) = cell(&mut m, reads.address);

        // Cycle 0 and 1: software alone writes configurations.
        let mut configs = Store::new(&mut m, "config", CONFIG, size, Vec::new());
        let t1 = first.next(&mut m, 1);
        let mut lasts = Store::new(&mut m, "last", 64, size, Vec::new());
        let (last_enable, last_writes) = m.register("last_writes", 1, Some(0));
        let (last_at, last_address) = m.register("last_at", bits, None);
        let (last_next, last_data) = m.register("last_next", 64, None);
        let (tokens_enable, tokens_writes) = m.register("tokens_writes", 1, Some(0));
        let (tokens_at, tokens_address) = m.register("tokens_at", bits, None);
        let (tokens_next, tokens_data) = m.register("tokens_next", TOKENS, None);
        let mut tokens = Store::new(&mut m, "tokens", TOKENS, size, Vec::new());
        let counts = Counts::new(&mut m, "colors", size * 4);
        // A write of software is taken once the memory that it is for is free.
        let free = {
            let counts_free = counts.free(&mut m);
            let (tokens_free, last_free) = (m.not(tokens_writes), m.not(last_writes));
            m.all(&[counts_free, tokens_free, last_free])
        };
        let taken = queue.take(&mut m, free);
        let software = |m: &mut ModuleBuilder, is_part: NodeId, width: u32| {
            let data = m.slice(queue.data, 0, width);
            Write { enable: taken, address: written, data }.when(m, is_part)
        };
        let config_write = software(&mut m, parts[0], CONFIG);
        configs.written(&mut m, config_write);
        let own = Write { enable: last_writes, address: last_address, data: last_data };
        let other = software(&mut m, parts[2], 64);
        let write = own.or(&mut m, other);
        lasts.written(&mut m, write);
        let own = Write { enable: tokens_writes, address: tokens_address, data: tokens_data };
        let other = software(&mut m, parts[1], TOKENS);
        let write = own.or(&mut m, other);
        tokens.written(&mut m, write);

        let active = m.and(first.enable, first.inside);
        let config = configs.read(&mut m, "packet", active, first.address);
        let last = lasts.read(&mut m, "packet", active, first.address);
        let config = Config::of(&mut m, config);
        let now = m.delayed("now_1", now, None);
        let newer = m.lt(last, now);
        let passed = m.sub(now, last);
        let zero = m.number(64, 0);
        let passed = m.mux(newer, passed, zero);
        let kept = m.mux(newer, now, last);
        let metered = m.all(&[t1.enable, t1.inside, config.is_there]);
        m.set_next(last_enable, metered);
        m.set_next(last_at, t1.address);
        m.set_next(last_next, kept);

        // Cycle 2 to 4: products.
        let passed = m.delayed("passed", passed, None);
        let config = config.next(&mut m, 2);
        let t2 = t1.next(&mut m, 2);
        let gained = [0, 1].map(|at| gained(&mut m, at, config.rates[at], passed));
        let cost = cost(&mut m, t2.bytes, packets);
        let (mut config, mut travel) = (config, t2);
        for cycle in 3..=4 {
            (config, travel) = (config.next(&mut m, cycle), travel.next(&mut m, cycle));
        }
        let active = m.all(&[travel.enable, travel.inside, config.is_there]);
        let kept = tokens.read(&mut m, "packet", active, travel.address);

        // Cycle 5: tokens are added.
        let (config, t5) = (config.next(&mut m, 5), travel.next(&mut m, 5));
        let buckets: Vec<Bucket> = (0..2)
            .map(|at| {
                let bucket = m.slice(kept, at * BUCKET, BUCKET);
                let full = config.bursts[at as usize];
                Bucket::add(&mut m, at, (bucket, gained[at as usize]), full, cost)
            })
            .collect();

        // Cycle 6: tokens are taken.
        let (config, t6) = (config.next(&mut m, 6), t5.next(&mut m, 6));
        let [red, yellow] = [2, 1].map(|color| m.is(t6.color, color));
        // Numbers above 2 are red, too.
        let beyond = m.is(t6.color, 3);
        let red = m.or(red, beyond);
        let not_red = m.not(red);
        let peak = m.and(not_red, buckets[1].pays);
        let not_yellow = m.not(yellow);
        let committed = m.all(&[peak, not_yellow, buckets[0].pays]);
        let next: Vec<NodeId> = [(0, committed), (1, peak)]
            .into_iter()
            .map(|(at, takes): (usize, NodeId)| m.mux(takes, buckets[at].left, buckets[at].filled))
            .collect();
        let metered = m.all(&[t6.enable, t6.inside, config.is_there]);
        let colors = [0, 1, 2].map(|color| m.number(8, color));
        let color = m.mux(peak, colors[1], colors[2]);
        let color = m.mux(committed, colors[0], color);
        let color = m.mux(metered, color, colors[0]);
        let next = m.concat(&[next[1], next[0]]);
        m.set_next(tokens_enable, metered);
        m.set_next(tokens_at, t6.address);
        m.set_next(tokens_next, next);

        // Cycle 7.
        let color = m.delayed("color", color, None);
        let t7 = t6.next(&mut m, 7);
        for number in 0..self.slots.len() {
            m.output(&format!("slot{number}_answer"), color);
        }
        let two = m.slice(color, 0, 2);
        let counter = m.concat(&[t7.address, two]);
        let enable = m.and(t7.enable, t7.inside);
        let count = Count { enable, address: counter, bytes: t7.bytes };
        let color_part = m.slice(part, 0, 2);
        let counter = m.concat(&[written, color_part]);
        let data = m.slice(queue.data, 0, COUNT_BITS);
        let software = Write { enable: taken, address: counter, data }.when(&mut m, counts_part);
        let asked_color = m.slice(asked_part, 0, 2);
        let counter = m.concat(&[asked, asked_color]);
        let counted = counts.finish(&mut m, &count, software, (reads.enable, counter));

        let asked_part = m.delayed("asked_part", asked_part, None);
        let of = [&configs, &tokens, &lasts].map(|store| {
            let read = store.read(&mut m, "software", reads.enable, asked);
            m.resize(read, WORD)
        });
        let counted = m.resize(counted, WORD);
        let read = m.choose(asked_part, &[of[0], of[1], of[2], of[2], counted]);
        reads.answer(&mut m, read);
        m.output("busy", queue.busy);
        m.finish()
    }

    /// The request of the port that has one: with its time.
    fn requests(&self, m: &mut ModuleBuilder, size: u32) -> (Travel, NodeId) {
        let mut requests = Vec::new();
        for number in 0..self.slots.len() {
            let enable = m.input(&format!("slot{number}_enable"), 1);
            let mut input = |at: usize| m.input(&format!("slot{number}_input{at}"), self.inputs[number][at]);
            let (index, bytes, color, now) = (input(0), input(1), input(2), input(3));
            let place = place(m, index, size);
            let bytes = saturated(m, bytes, 64);
            let color = saturated(m, color, 2);
            requests.push([enable, place.inside, place.address, bytes, color, now]);
        }
        let chosen = |m: &mut ModuleBuilder, at: usize, width: u32| {
            let choices: Vec<(NodeId, NodeId)> =
                requests.iter().map(|request| (request[0], request[at])).collect();
            m.one_hot(width, &choices)
        };
        let enables: Vec<NodeId> = requests.iter().map(|request| request[0]).collect();
        let travel = Travel {
            enable: m.any(&enables),
            inside: chosen(m, 1, 1),
            address: chosen(m, 2, address_width(size)),
            bytes: chosen(m, 3, 64),
            color: chosen(m, 4, 2),
        };
        (travel, chosen(m, 5, 64))
    }
}

/// A number cut to a width; all ones where it does not fit.
fn saturated(m: &mut ModuleBuilder, value: NodeId, width: u32) -> NodeId {
    let has = m.width(value);
    let low = m.resize(value, width);
    if has <= width {
        return low;
    }
    let high = m.slice(value, width, has - width);
    let beyond = m.reduce_or(high);
    let ones = m.repeat(beyond, width);
    m.or(low, ones)
}

/// The configuration of a meter.
struct Config {
    is_there: NodeId,
    /// Committed and peak rate.
    rates: [NodeId; 2],
    /// Full buckets.
    bursts: [NodeId; 2],
}

impl Config {
    fn of(m: &mut ModuleBuilder, word: NodeId) -> Config {
        let peak = 64 + BUCKET;
        Config {
            is_there: m.bit(word, CONFIG - 1),
            rates: [0, peak].map(|low| m.slice(word, low, 64)),
            bursts: [64, peak + 64].map(|low| m.slice(word, low, BUCKET)),
        }
    }

    fn next(&self, m: &mut ModuleBuilder, cycle: u32) -> Config {
        let mut delay = |what: String, value| m.delayed(&format!("{what}_{cycle}"), value, None);
        Config {
            is_there: delay("configured".to_owned(), self.is_there),
            rates: [0, 1].map(|at| delay(format!("rate{at}"), self.rates[at])),
            bursts: [0, 1].map(|at| delay(format!("burst{at}"), self.bursts[at])),
        }
    }
}

/// A rate times the time that has passed, three cycles later: 16 bits of the time each, then their sum.
fn gained(m: &mut ModuleBuilder, number: usize, rate: NodeId, passed: NodeId) -> NodeId {
    let rate = m.resize(rate, 80);
    let parts: Vec<NodeId> = (0..4)
        .map(|at| {
            let part = m.slice(passed, 16 * at, 16);
            let part = m.resize(part, 80);
            let product = m.mul(rate, part);
            m.delayed(&format!("gained{number}_product{at}"), product, None)
        })
        .collect();
    sum(m, &format!("gained{number}"), &parts)
}

/// What a packet costs in steps, three cycles later.
fn cost(m: &mut ModuleBuilder, bytes: NodeId, packets: bool) -> NodeId {
    if packets {
        return m.number(BUCKET, STEPS.into());
    }
    let steps = m.number(80, STEPS.into());
    let parts: Vec<NodeId> = (0..4)
        .map(|at| {
            let part = m.slice(bytes, 16 * at, 16);
            let part = m.resize(part, 80);
            let product = m.mul(steps, part);
            m.delayed(&format!("cost_product{at}"), product, None)
        })
        .collect();
    let sum = sum(m, "cost", &parts);
    m.resize(sum, BUCKET)
}

/// The sum of four parts, each 16 bits above the one before, two cycles later.
fn sum(m: &mut ModuleBuilder, name: &str, parts: &[NodeId]) -> NodeId {
    let shifted = |m: &mut ModuleBuilder, value: NodeId, by: u32, width: u32| {
        let value = m.resize(value, width);
        m.shl_by(value, by)
    };
    let pairs: Vec<NodeId> = parts
        .chunks(2)
        .enumerate()
        .map(|(at, pair)| {
            let high = shifted(m, pair[1], 16, 97);
            let low = m.resize(pair[0], 97);
            let sum = m.add(low, high);
            m.delayed(&format!("{name}_pair{at}"), sum, None)
        })
        .collect();
    let high = shifted(m, pairs[1], 32, 128);
    let low = m.resize(pairs[0], 128);
    let sum = m.add(low, high);
    m.delayed(&format!("{name}_sum"), sum, None)
}

/// A bucket in cycle 6.
struct Bucket {
    /// Its tokens before the packet.
    filled: NodeId,
    /// Its tokens after it, if it can pay.
    left: NodeId,
    pays: NodeId,
}

impl Bucket {
    /// Adds tokens in cycle 5. Whether the bucket overflows shows only in cycle 6; till then both cases are computed.
    fn add(
        m: &mut ModuleBuilder,
        number: u32,
        (tokens, gained): (NodeId, NodeId),
        full: NodeId,
        cost: NodeId,
    ) -> Bucket {
        let delay = |m: &mut ModuleBuilder, what: &str, value| {
            m.delayed(&format!("bucket{number}_{what}"), value, None)
        };
        let (tokens, gained) = (m.resize(tokens, 129), m.resize(gained, 129));
        let all = m.add(tokens, gained);
        let all = delay(m, "all", all);
        let pays = m.le(cost, full);
        let full_pays = delay(m, "full_pays", pays);
        let left = m.sub(full, cost);
        let full_left = delay(m, "full_left", left);
        let full = delay(m, "full", full);
        let cost = delay(m, "cost", cost);
        // Cycle 6.
        let wide = m.resize(full, 129);
        let over = m.lt(wide, all);
        let low = m.slice(all, 0, BUCKET);
        let pays = m.le(cost, low);
        let left = m.sub(low, cost);
        Bucket {
            filled: m.mux(over, full, low),
            left: m.mux(over, full_left, left),
            pays: m.mux(over, full_pays, pays),
        }
    }
}
