//! The control side: entries checked against the program, by name, and nothing changed by a refused write.

mod concurrent;

use millrace_pipeline::{ActionCall, Bits, EntryMatch, text, verify};
use millrace_state::{
    BuildError, Color, ColorCounts, CounterRef, CounterValue, EntryIndex, EntryView, EntryWrite, GroupMember,
    Journal, MemberWrite, MeterConfig, MeterRates, MeterRef, ProfileError, Rate, Selection, State,
    TableError, Target, WriteError,
};
use std::sync::Arc;

const PROGRAM: &str = r#"
program control
errors (NoError)
ingress (c)
metadata a: bit<9>
metadata b: bit<32>
metadata flag: bool
local fwd.port: bit<9>
local fwd.flag: bool
local both.v: bit<8>
action "ingress.fwd" (fwd.port, fwd.flag) = fwd
action "ingress.drop" () = drop
action "ingress.only_table" () = only_table
action "ingress.only_default" () = only_default
action "ingress.both" (both.v) = both
counter "ingress.cnt" size 4 packets
meter "ingress.met" size 2 bytes
register "ingress.reg": bit<100> size 2
value_set "parser.vs" (x: bit<8> exact, y: bit<8> ternary) size 2
profile "ingress.ap" size 2 selector crc16 width 14 max_group_size 2
table "ingress.routes" {
    key hdr.dst: lpm = b
    action "ingress.fwd"
    action "ingress.drop"
    default "ingress.drop"()
    size 2
    direct_counter "ingress.routes_cnt" packets_and_bytes
    direct_meter "ingress.routes_met" bytes
}
table "ingress.acl" {
    key a: ternary = a
    key b: range = b
    key o: optional = bool_to_bits(flag)
    action "ingress.only_table" table_only
    action "ingress.only_default" default_only
    default "ingress.only_default"()
    size 10
}
table "ingress.fixed" {
    key a: exact = a
    action "ingress.drop"
    const_default "ingress.drop"()
    size 4
    const_entries
    entry const (9w1) => "ingress.drop"()
}
table "ingress.sub.selected" {
    key a: exact = a
    action "ingress.both"
    default "ingress.both"(8w1)
    size 4
    profile "ingress.ap"
}
body action fwd { block0: a = fwd.port flag = fwd.flag end }
body action drop { block0: end }
body action only_table { block0: end }
body action only_default { block0: end }
body action both { block0: b = zext(both.v, 32) end }
body control c { block0: end }
"#;

fn state() -> State {
    let program = text::parse(PROGRAM).unwrap();
    verify::verify(&program).unwrap();
    State::new(Arc::new(program)).unwrap()
}

fn call(action: usize, args: &[Bits]) -> ActionCall {
    ActionCall { action, args: args.to_vec() }
}

fn entry(matches: Vec<EntryMatch>, target: Target) -> EntryWrite {
    EntryWrite { matches, priority: 0, target, idle_timeout_ns: 0 }
}

fn prefix(value: u128, length: u32) -> Vec<EntryMatch> {
    vec![EntryMatch::Lpm(Bits::new(32, value), length)]
}

fn forward(port: u128) -> Target {
    Target::Action(call(0, &[Bits::new(9, port), Bits::new(1, 1)]))
}

/// The routes by their destination, with the port that each forwards to.
fn routes_of(state: &State) -> Vec<(String, String)> {
    let routes = state.table_named("routes").unwrap();
    let mut all: Vec<_> = (state.tables().entries(routes))
        .map(|entry| (format!("{:?}", entry.matches), format!("{:?}", entry.target)))
        .collect();
    all.sort();
    all
}

#[test]
fn a_journal_takes_back_its_own_writes_and_leaves_those_of_others() {
    let state = state();
    let routes = state.table_named("routes").unwrap();
    let mut mine = Journal::default();
    state.tables().insert(routes, &entry(prefix(0x0a000000, 8), forward(1)), 0).unwrap();
    {
        let mut tables = state.tables();
        let mut tables = tables.record(&mut mine);
        let index = tables.find(routes, &prefix(0x0a000000, 8), 0).unwrap();
        tables
            .set_counter(CounterRef::Direct(routes), index.0.into(), CounterValue { packets: 3, bytes: 4 })
            .unwrap();
        tables.remove(routes, index).unwrap();
    }
    // Somebody else, whose entry gets the index that is free.
    state.tables().insert(routes, &entry(prefix(0x0b000000, 8), forward(2)), 0).unwrap();
    {
        let mut tables = state.tables();
        let mut tables = tables.record(&mut mine);
        let index = tables.find(routes, &prefix(0x0b000000, 8), 0).unwrap();
        tables.modify(routes, index, &forward(7)).unwrap();
    }
    assert_eq!(mine.len(), 3);
    state.tables().take_back(mine).unwrap();
    let expected = [(0x0a000000, 1), (0x0b000000, 2)]
        .map(|(net, port)| (format!("{:?}", prefix(net, 8)), format!("{:?}", forward(port))));
    assert_eq!(routes_of(&state), expected);
    let index = state.tables().find(routes, &prefix(0x0a000000, 8), 0).unwrap();
    assert_eq!(
        state.tables().counter_value(CounterRef::Direct(routes), index.0.into()),
        Ok(CounterValue::default())
    );
}

