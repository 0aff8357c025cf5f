//! Units next to tables: the answers to random keys, with few entries and with as many as a unit holds.

use super::*;
use crate::stage::{LookupAnswer, Unit};
use crate::units::Objects;
use millrace_netlist::{Design, Simulator};
use millrace_pipeline::arbitrary::Rng;
use millrace_pipeline::*;
use millrace_state::{Effects, EntryWrite, State, Target};
use std::sync::Arc;

/// A program with one table, whose keys have these widths and match so.
fn program(keys: &[(u32, MatchKind)], size: u64) -> Arc<Program> {
    let mut b = ProgramBuilder::new("table", "v1model");
    let param = b.local("act.x", Type::Bits(24));
    let mut body = BodyBuilder::new("act", BodyKind::Action);
    body.end();
    let body = body.finish(&mut b).unwrap();
    let action = b.action("act", vec![param], body);
    let fields: Vec<TableKey> = (keys.iter().enumerate())
        .map(|(at, (width, kind))| {
            let slot = b.metadata(&format!("meta.k{at}"), Type::Bits(*width));
            TableKey { name: format!("k{at}"), value: Expr::Read(slot), kind: *kind }
        })
        .collect();
    b.program_mut().tables.push(Table {
        name: "t".into(),
        keys: fields,
        actions: vec![TableAction { action, scope: ActionScope::Both }],
        default: ActionCall { action: 0, args: vec![Bits::new(24, 0xdef)] },
        const_default: false,
        size,
        entries: Vec::new(),
        const_entries: false,
        profile: None,
        selector_inputs: Vec::new(),
        empty_group: None,
        direct_counter: None,
        direct_meter: None,
        idle_timeout: false,
    });
    let program = b.finish();
    assert_eq!(verify(&program), Ok(()));
    Arc::new(program)
}

fn matches(rng: &mut Rng, keys: &[(u32, MatchKind)], exact: u64) -> Vec<EntryMatch> {
    let one = |(width, kind): &(u32, MatchKind)| {
        let mut small = || Bits::new(*width, rng.below(48) as u128);
        let (a, b) = (small(), small());
        match kind {
            // Every entry another one.
            MatchKind::Exact => EntryMatch::Exact(Bits::new(*width, u128::from(exact))),
            MatchKind::Lpm => {
                let length = width - rng.below(7).min(*width as usize) as u32;
                let mask = Bits::ones(*width).shl_by(u64::from(width - length));
                EntryMatch::Lpm(a.and(&mask), length)
            }
            MatchKind::Ternary => EntryMatch::Ternary(a.and(&b), b),
            MatchKind::Range if a.cmp_unsigned(&b).is_le() => EntryMatch::Range(a, b),
            MatchKind::Range => EntryMatch::Range(b, a),
            MatchKind::Optional if rng.one_in(3) => EntryMatch::Optional(None),
            MatchKind::Optional => EntryMatch::Optional(Some(a)),
        }
    };
    keys.iter().map(one).collect()
}

