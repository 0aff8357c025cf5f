//! Objects by the names that the control plane gives them.
//!
//! A name is the full name of the program (`ingress.ipv4_lpm`) or the end of one after a dot (`ipv4_lpm`), as long as
//! only one object's name ends so. A full name comes before the end of another.

use crate::cells::{CounterRef, MeterRef};
use crate::schema::short;
use crate::state::State;
use crate::{ObjectKind, WriteError};
use millrace_pipeline::*;

impl State {
    /// A table.
    ///
    /// # Errors
    /// No such table, or several.
    pub fn table_named(&self, name: &str) -> Result<TableId, WriteError> {
        find_named(
            ObjectKind::Table,
            name,
            self.schema.program.tables.iter().map(|(id, table)| (id, table.name.as_str())),
        )
    }

    /// An action of a table: its index in [`Table::actions`].
    ///
    /// # Errors
    /// No such action in the table, or several.
    pub fn action_named(&self, table: TableId, name: &str) -> Result<usize, WriteError> {
        let actions = self.schema.program.tables[table].actions.iter().enumerate();
        let named =
            actions.map(|(at, listed)| (at, self.schema.program.actions[listed.action].name.as_str()));
        find_named(ObjectKind::Action, name, named)
    }

    /// An action that members of a profile may have: one of the tables that use the profile.
    ///
    /// # Errors
    /// No such action in these tables, or several.
    pub fn member_action_named(&self, profile: ProfileId, name: &str) -> Result<ActionId, WriteError> {
        let mut named: Vec<(ActionId, &str)> = Vec::new();
        for table in self.schema.program.tables.values().filter(|table| table.profile == Some(profile)) {
            for listed in &table.actions {
                let name = self.schema.program.actions[listed.action].name.as_str();
                if !named.iter().any(|(_, other)| *other == name) {
                    named.push((listed.action, name));
                }
            }
        }
        find_named(ObjectKind::Action, name, named.into_iter())
    }

    /// The names of the parameters of an action: those of the source, without what they are in.
    pub fn param_names(&self, action: ActionId) -> impl ExactSizeIterator<Item = &str> {
        let program = &self.schema.program;
        program.actions[action].params.iter().map(|slot| short(&program.slots[*slot].name))
    }

    /// An action profile or selector.
    ///
    /// # Errors
    /// No such profile, or several.
    pub fn profile_named(&self, name: &str) -> Result<ProfileId, WriteError> {
        find_named(
            ObjectKind::Profile,
            name,
            self.schema.program.profiles.iter().map(|(id, p)| (id, p.name.as_str())),
        )
    }

    /// The profile of a table.
    ///
    /// # Errors
    /// The table has none.
    pub fn profile_of(&self, table: TableId) -> Result<ProfileId, WriteError> {
        self.schema.profile_of(table)
    }

    /// An indexed or a direct counter.
    ///
    /// # Errors
    /// No such counter, or several.
    pub fn counter_named(&self, name: &str) -> Result<CounterRef, WriteError> {
        Names(&self.schema.program).counter(name)
    }

    /// An indexed or a direct meter.
    ///
    /// # Errors
    /// No such meter, or several.
    pub fn meter_named(&self, name: &str) -> Result<MeterRef, WriteError> {
        Names(&self.schema.program).meter(name)
    }

    /// A register.
    ///
    /// # Errors
    /// No such register, or several.
    pub fn register_named(&self, name: &str) -> Result<RegisterId, WriteError> {
        Names(&self.schema.program).register(name)
    }

    /// A parser value set.
    ///
    /// # Errors
    /// No such value set, or several.
    pub fn value_set_named(&self, name: &str) -> Result<ValueSetId, WriteError> {
        Names(&self.schema.program).value_set(name)
    }
}

/// The stateful objects of a program by name, for whoever has no [`State`] of it.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a>(pub &'a Program);

