//! Tables in hardware, while software writes them and frames come in each cycle.

use millrace_dataplane::{EngineKind, Switch, SwitchConfig};
use millrace_differential::compile;
use millrace_netlist::{SignalId, Simulator};
use millrace_pipeline::{ActionCall, Bits, EntryMatch, Program, TableId};
use millrace_rtl::{Hardware, Options, Part, SoftwareAccess};
use millrace_state::{EntryWrite, State, TableError, Target, WriteError};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

/// The key of the second table is what the first one gives.
const TWO_TABLES: &str = r"
#include <core.p4>
#include <v1model.p4>
header h_t { bit<16> key; bit<16> a; bit<16> b; }
struct headers_t { h_t h; }
struct metadata_t {}
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply {} }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    action set_a(bit<16> a) { hdr.h.a = a; }
    action set_b(bit<16> b) { hdr.h.b = b; }
    table first { key = { hdr.h.key: exact; } actions = { set_a; } default_action = set_a(0xffff); size = 32; }
    table second { key = { hdr.h.a: ternary; } actions = { set_b; } default_action = set_b(0xffff); size = 32; }
    apply { first.apply(); second.apply(); sm.egress_spec = 1; }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply {} }
control C(inout headers_t hdr, inout metadata_t meta) { apply {} }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
";

fn table(program: &Program, name: &str) -> TableId {
    let found = program.tables.iter().find(|(_, table)| table.name.ends_with(name));
    found.unwrap_or_else(|| panic!("{name}")).0
}

fn entry(key: EntryMatch, priority: u32, value: u128) -> EntryWrite {
    let call = ActionCall { action: 0, args: vec![Bits::new(16, value)] };
    EntryWrite { matches: vec![key], priority, target: Target::Action(call), idle_timeout_ns: 0 }
}

/// The ingress of the program, with a frame in each cycle.
struct Traffic {
    sim: Simulator,
    frame: SignalId,
    a: SignalId,
    b: SignalId,
    valid: SignalId,
    writes: Vec<[SignalId; 3]>,
    read: [SignalId; 2],
    next: u16,
    /// Keys of frames that are in the pipeline.
    inside: VecDeque<u16>,
    latency: usize,
    /// How many frames met each version of the tables, and the last version that one met.
    met: Vec<u64>,
    last: usize,
}

impl Traffic {
    fn cycle(&mut self) {
        let key = self.next % 16;
        self.next += 1;
        let (_, _, width) = self.sim.describe(self.frame);
        let bits = Bits::new(16, key.into());
        let bits = if width > 16 { bits.concat(&Bits::zero(width - 16)) } else { bits };
        self.sim.set(self.frame, &bits);
        self.inside.push_back(key);
        if self.inside.len() > self.latency {
            let key = self.inside.pop_front().unwrap();
            assert_eq!(self.sim.get_u64(self.valid), 1);
            let (a, b) = (self.sim.get_u64(self.a), self.sim.get_u64(self.b));
            // Of one version both tables, and never of an earlier one than the frame before.
            let version = (a / 16) as usize;
            assert_eq!(
                (a, b),
                ((16 * version + usize::from(key)) as u64, 1000 + version as u64),
                "key {key}"
            );
            assert!(version >= self.last, "version {version} after {}", self.last);
            self.last = version;
            self.met.resize(self.met.len().max(version + 1), 0);
            self.met[version] += 1;
        }
        self.sim.step();
    }
}

impl SoftwareAccess for Traffic {
    type Error = Infallible;

    fn write(&mut self, port: usize, address: u64, word: &Bits) -> Result<(), Infallible> {
        let [enable, at, data] = self.writes[port];
        self.sim.set_u64(enable, 1);
        self.sim.set_u64(at, address);
        self.sim.set(data, word);
        self.cycle();
        self.sim.set_u64(enable, 0);
        Ok(())
    }

    fn read(&mut self, words: &[(usize, u64)]) -> Result<Vec<Bits>, Infallible> {
        unreachable!("a table has no words to read: {words:?}")
    }

    fn use_bank(&mut self, bank: bool) -> Result<(), Infallible> {
        self.write(self.writes.len() - 1, 0, &Bits::new(2, bank.into()))?;
        let [enable, read] = self.read;
        loop {
            self.sim.set_u64(enable, 1);
            self.cycle();
            self.sim.set_u64(enable, 0);
            (1..millrace_rtl::READ_LATENCY).for_each(|_| self.cycle());
            if self.sim.get_u64(read) == 2 | u64::from(bank) {
                return Ok(());
            }
        }
    }
}

