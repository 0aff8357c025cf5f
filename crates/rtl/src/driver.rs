//! Software's part of tables and objects in hardware: what control has changed is written to their units, what frames have made of them
//! is read.

use crate::groups::{GroupWords, Groups, Sessions, TooMany};
use crate::objects::{Changes, Synced};
use crate::tables::{Contents, Full, Numbers, TableUnit};
use crate::units::Objects;
use millrace_pipeline::{Bits, TableId};
use millrace_state::State;
use std::fmt;

/// How software reaches units: simulated ones, or those of a device through its registers.
pub trait SoftwareAccess {
    /// Why an access failed.
    type Error;

    /// Writes a word of a port, by its number in [`crate::Hardware::software_ports`] or [`crate::map::RegisterMap::ports`].
    ///
    /// # Errors
    /// The device cannot be reached.
    fn write(&mut self, port: usize, address: u64, word: &Bits) -> Result<(), Self::Error>;

    /// Writes words of a port in this order; where a request takes long, with few of them.
    ///
    /// # Errors
    /// The device cannot be reached; some may be written.
    fn write_many(
        &mut self,
        port: usize,
        words: &mut dyn Iterator<Item = (u64, &Bits)>,
    ) -> Result<(), Self::Error> {
        for (address, word) in words {
            self.write(port, address, word)?;
        }
        Ok(())
    }

    /// How many words of tables and groups an update writes to each bank through ports; it asks to set the others at once.
    fn words_by_port(&self) -> usize {
        usize::MAX
    }

    /// Sets a word of a table where it is, past its port, in a bank that no frame meets; says whether it did. Simulations can.
    fn set_at_once(&mut self, _port: usize, _address: u64, _word: &Bits) -> bool {
        false
    }

    /// Reads words, each by its port and address, in this order for each port.
    ///
    /// # Errors
    /// The device cannot be reached.
    fn read(&mut self, words: &[(usize, u64)]) -> Result<Vec<Bits>, Self::Error>;

    /// Has frames that come from now on meet that bank, and waits until none meets the other one any more.
    ///
    /// # Errors
    /// The device cannot be reached.
    fn use_bank(&mut self, bank: bool) -> Result<(), Self::Error>;
}

/// Why nothing was written, or not all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DriverError<E> {
    /// The entries of a table do not fit its unit, or what is kept of them. Nothing was written.
    Full(Full),
    /// The device could not be reached. Frames meet the tables before the write or after it; the next update writes all words.
    Device(E),
}

impl<E: fmt::Display> fmt::Display for DriverError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DriverError::Full(full) => full.fmt(f),
            DriverError::Device(error) => error.fmt(f),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for DriverError<E> {}

/// What software knows of the units of a stage or a device.
#[derive(Debug)]
pub struct Driver {
    /// Each with the number of its port.
    tables: Vec<(usize, Contents)>,
    objects: Vec<(usize, Synced)>,
    groups: Option<GroupWords>,
    /// The bank that frames meet.
    bank: bool,
    known: Known,
}

/// What is known of the words of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// All but what frames have changed.
    All,
    /// All but whether what was written last is there: a write has failed.
    AllButLastWrite,
    /// Nothing.
    Nothing,
}

/// Words of a port that is written in two banks.
type Banked = (usize, Vec<(u64, Bits)>);

/// Writes to a bank that no frame meets. The first words go through ports, so what an earlier update has written there has arrived when others
/// are set at once.
fn write_bank<D: SoftwareAccess>(changes: &[Banked], bank: bool, device: &mut D) -> Result<(), D::Error> {
    let mut left = device.words_by_port();
    let place = |of: &(u64, Bits)| of.0 + u64::from(bank);
    for (port, words) in changes {
        let (by_port, others) = words.split_at(left.min(words.len()));
        left -= by_port.len();
        device.write_many(*port, &mut by_port.iter().map(|word| (place(word), &word.1)))?;
        let not_set: Vec<&(u64, Bits)> =
            others.iter().filter(|word| !device.set_at_once(*port, place(word), &word.1)).collect();
        device.write_many(*port, &mut not_set.into_iter().map(|word| (place(word), &word.1)))?;
    }
    Ok(())
}

impl Driver {
    /// Of a device as it starts: all words are as its reset makes them, and frames meet bank 0. `units` are the units of its tables with
    /// the numbers of their ports.
    pub fn new(units: impl IntoIterator<Item = (usize, TableUnit)>) -> Driver {
        let tables = units.into_iter().map(|(port, unit)| (port, Contents::new(unit))).collect();
        Driver { tables, objects: Vec::new(), groups: None, bank: false, known: Known::All }
    }

