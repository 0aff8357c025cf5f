//! Records of the host link: no panic, little time and memory; a record that is read is written and read back as itself.

#![no_main]

use libfuzzer_sys::fuzz_target;
use millrace_fuzz::budget::within;
use millrace_link::{ToDevice, ToHost};

fuzz_target!(|record: &[u8]| {
    within(|| {
        if let Ok(said) = ToDevice::decode(record) {
            assert_eq!(ToDevice::decode(&said.encode()[4..]), Ok(said));
        }
        if let Ok(said) = ToHost::decode(record) {
            assert_eq!(ToHost::decode(&said.encode()[4..]), Ok(said));
        }
    });
});