/// Batches that change all entries of both tables: each frame meets both tables before a batch, or both after it.
#[test]
fn batches_of_several_tables_go_between_two_frames() {
    let program = compile("two_tables", TWO_TABLES);
    let hardware = Hardware::new(Arc::clone(&program), Options::default()).unwrap();
    let (_, design) = hardware.designs().find(|(part, _)| *part == Part::Ingress).unwrap();
    let mut sim = Simulator::new(&design).unwrap();
    let input = |sim: &Simulator, name: &str| sim.input(name).unwrap_or_else(|| panic!("no input {name}"));
    let ports = hardware.software_ports(Part::Ingress);
    let writes = ports.iter().map(|port| {
        ["write_enable", "write_address", "write_data"].map(|what| input(&sim, &port.port(what)))
    });
    let writes: Vec<_> = writes.collect();
    let bank = ports.last().unwrap();
    let read = [input(&sim, &bank.port("read_enable")), sim.output(&bank.port("read_data")).unwrap()];
    let signals: Vec<SignalId> = sim.signals().collect();
    let output = |suffix: &str| {
        let found = signals.iter().copied().find(|signal| {
            let (name, kind, _) = sim.describe(*signal);
            kind == millrace_netlist::SignalKind::Output && name.starts_with("out.") && name.ends_with(suffix)
        });
        found.unwrap_or_else(|| panic!("no output {suffix}"))
    };
    let (a, b, valid) = (output(".a"), output(".b"), sim.output("out_valid").unwrap());
    let report = hardware.report();
    let latency = report.stages.iter().find(|stage| stage.name == "ingress").unwrap().latency as usize;
    let asked: Vec<u32> = report.stages[0].accesses.iter().map(|access| access.cycle).collect();
    assert!(asked[0] < asked[1], "tables that are asked in different cycles: {asked:?}");
    let frame = input(&sim, "frame");
    let (always, length) = (input(&sim, "valid"), sim.input("length"));
    sim.set_u64(always, 1);
    if let Some(length) = length {
        sim.set_u64(length, 64);
    }
    let state = State::new(Arc::clone(&program)).unwrap();
    let (first, second) = (table(&program, "first"), table(&program, "second"));
    let mut driver = hardware.driver(Part::Ingress);
    let put = |version: u16| {
        let mut tables = state.tables();
        tables.clear(first);
        tables.clear(second);
        for key in 0..16 {
            let value = u128::from(16 * version + key);
            let exact = EntryMatch::Exact(Bits::new(16, key.into()));
            tables.insert(first, &entry(exact, 0, value), 0).unwrap();
            let ternary = EntryMatch::Ternary(Bits::new(16, value), Bits::ones(16));
            tables.insert(second, &entry(ternary, 1, 1000 + u128::from(version)), 0).unwrap();
        }
    };
    // The first entries are there before frames come.
    put(0);
    let (inside, met) = (VecDeque::new(), Vec::new());
    let mut traffic =
        Traffic { sim, frame, a, b, valid, writes, read, next: 0, inside, latency: usize::MAX, met, last: 0 };
    driver.update(&state, &mut traffic).unwrap();
    traffic.latency = latency;
    traffic.inside.clear();
    for version in 1..12 {
        put(version);
        assert!(driver.update(&state, &mut traffic).unwrap());
        (0..50).for_each(|_| traffic.cycle());
        assert_eq!(traffic.last, usize::from(version));
    }
    assert!(traffic.met.iter().all(|frames| *frames > 20), "{:?}", traffic.met);
    assert_eq!(traffic.sim.collisions(), 0);
}

/// More entries than the unit of a table holds are refused where they are written, and packets go on through the hardware.
#[test]
fn entries_beyond_the_hardware_are_refused() {
    let text = TWO_TABLES.replace("size = 32;", "size = 100000;");
    let program = compile("large_tables", &text);
    let config = SwitchConfig { engine: EngineKind::Rtl, ..SwitchConfig::default() };
    let mut switch = Switch::new(Arc::clone(&program), config).unwrap();
    let capacity = |name: &str| {
        let hardware = Hardware::new(Arc::clone(&program), Options::default()).unwrap();
        let found = hardware.capacities().find(|(id, _)| *id == table(&program, name));
        found.unwrap().1
    };
    let second = table(&program, "second");
    let most = capacity("second");
    assert!(most < 1000, "{most}");
    for number in 0..most {
        let key = EntryMatch::Ternary(Bits::new(16, number.into()), Bits::ones(16));
        switch.state().tables().insert(second, &entry(key, 1, 7), 0).unwrap();
    }
    let key = |number: u128| EntryMatch::Ternary(Bits::new(16, number), Bits::ones(16));
    let refused = switch.state().tables().insert(second, &entry(key(40_000), 1, 7), 0).unwrap_err();
    assert_eq!(refused, WriteError::Table(TableError::Full { limit: most as u32 }));
    // The first table has no entry: its default gives a key that the second has not.
    let outcome = switch.inject(0, &[0, 1, 0, 0, 0, 0], 0);
    assert_eq!(outcome.sent[0].bytes, [0, 1, 0xff, 0xff, 0xff, 0xff]);
    let first = table(&program, "first");
    let exact = EntryMatch::Exact(Bits::new(16, 1));
    switch.state().tables().insert(first, &entry(exact, 0, u128::from(most) - 1), 0).unwrap();
    let outcome = switch.inject(0, &[0, 1, 0, 0, 0, 0], 0);
    assert_eq!(outcome.sent[0].bytes[4..], [0, 7]);
    assert_eq!(switch.engine_name(), "rtl");
}
