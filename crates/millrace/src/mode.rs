//! The mode of a switch: `millrace mode`, and the options of `millrace run` that decide about it.

use crate::cli::RunArgs;
use crate::entries::{load_text, read};
use crate::es;
use crate::findings::{Failure, Findings};
use crate::grpc::address;
use crate::output::{note_line, say_line};
use crate::privileges::Opener;
use clap::{Args, Subcommand};
use crc::{CRC_32_ISO_HDLC, Crc};
use millrace_chassis::{Configuration, ModeState, Modes};
use millrace_dataplane::{Conduct, Control, MODES, Mode, Switch};
use millrace_end_system::{ManagementCounters, ManagementCounts, Requests};
use millrace_listen::{Address, METRICS};
use millrace_observe_api::{Client, ConfigurationStatus, ModeStatus, OwnEndSystemStatus};
use millrace_printable::counted;
use serde_json::json;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What the mode of a switch depends on.
#[derive(Debug, Args)]
#[command(next_help_heading = "Modes")]
pub(crate) struct ModeArgs {
    /// The mode to start in: init, operational, maintenance, passive or quiet. Entries that are refused then lead to passive in place of
    /// the end, and programs are taken in modes that load [default: operational]
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<Mode>,
    /// The part number of the configuration, for those who manage the switch; what the comment at the beginning of the entries says, as
    /// `millrace network entries` writes it, if not given
    #[arg(long, value_name = "TEXT")]
    part_number: Option<String>,
    /// The CRC-32 that the file of --entries has to have, as 8 hexadecimal digits: with another one the switch is passive, without entries
    #[arg(long, value_name = "HEX", requires = "entries")]
    entries_crc: Option<Crc32>,
    /// What a switch has in place of entries that are not valid: those of the virtual links by which it is managed
    #[arg(long, value_name = "FILE", requires = "entries")]
    management_entries: Option<PathBuf>,
}

/// A CRC-32, as hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Crc32(u32);

impl FromStr for Crc32 {
    type Err = String;

    fn from_str(text: &str) -> Result<Crc32, String> {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        let is_hex = digits.len() == 8 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let crc = is_hex.then(|| u32::from_str_radix(digits, 16).ok()).flatten();
        crc.map(Crc32).ok_or_else(|| "a CRC-32 has 8 hexadecimal digits, as 1c291ca3".to_owned())
    }
}

/// The usual CRC-32: that of Ethernet, zip and `cksum -a crc32b`.
fn crc_of(text: &str) -> u32 {
    Crc::<u32>::new(&CRC_32_ISO_HDLC).checksum(text.as_bytes())
}

/// What the comment at the beginning of an entries file says of the configuration that it was made from.
#[derive(Debug, Default, PartialEq, Eq)]
struct Named {
    part_number: Option<String>,
    crc: Option<u32>,
}

/// Lines in which that is looked for.
const FIRST_LINES: usize = 16;

impl Named {
    /// Of `# Part number AB-1, CRC 0x1c291ca3.`
    fn of(text: &str) -> Named {
        let comments =
            text.lines().take(FIRST_LINES).take_while(|line| line.is_empty() || line.starts_with('#'));
        let said = comments.filter_map(|line| line.strip_prefix("# Part number ")?.rsplit_once(", CRC "));
        let Some((part_number, crc)) = said.last() else { return Named::default() };
        Named {
            part_number: (part_number != "none").then(|| part_number.to_owned()),
            crc: crc.trim_end_matches('.').parse::<Crc32>().ok().map(|Crc32(crc)| crc),
        }
    }
}

/// Gives the switch the entries of the command line, if they are valid, and finds its mode. Before ports are opened: a refused file leaves
/// output files alone, and no frame waits for the entries.
pub(crate) fn configure(
    args: &RunArgs,
    switch: &mut Switch,
    opener: &Opener,
    findings: &mut Findings,
) -> Result<Modes, Failure> {
    let part_number = args.modes.part_number.clone();
    let mut configuration = Configuration { part_number, ..Configuration::default() };
    if let Some(entries) = &args.entries {
        let path = entries.clone();
        let text = opener.open(move || read(&path))??;
        let crc = crc_of(&text);
        let named = Named::of(&text);
        configuration.crc = Some(named.crc.unwrap_or(crc));
        configuration.part_number = configuration.part_number.or(named.part_number);
        match args.modes.entries_crc {
            Some(Crc32(wanted)) if wanted != crc => {
                let fault = format!("the CRC-32 of {} is {crc:08x}, not {wanted:08x}", entries.display());
                note_line(format_args!("warning: {fault}: the switch is passive"));
                configuration.fault = Some(fault);
            }
            _ => match load_text(switch, entries, &text, findings) {
                Ok(()) => {}
                Err(failure) if args.modes.mode.is_some() => {
                    failure.show();
                    configuration.fault = Some(format!("{} is refused", entries.display()));
                }
                Err(failure) => return Err(failure),
            },
        }
        if let (Some(_), Some(path)) = (&configuration.fault, args.modes.management_entries.clone()) {
            // What was refused has left nothing.
            let name = path.clone();
            let text = opener.open(move || read(&path))??;
            load_text(switch, &name, &text, findings)?;
        }
    }
    let start = args.modes.mode.unwrap_or_default();
    let modes = Modes::new(start, args.modes.mode.is_some(), configuration);
    let modes = modes.map_err(|error| Failure::Usage(format!("--mode: {error}")))?;
    modes.set_up(switch);
    let own = es::management_port(&args.ports)?;
    switch.set_management_ports(args.grpc.cpu_port.into_iter().chain(own));
    Ok(modes)
}

