//! Program text through preprocessor, parser, checker, P4Info and lowering, as P4_16 and as P4_14: no panic, the IR passes the
//! verifier, and no input costs more time or memory than a limit.

#![no_main]

use cap::Cap;
use libfuzzer_sys::fuzz_target;
use millrace_compile::{LowerError, Options, Source, Standard, check};
use millrace_describe::p4info::{describe, to_text};
use rustix::time::{ClockId, clock_gettime};
use std::alloc::System;
use std::time::Duration;

/// Most processor time of one input: the two seconds that a source file may cost, twenty times, since the sanitizer, its
/// checks and the coverage counters make the same code so much slower.
const TIME: Duration = Duration::from_secs(40);

/// Most memory, beyond what the fuzzer itself has: an allocation that exceeds it fails, which is a finding.
const MEMORY: usize = 512 << 20;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = ALLOCATOR.set_limit(ALLOCATOR.allocated() + MEMORY);
    let before = processor_time();
    for standard in [Standard::P4_16, Standard::P4_14] {
        compile(text, standard);
    }
    let cost = processor_time().saturating_sub(before);
    let _ = ALLOCATOR.set_limit(usize::MAX);
    assert!(cost <= TIME, "the input took {cost:?} of processor time, the limit is {TIME:?}");
});

fn compile(text: &str, standard: Standard) {
    // Nothing is read from the disk of who fuzzes.
    let options = Options { on_disk: false, ..Options::default() };
    let checked = check(Source::Text("fuzz.p4", text), standard, &options);
    for finding in &checked.findings {
        assert!(!checked.render(finding).is_empty());
    }
    if checked.has_errors() {
        return;
    }
    let _ = to_text(&describe(&checked.typed).info);
    if let Err(LowerError::Broken(rules)) = checked.lower() {
        panic!("lowering made a program that the verifier refuses: {rules:?}");
    }
}

/// Of all threads: checker and lowering have threads of their own.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}
