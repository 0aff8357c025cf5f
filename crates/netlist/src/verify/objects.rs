//! Rules of ports, registers, memories, instances and streams.

use super::{Location, Verifier, over};
use crate::*;
use std::collections::HashSet;

impl Verifier<'_> {
    pub(super) fn objects(&mut self) {
        self.ports();
        let module = self.module;
        let mut names = HashSet::new();
        let registers = module.registers.values().map(|object| ("register", &object.name));
        let memories = module.memories.values().map(|object| ("memory", &object.name));
        let instances = module.instances.values().map(|object| ("instance", &object.name));
        for (kind, name) in registers.chain(memories).chain(instances) {
            self.name(kind, name);
            if !names.insert(name) {
                self.report(Location::Object(kind, name), "another object has this name");
            }
        }
        module.registers.values().for_each(|register| self.register(register));
        module.memories.values().for_each(|memory| self.memory(memory));
        module.instances.values().for_each(|instance| self.instance(instance));
        let mut names = HashSet::new();
        for stream in module.streams.values() {
            self.name("stream", &stream.name);
            if !names.insert(&stream.name) {
                self.report(Location::Object("stream", &stream.name), "another stream has this name");
            }
            self.stream(stream);
        }
    }

    fn ports(&mut self) {
        let module = self.module;
        let mut names = HashSet::new();
        let inputs = module.inputs.values().map(|port| ("input", &port.name, port.width));
        let outputs = module.outputs.values().map(|port| ("output", &port.name, port.width));
        for (kind, name, width) in inputs.chain(outputs) {
            let at = Location::Object(kind, name);
            self.name(kind, name);
            self.in_range(at, width);
            self.require(names.insert(name), at, || "another port has this name".into());
        }
        for port in module.outputs.values() {
            self.driver(Location::Object("output", &port.name), "value", port.value, port.width);
        }
    }

    fn register(&mut self, register: &Register) {
        let at = Location::Object("register", &register.name);
        self.in_range(at, register.width);
        if let Some(reset) = &register.reset {
            self.require(reset.width() == register.width, at, || {
                format!("a reset value of {} bits for {}", reset.width(), register.width)
            });
        }
        self.driver(at, "next value", register.next, register.width);
        if let Some(enable) = register.enable.expand() {
            self.value(at, "enable", enable, 1);
        }
    }

    fn memory(&mut self, memory: &Memory) {
        let at = Location::Object("memory", &memory.name);
        self.in_range(at, memory.width);
        self.require(memory.depth > 0, at, || "a memory without words".into());
        let bits = u64::from(memory.width) * u64::from(memory.depth);
        self.require(bits <= limits::MAX_MEMORY_BITS, at, || {
            over("bits", bits, "MAX_MEMORY_BITS", limits::MAX_MEMORY_BITS)
        });
        let words = memory.initial.len();
        self.require(words <= memory.depth as usize, at, || {
            format!("{words} initial words for {}", memory.depth)
        });
        if let Some(word) = memory.initial.iter().find(|word| word.width() != memory.width) {
            self.report(at, format!("an initial word of {} bits for {}", word.width(), memory.width));
        }
        for (what, found) in [("read ports", memory.reads.len()), ("write ports", memory.writes.len())] {
            let most = limits::MAX_MEMORY_PORTS;
            self.require(found <= most, at, || over(what, found as u64, "MAX_MEMORY_PORTS", most as u64));
        }
        let address = memory.address_width();
        for port in &memory.writes {
            self.value(at, "write address", port.address, address);
            self.value(at, "written data", port.data, memory.width);
            self.value(at, "write enable", port.enable, 1);
            if let Some(lanes) = port.lanes.expand() {
                let lanes = self.module.width(lanes);
                self.require(lanes > 0 && memory.width.is_multiple_of(lanes), at, || {
                    format!("{lanes} lanes for {} bits", memory.width)
                });
            }
        }
        for port in memory.reads.values() {
            self.driver(at, "read address", port.address, address);
            if let Latency::Clocked { enable } = port.latency
                && let Some(enable) = enable.expand()
            {
                self.value(at, "read enable", enable, 1);
            }
        }
    }

    fn instance(&mut self, instance: &Instance) {
        let at = Location::Object("instance", &instance.name);
        if instance.module >= self.id {
            return self.report(at, format!("{} does not come earlier", instance.module));
        }
        let module = &self.design.modules[instance.module];
        let (has, wanted) = (instance.inputs.len(), module.inputs.len());
        if has != wanted {
            return self.report(at, format!("{has} inputs for the {wanted} of {}", module.name));
        }
        for (value, port) in instance.inputs.iter().zip(module.inputs.values()) {
            self.driver(at, &format!("input {}", port.name), *value, port.width);
        }
    }

    fn stream(&mut self, stream: &Stream) {
        let at = Location::Object("stream", &stream.name);
        let beats = stream.shape.signals().chain([("tvalid", 1)]).map(|signal| (signal, true));
        self.require(stream.shape.last <= 1, at, || format!("tlast has {} bits, not 1", stream.shape.last));
        if stream.shape.keep > 0 && stream.shape.keep.saturating_mul(8) != stream.shape.data {
            let shape = stream.shape;
            self.report(at, format!("tkeep has {} bits for {} bits of tdata", shape.keep, shape.data));
        }
        for ((suffix, width), with_beat) in beats.chain([(("tready", 1), false)]) {
            let name = format!("{}_{suffix}", stream.name);
            let is_input = with_beat == (stream.direction == Direction::In);
            let found = if is_input {
                self.module.input_named(&name).map(|id| self.module.inputs[id].width)
            } else {
                self.module.output_named(&name).map(|id| self.module.outputs[id].width)
            };
            let kind = if is_input { "input" } else { "output" };
            match found {
                None => self.report(at, format!("there is no {kind} {name}")),
                Some(found) => {
                    self.require(found == width, at, || format!("{name} has {found} bits, not {width}"));
                }
            }
        }
    }
}
