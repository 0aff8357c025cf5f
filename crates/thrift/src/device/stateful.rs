//! Calls about counters, meters, registers and value sets.

use super::Device;
use super::codes::{meter_code, table_code};
use super::loaded::Running;
use super::values::number;
use millrace_dataplane::ObjectRequest;
use millrace_pipeline::{Bits, EntryMatch, MeterId, RegisterId, ValueSetId};
use millrace_state::{
    CounterRef, CounterValue as Counted, EntryIndex, MeterConfig, MeterRates, MeterRef, Names, ObjectWrite,
    Rate, TableError, Tables, WriteError,
};
use millrace_thrift_api::{
    CallError, CounterCode, CounterValue, InvalidCounterOperation, InvalidMeterOperation,
    InvalidParseVSetOperation, InvalidRegisterOperation, InvalidTableOperation, MeterCode, MeterRate,
    RegisterCode, TableCode, ValueSetCode,
};
use std::ops::Range;

type OfTable<T = ()> = Result<T, CallError<InvalidTableOperation>>;
type OfCounter<T = ()> = Result<T, CallError<InvalidCounterOperation>>;
type OfMeter<T = ()> = Result<T, CallError<InvalidMeterOperation>>;
type OfRegister<T = ()> = Result<T, CallError<InvalidRegisterOperation>>;
type OfValueSet<T = ()> = Result<T, CallError<InvalidParseVSetOperation>>;

/// Cells of a register that are read or written between two rounds of the worker.
const CHUNK: u64 = 4096;
/// Most cells that one call reads.
const MAX_CELLS: u64 = 1 << 20;

impl Device {
    pub(crate) fn bm_mt_read_counter(&self, table: String, handle: i32) -> OfTable<CounterValue> {
        let counted = self.entry_of(&table, handle, |tables, counter, index| {
            tables.counter_value(counter, index.0.into())
        })?;
        Ok(shown(counted))
    }

    pub(crate) fn bm_mt_write_counter(&self, table: String, handle: i32, value: CounterValue) -> OfTable {
        self.entry_of(&table, handle, |tables, counter, index| {
            tables.set_counter(counter, index.0.into(), counted(value))
        })
    }

    pub(crate) fn bm_mt_reset_counters(&self, table: String) -> OfTable {
        let Running { loaded, tables, .. } = self.running()?;
        let table = loaded.table(&table)?;
        tables.lock().reset_counter(CounterRef::Direct(table)).map_err(|error| table_code(&error))?;
        Ok(())
    }

    pub(crate) fn bm_mt_set_meter_rates(&self, table: String, handle: i32, rates: Vec<MeterRate>) -> OfTable {
        let config = config(&rates).map_err(|_| TableCode::InvalidMeterOperation)?;
        self.entry_of(&table, handle, |tables, of, index| match of {
            CounterRef::Direct(table) => tables.set_direct_meter(table, index.0.into(), Some(config)),
            CounterRef::Indexed(_) => Ok(()),
        })
    }

    pub(crate) fn bm_mt_get_meter_rates(&self, table: String, handle: i32) -> OfTable<Vec<MeterRate>> {
        let Running { loaded, .. } = self.running()?;
        let table_id = loaded.table(&table)?;
        if loaded.program.tables[table_id].direct_meter.is_none() {
            return Err(TableCode::MetersDisabled.into());
        }
        let config = self.entry_of(&table, handle, |tables, _, index| {
            tables.direct_meter_config(table_id, index.0.into())
        })?;
        Ok(rates(config))
    }

    /// Does something with the direct counter or meter of an entry.
    fn entry_of<R>(
        &self,
        table: &str,
        handle: i32,
        work: impl FnOnce(&mut Tables, CounterRef, EntryIndex) -> Result<R, WriteError>,
    ) -> OfTable<R> {
        let Running { loaded, tables, .. } = self.running()?;
        let table = loaded.table(table)?;
        let mut handles = loaded.handles();
        let mut tables = tables.lock();
        let index = handles.entry(&tables, table, handle)?;
        Ok(work(&mut tables, CounterRef::Direct(table), index).map_err(|error| table_code(&error))?)
    }

