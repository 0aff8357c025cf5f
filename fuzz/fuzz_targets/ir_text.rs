//! IR text to its parser: no panic; what parses prints and parses back to itself; what verifies can be optimised.

#![no_main]

use libfuzzer_sys::fuzz_target;
use millrace_pipeline::{passes, text, verify};

fuzz_target!(|data: &[u8]| {
    let Ok(source) = std::str::from_utf8(data) else { return };
    let Ok(mut program) = text::parse(source) else { return };
    let printed = text::print(&program);
    let again = text::parse(&printed).expect("what was printed parses");
    assert_eq!(program, again);
    if verify(&program).is_ok() {
        passes::optimize(&mut program);
        verify(&program).expect("an optimised program passes the verifier");
    }
});
