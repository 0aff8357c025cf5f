//! Lookups of tables are counted: by the interpreter always, by compiled code where it is asked to.

use millrace_dataplane::{EngineKind, LookupCounts, Switch, SwitchConfig};
use millrace_frames::{Burst, HEADROOM, Place, TAILROOM};
use millrace_pipeline::text;
use std::sync::Arc;

/// A table that is looked up in each way, the last one only for packets that hit the first.
const PROGRAM: &str = "program lookups architecture test
    errors (NoError, PacketTooShort, HeaderTooShort, ParserInvalidArgument, ParserTimeout)
    ingress (parse, apply_all) egress ()
    intrinsic parser_error = perr intrinsic egress_spec = port
    metadata perr: bit<16> metadata port: bit<32> metadata hit: bool
    header h: h_t { a: bit<8> dst: bit<32> }
    action nop () = nop
    table small { key a: exact = h.a action nop default nop() size 8
        entry (8w1) => nop() entry (8w2) => nop() }
    table routes { key dst: lpm = h.dst action nop default nop() size 8
        entry (32w0x0a000000/8) => nop() }
    table list { key a: ternary = h.a key dst: ternary = h.dst action nop default nop() size 8
        entry priority 1 (8w2 &&& 8w0xff, 32w0 &&& 32w0) => nop() }
    body action nop { block0: end }
    body parser parse { block0: extract h end }
    body control apply_all {
    block0: apply small, hit = hit, next = block1, exit = block4
    block1: apply routes, next = block2, exit = block4
    block2: branch hit, block3, block4
    block3: apply list, next = block4, exit = block4
    block4: port = 32w1 end }";

/// The first byte, and the first of the address.
const PACKETS: [(u8, u8); 5] = [(1, 10), (1, 11), (2, 10), (9, 10), (9, 12)];

fn frame((a, net): (u8, u8)) -> [u8; 5] {
    [a, net, 0, 0, 1]
}

fn counted(engine: EngineKind, count_lookups: bool, run: impl FnOnce(&mut Switch)) -> Option<Vec<[u64; 2]>> {
    let program = text::parse(PROGRAM).unwrap_or_else(|error| panic!("{error}"));
    let config = SwitchConfig { engine, count_lookups, ..SwitchConfig::default() };
    let mut switch = Switch::new(Arc::new(program), config).unwrap();
    run(&mut switch);
    let counts = switch.state().lookup_counts().map(|LookupCounts { lookups, misses }| [lookups, misses]);
    switch.counts_lookups().then(|| counts.collect())
}

fn one_by_one(switch: &mut Switch) {
    PACKETS.iter().for_each(|packet| assert_eq!(switch.inject(1, &frame(*packet), 0).sent.len(), 1));
}

fn at_once(switch: &mut Switch) {
    let stride = HEADROOM + 64;
    let mut memory = vec![0; stride * PACKETS.len() + TAILROOM];
    let mut places = Vec::new();
    for (number, packet) in PACKETS.iter().enumerate() {
        let at = number * stride + HEADROOM;
        memory[at..at + 5].copy_from_slice(&frame(*packet));
        places.push(Place { at: at as u32, len: 5 });
    }
    let mut sent = 0;
    let mut burst = Burst::new(&mut memory, &places, HEADROOM).unwrap();
    switch.switch_burst(1, &mut burst, |_, _| sent += 1);
    assert_eq!(sent, PACKETS.len());
}

#[test]
fn lookups_and_misses_are_counted_in_every_way() {
    // Of five packets two have no `a`, and two no route; of the three with one `a`, two are not in the list.
    let expected = Some(vec![[5, 2], [5, 2], [3, 2]]);
    assert_eq!(counted(EngineKind::Interp, false, one_by_one), expected);
    for &engine in EngineKind::HERE {
        assert_eq!(counted(engine, true, one_by_one), expected);
        assert_eq!(counted(engine, true, at_once), expected);
    }
    if EngineKind::HERE.contains(&EngineKind::Jit) {
        assert_eq!(counted(EngineKind::Jit, false, at_once), None);
    }
}
