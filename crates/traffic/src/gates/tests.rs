//! Gates against states that are worked out nanosecond by nanosecond.

use super::*;
use proptest::prelude::*;

fn list(base_ns: u64, cycle_ns: u64, extension_ns: u64, entries: &[(u8, u64)]) -> GateList {
    let entries =
        entries.iter().map(|(open, interval_ns)| GateEntry { open: *open, interval_ns: *interval_ns });
    GateList { base_ns, cycle_ns, extension_ns, entries: entries.collect() }
}

fn schedule(list: GateList) -> Arc<Schedule> {
    Arc::new(Schedule::new(list).unwrap())
}

/// A byte takes a nanosecond.
const RATE: u64 = 8_000_000_000;

fn gates(list: GateList) -> Gates {
    Gates::new(schedule(list), RATE, 0, 0, 0).unwrap()
}

#[test]
fn a_frame_begins_only_if_it_ends_in_its_window() {
    // Gate 0 is open from 100 to 400, gate 1 from 400 over the end of the cycle to 100.
    let mut gates = gates(list(0, 0, 0, &[(2, 100), (1, 300), (2, 600)]));
    assert_eq!(gates.opens_ns(0, 300, 0), Some(100));
    assert_eq!(gates.opens_ns(0, 300, 101), Some(1100));
    assert_eq!(gates.opens_ns(0, 301, 0), None);
    assert_eq!(gates.opens_ns(0, 1, 399), Some(399));
    assert_eq!(gates.opens_ns(0, 1, 400), Some(1100));
    // 600 in the one cycle and 100 in the next are one window.
    assert_eq!(gates.opens_ns(1, 700, 0), Some(400));
    assert_eq!(gates.opens_ns(1, 701, 0), None);
    assert_eq!(gates.opens_ns(1, 100, 1000), Some(1000));
    assert_eq!(gates.opens_ns(1, 101, 1000), Some(1400));
    assert_eq!((gates.closes_ns(1, 500), gates.closes_ns(0, 500)), (Some(1100), None));
    assert_eq!(gates.next_open_ns(0, 500), Some(1100));
    // Gate 2 is never open.
    assert_eq!((gates.opens_ns(2, 1, 0), gates.closes_ns(2, 0)), (None, None));
}

#[test]
fn entries_are_cut_or_last_until_the_cycle_ends() {
    let cut = schedule(list(0, 500, 0, &[(1, 300), (2, 900)]));
    assert_eq!((cut.cycle_ns(), cut.open_ns(0), cut.open_ns(1), cut.open_ns(2)), (500, 300, 200, 0));
    let longer = schedule(list(0, 500, 0, &[(1, 300), (2, 100)]));
    assert_eq!((longer.open_ns(1), longer.longest_ns(1), longer.longest_ns(7)), (200, 200, 0));
    let merged = schedule(list(0, 500, 0, &[(1, 100), (0, 100), (1, 300)]));
    assert_eq!((merged.longest_ns(0), merged.open_ns(0)), (400, 400));
    assert_eq!(schedule(list(0, 0, 0, &[(1, 10), (3, 10)])).longest_ns(0), u64::MAX);
}

#[test]
fn the_wire_counts() {
    // 100 Mbit/s, 64 bytes and 24 of the wire: 7040 ns.
    let schedule = schedule(list(0, 100_000, 0, &[(1, 7040), (0, 1)]));
    let mut gates = Gates::new(schedule.clone(), 100_000_000, 24, 0, 0).unwrap();
    assert_eq!((gates.opens_ns(0, 64, 0), gates.opens_ns(0, 65, 0)), (Some(0), None));
    assert!(Gates::new(schedule, 0, 24, 0, 0).is_err());
}

#[test]
fn lists_have_limits() {
    let refusal = |list: GateList| Schedule::new(list).unwrap_err().to_string();
    assert_eq!(refusal(list(0, 0, 0, &[])), "a gate control list has no entry");
    assert_eq!(refusal(list(0, 0, 0, &[(1, 0)])), "interval is 0 ns, it may be 1 to 3600000000000 ns");
    assert_eq!(
        refusal(list(0, 100, 0, &[(1, 50), (2, 50), (3, 1)])),
        "entry 2 begins after the cycle of 100 ns has ended"
    );
    assert!(refusal(list(0, MAX_CYCLE + 1, 0, &[(1, 1)])).starts_with("cycle is"));
    assert!(refusal(list(0, 0, MAX_CYCLE + 1, &[(1, 1)])).starts_with("extension of the cycle is"));
    let many = vec![(1, 1); MAX_ENTRIES + 1];
    assert_eq!(
        refusal(list(0, 0, 0, &many)),
        "number of entries is 16385 entries, it may be 0 to 16384 entries"
    );
}

