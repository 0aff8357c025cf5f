//! Table entries, with their direct counters and meters.

use super::{MAX_ENTITIES, Reader, Stop};
use crate::catalog::{Catalog, TableInfo};
use crate::refusal::Refusal;
use crate::shadow::Shadow;
use crate::translation::NewText;
use crate::write::{Decoder, Direct, meter_message};
use millrace_p4runtime_api::v1::{
    self, Action, CounterData, FieldMatch, TableAction, TableEntry, action::Param, entity::Entity,
    field_match, table_action, table_entry::IdleTimeout,
};
use millrace_pipeline::{ActionCall, EntryMatch};
use millrace_state::{ColorCounts, CounterValue, EntryIndex, EntryView, Target};
use prost::bytes::Bytes;
use tonic::Code;

impl Reader<'_> {
    pub(super) async fn table_entries(&self, request: TableEntry) -> Result<(), Stop> {
        let role = |table: &&TableInfo| {
            self.role.is_empty() || table.role.as_deref().is_none_or(|role| role == self.role)
        };
        let tables: Vec<&TableInfo> = self
            .loaded
            .catalog
            .tables
            .select(request.table_id)?
            .into_iter()
            .map(|(_, table)| table)
            .collect();
        let of_idle = request.idle_timeout_ns != 0 || request.time_since_last_hit.is_some();
        if request.table_id != 0 && of_idle && tables.iter().any(|table| !table.idle_timeout) {
            return Err(Refusal::invalid("the table has no idle timeouts").into());
        }
        check_default(&request)?;
        for table in tables.into_iter().filter(role) {
            self.entries_of(table, &request).await?;
        }
        Ok(())
    }

    async fn entries_of(&self, table: &TableInfo, request: &TableEntry) -> Result<(), Stop> {
        let loaded = self.loaded;
        let wanted = Wanted { table, request, catalog: &loaded.catalog, shadow: &loaded.shadow };
        if request.is_default_action {
            let id = table.table;
            let handle = loaded.target.tables().await?;
            let (call, direct) = {
                let tables = handle.lock();
                (tables.default_action(id), Direct::of(&tables, id, EntryIndex::MISS))
            };
            let entry = wanted.default_entry(call, direct).map(Entity::TableEntry);
            return self.send(entry.into_iter().collect()).await;
        }
        let mut now_ns = 0;
        if request.time_since_last_hit.is_some() {
            now_ns = loaded.target.now_ns().await?;
        }
        self.each_entry(table, request, |view| {
            let entry = wanted.entry(view, now_ns)?;
            Some(Entity::TableEntry(entry))
        })
        .await
        .map(drop)
    }

    /// Sends what is made of each entry with the match and the priority of a request, as far as it has them. Says how many
    /// there were.
    async fn each_entry(
        &self,
        table: &TableInfo,
        request: &TableEntry,
        mut make: impl FnMut(EntryView) -> Option<Entity>,
    ) -> Result<usize, Stop> {
        let loaded = self.loaded;
        let TableEntry { r#match: given, priority, .. } = request;
        // With all tables no filter means anything.
        let priority = if request.table_id == 0 { 0 } else { *priority };
        let id = table.table;
        let decoder = Decoder { catalog: &loaded.catalog, ports: self.ports, role: self.role };
        let handle = loaded.target.tables().await?;
        let mut key = None;
        if !given.is_empty() {
            // Without a priority an entry of any priority is meant.
            let any = table.needs_priority && priority == 0;
            let found = decoder.key(table, given, if any { 1 } else { priority }, NewText::Unknown);
            let (_, matches, priority) = match found {
                // No entry has that text.
                Err(refusal) if refusal.code == Code::NotFound => return Ok(0),
                found => found?,
            };
            if !any {
                let found = {
                    let tables = handle.lock();
                    tables.find(id, &matches, priority).ok().and_then(|index| tables.entry(id, index))
                };
                let count = usize::from(found.is_some());
                self.send(found.and_then(&mut make).into_iter().collect()).await?;
                return Ok(count);
            }
            key = Some(matches);
        }
        let mut count = 0;
        let mut from = Some(EntryIndex(0));
        while let Some(start) = from {
            let (views, next) = handle.lock().entries_from(id, start, MAX_ENTITIES as u32);
            let is_wanted = |view: &EntryView| {
                key.as_ref().is_none_or(|key| *key == view.matches)
                    && (priority == 0 || signed(view.priority) == priority)
            };
            let views = views.into_iter().filter(is_wanted);
            let made: Vec<Entity> = views.inspect(|_| count += 1).filter_map(&mut make).collect();
            self.send(made).await?;
            from = next;
        }
        Ok(count)
    }

    pub(super) async fn direct_counters(&self, request: v1::DirectCounterEntry) -> Result<(), Stop> {
        let make = |entry: TableEntry, direct: Direct| {
            Some(Entity::DirectCounterEntry(v1::DirectCounterEntry {
                table_entry: Some(entry),
                data: Some(counter_message(&direct.counter?)),
            }))
        };
        self.direct(request.table_entry, |table| table.has_counter, make).await
    }

    pub(super) async fn direct_meters(&self, request: v1::DirectMeterEntry) -> Result<(), Stop> {
        let with_colors = request.counter_data.is_some();
        let make = |entry: TableEntry, direct: Direct| {
            Some(Entity::DirectMeterEntry(v1::DirectMeterEntry {
                table_entry: Some(entry),
                config: direct.meter.as_ref().and_then(meter_message),
                counter_data: direct.colors.filter(|_| with_colors).map(colors_message),
            }))
        };
        self.direct(request.table_entry, |table| table.meter.is_some(), make).await
    }

    async fn direct(
        &self,
        entry: Option<TableEntry>,
        has: impl Fn(&TableInfo) -> bool,
        make: impl Fn(TableEntry, Direct) -> Option<Entity>,
    ) -> Result<(), Stop> {
        let loaded = self.loaded;
        let request = entry.unwrap_or_default();
        check_default(&request)?;
        let tables = loaded.catalog.tables.select(request.table_id)?;
        if request.table_id != 0 && tables.iter().any(|(_, table)| !has(table)) {
            return Err(Refusal::invalid("the table has no such direct resource").into());
        }
        for (table_id, table) in tables.into_iter().filter(|(_, table)| has(table)) {
            if request.is_default_action {
                let id = table.table;
                let handle = loaded.target.tables().await?;
                let direct = Direct::of(&handle.lock(), id, EntryIndex::MISS);
                let entry = TableEntry { table_id, is_default_action: true, ..TableEntry::default() };
                self.send(make(entry, direct).into_iter().collect()).await?;
                continue;
            }
            let catalog = &loaded.catalog;
            let found = self
                .each_entry(table, &request, |view| {
                    let direct = Direct::from(&view);
                    let entry = TableEntry {
                        table_id,
                        r#match: match_messages(catalog, table, &view.matches),
                        priority: signed(view.priority),
                        ..TableEntry::default()
                    };
                    make(entry, direct)
                })
                .await?;
            if found == 0 && !request.r#match.is_empty() {
                return Err(Refusal::not_found("no such entry").into());
            }
        }
        Ok(())
    }
}

