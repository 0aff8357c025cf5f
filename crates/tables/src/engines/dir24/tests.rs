use super::*;
use crate::engines::checks::StopOnDrop;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Routes as a list, asked in the obvious way.
#[derive(Default)]
struct Model {
    bits: u32,
    routes: BTreeMap<(u32, u64), u32>,
}

impl Model {
    fn cut(&self, key: u64, len: u32) -> u64 {
        if len == 0 { 0 } else { key >> (self.bits - len) << (self.bits - len) }
    }

    fn find(&self, key: u64, below: u32) -> (u32, u32) {
        let found =
            (0..below).rev().find_map(|len| Some((len, *self.routes.get(&(len, self.cut(key, len)))?)));
        found.unwrap_or((0, 0))
    }
}

fn change(model: &mut Model, table: &mut Dir24, prefix: u64, len: u32, result: Option<u32>) {
    let prefix = model.cut(prefix, len);
    match (result, model.routes.contains_key(&(len, prefix))) {
        (Some(result), false) => table.insert(prefix, len, result).unwrap(),
        (Some(result), true) => table.replace(prefix, len, result).unwrap(),
        (None, true) => table.remove(prefix, len, model.find(prefix, len)),
        (None, false) => return,
    }
    match result {
        Some(result) => model.routes.insert((len, prefix), result),
        None => model.routes.remove(&(len, prefix)),
    };
}

fn check(model: &Model, table: &Dir24, domain: &Domain, keys: &[u64]) {
    let worker = domain.worker();
    let expected: Vec<u32> = keys.iter().map(|&key| model.find(key, model.bits + 1).1).collect();
    for simd in Simd::all() {
        let reader = Dir24Reader { simd, ..table.reader() };
        let mut out = vec![9; keys.len()];
        reader.lookup(&worker, keys, &mut out);
        assert_eq!(out, expected, "{simd:?}");
    }
}

/// Lengths of prefixes, 0 more often than others.
fn lengths() -> impl Strategy<Value = u32> {
    prop_oneof![1 => Just(0u32), 6 => 0u32..=32]
}

/// Words of the first array that are not 0.
fn written(table: &Dir24) -> usize {
    let array = table.array.current();
    (0..1 << table.first_bits()).filter(|at| array.first(*at) != 0).count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn lookups_agree_with_the_list_through_writes(
        bits in prop_oneof![Just(32u32), Just(31), Just(26), Just(24), Just(17), Just(5), Just(1)],
        writes in prop::collection::vec((any::<u32>(), lengths(), prop::option::weighted(0.7, any::<u32>())), 1..150),
        few in 0u32..32,
        // Words of one width hold all results, or several come one after the other.
        most in prop_oneof![Just(127u32), Just(300), Just(32_767), Just(70_000)],
    ) {
        let domain = Domain::new();
        let mut table = Dir24::new(&domain, bits, 1 << 12, Simd::best()).unwrap();
        let mut model = Model { bits, ..Model::default() };
        // Few distinct addresses, so that prefixes nest and are removed again.
        let full = u64::from(u32::MAX) >> (32 - bits);
        let address = |seed: u32| u64::from((seed % (few + 2)).wrapping_mul(0x1f35_79d1).rotate_left(seed % 7)) & full;
        let mut keys: Vec<u64> = (0..40).map(|seed| address(seed * 77)).collect();
        for (seed, len, result) in writes {
            let (at, len) = (address(seed), len.min(bits));
            let result = result.map(|seed| seed % most + 1);
            change(&mut model, &mut table, at, len, result);
            keys.extend([model.cut(at, len), at, at ^ 1, model.cut(at, len).wrapping_sub(1) & full]);
        }
        check(&model, &table, &domain, &keys);
        let sections = model.routes.keys().filter(|(len, _)| *len > 0);
        let sections = sections.fold(0, |all, (len, prefix)| all | table.exists.sections_of(*prefix as u32, *len));
        prop_assert_eq!(table.exists.filled(), sections);
        let routes: Vec<_> = model.routes.keys().copied().collect();
        for (len, prefix) in routes {
            change(&mut model, &mut table, prefix, len, None);
        }
        check(&model, &table, &domain, &keys);
        prop_assert!(table.groups.is_empty());
        prop_assert_eq!(table.held_sections(), 0);
    }
}

