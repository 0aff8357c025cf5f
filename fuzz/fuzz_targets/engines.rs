//! Random programs of the IR and packets to both engines: packets, their order, drops, messages, counters and state are
//! the same.
//!
//! The input: eight bytes that the program grows from, one for its size, then batches of frames, each after two bytes:
//! port and length. A frame of length 0 ends a batch.

#![no_main]

use libfuzzer_sys::fuzz_target;
use millrace_dataplane::SwitchConfig;
use millrace_differential::{Trio, out_of_steps, program, set_up};
use std::sync::Arc;

fuzz_target!(|data: &[u8]| {
    let Some((seed, rest)) = data.split_first_chunk::<8>() else { return };
    let Some((size, mut rest)) = rest.split_first() else { return };
    let program = Arc::new(program(u64::from_le_bytes(*seed), 1 + usize::from(size % 8)));
    let config = SwitchConfig { max_passes: 6, ..SwitchConfig::default() };
    // A few programs have one entry twice in a table.
    let Ok(mut trio) = Trio::new(&program, &config, set_up) else { return };
    let mut time_ns = 0;
    while !rest.is_empty() {
        let (mut batch, mut port) = (Vec::new(), 0);
        while let [at, length, tail @ ..] = rest {
            let (frame, tail) = tail.split_at(tail.len().min(usize::from(*length)));
            rest = tail;
            if frame.is_empty() || batch.len() == 64 {
                break;
            }
            port = u32::from(at % 4);
            batch.push(frame.to_vec());
        }
        if rest.len() < 2 {
            rest = &[];
        }
        time_ns += 1000;
        let outcome = trio.packets(port, &batch, time_ns).unwrap_or_else(|difference| panic!("{difference}"));
        if out_of_steps(&outcome, &program) {
            return;
        }
    }
    trio.state().unwrap_or_else(|difference| panic!("{difference}"));
});
