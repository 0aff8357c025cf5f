//! Lookup rates of the match engines on rules and traffic of `craft`: `rates DIR...`, each directory with `rules.txt` and
//! `trace.pcap`. Prints, for each set of vector instructions, millions of lookups a second (median and best of nine rounds
//! by the thread's CPU clock), the memory, and the time to load.

use millrace_tables::engines::*;
use std::any::Any;
use std::error::Error;
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Instant;

type Lookup = Box<dyn Fn(&Worker, &[u64], &mut [u32])>;

type Load = fn(&Domain, &str, Simd) -> Result<Loaded, Box<dyn Error>>;
/// The limbs of a key.
type Key = Vec<u64>;

/// A loaded table.
struct Loaded {
    bytes: usize,
    lookup: Lookup,
    /// Is kept as long as it is looked up in.
    _table: Box<dyn Any>,
}

impl Loaded {
    fn new(table: impl Any, bytes: usize, lookup: impl Fn(&Worker, &[u64], &mut [u32]) + 'static) -> Loaded {
        Loaded { bytes, lookup: Box::new(lookup), _table: Box::new(table) }
    }
}

const BURST: usize = 64;

fn main() -> Result<(), Box<dyn Error>> {
    println!(
        "{:<14} {:<8} {:>8} {:>8} {:>9} {:>8} {:>7}",
        "rules", "simd", "median", "best", "MB", "load s", "hits %"
    );
    for dir in std::env::args().skip(1) {
        let rules = fs::read_to_string(format!("{dir}/rules.txt"))?;
        let trace = fs::read(format!("{dir}/trace.pcap"))?;
        let frames = frames(&trace);
        let name = dir.rsplit('/').next().unwrap_or(&dir).to_owned();
        let (load, keys): (Load, Vec<Key>) = if rules.contains("\nroute4") {
            (routes4, frames.iter().map(|f| vec![be(&f[30..34])]).collect())
        } else if rules.contains("\nroute6") {
            (routes6, frames.iter().map(|f| vec![be(&f[46..54]), be(&f[38..46])]).collect())
        } else if rules.contains("\nmac") {
            (stations, frames.iter().map(|f| vec![be(&f[0..6])]).collect())
        } else {
            (acl, frames.iter().map(|f| five_tuple(f).to_vec()).collect())
        };
        for simd in Simd::all() {
            let domain = Domain::new();
            let start = Instant::now();
            let table = load(&domain, &rules, simd)?;
            let seconds = start.elapsed().as_secs_f64();
            // Awake from here on: one that did nothing would keep what updates replace.
            report(&name, simd, seconds, &table, &domain.worker(), &keys);
        }
    }
    Ok(())
}

