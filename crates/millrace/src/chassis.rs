//! `millrace chassis`: a device with many virtual switches, as one file describes it.

use crate::cli::{Engine, LogArgs, Simulator};
use crate::cores::missing;
use crate::entries::read_config;
use crate::findings::Failure;
use crate::grpc::tell_exposure;
use crate::logging::{self, Log};
use crate::output::{has_colour, note_line, say_line, tell_coloured};
use crate::privileges::{Opener, Privileges};
use clap::{Args, Subcommand};
use millrace_device_file::DeviceFile;
use millrace_listen::Address;
use millrace_printable::counted;
use millrace_virtual_switches::{ControlSocket, Device, OpenPorts};
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use tracing::{error, info};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ChassisCommand {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    run: RunDevice,
    /// One JSON object on standard output
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// Runs a device until it is told to end.
#[derive(Debug, Args)]
struct RunDevice {
    /// The file of the device; SIGHUP has it read again
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The user, and the group, that the device is when its ports are open
    #[arg(long, value_name = "USER[:GROUP]")]
    user: Option<String>,
    /// What runs the programs of switches whose `engine` is auto
    #[arg(long, value_enum, default_value_t = Engine::Auto)]
    engine: Engine,
    #[command(flatten)]
    log: LogArgs,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Says all that is wrong with the file of a device, without starting it
    Check {
        /// The file
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

pub(crate) fn chassis(command: &ChassisCommand) -> Result<(), Failure> {
    match (&command.what, &command.run.file) {
        (Some(What::Check { file }), _) => check(file, command.json),
        (None, Some(file)) => run(file, &command.run, command.json),
        (None, None) => Err(Failure::Usage("FILE is missing: the file of a device".into())),
    }
}

/// The device that a file describes; what is wrong is shown.
fn load(file: &Path, is_json: bool) -> Result<DeviceFile, Failure> {
    let text = read_config(file)?;
    let folder = file.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    match DeviceFile::parse_with_files(&file.display().to_string(), &text, folder) {
        Ok(device) => {
            let folder = folder.canonicalize().map_err(|error| Failure::failed(folder.display(), error))?;
            Ok(device.rooted_at(&folder))
        }
        Err(problems) => {
            match is_json {
                true => say_line(json!({ "ok": false, "diagnostics": problems.problems }).to_string()),
                false => tell_coloured(problems.render(has_colour())),
            }
            Err(Failure::Told)
        }
    }
}

fn check(file: &Path, is_json: bool) -> Result<(), Failure> {
    let device = load(file, is_json)?;
    let (switches, ports, links) = (device.switches.len(), device.ports.len(), device.links.len());
    say_line(match is_json {
        true => json!({ "ok": true, "switches": switches, "ports": ports, "links": links }).to_string(),
        false => {
            let all = [counted(switches, "switch"), counted(ports, "port"), counted(links, "link")];
            format!("{}: {}", device.device.name, all.join(", "))
        }
    });
    Ok(())
}

/// Whether the processors that the file names are there, and this process may use them.
fn may_run_on(path: &Path, file: &DeviceFile) -> Result<(), Failure> {
    let processors = file.device.processors.iter().map(|processor| usize::from(*processor));
    match missing(processors).map_err(|error| Failure::failed(path.display(), error))? {
        None => Ok(()),
        Some((processor, known)) => {
            let why =
                format!("`processors`: the device cannot run on processor {processor}; it may use {known}");
            Err(Failure::failed(path.display(), why))
        }
    }
}

fn run(path: &Path, args: &RunDevice, is_json: bool) -> Result<(), Failure> {
    let log = logging::start(&args.log)?;
    let file = load(path, is_json)?;
    may_run_on(path, &file)?;
    let privileges = privileges(args, &file)?;
    let opener = Opener::start()?;
    privileges.give_up()?;
    let opened = file.clone();
    let ports = opener.open(move || OpenPorts::open(&opened))??;
    drop(opener);
    let signals = Signals::new([SIGHUP, SIGINT, SIGTERM]);
    let mut signals = signals.map_err(|error| Failure::failed("signals", error))?;
    let device = Device::start_with(&file, ports, args.engine.kind(Simulator::InProcess)?)?;
    let socket = ControlSocket::serve(&device)?;
    note_line(format_args!("{} is running with {}", device.name(), counted(file.switches.len(), "switch")));
    note_line(format_args!("ctl: {}", socket.path().display()));
    if let Some(address) = device.p4runtime() {
        note_line(format_args!("P4Runtime: {address}"));
    }
    for switch in &file.switches {
        if let Some(address) = device.thrift(&switch.name) {
            note_line(format_args!("Thrift of switch {}: {address}", switch.name));
        }
    }
    if let Some(address) = device.http() {
        note_line(format_args!("metrics at http://{address}/metrics"));
        info!(%address, "metrics");
    }
    device.exposures().iter().for_each(|exposure| tell_exposure(exposure));
    for signal in signals.forever() {
        if signal != SIGHUP {
            break;
        }
        reopen(&log);
        apply(&device, path);
    }
    info!("end");
    drop(socket);
    if is_json {
        say_line(json!({ "ok": true }).to_string());
    }
    Ok(())
}

fn reopen(log: &Log) {
    if log.has_file()
        && let Err(Failure::Failed(error)) = log.reopen()
    {
        error!(error, "the log is not opened again");
    }
}

/// The file has changed: the device becomes as it says.
fn apply(device: &Device, path: &Path) {
    let applied = load(path, false).and_then(|file| Ok(device.apply(&file, false)?));
    let result = match &applied {
        Ok(done) => {
            done.done.iter().for_each(note_line);
            info!(changes = done.done.len(), "the file is applied");
            Ok(())
        }
        Err(failure) => {
            failure.show();
            error!("the file is not applied; what ran goes on");
            Err("refused")
        }
    };
    device.record_by_itself("", "apply for SIGHUP", result);
}

impl From<millrace_virtual_switches::Failure> for Failure {
    fn from(failure: millrace_virtual_switches::Failure) -> Failure {
        Failure::Failed(failure.to_string())
    }
}

/// What the device has to be able to do when its ports are open.
fn privileges(args: &RunDevice, file: &DeviceFile) -> Result<Privileges, Failure> {
    let mut privileges = Privileges::new(args.user.as_deref())?;
    let of_switches = file.switches.iter().filter_map(|switch| switch.thrift.as_ref());
    let addresses = [&file.device.grpc, &file.device.http].into_iter().flatten().chain(of_switches);
    let ports = addresses.filter_map(|text| text.parse::<Address>().ok()?.port());
    ports.for_each(|port| privileges.serves(port));
    let socket = Path::new(&file.device.socket);
    let audit = file.device.audit.as_deref().map(Path::new);
    let files = [Some(socket), audit, args.log.log.as_deref()].into_iter().flatten();
    let folders =
        files.map(|path| path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new(".")));
    let own = [&file.device.captures, &file.device.uploads].into_iter().flatten();
    for folder in folders.chain(own.map(Path::new)) {
        if !folder.exists() {
            // Names of uploads are hashes of what is in them, also of tokens.
            let is_uploads = file.device.uploads.as_deref().map(Path::new) == Some(folder);
            let made =
                DirBuilder::new().recursive(true).mode(if is_uploads { 0o700 } else { 0o777 }).create(folder);
            made.map_err(|error| Failure::failed(folder.display(), error))?;
            privileges.give(folder)?;
        }
        privileges.writes_in(folder);
    }
    Ok(privileges)
}
