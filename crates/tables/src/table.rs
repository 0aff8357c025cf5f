//! Tables: entries, the match engine that finds them, and what belongs to each entry.

mod taken;

pub use taken::Taken;

use crate::action::{ActionCall, ActionDataId};
use crate::attached::{Attached, AttachedPart};
use crate::counter::{CounterKind, CounterValue};
use crate::engines::{Domain, LookupContract, NoMemory, Stamp};
use crate::entry::{Entry, EntryIndex, EntrySpec, EntryTarget, GroupRef, MemberRef, TargetRef};
use crate::error::{SpecError, TableError};
use crate::heap;
use crate::key::{FieldMatch, KeySchema, MatchKind};
use crate::limits::{MAX_ACTION_BYTES, MAX_ENTRIES};
use crate::meter::{ColorCounts, Meter, MeterConfig, MeterUnit};
use crate::prices::{self, Held};
use crate::profile::{GroupMember, Selection};
use crate::published::{Published, Rank, TableReader};
use crate::record::RecordLayout;
use crate::slots::Slots;
use crate::store::Store;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

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
    /// What an entry does whose group is empty; none: as the default action.
    pub empty_group: Option<ActionCall>,
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
            empty_group: None,
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

/// A match-action table, as the control side reads and writes it. A write that is refused leaves the table as it was.
///
/// Workers of the table's domain look up through its [`TableReader`], on any thread; they meet a write when it is done,
/// or for keys of several kinds and for groups after [`Table::commit`]. What they count for single entries goes to an
/// [`AttachedPart`] of their own.
#[derive(Debug)]
pub struct Table {
    spec: TableSpec,
    slots: Slots,
    published: Published,
    reader: TableReader,
    domain: Domain,
    store: Store,
    /// What belongs to each entry, by index, the default one first.
    attached: Attached,
    /// The number of entries, for workers.
    entries: Arc<AtomicU32>,
    /// Bytes of the arguments of all entries, as if each had its own.
    arguments: u64,
    prices: Prices,
    free: Vec<EntryIndex>,
    /// Indices without an entry that the engine may still lead workers to, of a table where results are indices.
    unlinked: Vec<EntryIndex>,
    /// Such that workers may still hold.
    limbo: VecDeque<(Stamp, EntryIndex)>,
}

/// See [`crate::prices`].
#[derive(Clone, Copy, Debug)]
struct Prices {
    index: u64,
    section: u64,
    group: u64,
    entry: u64,
}

