//! Commands about tables.

use super::execute::{Executor, Reply, entry_handle, entry_index, refused};
use millrace_commands::Word;
use millrace_commands::{Refusal, from_bmv2_priority, matching, value};
use millrace_pipeline::{ActionCall, ActionId, Bits, EntryMatch, TableId};
use millrace_state::{EntryWrite, Target, WriteError};
use std::ops::Range;

impl<'a> Executor<'_, 'a> {
    pub(super) fn table_add(
        &mut self,
        at: &Range<usize>,
        table: Word<'a>,
        action: Word<'a>,
        matches: &[Word<'a>],
        args: &[Word<'a>],
    ) -> Result<Reply, Refusal> {
        let id = self.table(table)?;
        let (listed, action) = self.action(id, action)?;
        let matches = self.matches(at, id, matches)?;
        let params = self.switch.state().param_widths(action).len();
        let (args, priority) = self.split_priority(at, id, args, params)?;
        let args = self.args(at, action, args)?;
        let target = Target::Action(ActionCall { action: listed, args });
        self.insert(at, id, EntryWrite { matches, priority, target, idle_timeout_ns: 0 })
    }

    pub(super) fn indirect_add(
        &mut self,
        at: &Range<usize>,
        table: Word<'a>,
        matches: &[Word<'a>],
        target: &[Word<'a>],
        group: bool,
    ) -> Result<Reply, Refusal> {
        let id = self.table(table)?;
        let matches = self.matches(at, id, matches)?;
        let (target, priority) = self.split_priority(at, id, target, 1)?;
        let [word] = target else {
            let what = if group { "group" } else { "member" };
            return Err(Refusal::new(at.clone(), format!("one {what} is expected, {} given", target.len())));
        };
        let handle = value::plain(word.text).ok().and_then(|handle| u32::try_from(handle).ok());
        let handle =
            handle.ok_or_else(|| Refusal::new(word.at(), format!("`{}` is not a handle", word.text)))?;
        let target = if group { Target::Group(handle) } else { Target::Member(handle) };
        self.insert(at, id, EntryWrite { matches, priority, target, idle_timeout_ns: 0 })
    }

    fn insert(&mut self, at: &Range<usize>, table: TableId, entry: EntryWrite) -> Result<Reply, Refusal> {
        let now = self.switch.now_ns();
        let index = self.tables.insert(table, &entry, now).map_err(|error| self.about(at, table, error))?;
        Ok(Reply::Made { what: "entry", handle: entry_handle(index) })
    }

    /// An error of a whole command, with the table it is about.
    fn about(&self, at: &Range<usize>, table: TableId, error: WriteError) -> Refusal {
        let name = &self.switch.state().program().tables[table].name;
        Refusal::new(at.clone(), format!("`{name}`: {error}"))
    }

    /// The match fields of an entry.
    pub(super) fn matches(
        &self,
        at: &Range<usize>,
        table: TableId,
        words: &[Word<'a>],
    ) -> Result<Vec<EntryMatch>, Refusal> {
        let keys = &self.switch.state().program().tables[table].keys;
        let widths = self.switch.state().key_widths(table);
        if words.len() != keys.len() {
            let at = match words {
                [first, .., last] => first.start..last.at().end,
                [one] => one.at(),
                [] => at.clone(),
            };
            let keys = keys.iter().map(|key| key.name.clone()).collect();
            return Err(refused(at, WriteError::MatchCount { keys, found: words.len() }));
        }
        let fields = keys.iter().zip(widths).zip(words);
        fields
            .map(|((key, width), word)| {
                matching::parse(word.text, key.kind, *width).map_err(|error| {
                    Refusal::new(word.part(error.at), format!("key field `{}`: {}", key.name, error.message))
                        .with_help_if(error.help)
                })
            })
            .collect()
    }

    /// The values of an action's parameters.
    pub(super) fn args(
        &self,
        at: &Range<usize>,
        action: ActionId,
        words: &[Word<'a>],
    ) -> Result<Vec<Bits>, Refusal> {
        let state = self.switch.state();
        let called = &state.program().actions[action];
        if words.len() != called.params.len() {
            let at = match words {
                [first, .., last] => first.start..last.at().end,
                [one] => one.at(),
                [] => at.clone(),
            };
            let params = state.param_names(action).map(str::to_owned).collect();
            let error = WriteError::ArgCount { action: called.name.clone(), params, found: words.len() };
            return Err(refused(at, error));
        }
        let params = state.param_names(action).zip(state.param_widths(action)).zip(words);
        params
            .map(|((param, width), word)| {
                value::parse(word.text, *width).map_err(|error| {
                    let message = format!("parameter `{param}` of `{}`: {error}", called.name);
                    Refusal::new(word.at(), message)
                })
            })
            .collect()
    }

    /// Takes the priority off the end of the parameters, when the table has priorities.
    fn split_priority<'l>(
        &self,
        at: &Range<usize>,
        table: TableId,
        words: &'l [Word<'a>],
        params: usize,
    ) -> Result<(&'l [Word<'a>], u32), Refusal> {
        let needed = self.switch.state().needs_priority(table);
        let name = &self.switch.state().program().tables[table].name;
        if !needed {
            return match words.get(params) {
                Some(extra) if words.len() == params + 1 => Err(Refusal::new(
                    extra.at(),
                    format!(
                        "`{name}` has no ternary, range or optional field, so its entries have no priority"
                    ),
                )),
                _ => Ok((words, 0)),
            };
        }
        match words.split_last() {
            Some((last, rest)) if words.len() > params => {
                let priority =
                    value::plain(last.text).ok().and_then(from_bmv2_priority).ok_or_else(|| {
                        let message = format!(
                            "`{}` is not a priority: a number below {} is expected",
                            last.text,
                            i32::MAX
                        );
                        Refusal::new(last.at(), message)
                    })?;
                Ok((rest, priority))
            }
            _ if words.len() == params => {
                Err(Refusal::new(at.clone(), format!("`{name}` needs a priority at the end"))
                    .with_help("of the entries that match at once, the one with the smallest number wins"))
            }
            _ => Ok((words, 0)),
        }
    }

    pub(super) fn set_default(
        &mut self,
        at: &Range<usize>,
        table: Word<'a>,
        action: Word<'a>,
        args: &[Word<'a>],
    ) -> Result<Reply, Refusal> {
        let id = self.table(table)?;
        let (listed, called) = self.action(id, action)?;
        let args = self.args(at, called, args)?;
        let call = ActionCall { action: listed, args };
        self.tables.set_default(id, &call).map_err(|error| self.about(at, id, error))?;
        Ok(Reply::Done)
    }

    pub(super) fn indirect_set_default(
        &mut self,
        table: Word<'a>,
        target: (u32, Word<'a>),
        group: bool,
    ) -> Result<Reply, Refusal> {
        let id = self.table(table)?;
        let (handle, word) = target;
        let target = if group { Target::Group(handle) } else { Target::Member(handle) };
        self.tables.set_default_target(id, &target).map_err(|error| match error {
            error @ WriteError::Profile(_) => refused(word.at(), error),
            error => refused(table.at(), error),
        })?;
        Ok(Reply::Done)
    }

    pub(super) fn reset_default(&mut self, table: Word<'a>) -> Result<Reply, Refusal> {
        let id = self.table(table)?;
        self.tables.reset_default(id).map_err(|error| refused(table.at(), error))?;
        Ok(Reply::Done)
    }

    pub(super) fn table_modify(
        &mut self,
        at: &Range<usize>,
        table: Word<'a>,
        action: Word<'a>,
        handle: (u32, Word<'a>),
        args: &[Word<'a>],
    ) -> Result<Reply, Refusal> {
        let id = self.table(table)?;
        let (listed, called) = self.action(id, action)?;
        let args = self.args(at, called, args)?;
        let target = Target::Action(ActionCall { action: listed, args });
        let written = self.tables.modify(id, entry_index(handle.0), &target);
        written.map_err(|error| refused(handle.1.at(), error))?;
        Ok(Reply::Done)
    }

    pub(super) fn table_delete(
        &mut self,
        table: Word<'a>,
        handle: (u32, Word<'a>),
    ) -> Result<Reply, Refusal> {
        let id = self.table(table)?;
        let removed = self.tables.remove(id, entry_index(handle.0));
        removed.map_err(|error| refused(handle.1.at(), error))?;
        Ok(Reply::Done)
    }

    pub(super) fn set_timeout(
        &mut self,
        table: Word<'a>,
        handle: (u32, Word<'a>),
        milliseconds: u64,
    ) -> Result<Reply, Refusal> {
        let id = self.table(table)?;
        let ns = milliseconds.saturating_mul(1_000_000);
        let set = self.tables.set_idle_timeout(id, entry_index(handle.0), ns);
        set.map_err(|error| refused(handle.1.at(), error))?;
        Ok(Reply::Done)
    }

    pub(super) fn table_clear(&mut self, table: Word<'a>) -> Result<Reply, Refusal> {
        let id = self.table(table)?;
        if self.switch.state().program().tables[id].const_entries {
            return Err(refused(table.at(), millrace_state::TableError::ConstTable.into()));
        }
        self.tables.clear(id);
        Ok(Reply::Done)
    }

    pub(super) fn dump_entry_from_key(
        &mut self,
        at: &Range<usize>,
        table: Word<'a>,
        key: &[Word<'a>],
    ) -> Result<Reply, Refusal> {
        let id = self.table(table)?;
        let fields = self.switch.state().key_widths(id).len();
        let (key, priority) = self.split_priority(at, id, key, fields)?;
        let matches = self.matches(at, id, key)?;
        let found = self.tables.find(id, &matches, priority);
        let index = found.map_err(|error| self.about(at, id, error))?;
        Ok(Reply::Text(self.entry_text(id, index)))
    }
}
