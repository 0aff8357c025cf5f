//! Counters, meters, registers, value sets, and how digests are sent.

use super::batch::{Change, Site};
use super::{Decoder, Kind, Op, TablesOp, natural, only_modify};
use crate::refusal::Refusal;
use crate::shadow::Before;
use crate::translation::NewText;
use millrace_p4runtime_api::config::meter_spec::Type as MeterType;
use millrace_p4runtime_api::v1;
use millrace_pipeline::{CounterId, DigestId};
use millrace_state::{ColorCounts, CounterRef, CounterValue, MeterConfig, MeterRates, ObjectWrite, Rate};
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

/// The configuration of a meter of a type; rates are in units a second.
pub(super) fn meter_config(config: &v1::MeterConfig, of_type: MeterType) -> Result<MeterConfig, Refusal> {
    let has_two_rates = of_type == MeterType::TwoRateThreeColor;
    if !has_two_rates && (config.pir, config.pburst) != (config.cir, config.cburst) {
        return Err(Refusal::invalid(
            "the peak rate and burst of a single-rate meter are those that are committed",
        ));
    }
    match (of_type, config.eburst) {
        (_, 0) => {}
        (MeterType::SingleRateThreeColor, _) => {
            return Err(Refusal::unimplemented("meters have no excess burst"));
        }
        _ => return Err(Refusal::invalid("a meter of this type has no excess burst")),
    }
    /// Above it a rate would not come back as it was written.
    const MAX_RATE: u64 = u64::MAX / 1_000_000;
    let rate = |rate: i64, what| match natural(rate, what)? {
        rate if rate > MAX_RATE => Err(Refusal::out_of_range(format!("{what} is above {MAX_RATE}"))),
        rate => Ok(Rate::per_second(rate)),
    };
    let rates = MeterRates {
        cir: rate(config.cir, "cir")?,
        cbs: natural(config.cburst, "cburst")?,
        pir: rate(config.pir, "pir")?,
        pbs: natural(config.pburst, "pburst")?,
    };
    if rates.pir < rates.cir {
        return Err(Refusal::invalid("the peak rate is below the committed rate"));
    }
    Ok(rates.into())
}

/// The message of a meter's configuration; none of an account, for which the protocol has no message.
pub(crate) fn meter_message(config: &MeterConfig) -> Option<v1::MeterConfig> {
    let MeterConfig::Rates(config) = config else { return None };
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    Some(v1::MeterConfig {
        cir: number(config.cir.millionths() / 1_000_000),
        cburst: number(config.cbs),
        pir: number(config.pir.millionths() / 1_000_000),
        pburst: number(config.pbs),
        eburst: 0,
    })
}

/// Whether what a meter has coloured is to be forgotten: it can be set to nothing else (specification, "DirectMeterEntry").
pub(super) fn clears(data: Option<&v1::MeterCounterData>) -> Result<bool, Refusal> {
    let Some(v1::MeterCounterData { green, yellow, red }) = data else { return Ok(false) };
    match [green, yellow, red].into_iter().flatten().all(|data| *data == v1::CounterData::default()) {
        true => Ok(true),
        false => Err(Refusal::invalid("the counters of a meter's colours can only be set to 0")),
    }
}

pub(super) fn counter_value(data: &v1::CounterData) -> Result<CounterValue, Refusal> {
    Ok(CounterValue {
        packets: natural(data.packet_count, "the number of packets")?,
        bytes: natural(data.byte_count, "the number of bytes")?,
    })
}

impl Decoder<'_> {
    pub(super) fn counter(&self, kind: Kind, entry: v1::CounterEntry) -> Result<Op, Refusal> {
        only_modify(kind, "a counter")?;
        let info = self.catalog.counters.get(entry.counter_id)?;
        Ok(Op::Tables(TablesOp::Counter(CounterOp {
            counter: info.object,
            cells: writable(entry.index.as_ref(), info.size)?,
            value: entry.data.as_ref().map(counter_value).transpose()?,
        })))
    }

    pub(super) fn meter(&self, kind: Kind, entry: v1::MeterEntry) -> Result<Op, Refusal> {
        only_modify(kind, "a meter")?;
        let info = self.catalog.meters.get(entry.meter_id)?;
        let (meter, cells) = (info.object, writable(entry.index.as_ref(), info.size)?);
        let config = entry.config.as_ref().map(|config| meter_config(config, info.of_type)).transpose()?;
        let counts = ColorCounts::default();
        let mut writes = Vec::with_capacity(2);
        writes.push(ObjectWrite::Meter { meter, cells: cells.clone(), config });
        if clears(entry.counter_data.as_ref())? {
            writes.push(ObjectWrite::MeterCounts { meter, cells, counts });
        }
        Ok(Op::Objects(writes))
    }

    pub(super) fn register(&self, kind: Kind, entry: v1::RegisterEntry) -> Result<Op, Refusal> {
        only_modify(kind, "a register")?;
        let info = self.catalog.registers.get(entry.register_id)?;
        let data = entry.data.as_ref().ok_or_else(|| Refusal::invalid("the data is missing"))?;
        let mut values = Vec::with_capacity(info.registers.len());
        info.shape.read(data, &mut info.widths.iter().copied(), &mut values)?;
        let cells = writable(entry.index.as_ref(), info.size)?;
        let registers = info.registers.iter().copied().zip(values);
        let write = |(register, value)| ObjectWrite::Register { register, cells: cells.clone(), value };
        Ok(Op::Objects(registers.map(write).collect()))
    }

    pub(super) fn value_set(&self, kind: Kind, entry: v1::ValueSetEntry) -> Result<Op, Refusal> {
        only_modify(kind, "a value set")?;
        let info = self.catalog.value_sets.get(entry.value_set_id)?;
        let member =
            |member: &v1::ValueSetMember| self.matches(&info.fields, &member.r#match, NewText::Named);
        let members = entry.members.iter().map(member);
        Ok(Op::Objects(vec![ObjectWrite::ReplaceValues(info.set, members.collect::<Result<_, _>>()?)]))
    }

    pub(super) fn digest(&self, kind: Kind, entry: v1::DigestEntry) -> Result<Op, Refusal> {
        let digest = self.catalog.digests.get(entry.digest_id)?.digest;
        let config = entry.config.unwrap_or_default();
        if kind != Kind::Delete
            && (config.max_timeout_ns < 0 || config.max_list_size < 0 || config.ack_timeout_ns < 0)
        {
            return Err(Refusal::invalid("a timeout or size is negative"));
        }
        Ok(Op::Tables(TablesOp::Digest(DigestOp { kind, digest, config })))
    }
}

impl CounterOp {
    pub(super) fn apply(self, site: &mut Site<'_>) -> Result<(), Refusal> {
        let Some(value) = self.value else { return Ok(()) };
        let counter = CounterRef::Indexed(self.counter);
        let tables = &mut *site.tables;
        for cell in self.cells {
            tables.set_counter(counter, cell, value)?;
        }
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
        change.note([Before::Digest(digest, before)]);
        Ok(())
    }
}
