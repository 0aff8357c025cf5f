//! Another program in place of the one that runs, with everything that was written kept (`RECONCILE_AND_COMMIT`).
//!
//! Objects are the same when they have the same name and look the same: key fields, actions and parameters of equal
//! names, kinds and widths. If something was written that the new program has no place for, nothing changes.

use crate::forwarding::{Loaded, Target};
use crate::idle::Timers;
use crate::refusal::Refusal;
use crate::shadow::Shadow;
use millrace_pipeline::{ActionCall, ActionId, Bits, EntryMatch, ProfileId, Program, TableId};
use millrace_state::{
    CounterRef, CounterValue, EntryIndex, EntryView, EntryWrite, GroupMember, MemberWrite, MeterConfig,
    Tables, Target as EntryTarget,
};
use millrace_switch::Switch;
use std::sync::PoisonError;
use tonic::Status;

/// Entries that are looked at while nobody else has the tables.
const CHUNK: u32 = 256;

/// What a table holds beside the program's own.
struct TableContent {
    table: TableId,
    entries: Vec<EntryView>,
    default: Option<ActionCall>,
    default_meter: Option<MeterConfig>,
    default_counter: Option<CounterValue>,
}

struct ProfileContent {
    profile: ProfileId,
    members: Vec<(u32, MemberWrite)>,
    groups: Vec<(u32, Vec<GroupMember>)>,
}

/// Writes what was written to `active` to `next` too, which does not run yet.
pub(crate) async fn reconcile(active: &mut Loaded, next: &mut Loaded) -> Result<(), Status> {
    let program = std::sync::Arc::clone(&active.catalog.program);
    let mut tables = Vec::new();
    for table in program.tables.keys() {
        tables.push(table_content(&active.target, &program, table).await?);
    }
    let handle = active.target.tables().await?;
    let content = |profile| {
        let tables = handle.lock();
        ProfileContent {
            profile,
            members: tables.members(profile).collect(),
            groups: tables.groups(profile).map(|(id, members)| (id, members.to_vec())).collect(),
        }
    };
    let profiles: Vec<ProfileContent> = program.profiles.keys().map(content).collect();
    let value_sets: Vec<_> = program.value_sets.keys().collect();
    let (values, replication, now_ns) = active
        .target
        .call(move |switch| {
            let state = switch.state();
            let values: Vec<_> =
                value_sets.iter().map(|set| state.values(*set).collect::<Vec<_>>()).collect();
            (values, switch.replication().clone(), switch.now_ns())
        })
        .await?;

    let catalog = std::sync::Arc::clone(&next.catalog);
    let Target::Waiting(switch) = &mut next.target else { return Ok(()) };
    let switch = switch.get_mut().unwrap_or_else(PoisonError::into_inner);
    let mapping = Mapping { old: &program, new: &catalog.program };
    let mut timers = Timers::default();
    {
        let next_handle = switch.state().handle();
        let mut next_tables = next_handle.lock();
        for content in profiles {
            mapping.profile(&mut next_tables, content)?;
        }
        for content in tables {
            mapping.table(&mut next_tables, now_ns, &mut timers, content)?;
        }
    }
    for ((_, set), members) in program.value_sets.iter().zip(values) {
        if members.is_empty() {
            continue;
        }
        let place = catalog.program.value_sets.iter().find(|(_, own)| own.name == set.name);
        let (place, _) = place.ok_or_else(|| missing("value set", &set.name))?;
        let refused = |error| Refusal::invalid(format!("value set `{}`: {error}", set.name));
        switch.state_mut().replace_values(place, &members).map_err(refused)?;
    }
    *switch.replication_mut() = replication;
    next.shadow = Shadow { timers, ..mapping.shadow(&active.shadow)? };
    Ok(())
}

