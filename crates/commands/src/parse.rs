//! From text to commands.

use crate::ast::{Command, Line, Parameters, ProfileName, QueuePlace, Rates, Test, Word};
use crate::catalogue::{COMMANDS, usage};
use crate::value::{self, ValueError};
use crate::{Refusal, nearest};
use std::ops::{ControlFlow, Range};

/// Most bytes of one line.
pub const MAX_LINE: usize = 64 * 1024;

/// Reads a text line by line and hands on each command, or why a line is none, until the text ends or `each` breaks.
/// Empty lines and comments are left out.
pub fn read<'a>(text: &'a str, mut each: impl FnMut(Result<Line<'_, 'a>, Refusal>) -> ControlFlow<()>) {
    let mut words: Vec<Word<'a>> = Vec::new();
    let mut start = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        words.clear();
        split(line, start, &mut words);
        let at = start..start + line.trim_end().len();
        start += line.len();
        let Some((name, args)) = words.split_first() else { continue };
        let result = if line.len() > MAX_LINE {
            Err(Refusal::new(name.at(), format!("the line is longer than {MAX_LINE} bytes")))
        } else {
            let at = name.start..args.last().unwrap_or(name).at().end.min(at.end);
            command(*name, args).map(|command| Line { number: number + 1, at, command })
        };
        if each(result).is_break() {
            return;
        }
    }
}

/// Splits a line into words, up to a comment.
fn split<'a>(line: &'a str, start: usize, words: &mut Vec<Word<'a>>) {
    let bytes = line.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at].is_ascii_whitespace() {
            at += 1;
            continue;
        }
        if bytes[at] == b'#' {
            return;
        }
        let end =
            bytes[at..].iter().position(u8::is_ascii_whitespace).map_or(bytes.len(), |length| at + length);
        words.push(Word { text: &line[at..end], start: start + at });
        at = end;
    }
}

