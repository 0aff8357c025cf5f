//! The registers of a design, at the bus of a processor.
//!
//! ```text
//!   node: bus -> control -> ports of registers of `blocks`; streams and links of `blocks` are those of the node
//! ```

use millrace_netlist::*;
use millrace_rtl::map::{
    Bus, COUNT_WIDTH, RegisterMap, Step, WordName, connect_bus, connect_counts, connect_reads,
    connect_settings,
};
use millrace_rtl::{PortKind, SoftwarePort};

/// Bits of what software sets, and of what it reads.
const SETTING: u32 = 32;
const NUMBER: u32 = 64;
/// The port of what is counted.
const COUNTS: &str = "counts";

/// What software reads and writes of the module `blocks`, by the names of its ports.
#[derive(Clone, Debug, Default)]
pub(super) struct Reached {
    /// Inputs that software sets, each with its width.
    pub(super) settings: Vec<(String, u32)>,
    /// Outputs that it reads.
    pub(super) shown: Vec<String>,
    /// Outputs whose cycles are counted, and how.
    pub(super) counted: Vec<(String, Step)>,
    /// Memories.
    pub(super) units: Vec<SoftwarePort>,
}

impl Reached {
    /// The registers; `made_of` tells other designs apart. The words of settings and of numbers have names.
    pub(super) fn map(&self, node: &str, made_of: &str) -> RegisterMap {
        let mut ports = self.units.clone();
        let mut names = Vec::new();
        let shown = self.shown.iter();
        let counted = self.counted.iter().map(|(name, _)| name);
        let settings = self.settings.iter().map(|(name, _)| name);
        let mut add = |object: &str, kind, width, of: Vec<&String>| {
            if of.is_empty() {
                return;
            }
            let (object, words, writable) = (object.to_owned(), of.len() as u64, kind == PortKind::Settings);
            let port = ports.len();
            names.extend((0..).zip(of).map(|(address, name)| WordName { name: name.clone(), port, address }));
            ports.push(SoftwarePort { object, kind, words, width, readable: true, writable });
        };
        add("settings", PortKind::Settings, SETTING, settings.collect());
        add("numbers", PortKind::Counts, NUMBER, shown.collect());
        add(COUNTS, PortKind::Counts, COUNT_WIDTH, counted.collect());
        RegisterMap::of((node, made_of), ports, names)
    }
}

/// Adds the top of a design: the module `blocks` with its registers at a bus.
pub(super) fn with_registers(
    design: &mut Design,
    blocks: ModuleId,
    map: &RegisterMap,
    reached: &Reached,
    bus: Bus,
) {
    let control = map.add_to(design, bus);
    let mut m = ModuleBuilder::new("node");
    let control = m.instance(design, control, "control");
    let inner = m.instance(design, blocks, "blocks");
    connect_bus(&mut m, design, map, control);
    let wires = |port: &SoftwarePort| -> Vec<String> {
        port.given().chain(["read_data"]).map(|what| port.port(what)).collect()
    };
    let of_units: Vec<String> = reached.units.iter().flat_map(wires).collect();
    let mut settings = Vec::new();
    for (name, width) in &reached.settings {
        let (register, value) = m.register(name, *width, Some(0));
        m.connect(inner, name, value);
        settings.push((register, value));
    }
    let shown: Vec<NodeId> = reached.shown.iter().map(|name| m.output_of(inner, name)).collect();
    // A cycle later: what is counted may be many gates from the registers that it follows from.
    let counted = reached.counted.iter().map(|(name, step)| {
        let value = m.output_of(inner, name);
        (*step, m.delayed(&format!("{name}.now"), value, Some(0)))
    });
    let counted: Vec<(Step, NodeId)> = counted.collect();
    for port in &map.ports {
        match port.kind {
            PortKind::Counts if port.object == COUNTS => {
                connect_counts(&mut m, design, (control, port), &counted);
            }
            PortKind::Settings => connect_settings(&mut m, control, port, &settings),
            PortKind::Counts => connect_reads(&mut m, control, port, &shown),
            _ => {
                for what in port.given() {
                    let value = m.output_of(control, &port.port(what));
                    m.connect(inner, &port.port(what), value);
                }
                if port.readable {
                    let data = m.output_of(inner, &port.port("read_data"));
                    m.connect(control, &port.port("read_data"), data);
                }
            }
        }
    }
    // All else is streams and links.
    let is_register = |name: &String| {
        of_units.contains(name)
            || reached.shown.contains(name)
            || reached.counted.iter().any(|(counted, _)| counted == name)
            || reached.settings.iter().any(|(setting, _)| setting == name)
    };
    let module = design.modules[blocks].clone();
    for port in module.inputs.values().filter(|port| !is_register(&port.name)) {
        let value = m.input(&port.name, port.width);
        m.connect(inner, &port.name, value);
    }
    for port in module.outputs.values().filter(|port| !is_register(&port.name)) {
        let value = m.output_of(inner, &port.name);
        m.output(&port.name, value);
    }
    let top = design.add(m.finish());
    design.top = top.into();
}