/// Copies what the data plane writes: indexed counters, registers, and with them the settings of indexed meters. To be
/// called where neither program runs.
pub(crate) fn carry_cells(old: &Switch, new: &mut Switch) {
    let program = std::sync::Arc::clone(new.program());
    let (old_handle, new_handle) = (old.state().handle(), new.state().handle());
    let (from_tables, mut to_tables) = (old_handle.lock(), new_handle.lock());
    let (from, to) = (old.state(), new.state_mut());
    for (id, counter) in &program.counters {
        let known = old.program().counters.iter().find(|(_, known)| known.name == counter.name);
        let Some((known, made)) = known else { continue };
        for cell in 0..counter.size.min(made.size) {
            if let Ok(value) = from_tables.counter_value(CounterRef::Indexed(known), cell)
                && value != CounterValue::default()
            {
                let _ = to_tables.set_counter(CounterRef::Indexed(id), cell, value);
            }
        }
    }
    for (id, meter) in &program.meters {
        let known = old.program().meters.iter().find(|(_, known)| known.name == meter.name);
        let Some((known, made)) = known else { continue };
        for cell in 0..meter.size.min(made.size) {
            if let Ok(Some(config)) = from.meter_config(known, cell) {
                let _ = to.set_meter(id, cell, Some(config));
            }
        }
    }
    for (id, register) in &program.registers {
        let known = old.program().registers.iter().find(|(_, known)| known.name == register.name);
        let Some((known, made)) = known.filter(|(_, made)| made.width == register.width) else { continue };
        for cell in 0..register.size.min(made.size) {
            if let Ok(value) = from.register_value(known, cell) {
                let _ = to.set_register(id, cell, &value);
            }
        }
    }
}

async fn table_content(target: &Target, program: &Program, table: TableId) -> Result<TableContent, Status> {
    let handle = target.tables().await?;
    let mut entries = Vec::new();
    let mut from = Some(EntryIndex(0));
    while let Some(start) = from {
        let (part, next) = handle.lock().entries_from(table, start, CHUNK);
        entries.extend(part);
        from = next;
    }
    let tables = handle.lock();
    let default = tables.default_action(table);
    let default_meter = tables.direct_meter_config(table, EntryIndex::MISS.0.into()).ok().flatten();
    let default_counter = tables.counter_value(CounterRef::Direct(table), EntryIndex::MISS.0.into()).ok();
    let own = &program.tables[table].default;
    let changed = default.action != own.action || default.args.iter().ne(&own.args);
    let default = (changed && !program.tables[table].const_default).then_some(default);
    Ok(TableContent { table, entries, default, default_meter, default_counter })
}

/// From the objects of one program to those of another.
struct Mapping<'a> {
    old: &'a Program,
    new: &'a Program,
}

fn missing(what: &str, name: &str) -> Refusal {
    Refusal::invalid(format!("{what} `{name}` holds something and is not in the new program"))
}

