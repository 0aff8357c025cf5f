//! Commands that change tables.

use crate::execute::Shell;
use crate::schema::{Action, Table, find};
use crate::show::shown;
use crate::trouble::Trouble;
use crate::words::{action_data, handle, hex, match_key, number, priority};
use millrace_commands::{Command, Word};
use millrace_thrift_api::ActionData;
use std::io::{self, Write};

impl Shell {
    pub(crate) fn change_table(
        &mut self,
        command: &Command<'_, '_>,
        out: &mut dyn Write,
    ) -> Result<(), Trouble> {
        match command {
            Command::TableAdd { table, action, matches, args } => {
                self.table_add(*table, *action, (matches, args), out)
            }
            Command::TableSetDefault { table, action, args } => {
                let (name, found) = self.table(*table)?;
                let (called, data) = self.call(*table, found, *action, args)?;
                let (name, called) = (name.to_owned(), called.to_owned());
                writeln!(out, "Setting default action of {}", table.text)?;
                show_call(action.text, &data, out)?;
                Ok(self.client.bm_mt_set_default_action(name, called, data)?)
            }
            Command::TableResetDefault { table } => {
                let name = self.table_name(*table)?;
                Ok(self.client.bm_mt_reset_default_entry(name)?)
            }
            Command::TableModify { table, action, handle: entry, args } => {
                let (name, found) = self.table(*table)?;
                let (called, data) = self.call(*table, found, *action, args)?;
                let (name, called) = (name.to_owned(), called.to_owned());
                let (kind, number) = (&found.match_type, entry.0);
                writeln!(out, "Modifying entry {number} for {kind} match table {}", table.text)?;
                Ok(self.client.bm_mt_modify_entry(name, handle(*entry), called, data)?)
            }
            Command::TableDelete { table, handle: entry } => {
                let (name, found) = self.table(*table)?;
                let (name, indirect) = (name.to_owned(), found.profile.is_some());
                writeln!(out, "Deleting entry {} from {}", entry.0, table.text)?;
                match indirect {
                    true => self.client.bm_mt_indirect_delete_entry(name, handle(*entry))?,
                    false => self.client.bm_mt_delete_entry(name, handle(*entry))?,
                }
                Ok(())
            }
            Command::TableSetTimeout { table, handle: entry, milliseconds } => {
                let (name, found) = self.table(*table)?;
                if !found.idle_timeout {
                    let message = format!("Table {} does not support entry timeouts", table.text);
                    return Err(Trouble::wrong(message));
                }
                let (name, indirect) = (name.to_owned(), found.profile.is_some());
                let timeout = number("timeout", *milliseconds)?;
                writeln!(out, "Setting a {timeout} ms timeout for entry {}", entry.0)?;
                match indirect {
                    true => self.client.bm_mt_indirect_set_entry_ttl(name, handle(*entry), timeout)?,
                    false => self.client.bm_mt_set_entry_ttl(name, handle(*entry), timeout)?,
                }
                Ok(())
            }
            Command::TableClear { table } => {
                let name = self.table_name(*table)?;
                Ok(self.client.bm_mt_clear_entries(name, false)?)
            }
            Command::IndirectAdd { table, matches, target, group } => {
                self.indirect_add(*table, matches, target, *group, out)
            }
            Command::IndirectSetDefault { table, target, group } => {
                let (name, ..) = self.schema.indirect(table.text, *group)?;
                let name = name.to_owned();
                match group {
                    true => self.client.bm_mt_indirect_ws_set_default_group(name, handle(*target))?,
                    false => self.client.bm_mt_indirect_set_default_member(name, handle(*target))?,
                }
                Ok(())
            }
            // Every other command has a handler of its own.
            _ => Ok(()),
        }
    }