#[test]
fn cells_that_held_the_same_are_one_write_of_a_journal() {
    let state = state();
    let counter = state.counter_named("cnt").unwrap();
    let mut mine = Journal::default();
    let packets = |packets| CounterValue { packets, bytes: 0 };
    for (cells, value) in [(0..4, 5), (2..3, 9), (0..4, 7), (0..4, 8)] {
        let mut tables = state.tables();
        let mut tables = tables.record(&mut mine);
        cells.into_iter().try_for_each(|cell| tables.set_counter(counter, cell, packets(value))).unwrap();
    }
    // All; the third; then two, the third, the last; all.
    assert_eq!(mine.len(), 6);
    state.tables().take_back(mine).unwrap();
    for cell in 0..4 {
        assert_eq!(state.tables().counter_value(counter, cell), Ok(packets(0)));
    }
}

#[test]
fn an_entry_that_others_have_written_meanwhile_is_not_put_back() {
    let state = state();
    let routes = state.table_named("routes").unwrap();
    let first = state.tables().insert(routes, &entry(prefix(0x0a000000, 8), forward(1)), 0).unwrap();
    let mut mine = Journal::default();
    state.tables().record(&mut mine).remove(routes, first).unwrap();
    state.tables().insert(routes, &entry(prefix(0x0a000000, 8), forward(2)), 0).unwrap();
    assert_eq!(state.tables().take_back(mine), Err(WriteError::Table(TableError::Duplicate)));
    let mut mine = Journal::default();
    let second = state.tables().find(routes, &prefix(0x0a000000, 8), 0).unwrap();
    state.tables().record(&mut mine).remove(routes, second).unwrap();
    // The table has room for two.
    for net in [0x0b000000, 0x0c000000] {
        state.tables().insert(routes, &entry(prefix(net, 8), forward(2)), 0).unwrap();
    }
    assert_eq!(state.tables().take_back(mine), Err(WriteError::Table(TableError::Full { limit: 2 })));
    assert_eq!(routes_of(&state).len(), 2);
}

#[test]
fn entries_are_written_looked_up_changed_and_removed() {
    let mut state = state();
    let routes = state.table_named("routes").unwrap();
    let index = state.tables().insert(routes, &entry(prefix(0x0a010203, 8), forward(3)), 0).unwrap();
    assert_eq!(index, EntryIndex(1));
    assert_eq!(
        state.tables().find(routes, &prefix(0x0aff0000, 8), 0),
        Ok(index),
        "bits beyond the prefix do not count"
    );

    let found = state.lookup(routes, &[Bits::new(32, 0x0a999999)], &[], 0);
    assert_eq!((found.entry, found.action), (index, 0));
    assert_eq!(found.args, [Bits::new(9, 3), Bits::new(1, 1)]);

    state.tables().modify(routes, index, &Target::Action(call(1, &[]))).unwrap();
    assert_eq!(state.lookup(routes, &[Bits::new(32, 0x0a000000)], &[], 0).action, 1);
    let view = state.tables().entry(routes, index).unwrap();
    assert_eq!(
        view,
        EntryView {
            index,
            matches: prefix(0x0a000000, 8),
            priority: 0,
            target: Target::Action(call(1, &[])),
            is_const: false,
            counter: Some(CounterValue::default()),
            meter: None,
            meter_counts: Some(ColorCounts::default()),
            idle_timeout_ns: 0,
            last_hit_ns: 0,
        }
    );
    state.tables().remove(routes, index).unwrap();
    assert!(!state.lookup(routes, &[Bits::new(32, 0x0a000000)], &[], 0).is_hit());
    assert_eq!(state.tables().remove(routes, index), Err(WriteError::Table(TableError::NotFound)));
}

