//! Packets that plugins drop, change and answer, in both engines, one by one and as bursts.

use millrace_dataplane::{DropReason, EngineKind, Switch, SwitchConfig};
use millrace_frames::{Burst, HEADROOM, Place, TAILROOM};
use millrace_pipeline::{Plugin, Program, text, verify};
use millrace_state::{PluginAnswer, PluginCaller, PluginHost};
use std::sync::Arc;

/// A plugin that does what the first byte of the payload says: bit 0 drops, bit 1 answers with the payload, bit 2 doubles it, bit 3
/// cuts it to that byte.
#[derive(Debug)]
struct Obedient;

#[derive(Debug, Default)]
struct Caller(Vec<u8>, Vec<u8>);

impl PluginHost for Obedient {
    fn bind(&self, plugin: &Plugin) -> Result<Box<dyn PluginCaller>, String> {
        match plugin.name.as_str() {
            "refused" => Err("as it is called".to_owned()),
            _ => Ok(Box::<Caller>::default()),
        }
    }
}

impl PluginCaller for Caller {
    fn call(&mut self, args: &[u64], results: &mut [u64], payload: &[u8]) -> PluginAnswer<'_> {
        let what = payload.first().copied().unwrap_or(0);
        results.fill(args[0] + payload.len() as u64);
        self.0 = payload.to_vec();
        self.1 = if what & 4 != 0 { payload.repeat(2) } else { payload[..1].to_vec() };
        PluginAnswer {
            drop: what & 1 != 0,
            reply: (what & 2 != 0).then_some(&self.0),
            payload: (what & 12 != 0).then_some((payload.len(), self.1.as_slice())),
        }
    }
}

/// Port 0 to 1, a header of two bytes of which the second becomes 3 and the length of the payload.
fn program(name: &str) -> Arc<Program> {
    let program = text::parse(&format!(
        "program t architecture test errors (NoError, PacketTooShort)
         ingress (p, c) egress (d)
         intrinsic parser_error = perr intrinsic egress_spec = port
         metadata perr: bit<16> metadata port: bit<32> metadata drop: bit<1>
         header h: h_t {{ a: bit<8> b: bit<8> }}
         plugin {name} rewrites
         body parser p {{ block0: extract h end }}
         body control c {{
         block0:
             port = 32w1
             call drop, {name}, (64w3), 1
             call_result h.b, 0
             stop ne(drop, 1w0)
             end
         }}
         body deparser d {{ block0: emit h end }}"
    ));
    let program = program.unwrap();
    verify::verify(&program).unwrap();
    Arc::new(program)
}

fn switch(engine: EngineKind) -> Switch {
    let config = SwitchConfig { engine, plugins: Some(Arc::new(Obedient)), ..SwitchConfig::default() };
    Switch::new(program("p"), config).unwrap()
}

const PACKETS: [&[u8]; 6] =
    [&[9, 9, 0, 7], &[9, 9, 1, 7], &[9, 9, 2, 7], &[9, 9, 3, 7], &[9, 9, 4, 7], &[9, 9, 8, 7, 7]];

/// What leaves, by port.
fn wanted(port: u32) -> Vec<Vec<u8>> {
    let all: [&[u8]; 4] = [&[9, 5, 0, 7], &[9, 5, 2, 7], &[9, 5, 4, 7, 4, 7], &[9, 6, 8]];
    match port {
        0 => vec![vec![2, 7], vec![3, 7]],
        _ => all.map(<[u8]>::to_vec).to_vec(),
    }
}

#[test]
fn one_by_one() {
    for engine in EngineKind::HERE {
        let mut switch = switch(*engine);
        let mut left = Vec::new();
        for packet in PACKETS {
            let outcome = switch.inject(0, packet, 0);
            assert_eq!(
                outcome.drops.iter().any(|drop| drop.reason == DropReason::Plugin),
                packet[2] & 1 != 0
            );
            left.extend(outcome.outputs().map(|(port, bytes)| (port, bytes.to_vec())));
        }
        for port in [0, 1] {
            let of = left.iter().filter(|(other, _)| *other == port).map(|(_, bytes)| bytes.clone());
            assert_eq!(of.collect::<Vec<_>>(), wanted(port), "{engine:?} port {port}");
        }
    }
}

#[test]
fn as_a_burst() {
    for engine in EngineKind::HERE {
        let mut switch = switch(*engine);
        let (mut memory, mut places) = (Vec::new(), Vec::new());
        for packet in PACKETS {
            memory.extend_from_slice(&[0; HEADROOM]);
            places.push(Place { at: memory.len() as u32, len: packet.len() as u32 });
            memory.extend_from_slice(packet);
            memory.extend_from_slice(&[0; TAILROOM]);
        }
        let mut burst = Burst::new(&mut memory, &places, HEADROOM).unwrap();
        let mut left = Vec::new();
        switch.switch_burst(0, &mut burst, |port, output| left.push((port, output.bytes.to_vec())));
        for port in [0, 1] {
            let of = left.iter().filter(|(other, _)| *other == port).map(|(_, bytes)| bytes.clone());
            assert_eq!(of.collect::<Vec<_>>(), wanted(port), "{engine:?} port {port}");
        }
        let drops: u64 = switch.counters().all_drops().map(|(_, count)| count).sum();
        assert_eq!(drops, 2, "{engine:?}");
    }
}

#[test]
fn a_program_whose_plugin_cannot_be_bound_does_not_run() {
    let config = SwitchConfig { plugins: Some(Arc::new(Obedient)), ..SwitchConfig::default() };
    let error = Switch::new(program("refused"), config).unwrap_err();
    assert_eq!(error.to_string(), "plugin refused: as it is called");
}

#[test]
fn a_program_that_takes_over_has_the_plugins() {
    let running = switch(EngineKind::Interp);
    let mut next =
        Switch::alongside(program("p"), SwitchConfig::default(), &running.state().handle()).unwrap();
    let outcome = next.inject(0, &[9, 9, 0], 0);
    assert_eq!(outcome.outputs().collect::<Vec<_>>(), [(1, [9, 4, 0].as_slice())]);
    // Without plugins they are missing: its packets are dropped.
    let mut without = Switch::new(program("p"), SwitchConfig::default()).unwrap();
    assert_eq!(without.inject(0, &[9, 9, 0], 0).drops[0].reason, DropReason::Plugin);
}
