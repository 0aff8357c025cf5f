//! Which objects of two programs are the same, and look the same.

use crate::schema::Schema;
use millrace_pipeline::*;

/// An object, what it has become, and whether that looks the same.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair<T> {
    pub(super) old: T,
    pub(super) new: Option<T>,
    pub(super) moves: bool,
}

/// What tables look like to whoever writes them: names, widths, kinds and limits.
pub(super) fn same_key(old: &Schema, new: &Schema, tables: (TableId, TableId)) -> bool {
    let (one, other) = (&old.program.tables[tables.0], &new.program.tables[tables.1]);
    let fields = |table: &Table| -> Vec<(String, MatchKind)> {
        table.keys.iter().map(|key| (key.name.clone(), key.kind)).collect()
    };
    fields(one) == fields(other) && old.keys[tables.0] == new.keys[tables.1]
}

/// Whether two actions have the same parameters.
pub(super) fn same_params(old: &Schema, new: &Schema, actions: (ActionId, ActionId)) -> bool {
    fn names(schema: &Schema, action: ActionId) -> impl Iterator<Item = &str> {
        let params = schema.program.actions[action].params.iter();
        params.map(|slot| crate::schema::short(&schema.program.slots[*slot].name))
    }
    names(old, actions.0).eq(names(new, actions.1)) && old.params[actions.0] == new.params[actions.1]
}

/// Whether two tables list the same actions in the same order.
fn same_actions(old: &Schema, new: &Schema, one: &Table, other: &Table) -> bool {
    one.actions.len() == other.actions.len()
        && one.actions.iter().zip(&other.actions).all(|(a, b)| {
            a.scope == b.scope
                && old.program.actions[a.action].name == new.program.actions[b.action].name
                && same_params(old, new, (a.action, b.action))
        })
}

/// Whether all of a table goes on as it is; its profile aside.
fn same_table(old: &Schema, new: &Schema, tables: (TableId, TableId)) -> bool {
    let (one, other) = (&old.program.tables[tables.0], &new.program.tables[tables.1]);
    let attached = |table: &Table| {
        let units = (
            table.direct_counter.as_ref().map(|counter| counter.unit),
            table.direct_meter.as_ref().map(|meter| meter.unit),
        );
        (units, table.idle_timeout, table.size, table.const_default, table.const_entries)
    };
    attached(one) == attached(other)
        && same_key(old, new, tables)
        && same_actions(old, new, one, other)
        && one.default == other.default
        && one.empty_group == other.empty_group
        && one.entries == other.entries
}

/// Profiles by name. One moves when all its tables do, and its members' actions have kept their numbers.
pub(super) fn profile_pairs(old: &Schema, new: &Schema) -> Vec<Pair<ProfileId>> {
    let program = &new.program;
    let pair = |(id, profile): (ProfileId, &Profile)| {
        let found = program.profiles.iter().find(|(_, other)| other.name == profile.name);
        let looks_same = |(new_id, other): (ProfileId, &Profile)| {
            let group_size = |profile: &Profile| profile.selector.as_ref().map(|of| of.max_group_size);
            let users: Vec<_> =
                old.users(id).into_iter().map(|table| (table, by_name(old, new, table))).collect();
            profile.size == other.size
                && group_size(profile) == group_size(other)
                && users.len() == new.users(new_id).len()
                && users.into_iter().all(|(table, user)| {
                    user.is_some_and(|user| {
                        program.tables[user].profile == Some(new_id)
                            && same_table(old, new, (table, user))
                            && same_numbers(&old.program.tables[table], &program.tables[user])
                    })
                })
        };
        Pair { old: id, new: found.map(|(id, _)| id), moves: found.is_some_and(looks_same) }
    };
    old.program.profiles.iter().map(pair).collect()
}

fn same_numbers(one: &Table, other: &Table) -> bool {
    one.actions.iter().map(|listed| listed.action).eq(other.actions.iter().map(|listed| listed.action))
}

/// Tables by name.
pub(super) fn table_pairs(old: &Schema, new: &Schema, profiles: &[Pair<ProfileId>]) -> Vec<Pair<TableId>> {
    let pair = |(id, table): (TableId, &Table)| {
        let found = by_name(old, new, id);
        let looks_same = |found: TableId| {
            let same_profile = match table.profile {
                Some(profile) => profiles.iter().any(|pair| pair.old == profile && pair.moves),
                None => new.program.tables[found].profile.is_none(),
            };
            same_profile && same_table(old, new, (id, found))
        };
        Pair { old: id, new: found, moves: found.is_some_and(looks_same) }
    };
    old.program.tables.iter().map(pair).collect()
}

fn by_name(old: &Schema, new: &Schema, table: TableId) -> Option<TableId> {
    let name = &old.program.tables[table].name;
    new.program.tables.iter().find(|(_, other)| other.name == *name).map(|(id, _)| id)
}
