//! Entries, members and groups as bmv2's tools lay them out.

use crate::execute::Shell;
use crate::schema::{Action, Table};
use crate::trouble::Trouble;
use crate::words::hex;
use millrace_commands::Command;
use millrace_thrift_api::{ActionEntry, ActionEntryType, Entry, Group, MatchParam, Member};
use std::io::{self, Write};

impl Shell {
    pub(crate) fn show_table(
        &mut self,
        command: &Command<'_, '_>,
        out: &mut dyn Write,
    ) -> Result<(), Trouble> {
        match command {
            Command::ShowTables => {
                for (name, table) in &self.schema.tables {
                    writeln!(out, "{}", table_line(name, table))?;
                }
            }
            Command::ShowActions => {
                for (name, action) in &self.schema.actions {
                    writeln!(out, "{}", action_line(name, action))?;
                }
            }
            Command::TableInfo { table } => {
                let (name, table) = self.table(*table)?;
                writeln!(out, "{}", table_line(name, table))?;
                writeln!(out, "{}", "*".repeat(80))?;
                self.actions_of(table, out)?;
            }
            Command::TableShowActions { table } => {
                let (_, table) = self.table(*table)?;
                self.actions_of(table, out)?;
            }
            Command::TableNumEntries { table } => {
                let name = self.table_name(*table)?;
                writeln!(out, "{}", self.client.bm_mt_get_num_entries(name)?)?;
            }
            Command::TableDump { table } => self.table_dump(*table, out)?,
            Command::TableDumpEntry { table, handle } => {
                let name = self.table_name(*table)?;
                let entry = self.client.bm_mt_get_entry(name, crate::words::handle(*handle))?;
                let (_, table) = self.table(*table)?;
                show_entry(table, &entry, out)?;
            }
            Command::TableDumpEntryFromKey { table, key } => {
                let (full, found) = self.table(*table)?;
                let (key, options) = crate::words::priority(found, key)?;
                let key = crate::words::match_key(table.text, found, key)?;
                let entry = self.client.bm_mt_get_entry_from_key(full.to_owned(), key, options);
                let (_, found) = self.table(*table)?;
                show_entry(found, &entry?, out)?;
            }
            // Every other command has a handler of its own.
            _ => {}
        }
        Ok(())
    }

    fn actions_of(&self, table: &Table, out: &mut dyn Write) -> io::Result<()> {
        let actions = table.actions.iter().filter_map(|name| self.schema.actions.get_key_value(name));
        for (name, action) in actions {
            writeln!(out, "{}", action_line(name, action))?;
        }
        Ok(())
    }

    fn table_dump(&mut self, word: millrace_commands::Word<'_>, out: &mut dyn Write) -> Result<(), Trouble> {
        let name = self.table_name(word)?;
        let entries = self.client.bm_mt_get_entries(name.clone())?;
        writeln!(out, "==========\nTABLE ENTRIES")?;
        let (_, table) = self.table(word)?;
        for entry in &entries {
            writeln!(out, "**********")?;
            show_entry(table, entry, out)?;
        }
        if let Some(profile) = table.profile.clone() {
            self.dump_profile(&profile, out)?;
        }
        let default = self.client.bm_mt_get_default_entry(name)?;
        writeln!(out, "==========\nDumping default entry")?;
        show_action(&default, out)?;
        writeln!(out, "==========")?;
        Ok(())
    }
}

fn table_line(name: &str, table: &Table) -> String {
    let key = table.key.iter().map(|field| format!("{}({}, {})", field.name, field.kind.name(), field.width));
    let profile = table.profile.as_deref().unwrap_or("None");
    format!("{name:30} [implementation={profile}, mk={}]", key.collect::<Vec<_>>().join(",\t"))
}

fn action_line(name: &str, Action(params): &Action) -> String {
    let params = params.iter().map(|(param, width)| format!("{param}({width})"));
    format!("{name:30} [{}]", params.collect::<Vec<_>>().join(",\t"))
}

fn show_entry(table: &Table, entry: &Entry, out: &mut dyn Write) -> io::Result<()> {
    let widest = table.key.iter().map(|field| field.name.len()).max().unwrap_or(0).max(20);
    // Handles are shown without a sign.
    writeln!(out, "Dumping entry {:#x}\nMatch key:", entry.entry_handle as u32)?;
    for (field, param) in table.key.iter().zip(&entry.match_key) {
        writeln!(out, "* {:widest$}: {:10}{}", field.name, field.kind.shown(), shown(param, "", true))?;
    }
    if let Some(priority) = entry.options.priority.filter(|priority| *priority >= 0) {
        writeln!(out, "Priority: {priority}")?;
    }
    show_action(&entry.action_entry, out)?;
    if let Some(life) = &entry.life {
        writeln!(out, "Life: {}ms since hit, timeout is {}ms", life.time_since_hit_ms, life.timeout_ms)?;
    }
    Ok(())
}

/// A match field: its bytes with `between` between them. Dumps show the value of a validity bit.
pub(crate) fn shown(param: &MatchParam, between: &str, validity: bool) -> String {
    let hex = |bytes: &[u8]| hex(bytes, between);
    if let Some(exact) = &param.exact {
        hex(&exact.key)
    } else if let Some(lpm) = &param.lpm {
        format!("{}/{}", hex(&lpm.key), lpm.prefix_length)
    } else if let Some(ternary) = &param.ternary {
        format!("{} &&& {}", hex(&ternary.key), hex(&ternary.mask))
    } else if let Some(range) = &param.range {
        format!("{} -> {}", hex(&range.start), hex(&range.end))
    } else if let (Some(valid), true) = (&param.valid, validity) {
        format!("{:02}", u8::from(valid.key))
    } else {
        String::new()
    }
}

fn show_action(entry: &ActionEntry, out: &mut dyn Write) -> io::Result<()> {
    let number = |handle: Option<i32>| handle.unwrap_or_default() as u32;
    match entry.action_type {
        ActionEntryType::None => writeln!(out, "EMPTY"),
        ActionEntryType::ActionData => {
            let data = entry.action_data.as_deref().unwrap_or_default();
            writeln!(out, "{}", call(entry.action_name.as_deref().unwrap_or_default(), data))
        }
        ActionEntryType::Member => writeln!(out, "Index: member({})", number(entry.mbr_handle)),
        ActionEntryType::Group => writeln!(out, "Index: group({})", number(entry.grp_handle)),
    }
}

fn call(name: &str, data: &[Vec<u8>]) -> String {
    let data: Vec<String> = data.iter().map(|value| hex(value, "")).collect();
    format!("Action entry: {name} - {}", data.join(", "))
}

pub(crate) fn show_member(member: &Member, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "Dumping member {}", member.mbr_handle as u32)?;
    writeln!(out, "{}", call(&member.action_name, &member.action_data))
}

pub(crate) fn show_group(group: &Group, out: &mut dyn Write) -> io::Result<()> {
    let members: Vec<String> = group.mbr_handles.iter().map(|handle| (*handle as u32).to_string()).collect();
    writeln!(out, "Dumping group {}\nMembers: [{}]", group.grp_handle as u32, members.join(", "))
}
