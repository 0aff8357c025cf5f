//! The registers by which a processor reaches everything that software reads and writes of a device.
//!
//! All ports of software ([`SoftwarePort`]) share one window of registers: software says which port and which word, and puts the data of the
//! word, of any width, into the data registers; a write to [`Field::Command`] then writes the whole word in one cycle, or has one read into
//! the data registers. So a word is never seen half written, and a device takes as few registers whatever it has.

mod access;
mod counts;
mod hardware;
mod master;
mod numbers;
#[cfg(test)]
mod tests;
mod texts;

pub use access::{MapError, RegisterAccess, RegisterDevice};
pub use counts::{COUNT_WIDTH, Step, connect_counts};
pub use hardware::Bus;
pub use master::{Master, Pending, Request};
pub use numbers::{connect_bus, connect_reads, connect_settings};

use crate::software_port::{PortKind, SoftwarePort};
use crate::tables::{Area, TableUnit};
use millrace_pipeline::{DropSite, Program};

/// A register, but for the data registers, with its offset in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Field {
    /// [`RegisterMap::IDENT`]: that this is such a device.
    Ident = 0x00,
    /// [`RegisterMap::VERSION`]: of the meaning of these registers.
    Version = 0x04,
    /// The lower half of [`RegisterMap::cookie`].
    CookieLow = 0x08,
    /// The upper half of it.
    CookieHigh = 0x0c,
    /// How many ports there are.
    Ports = 0x10,
    /// How many data registers there are.
    Words = 0x14,
    /// Which queues have something, a bit each, in the order of the ports.
    Pending = 0x18,
    /// Which of these raise the interrupt.
    Enabled = 0x1c,
    /// The number of a port.
    Port = 0x20,
    /// The number of a word of the port.
    Address = 0x24,
    /// What to do: [`RegisterMap::WRITE`] or [`RegisterMap::READ`], and [`RegisterMap::NEXT`].
    Command = 0x28,
    /// Bit 0: a read goes on; until it has ended, commands do nothing.
    Status = 0x2c,
}

impl Field {
    /// All of them, in the order of their offsets.
    pub const ALL: [Field; 12] = [
        Field::Ident,
        Field::Version,
        Field::CookieLow,
        Field::CookieHigh,
        Field::Ports,
        Field::Words,
        Field::Pending,
        Field::Enabled,
        Field::Port,
        Field::Address,
        Field::Command,
        Field::Status,
    ];

    /// Its offset in bytes.
    pub fn offset(self) -> u32 {
        self as u32
    }

    /// Whether software writes it.
    pub fn is_written(self) -> bool {
        matches!(self, Field::Enabled | Field::Port | Field::Address | Field::Command)
    }
}

/// The registers of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterMap {
    /// The name of the program, or of what else the device was made of.
    pub program: String,
    /// A hash of the program, its ports and the words of its tables, by which software knows that a device is of this program and of this shape.
    pub cookie: u64,
    /// What software reaches, each under its number here.
    pub ports: Vec<SoftwarePort>,
    /// What the words of tables are.
    pub tables: Vec<TableMap>,
    /// Words that have names of their own.
    pub names: Vec<WordName>,
}

/// The name of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordName {
    /// As `port0.rx_frames`.
    pub name: String,
    /// The number of its port.
    pub port: usize,
    /// The number of the word.
    pub address: u64,
}

/// The words of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableMap {
    /// The number of its port.
    pub port: usize,
    /// How its unit finds an entry.
    pub kind: &'static str,
    /// Its memories.
    pub areas: Vec<Area>,
}

impl RegisterMap {
    /// "MLRC".
    pub const IDENT: u32 = 0x4d4c_5243;
    /// The meaning of the registers that this is about.
    pub const VERSION: u32 = 1;
    /// The offset of the first data register.
    pub const DATA: u32 = 0x40;
    /// The most data registers: for words of 8192 bits.
    pub const MAX_WORDS: u32 = 256;
    /// A command: the data registers are written to the word.
    pub const WRITE: u32 = 1;
    /// A command: the word is read to the data registers.
    pub const READ: u32 = 2;
    /// A command: then the address is one more.
    pub const NEXT: u32 = 4;

