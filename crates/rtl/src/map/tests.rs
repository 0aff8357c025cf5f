//! A driver over registers at a bus, with a unit at the other side: what frames meet is what the table has.

use super::*;
use crate::driver::{Driver, SoftwareAccess};
use crate::tables::TableUnit;
use crate::{Hardware, Options, Part};
use millrace_netlist::{Design, ModuleBuilder, Simulator, verify, verilog};
use millrace_pipeline::*;
use millrace_state::{EntryWrite, State, Target};
use std::convert::Infallible;
use std::process::Command;
use std::sync::Arc;

/// A program whose ingress looks up a table.
fn program() -> Arc<Program> {
    let mut b = ProgramBuilder::new("mapped", "v1model");
    let param = b.local("act.x", Type::Bits(40));
    let key = b.metadata("meta.key", Type::Bits(48));
    let mut body = BodyBuilder::new("act", BodyKind::Action);
    body.end();
    let body = body.finish(&mut b).unwrap();
    let action = b.action("act", vec![param], body);
    let call = ActionCall { action: 0, args: vec![Bits::new(40, 0xdef)] };
    let keys = vec![TableKey { name: "key".into(), value: Expr::Read(key), kind: MatchKind::Exact }];
    let actions = vec![TableAction { action, scope: ActionScope::Both }];
    let id = b.program_mut().tables.push(Table::new("ingress.t".into(), keys, actions, call, 100));
    assert_eq!(id, TableId::from_u32(0));
    let program = b.finish();
    assert_eq!(millrace_pipeline::verify(&program), Ok(()));
    Arc::new(program)
}

/// The unit of the table with its port and the bank after the registers at a bus.
fn device(program: &Program, unit: &TableUnit, bus: Bus) -> (RegisterMap, Design) {
    let (ports, bank) = crate::assemble::software_ports(program, &[unit]);
    let ports: Vec<SoftwarePort> = ports.into_iter().map(|(_, port)| port).chain(bank.clone()).collect();
    let map = RegisterMap::new(program, ports.clone(), std::slice::from_ref(unit), Vec::new());
    let mut design = map.design(bus);
    let control = design.top().unwrap();
    let table = design.add(unit.module(program, "unit"));
    let mut m = ModuleBuilder::new("device");
    let control_instance = m.instance(&design, control, "control");
    let table_instance = m.instance(&design, table, "table");
    // The bank, as a stage has it.
    let bank = bank.unwrap();
    let of = |m: &mut ModuleBuilder, what: &str| m.output_of(control_instance, &bank.port(what));
    let (enable, data) = (of(&mut m, "write_enable"), of(&mut m, "write_data"));
    let (register, now) = m.register("bank", 1, Some(0));
    let next = m.bit(data, 0);
    m.set_next(register, next);
    m.set_enable(register, enable);
    let one = m.number(1, 1);
    let mut read = m.concat(&[one, now]);
    for cycle in 0..crate::READ_LATENCY {
        read = m.delayed(&format!("read{cycle}"), read, Some(0));
    }
    m.connect(control_instance, &bank.port("read_data"), read);
    for what in ["write_enable", "write_address", "write_data"] {
        let value = m.output_of(control_instance, &ports[0].port(what));
        m.connect(table_instance, what, value);
    }
    m.connect(table_instance, "bank", now);
    let key = m.input("key", unit.key());
    m.connect(table_instance, "key", key);
    let answer = m.output_of(table_instance, "answer");
    m.output("answer", answer);
    let module = &design.modules[control];
    let outer: Vec<(String, u32)> = (module.inputs.values())
        .filter(|port| port.name.starts_with("s_axi") || port.name.starts_with("avs"))
        .map(|port| (port.name.clone(), port.width))
        .collect();
    let given: Vec<String> = module.outputs.values().map(|port| port.name.clone()).collect();
    for (name, width) in outer {
        let value = m.input(&name, width);
        m.connect(control_instance, &name, value);
    }
    for name in given.iter().filter(|name| name.starts_with("s_axi") || name.starts_with("avs")) {
        let value = m.output_of(control_instance, name);
        m.output(name, value);
    }
    design.add(m.finish());
    design.top = None.into();
    (map, design)
}