#[test]
fn refused_entries_say_why_and_change_nothing() {
    let state = state();
    let routes = state.table_named("ingress.routes").unwrap();
    state.tables().insert(routes, &entry(prefix(0x0a000000, 8), forward(1)), 0).unwrap();
    let before: Vec<EntryView> = state.tables().entries(routes).collect();
    let drop = || Target::Action(call(1, &[]));
    let refusals = [
        (entry(vec![], drop()), "the key has 1 field(s) (hdr.dst), the entry matches on 0"),
        (
            entry(vec![EntryMatch::Lpm(Bits::new(31, 0), 8)], drop()),
            "key field `hdr.dst` is 32 bit(s) wide, the value has 31",
        ),
        (entry(prefix(0, 33), drop()), "`hdr.dst`: key field 1 is 32 bits wide, a prefix of 33 is too long"),
        (
            entry(vec![EntryMatch::Ternary(Bits::zero(32), Bits::zero(32))], drop()),
            "`hdr.dst`: key field 1 matches by lpm, the entry gives ternary",
        ),
        (
            entry(prefix(0x0b000000, 8), Target::Action(call(0, &[Bits::new(9, 1)]))),
            "action `ingress.fwd` takes 2 argument(s) (port, flag), 1 given",
        ),
        (
            entry(prefix(0x0b000000, 8), Target::Action(call(0, &[Bits::new(8, 1), Bits::new(1, 0)]))),
            "parameter `port` of action `ingress.fwd` is 9 bit(s) wide, the value has 8",
        ),
        (
            entry(prefix(0x0b000000, 8), Target::Action(call(1, &[Bits::new(8, 1)]))),
            "action `ingress.drop` takes no arguments, 1 given",
        ),
        (entry(prefix(0x0b000000, 8), Target::Action(call(2, &[]))), "no action with number 2"),
        (entry(prefix(0x0b000000, 8), Target::Member(0)), "the table has no action profile"),
        (
            entry(prefix(0x0a777777, 8), drop()),
            "an entry with this match and priority is already in the table",
        ),
        (
            EntryWrite { priority: 5, ..entry(prefix(0x0b000000, 8), drop()) },
            "priority 5 given, but a table without ternary, range or optional keys has no priorities",
        ),
        (
            EntryWrite { idle_timeout_ns: 5, ..entry(prefix(0x0b000000, 8), drop()) },
            "the table does not support idle timeouts",
        ),
    ];
    for (write, reason) in refusals {
        assert_eq!(state.tables().insert(routes, &write, 0).unwrap_err().to_string(), reason);
        assert_eq!(state.tables().entries(routes).collect::<Vec<_>>(), before);
    }
    state.tables().insert(routes, &entry(prefix(0x0b000000, 8), drop()), 0).unwrap();
    let full = state.tables().insert(routes, &entry(prefix(0x0c000000, 8), drop()), 0).unwrap_err();
    assert_eq!(full.to_string(), "the table is full: it holds 2 entries, its limit");
    assert_eq!(state.tables().entry_count(routes), 2);
}

#[test]
fn scopes_priorities_and_all_kinds_of_match() {
    let mut state = state();
    let acl = state.table_named("acl").unwrap();
    assert!(state.needs_priority(acl));
    assert_eq!(state.key_widths(acl), [9, 32, 1]);
    let any = |priority| EntryWrite {
        matches: vec![
            EntryMatch::Ternary(Bits::new(9, 0x1ff), Bits::zero(9)),
            EntryMatch::Range(Bits::new(32, 5), Bits::new(32, 9)),
            EntryMatch::Optional(None),
        ],
        priority,
        target: Target::Action(call(0, &[])),
        idle_timeout_ns: 0,
    };
    let low = state.tables().insert(acl, &any(1), 0).unwrap();
    let high = state.tables().insert(acl, &any(2), 0).unwrap();
    assert_ne!(low, high);
    assert_eq!(state.lookup(acl, &[Bits::zero(9), Bits::new(32, 5), Bits::zero(1)], &[], 0).entry, high);
    assert_eq!(
        state.tables().entry(acl, low).unwrap().matches[0],
        EntryMatch::Ternary(Bits::zero(9), Bits::zero(9))
    );
    assert!(!state.lookup(acl, &[Bits::zero(9), Bits::new(32, 10), Bits::zero(1)], &[], 0).is_hit());

    let refused = EntryWrite { target: Target::Action(call(1, &[])), ..any(3) };
    assert_eq!(
        state.tables().insert(acl, &refused, 0).unwrap_err().to_string(),
        "action `ingress.only_default` is for the default action only, an entry cannot use it"
    );
    assert_eq!(
        state.tables().set_default(acl, &call(0, &[])).unwrap_err().to_string(),
        "action `ingress.only_table` is for entries only, it cannot be the default action"
    );
    let mut reversed = any(3);
    reversed.matches[1] = EntryMatch::Range(Bits::new(32, 9), Bits::new(32, 5));
    assert_eq!(
        state.tables().insert(acl, &reversed, 0).unwrap_err().to_string(),
        "`b`: the range of key field 2 is empty: its low end is above its high end"
    );
    assert_eq!(state.tables().entry_count(acl), 2);
}

#[test]
fn const_is_const() {
    let state = state();
    let fixed = state.table_named("fixed").unwrap();
    let index = state.tables().entries(fixed).next().unwrap().index;
    let new = entry(vec![EntryMatch::Exact(Bits::new(9, 2))], Target::Action(call(0, &[])));
    assert_eq!(state.tables().insert(fixed, &new, 0), Err(WriteError::Table(TableError::ConstTable)));
    assert_eq!(state.tables().remove(fixed, index), Err(WriteError::Table(TableError::ConstEntry)));
    assert_eq!(
        state.tables().modify(fixed, index, &new.target),
        Err(WriteError::Table(TableError::ConstEntry))
    );
    assert_eq!(
        state.tables().set_default(fixed, &call(0, &[])),
        Err(WriteError::Table(TableError::ConstDefault))
    );
    state.tables().clear(fixed);
    assert_eq!(state.tables().entry_count(fixed), 1);
}