/// Compares a unit with its table after every so many entries; gives how many of the answers were hits.
fn compare(keys: &[(u32, MatchKind)], entries: u64, step: u64) -> u32 {
    let program = program(keys, entries);
    let id = TableId::from_u32(0);
    let unit = TableUnit::of(&program, id, Some(entries)).unwrap();
    assert!(unit.capacity() >= entries, "{unit:?}");
    let mut design = Design::new();
    design.add(unit.module("t"));
    let mut sim = Simulator::new(&design).unwrap();
    let [key, enable, address, data] =
        ["key", "write_enable", "write_address", "write_data"].map(|name| sim.input(name).unwrap());
    let answer = sim.output("answer").unwrap();
    let mut state = State::new(Arc::clone(&program)).unwrap();
    let mut contents = Contents::new(unit.clone());
    let (mut rng, mut hits) = (Rng::new(entries), 0);
    let has_priorities = keys.iter().any(|(_, kind)| !matches!(kind, MatchKind::Exact | MatchKind::Lpm));
    for number in 0..entries {
        let call = ActionCall { action: 0, args: vec![Bits::new(24, u128::from(number))] };
        let priority = if has_priorities { 1 + rng.below(9) as u32 } else { 0 };
        let matches = matches(&mut rng, keys, number);
        let entry = EntryWrite { matches, priority, target: Target::Action(call), idle_timeout_ns: 0 };
        // Some are there already.
        let _ = state.tables().insert(id, &entry, 0);
        if (number + 1) % step != 0 && number + 1 != entries {
            continue;
        }
        for (at, word) in contents.changes(&state).unwrap() {
            sim.set_u64(enable, 1);
            sim.set_u64(address, at.into());
            sim.set(data, &word);
            sim.step();
        }
        sim.set_u64(enable, 0);
        for _ in 0..40 {
            // All exact fields of an entry have one number.
            let exact = rng.below(entries as usize + 9) as u128;
            let mut one = |(width, kind): &(u32, MatchKind)| match kind {
                MatchKind::Exact => (Bits::new(*width, exact), Type::Bits(*width)),
                _ => (Bits::new(*width, rng.below(64) as u128), Type::Bits(*width)),
            };
            let asked: Vec<(Bits, Type)> = keys.iter().map(&mut one).collect();
            let mut effects = Effects::default();
            let mut objects = Objects { state: &mut state, now_ns: 0, effects: &mut effects };
            let wanted = objects.access(&Unit::Lookup(id), &asked, unit.answer).unwrap();
            let whole = asked.into_iter().map(|(bits, _)| bits).reduce(|high, low| high.concat(&low));
            sim.set(key, &whole.unwrap());
            for _ in 0..unit.latency() {
                sim.step();
            }
            assert_eq!(sim.get(answer), wanted, "{keys:?}, {} entries", number + 1);
            hits += wanted.slice(LookupAnswer::HIT, LookupAnswer::HIT).to_u64_saturating() as u32;
        }
    }
    hits
}

#[test]
fn units_answer_what_tables_answer() {
    use MatchKind::*;
    for (keys, entries) in [
        (vec![(8, Exact)], 200),
        (vec![(48, Exact), (9, Exact)], 300),
        (vec![(32, Lpm)], 40),
        (vec![(3, Exact), (32, Lpm)], 40),
        (vec![(16, Ternary)], 40),
        (vec![(12, Range), (8, Optional)], 40),
        (vec![(16, Ternary), (12, Lpm), (9, Range)], 50),
    ] {
        let hits = compare(&keys, entries, 10);
        assert!(hits > 20, "{keys:?}: {hits} hits");
    }
}

/// A unit with hashes takes entries for nine tenths of its words.
#[test]
fn hash_units_fill_up() {
    let keys = [(40, MatchKind::Exact)];
    let program = program(&keys, 900);
    let unit = TableUnit::of(&program, TableId::from_u32(0), Some(921)).unwrap();
    assert_eq!((unit.kind, unit.capacity()), (Kind::Hash { bits: 8 }, 921));
    assert!(compare(&keys, 921, 921) > 20);
}

#[test]
fn what_does_not_fit_is_said() {
    let keys = [(16, MatchKind::Ternary)];
    let program = program(&keys, 8);
    let id = TableId::from_u32(0);
    let unit = TableUnit::of(&program, id, Some(2)).unwrap();
    let state = State::new(program).unwrap();
    for number in 0..3 {
        let call = ActionCall { action: 0, args: vec![Bits::new(24, 1)] };
        let matches = vec![EntryMatch::Ternary(Bits::new(16, number), Bits::ones(16))];
        let entry = EntryWrite { matches, priority: 1, target: Target::Action(call), idle_timeout_ns: 0 };
        state.tables().insert(id, &entry, 0).unwrap();
    }
    let full = Contents::new(unit).changes(&state).unwrap_err();
    assert_eq!((full.entries, full.capacity), (3, 2));
    assert!(full.to_string().contains("--capacity t=N"), "{full}");
    state.tables().clear(id);
}
