//! Several workers of one program: what they share, and what each has alone.

use millrace_pipeline::{
    ActionCall, Bits, CounterId, CrcParameters, EntryMatch, MeterId, RegisterId, TableId, text, verify,
};
use millrace_state::{
    AccountConfig, AccountTest, Color, CounterRef, CounterValue, CreditAccount, EntryWrite, MeterConfig,
    MeterRates, ObjectWrite, Rate, State, Target,
};
use std::sync::Arc;
use std::thread;

const PROGRAM: &str = r#"
program workers
errors (NoError)
ingress (c)
metadata a: bit<9>
action "drop" () = drop
action "pass" () = pass
counter "cnt" size 4 packets_and_bytes
meter "met" size 2 packets
meter "acc" size 200 account
register "narrow": bit<48> size 2
register "wide": bit<128> size 2
value_set "vs" (x: bit<8> exact) size 2
own_hash "crc" crc16_custom
table "t" {
    key a: exact = a
    action "drop"
    action "pass"
    default "drop"()
    size 10
    direct_counter "t_cnt" packets_and_bytes
    direct_meter "t_met" packets
}
body action drop { block0: end }
body action pass { block0: end }
body control c { block0: end }
"#;

/// Packets of each worker.
const PACKETS: u64 = 20_000;

fn state() -> State {
    let program = text::parse(PROGRAM).unwrap();
    verify::verify(&program).unwrap();
    State::new(Arc::new(program)).unwrap()
}

fn entry(a: u128, action: usize) -> EntryWrite {
    EntryWrite {
        matches: vec![EntryMatch::Exact(Bits::new(9, a))],
        priority: 0,
        target: Target::Action(ActionCall { action, args: Vec::new() }),
        idle_timeout_ns: 0,
    }
}

fn tokens(tokens: u64) -> MeterConfig {
    MeterRates { cir: Rate::default(), cbs: tokens, pir: Rate::default(), pbs: tokens }.into()
}

/// Does some work with the states of two workers at the same time; gives what each made of it.
fn both<R: Send>(states: &mut [State; 2], work: impl Fn(&mut State) -> R + Sync) -> [R; 2] {
    let [one, other] = states;
    thread::scope(|scope| {
        let other = scope.spawn(|| work(other));
        [work(one), other.join().unwrap()]
    })
}

fn two() -> [State; 2] {
    let mut first = state();
    let second = first.share().unwrap();
    [first, second]
}

#[test]
fn counters_are_the_sum_of_all_workers() {
    let (mut states, counter, table) = (two(), CounterId::from_u32(0), TableId::from_u32(0));
    let index = states[0].tables().insert(table, &entry(5, 1), 0).unwrap();
    both(&mut states, |state| {
        for _ in 0..PACKETS {
            state.count(counter, 3, 10);
            let found = state.lookup(table, &[Bits::new(9, 5)], &[], 0).entry;
            state.count_direct(table, found, 20);
        }
    });
    let value = |bytes| CounterValue { packets: 2 * PACKETS, bytes: 2 * PACKETS * bytes };
    for state in &states {
        let tables = state.tables();
        assert_eq!(tables.counter_value(CounterRef::Indexed(counter), 3), Ok(value(10)));
        assert_eq!(tables.counter_value(CounterRef::Direct(table), index.0.into()), Ok(value(20)));
        drop(tables);
        // How often a table was looked up is counted by each worker alone.
        assert_eq!(state.lookup_counts().next().unwrap().lookups, PACKETS);
    }
}

/// A virtual link comes in by one port, so that one worker has its frames. Two workers with the links of their ports decide each
/// frame as an account of its own does.
#[test]
fn accounts_of_two_workers_are_those_of_their_links() {
    let (mut states, accounts) = (two(), MeterId::from_u32(1));
    let config = |link: u64| {
        let test = AccountTest::ALL[link as usize % 3];
        AccountConfig::new(500_000 + link * 7_919, link * 1_009, 64 + link as u32, test).unwrap()
    };
    for link in 0..200 {
        states[0].set_meter(accounts, link, Some(config(link).into())).unwrap();
    }
    let work = |state: &mut State, worker: u64| {
        let mut alone: Vec<CreditAccount> = (0..200).map(|link| CreditAccount::new(config(link))).collect();
        for frame in 0..10 * PACKETS {
            let link = 2 * (frame * 31 % 100) + worker;
            let (now_ns, bytes) = (frame * 3_001, 40 + frame * 13 % 120);
            let passes = alone[link as usize].admit(now_ns, bytes);
            let color = state.meter(accounts, link, now_ns, bytes, Color::Green);
            assert_eq!(color == Color::Green, passes, "frame {frame} of {link}");
        }
    };
    let [one, other] = &mut states;
    thread::scope(|scope| {
        scope.spawn(|| work(other, 1));
        work(one, 0);
    });
    let counts = |state: &State, link| state.meter_counts(accounts, link).unwrap();
    assert!((0..200).all(|link| counts(&states[0], link) == counts(&states[1], link)));
    let [passed, none, refused] = counts(&states[0], 7);
    assert!(passed.packets > 0 && refused.packets > 0 && none.packets == 0, "{passed:?} {refused:?}");
}

