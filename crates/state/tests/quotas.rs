//! Quotas of entries and memory: kept to the last entry and byte, also where writes are taken back. Prices are by hand, from the list
//! in `millrace_tables::prices`.

use millrace_pipeline::{ActionCall, Bits, EntryMatch, Program, text, verify};
use millrace_state::{
    BuildError, EntryWrite, GroupMember, Held, Journal, Limits, MemberWrite, Migration, ObjectKind,
    OverQuota, ProfileError, Quota, State, TableError, Target, WriteError,
};
use proptest::prelude::*;
use std::sync::Arc;

/// The arrays take 4 * 16 + 100 * 8 bytes, `vs` 3 * (32 + 2 * 1), and `direct`, with a key of 9 bits, 4 * 512 for its index.
const PROGRAM: &str = r#"
program counted
errors (NoError)
ingress (c)
metadata a: bit<9>
metadata b: bit<32>
local fwd.port: bit<9>
local long.v: bit<64>
local long.w: bit<64>
action "fwd" (fwd.port) = fwd
action "long" (long.v, long.w) = long
action "drop" () = drop
counter "cnt" size 4 packets
register "reg": bit<32> size 100
value_set "vs" (x: bit<8> exact) size 3
profile "ap" size 8 selector crc16 width 14 max_group_size 4
table "exact" {
    key dst: exact = b
    action "fwd"
    action "long"
    action "drop"
    default "drop"()
    size 100
}
table "direct" {
    key a: exact = a
    action "drop"
    default "drop"()
    size 100
    entry (9w1) => "drop"()
    entry const (9w2) => "drop"()
}
table "selected" {
    key dst: exact = b
    action "fwd"
    default "fwd"(9w1)
    size 100
    profile "ap"
}
body control c { block0: end }
body action fwd { block0: end }
body action long { block0: end }
body action drop { block0: end }
"#;

const ARRAYS: u64 = 4 * 16 + 100 * 8 + 3 * (32 + 2);
const INDEX: u64 = 4 * 512;
/// A record of an action without arguments has 8 bytes, a key of a limb 8.
const DIRECT: u64 = 160 + 4 * 8 + 8;
/// The longest action has two words after its number: 24 bytes, so a record has 32.
const EXACT: u64 = 160 + 4 * 8 + 32;
const FRESH: Held = Held { entries: 2, bytes: ARRAYS + INDEX + 2 * DIRECT };

fn program(source: &str) -> Arc<Program> {
    let program = text::parse(source).unwrap_or_else(|error| panic!("{error}"));
    verify::verify(&program).unwrap_or_else(|errors| panic!("{errors:?}"));
    Arc::new(program)
}

fn state(entries: Option<u64>, memory: Option<u64>) -> State {
    State::within(program(PROGRAM), Limits { entries, memory }).unwrap()
}

fn exact(key: u32, action: usize, args: &[Bits]) -> EntryWrite {
    let target = Target::Action(ActionCall { action, args: args.to_vec() });
    targeted(key, target)
}

fn targeted(key: u32, target: Target) -> EntryWrite {
    let matches = vec![EntryMatch::Exact(Bits::new(32, key.into()))];
    EntryWrite { matches, priority: 0, target, idle_timeout_ns: 0 }
}

fn over(what: Quota, wanted: u64, limit: u64) -> WriteError {
    WriteError::Quota(OverQuota { what, wanted, limit })
}

