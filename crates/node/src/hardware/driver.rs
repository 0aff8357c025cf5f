//! Software's side of the registers of a design: the registers of the node, by those that the hardware has ([`Top::map`]).

use super::modules::{MET, RESULT, RESULTS, place_in, tcam_word};
use super::tables::Tables;
use super::top::Top;
use crate::blocks::{ENTRY_START, ENTRY_WORDS, Scheduler, Selector, Tcam, half, registers};
use crate::limits::MAX_OCTETS;
use crate::model::{BlockSpec, Entry, Kind, NodeFile};
use crate::registers::{UNCONNECTED, place};
use millrace_link::Fault;
use millrace_netlist::Bits;
use millrace_rtl::map::{RegisterAccess, RegisterDevice};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

/// The register whose number the device of a program has.
const DROPPED: &str = "dropped";

/// The blocks of a design, as software has set them.
pub(super) struct Driver<A> {
    device: RegisterDevice<A>,
    specs: BTreeMap<usize, BlockSpec>,
    settings: BTreeMap<usize, Setting>,
    unconnected: Vec<String>,
    /// A number whose lower half was read: its upper half is that of the same moment.
    held: Option<(u32, u64)>,
    /// Blocks that were written, with the entries of TCAMs that have changed: what follows is much, and done once at the end of a request.
    written: BTreeMap<usize, BTreeSet<usize>>,
    /// The programs, each at a bus of its own.
    programs: BTreeMap<usize, Tables<A>>,
}

/// What software has set of a block.
#[derive(Debug)]
enum Setting {
    Scheduler(Scheduler),
    Selector(Selector),
    Tcam(Box<Lookup>),
    Mac { up: bool, promiscuous: bool },
}

/// What software knows of a TCAM.
#[derive(Debug)]
struct Lookup {
    tcam: Tcam,
    /// The bank that frames meet.
    bank: usize,
    /// What is in the memories, by the number of the word.
    written: BTreeMap<u64, Bits>,
    /// The memories were 0 at first, so words that are not known are.
    was_zero: bool,
    /// The entry of each place of the bank that frames meet, the first that matches first.
    order: Vec<usize>,
    /// What each place of each bank had counted when it was read last, and what entries have counted until then.
    read: Vec<u64>,
    counts: Vec<u64>,
}

impl Lookup {
    /// The words of a bank that has all entries, and the entry of each place.
    fn words(&self, bank: u32) -> (Vec<(u64, Bits)>, Vec<usize>) {
        let size = self.tcam.size();
        let entry = |number: usize| Some((number, self.tcam.entry(number)?));
        let mut entries: Vec<(usize, Entry)> = (0..size).filter_map(entry).collect();
        // The first is it; of those with one priority the first of the file.
        entries.sort_by_key(|(number, entry)| (std::cmp::Reverse(entry.priority), *number));
        let mut words = Vec::new();
        for octet in 0..MAX_OCTETS {
            for value in 0..=255u8 {
                let mut word = Bits::zero(size as u32);
                for (place, (_, entry)) in entries.iter().enumerate() {
                    if value & entry.mask[octet] == entry.value[octet] {
                        word = word.or(&Bits::new(size as u32, 1).shl_by(place as u64));
                    }
                }
                words.push((tcam_word(octet as u32, bank << 8 | u32::from(value)), word));
            }
        }
        for (place, (_, entry)) in (0..).zip(&entries) {
            let said = u128::from(entry.outcome.class) << 32 | u128::from(entry.outcome.targets);
            words.push((tcam_word(RESULTS, place_in(bank, place, size as u32)), Bits::new(RESULT, said)));
        }
        (words, entries.iter().map(|(number, _)| *number).collect())
    }

    /// Where the count of a place of the bank that frames meet is.
    fn count_of(&self, place: usize) -> usize {
        place_in(self.bank as u32, place as u32, self.tcam.size() as u32) as usize
    }

    /// What a place has counted since it was read last.
    fn since(&mut self, place: usize, count: u64) -> u64 {
        let at = self.count_of(place);
        count.wrapping_sub(std::mem::replace(&mut self.read[at], count))
    }
}

fn failed(why: impl Display) -> Fault {
    Fault::new(why)
}

