//! The bounds of all programs of `programs/` hold for packets that are counted, and are close to the largest.
//!
//!     cargo test --release -p millrace-counted-bounds -- --nocapture
//!     BOUNDS_PACKETS=100000 BOUNDS_PROGRAM=router cargo test --release -p millrace-counted-bounds -- --nocapture

use millrace_bounds::Part;
use millrace_counted_bounds::lines::touched;
use millrace_counted_bounds::{Bounded, Mutations, all};
use millrace_frames::{MAX_BATCH, MAX_FRAME};
use std::collections::BTreeMap;

/// Packets of each program.
fn packets() -> usize {
    let asked = std::env::var("BOUNDS_PACKETS").ok().and_then(|words| words.parse().ok());
    asked.unwrap_or(if cfg!(debug_assertions) { 60 } else { 2000 })
}

/// Those of a debug build, where the search takes long, unless others are asked for; else all.
const QUICK: [&str; 4] = ["afdx", "firewall", "l2_switch", "router"];

/// How far a bound may be above the largest count.
fn limit_of(name: &str) -> f64 {
    match WIDE.iter().find(|(wide, _)| *wide == name) {
        Some((_, limit)) => *limit,
        None if TIGHT.contains(&name) => 1.07,
        None => 1.3,
    }
}

/// Programs whose bounds are close.
const TIGHT: [&str; 2] = ["afdx", "router"];

/// Programs whose bounds are farther away, and why: numbers of varying length count with the most bits of their type wherever they
/// are read and written, no frame of a search reaches all states of registers, or the search was given up.
const WIDE: [(&str, f64); 3] = [("int", 6.5), ("l3_gateway_gtp", 1.5), ("l3_gateway_gtp_14", 1.5)];

/// Programs that have no bound: their parsers have loops with turns.
const UNBOUNDED: [&str; 0] = [];

/// What a helper takes is known of the optimised build alone.
const COUNTS_CALLS: bool = !cfg!(debug_assertions);

/// Frames of a program's own test that are counted with the most bytes.
const LONGEST: usize = 6;

/// Headers inside of a frame whose sums are made right.
const MOST_INNER: usize = 8;

/// Times that the directed frames are counted again.
const AGAIN: usize = 5;