/// Beyond so many unlinked slots and indices, a table makes its writes visible by itself.
const MOST_UNLINKED: usize = 4096;

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
        let lpm_fields = spec.schema.fields().iter().filter(|field| field.kind == MatchKind::Lpm).count();
        if lpm_fields > 1 && !spec.schema.needs_priority() {
            return Err(SpecError::SeveralLpmKeys);
        }
        let room = spec.size.saturating_mul(2).saturating_add(64);
        let slots = Slots::new(
            domain,
            spec.records.clone(),
            spec.default_action.clone(),
            spec.empty_group.clone(),
            room,
        )?;
        let published = Published::new(domain, &spec.schema, spec.size, spec.is_by_entry())?;
        let entries = Arc::<AtomicU32>::default();
        Ok(Table {
            reader: published.reader(slots.reader(), Arc::clone(&entries)),
            store: Store::new(&spec.schema),
            attached: Attached::new(&spec)?,
            entries,
            slots,
            published,
            domain: domain.clone(),
            arguments: 0,
            prices: Prices {
                index: prices::index_bytes(&spec.schema, spec.size),
                section: prices::section_bytes(&spec.schema, spec.size),
                group: prices::group_bytes(&spec.schema, spec.size),
                entry: prices::entry_bytes(&spec),
            },
            free: Vec::new(),
            unlinked: Vec::new(),
            limbo: VecDeque::new(),
            spec,
        })
    }

    /// What the table is like. `default_action` in it is the one of the program, not one set later.
    pub fn spec(&self) -> &TableSpec {
        &self.spec
    }

    /// The number of entries, without the default entry.
    pub fn len(&self) -> u32 {
        self.store.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.store.len() == 0
    }

    // The packet side.

    /// Looks up `out.len()` packed keys that follow each other in `keys`; each result is the winning entry or
    /// [`EntryIndex::MISS`]. A key that is not wholly there misses, as does every key of a table without key fields.
    /// Nothing is counted: workers do that, in parts of their own ([`crate::TableReader`]).
    pub fn lookup(&self, keys: &[u8], out: &mut [EntryIndex]) {
        let stride = self.spec.schema.stride();
        if self.spec.schema.fields().is_empty() {
            out.fill(EntryIndex::MISS);
            return;
        }
        for (at, found) in out.iter_mut().enumerate() {
            let key = keys.get(at * stride..(at + 1) * stride);
            *found = key.map_or(EntryIndex::MISS, |key| self.store.lookup(key));
        }
    }

    /// Looks up one key ([`Table::lookup`]).
    pub fn lookup_one(&self, key: &[u8]) -> EntryIndex {
        let mut found = [EntryIndex::MISS];
        self.lookup(key, &mut found);
        found[0]
    }

    /// What belongs to single entries, for one more worker.
    ///
    /// # Errors
    /// [`NoMemory`].
    pub fn attach(&mut self) -> Result<AttachedPart, NoMemory> {
        self.attached.part()
    }

    /// What workers read.
    pub fn reader(&self) -> &TableReader {
        &self.reader
    }

    /// What a lookup takes at most as the table is now.
    pub fn contract(&self) -> LookupContract {
        self.published.contract()
    }

    /// Makes all writes visible to workers.
    ///
    /// # Errors
    /// [`NoMemory`]: some wait for a later commit.
    pub fn commit(&mut self) -> Result<(), NoMemory> {
        self.published.commit()?;
        self.retire_unlinked();
        Ok(())
    }

    /// Makes all writes visible, and finishes what commits in quick succession left for later, so that lookups are as fast
    /// as they can be. For when there is nothing else to write: it takes time in proportion to all entries.
    pub fn settle(&mut self) {
        self.published.settle();
        self.retire_unlinked();
    }

    /// Whether commits left nothing for [`Table::settle`].
    pub fn is_settled(&self) -> bool {
        self.published.is_settled()
    }

    /// Has grace periods begin for what writes have unlinked, as soon as the writes are visible.
    fn retire_unlinked(&mut self) {
        self.slots.settle();
        if !self.unlinked.is_empty() {
            let stamp = self.domain.stamp();
            self.limbo.extend(self.unlinked.drain(..).map(|index| (stamp, index)));
        }
    }

    fn unlinked_something(&mut self) {
        if self.published.is_immediate() {
            self.retire_unlinked();
        } else if self.slots.unlinked() + self.unlinked.len() >= MOST_UNLINKED {
            // Nobody seems to look up. What finds no memory stays for the next commit.
            let _ = self.commit();
        }
    }

    /// What its entries count for, and the arrays that find them ([`prices`]).
    pub fn held(&self) -> Held {
        let Prices { index, section, group, entry } = self.prices;
        let sections = Held::bytes(section) * self.published.sections() as u64;
        let groups = Held::bytes(group) * self.published.groups() as u64;
        Held::one(entry) * self.len().into() + Held::bytes(index + self.arguments) + sections + groups
    }

    /// What an entry would count for that does this, next to what there is.
    pub fn price(&self, matches: &[FieldMatch], target: &EntryTarget) -> Held {
        let Prices { section, group, entry, .. } = self.prices;
        let mut bytes = entry + target.arguments();
        // One that does not fit the key is refused for that.
        if section + group > 0
            && let Ok(canonical) = self.spec.schema.make_canonical(matches.to_vec())
        {
            bytes += section * u64::from(self.published.opens_sections(&canonical));
            bytes += if self.published.opens_group(&canonical) { group } else { 0 };
        }
        Held::one(bytes)
    }

    /// Bytes of memory that the table takes: entries, what finds them, and what workers read.
    pub fn memory_bytes(&self) -> usize {
        let own = self.attached.bytes() + (self.free.len() + self.limbo.len()) * 4 + heap::EMPTY_TABLE;
        self.store.memory_bytes() + self.published.memory_bytes() + self.slots.memory_bytes() + own
    }

    /// An entry, unpacked; [`EntryIndex::MISS`] is the default entry and is always there.
    pub fn entry(&self, index: EntryIndex) -> Option<Entry> {
        if !self.exists(index) {
            return None;
        }
        let is_default = !index.is_hit();
        Some(Entry {
            matches: if is_default { Box::default() } else { self.store.matches(index).into() },
            priority: if is_default { 0 } else { self.store.priority(index) },
            target: self.slots.target(self.slot(index)),
            is_const: if is_default { self.spec.const_default } else { self.store.is_const(index) },
            counter: self.attached.counter(index),
            meter: self.attached.meter_config(index),
            idle_timeout_ns: self.attached.timeout_ns(index),
            last_hit_ns: self.attached.last_hit_ns(index),
        })
    }

    /// What an entry does.
    pub fn target_of(&self, index: EntryIndex) -> Option<TargetRef> {
        self.exists(index).then(|| self.slots.target(self.slot(index)))
    }

    /// The action of an entry that names one itself; `None` for a member, a group, or no such entry.
    pub fn action_of(&self, index: EntryIndex) -> Option<&ActionCall> {
        match self.target_of(index)? {
            TargetRef::Action(id) => self.slots.call(id.0),
            TargetRef::Member(_) | TargetRef::Group(_) => None,
        }
    }

    /// A stored action; `None` when no entry has one of this name.
    pub fn action(&self, id: ActionDataId) -> Option<&ActionCall> {
        self.slots.call(id.0)
    }

    /// The default action: that of a member in its place; of a group, the one that was the default before.
    pub fn default_action(&self) -> &ActionCall {
        match self.slots.target(0) {
            TargetRef::Member(_) => self.slots.call(0).unwrap_or_else(|| self.slots.default_action()),
            TargetRef::Action(_) | TargetRef::Group(_) => self.slots.default_action(),
        }
    }

    /// What a miss finds, in the form in which it is written.
    pub fn default_target(&self) -> EntryTarget {
        self.target_to_write(EntryIndex::MISS)
    }

    /// The number of action slots: distinct actions with their data, and the default action.
    pub fn distinct_actions(&self) -> usize {
        self.slots.len()
    }

    // The control side.

    /// Adds an entry and gives its index, which stays its own until it is removed. Counter and meter start from zero.
    ///
    /// # Errors
    /// Every refusal of [`TableError`] that concerns entries; the table is then as it was.
    pub fn insert(&mut self, spec: EntrySpec) -> Result<EntryIndex, TableError> {
        if self.spec.schema.fields().is_empty() {
            return Err(TableError::NoKey);
        }
        let (matches, identity) = self.check_match(spec.matches, spec.priority)?;
        self.check_target(&spec.target)?;
        if spec.idle_timeout_ns != 0 && !self.spec.idle_timeout {
            return Err(TableError::NoIdleTimeout);
        }
        if !spec.is_const && self.spec.const_entries {
            return Err(TableError::ConstTable);
        }
        if self.store.find(&identity).is_some() {
            return Err(TableError::Duplicate);
        }
        let limit = if spec.is_const { MAX_ENTRIES } else { self.spec.size };
        if self.store.len() >= limit {
            return Err(TableError::Full { limit });
        }

        let rank = Rank { priority: spec.priority, serial: self.store.next_serial() };
        let index = self.next_index();
        self.attached.reserve(index)?;
        self.store.make_room(index)?;
        // Before the first packet that finds it.
        self.attached.start(index, spec.idle_timeout_ns, spec.created_ns);
        let arguments = spec.target.arguments();
        let slot = self.intern(spec.target)?;
        if let Err(error) = self.published.insert(&matches, rank, index, slot) {
            self.slots.release(slot);
            return Err(error.into());
        }
        if self.free.last() == Some(&index) {
            self.free.pop();
        }
        self.arguments += arguments;
        self.store.insert(index, &identity, slot, spec.is_const, rank.serial);
        self.tell_entries();
        Ok(index)
    }

    /// From now on the table takes so many entries at most, if its size is not less. Const entries fit always.
    pub fn set_capacity(&mut self, entries: u32) {
        self.spec.size = self.spec.size.min(entries);
    }

    fn tell_entries(&self) {
        self.entries.store(self.store.len(), Ordering::Relaxed);
    }

    /// The index that the next entry gets.
    fn next_index(&mut self) -> EntryIndex {
        while let Some(&(stamp, index)) = self.limbo.front()
            && self.domain.passed(stamp)
        {
            self.free.push(index);
            self.limbo.pop_front();
        }
        self.free.last().copied().unwrap_or(EntryIndex(self.store.end()))
    }

    /// The entry with exactly these matches (in any non-canonical form) and this priority.
    ///
    /// # Errors
    /// [`TableError::NotFound`], or what is wrong with the matches.
    pub fn find(&self, matches: &[FieldMatch], priority: u32) -> Result<EntryIndex, TableError> {
        let (_, identity) = self.check_match(matches.to_vec(), priority)?;
        self.store.find(&identity).ok_or(TableError::NotFound)
    }

    /// Gives an entry another target. Its counter, meter and place in the order stay.
    ///
    /// # Errors
    /// [`TableError::NotFound`], [`TableError::ConstEntry`], or what is wrong with the target.
    pub fn modify(&mut self, index: EntryIndex, target: EntryTarget) -> Result<(), TableError> {
        self.changeable(index)?;
        self.check_target(&target)?;
        let arguments = target.arguments();
        let slot = self.intern(target)?;
        let rank = self.rank(index);
        if let Err(error) = self.published.replace(&self.store.matches(index), rank, index, slot) {
            self.slots.release(slot);
            return Err(error.into());
        }
        let before = self.store.slot(index);
        self.arguments = self.arguments + arguments - self.slots.arguments(before);
        self.store.set_slot(index, slot);
        self.slots.release(before);
        self.unlinked_something();
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
        self.attached.set_timeout(index, timeout_ns);
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

    /// What an entry does, in the form in which it is written.
    pub fn entry_target(&self, index: EntryIndex) -> Option<EntryTarget> {
        self.exists(index).then(|| self.target_to_write(index))
    }

    fn target_to_write(&self, index: EntryIndex) -> EntryTarget {
        let slot = self.slot(index);
        match self.slots.target(slot) {
            TargetRef::Member(member) => EntryTarget::Member(member),
            TargetRef::Group(group) => EntryTarget::Group(group),
            TargetRef::Action(_) => {
                let call = self.slots.call(slot).unwrap_or_else(|| self.slots.default_action());
                EntryTarget::Action(call.clone())
            }
        }
    }

    /// Removes all entries that are not const. The default action stays.
    pub fn clear(&mut self) {
        for index in self.removable() {
            self.take_out(index);
        }
    }

    /// The entries among the next `limit` indices from `from` on, in the order of their indices, and where to go on; none
    /// when that was the last. Many short looks see a large table without keeping anyone waiting.
    pub fn scan(&self, from: EntryIndex, limit: u32) -> (Vec<EntryIndex>, Option<EntryIndex>) {
        let (first, end) = (from.0.max(1), self.store.end());
        let last = first.saturating_add(limit).min(end);
        let found = (first..last).map(EntryIndex).filter(|index| self.store.contains(*index)).collect();
        (found, (last < end).then_some(EntryIndex(last)))
    }

    /// The entries that are not const.
    pub fn removable(&self) -> Vec<EntryIndex> {
        self.store.indices().filter(|index| !self.store.is_const(*index)).collect()
    }

    /// The entries in the order in which they were inserted, without the default entry.
    pub fn iter(&self) -> impl Iterator<Item = (EntryIndex, Entry)> {
        self.store.in_order().filter_map(|index| Some((index, self.entry(index)?)))
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

    /// Sets what a miss finds: an action, or a member or group that the table was told of, which it follows. It stays a miss.
    ///
    /// # Errors
    /// As [`Table::set_default`]; [`TableError::NoProfile`] for a member or group.
    pub fn set_default_target(&mut self, target: EntryTarget) -> Result<(), TableError> {
        let target = match target {
            EntryTarget::Action(action) => return self.set_default(action),
            EntryTarget::Member(member) => TargetRef::Member(member),
            EntryTarget::Group(group) => TargetRef::Group(group),
        };
        if self.spec.const_default {
            return Err(TableError::ConstDefault);
        }
        if !self.spec.has_profile {
            return Err(TableError::NoProfile);
        }
        Ok(self.slots.set_default_target(target)?)
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
            self.unlinked_something();
        }
    }

    /// The table's profile has a group with these members, each one that [`Table::add_member`] was told of. It gets an
    /// action slot; workers meet other members after [`Table::commit`].
    ///
    /// # Errors
    /// [`NoMemory`]; nothing has changed then.
    pub fn set_group(
        &mut self,
        group: GroupRef,
        members: &[GroupMember],
        selection: Selection,
    ) -> Result<(), NoMemory> {
        self.slots.set_group(group, members.iter().map(|of| (MemberRef(of.member), of.weight)), selection)
    }

    /// The profile gives a group up.
    pub fn drop_group(&mut self, group: GroupRef) {
        if let Some(slot) = self.slots.find(TargetRef::Group(group)) {
            self.slots.release(slot);
            self.unlinked_something();
        }
    }

    /// The direct counter of an entry, or of the default entry.
    ///
    /// # Errors
    /// [`TableError::NoCounter`], [`TableError::NotFound`].
    pub fn counter(&self, index: EntryIndex) -> Result<CounterValue, TableError> {
        self.spec.counter.ok_or(TableError::NoCounter)?;
        self.exists(index).then(|| self.attached.counter(index)).ok_or(TableError::NotFound)
    }

    /// Sets the direct counter of an entry, const or not, or of the default entry.
    ///
    /// # Errors
    /// [`TableError::NoCounter`], [`TableError::NotFound`].
    pub fn set_counter(&mut self, index: EntryIndex, value: CounterValue) -> Result<(), TableError> {
        self.spec.counter.ok_or(TableError::NoCounter)?;
        self.counter(index)?;
        self.attached.set_counter(index, value);
        Ok(())
    }

    /// Adds to the direct counter of an entry, or of the default entry; what workers count at the same time is counted too.
    ///
    /// # Errors
    /// [`TableError::NoCounter`], [`TableError::NotFound`].
    pub fn add_counter(&mut self, index: EntryIndex, value: CounterValue) -> Result<(), TableError> {
        self.counter(index)?;
        self.attached.add_counter(index, value);
        Ok(())
    }

    /// Sets the direct counters of all entries and of the default entry to zero.
    ///
    /// # Errors
    /// [`TableError::NoCounter`].
    pub fn reset_counters(&mut self) -> Result<(), TableError> {
        self.spec.counter.ok_or(TableError::NoCounter)?;
        self.attached.reset_counters();
        Ok(())
    }

    /// Configures the direct meter of an entry, const or not, or of the default entry ([`crate::Meter::configure`]).
    ///
    /// # Errors
    /// [`TableError::NoMeter`], [`TableError::NotFound`], [`TableError::Meter`].
    pub fn set_meter(&mut self, index: EntryIndex, config: Option<MeterConfig>) -> Result<(), TableError> {
        self.spec.meter.ok_or(TableError::NoMeter)?;
        if !self.exists(index) {
            return Err(TableError::NotFound);
        }
        self.attached.set_meter(index, config)
    }

    /// What the direct meter of an entry, or of the default entry, has coloured.
    ///
    /// # Errors
    /// [`TableError::NoMeter`], [`TableError::NotFound`].
    pub fn meter_counts(&self, index: EntryIndex) -> Result<ColorCounts, TableError> {
        let counts = self.attached.meter_counts(index).ok_or(TableError::NoMeter)?;
        self.exists(index).then_some(counts).ok_or(TableError::NotFound)
    }

    /// The direct meter of an entry as it is now; none where there is no such entry or no meter.
    pub fn meter_of(&self, index: EntryIndex) -> Option<Meter> {
        self.exists(index).then(|| self.attached.meter(index)).flatten()
    }

    /// Sets the buckets of the direct meter of an entry to those of a meter, as long as its parameters are the same.
    pub fn keep_meter(&mut self, index: EntryIndex, meter: Meter) {
        if self.exists(index) {
            self.attached.keep_meter(index, &meter);
        }
    }

    /// Sets what [`Table::meter_counts`] gives.
    ///
    /// # Errors
    /// As there.
    pub fn set_meter_counts(&mut self, index: EntryIndex, counts: ColorCounts) -> Result<(), TableError> {
        self.meter_counts(index)?;
        self.attached.set_meter_counts(index, counts);
        Ok(())
    }

    /// Adds to what [`Table::meter_counts`] gives; what workers count at the same time is counted too.
    ///
    /// # Errors
    /// As there.
    pub fn add_meter_counts(&mut self, index: EntryIndex, counts: ColorCounts) -> Result<(), TableError> {
        self.meter_counts(index)?;
        self.attached.add_meter_counts(index, counts);
        Ok(())
    }

    /// The entries whose idle timeout has passed at `now_ns`, in the order of insertion.
    pub fn expired(&self, now_ns: u64) -> impl Iterator<Item = EntryIndex> {
        let has = |index: &EntryIndex| {
            let timeout_ns = self.attached.timeout_ns(*index);
            timeout_ns != 0 && now_ns.saturating_sub(self.attached.last_hit_ns(*index)) >= timeout_ns
        };
        let mut expired: Vec<EntryIndex> =
            if self.spec.idle_timeout { self.store.indices().filter(has).collect() } else { Vec::new() };
        expired.sort_unstable_by_key(|index| self.store.serial(*index));
        expired.into_iter()
    }

    /// Whether some entry, or the default one, names this member or group: what the profile asks before it gives one up.
    pub fn uses(&self, target: TargetRef) -> bool {
        if self.slots.target(0) == target {
            return true;
        }
        let slot = self.slots.find(target);
        slot.is_some_and(|slot| self.store.indices().any(|index| self.store.slot(index) == slot))
    }

    fn exists(&self, index: EntryIndex) -> bool {
        !index.is_hit() || self.store.contains(index)
    }

    /// The action slot of an entry that there is.
    fn slot(&self, index: EntryIndex) -> u32 {
        if index.is_hit() { self.store.slot(index) } else { 0 }
    }

    fn rank(&self, index: EntryIndex) -> Rank {
        Rank { priority: self.store.priority(index), serial: self.store.serial(index) }
    }

    /// Checks that an index is of an entry (not the default one) that the control plane may change.
    fn changeable(&self, index: EntryIndex) -> Result<(), TableError> {
        if !self.store.contains(index) {
            return Err(TableError::NotFound);
        }
        if self.store.is_const(index) { Err(TableError::ConstEntry) } else { Ok(()) }
    }

    fn check_match(
        &self,
        matches: Vec<FieldMatch>,
        priority: u32,
    ) -> Result<(Vec<FieldMatch>, Vec<u8>), TableError> {
        let matches = self.spec.schema.make_canonical(matches)?;
        if priority != 0 && !self.spec.schema.needs_priority() {
            return Err(TableError::PriorityNotUsed { priority });
        }
        let identity = self.store.identity(&matches, priority);
        Ok((matches, identity))
    }

    fn check_target(&self, target: &EntryTarget) -> Result<(), TableError> {
        match (target, self.spec.has_profile) {
            (EntryTarget::Action(_), true) => Err(TableError::NeedsProfile),
            (EntryTarget::Action(action), false) => check_action(action),
            (EntryTarget::Member(_) | EntryTarget::Group(_), true) => Ok(()),
            (EntryTarget::Member(_) | EntryTarget::Group(_), false) => Err(TableError::NoProfile),
        }
    }

    /// The slot of a target, with one more use.
    fn intern(&mut self, target: EntryTarget) -> Result<u32, NoMemory> {
        match target {
            EntryTarget::Action(action) => Ok(self.slots.intern(action)?.0),
            EntryTarget::Member(member) => self.slots.use_target(TargetRef::Member(member)),
            EntryTarget::Group(group) => {
                let slot = self.slots.use_target(TargetRef::Group(group))?;
                self.slots.publish_groups();
                Ok(slot)
            }
        }
    }

    fn take_out(&mut self, index: EntryIndex) {
        let (matches, rank, slot) = (self.store.matches(index), self.rank(index), self.store.slot(index));
        let identity = self.store.identity(&matches, rank.priority);
        self.store.remove(index);
        let store = &self.store;
        self.published.remove(&matches, rank, || {
            let (len, parent) = store.parent(&identity)?;
            Some((len, parent, store.slot(parent)))
        });
        self.tell_entries();
        self.arguments -= self.slots.arguments(slot);
        self.slots.release(slot);
        match self.published.is_by_entry() {
            true => self.unlinked.push(index),
            false => self.free.push(index),
        }
        self.unlinked_something();
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
