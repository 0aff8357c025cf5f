//! Plugins from the text form of WebAssembly: what they are given, what they answer, what bounds them, and what happens to them.

use millrace_plugins::{
    Called, Caller, Grants, LoadError, MAX_MODULE, MAX_PLUGINS, Policy, Registry, Settings, Splice, State,
};
use std::time::{Duration, Instant};

/// A module whose area is at 1024, with buffers of 64 bytes for the payload (2048) and for a packet (4096), and this code.
fn module(call: &str) -> Vec<u8> {
    wat::parse_str(text(call)).unwrap()
}

fn text(call: &str) -> String {
    format!(
        r#"(module
            (memory (export "memory") 1)
            (data (i32.const 1024)
                "\01\00\00\00" "\40\00\00\00" "\00\08\00\00" "\40\00\00\00" "\00\10\00\00")
            (global $calls (mut i32) (i32.const 0))
            (func (export "millrace_area") (result i32) i32.const 1024)
            (func (export "millrace_call") (result i32) {call}))"#
    )
}

/// The sum of the two words that come in, and how many bytes of the payload there are.
const ADD: &str =
    "(i64.store (i32.const 1328) (i64.add (i64.load (i32.const 1072)) (i64.load (i32.const 1080))))
    (i64.store (i32.const 1336) (i64.load32_u (i32.const 1048)))
    (i32.const 0)";
const LOOP: &str = "(loop $again (br $again)) (i32.const 0)";
const TRAP: &str = "unreachable";

fn registry(call: &str, settings: &str) -> Registry {
    let registry = Registry::new().unwrap();
    registry.load("p", &module(call), settings.parse().unwrap()).unwrap();
    registry
}

fn bind(registry: &Registry) -> Caller {
    registry.bind("p", Policy::Pass, Grants { rewrite: true }).unwrap()
}

fn dropped() -> Called<'static> {
    Called { drop: true, ..Called::default() }
}

#[test]
fn words_come_in_and_go_out() {
    let registry = registry(ADD, "");
    let mut caller = bind(&registry);
    let mut outs = [9; 2];
    assert_eq!(caller.call(&[40, 2], &mut outs, &[7; 100]), Called::default());
    assert_eq!(outs, [42, 100]);
    // What is not written is 0, also after a call that wrote it.
    let mut outs = [9; 3];
    caller.call(&[u64::MAX, 2], &mut outs, &[]);
    assert_eq!(outs, [1, 0, 0]);
    let shot = &registry.list()[0];
    assert_eq!((shot.name.as_str(), shot.state, shot.counts.calls, shot.callers), ("p", State::On, 2, 1));
    assert!(shot.counts.fuel > 10 && shot.counts.fuel < 100, "{}", shot.counts.fuel);
}

#[test]
fn a_payload_is_changed_and_a_packet_answered() {
    // The first byte of the payload becomes its length in the buffer, and its length 3; a packet of two bytes.
    let call = "(i32.store8 (i32.const 2048) (i32.load (i32.const 1044)))
        (i32.store (i32.const 1044) (i32.const 3))
        (i32.store16 (i32.const 4096) (i32.const 0x6261))
        (i32.store (i32.const 1052) (i32.const 2))
        (i32.const 7)";
    let registry = registry(call, "");
    let mut caller = bind(&registry);
    let wanted = |replaced, bytes| Called {
        drop: true,
        payload: Some(Splice { replaced, bytes }),
        reply: Some(b"ab".as_slice()),
    };
    assert_eq!(caller.call(&[], &mut [], b"xyz!!"), wanted(5, b"\x05yz".as_slice()));
    // It sees what there is room for, and changes no more.
    assert_eq!(caller.call(&[], &mut [], &[b'q'; 90]), wanted(64, b"\x40qq".as_slice()));
    let counts = registry.list()[0].counts;
    assert_eq!((counts.rewrites, counts.replies, counts.drops, counts.traps), (2, 2, 2, 0));
    // A program that grants no change has none.
    let mut reader = registry.bind("p", Policy::Pass, Grants::default()).unwrap();
    assert_eq!(reader.call(&[], &mut [], b"xyz"), Called::default());
    assert_eq!(registry.list()[0].counts.traps, 1);
}

