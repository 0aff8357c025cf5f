//! Programs of the repository in hardware with tables in software, over the host link, next to the interpreter.

use millrace_dataplane::{Switch, SwitchConfig};
use millrace_node::blocks::compile;
use millrace_node::split::{LinkCounts, SplitEngine};
use millrace_pipeline::Program;
use millrace_state::CounterRef;
use millrace_stf::{parse, run_on};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

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
        all.extend(tables.entries(table).map(|entry| format!("{entry:?}")));
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

/// A path to a device that can be cut.
#[derive(Clone, Default)]
struct Proxy(Arc<Mutex<ProxyState>>);

#[derive(Default)]
struct ProxyState {
    /// What the client says goes nowhere, and the link is cut.
    swallows: bool,
    connections: usize,
}

impl Proxy {
    /// A path from a new address to one.
    fn lead_to(&self, device: SocketAddr) -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::clone(&self.0);
        std::thread::spawn(move || {
            let (near, _) = listener.accept().unwrap();
            let far = TcpStream::connect(device).unwrap();
            state.lock().unwrap().connections += 1;
            let (mut from, mut to) = (near.try_clone().unwrap(), far.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut &far, &mut &near));
            let mut bytes = [0; 4096];
            while let Ok(read @ 1..) = from.read(&mut bytes) {
                if state.lock().unwrap().swallows || to.write_all(&bytes[..read]).is_err() {
                    break;
                }
            }
            let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
        });
        address
    }

    fn swallow(&self, swallows: bool) {
        self.0.lock().unwrap().swallows = swallows;
    }
}

#[test]
fn a_link_that_is_cut_loses_only_the_frames_on_it() {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../programs"));
    let mut load = |path: &Path| std::fs::read_to_string(path).map_err(|why| why.to_string());
    let program = compile(&folder.join("l2_switch.p4"), &mut load).unwrap();
    let names: Vec<String> = program.tables.values().map(|table| table.name.clone()).take(1).collect();
    let proxy = Proxy::default();
    let engine = SplitEngine::new(&program, &names).unwrap().through({
        let proxy = proxy.clone();
        move |device| proxy.lead_to(device)
    });
    let counts = engine.counts();
    let counts = move || *counts.lock().unwrap();
    let mut switch =
        Switch::with_engine(Arc::clone(&program), SwitchConfig::default(), Box::new(engine)).unwrap();
    let mut interp = Switch::new(program, SwitchConfig::default()).unwrap();
    let text = std::fs::read_to_string(folder.join("l2_switch.entries")).unwrap();
    for switch in [&mut switch, &mut interp] {
        millrace_control::entries::load(switch, &text).unwrap();
    }
    let frames: Vec<Vec<u8>> = (0..8u8)
        .map(|number| {
            let mut frame = vec![number; 64];
            frame[..6].copy_from_slice(&[0xff; 6]);
            frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, number]);
            frame
        })
        .collect();
    let mut same = |switch: &mut Switch, frame: &[u8]| {
        let wanted = interp.inject(0, frame, 0);
        assert!(!wanted.sent.is_empty());
        assert_eq!(switch.inject(0, frame, 0), wanted);
    };
    frames.iter().for_each(|frame| same(&mut switch, frame));
    assert_eq!((counts().lost, proxy.0.lock().unwrap().connections), (0, 1));
    // One is on the link when it is cut, and two come while it is.
    proxy.swallow(true);
    for frame in &frames[..3] {
        let outcome = switch.inject(0, frame, 0);
        assert_eq!((outcome.sent.len(), outcome.drops.len()), (0, 1));
    }
    assert_eq!(counts().lost, 3);
    // The link comes back, and nothing else was lost.
    proxy.swallow(false);
    std::thread::sleep(Duration::from_millis(150));
    frames.iter().for_each(|frame| same(&mut switch, frame));
    assert_eq!((counts().lost, counts().strays, proxy.0.lock().unwrap().connections), (3, 0, 2));
}

#[test]
fn what_cannot_be_taken_apart_is_refused_with_its_name() {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../programs"));
    let mut load = |path: &Path| std::fs::read_to_string(path).map_err(|why| why.to_string());
    let program = compile(&folder.join("nat.p4"), &mut load).unwrap();
    let why = SplitEngine::new(&program, &["no_such".to_owned()]).unwrap_err().to_string();
    assert_eq!(why, "the program has no table `no_such`");
}
