//! Tables: entries behind a match engine, with what belongs to each entry.

use crate::action::{ActionCall, ActionDataId};
use crate::counter::{CounterKind, CounterValue};
use crate::engine::{Engine, Rank};
use crate::entry::{Entry, EntryIndex, EntrySpec, EntryTarget, MemberRef, TargetRef};
use crate::error::{SpecError, TableError};
use crate::fast::{Domain, NoMemory, Stamp};
use crate::image::{self, Image, TableReader};
use crate::key::{FieldMatch, KeySchema};
use crate::limits::{MAX_ACTION_BYTES, MAX_ENTRIES};
use crate::meter::{Color, Meter, MeterConfig, MeterUnit};
use crate::packed::PackedMatch;
use crate::record::RecordLayout;
use crate::slots::Slots;
use std::collections::VecDeque;

/// What a table is like.
#[derive(Clone, Debug)]
pub struct TableSpec {
    /// The key.
    pub schema: KeySchema,
    /// Most entries, at most [`MAX_ENTRIES`]. Const entries are part of the program: they count, but fit always.
    pub size: u32,
    /// The default action, until another is set.
    pub default_action: ActionCall,
    /// The default action cannot be set.
    pub const_default: bool,
    /// All entries are const: the control plane can add none.
    pub const_entries: bool,
    /// Entries take their action from an action profile: they name a member or a group.
    pub has_profile: bool,
    /// Each entry has a direct counter.
    pub counter: Option<CounterKind>,
    /// Each entry has a direct meter.
    pub meter: Option<MeterUnit>,
    /// Entries may have an idle timeout.
    pub idle_timeout: bool,
    /// The layout of the records that workers read actions from.
    pub records: RecordLayout,
}

impl TableSpec {
    /// A table with this key, size and default action, and nothing special.
    pub fn new(schema: KeySchema, size: u32, default_action: ActionCall) -> TableSpec {
        TableSpec {
            schema,
            size,
            default_action,
            const_default: false,
            const_entries: false,
            has_profile: false,
            counter: None,
            meter: None,
            idle_timeout: false,
            records: RecordLayout::new(&[]),
        }
    }

    /// Whether something belongs to each entry, so that lookups of workers give entries and not only action slots.
    pub fn is_by_entry(&self) -> bool {
        self.counter.is_some() || self.meter.is_some() || self.idle_timeout
    }
}

/// A match-action table. The packet side looks keys up in batches and records what came of it; the control side
/// writes entries. A write that is refused leaves the table as it was.
///
/// Workers of the table's domain look up through its [`TableReader`]; they meet a write when it is done, or for keys
/// of several kinds after [`Table::commit`].
#[derive(Debug)]
pub struct Table {
    spec: TableSpec,
    engine: Engine,
    slots: Slots,
    image: Image,
    reader: TableReader,
    domain: Domain,
    /// By index; the first is the default entry.
    entries: Vec<Option<Entry>>,
    free: Vec<EntryIndex>,
    /// Indices that workers may still hold, of a table where they do.
    limbo: VecDeque<(Stamp, EntryIndex)>,
    len: u32,
    next_serial: u64,
}

impl Table {
    /// An empty table, for workers of a domain.
    ///
    /// # Errors
    /// [`SpecError`]: the size or the default action's data is above its limit, or the key has several lpm fields.
    pub fn new(spec: TableSpec, domain: &Domain) -> Result<Table, SpecError> {
        if spec.size > MAX_ENTRIES {
            return Err(SpecError::TooLarge {
                what: "the size of the table in entries",
                asked: spec.size.into(),
                limit: MAX_ENTRIES.into(),
            });
        }
        if spec.default_action.data.len() > MAX_ACTION_BYTES {
            return Err(SpecError::TooLarge {
                what: "the length of the default action's arguments in bytes",
                asked: spec.default_action.data.len() as u64,
                limit: MAX_ACTION_BYTES as u64,
            });
        }
        let engine = Engine::for_table(&spec.schema)?;
        let room = spec.size.saturating_mul(2).saturating_add(64);
        let slots = Slots::new(domain, spec.records.clone(), spec.default_action.clone(), room)?;
        let image = Image::new(domain, &spec.schema, spec.size, spec.is_by_entry())?;
        let default_entry = Entry {
            matches: Box::default(),
            priority: 0,
            target: TargetRef::Action(ActionDataId(0)),
            is_const: spec.const_default,
            serial: 0,
            counter: CounterValue::default(),
            meter: Meter::default(),
            idle_timeout_ns: 0,
            last_hit_ns: 0,
        };
        Ok(Table {
            spec,
            engine,
            reader: image.reader(slots.reader()),
            slots,
            image,
            domain: domain.clone(),
            entries: vec![Some(default_entry)],
            free: Vec::new(),
            limbo: VecDeque::new(),
            len: 0,
            next_serial: 1,
        })
    }

