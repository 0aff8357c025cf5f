//! A stage with the units of its tables: the pipeline and a unit for each lookup, connected.
//!
//! A table that is looked up at several places has a unit at each of them. All have the same contents: they share the port of software
//! ([`SoftwarePort`]) of the top. Ports of accesses for which there is no unit stay ports of the top.

use crate::emit::Ports;
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

/// Connects a pipeline and the units of its tables. With `observed`, the requests to units are outputs too.
pub(crate) fn assemble(
    program: &Program,
    pipeline: Module,
    (accesses, ports): (&[Access], &Ports),
    units: &[TableUnit],
    observed: bool,
) -> Design {
    let name = pipeline.name.clone();
    let mut design = Design::new();
    let mut modules: BTreeMap<TableId, ModuleId> = BTreeMap::new();
    let used = |unit: &&TableUnit| accesses.iter().any(|access| access.unit == Unit::Lookup(unit.table));
    for unit in units.iter().filter(used) {
        let module = unit.module(&format!("{name}_{}", program.tables[unit.table].name));
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
    let mut writes: BTreeMap<TableId, [NodeId; 3]> = BTreeMap::new();
    for unit in units.iter().filter(used) {
        writes.insert(unit.table, unit.software_port(program).write_inputs(&mut m));
    }
    // Answers of units, by the port of the pipeline; requests to units, which need not be seen outside.
    let (mut answers, mut requests): (BTreeMap<&str, NodeId>, Vec<&str>) = (BTreeMap::new(), Vec::new());
    for (number, (access, ports)) in accesses.iter().zip(&ports.accesses).enumerate() {
        let Some(unit) = unit_of(units, access) else { continue };
        let lookup = m.instance(&design, modules[&unit.table], &format!("lookup{number}"));
        let keys: Vec<NodeId> = ports.inputs.iter().map(|port| m.output_of(stage, port)).collect();
        if !keys.is_empty() {
            let key = m.concat(&keys);
            m.connect(lookup, "key", key);
        }
        let [enable, address, data] = writes[&unit.table];
        for (port, value) in [("write_enable", enable), ("write_address", address), ("write_data", data)] {
            m.connect(lookup, port, value);
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
