//! A port next to its slow model: random plans and random operations, and both have to do the same.
//!
//! `MILLRACE_OPERATIONS=100000000 cargo test --release -p millrace-traffic --test against_model -- --ignored --nocapture` does as many
//! as it says; `MILLRACE_SEED` is where it begins.

mod model;

use millrace_traffic::{Arrival, Discard, Egress, Next, Plan};
use model::port::{Leaves, Model};
use model::{Dice, plans};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Operations with one plan and those that replace it.
const RUN: u64 = 2000;

/// A port and its model, and what became of the packets.
struct Pair {
    fast: Egress<u32>,
    slow: Model,
    dice: Dice,
    now: u64,
    offered: u32,
    sent: u64,
    /// Of them, those that passed at once.
    arranged: u64,
    discarded: BTreeMap<Discard, u64>,
    /// How likely packets come, in eighths.
    load: u64,
}

impl Pair {
    fn new(seed: u64) -> Pair {
        let mut dice = Dice::new(seed);
        let plan = Arc::new(plans::plan(&mut dice));
        let now = dice.pick(&[0, 0, 1_000_003]);
        Pair {
            fast: Egress::new(plan.clone(), now),
            slow: Model::new(plan, now),
            now,
            offered: 0,
            sent: 0,
            arranged: 0,
            discarded: BTreeMap::new(),
            load: dice.pick(&[3, 4, 5]),
            dice,
        }
    }

    fn discard(&mut self, why: Discard) {
        *self.discarded.entry(why).or_default() += 1;
    }

    fn arrival(&mut self) -> Arrival {
        let dice = &mut self.dice;
        let len = match dice.below(40) {
            0 => 1519,
            1..10 => 1518,
            10..25 => 64,
            _ => 64 + dice.below(1455) as u32,
        };
        Arrival {
            class: dice.below(8) as u8,
            flow: dice.below(40) as u32,
            len,
            ecn: dice.one_in(2),
            send_at_ns: dice.one_in(30).then(|| self.now + dice.below(50_000)),
        }
    }

    /// Packets come together, and pass the port at once if they may.
    fn burst(&mut self) {
        // A port is mostly idle when one comes that is to pass.
        if !self.dice.one_in(4) {
            while self.next() {}
        }
        let most = self.dice.pick(&[4, 20, 60]);
        let count = 1 + self.dice.below(most);
        let burst: Vec<Arrival> =
            (0..count).map(|_| Arrival { send_at_ns: None, ..self.arrival() }).collect();
        let Some(order) = self.fast.arrange(burst.iter().copied()).map(<[u8]>::to_vec) else {
            return burst.into_iter().for_each(|arrival| self.offer(arrival));
        };
        let first = self.offered;
        self.offered += count as u32;
        for (id, arrival) in (first..).zip(&burst) {
            assert!(self.slow.offer(*arrival, self.now, id).is_ok(), "{arrival:?} at {}", self.now);
        }
        for number in &order {
            match self.slow.next(self.now) {
                Leaves::Packet { id, .. } => {
                    assert_eq!(id, first + u32::from(*number), "{burst:?}: {order:?}")
                }
                other => panic!("{burst:?} at {}: {order:?}, {other:?}", self.now),
            }
        }
        assert_eq!(order.len() as u64, count);
        self.sent += count;
        self.arranged += count;
    }

    fn offer(&mut self, arrival: Arrival) {
        let id = self.offered;
        self.offered += 1;
        let fast = self.fast.offer(arrival, self.now, id);
        let slow = self.slow.offer(arrival, self.now, id);
        match (fast, slow) {
            (Ok(fast), Ok(slow)) => assert_eq!((fast.queue, fast.depth, fast.mark), slow),
            (Err(fast), Err(slow)) => {
                assert_eq!((fast.queue, fast.reason, fast.packet), (slow.0, slow.1, id));
                self.discard(fast.reason);
            }
            (fast, slow) => panic!("{arrival:?} at {}: {fast:?} instead of {slow:?}", self.now),
        }
    }

    fn next(&mut self) -> bool {
        let fast = match self.fast.next(self.now) {
            Next::Nothing => Leaves::Nothing,
            Next::Discarded(id, why) => Leaves::Discarded(id, why),
            Next::Leaves(left) => Leaves::Packet {
                id: left.packet,
                queue: left.queue,
                class: left.class,
                len: left.len,
                came: left.enqueued_ns,
                depths: (left.enqueue_depth, left.dequeue_depth),
                mark: left.mark,
            },
        };
        assert_eq!(fast, self.slow.next(self.now), "at {}", self.now);
        match fast {
            Leaves::Packet { .. } => self.sent += 1,
            Leaves::Discarded(_, why) => self.discard(why),
            Leaves::Nothing => {
                let wake = self.fast.wake_ns();
                assert!(wake.is_none_or(|wake| wake > self.now), "{wake:?} at {}", self.now);
                return false;
            }
        }
        true
    }

