//! Units next to tables, under traffic: a key comes in each cycle, also while software writes, and each answer is that of the table before
//! the write or after it, as the bank says.

mod groups;
mod tools;

use super::hardware::hash_mask;
use super::*;
use crate::driver::{Driver, DriverError, SoftwareAccess};
use crate::stage::{LookupAnswer, Unit};
use crate::units::Objects;
use millrace_netlist::{Design, SignalId, Simulator};
use millrace_pipeline::arbitrary::Rng;
use millrace_pipeline::*;
use millrace_state::{Effects, EntryIndex, EntryWrite, GroupMember, MemberWrite, State, Target, WriteError};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

/// The one table of a program.
fn table() -> TableId {
    TableId::from_u32(0)
}

/// What a table is like.
#[derive(Clone)]
struct Shape {
    keys: Vec<(u32, MatchKind)>,
    size: u64,
    entries: Vec<TableEntry>,
    is_const: bool,
    counted: bool,
    /// Entries name members of an action profile.
    members: bool,
    /// They name groups of an action selector too: bits of its hash.
    groups: Option<u32>,
}

impl Shape {
    fn new(keys: &[(u32, MatchKind)], size: u64) -> Shape {
        Shape {
            keys: keys.to_vec(),
            size,
            entries: Vec::new(),
            is_const: false,
            counted: false,
            members: false,
            groups: None,
        }
    }

    /// A program with that table.
    fn program(&self) -> Arc<Program> {
        let mut b = ProgramBuilder::new("table", "v1model");
        let param = b.local("act.x", Type::Bits(24));
        let mut actions = Vec::new();
        for (name, params) in [("act", vec![param]), ("none", Vec::new()), ("other", Vec::new())] {
            let mut body = BodyBuilder::new(name, BodyKind::Action);
            body.end();
            let body = body.finish(&mut b).unwrap();
            actions.push(TableAction { action: b.action(name, params, body), scope: ActionScope::Both });
        }
        let fields: Vec<TableKey> = (self.keys.iter().enumerate())
            .map(|(at, (width, kind))| {
                let slot = b.metadata(&format!("meta.k{at}"), Type::Bits(*width));
                TableKey { name: format!("k{at}"), value: Expr::Read(slot), kind: *kind }
            })
            .collect();
        let selector = |width| Selector { algorithm: HashAlgorithm::Crc32, width, max_group_size: 0 };
        let members = Profile { name: "p".into(), size: 40, selector: self.groups.map(selector) };
        let profile = self.members.then(|| b.program_mut().profiles.push(members));
        b.program_mut().tables.push(Table {
            name: "t".into(),
            keys: fields,
            actions,
            default: call(0xdef),
            const_default: self.is_const,
            size: self.size,
            entries: self.entries.clone(),
            const_entries: self.is_const,
            profile,
            selector_inputs: Vec::new(),
            empty_group: self.groups.map(|_| call(0xe)),
            direct_counter: self.counted.then(|| DirectCounter {
                name: "c".into(),
                unit: millrace_pipeline::Unit::Packets,
                at_hit: true,
            }),
            direct_meter: None,
            idle_timeout: false,
        });
        let program = b.finish();
        assert_eq!(verify(&program), Ok(()));
        Arc::new(program)
    }
}

fn call(number: u64) -> ActionCall {
    ActionCall { action: 0, args: vec![Bits::new(24, u128::from(number))] }
}

/// A number of that width whose bits are mostly those of a few others, so that entries and keys meet.
fn value(rng: &mut Rng, width: u32) -> Bits {
    let bytes: Vec<u8> = (0..width.div_ceil(8)).map(|_| [0, 0xff, 0x5a, 0x81][rng.below(4)]).collect();
    let near = Bits::new(width, rng.below(8) as u128);
    Bits::from_bytes(width, &bytes).xor(&near)
}

