//! Parsing: actions, tables and stateful objects.

use super::parse::{Parser, Result};
use crate::*;

impl<'t> Parser<'t> {
    pub(super) fn object(&mut self) -> Result<()> {
        if self.eat_word("counter") {
            let (name, size, unit) = (self.name()?, self.size()?, self.unit()?);
            self.program.counters.push(Counter { name, size, unit });
        } else if self.eat_word("meter") {
            let (name, size, unit) = (self.name()?, self.size()?, self.unit()?);
            self.program.meters.push(Meter { name, size, unit });
        } else if self.eat_word("register") {
            let name = self.name()?;
            self.sign(":")?;
            let (width, size) = (self.bit_width()?, self.size()?);
            let initial = if self.eat_word("initial") { Some(self.bits()?) } else { None };
            self.program.registers.push(Register { name, width, size, initial });
        } else if self.eat_word("value_set") {
            let name = self.name()?;
            let fields = self.list(|p| {
                let field = p.name()?;
                p.sign(":")?;
                Ok((field, p.bit_width()?, p.match_kind()?))
            })?;
            let size = self.size()?;
            self.program.value_sets.push(ValueSet { name, fields, size });
        } else if self.eat_word("own_hash") {
            let (name, algorithm) = (self.name()?, self.algorithm()?);
            self.program.hashes.push(OwnHash { name, algorithm });
        } else if self.eat_word("digest") {
            let name = self.name()?;
            let members = self.list(|p| {
                let member = p.name()?;
                p.sign(":")?;
                Ok((member, p.ty()?))
            })?;
            self.word("receiver")?;
            let receiver = self.number()?;
            self.program.digests.push(Digest { name, receiver, members });
        } else if self.eat_word("plugin") {
            let name = self.name()?;
            let (rewrites, passes) = (self.eat_word("rewrites"), self.eat_word("passes"));
            self.program.plugins.push(Plugin { name, rewrites, passes });
        } else if self.eat_word("profile") {
            let (name, size) = (self.name()?, self.size()?);
            let selector = if self.eat_word("selector") { Some(self.selector()?) } else { None };
            self.program.profiles.push(Profile { name, size, selector });
        } else if self.eat_word("action") {
            let (name, params) = (self.name()?, self.list(Parser::slot)?);
            self.sign("=")?;
            let body = self.find("body", |n| &n.bodies)?;
            self.program.actions.push(Action { name, params, body });
        } else if self.eat_word("table") {
            let table = self.table()?;
            self.program.tables.push(table);
        } else {
            return self.expected("a declaration");
        }
        Ok(())
    }

    fn size(&mut self) -> Result<u64> {
        self.word("size")?;
        self.number()
    }

    fn unit(&mut self) -> Result<Unit> {
        self.choice("`packets`, `bytes`, `packets_and_bytes` or `account`", Unit::from_name)
    }

    fn match_kind(&mut self) -> Result<MatchKind> {
        self.choice("how it matches", MatchKind::from_name)
    }

    fn selector(&mut self) -> Result<Selector> {
        let algorithm = self.algorithm()?;
        self.word("width")?;
        let width = self.number()?;
        self.word("max_group_size")?;
        Ok(Selector { algorithm, width, max_group_size: self.number()? })
    }

    pub(super) fn algorithm(&mut self) -> Result<HashAlgorithm> {
        self.choice("a hash algorithm", HashAlgorithm::from_name)
    }

    fn table(&mut self) -> Result<Table> {
        let default = ActionCall { action: 0, args: Vec::new() };
        let mut table = Table::new(self.name()?, Vec::new(), Vec::new(), default, 0);
        let mut has_default = false;
        self.sign("{")?;
        while !self.is_sign("}") {
            has_default |= self.is_word("default") || self.is_word("const_default");
            self.table_item(&mut table)?;
        }
        if !has_default {
            return self.expected("`default` or `const_default` in the table");
        }
        self.sign("}")?;
        Ok(table)
    }

    fn table_item(&mut self, table: &mut Table) -> Result<()> {
        if self.eat_word("key") {
            let name = self.name()?;
            self.sign(":")?;
            let kind = self.match_kind()?;
            self.sign("=")?;
            table.keys.push(TableKey { name, value: self.expr()?, kind });
        } else if self.eat_word("action") {
            let action = self.find("action", |n| &n.actions)?;
            let scope = if self.eat_word("table_only") {
                ActionScope::TableOnly
            } else if self.eat_word("default_only") {
                ActionScope::DefaultOnly
            } else {
                ActionScope::Both
            };
            table.actions.push(TableAction { action, scope });
        } else if self.eat_word("default") {
            table.default = self.call(table)?;
        } else if self.eat_word("const_default") {
            table.const_default = true;
            table.default = self.call(table)?;
        } else if self.is_word("size") {
            table.size = self.size()?;
        } else if self.eat_word("const_entries") {
            table.const_entries = true;
        } else if self.eat_word("entry") {
            let entry = self.entry(table)?;
            table.entries.push(entry);
        } else if self.eat_word("profile") {
            table.profile = Some(self.find("action profile", |n| &n.profiles)?);
        } else if self.eat_word("selector_input") {
            table.selector_inputs.push(self.expr()?);
        } else if self.eat_word("empty_group") {
            table.empty_group = Some(self.call(table)?);
        } else if self.eat_word("direct_counter") {
            let (name, unit) = (self.name()?, self.unit()?);
            table.direct_counter = Some(DirectCounter { name, unit, at_hit: self.eat_word("at_hit") });
        } else if self.eat_word("direct_meter") {
            let (name, unit) = (self.name()?, self.unit()?);
            let at_hit = if self.eat_word("at_hit") { Some(self.slot()?) } else { None };
            table.direct_meter = Some(DirectMeter { name, unit, at_hit });
        } else if self.eat_word("idle_timeout") {
            table.idle_timeout = true;
        } else {
            return self.expected("a part of a table");
        }
        Ok(())
    }

    fn entry(&mut self, table: &Table) -> Result<TableEntry> {
        let is_const = self.eat_word("const");
        let priority = if self.eat_word("priority") { self.number()? } else { 0 };
        let matches = self.list(Parser::entry_match)?;
        self.sign("=>")?;
        Ok(TableEntry { matches, priority, call: self.call(table)?, is_const })
    }

    fn entry_match(&mut self) -> Result<EntryMatch> {
        if self.eat_word("_") {
            return Ok(EntryMatch::Optional(None));
        }
        if self.eat("=") {
            return Ok(EntryMatch::Optional(Some(self.bits()?)));
        }
        let value = self.bits()?;
        if self.eat("/") {
            return Ok(EntryMatch::Lpm(value, self.number()?));
        }
        if self.eat("&&&") {
            return Ok(EntryMatch::Ternary(value, self.bits()?));
        }
        if self.eat("..") {
            return Ok(EntryMatch::Range(value, self.bits()?));
        }
        Ok(EntryMatch::Exact(value))
    }

    /// An action that the table has listed already, by its name or as `#place`, with its arguments.
    fn call(&mut self, table: &Table) -> Result<ActionCall> {
        let action = if self.eat("#") {
            self.number()?
        } else {
            let Some(name) = self.peek().text() else { return self.expected("an action") };
            let called = |a: &TableAction| self.names.action_is_called(a.action, &name);
            let Some(index) = table.actions.iter().position(called) else {
                return self.error(format!("{name} is not among the actions listed above"));
            };
            self.name()?;
            index
        };
        Ok(ActionCall { action, args: self.list(Parser::bits)? })
    }
}