fn command<'l, 'a>(name: Word<'a>, words: &'l [Word<'a>]) -> Result<Command<'l, 'a>, Refusal> {
    let args = Args { name, words };
    // Nearly all lines of a long file are of this one.
    if name.text == "table_add" {
        args.at_least(3)?;
        let (matches, rest) = args.arrow(2)?;
        return Ok(Command::TableAdd { table: words[0], action: words[1], matches, args: rest });
    }
    // Names of older commands differ in whether they name a profile or a table that uses it.
    let (verb, profile): (&str, fn(Word<'a>) -> ProfileName<'a>) = match name.text.strip_prefix("act_prof_") {
        Some(verb) => (verb, ProfileName::Profile),
        None => (name.text.strip_prefix("table_indirect_").unwrap_or(""), ProfileName::Table),
    };
    if !verb.is_empty()
        && let Some(command) = profile_command(verb, profile, &args)?
    {
        return Ok(command);
    }
    Ok(match name.text {
        "table_set_default" => {
            args.at_least(2)?;
            Command::TableSetDefault { table: words[0], action: words[1], args: skip_arrow(&words[2..]) }
        }
        "table_reset_default" | "table_indirect_reset_default" => {
            args.exactly(1)?;
            Command::TableResetDefault { table: words[0] }
        }
        "table_modify" => {
            args.at_least(3)?;
            let handle = args.handle(2)?;
            Command::TableModify { table: words[0], action: words[1], handle, args: skip_arrow(&words[3..]) }
        }
        "table_delete" | "table_indirect_delete" => {
            args.exactly(2)?;
            Command::TableDelete { table: words[0], handle: args.handle(1)? }
        }
        "table_set_timeout" => {
            args.exactly(3)?;
            Command::TableSetTimeout {
                table: words[0],
                handle: args.handle(1)?,
                milliseconds: args.number(2)?,
            }
        }
        "table_clear" => Command::TableClear { table: args.only()? },
        "table_dump" => Command::TableDump { table: args.only()? },
        "table_dump_entry" => {
            args.exactly(2)?;
            Command::TableDumpEntry { table: words[0], handle: args.handle(1)? }
        }
        "table_dump_entry_from_key" => {
            args.at_least(1)?;
            Command::TableDumpEntryFromKey { table: words[0], key: &words[1..] }
        }
        "table_dump_member" => {
            args.exactly(2)?;
            Command::DumpMember { profile: ProfileName::Table(words[0]), member: args.handle(1)? }
        }
        "table_dump_group" => {
            args.exactly(2)?;
            Command::DumpGroup { profile: ProfileName::Table(words[0]), group: args.handle(1)? }
        }
        "table_num_entries" => Command::TableNumEntries { table: args.only()? },
        "table_info" => Command::TableInfo { table: args.only()? },
        "table_show_actions" => Command::TableShowActions { table: args.only()? },
        "show_tables" => args.none(Command::ShowTables)?,
        "show_actions" => args.none(Command::ShowActions)?,
        "show_pvs" => args.none(Command::ShowValueSets)?,
        "show_ports" => args.none(Command::ShowPorts)?,
        "table_indirect_add" | "table_indirect_add_with_group" => {
            args.at_least(2)?;
            let (matches, target) = args.arrow(1)?;
            let group = name.text.ends_with("group");
            Command::IndirectAdd { table: words[0], matches, target, group }
        }
        "table_indirect_set_default" | "table_indirect_set_default_with_group" => {
            args.exactly(2)?;
            let group = name.text.ends_with("group");
            Command::IndirectSetDefault { table: words[0], target: args.handle(1)?, group }
        }
        "mc_mgrp_create" => Command::GroupCreate { group: args.only_handle()? },
        "mc_mgrp_destroy" => Command::GroupDestroy { group: args.only_handle()? },
        "mc_node_create" => {
            args.at_least(1)?;
            let rid = u16::try_from(args.number(0)?).map_err(|_| {
                Refusal::new(words[0].at(), format!("a replica number is at most {}", u16::MAX))
            })?;
            let (ports, lags) = args.ports_and_lags()?;
            Command::NodeCreate { rid, ports, lags }
        }
        "mc_node_update" => {
            args.at_least(1)?;
            let (ports, lags) = args.ports_and_lags()?;
            Command::NodeUpdate { node: args.handle(0)?, ports, lags }
        }
        "mc_node_destroy" => Command::NodeDestroy { node: args.only_handle()? },
        "mc_node_associate" => {
            args.exactly(2)?;
            Command::NodeAssociate { group: args.handle(0)?, node: args.handle(1)? }
        }
        "mc_node_dissociate" => {
            args.exactly(2)?;
            Command::NodeDissociate { group: args.handle(0)?, node: args.handle(1)? }
        }
        "mc_set_lag_membership" => {
            args.at_least(1)?;
            (1..words.len()).try_for_each(|at| args.handle(at).map(drop))?;
            Command::LagMembership { lag: args.handle(0)?, ports: &words[1..] }
        }
        "mc_dump" => args.none(Command::MulticastDump)?,
        "mirroring_add" => {
            args.exactly(2)?;
            Command::MirroringAdd { session: args.handle(0)?, port: args.handle(1)?.0, truncate: None }
        }
        "mirroring_add_truncate" => {
            args.exactly(3)?;
            let truncate = Some(args.handle(2)?.0);
            Command::MirroringAdd { session: args.handle(0)?, port: args.handle(1)?.0, truncate }
        }
        "mirroring_add_mc" => {
            args.exactly(2)?;
            Command::MirroringAddGroup { session: args.handle(0)?, group: args.handle(1)?.0 }
        }
        "mirroring_delete" => Command::MirroringDelete { session: args.only_handle()? },
        "mirroring_get" => Command::MirroringGet { session: args.only_handle()? },
        "register_read" => {
            args.at_least(1)?;
            args.at_most(2)?;
            let index = if words.len() > 1 { Some(args.index(1)?) } else { None };
            Command::RegisterRead { register: words[0], index }
        }
        "register_write" => {
            args.exactly(3)?;
            Command::RegisterWrite { register: words[0], index: args.index(1)?, value: words[2] }
        }
        "register_reset" => Command::RegisterReset { register: args.only()? },
        "counter_read" => {
            args.exactly(2)?;
            Command::CounterRead { counter: words[0], index: args.index(1)? }
        }
        "counter_write" => {
            args.exactly(4)?;
            let (packets, bytes) = (args.number(2)?, args.number(3)?);
            Command::CounterWrite { counter: words[0], index: args.index(1)?, packets, bytes }
        }
        "counter_reset" => Command::CounterReset { counter: args.only()? },
        "account_set" => {
            args.exactly(6)?;
            Command::AccountSet { account: words[0], index: args.index(1)?, parameters: args.parameters(2)? }
        }
        "account_array_set" => {
            args.exactly(5)?;
            Command::AccountArraySet { account: words[0], parameters: args.parameters(1)? }
        }
        "account_get" => {
            args.exactly(2)?;
            Command::AccountGet { account: words[0], index: args.index(1)? }
        }
        "meter_set_rates" => {
            args.exactly(4)?;
            Command::MeterSetRates { meter: words[0], index: args.index(1)?, rates: rates(&words[2..])? }
        }
        "meter_array_set_rates" => {
            args.exactly(3)?;
            Command::MeterArraySetRates { meter: words[0], rates: rates(&words[1..])? }
        }
        "meter_get_rates" => {
            args.exactly(2)?;
            Command::MeterGetRates { meter: words[0], index: args.index(1)? }
        }
        "pvs_add" => {
            args.at_least(2)?;
            Command::ValueSetAdd { set: words[0], value: &words[1..] }
        }
        "pvs_remove" => {
            args.at_least(2)?;
            Command::ValueSetRemove { set: words[0], value: &words[1..] }
        }
        "pvs_clear" => Command::ValueSetClear { set: args.only()? },
        "pvs_get" => Command::ValueSetGet { set: args.only()? },
        "set_queue_depth" => {
            let place = args.queue_place()?;
            Command::SetQueueDepth { packets: args.handle(0)?.0, place }
        }
        "set_queue_rate" => {
            let place = args.queue_place()?;
            Command::SetQueueRate { packets_per_second: args.number(0)?, place }
        }
        "reset_state" => args.none(Command::ResetState)?,
        "help" => {
            args.at_most(1)?;
            Command::Help { command: words.first().copied() }
        }
        unknown => {
            let near = nearest(unknown, COMMANDS.iter().map(|(name, ..)| *name));
            let help = near.map(|near| format!("did you mean `{near}`?"));
            return Err(
                Refusal::new(name.at(), format!("there is no command `{unknown}`")).with_help_if(help)
            );
        }
    })
}

/// The commands about members and groups, which have two names each.
fn profile_command<'l, 'a>(
    verb: &str,
    profile: fn(Word<'a>) -> ProfileName<'a>,
    args: &Args<'l, 'a>,
) -> Result<Option<Command<'l, 'a>>, Refusal> {
    let words = args.words;
    let of = |words: &[Word<'a>]| profile(words[0]);
    Ok(Some(match verb {
        "create_member" => {
            args.at_least(2)?;
            Command::CreateMember { profile: of(words), action: words[1], args: skip_arrow(&words[2..]) }
        }
        "modify_member" => {
            args.at_least(3)?;
            let member = args.handle(2)?;
            Command::ModifyMember {
                profile: of(words),
                action: words[1],
                member,
                args: skip_arrow(&words[3..]),
            }
        }
        "delete_member" => {
            args.exactly(2)?;
            Command::DeleteMember { profile: of(words), member: args.handle(1)? }
        }
        "create_group" => {
            args.exactly(1)?;
            Command::CreateGroup { profile: of(words) }
        }
        "delete_group" => {
            args.exactly(2)?;
            Command::DeleteGroup { profile: of(words), group: args.handle(1)? }
        }
        "add_member_to_group" => {
            args.exactly(3)?;
            Command::AddToGroup { profile: of(words), member: args.handle(1)?, group: args.handle(2)? }
        }
        "remove_member_from_group" => {
            args.exactly(3)?;
            Command::RemoveFromGroup { profile: of(words), member: args.handle(1)?, group: args.handle(2)? }
        }
        "dump" => {
            args.exactly(1)?;
            Command::DumpProfile { profile: of(words) }
        }
        "dump_member" => {
            args.exactly(2)?;
            Command::DumpMember { profile: of(words), member: args.handle(1)? }
        }
        "dump_group" => {
            args.exactly(2)?;
            Command::DumpGroup { profile: of(words), group: args.handle(1)? }
        }
        _ => return Ok(None),
    }))
}

/// The words of a command after its name.
struct Args<'l, 'a> {
    name: Word<'a>,
    words: &'l [Word<'a>],
}

impl<'l, 'a> Args<'l, 'a> {
    fn refuse(&self, at: Range<usize>, message: String) -> Refusal {
        let usage = usage(self.name.text).map(|(args, _)| format!("usage: {} {args}", self.name.text));
        Refusal::new(at, message).with_help_if(usage.map(|usage| usage.trim_end().to_owned()))
    }

    fn exactly(&self, count: usize) -> Result<(), Refusal> {
        self.at_least(count)?;
        self.at_most(count)
    }

    fn at_least(&self, count: usize) -> Result<(), Refusal> {
        if self.words.len() >= count {
            return Ok(());
        }
        let end = self.words.last().unwrap_or(&self.name).at().end;
        let message =
            format!("`{}` needs at least {count} argument(s), {} given", self.name.text, self.words.len());
        Err(self.refuse(self.name.start..end, message))
    }

    fn at_most(&self, count: usize) -> Result<(), Refusal> {
        match self.words.get(count) {
            None => Ok(()),
            Some(extra) => {
                let end = self.words.last().unwrap_or(extra).at().end;
                let message =
                    format!("`{}` takes {count} argument(s), {} given", self.name.text, self.words.len());
                Err(self.refuse(extra.start..end, message))
            }
        }
    }

    fn none(&self, command: Command<'l, 'a>) -> Result<Command<'l, 'a>, Refusal> {
        self.exactly(0)?;
        Ok(command)
    }

    fn only(&self) -> Result<Word<'a>, Refusal> {
        self.exactly(1)?;
        Ok(self.words[0])
    }

    fn only_handle(&self) -> Result<(u32, Word<'a>), Refusal> {
        self.exactly(1)?;
        self.handle(0)
    }

    fn number(&self, at: usize) -> Result<u64, Refusal> {
        let word = self.words[at];
        value::plain(word.text).map_err(|error| {
            let message = match error {
                ValueError::NotANumber => format!("`{}` is not a number", word.text),
                other => other.to_string(),
            };
            self.refuse(word.at(), message)
        })
    }

    fn index(&self, at: usize) -> Result<(u64, Word<'a>), Refusal> {
        Ok((self.number(at)?, self.words[at]))
    }

    /// BAG, jitter, Smax and test of an account.
    fn parameters(&self, at: usize) -> Result<Parameters, Refusal> {
        let time = |at: usize| {
            let word = self.words[at];
            nanoseconds(word.text).ok_or_else(|| {
                Refusal::new(word.at(), format!("`{}` is not a time of whole nanoseconds", word.text))
                    .with_help("write a number and `ns`, `us`, `ms` or `s`, as in `2ms` or `0.5ms`")
            })
        };
        let test = self.words[at + 3];
        let test = match test.text {
            "bytes" => Test::Bytes,
            "frames" => Test::Frames,
            "both" => Test::Both,
            other => {
                let message = format!("`{other}` is no test of an account");
                return Err(Refusal::new(test.at(), message).with_help("`bytes`, `frames` or `both`"));
            }
        };
        let (bag_ns, jitter_ns, smax) = (time(at)?, time(at + 1)?, self.handle(at + 2)?.0);
        Ok(Parameters { bag_ns, jitter_ns, smax, test })
    }

    fn handle(&self, at: usize) -> Result<(u32, Word<'a>), Refusal> {
        let number = self.number(at)?;
        let word = self.words[at];
        let handle = u32::try_from(number).map_err(|_| {
            self.refuse(word.at(), format!("`{}` is too large, the limit is {}", word.text, u32::MAX))
        })?;
        Ok((handle, word))
    }

    /// The words from `from` to `=>`, and those after it.
    fn arrow(&self, from: usize) -> Result<(&'l [Word<'a>], &'l [Word<'a>]), Refusal> {
        let words = &self.words[from..];
        match words.iter().position(|word| word.text == "=>") {
            Some(arrow) => Ok((&words[..arrow], &words[arrow + 1..])),
            None => {
                let end = self.words.last().unwrap_or(&self.name).at().end;
                Err(self.refuse(
                    self.name.start..end,
                    "`=>` between match fields and parameters is missing".into(),
                ))
            }
        }
    }

    /// The port and class after the first word.
    fn queue_place(&self) -> Result<QueuePlace, Refusal> {
        self.at_least(1)?;
        self.at_most(3)?;
        let port = if self.words.len() > 1 { Some(self.handle(1)?.0) } else { None };
        let priority = match self.words.get(2) {
            Some(word) => {
                let class = u8::try_from(self.number(2)?);
                Some(class.map_err(|_| {
                    Refusal::new(word.at(), format!("there is no class of service {}", word.text))
                })?)
            }
            None => None,
        };
        Ok(QueuePlace { port, priority })
    }

    /// The ports after the first word, and the link aggregation groups after `|`.
    fn ports_and_lags(&self) -> Result<(&'l [Word<'a>], &'l [Word<'a>]), Refusal> {
        let words = &self.words[1..];
        let bar = words.iter().position(|word| word.text == "|");
        (1..)
            .zip(words)
            .filter(|(at, _)| Some(at - 1) != bar)
            .try_for_each(|(at, _)| self.handle(at).map(drop))?;
        Ok(match bar {
            Some(bar) => (&words[..bar], &words[bar + 1..]),
            None => (words, &[]),
        })
    }
}

