//! Every engine against a table that is nothing but a list: random schemas, writes and lookups.
//!
//! The model works on numbers, not on bytes, and asks every entry about every key.

use millrace_tables::engines::{Domain, Worker};
use millrace_tables::{
    ActionCall, ActionDataId, CounterKind, EntryIndex, EntrySpec, EntryTarget, FieldMatch, KeyField,
    KeySchema, MatchKind, Table, TableError, TableSpec, ValueSet,
};
use proptest::prelude::*;

/// A match on one field, in numbers.
#[derive(Clone, Debug)]
enum Number {
    Exact(u64),
    Lpm(u64, u32),
    Ternary(u64, u64),
    Range(u64, u64),
    Optional(Option<u64>),
}

fn ones(width: u32) -> u64 {
    (1u64 << width) - 1
}

/// The bits that an lpm match looks at.
fn prefix_mask(width: u32, prefix_len: u32) -> u64 {
    ones(width) ^ ones(width - prefix_len)
}

fn bytes(number: u64, width: u32) -> Vec<u8> {
    number.to_be_bytes()[8 - width.div_ceil(8) as usize..].to_vec()
}

impl Number {
    fn matches(&self, width: u32, key: u64) -> bool {
        match *self {
            Number::Exact(value) | Number::Optional(Some(value)) => key == value,
            Number::Optional(None) => true,
            Number::Lpm(value, prefix_len) => (key ^ value) & prefix_mask(width, prefix_len) == 0,
            Number::Ternary(value, mask) => (key ^ value) & mask == 0,
            Number::Range(low, high) => (low..=high).contains(&key),
        }
    }

    /// Whether two matches of one kind say the same.
    fn same(&self, other: &Number, width: u32) -> bool {
        match (self, other) {
            (Number::Exact(a), Number::Exact(b)) => a == b,
            (Number::Optional(a), Number::Optional(b)) => a == b,
            (Number::Lpm(a, n), Number::Lpm(b, m)) => n == m && (a ^ b) & prefix_mask(width, *n) == 0,
            (Number::Ternary(a, n), Number::Ternary(b, m)) => n == m && (a ^ b) & n == 0,
            (Number::Range(a, n), Number::Range(b, m)) => (a, n) == (b, m),
            _ => false,
        }
    }

    fn in_bytes(&self, width: u32) -> FieldMatch {
        match *self {
            Number::Exact(value) => FieldMatch::Exact(bytes(value, width)),
            Number::Lpm(value, prefix_len) => FieldMatch::Lpm { value: bytes(value, width), prefix_len },
            Number::Ternary(value, mask) => {
                FieldMatch::Ternary { value: bytes(value, width), mask: bytes(mask, width) }
            }
            Number::Range(low, high) => {
                FieldMatch::Range { low: bytes(low, width), high: bytes(high, width) }
            }
            Number::Optional(value) => FieldMatch::Optional(value.map(|value| bytes(value, width))),
        }
    }

    fn prefix_len(&self) -> u32 {
        match *self {
            Number::Lpm(_, prefix_len) => prefix_len,
            _ => 0,
        }
    }
}

struct Row {
    matches: Vec<Number>,
    priority: u32,
    index: EntryIndex,
    action: u32,
}

/// The list: rows in the order of insertion.
struct Model {
    fields: Vec<KeyField>,
    limit: usize,
    rows: Vec<Row>,
}

impl Model {
    fn has_priorities(&self) -> bool {
        let needs = [MatchKind::Ternary, MatchKind::Range, MatchKind::Optional];
        self.fields.iter().any(|field| needs.contains(&field.kind))
    }

    fn position(&self, matches: &[Number], priority: u32) -> Option<usize> {
        self.rows.iter().position(|row| {
            let mut pairs = row.matches.iter().zip(matches).zip(&self.fields);
            row.priority == priority && pairs.all(|((a, b), field)| a.same(b, field.width))
        })
    }

