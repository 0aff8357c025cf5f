//! A stage with the units of its tables and objects: the pipeline and the units, connected.
//!
//! A table that is looked up at several places has a unit at each of them. All have the same contents: they share the port of software
//! ([`SoftwarePort`]) of the top. An object has one unit, at which accesses that no frame makes both share a port. Ports of accesses for
//! which there is no unit stay ports of the top.
//!
//! The stage takes a frame in a cycle in which `valid` and `ready` are 1. `ready` is 0 in the cycles after a frame that another has to
//! wait for the sake of an object, and while a write of software waits for a memory. A stage that asks for objects of several stages also
//! waits for frames of those ([`crate::shared`]).
//!
//! The bank of tables that a frame meets is that of the register `bank` in the cycle in which the frame comes. It goes along with the
//! frame: a unit that is asked in cycle n of the pipeline has it n cycles later. So software that writes the register changes all tables
//! between two frames.

use crate::emit::{AccessPorts, Ports, parameters_port};
use crate::objects::{ObjectUnit, Request};
use crate::parts::{Countdown, later};
use crate::software_port::{PortKind, READ_LATENCY, SoftwarePort};
use crate::stage::{Access, LookupAnswer, ObjectKey, Unit};
use crate::tables::TableUnit;
use millrace_netlist::{Design, InstanceId, Module, ModuleBuilder, ModuleId, NodeId};
use millrace_pipeline::{Program, TableId};
use std::collections::{BTreeMap, BTreeSet};

/// What a stage is put together from.
pub(crate) struct Parts<'a> {
    pub(crate) program: &'a Program,
    pub(crate) pipeline: Module,
    pub(crate) accesses: &'a [Access],
    /// The cycle of each.
    pub(crate) cycles: &'a [u32],
    pub(crate) ports: &'a Ports,
    pub(crate) tables: &'a [TableUnit],
    pub(crate) objects: &'a [ObjectUnit],
    /// The fewest cycles from one frame to the next.
    pub(crate) interval: u32,
    /// Whether frames of other stages may hold it up, for the sake of objects that both ask.
    pub(crate) shares: bool,
    /// What it is for.
    pub(crate) view: View,
}

/// The input of a stage that has it take no frame, for the sake of objects of several stages.
pub(crate) const HOLD: &str = "hold";
/// The output of such a stage that says that it takes a frame.
pub(crate) const TAKES: &str = "takes";

/// What a stage is put together for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// To be used by itself.
    Alone,
    /// To be simulated: requests to units are outputs, too.
    Observed,
    /// To be part of a device, which says for each frame which bank it meets (`of_frame` of the port of the bank).
    InDevice,
}

/// The outputs of a stage in a device that say what its lookups found, each with the table: bit 0 that an entry matched, bit 1 that none
/// did, a cycle after the answer.
pub(crate) fn lookups_of<'a>(
    units: &'a [TableUnit],
    accesses: &'a [Access],
) -> impl Iterator<Item = (TableId, String)> + 'a {
    let numbered = accesses.iter().enumerate();
    numbered.filter_map(|(number, access)| Some((unit_of(units, access)?.table, found_port(number))))
}

fn found_port(number: usize) -> String {
    format!("lookup{number}.found")
}

/// The unit that answers a lookup, if there is one.
pub(crate) fn unit_of<'a>(units: &'a [TableUnit], access: &Access) -> Option<&'a TableUnit> {
    match access.unit {
        Unit::Lookup(table) => units.iter().find(|unit| unit.table == table),
        _ => None,
    }
}

/// The units that some accesses need.
pub(crate) fn units_of<'a>(units: &'a [TableUnit], accesses: &[Access]) -> Vec<&'a TableUnit> {
    let used = |unit: &&TableUnit| accesses.iter().any(|access| access.unit == Unit::Lookup(unit.table));
    units.iter().filter(used).collect()
}

