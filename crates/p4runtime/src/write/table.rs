//! Table entries, default entries and their direct counters and meters.

use super::batch::{Change, Site, forget_one_shot};
use super::{Decoder, Kind, Op, invalid, metadata, natural, only_modify};
use crate::catalog::TableInfo;
use crate::proto::v1;
use crate::proto::v1::field_match::FieldMatchType;
use crate::refusal::Refusal;
use crate::shadow::{Cookie, EntryKey, OneShot, Shadow};
use millrace_pipeline::{ActionCall, Bits, EntryMatch, MatchKind, ProfileId, TableId};
use millrace_state::{
    CounterRef, CounterValue, EntryIndex, EntryView, EntryWrite, GroupMember, MemberWrite, MeterConfig, Rate,
    Tables, Target,
};
use millrace_switch::PortId;

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

/// What comes with an entry.
#[derive(Clone, Debug)]
struct DirectResources {
    has_meter: bool,
    meter: Option<MeterConfig>,
    counter: Option<CounterValue>,
}

/// The direct counter or meter of an entry, or of the default entry.
#[derive(Clone, Debug)]
pub(crate) struct DirectOp<T> {
    key: EntryKey,
    value: T,
}

#[derive(Clone, Debug)]
pub(super) enum ActionSpec {
    Call(ActionCall),
    Member(ProfileId, u32),
    Group(ProfileId, u32),
    OneShot(ProfileId, Vec<Shot>, v1::ActionProfileActionSet),
}

/// A member of a one-shot group.
#[derive(Clone, Debug)]
pub(super) struct Shot {
    member: MemberWrite,
    weight: u32,
    watch: Option<PortId>,
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
        let key = self.key(table, &entry.r#match, entry.priority)?;
        if kind == Kind::Delete {
            // All else is to be ignored.
            let direct = DirectResources { has_meter: false, meter: None, counter: None };
            let cookie = Cookie::default();
            return Ok(Op::Entry(Box::new(EntryOp {
                kind,
                key,
                action: None,
                direct,
                cookie,
                idle_timeout_ns: 0,
            })));
        }
        if entry.is_const {
            return Err(Refusal::invalid("`is_const` cannot be written"));
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
        Ok(Op::Entry(Box::new(EntryOp {
            kind,
            key,
            action,
            direct,
            idle_timeout_ns: natural(entry.idle_timeout_ns, "the idle timeout")?,
            cookie: cookie_of(entry)?,
        })))
    }

    fn default_entry(&self, kind: Kind, table: &TableInfo, entry: v1::TableEntry) -> Result<Op, Refusal> {
        if kind != Kind::Modify {
            return Err(Refusal::invalid("the default entry can only be modified"));
        }
        if !entry.r#match.is_empty() || entry.priority != 0 {
            return Err(Refusal::invalid("the default entry has no match and no priority"));
        }
        if entry.idle_timeout_ns != 0 || entry.time_since_last_hit.is_some() {
            return Err(Refusal::invalid("the default entry has no idle timeout"));
        }
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
        Ok(Op::Default(Box::new(DefaultOp { table: table.table, action, direct, cookie })))
    }

    fn direct_resources(
        &self,
        table: &TableInfo,
        entry: &v1::TableEntry,
    ) -> Result<DirectResources, Refusal> {
        if entry.meter_counter_data.is_some() {
            return Err(Refusal::unimplemented("meters do not count their colours"));
        }
        if entry.meter_config.is_some() && !table.has_meter {
            return Err(Refusal::invalid("the table has no direct meter"));
        }
        if entry.counter_data.is_some() && !table.has_counter {
            return Err(Refusal::invalid("the table has no direct counter"));
        }
        Ok(DirectResources {
            has_meter: table.has_meter,
            meter: entry.meter_config.as_ref().map(meter_config).transpose()?,
            counter: entry.counter_data.as_ref().map(counter_value).transpose()?,
        })
    }

    pub(super) fn direct_counter(&self, kind: Kind, entry: v1::DirectCounterEntry) -> Result<Op, Refusal> {
        only_modify(kind, "a direct counter")?;
        let (table, key) = self.direct_key(entry.table_entry.as_ref())?;
        if !table.has_counter {
            return Err(Refusal::invalid(format!("table `{}` has no direct counter", table.name)));
        }
        Ok(Op::DirectCounter(DirectOp { key, value: entry.data.as_ref().map(counter_value).transpose()? }))
    }

