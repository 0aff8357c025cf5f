//! Copies for sets of ports: whatever part of egress they pass one by one or together, each leaves, is dropped and is counted as if it
//! had passed egress on its own.

use millrace_dataplane::{KnownPorts, SwitchConfig};
use millrace_differential::{Trio, compile, compile_path};
use millrace_frames::MAX_BATCH;
use millrace_midend::copies::Copies;
use millrace_pipeline::arbitrary::Rng;
use millrace_pipeline::{Program, Work};
use millrace_stf::{parse, run_on};
use std::path::Path;
use std::sync::Arc;

/// How a program's copies pass egress: so many bodies one by one, and so many slots cleared for each.
type How = Option<(usize, usize)>;

/// Egress and what is computed after it, with the entries of tables.
const PROGRAMS: [(&str, &str, &str, &str, How); 9] = [
    ("nothing", "", "", "", Some((1, 0))),
    (
        "a table says which are dropped",
        "counter(32, CounterType.packets_and_bytes) aged;
         action limit(bit<8> most) { meta.most = most; }
         direct_counter(CounterType.packets) hits;
         table limits {
             key = { sm.egress_port: exact @name(\"port\"); }
             actions = { limit; NoAction; }
             default_action = NoAction();
             counters = hits;
         }
         apply {
             limits.apply();
             if (meta.most != 0 && hdr.h.mark > meta.most) {
                 aged.count((bit<32>)sm.egress_port);
                 mark_to_drop(sm);
             }
         }",
        "update_checksum(true, { hdr.h.set, hdr.h.mark }, hdr.h.sum, HashAlgorithm.csum16);",
        "table_add limits limit 1 => 9\ntable_add limits limit 3 => 200\ntable_add limits limit 31 => 1\n",
        Some((1, 1)),
    ),
    ("all are dropped", "apply { mark_to_drop(sm); }", "", "", Some((1, 0))),
    (
        "some are dropped by number, at two places",
        "apply {
             if (sm.egress_port == 2) { mark_to_drop(sm); }
             if (sm.egress_port[0:0] == hdr.h.mark[0:0]) { mark_to_drop(sm); exit; }
             if (sm.instance_type != 5 || sm.egress_rid != 0 || sm.packet_length != (bit<32>)meta.length) { mark_to_drop(sm); }
         }",
        "",
        "",
        Some((1, 0)),
    ),
    (
        "none sees what another has written",
        "apply { meta.most = meta.most + 1; if (meta.most > 1) { mark_to_drop(sm); } }",
        "",
        "",
        Some((1, 1)),
    ),
    (
        "ingress has written what egress changes",
        "apply { meta.n = meta.n + (bit<16>)sm.egress_port; if (meta.n > 40) { mark_to_drop(sm); } }",
        "",
        "",
        None,
    ),
    ("they are not alike", "apply { hdr.h.mark = (bit<8>)sm.egress_port; }", "", "", None),
    (
        "what is computed after it depends on the port",
        "apply { meta.most = (bit<8>)sm.egress_port; }",
        "update_checksum(true, { hdr.h.set, meta.most }, hdr.h.sum, HashAlgorithm.csum16);",
        "",
        None,
    ),
    (
        "they are remembered",
        "register<bit<8>>(32) last;
         apply { last.write((bit<32>)sm.egress_port, hdr.h.mark); }",
        "",
        "",
        None,
    ),
];

fn program((name, egress, compute, ..): (&str, &str, &str, &str, How)) -> Arc<Program> {
    let egress = if egress.is_empty() { "apply { }" } else { egress };
    compile(
        name,
        &format!(
            "#include <core.p4>
             #include <v1model.p4>
             header h_t {{ bit<40> set; bit<8> mark; bit<16> sum; }}
             struct headers_t {{ h_t h; }}
             struct meta_t {{ @egress_ports bit<64> ports; bit<8> most; bit<16> n; bit<16> length; }}
             parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{
                 state start {{ packet.extract(hdr.h); transition accept; }}
             }}
             control V(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
             control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{
                 apply {{
                     meta.ports = (bit<64>)hdr.h.set;
                     meta.n = (bit<16>)hdr.h.mark;
                     meta.length = (bit<16>)sm.packet_length;
                     sm.egress_spec = 7;
                     if (hdr.h.mark == 77) {{ truncate(5); }}
                 }}
             }}
             control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{ {egress} }}
             control C(inout headers_t hdr, inout meta_t meta) {{ apply {{ {compute} }} }}
             control D(packet_out packet, in headers_t hdr) {{ apply {{ packet.emit(hdr.h); }} }}
             V1Switch(P(), V(), I(), E(), C(), D()) main;"
        ),
    )
}

/// A packet for some ports: few, none, one that has no copy, or many; now and then too short to be parsed.
fn packet(rng: &mut Rng) -> Vec<u8> {
    let set = match rng.below(8) {
        0 => 0,
        1 => 1 << rng.below(40),
        2 => 0xffff_ffff,
        3 => rng.next_u64() >> 24,
        _ => rng.next_u64() & rng.next_u64() & 0x8000_03ff,
    };
    let mut packet = set.to_be_bytes()[3..].to_vec();
    packet.push(if rng.below(9) == 0 { 77 } else { rng.next_u64() as u8 });
    packet.extend([0; 2]);
    packet.extend((0..rng.below(70)).map(|_| rng.next_u64() as u8));
    packet.truncate(if rng.below(20) == 0 { rng.below(9) } else { packet.len() });
    packet
}

#[test]
fn each_copy_leaves_as_if_it_had_passed_egress_on_its_own() {
    for (number, one) in PROGRAMS.into_iter().enumerate() {
        let (name, _, _, entries, how) = one;
        let program = program(one);
        let found =
            Copies::of(&program, &Work::of(&program)).map(|copies| (copies.apart, copies.cleared.len()));
        assert_eq!(found, how, "{name}");
        // A drop counts where the copy came from until its port is known, and compiled code counts drops of a burst before others: so
        // ports are known before.
        for ports in [(0..40).collect(), (0..10).chain([31]).collect()] {
            let config = SwitchConfig { ports: KnownPorts::Only(ports), ..SwitchConfig::default() };
            let mut trio = Trio::new(&program, &config, |switch| {
                let report = run_on(switch, entries, &parse(entries).unwrap(), |_| ());
                assert!(report.failures.is_empty(), "{name}: {:?}", report.failures);
            })
            .unwrap();
            let mut rng = Rng::new(number as u64);
            let (start, mut sent, mut dropped) = (trio.interp.now_ns(), 0, 0);
            for round in 0..60 {
                let batch: Vec<Vec<u8>> = (0..1 + rng.below(MAX_BATCH)).map(|_| packet(&mut rng)).collect();
                let outcome = trio.packets(4, &batch, start + round * 1000);
                let outcome =
                    outcome.unwrap_or_else(|difference| panic!("{name}, round {round}: {difference}"));
                sent += outcome.outputs().count();
                dropped += outcome.drops.len();
            }
            trio.state().unwrap_or_else(|difference| panic!("{name}: {difference}"));
            assert!(sent > 500 || name == "all are dropped", "{name}: {sent} sent");
            assert!(dropped > 1000 || !name.contains("dropped"), "{name}: {dropped} dropped");
        }
    }
}

/// A SimpleSumeSwitch has no egress: its deparser has made the frame before there are copies.
#[test]
fn copies_of_a_program_without_egress_are_sent_at_once() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../programs/sume_switch.p4");
    let program = compile_path(&path);
    assert_eq!(Copies::of(&program, &Work::of(&program)), Some(Copies { apart: 0, cleared: Vec::new() }));
}
