//! Commands about counters, meters, registers and value sets.

use crate::execute::Shell;
use crate::schema::find;
use crate::trouble::Trouble;
use crate::words::{hex, number};
use millrace_commands::value;
use millrace_commands::{Command, Rates, Refusal, Word};
use millrace_pipeline::Bits;
use millrace_thrift_api::{CounterValue, MeterRate};
use std::io::Write;

impl Shell {
    pub(crate) fn stateful_command(
        &mut self,
        command: &Command<'_, '_>,
        out: &mut dyn Write,
    ) -> Result<(), Trouble> {
        match command {
            Command::CounterRead { counter, index: (index, _) } => {
                let cell = number("index", *index)?;
                let (full, table) = self.counter(*counter)?;
                let value = match table {
                    Some(table) => {
                        writeln!(out, "this is the direct counter for table {table}")?;
                        self.client.bm_mt_read_counter(table, cell)?
                    }
                    None => self.client.bm_counter_read(full, cell)?,
                };
                let (name, bytes, packets) = (counter.text, value.bytes, value.packets);
                writeln!(out, "{name}[{index}]= ({bytes} bytes, {packets} packets)")?;
            }
            Command::CounterWrite { counter, index: (index, _), packets, bytes } => {
                let cell = number("index", *index)?;
                let value = CounterValue { bytes: signed(*bytes)?, packets: signed(*packets)? };
                let (full, table) = self.counter(*counter)?;
                match table {
                    Some(table) => {
                        writeln!(out, "writing to direct counter for table {table}")?;
                        self.client.bm_mt_write_counter(table, cell, value)?;
                    }
                    None => self.client.bm_counter_write(full, cell, value)?,
                }
                writeln!(out, "{}[{index}] has been updated", counter.text)?;
            }
            Command::CounterReset { counter } => {
                let (full, table) = self.counter(*counter)?;
                match table {
                    Some(table) => {
                        writeln!(out, "this is the direct counter for table {table}")?;
                        self.client.bm_mt_reset_counters(table)?;
                    }
                    None => self.client.bm_counter_reset_all(full)?,
                }
            }
            Command::MeterSetRates { meter, index: (index, _), rates } => {
                let cell = number("index", *index)?;
                let (full, table) = self.meter(*meter)?;
                match table {
                    Some(table) => self.client.bm_mt_set_meter_rates(table, cell, wire(*rates)?)?,
                    None => self.client.bm_meter_set_rates(full, cell, wire(*rates)?)?,
                }
            }
            Command::MeterArraySetRates { meter, rates } => {
                let (full, _) = self.meter(*meter)?;
                self.client.bm_meter_array_set_rates(full, wire(*rates)?)?;
            }
            Command::MeterGetRates { meter, index: (index, _) } => {
                self.meter_get(*meter, number("index", *index)?, out)?
            }
            Command::RegisterRead { register, index: Some((index, _)) } => {
                let full = self.register(*register)?;
                let value = self.client.bm_register_read(full, number("index", *index)?)?;
                writeln!(out, "{}[{index}]= {value}", register.text)?;
            }
            Command::RegisterRead { register, index: None } => {
                let full = self.register(*register)?;
                let values = self.client.bm_register_read_all(full)?;
                let values: Vec<String> = values.iter().map(i64::to_string).collect();
                writeln!(out, "{}= {}", register.text, values.join(", "))?;
            }
            Command::RegisterWrite { register, index: (index, _), value } => {
                let full = self.register(*register)?;
                self.client.bm_register_write(full, number("index", *index)?, register_value(*value)?)?;
            }
            Command::RegisterReset { register } => {
                let full = self.register(*register)?;
                self.client.bm_register_reset(full)?;
            }
            Command::ShowValueSets => {
                for (name, width) in &self.schema.value_sets {
                    writeln!(out, "{name:30} [compressed bitwidth:{width}]")?;
                }
            }
            Command::ValueSetAdd { set, value } => {
                let (full, value) = self.value_set(*set, value)?;
                self.client.bm_parse_vset_add(full, value)?;
            }
            Command::ValueSetRemove { set, value } => {
                let (full, value) = self.value_set(*set, value)?;
                self.client.bm_parse_vset_remove(full, value)?;
            }
            Command::ValueSetClear { set } => {
                let (full, _) = find("parser value set", &self.schema.value_sets, set.text)?;
                self.client.bm_parse_vset_clear(full.to_owned())?;
            }
            Command::ValueSetGet { set } => {
                let (full, _) = find("parser value set", &self.schema.value_sets, set.text)?;
                for value in self.client.bm_parse_vset_get(full.to_owned())? {
                    writeln!(out, "{}", hex(&value, ""))?;
                }
            }
            Command::AccountSet { account, .. }
            | Command::AccountArraySet { account, .. }
            | Command::AccountGet { account, .. } => {
                let what = "bmv2's interface knows no accounts";
                let refusal = Refusal::new(account.at(), what.to_owned());
                return Err(refusal
                    .with_help("give the command to the switch: in its entries, or by `millrace ctl`")
                    .into());
            }
            // Every other command has a handler of its own.
            _ => {}
        }
        Ok(())
    }

