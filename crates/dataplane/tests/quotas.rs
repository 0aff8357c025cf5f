//! What a switch cannot exceed. The expected numbers are by hand: a quota of 1000 a second lets a batch of 64 pass at once and one each
//! millisecond.

use millrace_dataplane::{
    BuildError, DropReason, EngineKind, GroupWrite, Held, Keep, Notice, Outcome, QueueConfig, Quotas,
    Replica, Request, Session, SwapError, Switch, SwitchConfig, SwitchError, Worker,
};
use millrace_drivers::{FarEnd, MemoryPort, Next, NullPort, QueuePair};
use millrace_pipeline::text;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Operations by the first byte, with the second as argument: 1 sends, 2 drops, 3 to a group, 4 with a clone of ingress, 5 again by
/// resubmission, 6 by recirculation, 8 with a clone of egress, 9 a digest, a line and a drop.
const THROUGH: &str = include_str!("programs/through.mir");

const MILLISECOND: u64 = 1_000_000;

/// With a group 1 of 100 copies, a group 2 of two and a session 5 of three.
fn switch(config: SwitchConfig) -> Switch {
    let mut switch = Switch::new(Arc::new(text::parse(THROUGH).unwrap()), config).unwrap();
    let groups = switch.replication_mut();
    let copies = |count: u16| (0..count).map(|rid| Replica { port: 2, rid }).collect::<Vec<_>>();
    for (group, count) in [(1, 100), (2, 2)] {
        groups.create_group(group).unwrap();
        groups.set_copies(group, copies(count)).unwrap();
    }
    groups.set_session(5, Session { copies: copies(1), ..Session::to_group(2) }).unwrap();
    switch
}

fn with(engine: EngineKind, quotas: Quotas) -> Switch {
    switch(SwitchConfig { engine, quotas, ..SwitchConfig::default() })
}

fn many(switch: &mut Switch, frame: &[u8], count: usize, time_ns: u64) -> Outcome {
    switch.inject_batch((0..count).map(|_| (0, frame)), time_ns)
}

/// How many left, and how many did not for which reasons.
fn became(outcome: &Outcome) -> (usize, BTreeMap<DropReason, usize>) {
    let mut drops = BTreeMap::new();
    outcome.drops.iter().for_each(|drop| *drops.entry(drop.reason).or_default() += 1);
    (outcome.sent.len(), drops)
}

fn lost(reason: DropReason, count: usize) -> BTreeMap<DropReason, usize> {
    BTreeMap::from([(reason, count)])
}

/// Runs that with the switch of each engine.
fn each_engine(quotas: Quotas, run: impl Fn(Switch)) {
    EngineKind::HERE.iter().for_each(|&engine| run(with(engine, quotas)));
}

#[test]
fn packets_start_again_as_often_as_the_quota_says() {
    let quotas = Quotas { recirculations_per_second: Some(1000), ..Quotas::default() };
    each_engine(quotas, |mut switch| {
        let spent = |count| lost(DropReason::RecirculationQuota, count);
        assert_eq!(became(&many(&mut switch, &[5, 1], 100, 0)), (64, spent(36)));
        // Ten milliseconds later; resubmission and recirculation have one quota.
        let mixed = [[5, 1], [6, 1]].into_iter().cycle().take(30).collect::<Vec<_>>();
        let mixed = switch.inject_batch(mixed.iter().map(|frame| (0, &frame[..])), 10 * MILLISECOND);
        assert_eq!(became(&mixed), (10, spent(20)));
        assert_eq!(became(&many(&mut switch, &[1, 1], 10, 10 * MILLISECOND)), (10, BTreeMap::new()));
        assert_eq!(switch.counters().drops(DropReason::RecirculationQuota), 56);
    });
}

