use super::*;
use crate::error::MeterError;
use crate::key::{KeyField, MatchKind};
use crate::meter::Color;
use crate::meter::{MeterRates, Rate};
use crate::profile::{ActionProfile, ProfileSpec};

fn schema(fields: &[(u32, MatchKind)]) -> KeySchema {
    KeySchema::new(fields.iter().map(|&(width, kind)| KeyField { width, kind }).collect()).unwrap()
}

fn action(number: u32) -> ActionCall {
    ActionCall::new(number, number.to_be_bytes())
}

fn spec(fields: &[(u32, MatchKind)], size: u32) -> TableSpec {
    TableSpec::new(schema(fields), size, action(0))
}

fn table(fields: &[(u32, MatchKind)], size: u32) -> Table {
    Table::new(spec(fields, size), &Domain::new()).unwrap()
}

fn exact(bytes: &[u8]) -> FieldMatch {
    FieldMatch::Exact(bytes.to_vec())
}

fn lpm(bytes: &[u8], prefix_len: u32) -> FieldMatch {
    FieldMatch::Lpm { value: bytes.to_vec(), prefix_len }
}

fn ternary(value: u8, mask: u8) -> FieldMatch {
    FieldMatch::Ternary { value: vec![value], mask: vec![mask] }
}

fn found(table: &Table, key: &[u8]) -> u32 {
    table.action_of(table.lookup_one(key)).unwrap().action
}

/// All that the control plane can see of the entries.
fn picture(table: &Table) -> Vec<(EntryIndex, Vec<FieldMatch>, u32, Option<ActionCall>)> {
    table
        .iter()
        .map(|(index, entry)| {
            (index, entry.matches().to_vec(), entry.priority(), table.action_of(index).cloned())
        })
        .collect()
}

#[test]
fn exact_keys_of_several_fields() {
    let mut table = table(&[(9, MatchKind::Exact), (16, MatchKind::Exact)], 10);
    table.insert(EntrySpec::new(vec![exact(&[1, 2]), exact(&[3, 4])], action(7))).unwrap();
    let mut results = [EntryIndex(9); 3];
    table.lookup(&[1, 2, 3, 4, 1, 2, 3, 5, 1, 2, 3, 4], &mut results);
    assert_eq!(results.map(|index| table.action_of(index).unwrap().action), [7, 0, 7]);
    assert_eq!(results.map(EntryIndex::is_hit), [true, false, true]);
}

#[test]
fn the_longest_prefix_wins_within_the_exact_fields() {
    let mut table = table(&[(8, MatchKind::Exact), (32, MatchKind::Lpm)], 10);
    let entries = [
        (1, [10, 0, 0, 0], 8, 1),
        (1, [10, 1, 2, 3], 32, 2),
        (1, [10, 1, 0xff, 0xff], 16, 3), // canonicalised to 10.1.0.0/16
        (2, [0, 0, 0, 0], 0, 4),
    ];
    for (vrf, prefix, prefix_len, number) in entries {
        table.insert(EntrySpec::new(vec![exact(&[vrf]), lpm(&prefix, prefix_len)], action(number))).unwrap();
    }
    assert_eq!(found(&table, &[1, 10, 9, 9, 9]), 1);
    assert_eq!(found(&table, &[1, 10, 1, 9, 9]), 3);
    assert_eq!(found(&table, &[1, 10, 1, 2, 3]), 2);
    assert_eq!(found(&table, &[1, 11, 1, 2, 3]), 0);
    assert_eq!(found(&table, &[2, 10, 1, 2, 3]), 4);
    assert_eq!(found(&table, &[3, 10, 1, 2, 3]), 0);
    let index = table.find(&[exact(&[1]), lpm(&[10, 1, 0, 0], 16)], 0).unwrap();
    assert_eq!(table.entry(index).unwrap().matches()[1], lpm(&[10, 1, 0, 0], 16));
}

#[test]
fn the_larger_priority_wins_and_then_the_earlier_entry() {
    let mut table = table(&[(8, MatchKind::Ternary)], 10);
    let insert = |table: &mut Table, value, mask, priority, number| {
        table
            .insert(EntrySpec::new(vec![ternary(value, mask)], action(number)).with_priority(priority))
            .unwrap()
    };
    insert(&mut table, 0x10, 0xf0, 5, 1);
    insert(&mut table, 0x01, 0x0f, 5, 2);
    let top = insert(&mut table, 0x11, 0xff, 9, 3);
    insert(&mut table, 0, 0, 1, 4);
    assert_eq!([0x11, 0x12, 0x21, 0x22].map(|key| found(&table, &[key])), [3, 1, 2, 4]);
    table.remove(top).unwrap();
    assert_eq!(found(&table, &[0x11]), 1);
    // The same place in memory, but later in the order.
    let again = insert(&mut table, 0x11, 0x11, 5, 5);
    assert_eq!(again, top);
    assert_eq!(found(&table, &[0x11]), 1);
    assert_eq!(found(&table, &[0x31]), 2);
}

