//! The registers as hardware.

use super::{Field, RegisterMap};
use crate::parts::import;
use crate::software_port::{READ_LATENCY, SoftwarePort};
use millrace_netlist::{Design, Module, ModuleBuilder, ModuleId, NodeId, address_width, blocks};

/// The bus of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bus {
    /// AXI4-Lite.
    Axi4Lite,
    /// Avalon-MM.
    AvalonMm,
}

impl Bus {
    /// The name of the module that has the registers at this bus.
    pub fn module(self) -> &'static str {
        match self {
            Bus::Axi4Lite => "control_axi4_lite",
            Bus::AvalonMm => "control_avalon_mm",
        }
    }
}

/// What a module of registers is made of.
struct Core<'a> {
    map: &'a RegisterMap,
    m: ModuleBuilder,
    write: NodeId,
    address: NodeId,
    data: NodeId,
    strobe: NodeId,
}

impl RegisterMap {
    /// The registers at a bus: its ports, and the other sides of all ports of software, under their names. `pending` has a bit for each
    /// queue that has something; `irq` is 1 while one has that is enabled.
    pub fn design(&self, bus: Bus) -> Design {
        let mut design = Design::new();
        let bits = (self.size() / 4).trailing_zeros();
        let slave = match bus {
            Bus::Axi4Lite => blocks::axi4_lite(&mut design, bits),
            Bus::AvalonMm => blocks::avalon_mm(&mut design, bits),
        };
        let registers = design.add(self.registers());
        let mut m = ModuleBuilder::new(bus.module());
        let slave_instance = m.instance(&design, slave, "slave");
        let core = m.instance(&design, registers, "registers");
        let inner: Vec<String> =
            design.modules[registers].outputs.values().map(|port| port.name.clone()).collect();
        let bus_side =
            ["write_enable", "write_address", "write_data", "write_strobe", "read_enable", "read_address"];
        for (id, width) in [(slave, true), (registers, false)] {
            let inputs: Vec<(String, u32)> =
                design.modules[id].inputs.values().map(|port| (port.name.clone(), port.width)).collect();
            for (port, bits) in inputs {
                let (instance, other) = if width { (slave_instance, core) } else { (core, slave_instance) };
                let is_inner = if width { port == "read_data" } else { bus_side.contains(&port.as_str()) };
                let value = if is_inner { m.output_of(other, &port) } else { m.input(&port, bits) };
                m.connect(instance, &port, value);
            }
        }
        let outer: Vec<String> =
            design.modules[slave].outputs.values().map(|port| port.name.clone()).collect();
        for port in outer.iter().filter(|port| !bus_side.contains(&port.as_str())) {
            let value = m.output_of(slave_instance, port);
            m.output(port, value);
        }
        for port in inner.iter().filter(|port| *port != "read_data") {
            let value = m.output_of(core, port);
            m.output(port, value);
        }
        design.add(m.finish());
        design
    }

    /// Adds the registers at a bus to a design; gives their module, whose ports are those of [`RegisterMap::design`].
    pub fn add_to(&self, design: &mut Design, bus: Bus) -> ModuleId {
        import(design, &self.design(bus))
    }

    /// The registers without a bus.
    fn registers(&self) -> Module {
        let bits = (self.size() / 4).trailing_zeros();
        let mut m = ModuleBuilder::new("control_registers");
        let write = m.input("write_enable", 1);
        let address = m.input("write_address", bits);
        let (data, strobe) = (m.input("write_data", 32), m.input("write_strobe", 4));
        let (read, read_address) = (m.input("read_enable", 1), m.input("read_address", bits));
        let core = Core { map: self, m, write, address, data, strobe };
        core.make(read, read_address)
    }
}