/// Each packet has three clones. The packet itself goes on.
#[test]
fn clones_are_made_as_often_as_the_quota_says() {
    let quotas = Quotas { clones_per_second: Some(1000), ..Quotas::default() };
    for operation in [4, 8] {
        each_engine(quotas, |mut switch| {
            let outcome = many(&mut switch, &[operation, 5], 30, 0);
            assert_eq!(became(&outcome), (30 + 64, lost(DropReason::CloneQuota, 26)));
            // None is left: the clone is not even begun.
            let outcome = many(&mut switch, &[operation, 5], 1, 0);
            assert_eq!(became(&outcome), (1, lost(DropReason::CloneQuota, 3)));
            assert!(outcome.drops.iter().all(|drop| drop.egress_port == Some(2)));
            let outcome = many(&mut switch, &[operation, 5], 1, 2 * MILLISECOND);
            assert_eq!(became(&outcome), (1 + 2, lost(DropReason::CloneQuota, 1)));
            // Copies for multicast are no clones.
            assert_eq!(became(&many(&mut switch, &[3, 1], 1, 2 * MILLISECOND)).0, 100);
        });
    }
}

#[test]
fn copies_are_made_as_often_as_the_quota_says() {
    let quotas = Quotas { copies_per_second: Some(1000), ..Quotas::default() };
    each_engine(quotas, |mut switch| {
        let spent = |count| lost(DropReason::CopyQuota, count);
        assert_eq!(became(&many(&mut switch, &[3, 1], 1, 0)), (64, spent(36)));
        assert_eq!(became(&many(&mut switch, &[3, 2], 3, 5 * MILLISECOND)), (5, spent(1)));
        // Clones are no copies, also those of a group.
        assert_eq!(became(&many(&mut switch, &[4, 5], 1, 5 * MILLISECOND)), (4, BTreeMap::new()));
    });
}

#[test]
fn digests_and_lines_beyond_their_quotas_are_lost() {
    let quotas =
        Quotas { digests_per_second: Some(1000), log_lines_per_second: Some(100_000), ..Quotas::default() };
    each_engine(quotas, |mut switch| {
        let outcome = many(&mut switch, &[9, 0], 70, 0);
        // A hundred thousand a second are a hundred at once.
        assert_eq!((outcome.digests.len(), outcome.log.len(), switch.take_lost()), (64, 70, 6));
        let outcome = many(&mut switch, &[9, 0], 70, MILLISECOND / 10);
        // 30 are left, and 10 came.
        assert_eq!((outcome.digests.len(), outcome.log.len(), switch.take_lost()), (0, 40, 100));
        let outcome = many(&mut switch, &[9, 0], 7, 3 * MILLISECOND);
        assert_eq!((outcome.digests.len(), outcome.log.len(), switch.take_lost()), (3, 7, 4));
    });
}

/// Packets that come in together are held together: as many as there are buffers. What has left takes none.
#[test]
fn packets_are_held_as_there_are_buffers() {
    let quotas = Quotas { packet_buffers: Some(10), ..Quotas::default() };
    each_engine(quotas, |mut switch| {
        for _ in 0..2 {
            let outcome = many(&mut switch, &[1, 1], 64, 0);
            assert_eq!(became(&outcome), (10, lost(DropReason::PacketBuffers, 54)));
        }
        // Each of its copies has a buffer until all have left.
        assert_eq!(became(&many(&mut switch, &[3, 1], 1, 0)), (10, lost(DropReason::PacketBuffers, 90)));
        switch.set_quotas(Quotas { packet_buffers: Some(70), ..quotas });
        assert_eq!(became(&many(&mut switch, &[1, 1], 64, 0)), (64, BTreeMap::new()));
    });
}