#[test]
fn with_ternary_fields_priority_decides_over_the_prefix() {
    let mut table = table(&[(8, MatchKind::Ternary), (8, MatchKind::Lpm)], 10);
    let insert = |table: &mut Table, prefix_len, priority, number| {
        let matches = vec![ternary(0, 0), lpm(&[0xff], prefix_len)];
        table.insert(EntrySpec::new(matches, action(number)).with_priority(priority)).unwrap();
    };
    insert(&mut table, 8, 1, 1);
    insert(&mut table, 1, 2, 2);
    assert_eq!(found(&table, &[0, 0xff]), 2);
    assert_eq!(found(&table, &[0, 0x7f]), 0);
}

#[test]
fn ranges_and_optionals() {
    let mut table = table(&[(16, MatchKind::Range), (8, MatchKind::Optional)], 10);
    let range = |low: u16, high: u16| FieldMatch::Range {
        low: low.to_be_bytes().to_vec(),
        high: high.to_be_bytes().to_vec(),
    };
    let entries = [
        (range(255, 256), Some(vec![6]), 3),
        (range(80, 1000), None, 2),
        (range(0, u16::MAX), Some(vec![7]), 1),
    ];
    for (range, optional, number) in entries {
        let spec = EntrySpec::new(vec![range, FieldMatch::Optional(optional)], action(number));
        table.insert(spec.with_priority(number)).unwrap();
    }
    let keys: [(u16, u8, u32); 7] =
        [(255, 6, 3), (256, 6, 3), (257, 6, 2), (256, 5, 2), (79, 6, 0), (79, 7, 1), (1000, 7, 2)];
    for (port, protocol, expected) in keys {
        let [high, low] = port.to_be_bytes();
        assert_eq!(found(&table, &[high, low, protocol]), expected, "{port} {protocol}");
    }
}

#[test]
fn a_table_without_a_key_has_its_default_action_alone() {
    let mut table = table(&[], 10);
    let mut results = [EntryIndex(9); 2];
    table.lookup(&[], &mut results);
    assert_eq!(results, [EntryIndex::MISS; 2]);
    assert_eq!(table.insert(EntrySpec::new(vec![], action(1))), Err(TableError::NoKey));
}

#[test]
fn keys_that_are_not_wholly_there_miss() {
    let mut table = table(&[(16, MatchKind::Exact)], 10);
    table.insert(EntrySpec::new(vec![exact(&[1, 2])], action(1))).unwrap();
    let mut results = [EntryIndex(9); 3];
    table.lookup(&[1, 2, 1], &mut results);
    assert_eq!(results.map(EntryIndex::is_hit), [true, false, false]);
    table.lookup(&[], &mut results);
    assert_eq!(results, [EntryIndex::MISS; 3]);
}

#[test]
fn fields_of_no_bits_have_one_value() {
    let mut table = table(&[(0, MatchKind::Exact)], 10);
    assert_eq!(found(&table, &[]), 0);
    table.insert(EntrySpec::new(vec![exact(&[])], action(1))).unwrap();
    assert_eq!(found(&table, &[]), 1);
}

