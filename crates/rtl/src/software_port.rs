//! How software reaches a unit: the one shape of all ports that a register map gives addresses.
//!
//! A unit has an array of words. The top of a design has for each unit `OBJECT.write_enable`, `OBJECT.write_address` and
//! `OBJECT.write_data` if its words can be written, and `OBJECT.read_enable`, `OBJECT.read_address` and `OBJECT.read_data` if they can be
//! read. A write is done in the cycle of its enable, to a memory that frames write too in the first cycle after it in which these leave
//! the memory alone; data that are read are valid [`READ_LATENCY`] cycles after the enable, in that cycle alone. One request a cycle.

use millrace_netlist::{ModuleBuilder, NodeId, OutputId};
use std::fmt;

/// Cycles from the request of a read to its data.
pub const READ_LATENCY: u32 = 4;

/// What stands at the other side of a port of software.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PortKind {
    /// The words of a match engine.
    Table,
    /// The members and groups of an action profile.
    Profile,
    /// A word for each counter.
    Counter,
    /// A word for each meter: its configuration and its buckets.
    Meter,
    /// A word for each cell of a register.
    Register,
    /// The members of a value set.
    ValueSet,
    /// The parameters of a hash.
    Hash,
    /// The seed of random numbers.
    Random,
    /// A queue of messages: digests, lines. A read of word 0 takes the first one.
    Queue,
    /// The bank of tables that frames meet.
    Bank,
    /// Multicast groups of a device.
    Groups,
    /// The copies of these, and of clone sessions.
    Nodes,
    /// Clone sessions of a device.
    Sessions,
    /// Settings of a device, a word each.
    Settings,
    /// What a device counts by itself, a word each.
    Counts,
}

impl PortKind {
    /// All of them.
    pub const ALL: [PortKind; 15] = [
        PortKind::Table,
        PortKind::Profile,
        PortKind::Counter,
        PortKind::Meter,
        PortKind::Register,
        PortKind::ValueSet,
        PortKind::Hash,
        PortKind::Random,
        PortKind::Queue,
        PortKind::Bank,
        PortKind::Groups,
        PortKind::Nodes,
        PortKind::Sessions,
        PortKind::Settings,
        PortKind::Counts,
    ];
}

impl fmt::Display for PortKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PortKind::Table => "table",
            PortKind::Profile => "profile",
            PortKind::Counter => "counter",
            PortKind::Meter => "meter",
            PortKind::Register => "register",
            PortKind::ValueSet => "value set",
            PortKind::Hash => "hash",
            PortKind::Random => "random",
            PortKind::Queue => "queue",
            PortKind::Bank => "bank",
            PortKind::Groups => "groups",
            PortKind::Nodes => "nodes",
            PortKind::Sessions => "sessions",
            PortKind::Settings => "settings",
            PortKind::Counts => "counts",
        })
    }
}

/// The port of software to a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SoftwarePort {
    /// The name of the object, with which the names of the ports start. Unique in a design.
    pub object: String,
    /// What it is.
    pub kind: PortKind,
    /// How many words it has.
    pub words: u64,
    /// The bits of a word.
    pub width: u32,
    /// Whether software reads words.
    pub readable: bool,
    /// Whether software writes words.
    pub writable: bool,
}

impl SoftwarePort {
    /// The bits of an address: as many as `words - 1` needs, at least one.
    pub fn address_width(&self) -> u32 {
        (64 - self.words.saturating_sub(1).leading_zeros()).max(1)
    }

    /// The name of one of its ports, such as `write_enable`.
    pub fn port(&self, what: &str) -> String {
        format!("{}.{what}", self.object)
    }

    /// What software gives to the unit.
    pub fn given(&self) -> impl Iterator<Item = &'static str> {
        let written = ["write_enable", "write_address", "write_data"].into_iter().filter(|_| self.writable);
        written.chain(["read_enable", "read_address"].into_iter().filter(|_| self.readable))
    }

    /// Adds the inputs of writes to a module: enable, address, data.
    pub fn write_inputs(&self, m: &mut ModuleBuilder) -> [NodeId; 3] {
        let enable = m.input(&self.port("write_enable"), 1);
        let address = m.input(&self.port("write_address"), self.address_width());
        let data = m.input(&self.port("write_data"), self.width);
        [enable, address, data]
    }

    /// Adds the inputs of reads to a module: enable, address.
    pub fn read_inputs(&self, m: &mut ModuleBuilder) -> [NodeId; 2] {
        let enable = m.input(&self.port("read_enable"), 1);
        let address = m.input(&self.port("read_address"), self.address_width());
        [enable, address]
    }

    /// Adds the output of reads to a module, of data that are there [`READ_LATENCY`] cycles after the request.
    pub fn read_output(&self, m: &mut ModuleBuilder, data: NodeId) -> OutputId {
        m.output(&self.port("read_data"), data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_have_the_names_and_widths_of_the_object() {
        let port = SoftwarePort {
            object: "ingress.packets".to_owned(),
            kind: PortKind::Counter,
            words: 1000,
            width: 96,
            readable: true,
            writable: true,
        };
        let mut m = ModuleBuilder::new("top");
        let [_, address, data] = port.write_inputs(&mut m);
        port.read_inputs(&mut m);
        port.read_output(&mut m, data);
        assert_eq!((m.width(address), m.width(data)), (10, 96));
        let module = m.finish();
        assert!(module.input_named("ingress.packets.read_address").is_some());
        assert!(module.output_named("ingress.packets.read_data").is_some());
        let one = SoftwarePort { words: 1, ..port };
        assert_eq!(one.address_width(), 1);
    }
}
