//! The registers of a device: one map for the units of all stages and for what the device has itself, at one bus.

use super::shape::Shape;
use super::stages::Placed;
use super::{Counted, DeviceOptions};
use crate::assemble::bank_port;
use crate::driver::Driver;
use crate::groups::{GROUPS, GroupWords, NODE_WIDTH, NODES, SESSIONS, group_width};
use crate::hardware::{Hardware, Holder, Reached, ReachedUnit};
use crate::map::{
    COUNT_WIDTH, RegisterMap, Step, WordName, connect_bus, connect_counts, connect_reads, connect_settings,
};
use crate::objects::Synced;
use crate::software_port::{PortKind, READ_LATENCY, SoftwarePort};
use crate::table_memories::PortMemory;
use millrace_netlist::{Design, InstanceId, ModuleBuilder, NodeId, RegisterId};

/// What the device has itself for software, while it is built.
pub(super) struct Control {
    /// The bank that frames meet that come in.
    pub(super) bank: NodeId,
    bank_register: RegisterId,
    /// Whether software writes the bank in this cycle.
    pub(super) bank_written: NodeId,
    bank_written_register: RegisterId,
    settings: Vec<Setting>,
    /// What software reads, and what it is called.
    counters: Vec<(String, NodeId)>,
    /// What numbers count, and the events of each.
    counts: Vec<(Counted, Vec<NodeId>)>,
    tables: Vec<(SoftwarePort, [RegisterId; 3])>,
}

/// A register that software writes.
struct Setting {
    name: String,
    /// Whether it is one of the wide ones: addresses of stations.
    is_station: bool,
    register: RegisterId,
    value: NodeId,
}

/// Bits of settings, and of what software reads.
const WORD: u32 = 32;
/// Bits of the address of a station.
const STATION: u32 = 48;

impl Control {
    pub(super) fn new(m: &mut ModuleBuilder) -> Control {
        let (bank_register, bank) = m.register("bank", 1, Some(0));
        let (bank_written_register, bank_written) = m.register("bank_written", 1, Some(0));
        Control {
            bank,
            bank_register,
            bank_written,
            bank_written_register,
            settings: Vec::new(),
            counters: Vec::new(),
            counts: Vec::new(),
            tables: Vec::new(),
        }
    }

    /// A register that software writes; gives its value.
    pub(super) fn setting(&mut self, m: &mut ModuleBuilder, name: &str, width: u32, reset: u128) -> NodeId {
        let plain = name.replace('.', "_");
        let (register, value) = m.register(&format!("set_{plain}"), width, Some(reset));
        self.settings.push(Setting { name: name.to_owned(), is_station: width > WORD, register, value });
        value
    }

    /// A number that software reads.
    pub(super) fn shows(&mut self, name: &str, value: NodeId) {
        self.counters.push((name.to_owned(), value));
    }

    /// Something that happens, which a number counts with all else of it.
    pub(super) fn counts(&mut self, what: Counted, event: NodeId) {
        match self.counts.iter_mut().find(|(known, _)| *known == what) {
            Some((_, events)) => events.push(event),
            None => self.counts.push((what, vec![event])),
        }
    }

    /// A memory that software writes; gives enable, address and data.
    pub(super) fn memory(
        &mut self,
        m: &mut ModuleBuilder,
        name: &str,
        kind: PortKind,
        (words, width): (u32, u32),
    ) -> [NodeId; 3] {
        let port = SoftwarePort {
            object: name.to_owned(),
            kind,
            words: words.into(),
            width,
            readable: false,
            writable: true,
        };
        let (enable_register, enable) = m.register(&format!("{name}_write_enable"), 1, Some(0));
        let (address_register, address) =
            m.register(&format!("{name}_write_address"), port.address_width(), None);
        let (data_register, data) = m.register(&format!("{name}_write_data"), width, None);
        self.tables.push((port, [enable_register, address_register, data_register]));
        [enable, address, data]
    }