impl Core<'_> {
    fn make(mut self, read: NodeId, read_address: NodeId) -> Module {
        let enabled = self.field(Field::Enabled, 32);
        let count = self.map.ports.len() as u32;
        let select_bits = address_width(count.max(1));
        let port = self.field(Field::Port, select_bits);
        let most = self.map.ports.iter().map(SoftwarePort::address_width).max().unwrap_or(1).min(32);

        let busy_register = self.m.register("busy", READ_LATENCY, Some(0));
        let (busy_id, busy_bits) = busy_register;
        // A command is done in the cycle after it was written, as what it does is all over the device. What is written in that cycle counts in
        // the next one.
        let read_register = self.m.register("reads", 1, Some(0));
        let busy = self.m.reduce_or(busy_bits);
        let busy = self.m.or(busy, read_register.1);
        let command = self.written(Field::Command.offset() / 4);
        let idle = self.m.not(busy);
        let command = self.m.and(command, idle);
        let bit = |core: &mut Self, flag: u32| {
            let set = core.m.bit(core.data, flag.trailing_zeros());
            core.m.and(command, set)
        };
        let (writes, reads) = (bit(&mut self, RegisterMap::WRITE), bit(&mut self, RegisterMap::READ));
        let next = bit(&mut self, RegisterMap::NEXT);
        let writes = self.m.delayed("writes", writes, Some(0));
        let next = self.m.delayed("next", next, Some(0));
        self.m.set_next(read_register.0, reads);
        let reads = read_register.1;
        // A 1 for the cycle of the read that is; the last one is the cycle of its data.
        let start = match READ_LATENCY {
            1 => reads,
            more => {
                let rest = self.m.slice(busy_bits, 0, more - 1);
                self.m.concat(&[rest, reads])
            }
        };
        self.m.set_next(busy_id, start);
        let arrives = self.m.bit(busy_bits, READ_LATENCY - 1);
        let address = self.address(most, next);

        let given = self.given(port);
        let words = self.data_words(arrives, given);
        let reversed: Vec<NodeId> = words.iter().rev().copied().collect();
        let whole = self.m.concat(&reversed);
        self.ports(port, address, whole, writes, reads);

        let pending = self.pending();
        let raised = self.m.and(pending, enabled);
        let interrupt = self.m.reduce_or(raised);
        self.m.output("irq", interrupt);
        self.read(
            read,
            read_address,
            &[
                (Field::Pending, pending),
                (Field::Enabled, enabled),
                (Field::Port, port),
                (Field::Address, address),
                (Field::Status, busy),
            ],
            &words,
        );
        self.m.finish()
    }

    /// Whether a register is written in this cycle.
    fn written(&mut self, word: u32) -> NodeId {
        let here = self.m.is(self.address, word.into());
        self.m.and(self.write, here)
    }

    /// A value with those bytes replaced that are written.
    fn merged(&mut self, old: NodeId) -> NodeId {
        let width = self.m.width(old);
        let mut parts = Vec::new();
        for byte in 0..width.div_ceil(8) {
            let bits = 8.min(width - 8 * byte);
            let (new, old) = (self.m.slice(self.data, 8 * byte, bits), self.m.slice(old, 8 * byte, bits));
            let strobe = self.m.bit(self.strobe, byte);
            parts.push(self.m.mux(strobe, new, old));
        }
        parts.reverse();
        self.m.concat(&parts)
    }

    /// A register that software writes.
    fn field(&mut self, field: Field, bits: u32) -> NodeId {
        let (register, value) = self.m.register(&format!("{field:?}").to_lowercase(), bits, Some(0));
        let next = self.merged(value);
        let enable = self.written(field.offset() / 4);
        self.m.set_next(register, next);
        self.m.set_enable(register, enable);
        value
    }

    /// The number of a word, which a command may make one more.
    fn address(&mut self, bits: u32, next: NodeId) -> NodeId {
        let (register, value) = self.m.register("address", bits, Some(0));
        let (merged, more) = (self.merged(value), self.m.add_number(value, 1));
        let written = self.written(Field::Address.offset() / 4);
        let taken = self.m.mux(written, merged, more);
        let enable = self.m.or(written, next);
        self.m.set_next(register, taken);
        self.m.set_enable(register, enable);
        value
    }

    /// What the chosen port gives.
    fn given(&mut self, port: NodeId) -> NodeId {
        let width = 32 * self.map.words();
        let mut given = Vec::new();
        for (number, of) in self.map.ports.iter().enumerate().filter(|(_, of)| of.readable) {
            let data = self.m.input(&of.port("read_data"), of.width);
            let (here, data) = (self.m.is(port, number as u128), self.m.resize(data, width));
            given.push((here, data));
        }
        self.m.one_hot(width, &given)
    }

    /// The data registers: software writes them, and a read does.
    fn data_words(&mut self, arrives: NodeId, given: NodeId) -> Vec<NodeId> {
        let first = RegisterMap::DATA / 4;
        (0..self.map.words())
            .map(|word| {
                let (register, value) = self.m.register(&format!("data{word}"), 32, Some(0));
                let merged = self.merged(value);
                let read = self.m.slice(given, 32 * word, 32);
                let next = self.m.mux(arrives, read, merged);
                let written = self.written(first + word);
                let enable = self.m.or(written, arrives);
                self.m.set_next(register, next);
                self.m.set_enable(register, enable);
                value
            })
            .collect()
    }

    fn ports(&mut self, port: NodeId, address: NodeId, data: NodeId, writes: NodeId, reads: NodeId) {
        for (number, of) in self.map.ports.iter().enumerate() {
            let here = self.m.is(port, number as u128);
            let at = self.m.resize(address, of.address_width());
            if of.writable {
                let enable = self.m.and(writes, here);
                let word = self.m.slice(data, 0, of.width);
                self.m.output(&of.port("write_enable"), enable);
                self.m.output(&of.port("write_address"), at);
                self.m.output(&of.port("write_data"), word);
            }
            if of.readable {
                let enable = self.m.and(reads, here);
                self.m.output(&of.port("read_enable"), enable);
                self.m.output(&of.port("read_address"), at);
            }
        }
    }

    fn pending(&mut self) -> NodeId {
        let queues = self.map.queues().count() as u32;
        match queues {
            0 => self.m.number(32, 0),
            queues => {
                let pending = self.m.input("pending", queues);
                self.m.resize(pending, 32)
            }
        }
    }

    /// The register that is read, a cycle later.
    fn read(&mut self, enable: NodeId, address: NodeId, fields: &[(Field, NodeId)], words: &[NodeId]) {
        let map = self.map;
        let numbers = [
            (Field::Ident, RegisterMap::IDENT),
            (Field::Version, RegisterMap::VERSION),
            (Field::CookieLow, map.cookie as u32),
            (Field::CookieHigh, (map.cookie >> 32) as u32),
            (Field::Ports, map.ports.len() as u32),
            (Field::Words, map.words()),
        ];
        let mut choices = Vec::new();
        for (field, number) in numbers {
            choices.push((field.offset() / 4, self.m.number(32, number.into())));
        }
        for (field, value) in fields {
            choices.push((field.offset() / 4, self.m.resize(*value, 32)));
        }
        choices.extend((RegisterMap::DATA / 4..).zip(words.iter().copied()));
        let chosen: Vec<(NodeId, NodeId)> =
            choices.into_iter().map(|(word, value)| (self.m.is(address, word.into()), value)).collect();
        let value = self.m.one_hot(32, &chosen);
        let (register, given) = self.m.register("given", 32, None);
        self.m.set_next(register, value);
        self.m.set_enable(register, enable);
        self.m.output("read_data", given);
    }
}