fn skip_arrow<'l, 'a>(words: &'l [Word<'a>]) -> &'l [Word<'a>] {
    match words {
        [arrow, rest @ ..] if arrow.text == "=>" => rest,
        _ => words,
    }
}

/// Two `rate:burst`, rates in units per microsecond.
/// A number with a unit of time as nanoseconds, exactly.
fn nanoseconds(text: &str) -> Option<u64> {
    let unit = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(unit);
    let digits: usize = match unit {
        "ns" => 0,
        "us" => 3,
        "ms" => 6,
        "s" => 9,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let fraction = fraction.trim_end_matches('0');
    if whole.is_empty() || fraction.len() > digits {
        return None;
    }
    let written = format!("{whole}{fraction}{}", "0".repeat(digits - fraction.len()));
    if !written.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    written.parse().ok()
}

fn rates(words: &[Word<'_>]) -> Result<Rates, Refusal> {
    let mut pairs = [(0, 0); 2];
    for (pair, word) in pairs.iter_mut().zip(words) {
        *pair = rate(word.text).ok_or_else(|| {
            Refusal::new(word.at(), format!("`{}` is not a rate and burst size", word.text))
                .with_help("write `rate:burst`, the rate in units per microsecond, as in `0.001:10`")
        })?;
    }
    let [(committed, committed_burst), (peak, peak_burst)] = pairs;
    Ok(Rates { committed, committed_burst, peak, peak_burst })
}

/// A decimal fraction in units per microsecond as millionths of a unit per second (10^12 of it), exactly; and the burst.
fn rate(text: &str) -> Option<(u64, u64)> {
    let (rate, burst) = text.split_once(':')?;
    let burst = burst.parse().ok()?;
    let (digits, exponent) = match rate.split_once(['e', 'E']) {
        Some((digits, exponent)) => {
            (digits, exponent.parse::<i32>().ok().filter(|e| e.unsigned_abs() <= 40)?)
        }
        None => (rate, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if (whole.is_empty() && fraction.is_empty()) || whole.len() + fraction.len() > 30 {
        return None;
    }
    let mantissa = format!("{whole}{fraction}");
    if !mantissa.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mantissa: u128 = mantissa.parse().ok()?;
    let power = 12 + exponent - fraction.len() as i32;
    let scaled = match u32::try_from(power) {
        Ok(power) => mantissa.checked_mul(10u128.checked_pow(power)?)?,
        Err(_) => mantissa / 10u128.checked_pow(power.unsigned_abs())?,
    };
    Some((u64::try_from(scaled).ok()?, burst))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusals(text: &str) -> Vec<(usize, String)> {
        let mut refused = Vec::new();
        read(text, |line| {
            if let Err(refusal) = line {
                refused.push((refusal.line(text), refusal.to_string()));
            }
            ControlFlow::Continue(())
        });
        refused
    }

    #[test]
    fn comments_blanks_and_line_ends_of_all_kinds() {
        let text = "# all\n\n  table_clear t # why\r\n\tmc_dump\nshow_tables";
        let mut seen = Vec::new();
        read(text, |line| {
            let line = line.unwrap();
            seen.push((line.number, text[line.at].to_owned()));
            ControlFlow::Continue(())
        });
        let expected = [(3, "table_clear t"), (4, "mc_dump"), (5, "show_tables")];
        assert_eq!(seen, expected.map(|(number, text)| (number, text.to_owned())));
    }

    #[test]
    fn table_add_is_split_at_the_arrow() {
        read("table_add t a 10.0.0.0/8 0x1&&&0xf => 1 2 30", |line| {
            let Command::TableAdd { table, action, matches, args } = line.unwrap().command else { panic!() };
            assert_eq!((table.text, action.text, matches.len(), args.len()), ("t", "a", 2, 3));
            ControlFlow::Continue(())
        });
    }

    #[test]
    fn errors_show_the_usage() {
        let usage = "usage: table_add TABLE ACTION MATCH ... => [PARAMETER ...] [PRIORITY]";
        assert_eq!(
            refusals("mc_dump\ntable_add t a 5 7"),
            [(2, format!("`=>` between match fields and parameters is missing ({usage})"))]
        );
        assert_eq!(
            refusals("tabel_add t a 5 => 7"),
            [(1, "there is no command `tabel_add` (did you mean `table_add`?)".into())]
        );
        assert_eq!(
            refusals("table_delete t"),
            [(
                1,
                "`table_delete` needs at least 2 argument(s), 1 given (usage: table_delete TABLE HANDLE)"
                    .into()
            )]
        );
        assert_eq!(refusals("mc_mgrp_create x")[0].1, "`x` is not a number (usage: mc_mgrp_create GROUP)");
        assert_eq!(refusals("mc_node_create 65536 1")[0].1, "a replica number is at most 65535");
        assert!(refusals(&"x".repeat(MAX_LINE + 1))[0].1.contains("longer than"));
    }

    #[test]
    fn rates_are_exact() {
        // 5e-6 bytes a microsecond are 5 bytes a second.
        assert_eq!(rate("0.000005:4"), Some((5_000_000, 4)));
        assert_eq!(rate("5e-6:4"), Some((5_000_000, 4)));
        assert_eq!(rate("1:0"), Some((1_000_000_000_000, 0)));
        assert_eq!(rate(".5:1"), Some((500_000_000_000, 1)));
        for wrong in
            ["1", "1:", ":1", "-1:1", "1e99:1", "1:-1", "nan:1", ".:1", "99999999999:1", "1e-2147483648:1"]
        {
            assert_eq!(rate(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn times_are_exact() {
        for (text, ns) in [
            ("2ms", 2_000_000),
            ("0.5ms", 500_000),
            ("10000ns", 10_000),
            ("1.310s", 1_310_000_000),
            ("0us", 0),
        ] {
            assert_eq!(nanoseconds(text), Some(ns), "{text}");
        }
        for wrong in
            ["2", "ms", ".5ms", "0.5ns", "-1ms", "1e3us", "1 ms", "1.0000000001s", "99999999999999s", "2m"]
        {
            assert_eq!(nanoseconds(wrong), None, "{wrong}");
        }
        let wrong = "account_set a 1 2ms 0.5 200 both\naccount_set a 1 2ms 0us 200 frame\naccount_get a\n\
            account_set a 1 2ms 500us 99999999999 both";
        let messages = refusals(wrong);
        assert_eq!(messages.len(), 4, "{messages:?}");
        assert!(messages[0].1.contains("`0.5` is not a time of whole nanoseconds"), "{messages:?}");
        assert!(messages[1].1.contains("`frame` is no test of an account"), "{messages:?}");
    }

    #[test]
    fn both_spellings_of_the_profile_commands() {
        for (text, by_table) in [("act_prof_create_group p", false), ("table_indirect_create_group t", true)]
        {
            read(text, |line| {
                let Command::CreateGroup { profile } = line.unwrap().command else { panic!() };
                assert_eq!(matches!(profile, ProfileName::Table(_)), by_table);
                ControlFlow::Continue(())
            });
        }
    }
}
