//! Requests to the P4Runtime server of a switch whose program has an object of every kind, in process: no panic, an answer to
//! each, and a batch that is taken back leaves everything as it was.

#![no_main]

use arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;
use millrace_fuzz::controller::{Device, requests};

fuzz_target!(|data: &[u8]| {
    let mut input = Unstructured::new(data);
    let device = Device::start();
    for request in requests(&mut input) {
        device.ask(request);
    }
});
