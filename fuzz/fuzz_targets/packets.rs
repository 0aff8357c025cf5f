//! Frames to every program of `programs/` with its entries: no panic, and every frame is sent or dropped.
//!
//! The input is a list of frames, each after two bytes: port, and length in steps of a byte; what is cut off counts as a
//! truncated frame.

#![no_main]

use libfuzzer_sys::fuzz_target;
use millrace_dataplane::Switch;
use millrace_fuzz::SUBJECTS;
use std::cell::RefCell;

thread_local! {
    static SWITCHES: RefCell<Vec<Switch>> = RefCell::new(SUBJECTS.iter().map(|s| s.switch()).collect());
}

fuzz_target!(|data: &[u8]| {
    SWITCHES.with_borrow_mut(|switches| {
        for switch in switches {
            let mut rest = data;
            let mut time_ns = switch.now_ns();
            while let [port, length, tail @ ..] = rest {
                let (frame, tail) = tail.split_at(tail.len().min(usize::from(*length)));
                time_ns += 1000;
                let mut outcome = switch.inject(u16::from(*port % 16).into(), frame, time_ns);
                let later = switch.drain();
                outcome.sent.extend(later.sent);
                outcome.drops.extend(later.drops);
                assert!(
                    !outcome.sent.is_empty() || !outcome.drops.is_empty(),
                    "a frame of {} bytes vanished",
                    frame.len()
                );
                rest = tail;
            }
        }
    });
});