    fn meter_get(&mut self, meter: Word<'_>, cell: i32, out: &mut dyn Write) -> Result<(), Trouble> {
        let expected = find("meter", &self.schema.meters, meter.text)?.1.rates;
        let (full, table) = self.meter(meter)?;
        let rates = match table {
            Some(table) => self.client.bm_mt_get_meter_rates(table, cell)?,
            None => self.client.bm_meter_get_rates(full, cell)?,
        };
        if rates.len() as u64 != expected {
            writeln!(out, "WARNING: expected {expected} rates but only received {}", rates.len())?;
        }
        for (at, rate) in rates.iter().enumerate() {
            let (units, burst) = (rate.units_per_micros, rate.burst_size);
            writeln!(out, "{at}: info rate = {}, burst size = {burst}", fraction(units))?;
        }
        Ok(())
    }

    /// The full name of a counter, and the table whose entries have it.
    fn counter(&self, name: Word<'_>) -> Result<(String, Option<String>), Trouble> {
        let (full, counter) = find("counter", &self.schema.counters, name.text)?;
        Ok((full.to_owned(), counter.table.clone()))
    }

    /// The full name of a meter, and the table whose entries have it.
    fn meter(&self, name: Word<'_>) -> Result<(String, Option<String>), Trouble> {
        let (full, meter) = find("meter", &self.schema.meters, name.text)?;
        Ok((full.to_owned(), meter.table.clone()))
    }

    fn register(&self, name: Word<'_>) -> Result<String, Trouble> {
        Ok(find("register", &self.schema.registers, name.text)?.0.to_owned())
    }

    /// The full name of a value set, and one of its values: all fields put together.
    fn value_set(&self, set: Word<'_>, words: &[Word<'_>]) -> Result<(String, Vec<u8>), Trouble> {
        let (full, width) = find("parser value set", &self.schema.value_sets, set.text)?;
        let [word] = words else {
            return Err(Trouble::wrong("one value is expected, of all fields together"));
        };
        let value: Bits = value::number(word.text, *width)
            .map_err(|error| Trouble::wrong(format!("{}: {error}", word.text)))?;
        Ok((full.to_owned(), value.to_bytes()))
    }
}

/// Rates as the interface has them. Those of commands are millionths of a unit a second.
fn wire(rates: Rates) -> Result<Vec<MeterRate>, Trouble> {
    let rate = |rate: u64, burst: u64| -> Result<MeterRate, Trouble> {
        Ok(MeterRate { units_per_micros: rate as f64 / 1e12, burst_size: number("burst size", burst)? })
    };
    Ok(vec![rate(rates.committed, rates.committed_burst)?, rate(rates.peak, rates.peak_burst)?])
}

/// A fraction as Python shows it: an exponent has two digits at least.
fn fraction(number: f64) -> String {
    let text = format!("{number:?}");
    match text.split_once("e-") {
        Some((digits, exponent)) => format!("{digits}e-{exponent:0>2}"),
        None => text,
    }
}

fn signed(count: u64) -> Result<i64, Trouble> {
    i64::try_from(count).map_err(|_| Trouble::wrong(format!("{count} is too large")))
}

/// A register's value: a number of 64 bits, with a sign or without.
fn register_value(word: Word<'_>) -> Result<i64, Trouble> {
    let wrong = || Trouble::wrong("Bad format for value, must be an integer");
    match word.text.strip_prefix('-') {
        Some(_) => word.text.parse().map_err(|_| wrong()),
        None => value::plain(word.text).map(|value| value as i64).map_err(|_| wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_those_of_python() {
        let shown = [0.1, 0.0, 1.0, 0.0001, 0.000_01, 2e-6, 1.5e-12].map(fraction);
        assert_eq!(shown, ["0.1", "0.0", "1.0", "0.0001", "1e-05", "2e-06", "1.5e-12"]);
    }
}
