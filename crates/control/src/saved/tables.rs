//! Tables, action profiles and counters as commands.

use super::{Saved, number, numbers};
use crate::commands::meter_command;
use millrace_commands::{bmv2_priority, matching};
use millrace_pipeline::{ActionCall, MatchKind, ProfileId, Program, TableId};
use millrace_state::{
    CounterRef, CounterValue, EntryIndex, EntryView, GroupMember, MemberWrite, Selection, Tables, Target,
};
use std::collections::{BTreeMap, HashMap};

/// The numbers that the members and groups of a profile have as commands make them.
#[derive(Default)]
struct Numbers {
    members: BTreeMap<u32, u32>,
    groups: BTreeMap<u32, u32>,
}

impl Saved {
    pub(super) fn add_tables(&mut self, program: &Program, tables: &Tables) {
        let profiles = program.profiles.keys();
        let numbers: HashMap<ProfileId, Numbers> =
            profiles.map(|profile| (profile, self.add_profile(program, tables, profile))).collect();
        for (id, table) in &program.tables {
            let none = Numbers::default();
            let numbers = table.profile.and_then(|profile| numbers.get(&profile)).unwrap_or(&none);
            self.add_entries(program, tables, id, numbers);
            self.add_default(program, tables, id, numbers);
        }
        for (id, counter) in &program.counters {
            for cell in 0..counter.size {
                let value = tables.counter_value(CounterRef::Indexed(id), cell).unwrap_or_default();
                self.add_count(&counter.name, cell, value);
            }
        }
    }

    /// Members and groups get the lowest free number: numbers that are free are taken for as long as others get theirs.
    fn add_profile(&mut self, program: &Program, tables: &Tables, id: ProfileId) -> Numbers {
        let profile = &program.profiles[id];
        let name = &profile.name;
        let room = usize::try_from(profile.size).unwrap_or(usize::MAX);
        let all: Vec<(u32, MemberWrite)> = tables.members(id).collect();
        let members = numbers(all.iter().map(|(own, _)| *own), room);
        self.say_new("member", name, &members);
        let by_number: BTreeMap<u32, &MemberWrite> =
            all.iter().map(|(own, member)| (members[own], member)).collect();
        if let Some((last, placeholder)) = by_number.last_key_value() {
            for number in 0..=*last {
                let member = by_number.get(&number).unwrap_or(placeholder);
                let action = &program.actions[member.action].name;
                self.line(format_args!("act_prof_create_member {name} {action}{}", words(&member.args)));
            }
            for number in (0..*last).filter(|number| !by_number.contains_key(number)) {
                self.line(format_args!("act_prof_delete_member {name} {number}"));
            }
        }
        let all: Vec<(u32, &[GroupMember])> = tables.groups(id).collect();
        let groups = numbers(all.iter().map(|(own, _)| *own), room);
        self.say_new("group", name, &groups);
        let by_number: BTreeMap<u32, &(u32, &[GroupMember])> =
            all.iter().map(|group| (groups[&group.0], group)).collect();
        let end = by_number.last_key_value().map_or(0, |(last, _)| last + 1);
        (0..end).for_each(|_| self.line(format_args!("act_prof_create_group {name}")));
        for number in (0..end).filter(|number| !by_number.contains_key(number)) {
            self.line(format_args!("act_prof_delete_group {name} {number}"));
        }
        for (number, (own, of_group)) in &by_number {
            if tables.selection(id, *own) != Ok(Selection::Hash) {
                self.missing(format_args!("that the group {number} of {name} selects by no hash"));
            }
            for GroupMember { member, weight } in *of_group {
                let member = members.get(member).unwrap_or(member);
                self.line(format_args!("act_prof_add_member_to_group {name} {member} {number}"));
                if *weight != 1 {
                    self.missing(format_args!(
                        "the weight {weight} of the member {member} of the group {number} of {name}"
                    ));
                }
            }
        }
        Numbers { members, groups }
    }

    fn say_new(&mut self, what: &str, profile: &str, numbers: &BTreeMap<u32, u32>) {
        for (own, number) in numbers.iter().filter(|(own, number)| own != number) {
            self.missing(format_args!("the number {own} of a {what} of {profile}: it has {number} here"));
        }
    }