    pub(super) fn direct_meter(&self, kind: Kind, entry: v1::DirectMeterEntry) -> Result<Op, Refusal> {
        only_modify(kind, "a direct meter")?;
        let (table, key) = self.direct_key(entry.table_entry.as_ref())?;
        if !table.has_meter {
            return Err(Refusal::invalid(format!("table `{}` has no direct meter", table.name)));
        }
        if entry.counter_data.is_some() {
            return Err(Refusal::unimplemented("meters do not count their colours"));
        }
        Ok(Op::DirectMeter(DirectOp { key, value: entry.config.as_ref().map(meter_config).transpose()? }))
    }

    fn direct_key(&self, entry: Option<&v1::TableEntry>) -> Result<(&TableInfo, EntryKey), Refusal> {
        let entry = entry.ok_or_else(|| Refusal::invalid("the table entry is missing"))?;
        let table = self.catalog.tables.get(entry.table_id)?;
        self.check_role(table)?;
        if entry.is_default_action {
            return Ok((table, (table.table, Vec::new(), 0)));
        }
        Ok((table, self.key(table, &entry.r#match, entry.priority)?))
    }

    fn check_role(&self, table: &TableInfo) -> Result<(), Refusal> {
        match &table.role {
            Some(role) if !self.role.is_empty() && role != self.role => {
                Err(Refusal::denied(format!("table `{}` belongs to role `{role}`", table.name)))
            }
            _ => Ok(()),
        }
    }

    /// What an entry is known by.
    pub(crate) fn key(
        &self,
        table: &TableInfo,
        given: &[v1::FieldMatch],
        priority: i32,
    ) -> Result<EntryKey, Refusal> {
        let matches = self.matches(&table.fields, given)?;
        let priority = u32::try_from(priority).map_err(|_| Refusal::invalid("the priority is negative"))?;
        match (table.needs_priority, priority) {
            (true, 0) => Err(Refusal::invalid("the priority is missing, the largest wins")),
            (false, 1..) => {
                Err(Refusal::invalid("without ternary, range or optional fields entries have no priority"))
            }
            _ => Ok((table.table, matches, priority)),
        }
    }

    pub(super) fn matches(
        &self,
        fields: &[crate::catalog::FieldInfo],
        given: &[v1::FieldMatch],
    ) -> Result<Vec<EntryMatch>, Refusal> {
        let mut found: Vec<Option<&FieldMatchType>> = vec![None; fields.len()];
        for field in given {
            let at = fields.iter().position(|known| known.id == field.field_id).ok_or_else(|| {
                Refusal::invalid(format!("there is no match field with id {}", field.field_id))
            })?;
            let value = field
                .field_match_type
                .as_ref()
                .ok_or_else(|| Refusal::invalid(format!("match field `{}` has no value", fields[at].name)))?;
            if found[at].replace(value).is_some() {
                return Err(Refusal::invalid(format!("match field `{}` is given twice", fields[at].name)));
            }
        }
        let each = fields.iter().zip(found).map(|(field, given)| {
            self.field_match(field, given).map_err(invalid(format_args!("match field `{}`", field.name)))
        });
        each.collect()
    }

    fn field_match(
        &self,
        field: &crate::catalog::FieldInfo,
        given: Option<&FieldMatchType>,
    ) -> Result<EntryMatch, Refusal> {
        let width = field.codec.width;
        let Some(given) = given else {
            return Ok(match field.kind {
                MatchKind::Exact => return Err(Refusal::invalid("an exact field cannot be left out")),
                MatchKind::Lpm => EntryMatch::Lpm(Bits::zero(width), 0),
                MatchKind::Ternary => EntryMatch::Ternary(Bits::zero(width), Bits::zero(width)),
                MatchKind::Range => EntryMatch::Range(Bits::zero(width), Bits::ones(width)),
                MatchKind::Optional => EntryMatch::Optional(None),
            });
        };
        let value = |bytes: &[u8]| self.catalog.read(&field.codec, bytes);
        let parts = !matches!(field.kind, MatchKind::Exact | MatchKind::Optional);
        if parts && field.codec.is_text() {
            return Err(Refusal::invalid("a text can only be matched as a whole"));
        }
        match (field.kind, given) {
            (MatchKind::Exact, FieldMatchType::Exact(exact)) => Ok(EntryMatch::Exact(value(&exact.value)?)),
            (MatchKind::Optional, FieldMatchType::Optional(given)) => {
                Ok(EntryMatch::Optional(Some(value(&given.value)?)))
            }
            (MatchKind::Lpm, FieldMatchType::Lpm(lpm)) => {
                let length = u32::try_from(lpm.prefix_len).ok().filter(|length| *length <= width);
                let length =
                    length.ok_or_else(|| Refusal::invalid(format!("a prefix has 1 to {width} bits")))?;
                if length == 0 {
                    return Err(Refusal::invalid("a prefix of 0 bits is to be left out"));
                }
                let value = value(&lpm.value)?;
                if length < width && !value.shl_by(u64::from(length)).is_zero() {
                    return Err(Refusal::invalid("there are bits behind the prefix"));
                }
                Ok(EntryMatch::Lpm(value, length))
            }
            (MatchKind::Ternary, FieldMatchType::Ternary(ternary)) => {
                let (value, mask) = (value(&ternary.value)?, value(&ternary.mask)?);
                if mask.is_zero() {
                    return Err(Refusal::invalid("a mask of 0 is to be left out"));
                }
                if value.and(&mask) != value {
                    return Err(Refusal::invalid("the value has bits outside of the mask"));
                }
                Ok(EntryMatch::Ternary(value, mask))
            }
            (MatchKind::Range, FieldMatchType::Range(range)) => {
                let (low, high) = (value(&range.low)?, value(&range.high)?);
                if low.cmp_unsigned(&high).is_gt() {
                    return Err(Refusal::invalid("the low end is above the high end"));
                }
                if low.is_zero() && high.is_ones() {
                    return Err(Refusal::invalid("a range of all values is to be left out"));
                }
                Ok(EntryMatch::Range(low, high))
            }
            (kind, _) => {
                let kind = millrace_control::matching::kind_name(kind);
                Err(Refusal::invalid(format!("it is matched as {kind}")))
            }
        }
    }

    fn action_spec(&self, table: &TableInfo, action: &v1::TableAction) -> Result<ActionSpec, Refusal> {
        use v1::table_action::Type;
        let action = action.r#type.as_ref().ok_or_else(|| Refusal::invalid("the action is missing"))?;
        let profile = || {
            table
                .profile
                .ok_or_else(|| Refusal::invalid("the table has no action profile, its entries name actions"))
        };
        let with_groups = || {
            let profile = profile()?;
            match self.catalog.profile(profile) {
                Some(info) if info.with_selector => Ok(info),
                _ => Err(Refusal::invalid("the action profile has no selector, so no groups")),
            }
        };
        match action {
            Type::Action(_) if table.profile.is_some() => {
                Err(Refusal::invalid("the table has an action profile, its entries name members or groups"))
            }
            Type::Action(action) => Ok(ActionSpec::Call(self.call(table, action)?)),
            Type::ActionProfileMemberId(0) | Type::ActionProfileGroupId(0) => {
                Err(Refusal::invalid("the id of the member or group is missing"))
            }
            Type::ActionProfileMemberId(id) => Ok(ActionSpec::Member(profile()?, *id)),
            Type::ActionProfileGroupId(id) => Ok(ActionSpec::Group(with_groups()?.profile, *id)),
            Type::ActionProfileActionSet(set) => {
                let info = with_groups()?;
                use v1::action_profile_action_set::ActionSelectionMode;
                if set.action_selection_mode() == ActionSelectionMode::Random {
                    return Err(Refusal::unimplemented("selectors choose by hash, not at random"));
                }
                let shots = set.action_profile_actions.iter().map(|given| {
                    let action = given.action.as_ref();
                    let action = action.ok_or_else(|| Refusal::invalid("an action of the set is missing"))?;
                    use v1::action_profile_action::WatchKind;
                    #[allow(deprecated, reason = "older controllers use it still")]
                    let watch = match &given.watch_kind {
                        Some(WatchKind::WatchPort(port)) => self.watch_port(port)?,
                        Some(WatchKind::Watch(port)) => self.watch_number(*port)?,
                        None => None,
                    };
                    let member = self.member_write(info, action)?;
                    Ok(Shot { member, weight: self.weight(info, given.weight)?, watch })
                });
                let shots = shots.collect::<Result<Vec<Shot>, Refusal>>()?;
                self.check_size(info, shots.iter().map(|shot| shot.weight), info.max_group_size)?;
                Ok(ActionSpec::OneShot(info.profile, shots, set.clone()))
            }
        }
    }

    fn call(&self, table: &TableInfo, action: &v1::Action) -> Result<ActionCall, Refusal> {
        let Some((at, _)) = table.actions.get(&action.action_id) else {
            return Err(Refusal::invalid(format!(
                "no action with id {:#010x} in the table",
                action.action_id
            )));
        };
        Ok(ActionCall { action: *at, args: self.arguments(action)? })
    }

    /// The values of an action's parameters, in order.
    pub(super) fn arguments(&self, action: &v1::Action) -> Result<Vec<Bits>, Refusal> {
        let info = self
            .catalog
            .actions
            .get(&action.action_id)
            .ok_or_else(|| Refusal::invalid(format!("no action with id {:#010x}", action.action_id)))?;
        let of_action = |refusal: Refusal| refusal.of(format_args!("action `{}`", info.name));
        if action.params.len() > info.params.len() {
            let count = info.params.len();
            return Err(of_action(Refusal::invalid(format!("it has {count} parameter(s)"))));
        }
        let each = info.params.iter().map(|param| {
            let mut given = action.params.iter().filter(|given| given.param_id == param.id);
            let value = match (given.next(), given.next()) {
                (Some(given), None) => self.catalog.read(&param.codec, &given.value),
                (None, _) => Err(Refusal::invalid("it is missing")),
                (Some(_), Some(_)) => Err(Refusal::invalid("it is given twice")),
            };
            value.map_err(invalid(format_args!("parameter `{}`", param.name)))
        });
        let args = each.collect::<Result<Vec<Bits>, Refusal>>().map_err(of_action)?;
        if action.params.len() != args.len() {
            return Err(of_action(Refusal::invalid("there is a parameter that it does not have")));
        }
        Ok(args)
    }
}

fn cookie_of(entry: v1::TableEntry) -> Result<Cookie, Refusal> {
    #[allow(deprecated, reason = "older controllers use it still")]
    let controller = entry.controller_metadata;
    Ok(Cookie { metadata: metadata(entry.metadata)?, controller })
}

/// A meter's configuration; rates are in units a second.
pub(super) fn meter_config(config: &v1::MeterConfig) -> Result<MeterConfig, Refusal> {
    if config.eburst != 0 {
        return Err(Refusal::invalid("a two-rate meter has no excess burst"));
    }
    /// Above it a rate would not come back as it was written.
    const MAX_RATE: u64 = u64::MAX / 1_000_000;
    let rate = |rate: i64, what| match natural(rate, what)? {
        rate if rate > MAX_RATE => Err(Refusal::out_of_range(format!("{what} is above {MAX_RATE}"))),
        rate => Ok(Rate::per_second(rate)),
    };
    let config = MeterConfig {
        cir: rate(config.cir, "cir")?,
        cbs: natural(config.cburst, "cburst")?,
        pir: rate(config.pir, "pir")?,
        pbs: natural(config.pburst, "pburst")?,
    };
    if config.pir < config.cir {
        return Err(Refusal::invalid("the peak rate is below the committed rate"));
    }
    Ok(config)
}

/// The message of a meter's configuration.
pub(crate) fn meter_message(config: &MeterConfig) -> v1::MeterConfig {
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    v1::MeterConfig {
        cir: number(config.cir.millionths() / 1_000_000),
        cburst: number(config.cbs),
        pir: number(config.pir.millionths() / 1_000_000),
        pburst: number(config.pbs),
        eburst: 0,
    }
}

pub(super) fn counter_value(data: &v1::CounterData) -> Result<CounterValue, Refusal> {
    Ok(CounterValue {
        packets: natural(data.packet_count, "the number of packets")?,
        bytes: natural(data.byte_count, "the number of bytes")?,
    })
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
        change.on_undo(move |site, shadow| {
            let tables = &mut *site.tables;
            let _ = tables.remove(table, index);
            shadow.timers.cancel(table, index);
            shadow.cookies.remove(&key);
            if let Some((profile, group)) = made {
                forget_one_shot(tables, shadow, profile, group);
            }
        });
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
            change.on_undo(move |site, _| restore_direct(site.tables, table, index, &before));
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
            set_timer(&mut change.shadow, table, index, idle_timeout_ns, now_ns);
        }
        let old_cookie = change.shadow.attach(key.clone(), cookie);
        let replaced = one_shot_of(tables, &change.shadow, table, &before.target);
        let changed = tables.entry(table, index).is_some_and(|entry| entry.target != before.target);
        if let (Some((profile, group)), true) = (replaced, changed) {
            change.retire(site, profile, group);
        }
        change.on_undo(move |site, shadow| {
            let now_ns = site.now_ns;
            let tables = &mut *site.tables;
            let _ = tables.modify(table, index, &before.target);
            let _ = tables.set_idle_timeout(table, index, before.idle_timeout_ns);
            set_timer(shadow, table, index, before.idle_timeout_ns, now_ns);
            restore_direct(tables, table, index, &before);
            shadow.attach(key, old_cookie);
            if let Some((profile, group)) = made {
                forget_one_shot(tables, shadow, profile, group);
            }
        });
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
        if !change.can_undo() {
            return Ok(());
        }
        change.on_undo(move |site, shadow| {
            let now_ns = site.now_ns;
            let tables = &mut *site.tables;
            let entry = EntryWrite {
                matches: before.matches.clone(),
                priority: before.priority,
                target: before.target.clone(),
                idle_timeout_ns: before.idle_timeout_ns,
            };
            let Ok(index) = tables.insert(table, &entry, now_ns) else { return };
            restore_direct(tables, table, index, &before);
            set_timer(shadow, table, index, before.idle_timeout_ns, now_ns);
            shadow.attach(self.key, cookie);
        });
        Ok(())
    }
}

fn set_timer(shadow: &mut Shadow, table: TableId, index: EntryIndex, timeout_ns: u64, now_ns: u64) {
    match timeout_ns {
        0 => shadow.timers.cancel(table, index),
        _ => shadow.timers.set(table, index, now_ns.saturating_add(timeout_ns)),
    }
}

/// Modifies direct resources with an entry: a meter that is not given goes back to its default.
fn set_direct(
    tables: &mut Tables,
    table: TableId,
    index: EntryIndex,
    direct: &DirectResources,
) -> Result<(), Refusal> {
    if direct.has_meter {
        tables.set_direct_meter(table, index.0.into(), direct.meter)?;
    }
    if let Some(counter) = direct.counter {
        tables.set_counter(CounterRef::Direct(table), index.0.into(), counter)?;
    }
    Ok(())
}

fn restore_direct(tables: &mut Tables, table: TableId, index: EntryIndex, before: &EntryView) {
    let _ = tables.set_direct_meter(table, index.0.into(), before.meter);
    if let Some(counter) = before.counter {
        let _ = tables.set_counter(CounterRef::Direct(table), index.0.into(), counter);
    }
}

/// The one-shot group that a target is.
fn one_shot_of(
    tables: &Tables,
    shadow: &Shadow,
    table: TableId,
    target: &Target,
) -> Option<(ProfileId, u32)> {
    let Target::Group(group) = target else { return None };
    let key = (tables.profile_of(table).ok()?, *group);
    shadow.one_shots.contains_key(&key).then_some(key)
}

/// What an entry does; a one-shot group is made, and named.
#[allow(clippy::type_complexity, reason = "a target and perhaps a new group")]
fn target(
    tables: &mut Tables,
    shadow: &mut Shadow,
    action: ActionSpec,
) -> Result<(Target, Option<(ProfileId, u32)>), Refusal> {
    match action {
        ActionSpec::Call(call) => Ok((Target::Action(call), None)),
        ActionSpec::Member(profile, id) => {
            super::profile::check_style(tables, shadow, profile, false)?;
            Ok((Target::Member(id), None))
        }
        ActionSpec::Group(profile, id) => {
            super::profile::check_style(tables, shadow, profile, false)?;
            Ok((Target::Group(id), None))
        }
        ActionSpec::OneShot(profile, shots, message) => {
            super::profile::check_style(tables, shadow, profile, true)?;
            let group = make_one_shot(tables, shadow, profile, shots, message)?;
            Ok((Target::Group(group), Some((profile, group))))
        }
    }
}

fn make_one_shot(
    tables: &mut Tables,
    shadow: &mut Shadow,
    profile: ProfileId,
    shots: Vec<Shot>,
    message: v1::ActionProfileActionSet,
) -> Result<u32, Refusal> {
    let mut members = Vec::with_capacity(shots.len());
    let mut refused = None;
    for shot in &shots {
        let id = shadow.one_shot_id();
        match tables.insert_member(profile, Some(id), &shot.member) {
            Ok(member) => members.push((GroupMember { member, weight: shot.weight }, shot.watch)),
            Err(error) => {
                refused = Some(error);
                break;
            }
        }
    }
    let group = shadow.one_shot_id();
    let made = match refused {
        Some(error) => Err(error),
        None => tables.insert_group(profile, Some(group), &shadow.up(&members)),
    };
    if let Err(error) = made {
        for (member, _) in members {
            let _ = tables.remove_member(profile, member.member);
        }
        return Err(error.into());
    }
    shadow.one_shots.insert((profile, group), OneShot { members, message });
    Ok(group)
}

impl DefaultOp {
    pub(super) fn apply(self, site: &mut Site<'_>, change: &mut Change) -> Result<(), Refusal> {
        let DefaultOp { table, action, direct, cookie } = self;
        let tables = &mut *site.tables;
        let before = tables.default_action(table);
        let (meter, counter) = direct_of(tables, table, EntryIndex::MISS);
        match &action {
            Some(call) => tables.set_default(table, call)?,
            None => tables.reset_default(table)?,
        }
        set_direct(tables, table, EntryIndex::MISS, &direct)?;
        let key = (table, Vec::new(), 0);
        let old_cookie = change.shadow.attach(key.clone(), cookie);
        change.on_undo(move |site, shadow| {
            let tables = &mut *site.tables;
            let _ = tables.set_default(table, &before);
            let _ = tables.set_direct_meter(table, EntryIndex::MISS.0.into(), meter);
            if let Some(counter) = counter {
                let _ = tables.set_counter(CounterRef::Direct(table), EntryIndex::MISS.0.into(), counter);
            }
            shadow.attach(key, old_cookie);
        });
        Ok(())
    }
}

fn direct_of(
    tables: &Tables,
    table: TableId,
    index: EntryIndex,
) -> (Option<MeterConfig>, Option<CounterValue>) {
    let meter = tables.direct_meter_config(table, index.0.into()).ok().flatten();
    (meter, tables.counter_value(CounterRef::Direct(table), index.0.into()).ok())
}

/// The place of an entry, or of the default entry.
fn place(tables: &Tables, key: &EntryKey) -> Result<EntryIndex, Refusal> {
    let (table, matches, priority) = key;
    match matches.is_empty() {
        true => Ok(EntryIndex::MISS),
        false => Ok(tables.find(*table, matches, *priority)?),
    }
}

impl DirectOp<Option<CounterValue>> {
    pub(super) fn apply(self, site: &mut Site<'_>, change: &mut Change) -> Result<(), Refusal> {
        let tables = &mut *site.tables;
        let index = place(tables, &self.key)?;
        let counter = CounterRef::Direct(self.key.0);
        let before = tables.counter_value(counter, index.0.into())?;
        // Without data it stays as it is.
        if let Some(value) = self.value {
            tables.set_counter(counter, index.0.into(), value)?;
        }
        change.on_undo(move |site, _| {
            let _ = site.tables.set_counter(counter, index.0.into(), before);
        });
        Ok(())
    }
}

impl DirectOp<Option<MeterConfig>> {
    pub(super) fn apply(self, site: &mut Site<'_>, change: &mut Change) -> Result<(), Refusal> {
        let tables = &mut *site.tables;
        let index = place(tables, &self.key)?;
        let table = self.key.0;
        let before = tables.direct_meter_config(table, index.0.into())?;
        tables.set_direct_meter(table, index.0.into(), self.value)?;
        change.on_undo(move |site, _| {
            let _ = site.tables.set_direct_meter(table, index.0.into(), before);
        });
        Ok(())
    }
}