    pub(crate) fn bm_counter_read(&self, counter: String, index: i32) -> OfCounter<CounterValue> {
        let (counter, tables) = self.counter(counter)?;
        let value =
            tables.tables.lock().counter_value(counter, cell(index).ok_or(CounterCode::InvalidIndex)?);
        Ok(shown(value.map_err(|_| CounterCode::InvalidIndex)?))
    }

    pub(crate) fn bm_counter_write(&self, counter: String, index: i32, value: CounterValue) -> OfCounter {
        let (counter, running) = self.counter(counter)?;
        let index = cell(index).ok_or(CounterCode::InvalidIndex)?;
        let written = running.tables.lock().set_counter(counter, index, counted(value));
        Ok(written.map_err(|_| CounterCode::InvalidIndex)?)
    }

    pub(crate) fn bm_counter_reset_all(&self, counter: String) -> OfCounter {
        let (counter, running) = self.counter(counter)?;
        running.tables.lock().reset_counter(counter).map_err(|_| CounterCode::Error)?;
        Ok(())
    }

    fn counter(&self, name: String) -> OfCounter<(CounterRef, Running)> {
        let running = self.running()?;
        match Names(&running.loaded.program).counter(&name) {
            Ok(counter @ CounterRef::Indexed(_)) => Ok((counter, running)),
            _ => Err(CounterCode::InvalidName.into()),
        }
    }

    pub(crate) fn bm_meter_array_set_rates(&self, meter: String, rates: Vec<MeterRate>) -> OfMeter {
        let config = Some(config(&rates)?);
        let running = self.running()?;
        let program = &running.loaded.program;
        match Names(program).meter(&meter).map_err(|error| meter_code(&error))? {
            MeterRef::Indexed(meter) => {
                for cells in chunks(0..program.meters[meter].size) {
                    self.set_meter(&running, ObjectWrite::Meter { meter, cells, config })?;
                }
                Ok(())
            }
            MeterRef::Direct(table) => {
                let set = running.tables.lock().set_direct_meters(table, config);
                Ok(set.map_err(|error| meter_code(&error))?)
            }
        }
    }

    pub(crate) fn bm_meter_set_rates(&self, meter: String, index: i32, rates: Vec<MeterRate>) -> OfMeter {
        let config = Some(config(&rates)?);
        let index = cell(index).ok_or(MeterCode::InvalidIndex)?;
        let running = self.running()?;
        let meter = indexed(&running, &meter)?;
        self.set_meter(&running, ObjectWrite::Meter { meter, cells: cell_range(index), config })
    }

    fn set_meter(&self, running: &Running, write: ObjectWrite) -> OfMeter {
        Ok(self.write(running, vec![write])?.map_err(|error| meter_code(&error))?)
    }

    pub(crate) fn bm_meter_get_rates(&self, meter: String, index: i32) -> OfMeter<Vec<MeterRate>> {
        let index = cell(index).ok_or(MeterCode::InvalidIndex)?;
        let running = self.running()?;
        let meter = indexed(&running, &meter)?;
        let read = self.objects(&running, |to| ObjectRequest::Meters(meter, cell_range(index), to))?;
        let cells = read.map_err(|error| meter_code(&error))?;
        Ok(rates(cells.into_iter().next().and_then(|(config, _)| config)))
    }

    pub(crate) fn bm_register_read(&self, register: String, index: i32) -> OfRegister<i64> {
        let index = cell(index).ok_or(RegisterCode::InvalidIndex)?;
        let running = self.running()?;
        let register = register_of(&running, &register)?;
        let cells = self.register_cells(&running, register, cell_range(index))?;
        Ok(cells.into_iter().next().ok_or(RegisterCode::InvalidIndex)?)
    }

    pub(crate) fn bm_register_read_all(&self, register: String) -> OfRegister<Vec<i64>> {
        let running = self.running()?;
        let register = register_of(&running, &register)?;
        let size = running.loaded.program.registers[register].size;
        if size > MAX_CELLS {
            return Err(RegisterCode::Error.into());
        }
        let mut cells = Vec::with_capacity(size as usize);
        for chunk in chunks(0..size) {
            cells.extend(self.register_cells(&running, register, chunk)?);
        }
        Ok(cells)
    }

    fn register_cells(
        &self,
        running: &Running,
        register: RegisterId,
        cells: Range<u64>,
    ) -> OfRegister<Vec<i64>> {
        let read = self.objects(running, |to| ObjectRequest::Registers(vec![register], cells, to))?;
        let values = read.map_err(|_| RegisterCode::InvalidIndex)?;
        Ok(values.iter().flatten().map(shown_cell).collect())
    }

