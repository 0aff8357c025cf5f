//! Bytes to the Thrift server of a running switch, as they come from the wire: no panic, an end of the connection within
//! seconds, no memory for what is only announced, and the next client is answered.

#![no_main]

use libfuzzer_sys::fuzz_target;
use millrace_fuzz::wire;

fuzz_target!(|data: &[u8]| wire::say(data));
