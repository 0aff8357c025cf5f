//! The objects of one program going on under another: what looks the same moves, what does not is copied as far as it fits.

use millrace_pipeline::{ActionCall, Bits, EntryMatch, ProfileId, Program, TableId, text, verify};
use millrace_state::{
    BuildError, Carried, CounterRef, EntryIndex, EntryWrite, GroupMember, MemberWrite, MeterRates, Migration,
    NotNow, ObjectKind, Rate, State, TablesHandle, Target,
};
use std::sync::Arc;

const PROGRAM: &str = r#"
program carried
errors (NoError)
ingress (c)
metadata a: bit<9>
metadata b: bit<32>
local fwd.port: bit<9>
local mark.v: bit<8>
action "ingress.fwd" (fwd.port) = fwd
action "ingress.mark" (mark.v) = mark
action "ingress.drop" () = drop
counter "ingress.cnt" size 4 packets
meter "ingress.met" size 2 bytes
register "ingress.reg": bit<32> size 4
value_set "parser.vs" (x: bit<8> exact) size 3
profile "ingress.ap" size 8 selector crc16 width 14 max_group_size 4
table "ingress.routes" {
    key dst: lpm = b
    action "ingress.fwd"
    action "ingress.mark"
    action "ingress.drop"
    default "ingress.drop"()
    size 8
    direct_counter "ingress.routes_cnt" packets_and_bytes
}
table "ingress.selected" {
    key a: exact = a
    action "ingress.fwd"
    action "ingress.mark"
    default "ingress.mark"(8w1)
    size 4
    profile "ingress.ap"
}
body control c { block0: end }
body action fwd { block0: end }
body action mark { block0: end }
body action drop { block0: end }
"#;

fn program(source: &str) -> Arc<Program> {
    let program = text::parse(source).unwrap_or_else(|error| panic!("{error}"));
    verify(&program).unwrap_or_else(|errors| panic!("{errors:?}"));
    Arc::new(program)
}

/// A state with something in each object, at 100 ns.
fn written() -> State {
    let mut state = State::new(program(PROGRAM)).unwrap();
    let handle = state.handle();
    let mut tables = handle.lock();
    let (routes, selected) = (table(&state, "routes"), table(&state, "selected"));
    for (prefix, target) in
        [(0x0a00_0000, call(0, 9, 3)), (0x0b00_0000, call(1, 8, 7)), (0x0c00_0000, drop_it())]
    {
        tables.insert(routes, &entry(lpm(prefix), Target::Action(target)), 100).unwrap();
    }
    tables.set_default(routes, &call(0, 9, 5)).unwrap();
    let profile = profile(&state);
    for (id, action, width, value) in [(1, "fwd", 9, 1), (2, "mark", 8, 2)] {
        let action = state.member_action_named(profile, action).unwrap();
        let member = MemberWrite { action, args: vec![Bits::new(width, value)] };
        tables.insert_member(profile, Some(id), &member).unwrap();
    }
    tables.insert_group(profile, Some(9), &[1, 2].map(|member| GroupMember { member, weight: 1 })).unwrap();
    tables.insert_group(profile, Some(8), &[GroupMember { member: 1, weight: 2 }]).unwrap();
    for (value, target) in [(1, Target::Group(9)), (2, Target::Group(8)), (3, Target::Member(2))] {
        tables.insert(selected, &entry(vec![EntryMatch::Exact(Bits::new(9, value))], target), 0).unwrap();
    }
    tables.set_default_target(selected, &Target::Group(8)).unwrap();
    drop(tables);
    count(&mut state, 3);
    let limit = MeterRates { cir: Rate::per_second(0), cbs: 100, pir: Rate::per_second(0), pbs: 100 }.into();
    let meter = state.program().meters.keys().next().unwrap();
    state.set_meter(meter, 1, Some(limit)).unwrap();
    let register = state.register_named("reg").unwrap();
    (0..4)
        .for_each(|cell| state.set_register(register, cell, &Bits::new(32, 70 + u128::from(cell))).unwrap());
    let set = state.value_set_named("parser.vs").unwrap();
    [5, 6]
        .into_iter()
        .for_each(|value| state.insert_value(set, &[EntryMatch::Exact(Bits::new(8, value))]).unwrap());
    state
}

