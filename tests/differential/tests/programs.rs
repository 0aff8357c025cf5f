//! The programs of the repository: their STF tests, and packets that resemble those of the tests.

use millrace_dataplane::{EngineKind, Outcome, Switch, SwitchConfig};
use millrace_differential::{Trio, compile_path, memory, programs_with_tests};
use millrace_frames::MAX_BATCH;
use millrace_pipeline::arbitrary::Rng;
use millrace_stf::{Statement, parse, run_on};
use std::sync::Arc;

#[test]
fn stf_tests_have_one_outcome() {
    let found = programs_with_tests();
    assert!(found.len() >= 10, "{} tests", found.len());
    for (path, test) in found {
        let program = compile_path(&path);
        let text = std::fs::read_to_string(&test).unwrap();
        let parsed = parse(&text).unwrap();
        let run = |engine| {
            let config = SwitchConfig { engine, ..SwitchConfig::default() };
            let mut switch = Switch::new(Arc::clone(&program), config).unwrap();
            let mut outcomes: Vec<Outcome> = Vec::new();
            let report = run_on(&mut switch, &text, &parsed, |outcome| outcomes.push(outcome.clone()));
            assert!(report.failures.is_empty(), "{}: {:?}", test.display(), report.failures);
            (outcomes, switch.counters().clone(), memory(&switch))
        };
        let (wanted, found) = (run(EngineKind::Interp), run(EngineKind::Jit));
        assert_eq!(wanted.0, found.0, "{}", test.display());
        assert_eq!(wanted.1, found.1, "{}", test.display());
        assert_eq!(wanted.2, found.2, "{}", test.display());
    }
}

/// The packets of each test in bursts, some of them changed a little, over the entries of the test.
#[test]
fn packets_like_those_of_the_tests_have_one_outcome() {
    for (path, test) in programs_with_tests() {
        let program = compile_path(&path);
        let text = std::fs::read_to_string(&test).unwrap();
        let parsed = parse(&text).unwrap();
        let mut set_up = parsed.clone();
        set_up.statements.retain(|(statement, _)| {
            !matches!(statement, Statement::Packet { .. } | Statement::Expect { .. } | Statement::NoPacket)
                && !matches!(statement, Statement::CheckCounter { .. } | Statement::RemoveAll)
        });
        let seeds: Vec<(u32, Vec<u8>)> = (parsed.statements.iter())
            .filter_map(|(statement, _)| match statement {
                Statement::Packet { port, bytes } => Some((*port, bytes.clone())),
                _ => None,
            })
            .collect();
        let mut trio = Trio::new(&program, &SwitchConfig::default(), |switch| {
            let report = run_on(switch, &text, &set_up, |_| ());
            assert!(report.failures.is_empty(), "{}: {:?}", test.display(), report.failures);
        })
        .unwrap();
        let mut rng = Rng::new(1);
        let start = trio.interp.now_ns();
        for round in 0..40 {
            let Some((port, _)) = rng.pick(&seeds).cloned() else { break };
            let of_port: Vec<&Vec<u8>> =
                seeds.iter().filter(|(other, _)| *other == port).map(|(_, bytes)| bytes).collect();
            let batch: Vec<Vec<u8>> = (0..rng.below(MAX_BATCH + 1))
                .filter_map(|_| {
                    let bytes = rng.pick(&of_port)?.to_vec();
                    Some(change(bytes, &mut rng))
                })
                .collect();
            if let Err(difference) = trio.packets(port, &batch, start + round * 1000) {
                panic!("{}, round {round}: {difference}", path.display());
            }
        }
        if let Err(difference) = trio.state() {
            panic!("{}: {difference}", path.display());
        }
    }
}

fn change(mut bytes: Vec<u8>, rng: &mut Rng) -> Vec<u8> {
    match rng.below(6) {
        0 => bytes.truncate(rng.below(bytes.len() + 1)),
        1 => bytes.extend((0..rng.below(40)).map(|_| rng.next_u64() as u8)),
        2 | 3 => {
            for _ in 0..=rng.below(3) {
                let at = rng.below(bytes.len());
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = rng.next_u64() as u8;
                }
            }
        }
        _ => {}
    }
    bytes
}
