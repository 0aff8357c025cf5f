//! The engine of the example against the interpreter.

#[path = "../examples/native_engine.rs"]
#[allow(dead_code, unreachable_pub, reason = "it is a program of its own")]
mod native_engine;

use millrace_dataplane::{DropReason, Switch, SwitchConfig};
use millrace_pipeline::text;
use native_engine::{PROGRAM, hairpin};
use std::sync::Arc;

#[test]
fn the_engine_does_what_the_interpreter_does() {
    let program = Arc::new(text::parse(PROGRAM).unwrap());
    let mut interpreted = Switch::new(program, SwitchConfig::default()).unwrap();
    let mut native = hairpin().unwrap();
    assert_eq!((interpreted.engine_name(), native.engine_name()), ("interp", "hairpin"));
    for length in [0, 1, 13, 14, 60, 1514] {
        let frame: Vec<u8> = (0..length).map(|at| at as u8).collect();
        let outcome = native.inject(7, &frame, 0);
        assert_eq!(outcome, interpreted.inject(7, &frame, 0), "{length} bytes");
        // By hand: back to where it came from, unless it is too short.
        match length < 14 {
            true => assert_eq!(outcome.drops[0].reason, DropReason::IngressDrop),
            false => assert_eq!((outcome.sent[0].port, &outcome.sent[0].bytes), (7, &frame)),
        }
    }
}

#[test]
fn a_trace_is_the_interpreters() {
    let mut native = hairpin().unwrap();
    let (outcome, trace) = native.inject_traced(2, &[0; 60], 0);
    assert_eq!(outcome.sent[0].port, 2);
    assert!(format!("{trace:?}").contains("ingress"), "{trace:?}");
    // After it the engine works again.
    assert_eq!(native.inject(5, &[0; 60], 0).sent[0].port, 5);
}
