//! What engines do for a packet.

use crate::pack;
use crate::random::Random;
use crate::schema::Schema;
use crate::state::State;
use crate::tables::Tables;
use millrace_pipeline::*;
use millrace_tables::{AccountCell, Color, EntryIndex, Selection, TargetRef};

/// What a table gives for a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// The entry that won, or [`EntryIndex::MISS`].
    pub entry: EntryIndex,
    /// The action to run: its index in [`Table::actions`].
    pub action: usize,
    /// The values of its parameters.
    pub args: Vec<Bits>,
    /// The member of the action profile that gave the action.
    pub selected: Option<Selected>,
}

impl Lookup {
    /// Whether an entry matched.
    pub fn is_hit(&self) -> bool {
        self.entry.is_hit()
    }
}

/// How often a worker looked a table up.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LookupCounts {
    /// All lookups.
    pub lookups: u64,
    /// Those in which no entry matched.
    pub misses: u64,
}

/// How an action came from an action profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selected {
    /// The member.
    pub member: u32,
    /// The group that it was selected from.
    pub group: Option<u32>,
}

impl State {
    /// Looks up a key, one value for each key field, and records a hit. `inputs` are the values of
    /// [`Table::selector_inputs`]; they count only when the entry, or the default one, names a group. An empty group gives
    /// [`Table::empty_group`]; a miss stays a miss. Unlike the readers of engines this takes the lock of the tables.
    pub fn lookup(&mut self, id: TableId, keys: &[Bits], inputs: &[Bits], now_ns: u64) -> Lookup {
        self.lookup_with(id, keys, &|schema, profile| schema.selector_hash(profile, inputs), now_ns)
    }

    /// As [`State::lookup`], for an engine that has the hash of the selector's inputs, whose highest bits that do not count are 0.
    pub fn lookup_by_hash(&mut self, id: TableId, keys: &[Bits], hash: u64, now_ns: u64) -> Lookup {
        self.lookup_with(id, keys, &|_, _| hash, now_ns)
    }

    fn lookup_with(
        &mut self,
        id: TableId,
        keys: &[Bits],
        hash: &dyn Fn(&Schema, ProfileId) -> u64,
        now_ns: u64,
    ) -> Lookup {
        let tables = self.handle.lock();
        let table = tables.table(id);
        let entry = table.lookup_one(&pack::pack(keys));
        let counts = &mut self.own.lookups[id];
        counts.lookups += 1;
        counts.misses += u64::from(!entry.is_hit());
        self.own.tables[id].attached.record(entry, now_ns);
        let target = table.target_of(entry);
        if let (Some(target @ (TargetRef::Member(_) | TargetRef::Group(_))), Some(profile)) =
            (target, self.schema.program.tables[id].profile)
            && let Some((selected, action, args)) =
                tables.call_of_profile(id, profile, target, hash, &mut self.own.random)
        {
            return Lookup { entry, action, args, selected: Some(selected) };
        }
        let call = match target {
            Some(TargetRef::Group(_)) => table.spec().empty_group.as_ref(),
            _ => table.action_of(entry),
        };
        let call = call.unwrap_or_else(|| table.default_action());
        let args = self.schema.args_of(id, call);
        Lookup { entry, action: call.action as usize, args, selected: None }
    }

    /// The action slot that a slot of a group stands for, by the hash of the inputs or at random: that of a member, or the
    /// slot itself (which holds [`Table::empty_group`]) for an empty group and for a slot of anything else. `inputs` are
    /// asked for only where they are hashed. Between [`State::start_batch`] and [`State::end_batch`].
    pub fn select_slot(&mut self, id: TableId, slot: u32, inputs: impl FnOnce() -> Vec<Bits>) -> u32 {
        let group = self.own.tables[id].reader.group(&self.own.worker, slot);
        let (Some(group), Some(profile)) = (group, self.schema.program.tables[id].profile) else {
            return slot;
        };
        let hash = match group.selection() {
            Selection::Hash => self.schema.selector_hash(profile, &inputs()),
            Selection::Random => self.own.random.next_u64(),
        };
        group.select(hash).unwrap_or(slot)
    }

    /// How often each table was looked up: always in [`State::lookup`], by compiled code where it was asked to count.
    pub fn lookup_counts(&self) -> impl Iterator<Item = LookupCounts> {
        self.own.lookups.values().copied()
    }

    /// The counts of all tables, in the order of their ids, for code that counts.
    pub fn lookup_counts_mut(&mut self) -> &mut [LookupCounts] {
        self.own.lookups.values_mut().into_slice()
    }

    /// Records that a packet matched an entry, for its idle timeout.
    pub fn record(&mut self, id: TableId, entry: EntryIndex, now_ns: u64) {
        self.own.tables[id].attached.record(entry, now_ns);
    }