#[test]
fn packets_of_all_workers_take_tokens_from_one_meter() {
    let (mut states, meter, table) = (two(), MeterId::from_u32(0), TableId::from_u32(0));
    let index = states[0].tables().insert(table, &entry(5, 1), 0).unwrap();
    states[1].set_meter(meter, 1, Some(tokens(PACKETS))).unwrap();
    states[0].tables().set_direct_meter(table, index.0.into(), Some(tokens(PACKETS))).unwrap();
    let passed = both(&mut states, |state| {
        let mut passed = [0; 2];
        for _ in 0..PACKETS {
            let colors = [
                state.meter(meter, 1, 0, 100, Color::Green),
                state.meter_direct(table, index, 0, 100, Color::Green),
            ];
            passed
                .iter_mut()
                .zip(colors)
                .for_each(|(passed, color)| *passed += u64::from(color == Color::Green));
        }
        passed
    });
    assert_eq!([passed[0][0] + passed[1][0], passed[0][1] + passed[1][1]], [PACKETS; 2]);
}

#[test]
fn a_register_has_one_value_for_all_workers() {
    let (mut states, narrow, wide) = (two(), RegisterId::from_u32(0), RegisterId::from_u32(1));
    let value = |low: u64| Bits::new(128, u128::from(!low) << 64 | u128::from(low));
    both(&mut states, |state| {
        for number in 0..PACKETS {
            state.register_write(wide, 1, &value(number));
            let seen = state.register_read(wide, 1);
            let low = seen.limbs().next().unwrap();
            assert_eq!(seen, value(low), "both halves are of one write");
        }
    });
    states[0].register_write(narrow, 0, &Bits::new(48, 7));
    assert_eq!(states[1].register_value(narrow, 0), Ok(Bits::new(48, 7)));
    states[1].reset_register(narrow);
    assert_eq!(states[0].register_value(narrow, 0), Ok(Bits::new(48, 0)));
}

#[test]
fn sections_of_one_name_exclude_one_another() {
    let (mut states, narrow) = (two(), RegisterId::from_u32(0));
    for name in [Some(1), None] {
        states[0].reset_register(narrow);
        both(&mut states, |state| {
            for _ in 0..PACKETS {
                state.begin_atomic(name);
                let seen = state.register_read(narrow, 1).to_u64().unwrap();
                state.register_write(narrow, 1, &Bits::new(48, u128::from(seen) + 1));
                state.end_atomic();
            }
        });
        assert_eq!(states[1].register_value(narrow, 1), Ok(Bits::new(48, 2 * u128::from(PACKETS))));
    }
    // A section that its packet left open ends with the batch, and at the latest when the next begins.
    let [one, other] = &mut states;
    one.begin_atomic(Some(1));
    one.end_batch();
    other.begin_atomic(Some(1));
    other.begin_atomic(Some(1));
    other.end_atomic();
    one.begin_atomic(Some(1));
}

#[test]
fn a_write_to_a_table_is_met_by_all_workers() {
    let (mut states, table) = (two(), TableId::from_u32(0));
    states[0].tables().insert(table, &entry(9, 1), 0).unwrap();
    let actions = both(&mut states, |state| state.lookup(table, &[Bits::new(9, 9)], &[], 0).action);
    assert_eq!(actions, [1; 2]);
}

#[test]
fn copies_are_as_they_were_when_the_worker_came_and_are_written_one_by_one() {
    let mut first = state();
    let member = |value| vec![EntryMatch::Exact(Bits::new(8, value))];
    let (set, hash) =
        (first.program().value_sets.keys().next().unwrap(), first.program().hashes.keys().next().unwrap());
    first.insert_value(set, &member(1)).unwrap();
    let parameters = CrcParameters { polynomial: 0x1021, ..first.own_hash(hash).parameters() };
    first.write(&ObjectWrite::Hash(hash, parameters)).unwrap();
    let mut second = first.share().unwrap();
    assert!(second.is_member(set, &[Bits::new(8, 1)]));
    assert_eq!(second.own_hash(hash).parameters(), parameters);
    second.insert_value(set, &member(2)).unwrap();
    assert!(!first.is_member(set, &[Bits::new(8, 2)]));
}

#[test]
fn workers_draw_their_own_random_numbers_and_equal_runs_equal_ones() {
    let draw = || {
        let mut states = two();
        states.each_mut().map(|state| state.random(&Bits::zero(64), &Bits::ones(64)))
    };
    let [one, other] = draw();
    assert_ne!(one, other);
    assert_eq!(draw(), [one, other]);
}