#[test]
fn default_actions_are_set_and_set_back() {
    let mut state = state();
    let routes = state.table_named("routes").unwrap();
    let other = call(0, &[Bits::new(9, 5), Bits::new(1, 0)]);
    state.tables().set_default(routes, &other).unwrap();
    assert_eq!(state.tables().default_action(routes), other);
    let missed = state.lookup(routes, &[Bits::zero(32)], &[], 0);
    assert_eq!((missed.is_hit(), missed.action, missed.args), (false, 0, other.args));
    state.tables().reset_default(routes).unwrap();
    assert_eq!(state.tables().default_action(routes), call(1, &[]));
}

#[test]
fn a_group_may_select_at_random() {
    let mut state = state();
    let table = state.table_named("selected").unwrap();
    let profile = state.profile_named("ap").unwrap();
    let action = state.member_action_named(profile, "both").unwrap();
    let members: Vec<GroupMember> = [10, 11]
        .map(|value| MemberWrite { action, args: vec![Bits::new(8, value)] })
        .map(|member| state.tables().insert_member(profile, None, &member).unwrap())
        .map(|member| GroupMember { member, weight: 1 })
        .into();
    for (key, selection) in [(1, Selection::Hash), (2, Selection::Random)] {
        let group = state.tables().insert_group_with(profile, None, &members[..1], selection).unwrap();
        state.tables().modify_group(profile, group, &members).unwrap();
        assert_eq!(state.tables().selection(profile, group), Ok(selection));
        let matches = vec![EntryMatch::Exact(Bits::new(9, key))];
        state.tables().insert(table, &entry(matches, Target::Group(group)), 0).unwrap();
    }
    // How often packets of one flow meet each member, of 64.
    let mut picked = |key| {
        let mut picked = [0, 0];
        for _ in 0..64 {
            let found = state.lookup(table, &[Bits::new(9, key)], &[], 0);
            picked[found.selected.unwrap().member as usize] += 1;
        }
        picked
    };
    assert!(picked(1).contains(&64));
    let random = picked(2);
    assert!(random.iter().all(|count| *count >= 10), "{random:?}");
}

#[test]
fn meters_count_by_colour() {
    let mut state = state();
    let counts = |all: [(u64, u64); 3]| all.map(|(packets, bytes)| CounterValue { packets, bytes });
    let none = ColorCounts::default();
    let MeterRef::Indexed(meter) = state.meter_named("met").unwrap() else { panic!("an array") };
    let config = MeterRates { cir: Rate::per_second(0), cbs: 100, pir: Rate::per_second(0), pbs: 200 }.into();
    state.set_meter(meter, 0, Some(config)).unwrap();
    let colors = [100, 100, 1, 50].map(|bytes| state.meter(meter, 0, 0, bytes, Color::Green));
    assert_eq!(colors, [Color::Green, Color::Yellow, Color::Red, Color::Red]);
    let counted = counts([(1, 100), (1, 100), (2, 51)]);
    assert_eq!(state.meter_counts(meter, 0), Ok(counted));
    // Another configuration leaves them; without one everything is green.
    state.set_meter(meter, 0, None).unwrap();
    assert_eq!(state.meter_counts(meter, 0), Ok(counted));
    assert_eq!(state.meter(meter, 1, 0, 7, Color::Green), Color::Green);
    assert_eq!(state.meter_counts(meter, 1), Ok(counts([(1, 7), (0, 0), (0, 0)])));
    state.set_meter_counts(meter, 0, none).unwrap();
    assert_eq!(state.meter_counts(meter, 0), Ok(none));
    state.meter(meter, 2, 0, 7, Color::Green);
    assert!(state.meter_counts(meter, 2).is_err() && state.set_meter_counts(meter, 2, none).is_err());

    let routes = state.table_named("routes").unwrap();
    let target = || Target::Action(call(1, &[]));
    let index = state.tables().insert(routes, &entry(prefix(0x0a00_0000, 8), target()), 0).unwrap();
    let at = u64::from(index.0);
    state.tables().set_direct_meter(routes, at, Some(config)).unwrap();
    for bytes in [100, 100, 1] {
        state.meter_direct(routes, index, 0, bytes, Color::Green);
    }
    let counted = counts([(1, 100), (1, 100), (1, 1)]);
    assert_eq!(state.tables().direct_meter_counts(routes, at), Ok(counted));
    assert_eq!(state.tables().entry(routes, index).unwrap().meter_counts, Some(counted));
    state.tables().set_direct_meter_counts(routes, at, none).unwrap();
    assert_eq!(state.tables().direct_meter_counts(routes, at), Ok(none));
    state.meter_direct(routes, index, 0, 1, Color::Red);
    assert_eq!(state.tables().direct_meter_counts(routes, at), Ok(counts([(0, 0), (0, 0), (1, 1)])));
    // Those of an entry go with it.
    state.tables().remove(routes, index).unwrap();
    assert!(state.tables().direct_meter_counts(routes, at).is_err());
    let index = state.tables().insert(routes, &entry(prefix(0x0b00_0000, 8), target()), 0).unwrap();
    assert_eq!(state.tables().direct_meter_counts(routes, index.0.into()), Ok(none));
    let acl = state.table_named("acl").unwrap();
    assert!(state.tables().direct_meter_counts(acl, 0).is_err());
}