    fn table_add(
        &mut self,
        table: Word<'_>,
        action: Word<'_>,
        (matches, args): (&[Word<'_>], &[Word<'_>]),
        out: &mut dyn Write,
    ) -> Result<(), Trouble> {
        let (name, found) = self.table(table)?;
        let (args, options) = priority(found, args)?;
        let (called, data) = self.call(table, found, action, args)?;
        let key = match_key(table.text, found, matches)?;
        let (name, called) = (name.to_owned(), called.to_owned());
        writeln!(out, "Adding entry to {} match table {}", found.match_type, table.text)?;
        let fields: Vec<String> =
            key.iter().map(|param| format!("{}-{}", param.kind.name(), shown(param, ":", false))).collect();
        writeln!(out, "{:20} {}", "match key:", fields.join("\t"))?;
        show_call(action.text, &data, out)?;
        let handle = self.client.bm_mt_add_entry(name, key, called, data, options)?;
        writeln!(out, "Entry has been added with handle {}", handle as u32)?;
        Ok(())
    }

    fn indirect_add(
        &mut self,
        table: Word<'_>,
        matches: &[Word<'_>],
        target: &[Word<'_>],
        group: bool,
        out: &mut dyn Write,
    ) -> Result<(), Trouble> {
        let (name, found, _) = self.schema.indirect(table.text, group)?;
        let (target, options) = priority(found, target)?;
        let [word] = target else { return Err(Trouble::wrong("Invalid arguments, could not find handle")) };
        let number =
            millrace_commands::value::plain(word.text).ok().and_then(|number| u32::try_from(number).ok());
        let target = number.ok_or_else(|| Trouble::wrong("Bad format for handle"))? as i32;
        let key = match_key(table.text, found, matches)?;
        writeln!(out, "Adding entry to indirect match table {name}")?;
        let name = name.to_owned();
        let handle = match group {
            true => self.client.bm_mt_indirect_ws_add_entry(name, key, target, options)?,
            false => self.client.bm_mt_indirect_add_entry(name, key, target, options)?,
        };
        writeln!(out, "Entry has been added with handle {}", handle as u32)?;
        Ok(())
    }

    /// A table, with its full name.
    pub(crate) fn table(&self, name: Word<'_>) -> Result<(&str, &Table), Trouble> {
        find("table", &self.schema.tables, name.text)
    }

    /// The full name of a table.
    pub(crate) fn table_name(&self, name: Word<'_>) -> Result<String, Trouble> {
        Ok(self.table(name)?.0.to_owned())
    }

    /// An action of a table by its full name, with its data.
    fn call(
        &self,
        table: Word<'_>,
        found: &Table,
        action: Word<'_>,
        args: &[Word<'_>],
    ) -> Result<(&str, ActionData), Trouble> {
        let listed = |name: &str| found.actions.contains(name);
        let (full, called) = self
            .action(action.text, listed)
            .ok_or_else(|| Trouble::wrong(format!("Table {} has no action {}", table.text, action.text)))?;
        Ok((full, action_data(action.text, called, args)?))
    }

    /// An action that is among those listed.
    pub(crate) fn action(&self, name: &str, listed: impl Fn(&str) -> bool) -> Option<(&str, &Action)> {
        let own = |full: &&String| listed(full);
        let full = match self.schema.actions.get_key_value(name) {
            Some((full, _)) if listed(full) => full,
            _ => {
                let ends_so =
                    |full: &&String| full.strip_suffix(name).is_some_and(|front| front.ends_with('.'));
                let mut found = self.schema.actions.keys().filter(own).filter(ends_so);
                let first = found.next()?;
                found.next().is_none().then_some(first)?
            }
        };
        self.schema.actions.get_key_value(full).map(|(full, action)| (full.as_str(), action))
    }
}

fn show_call(action: &str, data: &ActionData, out: &mut dyn Write) -> io::Result<()> {
    let data: Vec<String> = data.iter().map(|value| hex(value, ":")).collect();
    writeln!(out, "{:20} {action}", "action:")?;
    writeln!(out, "{:20} {}", "runtime data:", data.join("\t"))
}