#[test]
fn a_list_takes_over_at_its_time() {
    let mut gates = gates(list(1000, 0, 0, &[(1, 100), (2, 100)]));
    assert_eq!((gates.starts_ns(), gates.states(999), gates.states(1000)), (1000, 0, 1));
    // In the future: at its base time. What is left of the cycle at 1200 is cut after 50.
    let next = schedule(list(1250, 0, 0, &[(4, 10), (8, 10)]));
    assert_eq!(gates.change(next, 1010), Change { at_ns: 1250, late: false });
    assert!(gates.pending(1010).is_some());
    assert_eq!([1100, 1200, 1249].map(|now| gates.clone().states(now)), [2, 1, 1]);
    assert_eq!([1250, 1259, 1260].map(|now| gates.clone().states(now)), [4, 4, 8]);
    assert!(gates.pending(1250).is_none());
    // In the past: at the next cycle of its own, and too late.
    let late = schedule(list(7, 0, 0, &[(16, 100)]));
    assert_eq!(gates.change(late, 1301), Change { at_ns: 1307, late: true });
    // Before any list runs it is not too late.
    let mut fresh = Gates::new(schedule(list(5, 0, 0, &[(1, 10)])), RATE, 0, 3, 32).unwrap();
    assert_eq!((fresh.starts_ns(), fresh.states(34), fresh.states(35)), (35, 3, 1));
}

#[test]
fn the_last_cycle_is_made_longer_by_the_extension_at_most() {
    let first = || gates(list(0, 0, 50, &[(1, 100), (2, 100)]));
    let next = |base| schedule(list(base, 0, 0, &[(4, 10)]));
    // 50 ns after a cycle: the cycle's last states last until then.
    let mut gates = first();
    gates.change(next(1050), 500);
    assert_eq!([999, 1000, 1049, 1050].map(|now| gates.clone().states(now)), [2, 2, 2, 4]);
    assert_eq!(gates.opens_ns(1, 150, 500), Some(900));
    // 51 ns: another cycle, cut.
    let mut gates = first();
    gates.change(next(1051), 500);
    assert_eq!([999, 1000, 1050, 1051].map(|now| gates.clone().states(now)), [2, 1, 1, 4]);
    // That cycle has begun already when the list comes: it is not made undone.
    let mut gates = first();
    gates.change(next(1050), 1001);
    assert_eq!(gates.states(1001), 1);
}

#[test]
fn a_list_of_thousands_of_short_windows_is_searched_quickly() {
    // 8000 windows of 10 ns, and one of 1000 at the end.
    let mut entries: Vec<_> = (0..16_000).map(|at| ((at % 2) as u8, 10)).collect();
    entries.push((1, 1000));
    let mut gates = gates(list(0, 0, 0, &entries));
    let started = std::time::Instant::now();
    for now in 0..10_000 {
        assert_eq!(gates.opens_ns(0, 1000, now), Some(160_000 - 10));
    }
    // Ten thousand searches over each window would be 80 million steps; this is some fifty times above what it takes here.
    assert!(started.elapsed().as_millis() < 500);
}

/// Lists as 8.6.9 has them: one state machine that is told every nanosecond.
#[derive(Clone)]
struct Slow {
    now: u64,
    initial: u8,
    running: Option<GateList>,
    /// When the cycle that runs has started.
    cycle_start: u64,
    pending: Option<(GateList, u64)>,
}

fn cycle_of(list: &GateList) -> u64 {
    match list.cycle_ns {
        0 => list.entries.iter().map(|entry| entry.interval_ns).sum(),
        cycle => cycle,
    }
}

impl Slow {
    fn change(&mut self, list: GateList) -> Change {
        let mut at = list.base_ns;
        while at < self.now {
            at += cycle_of(&list);
        }
        let late = list.base_ns < self.now && self.running.is_some();
        // The cycle that would run if nothing had waited for its time.
        if let Some(running) = &self.running {
            while self.cycle_start + cycle_of(running) <= self.now {
                self.cycle_start += cycle_of(running);
            }
        }
        self.pending = Some((list, at));
        self.look();
        Change { at_ns: at, late }
    }

    fn look(&mut self) {
        if let Some((list, _)) = self.pending.take_if(|(_, at)| *at == self.now) {
            self.running = Some(list);
            self.cycle_start = self.now;
        }
        let Some(running) = &self.running else { return };
        let cycle = cycle_of(running);
        let last = self
            .pending
            .as_ref()
            .is_some_and(|(_, at)| *at <= self.cycle_start + cycle + running.extension_ns);
        if !last && self.now == self.cycle_start + cycle {
            self.cycle_start = self.now;
        }
    }