    /// The same table for workers of another domain.
    ///
    /// # Errors
    /// [`NoMemory`].
    pub fn copy_in(&self, domain: &Domain) -> Result<Table, NoMemory> {
        let slots = self.slots.copy_in(domain)?;
        let mut image = Image::new(domain, &self.spec.schema, self.spec.size, self.spec.is_by_entry())?;
        for (index, entry) in self.iter() {
            let slot = slots.find(entry.target).unwrap_or(0);
            image.insert(&entry.matches, entry.rank(), index, slot)?;
        }
        image.commit()?;
        let waiting = self.limbo.iter().map(|(_, index)| *index);
        Ok(Table {
            spec: self.spec.clone(),
            engine: self.engine.clone(),
            reader: image.reader(slots.reader()),
            slots,
            image,
            domain: domain.clone(),
            entries: self.entries.clone(),
            free: self.free.iter().copied().chain(waiting).collect(),
            limbo: VecDeque::new(),
            len: self.len,
            next_serial: self.next_serial,
        })
    }

    /// What the table is like. `default_action` in it is the one of the program, not one set later.
    pub fn spec(&self) -> &TableSpec {
        &self.spec
    }

    /// The number of entries, without the default entry.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    // The packet side.

    /// Looks up `out.len()` packed keys that follow each other in `keys`; each result is the winning entry or
    /// [`EntryIndex::MISS`]. A key that is not wholly there misses, as does every key of a table without key fields.
    /// Nothing is counted: see [`Table::record`].
    pub fn lookup(&self, keys: &[u8], out: &mut [EntryIndex]) {
        let stride = self.spec.schema.stride();
        if self.spec.schema.fields().is_empty() {
            out.fill(EntryIndex::MISS);
            return;
        }
        let whole = keys.len().checked_div(stride).unwrap_or(out.len()).min(out.len());
        let (present, absent) = out.split_at_mut(whole);
        self.engine.lookup(stride, keys, present);
        absent.fill(EntryIndex::MISS);
    }

    /// Looks up one key ([`Table::lookup`]).
    pub fn lookup_one(&self, key: &[u8]) -> EntryIndex {
        let mut found = [EntryIndex::MISS];
        self.lookup(key, &mut found);
        found[0]
    }

    /// What workers read.
    pub fn reader(&self) -> &TableReader {
        &self.reader
    }

    /// Makes all writes visible to workers.
    ///
    /// # Errors
    /// [`NoMemory`]: some wait for a later commit.
    pub fn commit(&mut self) -> Result<(), NoMemory> {
        self.image.commit()
    }

    /// The group that an action slot stands for: its record holds the default action, for when the group is empty.
    pub fn group_of_slot(&self, slot: u32) -> Option<u32> {
        self.slots.group(slot)
    }

    /// The action slot of a member of the profile that [`Table::add_member`] was told of.
    pub fn slot_of_member(&self, member: MemberRef) -> Option<u32> {
        self.slots.find(TargetRef::Member(member))
    }

    /// Bytes of memory that entries and what workers read take.
    pub fn memory_bytes(&self) -> usize {
        self.image.memory_bytes() + self.slots.memory_bytes()
    }

    /// Records that a packet matched an entry at `now_ns`, in a table whose entries may have idle timeouts.
    pub fn record(&mut self, found: EntryIndex, now_ns: u64) {
        if self.spec.idle_timeout
            && found.is_hit()
            && let Some(entry) = self.entry_mut(found)
        {
            entry.last_hit_ns = now_ns;
        }
    }

    /// Counts a packet of so many bytes on the entry's direct counter, if the table has one. Whether a miss counts on
    /// the default entry is the caller's to say.
    pub fn count(&mut self, found: EntryIndex, bytes: u64) {
        if self.spec.counter.is_some()
            && let Some(entry) = self.entry_mut(found)
        {
            entry.counter.count(bytes);
        }
    }

    /// Colours a packet by the entry's direct meter ([`Meter::execute`]); green in a table without one.
    pub fn meter(&mut self, found: EntryIndex, now_ns: u64, bytes: u64, before: Color) -> Color {
        let Some(unit) = self.spec.meter else { return Color::Green };
        let Some(entry) = self.entry_mut(found) else { return Color::Green };
        entry.meter.execute(now_ns, unit.units(bytes), before)
    }