/// The modes of a switch that runs from now on, reached by that, as the server over HTTP shows them.
pub(crate) fn shown(
    modes: &Modes,
    control: Control,
    requests: Option<&Requests>,
) -> Arc<dyn millrace_observe::Modes> {
    modes.runs(control);
    Arc::new(Shown(modes.clone(), requests.map(Requests::counts)))
}

struct Shown(Modes, Option<Arc<ManagementCounts>>);

impl millrace_observe::Modes for Shown {
    fn now(&self) -> ModeStatus {
        status(self.0.now())
    }

    fn configuration(&self) -> ConfigurationStatus {
        let Configuration { part_number, crc, fault } = self.0.configuration().clone();
        ConfigurationStatus { part_number, crc, fault }
    }

    fn set(&self, mode: &str) -> Result<ModeStatus, String> {
        self.0.set(mode.parse()?).map(status).map_err(|error| error.to_string())
    }

    fn own_end_system(&self) -> Option<OwnEndSystemStatus> {
        let counters = self.1.as_ref()?.now();
        let ManagementCounters { frames, discarded, echoes, requests, answers, no_way, busy, refused } =
            counters;
        Some(OwnEndSystemStatus { frames, discarded, echoes, requests, answers, no_way, busy, refused })
    }
}

fn status(state: ModeState) -> ModeStatus {
    let ModeState { mode, previous, since_ns, changes } = state;
    ModeStatus { mode: mode.to_string(), previous: previous.to_string(), since_ns, changes }
}

#[derive(Debug, Args)]
pub(crate) struct ModeCommand {
    #[command(subcommand)]
    what: What,
    /// Where the switch serves metrics
    #[arg(long, value_name = "ADDR|PORT", default_value = "127.0.0.1:9560", global = true)]
    metrics: Address,
    /// One JSON object on standard output
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Says the mode of a running switch
    Show,
    /// Has a running switch go on in another mode
    Set {
        /// The mode: init, which checks the configuration again and becomes operational or passive, operational, maintenance, passive, quiet
        #[arg(value_name = "MODE")]
        mode: Mode,
    },
    /// Says what a switch does in each mode, without one
    List,
}

/// `millrace mode`.
pub(crate) fn mode(args: &ModeCommand) -> Result<(), Failure> {
    if let What::List = args.what {
        return list(args.json);
    }
    let client = Client::new(address(&args.metrics, &METRICS)?);
    let answer = match args.what {
        What::Set { mode } => client.set_mode(mode.name()),
        What::Show | What::List => client.mode(),
    };
    let state = answer.map_err(|error| Failure::Failed(error.to_string()))?;
    match args.json {
        true => say_line(json!({ "ok": true, "mode": state })),
        false => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let since = now.saturating_sub(Duration::from_nanos(state.since_ns)).as_secs();
            say_line(format_args!(
                "{} for {since} s, before that {}; {}",
                state.mode,
                state.previous,
                counted(state.changes, "change")
            ));
        }
    }
    Ok(())
}

fn list(json: bool) -> Result<(), Failure> {
    let names = |conduct: &Conduct| conduct.next.iter().map(|mode| mode.name()).collect::<Vec<_>>();
    if json {
        let modes = MODES.iter().map(|conduct| {
            let Conduct { name, means, forwards, sends, loads, .. } = conduct;
            json!({ "mode": name, "means": means, "forwards": forwards, "sends": sends, "loads": loads, "next": names(conduct) })
        });
        say_line(json!({ "ok": true, "modes": modes.collect::<Vec<_>>() }));
        return Ok(());
    }
    let word = |is_so: bool| if is_so { "yes" } else { "no" };
    say_line(format_args!("{:<12} {:<9} {:<6} {:<6} next", "mode", "forwards", "sends", "loads"));
    for conduct in &MODES {
        let Conduct { name, forwards, sends, loads, .. } = *conduct;
        let next = names(conduct).join(", ");
        say_line(format_args!(
            "{name:<12} {:<9} {:<6} {:<6} {next}",
            word(forwards),
            word(sends),
            word(loads)
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_say_what_they_were_made_from() {
        let said = |part: Option<&str>, crc| Named { part_number: part.map(str::to_owned), crc };
        for (text, wanted) in [
            (
                "# Switch 1.\n# Part number AB, CRC-1, CRC 0x1c291ca3.\n\ntable_add",
                said(Some("AB, CRC-1"), Some(0x1c29_1ca3)),
            ),
            ("# Part number none, CRC 0x00000001.\n", said(None, Some(1))),
            ("# Part number AB-1, CRC what.\n", said(Some("AB-1"), None)),
            ("table_add\n# Part number AB-1, CRC 0x00000001.\n", Named::default()),
            ("", Named::default()),
        ] {
            assert_eq!(Named::of(text), wanted, "{text}");
        }
    }

    #[test]
    fn a_crc_is_that_of_the_catalogue() {
        // The check value of CRC-32/ISO-HDLC.
        assert_eq!(crc_of("123456789"), 0xcbf4_3926);
        assert_eq!("cbf43926".parse(), Ok(Crc32(0xcbf4_3926)));
        assert_eq!("0x00000001".parse(), Ok(Crc32(1)));
        for wrong in ["", "0x", "1", "cbf4392", "cbf439260", "cbf4392g", "+bf43926"] {
            assert!(wrong.parse::<Crc32>().unwrap_err().contains("8 hexadecimal digits"), "{wrong}");
        }
    }
}
