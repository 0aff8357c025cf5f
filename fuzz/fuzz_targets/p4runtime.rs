//! Requests to the P4Runtime server of a switch whose program has an object of every kind, in process: no panic, an answer to
//! each within seconds and bounded memory, and a batch that is taken back leaves everything as it was.

#![no_main]

use arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;
use millrace_fuzz::controller::{Device, requests};
use millrace_fuzz::wire::resident;
use std::time::{Duration, Instant};

/// What a request may take: a program is compiled in it, with the sanitizer.
const TIME: Duration = Duration::from_secs(8);
const MEMORY: u64 = 512 << 20;

fuzz_target!(|data: &[u8]| {
    let mut input = Unstructured::new(data);
    let device = Device::start();
    for request in requests(&mut input) {
        let (begun, before) = (Instant::now(), resident());
        device.ask(request);
        let grown = resident().saturating_sub(before);
        assert!(begun.elapsed() < TIME && grown < MEMORY, "{:?}, {grown} bytes", begun.elapsed());
    }
});