    /// An entry; [`EntryIndex::MISS`] is the default entry and is always there.
    pub fn entry(&self, index: EntryIndex) -> Option<&Entry> {
        self.entries.get(index.0 as usize)?.as_ref()
    }

    /// The action of an entry that names one itself; `None` for a member, a group, or no such entry.
    pub fn action_of(&self, index: EntryIndex) -> Option<&ActionCall> {
        match self.entry(index)?.target {
            TargetRef::Action(id) => self.slots.call(id.0),
            TargetRef::Member(_) | TargetRef::Group(_) => None,
        }
    }

    /// A stored action; `None` when no entry has one of this name.
    pub fn action(&self, id: ActionDataId) -> Option<&ActionCall> {
        self.slots.call(id.0)
    }

    /// The default action.
    pub fn default_action(&self) -> &ActionCall {
        self.slots.default_action()
    }

    /// The number of action slots: distinct actions with their data, and the default action.
    pub fn distinct_actions(&self) -> usize {
        self.slots.len()
    }

    // The control side.

    /// Adds an entry and gives its index, which stays its own until it is removed. Counter and meter start anew.
    ///
    /// # Errors
    /// Every refusal of [`TableError`] that concerns entries; the table is then as it was.
    pub fn insert(&mut self, spec: EntrySpec) -> Result<EntryIndex, TableError> {
        if self.spec.schema.fields().is_empty() {
            return Err(TableError::NoKey);
        }
        let (matches, key) = self.check_match(&spec.matches, spec.priority)?;
        self.check_target(&spec.target)?;
        if spec.idle_timeout_ns != 0 && !self.spec.idle_timeout {
            return Err(TableError::NoIdleTimeout);
        }
        if !spec.is_const && self.spec.const_entries {
            return Err(TableError::ConstTable);
        }
        if self.engine.find(&key, spec.priority).is_some() {
            return Err(TableError::Duplicate);
        }
        let limit = if spec.is_const { MAX_ENTRIES } else { self.spec.size };
        if self.len >= limit {
            return Err(TableError::Full { limit });
        }

        let serial = self.next_serial;
        let rank = image::Rank { priority: spec.priority, serial };
        let index = self.next_index();
        let (target, slot) = self.intern(spec.target)?;
        if let Err(error) = self.image.insert(&matches, rank, index, slot) {
            self.slots.release(slot);
            return Err(error.into());
        }
        self.next_serial += 1;
        let entry = Entry {
            matches: matches.into(),
            priority: spec.priority,
            target,
            is_const: spec.is_const,
            serial,
            counter: CounterValue::default(),
            meter: Meter::default(),
            idle_timeout_ns: spec.idle_timeout_ns,
            last_hit_ns: spec.created_ns,
        };
        if self.free.last() == Some(&index) {
            self.free.pop();
            self.entries[index.0 as usize] = Some(entry);
        } else {
            self.entries.push(Some(entry));
        }
        self.engine.insert(key, Rank { priority: spec.priority, serial }, index);
        self.len += 1;
        Ok(index)
    }

    /// The index that the next entry gets.
    fn next_index(&mut self) -> EntryIndex {
        while let Some(&(stamp, index)) = self.limbo.front()
            && self.domain.passed(stamp)
        {
            self.free.push(index);
            self.limbo.pop_front();
        }
        self.free.last().copied().unwrap_or(EntryIndex(self.entries.len() as u32))
    }

    /// The entry with exactly these matches (in any non-canonical form) and this priority.
    ///
    /// # Errors
    /// [`TableError::NotFound`], or what is wrong with the matches.
    pub fn find(&self, matches: &[FieldMatch], priority: u32) -> Result<EntryIndex, TableError> {
        let (_, key) = self.check_match(matches, priority)?;
        self.engine.find(&key, priority).ok_or(TableError::NotFound)
    }

    /// Gives an entry another target. Its counter, meter and place in the order stay.
    ///
    /// # Errors
    /// [`TableError::NotFound`], [`TableError::ConstEntry`], or what is wrong with the target.
    pub fn modify(&mut self, index: EntryIndex, target: EntryTarget) -> Result<(), TableError> {
        self.changeable(index)?;
        self.check_target(&target)?;
        let (target, slot) = self.intern(target)?;
        let Some(entry) = self.entries.get_mut(index.0 as usize).and_then(Option::as_mut) else {
            return Err(TableError::NotFound);
        };
        if let Err(error) = self.image.replace(&entry.matches, entry.rank(), index, slot) {
            self.slots.release(slot);
            return Err(error.into());
        }
        let before = std::mem::replace(&mut entry.target, target);
        if let Some(slot) = self.slots.find(before) {
            self.slots.release(slot);
        }
        Ok(())
    }