#[test]
fn entries_of_all_tables_and_members_share_a_quota() {
    let state = state(Some(6), None);
    let (table, direct) = (state.table_named("exact").unwrap(), state.table_named("direct").unwrap());
    let (selected, profile) = (state.table_named("selected").unwrap(), state.profile_named("ap").unwrap());
    let mut tables = state.tables();
    assert_eq!(tables.held(), FRESH);
    let first = tables.insert(table, &exact(1, 2, &[]), 0).unwrap();
    let action = state.member_action_named(profile, "fwd").unwrap();
    let member = |port| MemberWrite { action, args: vec![Bits::new(9, port)] };
    tables.insert_member(profile, Some(1), &member(1)).unwrap();
    // An empty group counts as one.
    tables.insert_group(profile, Some(1), &[]).unwrap();
    tables.insert(selected, &targeted(1, Target::Group(1)), 0).unwrap();
    let full = || over(Quota::Entries, 7, 6);
    assert_eq!(tables.insert(table, &exact(2, 2, &[]), 0), Err(full()));
    assert_eq!(tables.insert_member(profile, Some(2), &member(2)), Err(full()));
    assert_eq!(tables.insert_group(profile, Some(2), &[]), Err(full()));
    // What is there already says so.
    assert_eq!(tables.insert(table, &exact(1, 2, &[]), 0), Err(TableError::Duplicate.into()));
    assert_eq!(
        tables.insert_member(profile, Some(1), &member(2)),
        Err(ProfileError::DuplicateMember(1).into())
    );
    assert_eq!(tables.insert_group(profile, Some(1), &[]), Err(ProfileError::DuplicateGroup(1).into()));
    // Changes that take no more are done.
    tables
        .modify(table, first, &Target::Action(ActionCall { action: 0, args: vec![Bits::new(9, 3)] }))
        .unwrap();
    tables.modify_member(profile, 1, &member(3)).unwrap();
    tables.modify_group(profile, 1, &[GroupMember { member: 1, weight: 3 }]).unwrap();
    assert_eq!(tables.entry_count(table) + tables.entry_count(direct) + tables.entry_count(selected), 4);
    // Each removal makes room for one.
    tables.remove(table, first).unwrap();
    tables.insert_member(profile, Some(2), &member(2)).unwrap();
    let both = [1, 2].map(|member| GroupMember { member, weight: 1 });
    assert_eq!(tables.modify_group(profile, 1, &both), Err(full()));
    assert_eq!(tables.group(profile, 1).unwrap().len(), 1);
    tables.clear(direct);
    tables.modify_group(profile, 1, &both).unwrap();
    assert_eq!((tables.held().entries, state.account().held()), (6, tables.held()));
    assert_eq!(full().to_string(), "the switch would have 7 entries, its quota `entries` is 6");
}

#[test]
fn memory_is_kept_to_the_byte() {
    // Room for one entry with arguments of 16 bytes and one without.
    let limit = FRESH.bytes + EXACT + 16 + EXACT;
    let state = state(None, Some(limit));
    let table = state.table_named("exact").unwrap();
    let wide = [Bits::new(64, 1), Bits::new(64, 2)];
    let mut tables = state.tables();
    let first = tables.insert(table, &exact(1, 1, &wide), 0).unwrap();
    // An argument of 9 bits takes two bytes.
    assert_eq!(
        tables.insert(table, &exact(2, 0, &[Bits::new(9, 1)]), 0),
        Err(over(Quota::Memory, limit + 2, limit))
    );
    let second = tables.insert(table, &exact(2, 2, &[]), 0).unwrap();
    assert_eq!(state.account().held(), Held { entries: 4, bytes: limit });
    let narrow = Target::Action(ActionCall { action: 0, args: vec![Bits::new(9, 1)] });
    assert_eq!(tables.modify(table, second, &narrow), Err(over(Quota::Memory, limit + 2, limit)));
    tables.modify(table, first, &narrow).unwrap();
    tables.modify(table, second, &narrow).unwrap();
    assert_eq!(state.account().held().bytes, limit - 12);
    tables.clear(table);
    assert_eq!(state.account().held(), FRESH);
    let text = over(Quota::Memory, 70, 64).to_string();
    assert_eq!(text, "tables and state would take 70 bytes, the quota `memory` of the switch is 64");
}

/// What there is stays when a quota shrinks, and what was taken comes back when a batch is taken back.
#[test]
fn a_smaller_quota_takes_nothing_away() {
    let state = state(None, None);
    let table = state.table_named("exact").unwrap();
    for key in 0..5 {
        state.tables().insert(table, &exact(key, 2, &[]), 0).unwrap();
    }
    state.account().set_limits(Limits { entries: Some(4), memory: None });
    assert_eq!(state.account().limits().entries, Some(4));
    let mut journal = Journal::default();
    let mut tables = state.tables();
    tables.record(&mut journal).clear(table);
    assert_eq!(state.account().held(), FRESH);
    tables.record(&mut journal).insert(table, &exact(9, 2, &[]), 0).unwrap();
    tables.take_back(journal).unwrap();
    assert_eq!((tables.entry_count(table), state.account().held().entries), (5, 7));
    assert_eq!(tables.insert(table, &exact(9, 2, &[]), 0), Err(over(Quota::Entries, 8, 4)));
}