    fn states(&self) -> u8 {
        let Some(running) = &self.running else { return self.initial };
        let mut end = self.cycle_start;
        for entry in &running.entries {
            end += entry.interval_ns;
            if self.now < end {
                return entry.open;
            }
        }
        running.entries.last().unwrap().open
    }

    fn step(&mut self) {
        self.now += 1;
        self.look();
    }
}

fn any_list() -> impl Strategy<Value = (i64, GateList)> {
    let entries = prop::collection::vec((any::<u8>(), 1u64..30), 1..8);
    (-200i64..400, 0u64..150, prop_oneof![Just(0u64), 0u64..200], entries).prop_map(
        |(base, cycle, extension, entries)| {
            let start_of_last: u64 = entries[..entries.len() - 1].iter().map(|entry| entry.1).sum();
            let cycle = if cycle > start_of_last { cycle } else { 0 };
            (base, list(0, cycle, extension, &entries))
        },
    )
}

/// So far ahead a test looks: longer than all that happens between two of its steps.
const HORIZON: usize = 1500;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn frames_begin_as_the_state_machines_say(
        initial in any::<u8>(),
        first in any_list(),
        steps in prop::collection::vec((0u64..300, any_list(), any::<bool>(), 0u32..80), 1..6),
    ) {
        let start = 1000;
        let at = |now: u64, (base, list): (i64, GateList)| {
            GateList { base_ns: now.saturating_add_signed(base), ..list }
        };
        let first = at(start, first);
        let mut slow = Slow { now: start, initial, running: None, cycle_start: 0, pending: None };
        slow.change(first.clone());
        let mut fast = Gates::new(schedule(first), RATE, 1, initial, start).unwrap();
        let mut passed: Vec<u8> = Vec::new();
        for (wait, other, change, len) in steps {
            for _ in 0..wait {
                passed.push(slow.states());
                slow.step();
            }
            // What has passed since the last step, as a shaper asks for it.
            for gate in 0..GATES {
                let open = |states: &[u8]| states.iter().filter(|states| **states >> gate & 1 == 1).count() as u64;
                let from = passed.len() - wait as usize;
                let since = slow.now - wait;
                prop_assert_eq!(fast.open_between(gate, since, slow.now), open(&passed[from..]));
                let half = from + wait as usize / 2;
                prop_assert_eq!(fast.open_between(gate, since + wait / 2, slow.now), open(&passed[half..]));
            }
            if change {
                let other = at(slow.now, other);
                prop_assert_eq!(fast.change(schedule(other.clone()), slow.now), slow.change(other));
            }
            let now = slow.now;
            let mut ahead = slow.clone();
            let states: Vec<u8> = (0..HORIZON).map(|_| { let states = ahead.states(); ahead.step(); states }).collect();
            prop_assert_eq!(fast.states(now), states[0]);
            for gate in 0..GATES {
                let open = |from: usize| states[from..].iter().take_while(|states| *states >> gate & 1 == 1).count();
                let length = len as usize + 1;
                let begin = (0..HORIZON - 100).find(|from| open(*from) >= length).map(|from| now + from as u64);
                let found = fast.opens_ns(gate, len, now);
                let mut sum = 0;
                let after = (0..HORIZON - 100).find(|at| {
                    sum += states[*at] >> gate & 1;
                    u32::from(sum) > len % 50
                });
                let wanted = after.map(|at| now + at as u64 + 1);
                let after = fast.after_open(gate, now, u64::from(len % 50) + 1);
                prop_assert_eq!(after.filter(|after| *after <= now + HORIZON as u64 - 100), wanted);
                // What is found past the horizon of the slow model is not looked at.
                prop_assert_eq!(found.filter(|found| *found < now + HORIZON as u64 - 100), begin, "gate {}", gate);
                // A little later, maybe in the window that is known.
                let later = now + u64::from(len % 7);
                let begin = (later - now..HORIZON as u64 - 100).find(|from| open(*from as usize) >= length).map(|from| now + from);
                let mut copy = fast.clone();
                prop_assert_eq!(copy.opens_ns(gate, len, later).filter(|found| *found < now + HORIZON as u64 - 100), begin);
                match open(0) {
                    0 => prop_assert_eq!(fast.closes_ns(gate, now), None),
                    HORIZON => prop_assert!(fast.closes_ns(gate, now) >= Some(now + HORIZON as u64)),
                    open => prop_assert_eq!(fast.closes_ns(gate, now), Some(now + open as u64)),
                }
            }
        }
    }
}