#[test]
fn a_refused_write_changes_nothing() {
    let mut table = Table::new(
        TableSpec { idle_timeout: false, ..spec(&[(8, MatchKind::Ternary), (32, MatchKind::Lpm)], 3) },
        &Domain::new(),
    )
    .unwrap();
    let any = || ternary(0, 0);
    let spec = |matches| EntrySpec::new(matches, action(1)).with_priority(4);
    let fixed = table.insert(spec(vec![any(), lpm(&[10, 0, 0, 0], 8)]).constant()).unwrap();
    let other = table.insert(spec(vec![any(), lpm(&[11, 0, 0, 0], 8)])).unwrap();
    let before = picture(&table);

    let long = ActionCall::new(1, vec![0; MAX_ACTION_BYTES + 1]);
    let no_profile = ActionProfile::new(ProfileSpec { max_members: 1, max_groups: 0, max_group_weight: 0 })
        .map(|mut profile| profile.insert_member(1, action(1)).unwrap())
        .unwrap();
    let good = || vec![any(), lpm(&[12, 0, 0, 0], 8)];
    let refusals = [
        (spec(vec![any()]), TableError::WrongFieldCount { expected: 2, found: 1 }),
        (
            spec(vec![any(), lpm(&[10, 0, 0], 8)]),
            TableError::WrongWidth { field: 1, width: 32, found_bytes: 3 },
        ),
        (
            spec(vec![any(), lpm(&[10, 0, 0, 0], 33)]),
            TableError::BadPrefix { field: 1, width: 32, prefix_len: 33 },
        ),
        // The same entry in another form: value bits outside the mask, prefix bits beyond the length.
        (spec(vec![ternary(0xff, 0), lpm(&[10, 9, 9, 9], 8)]), TableError::Duplicate),
        (EntrySpec { idle_timeout_ns: 1, ..spec(good()) }, TableError::NoIdleTimeout),
        (
            EntrySpec { target: EntryTarget::Action(long.clone()), ..spec(good()) },
            TableError::ActionTooLong { bytes: 4097, limit: 4096 },
        ),
        (spec(good()).with_target(EntryTarget::Member(no_profile)), TableError::NoProfile),
    ];
    for (entry, error) in refusals {
        assert_eq!(table.insert(entry), Err(error));
    }
    assert_eq!(table.modify(fixed, EntryTarget::Action(action(2))), Err(TableError::ConstEntry));
    assert_eq!(table.remove(fixed), Err(TableError::ConstEntry));
    assert_eq!(table.modify(other, EntryTarget::Member(no_profile)), Err(TableError::NoProfile));
    assert_eq!(table.set_idle_timeout(other, 1), Err(TableError::NoIdleTimeout));
    for absent in [EntryIndex::MISS, EntryIndex(3), EntryIndex(u32::MAX)] {
        assert_eq!(table.remove(absent), Err(TableError::NotFound));
        assert_eq!(table.modify(absent, EntryTarget::Action(action(2))), Err(TableError::NotFound));
    }
    assert_eq!(table.find(&good(), 4), Err(TableError::NotFound));
    assert_eq!(table.set_default(long), Err(TableError::ActionTooLong { bytes: 4097, limit: 4096 }));
    assert_eq!(picture(&table), before);
    assert_eq!((table.len(), table.distinct_actions()), (2, 2));

    // Another priority is another entry.
    table.insert(spec(vec![any(), lpm(&[10, 0, 0, 0], 8)]).with_priority(5)).unwrap();
    assert_eq!(table.insert(spec(good())), Err(TableError::Full { limit: 3 }));
    assert_eq!(table.len(), 3);
}

#[test]
fn priorities_are_for_overlapping_matches_only() {
    let mut table = table(&[(8, MatchKind::Exact)], 10);
    let spec = EntrySpec::new(vec![exact(&[1])], action(1)).with_priority(3);
    assert_eq!(table.insert(spec), Err(TableError::PriorityNotUsed { priority: 3 }));
}

#[test]
fn const_tables_take_their_own_entries_and_no_others() {
    let mut table =
        Table::new(TableSpec { const_entries: true, ..spec(&[(8, MatchKind::Exact)], 1) }, &Domain::new())
            .unwrap();
    for key in 0..3 {
        let entry = EntrySpec::new(vec![exact(&[key])], action(key.into()));
        table.insert(entry.constant()).unwrap();
    }
    assert_eq!(table.insert(EntrySpec::new(vec![exact(&[9])], action(9))), Err(TableError::ConstTable));
    table.clear();
    assert_eq!(table.len(), 3, "clear leaves const entries");
    assert_eq!(found(&table, &[2]), 2);
}

#[test]
fn the_default_action_is_set_and_reset_unless_const() {
    let mut table = table(&[(8, MatchKind::Exact)], 1);
    assert_eq!(table.default_action(), &action(0));
    table.set_default(action(5)).unwrap();
    assert_eq!(found(&table, &[1]), 5);
    table.reset_default().unwrap();
    assert_eq!((table.default_action(), table.distinct_actions()), (&action(0), 1));

    let mut fixed =
        Table::new(TableSpec { const_default: true, ..spec(&[(8, MatchKind::Exact)], 1) }, &Domain::new())
            .unwrap();
    assert_eq!(fixed.set_default(action(5)), Err(TableError::ConstDefault));
    assert_eq!(fixed.reset_default(), Err(TableError::ConstDefault));
    assert_eq!(fixed.default_action(), &action(0));
}

