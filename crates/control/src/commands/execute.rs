//! Running commands on a switch.

use millrace_commands::{COMMANDS, usage};
use millrace_commands::{Command, Line, ProfileName, Topic, Word};
use millrace_commands::{Refusal, nearest};
use millrace_dataplane::Switch;
use millrace_pipeline::{ActionId, ProfileId, TableId};
use millrace_state::{EntryIndex, Tables, WriteError};
use std::fmt;
use std::ops::Range;

/// What a command answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It is done.
    Done,
    /// Something was made and has this handle.
    Made {
        /// What was made.
        what: &'static str,
        /// Its handle.
        handle: u32,
    },
    /// What was asked for: lines, the last one ended too.
    Text(String),
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reply::Done => Ok(()),
            Reply::Made { what, handle } => writeln!(f, "{what} has been created with handle {handle}"),
            Reply::Text(text) => f.write_str(text),
        }
    }
}

/// Runs commands. It remembers the names that it has looked up last, so that a long file costs little.
pub struct Executor<'s, 'a> {
    pub(super) switch: &'s mut Switch,
    /// The tables of the switch.
    pub(super) tables: &'s mut Tables,
    /// The tables named last, the latest first, and such actions of theirs: few are named alternately.
    known: Recent<&'a str, TableId>,
    actions: Recent<(TableId, &'a str), usize>,
}

/// Names that were looked up last.
struct Recent<N, T>([Option<(N, T)>; RECENT]);

/// How many names are remembered.
const RECENT: usize = 32;

impl<N: PartialEq, T: Copy> Recent<N, T> {
    fn new() -> Recent<N, T> {
        Recent([const { None }; RECENT])
    }

    fn get(&self, name: &N) -> Option<T> {
        self.0.iter().map_while(Option::as_ref).find(|(known, _)| known == name).map(|(_, found)| *found)
    }

    fn put(&mut self, name: N, found: T) {
        self.0.rotate_right(1);
        self.0[0] = Some((name, found));
    }
}

impl<'s, 'a> Executor<'s, 'a> {
    /// For one switch and its [tables](millrace_state::State::handle).
    pub fn new(switch: &'s mut Switch, tables: &'s mut Tables) -> Executor<'s, 'a> {
        Executor { switch, tables, known: Recent::new(), actions: Recent::new() }
    }

    /// Runs one command.
    ///
    /// # Errors
    /// Why it was refused; then nothing is changed.
    pub fn run(&mut self, line: &Line<'_, 'a>) -> Result<Reply, Refusal> {
        let at = &line.at;
        match line.command.topic() {
            Topic::Profiles => return self.profile_command(line),
            Topic::Replication => return self.replication_command(line),
            Topic::Cells => return self.stateful_command(line),
            Topic::Tables | Topic::TableViews | Topic::Switch => {}
        }
        match &line.command {
            Command::TableAdd { table, action, matches, args } => {
                self.table_add(at, *table, *action, matches, args)
            }
            Command::TableSetDefault { table, action, args } => self.set_default(at, *table, *action, args),
            Command::TableResetDefault { table } => self.reset_default(*table),
            Command::TableModify { table, action, handle, args } => {
                self.table_modify(at, *table, *action, *handle, args)
            }
            Command::TableDelete { table, handle } => self.table_delete(*table, *handle),
            Command::TableSetTimeout { table, handle, milliseconds } => {
                self.set_timeout(*table, *handle, *milliseconds)
            }
            Command::TableClear { table } => self.table_clear(*table),
            Command::TableDump { table } => self.table_dump(*table),
            Command::TableDumpEntry { table, handle } => self.dump_entry(*table, *handle),
            Command::TableDumpEntryFromKey { table, key } => self.dump_entry_from_key(at, *table, key),
            Command::TableNumEntries { table } => {
                let table = self.table(*table)?;
                Ok(Reply::Text(format!("{}\n", self.tables.entry_count(table))))
            }
            Command::TableInfo { table } => self.table_info(*table),
            Command::TableShowActions { table } => self.table_actions(*table),
            Command::ShowTables => Ok(Reply::Text(self.show_tables())),
            Command::ShowActions => Ok(Reply::Text(self.show_actions())),
            Command::ShowPorts => Ok(Reply::Text(self.show_ports())),
            Command::IndirectAdd { table, matches, target, group } => {
                self.indirect_add(at, *table, matches, target, *group)
            }
            Command::IndirectSetDefault { table, target, group } => {
                self.indirect_set_default(*table, *target, *group)
            }
            Command::ResetState => {
                let reset = self.switch.state_mut().reset(self.tables);
                reset.map_err(|error| Refusal::new(at.clone(), error.to_string()))?;
                Ok(Reply::Done)
            }
            Command::SetQueueDepth { packets, place } => {
                let set = self.switch.set_queue_depth(*packets, place.port, place.priority);
                set.map_err(|error| Refusal::new(at.clone(), error.to_string()))?;
                Ok(Reply::Done)
            }
            Command::SetQueueRate { packets_per_second, place } => {
                let set = self.switch.set_queue_rate(*packets_per_second, place.port, place.priority);
                set.map_err(|error| Refusal::new(at.clone(), error.to_string()))?;
                Ok(Reply::Done)
            }
            Command::Help { command } => help(*command),
            // Taken before.
            _ => Ok(Reply::Done),
        }
    }