    /// With these objects and multicast groups, too.
    pub(crate) fn with(
        self,
        objects: impl IntoIterator<Item = (usize, Synced)>,
        groups: Option<GroupWords>,
    ) -> Driver {
        Driver { objects: objects.into_iter().collect(), groups, ..self }
    }

    /// The units of its tables.
    pub fn units(&self) -> impl Iterator<Item = &TableUnit> {
        self.tables.iter().map(|(_, contents)| contents.unit())
    }

    /// The numbers of the entries of a table; none: they are their indices, or its unit tells none.
    pub(crate) fn numbers(&self, table: TableId) -> Option<&Numbers> {
        let of = self.tables.iter().find(|(_, contents)| contents.unit().table == table);
        of.and_then(|(_, contents)| contents.numbers())
    }

    /// The objects, in the order of their units.
    pub(crate) fn objects(&mut self) -> impl Iterator<Item = &mut Synced> {
        self.objects.iter_mut().map(|(_, object)| object)
    }

    /// From now on the device may hold anything: the next update writes all words.
    pub fn forget(&mut self) {
        self.known = Known::Nothing;
    }

    /// The device is that of the last update, without a reset since, and nobody else has written to it: what frames have made of its
    /// objects stays. If that update failed, the next one writes what that one did, and all words of tables.
    pub fn resume(&mut self) {
        if self.known == Known::Nothing {
            self.known = Known::AllButLastWrite;
        }
    }

    /// Says which multicast groups there are; the next update writes them together with tables.
    ///
    /// # Errors
    /// They are more than the device holds; those before stay.
    pub fn set_groups(&mut self, groups: &Groups) -> Result<(), TooMany> {
        self.groups.as_mut().map_or(Ok(()), |words| words.set(groups))
    }

    /// Says which multicast groups and clone sessions there are; the next update writes them together with tables. A device that clones
    /// nothing needs no sessions.
    ///
    /// # Errors
    /// They are more than the device holds; those before stay.
    pub fn set_replication(&mut self, groups: &Groups, sessions: &Sessions) -> Result<(), TooMany> {
        self.groups.as_mut().map_or(Ok(()), |words| words.set_needed(groups, sessions))
    }

    /// Says which clone sessions there are; the next update writes them together with tables.
    ///
    /// # Errors
    /// They are more than the device holds, or it clones nothing; those before stay.
    pub fn set_sessions(&mut self, sessions: &Sessions) -> Result<(), TooMany> {
        match &mut self.groups {
            Some(words) => words.set_sessions(sessions),
            None => sessions.keys().next().map_or(Ok(()), |number| Err(TooMany::Session(*number, 0))),
        }
    }

    /// Writes what control has changed in a state since the last update. What changed in tables and multicast groups goes between two
    /// frames: first to the bank that no frame meets, then, when frames meet that one, to the other. Says whether anything was written.
    ///
    /// # Errors
    /// [`DriverError`].
    pub fn update<D: SoftwareAccess>(
        &mut self,
        state: &State,
        device: &mut D,
    ) -> Result<bool, DriverError<D::Error>> {
        let tables = state.tables();
        for (_, contents) in &mut self.tables {
            contents.update(state.program(), &tables).map_err(DriverError::Full)?;
        }
        let changes_of = |(_, object): &(usize, Synced)| {
            let numbers = object.table().and_then(|table| self.numbers(table));
            object.changes(state, (&tables, numbers), self.known == Known::Nothing)
        };
        let objects: Vec<Option<Changes>> =
            self.objects.iter().map(changes_of).collect::<Result<_, Full>>().map_err(DriverError::Full)?;
        drop(tables);
        if self.known != Known::All {
            self.tables.iter_mut().for_each(|(_, contents)| contents.change_all());
            self.groups.iter_mut().for_each(GroupWords::change_all);
        }
        let changes = self.tables.iter_mut().map(|(port, contents)| (*port, contents.take_changes()));
        let changes = changes.chain(self.groups.iter_mut().flat_map(GroupWords::take_changes));
        let changes: Vec<Banked> = changes.filter(|(_, words)| !words.is_empty()).collect();
        let written = self.write(&changes, objects, device);
        self.known = if written.is_ok() { Known::All } else { Known::Nothing };
        written.map_err(DriverError::Device)
    }