#[test]
fn a_loop_ends_within_its_budget_and_takes_the_plugin_with_it() {
    let registry = registry(LOOP, "fuel=100000,failures=3,policy=drop");
    let mut caller = bind(&registry);
    let started = Instant::now();
    for _ in 0..3 {
        assert_eq!(caller.call(&[], &mut [5], &[]), dropped());
    }
    // 300,000 instructions; a debug build of the host does not make them slower.
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
    let shot = &registry.list()[0];
    assert_eq!((shot.state, shot.failures), (State::Failed, 3));
    assert_eq!((shot.counts.over_budget, shot.counts.fuel), (3, 300_000));
    // It is not called any more, by no worker.
    let mut other = bind(&registry);
    assert_eq!(caller.call(&[], &mut [5], &[]), dropped());
    assert_eq!(other.call(&[], &mut [5], &[]), dropped());
    let shot = &registry.list()[0];
    assert_eq!((shot.counts.calls, shot.counts.unanswered, shot.counts.drops), (3, 2, 5));
    // Loaded again it answers.
    registry.load("p", &module(ADD), Settings::default()).unwrap();
    let mut outs = [0];
    assert_eq!(caller.call(&[1, 2], &mut outs, &[]), Called::default());
    assert_eq!((outs, registry.list()[0].state), ([3], State::On));
}

#[test]
fn who_traps_starts_again_from_a_fresh_instance() {
    // The first call of an instance counts, the second traps.
    let call = "(global.set $calls (i32.add (global.get $calls) (i32.const 1)))
        (if (i32.gt_u (global.get $calls) (i32.const 1)) (then unreachable))
        (i64.store (i32.const 1328) (i64.const 1))
        (i32.const 0)";
    let registry = registry(call, "failures=3");
    let mut caller = bind(&registry);
    let mut gave = Vec::new();
    for _ in 0..7 {
        let mut outs = [9];
        assert_eq!(caller.call(&[], &mut outs, &[]), Called::default());
        gave.push(outs[0]);
    }
    assert_eq!(gave, [1, 0, 1, 0, 1, 0, 0]);
    let shot = &registry.list()[0];
    assert_eq!((shot.state, shot.counts.traps, shot.counts.unanswered), (State::Failed, 3, 1));
}

#[test]
fn memory_is_bounded() {
    // 32 MiB more than there may be: -1; 1 MiB: it is there.
    let grow = |pages: u32| {
        format!(
            "(i64.store (i32.const 1328) (i64.extend_i32_s (memory.grow (i32.const {pages})))) (i32.const 0)"
        )
    };
    for (pages, wanted) in [(512, u64::MAX), (16, 1)] {
        let registry = registry(&grow(pages), "memory=16");
        let mut outs = [0];
        bind(&registry).call(&[], &mut outs, &[]);
        assert_eq!(outs, [wanted]);
    }
    let large = text("i32.const 0").replace("(export \"memory\") 1", "(export \"memory\") 512");
    let registry = Registry::new().unwrap();
    let refused = registry.load("p", &wat::parse_str(large).unwrap(), Settings::default());
    assert!(matches!(refused, Err(LoadError::Instance(_))), "{refused:?}");
    // Recursion without end meets the end of its stack.
    let deep = text("call $deep")
        .replace("(func (export \"millrace_call\")", "(func $deep (export \"millrace_call\")");
    registry.load("p", &wat::parse_str(deep).unwrap(), Settings::default()).unwrap();
    bind(&registry).call(&[], &mut [], &[]);
    assert_eq!(registry.list()[0].counts.traps, 1);
}

