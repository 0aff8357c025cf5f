//! Counters, meters, registers, value sets, and how digests are sent.

use super::batch::{Change, Site};
use super::table::{counter_value, meter_config};
use super::{Decoder, Kind, Op, only_modify};
use crate::proto::v1;
use crate::refusal::Refusal;
use millrace_pipeline::{Bits, CounterId, DigestId, EntryMatch, MeterId, RegisterId, ValueSetId};
use millrace_state::{CounterRef, CounterValue, MeterConfig};
use std::ops::Range;

/// Most cells that one update may write: a whole array in a loop over its cells keeps the worker.
const MAX_CELLS: u64 = 1 << 20;

#[derive(Clone, Debug)]
pub(crate) struct CounterOp {
    counter: CounterId,
    cells: Range<u64>,
    value: Option<CounterValue>,
}

#[derive(Clone, Debug)]
pub(crate) struct MeterOp {
    meter: MeterId,
    cells: Range<u64>,
    config: Option<MeterConfig>,
}

#[derive(Clone, Debug)]
pub(crate) struct RegisterOp {
    /// Each array with the value of its cells.
    values: Vec<(RegisterId, Bits)>,
    cells: Range<u64>,
}

#[derive(Clone, Debug)]
pub(crate) struct ValueSetOp {
    set: ValueSetId,
    members: Vec<Vec<EntryMatch>>,
}

#[derive(Clone, Debug)]
pub(crate) struct DigestOp {
    kind: Kind,
    digest: DigestId,
    config: v1::digest_entry::Config,
}

/// The cells that an index means: all without one.
pub(crate) fn cells(index: Option<&v1::Index>, size: u64) -> Result<Range<u64>, Refusal> {
    match index {
        None => Ok(0..size),
        Some(index) => {
            let at = u64::try_from(index.index).map_err(|_| Refusal::invalid("the index is negative"))?;
            if at >= size {
                return Err(Refusal::out_of_range(format!("no cell {at}: there are {size}, counted from 0")));
            }
            Ok(at..at + 1)
        }
    }
}

fn writable(index: Option<&v1::Index>, size: u64) -> Result<Range<u64>, Refusal> {
    let cells = cells(index, size)?;
    if cells.end - cells.start > MAX_CELLS {
        return Err(Refusal::exhausted(format!(
            "an update without an index writes at most {MAX_CELLS} cells, there are {size}"
        )));
    }
    Ok(cells)
}

