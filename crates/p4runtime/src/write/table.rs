//! Table entries, default entries and their direct counters and meters.

use super::actions::ActionSpec;
use super::batch::{Change, Site};
use super::direct::{DirectResources, set_direct};
use super::one_shot::{forget_one_shot, one_shot_of, target};
use super::{Decoder, Kind, Op, TablesOp, metadata, natural};
use crate::catalog::TableInfo;
use crate::read::check_default;
use crate::refusal::Refusal;
use crate::shadow::{Before, Cookie, EntryKey};
use crate::translation::NewText;
use millrace_p4runtime_api::v1;
use millrace_pipeline::{ActionCall, TableId};
use millrace_state::{CounterRef, EntryIndex, EntryWrite};

#[derive(Clone, Debug)]
pub(crate) struct EntryOp {
    kind: Kind,
    pub(super) key: EntryKey,
    action: Option<ActionSpec>,
    direct: DirectResources,
    cookie: Cookie,
    idle_timeout_ns: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct DefaultOp {
    table: TableId,
    /// None: back to the program's.
    action: Option<ActionCall>,
    direct: DirectResources,
    cookie: Cookie,
}

impl Decoder<'_> {
    pub(super) fn table_entry(&self, kind: Kind, entry: v1::TableEntry) -> Result<Op, Refusal> {
        let table = self.catalog.tables.get(entry.table_id)?;
        self.check_role(table)?;
        let refused = |refusal: Refusal| refusal.of(format_args!("table `{}`", table.name));
        self.entry_of(kind, table, entry).map_err(refused)
    }

    fn entry_of(&self, kind: Kind, table: &TableInfo, entry: v1::TableEntry) -> Result<Op, Refusal> {
        if entry.is_default_action {
            return self.default_entry(kind, table, entry);
        }
        if table.is_const && kind != Kind::Modify {
            return Err(Refusal::denied("its entries are const"));
        }
        if table.fields.is_empty() {
            return Err(Refusal::invalid("a table without a key has no entries but the default"));
        }
        if entry.is_const {
            return Err(Refusal::invalid("`is_const` cannot be written"));
        }
        let new_text = if kind == Kind::Insert { NewText::Named } else { NewText::Unknown };
        let key = self.key(table, &entry.r#match, entry.priority, new_text)?;
        if kind == Kind::Delete {
            // All else is to be ignored.
            let (direct, cookie) = (DirectResources::default(), Cookie::default());
            return Ok(Op::Tables(TablesOp::Entry(Box::new(EntryOp {
                kind,
                key,
                action: None,
                direct,
                cookie,
                idle_timeout_ns: 0,
            }))));
        }
        if table.is_const && entry.action.is_some() {
            return Err(Refusal::denied("its entries are const"));
        }
        let action = entry.action.as_ref().map(|action| self.action_spec(table, action)).transpose()?;
        if kind == Kind::Insert && action.is_none() {
            return Err(Refusal::invalid("the action is missing"));
        }
        if !table.idle_timeout && (entry.idle_timeout_ns != 0 || entry.time_since_last_hit.is_some()) {
            return Err(Refusal::invalid("the table has no idle timeouts"));
        }
        if entry.time_since_last_hit.is_some() {
            return Err(Refusal::invalid("`time_since_last_hit` cannot be written"));
        }
        let direct = self.direct_resources(table, &entry)?;
        Ok(Op::Tables(TablesOp::Entry(Box::new(EntryOp {
            kind,
            key,
            action,
            direct,
            idle_timeout_ns: natural(entry.idle_timeout_ns, "the idle timeout")?,
            cookie: cookie_of(entry)?,
        }))))
    }

    fn default_entry(&self, kind: Kind, table: &TableInfo, entry: v1::TableEntry) -> Result<Op, Refusal> {
        if kind != Kind::Modify {
            return Err(Refusal::invalid("the default entry can only be modified"));
        }
        check_default(&entry)?;
        if entry.is_const {
            return Err(Refusal::invalid("`is_const` cannot be written"));
        }
        let action = match &entry.action {
            None => None,
            Some(_) if table.profile.is_some() => {
                return Err(Refusal::invalid(
                    "the default action of a table with an action profile is constant",
                ));
            }
            Some(action) => match self.action_spec(table, action)? {
                ActionSpec::Call(call) => Some(call),
                _ => return Err(Refusal::invalid("the default entry has an action of its own")),
            },
        };
        let direct = self.direct_resources(table, &entry)?;
        // Put back to the program's default, its metadata goes too.
        let cookie = if action.is_some() { cookie_of(entry)? } else { Cookie::default() };
        Ok(Op::Tables(TablesOp::Default(Box::new(DefaultOp { table: table.table, action, direct, cookie }))))
    }

    pub(super) fn check_role(&self, table: &TableInfo) -> Result<(), Refusal> {
        match &table.role {
            Some(role) if !self.role.is_empty() && role != self.role => {
                Err(Refusal::denied(format!("table `{}` belongs to role `{role}`", table.name)))
            }
            _ => Ok(()),
        }
    }
}

fn cookie_of(entry: v1::TableEntry) -> Result<Cookie, Refusal> {
    #[allow(deprecated, reason = "older controllers use it still")]
    let controller = entry.controller_metadata;
    Ok(Cookie { metadata: metadata(entry.metadata)?, controller })
}

impl EntryOp {
    pub(super) fn apply(self, site: &mut Site<'_>, change: &mut Change) -> Result<(), Refusal> {
        match self.kind {
            Kind::Insert => self.insert(site, change),
            Kind::Modify => self.modify(site, change),
            Kind::Delete => self.delete(site, change),
        }
    }

