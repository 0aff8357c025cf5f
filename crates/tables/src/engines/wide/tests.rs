use super::*;
use crate::engines::checks::{self, StopOnDrop};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

/// Routes as a list: bits of the prefix, most significant first, and their results.
#[derive(Default)]
struct Model {
    bits: u32,
    routes: BTreeMap<Vec<bool>, u32>,
}

impl Model {
    fn key_bits(&self, key: &[u64]) -> Vec<bool> {
        (0..self.bits).rev().map(|bit| key[bit as usize / 64] >> (bit % 64) & 1 != 0).collect()
    }

    fn find(&self, key: &[u64]) -> u32 {
        let bits = self.key_bits(key);
        (0..=bits.len()).rev().find_map(|len| self.routes.get(&bits[..len]).copied()).unwrap_or(0)
    }
}

fn check(model: &Model, table: &WideLpm, keys: &[Vec<u64>]) {
    let worker = table.domain.worker();
    let expected: Vec<u32> = keys.iter().map(|key| model.find(key)).collect();
    checks::check(keys, &expected, |simd, keys, out| {
        WideLpmReader { simd, ..table.reader() }.lookup(&worker, keys, out)
    });
}

/// A key of few distinct values, so that prefixes nest.
fn key(bits: u32, seed: (u8, u8, u8)) -> Vec<u64> {
    let limbs = bits.div_ceil(64) as usize;
    let mut key: Vec<u64> = (0..limbs as u64)
        .map(|limb| {
            (u64::from(seed.0 % 3) << 60 ^ u64::from(seed.1 % 16) << 20 ^ u64::from(seed.2 % 4))
                * (limb % 2 + 1)
        })
        .collect();
    key[limbs - 1] ^= u64::from(seed.1 % 8) << 37 ^ u64::from(seed.2) << 28;
    if !bits.is_multiple_of(64) {
        key[limbs - 1] &= (1 << (bits % 64)) - 1;
    }
    key
}

fn neighbours(key: &[u64], bits: u32, len: u32) -> Vec<Vec<u64>> {
    let mut result = vec![key.to_vec()];
    for bit in [0, bits - 1, bits.saturating_sub(len).min(bits - 1), (bits - len).saturating_sub(1)] {
        let mut other = key.to_vec();
        other[bit as usize / 64] ^= 1 << (bit % 64);
        result.push(other);
    }
    let mut low = key.to_vec();
    (0..bits - len).for_each(|bit| low[bit as usize / 64] &= !(1 << (bit % 64)));
    let mut high = key.to_vec();
    (0..bits - len).for_each(|bit| high[bit as usize / 64] |= 1 << (bit % 64));
    result.extend([low, high]);
    result
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn lookups_agree_with_the_list_through_writes(
        bits in prop_oneof![Just(128u32), Just(64), Just(48), Just(33), Just(100), Just(200), Just(1), Just(1024)],
        writes in prop::collection::vec(
            (any::<(u8, u8, u8)>(), any::<u32>(), prop::option::weighted(0.7, 1u32..1 << 30)), 1..250),
        commit_each in any::<bool>(),
    ) {
        let mut table = WideLpm::new(&Domain::new(), bits, 1000, Simd::best()).unwrap();
        let mut model = Model { bits, ..Model::default() };
        let mut keys = Vec::new();
        for (seed, len, result) in writes {
            // Lengths near the ends of digits more often than not.
            let len = if len % 3 == 0 { len % (bits + 1) } else { (len / 8 % 6 * 16 + len % 5).min(bits) };
            let key = key(bits, seed);
            let prefix = model.key_bits(&key)[..len as usize].to_vec();
            match result {
                Some(result) => {
                    table.set(&key, len, result).unwrap();
                    model.routes.insert(prefix, result);
                }
                None => prop_assert_eq!(table.remove(&key, len), model.routes.remove(&prefix).is_some()),
            }
            if commit_each {
                table.commit().unwrap();
            }
            keys.extend(neighbours(&key, bits, len));
        }
        table.commit().unwrap();
        prop_assert_eq!(table.len(), model.routes.len());
        check(&model, &table, &keys);
    }
}

