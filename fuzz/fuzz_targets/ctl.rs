//! Lines to a device with virtual switches: no panic, little time and memory, no line over its limit; a request that is read is
//! written and read back as itself.

#![no_main]

use libfuzzer_sys::fuzz_target;
use millrace_ctl_api::{Answer, Hello, LineError, MAX_REQUEST, Request, read_line, write_line};
use millrace_fuzz::budget::within;
use std::fmt::Debug;
use std::io::BufReader;

/// Longest line here, so that some are over it.
const MAX_LINE: usize = 4000;

fuzz_target!(|bytes: &[u8]| {
    within(|| {
        // Pieces of a few bytes, as a slow client sends them.
        let mut reader = BufReader::with_capacity(16, bytes);
        loop {
            match read_line(&mut reader, MAX_LINE) {
                Ok(Some(line)) => {
                    assert!(line.len() <= MAX_LINE && line.capacity() <= MAX_LINE);
                    survives::<Hello>(&line);
                    survives::<Request>(&line);
                    survives::<Answer>(&line);
                }
                Ok(None) => break,
                Err(LineError::TooLong(max)) => {
                    assert!(max == MAX_LINE && bytes.len() > MAX_LINE);
                    break;
                }
                Err(LineError::Partial) => {
                    assert!(bytes.last() != Some(&b'\n'));
                    break;
                }
                Err(error) => panic!("{error}"),
            }
        }
    });
});

fn survives<T>(line: &[u8])
where
    T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + Debug,
{
    let Ok(value) = serde_json::from_slice::<T>(line) else { return };
    let mut written = Vec::new();
    write_line(&mut written, &value, MAX_REQUEST).expect("what was read can be written");
    let read = read_line(&mut written.as_slice(), MAX_REQUEST).expect("it is a line").expect("it is there");
    assert_eq!(serde_json::from_slice::<T>(&read).expect("it is read back"), value);
}