#[test]
fn profiles_hold_members_and_groups() {
    let mut state = state();
    let table = state.table_named("selected").unwrap();
    let profile = state.profile_named("ap").unwrap();
    assert_eq!(state.profile_of(table), Ok(profile));
    let action = state.member_action_named(profile, "both").unwrap();
    let member = |value| MemberWrite { action, args: vec![Bits::new(8, value)] };
    assert_eq!(state.tables().insert_member(profile, None, &member(10)), Ok(0));
    assert_eq!(state.tables().insert_member(profile, None, &member(11)), Ok(1));
    assert_eq!(
        state.tables().insert_member(profile, None, &member(12)).unwrap_err().to_string(),
        "the action profile is full: it holds 2 members, its limit"
    );
    assert_eq!(state.tables().insert_group(profile, Some(7), &[GroupMember { member: 1, weight: 1 }]), Ok(7));
    state.tables().add_to_group(profile, 7, 0).unwrap();
    state.tables().remove_from_group(profile, 7, 0).unwrap();
    assert_eq!(
        state.tables().remove_from_group(profile, 7, 0),
        Err(WriteError::Profile(ProfileError::NoMember(0)))
    );

    let key = |value| vec![EntryMatch::Exact(Bits::new(9, value))];
    assert!(
        state.tables().insert(table, &entry(key(1), Target::Action(call(0, &[Bits::new(8, 1)]))), 0).is_err()
    );
    assert!(state.tables().insert(table, &entry(key(1), Target::Member(9)), 0).is_err());
    state.tables().insert(table, &entry(key(1), Target::Member(0)), 0).unwrap();
    state.tables().insert(table, &entry(key(2), Target::Group(7)), 0).unwrap();
    assert_eq!(state.lookup(table, &[Bits::new(9, 1)], &[], 0).args, [Bits::new(8, 10)]);
    let grouped = state.lookup(table, &[Bits::new(9, 2)], &[], 0);
    assert_eq!(grouped.args, [Bits::new(8, 11)]);
    assert_eq!(grouped.selected.map(|selected| (selected.member, selected.group)), Some((1, Some(7))));
    assert_eq!(
        state.tables().remove_member(profile, 0),
        Err(WriteError::Profile(ProfileError::MemberInUse(0)))
    );
    assert_eq!(
        state.tables().remove_group(profile, 7),
        Err(WriteError::Profile(ProfileError::GroupInUse(7)))
    );
    state.tables().modify_member(profile, 0, &member(20)).unwrap();
    assert_eq!(state.lookup(table, &[Bits::new(9, 1)], &[], 0).args, [Bits::new(8, 20)]);
    assert_eq!(state.tables().member(profile, 0), Ok(member(20)));
}

/// A miss follows a member or group in place of the default action, which so is in use.
#[test]
fn a_member_or_group_may_be_the_default() {
    let mut state = state();
    let [table, routes] = ["selected", "routes"].map(|name| state.table_named(name).unwrap());
    let profile = state.profile_named("ap").unwrap();
    let action = state.member_action_named(profile, "both").unwrap();
    let member = |value| MemberWrite { action, args: vec![Bits::new(8, value)] };
    let in_group = |member| [GroupMember { member, weight: 1 }];
    for value in [10, 11] {
        state.tables().insert_member(profile, None, &member(value)).unwrap();
    }
    state.tables().insert_group(profile, Some(7), &in_group(1)).unwrap();
    let missed = |state: &mut State| {
        let found = state.lookup(table, &[Bits::new(9, 3)], &[], 0);
        assert!(!found.is_hit());
        (found.args[0].to_u64().unwrap(), found.selected.map(|selected| (selected.member, selected.group)))
    };
    state.tables().set_default_target(table, &Target::Member(0)).unwrap();
    assert_eq!(missed(&mut state), (10, Some((0, None))));
    state.tables().modify_member(profile, 0, &member(20)).unwrap();
    assert_eq!(missed(&mut state), (20, Some((0, None))));
    assert_eq!(state.tables().default_action(table), call(0, &[Bits::new(8, 20)]));
    let in_use = state.tables().remove_member(profile, 0);
    assert_eq!(in_use, Err(WriteError::Profile(ProfileError::MemberInUse(0))));

    state.tables().set_default_target(table, &Target::Group(7)).unwrap();
    assert_eq!(missed(&mut state), (11, Some((1, Some(7)))));
    assert_eq!(state.tables().default_target(table), Target::Group(7));
    let in_use = state.tables().remove_group(profile, 7);
    assert_eq!(in_use, Err(WriteError::Profile(ProfileError::GroupInUse(7))));
    state.tables().modify_group(profile, 7, &in_group(0)).unwrap();
    assert_eq!(missed(&mut state), (20, Some((0, Some(7)))));
    // Without members it does nothing of its own, here the default action of the program.
    state.tables().modify_group(profile, 7, &[]).unwrap();
    assert_eq!(missed(&mut state), (1, None));

    for (of, target, wrong) in [
        (table, Target::Group(8), "group 8"),
        (table, Target::Member(5), "member 5"),
        (routes, Target::Group(7), "no action profile"),
    ] {
        let refused = state.tables().set_default_target(of, &target).unwrap_err().to_string();
        assert!(refused.contains(wrong), "{refused}");
    }
    assert_eq!(state.tables().default_target(table), Target::Group(7));
    state.tables().reset_default(table).unwrap();
    assert_eq!(missed(&mut state), (1, None));
    state.tables().remove_group(profile, 7).unwrap();
}

