//! Entries files to every program of `programs/`: no panic; a file that is refused changes nothing.

#![no_main]

use libfuzzer_sys::fuzz_target;
use millrace_fuzz::SUBJECTS;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for subject in SUBJECTS.iter() {
        let mut switch = subject.empty_switch();
        if millrace_control::entries::load(&mut switch, text).is_err() {
            let dump = |switch: &mut millrace_dataplane::Switch| {
                let all: String = subject
                    .program
                    .tables
                    .values()
                    .map(|table| format!("table_dump {}\n", table.name))
                    .collect();
                millrace_control::entries::load(switch, &all).expect("every table can be shown").text
            };
            assert_eq!(
                dump(&mut switch),
                dump(&mut subject.empty_switch()),
                "a refused file changed a table"
            );
        }
    }
});
