//! Instructions and time that the match engines take for a key, in batches of 64.
//!
//! `cargo bench -p millrace-tables` runs each case twice under valgrind, with different numbers of batches, and tells the
//! difference in instructions for each key, which does not depend on what else the machine does; and the time without
//! valgrind. Valgrind knows vectors of at most 256 bits, so instructions are counted with those; the time is that of the
//! best that the machine has. Rules and keys come from a generator with a fixed seed; the seeds of hash tables do not, so
//! counts of exact matches move in the second place after the point.

use millrace_tables::engines::*;
use std::hint::black_box;
use std::time::Instant;

/// Keys of a batch, as of a burst.
const BATCH: usize = 64;
/// Different batches that are looked up in turn.
const BATCHES: usize = 64;
/// Batches that are looked up under valgrind.
const FEW: usize = 100;
const MANY: usize = 500;

/// Looks up a batch of keys.
type Lookup = Box<dyn Fn(&[u64], &mut [u32])>;
/// Makes a case for these vector instructions.
type Make = fn(Simd) -> Case;

/// What is measured.
const CASES: &[(&str, Make)] = &[
    ("exact, 48 bits, 1k", |simd| exact(1, 1_000, simd)),
    ("exact, 48 bits, 64k", |simd| exact(1, 64_000, simd)),
    ("exact, 128 bits, 64k", |simd| exact(2, 64_000, simd)),
    ("exact, 256 bits, 64k", |simd| exact(4, 64_000, simd)),
    ("direct, 9 bits", direct),
    ("dir24, IPv4, 1k", |simd| dir24(1_000, simd)),
    ("dir24, IPv4, 100k", |simd| dir24(100_000, simd)),
    ("wide, IPv6, 1k", |simd| wide(1_000, simd)),
    ("wide, IPv6, 20k", |simd| wide(20_000, simd)),
    ("acl, five fields, 100", |simd| acl(100, 0, simd)),
    ("acl, five fields, 1k", |simd| acl(1_000, 0, simd)),
    ("acl, 1k, 100 just written", |simd| acl(1_000, 100, simd)),
];

/// An engine with entries, and keys that all hit.
struct Case {
    lookup: Lookup,
    limbs: usize,
    keys: Vec<u64>,
}

/// Numbers in no order, the same each time (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

const ALL: usize = BATCH * BATCHES;

fn exact(limbs: usize, entries: usize, simd: Simd) -> Case {
    let (domain, mut numbers) = (Domain::new(), Numbers(1));
    let mut table = Exact::new(&domain, limbs, simd).expect("memory");
    let width = if limbs == 1 { 16 } else { 0 };
    let stored: Vec<Vec<u64>> =
        (0..entries).map(|_| (0..limbs).map(|_| numbers.next() >> width).collect()).collect();
    for (at, key) in stored.iter().enumerate() {
        table.set(key, at as u32 + 1).expect("memory");
    }
    let (reader, worker) = (table.reader(), domain.worker());
    let lookup = Box::new(move |keys: &[u64], out: &mut [u32]| reader.lookup(&worker, keys, out));
    let keys = (0..ALL).flat_map(|_| stored[numbers.below(entries)].clone()).collect();
    Case { lookup, limbs, keys }
}

fn direct(_: Simd) -> Case {
    let (domain, mut numbers) = (Domain::new(), Numbers(1));
    let mut table = Direct::new(&domain, 9).expect("memory");
    (0..256).for_each(|key| table.set(2 * key, key as u32 + 1));
    let (reader, worker) = (table.reader(), domain.worker());
    let lookup = Box::new(move |keys: &[u64], out: &mut [u32]| reader.lookup(&worker, keys, out));
    let keys = (0..ALL).map(|_| 2 * numbers.next() % 512).collect();
    Case { lookup, limbs: 1, keys }
}

/// Prefix lengths as in a routing table: mostly of one length, some longer and shorter.
fn length(numbers: &mut Numbers, usual: u32, longest: u32) -> u32 {
    match numbers.below(10) {
        0 => longest - numbers.below(6) as u32,
        1..=3 => usual - 8 + numbers.below(8) as u32,
        _ => usual,
    }
}

fn dir24(routes: usize, simd: Simd) -> Case {
    let (domain, mut numbers) = (Domain::new(), Numbers(1));
    let mut table = Dir24::new(&domain, 32, routes as u32, simd).expect("memory");
    let mut stored = std::collections::BTreeMap::new();
    while stored.len() < routes {
        let len = length(&mut numbers, 24, 32);
        let prefix = numbers.next() as u32 & !0 << (32 - len);
        let hop = stored.len() as u32 % 200 + 1;
        if stored.insert((prefix, len), hop).is_none() {
            table.insert(prefix.into(), len, hop).expect("memory");
        }
    }
    let stored: Vec<(u32, u32)> = stored.into_keys().collect();
    let inside = |numbers: &mut Numbers| {
        let (prefix, len) = stored[numbers.below(routes)];
        u64::from(prefix | (numbers.next() as u32).checked_shr(len).unwrap_or(0))
    };
    let keys = (0..ALL).map(|_| inside(&mut numbers)).collect();
    let (reader, worker) = (table.reader(), domain.worker());
    let lookup = Box::new(move |keys: &[u64], out: &mut [u32]| reader.lookup(&worker, keys, out));
    Case { lookup, limbs: 1, keys }
}

