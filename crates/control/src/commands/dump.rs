//! What commands show of tables.

use super::execute::{Executor, Reply, entry_handle, entry_index, refused};
use millrace_commands::Word;
use millrace_commands::{Refusal, bmv2_priority, matching};
use millrace_pipeline::Bits;
use millrace_pipeline::{ActionCall, ActionId, EntryMatch, MatchKind, TableId};
use millrace_state::{EntryIndex, EntryView, TableError, Target};
use std::fmt::Write;

impl<'a> Executor<'_, 'a> {
    pub(super) fn show_tables(&self) -> String {
        let program = self.switch.state().program();
        program.tables.keys().map(|table| self.table_line(table)).collect()
    }

    fn table_line(&self, table: TableId) -> String {
        let program = self.switch.state().program();
        let shown = &program.tables[table];
        let profile = shown.profile.map_or("None", |profile| &program.profiles[profile].name);
        let widths = self.switch.state().key_widths(table);
        let keys = shown
            .keys
            .iter()
            .zip(widths)
            .map(|(key, width)| format!("{}({}, {width})", key.name, matching::kind_name(key.kind)));
        let keys = keys.collect::<Vec<_>>().join(",\t");
        format!("{:30} [implementation={profile}, mk={keys}]\n", shown.name)
    }

    pub(super) fn show_actions(&self) -> String {
        let program = self.switch.state().program();
        let mut seen = Vec::new();
        let mut text = String::new();
        for (id, action) in &program.actions {
            // Actions that tables bind arguments to are copies of one name.
            if !seen.contains(&&action.name) {
                seen.push(&action.name);
                text += &self.action_line(id);
            }
        }
        text
    }

    fn action_line(&self, action: ActionId) -> String {
        let state = self.switch.state();
        let shown = &state.program().actions[action];
        let params = state.param_names(action).zip(state.param_widths(action));
        let params = params.map(|(name, width)| format!("{name}({width})"));
        format!("{:30} [{}]\n", shown.name, params.collect::<Vec<_>>().join(",\t"))
    }

    pub(super) fn show_ports(&self) -> String {
        let mut text = String::from("port #    packets in    packets out\n");
        for (port, counters) in self.switch.counters().ports() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{port:<6} {:>13} {:>14}", counters.rx_packets, counters.tx_packets);
        }
        text
    }

    pub(super) fn table_info(&mut self, table: Word<'a>) -> Result<Reply, Refusal> {
        let id = self.table(table)?;
        let mut text = self.table_line(id);
        text.push_str("********************************************************************************\n");
        for listed in &self.switch.state().program().tables[id].actions {
            text += &self.action_line(listed.action);
        }
        Ok(Reply::Text(text))
    }

    pub(super) fn table_actions(&mut self, table: Word<'a>) -> Result<Reply, Refusal> {
        let id = self.table(table)?;
        let actions = &self.switch.state().program().tables[id].actions;
        Ok(Reply::Text(actions.iter().map(|listed| self.action_line(listed.action)).collect()))
    }

    pub(super) fn table_dump(&mut self, table: Word<'a>) -> Result<Reply, Refusal> {
        let id = self.table(table)?;
        let mut text = String::from("==========\nTABLE ENTRIES\n");
        for entry in self.tables.entries(id) {
            text.push_str("**********\n");
            text += &self.view_text(id, &entry);
        }
        if let Some(profile) = self.switch.state().program().tables[id].profile {
            text += &self.profile_text(profile);
        }
        text.push_str("==========\nDumping default entry\n");
        text += &self.target_text(id, &self.tables.default_target(id));
        text.push_str("==========\n");
        Ok(Reply::Text(text))
    }

    pub(super) fn dump_entry(&mut self, table: Word<'a>, handle: (u32, Word<'a>)) -> Result<Reply, Refusal> {
        let id = self.table(table)?;
        let index = entry_index(handle.0);
        if self.tables.entry(id, index).is_none() {
            return Err(refused(handle.1.at(), TableError::NotFound.into()));
        }
        Ok(Reply::Text(self.entry_text(id, index)))
    }

    pub(super) fn entry_text(&self, table: TableId, index: EntryIndex) -> String {
        self.tables.entry(table, index).map_or_else(String::new, |entry| self.view_text(table, &entry))
    }

    fn view_text(&self, table: TableId, entry: &EntryView) -> String {
        let keys = &self.switch.state().program().tables[table].keys;
        let widest = keys.iter().map(|key| key.name.len()).max().unwrap_or(0).max(20);
        let mut text = format!("Dumping entry {:#x}\nMatch key:\n", entry_handle(entry.index));
        for (key, field) in keys.iter().zip(&entry.matches) {
            let kind = matching::kind_name(key.kind).to_uppercase();
            // Writing to a string cannot fail.
            let _ = writeln!(text, "* {:widest$}: {kind:10}{}", key.name, plain(field, key.kind));
        }
        if self.switch.state().needs_priority(table) {
            let _ = writeln!(text, "Priority: {}", bmv2_priority(entry.priority));
        }
        text += &self.target_text(table, &entry.target);
        if entry.idle_timeout_ns != 0 {
            let _ = writeln!(text, "Life: timeout is {}ms", entry.idle_timeout_ns / 1_000_000);
        }
        text
    }

    fn target_text(&self, table: TableId, target: &Target) -> String {
        match target {
            Target::Action(call) => self.call_text(table, call),
            Target::Member(member) => format!("Index: member({member})\n"),
            Target::Group(group) => format!("Index: group({group})\n"),
        }
    }

    fn call_text(&self, table: TableId, call: &ActionCall) -> String {
        let program = self.switch.state().program();
        let action = program.tables[table].actions.get(call.action);
        let name = action.map_or("", |listed| &program.actions[listed.action].name);
        action_text(name, &call.args)
    }
}

/// An action with its data.
pub(super) fn action_text(name: &str, args: &[millrace_pipeline::Bits]) -> String {
    let args = args.iter().map(Bits::to_hex).collect::<Vec<_>>().join(", ");
    format!("Action entry: {name} - {args}\n")
}

/// A match field without `0x`, as bmv2 shows it.
fn plain(field: &EntryMatch, kind: MatchKind) -> String {
    match field {
        EntryMatch::Exact(value) => value.to_hex(),
        EntryMatch::Lpm(value, length) => format!("{}/{length}", value.to_hex()),
        EntryMatch::Ternary(value, mask) => format!("{} &&& {}", value.to_hex(), mask.to_hex()),
        EntryMatch::Range(low, high) => format!("{} -> {}", low.to_hex(), high.to_hex()),
        EntryMatch::Optional(Some(value)) => value.to_hex(),
        EntryMatch::Optional(None) => format!("any {}", matching::kind_name(kind)),
    }
}