#[test]
fn equal_action_data_is_stored_once() {
    let mut table = table(&[(16, MatchKind::Exact)], 1000);
    for key in 0..1000u16 {
        let entry = EntrySpec::new(vec![exact(&key.to_be_bytes())], action(u32::from(key % 4) + 1));
        table.insert(entry).unwrap();
    }
    assert_eq!(table.distinct_actions(), 5);
    let id = |key: u16| table.entry(table.lookup_one(&key.to_be_bytes())).unwrap().target();
    assert_eq!(id(3), id(7));
    assert_ne!(id(3), id(8));
    let TargetRef::Action(stored) = id(3) else { panic!("an action is stored") };
    assert_eq!(table.action(stored), Some(&action(4)));
    table.clear();
    assert_eq!((table.len(), table.distinct_actions()), (0, 1));
}

#[test]
fn iteration_keeps_the_order_of_insertion_over_reused_places() {
    let mut table = table(&[(8, MatchKind::Exact)], 10);
    let insert = |table: &mut Table, key: u8| {
        table.insert(EntrySpec::new(vec![exact(&[key])], action(key.into()))).unwrap()
    };
    let first = insert(&mut table, 9);
    insert(&mut table, 8);
    insert(&mut table, 7);
    table.remove(first).unwrap();
    assert_eq!(insert(&mut table, 6), first, "the index is used again");
    table.modify(first, EntryTarget::Action(action(66))).unwrap();
    let order: Vec<u32> = table.iter().map(|(index, _)| table.action_of(index).unwrap().action).collect();
    assert_eq!(order, [8, 7, 66]);
}

#[test]
fn hits_counters_and_idle_time_belong_to_their_entry() {
    let mut table = Table::new(
        TableSpec {
            counter: Some(CounterKind::Both),
            idle_timeout: true,
            ..spec(&[(8, MatchKind::Exact)], 10)
        },
        &Domain::new(),
    )
    .unwrap();
    let entry = |key: u8, timeout, created| EntrySpec {
        idle_timeout_ns: timeout,
        created_ns: created,
        ..EntrySpec::new(vec![exact(&[key])], action(1))
    };
    let one = table.insert(entry(1, 100, 1000)).unwrap();
    let two = table.insert(entry(2, 0, 1000)).unwrap();
    assert_eq!(table.expired(1099).collect::<Vec<_>>(), []);
    assert_eq!(table.expired(1100).collect::<Vec<_>>(), [one]);

    let mut part = table.attach().unwrap();
    part.record(one, 1050);
    part.count(one, 64);
    part.record(EntryIndex::MISS, 1060);
    part.count(EntryIndex::MISS, 100);
    part.record(one, 1070);
    part.count(one, 1500);
    assert_eq!(table.expired(1169).collect::<Vec<_>>(), []);
    assert_eq!(table.expired(1170).collect::<Vec<_>>(), [one]);
    assert_eq!(table.counter(one), Ok(CounterValue { packets: 2, bytes: 1564 }));
    assert_eq!(table.counter(two), Ok(CounterValue::default()));
    assert_eq!(table.counter(EntryIndex::MISS), Ok(CounterValue { packets: 1, bytes: 100 }));

    table.modify(one, EntryTarget::Action(action(2))).unwrap();
    assert_eq!(table.counter(one), Ok(CounterValue { packets: 2, bytes: 1564 }), "modify keeps the counter");
    table.set_counter(two, CounterValue { packets: 7, bytes: 8 }).unwrap();
    assert_eq!(table.entry(two).unwrap().counter(), CounterValue { packets: 7, bytes: 8 });
    table.remove(one).unwrap();
    let again = table.insert(entry(1, 0, 0)).unwrap();
    assert_eq!(
        (again, table.counter(again)),
        (one, Ok(CounterValue::default())),
        "an insert starts from zero"
    );
    table.reset_counters().unwrap();
    assert_eq!(table.counter(two), Ok(CounterValue::default()));
    assert_eq!(table.counter(EntryIndex(77)), Err(TableError::NotFound));
    // What names no entry is harmless.
    part.record(EntryIndex(77), 1);
    part.count(EntryIndex(77), 1);
}

