//! Texts to the parser of device files: no panic, little time and memory; what is read is printed and read back as itself, and
//! leads to itself by no change; what is wrong has its places in the text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use millrace_device_file::{DeviceFile, MAX_PROBLEMS, changes};
use millrace_fuzz::budget::within;

fuzz_target!(|text: &str| {
    within(|| match DeviceFile::parse("a.toml", text) {
        Ok(file) => {
            let printed = file.to_toml();
            assert_eq!(DeviceFile::parse("b.toml", &printed).as_ref(), Ok(&file), "{printed}");
            assert!(changes(&file, &file).list.is_empty());
        }
        Err(problems) => {
            assert!((1..=MAX_PROBLEMS).contains(&problems.problems.len()));
            for problem in &problems.problems {
                assert!(text.get(problem.place.bytes.clone()).is_some(), "{problem:?}");
            }
            assert!(!problems.render(false).is_empty());
        }
    });
});
