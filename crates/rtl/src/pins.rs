//! The ports of software of a simulated design: what a register map is to a processor, cycle by cycle.

use crate::driver::SoftwareAccess;
use crate::model::{Model, Port};
use crate::software_port::{PortKind, READ_LATENCY, SoftwarePort};
use crate::table_memories::{PortMemory, TableMemories};
use millrace_netlist::SignalKind;
use millrace_pipeline::Bits;
use std::collections::BTreeMap;
use std::convert::Infallible;

/// Most looks whether all frames meet a bank: a stage has fewer cycles (`MAX_LATENCY`).
const MAX_LOOKS: u32 = 1 << 14;

/// Words of tables that an update writes to each bank through ports, a cycle each. A table of ranges has 256 words for each digit of a key
/// and 64 entries: what is more than this is set at once.
pub(crate) const WORDS_BY_PORT: usize = 1 << 10;

/// Those of a stage.
pub(crate) struct Pins {
    ports: Vec<PortPins>,
    /// Of tables: where the words of a port are, in the order of ports and addresses.
    memories: TableMemories,
    /// The number of the port of the bank.
    bank: Option<usize>,
}

/// Enable, address and data; none: nothing depends on it.
#[derive(Clone, Copy)]
struct PortPins {
    write: [Option<Port>; 3],
    read: [Option<Port>; 3],
    /// Bits of an address.
    address: u32,
    width: u32,
}

impl Pins {
    /// Those of a design, whose words are in these memories.
    pub(crate) fn find(model: &Model, ports: &[SoftwarePort], memories: &[PortMemory]) -> Pins {
        let of = |port: &SoftwarePort| {
            let input = |what: &str| model.port(SignalKind::Input, &port.port(what));
            let data = model.port(SignalKind::Output, &port.port("read_data"));
            PortPins {
                write: ["write_enable", "write_address", "write_data"].map(input),
                read: [input("read_enable"), input("read_address"), data],
                address: port.address_width(),
                width: port.width,
            }
        };
        let bank = ports.iter().position(|port| port.kind == PortKind::Bank);
        let memories = TableMemories::find(memories, |name| model.memory(name));
        Pins { ports: ports.iter().map(of).collect(), memories, bank }
    }
}

/// The ports with the simulation that they belong to.
pub(crate) struct Attached<'a> {
    pins: &'a Pins,
    model: &'a mut Model,
    by_port: usize,
}

impl<'a> Attached<'a> {
    /// For an update, which writes so many words of tables to each bank through ports.
    pub(crate) fn new(pins: &'a Pins, model: &'a mut Model, by_port: usize) -> Attached<'a> {
        Attached { pins, model, by_port }
    }
}

impl Attached<'_> {
    fn drive(&mut self, pin: Option<Port>, value: &Bits) {
        pin.into_iter().for_each(|pin| self.model.set(pin, value));
    }
}

impl SoftwareAccess for Attached<'_> {
    type Error = Infallible;

    fn write(&mut self, port: usize, address: u64, word: &Bits) -> Result<(), Infallible> {
        let PortPins { write: [enable, at, data], address: width, .. } = self.pins.ports[port];
        self.drive(enable, &Bits::new(1, 1));
        self.drive(at, &Bits::new(width, address.into()));
        self.drive(data, word);
        self.model.step();
        self.drive(enable, &Bits::new(1, 0));
        Ok(())
    }

    fn words_by_port(&self) -> usize {
        self.by_port
    }

    fn set_at_once(&mut self, port: usize, address: u64, word: &Bits) -> bool {
        let Some((memories, at)) = self.pins.memories.place(port, address) else { return false };
        memories.iter().for_each(|memory| self.model.fill(*memory, at, word));
        true
    }

    /// A word of each port in each cycle.
    fn read(&mut self, words: &[(usize, u64)]) -> Result<Vec<Bits>, Infallible> {
        let mut of_ports: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (number, (port, _)) in words.iter().enumerate() {
            of_ports.entry(*port).or_default().push(number);
        }
        let most = of_ports.values().map(Vec::len).max().unwrap_or(0);
        let mut read: Vec<Bits> =
            words.iter().map(|(port, _)| Bits::zero(self.pins.ports[*port].width)).collect();
        let cycles = if most == 0 { 0 } else { most + READ_LATENCY as usize };
        for cycle in 0..cycles {
            for (port, numbers) in &of_ports {
                let PortPins { read: [enable, at, data], address, .. } = self.pins.ports[*port];
                self.drive(enable, &Bits::new(1, u128::from(cycle < numbers.len())));
                if let Some(number) = numbers.get(cycle) {
                    self.drive(at, &Bits::new(address, words[*number].1.into()));
                }
                let came = cycle.checked_sub(READ_LATENCY as usize).and_then(|before| numbers.get(before));
                if let (Some(number), Some(data)) = (came, data) {
                    read[*number] = self.model.get(data);
                }
            }
            self.model.step();
        }
        Ok(read)
    }

    /// A frame is in a stage for a fixed number of cycles, fewer than the looks take; only a model that has ended never says it.
    fn use_bank(&mut self, bank: bool) -> Result<(), Infallible> {
        let Some(port) = self.pins.bank else { return Ok(()) };
        self.write(port, 0, &Bits::new(2, bank.into()))?;
        let wanted = Bits::new(2, 2 | u128::from(bank));
        for _ in 0..MAX_LOOKS {
            if self.read(&[(port, 0)])?.contains(&wanted) {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