#[test]
fn workers_take_what_was_loaded_at_their_next_call() {
    let give =
        |number: u32| module(&format!("(i64.store (i32.const 1328) (i64.const {number})) (i32.const 0)"));
    let registry = Registry::new().unwrap();
    let mut early = bind(&registry);
    let call = |caller: &mut Caller| {
        let mut outs = [7];
        caller.call(&[], &mut outs, &[]);
        outs[0]
    };
    assert_eq!((call(&mut early), registry.list()[0].state), (0, State::Missing));
    for number in 1..4 {
        registry.load("p", &give(number), Settings::default()).unwrap();
        let mut late = bind(&registry);
        assert_eq!((call(&mut early), call(&mut late)), (number.into(), number.into()));
    }
    registry.switch("p", false).unwrap();
    assert_eq!((call(&mut early), registry.list()[0].state), (0, State::Off));
    registry.switch("p", true).unwrap();
    assert_eq!(call(&mut early), 3);
    // A module that is refused changes nothing.
    assert!(registry.load("p", b"\0asm", Settings::default()).is_err());
    assert_eq!((call(&mut early), registry.list()[0].loads), (3, 3));
    // What workers counted stays when they go.
    let calls = registry.list()[0].counts.calls;
    drop(early);
    assert_eq!((registry.list()[0].counts.calls, registry.list()[0].callers), (calls, 0));
}

#[test]
fn a_replacement_under_load_loses_no_call() {
    let give =
        |number: u32| module(&format!("(i64.store (i32.const 1328) (i64.const {number})) (i32.const 0)"));
    let registry = Registry::new().unwrap();
    registry.load("p", &give(1), Settings::default()).unwrap();
    let (callers, loads) = (2, 20);
    std::thread::scope(|scope| {
        for _ in 0..callers {
            let mut caller = bind(&registry);
            scope.spawn(move || {
                let mut last = 0;
                while last < loads {
                    let mut outs = [0];
                    assert_eq!(caller.call(&[], &mut outs, &[]), Called::default());
                    assert!(outs[0] >= last && outs[0] > 0, "{} after {last}", outs[0]);
                    last = outs[0];
                }
            });
        }
        for number in 2..=loads {
            registry.load("p", &give(number as u32), Settings::default()).unwrap();
        }
    });
    let counts = registry.list()[0].counts;
    assert_eq!((counts.unanswered, counts.traps, counts.over_budget), (0, 0, 0));
}

#[test]
fn a_module_that_is_no_plugin_is_refused() {
    let registry = Registry::new().unwrap();
    let load = |text: &str| {
        registry.load("p", &wat::parse_str(text).unwrap(), Settings::default()).unwrap_err().to_string()
    };
    let import = r#"(module (import "env" "clock" (func)) (memory (export "memory") 1))"#;
    assert_eq!(load(import), "the module imports `env.clock`, and plugins may import nothing");
    assert_eq!(load("(module)"), "the module does not export a memory `memory`");
    let memory = r#"(module (memory (export "memory") 1))"#;
    assert_eq!(load(memory), "the module does not export a function `millrace_area: () -> i32`");
    let other = text("i32.const 0").replace("\\01\\00\\00\\00", "\\02\\00\\00\\00");
    assert_eq!(load(&other), "no instance of the module can be made: its area has version 2, not 1");
    let far = text("i32.const 0").replace("(result i32) i32.const 1024)", "(result i32) i32.const 65000)");
    assert_eq!(load(&far), "no instance of the module can be made: its area is not in its memory");
    let start =
        text("i32.const 0").replace("(global $calls", "(func $s (loop (br 0))) (start $s) (global $calls");
    assert!(load(&start).contains("fuel"), "{}", load(&start));
    let refused = registry.load("p", &vec![0; MAX_MODULE + 1], Settings::default());
    assert_eq!(refused, Err(LoadError::Size(MAX_MODULE + 1)));
    assert_eq!(
        registry.load("a/b", &module(ADD), Settings::default()),
        Err(LoadError::Name("a/b".to_owned()))
    );
    assert_eq!(registry.switch("q", true), Err(LoadError::Unknown("q".to_owned())));
    let bound: Vec<_> =
        (0..MAX_PLUGINS).map(|n| registry.bind(&format!("n{n}"), Policy::Pass, Grants::default())).collect();
    assert!(bound.iter().all(Result::is_ok));
    assert!(matches!(registry.bind("more", Policy::Pass, Grants::default()), Err(LoadError::TooMany)));
}

#[test]
fn an_answer_that_is_none_is_a_failure() {
    for call in [TRAP, "i32.const 8", "(i32.store (i32.const 1052) (i32.const 65)) (i32.const 4)"] {
        let registry = registry(call, "policy=drop");
        assert_eq!(bind(&registry).call(&[], &mut [], &[]), dropped());
        assert_eq!(registry.list()[0].counts.traps, 1, "{call}");
    }
}
