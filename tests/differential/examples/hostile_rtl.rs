//! What hardware of programs costs that are made to cost a compiler much: time for each family of `tests/hostile`, at a size.
//!
//!     cargo run --release -p millrace-differential --example hostile_rtl -- 3000

use millrace_compile::{Options as CompileOptions, Source, Standard, check};
use millrace_hostile::{Size, families};
use millrace_rtl::{Hardware, Options};
use std::time::Instant;

fn main() {
    let size: usize = std::env::args().nth(1).and_then(|size| size.parse().ok()).unwrap_or(3000);
    for family in families() {
        let program = (family.make)(match family.size {
            Size::Bytes => size,
            Size::Doublings => (size / 100).min(12),
        });
        let standard = if program.p4_14 { Standard::P4_14 } else { Standard::P4_16 };
        let checked = check(Source::Text("hostile.p4", &program.text), standard, &CompileOptions::default());
        if checked.has_errors() {
            continue;
        }
        let Ok(lowered) = checked.lower() else { continue };
        let began = Instant::now();
        let made = Hardware::new(lowered, Options::default());
        let result = match &made {
            Ok(hardware) => {
                let report = hardware.report();
                let values: usize = report.stages.iter().map(|stage| stage.values).sum();
                format!("{values} values")
            }
            Err(refusal) => refusal.to_string().chars().take(100).collect(),
        };
        println!("{:>7.2} s  {}: {result}", began.elapsed().as_secs_f64(), family.name);
    }
}
