//! Texts to the parser of queues and schedulers: no panic, little time and memory; what is read is printed and read back as itself.

#![no_main]

use libfuzzer_sys::fuzz_target;
use millrace_fuzz::budget::within;
use millrace_traffic::words::{PortPlan, parse};

fuzz_target!(|text: &str| {
    within(|| match parse(text) {
        Ok(plans) => {
            let printed: String = plans.iter().map(PortPlan::to_string).collect();
            assert_eq!(parse(&printed).as_ref(), Ok(&plans), "{printed}");
        }
        Err(error) => {
            let lines = text.lines().count().max(1);
            assert!((1..=lines).contains(&error.line) && error.column >= 1, "{error}");
        }
    });
});