    /// Gives an entry another idle timeout in ns, 0 for none.
    ///
    /// # Errors
    /// [`TableError::NotFound`], [`TableError::ConstEntry`], [`TableError::NoIdleTimeout`].
    pub fn set_idle_timeout(&mut self, index: EntryIndex, timeout_ns: u64) -> Result<(), TableError> {
        self.changeable(index)?;
        if timeout_ns != 0 && !self.spec.idle_timeout {
            return Err(TableError::NoIdleTimeout);
        }
        self.control_entry(index)?.idle_timeout_ns = timeout_ns;
        Ok(())
    }

    /// Removes an entry. Its index may be given to a later one.
    ///
    /// # Errors
    /// [`TableError::NotFound`], [`TableError::ConstEntry`].
    pub fn remove(&mut self, index: EntryIndex) -> Result<(), TableError> {
        self.changeable(index)?;
        self.take_out(index);
        Ok(())
    }

    /// Removes all entries that are not const. The default action stays.
    pub fn clear(&mut self) {
        let removable: Vec<EntryIndex> =
            self.iter().filter(|(_, entry)| !entry.is_const).map(|(index, _)| index).collect();
        for index in removable {
            self.take_out(index);
        }
    }

    /// The entries in the order in which they were inserted, without the default entry.
    pub fn iter(&self) -> impl Iterator<Item = (EntryIndex, &Entry)> {
        let mut entries: Vec<(EntryIndex, &Entry)> = self
            .entries
            .iter()
            .enumerate()
            .skip(1)
            .filter_map(|(at, entry)| Some((EntryIndex(at as u32), entry.as_ref()?)))
            .collect();
        entries.sort_unstable_by_key(|(_, entry)| entry.serial);
        entries.into_iter()
    }

    /// Sets the default action.
    ///
    /// # Errors
    /// [`TableError::ConstDefault`], [`TableError::ActionTooLong`].
    pub fn set_default(&mut self, action: ActionCall) -> Result<(), TableError> {
        if self.spec.const_default {
            return Err(TableError::ConstDefault);
        }
        check_action(&action)?;
        Ok(self.slots.set_default(action)?)
    }

    /// Sets the default action back to the one of the program.
    ///
    /// # Errors
    /// [`TableError::ConstDefault`].
    pub fn reset_default(&mut self) -> Result<(), TableError> {
        self.set_default(self.spec.default_action.clone())
    }

    /// The table's profile has a member, which does this in terms of the table (none: the default action). It gets an
    /// action slot.
    ///
    /// # Errors
    /// [`NoMemory`]; nothing has changed then.
    pub fn add_member(&mut self, member: MemberRef, call: Option<ActionCall>) -> Result<(), NoMemory> {
        self.slots.add_member(member, call)
    }

    /// A member that [`Table::add_member`] was told of does something else.
    ///
    /// # Errors
    /// [`NoMemory`]; nothing has changed then.
    pub fn change_member(&mut self, member: MemberRef, call: Option<ActionCall>) -> Result<(), NoMemory> {
        self.slots.change_member(member, call)
    }

    /// The profile gives a member up.
    pub fn drop_member(&mut self, member: MemberRef) {
        if let Some(slot) = self.slots.find(TargetRef::Member(member)) {
            self.slots.release(slot);
        }
    }

    /// The direct counter of an entry, or of the default entry.
    ///
    /// # Errors
    /// [`TableError::NoCounter`], [`TableError::NotFound`].
    pub fn counter(&self, index: EntryIndex) -> Result<CounterValue, TableError> {
        self.spec.counter.ok_or(TableError::NoCounter)?;
        Ok(self.entry(index).ok_or(TableError::NotFound)?.counter)
    }

    /// Sets the direct counter of an entry, const or not, or of the default entry.
    ///
    /// # Errors
    /// [`TableError::NoCounter`], [`TableError::NotFound`].
    pub fn set_counter(&mut self, index: EntryIndex, value: CounterValue) -> Result<(), TableError> {
        self.spec.counter.ok_or(TableError::NoCounter)?;
        self.control_entry(index)?.counter = value;
        Ok(())
    }

    /// Sets the direct counters of all entries and of the default entry to zero.
    ///
    /// # Errors
    /// [`TableError::NoCounter`].
    pub fn reset_counters(&mut self) -> Result<(), TableError> {
        self.spec.counter.ok_or(TableError::NoCounter)?;
        for entry in self.entries.iter_mut().flatten() {
            entry.counter = CounterValue::default();
        }
        Ok(())
    }