    pub(super) fn table(&mut self, name: Word<'a>) -> Result<TableId, Refusal> {
        if let Some(table) = self.known.get(&name.text) {
            return Ok(table);
        }
        let table = self.switch.state().table_named(name.text).map_err(|error| refused(name.at(), error))?;
        self.known.put(name.text, table);
        Ok(table)
    }

    /// An action of a table: its index there, and which it is.
    pub(super) fn action(&mut self, table: TableId, name: Word<'a>) -> Result<(usize, ActionId), Refusal> {
        let at = match self.actions.get(&(table, name.text)) {
            Some(at) => at,
            None => {
                let found = self.switch.state().action_named(table, name.text);
                let at = found.map_err(|error| refused(name.at(), error))?;
                self.actions.put((table, name.text), at);
                at
            }
        };
        Ok((at, self.switch.state().program().tables[table].actions[at].action))
    }

    pub(super) fn profile(&mut self, name: ProfileName<'a>) -> Result<ProfileId, Refusal> {
        match name {
            ProfileName::Profile(name) => {
                self.switch.state().profile_named(name.text).map_err(|error| refused(name.at(), error))
            }
            ProfileName::Table(name) => {
                let table = self.table(name)?;
                self.switch.state().profile_of(table).map_err(|error| refused(name.at(), error))
            }
        }
    }
}

/// A refusal by the objects; a name that is nearly right is put right.
pub(crate) fn refused(at: Range<usize>, error: WriteError) -> Refusal {
    let help = match &error {
        WriteError::Unknown { name, known, .. } => {
            nearest(name, known.iter().map(String::as_str)).map(|near| format!("did you mean `{near}`?"))
        }
        _ => None,
    };
    Refusal::new(at, error.to_string()).with_help_if(help)
}

/// The entry of a handle: handles count from 0, entries from after the default one.
pub(super) fn entry_index(handle: u32) -> EntryIndex {
    EntryIndex(handle.saturating_add(1))
}

/// The handle of an entry.
pub(super) fn entry_handle(index: EntryIndex) -> u32 {
    index.0.saturating_sub(1)
}

fn help(command: Option<Word<'_>>) -> Result<Reply, Refusal> {
    let line = |name: &str, args: &str, meaning: &str| format!("{name} {args}\n    {meaning}\n");
    match command {
        None => {
            Ok(Reply::Text(COMMANDS.iter().map(|(name, args, meaning)| line(name, args, meaning)).collect()))
        }
        Some(word) => match usage(word.text) {
            Some((args, meaning)) => Ok(Reply::Text(line(word.text, args, meaning))),
            None => Err(Refusal::new(word.at(), format!("there is no command `{}`", word.text))),
        },
    }
}
