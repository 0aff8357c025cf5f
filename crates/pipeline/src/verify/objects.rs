//! Actions, tables and stateful objects.

use super::{Location, Verifier};
use crate::*;
use cranelift_entity::EntitySet;
use foldhash::{HashSet, HashSetExt};

impl<'a> Verifier<'a> {
    pub(super) fn objects(&mut self) {
        let p = self.program;
        self.unique_names("table", p.tables.values().map(|t| t.name.as_str()));
        self.unique_names("action profile", p.profiles.values().map(|x| x.name.as_str()));
        let direct = p.tables.values().filter_map(|t| t.direct_counter.as_ref().map(|c| c.name.as_str()));
        self.unique_names("counter", p.counters.values().map(|x| x.name.as_str()).chain(direct));
        let direct = p.tables.values().filter_map(|t| t.direct_meter.as_ref().map(|c| c.name.as_str()));
        self.unique_names("meter", p.meters.values().map(|x| x.name.as_str()).chain(direct));
        self.unique_names("register", p.registers.values().map(|x| x.name.as_str()));
        self.unique_names("value set", p.value_sets.values().map(|x| x.name.as_str()));
        self.actions();
        self.stateful();
        for table in p.tables.values() {
            self.table(table);
        }
    }

    fn actions(&mut self) {
        let p = self.program;
        let mut bodies = EntitySet::<BodyId>::new();
        for action in p.actions.values() {
            let location = Location::Object("action", &action.name);
            self.require(!action.name.is_empty(), location, || "it has no name".into());
            match p.bodies.get(action.body) {
                None => self.report(location, format!("its {} does not exist", action.body)),
                Some(body) => {
                    self.require(body.kind == BodyKind::Action, location, || {
                        format!("its body {} is not the body of an action", body.name)
                    });
                    self.require(bodies.insert(action.body), location, || {
                        format!("its body {} is another action's", body.name)
                    });
                }
            }
            let mut params = HashSet::new();
            for param in &action.params {
                let Some(slot) = self.slot(location, *param) else { continue };
                self.require(slot.home == Home::Local, location, || {
                    format!("its parameter {} is not local", slot.name)
                });
                self.require(!matches!(slot.ty, Type::Varbit(_)), location, || {
                    format!("its parameter {} is {}", slot.name, slot.ty)
                });
                self.require(params.insert(param), location, || {
                    format!("{} is a parameter twice", slot.name)
                });
            }
        }
    }

    fn stateful(&mut self) {
        let p = self.program;
        for counter in p.counters.values() {
            let location = Location::Object("counter", &counter.name);
            self.counter_unit(location, counter.unit);
            self.at_most(location, "cells", counter.size, limits::MAX_ARRAY_SIZE);
        }
        for meter in p.meters.values() {
            let location = Location::Object("meter", &meter.name);
            self.at_most(location, "cells", meter.size, limits::MAX_ARRAY_SIZE);
            self.meter_unit(location, meter.unit);
        }
        for register in p.registers.values() {
            let location = Location::Object("register", &register.name);
            self.at_most(location, "cells", register.size, limits::MAX_ARRAY_SIZE);
            self.width(location, register.width);
            if let Some(initial) = &register.initial {
                self.width_is(location, initial, register.width);
            }
        }
        for set in p.value_sets.values() {
            let location = Location::Object("value set", &set.name);
            self.at_most(location, "members", set.size, limits::MAX_TABLE_SIZE);
            self.require(!set.fields.is_empty(), location, || "it has no fields".into());
            set.fields.iter().for_each(|(_, width, _)| self.width(location, *width));
        }
        for profile in p.profiles.values() {
            let location = Location::Object("action profile", &profile.name);
            self.at_most(location, "members", profile.size, limits::MAX_TABLE_SIZE);
            if let Some(selector) = &profile.selector {
                self.require((1..=64).contains(&selector.width), location, || {
                    format!("a selector hash of {} bits is not within 1 to 64", selector.width)
                });
            }
        }
        self.unique_names("own hash", p.hashes.values().map(|x| x.name.as_str()));
        for hash in p.hashes.values() {
            let location = Location::Object("own hash", &hash.name);
            self.require(CrcParameters::of(hash.algorithm).is_some(), location, || {
                format!("{} has no parameters", hash.algorithm.name())
            });
        }
        self.unique_names("plugin", p.plugins.values().map(|x| x.name.as_str()));
        self.at_most(Location::Program, "plugins", p.plugins.len() as u64, limits::MAX_PLUGINS as u64);
        let mut digests = HashSet::new();
        for digest in p.digests.values() {
            let location = Location::Object("digest", &digest.name);
            self.require(digests.insert((&digest.name, digest.receiver)), location, || {
                format!("two digests have this name and receiver {}", digest.receiver)
            });
            digest.members.iter().for_each(|(_, ty)| self.ty(location, *ty));
        }
    }

    fn meter_unit(&mut self, location: Location<'_>, unit: Unit) {
        self.require(unit != Unit::PacketsAndBytes, location, || {
            "a meter measures packets or bytes, or is an account".into()
        });
    }

    fn counter_unit(&mut self, location: Location<'_>, unit: Unit) {
        self.require(unit != Unit::Account, location, || "a counter is no account".into());
    }

