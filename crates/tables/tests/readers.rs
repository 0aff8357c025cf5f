//! Workers look up while control writes: each lookup gives what was there before a change or after it, and nothing else.

use millrace_tables::engines::Domain;
use millrace_tables::{
    ActionCall, CounterKind, EntrySpec, EntryTarget, FieldMatch, KeyField, KeySchema, MatchKind,
    RecordLayout, Table, TableSpec,
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Values that are written below one prefix or key have this number in their upper half; the parent's is 0.
fn value(at: u32, round: u32) -> ActionCall {
    ActionCall::new(0, ((at + 1) << 16 | (round & 0xffff)).to_be_bytes())
}

/// A table of one field, with entries for `at` below a parent that stays, in which control changes entries while two
/// workers look up.
fn run(width: u32, kind: MatchKind, counter: Option<CounterKind>, rounds: u32) {
    let domain = Domain::new();
    let schema = KeySchema::new(vec![KeyField { width, kind }]).unwrap();
    let spec = TableSpec {
        counter,
        records: RecordLayout::new(&[vec![32]]),
        ..TableSpec::new(schema, 512, ActionCall::new(0, [0; 4]))
    };
    let mut table = Table::new(spec, &domain).unwrap();
    let field = |at: u32| {
        // Three bytes from the top, so that there is room for longer prefixes; small keys have no more.
        let bytes = (width / 8) as usize;
        let mut key = vec![0; bytes];
        key[bytes.min(3) - 1] = at as u8;
        key
    };
    let matches = |at: u32| match kind {
        MatchKind::Lpm => {
            vec![FieldMatch::Lpm { value: field(at), prefix_len: if at.is_multiple_of(2) { 24 } else { 27 } }]
        }
        _ => vec![FieldMatch::Exact(field(at))],
    };
    if kind == MatchKind::Lpm {
        let parent = vec![FieldMatch::Lpm { value: vec![0; (width / 8) as usize], prefix_len: 8 }];
        table.insert(EntrySpec::new(parent, ActionCall::new(0, [0; 4]))).unwrap();
    }
    table.commit().unwrap();

    let (stop, batches, found) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let (reader, mut worker) = (table.reader().clone(), domain.worker());
            let (stop, batches, found) = (&stop, &batches, &found);
            scope.spawn(move || {
                let limbs = reader.limbs();
                let keys: Vec<u64> = (0..64u32)
                    .flat_map(|at| {
                        let mut bytes = vec![0u8; limbs * 8];
                        let key = field(at);
                        let start = bytes.len() - key.len();
                        bytes[start..].copy_from_slice(&key);
                        let limb =
                            |chunk: &[u8]| chunk.iter().fold(0, |limb, byte| limb << 8 | u64::from(*byte));
                        bytes.rchunks(8).map(limb).collect::<Vec<u64>>()
                    })
                    .collect();
                let mut results = [0; 64];
                while !stop.load(Ordering::Relaxed) {
                    worker.quiescent();
                    let records = reader.records(&worker);
                    reader.lookup(&worker, &keys, &mut results);
                    reader.slots(&mut results);
                    for (at, slot) in results.iter().enumerate() {
                        // SAFETY: a record of 8 bytes, the action and its argument; it stays until the next quiescent
                        // point.
                        let record = unsafe {
                            records.cast::<u32>().add(*slot as usize * 2).cast::<[u32; 2]>().read()
                        };
                        assert_eq!(record[0], 0, "an action that nobody wrote");
                        // Arguments of whole bytes lie in network order.
                        let value = u32::from_be(record[1]);
                        let of = value >> 16;
                        assert!(of == 0 || of == at as u32 + 1, "key {at} meets the value {value:x}");
                        found.fetch_add(u64::from(of != 0), Ordering::Relaxed);
                    }
                    batches.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for round in 0..rounds {
            let at = round * 37 % 64;
            match table.find(&matches(at), 0) {
                Ok(index) if round % 3 == 0 => table.remove(index).unwrap(),
                Ok(index) => table.modify(index, EntryTarget::Action(value(at, round))).unwrap(),
                Err(_) => {
                    table.insert(EntrySpec::new(matches(at), value(at, round))).unwrap();
                }
            }
            table.commit().unwrap();
            if round % 64 == 0 {
                table.set_default(ActionCall::new(0, [0, 0, 0, 1])).unwrap();
                // So that workers take part on one core too.
                domain.wait();
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(batches.into_inner() > 0 && found.into_inner() > 0);
}

#[test]
fn short_prefixes() {
    run(32, MatchKind::Lpm, None, 20_000);
    run(32, MatchKind::Lpm, Some(CounterKind::Both), 20_000);
}

#[test]
fn long_prefixes() {
    run(128, MatchKind::Lpm, None, 4_000);
    run(128, MatchKind::Lpm, Some(CounterKind::Both), 4_000);
}

#[test]
fn exact_keys() {
    for width in [16, 48, 128, 256] {
        run(width, MatchKind::Exact, None, 10_000);
        run(width, MatchKind::Exact, Some(CounterKind::Both), 10_000);
    }
}
