//! Whole measurements of small programs.

use millrace_bench::{BenchError, Config, Report, measure};
use millrace_pipeline::text;
use millrace_ports::null::Trace;
use millrace_switch::{EngineKind, Switch, SwitchConfig};
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
