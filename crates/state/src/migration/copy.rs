//! Copying what cannot move: entries, members and groups, as far as they fit.

use super::arrays::{self, GONE};
use super::likeness::{same_key, same_params};
use super::{Carried, Migration};
use crate::cells::CounterRef;
use crate::tables::{Tables, TablesHandle};
use crate::{CounterValue, EntryIndex, EntryView, EntryWrite, MemberWrite, ObjectKind, State, Target};
use millrace_pipeline::*;
use std::collections::{BTreeMap, HashMap};

/// Entries that are looked at while nobody else has the tables.
const CHUNK: u32 = 256;
/// Most reasons that are told apart for one object.
const MAX_REASONS: usize = 8;

/// How many were dropped, by reason.
type Lost = BTreeMap<String, u64>;

fn lose(lost: &mut Lost, reason: String) {
    let reason = match lost.len() < MAX_REASONS || lost.contains_key(&reason) {
        true => reason,
        false => "other reasons".to_owned(),
    };
    *lost.entry(reason).or_default() += 1;
}

impl Migration {
    /// Copies what cannot move, as far as it fits; [`Migration::report`] tells the rest. `values` are the numbers of
    /// members of the value sets, `now_ns` is when the idleness of copied entries starts. Writers wait, packets do not.
    pub fn copy(&mut self, running: &TablesHandle, next: &mut State, values: &[u64], now_ns: u64) {
        let handle = next.handle();
        let mut to = handle.lock();
        let commits = running.lock().commits;
        let mut copied = false;
        for pair in self.profiles.clone() {
            copied |= !pair.moves;
            if !pair.moves {
                self.copy_profile(running, &mut to, pair.old, pair.new);
            }
        }
        for pair in self.tables.clone() {
            copied |= !pair.moves;
            match pair.new {
                Some(new) if pair.moves => self.tell_moved(running, pair.old, new),
                Some(new) => self.copy_table(running, &mut to, (pair.old, new), now_ns),
                None => self.lose_table(running, pair.old),
            }
        }
        to.settle();
        self.commits = copied.then_some(commits);
        arrays::report_values(&self.old.program, &self.new.program, values, &mut self.report);
    }

    fn tell_moved(&mut self, running: &TablesHandle, old: TableId, new: TableId) {
        let count = running.lock().table(old).removable().len() as u64;
        let name = self.new.program.tables[new].name.clone();
        self.tell((ObjectKind::Table, name), "entries", count, Lost::new());
    }

    fn tell(&mut self, (kind, name): (ObjectKind, String), what: &'static str, kept: u64, lost: Lost) {
        let kept = (kept > 0).then_some((kept, None));
        let lost = lost.into_iter().map(|(reason, count)| (count, Some(reason)));
        let all = kept.into_iter().chain(lost);
        self.report.extend(all.map(|(count, dropped)| Carried {
            kind,
            name: name.clone(),
            what,
            count,
            dropped,
        }));
    }

    /// The table is not in the new program.
    fn lose_table(&mut self, running: &TablesHandle, old: TableId) {
        let tables = running.lock();
        let program = &self.old.program;
        let kept = tables.entries(old).filter(|view| !view.is_const && !is_initial(program, old, view));
        let lost = kept.count() as u64;
        let default = tables.default_target(old) != Target::Action(own_default(&self.old, old));
        drop(tables);
        let name = (ObjectKind::Table, program.tables[old].name.clone());
        for (what, count) in [("entries", lost), ("default action", default.into())] {
            let lost = (count > 0).then(|| (GONE.to_owned(), count)).into_iter().collect();
            self.tell(name.clone(), what, 0, lost);
        }
    }

