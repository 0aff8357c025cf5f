//! The direct counters and meters of entries, and of default entries.

use super::batch::Site;
use super::cells::{clears, counter_value, meter_config};
use super::{Decoder, Kind, Op, TablesOp, only_modify};
use crate::catalog::TableInfo;
use crate::read::check_default;
use crate::refusal::Refusal;
use crate::shadow::EntryKey;
use crate::translation::NewText;
use millrace_p4runtime_api::v1;
use millrace_pipeline::TableId;
use millrace_state::{ColorCounts, CounterRef, CounterValue, EntryIndex, EntryView, MeterConfig, Tables};

/// What comes with an entry.
#[derive(Clone, Debug, Default)]
pub(super) struct DirectResources {
    has_meter: bool,
    pub(super) meter: Option<MeterConfig>,
    /// Whether what the meter has coloured is forgotten.
    clears_meter: bool,
    pub(super) counter: Option<CounterValue>,
}

/// What an entry, or a default entry, has of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Direct {
    pub(crate) counter: Option<CounterValue>,
    pub(crate) meter: Option<MeterConfig>,
    pub(crate) colors: Option<ColorCounts>,
}

impl From<&EntryView> for Direct {
    fn from(view: &EntryView) -> Direct {
        Direct { counter: view.counter, meter: view.meter, colors: view.meter_counts }
    }
}

impl Direct {
    pub(crate) fn of(tables: &Tables, table: TableId, index: EntryIndex) -> Direct {
        let index = index.0.into();
        Direct {
            counter: tables.counter_value(CounterRef::Direct(table), index).ok(),
            meter: tables.direct_meter_config(table, index).ok().flatten(),
            colors: tables.direct_meter_counts(table, index).ok(),
        }
    }
}

/// The direct counter or meter of an entry, or of the default entry.
#[derive(Clone, Debug)]
pub(crate) struct DirectOp<T> {
    key: EntryKey,
    value: T,
}

/// What is written to a direct meter.
#[derive(Clone, Debug)]
pub(crate) struct MeterWrite {
    /// None: everything is green.
    config: Option<MeterConfig>,
    /// Whether what was coloured is forgotten.
    clears: bool,
}

impl Decoder<'_> {
    pub(super) fn direct_resources(
        &self,
        table: &TableInfo,
        entry: &v1::TableEntry,
    ) -> Result<DirectResources, Refusal> {
        let meter_is_named = entry.meter_config.is_some() || entry.meter_counter_data.is_some();
        if meter_is_named && table.meter.is_none() {
            return Err(Refusal::invalid("the table has no direct meter"));
        }
        if entry.counter_data.is_some() && !table.has_counter {
            return Err(Refusal::invalid("the table has no direct counter"));
        }
        let of_type = |(config, of_type)| meter_config(config, of_type);
        Ok(DirectResources {
            has_meter: table.meter.is_some(),
            meter: entry.meter_config.as_ref().zip(table.meter).map(of_type).transpose()?,
            clears_meter: clears(entry.meter_counter_data.as_ref())?,
            counter: entry.counter_data.as_ref().map(counter_value).transpose()?,
        })
    }

    pub(super) fn direct_counter(&self, kind: Kind, entry: v1::DirectCounterEntry) -> Result<Op, Refusal> {
        only_modify(kind, "a direct counter")?;
        let (table, key) = self.direct_key(entry.table_entry.as_ref())?;
        if !table.has_counter {
            return Err(Refusal::invalid(format!("table `{}` has no direct counter", table.name)));
        }
        Ok(Op::Tables(TablesOp::DirectCounter(DirectOp {
            key,
            value: entry.data.as_ref().map(counter_value).transpose()?,
        })))
    }

    pub(super) fn direct_meter(&self, kind: Kind, entry: v1::DirectMeterEntry) -> Result<Op, Refusal> {
        only_modify(kind, "a direct meter")?;
        let (table, key) = self.direct_key(entry.table_entry.as_ref())?;
        let Some(of_type) = table.meter else {
            return Err(Refusal::invalid(format!("table `{}` has no direct meter", table.name)));
        };
        let config = entry.config.as_ref().map(|config| meter_config(config, of_type)).transpose()?;
        let value = MeterWrite { config, clears: clears(entry.counter_data.as_ref())? };
        Ok(Op::Tables(TablesOp::DirectMeter(DirectOp { key, value })))
    }

    fn direct_key(&self, entry: Option<&v1::TableEntry>) -> Result<(&TableInfo, EntryKey), Refusal> {
        let entry = entry.ok_or_else(|| Refusal::invalid("the table entry is missing"))?;
        let table = self.catalog.tables.get(entry.table_id)?;
        self.check_role(table)?;
        check_default(entry)?;
        if entry.is_default_action {
            return Ok((table, (table.table, Vec::new(), 0)));
        }
        if table.fields.is_empty() {
            return Err(Refusal::not_found("a table without a key has no entries but the default"));
        }
        Ok((table, self.key(table, &entry.r#match, entry.priority, NewText::Unknown)?))
    }
}

/// Modifies direct resources with an entry: a meter that is not given goes back to its default.
pub(super) fn set_direct(
    tables: &mut Tables,
    table: TableId,
    index: EntryIndex,
    direct: &DirectResources,
) -> Result<(), Refusal> {
    if direct.has_meter {
        tables.set_direct_meter(table, index.0.into(), direct.meter)?;
    }
    if direct.clears_meter {
        tables.set_direct_meter_counts(table, index.0.into(), ColorCounts::default())?;
    }
    if let Some(counter) = direct.counter {
        tables.set_counter(CounterRef::Direct(table), index.0.into(), counter)?;
    }
    Ok(())
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
    pub(super) fn apply(self, site: &mut Site<'_>) -> Result<(), Refusal> {
        let tables = &mut *site.tables;
        let index = place(tables, &self.key)?;
        let counter = CounterRef::Direct(self.key.0);
        // Without data it stays as it is.
        if let Some(value) = self.value {
            tables.set_counter(counter, index.0.into(), value)?;
        }
        Ok(())
    }
}

impl DirectOp<MeterWrite> {
    pub(super) fn apply(self, site: &mut Site<'_>) -> Result<(), Refusal> {
        let tables = &mut *site.tables;
        let index = place(tables, &self.key)?;
        let table = self.key.0;
        let MeterWrite { config, clears } = self.value;
        tables.set_direct_meter(table, index.0.into(), config)?;
        if clears {
            tables.set_direct_meter_counts(table, index.0.into(), ColorCounts::default())?;
        }
        Ok(())
    }
}
