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

use super::counter::{Count, Counts, WORD as COUNT_BITS};
use super::memory::{Queue, Reads, Store, Write, place};
use super::{ObjectUnit, account};
use millrace_netlist::{Module, ModuleBuilder, NodeId, RegisterId, address_width};
use millrace_pipeline::Unit;

/// Bits of a bucket: 2^64 units of 10^15 steps.
const BUCKET: u32 = 114;
/// The configuration: CIR, CBS in steps, PIR, PBS in steps from the lowest bit on, then whether there is one.
const CONFIG: u32 = 2 * (64 + BUCKET) + 1;
/// Bits of the part of a meter, lowest in an address: [`part`].
pub(super) const PART_BITS: u32 = 3;

/// What a meter counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    /// Each packet is 1.
    Packets,
    /// Bytes.
    Bytes,
    /// Bytes of an account ([`super::account`]).
    Account,
}

impl Measure {
    pub(super) fn of(unit: Unit) -> Measure {
        match unit {
            Unit::Packets => Measure::Packets,
            Unit::Bytes | Unit::PacketsAndBytes => Measure::Bytes,
            Unit::Account => Measure::Account,
        }
    }

    /// Bits of a bucket.
    pub(super) fn bucket_bits(self) -> u32 {
        if self == Measure::Account { account::CREDIT } else { BUCKET }
    }

    /// Bits of a configuration, the widest word of software; the highest says whether there is one.
    pub(super) fn config_bits(self) -> u32 {
        if self == Measure::Account { account::CONFIG } else { CONFIG }
    }

    /// Bits of memory of a meter: configuration, buckets, time, counts by colour.
    pub(super) fn cell_bits(self) -> u32 {
        self.config_bits() + 2 * self.bucket_bits() + 64 + 4 * COUNT_BITS
    }
}
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
pub(super) struct Travel {
    pub(super) enable: NodeId,
    pub(super) inside: NodeId,
    pub(super) address: NodeId,
    pub(super) bytes: NodeId,
    pub(super) color: NodeId,
}