    pub(crate) fn bm_register_write(&self, register: String, index: i32, value: i64) -> OfRegister {
        let end = index.checked_add(1).ok_or(RegisterCode::InvalidIndex)?;
        self.bm_register_write_range(register, index, end, value)
    }

    /// Writes the cells from `start` up to the one before `end`.
    pub(crate) fn bm_register_write_range(
        &self,
        register: String,
        start: i32,
        end: i32,
        value: i64,
    ) -> OfRegister {
        let (start, end) = cell(start).zip(cell(end)).ok_or(RegisterCode::InvalidIndex)?;
        let running = self.running()?;
        let register = register_of(&running, &register)?;
        let made = &running.loaded.program.registers[register];
        if start > end || end > made.size {
            return Err(RegisterCode::InvalidIndex.into());
        }
        let value = kept_cell(made.width, value);
        for cells in chunks(start..end) {
            let write = ObjectWrite::Register { register, cells, value: value.clone() };
            self.write(&running, vec![write])?.map_err(|_| RegisterCode::InvalidIndex)?;
        }
        Ok(())
    }

    pub(crate) fn bm_register_reset(&self, register: String) -> OfRegister {
        let running = self.running()?;
        let register = register_of(&running, &register)?;
        let reset = self.write(&running, vec![ObjectWrite::ResetRegister(register)])?;
        Ok(reset.map_err(|_| RegisterCode::Error)?)
    }

    /// As in bmv2 a member that is there already stays without an error.
    pub(crate) fn bm_parse_vset_add(&self, set: String, value: Vec<u8>) -> OfValueSet {
        let (running, set) = self.value_set(&set)?;
        let member = set_member(&running, set, &value).ok_or(ValueSetCode::Error)?;
        match self.write(&running, vec![ObjectWrite::InsertValue(set, member)])? {
            Ok(()) | Err(WriteError::Table(TableError::Duplicate)) => Ok(()),
            Err(_) => Err(ValueSetCode::Error.into()),
        }
    }

    /// As in bmv2 a member that is not there is removed without an error.
    pub(crate) fn bm_parse_vset_remove(&self, set: String, value: Vec<u8>) -> OfValueSet {
        let (running, set) = self.value_set(&set)?;
        let member = set_member(&running, set, &value).ok_or(ValueSetCode::Error)?;
        match self.write(&running, vec![ObjectWrite::RemoveValue(set, member)])? {
            Ok(()) | Err(WriteError::Table(TableError::NotFound)) => Ok(()),
            Err(_) => Err(ValueSetCode::Error.into()),
        }
    }

    pub(crate) fn bm_parse_vset_get(&self, set: String) -> OfValueSet<Vec<Vec<u8>>> {
        let (running, set) = self.value_set(&set)?;
        let read = self.objects(&running, |to| ObjectRequest::Values(set, to))?;
        let members = read.map_err(|_| ValueSetCode::Error)?;
        Ok(members.iter().map(|member| shown_member(member)).collect())
    }

    pub(crate) fn bm_parse_vset_clear(&self, set: String) -> OfValueSet {
        let (running, set) = self.value_set(&set)?;
        let cleared = self.write(&running, vec![ObjectWrite::ReplaceValues(set, Vec::new())])?;
        Ok(cleared.map_err(|_| ValueSetCode::Error)?)
    }

    fn value_set(&self, name: &str) -> OfValueSet<(Running, ValueSetId)> {
        let running = self.running()?;
        let set = Names(&running.loaded.program).value_set(name).map_err(|_| ValueSetCode::InvalidName)?;
        Ok((running, set))
    }
}

/// An index of the interface.
fn cell(index: i32) -> Option<u64> {
    u64::try_from(index).ok()
}

/// That cell alone.
fn cell_range(index: u64) -> Range<u64> {
    index..index.saturating_add(1)
}

/// Parts of a range for which packets wait.
fn chunks(cells: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let starts = cells.clone().step_by(CHUNK as usize);
    starts.map(move |start| start..cells.end.min(start + CHUNK))
}