#[test]
fn members_are_checked_like_entries() {
    let state = state();
    let profile = state.profile_named("ap").unwrap();
    assert!(state.member_action_named(profile, "drop").is_err(), "no table of the profile has it");
    let action = state.member_action_named(profile, "ingress.both").unwrap();
    let narrow = MemberWrite { action, args: vec![Bits::new(7, 1)] };
    assert!(matches!(state.tables().insert_member(profile, None, &narrow), Err(WriteError::ArgWidth { .. })));
    let foreign = MemberWrite { action: millrace_pipeline::ActionId::from_u32(1), args: vec![] };
    assert!(matches!(
        state.tables().insert_member(profile, None, &foreign),
        Err(WriteError::NoAction { .. })
    ));
    let nowhere = MemberWrite { action: millrace_pipeline::ActionId::from_u32(99), args: vec![] };
    assert!(matches!(
        state.tables().insert_member(profile, None, &nowhere),
        Err(WriteError::NoAction { .. })
    ));
    assert_eq!(state.tables().members(profile).count(), 0);
}

#[test]
fn cells_are_read_and_written() {
    let mut state = state();
    let counter = state.counter_named("cnt").unwrap();
    let value = CounterValue { packets: 3, bytes: 4 };
    state.tables().set_counter(counter, 3, value).unwrap();
    assert_eq!(state.tables().counter_value(counter, 3), Ok(value));
    assert_eq!(
        state.tables().set_counter(counter, 4, value).unwrap_err().to_string(),
        "no cell 4: there are 4, counted from 0"
    );
    state.tables().reset_counter(counter).unwrap();
    assert_eq!(state.tables().counter_value(counter, 3), Ok(CounterValue::default()));

    let register = state.register_named("reg").unwrap();
    state.set_register(register, 1, &Bits::new(100, 77)).unwrap();
    assert_eq!(state.register_value(register, 1), Ok(Bits::new(100, 77)));
    assert_eq!(
        state.set_register(register, 1, &Bits::new(99, 1)).unwrap_err().to_string(),
        "a cell is 100 bit(s) wide, the value has 99"
    );
    assert!(state.register_value(register, 2).is_err());

    let MeterRef::Indexed(meter) = state.meter_named("met").unwrap() else { panic!("an array") };
    let rates = MeterRates { cir: Rate::per_second(1), cbs: 2, pir: Rate::per_second(3), pbs: 4 };
    let config = MeterConfig::from(rates);
    state.set_meter(meter, 1, Some(config)).unwrap();
    assert_eq!(state.meter_config(meter, 1), Ok(Some(config)));
    let wrong = MeterRates { pir: Rate::per_second(0), ..rates }.into();
    assert_eq!(
        state.set_meter(meter, 1, Some(wrong)).unwrap_err().to_string(),
        "the peak rate is below the committed rate"
    );
    assert_eq!(state.meter_config(meter, 1), Ok(Some(config)));
    assert!(state.set_meter(meter, 2, Some(config)).is_err());
}

#[test]
fn direct_cells_are_named_by_entry() {
    let mut state = state();
    let routes = state.table_named("routes").unwrap();
    let counter = state.counter_named("routes_cnt").unwrap();
    assert_eq!(counter, CounterRef::Direct(routes));
    let index = state.tables().insert(routes, &entry(prefix(0, 0), forward(1)), 0).unwrap();
    state.count_direct(routes, index, 100);
    assert_eq!(state.tables().counter_value(counter, 1), Ok(CounterValue { packets: 1, bytes: 100 }));
    assert_eq!(state.tables().counter_value(counter, 9), Err(WriteError::Table(TableError::NotFound)));
    assert_eq!(state.tables().counter_value(counter, u64::MAX), Err(WriteError::Table(TableError::NotFound)));
    assert_eq!(state.meter_named("routes_met"), Ok(MeterRef::Direct(routes)));
    state.tables().set_direct_meters(routes, Some(MeterRates::default().into())).unwrap();
    assert_eq!(state.tables().direct_meter_config(routes, 1), Ok(Some(MeterRates::default().into())));
}