#[test]
fn a_host_route_below_an_allocation_is_found_and_goes_again() {
    let domain = Domain::new();
    let mut table = Dir24::new(&domain, 32, 100, Simd::best()).unwrap();
    table.insert(0x0a00_0000, 8, 1).unwrap();
    table.insert(0x0a01_0200, 24, 2).unwrap();
    table.insert(0x0a01_0203, 32, 3).unwrap();
    let (reader, worker) = (table.reader(), domain.worker());
    let find = |key| {
        let mut out = [7];
        reader.lookup(&worker, &[key], &mut out);
        out[0]
    };
    assert_eq!([0x0aff_0000, 0x0a01_0204, 0x0a01_0203, 0x0b00_0000].map(find), [1, 2, 3, 0]);
    table.remove(0x0a01_0203, 32, (24, 2));
    assert_eq!(find(0x0a01_0203), 2);
    table.remove(0x0a01_0200, 24, (8, 1));
    assert_eq!(find(0x0a01_0203), 1);
}

#[test]
fn a_group_is_used_again_after_the_grace_period_only() {
    let domain = Domain::new();
    let mut table = Dir24::new(&domain, 32, 100, Simd::best()).unwrap();
    let mut worker = domain.worker();
    table.insert(0x0102_0304, 32, 1).unwrap();
    table.remove(0x0102_0304, 32, (0, 0));
    table.insert(0x0506_0708, 32, 2).unwrap();
    assert_eq!(table.next_group, 2);
    worker.quiescent();
    table.remove(0x0506_0708, 32, (0, 0));
    table.insert(0x0102_0304, 32, 3).unwrap();
    assert_eq!(table.next_group, 2);
}

/// Writes while readers of each level look up keys again and again; `may_find` gets the number of a key and what it has found.
fn while_read(
    table: &mut Dir24,
    domain: &Domain,
    keys: [u64; 64],
    may_find: impl Fn(u32, u32) -> bool + Copy + Send,
    write: impl FnOnce(&mut Dir24),
) {
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stop = StopOnDrop(&stop);
        for simd in Simd::all() {
            let (reader, stop) = (Dir24Reader { simd, ..table.reader() }, &stop);
            scope.spawn(move || {
                let mut worker = domain.worker();
                let mut out = [0; 64];
                while !stop.load(Ordering::Relaxed) {
                    reader.lookup(&worker, &keys, &mut out);
                    for (n, found) in (0..).zip(out) {
                        assert!(may_find(n, found), "{n} found {found}");
                    }
                    worker.quiescent();
                }
            });
        }
        write(table);
    });
}

#[test]
fn readers_meet_whole_results_while_routes_change() {
    // Each route's result names its prefix; a lookup must see the /32, the /24 or the /8 above its own key.
    let domain = Domain::new();
    let mut table = Dir24::new(&domain, 32, 1000, Simd::best()).unwrap();
    table.insert(0x0a00_0000, 8, 1).unwrap();
    let keys = std::array::from_fn(|n| 0x0a00_0000 + n as u64 * 0x101);
    let may_find = |n, found| [1, 1000 + n, 40_000 + n].contains(&found);
    while_read(&mut table, &domain, keys, may_find, |table| {
        for round in 0..300 {
            for n in 0..64u32 {
                let result = if round > 150 { 40_000 + n } else { 1000 + n };
                table.insert(u64::from(0x0a00_0000 + n * 0x101), 32, result).unwrap();
            }
            for n in 0..64u32 {
                table.remove(u64::from(0x0a00_0000 + n * 0x101), 32, (8, 1));
            }
        }
    });
}

#[test]
fn the_contract_has_a_second_load_while_a_prefix_is_long() {
    let mut table = Dir24::new(&Domain::new(), 32, 100, Simd::best()).unwrap();
    table.insert(0x0a00_0000, 8, 1).unwrap();
    assert_eq!(table.contract().probes, 1);
    table.insert(0x0a01_0200, 25, 2).unwrap();
    assert_eq!(table.contract(), LookupContract { engine: "dir24", probes: 2, lines: 3 });
    table.remove(0x0a01_0200, 25, (8, 1));
    assert_eq!(table.contract().probes, 1);
}