    /// The row that wins: by priority where there are priorities, by prefix length elsewhere, then the first.
    fn lookup(&self, key: &[u64]) -> Option<&Row> {
        let mut best: Option<&Row> = None;
        for row in &self.rows {
            let mut fields = row.matches.iter().zip(key).zip(&self.fields);
            if !fields.all(|((given, key), field)| given.matches(field.width, *key)) {
                continue;
            }
            let rank = |row: &Row| {
                if self.has_priorities() {
                    row.priority
                } else {
                    row.matches.iter().map(Number::prefix_len).sum()
                }
            };
            if best.is_none_or(|best| rank(row) > rank(best)) {
                best = Some(row);
            }
        }
        best
    }
}

/// What is done to the table, in raw numbers that are brought into the range of the schema when it is known.
#[derive(Clone, Debug)]
enum Step {
    Insert { raw: Vec<[u64; 2]>, priority: u32, action: u32 },
    Remove { which: usize },
    RemoveByMatch { which: usize },
    Modify { which: usize, action: u32 },
    Clear,
}

fn number(field: KeyField, raw: [u64; 2]) -> Number {
    let [a, b] = raw.map(|raw| raw & ones(field.width));
    match field.kind {
        MatchKind::Exact => Number::Exact(a),
        MatchKind::Lpm => Number::Lpm(a, (raw[1] % (u64::from(field.width) + 1)) as u32),
        MatchKind::Ternary => Number::Ternary(a, b),
        MatchKind::Range => Number::Range(a.min(b), a.max(b)),
        MatchKind::Optional => Number::Optional(raw[1].is_multiple_of(2).then_some(a)),
    }
}

fn step() -> impl Strategy<Value = Step> {
    let raw = prop::collection::vec(any::<[u64; 2]>(), 4);
    prop_oneof![
        12 => (raw, 0..4u32, 1..5u32).prop_map(|(raw, priority, action)| Step::Insert { raw, priority, action }),
        2 => any::<usize>().prop_map(|which| Step::Remove { which }),
        2 => any::<usize>().prop_map(|which| Step::RemoveByMatch { which }),
        2 => (any::<usize>(), 1..5u32).prop_map(|(which, action)| Step::Modify { which, action }),
        1 => Just(Step::Clear),
    ]
}

/// Narrow fields, so that random keys and entries meet; widths around the byte boundary.
fn width() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 1..5u32, 1 => 7..10u32, 1 => 15..18u32]
}

fn fields(kinds: &'static [MatchKind]) -> impl Strategy<Value = Vec<KeyField>> {
    let field = (width(), prop::sample::select(kinds)).prop_map(|(width, kind)| KeyField { width, kind });
    prop::collection::vec(field, 1..4)
}

/// Exact fields with one lpm field somewhere among them.
fn lpm_fields() -> impl Strategy<Value = Vec<KeyField>> {
    (prop::collection::vec(width(), 1..4), any::<prop::sample::Index>()).prop_map(|(widths, lpm)| {
        let at = lpm.index(widths.len());
        let kind = |place| if place == at { MatchKind::Lpm } else { MatchKind::Exact };
        widths.into_iter().enumerate().map(|(place, width)| KeyField { width, kind: kind(place) }).collect()
    })
}

fn action(number: u32) -> ActionCall {
    ActionCall::new(number, number.to_be_bytes())
}

fn run(
    fields: Vec<KeyField>,
    limit: u32,
    steps: Vec<Step>,
    keys: Vec<Vec<u64>>,
) -> Result<(), TestCaseError> {
    for counter in [None, Some(CounterKind::Both)] {
        let schema = KeySchema::new(fields.clone()).unwrap();
        let domain = Domain::new();
        let spec = TableSpec { counter, ..TableSpec::new(schema, limit, action(0)) };
        let mut table = Table::new(spec, &domain).unwrap();
        let mut model = Model { fields: fields.clone(), limit: limit as usize, rows: Vec::new() };
        let mut worker = domain.worker();
        for step in &steps {
            worker.sleep();
            apply(step.clone(), &mut table, &mut model)?;
            table.commit().unwrap();
            worker.wake();
            agree(&table, &model, &keys)?;
            workers_agree(&table, &worker, &model, &keys)?;
        }
        worker.sleep();
        // What is taken out and put back is as it was: index, place in the order, and all that workers find.
        let all = table.removable();
        let taken: Vec<_> = all.into_iter().map(|index| table.take(index).unwrap()).collect();
        prop_assert_eq!(table.len(), 0);
        table.commit().unwrap();
        for entry in taken.into_iter().rev() {
            table.put_back(entry).unwrap();
        }
        table.commit().unwrap();
        worker.wake();
        agree(&table, &model, &keys)?;
        workers_agree(&table, &worker, &model, &keys)?;
    }
    Ok(())
}

