//! The bound of time of one packet next to what the frames of the dearest paths take from cold caches: each run comes after all caches
//! were filled with something else.
//!
//!     cargo bench -p millrace-counted-bounds --bench cold
//!
//! What surrounds the code of a batch is not in the bound: reading the clock, and the functions that hand over packets. So a batch of a program
//! that does nothing is run after the caches were filled, which brings these back. It shares neither code nor data with the program that
//! is measured.
//!
//! The processor should do nothing else meanwhile. A run that something interrupts takes longer than any bound, so of the runs of a frame
//! the largest counts that no more than one in twenty exceeds.

use millrace_bounds::{Calibration, analyse};
use millrace_compile::Standard;
use millrace_counted_bounds::{Bounded, Counted, programs};
use std::hint::black_box;

/// Programs that are measured.
const PROGRAMS: [&str; 2] = ["router", "afdx"];
/// Runs of each frame.
const RUNS: usize = 200;
/// Bytes that caches are filled with: several times what they have.
const OTHERS: usize = 128 << 20;
/// The time that a packet waited for, and what lies between two packets: all buckets are full again.
const SECOND_NS: u64 = 1_000_000_000;

/// A program that does nothing.
const NOTHING: &str = "#include <core.p4>\n#include <v1model.p4>\nstruct none { }\n\
    parser P(packet_in p, out none h, inout none m, inout standard_metadata_t s) { state start { transition accept; } }\n\
    control C(inout none h, inout none m) { apply { } }\n\
    control I(inout none h, inout none m, inout standard_metadata_t s) { apply { } }\n\
    control D(packet_out p, in none h) { apply { } }\n\
    V1Switch(P(), C(), I(), I(), C(), D()) main;\n";

fn main() {
    let mut nothing = Counted::new("nothing.p4", NOTHING, Standard::P4_16, "");
    let found = millrace_bench::calibrate();
    println!("{found:?}");
    let machine = Calibration::new(String::new(), String::new(), found.all());
    let mut others = vec![1u64; OTHERS / 8];
    println!("program   lines of data, frame, code  bound, ns  measured: median, worst  ratio");
    for name in PROGRAMS {
        let mut bounded = Bounded::new(&programs().join(name)).expect("a bound");
        for part in 0..bounded.counted.parts.len() {
            let (input, knowledge) = (bounded.counted.input(part), &bounded.counted.knowledge);
            let bound = analyse(&input, knowledge, Some(&machine)).expect("a bound");
            let ns = bound.ps_of_batch(1, &machine).unwrap_or(0).div_ceil(1000);
            let (mut median, mut worst) = (0, 0);
            for frame in bound.frame.iter().chain(&bound.other_frames) {
                let mut taken: Vec<u128> = (0..RUNS as u64)
                    .map(|run| {
                        let (times, batch) = ((SECOND_NS * run, SECOND_NS), [&frame.bytes[..]]);
                        let before = || {
                            fill(&mut others);
                            nothing.time(0, frame.port, &batch, times, || ());
                        };
                        bounded.counted.time(part, frame.port, &batch, times, before).as_nanos()
                    })
                    .collect();
                taken.sort_unstable();
                median = median.max(taken[RUNS / 2]);
                worst = worst.max(taken[RUNS * 19 / 20]);
            }
            let (data, frame, code) = (bound.alone.lines, bound.frame_lines, bound.code_lines);
            let ratio = ns as f64 / worst as f64;
            println!(
                "{name:8} {data:>14} {frame:>6} {code:>5} {ns:>10} {median:>17} {worst:>6} {ratio:>6.2}"
            );
        }
    }
}

/// Has all caches hold something else.
fn fill(others: &mut [u64]) {
    others.iter_mut().step_by(8).for_each(|word| *word = word.wrapping_add(1));
    black_box(others);
}
