//! Tables that are written while batches run.

use super::{call, entry, forward, prefix, state};
use millrace_pipeline::{Bits, EntryMatch};
use millrace_state::{CounterRef, CounterValue, EntryWrite, GroupMember, MemberWrite, State, Target};

#[test]
fn tables_are_written_on_another_thread_while_batches_run() {
    const CHANGES: u32 = 1000;
    let mut state = state();
    let routes = state.table_named("routes").unwrap();
    let (handle, stop) = (state.handle(), std::sync::atomic::AtomicBool::new(false));
    let index = handle.lock().insert(routes, &entry(prefix(0, 0), forward(0)), 0).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..CHANGES {
                let mut tables = handle.lock();
                tables.modify(routes, index, &forward((round % 500).into())).unwrap();
                tables.set_default(routes, &call(0, &[Bits::new(9, 1), Bits::new(1, 0)])).unwrap();
                let more = tables.insert(routes, &entry(prefix(0x0a000000, 8), forward(7)), 0).unwrap();
                drop(tables);
                handle.lock().remove(routes, more).unwrap();
            }
            stop.store(true, std::sync::atomic::Ordering::Release);
        });
        let mut counted = 0;
        while !stop.load(std::sync::atomic::Ordering::Acquire) {
            state.start_batch();
            let mut found = [0; 2];
            state.reader(routes).lookup(state.worker(), &[0x0a000001, 0x0b000001], &mut found);
            assert!(found.iter().all(|entry| *entry != 0), "the route to all is always there: {found:?}");
            assert_eq!(found[1], index.0);
            state.count_direct(routes, index, 10);
            counted += 1;
            state.end_batch();
        }
        let value = state.tables().counter_value(CounterRef::Direct(routes), index.0.into());
        assert_eq!(value, Ok(CounterValue { packets: counted, bytes: 10 * counted }));
    });
}

#[test]
fn rules_written_one_by_one_are_laid_out_as_a_whole_when_nothing_else_is_written() {
    let mut state = state();
    let acl = state.table_named("acl").unwrap();
    let rule = |number: u128| EntryWrite {
        matches: vec![
            EntryMatch::Ternary(Bits::new(9, number), Bits::ones(9)),
            EntryMatch::Range(Bits::zero(32), Bits::ones(32)),
            EntryMatch::Optional(None),
        ],
        priority: 1,
        target: Target::Action(call(0, &[])),
        idle_timeout_ns: 0,
    };
    // One of two that come right after each other is not worth a new layout, unless the machine stands still between
    // them.
    let left_for_later = (0..5).any(|pair| {
        state.tables().insert(acl, &rule(2 * pair), 0).unwrap();
        state.tables().insert(acl, &rule(2 * pair + 1), 0).unwrap();
        !state.tables().is_settled()
    });
    assert!(left_for_later);
    let start = std::time::Instant::now();
    while !state.tables().is_settled() {
        assert!(start.elapsed().as_secs() < 20, "nobody settles the tables");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    state.start_batch();
    let mut found = [0; 2];
    // The fields a, b and o, each a key of one limb: 9, 32 and 1 bits.
    state.reader(acl).lookup(state.worker(), &[1 << 33 | 5 << 1, 99 << 33], &mut found);
    state.end_batch();
    assert!(found[0] != 0 && found[1] == 0, "{found:?}");
}

#[test]
fn groups_change_on_another_thread_while_batches_select_from_them() {
    let mut state = state();
    let selected = state.table_named("selected").unwrap();
    let profile = state.profile_named("ap").unwrap();
    let action = state.member_action_named(profile, "both").unwrap();
    let member = |value| MemberWrite { action, args: vec![Bits::new(8, value)] };
    let weight = |member| GroupMember { member, weight: 1 };
    let (handle, stop) = (state.handle(), std::sync::atomic::AtomicBool::new(false));
    {
        let mut tables = handle.lock();
        tables.insert_member(profile, Some(0), &member(10)).unwrap();
        tables.insert_member(profile, Some(1), &member(11)).unwrap();
        tables.insert_group(profile, Some(7), &[weight(0)]).unwrap();
        let key = vec![EntryMatch::Exact(Bits::new(9, 2))];
        tables.insert(selected, &entry(key, Target::Group(7)), 0).unwrap();
    }
    let select = |state: &mut State| {
        state.start_batch();
        let mut found = [0];
        state.reader(selected).lookup(state.worker(), &[2], &mut found);
        let slot = state.select_slot(selected, found[0], Vec::new);
        state.end_batch();
        assert_ne!(slot, found[0], "the group is never empty");
        slot
    };
    let first = select(&mut state);
    handle.lock().modify_group(profile, 7, &[weight(1)]).unwrap();
    let second = select(&mut state);
    assert_ne!(first, second);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..2000 {
                handle.lock().modify_group(profile, 7, &[weight(round % 2)]).unwrap();
            }
            stop.store(true, std::sync::atomic::Ordering::Release);
        });
        while !stop.load(std::sync::atomic::Ordering::Acquire) {
            let slot = select(&mut state);
            assert!(slot == first || slot == second, "{slot} is neither {first} nor {second}");
        }
    });
    assert_eq!(select(&mut state), second);
}