    /// Adds the registers, and connects everything with them. `settled` says that no frame meets another bank than those that come.
    pub(super) fn finish(
        self,
        m: &mut ModuleBuilder,
        design: &mut Design,
        (hardware, options): (&Hardware, &DeviceOptions),
        (stages, shared): (&[&Placed<'_>], Option<InstanceId>),
        settled: NodeId,
    ) -> Software {
        let (map, places) = self.map(hardware, stages);
        let module = map.add_to(design, options.bus);
        let control = m.instance(design, module, "control");
        connect_bus(m, design, &map, control);
        let mut pending = Vec::new();
        for (port, reached) in map.ports.iter().zip(&places.reached) {
            if !matches!(reached.what, ReachedUnit::Bank) {
                let instances: Vec<(InstanceId, &str)> = (reached.holders.iter())
                    .filter_map(|(holder, name)| {
                        let instance = match holder {
                            Holder::Shared => shared,
                            Holder::Stage(number) => {
                                let part = hardware.stages[*number].part;
                                let stage = stages.iter().find(|stage| stage.stage.part == part);
                                stage.map(|stage| stage.instance)
                            }
                        };
                        Some((instance?, name.as_str()))
                    })
                    .collect();
                pending.extend(connect_holders(m, (control, port), &instances));
            }
        }
        if !pending.is_empty() {
            pending.truncate(32);
            pending.reverse();
            let all = m.concat(&pending);
            m.connect(control, "pending", all);
        }
        let counts =
            self.counts.iter().map(|(_, events)| (Step::Events(events.len() as u32), m.concat(events)));
        let counts: Vec<(Step, NodeId)> = counts.collect();
        connect_counts(m, design, (control, &map.ports[places.counts]), &counts);
        let mut core = Core { m, control, map: &map };
        core.bank(places.bank, &self, settled);
        for ((port, registers), number) in self.tables.iter().zip(&places.tables) {
            let object = &map.ports[*number];
            for (what, register) in ["write_enable", "write_address", "write_data"].into_iter().zip(registers)
            {
                let value = core.m.output_of(control, &object.port(what));
                core.m.set_next(*register, value);
            }
            debug_assert_eq!(port.width, object.width);
        }
        for (port, is_station) in [(places.settings, false), (places.stations, true)] {
            let own = self.settings.iter().filter(|setting| setting.is_station == is_station);
            let own: Vec<(RegisterId, NodeId)> =
                own.map(|setting| (setting.register, setting.value)).collect();
            if let Some(port) = port {
                connect_settings(m, control, &map.ports[port], &own);
            }
        }
        let counters: Vec<NodeId> = self.counters.iter().map(|(_, value)| *value).collect();
        connect_reads(m, control, &map.ports[places.counters], &counters);
        let counted = self.counts.iter().map(|(what, _)| *what).collect();
        let memories = memories(hardware, &places, stages);
        Software { map, places, counted, memories }
    }

    /// The map, and which port is what.
    fn map(&self, hardware: &Hardware, stages: &[&Placed<'_>]) -> (RegisterMap, Places) {
        let mut reached = hardware.reached();
        let bank = bank_port(&hardware.program);
        reached.retain(|reached| !matches!(reached.what, ReachedUnit::Bank));
        // A program may have stages of which the device has no need, as for clones that are never made.
        let is_there = |(holder, _): &(Holder, String)| match holder {
            Holder::Shared => true,
            Holder::Stage(number) => {
                let part = hardware.stages[*number].part;
                stages.iter().any(|stage| stage.stage.part == part)
            }
        };
        reached.retain(|reached| reached.holders.iter().any(is_there));
        let mut ports: Vec<SoftwarePort> = reached.iter().map(|reached| reached.port.clone()).collect();
        let mut add = |port: SoftwarePort| {
            let mut object = port.object.clone();
            while ports.iter().any(|other| other.object == object) {
                object.push('_');
            }
            ports.push(SoftwarePort { object, ..port });
            ports.len() - 1
        };
        let own = |object: &str, kind, words: usize, width, writable| SoftwarePort {
            object: object.to_owned(),
            kind,
            words: words as u64,
            width,
            readable: true,
            writable,
        };
        let bank = add(bank);
        let tables = self.tables.iter().map(|(port, _)| add(port.clone())).collect();
        let stations = self.settings.iter().filter(|setting| setting.is_station).count();
        let settings = self.settings.len() - stations;
        let settings = add(own("settings", PortKind::Settings, settings, WORD, true));
        let counters = add(own("device", PortKind::Counts, self.counters.len(), WORD, false));
        let stations =
            (stations > 0).then(|| add(own("stations", PortKind::Settings, stations, STATION, true)));
        let counts = add(own("counts", PortKind::Counts, self.counts.len(), COUNT_WIDTH, false));
        let mut names = Vec::new();
        let mut next = [0, 0];
        for Setting { name, is_station, .. } in &self.settings {
            let port = if *is_station { stations.unwrap_or_default() } else { settings };
            let address = &mut next[usize::from(*is_station)];
            names.push(WordName { name: name.clone(), port, address: *address });
            *address += 1;
        }
        for (address, (name, _)) in (0..).zip(&self.counters) {
            names.push(WordName { name: name.clone(), port: counters, address });
        }
        for (address, (what, _)) in (0..).zip(&self.counts) {
            names.push(WordName { name: what.name(&hardware.program), port: counts, address });
        }
        let map = RegisterMap::new(&hardware.program, ports, &hardware.units, names);
        (map, Places { reached, bank, tables, settings: Some(settings), stations, counters, counts })
    }
}

/// Which port is what.
#[derive(Clone, Debug)]
struct Places {
    /// The first ports: those of tables and objects.
    reached: Vec<Reached>,
    bank: usize,
    /// Sessions, groups and nodes.
    tables: Vec<usize>,
    settings: Option<usize>,
    stations: Option<usize>,
    counters: usize,
    counts: usize,
}

/// A device as software has it.
#[derive(Clone, Debug)]
pub(super) struct Software {
    pub(super) map: RegisterMap,
    places: Places,
    counted: Vec<Counted>,
    /// Of tables, in the order of ports and addresses.
    memories: Vec<PortMemory>,
}

impl Software {
    /// What numbers count, and where they are: port and word.
    pub(super) fn counted(&self) -> impl Iterator<Item = (Counted, (usize, u64))> {
        let port = self.places.counts;
        (0..).zip(&self.counted).map(move |(address, what)| (*what, (port, address)))
    }

    /// The memories in which words of tables are, in the order of ports and addresses.
    pub(super) fn memories(&self) -> &[PortMemory] {
        &self.memories
    }

    /// Software's part of it.
    pub(super) fn driver(&self, hardware: &[crate::tables::TableUnit]) -> Driver {
        let reached = self.places.reached.iter().enumerate();
        let tables = reached.clone().filter_map(|(number, reached)| match &reached.what {
            ReachedUnit::Table(table) => {
                let unit = hardware.iter().find(|unit| unit.table == *table)?;
                Some((number, unit.clone()))
            }
            _ => None,
        });
        let objects = reached.filter_map(|(number, reached)| match &reached.what {
            ReachedUnit::Object(unit) => Some((number, Synced::new(crate::objects::ObjectUnit::clone(unit)))),
            _ => None,
        });
        let port = |kind: PortKind| {
            let mut tables = self.places.tables.iter().copied();
            tables.find(|number| self.map.ports[*number].kind == kind)
        };
        let groups = port(PortKind::Groups).zip(port(PortKind::Nodes));
        let groups = groups.map(|(groups, nodes)| GroupWords::new(groups, nodes, port(PortKind::Sessions)));
        Driver::new(tables).with(objects, groups)
    }
}

/// The memories of tables in a device with these stages.
fn memories(hardware: &Hardware, places: &Places, stages: &[&Placed<'_>]) -> Vec<PortMemory> {
    let of_table = |(port, reached): (usize, &Reached)| match reached.what {
        ReachedUnit::Table(table) => {
            let lookups: Vec<String> = stages.iter().flat_map(|stage| stage.lookups_at(table)).collect();
            hardware.memories_of(port, table, &lookups)
        }
        ReachedUnit::Bank | ReachedUnit::Object(_) => Vec::new(),
    };
    places.reached.iter().enumerate().flat_map(of_table).collect()
}

/// Connects a port with those that have it, each with what the port is named there; gives whether its queue has something, if it is one.
fn connect_holders(
    m: &mut ModuleBuilder,
    (control, port): (InstanceId, &SoftwarePort),
    holders: &[(InstanceId, &str)],
) -> Option<NodeId> {
    let mut pending = None;
    for (at, (instance, name)) in holders.iter().enumerate() {
        let own = SoftwarePort { object: (*name).to_owned(), ..port.clone() };
        for what in port.given() {
            let value = m.output_of(control, &port.port(what));
            m.connect(*instance, &own.port(what), value);
        }
        if port.readable && at == 0 {
            let data = m.output_of(*instance, &own.port("read_data"));
            m.connect(control, &port.port("read_data"), data);
        }
        if port.kind == PortKind::Queue {
            pending = Some(m.output_of(*instance, &own.port("pending")));
        }
    }
    pending
}

/// What connects what the device has itself.
struct Core<'a> {
    m: &'a mut ModuleBuilder,
    control: InstanceId,
    map: &'a RegisterMap,
}

impl Core<'_> {
    fn of(&mut self, port: usize, what: &str) -> NodeId {
        self.m.output_of(self.control, &self.map.ports[port].port(what))
    }

    fn bank(&mut self, port: usize, control: &Control, settled: NodeId) {
        let (enable, data) = (self.of(port, "write_enable"), self.of(port, "write_data"));
        let next = self.m.bit(data, 0);
        self.m.set_next(control.bank_register, next);
        self.m.set_enable(control.bank_register, enable);
        self.m.set_next(control.bank_written_register, enable);
        let mut read = self.m.concat(&[settled, control.bank]);
        for cycle in 1..=READ_LATENCY {
            read = self.m.delayed(&format!("bank_read_{cycle}"), read, Some(0));
        }
        self.m.connect(self.control, &self.map.ports[port].port("read_data"), read);
    }
}

/// The quantum of each queue after a reset: as long as a frame may be.
pub(super) fn quantum_at_start(shape: &Shape) -> u128 {
    u128::from(shape.frame + shape.link.overhead()).min((1 << Shape::LENGTH) - 1)
}

/// The words of groups and nodes, in both banks.
pub(super) const GROUP_WORDS: (u32, u32) = (2 * GROUPS, 2 * NODES);

/// The words of sessions, in both banks.
pub(super) const SESSION_WORDS: u32 = 2 * SESSIONS;

/// Bits of the words of groups and nodes.
pub(super) fn group_widths() -> (u32, u32) {
    (group_width(), NODE_WIDTH)
}