    fn add_entries(&mut self, program: &Program, tables: &Tables, id: TableId, numbers: &Numbers) {
        let table = &program.tables[id];
        let name = &table.name;
        let has_priorities =
            table.keys.iter().any(|key| !matches!(key.kind, MatchKind::Exact | MatchKind::Lpm));
        // The program's own entries are there when commands are run, under the first handles.
        let mut own = HashMap::<EntryIndex, usize>::new();
        let mut removed = Vec::new();
        for (handle, entry) in table.entries.iter().enumerate() {
            let priority = if has_priorities { entry.priority } else { 0 };
            match tables.find(id, &entry.matches, priority) {
                Ok(index) => drop(own.insert(index, handle)),
                Err(_) => removed.push(handle),
            }
        }
        let added = tables.entry_count(id) as usize - own.len();
        // A handle that was given up is used again, and nothing says when.
        let early = !removed.is_empty() && (table.entries.len() + added) as u64 > table.size;
        let mut remove = |saved: &mut Saved| {
            removed.drain(..).for_each(|handle| saved.line(format_args!("table_delete {name} {handle}")));
        };
        if early {
            remove(self);
            self.missing(format_args!("timeouts, counters and meters of entries of {name}"));
        }
        let mut next = table.entries.len();
        for entry in tables.entries(id) {
            let handle = match own.get(&entry.index) {
                Some(handle) => {
                    let call = &table.entries[*handle].call;
                    if let Target::Action(now) = &entry.target
                        && !same(call, now)
                    {
                        let action = action(program, id, now);
                        self.line(format_args!("table_modify {name} {action} {handle}{}", words(&now.args)));
                    }
                    *handle
                }
                None => {
                    self.add_entry(program, id, &entry, has_priorities, numbers);
                    next += 1;
                    next - 1
                }
            };
            if !early {
                self.add_attached(program, id, &entry, handle);
            }
        }
        remove(self);
        if table.direct_counter.is_some()
            && tables.counter_value(CounterRef::Direct(id), 0) != Ok(CounterValue::default())
        {
            self.missing(format_args!("what was counted at misses of {name}"));
        }
        if let Ok(Some(_)) = tables.direct_meter_config(id, EntryIndex::MISS.0.into()) {
            self.missing(format_args!("the parameters of the meter for misses of {name}"));
        }
    }

    fn add_entry(
        &mut self,
        program: &Program,
        table: TableId,
        entry: &EntryView,
        has_priorities: bool,
        numbers: &Numbers,
    ) {
        let name = &program.tables[table].name;
        let matches: String =
            entry.matches.iter().map(|field| format!(" {}", matching::show(field))).collect();
        let priority = match has_priorities {
            true => format!(" {}", bmv2_priority(entry.priority)),
            false => String::new(),
        };
        match &entry.target {
            Target::Action(call) => {
                let (action, args) = (action(program, table, call), words(&call.args));
                self.line(format_args!("table_add {name} {action}{matches} =>{args}{priority}"));
            }
            Target::Member(member) => {
                let member = numbers.members.get(member).unwrap_or(member);
                self.line(format_args!("table_indirect_add {name}{matches} => {member}{priority}"));
            }
            Target::Group(group) => {
                let group = numbers.groups.get(group).unwrap_or(group);
                self.line(format_args!("table_indirect_add_with_group {name}{matches} => {group}{priority}"));
            }
        }
    }

    /// The timeout, counter and meter of an entry.
    fn add_attached(&mut self, program: &Program, table: TableId, entry: &EntryView, handle: usize) {
        let table = &program.tables[table];
        if entry.idle_timeout_ns != 0 {
            let milliseconds = entry.idle_timeout_ns.div_ceil(1_000_000);
            self.line(format_args!("table_set_timeout {} {handle} {milliseconds}", table.name));
            if !entry.idle_timeout_ns.is_multiple_of(1_000_000) {
                self.missing(format_args!("parts of a millisecond of a timeout in {}", table.name));
            }
        }
        if let (Some(counter), Some(value)) = (&table.direct_counter, entry.counter) {
            self.add_count(&counter.name, handle as u64, value);
        }
        if let (Some(meter), Some(config)) = (&table.direct_meter, &entry.meter) {
            self.line(format_args!("{}", meter_command(&meter.name, handle as u64, config)));
        }
    }

    fn add_count(&mut self, counter: &str, cell: u64, value: CounterValue) {
        if value != CounterValue::default() {
            self.line(format_args!("counter_write {counter} {cell} {} {}", value.packets, value.bytes));
        }
    }

    /// What a miss does, if it is not the default action of the program.
    fn add_default(&mut self, program: &Program, tables: &Tables, id: TableId, numbers: &Numbers) {
        let table = &program.tables[id];
        let name = &table.name;
        match tables.default_target(id) {
            Target::Action(now) if same(&table.default, &now) => {}
            Target::Action(now) => {
                let (action, args) = (action(program, id, &now), words(&now.args));
                self.line(format_args!("table_set_default {name} {action}{args}"));
            }
            Target::Member(member) => {
                let member = numbers.members.get(&member).copied().unwrap_or(member);
                self.line(format_args!("table_indirect_set_default {name} {member}"));
            }
            Target::Group(group) => {
                let group = numbers.groups.get(&group).copied().unwrap_or(group);
                self.line(format_args!("table_indirect_set_default_with_group {name} {group}"));
            }
        }
    }
}

/// The name of the action of a call.
fn action<'p>(program: &'p Program, table: TableId, call: &ActionCall) -> &'p str {
    let listed = program.tables[table].actions.get(call.action);
    listed.map_or("", |listed| &program.actions[listed.action].name)
}

/// Whether a call of the program is the same as one that is kept, whose values are as wide as the parameters.
fn same(written: &ActionCall, kept: &ActionCall) -> bool {
    let values = |call: &ActionCall| call.args.iter().map(|arg| arg.to_biguint()).collect::<Vec<_>>();
    written.action == kept.action && values(written) == values(kept)
}

/// Values, each after a blank.
fn words(values: &[millrace_pipeline::Bits]) -> String {
    values.iter().map(|value| format!(" {}", number(value))).collect()
}