/// What workers find is what the model does.
fn workers_agree(
    table: &Table,
    worker: &Worker,
    model: &Model,
    keys: &[Vec<u64>],
) -> Result<(), TestCaseError> {
    let reader = table.reader();
    let mut limbs = Vec::new();
    for key in keys {
        // The fields as one string of bits, the most significant first.
        let digit = |number: u64, width: u32| (0..width).rev().map(move |bit| number >> bit & 1);
        let fields = key.iter().zip(&model.fields);
        let bits: Vec<u64> = fields.flat_map(|(raw, field)| digit(*raw, field.width)).collect();
        limbs.extend(bits.rchunks(64).map(|chunk| chunk.iter().fold(0u64, |limb, bit| limb << 1 | bit)));
    }
    prop_assert_eq!(limbs.len(), keys.len() * reader.limbs());
    let mut results = vec![u32::MAX; keys.len()];
    reader.lookup(worker, &limbs, &mut results);
    let winners: Vec<Option<&Row>> = keys
        .iter()
        .map(|raw| {
            raw.iter().zip(&model.fields).map(|(raw, field)| raw & ones(field.width)).collect::<Vec<_>>()
        })
        .map(|key| model.lookup(&key))
        .collect();
    if reader.gives_entries() {
        let entries: Vec<u32> =
            winners.iter().map(|winner| winner.map_or(EntryIndex::MISS, |row| row.index).0).collect();
        prop_assert_eq!(&results, &entries);
        reader.slots(&mut results);
    }
    for (slot, winner) in results.iter().zip(winners) {
        let expected = action(winner.map_or(0, |row| row.action));
        prop_assert_eq!(*slot == 0, winner.is_none());
        prop_assert_eq!(table.action(ActionDataId(*slot)), Some(&expected));
    }
    Ok(())
}

fn apply(step: Step, table: &mut Table, model: &mut Model) -> Result<(), TestCaseError> {
    let in_bytes = |model: &Model, matches: &[Number]| -> Vec<FieldMatch> {
        matches.iter().zip(&model.fields).map(|(number, field)| number.in_bytes(field.width)).collect()
    };
    let chosen = |model: &Model, which: usize| which.checked_rem(model.rows.len());
    match step {
        Step::Insert { raw, priority, action: call } => {
            let matches: Vec<Number> =
                model.fields.iter().zip(raw).map(|(&field, raw)| number(field, raw)).collect();
            let priority = if model.has_priorities() { priority } else { 0 };
            let spec = EntrySpec::new(in_bytes(model, &matches), action(call)).with_priority(priority);
            let result = table.insert(spec);
            if model.position(&matches, priority).is_some() {
                prop_assert_eq!(result, Err(TableError::Duplicate));
            } else if model.rows.len() == model.limit {
                prop_assert_eq!(result, Err(TableError::Full { limit: model.limit as u32 }));
            } else {
                let index = result.unwrap();
                prop_assert!(index.is_hit() && model.rows.iter().all(|row| row.index != index));
                model.rows.push(Row { matches, priority, index, action: call });
            }
        }
        Step::Remove { which } => {
            if let Some(at) = chosen(model, which) {
                let row = model.rows.remove(at);
                prop_assert_eq!(table.remove(row.index), Ok(()));
                prop_assert_eq!(table.remove(row.index), Err(TableError::NotFound));
            }
        }
        Step::RemoveByMatch { which } => {
            if let Some(at) = chosen(model, which) {
                let row = model.rows.remove(at);
                let matches = in_bytes(model, &row.matches);
                prop_assert_eq!(table.find(&matches, row.priority), Ok(row.index));
                prop_assert_eq!(table.remove(row.index), Ok(()));
                prop_assert_eq!(table.find(&matches, row.priority), Err(TableError::NotFound));
            }
        }
        Step::Modify { which, action: call } => {
            if let Some(at) = chosen(model, which) {
                let row = &mut model.rows[at];
                row.action = call;
                prop_assert_eq!(table.modify(row.index, EntryTarget::Action(action(call))), Ok(()));
            }
        }
        Step::Clear => {
            table.clear();
            model.rows.clear();
        }
    }
    Ok(())
}