#[test]
fn value_sets_have_members() {
    let mut state = state();
    let set = state.value_set_named("vs").unwrap();
    let member = |x| {
        vec![EntryMatch::Exact(Bits::new(8, x)), EntryMatch::Ternary(Bits::new(8, 0xf0), Bits::new(8, 0xf0))]
    };
    state.insert_value(set, &member(1)).unwrap();
    assert!(state.is_member(set, &[Bits::new(8, 1), Bits::new(8, 0xf5)]));
    assert!(!state.is_member(set, &[Bits::new(8, 1), Bits::new(8, 0x05)]));
    assert_eq!(state.insert_value(set, &member(1)), Err(WriteError::Table(TableError::Duplicate)));
    assert!(matches!(state.insert_value(set, &member(1)[..1]), Err(WriteError::MatchCount { .. })));
    let narrow = [EntryMatch::Exact(Bits::new(7, 1)), EntryMatch::Exact(Bits::new(8, 1))];
    assert!(matches!(state.insert_value(set, &narrow), Err(WriteError::KeyWidth { .. })));
    assert!(state.replace_values(set, &[member(2), member(3), member(4)]).is_err(), "more than fit");
    assert_eq!(state.values(set).collect::<Vec<_>>(), [member(1)]);
    state.remove_value(set, &member(1)).unwrap();
    assert_eq!(state.values(set).count(), 0);
}

#[test]
fn reset_gives_what_the_program_says() {
    let mut state = state();
    let routes = state.table_named("routes").unwrap();
    let register = state.register_named("reg").unwrap();
    state.tables().insert(routes, &entry(prefix(0, 0), forward(1)), 0).unwrap();
    state.set_register(register, 0, &Bits::new(100, 1)).unwrap();
    let handle = state.handle();
    state.reset(&mut handle.lock()).unwrap();
    assert_eq!(state.tables().entry_count(routes), 0);
    assert_eq!(state.register_value(register, 0), Ok(Bits::zero(100)));
}

#[test]
fn programs_that_take_too_much_memory_are_refused() {
    let text = "program big errors (NoError)
        register a: bit<512> size 16000000
        register b: bit<512> size 16000000
        register c: bit<512> size 16000000
        register d: bit<512> size 16000000
        register e: bit<512> size 16000000";
    let program = text::parse(text).unwrap();
    let error = State::new(Arc::new(program)).unwrap_err();
    assert_eq!(error, BuildError::Memory { bytes: 5 * 16_000_000 * 64, limit: 4 << 30 });
}

#[test]
fn entries_in_the_source_that_do_not_fit_are_named() {
    let text = r#"program twice errors (NoError) metadata a: bit<8>
        action x () = x body action x { block0: end }
        table t {
            key a: exact = a
            action x
            default x()
            size 2
            entry (8w1) => x()
            entry (8w1) => x()
        }"#;
    let error = State::new(Arc::new(text::parse(text).unwrap())).unwrap_err();
    assert_eq!(
        error.to_string(),
        "t: entry 2: an entry with this match and priority is already in the table"
    );
}

/// All that the control side can tell of a state.
fn picture(state: &State) -> Vec<String> {
    let tables = state.tables();
    let mut lines = Vec::new();
    for (id, table) in &state.program().tables {
        lines.push(format!("{} {:?}", table.name, tables.default_target(id)));
        lines.extend(tables.entries(id).map(|entry| format!("{entry:?}")));
        let hits = tables.table(id).iter().map(|(_, entry)| entry.last_hit_ns());
        lines.push(format!("{:?}", hits.collect::<Vec<_>>()));
    }
    for id in state.program().profiles.keys() {
        lines.push(format!("{:?}", tables.members(id).collect::<Vec<_>>()));
        lines.push(format!("{:?}", tables.groups(id).collect::<Vec<_>>()));
    }
    let cell = |at| tables.counter_value(state.counter_named("cnt").unwrap(), at);
    lines.push(format!("{:?}", (0..4).map(cell).collect::<Vec<_>>()));
    let register = state.register_named("reg").unwrap();
    lines.push(format!("{:?} {:?}", state.register_read(register, 0), state.register_read(register, 1)));
    for id in state.program().meters.keys() {
        lines.push(format!("{:?} {:?}", state.meter_config(id, 0), state.meter_config(id, 1)));
    }
    let set = state.value_set_named("vs").unwrap();
    lines.push(format!("{:?}", state.values(set).collect::<Vec<_>>()));
    lines
}