/// A queue that lets a packet a millisecond go, and quotas that change while packets wait in it.
#[test]
fn packets_wait_as_there_are_places() {
    let quotas = Quotas { queue_places: Some(5), ..Quotas::default() };
    each_engine(quotas, |mut switch| {
        switch.set_queue_rate(1000, Some(1), None).unwrap();
        let full = |count| lost(DropReason::QueuePlaces, count);
        // The first leaves after all have come.
        assert_eq!(became(&many(&mut switch, &[1, 1], 8, 0)), (1, full(3)));
        assert_eq!(became(&many(&mut switch, &[1, 1], 3, 0)), (0, full(2)));
        // Ports without a queue need no place.
        assert_eq!(became(&many(&mut switch, &[1, 2], 8, 0)), (8, BTreeMap::new()));
        // Fewer than wait: none goes for that, and none comes.
        switch.set_quotas(Quotas { queue_places: Some(2), ..quotas });
        assert_eq!(became(&many(&mut switch, &[1, 1], 1, MILLISECOND)), (1, full(1)));
        assert_eq!(became(&many(&mut switch, &[1, 1], 1, 2 * MILLISECOND)), (1, full(1)));
        // Two left, three wait. After the next two there is one place.
        assert_eq!(became(&many(&mut switch, &[1, 1], 2, 4 * MILLISECOND)), (2, full(1)));
        switch.set_quotas(Quotas::default());
        assert_eq!(became(&many(&mut switch, &[1, 1], 20, 4 * MILLISECOND)), (0, BTreeMap::new()));
        // One of those with a quota waits, and the 20 since.
        assert_eq!(became(&switch.drain()).0, 22);
    });
}

/// A burst that strict priority alone orders passes in compiled code as if there were no queues; with fewer places than it has packets,
/// it does not.
#[test]
fn places_hold_where_classes_alone_order_packets() {
    let queues = QueueConfig { priorities: 2, ..QueueConfig::default() };
    let outcomes: Vec<Outcome> = (EngineKind::HERE.iter())
        .map(|&engine| {
            let quotas = Quotas { queue_places: Some(20), ..Quotas::default() };
            let mut switch = switch(SwitchConfig { engine, queues, quotas, ..SwitchConfig::default() });
            let outcome = many(&mut switch, &[1, 1], 64, 0);
            assert_eq!(became(&outcome), (20, lost(DropReason::QueuePlaces, 44)));
            outcome
        })
        .collect();
    assert!(outcomes.iter().all(|outcome| *outcome == outcomes[0]));
}

#[test]
fn quotas_change_while_the_switch_runs() {
    each_engine(Quotas::default(), |mut switch| {
        assert_eq!(became(&many(&mut switch, &[3, 1], 10, 0)), (1000, BTreeMap::new()));
        let quotas = |copies| Quotas { copies_per_second: copies, ..Quotas::default() };
        switch.set_quotas(quotas(Some(1_000_000)));
        assert_eq!(became(&many(&mut switch, &[3, 1], 11, 0)), (1000, lost(DropReason::CopyQuota, 100)));
        switch.set_quotas(quotas(Some(1000)));
        assert_eq!(became(&many(&mut switch, &[3, 1], 1, MILLISECOND)).0, 1);
        switch.set_quotas(quotas(Some(0)));
        assert_eq!(became(&many(&mut switch, &[3, 1], 1, 1000 * MILLISECOND)).0, 0);
        switch.set_quotas(quotas(None));
        assert_eq!(became(&many(&mut switch, &[3, 1], 1, 1000 * MILLISECOND)), (100, BTreeMap::new()));
        assert_eq!(switch.quotas(), Quotas::default());
    });
}

/// Gives a frame so often, and takes everything.
struct Source(usize, [u8; 2]);

impl FarEnd for Source {
    fn next(&mut self) -> Next<'_> {
        match self.0.checked_sub(1) {
            Some(left) => {
                self.0 = left;
                Next::Frame(&self.1)
            }
            None => Next::End,
        }
    }

    fn take(&mut self, _: &[u8]) -> bool {
        true
    }
}

fn pair(frames: usize, frame: [u8; 2]) -> Box<dyn QueuePair> {
    Box::new(MemoryPort::new(Source(frames, frame)))
}