/// The words of a table say how much of its memory is touched: zeros are never written.
#[test]
fn a_default_route_takes_no_words_whatever_their_width() {
    let domain = Domain::new();
    let mut table = Dir24::new(&domain, 32, 70_000, Simd::best()).unwrap();
    let (reader, worker) = (table.reader(), domain.worker());
    let find = |key| {
        let mut out = [7];
        reader.lookup(&worker, &[key], &mut out);
        out[0]
    };
    table.insert(0, 0, 100_000).unwrap();
    assert_eq!((find(0x0102_0304), written(&table), table.held_sections()), (100_000, 0, 0));
    assert_eq!(
        table.array.current().flag(),
        AtomicU8::FLAG,
        "words need not hold what a default route leads to"
    );
    for (width, most) in [(1, 5), (2, 500), (4, 50_000)] {
        for n in 0..3u32 {
            table.insert(u64::from(0x0a00_0000 | n << 8), 24, most + n).unwrap();
        }
        table.insert(0x0a00_0081, 32, most + 3).unwrap();
        table.replace(0, 0, 200_000 + most).unwrap();
        assert_eq!([0x0a00_0203, 0x0a00_0081, 0x0a00_0301].map(find), [most + 2, most + 3, 200_000 + most]);
        assert_eq!((written(&table), table.held_sections()), (3, 1));
        let groups = table.next_group as usize * (256 * width + 1024);
        assert!(table.memory_bytes() < (width << 18) + (64 << 10) + groups, "{}", table.memory_bytes());
        // What is removed goes to the default route, whatever that is by then.
        table.remove(0x0a00_0081, 32, (24, most));
        for n in 0..3u32 {
            table.remove(u64::from(0x0a00_0000 | n << 8), 24, (0, 200_000 + most));
        }
        assert_eq!((written(&table), table.held_sections()), (0, 0));
        assert_eq!(find(0x0a00_0203), 200_000 + most);
        table.remove(0, 0, (0, 0));
        assert_eq!([0x0a00_0203, 0x0102_0304].map(find), [0, 0]);
        table.insert(0, 0, 300_000).unwrap();
        assert_eq!([0x0a00_0203, 0x0102_0304].map(find), [300_000, 300_000]);
    }
}

#[test]
fn a_section_is_zeros_again_once_its_last_prefix_is_gone() {
    let domain = Domain::new();
    let mut table = Dir24::new(&domain, 32, 70_000, Simd::best()).unwrap();
    // All sections of some huge pages, and one of another, with results of each width.
    for result in [3, 300, 50_000] {
        table.insert(0, 1, result).unwrap();
        table.insert(0x8000_0000, 6, result + 1).unwrap();
        table.insert(0x0a00_0000, 24, result + 2).unwrap();
        assert_eq!((table.exists.filled(), written(&table)), (0x1_ffff_ffff, (1 << 23) + (1 << 18)));
        table.remove(0, 1, (0, 9));
        assert_eq!((table.exists.filled(), written(&table)), (0x1_0000_0004, 1 + (1 << 18)));
        table.remove(0x8000_0000, 6, (0, 9));
        table.remove(0x0a00_0000, 24, (0, 9));
        assert_eq!((table.held_sections(), written(&table)), (0, 0));
    }
}

#[test]
fn an_address_that_always_has_a_route_is_always_found() {
    // A route comes before a default route goes, and the other way round, while words change their width, too.
    let domain = Domain::new();
    let mut table = Dir24::new(&domain, 32, 1000, Simd::best()).unwrap();
    table.insert(0, 0, 1).unwrap();
    let keys = std::array::from_fn(|n| 0x0a00_0000 + n as u64 % 4 * 0x40);
    while_read(
        &mut table,
        &domain,
        keys,
        |_, found| (1..60_000).contains(&found),
        |table| {
            for round in 0..400 {
                let result = 2 + round * 100;
                let prefixes: &[(u64, u32)] = match round % 2 {
                    0 => &[(0x0a00_0000, 24)],
                    _ => &[(0x0a00_0000, 26), (0x0a00_0040, 26), (0x0a00_0080, 26), (0x0a00_00c0, 26)],
                };
                for &(prefix, len) in prefixes {
                    table.insert(prefix, len, result).unwrap();
                }
                table.remove(0, 0, (0, 0));
                table.insert(0, 0, result + 1).unwrap();
                table.replace(0, 0, result + 2).unwrap();
                for &(prefix, len) in prefixes {
                    table.remove(prefix, len, (0, result + 2));
                }
            }
        },
    );
}