/// Numbers without a pattern.
fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed ^ *seed >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[test]
fn large_tables_split_and_still_agree() {
    // A few dense blocks, so that arrays lie below arrays and both kinds of inner nodes are used.
    let domain = Domain::new();
    let mut table = WideLpm::new(&domain, 128, 100_000, Simd::best()).unwrap();
    let mut model = Model { bits: 128, ..Model::default() };
    let (mut seed, mut routes) = (1, Vec::new());
    for n in 0..60_000u32 {
        let block = [0x2001_0db8u64 << 32, 0x2a00 << 48, 0xfe80 << 48][random(&mut seed) as usize % 3];
        let spread = [0u32, 8, 16, 30][random(&mut seed) as usize % 4];
        let key = vec![random(&mut seed) & 3, block | random(&mut seed) >> 32 >> spread];
        let len = [32, 33, 40, 48, 52, 60, 64, 64, 70, 128][random(&mut seed) as usize % 10];
        table.set(&key, len, n + 1).unwrap();
        model.routes.insert(model.key_bits(&key)[..len as usize].to_vec(), n + 1);
        routes.push((key, len));
        if n % 9_999 == 0 {
            table.commit().unwrap();
        }
    }
    table.commit().unwrap();
    let keys: Vec<Vec<u64>> =
        routes.iter().step_by(7).flat_map(|(key, len)| neighbours(key, 128, *len)).collect();
    check(&model, &table, &keys);

    table.set(&[0, 0], 0, 77).unwrap();
    table.set(&[0, 0x2001 << 48], 16, 78).unwrap();
    model.routes.insert(vec![], 77);
    model.routes.insert(model.key_bits(&[0, 0x2001 << 48])[..16].to_vec(), 78);
    for (key, len) in routes.iter().step_by(2) {
        table.remove(key, *len);
        model.routes.remove(&model.key_bits(key)[..*len as usize]);
    }
    table.commit().unwrap();
    check(&model, &table, &keys);
    for (key, len) in &routes {
        table.remove(key, *len);
    }
    table.commit().unwrap();
    assert_eq!(table.len(), 2);
    check(
        &Model {
            routes: model.routes.into_iter().filter(|(prefix, _)| prefix.len() < 17).collect(),
            bits: 128,
        },
        &table,
        &keys,
    );
}

#[test]
fn readers_meet_results_of_their_own_prefix_while_routes_change() {
    let domain = Domain::new();
    let mut table = WideLpm::new(&domain, 128, 1000, Simd::best()).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let key = |n: u64| [n, 0x2001_0db8_0000_0000 | n << 8];
    table.set(&key(0), 32, 1).unwrap();
    table.commit().unwrap();
    std::thread::scope(|scope| {
        let _stop = StopOnDrop(&stop);
        for simd in Simd::all() {
            let (reader, domain, stop) = (WideLpmReader { simd, ..table.reader() }, &domain, &stop);
            scope.spawn(move || {
                let mut worker = domain.worker();
                let keys: Vec<u64> = (0..256).flat_map(key).collect();
                let mut out = [0; 256];
                while !stop.load(Ordering::Relaxed) {
                    reader.lookup(&worker, &keys, &mut out);
                    for (n, found) in (0..).zip(out) {
                        assert!([1, 1000 + n, 2000 + n].contains(&found), "{n} found {found}");
                    }
                    worker.quiescent();
                }
            });
        }
        for round in 0..60u32 {
            for n in 0..256u64 {
                let len = if (n as u32 + round).is_multiple_of(3) { 128 } else { 60 };
                table.set(&key(n), len, if len == 128 { 2000 } else { 1000 } + n as u32).unwrap();
                table.commit().unwrap();
            }
            for n in 0..256 {
                table.remove(&key(n), 60);
                table.remove(&key(n), 128);
                table.commit().unwrap();
            }
        }
    });
}

#[test]
fn single_changes_of_a_crowded_table_are_seen_each_by_itself() {
    // Most prefixes lie in one block, so that chunks have many lines and changes concern one of them.
    let domain = Domain::new();
    let mut table = WideLpm::new(&domain, 128, 20_000, Simd::best()).unwrap();
    let mut model = Model { bits: 128, ..Model::default() };
    let (mut seed, mut routes) = (7, Vec::new());
    let route = |seed: &mut u64| {
        let spread = [16u32, 24, 30][random(seed) as usize % 3];
        let key = vec![random(seed) & 3, 0x2a00 << 48 | random(seed) >> 16 >> (spread - 16)];
        (key, [29, 32, 36, 40, 44, 48, 48, 56, 64, 128][random(seed) as usize % 10])
    };
    for n in 0..4000 {
        let (key, len) = route(&mut seed);
        table.set(&key, len, n + 1).unwrap();
        model.routes.insert(model.key_bits(&key)[..len as usize].to_vec(), n + 1);
        routes.push((key, len));
    }
    table.commit().unwrap();
    let first = table.tree.current().lines.as_ptr();
    for n in 0..1200u32 {
        let at = random(&mut seed) as usize % routes.len();
        if n % 3 == 0 {
            routes[at] = route(&mut seed);
        } else if n % 100 == 1 {
            // Prefixes over many lines, over all of them, and over all slots.
            routes[at].1 = [0, 12, 16, 18, 20, 24][random(&mut seed) as usize % 6];
        }
        let (key, len) = &routes[at];
        let prefix = model.key_bits(key)[..*len as usize].to_vec();
        if n % 3 == 2 {
            assert_eq!(table.remove(key, *len), model.routes.remove(&prefix).is_some());
        } else {
            // A route to a miss is one, whatever covers it.
            let result = if n % 7 == 0 { 0 } else { 10_000 + n };
            table.set(key, *len, result).unwrap();
            model.routes.insert(prefix, result);
        }
        table.commit().unwrap();
        let other = &routes[random(&mut seed) as usize % routes.len()];
        let keys = [neighbours(key, 128, *len), neighbours(&other.0, 128, other.1)].concat();
        check(&model, &table, &keys);
    }
    assert_eq!(table.len(), model.routes.len());
    let keys: Vec<_> = routes.iter().flat_map(|(key, len)| neighbours(key, 128, *len)).step_by(5).collect();
    check(&model, &table, &keys);
    let tree = table.tree.current();
    assert_eq!(tree.lines.as_ptr(), first, "changes alone do not build the table again");

    // A removed prefix leaves nothing in the tree.
    for (key, len) in &routes {
        table.remove(key, *len);
    }
    let left: Vec<_> = model.routes.keys().map(|prefix| (prefix.clone(), prefix.len() as u32)).collect();
    for (prefix, len) in left {
        let mut key = [0u64; 2];
        prefix.iter().enumerate().for_each(|(at, bit)| key[1 - at / 64] |= u64::from(*bit) << (63 - at % 64));
        table.remove(&key, len);
    }
    table.commit().unwrap();
    assert!(table.is_empty());
    check(&Model { bits: 128, ..Model::default() }, &table, &keys);
}