/// Refuses a default entry with what it never has.
pub(crate) fn check_default(entry: &TableEntry) -> Result<(), Refusal> {
    if !entry.is_default_action {
        return Ok(());
    }
    if !entry.r#match.is_empty() || entry.priority != 0 {
        return Err(Refusal::invalid("the default entry has no match and no priority"));
    }
    if entry.idle_timeout_ns != 0 || entry.time_since_last_hit.is_some() {
        return Err(Refusal::invalid("the default entry has no idle timeout"));
    }
    Ok(())
}

/// The message of an entry that its program came with.
pub(crate) fn program_entry(catalog: &Catalog, table: &TableInfo, view: EntryView) -> Option<TableEntry> {
    let (request, shadow) = (TableEntry::default(), Shadow::default());
    Wanted { table, request: &request, catalog, shadow: &shadow }.entry(view, 0)
}

/// What a read wants of the entries of a table.
struct Wanted<'a> {
    table: &'a TableInfo,
    request: &'a TableEntry,
    catalog: &'a Catalog,
    shadow: &'a Shadow,
}

impl Wanted<'_> {
    /// The message of an entry, unless a filter of the request leaves it out.
    fn entry(&self, view: EntryView, now_ns: u64) -> Option<TableEntry> {
        let Wanted { table, request, catalog, shadow } = self;
        let filtered = request.table_id != 0;
        let action = action_message(catalog, shadow, table, &view.target);
        if filtered && !wanted_action(request.action.as_ref(), &action) {
            return None;
        }
        let messages = match_messages(catalog, table, &view.matches);
        let (metadata, controller) = self.cookie((table.table, view.matches, view.priority))?;
        #[allow(deprecated, reason = "older controllers use it still")]
        Some(TableEntry {
            table_id: table.id,
            r#match: messages,
            action: Some(action),
            priority: signed(view.priority),
            controller_metadata: controller,
            meter_config: request.meter_config.as_ref().and(view.meter.as_ref()).and_then(meter_message),
            counter_data: request.counter_data.as_ref().and(view.counter.as_ref()).map(counter_message),
            meter_counter_data: request
                .meter_counter_data
                .as_ref()
                .and(view.meter_counts)
                .map(colors_message),
            is_default_action: false,
            idle_timeout_ns: i64::try_from(view.idle_timeout_ns).unwrap_or(i64::MAX),
            time_since_last_hit: request
                .time_since_last_hit
                .filter(|_| table.idle_timeout)
                .map(|_| IdleTimeout { elapsed_ns: elapsed(now_ns, view.last_hit_ns) }),
            metadata,
            is_const: view.is_const,
        })
    }

    /// The message of the default entry, unless a filter of the request leaves it out.
    fn default_entry(&self, call: ActionCall, direct: Direct) -> Option<TableEntry> {
        let Wanted { table, request, catalog, shadow } = self;
        let action = action_message(catalog, shadow, table, &Target::Action(call));
        if request.table_id != 0 && !wanted_action(request.action.as_ref(), &action) {
            return None;
        }
        let (metadata, controller) = self.cookie((table.table, Vec::new(), 0))?;
        #[allow(deprecated, reason = "older controllers use it still")]
        Some(TableEntry {
            table_id: table.id,
            action: Some(action),
            controller_metadata: controller,
            meter_config: request.meter_config.as_ref().and(direct.meter.as_ref()).and_then(meter_message),
            counter_data: request.counter_data.as_ref().and(direct.counter.as_ref()).map(counter_message),
            meter_counter_data: request.meter_counter_data.as_ref().and(direct.colors).map(colors_message),
            is_default_action: true,
            metadata,
            is_const: catalog.program.tables[table.table].const_default,
            ..TableEntry::default()
        })
    }

    /// The metadata of an entry, unless a filter leaves it out.
    fn cookie(&self, key: crate::shadow::EntryKey) -> Option<(Bytes, u64)> {
        let request = self.request;
        #[allow(deprecated, reason = "older controllers use it still")]
        let (metadata, controller) = (&request.metadata, request.controller_metadata);
        let kept = self.shadow.cookies.get(&key).cloned().unwrap_or_default();
        let filtered = request.table_id != 0;
        let left_out = (!metadata.is_empty() && kept.metadata != metadata)
            || (controller != 0 && kept.controller != controller);
        (!filtered || !left_out).then_some((kept.metadata, kept.controller))
    }
}

