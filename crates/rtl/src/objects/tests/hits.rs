//! When an entry counts as hit: never earlier than a frame may have hit it.

use super::*;
use crate::driver::{Driver, SoftwareAccess};
use crate::objects::Synced;
use crate::stage::Unit;
use crate::units::Objects;
use millrace_pipeline::*;
use millrace_state::{Effects, EntryIndex, EntryWrite, State, Target};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;

/// A device whose accesses take 10 ns each, with the bits that frames have set.
struct Slow<'a> {
    hit: BTreeSet<u64>,
    now_ns: &'a Cell<u64>,
}

impl Slow<'_> {
    fn pass(&self) {
        self.now_ns.set(self.now_ns.get() + 10);
    }
}

impl SoftwareAccess for Slow<'_> {
    type Error = Infallible;

    fn write(&mut self, _port: usize, address: u64, word: &Bits) -> Result<(), Infallible> {
        self.pass();
        if word.is_zero() {
            self.hit.remove(&address);
        }
        Ok(())
    }

    fn read(&mut self, words: &[(usize, u64)]) -> Result<Vec<Bits>, Infallible> {
        self.pass();
        Ok(words.iter().map(|(_, address)| Bits::new(1, self.hit.contains(address).into())).collect())
    }

    fn use_bank(&mut self, _bank: bool) -> Result<(), Infallible> {
        Ok(())
    }
}

/// A program with a table whose entries have idle timeouts.
fn program() -> (Arc<Program>, TableId) {
    let mut b = ProgramBuilder::new("idle", "v1model");
    let key = b.metadata("meta.key", Type::Bits(8));
    let mut body = BodyBuilder::new("act", BodyKind::Action);
    body.end();
    let body = body.finish(&mut b).unwrap();
    let action = b.action("act", Vec::new(), body);
    let keys = vec![TableKey { name: "key".into(), value: Expr::Read(key), kind: MatchKind::Exact }];
    let actions = vec![TableAction { action, scope: ActionScope::Both }];
    let default = ActionCall { action: 0, args: Vec::new() };
    let table = b
        .program_mut()
        .tables
        .push(Table { idle_timeout: true, ..Table::new("ingress.t".into(), keys, actions, default, 8) });
    (Arc::new(b.finish()), table)
}

#[test]
fn an_entry_counts_as_hit_when_its_bit_was_set_back() {
    let (program, table) = program();
    let mut state = State::new(Arc::clone(&program)).unwrap();
    let add = |state: &State, key: u128, now_ns| {
        let matches = vec![EntryMatch::Exact(Bits::new(8, key))];
        let target = Target::Action(ActionCall { action: 0, args: Vec::new() });
        let entry = EntryWrite { matches, priority: 0, target, idle_timeout_ns: 1_000 };
        state.tables().insert(table, &entry, now_ns).unwrap()
    };
    let last = |state: &State, index: EntryIndex| state.tables().entry(table, index).unwrap().last_hit_ns;
    let kind = Kind::Register { width: 1, size: 9, initial: None, one_read: true };
    let unit = unit(ObjectKey::Hits(table), kind, &[Unit::Hit(table)], &[&[32]]);
    let mut driver = Driver::new([]).with([(0, Synced::new(unit))], None);
    let now_ns = Cell::new(0);
    let mut device = Slow { hit: BTreeSet::new(), now_ns: &now_ns };
    let mut effects = Effects::default();
    let mut read = |driver: &mut Driver, state: &mut State, device: &mut Slow<'_>| {
        let mut objects = Objects { state, now_ns: now_ns.get(), effects: &mut effects };
        driver.hit_unseen(&mut objects);
        driver.read_back(&mut objects, device, &|| now_ns.get()).unwrap();
    };

    // An entry is idle from when the device has it.
    let (one, two) = (add(&state, 1, 0), add(&state, 2, 0));
    now_ns.set(100);
    driver.update(&state, &mut device).unwrap();
    let had_ns = now_ns.get();
    read(&mut driver, &mut state, &mut device);
    assert!((last(&state, one), last(&state, two)) == (had_ns, had_ns) && had_ns >= 100);

    // The bit is read, then set back: what a frame did between the two is before the second.
    now_ns.set(1_000);
    device.hit.insert(one.0.into());
    read(&mut driver, &mut state, &mut device);
    assert_eq!((last(&state, one), last(&state, two)), (1_020, had_ns));
    assert!(device.hit.is_empty());
    read(&mut driver, &mut state, &mut device);
    assert_eq!(last(&state, one), 1_020);

    // A frame that comes before the bit is set back in hardware hits again.
    now_ns.set(2_000);
    device.hit.insert(one.0.into());
    read(&mut driver, &mut state, &mut device);
    device.hit.insert(one.0.into());
    read(&mut driver, &mut state, &mut device);
    assert_eq!(last(&state, one), 2_040);

    // An update that changes nothing is no hit; what happened while nobody looked may be one.
    now_ns.set(3_000);
    driver.update(&state, &mut device).unwrap();
    read(&mut driver, &mut state, &mut device);
    assert_eq!((last(&state, one), last(&state, two)), (2_040, had_ns));
    let three = add(&state, 3, 3_050);
    driver.forget();
    driver.update(&state, &mut device).unwrap();
    now_ns.set(4_000);
    read(&mut driver, &mut state, &mut device);
    assert_eq!([one, two, three].map(|index| last(&state, index)), [4_000; 3]);
}