/// The instances of the unit of a table, one for each place where it is looked up.
pub(crate) fn lookups_at(accesses: &[Access], table: TableId) -> Vec<String> {
    let numbered = accesses.iter().enumerate();
    let of_table = numbered.filter(|(_, access)| access.unit == Unit::Lookup(table));
    of_table.map(|(number, _)| instance_of(number)).collect()
}

fn instance_of(access: usize) -> String {
    format!("lookup{access}")
}

/// The names of what may have a port of software.
fn names(program: &Program) -> impl Iterator<Item = &str> {
    let tables = program.tables.values().flat_map(|table| {
        let counter = table.direct_counter.iter().map(|counter| counter.name.as_str());
        let meter = table.direct_meter.iter().map(|meter| meter.name.as_str());
        [table.name.as_str()].into_iter().chain(counter).chain(meter)
    });
    let arrays = program.registers.values().map(|register| register.name.as_str());
    let arrays = arrays.chain(program.counters.values().map(|counter| counter.name.as_str()));
    let arrays = arrays.chain(program.meters.values().map(|meter| meter.name.as_str()));
    let others = program.value_sets.values().map(|set| set.name.as_str());
    let others = others.chain(program.hashes.values().map(|hash| hash.name.as_str()));
    tables.chain(arrays).chain(others)
}

/// The ports of software to some units: those of the units, each with its table, then that of the bank.
pub(crate) fn software_ports(
    program: &Program,
    units: &[&TableUnit],
) -> (Vec<(TableId, SoftwarePort)>, Option<SoftwarePort>) {
    let ports = units.iter().filter_map(|unit| Some((unit.table, unit.software_port(program)?)));
    let ports: Vec<(TableId, SoftwarePort)> = ports.collect();
    let bank = (!ports.is_empty()).then(|| bank_port(program));
    (ports, bank)
}

/// The name of something that software reaches and that is no object of the program: another one than theirs.
pub(crate) fn name_of(program: &Program, what: &str) -> String {
    let mut object = what.to_owned();
    while names(program).any(|name| name == object) {
        object.push('_');
    }
    object
}

/// The port of the bank.
pub(crate) fn bank_port(program: &Program) -> SoftwarePort {
    let object = name_of(program, "bank");
    SoftwarePort { object, kind: PortKind::Bank, words: 1, width: 2, readable: true, writable: true }
}

/// Connects a pipeline and its units.
pub(crate) fn assemble(parts: Parts<'_>) -> Design {
    let name = parts.pipeline.name.clone();
    let mut design = Design::new();
    let mut modules: BTreeMap<TableId, ModuleId> = BTreeMap::new();
    for unit in units_of(parts.tables, parts.accesses) {
        let table = &parts.program.tables[unit.table];
        let module = unit.module(parts.program, &format!("{name}_{}", table.name));
        modules.insert(unit.table, design.add(module));
    }
    let objects: Vec<ModuleId> = (parts.objects.iter())
        .map(|unit| design.add(unit.module(&format!("{name}_{}", unit.name))))
        .collect();
    let inputs: Vec<(String, u32)> =
        parts.pipeline.inputs.values().map(|port| (port.name.clone(), port.width)).collect();
    let outputs: Vec<String> = parts.pipeline.outputs.values().map(|port| port.name.clone()).collect();
    let pipeline = Module { name: format!("{name}_pipeline"), ..parts.pipeline.clone() };
    let pipeline = design.add(pipeline);
    let mut m = ModuleBuilder::new(&name);
    let stage = m.instance(&design, pipeline, "pipeline");
    let mut top = Top { m, design: &design, stage, answers: BTreeMap::new(), requests: BTreeSet::new() };
    top.tables(&parts, &modules);
    let mut busy = Vec::new();
    for (unit, module) in parts.objects.iter().zip(objects) {
        busy.extend(top.object(&parts, unit, module));
    }
    top.finish(&parts, &inputs, &outputs, &busy);
    let module = top.m.finish();
    design.add(module);
    design
}