impl Decoder<'_> {
    pub(super) fn counter(&self, kind: Kind, entry: v1::CounterEntry) -> Result<Op, Refusal> {
        only_modify(kind, "a counter")?;
        let info = self.catalog.counters.get(entry.counter_id)?;
        Ok(Op::Counter(CounterOp {
            counter: info.object,
            cells: writable(entry.index.as_ref(), info.size)?,
            value: entry.data.as_ref().map(counter_value).transpose()?,
        }))
    }

    pub(super) fn meter(&self, kind: Kind, entry: v1::MeterEntry) -> Result<Op, Refusal> {
        only_modify(kind, "a meter")?;
        let info = self.catalog.meters.get(entry.meter_id)?;
        if entry.counter_data.is_some() {
            return Err(Refusal::unimplemented("meters do not count their colours"));
        }
        Ok(Op::Meter(MeterOp {
            meter: info.object,
            cells: writable(entry.index.as_ref(), info.size)?,
            config: entry.config.as_ref().map(meter_config).transpose()?,
        }))
    }

    pub(super) fn register(&self, kind: Kind, entry: v1::RegisterEntry) -> Result<Op, Refusal> {
        only_modify(kind, "a register")?;
        let info = self.catalog.registers.get(entry.register_id)?;
        let data = entry.data.as_ref().ok_or_else(|| Refusal::invalid("the data is missing"))?;
        let mut values = Vec::with_capacity(info.registers.len());
        info.shape.read(data, &mut info.widths.iter().copied(), &mut values)?;
        Ok(Op::Register(RegisterOp {
            values: info.registers.iter().copied().zip(values).collect(),
            cells: writable(entry.index.as_ref(), info.size)?,
        }))
    }

    pub(super) fn value_set(&self, kind: Kind, entry: v1::ValueSetEntry) -> Result<Op, Refusal> {
        only_modify(kind, "a value set")?;
        let info = self.catalog.value_sets.get(entry.value_set_id)?;
        let members = entry.members.iter().map(|member| self.matches(&info.fields, &member.r#match));
        Ok(Op::ValueSet(ValueSetOp { set: info.set, members: members.collect::<Result<_, _>>()? }))
    }

    pub(super) fn digest(&self, kind: Kind, entry: v1::DigestEntry) -> Result<Op, Refusal> {
        let digest = self.catalog.digests.get(entry.digest_id)?.digest;
        let config = entry.config.unwrap_or_default();
        if kind != Kind::Delete
            && (config.max_timeout_ns < 0 || config.max_list_size < 0 || config.ack_timeout_ns < 0)
        {
            return Err(Refusal::invalid("a timeout or size is negative"));
        }
        Ok(Op::Digest(DigestOp { kind, digest, config }))
    }
}

impl CounterOp {
    pub(super) fn apply(self, site: &mut Site<'_>, change: &mut Change) -> Result<(), Refusal> {
        let Some(value) = self.value else { return Ok(()) };
        let counter = CounterRef::Indexed(self.counter);
        let tables = &mut *site.tables;
        let mut before = Vec::new();
        for cell in self.cells.clone() {
            if change.can_undo() {
                before.push(tables.counter_value(counter, cell)?);
            }
            tables.set_counter(counter, cell, value)?;
        }
        change.on_undo(move |site, _| {
            for (cell, value) in self.cells.zip(before) {
                let _ = site.tables.set_counter(counter, cell, value);
            }
        });
        Ok(())
    }
}

impl MeterOp {
    pub(super) fn apply(self, site: &mut Site<'_>, change: &mut Change) -> Result<(), Refusal> {
        let meter = self.meter;
        let state = site.switch()?.state_mut();
        let mut before = Vec::new();
        for cell in self.cells.clone() {
            if change.can_undo() {
                before.push(state.meter_config(meter, cell)?);
            }
            state.set_meter(meter, cell, self.config)?;
        }
        change.on_undo(move |site, _| {
            site.on_switch(|switch| {
                for (cell, config) in self.cells.zip(before) {
                    let _ = switch.state_mut().set_meter(meter, cell, config);
                }
            })
        });
        Ok(())
    }
}

impl RegisterOp {
    pub(super) fn apply(self, site: &mut Site<'_>, change: &mut Change) -> Result<(), Refusal> {
        let state = site.switch()?.state_mut();
        let mut before = Vec::new();
        for (register, value) in &self.values {
            for cell in self.cells.clone() {
                if change.can_undo() {
                    before.push((*register, cell, state.register_value(*register, cell)?));
                }
                state.set_register(*register, cell, value)?;
            }
        }
        change.on_undo(move |site, _| {
            site.on_switch(|switch| {
                for (register, cell, value) in before {
                    let _ = switch.state_mut().set_register(register, cell, &value);
                }
            })
        });
        Ok(())
    }
}

impl ValueSetOp {
    pub(super) fn apply(self, site: &mut Site<'_>, change: &mut Change) -> Result<(), Refusal> {
        let state = site.switch()?.state_mut();
        let before: Vec<Vec<EntryMatch>> = state.values(self.set).collect();
        state.replace_values(self.set, &self.members)?;
        change.on_undo(move |site, _| {
            site.on_switch(|switch| {
                let _ = switch.state_mut().replace_values(self.set, &before);
            })
        });
        Ok(())
    }
}

impl DigestOp {
    pub(super) fn apply(self, change: &mut Change) -> Result<(), Refusal> {
        let DigestOp { kind, digest, config } = self;
        let before = change.shadow.digests.get(&digest).copied();
        match (kind, before) {
            (Kind::Insert, Some(_)) => return Err(Refusal::exists("the digest is enabled already")),
            (Kind::Modify | Kind::Delete, None) => {
                return Err(Refusal::not_found("the digest is not enabled"));
            }
            (Kind::Delete, Some(_)) => drop(change.shadow.digests.remove(&digest)),
            (Kind::Insert | Kind::Modify, _) => drop(change.shadow.digests.insert(digest, config)),
        }
        change.on_undo(move |_, shadow| match before {
            Some(before) => drop(shadow.digests.insert(digest, before)),
            None => drop(shadow.digests.remove(&digest)),
        });
        Ok(())
    }
}
