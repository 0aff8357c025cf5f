//! Program text through preprocessor, parser, checker and lowering: no panic, and the IR passes the verifier.

#![no_main]

use libfuzzer_sys::fuzz_target;
use millrace_syntax::{Options, parse_text};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let parsed = parse_text("fuzz.p4", text, &Options::default());
    let checked = millrace_sema::check(&parsed.program);
    for diagnostic in parsed.diagnostics.iter().chain(checked.diagnostics.iter()) {
        let rendered = millrace_syntax::render(diagnostic, &parsed.sources, false);
        assert!(!rendered.is_empty());
    }
    if parsed.diagnostics.has_errors() || checked.diagnostics.has_errors() {
        return;
    }
    if let Ok(program) = millrace_lower::lower(&checked.program, "fuzz") {
        millrace_pipeline::verify(&program).expect("lowering made a program that the verifier refuses");
    }
});