fn indexed(running: &Running, name: &str) -> Result<MeterId, MeterCode> {
    match Names(&running.loaded.program).meter(name).map_err(|error| meter_code(&error))? {
        MeterRef::Indexed(meter) => Ok(meter),
        MeterRef::Direct(_) => Err(meter_code(&WriteError::Index { index: 0, size: 0 })),
    }
}

fn register_of(running: &Running, name: &str) -> Result<RegisterId, RegisterCode> {
    Names(&running.loaded.program).register(name).map_err(|_| RegisterCode::InvalidName)
}

fn shown(value: Counted) -> CounterValue {
    // What a number with a sign cannot hold is a negative one, as in bmv2.
    CounterValue { bytes: value.bytes as i64, packets: value.packets as i64 }
}

fn counted(value: CounterValue) -> Counted {
    Counted { packets: value.packets as u64, bytes: value.bytes as u64 }
}

/// The lowest 64 bits of a cell.
fn shown_cell(value: &Bits) -> i64 {
    let lowest = value.to_bytes().into_iter().fold(0u64, |number, byte| number << 8 | u64::from(byte));
    lowest as i64
}

/// A number in two's complement, cut to the cell.
fn kept_cell(width: u32, value: i64) -> Bits {
    Bits::new(64, u128::from(value as u64)).sign_extend(width)
}

/// The committed and the peak rate.
fn config(rates: &[MeterRate]) -> Result<MeterConfig, MeterCode> {
    let [committed, peak] = rates else { return Err(MeterCode::BadRates) };
    Ok(MeterRates {
        cir: rate(committed.units_per_micros)?,
        cbs: burst(committed.burst_size)?,
        pir: rate(peak.units_per_micros)?,
        pbs: burst(peak.burst_size)?,
    }
    .into())
}

fn rate(units_per_micros: f64) -> Result<Rate, MeterCode> {
    let millionths = units_per_micros * 1e12;
    // A number that is none is in no range.
    if !(0.0..=u64::MAX as f64).contains(&millionths) {
        return Err(MeterCode::InvalidRate);
    }
    Ok(Rate::per_second_millionths(millionths.round() as u64))
}

fn burst(size: i32) -> Result<u64, MeterCode> {
    u64::try_from(size).map_err(|_| MeterCode::InvalidBurst)
}

/// A meter that is not configured has no rates, as in bmv2. Neither has an account, which bmv2 does not know.
fn rates(config: Option<MeterConfig>) -> Vec<MeterRate> {
    let shown = |rate: Rate, burst: u64| MeterRate {
        units_per_micros: rate.millionths() as f64 / 1e12,
        burst_size: i32::try_from(burst).unwrap_or(i32::MAX),
    };
    match config {
        Some(MeterConfig::Rates(of)) => vec![shown(of.cir, of.cbs), shown(of.pir, of.pbs)],
        Some(MeterConfig::Account(_)) | None => Vec::new(),
    }
}

/// A member of a value set: the fields put together, each in whole bytes or all in as few as they need.
fn set_member(running: &Running, set: ValueSetId, value: &[u8]) -> Option<Vec<EntryMatch>> {
    let fields = &running.loaded.program.value_sets[set].fields;
    let total = fields.iter().map(|(_, width, _)| *width).fold(0, u32::saturating_add);
    let all = number(value, total).filter(|_| total > 0)?.to_bytes();
    let mut offset = (8 - total as usize % 8) % 8;
    let member = fields.iter().map(|(_, width, _)| {
        let field = Bits::read_at(&all, offset, *width)?;
        offset += *width as usize;
        Some(EntryMatch::Exact(field))
    });
    member.collect()
}

fn shown_member(member: &[EntryMatch]) -> Vec<u8> {
    let values = member.iter().map(|field| match field {
        EntryMatch::Exact(value)
        | EntryMatch::Lpm(value, _)
        | EntryMatch::Ternary(value, _)
        | EntryMatch::Range(value, _) => Some(value),
        EntryMatch::Optional(value) => value.as_ref(),
    });
    let values: Vec<&Bits> = values.flatten().collect();
    let total: u32 = values.iter().map(|value| value.width()).sum();
    let mut writer = millrace_pipeline::bits::BitWriter::new();
    if !total.is_multiple_of(8) {
        writer.push(&Bits::zero(8 - total % 8));
    }
    values.into_iter().for_each(|value| writer.push(value));
    writer.finish()
}