#[test]
fn lines_are_used_again_after_their_grace_period_and_the_table_stays_small() {
    let domain = Domain::new();
    let mut worker = domain.worker();
    let mut table = WideLpm::new(&domain, 128, 1000, Simd::best()).unwrap();
    let key = |n: u64| [0, 0x2001_0db8_0000_0000 | n << 16];
    for n in 0..1000 {
        table.set(&key(n), 48, n as u32 + 1).unwrap();
    }
    table.commit().unwrap();
    let full = table.memory_bytes();
    let mut largest = 0;
    // A worker that holds everything for long makes the table grow to its limit, and no further.
    for round in 0..30_000u32 {
        table.set(&key(u64::from(round % 1000)), 48, round + 1).unwrap();
        table.commit().unwrap();
        largest = largest.max(table.memory_bytes());
        if round >= 10_000 {
            worker.quiescent();
        }
    }
    assert!(largest <= 3 * full + 2 * 64 * SPARE_LINES, "{largest} bytes after {full}");
    let mut out = [0; 1];
    table.reader().lookup(&worker, &key(999), &mut out);
    assert_eq!(out, [30_000]);
}

#[test]
fn readers_outlive_the_writer() {
    let domain = Domain::new();
    let mut table = WideLpm::new(&domain, 128, 10, Simd::best()).unwrap();
    table.set(&[0, 5 << 61], 3, 9).unwrap();
    table.commit().unwrap();
    let (reader, worker) = (table.reader(), domain.worker());
    drop(table);
    let mut out = [0; 2];
    reader.lookup(&worker, &[7, 5 << 61, 7, 6 << 61], &mut out);
    assert_eq!(out, [9, 0]);
    reader.lookup(&Domain::new().worker(), &[7, 5 << 61, 7, 6 << 61], &mut out);
    assert_eq!(out, [0, 0], "a worker of another domain");
}

/// The lines that the lookup of a key reads, one for each link, and its slot.
fn taken(table: &WideLpm, key: &[u64]) -> u32 {
    use super::lookup::digit;
    use super::tree::{LANES, Value, WINDOW};
    let (tree, align) = (table.tree.current(), table.shape.align);
    let first = (digit(key, align, 0) >> (64 - tree.root_bits)) as usize;
    let (mut value, mut pos, mut taken) =
        (Value(tree.slots[first].load(Ordering::Acquire)), tree.root_bits, 1);
    while value.is_link() {
        taken += 1;
        let (at, skip) = (pos as usize / 64, pos % 64);
        let digits = u128::from(digit(key, align, at)) << 64 | u128::from(digit(key, align, at + 1));
        let window = (digits << skip >> 96) as u32;
        let index = window.checked_shr(WINDOW - value.bits()).unwrap_or(0);
        let line = tree.line(value.line() + index);
        let (lane, found) = line.find(window, 0);
        pos += WINDOW - if lane < LANES { u32::from(line.shifts[lane]) } else { 0 };
        value = found;
    }
    taken
}

#[test]
fn no_lookup_takes_more_than_the_contract_says() {
    let mut table = WideLpm::new(&Domain::new(), 128, 1000, Simd::best()).unwrap();
    assert_eq!(table.contract().probes, 1);
    let mut seed = 5;
    let mut keys = Vec::new();
    for n in 0..400u32 {
        // Prefixes below one another, so that the tree is deep.
        let key = vec![random(&mut seed) & 0xffff, 0x2001 << 48 | random(&mut seed) & 0xf0f];
        table.set(&key, 16 + n % 113, n + 1).unwrap();
        keys.push(key);
    }
    table.commit().unwrap();
    let contract = table.contract();
    let most = keys.iter().map(|key| taken(&table, key)).max().unwrap();
    assert!(most > 2 && most <= contract.probes && most <= contract.lines, "{most} {contract:?}");
}