    fn replace(&mut self) {
        let plan = match self.dice.one_in(4) {
            true => self.fast.plan().clone(),
            false => Arc::new(plans::plan(&mut self.dice)),
        };
        let mut gone = Vec::new();
        self.fast.replace(plan.clone(), self.now, |id, why| gone.push((id, why)));
        let (mut wanted, mut ids) =
            (self.slow.replace(plan, self.now), gone.iter().map(|(id, _)| *id).collect::<Vec<u32>>());
        wanted.sort();
        ids.sort();
        assert_eq!(ids, wanted);
        gone.iter().for_each(|(_, why)| self.discard(*why));
    }

    /// A step: packets come, leave, or time goes on.
    fn step(&mut self) {
        match self.dice.below(1000) {
            0 => self.replace(),
            // The link is down for a while.
            1 | 2 => self.now += self.dice.below(500_000),
            3..100 => self.now += self.dice.below(20_000),
            100..200 => {
                if let Some(wake) = self.fast.wake_ns() {
                    self.now = self.now.max(wake);
                }
            }
            200..220 => self.burst(),
            what if what < 220 + 100 * self.load => {
                let arrival = self.arrival();
                self.offer(arrival);
            }
            _ => {
                self.next();
            }
        }
    }

    /// Each packet was counted once.
    fn check(&self) {
        let queued: Vec<(u32, u64)> = self.fast.queues().map(|queue| (queue.packets, queue.bytes)).collect();
        assert_eq!(queued, self.slow.queues());
        let waiting: u64 = queued.iter().map(|(packets, _)| u64::from(*packets)).sum();
        assert_eq!(waiting, self.fast.len() as u64);
        assert_eq!(queued.iter().map(|(_, bytes)| bytes).sum::<u64>(), self.fast.bytes());
        let discarded: u64 = self.discarded.values().sum();
        assert_eq!(u64::from(self.offered), self.sent + discarded + waiting);
    }
}

/// Packets that left, and those of them that passed at once.
type Sent = (u64, u64);

/// Does so many operations with one seed.
fn run(seed: u64, operations: u64) -> (Sent, BTreeMap<Discard, u64>) {
    let report = SeedOnPanic(seed);
    let mut pair = Pair::new(seed);
    for _ in 0..operations {
        pair.step();
    }
    pair.check();
    std::mem::forget(report);
    ((pair.sent, pair.arranged), pair.discarded)
}

/// Says which seed failed.
struct SeedOnPanic(u64);

impl Drop for SeedOnPanic {
    fn drop(&mut self) {
        eprintln!("MILLRACE_SEED={}", self.0);
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn a_port_does_what_its_model_does() {
    let seed = number("MILLRACE_SEED").unwrap_or(1);
    let (mut sent, mut arranged, mut discarded) = (0, 0, BTreeMap::<Discard, u64>::new());
    for seed in seed..seed + 100 {
        let ((some, at_once), dropped) = run(seed, RUN);
        (sent, arranged) = (sent + some, arranged + at_once);
        dropped.into_iter().for_each(|(why, count)| *discarded.entry(why).or_default() += count);
    }
    assert!(sent > 20_000 && arranged > 200, "{sent} {arranged}");
    // Every reason was met.
    assert_eq!(discarded.keys().copied().collect::<Vec<Discard>>(), Discard::ALL, "{discarded:?}");
}

#[test]
#[ignore = "takes minutes: the command is at the top of this file"]
fn a_port_does_what_its_model_does_for_long() {
    let operations = number("MILLRACE_OPERATIONS").unwrap_or(100_000_000);
    let seed = number("MILLRACE_SEED").unwrap_or(1);
    let (mut done, mut sent, mut arranged, mut discarded) = (0, 0, 0, BTreeMap::<Discard, u64>::new());
    for seed in seed.. {
        if done >= operations {
            break;
        }
        let ((some, at_once), dropped) = run(seed, RUN);
        (done, sent, arranged) = (done + RUN, sent + some, arranged + at_once);
        dropped.into_iter().for_each(|(why, count)| *discarded.entry(why).or_default() += count);
        if done % (operations / 20).max(RUN) < RUN {
            println!("{done} of {operations} operations, seed {seed}, {sent} sent");
        }
    }
    println!("{done} operations: {sent} sent, {arranged} of them at once, discarded {discarded:?}");
}

/// Every port begins as a plan that is sound.
#[test]
fn random_plans_are_of_all_kinds() {
    let mut dice = Dice::new(1);
    let plans: Vec<Plan> = (0..200).map(|_| plans::plan(&mut dice)).collect();
    assert!(plans.iter().any(|plan| plan.queues() > 10 && plan.has_flows() && plan.marks()));
}
