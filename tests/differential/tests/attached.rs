//! A switch with a whole simulated device (`--engine device`) next to the interpreter: the same frames leave by the same ports, the same
//! drops are counted, and control reads the same counters, for random frames and entries that come and go.

use millrace_dataplane::{
    Attachment, EngineKind, HardwareConfig, KnownPorts, LookupCounts, Switch, SwitchConfig,
};
use millrace_differential::compile_path;
use millrace_link::Place;
use millrace_pipeline::arbitrary::Rng;
use millrace_rtl::DeviceOptions;
use millrace_state::CounterRef;
use std::path::Path;
use std::sync::Arc;

const PORTS: u32 = 4;

/// A frame of a test, as it is, longer, shorter, or with some other bytes.
fn frame(rng: &mut Rng, frames: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = frames[rng.below(frames.len())].clone();
    if rng.one_in(3) {
        let more = rng.below(80);
        bytes.extend((0..more).map(|_| rng.next_u64() as u8));
    }
    if rng.one_in(3) {
        let at = rng.below(bytes.len());
        bytes[at] = rng.next_u64() as u8;
    }
    if rng.one_in(10) {
        bytes.truncate(1 + rng.below(bytes.len()));
    }
    bytes
}

/// Frames that leave, by port, in order for each.
fn leaving(switch: &mut Switch, port: u32, bytes: &[u8], now_ns: u64) -> Vec<(u32, Vec<u8>)> {
    let outcome = switch.inject(port, bytes, now_ns);
    let mut left: Vec<_> = outcome.sent.into_iter().map(|sent| (sent.port, sent.bytes)).collect();
    left.sort_by_key(|(port, _)| *port);
    left
}

fn compare(name: &str, count: usize) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs").join(format!("{name}.p4"));
    let program = compile_path(&path);
    let entries = std::fs::read_to_string(path.with_extension("entries")).unwrap();
    let text = std::fs::read_to_string(path.with_extension("stf")).unwrap();
    let test = millrace_stf::parse(&text).unwrap();
    let frames: Vec<Vec<u8>> = test.frames().map(|(_, bytes)| bytes.to_vec()).collect();
    let options = DeviceOptions { ports: PORTS, width: 128, frame: 1024, ..DeviceOptions::default() };
    let mut switches = [None, Some(Attachment { place: Place::Simulated, options })].map(|device| {
        let ports = KnownPorts::Only((0..PORTS).collect());
        let hardware = HardwareConfig { device, ..HardwareConfig::default() };
        let config = SwitchConfig { engine: EngineKind::Interp, hardware, ports, ..SwitchConfig::default() };
        Switch::new(Arc::clone(&program), config).unwrap()
    });
    assert!(switches[1].has_device() && !switches[0].has_device());
    let mut rng = Rng::new(11);
    let mut left = 0;
    let mut now_ns = 0;
    for turn in 0..count {
        // First without entries, which come while frames do.
        if turn == count / 8 {
            for switch in &mut switches {
                millrace_control::entries::load(switch, &entries).unwrap();
            }
        }
        let (port, bytes) = (rng.below(PORTS as usize) as u32, frame(&mut rng, &frames));
        now_ns += 1_000_000;
        let [software, hardware] = &mut switches;
        let wanted = leaving(software, port, &bytes, now_ns);
        assert_eq!(leaving(hardware, port, &bytes, now_ns), wanted, "{name}: frame {turn}: {bytes:02x?}");
        left += wanted.len();
    }
    assert!(left > count / 4, "{name}: {left} frames left");
    switches.iter_mut().for_each(Switch::settle_device);
    let drops = |switch: &Switch| -> Vec<_> {
        switch.counters().all_drops().filter(|(_, count)| *count > 0).collect()
    };
    assert_eq!(drops(&switches[1]), drops(&switches[0]), "{name}");
    let ports = |switch: &Switch| -> Vec<_> { switch.counters().ports().collect() };
    assert_eq!(ports(&switches[1]), ports(&switches[0]), "{name}");
    let lookups = |switch: &Switch| -> Vec<LookupCounts> { switch.state().lookup_counts().collect() };
    assert_eq!(lookups(&switches[1]), lookups(&switches[0]), "{name}");
    assert!(
        switches[1].counts_lookups() && lookups(&switches[1]).iter().any(|counts| counts.misses > 0),
        "{name}"
    );
    let counted = |switch: &Switch| {
        let tables = switch.state().tables();
        let arrays = program
            .counters
            .iter()
            .flat_map(|(id, counter)| (0..counter.size).map(move |cell| (CounterRef::Indexed(id), cell)));
        let direct = program.tables.iter().filter(|(_, table)| table.direct_counter.is_some());
        let entries = direct.flat_map(|(id, _)| tables.entries(id).map(move |entry| (id, entry.index)));
        let entries = entries.map(|(id, entry)| (CounterRef::Direct(id), u64::from(entry.0)));
        let all: Vec<_> = arrays.chain(entries).collect();
        all.into_iter().map(|(of, cell)| tables.counter_value(of, cell).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(counted(&switches[1]), counted(&switches[0]), "{name}");
}

#[test]
fn a_router() {
    compare("router", 200);
}

#[test]
fn a_switch_with_groups() {
    compare("l2_switch", 200);
}

#[test]
fn clones() {
    compare("cookbook/mirror", 200);
}