/// Live ports, bursts in compiled code, one worker and three: what is lost is counted, and the workers have a quota together.
#[test]
fn workers_keep_a_quota_together_and_count_what_is_lost() {
    const EACH: usize = 2000;
    for &engine in EngineKind::HERE {
        for workers in [1, 3] {
            let pairs = || (0..workers).map(|_| pair(EACH, [9, 0])).collect();
            let quotas =
                Quotas { digests_per_second: Some(1), log_lines_per_second: Some(0), ..Quotas::default() };
            let switch = with(engine, Quotas::default());
            let ports = vec![(0, pairs())];
            let mut worker = Worker::with_followers(switch, ports, workers, Default::default()).unwrap();
            // Before it runs, for all workers.
            worker.switch_mut().set_quotas(quotas);
            let notices = worker.notices();
            let begun = Instant::now();
            let running = thread::spawn(move || worker.run());
            let summary = running.join().unwrap();
            let elapsed = begun.elapsed().as_secs() as usize + 1;
            let digests = notices.try_iter().filter(|notice| matches!(notice, Notice::Digest { .. })).count();
            let all = workers * EACH;
            assert!((64..=64 + elapsed).contains(&digests), "{digests} digests in {elapsed} s");
            assert_eq!(digests as u64 + summary.lost_notices, 2 * all as u64);
            assert_eq!(summary.switch.counters().drops(DropReason::IngressDrop), all as u64);
        }
    }
}

/// Requests reach all workers, and a report says by which reason packets went.
#[test]
fn a_running_switch_is_given_quotas() {
    let ports: Vec<(u32, Vec<Box<dyn QueuePair>>)> = vec![
        (0, vec![pair(1, [1, 1]), pair(1, [1, 1])]),
        (1, (0..2).map(|_| Box::new(NullPort::open("-").unwrap()) as Box<dyn QueuePair>).collect()),
    ];
    let worker =
        Worker::with_followers(with(EngineKind::Interp, Quotas::default()), ports, 2, Default::default())
            .unwrap();
    let control = worker.control();
    let running = thread::spawn(move || worker.run());
    let quotas = Quotas { packet_buffers: Some(0), entries: Some(7), ..Quotas::default() };
    control.set_quotas(quotas).unwrap();
    let (now, held) = control.quotas().unwrap();
    // The two groups and the session: 100, 2 and 1 ports.
    assert_eq!((now, held.entries), (quotas, 103));
    control.add_port(2, vec![pair(50, [3, 1]), pair(50, [3, 1])]).unwrap();
    let begun = Instant::now();
    let dropped = || {
        let report = control.report(Duration::from_secs(5)).unwrap();
        report
            .drops
            .iter()
            .find(|(reason, _)| *reason == DropReason::PacketBuffers)
            .map_or(0, |(_, count)| *count)
    };
    while dropped() < 100 {
        assert!(begun.elapsed() < Duration::from_secs(20), "{} dropped", dropped());
    }
    control.stop();
    let summary = running.join().unwrap();
    assert_eq!(summary.switch.counters().port(2).tx_packets, 0);
}