#[test]
fn direct_meters_belong_to_their_entry() {
    let mut table = Table::new(
        TableSpec { meter: Some(MeterUnit::Bytes), ..spec(&[(8, MatchKind::Exact)], 10) },
        &Domain::new(),
    )
    .unwrap();
    let insert = |table: &mut Table| table.insert(EntrySpec::new(vec![exact(&[1])], action(1))).unwrap();
    let one = insert(&mut table);
    let rates = MeterRates { cir: Rate::per_second(1), cbs: 100, pir: Rate::per_second(1), pbs: 200 };
    let config = MeterConfig::from(rates);
    let mut part = table.attach().unwrap();
    assert_eq!(part.meter(one, 0, 1000, Color::Green), Color::Green, "unconfigured");
    table.set_meter(one, Some(config)).unwrap();
    let colors = [100, 100, 1].map(|bytes| part.meter(one, 0, bytes, Color::Green));
    assert_eq!(colors, [Color::Green, Color::Yellow, Color::Red]);
    let bad = MeterConfig::from(MeterRates { pir: Rate::per_second(0), ..rates });
    assert_eq!(table.set_meter(one, Some(bad)), Err(TableError::Meter(MeterError::PeakBelowCommitted)));
    assert_eq!(table.entry(one).unwrap().meter(), Some(config));
    assert_eq!(part.meter(one, 0, 1, Color::Green), Color::Red, "a refused configuration fills no bucket");
    table.set_meter(one, Some(config)).unwrap();
    assert_eq!(part.meter(one, 0, 100, Color::Green), Color::Green, "the same again does");
    table.remove(one).unwrap();
    let again = insert(&mut table);
    assert_eq!(table.entry(again).unwrap().meter(), None, "an insert starts from zero");
    assert_eq!(part.meter(again, 0, 1000, Color::Green), Color::Green);
    assert_eq!(part.meter(EntryIndex(77), 0, 1000, Color::Red), Color::Green);
}

#[test]
fn what_a_table_does_not_have_is_said() {
    let mut table = table(&[(8, MatchKind::Exact)], 10);
    assert_eq!(table.counter(EntryIndex::MISS), Err(TableError::NoCounter));
    assert_eq!(table.reset_counters(), Err(TableError::NoCounter));
    assert_eq!(table.set_meter(EntryIndex::MISS, None), Err(TableError::NoMeter));
    let mut part = table.attach().unwrap();
    assert_eq!(part.meter(EntryIndex::MISS, 0, 1, Color::Red), Color::Green);
    part.count(EntryIndex::MISS, 1);
    assert_eq!(table.entry(EntryIndex::MISS).unwrap().counter(), CounterValue::default());
}

#[test]
fn sizes_are_limited_at_creation() {
    let large = Table::new(spec(&[(8, MatchKind::Exact)], MAX_ENTRIES + 1), &Domain::new()).unwrap_err();
    assert_eq!(large.to_string(), "the size of the table in entries is 16777217, the limit is 16777216");
    let long = TableSpec {
        default_action: ActionCall::new(0, vec![0; MAX_ACTION_BYTES + 1]),
        ..spec(&[(8, MatchKind::Exact)], 1)
    };
    assert!(Table::new(long, &Domain::new()).is_err());
    let several = spec(&[(8, MatchKind::Lpm), (8, MatchKind::Lpm)], 1);
    assert_eq!(Table::new(several, &Domain::new()).unwrap_err(), SpecError::SeveralLpmKeys);
    assert!(
        Table::new(
            spec(&[(8, MatchKind::Lpm), (8, MatchKind::Lpm), (1, MatchKind::Ternary)], 1),
            &Domain::new()
        )
        .is_ok()
    );
}

#[test]
fn a_wide_ternary_field_with_an_odd_mask_is_checked_whole() {
    let domain = Domain::new();
    let mut table = Table::new(spec(&[(128, MatchKind::Ternary)], 10), &domain).unwrap();
    let mask = 0xca28_0508_00c3_4009_6522_34c2_1555_b921u128.to_be_bytes().to_vec();
    let value = vec![0; 16];
    table.insert(EntrySpec::new(vec![FieldMatch::Ternary { value, mask }], action(1))).unwrap();
    table.commit().unwrap();
    let mut slots = [7; 2];
    table.reader().lookup(&domain.worker(), &[3, 0, 2, 0], &mut slots);
    assert_eq!((slots[0], table.action(ActionDataId(slots[1]))), (0, Some(&action(1))));
}