impl<A: RegisterAccess<Error: Display>> Driver<A> {
    /// Of a design that is reached like that, and its programs by buses of their own in their order; it is as the file says then.
    /// `was_reset`: its memories are 0.
    ///
    /// # Errors
    /// There is another design, or it cannot be reached.
    pub(super) fn new(
        node: &NodeFile,
        top: &Top,
        (access, buses): (A, impl IntoIterator<Item = A>),
        was_reset: bool,
    ) -> Result<Driver<A>, Fault> {
        let device = RegisterDevice::attach(top.map.clone(), access).map_err(failed)?;
        let mut programs = BTreeMap::new();
        for (part, access) in top.programs.iter().zip(buses) {
            programs.insert(part.block(), Tables::new(part, access, was_reset)?);
        }
        let specs: BTreeMap<usize, BlockSpec> =
            top.blocks.iter().map(|block| (*block, node.blocks[*block].clone())).collect();
        let setting = |(number, spec): (&usize, &BlockSpec)| {
            let setting = match &spec.kind {
                Kind::Scheduler(scheduler) => Setting::Scheduler(Scheduler::new(scheduler)),
                Kind::OctetSelector(places) => Setting::Selector(Selector::new(places)),
                Kind::Tcam(tcam) => Setting::Tcam(Box::new(Lookup {
                    tcam: Tcam::new(tcam),
                    bank: 0,
                    written: BTreeMap::new(),
                    was_zero: was_reset,
                    order: Vec::new(),
                    read: vec![0; 2 * tcam.size.next_power_of_two() as usize],
                    counts: vec![0; tcam.size as usize],
                })),
                Kind::Mac(mac) => Setting::Mac { up: mac.up, promiscuous: mac.address.is_none() },
                _ => return None,
            };
            Some((*number, setting))
        };
        let settings = specs.iter().filter_map(setting).collect();
        let mut driver = Driver {
            device,
            specs,
            settings,
            unconnected: top.unconnected.clone(),
            held: None,
            written: BTreeMap::new(),
            programs,
        };
        let blocks: Vec<usize> = driver.settings.keys().copied().collect();
        for block in blocks {
            driver.begin_with(block)?;
        }
        Ok(driver)
    }

    /// The registers that the design has, by name.
    fn word(&self, name: &str) -> Result<(usize, u64), Fault> {
        self.device
            .map()
            .find(name)
            .ok_or_else(|| Fault::new(format_args!("the design has no register {name}")))
    }

    fn set(&mut self, name: &str, value: u64) -> Result<(), Fault> {
        let (port, address) = self.word(name)?;
        self.device.write_word(port, address, &Bits::new(32, value.into())).map_err(failed)
    }

    fn get(&mut self, name: &str) -> Result<u64, Fault> {
        let (port, address) = self.word(name)?;
        self.number(port, address)
    }

    fn number(&mut self, port: usize, address: u64) -> Result<u64, Fault> {
        let word = self.device.read_word(port, address).map_err(failed)?;
        Ok(word.limbs().next().unwrap_or_default())
    }

    /// Has the hardware be as the file says, which may have been in use before: then counts go on from where they are. Those of a bank are
    /// read while frames do not meet it.
    fn begin_with(&mut self, block: usize) -> Result<(), Fault> {
        match self.settings.get(&block) {
            Some(Setting::Tcam(lookup)) if !lookup.was_zero => {
                let bank = self.get(&format!("{}.bank", self.specs[&block].name))? as usize & 1;
                if let Some(Setting::Tcam(lookup)) = self.settings.get_mut(&block) {
                    lookup.bank = bank;
                }
                self.read_counts(block, 1 - bank)?;
                self.apply(block, &BTreeSet::new())?;
                self.read_counts(block, bank)
            }
            _ => self.apply(block, &BTreeSet::new()),
        }
    }

    /// Reads what the places of a bank have counted.
    fn read_counts(&mut self, block: usize, bank: usize) -> Result<(), Fault> {
        let Some(Setting::Tcam(lookup)) = self.settings.get(&block) else { return Ok(()) };
        let (name, half) = (self.specs[&block].name.clone(), lookup.read.len() / 2);
        for at in bank * half..(bank + 1) * half {
            let count = self.count(&name, at)?;
            if let Some(Setting::Tcam(lookup)) = self.settings.get_mut(&block) {
                lookup.read[at] = count;
            }
        }
        Ok(())
    }