/// A program that holds more than the quotas say is refused when it is made, or when it is to take over; what runs goes on. Groups are
/// charged with whichever program runs.
#[test]
fn a_program_that_takes_more_than_there_may_be_does_not_take_over() {
    let sized = |cells: u64| {
        let register = format!("register \"big\": bit<64> size {cells}\ndigest seen_t");
        Arc::new(text::parse(&THROUGH.replacen("digest seen_t", &register, 1)).unwrap())
    };
    let of = |memory| Quotas { memory: Some(memory), ..Quotas::default() };
    let plain = SwitchConfig::default;
    let refused = |error: &BuildError, register: u64, all: u64, limit: u64| {
        let text = format!(
            "tables and state would take {all} bytes, the quota `memory` of the switch is {limit}: register `big` takes {register}"
        );
        assert_eq!(error.to_string(), text);
    };
    let mut running = Switch::new(sized(1000), SwitchConfig { quotas: of(100_000), ..plain() }).unwrap();
    running.replication_mut().create_group(1).unwrap();
    let copies = vec![Replica { port: 1, rid: 0 }, Replica { port: 2, rid: 0 }];
    running.replication_mut().set_copies(1, copies).unwrap();
    let worker = Worker::new(running, Vec::new()).unwrap();
    let control = worker.control();
    let worker = thread::spawn(move || worker.run());
    // A group of two ports has 128 + 2 * 8 bytes.
    assert_eq!(control.quotas().unwrap().1, Held { entries: 2, bytes: 8144 });

    let runs = control.ask(Request::Look).unwrap();
    let made = |cells| Switch::alongside(sized(cells), plain(), &runs.tables);
    for make in [Switch::alongside, Switch::successor] {
        let Err(SwitchError::State(error)) = make(sized(12_501), plain(), &runs.tables) else { panic!() };
        refused(&error, 100_008, 100_008, 100_000);
    }
    // There is room for it, but not next to the group.
    let failed = control.swap(made(12_500).unwrap(), Keep::Everything).unwrap_err();
    let SwapError::State(error) = &failed.error else { panic!("{}", failed.error) };
    refused(error, 100_000, 100_144, 100_000);
    // There was room for it when it was made.
    control.set_quotas(of(50_000)).unwrap();
    let next = failed.next.unwrap();
    let taken = control.ask(|to| Request::TakeOver(next, to)).unwrap();
    let SwitchError::State(error) = taken.unwrap_err() else { panic!() };
    refused(&error, 100_000, 100_000, 50_000);
    let still = control.ask(Request::Look).unwrap();
    assert!(Arc::ptr_eq(&still.program, &runs.program));
    assert_eq!(control.quotas().unwrap().1.bytes, 8144);

    let swapped = control.swap(made(6000).unwrap(), Keep::Everything).unwrap();
    assert_eq!(control.quotas().unwrap(), (of(50_000), Held { entries: 2, bytes: 48_144 }));
    assert_eq!(swapped.before.state().account().held(), Held { entries: 0, bytes: 8000 });
    let large = GroupWrite::Insert(2, (0..300).map(|port| Replica { port, rid: 0 }).collect());
    let done = control.ask(|to| Request::Replicate(vec![large], to)).unwrap();
    let text = done[0].as_ref().unwrap_err().to_string();
    assert_eq!(text, "tables and state would take 50672 bytes, the quota `memory` of the switch is 50000");
    assert_eq!(control.quotas().unwrap().1, Held { entries: 2, bytes: 48_144 });
    control.stop();
    worker.join().unwrap();
}

/// What is done to the switch at random.
#[derive(Clone, Debug)]
enum Step {
    /// A packet, so many microseconds later.
    Packet([u8; 2], u64),
    Quotas(Quotas),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let per_second = || prop_oneof![Just(None), Just(Some(0)), (1u64..200_000).prop_map(Some)];
    let number = |most: u64| prop_oneof![Just(None), (0..most).prop_map(Some)];
    let quotas = (per_second(), per_second(), per_second(), number(40), number(20));
    let quotas = quotas.prop_map(|(clones, recirculations, copies, packet_buffers, queue_places)| {
        Step::Quotas(Quotas {
            clones_per_second: clones,
            recirculations_per_second: recirculations,
            copies_per_second: copies,
            packet_buffers,
            queue_places,
            ..Quotas::default()
        })
    });
    let operation = prop_oneof![
        Just([1, 1]),
        Just([1, 2]),
        Just([2, 0]),
        Just([3, 1]),
        Just([3, 2]),
        Just([4, 5]),
        Just([5, 1]),
        Just([6, 1]),
        Just([8, 5]),
        Just([9, 0]),
    ];
    let packet = (operation, 0u64..2000).prop_map(|(frame, later)| Step::Packet(frame, later));
    prop::collection::vec(prop_oneof![12 => packet, 1 => quotas], 1..300)
}

