//! Commands about registers, counters, meters and value sets.

use super::execute::{Executor, Reply, refused};
use millrace_commands::{Command, Line, Parameters, Rates, Test, Word};
use millrace_commands::{Refusal, matching, value};
use millrace_pipeline::{Bits, EntryMatch, ValueSetId};
use millrace_state::{
    AccountConfig, AccountTest, CounterRef, CounterValue, MeterConfig, MeterRates, MeterRef, Rate,
};
use std::fmt::Write;

/// Most cells that one `register_read` shows.
const MAX_SHOWN: u64 = 1 << 16;

const NOT_CONFIGURED: &str = "not configured\n";

impl<'a> Executor<'_, 'a> {
    pub(super) fn stateful_command(&mut self, line: &Line<'_, 'a>) -> Result<Reply, Refusal> {
        match &line.command {
            Command::RegisterRead { register, index } => self.register_read(*register, *index),
            Command::RegisterWrite { register, index, value } => {
                self.register_write(*register, *index, *value)
            }
            Command::RegisterReset { register } => {
                let id = self.switch.state().register_named(register.text);
                let id = id.map_err(|error| refused(register.at(), error))?;
                self.switch.state_mut().reset_register(id);
                Ok(Reply::Done)
            }
            Command::CounterRead { counter, index } => {
                let (id, cell) = self.counter(*counter, index.0)?;
                let read = self.tables.counter_value(id, cell);
                let read = read.map_err(|error| refused(index.1.at(), error))?;
                let (name, at) = (counter.text, index.0);
                Ok(Reply::Text(format!("{name}[{at}]= ({} bytes, {} packets)\n", read.bytes, read.packets)))
            }
            Command::CounterWrite { counter, index, packets, bytes } => {
                let (id, cell) = self.counter(*counter, index.0)?;
                let value = CounterValue { packets: *packets, bytes: *bytes };
                let written = self.tables.set_counter(id, cell, value);
                written.map_err(|error| refused(index.1.at(), error))?;
                Ok(Reply::Done)
            }
            Command::CounterReset { counter } => {
                let (id, _) = self.counter(*counter, 0)?;
                self.tables.reset_counter(id).map_err(|error| refused(counter.at(), error))?;
                Ok(Reply::Done)
            }
            Command::MeterSetRates { meter, index, rates } => {
                self.set_meter(line, *meter, *index, config(rates).into())
            }
            Command::MeterArraySetRates { meter, rates } => {
                self.set_meters(line, *meter, config(rates).into())
            }
            Command::AccountSet { account, index, parameters } => {
                let config = self.account_config(line, parameters)?;
                self.set_meter(line, *account, *index, config)
            }
            Command::AccountArraySet { account, parameters } => {
                let config = self.account_config(line, parameters)?;
                self.set_meters(line, *account, config)
            }
            Command::AccountGet { account, index } => self.account(*account, *index),
            Command::MeterGetRates { meter, index } => {
                let (id, cell) = self.meter(*meter, index.0)?;
                let config = match id {
                    MeterRef::Indexed(id) => self.switch.state().meter_config(id, cell),
                    MeterRef::Direct(table) => self.tables.direct_meter_config(table, cell),
                };
                let config = config.map_err(|error| refused(index.1.at(), error))?;
                match config {
                    None => Ok(Reply::Text(NOT_CONFIGURED.to_owned())),
                    Some(MeterConfig::Rates(rates)) => Ok(Reply::Text(rates_text(&rates))),
                    Some(MeterConfig::Account(_)) => {
                        let what = format!("`{}` is an account", meter.text);
                        Err(Refusal::new(meter.at(), what).with_help("ask with `account_get`"))
                    }
                }
            }
            Command::ValueSetAdd { set, value } => {
                let (id, member) = self.member_of_set(*set, value)?;
                let added = self.switch.state_mut().insert_value(id, &member);
                match added {
                    // As in bmv2, a value that is there already is no error.
                    Err(millrace_state::WriteError::Table(millrace_state::TableError::Duplicate)) => {}
                    other => other.map_err(|error| refused(line.at.clone(), error))?,
                }
                Ok(Reply::Done)
            }
            Command::ValueSetRemove { set, value } => {
                let (id, member) = self.member_of_set(*set, value)?;
                match self.switch.state_mut().remove_value(id, &member) {
                    Err(millrace_state::WriteError::Table(millrace_state::TableError::NotFound)) => {}
                    other => other.map_err(|error| refused(line.at.clone(), error))?,
                }
                Ok(Reply::Done)
            }
            Command::ValueSetClear { set } => {
                let id = self.value_set(*set)?;
                self.switch.state_mut().clear_values(id);
                Ok(Reply::Done)
            }
            Command::ShowValueSets => Ok(Reply::Text(self.show_value_sets())),
            Command::ValueSetGet { set } => {
                let id = self.value_set(*set)?;
                let line = |member: Vec<EntryMatch>| {
                    member.iter().map(matching::show).collect::<Vec<_>>().join(" ") + "\n"
                };
                Ok(Reply::Text(self.switch.state().values(id).map(line).collect()))
            }
            // Every other command has a handler of its own.
            _ => Ok(Reply::Done),
        }
    }

    fn register_read(&self, register: Word<'a>, index: Option<(u64, Word<'a>)>) -> Result<Reply, Refusal> {
        let state = self.switch.state();
        let id = state.register_named(register.text).map_err(|error| refused(register.at(), error))?;
        let decimal = |value: Bits| value.to_biguint().to_string();
        match index {
            Some((index, word)) => {
                let value = state.register_value(id, index).map_err(|error| refused(word.at(), error))?;
                Ok(Reply::Text(format!("{}[{index}]= {}\n", register.text, decimal(value))))
            }
            None => {
                let size = state.program().registers[id].size;
                let values = (0..size.min(MAX_SHOWN)).map(|index| decimal(state.register_read(id, index)));
                let mut text = format!("{}= {}", register.text, values.collect::<Vec<_>>().join(", "));
                if size > MAX_SHOWN {
                    // Writing to a string cannot fail.
                    let _ = write!(text, ", ... ({} more)", size - MAX_SHOWN);
                }
                Ok(Reply::Text(text + "\n"))
            }
        }
    }

    fn register_write(
        &mut self,
        register: Word<'a>,
        index: (u64, Word<'a>),
        value: Word<'a>,
    ) -> Result<Reply, Refusal> {
        let id = self.switch.state().register_named(register.text);
        let id = id.map_err(|error| refused(register.at(), error))?;
        let width = self.switch.state().program().registers[id].width;
        let value =
            value::parse(value.text, width).map_err(|error| Refusal::new(value.at(), error.to_string()))?;
        let written = self.switch.state_mut().set_register(id, index.0, &value);
        written.map_err(|error| refused(index.1.at(), error))?;
        Ok(Reply::Done)
    }

    /// A counter and the number of a cell: a direct counter is read by entry handle.
    fn counter(&self, name: Word<'a>, index: u64) -> Result<(CounterRef, u64), Refusal> {
        let found =
            self.switch.state().counter_named(name.text).map_err(|error| refused(name.at(), error))?;
        let cell = if matches!(found, CounterRef::Direct(_)) { index.saturating_add(1) } else { index };
        Ok((found, cell))
    }

    fn meter(&self, name: Word<'a>, index: u64) -> Result<(MeterRef, u64), Refusal> {
        let found = self.switch.state().meter_named(name.text).map_err(|error| refused(name.at(), error))?;
        let cell = if matches!(found, MeterRef::Direct(_)) { index.saturating_add(1) } else { index };
        Ok((found, cell))
    }

    fn set_meter(
        &mut self,
        line: &Line<'_, 'a>,
        meter: Word<'a>,
        index: (u64, Word<'a>),
        config: MeterConfig,
    ) -> Result<Reply, Refusal> {
        let (id, cell) = self.meter(meter, index.0)?;
        let set = match id {
            MeterRef::Indexed(id) => self.switch.state_mut().set_meter(id, cell, Some(config)),
            MeterRef::Direct(table) => self.tables.set_direct_meter(table, cell, Some(config)),
        };
        set.map_err(|error| refused(index.1.start..line.at.end, error))?;
        Ok(Reply::Done)
    }

    /// All cells of a meter, or those of all entries.
    fn set_meters(
        &mut self,
        line: &Line<'_, 'a>,
        meter: Word<'a>,
        config: MeterConfig,
    ) -> Result<Reply, Refusal> {
        let (id, _) = self.meter(meter, 0)?;
        let set = match id {
            MeterRef::Indexed(id) => self.switch.state_mut().set_all_meters(id, Some(config)),
            MeterRef::Direct(table) => self.tables.set_direct_meters(table, Some(config)),
        };
        set.map_err(|error| refused(meter.at().end..line.at.end, error))?;
        Ok(Reply::Done)
    }

    fn account_config(&self, line: &Line<'_, 'a>, of: &Parameters) -> Result<MeterConfig, Refusal> {
        let test = match of.test {
            Test::Bytes => AccountTest::Bytes,
            Test::Frames => AccountTest::Frames,
            Test::Both => AccountTest::Both,
        };
        match AccountConfig::new(of.bag_ns, of.jitter_ns, of.smax, test) {
            Ok(config) => Ok(config.into()),
            Err(error) => Err(Refusal::new(line.at.clone(), error.to_string())),
        }
    }

    /// An account: its parameters, and what it has let pass and refused.
    fn account(&self, name: Word<'a>, index: (u64, Word<'a>)) -> Result<Reply, Refusal> {
        let (id, cell) = self.meter(name, index.0)?;
        let at = |error| refused(index.1.at(), error);
        let (config, counts) = match id {
            MeterRef::Indexed(id) => {
                let state = self.switch.state();
                (state.meter_config(id, cell).map_err(at)?, state.meter_counts(id, cell).map_err(at)?)
            }
            MeterRef::Direct(table) => (
                self.tables.direct_meter_config(table, cell).map_err(at)?,
                self.tables.direct_meter_counts(table, cell).map_err(at)?,
            ),
        };
        let parameters = match config {
            None => NOT_CONFIGURED.to_owned(),
            Some(MeterConfig::Account(config)) => format!("{}\n", account_words(&config)),
            Some(MeterConfig::Rates(_)) => {
                let what = format!("`{}` is a meter", name.text);
                return Err(Refusal::new(name.at(), what).with_help("ask with `meter_get_rates`"));
            }
        };
        let [passed, _, discarded] = counts;
        let counted = |count: CounterValue| format!("{} bytes, {} packets", count.bytes, count.packets);
        Ok(Reply::Text(format!("{parameters}passed: {}\nrefused: {}\n", counted(passed), counted(discarded))))
    }

    fn value_set(&self, name: Word<'a>) -> Result<ValueSetId, Refusal> {
        self.switch.state().value_set_named(name.text).map_err(|error| refused(name.at(), error))
    }

    /// A member: one word for each field, or one number for all fields put together as bmv2 has it.
    fn member_of_set(
        &self,
        set: Word<'a>,
        words: &[Word<'a>],
    ) -> Result<(ValueSetId, Vec<EntryMatch>), Refusal> {
        let id = self.value_set(set)?;
        let fields = &self.switch.state().program().value_sets[id].fields;
        if let ([word], true) = (words, fields.len() > 1) {
            let total = fields.iter().map(|(_, width, _)| *width).fold(0, u32::saturating_add);
            let all = value::number(word.text, total).map_err(|e| Refusal::new(word.at(), e.to_string()))?;
            let all = all.to_biguint();
            let mut below = total;
            let member = fields.iter().map(|(_, width, _)| {
                below = below.saturating_sub(*width);
                EntryMatch::Exact(Bits::from_biguint((*width).max(1), &(&all >> below)))
            });
            return Ok((id, member.collect()));
        }
        if words.len() != fields.len() {
            let keys = fields.iter().map(|(name, ..)| name.clone()).collect();
            let error = millrace_state::WriteError::MatchCount { keys, found: words.len() };
            return Err(refused(set.at(), error));
        }
        let member = fields.iter().zip(words).map(|((name, width, kind), word)| {
            let parsed = match value::parse(word.text, *width) {
                Ok(value) => Ok(EntryMatch::Exact(value)),
                Err(_) => matching::parse(word.text, *kind, *width),
            };
            parsed.map_err(|error| {
                Refusal::new(word.part(error.at), format!("field `{name}`: {}", error.message))
                    .with_help_if(error.help)
            })
        });
        Ok((id, member.collect::<Result<_, _>>()?))
    }

    pub(super) fn show_value_sets(&self) -> String {
        let sets = self.switch.state().program().value_sets.values();
        let line = |set: &millrace_pipeline::ValueSet| {
            let fields = set
                .fields
                .iter()
                .map(|(name, width, kind)| format!("{name}({}, {width})", matching::kind_name(*kind)));
            format!("{:30} [{}]\n", set.name, fields.collect::<Vec<_>>().join(",\t"))
        };
        sets.map(line).collect()
    }
}

fn config(rates: &Rates) -> MeterRates {
    MeterRates {
        cir: Rate::per_second_millionths(rates.committed),
        cbs: rates.committed_burst,
        pir: Rate::per_second_millionths(rates.peak),
        pbs: rates.peak_burst,
    }
}

fn rates_text(config: &MeterRates) -> String {
    let (committed, peak) = (rate_text(config.cir), rate_text(config.pir));
    format!(
        "0: info rate = {committed}, burst size = {}\n1: info rate = {peak}, burst size = {}\n",
        config.cbs, config.pbs
    )
}

/// The command that configures a cell: `meter_set_rates`, or `account_set` for an account.
pub(crate) fn meter_command(name: &str, cell: u64, config: &MeterConfig) -> String {
    match config {
        MeterConfig::Rates(of) => {
            let (committed, peak) = (rate_text(of.cir), rate_text(of.pir));
            format!("meter_set_rates {name} {cell} {committed}:{} {peak}:{}", of.cbs, of.pbs)
        }
        MeterConfig::Account(of) => format!("account_set {name} {cell} {}", account_words(of)),
    }
}

/// The parameters as `account_set` takes them.
fn account_words(of: &AccountConfig) -> String {
    format!("{} {} {} {}", time_text(of.bag_ns()), time_text(of.jitter_ns()), of.smax(), of.test().name())
}

/// A time in the largest unit that leaves no fraction.
fn time_text(ns: u64) -> String {
    match ns {
        ns if ns.is_multiple_of(1_000_000) => format!("{}ms", ns / 1_000_000),
        ns if ns.is_multiple_of(1_000) => format!("{}us", ns / 1_000),
        ns => format!("{ns}ns"),
    }
}

/// Units per microsecond, as they are set; the last digit is that of a millionth of a unit per second.
fn rate_text(rate: Rate) -> String {
    let text =
        format!("{}.{:012}", rate.millionths() / 1_000_000_000_000, rate.millionths() % 1_000_000_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