fn wanted_action(wanted: Option<&TableAction>, action: &TableAction) -> bool {
    let id = |action: &TableAction| match &action.r#type {
        Some(table_action::Type::Action(action)) => Some(action.action_id),
        _ => None,
    };
    let wanted = wanted.and_then(id).filter(|id| *id != 0);
    wanted.is_none() || wanted == id(action)
}

fn elapsed(now_ns: u64, since_ns: u64) -> i64 {
    i64::try_from(now_ns.saturating_sub(since_ns)).unwrap_or(i64::MAX)
}

fn signed(priority: u32) -> i32 {
    i32::try_from(priority).unwrap_or(i32::MAX)
}

pub(super) fn counter_message(value: &CounterValue) -> CounterData {
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    CounterData { byte_count: number(value.bytes), packet_count: number(value.packets) }
}

/// What a meter has coloured.
pub(super) fn colors_message(counts: ColorCounts) -> v1::MeterCounterData {
    let [green, yellow, red] = counts.map(|value| Some(counter_message(&value)));
    v1::MeterCounterData { green, yellow, red }
}

/// The fields of a match, those left out that match anything.
pub(crate) fn match_messages(
    catalog: &Catalog,
    table: &TableInfo,
    matches: &[EntryMatch],
) -> Vec<FieldMatch> {
    fields_messages(catalog, &table.fields, matches)
}