/// A reset gives what was written back, and so does taking the reset back.
#[test]
fn a_reset_is_counted() {
    let mut state = state(Some(3), None);
    let (handle, table) = (state.handle(), state.table_named("exact").unwrap());
    state.tables().insert(table, &exact(1, 2, &[]), 0).unwrap();
    let before = state.account().held();
    state.account().set_limits(Limits { entries: Some(0), memory: Some(0) });
    state.note(&mut handle.lock());
    state.reset(&mut handle.lock()).unwrap();
    assert_eq!(state.account().held(), FRESH);
    state.undo(&mut handle.lock()).unwrap();
    assert_eq!((state.account().held(), state.tables().entry_count(table)), (before, 1));
}

#[test]
fn a_program_that_takes_too_much_is_refused_by_name() {
    let made = |entries, memory| State::within(program(PROGRAM), Limits { entries, memory }).map(drop);
    assert_eq!(made(Some(2), Some(FRESH.bytes)), Ok(()));
    // Without its entries it is refused before anything is made, with them after.
    for limit in [FRESH.bytes - 1, FRESH.bytes - 2 * DIRECT - 1] {
        let error = made(None, Some(limit)).unwrap_err();
        assert!(
            matches!(&error, BuildError::Quota { largest: Some((ObjectKind::Table, name)), takes: INDEX, .. } if name == "direct"),
            "{error}"
        );
    }
    let named = PROGRAM.replace("bit<32> size 100", "bit<32> size 1000");
    let limits = Limits { entries: None, memory: Some(8000) };
    let error = State::within(program(&named), limits).unwrap_err();
    let all = 4 * 16 + 8000 + 3 * 34 + 2048;
    assert_eq!(
        error.to_string(),
        format!(
            "tables and state would take {all} bytes, the quota `memory` of the switch is 8000: register `reg` takes 8000"
        )
    );
    let error = made(Some(1), None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the switch would have 2 entries, its quota `entries` is 1: table `direct` has 2"
    );
}

/// A program that takes over has the quotas of the one that runs, and holds what it keeps.
#[test]
fn a_program_that_takes_over_is_counted_with_what_it_keeps() {
    let mut old = state(Some(5), Some(FRESH.bytes + 1000));
    let table = old.table_named("exact").unwrap();
    for key in 0..3 {
        old.tables().insert(table, &exact(key, 2, &[]), 0).unwrap();
    }
    let large = program(&PROGRAM.replace("bit<32> size 100", "bit<32> size 300"));
    for refused in
        [State::alongside(Arc::clone(&large), &old.handle()), State::successor(large, &old.handle())]
    {
        assert!(matches!(refused, Err(BuildError::Quota { takes: 2400, .. })));
    }
    // All but one of its tables moves there, with the entries.
    let other = program(&PROGRAM.replace("entry (9w1)", "entry (9w3) => \"drop\"()\n    entry (9w1)"));
    let mut next = State::successor(other, &old.handle()).unwrap();
    let mut migration = Migration::new(&old.handle(), &next);
    migration.copy(&old.handle(), &mut next, &[0], 0);
    let after = migration.held_after(&old.handle(), &next);
    let refusal = next.account().limits().check(after);
    migration.take(&mut old, &mut next).unwrap();
    assert_eq!((next.account().held(), next.tables().held()), (after, after));
    assert_eq!(after.entries, 3 + u64::from(next.tables().entry_count(next.table_named("direct").unwrap())));
    assert_eq!(refusal.is_err(), after.entries > 5);
}

#[derive(Clone, Debug)]
enum Write {
    Insert(u32, usize),
    Modify(u32, usize),
    Remove(u32),
    Clear,
    Member(u32),
    NoMember(u32),
    Group(u32, Vec<u32>),
    NoGroup(u32),
    TakeBack,
    Limits(Option<u64>, Option<u64>),
}