/// Packets as an engine counts them: of 64 bytes, that match the first route and the array's cell 1.
fn count(state: &mut State, packets: u64) {
    let routes = state.program().tables.keys().next().unwrap();
    let counter = state.program().counters.keys().next().unwrap();
    for _ in 0..packets {
        state.count_direct(routes, EntryIndex(1), 64);
        state.count(counter, 1, 64);
    }
}

fn table(state: &State, name: &str) -> TableId {
    state.table_named(name).unwrap()
}

fn profile(state: &State) -> ProfileId {
    state.profile_named("ap").unwrap()
}

fn call(action: usize, width: u32, value: u128) -> ActionCall {
    ActionCall { action, args: vec![Bits::new(width, value)] }
}

fn drop_it() -> ActionCall {
    ActionCall { action: 2, args: vec![] }
}

fn entry(matches: Vec<EntryMatch>, target: Target) -> EntryWrite {
    EntryWrite { matches, priority: 0, target, idle_timeout_ns: 0 }
}

fn lpm(prefix: u128) -> Vec<EntryMatch> {
    vec![EntryMatch::Lpm(Bits::new(32, prefix), 8)]
}

/// The port that a route or the default action leads to.
fn port(state: &mut State, address: u128) -> Option<u128> {
    let routes = table(state, "routes");
    let found = state.lookup(routes, &[Bits::new(32, address)], &[], 0);
    let name =
        state.program().actions[state.program().tables[routes].actions[found.action].action].name.clone();
    (name == "ingress.fwd").then(|| found.args[0].to_u64_saturating().into())
}

fn counted(state: &State, counter: CounterRef, index: u64) -> u64 {
    state.tables().counter_value(counter, index).unwrap().packets
}

/// Goes on under another program; three more packets are counted in between. Gives the state and the report. Whether what
/// moves has been made before makes no difference.
fn go_on(source: &str) -> (State, Vec<Carried>) {
    let (_, report) = go_on_in(source, State::alongside);
    let (next, same) = go_on_in(source, State::successor);
    assert_eq!(report, same);
    (next, same)
}

fn go_on_in(
    source: &str,
    make: fn(Arc<Program>, &TablesHandle) -> Result<State, BuildError>,
) -> (State, Vec<Carried>) {
    let mut old = written();
    let running = old.handle();
    let mut next = make(program(source), &running).unwrap();
    let mut migration = Migration::new(&running, &next);
    migration.copy(&running, &mut next, &[2], 100);
    count(&mut old, 3);
    migration.take(&mut old, &mut next).unwrap();
    let now = next.handle();
    count(&mut next, 1);
    migration.finish(&old, &now);
    (next, migration.report().to_vec())
}

fn lines(report: &[Carried]) -> Vec<String> {
    let line = |of: &Carried| {
        let fate = of.dropped.as_ref().map_or("kept".to_owned(), |reason| format!("dropped: {reason}"));
        format!("{} {}: {} {} {fate}", of.kind, of.name, of.count, of.what)
    };
    report.iter().map(line).collect()
}

#[test]
fn what_looks_the_same_moves_with_all_that_it_counted() {
    // Other code, other order, another table: the objects are the same.
    let source = PROGRAM.replace("body action drop { block0: end }", "body action drop { block0: a = 9w1 end }").replace(
        "table \"ingress.selected\"",
        "table \"ingress.more\" { key a: exact = a action \"ingress.drop\" default \"ingress.drop\"() size 4 }\ntable \"ingress.selected\"",
    );
    let (mut state, report) = go_on(&source);
    assert_eq!(
        lines(&report),
        [
            "table ingress.routes: 3 entries kept",
            "table ingress.selected: 3 entries kept",
            "value set parser.vs: 2 values kept",
            "counter ingress.cnt: 4 cells kept",
            "meter ingress.met: 2 cells kept",
            "register ingress.reg: 4 cells kept",
        ]
    );
    assert_eq!(
        [0x0a00_0001, 0x0b00_0001, 0x0d00_0001].map(|at| port(&mut state, at)),
        [Some(3), None, Some(5)]
    );
    let routes = table(&state, "routes");
    assert_eq!(counted(&state, CounterRef::Direct(routes), 1), 7);
    assert_eq!(counted(&state, state.counter_named("cnt").unwrap(), 1), 7);
    let register = state.register_named("reg").unwrap();
    assert_eq!(state.register_value(register, 3).unwrap(), Bits::new(32, 73));
    assert!(state.is_member(state.value_set_named("vs").unwrap(), &[Bits::new(8, 6)]));
    let (selected, profile) = (table(&state, "selected"), profile(&state));
    assert_eq!(state.tables().entry_count(selected), 3);
    assert_eq!(state.tables().group(profile, 9).unwrap().len(), 2);
    assert_eq!(state.tables().default_target(selected), Target::Group(8));
    // It can be written on, and refuses what is there.
    assert!(state.tables().insert(routes, &entry(lpm(0x0a00_0000), Target::Action(drop_it())), 0).is_err());
    state.tables().insert(routes, &entry(lpm(0x0e00_0000), Target::Action(call(0, 9, 8))), 0).unwrap();
    assert_eq!(port(&mut state, 0x0e00_0001), Some(8));
}