    /// Has the hardware be as software has set it, with entries that are others.
    fn apply(&mut self, block: usize, changed: &BTreeSet<usize>) -> Result<(), Fault> {
        let name = self.specs[&block].name.clone();
        let values: Vec<(String, u64)> = match &self.settings[&block] {
            Setting::Scheduler(scheduler) => {
                let quanta = (0..scheduler.queues())
                    .map(|queue| (format!("quantum{queue}"), scheduler.quantum(queue).unwrap_or(0).into()));
                std::iter::once(("discipline".to_owned(), scheduler.discipline() as u64))
                    .chain(quanta)
                    .collect()
            }
            Setting::Selector(selector) => {
                let places = selector.places().iter().enumerate();
                places.map(|(octet, place)| (format!("octet{octet}"), u64::from(*place))).collect()
            }
            Setting::Tcam(_) => return self.write_tcam(block, &name, changed),
            Setting::Mac { up, promiscuous } => {
                // It takes what it is to take from its first frame on.
                vec![("promiscuous".to_owned(), u64::from(*promiscuous)), ("up".to_owned(), u64::from(*up))]
            }
        };
        values.into_iter().try_for_each(|(port, value)| self.set(&format!("{name}.{port}"), value))
    }

    /// Writes the bank that frames do not meet, and has them meet it, and what they get without an entry, at once. The counts of entries
    /// that have changed start again.
    fn write_tcam(&mut self, block: usize, name: &str, changed: &BTreeSet<usize>) -> Result<(), Fault> {
        let port = self.word(&format!("{name}.entries"))?.0;
        let Some(Setting::Tcam(lookup)) = self.settings.get_mut(&block) else { return Ok(()) };
        let bank = 1 - lookup.bank;
        let (mut words, order) = lookup.words(bank as u32);
        words.retain(|(at, word)| match lookup.written.get(at) {
            Some(known) => known != word,
            None => !lookup.was_zero || !word.is_zero(),
        });
        for (at, word) in words {
            self.device.write_word(port, at, &word).map_err(failed)?;
            lookup.written.insert(at, word);
        }
        let miss = lookup.tcam.miss();
        let miss = u128::from(miss.class) << 32 | u128::from(miss.targets);
        let met = Bits::new(RESULT + 1, (bank as u128) << RESULT | miss);
        self.device.write_word(port, tcam_word(MET, 0), &met).map_err(failed)?;
        // No frame meets the bank from before any more when the first of its counts is read: one that had begun to is counted after three
        // cycles, a read takes longer. The counts of the other bank go on from where they were.
        (0..lookup.order.len()).try_for_each(|place| self.keep_count(block, name, place))?;
        if let Some(Setting::Tcam(lookup)) = self.settings.get_mut(&block) {
            (lookup.bank, lookup.order) = (bank, order);
            changed.iter().for_each(|entry| lookup.counts[*entry] = 0);
        }
        Ok(())
    }

    /// Adds what a place has counted to its entry.
    fn keep_count(&mut self, block: usize, name: &str, place: usize) -> Result<(), Fault> {
        let Some(Setting::Tcam(lookup)) = self.settings.get(&block) else { return Ok(()) };
        let count = self.count(name, lookup.count_of(place))?;
        if let Some(Setting::Tcam(lookup)) = self.settings.get_mut(&block) {
            let entry = lookup.order[place];
            lookup.counts[entry] = lookup.counts[entry].wrapping_add(lookup.since(place, count));
        }
        Ok(())
    }

    /// What a place of a bank of a TCAM has counted.
    fn count(&mut self, name: &str, at: usize) -> Result<u64, Fault> {
        let port = self.word(&format!("{name}.counts"))?.0;
        self.number(port, at as u64)
    }

    /// A request begins: what follows is of another moment than what was read before.
    pub(super) fn begin(&mut self) {
        self.held = None;
    }

    /// A request ends: the hardware is as it was written.
    ///
    /// # Errors
    /// It does not answer.
    pub(super) fn end(&mut self) -> Result<(), Fault> {
        while let Some((block, changed)) = self.written.pop_first() {
            if let Err(why) = self.apply(block, &changed) {
                // It is tried again with the next request.
                self.written.insert(block, changed);
                return Err(why);
            }
        }
        Ok(())
    }

    /// Reads a register of the node.
    ///
    /// # Errors
    /// It is none of a block of the design, or the hardware does not answer.
    pub(super) fn read(&mut self, address: u32) -> Result<u32, Fault> {
        self.end()?;
        let (window, word) = place(address);
        if let Some((lower, number)) = self.held.take()
            && lower + 4 == address
        {
            return Ok(half(number, 1));
        }
        let number = match window.checked_sub(1) {
            None if word / 2 == UNCONNECTED / 2 => {
                let names = self.unconnected.clone();
                let all: Result<Vec<u64>, Fault> = names.iter().map(|name| self.get(name)).collect();
                all?.into_iter().sum()
            }
            // What the node counts itself, of which hardware has no part.
            None => 0,
            Some(block) if self.specs.contains_key(&block) => match self.read_of(block, word)? {
                Found::Word(word) => return Ok(word),
                Found::Number(number) => number,
            },
            _ => return Err(Fault::new(format_args!("{address:#x} is no register of a block in hardware"))),
        };
        self.held = (word % 2 == 0).then_some((address, number));
        Ok(half(number, word))
    }