/// Packets that come of one, however they end.
fn comes_of(frame: [u8; 2]) -> u64 {
    match frame {
        [3, 1] => 100,
        [3, 2] => 2,
        [4 | 8, _] => 1 + 3,
        _ => 1,
    }
}

/// What was done since quotas were set, of one that has a rate: it had at most a burst then.
fn check_rate(done: u64, rate: Option<u64>, time_ns: u64) -> Result<(), TestCaseError> {
    if let Some(rate) = rate {
        let most = (rate / 1000).max(64) + (u128::from(rate) * u128::from(time_ns) / 1_000_000_000) as u64;
        prop_assert!(done <= most, "{done} in {time_ns} ns at {rate} a second");
    }
    Ok(())
}

proptest! {
    // Each makes code once more.
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever comes and whatever quotas say: each packet and copy leaves, is dropped with a reason that the quotas give, or waits; and
    /// nothing is done more often than its quota says, but for one burst.
    #[test]
    fn every_packet_is_accounted_for(steps in steps()) {
        let mut ended = Vec::new();
        for &engine in EngineKind::HERE {
            let mut switch = with(engine, Quotas::default());
            switch.set_queue_rate(2000, Some(1), None).unwrap();
            switch.set_queue_depth(30, Some(1), None).unwrap();
            let (mut now, mut since) = (0, 0);
            let (mut come, mut gone) = (0, 0);
            // Clones, passes and copies that were made since.
            let mut made = [0u64; 3];
            for step in &steps {
                let (frame, later) = match step {
                    Step::Quotas(quotas) => {
                        switch.set_quotas(*quotas);
                        (made, since) = ([0; 3], now);
                        continue;
                    }
                    Step::Packet(frame, later) => (*frame, *later),
                };
                now += later * 1000;
                let waited = switch.advance_to(now);
                gone += (waited.sent.len() + waited.drops.len()) as u64;
                let outcome = switch.inject(0, &frame, now);
                let of = |reason| outcome.drops.iter().filter(|drop| drop.reason == reason).count() as u64;
                let is_refused = outcome.sent.is_empty()
                    && matches!(&outcome.drops[..], [only] if only.reason == DropReason::PacketBuffers && only.egress_port.is_none());
                come += if is_refused { 1 } else { comes_of(frame) };
                gone += (outcome.sent.len() + outcome.drops.len()) as u64;
                let quotas = switch.quotas();
                if !is_refused {
                    match frame[0] {
                        4 | 8 => made[0] += 3 - of(DropReason::CloneQuota),
                        5 | 6 => made[1] += 1 - of(DropReason::RecirculationQuota),
                        3 => made[2] += comes_of(frame) - of(DropReason::CopyQuota),
                        _ => {}
                    }
                }
                let rates =
                    [quotas.clones_per_second, quotas.recirculations_per_second, quotas.copies_per_second];
                for (done, rate) in made.iter().zip(rates) {
                    check_rate(*done, rate, now - since)?;
                }
                for (reason, quota) in [
                    (DropReason::CloneQuota, quotas.clones_per_second),
                    (DropReason::RecirculationQuota, quotas.recirculations_per_second),
                    (DropReason::CopyQuota, quotas.copies_per_second),
                    (DropReason::PacketBuffers, quotas.packet_buffers),
                    (DropReason::QueuePlaces, quotas.queue_places),
                ] {
                    prop_assert!(of(reason) == 0 || quota.is_some(), "{reason:?} without a quota");
                }
            }
            let waits = come - gone;
            let rest = switch.drain();
            prop_assert_eq!(waits, (rest.sent.len() + rest.drops.len()) as u64);
            prop_assert!(switch.counters().all_drops().map(|(_, count)| count).sum::<u64>() <= come);
            ended.push(switch.counters().clone());
        }
        prop_assert!(ended.iter().all(|counters| *counters == ended[0]), "engines differ");
    }
}
