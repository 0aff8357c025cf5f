//! Tables that are written while frames come.

use super::options;
use millrace_dataplane::{Switch, SwitchConfig};
use millrace_differential::compile;
use millrace_rtl::device::{Bench, DeviceOptions};
use millrace_rtl::{Device, Hardware};
use std::sync::Arc;

/// What a frame is told by three tables in ingress and egress.
const VERSIONS: &str = "
    #include <core.p4>
    #include <v1model.p4>
    header h_t { bit<8> key; bit<64> wide; bit<8> a; bit<8> b; bit<8> c; }
    struct headers { h_t h; }
    struct metadata { }
    parser P(packet_in p, out headers hdr, inout metadata m, inout standard_metadata_t s) {
        state start { p.extract(hdr.h); transition accept; }
    }
    control V(inout headers hdr, inout metadata m) { apply { } }
    control I(inout headers hdr, inout metadata m, inout standard_metadata_t s) {
        action a(bit<8> version) { hdr.h.a = version; }
        action b(bit<8> version) { hdr.h.b = version; }
        table exact_t { key = { hdr.h.key: exact; hdr.h.wide: exact; } actions = { a; } size = 256; default_action = a(0); }
        table range_t { key = { hdr.h.key: range; hdr.h.wide: range; } actions = { b; } size = 64; default_action = b(0); }
        apply { s.egress_spec = 1; exact_t.apply(); range_t.apply(); }
    }
    control E(inout headers hdr, inout metadata m, inout standard_metadata_t s) {
        action c(bit<8> version) { hdr.h.c = version; }
        table lpm_t { key = { hdr.h.wide: lpm; } actions = { c; } size = 256; default_action = c(0); }
        apply { lpm_t.apply(); }
    }
    control D(packet_out p, in headers hdr) { apply { p.emit(hdr.h); } }
    V1Switch(P(), V(), I(), E(), V(), D()) main;
";

/// Frames come while tables are written: each meets all tables as they were before an update or as they are after it, whether the words of
/// the update go through the bus or are set at once. Gives the cycles of the first update.
fn frames_meet_whole_updates(words_by_bus: usize) -> u64 {
    let program = compile("versions", VERSIONS);
    let mut control = Switch::new(Arc::clone(&program), SwitchConfig::default()).unwrap();
    let hardware = Hardware::new(Arc::clone(&program), options().stages()).unwrap();
    let device = Device::new(&hardware, DeviceOptions { ports: 2, width: 128, ..options() }).unwrap();
    let mut bench = Bench::new(&device).unwrap();
    bench.set_words_by_bus(words_by_bus);
    bench.set_traffic(5);
    let (mut met, mut first) = ([0; 5], 0);
    for version in 1..met.len() {
        let entries = |key| {
            let exact = format!("table_add exact_t a {key} {key} => {version}\n");
            let range = format!("table_add range_t b {key}->{key} 0->{key} => {version} 1\n");
            format!("{exact}{range}table_add lpm_t c {key}/64 => {version}\n")
        };
        let entries: String = (0..8).map(entries).collect();
        let clear = "table_clear exact_t\ntable_clear range_t\ntable_clear lpm_t\n";
        millrace_control::entries::load(&mut control, &format!("{clear}{entries}")).unwrap();
        for at in 0..200u64 {
            let mut bytes = vec![(at % 8) as u8];
            bytes.extend((at % 8).to_be_bytes());
            bytes.resize(60, 0xee);
            bench.send(0, bytes, false);
        }
        let before = bench.cycle();
        bench.update(control.state()).unwrap();
        first = if version == 1 { bench.cycle() - before } else { first };
        let mut quiet = 0;
        while quiet < 500 {
            let (left, _) = bench.step(&mut |_| true, &mut |_| true);
            quiet = if left.is_empty() && bench.waiting() == 0 { quiet + 1 } else { 0 };
            for frame in left {
                let [a, b, c] = frame.bytes[9..12] else { unreachable!() };
                assert!(a == b && b == c, "a frame has met the versions {a}, {b} and {c}");
                assert!([version - 1, version].contains(&usize::from(a)), "{a} after {version}");
                met[usize::from(a)] += 1;
            }
        }
    }
    assert_eq!(met.iter().sum::<u32>(), 800);
    assert_eq!(bench.simulator().collisions(), 0, "memories are read where they are written");
    first
}

#[test]
fn updates_come_between_frames_by_the_bus_and_at_once() {
    let by_bus = frames_meet_whole_updates(usize::MAX);
    let at_once = frames_meet_whole_updates(64);
    frames_meet_whole_updates(1);
    assert!(4 * at_once < by_bus, "{by_bus} and {at_once} cycles");
}
