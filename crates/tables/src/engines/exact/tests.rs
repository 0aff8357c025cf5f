use super::*;
use crate::engines::checks::{self, StopOnDrop};
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

fn check(table: &Exact, model: &HashMap<Vec<u64>, u32>, domain: &Domain, keys: &[Vec<u64>]) {
    let worker = domain.worker();
    let expected: Vec<u32> = keys.iter().map(|key| model.get(key).copied().unwrap_or(0)).collect();
    checks::check(keys, &expected, |simd, keys, out| {
        ExactReader { simd, ..table.reader() }.lookup(&worker, keys, out)
    });
}

/// Steps and lines of the lookup of a key, step by step as a reader takes it.
fn taken(table: &Exact, key: &[u64]) -> (u32, u32) {
    let lines = table.lines.current();
    let (bucket, tag) = lines.place(key);
    let record = ((key.len() + 1) * 8).div_ceil(64) as u32;
    let (mut line, mut taken) = (bucket, (0, 0));
    loop {
        taken = (taken.0 + 1, taken.1 + 1);
        let control = lines.control(line);
        for slot in (0..line::SLOT_BITS).filter(|slot| control >> slot & 1 != 0) {
            match lines.kind() {
                Kind::Tags(_) if lines.tag(line, slot) == tag => {
                    taken = (taken.0 + 1, taken.1 + record);
                    let at = lines.found(line, slot) as usize * (key.len() + 1);
                    let kept = lines.records[at..].iter().map(|limb| limb.load(Ordering::Relaxed));
                    if key.iter().copied().eq(kept.take(key.len())) {
                        return taken;
                    }
                }
                Kind::Tags(_) => {}
                _ if lines.holds_key(line, slot, key) => return taken,
                _ => {}
            }
        }
        match lines.next(control) {
            Some(next) => line = next,
            None => return taken,
        }
    }
}