    fn table(&mut self, table: &'a Table) {
        let p = self.program;
        let location = Location::Object("table", &table.name);
        let widths: Vec<Option<u32>> = table
            .keys
            .iter()
            .map(|key| self.bits_expr(location, &key.value, &format!("key {}", key.name)))
            .collect();
        let lpm = table.keys.iter().filter(|k| k.kind == MatchKind::Lpm).count();
        self.require(lpm <= 1, location, || "it has more than one lpm key".into());
        self.at_most(location, "entries", table.size, limits::MAX_TABLE_SIZE);
        self.at_most(location, "entries at the start", table.entries.len() as u64, table.size);
        self.at_most(location, "actions", table.actions.len() as u64, 1 << 16);
        let mut names = HashSet::new();
        for TableAction { action, .. } in &table.actions {
            match p.actions.get(*action) {
                None => self.report(location, format!("{action} does not exist")),
                Some(action) => self.require(names.insert(&action.name), location, || {
                    format!("two of its actions are called {}", action.name)
                }),
            }
        }
        self.call(location, table, &table.default, Some(ActionScope::TableOnly));
        let priorities = table
            .keys
            .iter()
            .any(|k| matches!(k.kind, MatchKind::Ternary | MatchKind::Range | MatchKind::Optional));
        for (index, entry) in table.entries.iter().enumerate() {
            let name = format!("{}, entry {index}", table.name);
            let location = Location::Object("table", &name);
            self.call(location, table, &entry.call, Some(ActionScope::DefaultOnly));
            self.require(priorities || entry.priority == 0, location, || {
                "a table without ternary, range or optional keys knows no priorities".into()
            });
            let (given, wanted) = (entry.matches.len(), table.keys.len());
            self.require(given == wanted, location, || format!("{given} matches for {wanted} keys"));
            self.require(wanted > 0, location, || "a table without keys has no entries".into());
            for ((matching, key), width) in entry.matches.iter().zip(&table.keys).zip(&widths) {
                if let Some(width) = width {
                    self.entry_match(location, matching, key, *width);
                }
            }
        }
        self.table_objects(location, table);
    }

    fn table_objects(&mut self, location: Location<'_>, table: &Table) {
        let p = self.program;
        let mut selects = false;
        if let Some(id) = table.profile {
            let profile = p.profiles.get(id);
            self.require(profile.is_some(), location, || format!("{id} does not exist"));
            selects = profile.is_some_and(|x| x.selector.is_some());
        }
        self.require(selects || table.selector_inputs.is_empty(), location, || {
            "it has selector inputs and no profile with a selector".into()
        });
        for input in &table.selector_inputs {
            self.bits_expr(location, input, "a selector input");
        }
        self.require(selects || table.empty_group.is_none(), location, || {
            "it has an action for empty groups and no profile with a selector".into()
        });
        if let Some(call) = &table.empty_group {
            self.call(location, table, call, None);
        }
        if let Some(counter) = &table.direct_counter {
            self.counter_unit(location, counter.unit);
        }
        if let Some(meter) = &table.direct_meter {
            self.meter_unit(location, meter.unit);
            if let Some(slot) = meter.at_hit {
                self.bits_slot(location, slot);
            }
        }
    }

    fn call(
        &mut self,
        location: Location<'_>,
        table: &Table,
        call: &ActionCall,
        barred: Option<ActionScope>,
    ) {
        let p = self.program;
        let Some(listed) = table.actions.get(call.action) else {
            return self.report(
                location,
                format!("action {} is not in the list of {}", call.action, table.actions.len()),
            );
        };
        let Some(action) = p.actions.get(listed.action) else { return };
        let name = &action.name;
        self.require(barred != Some(listed.scope), location, || match barred {
            Some(ActionScope::TableOnly) => format!("{name} may not be the default"),
            _ => format!("{name} may only be the default"),
        });
        let (given, wanted) = (call.args.len(), action.params.len());
        self.require(given == wanted, location, || {
            format!("{given} arguments for {wanted} parameters of {name}")
        });
        for (arg, param) in call.args.iter().zip(&action.params) {
            match p.slots.get(*param).map(|s| s.ty) {
                Some(Type::Bits(width)) => self.width_is(location, arg, width),
                Some(Type::Bool) => self.width_is(location, arg, 1),
                _ => {}
            }
        }
    }

    fn entry_match(&mut self, location: Location<'_>, matching: &EntryMatch, key: &TableKey, width: u32) {
        let kind = match matching {
            EntryMatch::Exact(value) => {
                self.width_is(location, value, width);
                MatchKind::Exact
            }
            EntryMatch::Lpm(value, prefix) => {
                self.width_is(location, value, width);
                self.require(*prefix <= width, location, || format!("a prefix of {prefix} in {width} bits"));
                MatchKind::Lpm
            }
            EntryMatch::Ternary(value, mask) => {
                self.width_is(location, value, width);
                self.width_is(location, mask, width);
                MatchKind::Ternary
            }
            EntryMatch::Range(low, high) => {
                self.width_is(location, low, width);
                self.width_is(location, high, width);
                self.require(low.cmp_unsigned(high).is_le(), location, || {
                    format!("the range {low} .. {high} is empty")
                });
                MatchKind::Range
            }
            EntryMatch::Optional(value) => {
                if let Some(value) = value {
                    self.width_is(location, value, width);
                }
                MatchKind::Optional
            }
        };
        self.require(kind == key.kind, location, || {
            format!("key {} is {}, its match {}", key.name, key.kind.name(), kind.name())
        });
    }
}