struct Top<'a> {
    m: ModuleBuilder,
    design: &'a Design,
    stage: InstanceId,
    /// Answers of units, by the port of the pipeline.
    answers: BTreeMap<String, NodeId>,
    /// Requests to units, which need not be seen outside.
    requests: BTreeSet<String>,
}

impl Top<'_> {
    fn tables(&mut self, parts: &Parts<'_>, modules: &BTreeMap<TableId, ModuleId>) {
        let (software, bank) = software_ports(parts.program, &units_of(parts.tables, parts.accesses));
        let writes = software.into_iter().map(|(table, port)| (table, port.write_inputs(&mut self.m)));
        let writes: BTreeMap<TableId, [NodeId; 3]> = writes.collect();
        let asked = parts.accesses.iter().zip(parts.cycles);
        let asked = asked.filter_map(|(access, cycle)| Some((unit_of(parts.tables, access)?, *cycle)));
        let last = asked.map(|(unit, cycle)| cycle + unit.latency()).max().unwrap_or(0);
        let banks = bank.map(|port| match parts.view {
            View::InDevice => {
                let first = self.m.input(&port.port("of_frame"), 1);
                banks(&mut self.m, first, last)
            }
            View::Alone | View::Observed => own_banks(&mut self.m, &port, last),
        });
        let banks = banks.unwrap_or_default();
        let accesses = parts.accesses.iter().zip(&parts.ports.accesses).zip(parts.cycles);
        for (number, ((access, ports), cycle)) in accesses.enumerate() {
            let Some(unit) = unit_of(parts.tables, access) else { continue };
            let lookup = self.m.instance(self.design, modules[&unit.table], &instance_of(number));
            let mut keys: Vec<NodeId> = self.inputs(ports);
            // The hash of a selector; a table in which nothing changes has no groups.
            if keys.len() > unit.fields.len()
                && let Some(hash) = keys.pop()
                && unit.choice.is_some()
            {
                self.m.connect(lookup, "hash", hash);
            }
            if !keys.is_empty() {
                let key = self.m.concat(&keys);
                self.m.connect(lookup, "key", key);
            }
            if let Some([enable, address, data]) = writes.get(&unit.table).copied() {
                let bank = banks[*cycle as usize];
                let inputs = [
                    ("write_enable", enable),
                    ("write_address", address),
                    ("write_data", data),
                    ("bank", bank),
                ];
                inputs.into_iter().for_each(|(port, value)| self.m.connect(lookup, port, value));
            }
            if let Some(port) = &ports.answer {
                let answer = self.m.output_of(lookup, "answer");
                self.answers.insert(port.clone(), answer);
                if parts.view == View::InDevice {
                    let enable = self.m.output_of(self.stage, &ports.enable);
                    self.found(number, (enable, unit.latency()), answer);
                }
            }
            self.request(ports);
        }
    }

    /// Says what a lookup found, for those who count it.
    fn found(&mut self, number: usize, (enable, latency): (NodeId, u32), answer: NodeId) {
        let m = &mut self.m;
        let asked = later(m, &format!("lookup{number}_asked"), enable, latency, Some(0));
        let hit = m.bit(answer, LookupAnswer::HIT);
        let none = m.not(hit);
        let (hit, miss) = (m.and(asked, hit), m.and(asked, none));
        let found = m.concat(&[miss, hit]);
        let found = m.delayed(&format!("lookup{number}_found"), found, Some(0));
        m.output(&found_port(number), found);
    }

    /// What the pipeline asks with.
    fn inputs(&mut self, ports: &AccessPorts) -> Vec<NodeId> {
        ports.inputs.iter().map(|port| self.m.output_of(self.stage, port)).collect()
    }

    fn request(&mut self, ports: &AccessPorts) {
        self.requests.insert(ports.enable.clone());
        self.requests.extend(ports.inputs.iter().cloned());
    }

    /// Adds the unit of an object; gives whether it is busy, if it may be.
    fn object(&mut self, parts: &Parts<'_>, unit: &ObjectUnit, module: ModuleId) -> Option<NodeId> {
        let mut requests = BTreeMap::new();
        for at in unit.slots.iter().flat_map(|slot| &slot.accesses) {
            let ports = &parts.ports.accesses[*at];
            let enable = self.m.output_of(self.stage, &ports.enable);
            requests.insert(*at, Request { enable, inputs: self.inputs(ports) });
            self.request(ports);
        }
        let connected = unit.connect(&mut self.m, (self.design, module), &requests);
        for (at, answer) in connected.answers {
            if let Some(port) = &parts.ports.accesses[at].answer {
                let answer = self.m.resize(answer, parts.accesses[at].answer);
                self.answers.insert(port.clone(), answer);
            }
        }
        if let (ObjectKey::Hash(hash), Some(parameters)) = (unit.key, connected.parameters) {
            self.answers.insert(parameters_port(parts.program, hash), parameters);
        }
        connected.busy
    }

    /// Connects what is left, and says when the stage takes a frame.
    fn finish(&mut self, parts: &Parts<'_>, inputs: &[(String, u32)], outputs: &[String], busy: &[NodeId]) {
        let m = &mut self.m;
        let valid = m.input("valid", 1);
        let mut waits = busy.to_vec();
        if parts.shares {
            waits.push(m.input(HOLD, 1));
        }
        let waits = m.any(&waits);
        let mut ready = m.not(waits);
        let takes = match parts.interval {
            0 | 1 => m.and(valid, ready),
            interval => {
                let left = Countdown::new(m, "left", interval - 1);
                ready = m.and(ready, left.is_over);
                let takes = m.and(valid, ready);
                left.begins_with(m, takes);
                takes
            }
        };
        m.output("ready", ready);
        if parts.shares {
            m.output(TAKES, takes);
        }
        for (port, width) in inputs {
            let value = match (port.as_str(), self.answers.get(port)) {
                ("valid", _) => takes,
                (_, Some(answer)) => *answer,
                _ => m.input(port, *width),
            };
            m.connect(self.stage, port, value);
        }
        for port in outputs {
            let is_request = parts.view != View::Observed && self.requests.contains(port);
            let is_early = parts.view != View::InDevice && parts.ports.is_early(port);
            if !is_request && !is_early {
                let value = m.output_of(self.stage, port);
                m.output(port, value);
            }
        }
    }
}

