//! What engines do for a packet.

use crate::pack;
use crate::state::State;
use millrace_pipeline::*;
use millrace_tables::{self as tables, Color, EntryIndex, TargetRef};

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
    /// [`Table::selector_inputs`]; they count only when the entry names a group. An entry that names an empty group
    /// hits and gives the default action.
    pub fn lookup(&mut self, id: TableId, keys: &[Bits], inputs: &[Bits], now_ns: u64) -> Lookup {
        let entry = self.tables[id].table.lookup_one(&pack::pack(keys));
        self.tables[id].table.record(entry, now_ns);
        let table = &self.tables[id].table;
        let target = table.target_of(entry);
        if let (Some(target @ (TargetRef::Member(_) | TargetRef::Group(_))), Some(profile)) =
            (target, self.program.tables[id].profile)
            && let Some((selected, action, args)) = self.call_of_profile(id, profile, target, inputs)
        {
            return Lookup { entry, action, args, selected: Some(selected) };
        }
        let call = table.action_of(entry).unwrap_or_else(|| table.default_action());
        let args = self.args_of(id, call);
        Lookup { entry, action: call.action as usize, args, selected: None }
    }

    /// The action slot that a slot of a group stands for, by the hash of the inputs: that of a member, or the slot itself
    /// (which holds the default action) for an empty group and for a slot of anything else.
    pub fn select_slot(&self, id: TableId, slot: u32, inputs: &[Bits]) -> u32 {
        let table = &self.tables[id].table;
        let (Some(group), Some(profile)) = (table.group_of_slot(slot), self.program.tables[id].profile)
        else {
            return slot;
        };
        let kept = &self.profiles[profile];
        let member = kept.select(group, self.selector_hash(profile, inputs));
        let member = member.and_then(|member| kept.member_ref(member).ok());
        member.and_then(|member| table.slot_of_member(member)).unwrap_or(slot)
    }

    /// Records that a packet matched an entry, for its idle timeout.
    pub fn record(&mut self, id: TableId, entry: EntryIndex, now_ns: u64) {
        self.tables[id].table.record(entry, now_ns);
    }

    /// Adds a packet to the direct counter of an entry, if the table has one.
    pub fn count_direct(&mut self, id: TableId, entry: EntryIndex, bytes: u64) {
        self.tables[id].table.count(entry, bytes);
    }

    /// Meters a packet at the direct meter of an entry; green without one.
    pub fn meter_direct(
        &mut self,
        id: TableId,
        entry: EntryIndex,
        now_ns: u64,
        bytes: u64,
        before: Color,
    ) -> Color {
        self.tables[id].table.meter(entry, now_ns, bytes, before)
    }

    /// Adds a packet to a cell; an index outside counts nothing.
    pub fn count(&mut self, id: CounterId, index: u64, bytes: u64) {
        self.counters[id].count(index, bytes);
    }

    /// Meters a packet at a cell; an index outside gives green.
    pub fn meter(&mut self, id: MeterId, index: u64, now_ns: u64, bytes: u64, before: Color) -> Color {
        self.meters[id].execute(index, now_ns, bytes, before).unwrap_or(Color::Green)
    }

    /// The value of a cell; an index outside reads 0.
    pub fn register_read(&self, id: RegisterId, index: u64) -> Bits {
        let register = &self.registers[id];
        pack::from_limbs(register.width(), register.read(index).0)
    }

    /// Writes a cell; an index outside writes nothing.
    pub fn register_write(&mut self, id: RegisterId, index: u64, value: &Bits) {
        self.registers[id].write(index, &pack::limbs(value));
    }

    /// Whether the values of the fields are a member of a value set.
    pub fn is_member(&self, id: ValueSetId, keys: &[Bits]) -> bool {
        self.value_sets[id].contains(&pack::pack(keys))
    }

    /// A random number from `low` to `high`, both included; `low` when `high` is less.
    pub fn random(&mut self, low: &Bits, high: &Bits) -> Bits {
        self.random.between(low, high)
    }

    /// The arguments of a call that a table keeps.
    pub(crate) fn args_of(&self, id: TableId, call: &tables::ActionCall) -> Vec<Bits> {
        match self.program.tables[id].actions.get(call.action as usize) {
            Some(action) => pack::unpack(&self.params[action.action], &call.data),
            None => Vec::new(),
        }
    }

    fn call_of_profile(
        &self,
        id: TableId,
        profile: ProfileId,
        target: TargetRef,
        inputs: &[Bits],
    ) -> Option<(Selected, usize, Vec<Bits>)> {
        let kept = &self.profiles[profile];
        let selected = match target {
            TargetRef::Action(_) => return None,
            TargetRef::Member(member) => Selected { member: member.id(), group: None },
            TargetRef::Group(group) => {
                let member = kept.select(group.id(), self.selector_hash(profile, inputs))?;
                Selected { member, group: Some(group.id()) }
            }
        };
        let call = kept.member(selected.member)?;
        let action = ActionId::from_u32(call.action);
        let index = self.action_in_table(id, action)?;
        Some((selected, index, pack::unpack(&self.params[action], &call.data)))
    }

    /// The hash of a selector over its inputs, cut to the bits that count.
    fn selector_hash(&self, profile: ProfileId, inputs: &[Bits]) -> u64 {
        let Some(selector) = &self.program.profiles[profile].selector else { return 0 };
        let mut writer = bits::BitWriter::new();
        inputs.iter().for_each(|input| writer.push(input));
        let hash = selector.algorithm.compute(&writer.finish());
        if selector.width < 64 { hash & ((1 << selector.width) - 1) } else { hash }
    }

    /// Where an action stands in a table's list: itself, or the action of its name.
    pub(crate) fn action_in_table(&self, id: TableId, action: ActionId) -> Option<usize> {
        let actions = &self.program.tables[id].actions;
        let itself = actions.iter().position(|listed| listed.action == action);
        itself.or_else(|| {
            let name = &self.program.actions[action].name;
            actions.iter().position(|listed| self.program.actions[listed.action].name == *name)
        })
    }
}