fn report(name: &str, simd: Simd, load: f64, table: &Loaded, worker: &Worker, keys: &[Key]) {
    let limbs = keys.first().map_or(1, Vec::len);
    let count = keys.len() / BURST * BURST;
    let keys = keys[..count].concat();
    let mut out = [0; BURST];
    let mut hits = 0;
    for burst in keys.chunks(BURST * limbs) {
        (table.lookup)(worker, burst, &mut out);
        hits += out.iter().filter(|result| **result != 0).count();
    }
    let mut rates: Vec<f64> = (0..9)
        .map(|_| {
            let (start, mut done) = (cpu_seconds(), 0);
            while done < 4_000_000 {
                for burst in keys.chunks(BURST * limbs) {
                    (table.lookup)(worker, burst, &mut out);
                    std::hint::black_box(&mut out);
                }
                done += count;
            }
            done as f64 / (cpu_seconds() - start) / 1e6
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    println!(
        "{name:<14} {:<8} {:>8.1} {:>8.1} {:>9.1} {load:>8.3} {:>7.1}",
        format!("{simd:?}"),
        rates[4],
        rates[8],
        table.bytes as f64 / 1e6,
        100.0 * hits as f64 / count as f64
    );
}

/// CPU time of this thread: other load on the machine does not count (but what it takes of the caches does).
fn cpu_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the place for the time is valid.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn frames(pcap: &[u8]) -> Vec<&[u8]> {
    let (mut frames, mut at) = (Vec::new(), 24);
    while let Some(header) = pcap.get(at..at + 16) {
        let len = u32::from_le_bytes([header[8], header[9], header[10], header[11]]) as usize;
        frames.push(&pcap[at + 16..at + 16 + len]);
        at += 16 + len;
    }
    frames
}

fn be(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn words<'a>(rules: &'a str, keyword: &'a str) -> impl Iterator<Item = Vec<&'a str>> {
    rules
        .lines()
        .map(|line| line.split([' ', '/']).collect::<Vec<_>>())
        .filter(move |words| words[0] == keyword)
}

fn routes4(domain: &Domain, rules: &str, simd: Simd) -> Result<Loaded, Box<dyn Error>> {
    let routes: Vec<(u64, u32, u32)> = words(rules, "route4")
        .map(|w| {
            Ok((u64::from(w[1].parse::<Ipv4Addr>()?.to_bits()), w[2].parse()?, w[3].parse::<u32>()? + 1))
        })
        .collect::<Result<_, Box<dyn Error>>>()?;
    let start = Instant::now();
    let mut table = Dir24::new(domain, 32, routes.len() as u32, simd)?;
    for (prefix, len, hop) in routes {
        table.insert(prefix, len, hop)?;
    }
    eprintln!("  table share of loading: {:.3} s", start.elapsed().as_secs_f64());
    let (bytes, reader) = (table.memory_bytes(), table.reader());
    Ok(Loaded::new(table, bytes, move |worker, keys, out| reader.lookup(worker, keys, out)))
}

fn routes6(domain: &Domain, rules: &str, simd: Simd) -> Result<Loaded, Box<dyn Error>> {
    let routes: Vec<(u128, u32, u32)> = words(rules, "route6")
        .map(|w| Ok((w[1].parse::<Ipv6Addr>()?.to_bits(), w[2].parse()?, w[3].parse::<u32>()? + 1)))
        .collect::<Result<_, Box<dyn Error>>>()?;
    let start = Instant::now();
    let mut table = WideLpm::new(domain, 128, routes.len() as u32, simd)?;
    for &(prefix, len, hop) in &routes {
        table.set(&[prefix as u64, (prefix >> 64) as u64], len, hop)?;
    }
    table.commit()?;
    eprintln!("  table share of loading: {:.3} s", start.elapsed().as_secs_f64());
    let start = Instant::now();
    for &(prefix, len, hop) in routes.iter().take(20_000) {
        table.set(&[prefix as u64, (prefix >> 64) as u64], len, hop % 4 + 1)?;
        table.commit()?;
    }
    eprintln!(
        "  single updates: {:.1} us",
        start.elapsed().as_secs_f64() * 1e6 / 20_000f64.min(routes.len() as f64)
    );
    let (bytes, reader) = (table.memory_bytes(), table.reader());
    Ok(Loaded::new(table, bytes, move |worker, keys, out| reader.lookup(worker, keys, out)))
}

fn stations(domain: &Domain, rules: &str, simd: Simd) -> Result<Loaded, Box<dyn Error>> {
    let start = Instant::now();
    let mut table = Exact::new(domain, 1, simd)?;
    for w in words(rules, "mac") {
        let mac = w[1].split(':').fold(0, |mac, byte| mac << 8 | u64::from_str_radix(byte, 16).unwrap_or(0));
        table.set(&[mac], w[2].parse::<u32>()? + 1)?;
    }
    eprintln!("  with parsing: {:.3} s", start.elapsed().as_secs_f64());
    let (bytes, reader) = (table.memory_bytes(), table.reader());
    Ok(Loaded::new(table, bytes, move |worker, keys, out| reader.lookup(worker, keys, out)))
}

fn acl(domain: &Domain, rules: &str, simd: Simd) -> Result<Loaded, Box<dyn Error>> {
    let fields = [(72, 32), (40, 32), (32, 8), (16, 16), (0, 16)];
    let mut table = Acl::new(domain, 104, &fields, simd);
    let number = |word: &str| word.parse::<u64>().unwrap_or(0);
    let mut rules_of = Vec::new();
    for (n, w) in (0..).zip(words(rules, "acl")) {
        let prefix = |address: &str, len: &str| {
            let mask = (0xffff_ffffu64 << (32 - number(len))) & 0xffff_ffff;
            let address = address.parse::<Ipv4Addr>().map_or(0, Ipv4Addr::to_bits);
            Condition::Masked { value: vec![address.into()], mask: vec![mask] }
        };
        let range = |ends: &str| {
            let (low, high) = ends.split_once('-').unwrap_or((ends, ends));
            Condition::Range { low: vec![number(low)], high: vec![number(high)] }
        };
        let protocol = Condition::Masked { value: vec![number(w[5])], mask: vec![number(w[6])] };
        let conditions = [prefix(w[1], w[2]), prefix(w[3], w[4]), protocol, range(w[7]), range(w[8])];
        table.set(Order::new(0, n), &conditions, 1 + n as u32);
        rules_of.push(conditions);
    }
    let start = Instant::now();
    table.commit();
    eprintln!("  commit: {:.4} s", start.elapsed().as_secs_f64());
    let start = Instant::now();
    for write in 0..2000 {
        let n = write * 7 % rules_of.len();
        table.set(Order::new(0, n as u64), &rules_of[n], 1 + n as u32);
        table.commit();
    }
    eprintln!("  single updates: {:.1} us", start.elapsed().as_secs_f64() * 1e6 / 2000.0);
    let start = Instant::now();
    table.settle();
    eprintln!("  settling: {:.4} s", start.elapsed().as_secs_f64());
    let (bytes, reader) = (table.memory_bytes(), table.reader());
    Ok(Loaded::new(table, bytes, move |worker, keys, out| reader.lookup(worker, keys, out)))
}

fn five_tuple(frame: &[u8]) -> [u64; 2] {
    let ports = if frame[23] == 6 || frame[23] == 17 { be(&frame[34..38]) } else { 0 };
    let (source, destination) = (be(&frame[26..30]), be(&frame[30..34]));
    [ports | u64::from(frame[23]) << 32 | destination << 40, source << 8 | destination >> 24]
}