    /// Configures the direct meter of an entry, const or not, or of the default entry ([`Meter::configure`]).
    ///
    /// # Errors
    /// [`TableError::NoMeter`], [`TableError::NotFound`], [`TableError::Meter`].
    pub fn set_meter(&mut self, index: EntryIndex, config: Option<MeterConfig>) -> Result<(), TableError> {
        self.spec.meter.ok_or(TableError::NoMeter)?;
        Ok(self.control_entry(index)?.meter.configure(config)?)
    }

    /// The entries whose idle timeout has passed at `now_ns`, in the order of insertion.
    pub fn expired(&self, now_ns: u64) -> impl Iterator<Item = EntryIndex> {
        self.iter()
            .filter(move |(_, entry)| {
                entry.idle_timeout_ns != 0
                    && now_ns.saturating_sub(entry.last_hit_ns) >= entry.idle_timeout_ns
            })
            .map(|(index, _)| index)
    }

    /// Whether some entry names this member or group: what the profile asks before it gives one up.
    pub fn uses(&self, target: TargetRef) -> bool {
        self.entries.iter().flatten().any(|entry| entry.target == target)
    }

    fn entry_mut(&mut self, index: EntryIndex) -> Option<&mut Entry> {
        self.entries.get_mut(index.0 as usize)?.as_mut()
    }

    fn control_entry(&mut self, index: EntryIndex) -> Result<&mut Entry, TableError> {
        self.entry_mut(index).ok_or(TableError::NotFound)
    }

    /// Checks that an index is of an entry (not the default one) that the control plane may change.
    fn changeable(&self, index: EntryIndex) -> Result<(), TableError> {
        let entry = self.entry(index).filter(|_| index.is_hit()).ok_or(TableError::NotFound)?;
        if entry.is_const { Err(TableError::ConstEntry) } else { Ok(()) }
    }

    fn check_match(
        &self,
        matches: &[FieldMatch],
        priority: u32,
    ) -> Result<(Vec<FieldMatch>, PackedMatch), TableError> {
        let matches = self.spec.schema.canonical(matches)?;
        if priority != 0 && !self.spec.schema.needs_priority() {
            return Err(TableError::PriorityNotUsed { priority });
        }
        let key = PackedMatch::new(&self.spec.schema, &matches);
        Ok((matches, key))
    }

    fn check_target(&self, target: &EntryTarget) -> Result<(), TableError> {
        match (target, self.spec.has_profile) {
            (EntryTarget::Action(_), true) => Err(TableError::NeedsProfile),
            (EntryTarget::Action(action), false) => check_action(action),
            (EntryTarget::Member(_) | EntryTarget::Group(_), true) => Ok(()),
            (EntryTarget::Member(_) | EntryTarget::Group(_), false) => Err(TableError::NoProfile),
        }
    }

    fn intern(&mut self, target: EntryTarget) -> Result<(TargetRef, u32), NoMemory> {
        let target = match target {
            EntryTarget::Action(action) => {
                let id = self.slots.intern(action)?;
                return Ok((TargetRef::Action(id), id.0));
            }
            EntryTarget::Member(member) => TargetRef::Member(member),
            EntryTarget::Group(group) => TargetRef::Group(group),
        };
        Ok((target, self.slots.use_target(target)?))
    }

    fn take_out(&mut self, index: EntryIndex) {
        let Some(entry) = self.entries.get_mut(index.0 as usize).and_then(Option::take) else { return };
        let key = PackedMatch::new(&self.spec.schema, &entry.matches);
        self.engine.remove(&key, Rank { priority: entry.priority, serial: entry.serial });
        let (engine, slots, entries) = (&self.engine, &self.slots, &self.entries);
        self.image.remove(&entry.matches, entry.rank(), || {
            let (len, index) = engine.parent(&key)?;
            let target = entries.get(index.0 as usize)?.as_ref()?.target;
            Some((len, index, slots.find(target)?))
        });
        if let Some(slot) = self.slots.find(entry.target) {
            self.slots.release(slot);
        }
        match self.image.is_by_entry() {
            true => self.limbo.push_back((self.domain.stamp(), index)),
            false => self.free.push(index),
        }
        self.len -= 1;
    }
}

fn check_action(action: &ActionCall) -> Result<(), TableError> {
    if action.data.len() > MAX_ACTION_BYTES {
        return Err(TableError::ActionTooLong { bytes: action.data.len(), limit: MAX_ACTION_BYTES });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