impl Travel {
    pub(super) fn next(&self, m: &mut ModuleBuilder, cycle: u32) -> Travel {
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

/// A write of the pipeline that is prepared in one cycle and done in the next.
pub(super) struct Pending {
    enable: (RegisterId, NodeId),
    address: (RegisterId, NodeId),
    data: (RegisterId, NodeId),
}

impl Pending {
    fn new(m: &mut ModuleBuilder, name: &str, (address, data): (u32, u32)) -> Pending {
        Pending {
            enable: m.register(&format!("{name}_writes"), 1, Some(0)),
            address: m.register(&format!("{name}_at"), address, None),
            data: m.register(&format!("{name}_next"), data, None),
        }
    }

    fn write(&self) -> Write {
        Write { enable: self.enable.1, address: self.address.1, data: self.data.1 }
    }

    pub(super) fn prepare(&self, m: &mut ModuleBuilder, enable: NodeId, address: NodeId, data: NodeId) {
        m.set_next(self.enable.0, enable);
        m.set_next(self.address.0, address);
        m.set_next(self.data.0, data);
    }
}

/// The memories of a meter, with what software writes to them.
pub(super) struct Memories {
    measure: Measure,
    configs: Store,
    lasts: Store,
    pub(super) last_write: Pending,
    pub(super) tokens: Store,
    pub(super) tokens_write: Pending,
    counts: Counts,
    /// What software writes to counts.
    counts_written: Write,
}

impl Memories {
    fn new(m: &mut ModuleBuilder, size: u32, queue: &Queue, measure: Measure) -> Memories {
        let bits = address_width(size);
        let (config, tokens_bits) = (measure.config_bits(), 2 * measure.bucket_bits());
        let (written, part) = cell(m, queue.address, bits);
        let mut configs = Store::new(m, "config", config, size, Vec::new());
        let mut lasts = Store::new(m, "last", 64, size, Vec::new());
        let last_write = Pending::new(m, "last", (bits, 64));
        let mut tokens = Store::new(m, "tokens", tokens_bits, size, Vec::new());
        let tokens_write = Pending::new(m, "tokens", (bits, tokens_bits));
        let counts = Counts::new(m, "colors", size * 4);
        // A write of software is taken once all memories are free.
        let free = {
            let counts_free = counts.free(m);
            let (tokens_free, last_free) = (m.not(tokens_write.enable.1), m.not(last_write.enable.1));
            m.all(&[counts_free, tokens_free, last_free])
        };
        let taken = queue.take(m, free);
        let software = |m: &mut ModuleBuilder, of: u64, width: u32| {
            let (is_part, data) = (m.is(part, of.into()), m.slice(queue.data, 0, width));
            Write { enable: taken, address: written, data }.when(m, is_part)
        };
        // Software alone writes configurations.
        let write = software(m, part::CONFIG, config);
        configs.written(m, write);
        let other = software(m, part::LAST, 64);
        let write = last_write.write().or(m, other);
        lasts.written(m, write);
        let other = software(m, part::TOKENS, tokens_bits);
        let write = tokens_write.write().or(m, other);
        tokens.written(m, write);
        let is_count = m.bit(part, 2);
        let color = m.slice(part, 0, 2);
        let address = m.concat(&[written, color]);
        let data = m.slice(queue.data, 0, COUNT_BITS);
        let counts_written = Write { enable: taken, address, data }.when(m, is_count);
        Memories { measure, configs, lasts, last_write, tokens, tokens_write, counts, counts_written }
    }

    /// Cycles 0 and 1: the configuration, and the time since the last packet, in cycle 1.
    fn passed(&self, m: &mut ModuleBuilder, first: &Travel, now: NodeId) -> (Travel, NodeId, NodeId) {
        let active = m.and(first.enable, first.inside);
        let config = self.configs.read(m, "packet", active, first.address);
        let last = self.lasts.read(m, "packet", active, first.address);
        let now = m.delayed("now_1", now, None);
        let t1 = first.next(m, 1);
        let newer = m.lt(last, now);
        let passed = m.sub(now, last);
        let zero = m.number(64, 0);
        let passed = m.mux(newer, passed, zero);
        let kept = m.mux(newer, now, last);
        let is_there = m.bit(config, self.measure.config_bits() - 1);
        let mut metered = vec![t1.enable, t1.inside, is_there];
        if self.measure == Measure::Account {
            // A packet that is red already does not come to the account.
            let red = m.bit(t1.color, 1);
            metered.push(m.not(red));
        }
        let metered = m.all(&metered);
        self.last_write.prepare(m, metered, t1.address, kept);
        (t1, config, passed)
    }

    /// Cycles 2 to 6: tokens come and go; gives the colour in cycle 6.
    fn color(
        &self,
        m: &mut ModuleBuilder,
        (t1, config, passed): (Travel, NodeId, NodeId),
    ) -> (Travel, NodeId) {
        let packets = self.measure == Measure::Packets;
        let config = Config::of(m, config);
        let passed = m.delayed("passed", passed, None);
        let (mut config, mut travel) = (config.next(m, 2), t1.next(m, 2));
        let gained = [0, 1].map(|at| gained(m, at, config.rates[at], passed));
        let cost = cost(m, travel.bytes, packets);
        for cycle in 3..=4 {
            (config, travel) = (config.next(m, cycle), travel.next(m, cycle));
        }
        let active = m.all(&[travel.enable, travel.inside, config.is_there]);
        let kept = self.tokens.read(m, "packet", active, travel.address);
        (config, travel) = (config.next(m, 5), travel.next(m, 5));
        let buckets = [0, 1].map(|at| {
            let bucket = m.slice(kept, at * BUCKET, BUCKET);
            let full = config.bursts[at as usize];
            Bucket::add(m, at, (bucket, gained[at as usize]), full, cost)
        });
        // Cycle 6.
        (config, travel) = (config.next(m, 6), travel.next(m, 6));
        let yellow = m.is(travel.color, 1);
        // Numbers above 2 are red, too.
        let red = m.bit(travel.color, 1);
        let (not_red, not_yellow) = (m.not(red), m.not(yellow));
        let peak = m.and(not_red, buckets[1].pays);
        let committed = m.all(&[peak, not_yellow, buckets[0].pays]);
        let next_committed = m.mux(committed, buckets[0].left, buckets[0].filled);
        let next_peak = m.mux(peak, buckets[1].left, buckets[1].filled);
        let next = m.concat(&[next_peak, next_committed]);
        let metered = m.all(&[travel.enable, travel.inside, config.is_there]);
        self.tokens_write.prepare(m, metered, travel.address, next);
        let colors = [0, 1, 2].map(|color| m.number(8, color));
        let color = m.mux(peak, colors[1], colors[2]);
        let color = m.mux(committed, colors[0], color);
        (travel, m.mux(metered, color, colors[0]))
    }
}

/// The cell of an address of software, and its part.
fn cell(m: &mut ModuleBuilder, address: NodeId, bits: u32) -> (NodeId, NodeId) {
    let cell = m.shr_by(address, PART_BITS);
    let part = m.slice(address, 0, PART_BITS);
    (m.resize(cell, bits), part)
}

impl ObjectUnit {
    pub(super) fn meter(&self, name: &str, size: u32, measure: Measure) -> Module {
        let word = measure.config_bits();
        let mut m = ModuleBuilder::new(name);
        let queue = Queue::new(&mut m, self.address(), word, self.wait);
        let reads = Reads::new(&mut m, self.address());
        let (first, now) = self.requests(&mut m, size);
        let memories = Memories::new(&mut m, size, &queue, measure);
        let since = memories.passed(&mut m, &first, now);
        let (t6, color) = match measure {
            Measure::Account => memories.admitted(&mut m, since),
            Measure::Packets | Measure::Bytes => memories.color(&mut m, since),
        };

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

        let (asked, asked_part) = cell(&mut m, reads.address, address_width(size));
        let asked_color = m.slice(asked_part, 0, 2);
        let counter = m.concat(&[asked, asked_color]);
        let Memories { configs, lasts, tokens, counts, counts_written, .. } = memories;
        let counted = counts.finish(&mut m, &count, counts_written, (reads.enable, counter));
        let asked_part = m.delayed("asked_part", asked_part, None);
        let [config, tokens, last] = [&configs, &tokens, &lasts].map(|store| {
            let read = store.read(&mut m, "software", reads.enable, asked);
            m.resize(read, word)
        });
        let counted = m.resize(counted, word);
        let read = m.choose(asked_part, &[config, tokens, last, last, counted]);
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
pub(super) fn saturated(m: &mut ModuleBuilder, value: NodeId, width: u32) -> NodeId {
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

/// A bucket, or the credit of an account, in cycle 6.
pub(super) struct Bucket {
    /// What it holds before the packet.
    pub(super) filled: NodeId,
    /// What is left after it, if it can pay.
    pub(super) left: NodeId,
    pub(super) pays: NodeId,
}

impl Bucket {
    /// Adds what was gained in cycle 5. Whether the bucket overflows shows only in cycle 6; till then both cases are computed.
    pub(super) fn add(
        m: &mut ModuleBuilder,
        number: u32,
        (tokens, gained): (NodeId, NodeId),
        full: NodeId,
        cost: NodeId,
    ) -> Bucket {
        let delay = |m: &mut ModuleBuilder, what: &str, value| {
            m.delayed(&format!("bucket{number}_{what}"), value, None)
        };
        let bits = m.width(full);
        let (sum, compared) = (1 + bits.max(m.width(gained)), bits.max(m.width(cost)));
        // A bucket that pays holds the cost, so what is left has no more bits than it has.
        let paid = |m: &mut ModuleBuilder, held: NodeId, cost: NodeId| {
            let held = m.resize(held, compared);
            let (pays, left) = (m.le(cost, held), m.sub(held, cost));
            (pays, m.slice(left, 0, bits))
        };
        let cost = m.resize(cost, compared);
        let (tokens, gained) = (m.resize(tokens, sum), m.resize(gained, sum));
        let all = m.add(tokens, gained);
        let all = delay(m, "all", all);
        let (pays, left) = paid(m, full, cost);
        let full_pays = delay(m, "full_pays", pays);
        let full_left = delay(m, "full_left", left);
        let full = delay(m, "full", full);
        let cost = delay(m, "cost", cost);
        // Cycle 6.
        let wide = m.resize(full, sum);
        let over = m.lt(wide, all);
        let low = m.slice(all, 0, bits);
        let (pays, left) = paid(m, low, cost);
        Bucket {
            filled: m.mux(over, full, low),
            left: m.mux(over, full_left, left),
            pays: m.mux(over, full_pays, pays),
        }
    }
}