impl Names<'_> {
    /// An indexed or a direct counter.
    ///
    /// # Errors
    /// No such counter, or several.
    pub fn counter(self, name: &str) -> Result<CounterRef, WriteError> {
        let Names(program) = self;
        let indexed = program.counters.iter().map(|(id, c)| (CounterRef::Indexed(id), c.name.as_str()));
        let direct = program.tables.iter().filter_map(|(id, table)| {
            Some((CounterRef::Direct(id), table.direct_counter.as_ref()?.name.as_str()))
        });
        find_named(ObjectKind::Counter, name, indexed.chain(direct))
    }

    /// An indexed or a direct meter.
    ///
    /// # Errors
    /// No such meter, or several.
    pub fn meter(self, name: &str) -> Result<MeterRef, WriteError> {
        let Names(program) = self;
        let indexed = program.meters.iter().map(|(id, m)| (MeterRef::Indexed(id), m.name.as_str()));
        let direct = program.tables.iter().filter_map(|(id, table)| {
            Some((MeterRef::Direct(id), table.direct_meter.as_ref()?.name.as_str()))
        });
        find_named(ObjectKind::Meter, name, indexed.chain(direct))
    }

    /// A register.
    ///
    /// # Errors
    /// No such register, or several.
    pub fn register(self, name: &str) -> Result<RegisterId, WriteError> {
        let registers = self.0.registers.iter();
        find_named(ObjectKind::Register, name, registers.map(|(id, register)| (id, register.name.as_str())))
    }

    /// A parser value set.
    ///
    /// # Errors
    /// No such value set, or several.
    pub fn value_set(self, name: &str) -> Result<ValueSetId, WriteError> {
        let sets = self.0.value_sets.iter();
        find_named(ObjectKind::ValueSet, name, sets.map(|(id, set)| (id, set.name.as_str())))
    }
}

/// The one of some objects that has a name, as all names here are understood: the full one, or the end of one after a
/// dot.
///
/// # Errors
/// No such object, or several.
pub fn find_named<'a, T: Copy>(
    kind: ObjectKind,
    name: &str,
    objects: impl Iterator<Item = (T, &'a str)>,
) -> Result<T, WriteError> {
    let objects: Vec<(T, &str)> = objects.collect();
    if let Some((found, _)) = objects.iter().find(|(_, full)| *full == name) {
        return Ok(*found);
    }
    let ends_so = |full: &str| full.strip_suffix(name).is_some_and(|front| front.ends_with('.'));
    let matching: Vec<&(T, &str)> =
        objects.iter().filter(|(_, full)| !name.is_empty() && ends_so(full)).collect();
    let full_names = |found: &mut dyn Iterator<Item = &str>| found.map(str::to_owned).collect::<Vec<_>>();
    match matching.as_slice() {
        [(found, _)] => Ok(*found),
        [] => Err(WriteError::Unknown {
            kind,
            name: name.to_owned(),
            known: full_names(&mut objects.iter().map(|(_, full)| *full)),
        }),
        several => Err(WriteError::Ambiguous {
            kind,
            name: name.to_owned(),
            candidates: full_names(&mut several.iter().map(|(_, full)| *full)),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_in(name: &str, names: &[&str]) -> Result<usize, WriteError> {
        find_named(ObjectKind::Table, name, names.iter().enumerate().map(|(at, name)| (at, *name)))
    }

    #[test]
    fn full_names_and_unambiguous_ends_are_found() {
        let names = ["ingress.t", "ingress.sub.t2", "egress.u", "u"];
        assert_eq!(find_in("ingress.t", &names), Ok(0));
        assert_eq!(find_in("t", &names), Ok(0));
        assert_eq!(find_in("sub.t2", &names), Ok(1));
        assert_eq!(find_in("u", &names), Ok(3), "a full name comes first");
    }

    #[test]
    fn errors_tell_what_there_is() {
        let names = ["ingress.t", "egress.t"];
        assert_eq!(
            find_in("t", &names).unwrap_err().to_string(),
            "table `t` is ambiguous: it can be `ingress.t`, `egress.t`"
        );
        assert_eq!(
            find_in("ss.t", &names).unwrap_err().to_string(),
            "no table named `ss.t`, there is `ingress.t`, `egress.t`"
        );
        assert_eq!(find_in("t", &[]).unwrap_err().to_string(), "no table named `t`: there is none here");
        assert!(find_in("", &["a."]).is_err());
    }
}