fn wide(routes: usize, simd: Simd) -> Case {
    let (domain, mut numbers) = (Domain::new(), Numbers(1));
    let mut table = WideLpm::new(&domain, 128, routes as u32, simd).expect("memory");
    let mut stored = Vec::new();
    for at in 0..routes {
        let len = length(&mut numbers, 48, 64);
        let prefix = (0x2000_0000_0000_0000 | numbers.next() >> 3) & !0 << (64 - len);
        table.set(&[0, prefix], len, at as u32 % 200 + 1).expect("memory");
        stored.push((prefix, len));
    }
    table.commit().expect("memory");
    let inside = |numbers: &mut Numbers| {
        let (prefix, len) = stored[numbers.below(routes)];
        [numbers.next(), prefix | numbers.next().checked_shr(len).unwrap_or(0)]
    };
    let keys = (0..ALL).flat_map(|_| inside(&mut numbers)).collect();
    let (reader, worker) = (table.reader(), domain.worker());
    let lookup = Box::new(move |keys: &[u64], out: &mut [u32]| reader.lookup(&worker, keys, out));
    Case { lookup, limbs: 2, keys }
}

/// Rules over source and destination prefix, protocol, and ranges of ports, as firewalls have them; so many of them were
/// written again, one by one, just now.
fn acl(rules: usize, again: usize, simd: Simd) -> Case {
    let (domain, mut numbers) = (Domain::new(), Numbers(1));
    let mut table = Acl::new(&domain, 104, &[(72, 32), (40, 32), (32, 8), (16, 16), (0, 16)], simd);
    let (mut stored, mut all) = (Vec::new(), Vec::new());
    for at in 0..rules {
        let mut prefix = || {
            let mask = 0xffff_ffffu64 << (32 - 8 * (1 + numbers.below(4) as u64)) & 0xffff_ffff;
            (numbers.next() & mask, mask)
        };
        let (source, destination) = (prefix(), prefix());
        let protocol = if at % 3 == 0 { 17 } else { 6 };
        let low = numbers.next() & 0x7fff;
        let high = low + if at % 2 == 0 { 0 } else { numbers.next() & 0xfff };
        let masked = |(value, mask): (u64, u64)| Condition::Masked { value: vec![value], mask: vec![mask] };
        let range = |low, high| Condition::Range { low: vec![low], high: vec![high] };
        let conditions = [
            masked(source),
            masked(destination),
            masked((protocol, 0xff)),
            range(0, 0xffff),
            range(low, high),
        ];
        table.set(Order::new(0, at as u64), &conditions, at as u32 + 1);
        stored.push((source, destination, protocol, low));
        all.push(conditions);
    }
    table.commit();
    for (at, conditions) in all.iter().enumerate().step_by(rules / again.max(1)).take(again) {
        table.set(Order::new(0, at as u64), conditions, at as u32 + 1);
        table.commit();
    }
    let inside = |numbers: &mut Numbers| {
        let (source, destination, protocol, port) = stored[numbers.below(rules)];
        let fill = |(value, mask): (u64, u64), number: u64| value | number & !mask & 0xffff_ffff;
        let (source, destination) = (fill(source, numbers.next()), fill(destination, numbers.next()));
        [
            port | (numbers.next() & 0xffff) << 16 | protocol << 32 | destination << 40,
            source << 8 | destination >> 24,
        ]
    };
    let keys = (0..ALL).flat_map(|_| inside(&mut numbers)).collect();
    let (reader, worker) = (table.reader(), domain.worker());
    let lookup = Box::new(move |keys: &[u64], out: &mut [u32]| reader.lookup(&worker, keys, out));
    Case { lookup, limbs: 2, keys }
}

impl Case {
    /// Looks so many batches up; gives the seconds that it took.
    fn run(&self, batches: usize) -> f64 {
        let mut out = [0; BATCH];
        let start = Instant::now();
        for keys in self.keys.chunks(BATCH * self.limbs).cycle().take(batches) {
            (self.lookup)(black_box(keys), &mut out);
            black_box(&mut out);
        }
        start.elapsed().as_secs_f64()
    }

    /// Panics when not all keys hit: then nothing that is measured means anything.
    fn check(&self, name: &str) {
        let mut out = vec![0; ALL];
        (self.lookup)(&self.keys, &mut out);
        let hits = out.iter().filter(|found| **found != 0).count();
        assert_eq!(hits, ALL, "{name}");
    }
}

/// The instructions of this program with so many batches, or none without valgrind.
fn instructions(case: usize, batches: usize) -> Option<u64> {
    millrace_counted::instructions(&["run", &case.to_string(), &batches.to_string()])
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["run", case, batches] => {
            let case: usize = case.parse().expect("the number of a case");
            // The best that valgrind knows is the best that it shows to the program.
            CASES[case].1(Simd::best()).run(batches.parse().expect("a number of batches"));
        }
        filter => {
            println!("{:<28}{:>14}{:>10}   a key", "", "instructions", "ns");
            for (number, (name, make)) in CASES.iter().enumerate() {
                if filter.iter().any(|part| !name.contains(part)) {
                    continue;
                }
                let counted = instructions(number, FEW).zip(instructions(number, MANY));
                let each = counted
                    .map(|(few, many)| many.saturating_sub(few) as f64 / ((MANY - FEW) * BATCH) as f64);
                let each = each.map_or_else(|| "-".into(), |each| format!("{each:.1}"));
                let case = make(Simd::best());
                case.check(name);
                let batches = 20_000;
                let best = (0..5).map(|_| case.run(batches)).fold(f64::INFINITY, f64::min);
                println!("{name:<28}{each:>14}{:>10.2}", best * 1e9 / (batches * BATCH) as f64);
            }
        }
    }
}