impl Mapping<'_> {
    fn table_of(&self, table: TableId) -> Option<TableId> {
        let name = &self.old.tables[table].name;
        self.new.tables.iter().find(|(_, made)| made.name == *name).map(|(id, _)| id)
    }

    fn profile_of(&self, profile: ProfileId) -> Option<ProfileId> {
        let name = &self.old.profiles[profile].name;
        self.new.profiles.iter().find(|(_, made)| made.name == *name).map(|(id, _)| id)
    }

    fn profile(&self, tables: &mut Tables, content: ProfileContent) -> Result<(), Refusal> {
        if content.members.is_empty() && content.groups.is_empty() {
            return Ok(());
        }
        let name = &self.old.profiles[content.profile].name;
        let place = self.profile_of(content.profile).ok_or_else(|| missing("action profile", name))?;
        let refused =
            |error: millrace_state::WriteError| Refusal::invalid(format!("action profile `{name}`: {error}"));
        for (id, member) in content.members {
            let action_name = &self.old.actions[member.action].name;
            let users = self.new.tables.values().filter(|table| table.profile == Some(place));
            let mut listed = users.flat_map(|table| &table.actions).map(|listed| listed.action);
            let action = listed
                .find(|action| self.new.actions[*action].name == *action_name)
                .ok_or_else(|| missing("action", action_name))?;
            let args = self.args(member.action, action, member.args)?;
            tables.insert_member(place, Some(id), &MemberWrite { action, args }).map_err(refused)?;
        }
        for (id, members) in content.groups {
            tables.insert_group(place, Some(id), &members).map_err(refused)?;
        }
        Ok(())
    }

    /// Arguments for the action of the same name, by the names of its parameters.
    fn args(&self, old: ActionId, new: ActionId, args: Vec<Bits>) -> Result<Vec<Bits>, Refusal> {
        fn params(program: &Program, action: ActionId) -> impl Iterator<Item = &str> {
            program.actions[action].params.iter().map(|slot| {
                let full = program.slots[*slot].name.as_str();
                full.rsplit('.').next().unwrap_or(full)
            })
        }
        let name = &self.old.actions[old].name;
        if params(self.old, old).ne(params(self.new, new)) {
            return Err(Refusal::invalid(format!("action `{name}` has other parameters in the new program")));
        }
        Ok(args)
    }

    fn call(&self, old_table: TableId, new_table: TableId, call: ActionCall) -> Result<ActionCall, Refusal> {
        let old = self.old.tables[old_table].actions[call.action].action;
        let name = &self.old.actions[old].name;
        let actions = &self.new.tables[new_table].actions;
        let at = actions
            .iter()
            .position(|listed| self.new.actions[listed.action].name == *name)
            .ok_or_else(|| missing("action", name))?;
        Ok(ActionCall { action: at, args: self.args(old, actions[at].action, call.args)? })
    }

    fn table(
        &self,
        tables: &mut Tables,
        now_ns: u64,
        timers: &mut Timers,
        content: TableContent,
    ) -> Result<(), Refusal> {
        let old = &self.old.tables[content.table];
        let entries: Vec<EntryView> = content.entries.into_iter().filter(|entry| !entry.is_const).collect();
        let Some(place) = self.table_of(content.table) else {
            return if entries.is_empty() && content.default.is_none() {
                Ok(())
            } else {
                Err(missing("table", &old.name))
            };
        };
        let refused =
            |error: millrace_state::WriteError| Refusal::invalid(format!("table `{}`: {error}", old.name));
        let new = &self.new.tables[place];
        let keys = |table: &millrace_pipeline::Table| -> Vec<(String, millrace_pipeline::MatchKind)> {
            table.keys.iter().map(|key| (key.name.clone(), key.kind)).collect()
        };
        if !entries.is_empty() && keys(old) != keys(new) {
            return Err(Refusal::invalid(format!("table `{}` has another key in the new program", old.name)));
        }
        // The initial entries that can be changed are among those that are kept, or were removed.
        tables.clear(place);
        for entry in entries {
            let target = match entry.target {
                EntryTarget::Action(call) => EntryTarget::Action(self.call(content.table, place, call)?),
                other => other,
            };
            let write = EntryWrite {
                matches: entry.matches,
                priority: entry.priority,
                target,
                idle_timeout_ns: entry.idle_timeout_ns,
            };
            let index = tables.insert(place, &write, now_ns).map_err(refused)?;
            if entry.idle_timeout_ns != 0 {
                timers.set(place, index, now_ns.saturating_add(entry.idle_timeout_ns));
            }
            if let Some(counter) = entry.counter {
                let _ = tables.set_counter(CounterRef::Direct(place), index.0.into(), counter);
            }
            if entry.meter.is_some() {
                tables.set_direct_meter(place, index.0.into(), entry.meter).map_err(refused)?;
            }
        }
        if let Some(call) = content.default {
            let call = self.call(content.table, place, call)?;
            tables.set_default(place, &call).map_err(refused)?;
        }
        let index = EntryIndex::MISS.0.into();
        if content.default_meter.is_some() {
            tables.set_direct_meter(place, index, content.default_meter).map_err(refused)?;
        }
        if let Some(counter) = content.default_counter {
            let _ = tables.set_counter(CounterRef::Direct(place), index, counter);
        }
        Ok(())
    }

    fn shadow(&self, old: &Shadow) -> Result<Shadow, Refusal> {
        let mut new =
            Shadow { down: old.down.clone(), next_one_shot: old.next_one_shot, ..Shadow::default() };
        for ((table, matches, priority), cookie) in &old.cookies {
            let matches: Vec<EntryMatch> = matches.clone();
            if let Some(table) = self.table_of(*table) {
                new.cookies.insert((table, matches, *priority), cookie.clone());
            }
        }
        for ((profile, id), one_shot) in &old.one_shots {
            if let Some(profile) = self.profile_of(*profile) {
                new.one_shots.insert((profile, *id), one_shot.clone());
            }
        }
        for ((profile, id), group) in &old.groups {
            if let Some(profile) = self.profile_of(*profile) {
                new.groups.insert((profile, *id), group.clone());
            }
        }
        new.multicast = old.multicast.clone();
        new.clones = old.clones.clone();
        for (digest, config) in &old.digests {
            let name = &self.old.digests[*digest].name;
            let place = self.new.digests.iter().find(|(_, made)| made.name == *name);
            let (place, _) = place.ok_or_else(|| missing("digest", name))?;
            new.digests.insert(place, *config);
        }
        Ok(new)
    }
}