    /// Adds a packet to the direct counter of an entry, if the table has one.
    #[inline]
    pub fn count_direct(&mut self, id: TableId, entry: EntryIndex, bytes: u64) {
        self.own.tables[id].attached.count(entry, bytes);
    }

    /// Meters a packet at the direct meter of an entry; green without one.
    #[inline]
    pub fn meter_direct(
        &mut self,
        id: TableId,
        entry: EntryIndex,
        now_ns: u64,
        bytes: u64,
        before: Color,
    ) -> Color {
        self.own.tables[id].attached.meter(entry, now_ns, bytes, before)
    }

    /// Adds a packet to a cell; an index outside counts nothing.
    #[inline]
    pub fn count(&mut self, id: CounterId, index: u64, bytes: u64) {
        self.own.counters[id].count(index, bytes);
    }

    /// Meters a packet at a cell; an index outside gives green.
    #[inline]
    pub fn meter(&mut self, id: MeterId, index: u64, now_ns: u64, bytes: u64, before: Color) -> Color {
        self.shared.meters[id].execute(index, now_ns, bytes, before).unwrap_or(Color::Green)
    }

    /// For compiled code that counts itself: the counters of an array, as [`millrace_tables::CounterPart::starts`] says.
    pub fn counter_starts(&self, id: CounterId) -> *const u8 {
        self.own.counters[id].starts()
    }

    /// As [`State::counter_starts`] the direct counters of a table; null where it has none.
    pub fn direct_counter_starts(&self, id: TableId) -> *const u8 {
        self.own.tables[id].attached.counter_starts()
    }

    /// For compiled code that works on accounts itself, as [`millrace_tables::MeterArray::accounts`] says.
    pub fn accounts(&mut self, id: MeterId) -> Option<(*const AccountCell, *const u64)> {
        self.shared.meters[id].accounts()
    }

    /// For compiled code that reads and writes registers itself, as [`millrace_tables::RegisterArray::cells`] says.
    pub fn register_cells(&self, id: RegisterId) -> Option<*const u64> {
        self.shared.registers[id].cells()
    }

    /// The value of a cell; an index outside reads 0.
    pub fn register_read(&self, id: RegisterId, index: u64) -> Bits {
        let register = &self.shared.registers[id];
        let width = register.width();
        if width <= 64 {
            return Bits::new(width, register.read_one(index).into());
        }
        let mut limbs = vec![0; width.div_ceil(64) as usize];
        register.read(index, &mut limbs);
        pack::from_limbs(width, &limbs)
    }

    /// As [`State::register_read`], the least significant limb first.
    #[inline]
    pub fn register_read_limbs(&self, id: RegisterId, index: u64, limbs: &mut [u64]) {
        self.shared.registers[id].read(index, limbs);
    }

    /// As [`State::register_write`]: bits above the width are lost.
    #[inline]
    pub fn register_write_limbs(&mut self, id: RegisterId, index: u64, limbs: &[u64]) {
        self.shared.registers[id].write(index, limbs);
    }

    /// Writes a cell; an index outside writes nothing.
    pub fn register_write(&mut self, id: RegisterId, index: u64, value: &Bits) {
        self.shared.registers[id].write(index, &pack::limbs(value));
    }

    /// Whether the values of the fields are a member of a value set.
    pub fn is_member(&self, id: ValueSetId, keys: &[Bits]) -> bool {
        self.own.value_sets[id].contains(&pack::pack(keys))
    }

    /// A random number from `low` to `high`, both included; `low` when `high` is less.
    pub fn random(&mut self, low: &Bits, high: &Bits) -> Bits {
        self.own.random.between(low, high)
    }
}

impl Tables {
    fn call_of_profile(
        &self,
        id: TableId,
        profile: ProfileId,
        target: TargetRef,
        hash: &dyn Fn(&Schema, ProfileId) -> u64,
        random: &mut Random,
    ) -> Option<(Selected, usize, Vec<Bits>)> {
        let kept = &self.profiles[profile];
        let selected = match target {
            TargetRef::Action(_) => return None,
            TargetRef::Member(member) => Selected { member: member.id(), group: None },
            TargetRef::Group(group) => {
                let hash = match kept.selection(group.id())? {
                    Selection::Hash => hash(&self.schema, profile),
                    Selection::Random => random.next_u64(),
                };
                let member = kept.select(group.id(), hash)?;
                Selected { member, group: Some(group.id()) }
            }
        };
        let call = kept.member(selected.member)?;
        let action = ActionId::from_u32(call.action);
        let index = self.schema.action_in_table(id, action)?;
        Some((selected, index, pack::unpack(&self.schema.params[action], &call.data)))
    }
}