/// The master of a bus.
struct Master {
    sim: Simulator,
    bus: Bus,
}

impl Master {
    fn set(&mut self, name: &str, value: u32) {
        let signal = self.sim.input(name).unwrap_or_else(|| panic!("{name}"));
        self.sim.set_u64(signal, value.into());
    }

    fn get(&mut self, name: &str) -> u32 {
        let signal = self.sim.output(name).unwrap_or_else(|| panic!("{name}"));
        self.sim.get_u64(signal) as u32
    }

    /// Keeps a request up until it is taken.
    fn request(&mut self, valid: &str, ready: &str) {
        self.set(valid, 1);
        while self.get(ready) == 0 {
            self.sim.step();
        }
        self.sim.step();
        self.set(valid, 0);
    }

    /// Takes an answer, some cycles after it is there.
    fn answer(&mut self, valid: &str, ready: &str, data: Option<&str>) -> u32 {
        while self.get(valid) == 0 {
            self.sim.step();
        }
        self.sim.step();
        let value = data.map_or(0, |data| self.get(data));
        self.set(ready, 1);
        self.sim.step();
        self.set(ready, 0);
        value
    }
}

impl RegisterAccess for Master {
    type Error = Infallible;

    fn read(&mut self, offset: u32) -> Result<u32, Infallible> {
        if self.bus == Bus::AvalonMm {
            self.set("avs_address", offset / 4);
            self.set("avs_read", 1);
            self.sim.step();
            self.set("avs_read", 0);
            assert_eq!((self.get("avs_waitrequest"), self.get("avs_readdatavalid")), (0, 1));
            return Ok(self.get("avs_readdata"));
        }
        self.set("s_axi_araddr", offset);
        self.request("s_axi_arvalid", "s_axi_arready");
        Ok(self.answer("s_axi_rvalid", "s_axi_rready", Some("s_axi_rdata")))
    }

    fn write(&mut self, offset: u32, value: u32) -> Result<(), Infallible> {
        if self.bus == Bus::AvalonMm {
            self.set("avs_address", offset / 4);
            self.set("avs_writedata", value);
            self.set("avs_byteenable", 15);
            self.set("avs_write", 1);
            self.sim.step();
            self.set("avs_write", 0);
            return Ok(());
        }
        self.set("s_axi_awaddr", offset);
        self.set("s_axi_wdata", value);
        self.set("s_axi_wstrb", 15);
        // The address comes first, or the data do.
        let requests = [("s_axi_awvalid", "s_axi_awready"), ("s_axi_wvalid", "s_axi_wready")];
        let order = if value.is_multiple_of(2) { [0, 1] } else { [1, 0] };
        order.into_iter().for_each(|at| self.request(requests[at].0, requests[at].1));
        self.answer("s_axi_bvalid", "s_axi_bready", None);
        Ok(())
    }
}

#[test]
fn what_software_writes_to_registers_is_what_frames_meet() {
    let program = program();
    let id = TableId::from_u32(0);
    let unit = TableUnit::of(&program, id, |_| None).unwrap();
    for bus in [Bus::Axi4Lite, Bus::AvalonMm] {
        let (map, design) = device(&program, &unit, bus);
        assert_eq!(verify(&design), Ok(()));
        let master = Master { sim: Simulator::new(&design).unwrap(), bus };
        let mut device = RegisterDevice::attach(map.clone(), master).unwrap();
        let mut driver = Driver::new([(0, unit.clone())]);
        let state = State::new(Arc::clone(&program)).unwrap();
        for number in 0..90 {
            let call = ActionCall { action: 0, args: vec![Bits::new(40, 0x11_0000_0000 + number)] };
            let matches = vec![EntryMatch::Exact(Bits::new(48, number << 40 | number))];
            let entry = EntryWrite { matches, priority: 0, target: Target::Action(call), idle_timeout_ns: 0 };
            state.tables().insert(id, &entry, 0).unwrap();
        }
        assert_eq!(driver.update(&state, &mut device), Ok(true));
        assert_eq!(driver.update(&state, &mut device), Ok(false));
        let sim = &mut device.access().sim;
        let (key, answer) = (sim.input("key").unwrap(), sim.output("answer").unwrap());
        for number in 0..100_u128 {
            sim.set(key, &Bits::new(48, number << 40 | number));
            (0..unit.latency()).for_each(|_| sim.step());
            let found = sim.get(answer);
            let data = found.slice(88, 49).to_u64().unwrap();
            let wanted = if number < 90 { (true, 0x11_0000_0000 + number as u64) } else { (false, 0xdef) };
            assert_eq!((found.bit(0), data), wanted, "{number}");
        }
        // What is not there is refused, and another program too.
        assert_eq!(device.write_word(9, 0, &Bits::zero(8)), Err(MapError::NoPort(9)));
        assert_eq!(device.read_word(0, 0), Err(MapError::NoPort(0)));
        assert_eq!(device.write(0, 1 << 20, &Bits::zero(8)), Err(MapError::NoPort(0)));
        let master = Master { sim: Simulator::new(&design).unwrap(), bus };
        let other = RegisterMap { cookie: 5, ..map.clone() };
        assert_eq!(RegisterDevice::attach(other, master).err(), Some(MapError::OtherProgram(map.cookie)));
    }
}