    /// A word of the window of a block, or the number that it is a half of.
    fn read_of(&mut self, block: usize, word: u32) -> Result<Found, Fault> {
        let name = self.specs[&block].name.clone();
        match (&self.specs[&block].kind, self.settings.get(&block)) {
            (_, Some(Setting::Scheduler(scheduler))) => Ok(Found::Word(scheduler.read(word))),
            (_, Some(Setting::Selector(selector))) => Ok(Found::Word(selector.read(word))),
            (_, Some(Setting::Mac { up, .. })) if word == 0 => Ok(Found::Word(u32::from(*up))),
            (_, Some(Setting::Mac { promiscuous, .. })) if word == 1 => {
                Ok(Found::Word(u32::from(*promiscuous)))
            }
            (_, Some(Setting::Tcam(_))) if word < 2 => self.get(&format!("{name}.misses")).map(Found::Number),
            (_, Some(Setting::Tcam(lookup))) => {
                let at = word.wrapping_sub(ENTRY_START);
                let (entry, field) = ((at / ENTRY_WORDS) as usize, at % ENTRY_WORDS);
                if !matches!(field, 12 | 13) || entry >= lookup.tcam.size() {
                    return Ok(Found::Word(lookup.tcam.read(word)));
                }
                // Each count that is read takes a while: those of the other entries stay where they are.
                if let Some(place) = lookup.order.iter().position(|of| *of == entry) {
                    self.keep_count(block, &name, place)?;
                }
                let Some(Setting::Tcam(lookup)) = self.settings.get(&block) else {
                    return Ok(Found::Word(0));
                };
                Ok(Found::Number(lookup.counts[entry]))
            }
            // What others count has the names of the registers.
            (kind, _) => {
                let of = registers(kind).into_iter().find(|of| (of.word..of.word + of.words).contains(&word));
                if let (Some(program), Some(DROPPED)) =
                    (self.programs.get_mut(&block), of.as_ref().map(|of| of.name.as_str()))
                {
                    return program.dropped().map(Found::Number);
                }
                match of.filter(|of| self.device.map().find(&format!("{name}.{}", of.name)).is_some()) {
                    Some(of) => {
                        let number = self.get(&format!("{name}.{}", of.name))?;
                        // What has one word is not the half of anything.
                        Ok(if of.words == 1 { Found::Word(number as u32) } else { Found::Number(number) })
                    }
                    None => Ok(Found::Word(0)),
                }
            }
        }
    }

    /// Runs commands on a program, all or none; gives what they show.
    ///
    /// # Errors
    /// It is no program of this hardware, one is refused, or the hardware cannot be reached.
    pub(super) fn command(&mut self, block: usize, text: &str, now_ns: u64) -> Result<String, Fault> {
        let program = self.programs.get_mut(&block);
        program.ok_or_else(|| Fault::new(no_program(block)))?.command(text, now_ns)
    }

    /// Writes a register of the node; the hardware has it at the [end](Driver::end) of the request.
    ///
    /// # Errors
    /// It cannot be written, or not with this value.
    pub(super) fn write(&mut self, address: u32, word: u32) -> Result<(), Fault> {
        let (window, at) = place(address);
        let refuse = || Fault::new(format_args!("{address:#x} cannot be written"));
        let block = window.checked_sub(1).ok_or_else(refuse)?;
        let mut changed = None;
        match self.settings.get_mut(&block).ok_or_else(refuse)? {
            Setting::Scheduler(scheduler) => scheduler.write(at, word).map_err(Fault::new)?,
            Setting::Selector(selector) => selector.write(at, word).map_err(Fault::new)?,
            Setting::Tcam(lookup) => {
                changed = lookup.tcam.write(at, word).map_err(Fault::new)?;
                if changed.is_none() {
                    return Ok(());
                }
            }
            Setting::Mac { up, promiscuous } => {
                match at {
                    0 if word <= 1 => *up = word == 1,
                    1 if word <= 1 => *promiscuous = word == 1,
                    _ => return Err(refuse()),
                };
            }
        }
        self.written.entry(block).or_default().extend(changed);
        Ok(())
    }
}

/// Why commands for a block are refused.
pub(crate) fn no_program(block: usize) -> String {
    format!("block {block} runs no program that takes commands")
}

/// What is at a word.
enum Found {
    Word(u32),
    /// A number of two words, of which it is one.
    Number(u64),
}