    fn copy_table(&mut self, running: &TablesHandle, to: &mut Tables, ids: (TableId, TableId), now_ns: u64) {
        let (old, new) = ids;
        let name = (ObjectKind::Table, self.new.program.tables[new].name.clone());
        let (mut kept, mut lost) = (HashMap::new(), Lost::new());
        // The initial entries that can be changed are among those that are kept, or were removed.
        to.clear(new);
        let fits = match same_key(&self.old, &self.new, ids) {
            true => Ok(()),
            false => Err("the new program has another key"),
        };
        self.each_entry(running, old, |view| {
            let index = view.index;
            let copied = fits.map_err(str::to_owned).and_then(|()| self.copy_entry(to, ids, view, now_ns));
            match copied {
                Ok(place) => drop(kept.insert(index, place)),
                Err(reason) => lose(&mut lost, reason),
            }
        });
        self.tell(name.clone(), "entries", kept.len() as u64, lost);
        self.entries.insert(old, kept);

        let tables = running.lock();
        let default = tables.default_target(old);
        let meter = tables.direct_meter_config(old, EntryIndex::MISS.0.into());
        drop(tables);
        if let Ok(Some(meter)) = meter {
            // A new program without the meter meters nothing.
            let _ = to.set_direct_meter(new, EntryIndex::MISS.0.into(), Some(meter));
        }
        if default != Target::Action(own_default(&self.old, old)) {
            let set = self
                .target(to, ids, default)
                .and_then(|target| to.set_default_target(new, &target).map_err(|error| error.to_string()));
            let (kept, lost) = match set {
                Ok(()) => (1, Lost::new()),
                Err(reason) => (0, [(reason, 1)].into()),
            };
            self.tell(name, "default action", kept, lost);
        }
    }

    /// Calls that with all entries that are not const: in the order in which they were added where that decides among equal
    /// priorities, else with others having their turn in between.
    fn each_entry(&self, running: &TablesHandle, table: TableId, mut work: impl FnMut(EntryView)) {
        if running.lock().table(table).spec().schema.needs_priority() {
            let entries: Vec<EntryView> = running.lock().entries(table).collect();
            return entries.into_iter().filter(|view| !view.is_const).for_each(work);
        }
        let mut from = Some(EntryIndex(0));
        while let Some(start) = from {
            let (part, next) = running.lock().entries_from(table, start, CHUNK);
            part.into_iter().filter(|view| !view.is_const).for_each(&mut work);
            from = next;
        }
    }

    fn copy_entry(
        &self,
        to: &mut Tables,
        ids: (TableId, TableId),
        view: EntryView,
        now_ns: u64,
    ) -> Result<EntryIndex, String> {
        let target = self.target(to, ids, view.target)?;
        let idle_timeout_ns = match self.new.program.tables[ids.1].idle_timeout {
            true => view.idle_timeout_ns,
            false => 0,
        };
        let write = EntryWrite { matches: view.matches, priority: view.priority, target, idle_timeout_ns };
        let index = to.insert(ids.1, &write, now_ns).map_err(|error| error.to_string())?;
        if view.meter.is_some() {
            // A new program without the meter meters nothing.
            let _ = to.set_direct_meter(ids.1, index.0.into(), view.meter);
        }
        Ok(index)
    }

    /// The same target in terms of the new program.
    fn target(&self, to: &Tables, ids: (TableId, TableId), target: Target) -> Result<Target, String> {
        Ok(match target {
            Target::Action(call) => Target::Action(self.call(ids, call)?),
            Target::Member(_) | Target::Group(_) if to.profile_of(ids.1).is_err() => {
                return Err("the new program has no action profile there".to_owned());
            }
            Target::Member(id) if to.member(self.profile_behind(ids.1), id).is_err() => {
                return Err("its member was dropped".to_owned());
            }
            Target::Group(id) if to.group(self.profile_behind(ids.1), id).is_err() => {
                return Err("its group was dropped".to_owned());
            }
            other => other,
        })
    }

    /// The profile of a table of the new program that has one.
    fn profile_behind(&self, table: TableId) -> ProfileId {
        self.new.program.tables[table].profile.unwrap_or(ProfileId::from_u32(0))
    }

    /// The same call in terms of the new program.
    fn call(&self, ids: (TableId, TableId), call: ActionCall) -> Result<ActionCall, String> {
        let old = self.old.program.tables[ids.0].actions[call.action].action;
        let name = &self.old.program.actions[old].name;
        let listed = &self.new.program.tables[ids.1].actions;
        let at = listed.iter().position(|listed| self.new.program.actions[listed.action].name == *name);
        let at = at.ok_or_else(|| format!("action `{name}` is not in the new program"))?;
        self.check_params(old, listed[at].action)?;
        Ok(ActionCall { action: at, args: call.args })
    }