#[test]
fn no_lookup_takes_more_than_the_contract_says() {
    for limbs in [1usize, 2, 5] {
        let domain = Domain::new();
        let mut table = Exact::new(&domain, limbs, Simd::best()).unwrap();
        let key = |n: u64| -> Vec<u64> { (0..limbs as u64).map(|limb| n << limb).collect() };
        for n in 0..3000 {
            table.set(&key(n), 1 + n as u32).unwrap();
            if n % 3 == 0 {
                table.remove(&key(n / 2));
            }
            if n % 500 != 0 {
                continue;
            }
            let contract = table.contract();
            let most = (0..4000)
                .map(|n| taken(&table, &key(n)))
                .fold((0, 0), |most: (u32, u32), one| (most.0.max(one.0), most.1.max(one.1)));
            assert!(most.0 <= contract.probes && most.1 <= contract.lines, "{most:?} {contract:?}");
            // It is not far above: of narrow keys the longest bucket is met.
            assert!(limbs > 2 || most.0 + 1 >= contract.probes, "{most:?} {contract:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn lookups_agree_with_a_map_through_writes(
        limbs in 1usize..=16,
        writes in prop::collection::vec((any::<u8>(), any::<u8>(), prop::option::weighted(0.7, 1u32..)), 1..600),
        spread in 1u64..300,
        reading in any::<bool>(),
    ) {
        let domain = Domain::new();
        // A worker that never passes a quiescent point keeps all slots from being used again.
        let _worker = reading.then(|| domain.worker());
        let mut table = Exact::new(&domain, limbs, Simd::best()).unwrap();
        let mut model = HashMap::new();
        let mut keys = Vec::new();
        for (a, b, result) in writes {
            let mut key = vec![u64::from(a) % spread; limbs];
            key[limbs - 1] = (key[limbs - 1] << 40) | (u64::from(b) % 3);
            match result {
                Some(result) => {
                    table.set(&key, result).unwrap();
                    model.insert(key.clone(), result);
                }
                None => prop_assert_eq!(table.remove(&key), model.remove(&key).is_some()),
            }
            prop_assert_eq!(table.get(&key), model.get(&key).copied().unwrap_or(0));
            let mut near = key.clone();
            near[0] ^= 1 << 63;
            keys.extend([key, near, vec![0; limbs]]);
        }
        prop_assert_eq!(table.len(), model.len());
        check(&table, &model, &domain, &keys);
    }
}

#[test]
fn many_keys_fill_overflow_lines_and_stay() {
    for limbs in [1, 2, 5] {
        let domain = Domain::new();
        let mut table = Exact::new(&domain, limbs, Simd::best()).unwrap();
        let mut model = HashMap::new();
        let keys: Vec<Vec<u64>> =
            (0..20_000u64).map(|n| (0..limbs as u64).map(|limb| n << limb).collect()).collect();
        for (n, key) in (1..).zip(&keys) {
            table.set(key, n).unwrap();
            model.insert(key.clone(), n);
        }
        check(&table, &model, &domain, &keys);
        let bytes = table.memory_bytes();
        assert!(bytes < 20_000 * (50 + 24 * limbs), "{bytes} bytes for {limbs} limbs");
    }
}

#[test]
fn keys_of_another_width_and_result_zero_change_nothing() {
    let mut table = Exact::new(&Domain::new(), 2, Simd::best()).unwrap();
    table.set(&[1], 5).unwrap();
    table.set(&[1, 2], 0).unwrap();
    assert!(table.is_empty() && !table.remove(&[1]) && table.get(&[1]) == 0);
}

#[test]
fn readers_find_each_key_with_its_own_result_while_others_come_and_go() {
    for limbs in [1usize, 2, 3] {
        let domain = Domain::new();
        let mut table = Exact::new(&domain, limbs, Simd::best()).unwrap();
        let stop = AtomicBool::new(false);
        let key = |n: u64| vec![n; limbs];
        // Even keys stay, odd ones come and go; the result of n is n + 1 or n + 1001.
        (0..200).for_each(|n| table.set(&key(2 * n), 2 * n as u32 + 1).unwrap());
        std::thread::scope(|scope| {
            let _stop = StopOnDrop(&stop);
            for simd in Simd::all() {
                let (reader, domain, stop) = (ExactReader { simd, ..table.reader() }, &domain, &stop);
                scope.spawn(move || {
                    let mut worker = domain.worker();
                    let keys: Vec<u64> = (0..400u64).flat_map(|n| vec![n; limbs]).collect();
                    let mut out = vec![0; 400];
                    while !stop.load(Ordering::Relaxed) {
                        reader.lookup(&worker, &keys, &mut out);
                        for (n, &found) in out.iter().enumerate() {
                            let own = found as usize == n + 1 || found as usize == n + 1001;
                            assert!(own || found == 0 && n % 2 == 1, "{n} found {found}");
                        }
                        worker.quiescent();
                    }
                });
            }
            for round in 0..400u64 {
                for n in (1..400).step_by(2) {
                    let result = n as u32 + 1 + if round % 3 == 0 { 1000 } else { 0 };
                    table.set(&key(n), result).unwrap();
                    table.set(&key(n - 1), result - 1).unwrap();
                    if n % 5 == round % 5 || round % 7 == 0 {
                        table.remove(&key(n));
                    }
                }
            }
        });
    }
}

/// A worker that never rests keeps every slot that was taken out from being used again, so the table is built again
/// time and again, each time with other hashes, some of which are unlucky.
#[test]
fn keys_come_in_whatever_hashes_a_new_table_gets() {
    for limbs in [1usize, 2, 3] {
        let domain = Domain::new();
        let _worker = domain.worker();
        let mut table = Exact::new(&domain, limbs, Simd::best()).unwrap();
        for round in 0..2000u64 {
            for n in 0..400u64 {
                let key = vec![n; limbs];
                table.remove(&key);
                table.set(&key, (round + n) as u32 + 1).unwrap();
            }
        }
        assert_eq!(table.len(), 400);
        assert!((0..400).all(|n| table.get(&vec![n; limbs]) == 2000 + n as u32));
    }
}
