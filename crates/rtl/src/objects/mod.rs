//! The units of objects, as hardware: counters, meters, registers, value sets, parameters of hashes, random numbers, and messages to
//! software.
//!
//! All accesses of a stage to one object go to one unit. Each [`Slot`](crate::slots::Slot) is a port of it, with `slotN_enable`,
//! `slotN_inputM` and `slotN_answer`; the schedule sees to it that no two ports that share a memory port are used in one cycle. A
//! unit takes a request in each cycle, and what it reads holds all that was written before, also what is on its way to the memory.
//!
//! Software reads and writes the words of a unit through a [`SoftwarePort`]. A write waits until the pipeline leaves the memory
//! alone; as long as one waits, the stage takes no frame (`busy`), so it waits for no longer than the frames that are in the stage
//! take. A read has a port of the memory of its own.

mod account;
mod connect;
mod counter;
mod hash;
mod memory;
mod messages;
mod meter;
mod no_unit;
mod random;
mod register;
mod sync;
mod values;

pub(crate) use connect::Request;
use messages::{Message, number_width, width as message_width};
pub(crate) use meter::Measure;
use meter::part as meter_part;
pub(crate) use no_unit::{AllUnits, NoUnit};
pub(crate) use random::{RANDOM_LATENCY, xorshift};
pub(crate) use sync::{Changes, Synced};

#[cfg(test)]
mod tests;

use crate::assemble::name_of;
use crate::limits::{MAX_INITIAL_CELLS, MAX_MEMBERS, MAX_OBJECT_BITS, MAX_OBJECT_WORDS, MAX_VALUE};
use crate::slots::Slot;
use crate::software_port::{PortKind, SoftwarePort};
use crate::stage::{Access, ObjectKey, Unit, crc_parameters, input_width};
use crate::tables::TableUnit;
use millrace_netlist::Module;
use millrace_pipeline::{Bits, CrcParameters, MatchKind, Program, TableId};

/// What a unit is made of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// An array of cells.
    Register {
        width: u32,
        size: u32,
        initial: Option<Bits>,
        /// Whether all reads share a port of the memory: no two frames read in one cycle.
        one_read: bool,
    },
    /// An array of packets and bytes.
    Counter { size: u32 },
    /// An array of meters.
    Meter { size: u32, measure: Measure },
    /// Members, which are compared at once.
    Values { fields: Vec<(u32, MatchKind)>, size: u32 },
    /// The parameters of a hash, and what they are at first.
    Hash { initial: Bits },
    /// Generators of random numbers.
    Random { generators: u32 },
    /// A queue of messages.
    Messages { depth: u32, messages: Vec<Message> },
}

/// The unit of an object.
#[derive(Clone, Debug)]
pub(crate) struct ObjectUnit {
    pub(crate) key: ObjectKey,
    /// The name of its ports.
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// Its ports.
    pub(crate) slots: Vec<Slot>,
    /// Widths of the inputs of each.
    pub(crate) inputs: Vec<Vec<u32>>,
    /// The cycles that a write of software may wait.
    pub(crate) wait: u32,
}

/// Words that the queue of messages holds at least.
const MESSAGES: u32 = 64;

