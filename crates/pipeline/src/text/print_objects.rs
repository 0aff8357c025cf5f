//! Printing: actions, tables and stateful objects.

use super::names::written;
use super::print::{Printer, put};
use crate::*;
use foldhash::{HashMap, HashMapExt};
use std::fmt::Write;

impl Printer<'_> {
    pub(super) fn objects(&mut self) {
        let p = self.program;
        let start = self.out.len();
        for x in p.counters.values() {
            put!(self, "counter {} size {} {}\n", written(&x.name), x.size, x.unit.name());
        }
        for x in p.meters.values() {
            put!(self, "meter {} size {} {}\n", written(&x.name), x.size, x.unit.name());
        }
        for x in p.registers.values() {
            put!(self, "register {}: bit<{}> size {}", written(&x.name), x.width, x.size);
            if let Some(initial) = &x.initial {
                put!(self, " initial {initial}");
            }
            put!(self, "\n");
        }
        for x in p.value_sets.values() {
            let fields: Vec<String> = x
                .fields
                .iter()
                .map(|(name, width, kind)| format!("{}: bit<{width}> {}", written(name), kind.name()))
                .collect();
            put!(self, "value_set {} ({}) size {}\n", written(&x.name), fields.join(", "), x.size);
        }
        for x in p.hashes.values() {
            put!(self, "own_hash {} {}\n", written(&x.name), x.algorithm.name());
        }
        for x in p.digests.values() {
            let members: Vec<String> =
                x.members.iter().map(|(name, ty)| format!("{}: {ty}", written(name))).collect();
            put!(self, "digest {} ({}) receiver {}\n", written(&x.name), members.join(", "), x.receiver);
        }
        for x in p.plugins.values() {
            let rewrites = if x.rewrites { " rewrites" } else { "" };
            let passes = if x.passes { " passes" } else { "" };
            put!(self, "plugin {}{rewrites}{passes}\n", written(&x.name));
        }
        for x in p.profiles.values() {
            put!(self, "profile {} size {}", written(&x.name), x.size);
            if let Some(s) = &x.selector {
                put!(
                    self,
                    " selector {} width {} max_group_size {}",
                    s.algorithm.name(),
                    s.width,
                    s.max_group_size
                );
            }
            put!(self, "\n");
        }
        for x in p.actions.values() {
            let params = self.slots(&x.params);
            let body = p.bodies.get(x.body).map_or_else(|| format!("{}?", x.body), |b| written(&b.name));
            put!(self, "action {} ({params}) = {body}\n", written(&x.name));
        }
        if self.out.len() > start {
            self.out.insert(start, '\n');
        }
        for table in p.tables.values() {
            self.table(table);
        }
    }

    fn table(&mut self, table: &Table) {
        put!(self, "\ntable {} {{\n", written(&table.name));
        for key in &table.keys {
            let value = self.expr(&key.value);
            put!(self, "    key {}: {} = {value}\n", written(&key.name), key.kind.name());
        }
        for listed in &table.actions {
            let action = self.action(listed.action);
            let scope = match listed.scope {
                ActionScope::Both => "",
                ActionScope::TableOnly => " table_only",
                ActionScope::DefaultOnly => " default_only",
            };
            put!(self, "    action {action}{scope}\n");
        }
        let mut listed: HashMap<&str, usize> = HashMap::new();
        for action in table.actions.iter().filter_map(|a| self.program.actions.get(a.action)) {
            *listed.entry(&action.name).or_default() += 1;
        }
        let call = self.call(table, &listed, &table.default);
        put!(self, "    {} {call}\n", if table.const_default { "const_default" } else { "default" });
        put!(self, "    size {}\n", table.size);
        if table.const_entries {
            put!(self, "    const_entries\n");
        }
        for entry in &table.entries {
            let matches: Vec<String> = entry.matches.iter().map(entry_match).collect();
            let call = self.call(table, &listed, &entry.call);
            put!(self, "    entry ");
            if entry.is_const {
                put!(self, "const ");
            }
            if entry.priority != 0 {
                put!(self, "priority {} ", entry.priority);
            }
            put!(self, "({}) => {call}\n", matches.join(", "));
        }
        if let Some(profile) = table.profile {
            let profile = self
                .program
                .profiles
                .get(profile)
                .map_or_else(|| format!("{profile}?"), |x| written(&x.name));
            put!(self, "    profile {profile}\n");
        }
        for input in &table.selector_inputs {
            let input = self.expr(input);
            put!(self, "    selector_input {input}\n");
        }
        if let Some(call) = &table.empty_group {
            let call = self.call(table, &listed, call);
            put!(self, "    empty_group {call}\n");
        }
        if let Some(counter) = &table.direct_counter {
            let at_hit = if counter.at_hit { " at_hit" } else { "" };
            put!(self, "    direct_counter {} {}{at_hit}\n", written(&counter.name), counter.unit.name());
        }
        if let Some(meter) = &table.direct_meter {
            put!(self, "    direct_meter {} {}", written(&meter.name), meter.unit.name());
            if let Some(slot) = meter.at_hit {
                let slot = self.slot(slot);
                put!(self, " at_hit {slot}");
            }
            put!(self, "\n");
        }
        if table.idle_timeout {
            put!(self, "    idle_timeout\n");
        }
        put!(self, "}}\n");
    }

    /// An action by its name, and its number when others share the name.
    fn action(&self, id: ActionId) -> String {
        let Some(action) = self.program.actions.get(id) else { return format!("{id}?") };
        let shared = self.times.get(action.name.as_str()).is_some_and(|times| *times > 1);
        if shared { format!("{}#{}", written(&action.name), id.as_u32()) } else { written(&action.name) }
    }

    /// An action of a table by its name, or by its place in the list when the name does not tell. `listed` says how many actions
    /// of the table have each name.
    fn call(&self, table: &Table, listed: &HashMap<&str, usize>, call: &ActionCall) -> String {
        let action = table.actions.get(call.action).and_then(|a| self.program.actions.get(a.action));
        let args: Vec<String> = call.args.iter().map(Bits::to_string).collect();
        let place = match action {
            Some(action) if listed.get(action.name.as_str()) == Some(&1) => written(&action.name),
            _ => format!("#{}", call.action),
        };
        format!("{place}({})", args.join(", "))
    }
}

fn entry_match(matching: &EntryMatch) -> String {
    match matching {
        EntryMatch::Exact(value) => value.to_string(),
        EntryMatch::Lpm(value, prefix) => format!("{value}/{prefix}"),
        EntryMatch::Ternary(value, mask) => format!("{value} &&& {mask}"),
        EntryMatch::Range(low, high) => format!("{low} .. {high}"),
        EntryMatch::Optional(Some(value)) => format!("={value}"),
        EntryMatch::Optional(None) => "_".into(),
    }
}