    fn insert(self, site: &mut Site<'_>, change: &mut Change) -> Result<(), Refusal> {
        let EntryOp { key, action, direct, cookie, idle_timeout_ns, .. } = self;
        let (table, matches, priority) = key;
        let Some(action) = action else { return Err(Refusal::invalid("the action is missing")) };
        let now_ns = site.now_ns;
        let tables = &mut *site.tables;
        let (target, made) = target(tables, &mut change.shadow, action)?;
        let entry = EntryWrite { matches, priority, target, idle_timeout_ns };
        let index = match tables.insert(table, &entry, now_ns) {
            Ok(index) => index,
            Err(error) => {
                if let Some((profile, group)) = made {
                    forget_one_shot(tables, &mut change.shadow, profile, group);
                }
                return Err(error.into());
            }
        };
        // A table that has them cannot refuse them for an entry that is there.
        if let Some(meter) = direct.meter {
            tables.set_direct_meter(table, index.0.into(), Some(meter))?;
        }
        if let Some(counter) = direct.counter {
            tables.set_counter(CounterRef::Direct(table), index.0.into(), counter)?;
        }
        if idle_timeout_ns != 0 {
            change.shadow.timers.set(table, index, now_ns.saturating_add(idle_timeout_ns));
        }
        let key = (table, entry.matches, priority);
        if cookie.is_empty() && !change.can_undo() {
            // The common way: nothing to remember, unless somebody else removed an entry of this key.
            if !change.shadow.cookies.is_empty() {
                change.shadow.attach(key, cookie);
            }
            return Ok(());
        }
        change.shadow.attach(key.clone(), cookie);
        let timer = Before::Timer(table, index, None);
        change.note([timer, Before::Cookie(key, Cookie::default())]);
        change.note(made.map(|made| Before::OneShot(made, None)));
        Ok(())
    }

    fn modify(self, site: &mut Site<'_>, change: &mut Change) -> Result<(), Refusal> {
        let EntryOp { key, action, direct, cookie, idle_timeout_ns, .. } = self;
        let (table, matches, priority) = &key;
        let table = *table;
        let now_ns = site.now_ns;
        let tables = &mut *site.tables;
        let index = tables.find(table, matches, *priority)?;
        let Some(before) = tables.entry(table, index) else {
            return Err(Refusal::not_found("no such entry"));
        };
        if before.is_const {
            if action.is_some() || idle_timeout_ns != 0 {
                return Err(Refusal::denied("the entry is const"));
            }
            set_direct(tables, table, index, &direct)?;
            return Ok(());
        }
        let mut made = None;
        if let Some(action) = action {
            let (target, new) = target(tables, &mut change.shadow, action)?;
            if let Err(error) = tables.modify(table, index, &target) {
                if let Some((profile, group)) = new {
                    forget_one_shot(tables, &mut change.shadow, profile, group);
                }
                return Err(error.into());
            }
            made = new;
        }
        set_direct(tables, table, index, &direct)?;
        if before.idle_timeout_ns != idle_timeout_ns {
            tables.set_idle_timeout(table, index, idle_timeout_ns)?;
            change.shadow.recall(Before::Timer(table, index, due_ns(idle_timeout_ns, now_ns)));
        }
        let old_cookie = change.shadow.attach(key.clone(), cookie);
        let replaced = one_shot_of(tables, &change.shadow, table, &before.target);
        let changed = tables.entry(table, index).is_some_and(|entry| entry.target != before.target);
        if let (Some((profile, group)), true) = (replaced, changed) {
            change.retire(site, profile, group);
        }
        let due_ns = due_ns(before.idle_timeout_ns, now_ns);
        change.note([Before::Timer(table, index, due_ns), Before::Cookie(key, old_cookie)]);
        change.note(made.map(|made| Before::OneShot(made, None)));
        Ok(())
    }

    fn delete(self, site: &mut Site<'_>, change: &mut Change) -> Result<(), Refusal> {
        let (table, matches, priority) = &self.key;
        let table = *table;
        let tables = &mut *site.tables;
        let index = tables.find(table, matches, *priority)?;
        let Some(before) = tables.entry(table, index) else {
            return Err(Refusal::not_found("no such entry"));
        };
        tables.remove(table, index)?;
        change.shadow.timers.cancel(table, index);
        let cookie = match change.shadow.cookies.is_empty() {
            true => Cookie::default(),
            false => change.shadow.attach(self.key.clone(), Cookie::default()),
        };
        if let Some((profile, group)) = one_shot_of(tables, &change.shadow, table, &before.target) {
            change.retire(site, profile, group);
        }
        let due_ns = due_ns(before.idle_timeout_ns, site.now_ns);
        change.note([Before::Timer(table, index, due_ns), Before::Cookie(self.key, cookie)]);
        Ok(())
    }
}

/// When an entry with a timeout is due to be looked at.
fn due_ns(timeout_ns: u64, now_ns: u64) -> Option<u64> {
    (timeout_ns != 0).then(|| now_ns.saturating_add(timeout_ns))
}

impl DefaultOp {
    pub(super) fn apply(self, site: &mut Site<'_>, change: &mut Change) -> Result<(), Refusal> {
        let DefaultOp { table, action, direct, cookie } = self;
        let tables = &mut *site.tables;
        match &action {
            Some(call) => tables.set_default(table, call)?,
            None => tables.reset_default(table)?,
        }
        set_direct(tables, table, EntryIndex::MISS, &direct)?;
        let key = (table, Vec::new(), 0);
        let old_cookie = change.shadow.attach(key.clone(), cookie);
        change.note([Before::Cookie(key, old_cookie)]);
        Ok(())
    }
}