    /// The registers of a program with these ports. `units` are those of tables.
    pub fn new(
        program: &Program,
        ports: Vec<SoftwarePort>,
        units: &[TableUnit],
        names: Vec<WordName>,
    ) -> RegisterMap {
        // The name of its source and where things stand there make no other hardware.
        let drop_sites = vec![DropSite::default(); program.drop_sites.len()];
        let name = String::new();
        let mut made_of = Program { name, drop_sites, source_lines: Vec::new(), ..program.clone() };
        made_of
            .bodies
            .values_mut()
            .flat_map(|body| body.blocks.values_mut())
            .for_each(|block| block.line = None);
        let made_of = made_of.to_string();
        let map = RegisterMap::of((&program.name, &made_of), ports, names);
        let table = |unit: &TableUnit| {
            let name = &program.tables[unit.table].name;
            let of_table = |port: &SoftwarePort| port.object == *name && port.kind == PortKind::Table;
            let port = map.ports.iter().position(of_table)?;
            Some(TableMap { port, kind: unit.kind.name(), areas: unit.areas() })
        };
        let tables: Vec<TableMap> = units.iter().filter_map(table).collect();
        // Words of as many bits may mean something else.
        let cookie = tables.iter().fold(map.cookie, |cookie, table| hashed(cookie, &format!("{table:?}")));
        RegisterMap { cookie, tables, ..map }
    }

    /// The registers of what is no program: its name, and a text by which others are told apart.
    pub fn of((name, made_of): (&str, &str), ports: Vec<SoftwarePort>, names: Vec<WordName>) -> RegisterMap {
        let mut cookie = hashed(0xcbf2_9ce4_8422_2325, made_of);
        cookie = ports.iter().fold(cookie, |cookie, port| hashed(cookie, &format!("{port:?}")));
        cookie = names.iter().fold(cookie, |cookie, name| hashed(cookie, &format!("{name:?}")));
        RegisterMap { program: name.to_owned(), cookie, ports, tables: Vec::new(), names }
    }

    /// The number of a port.
    pub fn port(&self, object: &str) -> Option<usize> {
        self.ports.iter().position(|port| port.object == object)
    }

    /// The number of a port and of a word of it, by name: of a word that has a name, of an object (its word 0), or of a word of an object
    /// as `ingress.packets[7]`.
    pub fn find(&self, name: &str) -> Option<(usize, u64)> {
        if let Some(found) = self.names.iter().find(|word| word.name == name) {
            return Some((found.port, found.address));
        }
        if let Some(port) = self.port(name) {
            return Some((port, 0));
        }
        let (object, index) = name.strip_suffix(']')?.rsplit_once('[')?;
        let (port, address) = (self.port(object)?, index.parse().ok()?);
        (address < self.ports[port].words).then_some((port, address))
    }

    /// How many data registers there are: as the widest word needs, at least one.
    pub fn words(&self) -> u32 {
        self.ports.iter().map(|port| port.width.div_ceil(32)).max().unwrap_or(0).max(1)
    }

    /// The bytes of all registers.
    pub fn size(&self) -> u32 {
        (RegisterMap::DATA + 4 * self.words()).next_power_of_two()
    }

    /// The queues, in the order of their bits in [`Field::Pending`]; of more than 32 the last ones have none.
    pub fn queues(&self) -> impl Iterator<Item = &SoftwarePort> {
        self.ports.iter().filter(|port| port.kind == PortKind::Queue).take(32)
    }
}

/// A hash with the bytes of a text, by FNV-1a.
fn hashed(hash: u64, text: &str) -> u64 {
    text.bytes().fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
