//! Whole measurements of small programs.

use millrace_bench::{BenchError, Config, Report, measure};
use millrace_dataplane::{EngineKind, Switch, SwitchConfig};
use millrace_drivers::null::Trace;
use millrace_pipeline::{ActionCall, Bits, EntryMatch, text};
use millrace_state::{EntryWrite, Target};
use std::sync::Arc;
use std::time::Duration;

/// Sends everything to port 5.
fn switch(engine: EngineKind) -> Switch {
    let program = text::parse(
        "program t architecture test errors (NoError)
         ingress (ingress) egress ()
         intrinsic egress_spec = port
         metadata port: bit<32>
         body control ingress { block0: port = 32w5 end }",
    );
    let config = SwitchConfig { engine, ..SwitchConfig::default() };
    Switch::new(Arc::new(program.unwrap()), config).unwrap()
}

fn trace() -> Trace {
    let mut trace = Trace::default();
    (0..200u8).for_each(|number| trace.push(&[number; 60]).unwrap());
    trace
}

fn report(engine: EngineKind, config: &Config) -> Result<Report, BenchError> {
    let quick = Config {
        rounds: 2,
        round: Duration::from_millis(60),
        warm_up: Duration::from_millis(5),
        ..config.clone()
    };
    measure(vec![switch(engine)], &trace(), &quick)
}

#[test]
fn every_frame_is_counted_in_every_way() {
    let digests = [EngineKind::Interp, EngineKind::Jit].map(|engine| {
        [false, true].map(|copy| {
            let report = report(engine, &Config { copy, ..Config::default() }).unwrap();
            assert_eq!((report.frames, report.forwarded, report.dropped), (200, 200, 0));
            assert_eq!(report.ports.into_iter().collect::<Vec<_>>(), [(5, 200)]);
            assert!(report.repeatable && report.mpps > 0.0 && report.profile.is_none());
            report.digest
        })
    });
    assert!(digests.iter().flatten().all(|digest| *digest == digests[0][0]), "{digests:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_profile_has_its_parts() {
    let config = Config { profile: true, ..Config::default() };
    let profile = report(EngineKind::Jit, &config).unwrap().profile.unwrap();
    assert!(profile.samples > 50, "{profile:?}");
    for part in ["driver", "burst"] {
        assert!(profile.cycles.contains_key(part), "{profile:?}");
    }
    // Where there is no code, nothing can be told apart.
    assert!(matches!(report(EngineKind::Interp, &config), Err(BenchError::Profile(_))));
}

/// A router with 200 routes of 24 bits to ports 1 to 4, and frames to all of them.
fn router() -> (Switch, Trace) {
    let program = text::parse(
        "program t architecture test
         errors (NoError, PacketTooShort, HeaderTooShort, ParserInvalidArgument, ParserTimeout)
         intrinsic egress_spec = port
         intrinsic drop = dropped
         intrinsic parser_error = error
         ingress (parse, route) egress (emit)
         header h: h_t { dst: bit<32> }
         metadata port: bit<32>
         metadata dropped: bool
         metadata error: bit<16>
         local to.port: bit<32>
         action to (to.port) = to
         action deny () = deny
         table routes { key h.dst: lpm = h.dst action to action deny default deny() size 1000 }
         body action to { block0: port = to.port end }
         body action deny { block0: dropped = true end }
         body parser parse { block0 state start: extract h end }
         body control route { block0: apply routes, next = block1, exit = block1 block1: end }
         body deparser emit { block0: emit h end }",
    );
    let program = program.unwrap_or_else(|error| panic!("{error}"));
    let config = SwitchConfig { engine: EngineKind::Jit, ..SwitchConfig::default() };
    let switch = Switch::new(Arc::new(program), config).unwrap();
    let routes = switch.state().table_named("routes").unwrap();
    let mut trace = Trace::default();
    for number in 0..200u8 {
        let prefix = EntryMatch::Lpm(Bits::new(32, 0x0a00_0000 | u128::from(number) << 8), 24);
        let port = Bits::new(32, u128::from(number % 4) + 1);
        let entry = EntryWrite {
            matches: vec![prefix],
            priority: 0,
            target: Target::Action(ActionCall { action: 0, args: vec![port] }),
            idle_timeout_ns: 0,
        };
        switch.state().tables().insert(routes, &entry, 0).unwrap();
        trace.push(&[10, 0, number, 77, number]).unwrap();
    }
    (switch, trace)
}

#[test]
fn routes_change_on_another_thread_and_no_frame_is_lost() {
    let (switch, trace) = router();
    let config = Config {
        rounds: 2,
        round: Duration::from_millis(60),
        warm_up: Duration::from_millis(5),
        churn: Some(20_000.0),
        ..Config::default()
    };
    let report = measure(vec![switch], &trace, &config).unwrap();
    let churn = report.churn.unwrap();
    assert_eq!((churn.refused, churn.wrong), (0, 0), "{churn:?}");
    assert!(churn.checked >= 200 && churn.made > 1000.0 && churn.mpps > 0.0, "{churn:?}");
    assert!(report.repeatable);
}
