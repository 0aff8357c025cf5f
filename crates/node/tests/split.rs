//! Programs of the repository in hardware with tables in software, over the host link, next to the interpreter.

use millrace_dataplane::{Switch, SwitchConfig};
use millrace_node::blocks::compile;
use millrace_node::split::{LinkCounts, SplitEngine};
use millrace_pipeline::Program;
use millrace_state::CounterRef;
use millrace_stf::{parse, run_on};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A switch with these tables in software; what was counted of its link at the end.
fn split(
    program: &Arc<Program>,
    software: &[String],
    config: SwitchConfig,
) -> Result<(Switch, impl Fn() -> LinkCounts), String> {
    let engine = SplitEngine::new(program, software).map_err(|why| why.to_string())?;
    let (counts, capacities) = (engine.counts(), engine.capacities());
    let switch = Switch::with_engine(Arc::clone(program), config, Box::new(engine));
    let switch = switch.map_err(|why| why.to_string())?;
    for (table, entries) in capacities {
        switch.state().tables().set_capacity(table, u32::try_from(entries).unwrap_or(u32::MAX));
    }
    Ok((switch, move || *counts.lock().unwrap()))
}

/// Entries with their counts, and counters.
fn objects(switch: &Switch) -> Vec<String> {
    let (program, tables) = (switch.program(), switch.state().tables());
    let mut all = Vec::new();
    for table in program.tables.keys() {
        all.extend(tables.entries(table).into_iter().map(|entry| format!("{entry:?}")));
    }
    for (id, counter) in &program.counters {
        let value = |cell| tables.counter_value(CounterRef::Indexed(id), cell);
        all.extend(
            (0..counter.size.min(64)).map(|cell| format!("{}[{cell}]: {:?}", counter.name, value(cell))),
        );
    }
    all
}

/// All in hardware, all tables in software, and each table alone: the test of the program passes, and each packet has the outcome that it
/// has in the interpreter, and so have counters, tables and registers at the end.
fn each_placement(name: &str, tables: &[&str]) {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../programs"));
    let mut load = |path: &Path| std::fs::read_to_string(path).map_err(|why| why.to_string());
    let program = compile(&folder.join(format!("{name}.p4")), &mut load).unwrap();
    let text = std::fs::read_to_string(folder.join(format!("{name}.stf"))).unwrap();
    let test = parse(&text).unwrap();
    let mut wanted = Vec::new();
    let mut interp = Switch::new(Arc::clone(&program), SwitchConfig::default()).unwrap();
    let report = run_on(&mut interp, &text, &test, |outcome| wanted.push(outcome.clone()));
    assert!(report.is_success() && !wanted.is_empty());
    let mut placements: Vec<Vec<String>> = tables.iter().map(|table| vec![(*table).to_owned()]).collect();
    placements.push(Vec::new());
    placements.push(tables.iter().map(|table| (*table).to_owned()).collect());
    for software in placements {
        let (mut switch, counts) = split(&program, &software, SwitchConfig::default())
            .unwrap_or_else(|why| panic!("{name} with {software:?}: {why}"));
        let mut found = Vec::new();
        let report = run_on(&mut switch, &text, &test, |outcome| found.push(outcome.clone()));
        assert!(report.is_success(), "{name} with {software:?}: {:?}", report.failures);
        assert_eq!(wanted, found, "{name} with {software:?}");
        assert_eq!(interp.counters(), switch.counters(), "{name} with {software:?}");
        assert_eq!(objects(&interp), objects(&switch), "{name} with {software:?}");
        let counts = counts();
        assert_eq!(
            (counts.tables > 0, counts.lost, counts.strays),
            (!software.is_empty(), 0, 0),
            "{software:?}"
        );
        assert!(counts.frames > 0);
    }
}

#[test]
fn nat_has_the_same_results_in_each_placement() {
    each_placement(
        "nat",
        &["static_in", "binding_in", "ipv4_lpm", "static_out", "binding_out", "send_frame"],
    );
}

#[test]
fn the_gateway_has_the_same_results_in_each_placement() {
    each_placement(
        "l3_gateway_gtp",
        &["own_addresses", "uplink_tunnels", "downlink_tunnels", "ipv4_lpm", "send_frame"],
    );
}