#[test]
fn what_is_noted_can_be_undone_and_leaves_everything_as_it_was() {
    let mut state = state();
    let handle = state.handle();
    let [routes, selected] = ["routes", "selected"].map(|name| state.table_named(name).unwrap());
    let profile = state.profile_named("ap").unwrap();
    let action = state.member_action_named(profile, "both").unwrap();
    let member = |value| MemberWrite { action, args: vec![Bits::new(8, value)] };
    let weight = |member| GroupMember { member, weight: 1 };
    let key = |value| vec![EntryMatch::Exact(Bits::new(9, value))];
    let rates = MeterRates { cir: Rate::per_second(1), cbs: 2, pir: Rate::per_second(3), pbs: 4 };
    let config = MeterConfig::from(rates);
    let counter = state.counter_named("cnt").unwrap();
    let register = state.register_named("reg").unwrap();
    let MeterRef::Indexed(meter) = state.meter_named("met").unwrap() else { panic!("an array") };
    let set = state.value_set_named("vs").unwrap();
    let of_set = |value| [EntryMatch::Exact(Bits::new(8, value)), EntryMatch::Exact(Bits::new(8, value))];
    {
        let mut tables = handle.lock();
        let one = tables.insert(routes, &entry(prefix(0x0a000000, 8), forward(1)), 5).unwrap();
        tables.insert(routes, &entry(prefix(0x0b000000, 8), forward(2)), 6).unwrap();
        tables.set_direct_meter(routes, one.0.into(), Some(config)).unwrap();
        tables.insert_member(profile, None, &member(10)).unwrap();
        tables.insert_group(profile, Some(7), &[weight(0)]).unwrap();
        tables.insert(selected, &entry(key(2), Target::Group(7)), 0).unwrap();
        tables.set_default_target(selected, &Target::Group(7)).unwrap();
        tables.set_counter(counter, 1, CounterValue { packets: 1, bytes: 2 }).unwrap();
        drop(tables);
        state.count_direct(routes, one, 100);
        state.set_register(register, 1, &Bits::new(100, 9)).unwrap();
        state.set_meter(meter, 0, Some(config)).unwrap();
        state.insert_value(set, &of_set(1)).unwrap();
    }
    let before = picture(&state);
    let found = |state: &mut State| {
        let routed = [0x0a000001, 0x0b000001, 0x0c000001].map(|to| Bits::new(32, to));
        let routed = routed.map(|to| state.lookup(routes, &[to], &[], 6));
        (routed, [2, 9].map(|key| state.lookup(selected, &[Bits::new(9, key)], &[], 6)))
    };
    let before_found = found(&mut state);

    for reset in [false, true] {
        {
            let mut tables = handle.lock();
            state.note(&mut tables);
            tables.remove(routes, EntryIndex(1)).unwrap();
            tables.modify(routes, EntryIndex(2), &Target::Action(call(1, &[]))).unwrap();
            tables.insert(routes, &entry(prefix(0x0c000000, 8), forward(3)), 9).unwrap();
            tables.set_default(routes, &call(0, &[Bits::new(9, 5), Bits::new(1, 0)])).unwrap();
            tables.insert_member(profile, None, &member(11)).unwrap();
            tables.modify_member(profile, 0, &member(12)).unwrap();
            tables.modify_group(profile, 7, &[weight(1)]).unwrap();
            tables.set_default_target(selected, &Target::Member(1)).unwrap();
            tables.reset_default(selected).unwrap();
            tables.clear(selected);
            tables.remove_group(profile, 7).unwrap();
            tables.remove_member(profile, 0).unwrap();
            tables.set_counter(counter, 2, CounterValue { packets: 5, bytes: 5 }).unwrap();
            tables.reset_counter(counter).unwrap();
            tables.reset_counter(CounterRef::Direct(routes)).unwrap();
            tables.clear(routes);
            state.set_register(register, 0, &Bits::new(100, 3)).unwrap();
            state.reset_register(register);
            state.set_meter(meter, 0, None).unwrap();
            state.set_all_meters(meter, Some(config)).unwrap();
            state.insert_value(set, &of_set(2)).unwrap();
            state.clear_values(set);
            if reset {
                state.reset(&mut tables).unwrap();
                tables.insert(routes, &entry(prefix(0, 0), forward(4)), 0).unwrap();
                state.set_register(register, 0, &Bits::new(100, 4)).unwrap();
                state.reset(&mut tables).unwrap();
            }
        }
        assert_ne!(picture(&state), before);
        state.undo(&mut handle.lock()).unwrap();
        assert_eq!(picture(&state), before, "after a reset: {reset}");
        assert_eq!(found(&mut state), before_found);
    }
    let next = state.tables().insert(selected, &entry(key(3), Target::Member(0)), 0);
    assert_eq!(next, Ok(EntryIndex(2)), "indices go on as if nothing had been");
}
