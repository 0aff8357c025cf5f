//! Random plans.

use super::Dice;
use millrace_traffic::gates::{GateEntry, GateList};
use millrace_traffic::{
    Among, Asynchronous, Curve, Flows, Gated, Handle, Kind, Node, Plan, Port, Queue, Red, Share,
};

/// Rate of ports that have one, in bit/s.
pub(crate) const RATE: u64 = 1_000_000_000;

struct Maker<'d> {
    dice: &'d mut Dice,
    handle: u32,
    port: Port,
    /// Nothing but room decides what becomes of a packet in a queue.
    is_plain: bool,
}

/// A plan of a few queues. Handles are given in the order of the tree, so plans that are made after each other have many in common.
pub(crate) fn plan(dice: &mut Dice) -> Plan {
    loop {
        let port = Port {
            rate: (!dice.one_in(3)).then_some(RATE),
            overhead: dice.pick(&[0, 24]),
            longest: 1518,
            bytes: dice.pick(&[20_000, 100_000, 1 << 30]),
            packets: dice.pick(&[20, 100, 1000]),
            overflow: dice.pick(&[0, 10_000, 100_000]),
            catch_up_ns: dice.pick(&[0, 10_000]),
            seed: dice.below(1 << 30),
        };
        // Bursts pass ports without a rate and with one node alone.
        let is_plain = port.rate.is_none() && dice.one_in(2);
        let depth = if is_plain { 1 } else { 4 };
        let mut maker = Maker { dice, handle: 0, port: port.clone(), is_plain };
        let root = maker.node(&(0..8).collect::<Vec<u8>>(), depth, false);
        // Some have more rate than the link, or too many streams: those are made again.
        if let Ok(plan) = Plan::new(port, root) {
            return plan;
        }
    }
}