fn writes() -> impl Strategy<Value = Vec<Write>> {
    let limit = |range| prop_oneof![Just(None), proptest::strategy::Strategy::prop_map(range, Some)];
    let write = prop_oneof![
        8 => (0u32..12, 0usize..3).prop_map(|(key, action)| Write::Insert(key, action)),
        4 => (0u32..12, 0usize..3).prop_map(|(key, action)| Write::Modify(key, action)),
        3 => (0u32..12).prop_map(Write::Remove),
        1 => Just(Write::Clear),
        3 => (0u32..4).prop_map(Write::Member),
        2 => (0u32..4).prop_map(Write::NoMember),
        3 => (0u32..3, prop::collection::vec(0u32..4, 0..4)).prop_map(|(id, members)| Write::Group(id, members)),
        2 => (0u32..3).prop_map(Write::NoGroup),
        1 => Just(Write::TakeBack),
        1 => (limit(0u64..20), limit(FRESH.bytes..FRESH.bytes + 3000)).prop_map(|(entries, memory)| Write::Limits(entries, memory)),
    ];
    prop::collection::vec(write, 1..120)
}

fn call(action: usize) -> Target {
    let args = match action {
        0 => vec![Bits::new(9, 5)],
        1 => vec![Bits::new(64, 1), Bits::new(64, 2)],
        _ => Vec::new(),
    };
    Target::Action(ActionCall { action, args })
}

proptest! {
    /// What is counted is what is there, whatever was written, refused and taken back; a refused write changes nothing, and no write
    /// exceeds a quota.
    #[test]
    fn what_is_counted_is_what_there_is(writes in writes()) {
        let state = state(None, None);
        let table = state.table_named("exact").unwrap();
        let profile = state.profile_named("ap").unwrap();
        let action = state.member_action_named(profile, "fwd").unwrap();
        let mut journal = Journal::default();
        for write in writes {
            let before = state.account().held();
            let mut tables = state.tables();
            let find = |tables: &millrace_state::Tables, key: u32| tables.find(table, &exact(key, 2, &[]).matches, 0);
            let found = |key| find(&tables, key).unwrap_or_default();
            let index = match write {
                Write::Modify(key, _) | Write::Remove(key) => found(key),
                _ => Default::default(),
            };
            let mut grows = true;
            let mut to = tables.record(&mut journal);
            let done = match write {
                Write::Insert(key, action) => to.insert(table, &targeted(key, call(action)), 0).map(drop),
                Write::Modify(_, action) => to.modify(table, index, &call(action)),
                Write::Remove(_) => to.remove(table, index),
                Write::Clear => {
                    to.clear(table);
                    Ok(())
                }
                Write::Member(id) => {
                    let member = MemberWrite { action, args: vec![Bits::new(9, 1)] };
                    to.insert_member(profile, Some(id), &member).map(drop)
                }
                Write::NoMember(id) => to.remove_member(profile, id),
                Write::Group(id, members) => {
                    let members: Vec<_> = members.iter().map(|member| GroupMember { member: *member, weight: 1 }).collect();
                    match to.group(profile, id).is_ok() {
                        true => to.modify_group(profile, id, &members),
                        false => to.insert_group(profile, Some(id), &members).map(drop),
                    }
                }
                Write::NoGroup(id) => to.remove_group(profile, id),
                Write::TakeBack => {
                    grows = false;
                    drop(to);
                    let result = tables.take_back(std::mem::take(&mut journal));
                    to = tables.record(&mut journal);
                    result
                }
                Write::Limits(entries, memory) => {
                    state.account().set_limits(Limits { entries, memory });
                    Ok(())
                }
            };
            let of_profile: u64 = to.members(profile).count() as u64
                + to.groups(profile).map(|(_, members)| members.len().max(1) as u64).sum::<u64>();
            let rows = u64::from(to.entry_count(table)) + 2 + of_profile;
            drop(to);
            let after = tables.held();
            drop(tables);
            prop_assert_eq!((after.entries, after), (rows, state.account().held()));
            if done.is_err() {
                prop_assert_eq!(after, before);
            }
            let Limits { entries, memory } = state.account().limits();
            if grows {
                prop_assert!(after.entries <= entries.unwrap_or(u64::MAX).max(before.entries));
                prop_assert!(after.bytes <= memory.unwrap_or(u64::MAX).max(before.bytes));
            }
        }
        let mut tables = state.tables();
        tables.clear(table);
        let groups: Vec<u32> = tables.groups(profile).map(|(id, _)| id).collect();
        groups.into_iter().for_each(|id| tables.remove_group(profile, id).unwrap());
        let members: Vec<u32> = tables.members(profile).map(|(id, _)| id).collect();
        members.into_iter().for_each(|id| tables.remove_member(profile, id).unwrap());
        prop_assert_eq!(tables.held(), FRESH);
    }
}
