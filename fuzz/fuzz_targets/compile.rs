//! Program text to machine code, quickly made and the best there is: no panic, and bounded time and memory.

#![no_main]

use libfuzzer_sys::fuzz_target;
use millrace_fuzz::budget;
use millrace_jit::{Compiled, Effort, JitError, Options};
use millrace_midend::Plan;
use millrace_midend::budget::MAX_CODE;
use millrace_pipeline::{Program, passes};
use millrace_syntax::parse_text;

/// Bytes of code that an instruction becomes at most, on average.
const BYTES: usize = 32;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Some(mut program) = lowered(text) else { return };
    passes::optimize(&mut program);
    let plan = Plan::through(&program, true);
    for effort in [Effort::Quick, Effort::Soon, Effort::Speed] {
        let options = Options { effort, ..Options::default() };
        match budget::within(|| Compiled::new(&program, &plan, &options)) {
            Ok(code) => assert!(code.statistics().bytes <= BYTES * MAX_CODE),
            Err(JitError::TooLarge(_) | JitError::ContextSize) => {}
            Err(error) => panic!("{error}"),
        }
    }
});

fn lowered(text: &str) -> Option<Program> {
    let parsed = parse_text("fuzz.p4", text, &millrace_syntax::Options::default());
    let checked = millrace_sema::check(&parsed.program);
    if parsed.diagnostics.has_errors() || checked.diagnostics.has_errors() {
        return None;
    }
    millrace_lower::lower(&checked.program, "fuzz").ok()
}