fn matches(rng: &mut Rng, keys: &[(u32, MatchKind)]) -> Vec<EntryMatch> {
    let one = |(width, kind): &(u32, MatchKind)| {
        let (a, b) = (value(rng, *width), value(rng, *width));
        match kind {
            MatchKind::Exact => EntryMatch::Exact(a),
            MatchKind::Lpm => {
                let length = rng.below(*width as usize + 1) as u32;
                EntryMatch::Lpm(a.and(&Bits::ones(*width).shl_by(u64::from(width - length))), length)
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

/// A key that an entry matches.
fn key_of(entry: &[EntryMatch]) -> Vec<Bits> {
    let one = |field: &EntryMatch| match field {
        EntryMatch::Exact(value) | EntryMatch::Lpm(value, _) | EntryMatch::Ternary(value, _) => value.clone(),
        EntryMatch::Range(low, _) => low.clone(),
        EntryMatch::Optional(value) => value.clone().unwrap_or_else(|| Bits::zero(1)),
    };
    entry.iter().map(one).collect()
}

/// A table and its unit.
struct Bench {
    program: Arc<Program>,
    state: State,
    driver: Driver,
    wires: Wires,
    rng: Rng,
    priorities: bool,
    next: u64,
    numbers: Numbers,
}

/// The unit, with a key in each cycle.
struct Wires {
    sim: Simulator,
    key: Option<SignalId>,
    /// The selector's hash, which is the last part of a key here, and its bits.
    hash: Option<(SignalId, u32)>,
    bank: Option<SignalId>,
    write: Option<[SignalId; 3]>,
    answer: SignalId,
    latency: usize,
    width: u32,
    /// Keys with their answers before and after a write.
    keys: Vec<(Bits, Bits, Bits)>,
    /// Whether frames meet the table as it is after the write.
    after: bool,
    at: usize,
    expected: VecDeque<(Bits, Bits)>,
    checked: u64,
    hits: u64,
}

impl Wires {
    fn cycle(&mut self) {
        if let Some((key, before, after)) = self.keys.get(self.at % self.keys.len().max(1)) {
            let low = self.hash.map_or(0, |(_, width)| width);
            if let Some(port) = self.key {
                self.sim.set(port, &key.slice(key.width() - 1, low));
            }
            if let Some((port, width)) = self.hash {
                self.sim.set(port, &key.slice(width - 1, 0));
            }
            let wanted = if self.after { after } else { before };
            self.expected.push_back((key.clone(), wanted.clone()));
        }
        self.at += 1;
        self.sim.step();
        if self.expected.len() >= self.latency
            && let Some((key, wanted)) = self.expected.pop_front()
        {
            assert_eq!(self.sim.get(self.answer), wanted, "key {key:?}, cycle {}", self.at);
            self.checked += 1;
            self.hits += u64::from(wanted.bit(LookupAnswer::HIT));
        }
    }
}

impl SoftwareAccess for Wires {
    type Error = Infallible;

    fn write(&mut self, _: usize, address: u64, word: &Bits) -> Result<(), Infallible> {
        let [enable, at, data] = self.write.expect("a unit with words");
        self.sim.set_u64(enable, 1);
        self.sim.set_u64(at, address);
        self.sim.set(data, word);
        self.cycle();
        self.sim.set_u64(enable, 0);
        Ok(())
    }

    fn read(&mut self, words: &[(usize, u64)]) -> Result<Vec<Bits>, Infallible> {
        unreachable!("a table has no words to read: {words:?}")
    }

    fn use_bank(&mut self, bank: bool) -> Result<(), Infallible> {
        self.sim.set_u64(self.bank.expect("a unit with words"), bank.into());
        self.after = true;
        (0..=self.latency).for_each(|_| self.cycle());
        Ok(())
    }
}

impl Bench {
    fn new(shape: &Shape, capacity: Option<u64>) -> Bench {
        let program = shape.program();
        let unit = TableUnit::of(&program, table(), |_| capacity).unwrap();
        let mut design = Design::new();
        design.add(unit.module(&program, "t"));
        let sim = Simulator::new(&design).unwrap();
        let state = State::new(Arc::clone(&program)).unwrap();
        if let Some(capacity) = unit.capacity() {
            state.tables().set_capacity(table(), capacity as u32);
        }
        let write = ["write_enable", "write_address", "write_data"].map(|name| sim.input(name));
        let write = if let [Some(enable), Some(address), Some(data)] = write {
            Some([enable, address, data])
        } else {
            None
        };
        let wires = Wires {
            key: sim.input("key"),
            hash: unit.choice.map(|choice| (sim.input("hash").unwrap(), choice.hash)),
            bank: sim.input("bank"),
            write,
            answer: sim.output("answer").unwrap(),
            latency: unit.latency() as usize,
            width: unit.answer,
            sim,
            keys: Vec::new(),
            after: false,
            at: 0,
            expected: VecDeque::new(),
            checked: 0,
            hits: 0,
        };
        let priorities = state.needs_priority(table());
        let (rng, driver) = (Rng::new(shape.size), Driver::new([(0, unit)]));
        let numbers = Numbers::default();
        let mut bench = Bench { program, state, driver, wires, rng, priorities, next: 0, numbers };
        bench.number();
        // What the program has when it starts, before the first frame.
        bench.driver.update(&bench.state, &mut bench.wires).unwrap();
        bench
    }

    fn unit(&self) -> TableUnit {
        self.driver.units().next().unwrap().clone()
    }

    /// Gives entries the numbers that the next update gives them.
    fn number(&mut self) {
        let capacity = self.unit().capacity().unwrap_or(0);
        self.numbers.update(self.state.tables().entries(table()).map(|entry| entry.index), capacity);
    }

    fn insert(&mut self, matches: Vec<EntryMatch>) -> Result<EntryIndex, WriteError> {
        self.next += 1;
        let priority = if self.priorities { 1 + self.rng.below(9) as u32 } else { 0 };
        let target = Target::Action(call(self.next));
        let entry = EntryWrite { matches, priority, target, idle_timeout_ns: 0 };
        self.state.tables().insert(table(), &entry, 0)
    }

    fn lookup(&mut self, key: &[Bits]) -> Bits {
        let asked: Vec<(Bits, Type)> =
            key.iter().map(|bits| (bits.clone(), Type::Bits(bits.width()))).collect();
        let mut effects = Effects::default();
        let mut objects = Objects { state: &mut self.state, now_ns: 0, effects: &mut effects };
        let answer = objects.access(&Unit::Lookup(table()), &asked, self.wires.width).unwrap();
        // Units keep the number of an entry only where it is asked for, and software knows an entry by another one.
        let (last, first) = (LookupAnswer::DATA - 1, LookupAnswer::ENTRY);
        let entry = EntryIndex(answer.slice(last, first).to_u64_saturating() as u32);
        let number = match (self.unit().stored.entry, self.unit().capacity()) {
            (0, _) => 0,
            (_, None) => entry.0,
            (_, Some(_)) => self.numbers.number(entry),
        };
        answer.with_slice(last, first, &Bits::new(32, number.into()))
    }

    /// Has software do `writes`, and writes them to the unit under traffic of random keys and of keys that entries match.
    fn write(&mut self, writes: impl FnOnce(&mut Bench)) {
        let fields = self.shape_keys().into_iter().map(|(width, _)| width);
        let hash = self.unit().choice.map(|choice| choice.hash);
        let widths: Vec<u32> = fields.chain(hash).collect();
        let mut keys: Vec<Vec<Bits>> =
            (0..30).map(|_| widths.iter().map(|width| value(&mut self.rng, *width)).collect()).collect();
        let pick = |bench: &mut Bench, keys: &mut Vec<Vec<Bits>>| {
            let entries: Vec<_> = bench.state.tables().entries(table()).collect();
            for _ in 0..30.min(entries.len()) {
                let mut key = key_of(&entries[bench.rng.below(entries.len())].matches);
                key.extend(hash.map(|width| value(&mut bench.rng, width)));
                keys.push(key.iter().zip(&widths).map(|(bits, width)| bits.zero_extend(*width)).collect());
            }
        };
        pick(self, &mut keys);
        let mut before: Vec<(Vec<Bits>, Bits)> = Vec::new();
        for key in &keys {
            before.push((key.clone(), self.lookup(key)));
        }
        writes(self);
        self.number();
        let mut more = Vec::new();
        pick(self, &mut more);
        let after = |(key, before): (Vec<Bits>, Bits)| (whole(&key), before, self.lookup(&key));
        let keys: Vec<(Bits, Bits, Bits)> = before.into_iter().map(after).collect();
        self.wires.keys = keys;
        self.wires.after = false;
        self.driver.update(&self.state, &mut self.wires).unwrap();
        // Now also the keys of new entries.
        (0..self.wires.keys.len()).for_each(|_| self.wires.cycle());
        let answered = |key: Vec<Bits>| (whole(&key), self.lookup(&key));
        let more: Vec<(Bits, Bits)> = more.into_iter().map(answered).collect();
        self.wires.after = true;
        if !more.is_empty() {
            self.wires.keys = more.into_iter().map(|(key, answer)| (key, answer.clone(), answer)).collect();
            (0..2 * self.wires.keys.len()).for_each(|_| self.wires.cycle());
        }
    }

    fn count(&self) -> u64 {
        self.state.tables().entry_count(table()).into()
    }

    /// Adds so many entries that are not there yet.
    fn add(&mut self, count: u64) {
        self.fill(self.count() + count);
    }

    /// Adds entries until there are so many.
    fn fill(&mut self, end: u64) {
        while self.count() < end {
            let keys = self.shape_keys();
            let matches = matches(&mut self.rng, &keys);
            let _ = self.insert(matches);
        }
    }

    fn shape_keys(&self) -> Vec<(u32, MatchKind)> {
        self.unit().fields
    }

    /// Removes some entries, changes some, adds some, and sometimes the default action, all at once.
    fn change(&mut self, most: u64) {
        let entries: Vec<_> = self.state.tables().entries(table()).collect();
        let mut gone = 0;
        for entry in &entries {
            match self.rng.below(8) {
                0 => {
                    self.state.tables().remove(table(), entry.index).unwrap();
                    gone += 1;
                }
                1 | 2 => {
                    self.next += 1;
                    let action = self.rng.below(3);
                    let call =
                        if action == 0 { call(self.next) } else { ActionCall { action, args: Vec::new() } };
                    self.state.tables().modify(table(), entry.index, &Target::Action(call)).unwrap();
                }
                _ => {}
            }
        }
        let room = most - (entries.len() as u64 - gone);
        self.add(room.min(gone + 1));
        if self.rng.one_in(3) {
            self.next += 1;
            self.state.tables().set_default(table(), &call(self.next)).unwrap();
        }
    }
}

/// The fields of a key as one.
fn whole(key: &[Bits]) -> Bits {
    key.iter().cloned().reduce(|high, low| high.concat(&low)).unwrap_or(Bits::zero(1))
}

/// Fills a unit up, changes entries when it is half full and when it is full, and empties it; gives the bench.
fn exercise(keys: &[(u32, MatchKind)], entries: u64, kind: &str) -> Bench {
    let mut bench = Bench::new(
        &Shape { counted: entries.is_multiple_of(2), ..Shape::new(keys, 2 * entries) },
        Some(entries),
    );
    assert_eq!((bench.unit().kind.name(), bench.unit().capacity()), (kind, Some(entries)), "{keys:?}");
    bench.write(|_| ());
    bench.write(|bench| bench.add(1));
    bench.write(|bench| bench.add((entries / 2).saturating_sub(1)));
    bench.write(|bench| bench.change(entries));
    bench.write(|bench| bench.fill(entries));
    bench.write(|bench| bench.change(entries));
    bench.write(|bench| bench.fill(entries));
    // One more is refused, and nothing changes.
    let fields = bench.shape_keys();
    let before = bench.state.tables().revision(table());
    let refused = loop {
        let matches = matches(&mut bench.rng, &fields);
        match bench.insert(matches).unwrap_err() {
            WriteError::Table(millrace_state::TableError::Duplicate) => {}
            other => break other,
        }
    };
    assert!(matches!(refused, WriteError::Table(millrace_state::TableError::Full { .. })), "{refused}");
    assert!(bench.state.tables().revision(table()) >= before);
    bench.write(|_| ());
    bench.write(|bench| bench.state.tables().clear(table()));
    bench.write(|bench| bench.add(3.min(entries)));
    let hits = if entries == 1 { 5 } else { 50 };
    assert!(bench.wires.checked > 200 && bench.wires.hits > hits, "{keys:?}: {} hits", bench.wires.hits);
    assert_eq!(bench.wires.sim.collisions(), 0, "{keys:?}");
    bench
}

#[test]
fn units_answer_what_tables_answer() {
    use MatchKind::*;
    for (keys, entries, kind) in [
        (vec![(48, Exact), (9, Exact)], 300, "hash"),
        (vec![(128, Exact)], 33, "hash"),
        (vec![(12, Exact)], 7, "hash"),
        (vec![(32, Lpm)], 100, "tree"),
        (vec![(128, Lpm)], 90, "tree"),
        (vec![(12, Exact), (32, Lpm), (5, Exact)], 80, "tree"),
        (vec![(4, Exact), (16, Range)], 70, "tree"),
        (vec![(32, Lpm)], 40, "small tcam"),
        (vec![(16, Ternary)], 1, "small tcam"),
        (vec![(16, Ternary), (12, Lpm), (9, Range), (13, Range)], 50, "small tcam"),
        (vec![(12, Range), (8, Optional)], 64, "small tcam"),
        (vec![(128, Ternary)], 40, "small tcam"),
        (vec![(16, Ternary), (20, Range), (8, Exact), (8, Range)], 70, "tcam"),
        (vec![(11, Ternary), (32, Lpm)], 65, "tcam"),
    ] {
        exercise(&keys, entries, kind);
    }
}

/// A word for each key.
#[test]
fn short_keys_are_addresses() {
    let shape = Shape::new(&[(3, MatchKind::Exact), (4, MatchKind::Exact)], 128);
    let mut bench = Bench::new(&shape, None);
    assert_eq!(bench.unit().kind, Kind::Direct);
    for count in [1, 20, 40] {
        bench.write(|bench| bench.add(count));
        bench.write(|bench| bench.change(128));
    }
    assert!(bench.wires.hits > 50);
}

/// Nine of ten words of a unit with hashes are in use, one key after the other.
#[test]
fn hash_units_fill_up() {
    let shape = Shape::new(&[(40, MatchKind::Exact)], 2000);
    let mut bench = Bench::new(&shape, Some(921));
    assert_eq!(bench.unit().kind, Kind::Hash { memories: 4, bits: 8, entries: 921 });
    for from in (0..921_u64).step_by(100) {
        bench.write(|bench| {
            for number in from..921.min(from + 100) {
                let mixed = u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                bench.insert(vec![EntryMatch::Exact(Bits::new(40, mixed))]).unwrap();
            }
        });
    }
    assert!(bench.wires.hits > 300, "{}", bench.wires.hits);
}

/// Keys that all have the same places in all memories, for the seed that a unit starts with.
#[test]
fn keys_that_meet_everywhere_fill_a_unit_too() {
    let shape = Shape::new(&[(48, MatchKind::Exact)], 200);
    let mut bench = Bench::new(&shape, Some(64));
    let Kind::Hash { memories, bits, .. } = bench.unit().kind else { panic!("{:?}", bench.unit()) };
    // The rows of all hashes, brought to a form in which each has a bit that no other has; keys that are 0 under all rows meet.
    let mut rows: Vec<(u64, u32)> = Vec::new();
    for (way, bit) in (0..memories).flat_map(|way| (0..bits).map(move |bit| (way, bit))) {
        let mut row = hash_mask(48, way, bit).to_u64().unwrap();
        for (other, lead) in &rows {
            if row >> lead & 1 == 1 {
                row ^= other;
            }
        }
        if row != 0 {
            let lead = row.trailing_zeros();
            rows.iter_mut().filter(|(other, _)| other >> lead & 1 == 1).for_each(|(other, _)| *other ^= row);
            rows.push((row, lead));
        }
    }
    let free: Vec<u32> = (0..48).filter(|bit| rows.iter().all(|(_, lead)| lead != bit)).collect();
    let basis: Vec<u64> = (free[..6].iter())
        .map(|bit| {
            rows.iter()
                .filter(|(row, _)| row >> bit & 1 == 1)
                .fold(1 << bit, |key, (_, lead)| key | 1 << lead)
        })
        .collect();
    let key = |number: u32| {
        (0..6).filter(|bit| number >> bit & 1 == 1).fold(0, |key, bit| key ^ basis[bit as usize])
    };
    for from in [0, 9, 10, 30] {
        let to = if from == 30 { 64 } else { [9, 10, 30][(from > 8) as usize + (from > 9) as usize] };
        bench.write(|bench| {
            for number in from..to {
                bench.insert(vec![EntryMatch::Exact(Bits::new(48, key(number).into()))]).unwrap();
            }
        });
    }
    assert!(bench.wires.hits > 100);
}

/// Prefixes inside each other, of all lengths, and next to each other, as many as fit: the most intervals.
#[test]
fn trees_hold_the_worst_prefixes() {
    for (width, entries) in [(32, 512), (128, 256)] {
        let shape = Shape::new(&[(width, MatchKind::Lpm)], 1000);
        let mut bench = Bench::new(&shape, Some(entries));
        bench.write(|bench| {
            let ones = Bits::ones(width);
            for length in 0..=width {
                let mask = ones.shl_by(u64::from(width - length));
                bench.insert(vec![EntryMatch::Lpm(Bits::new(width, 0x55).and(&mask), length)]).unwrap();
            }
            // Every other address of a block: none touches the next.
            let mut number = 0;
            while u64::from(bench.state.tables().entry_count(table())) < entries {
                number += 2;
                let key = Bits::new(width, 0x5000 + number);
                bench.insert(vec![EntryMatch::Lpm(key, width)]).unwrap();
            }
        });
        bench.write(|bench| bench.change(entries));
        assert!(bench.wires.hits > 50);
    }
}

#[test]
fn const_entries_are_logic() {
    use MatchKind::*;
    for (keys, is_const) in
        [(vec![(9, Ternary), (8, Range)], true), (vec![(32, Lpm)], true), (vec![(48, Exact)], false)]
    {
        let mut rng = Rng::new(5);
        let mut shape = Shape { is_const, counted: true, ..Shape::new(&keys, 64) };
        for number in 0..20 {
            let entry =
                TableEntry { matches: matches(&mut rng, &keys), priority: 0, call: call(number), is_const };
            let mut entry = entry;
            if keys.iter().any(|(_, kind)| !matches!(kind, Exact | Lpm)) {
                entry.priority = 1 + rng.below(5) as u32;
            }
            if shape.entries.iter().all(|other| other.matches != entry.matches) {
                shape.entries.push(entry);
            }
        }
        let mut bench = Bench::new(&shape, None);
        assert_eq!(bench.unit().kind == Kind::Constant, is_const, "{keys:?}");
        for _ in 0..5 {
            bench.write(|_| ());
        }
        assert!(bench.wires.hits > 20 && bench.wires.checked > 100);
        // Nothing is left for software to write.
        assert_eq!(bench.unit().software_port(&bench.program).is_none(), is_const);
    }
}

#[test]
fn what_does_not_fit_is_said() {
    let shape = Shape::new(&[(16, MatchKind::Ternary)], 8);
    let program = shape.program();
    let unit = TableUnit::of(&program, table(), |_| Some(2)).unwrap();
    let state = State::new(program).unwrap();
    for number in 0..3 {
        let matches = vec![EntryMatch::Ternary(Bits::new(16, number), Bits::ones(16))];
        let entry = EntryWrite { matches, priority: 1, target: Target::Action(call(1)), idle_timeout_ns: 0 };
        state.tables().insert(table(), &entry, 0).unwrap();
    }
    let mut contents = Contents::new(unit);
    let full = contents.update_from(&state).unwrap_err();
    assert_eq!((full.entries, full.capacity), (3, 2));
    assert!(full.to_string().contains("--capacity t=N"), "{full}");
    assert!(contents.take_changes().is_empty());
    state.tables().clear(table());
    contents.update_from(&state).unwrap();
}

/// After an error of the device all words are written again.
#[test]
fn a_device_that_came_back_gets_all_words() {
    /// The words that a device holds, and how many more it takes.
    struct Fails(std::collections::BTreeMap<u64, Bits>, usize);
    impl SoftwareAccess for Fails {
        type Error = &'static str;
        fn write(&mut self, _: usize, address: u64, word: &Bits) -> Result<(), &'static str> {
            self.1 = self.1.checked_sub(1).ok_or("gone")?;
            self.0.insert(address, word.clone());
            Ok(())
        }
        fn read(&mut self, words: &[(usize, u64)]) -> Result<Vec<Bits>, &'static str> {
            unreachable!("a table has no words to read: {words:?}")
        }
        fn use_bank(&mut self, _: bool) -> Result<(), &'static str> {
            Ok(())
        }
    }
    let program = Shape::new(&[(32, MatchKind::Exact)], 100).program();
    let unit = TableUnit::of(&program, table(), |_| None).unwrap();
    let state = State::new(Arc::clone(&program)).unwrap();
    let mut bench = Driver::new([(0, unit.clone())]);
    let entry = |number| EntryWrite {
        matches: vec![EntryMatch::Exact(Bits::new(32, number))],
        priority: 0,
        target: Target::Action(call(7)),
        idle_timeout_ns: 0,
    };
    (0..50).for_each(|number| _ = state.tables().insert(table(), &entry(number), 0).unwrap());
    let mut device = Fails(std::collections::BTreeMap::new(), 20);
    assert_eq!(bench.update(&state, &mut device), Err(DriverError::Device("gone")));
    let mut device = Fails(std::collections::BTreeMap::new(), 1 << 20);
    assert_eq!(bench.update(&state, &mut device), Ok(true));
    let all: u64 = unit.areas().iter().map(|area| 2 * u64::from(area.words)).sum();
    assert_eq!(device.0.len() as u64, all);
    assert_eq!(bench.update(&state, &mut device), Ok(false));
    let there = device.0.values().filter(|word| word.width() > 50 && word.bit(word.width() - 1)).count();
    assert_eq!(there, 2 * 50);
}