pub(super) fn fields_messages(
    catalog: &Catalog,
    fields: &[crate::catalog::FieldInfo],
    matches: &[EntryMatch],
) -> Vec<FieldMatch> {
    use field_match::{Exact, FieldMatchType, Lpm, Optional, Range, Ternary};
    let each = fields.iter().zip(matches).filter_map(|(field, given)| {
        let bytes = |value| catalog.write(&field.codec, value);
        let kind = match given {
            EntryMatch::Exact(value) => FieldMatchType::Exact(Exact { value: bytes(value) }),
            EntryMatch::Lpm(_, 0) => return None,
            EntryMatch::Lpm(value, length) => {
                FieldMatchType::Lpm(Lpm { value: bytes(value), prefix_len: signed(*length) })
            }
            EntryMatch::Ternary(_, mask) if mask.is_zero() => return None,
            EntryMatch::Ternary(value, mask) => {
                FieldMatchType::Ternary(Ternary { value: bytes(value), mask: bytes(mask) })
            }
            EntryMatch::Range(low, high) if low.is_zero() && high.is_ones() => return None,
            EntryMatch::Range(low, high) => {
                FieldMatchType::Range(Range { low: bytes(low), high: bytes(high) })
            }
            EntryMatch::Optional(None) => return None,
            EntryMatch::Optional(Some(value)) => FieldMatchType::Optional(Optional { value: bytes(value) }),
        };
        Some(FieldMatch { field_id: field.id, field_match_type: Some(kind) })
    });
    each.collect()
}

fn action_message(catalog: &Catalog, shadow: &Shadow, table: &TableInfo, target: &Target) -> TableAction {
    let kind = match target {
        Target::Member(id) => table_action::Type::ActionProfileMemberId(*id),
        Target::Group(id) => {
            let one_shot = table.profile.and_then(|profile| shadow.one_shots.get(&(profile, *id)));
            match one_shot {
                Some(one_shot) => table_action::Type::ActionProfileActionSet(one_shot.message.clone()),
                None => table_action::Type::ActionProfileGroupId(*id),
            }
        }
        Target::Action(call) => {
            let id = table.action_ids.get(call.action).copied().unwrap_or(0);
            table_action::Type::Action(call_message(catalog, id, &call.args))
        }
    };
    TableAction { r#type: Some(kind) }
}

pub(crate) fn call_message(catalog: &Catalog, id: u32, args: &[millrace_pipeline::Bits]) -> Action {
    let params = catalog.actions.get(&id).map(|action| action.params.as_slice()).unwrap_or_default();
    let params = params
        .iter()
        .zip(args)
        .map(|(param, value)| Param { param_id: param.id, value: catalog.write(&param.codec, value) });
    Action { action_id: id, params: params.collect() }
}
