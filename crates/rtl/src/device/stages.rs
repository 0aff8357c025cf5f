//! The stages of the program within a device: their instances, with the ports that the device does not use as ports of its own.

use super::build::Top;
use crate::assemble::{View, lookups_at, lookups_of};
use crate::hardware::{Hardware, Stage};
use crate::parts::import;
use crate::shared::shared_port;
use crate::stage::Output;
use millrace_netlist::{Design, InstanceId, ModuleBuilder, NodeId};
use millrace_pipeline::{Intrinsic, Program, TableId};
use std::collections::{BTreeMap, BTreeSet};

/// A stage of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    Ingress,
    /// The parser of clones.
    Parser,
    Egress,
    /// What is left of egress after a clone.
    Tail,
}

impl Top<'_> {
    /// What a stage says; none: it does not say that.
    pub(super) fn output_by(&mut self, from: From, output: Output) -> Option<NodeId> {
        let (placed, m) = self.placed(from);
        placed?.output(m, output)
    }

    /// A stage, if the device has it, and the module that it is in.
    pub(super) fn placed(&mut self, from: From) -> (Option<&Placed<'_>>, &mut ModuleBuilder) {
        let placed = match from {
            From::Ingress => Some(&self.ingress),
            From::Parser => self.parser.as_ref(),
            From::Egress => Some(&self.egress),
            From::Tail => self.tail.as_ref(),
        };
        (placed, &mut self.m)
    }

    /// What a stage says, or 0.
    pub(super) fn said_by(&mut self, from: From, output: Output, width: u32) -> NodeId {
        let value = self.output_by(from, output);
        value.unwrap_or_else(|| self.m.number(width, 0))
    }
}

/// A stage in the device.
pub(super) struct Placed<'a> {
    pub(super) stage: &'a Stage,
    pub(super) instance: InstanceId,
    /// The names of the objects that software reaches.
    software: Vec<String>,
    /// Its outputs that say that a lookup has hit or missed, with the table.
    pub(super) lookups: Vec<(TableId, String)>,
    /// Its ports to units that several stages ask.
    shared: BTreeSet<String>,
    /// Its input ports with their widths, and its output ports.
    inputs: Vec<(String, u32)>,
    outputs: Vec<String>,
    /// The numbers of the inputs of the stage that are always 0.
    zeros: BTreeSet<usize>,
}