    fn write<D: SoftwareAccess>(
        &mut self,
        changes: &[Banked],
        objects: Vec<Option<Changes>>,
        device: &mut D,
    ) -> Result<bool, D::Error> {
        if self.known != Known::All {
            // An earlier change of the bank may have failed.
            device.use_bank(self.bank)?;
        }
        for turn in 0..2 {
            let other = !self.bank;
            write_bank(changes, other, device)?;
            if turn == 0 && !changes.is_empty() {
                self.bank = other;
                device.use_bank(other)?;
            }
        }
        // After tables: cells of entries that are gone are theirs until no frame meets these.
        let mut wrote = !changes.is_empty();
        for ((port, object), changes) in self.objects.iter_mut().zip(objects) {
            let Some(changes) = changes else { continue };
            wrote |= !changes.words.is_empty();
            device.write_many(*port, &mut changes.words.iter().map(|(address, word)| (*address, word)))?;
            object.wrote(changes);
        }
        Ok(wrote)
    }

    /// Reads what frames have made of counters, meters and registers since this was asked last, and brings it to the objects of the
    /// switch. A hit counts as one of the time by `clock` when all hits that were read are set back: a frame that hits the entry between
    /// the two leaves no other sign.
    ///
    /// # Errors
    /// The device cannot be reached; what was not brought is the next time.
    pub fn read_back<D: SoftwareAccess>(
        &mut self,
        objects: &mut Objects<'_>,
        device: &mut D,
        clock: &dyn Fn() -> u64,
    ) -> Result<(), D::Error> {
        self.objects().for_each(Synced::touch_all);
        self.read_touched(objects, device, clock)
    }

    /// Has entries that the device has got since this was asked last count as hit now; after [`Driver::forget`] all: frames may have hit
    /// them while nobody looked.
    pub fn hit_unseen(&mut self, objects: &mut Objects<'_>) {
        let now_ns = objects.now_ns;
        self.objects().for_each(|object| object.hit_unseen(objects.state, now_ns));
    }

    /// Takes the digests and lines that wait, and how many were lost.
    ///
    /// # Errors
    /// The device cannot be reached; what was taken is there.
    pub fn take_messages<D: SoftwareAccess>(
        &mut self,
        objects: &mut Objects<'_>,
        device: &mut D,
    ) -> Result<(), D::Error> {
        self.objects.iter_mut().try_for_each(|(port, object)| object.take_messages(*port, objects, device))
    }

    /// Takes how many messages were lost, of a device whose messages come by themselves.
    ///
    /// # Errors
    /// The device cannot be reached.
    pub fn take_lost<D: SoftwareAccess>(
        &mut self,
        objects: &mut Objects<'_>,
        device: &mut D,
    ) -> Result<(), D::Error> {
        self.objects.iter_mut().try_for_each(|(port, object)| object.take_lost(*port, objects, device))
    }

    /// Takes a message that came by itself, from the queue of that port.
    pub fn take_message(&mut self, port: usize, word: &Bits, objects: &mut Objects<'_>) {
        if let Some((_, object)) = self.objects.iter_mut().find(|(own, _)| *own == port) {
            object.take_message(word, objects);
        }
    }

    /// Whether frames have asked for anything that is to be read.
    pub(crate) fn is_touched(&self) -> bool {
        self.objects.iter().any(|(_, object)| object.is_touched())
    }

    /// Reads what frames have asked for, and brings it to the objects of the switch, at the time when that was read.
    pub(crate) fn read_touched<D: SoftwareAccess>(
        &mut self,
        objects: &mut Objects<'_>,
        device: &mut D,
        clock: &dyn Fn() -> u64,
    ) -> Result<(), D::Error> {
        let addresses: Vec<Vec<u64>> = self.objects.iter().map(|(_, object)| object.to_read()).collect();
        let ports = self.objects.iter().map(|(port, _)| *port);
        let all: Vec<(usize, u64)> = ports
            .zip(&addresses)
            .flat_map(|(port, addresses)| addresses.iter().map(move |address| (port, *address)))
            .collect();
        let mut read = device.read(&all)?.into_iter();
        let read: Vec<Vec<(u64, Bits)>> =
            addresses.into_iter().map(|addresses| addresses.into_iter().zip(&mut read).collect()).collect();
        let not_hit = Bits::zero(1);
        for ((port, object), read) in self.objects.iter().zip(&read) {
            device.write_many(*port, &mut object.hit(read).into_iter().map(|cell| (cell, &not_hit)))?;
        }
        objects.now_ns = clock();
        for ((_, object), read) in self.objects.iter_mut().zip(read) {
            object.bring(read, objects);
        }
        Ok(())
    }
}
