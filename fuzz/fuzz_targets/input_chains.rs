//! Texts to the parser of chains, and to that of filters: no panic, little time and memory, and a filter ends for every frame.

#![no_main]

use libfuzzer_sys::fuzz_target;
use millrace_fuzz::budget::within;
use millrace_inputs::Chain;
use millrace_inputs::filter::{Filter, MAX_INSTRUCTIONS};

fuzz_target!(|data: &[u8]| {
    let split = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    let (text, frame) = data.split_at(split);
    let Ok(text) = std::str::from_utf8(text) else { return };
    within(|| {
        if let Ok(filter) = Filter::compile(text) {
            assert!(filter.instructions() <= MAX_INSTRUCTIONS);
            filter.selects(frame);
            filter.selects(&[]);
        }
        if let Err(error) = text.parse::<Chain>() {
            error.to_string();
        }
    });
});