/// The bank of frames that came so many cycles ago, from 0 to `last`.
fn banks(m: &mut ModuleBuilder, first: NodeId, last: u32) -> Vec<NodeId> {
    let mut banks = vec![first];
    for cycle in 1..=last {
        let before = banks[cycle as usize - 1];
        banks.push(m.delayed(&format!("bank_{cycle}"), before, Some(0)));
    }
    banks
}

/// As [`banks`], of a register that software writes. Bit 0 of its port is the bank of frames that come; bit 1 says that all frames in the
/// stage meet that one.
fn own_banks(m: &mut ModuleBuilder, port: &SoftwarePort, last: u32) -> Vec<NodeId> {
    let [enable, _, data] = port.write_inputs(m);
    let [_, _] = port.read_inputs(m);
    let (register, bank) = m.register("bank", 1, Some(0));
    let next = m.bit(data, 0);
    m.set_next(register, next);
    m.set_enable(register, enable);
    let banks = banks(m, bank, last);
    let all = m.concat(&banks);
    let (ones, any) = (m.reduce_and(all), m.reduce_or(all));
    let zeros = m.not(any);
    let settled = m.or(ones, zeros);
    let mut read = m.concat(&[settled, bank]);
    for cycle in 1..=READ_LATENCY {
        read = m.delayed(&format!("bank_read_{cycle}"), read, Some(0));
    }
    port.read_output(m, read);
    banks
}