#[test]
fn a_table_that_looks_otherwise_keeps_what_fits() {
    // No `mark` any more, and `drop` in front; larger counters, smaller registers and value sets.
    let source = PROGRAM
        .replace("action \"ingress.mark\" (mark.v) = mark\n", "")
        .replace("local mark.v: bit<8>\n", "")
        .replace("body action mark { block0: end }\n", "")
        .replace(
            "    action \"ingress.fwd\"\n    action \"ingress.mark\"\n    action \"ingress.drop\"\n",
            "    action \"ingress.drop\"\n    action \"ingress.fwd\"\n",
        )
        .replace(
            "    action \"ingress.mark\"\n    default \"ingress.mark\"(8w1)",
            "    default \"ingress.fwd\"(9w1)",
        )
        .replace("\"ingress.cnt\" size 4", "\"ingress.cnt\" size 8")
        .replace("bit<32> size 4", "bit<32> size 2")
        .replace("(x: bit<8> exact) size 3", "(x: bit<8> exact) size 1")
        .replace("meter \"ingress.met\" size 2 bytes\n", "");
    let (mut state, report) = go_on(&source);
    assert_eq!(
        lines(&report),
        [
            "action profile ingress.ap: 1 members kept",
            "action profile ingress.ap: 1 members dropped: action `ingress.mark` is not in the new program",
            "action profile ingress.ap: 1 groups kept",
            "action profile ingress.ap: 1 groups dropped: a member of it was dropped",
            "table ingress.routes: 2 entries kept",
            "table ingress.routes: 1 entries dropped: action `ingress.mark` is not in the new program",
            "table ingress.routes: 1 default action kept",
            "table ingress.selected: 1 entries kept",
            "table ingress.selected: 1 entries dropped: its group was dropped",
            "table ingress.selected: 1 entries dropped: its member was dropped",
            "table ingress.selected: 1 default action kept",
            "value set parser.vs: 1 values kept",
            "value set parser.vs: 1 values dropped: the new program has fewer",
            "counter ingress.cnt: 4 cells kept",
            "meter ingress.met: 2 cells dropped: it is not in the new program",
            "register ingress.reg: 2 cells kept",
            "register ingress.reg: 2 cells dropped: the new program has fewer",
        ]
    );
    assert_eq!(
        [0x0a00_0001, 0x0b00_0001, 0x0d00_0001].map(|at| port(&mut state, at)),
        [Some(3), Some(5), Some(5)]
    );
    // Counts made in between are not lost, whatever has moved.
    assert_eq!(counted(&state, CounterRef::Direct(table(&state, "routes")), 1), 7);
    assert_eq!(counted(&state, state.counter_named("cnt").unwrap(), 1), 7);
    let register = state.register_named("reg").unwrap();
    assert_eq!(state.register_value(register, 1).unwrap(), Bits::new(32, 71));
}