impl ObjectUnit {
    /// The unit of an object in a stage. Without one, its ports are ports of the stage. `tables` are the units of tables, whose entries have
    /// cells in those of direct counters and meters.
    ///
    /// # Errors
    /// Why it has none.
    pub(crate) fn of(
        (program, tables): (&Program, &[TableUnit]),
        (key, slots): (ObjectKey, &[Slot]),
        accesses: &[Access],
        (interval, latency): (u32, u32),
    ) -> Result<ObjectUnit, NoUnit> {
        let (kind, name) = match key {
            ObjectKey::Register(id) => {
                let register = &program.registers[id];
                let reads = slots.iter().filter(|slot| matches!(slot.unit, Unit::RegisterRead(_)));
                let reads: Vec<u32> = reads.map(|slot| slot.cycle).collect();
                let (first, last) = (reads.iter().min().copied(), reads.iter().max().copied());
                let span = last.unwrap_or(0) - first.unwrap_or(0);
                let mut distinct = reads.clone();
                distinct.sort_unstable();
                distinct.dedup();
                let kind = Kind::Register {
                    width: register.width,
                    size: words(register.size)?,
                    initial: register.initial.clone().filter(|initial| !initial.is_zero()),
                    one_read: span < interval && distinct.len() == reads.len(),
                };
                (kind, register.name.clone())
            }
            ObjectKey::Hits(id) => hits(program, tables, id)?,
            ObjectKey::Counter(id) => {
                let counter = &program.counters[id];
                (Kind::Counter { size: words(counter.size)? }, counter.name.clone())
            }
            ObjectKey::DirectCounter(id) => {
                let name = program.tables[id].direct_counter.as_ref().ok_or(NoUnit::Cells(0))?.name.clone();
                (Kind::Counter { size: cells_of_entries(program, tables, id)? }, name)
            }
            ObjectKey::Meter(id) => {
                let meter = &program.meters[id];
                (
                    Kind::Meter { size: words(meter.size)?, measure: Measure::of(meter.unit) },
                    meter.name.clone(),
                )
            }
            ObjectKey::DirectMeter(id) => {
                let meter = program.tables[id].direct_meter.as_ref().ok_or(NoUnit::Cells(0))?;
                let size = cells_of_entries(program, tables, id)?;
                (Kind::Meter { size, measure: Measure::of(meter.unit) }, meter.name.clone())
            }
            ObjectKey::ValueSet(id) => {
                let set = &program.value_sets[id];
                let fields = set.fields.iter().map(|(_, width, kind)| (*width, *kind)).collect();
                (Kind::Values { fields, size: words(set.size)? }, set.name.clone())
            }
            ObjectKey::Messages => {
                let messages = messages::of(slots, accesses);
                let depth = (2 * messages.len() as u32).max(MESSAGES).next_power_of_two();
                (Kind::Messages { depth, messages }, "messages".to_owned())
            }
            ObjectKey::Hash(id) => {
                let hash = &program.hashes[id];
                let initial = crc_parameters(CrcParameters::of(hash.algorithm).ok_or(NoUnit::Algorithm)?);
                (Kind::Hash { initial }, hash.name.clone())
            }
            ObjectKey::Random => {
                let generators = slots.iter().map(|slot| {
                    let width = slot.accesses.iter().map(|access| accesses[*access].answer).max();
                    random::generators(width.unwrap_or(1))
                });
                (Kind::Random { generators: generators.sum() }, "numbers".to_owned())
            }
            ObjectKey::Table(_) => return Err(NoUnit::Table),
        };
        let width = |slot: &Slot, at: usize| -> u32 {
            let of = slot.accesses.iter().filter_map(|access| accesses[*access].inputs.get(at));
            of.map(|(_, ty)| input_width(*ty)).max().unwrap_or(1)
        };
        let inputs = slots.iter().map(|slot| match key {
            // All inputs of a message are one word.
            ObjectKey::Messages => vec![messages::width(&kind)],
            _ => (0..accesses[slot.accesses[0]].inputs.len()).map(|at| width(slot, at)).collect(),
        });
        let inputs = inputs.collect();
        let unit = ObjectUnit { key, name, kind, slots: slots.to_vec(), inputs, wait: latency + 2 };
        match unit.exceeds() {
            Some(why) => Err(why),
            None => Ok(unit),
        }
    }

    /// Which limit it exceeds, if any.
    fn exceeds(&self) -> Option<NoUnit> {
        let (port, bits) = (self.port(), self.storage());
        match &self.kind {
            Kind::Register { size, initial: Some(_), .. } if u64::from(*size) > MAX_INITIAL_CELLS => {
                Some(NoUnit::Initial(*size))
            }
            Kind::Values { fields, .. } if fields.is_empty() => Some(NoUnit::NoFields),
            Kind::Values { size, .. } if u64::from(*size) > MAX_MEMBERS => Some(NoUnit::Members(*size)),
            _ if bits > MAX_OBJECT_BITS => Some(NoUnit::Bits(bits)),
            _ if port.width > MAX_VALUE => Some(NoUnit::Width(port.width)),
            _ if port.words == 0 => Some(NoUnit::Cells(0)),
            _ if port.words > MAX_OBJECT_WORDS => Some(NoUnit::Words(port.words)),
            _ => None,
        }
    }

    /// The module.
    pub(crate) fn module(&self, name: &str) -> Module {
        match &self.kind {
            Kind::Register { width, size, initial, one_read } => {
                self.register(name, (*width, *size), initial.as_ref(), *one_read)
            }
            Kind::Counter { size } => self.counter(name, *size),
            Kind::Meter { size, measure } => self.meter(name, *size, *measure),
            Kind::Values { fields, size } => self.values(name, fields, *size),
            Kind::Messages { depth, .. } => self.messages(name, *depth),
            Kind::Hash { initial } => self.hash(name, initial),
            Kind::Random { .. } => self.random(name),
        }
    }