fn agree(table: &Table, model: &Model, keys: &[Vec<u64>]) -> Result<(), TestCaseError> {
    let keys: Vec<Vec<u64>> = keys
        .iter()
        .map(|raw| raw.iter().zip(&model.fields).map(|(raw, field)| raw & ones(field.width)).collect())
        .collect();
    let packed: Vec<u8> = keys
        .iter()
        .flat_map(|key| key.iter().zip(&model.fields).flat_map(|(&number, field)| bytes(number, field.width)))
        .collect();
    let mut found = vec![EntryIndex::MISS; keys.len()];
    table.lookup(&packed, &mut found);
    for (key, found) in keys.iter().zip(found) {
        let winner = model.lookup(key);
        prop_assert_eq!(found, winner.map_or(EntryIndex::MISS, |row| row.index), "key {:?}", key);
        let expected = action(winner.map_or(0, |row| row.action));
        prop_assert_eq!(table.action_of(found), Some(&expected));
    }
    prop_assert_eq!(table.len() as usize, model.rows.len());
    prop_assert!(table.iter().map(|(index, _)| index).eq(model.rows.iter().map(|row| row.index)));
    let mut distinct: Vec<u32> = model.rows.iter().map(|row| row.action).collect();
    distinct.sort_unstable();
    distinct.dedup();
    prop_assert_eq!(table.distinct_actions(), distinct.len() + 1);
    Ok(())
}

fn keys() -> impl Strategy<Value = Vec<Vec<u64>>> {
    prop::collection::vec(prop::collection::vec(any::<u64>(), 4), 1..20)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 1..40)
}

const ALL_KINDS: &[MatchKind] =
    &[MatchKind::Exact, MatchKind::Lpm, MatchKind::Ternary, MatchKind::Range, MatchKind::Optional];

proptest! {
    #[test]
    fn exact(fields in fields(&[MatchKind::Exact]), limit in 1..30u32, steps in steps(), keys in keys()) {
        run(fields, limit, steps, keys)?;
    }

    #[test]
    fn longest_prefix(fields in lpm_fields(), limit in 1..30u32, steps in steps(), keys in keys()) {
        run(fields, limit, steps, keys)?;
    }

    #[test]
    fn by_priority(mut fields in fields(ALL_KINDS), limit in 1..30u32, steps in steps(), keys in keys()) {
        // One field that wants priorities, so that several lpm fields are allowed next to it.
        fields.push(KeyField { width: 2, kind: MatchKind::Ternary });
        run(fields, limit, steps, keys)?;
    }

    #[test]
    fn value_sets(fields in fields(ALL_KINDS), steps in steps(), keys in keys()) {
        let mut set = ValueSet::new(KeySchema::new(fields.clone()).unwrap(), 30).unwrap();
        let mut members: Vec<Vec<Number>> = Vec::new();
        for step in steps {
            if let Step::Insert { raw, .. } = step {
                let member: Vec<Number> = fields.iter().zip(raw).map(|(&field, raw)| number(field, raw)).collect();
                let matches: Vec<FieldMatch> =
                    member.iter().zip(&fields).map(|(number, field)| number.in_bytes(field.width)).collect();
                if set.insert(&matches).is_ok() {
                    members.push(member);
                }
            }
            for key in &keys {
                let key: Vec<u64> = key.iter().zip(&fields).map(|(raw, field)| raw & ones(field.width)).collect();
                let packed: Vec<u8> =
                    key.iter().zip(&fields).flat_map(|(&number, field)| bytes(number, field.width)).collect();
                let expected = members.iter().any(|member| {
                    member.iter().zip(&key).zip(&fields).all(|((m, &k), field)| m.matches(field.width, k))
                });
                prop_assert_eq!(set.contains(&packed), expected);
            }
        }
    }
}