#[test]
fn a_table_with_another_key_or_name_loses_all() {
    for (from, to, reason) in [
        ("key dst: lpm = b", "key dst: ternary = b", "the new program has another key"),
        ("\"ingress.routes\"", "\"ingress.paths\"", "it is not in the new program"),
    ] {
        let (_, report) = go_on(&PROGRAM.replace(from, to));
        let routes: Vec<_> = report.into_iter().filter(|of| of.name == "ingress.routes").collect();
        let entries = Carried {
            kind: ObjectKind::Table,
            name: "ingress.routes".to_owned(),
            what: "entries",
            count: 3,
            dropped: Some(reason.to_owned()),
        };
        assert_eq!(routes[0], entries);
        // The key says nothing about the default action.
        assert_eq!((routes[1].what, routes[1].dropped.is_some()), ("default action", to.contains("paths")));
    }
}

#[test]
fn who_has_the_tables_is_waited_for_and_what_was_copied_must_not_have_changed() {
    let mut old = written();
    let running = old.handle();
    let source = PROGRAM.replace("key dst: lpm = b", "key dst: ternary = b");
    let mut next = State::alongside(program(&source), &running).unwrap();
    let mut migration = Migration::new(&running, &next);
    migration.copy(&running, &mut next, &[2], 100);
    let guard = running.lock();
    assert_eq!(migration.take(&mut old, &mut next), Err(NotNow::Busy));
    drop(guard);
    let routes = table(&old, "routes");
    old.tables().insert(routes, &entry(lpm(0x0e00_0000), Target::Action(drop_it())), 0).unwrap();
    assert_eq!(migration.take(&mut old, &mut next), Err(NotNow::Changed));
    assert_eq!(old.tables().entry_count(routes), 4);
}

#[test]
fn a_direct_meter_that_is_written_after_it_was_copied_is_copied_again() {
    let counter = "direct_counter \"ingress.routes_cnt\" packets_and_bytes";
    let metered =
        PROGRAM.replace(counter, &format!("{counter}\n    direct_meter \"ingress.routes_met\" bytes"));
    let mut old = State::new(program(&metered)).unwrap();
    let routes = table(&old, "routes");
    let index = old.tables().insert(routes, &entry(lpm(0x0a00_0000), Target::Action(drop_it())), 0).unwrap();
    let running = old.handle();
    let source = metered.replace("key dst: lpm = b", "key dst: ternary = b");
    let mut next = State::alongside(program(&source), &running).unwrap();
    let mut migration = Migration::new(&running, &next);
    migration.copy(&running, &mut next, &[2], 100);
    old.tables().set_direct_meter(routes, index.0.into(), None).unwrap();
    assert_eq!(migration.take(&mut old, &mut next), Err(NotNow::Changed));
}

#[test]
fn metered_traffic_stays_metered() {
    let (mut state, _) = go_on(&PROGRAM.replace("\"ingress.met\" size 2", "\"ingress.met\" size 5"));
    let meter = state.program().meters.keys().next().unwrap();
    assert!(
        state.meter_config(meter, 1).unwrap().is_some() && state.meter_config(meter, 2).unwrap().is_none()
    );
    use millrace_state::Color::{Green, Red};
    assert_eq!(state.meter(meter, 1, 0, 100, Green), Green);
    assert_eq!(state.meter(meter, 1, 0, 100, Green), Red);
}

#[test]
fn what_was_left_out_is_made_when_nothing_moves_there() {
    let old = written();
    let mut next = State::successor(program(PROGRAM), &old.handle()).unwrap();
    assert!(!next.is_whole());
    assert!(Migration::new(&old.handle(), &next).fills(&next));
    // Another program runs by now, whose register is a larger one.
    let other = PROGRAM
        .replace("register \"ingress.reg\": bit<32> size 4", "register \"ingress.reg\": bit<32> size 5");
    assert_ne!(other, PROGRAM);
    let running = State::alongside(program(&other), &old.handle()).unwrap();
    assert!(!Migration::new(&running.handle(), &next).fills(&next));
    let handle = next.handle();
    next.reset(&mut handle.lock()).unwrap();
    assert!(next.is_whole());
    assert!(Migration::new(&running.handle(), &next).fills(&next));
    let routes = table(&next, "routes");
    for prefix in 1..=3 {
        let new = entry(lpm(prefix << 24), Target::Action(call(0, 9, 8)));
        next.tables().insert(routes, &new, 0).unwrap();
    }
}
