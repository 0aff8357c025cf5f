//! A stage with the units of its tables: the pipeline and a unit for each lookup, connected.
//!
//! A table that is looked up at several places has a unit at each of them. All have the same contents: they share the port of software
//! ([`SoftwarePort`]) of the top. Ports of accesses for which there is no unit stay ports of the top.
//!
//! The bank of tables that a frame meets is that of the register `bank` in the cycle in which the frame comes. It goes along with the
//! frame: a unit that is asked in cycle n of the pipeline has it n cycles later. So software that writes the register changes all tables
//! between two frames.

use crate::emit::Ports;
use crate::software_port::{PortKind, READ_LATENCY, SoftwarePort};
use crate::stage::{Access, Unit};
use crate::tables::TableUnit;
use millrace_netlist::{Design, Module, ModuleBuilder, ModuleId, NodeId};
use millrace_pipeline::{Program, TableId};
use std::collections::BTreeMap;

/// The unit that answers an access, if there is one.
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

/// The ports of software to some units: those of the units, each with its table, then that of the bank.
pub(crate) fn software_ports(
    program: &Program,
    units: &[&TableUnit],
) -> (Vec<(TableId, SoftwarePort)>, Option<SoftwarePort>) {
    let ports = units.iter().filter_map(|unit| Some((unit.table, unit.software_port(program)?)));
    let ports: Vec<(TableId, SoftwarePort)> = ports.collect();
    let mut object = "bank".to_owned();
    while program.tables.values().any(|table| table.name == object) {
        object.push('_');
    }
    let bank =
        SoftwarePort { object, kind: PortKind::Bank, words: 1, width: 2, readable: true, writable: true };
    let bank = (!ports.is_empty()).then_some(bank);
    (ports, bank)
}

/// Connects a pipeline and the units of its tables. `accesses` are the accesses with their cycles and ports. With `observed`, the
/// requests to units are outputs too.
pub(crate) fn assemble(
    program: &Program,
    pipeline: Module,
    (accesses, cycles, ports): (&[Access], &[u32], &Ports),
    units: &[TableUnit],
    observed: bool,
) -> Design {
    let name = pipeline.name.clone();
    let mut design = Design::new();
    let mut modules: BTreeMap<TableId, ModuleId> = BTreeMap::new();
    let used = units_of(units, accesses);
    for unit in &used {
        let module = unit.module(program, &format!("{name}_{}", program.tables[unit.table].name));
        modules.insert(unit.table, design.add(module));
    }
    if modules.is_empty() {
        design.add(pipeline);
        return design;
    }
    let inner: Vec<String> = pipeline.inputs.values().map(|port| port.name.clone()).collect();
    let outer: Vec<String> = pipeline.outputs.values().map(|port| port.name.clone()).collect();
    let widths: Vec<u32> = pipeline.inputs.values().map(|port| port.width).collect();
    let pipeline = design.add(Module { name: format!("{name}_pipeline"), ..pipeline });
    let mut m = ModuleBuilder::new(&name);
    let stage = m.instance(&design, pipeline, "pipeline");
    let (software, bank) = software_ports(program, &used);
    let writes = software.into_iter().map(|(table, port)| (table, port.write_inputs(&mut m)));
    let writes: BTreeMap<TableId, [NodeId; 3]> = writes.collect();
    let asked =
        accesses.iter().zip(cycles).filter_map(|(access, cycle)| Some((unit_of(units, access)?, *cycle)));
    let last = asked.map(|(unit, cycle)| cycle + unit.latency()).max().unwrap_or(0);
    let banks = bank.map(|port| banks(&mut m, &port, last)).unwrap_or_default();
    // Answers of units, by the port of the pipeline; requests to units, which need not be seen outside.
    let (mut answers, mut requests): (BTreeMap<&str, NodeId>, Vec<&str>) = (BTreeMap::new(), Vec::new());
    for (number, ((access, ports), cycle)) in accesses.iter().zip(&ports.accesses).zip(cycles).enumerate() {
        let Some(unit) = unit_of(units, access) else { continue };
        let lookup = m.instance(&design, modules[&unit.table], &format!("lookup{number}"));
        let keys: Vec<NodeId> = ports.inputs.iter().map(|port| m.output_of(stage, port)).collect();
        if !keys.is_empty() {
            let key = m.concat(&keys);
            m.connect(lookup, "key", key);
        }
        if let Some([enable, address, data]) = writes.get(&unit.table).copied() {
            let bank = banks[*cycle as usize];
            let inputs =
                [("write_enable", enable), ("write_address", address), ("write_data", data), ("bank", bank)];
            inputs.into_iter().for_each(|(port, value)| m.connect(lookup, port, value));
        }
        if let Some(port) = &ports.answer {
            answers.insert(port, m.output_of(lookup, "answer"));
        }
        requests.push(&ports.enable);
        requests.extend(ports.inputs.iter().map(String::as_str));
    }
    for (port, width) in inner.iter().zip(widths) {
        let value = match answers.get(port.as_str()) {
            Some(answer) => *answer,
            None => m.input(port, width),
        };
        m.connect(stage, port, value);
    }
    for port in &outer {
        if observed || !requests.contains(&port.as_str()) {
            let value = m.output_of(stage, port);
            m.output(port, value);
        }
    }
    design.add(m.finish());
    design
}

/// The bank of frames that came so many cycles ago, from 0 to `last`. Bit 0 of the port is the bank of frames that come; bit 1 says that
/// all frames in the stage meet that one.
fn banks(m: &mut ModuleBuilder, port: &SoftwarePort, last: u32) -> Vec<NodeId> {
    let [enable, _, data] = port.write_inputs(m);
    let [_, _] = port.read_inputs(m);
    let (register, bank) = m.register("bank", 1, Some(0));
    let next = m.bit(data, 0);
    m.set_next(register, next);
    m.set_enable(register, enable);
    let mut banks = vec![bank];
    for cycle in 1..=last {
        let before = banks[cycle as usize - 1];
        banks.push(m.delayed(&format!("bank_{cycle}"), before, Some(0)));
    }
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
