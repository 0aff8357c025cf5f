//! What a design has at a port of software that is a number a word: registers that software writes, and what it reads.

use super::RegisterMap;
use crate::software_port::{READ_LATENCY, SoftwarePort};
use millrace_netlist::{Design, InstanceId, ModuleBuilder, NodeId, RegisterId};

/// Makes the ports of the bus, of an instance of [`RegisterMap::design`], ports of the module.
pub fn connect_bus(m: &mut ModuleBuilder, design: &Design, map: &RegisterMap, control: InstanceId) {
    let made = m.module().instances[control].module;
    let is_own = |name: &str| {
        name != "pending"
            && !map
                .ports
                .iter()
                .any(|port| name.strip_prefix(&port.object).is_some_and(|rest| rest.starts_with('.')))
    };
    let made = &design.modules[made];
    for port in made.inputs.values().filter(|port| is_own(&port.name)) {
        let value = m.input(&port.name, port.width);
        m.connect(control, &port.name, value);
    }
    for port in made.outputs.values().filter(|port| is_own(&port.name)) {
        let value = m.output_of(control, &port.name);
        m.output(&port.name, value);
    }
}

/// Has software write registers, each with its value, by the words of a port, and read them there.
pub fn connect_settings(
    m: &mut ModuleBuilder,
    control: InstanceId,
    port: &SoftwarePort,
    settings: &[(RegisterId, NodeId)],
) {
    let [enable, address, data] =
        ["write_enable", "write_address", "write_data"].map(|what| m.output_of(control, &port.port(what)));
    for (number, (register, value)) in settings.iter().enumerate() {
        let here = m.is(address, number as u128);
        let written = m.and(enable, here);
        let next = m.slice(data, 0, m.width(*value));
        m.set_next(*register, next);
        m.set_enable(*register, written);
    }
    let values: Vec<NodeId> = settings.iter().map(|(_, value)| *value).collect();
    connect_reads(m, control, port, &values);
}

/// What software reads by the words of a port: chosen in two cycles, as there may be hundreds.
pub fn connect_reads(m: &mut ModuleBuilder, control: InstanceId, port: &SoftwarePort, values: &[NodeId]) {
    const LOW: u32 = 4;
    let address = m.output_of(control, &port.port("read_address"));
    let name = port.object.replace('.', "_");
    let low = m.resize(address, LOW);
    // Settings and counters are all over the device, and so are the wires to them.
    let low = m.delayed(&format!("{name}_read_low"), low, None);
    let mut groups = Vec::new();
    for (number, group) in values.chunks(1 << LOW).enumerate() {
        let wide: Vec<NodeId> = group.iter().map(|value| m.resize(*value, port.width)).collect();
        let chosen = m.choose(low, &wide);
        groups.push(m.delayed(&format!("{name}_read_of_{number}"), chosen, None));
    }
    let mut read = match (groups.as_slice(), m.width(address)) {
        ([only], _) => *only,
        (_, bits) => {
            let high = m.slice(address, LOW, bits - LOW);
            let high = m.delayed(&format!("{name}_read_high"), high, None);
            let high = m.delayed(&format!("{name}_read_high_2"), high, None);
            m.choose(high, &groups)
        }
    };
    for cycle in 3..=READ_LATENCY {
        read = m.delayed(&format!("{name}_read_{cycle}"), read, None);
    }
    m.connect(control, &port.port("read_data"), read);
}