    fn check_params(&self, old: ActionId, new: ActionId) -> Result<(), String> {
        match same_params(&self.old, &self.new, (old, new)) {
            true => Ok(()),
            false => {
                let name = &self.old.program.actions[old].name;
                Err(format!("action `{name}` has other parameters in the new program"))
            }
        }
    }

    fn copy_profile(
        &mut self,
        running: &TablesHandle,
        to: &mut Tables,
        old: ProfileId,
        new: Option<ProfileId>,
    ) {
        let tables = running.lock();
        let members: Vec<_> = tables.members(old).collect();
        let groups: Vec<_> = tables
            .groups(old)
            .map(|(id, members)| (id, members.to_vec(), tables.selection(old, id).unwrap_or_default()))
            .collect();
        drop(tables);
        let (mut kept, mut lost) = ((0, 0), (Lost::new(), Lost::new()));
        for (id, member) in members {
            let copied = new.ok_or_else(|| GONE.to_owned()).and_then(|new| {
                let member = self.member(new, member)?;
                to.insert_member(new, Some(id), &member).map_err(|error| error.to_string())
            });
            match copied {
                Ok(_) => kept.0 += 1,
                Err(reason) => lose(&mut lost.0, reason),
            }
        }
        for (id, members, selection) in groups {
            let copied = new.ok_or_else(|| GONE.to_owned()).and_then(|new| {
                if members.iter().any(|of| to.member(new, of.member).is_err()) {
                    return Err("a member of it was dropped".to_owned());
                }
                to.insert_group_with(new, Some(id), &members, selection).map_err(|error| error.to_string())
            });
            match copied {
                Ok(_) => kept.1 += 1,
                Err(reason) => lose(&mut lost.1, reason),
            }
        }
        let name = (ObjectKind::Profile, self.old.program.profiles[old].name.clone());
        self.tell(name.clone(), "members", kept.0, lost.0);
        self.tell(name, "groups", kept.1, lost.1);
    }

    fn member(&self, profile: ProfileId, member: MemberWrite) -> Result<MemberWrite, String> {
        let name = &self.old.program.actions[member.action].name;
        let users = self.new.program.tables.values().filter(|table| table.profile == Some(profile));
        let mut listed = users.flat_map(|table| &table.actions).map(|listed| listed.action);
        let action = listed.find(|action| self.new.program.actions[*action].name == *name);
        let action = action.ok_or_else(|| format!("action `{name}` is not in the new program"))?;
        self.check_params(member.action, action)?;
        Ok(MemberWrite { action, args: member.args })
    }

    /// Adds to copied entries, and to counters of another size, what was counted until they were taken.
    pub(super) fn count_behind(&self, old: &State, now: &TablesHandle) {
        let from = old.tables();
        let mut to = now.lock();
        for pair in self.tables.iter().filter(|pair| !pair.moves) {
            let (Some(new), Some(entries)) = (pair.new, self.entries.get(&pair.old)) else { continue };
            let default = (&EntryIndex::MISS, &EntryIndex::MISS);
            for (before, after) in entries.iter().chain([default]) {
                let value = from.counter_value(CounterRef::Direct(pair.old), before.0.into());
                if let Ok(value) = value
                    && value != CounterValue::default()
                {
                    // A new program without the counter counts nothing.
                    let _ = to.add_to_counter(CounterRef::Direct(new), after.0.into(), value);
                }
                if let Ok(counts) = from.direct_meter_counts(pair.old, before.0.into()) {
                    let _ = to.add_to_meter_counts(new, after.0.into(), counts);
                }
            }
        }
        arrays::add_counters(&from, &mut to);
    }
}

/// The default action that the program gives a table.
fn own_default(schema: &crate::schema::Schema, table: TableId) -> ActionCall {
    let default = &schema.program.tables[table].default;
    let widths = match schema.program.tables[table].actions.get(default.action) {
        Some(listed) => schema.params[listed.action].as_slice(),
        None => &[],
    };
    let args = widths.iter().zip(&default.args).map(|(width, value)| value.zero_extend(*width));
    ActionCall { action: default.action, args: args.collect() }
}

/// Whether an entry is one that the program started with.
fn is_initial(program: &Program, table: TableId, view: &EntryView) -> bool {
    program.tables[table].entries.iter().any(|entry| {
        entry.matches == view.matches && matches!(&view.target, Target::Action(call) if *call == entry.call)
    })
}