/// Registers for ports of all kinds: no warning, and every tool takes them.
#[test]
fn registers_are_hardware() {
    let port = |object: &str, kind, width, readable, writable| SoftwarePort {
        object: object.into(),
        kind,
        words: 1000,
        width,
        readable,
        writable,
    };
    let ports = [
        port("ingress.t", PortKind::Table, 200, false, true),
        port("ingress.c", PortKind::Counter, 96, true, true),
        port("egress.q", PortKind::Queue, 33, true, false),
    ];
    let map = RegisterMap::new(&program(), ports.to_vec(), &[], Vec::new());
    assert_eq!((map.ports.len(), map.words(), map.size()), (3, 7, 128));
    for bus in [Bus::Axi4Lite, Bus::AvalonMm] {
        let design = map.design(bus);
        assert_eq!(verify(&design), Ok(()));
        let folder =
            std::env::temp_dir().join(format!("millrace-map-{}-{}", std::process::id(), bus.module()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut files = Vec::new();
        for file in verilog::print(&design) {
            let path = folder.join(file.file_name());
            std::fs::write(&path, &file.text).unwrap();
            files.push(path.display().to_string());
        }
        let lint = Command::new("verilator")
            .args(["--lint-only", "-Wall", "--top-module", bus.module()])
            .args(&files)
            .output();
        let script =
            format!("read_verilog -sv {}; synth_ecp5 -top {}; check -assert", files.join(" "), bus.module());
        let synth = Command::new("yosys").args(["-q", "-p", &script]).output();
        for made in [lint, synth] {
            let Ok(made) = made else {
                println!("skipped: verilator or yosys is not installed (Debian: verilator, yosys)");
                continue;
            };
            let said = String::from_utf8_lossy(&made.stderr).into_owned();
            assert!(made.status.success() && !said.contains("%Warning"), "{said}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

#[test]
fn texts_name_every_port() {
    let hardware = Hardware::new(program(), Options::default()).unwrap();
    let map = hardware.register_map();
    assert!(hardware.software_ports(Part::Ingress).len() <= map.ports.len());
    let odd = SoftwarePort {
        object: "a */ | b".into(),
        kind: PortKind::Register,
        words: 1,
        width: 8,
        readable: true,
        writable: false,
    };
    let map = RegisterMap::new(
        &program(),
        map.ports
            .into_iter()
            .chain([odd.clone(), SoftwarePort { object: "a__/ | b".into(), ..odd }])
            .collect(),
        &[],
        Vec::new(),
    );
    let (header, markdown) = (map.header(), map.markdown());
    for text in ["#define MILLRACE_COMMAND 0x28", "#define MILLRACE_DATA 0x40", "MILLRACE_COOKIE 0x"] {
        assert!(header.contains(text), "{header}");
    }
    // Every comment ends where it should.
    assert_eq!(header.matches("/*").count(), header.matches("*/").count());
    let names = map.c_names();
    assert_eq!(names.len(), map.ports.len());
    assert!((1..names.len()).all(|at| !names[..at].contains(&names[at])), "{names:?}");
    assert!(markdown.contains("| 0x28 | `command` | read, write |"), "{markdown}");
}