impl<'a> Placed<'a> {
    pub(super) fn new(
        m: &mut ModuleBuilder,
        design: &mut Design,
        hardware: &Hardware,
        stage: &'a Stage,
    ) -> Placed<'a> {
        let module = import(design, &hardware.design(stage, View::InDevice));
        let made = &design.modules[module];
        let inputs = made.inputs.values().map(|port| (port.name.clone(), port.width)).collect();
        let outputs = made.outputs.values().map(|port| port.name.clone()).collect();
        let software = hardware.software_ports(stage.part).into_iter().map(|port| port.object).collect();
        let number = hardware.stages.iter().position(|other| other.part == stage.part);
        let shared = number.map(|number| hardware.shared_ports_of(number)).unwrap_or_default();
        let instance = m.instance(design, module, &stage.part.name());
        let lookups = lookups_of(&hardware.units, &stage.dataflow.accesses).collect();
        Placed { stage, instance, software, lookups, shared, inputs, outputs, zeros: BTreeSet::new() }
    }

    /// Whether a port is one by which software reaches an object.
    fn is_of_software(&self, name: &str) -> bool {
        let of = |object: &String| name.strip_prefix(object.as_str()).and_then(|rest| rest.strip_prefix('.'));
        let ports = [
            "write_enable",
            "write_address",
            "write_data",
            "read_enable",
            "read_address",
            "read_data",
            "pending",
        ];
        self.software.iter().filter_map(of).any(|rest| ports.contains(&rest))
    }

    /// Connects it: `given` are the values of the ports that the device drives. Those of software are connected with the registers later,
    /// those to units of several stages with these. The rest, of objects without units, become ports of the device.
    pub(super) fn connect(&mut self, m: &mut ModuleBuilder, given: &BTreeMap<String, NodeId>) {
        let part = self.stage.part.name();
        let is_zero = |name: &String| {
            given.get(name).and_then(|value| m.as_constant(*value)).is_some_and(|bits| bits.is_zero())
        };
        let zeros = self.stage.ports.inputs.iter().enumerate().filter(|(_, name)| is_zero(name));
        self.zeros = zeros.map(|(number, _)| number).collect();
        let is_elsewhere = |name: &String| self.is_of_software(name) || self.shared.contains(name);
        for (name, width) in self.inputs.iter().filter(|(name, _)| !is_elsewhere(name)) {
            let value = match given.get(name) {
                Some(value) => *value,
                None => m.input(&format!("{part}.{name}"), *width),
            };
            m.connect(self.instance, name, value);
        }
        let ports = &self.stage.ports;
        for name in &self.outputs {
            let is_said = ports.outputs.contains(name) || ports.is_early(name);
            let is_used = name == "out_valid" || name == "ready" || is_said;
            let is_counted = self.lookups.iter().any(|(_, port)| port == name);
            if !is_used && !is_counted && !is_elsewhere(name) {
                let value = m.output_of(self.instance, name);
                m.output(&format!("{part}.{name}"), value);
            }
        }
    }

    /// Connects it with the units that several stages ask.
    pub(super) fn connect_shared(&self, m: &mut ModuleBuilder, design: &Design, shared: InstanceId) {
        let module = &design.modules[m.module().instances[shared].module];
        for port in &self.shared {
            let there = shared_port(self.stage.part, port);
            if self.outputs.contains(port) {
                if module.input_named(&there).is_some() {
                    let value = m.output_of(self.instance, port);
                    m.connect(shared, &there, value);
                }
            } else {
                let value = m.output_of(shared, &there);
                m.connect(self.instance, port, value);
            }
        }
    }

    /// The instances of the unit of a table in the device.
    pub(super) fn lookups_at(&self, table: TableId) -> Vec<String> {
        let part = self.stage.part.name();
        let lookups = lookups_at(&self.stage.dataflow.accesses, table);
        lookups.into_iter().map(|lookup| format!("{part}.{lookup}")).collect()
    }

    /// Whether it takes a frame in this cycle.
    pub(super) fn ready(&self, m: &mut ModuleBuilder) -> NodeId {
        m.output_of(self.instance, "ready")
    }

    /// What it says; none: it does not say that.
    pub(super) fn output(&self, m: &mut ModuleBuilder, output: Output) -> Option<NodeId> {
        let at = self.stage.dataflow.outputs.iter().position(|(of, _)| *of == output)?;
        Some(m.output_of(self.instance, &self.stage.ports.outputs[at]))
    }

    /// What it says, without the highest bits that are never 1, but at least a bit; none: it does not say that.
    pub(super) fn output_in_short(&self, m: &mut ModuleBuilder, output: Output) -> Option<NodeId> {
        let wire = self.stage.dataflow.output(output)?;
        match self.stage.dataflow.graph.used_bits(wire, &self.zeros) {
            0 => Some(m.number(1, 0)),
            bits => {
                let value = self.output(m, output)?;
                Some(m.slice(value, 0, bits))
            }
        }
    }

    /// Whether what it says may be that number.
    pub(super) fn may_be(&self, output: Output, number: u64) -> bool {
        self.values(output).is_none_or(|values| values.contains(&number))
    }

    /// The numbers that what it says may be, if they are known.
    pub(super) fn values(&self, output: Output) -> Option<&[u64]> {
        match self.stage.dataflow.output(output) {
            None => Some(&[0]),
            Some(wire) => self.stage.dataflow.graph.values(wire),
        }
    }
}

impl Stage {
    /// Whether it may ask the switch for something.
    pub(super) fn asks(&self, program: &Program, role: Intrinsic) -> bool {
        program.intrinsics.get(role).is_some_and(|slot| self.may_say(Output::Slot(slot)))
    }

    /// Whether what it says may be other than 0.
    pub(super) fn may_say(&self, output: Output) -> bool {
        let found = self.dataflow.output(output);
        found.is_some_and(|wire| self.dataflow.graph.constant(wire).is_none_or(|bits| !bits.is_zero()))
    }
}