    /// A word for its kind.
    pub(crate) fn kind_name(&self) -> &'static str {
        match self.kind {
            Kind::Register { .. } => "register",
            Kind::Counter { .. } => "counter",
            Kind::Meter { .. } => "meter",
            Kind::Values { .. } => "value set",
            Kind::Messages { .. } => "messages",
            Kind::Hash { .. } => "hash",
            Kind::Random { .. } => "random numbers",
        }
    }

    /// Bits of memory, or of registers of a value set. A memory with several readers is there once for each.
    pub(crate) fn storage(&self) -> u64 {
        match &self.kind {
            Kind::Register { width, size, one_read, .. } => {
                let reads =
                    self.slots.iter().filter(|slot| matches!(slot.unit, Unit::RegisterRead(_))).count();
                let reads = if *one_read { reads.min(1) } else { reads };
                u64::from(*width) * u64::from(*size) * (1 + reads as u64)
            }
            Kind::Counter { size } => 2 * 128 * u64::from(*size),
            Kind::Meter { size, measure } => 2 * u64::from(measure.cell_bits()) * u64::from(*size),
            Kind::Values { size, .. } => u64::from(self.port().width) * u64::from(*size),
            Kind::Messages { depth, .. } => u64::from(self.port().width) * u64::from(*depth),
            Kind::Hash { initial } => u64::from(initial.width()),
            Kind::Random { generators } => u64::from(random::GENERATOR) * u64::from(*generators),
        }
    }

    /// How software reaches it.
    pub(crate) fn port(&self) -> SoftwarePort {
        let (kind, words, width) = match &self.kind {
            Kind::Register { width, size, .. } => (PortKind::Register, u64::from(*size), *width),
            Kind::Counter { size } => (PortKind::Counter, u64::from(*size), 128),
            Kind::Meter { size, measure } => {
                (PortKind::Meter, u64::from(*size) << meter::PART_BITS, measure.config_bits())
            }
            Kind::Values { fields, size } => {
                let key: u32 = fields.iter().map(|(width, _)| width).sum();
                (PortKind::ValueSet, u64::from(*size), 1 + 2 * key)
            }
            Kind::Hash { initial } => (PortKind::Hash, 1, initial.width()),
            Kind::Random { generators } => (PortKind::Random, u64::from(*generators), random::GENERATOR),
            Kind::Messages { .. } => (PortKind::Queue, 2, (1 + messages::width(&self.kind)).max(64)),
        };
        let (readable, writable) = match self.kind {
            Kind::Values { .. } | Kind::Random { .. } => (false, true),
            Kind::Messages { .. } => (true, false),
            _ => (true, true),
        };
        SoftwarePort { object: self.name.clone(), kind, words, width, readable, writable }
    }

    /// The bits of an address of software.
    pub(crate) fn address(&self) -> u32 {
        self.port().address_width()
    }

    /// Whether a write of software may have to wait, and the stage with it.
    pub(crate) fn waits(&self) -> bool {
        matches!(self.kind, Kind::Register { .. } | Kind::Counter { .. } | Kind::Meter { .. })
    }
}

/// A cell for each number that an entry of a table may have, and one for none: of the entries that the table's unit holds, or of all that
/// the program declares where software looks up.
fn cells_of_entries(program: &Program, tables: &[TableUnit], table: TableId) -> Result<u32, NoUnit> {
    let unit = tables.iter().find(|unit| unit.table == table);
    let last = unit.map_or(program.tables[table].size, |unit| unit.last_number(program));
    words(last.saturating_add(1))
}

/// A bit for each entry of a table, with its name.
fn hits(program: &Program, tables: &[TableUnit], table: TableId) -> Result<(Kind, String), NoUnit> {
    let size = cells_of_entries(program, tables, table)?;
    Ok((
        Kind::Register { width: 1, size, initial: None, one_read: true },
        name_of(program, &format!("{}.hits", program.tables[table].name)),
    ))
}

/// The words of a memory, which a number of 28 bits counts.
fn words(size: u64) -> Result<u32, NoUnit> {
    u32::try_from(size).ok().filter(|size| (1..1 << 28).contains(size)).ok_or(NoUnit::Cells(size))
}