#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn no_packet_costs_more_than_the_bound() {
    let wanted = std::env::var("BOUNDS_PROGRAM").ok();
    let mut failed = Vec::new();
    println!(
        "{:28} {:>7} {:>7} {:>7} {:>6} {:>7} {:>7} {:>7} {:>8}",
        "program", "bound", "largest", "directed", "ratio", "lines <", "touched", "paths", "packets"
    );
    for path in all() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let is_wanted = match &wanted {
            Some(wanted) => *wanted == name,
            None => !cfg!(debug_assertions) || QUICK.contains(&name.as_str()),
        };
        if !is_wanted {
            continue;
        }
        let mut bounded = match Bounded::new(&path) {
            Ok(bounded) => bounded,
            Err(error) => {
                println!("{name:28} has no bound: {error}");
                if !UNBOUNDED.contains(&name.as_str()) {
                    failed.push(format!("{name} has no bound any more: {error}"));
                }
                continue;
            }
        };
        if UNBOUNDED.contains(&name.as_str()) {
            failed.push(format!("{name} has a bound now, so it is no exception any more"));
        }
        for part in 0..bounded.counted.parts.len() {
            if bounded.counted.takes_arrivals(part) {
                failed.extend(check(&mut bounded, part, &name));
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

/// An IPv4 frame with the right sum of its header; where more headers may be in it, as in a tunnel, also with the sum of each of these.
/// None: it is no such frame.
fn with_header_sums(frame: &[u8]) -> Vec<Vec<u8>> {
    let is_ipv4 = frame.get(12..14).is_some_and(|ether_type| ether_type == [8, 0]);
    let Some(outer) = with_header_sum(frame.to_vec(), 14).filter(|_| is_ipv4) else { return Vec::new() };
    // A header without options.
    let inner = (34..outer.len()).filter(|at| outer[*at] == 0x45).take(MOST_INNER);
    let mut frames: Vec<Vec<u8>> = inner.filter_map(|at| with_header_sum(outer.clone(), at)).collect();
    frames.push(outer);
    frames
}

/// A frame with the right sum of the IPv4 header there (RFC 791, RFC 1071).
fn with_header_sum(mut frame: Vec<u8>, at: usize) -> Option<Vec<u8>> {
    let header = frame.get_mut(at..)?;
    let bytes = usize::from(header.first()? & 15) * 4;
    let header = header.get_mut(..bytes).filter(|header| header.len() >= 20)?;
    header[10..12].fill(0);
    let words = header.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let sum = !((folded & 0xffff) + (folded >> 16)) as u16;
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    Some(frame)
}

/// The bound of what is counted.
fn most_of(bound: &Part, packets: u64) -> u64 {
    let most = bound.of_batch(packets);
    if COUNTS_CALLS { most.instructions } else { most.own }
}

/// Counts packets of a part; says what is above its bound.
fn check(bounded: &mut Bounded, part: usize, name: &str) -> Vec<String> {
    let bound = bounded.bounds[part].clone();
    let (mut failed, mut largest, mut directed, mut most_lines) = (Vec::new(), 0, 0, 0);
    let mut calls: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let mut mutations = Mutations::new(bounded.frames.clone(), 1);
    let frame = bound.frame.clone();
    let of_directed = frame.iter().chain(&bound.other_frames).map(|frame| (frame.port, frame.bytes.clone()));
    // What a sum must be no search finds out: it takes each for any number.
    let summed = of_directed
        .clone()
        .flat_map(|(port, frame)| with_header_sums(&frame).into_iter().map(move |frame| (port, frame)));
    let of_directed: Vec<(u32, Vec<u8>)> = of_directed.chain(summed).collect();
    let of_frames = of_directed.len();
    // What reads the payload takes longest for the longest frame.
    let reads_payload = bound.calls.values().any(|most| most.instructions > MAX_FRAME as u64);
    // Zeros at the end leave sums right, which the frames of the program's own test have.
    let chosen = of_directed.iter().take(1).chain(bounded.frames.iter().take(LONGEST)).cloned();
    let longest = chosen.filter(|_| reads_payload).map(|(port, mut frame)| {
        frame.resize(MAX_FRAME, 0);
        (port, frame)
    });
    let longest: Vec<(u32, Vec<u8>)> = longest.collect();
    let of_directed = of_directed.iter().cloned();
    let own = bounded.frames.clone();
    let generated = (0..packets()).map(|_| mutations.next_frame());
    // The directed ones at once and late, when they have waited for a second; and so often that meters and accounts are empty.
    let directed_ones = of_directed.clone().chain(of_directed.cycle().take(AGAIN * of_frames));
    for (number, (port, frame)) in directed_ones.chain(longest).chain(own).chain(generated).enumerate() {
        let is_directed = number < (1 + AGAIN) * of_frames;
        let time_ns = if is_directed { 1_000_000 } else { 1_000_000 * number as u64 };
        let waited_ns = if number % 2 == 1 || number < of_frames { 1_000_000_000 } else { 0 };
        let steps = bounded.counted.count(part, port, &[&frame], (time_ns, waited_ns));
        let counted = if COUNTS_CALLS { steps.own() + steps.outside() } else { steps.own() };
        for (at, count) in &steps.most_called {
            let Some((callee, contract)) = bounded.counted.call_at(part, *at) else { continue };
            let most = contract.map_or(0, |contract| contract.of_keys(1).instructions);
            let known = calls.entry(format!("{callee:?}")).or_default();
            *known = (known.0.max(*count), most);
        }
        if is_directed {
            directed = directed.max(counted);
        }
        largest = largest.max(counted);
        let lines = touched(&bounded.counted.parts[part].code.bytes, &steps).len() as u64;
        most_lines = most_lines.max(lines);
        if lines > bound.alone.lines {
            failed.push(format!(
                "{name}: {lines} lines for {frame:02x?} on {port}, the bound is {}",
                bound.alone.lines
            ));
        }
        let most = most_of(&bound, 1);
        if counted > most {
            failed.push(format!(
                "{name}: {counted} instructions for {frame:02x?} on {port}, the bound is {most}"
            ));
        }
    }
    // Batches of many packets, the dearest one among them.
    for number in 0..packets() / 50 {
        let chosen: Vec<(u32, Vec<u8>)> = (0..MAX_BATCH).map(|_| mutations.next_frame()).collect();
        let mut frames: Vec<&[u8]> = chosen.iter().map(|(_, frame)| frame.as_slice()).collect();
        if let Some(frame) = &frame {
            frames.iter_mut().step_by(2).for_each(|other| *other = &frame.bytes);
        }
        let port = frame.as_ref().map_or(0, |frame| frame.port);
        let steps = bounded.counted.count(part, port, &frames, (1_000_000_000 * number as u64, 0));
        let counted = if COUNTS_CALLS { steps.own() + steps.outside() } else { steps.own() };
        let most = most_of(&bound, frames.len() as u64);
        if counted > most {
            failed.push(format!("{name}: {counted} instructions for a batch, the bound is {most}"));
        }
    }
    if std::env::var_os("BOUNDS_EXPLAIN").is_some() {
        explain(bounded, part, &bound);
    }
    let most = most_of(&bound, 1);
    let ratio = most as f64 / largest.max(1) as f64;
    let limit = limit_of(name);
    if ratio > limit {
        failed.push(format!("{name}: the bound is {ratio:.3} of the largest counted, not {limit} at most"));
    }
    let tight = if bound.is_tight { "" } else { " (not found)" };
    println!(
        "{name:28} {most:>7} {largest:>7} {directed:>7} {ratio:>6.3} {:>7} {most_lines:>7} {:>7} {:>8}{tight}",
        bound.alone.lines,
        bound.paths,
        packets()
    );
    for (callee, (count, most)) in calls {
        println!("    {callee}: {count} counted of {most}");
    }
    failed
}

/// Where the dearest path and what its frame executes differ, block by block.
fn explain(bounded: &mut Bounded, part: usize, bound: &Part) {
    let Some(frame) = &bound.frame else { return };
    for step in &bound.steps {
        println!("    {step}");
    }
    let steps = bounded.counted.count(part, frame.port, &[&frame.bytes], (1_000_000, 1_000_000_000));
    println!("    own {} of {}", steps.own(), bound.alone.own);
    let path: std::collections::BTreeSet<u32> = bound.blocks.iter().copied().collect();
    for at in path.iter().filter(|at| !steps.in_code.contains_key(at)) {
        let origin = bounded.counted.parts[part].code.origin(*at);
        println!("    not executed: {at:#x} {:?}", origin.map(|origin| (origin.site, origin.node)));
    }
}