impl Maker<'_> {
    fn handle(&mut self) -> Handle {
        self.handle += 1;
        Handle(self.handle)
    }

    fn node(&mut self, classes: &[u8], depth: u32, after_gate: bool) -> Node {
        let handle = self.handle();
        let rate = self.port.rate.is_some();
        let kind = match self.dice.below(if depth == 0 { 1 } else { 12 }) {
            0 => self.queue(classes),
            1 | 2 => Kind::Priority(self.several(classes, depth)),
            3 => Kind::RoundRobin(self.several(classes, depth)),
            4 | 5 => {
                let nodes = self.several(classes, depth);
                let share = |node| Share { share: self.dice.pick(&[1542, 2000, 5000]), node };
                Kind::Deficit(nodes.into_iter().map(share).collect())
            }
            6 | 7 => {
                let nodes = self.several(classes, depth);
                let share = |node| Share { share: self.dice.pick(&[1, 2, 3, 4, 6, 10]), node };
                Kind::Fair(nodes.into_iter().map(share).collect())
            }
            8 | 9 => {
                let count = 1 + self.dice.below(5) as u32;
                let among = self.among(count);
                Kind::Flows(Flows { count, among, each: Box::new(self.node(classes, depth - 1, false)) })
            }
            10 => Kind::Shaper {
                rate: self.dice.pick(&[30_000_000, 100_000_007, 900_000_000]),
                burst: self.dice.pick(&[1542, 4000, 20_000]),
                node: Box::new(self.node(classes, depth - 1, false)),
            },
            // Credit that stands still after a gate has tests of its own.
            _ if rate && !after_gate && self.dice.one_in(2) => Kind::Credit {
                idle_slope: self.dice.pick(&[50_000_000, 100_000_003]),
                hi_credit: self.dice.pick(&[500, 3000]),
                lo_credit: self.dice.pick(&[800, 3000]),
                node: Box::new(self.node(classes, depth - 1, false)),
            },
            _ if rate => self.gates(classes, depth),
            _ => self.queue(classes),
        };
        // What goes on by rules of its own in another plan has a name of its own.
        let handle = match &kind {
            Kind::Gates { .. } => Handle(1 << 31 | self.dice.below(1 << 31) as u32),
            Kind::Queue(queue) if queue.asynchronous.is_some() => {
                Handle(1 << 31 | self.dice.below(1 << 31) as u32)
            }
            _ => handle,
        };
        Node { handle, kind }
    }

    fn several(&mut self, classes: &[u8], depth: u32) -> Vec<Node> {
        let mut left = classes.to_vec();
        let mut nodes = Vec::new();
        while !left.is_empty() {
            let some = 1 + self.dice.below(left.len() as u64) as usize;
            let rest = left.split_off(some);
            nodes.push(self.node(&left, depth - 1, false));
            left = rest;
        }
        nodes
    }

    fn among(&mut self, count: u32) -> Among {
        let some = if self.dice.one_in(2) { 1 } else { count };
        match self.dice.below(4) {
            0 => Among::Priority,
            1 => Among::RoundRobin,
            2 => Among::Deficit((0..some).map(|_| self.dice.pick(&[1542, 1600, 4000])).collect()),
            _ => Among::Fair((0..some).map(|_| self.dice.pick(&[1, 2, 5])).collect()),
        }
    }

    fn gates(&mut self, classes: &[u8], depth: u32) -> Kind {
        let count = 1 + self.dice.below(5);
        let entry = |dice: &mut Dice| GateEntry {
            open: dice.below(256) as u8,
            interval_ns: 1000 + dice.below(30_000),
        };
        let mut entries: Vec<GateEntry> = (0..count).map(|_| entry(self.dice)).collect();
        entries.push(GateEntry { open: 0xff, interval_ns: 13_000 });
        let list = Box::new(GateList {
            base_ns: self.dice.pick(&[0, 50_000]),
            cycle_ns: 0,
            extension_ns: 0,
            entries,
        });
        let mut left = classes.to_vec();
        let mut gated = Vec::new();
        while !left.is_empty() {
            let some = 1 + self.dice.below(left.len() as u64) as usize;
            let rest = left.split_off(some);
            let gate = self.dice.below(8) as u8;
            gated.push(Gated { gate, node: self.node(&left, depth - 1, true) });
            left = rest;
        }
        Kind::Gates { list, initial: self.dice.below(256) as u8, gated }
    }

    fn queue(&mut self, classes: &[u8]) -> Kind {
        let classes = classes.iter().fold(0, |all, class| all | 1 << class);
        let (dice, plain) = (&mut *self.dice, self.is_plain);
        let curve = |dice: &mut Dice, classes| Curve {
            classes,
            min: dice.pick(&[0, 2000]),
            max: dice.pick(&[4000, 9000]),
            probability: dice.pick(&[100_000, 500_000, 1_000_000]),
            ecn: dice.one_in(2),
        };
        let red = (!plain && dice.one_in(4))
            .then(|| Red { average: 0, curves: vec![curve(dice, 0x3f), curve(dice, 0xc0)] });
        let asynchronous = (!plain && dice.one_in(6)).then(|| Asynchronous {
            rate: dice.pick(&[10_000_000, 77_777_777]),
            burst: dice.pick(&[1542, 6000]),
            residence_ns: dice.pick(&[100_000, 3_000_000]),
            streams: 4,
            groups: dice.pick(&[1, 2, 4]),
        });
        Kind::Queue(Box::new(Queue {
            classes,
            packets: dice.pick(&[4, 20, 1000]),
            bytes: dice.pick(&[3000, 30_000, 1 << 30]),
            red,
            reserved: dice.pick(&[0, 0, 1500]),
            alpha: dice.pick(&[None, None, Some(128), Some(256), Some(1024)]).filter(|_| !plain),
            age_ns: dice.one_in(5).then(|| dice.pick(&[20_000, 200_000])),
            overflow: dice.pick(&[0, self.port.overflow / 2, self.port.overflow]),
            asynchronous,
        }))
    }
}
