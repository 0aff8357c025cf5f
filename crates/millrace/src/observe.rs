//! `millrace top`, `millrace capture`, `millrace log`, `millrace queue`, `millrace plugin`, and the metrics of `millrace run`.

use crate::cli::LogLevel;
use crate::ctl::{name, token};
use crate::findings::Failure;
use crate::grpc::{address, warn_of_exposure};
use crate::output::{note_line, say, say_line};
use crate::plugins;
use clap::{Args, ValueEnum};
use millrace_listen::{Address, Admission, METRICS};
use millrace_observe::{Listen, Server, Shown};
use millrace_observe_api::{Client, WorkerStatus};
use millrace_printable::counted;
use millrace_syntax::read_file;
use serde_json::json;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use tracing::info;

/// What a running switch shows of itself.
#[derive(Debug, Args)]
#[command(next_help_heading = "Metrics")]
pub(crate) struct MetricsArgs {
    /// Serves metrics there, as 9560 (of this machine), for Prometheus, `millrace top` and `millrace capture`
    #[arg(long, value_name = "ADDR|PORT")]
    pub(crate) metrics: Option<Address>,
    /// Lets other machines read them
    #[arg(long, requires = "metrics")]
    pub(crate) metrics_allow_remote: bool,
    /// A further name or address by which clients ask for them, as with a proxy; requests for other hosts are refused
    #[arg(long, value_name = "HOST", requires = "metrics")]
    pub(crate) metrics_host: Vec<String>,
}

/// Which running switch.
#[derive(Debug, Args)]
pub(crate) struct WhichArgs {
    /// Where it serves metrics
    #[arg(long, value_name = "ADDR|PORT", default_value = "127.0.0.1:9560")]
    metrics: Address,
}

/// Which switch of a device with many.
#[derive(Debug, Args)]
pub(crate) struct OfDeviceArgs {
    /// That switch, of a device with many virtual switches
    #[arg(long, value_name = "NAME", value_parser = name)]
    switch: Option<String>,
    /// The file that holds the token of a tenant or of the operator of the device
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl OfDeviceArgs {
    fn client(&self, given: &Address) -> Result<Client, Failure> {
        let mut client = Client::new(address(given, &METRICS)?);
        if let Some(switch) = &self.switch {
            client = client.of_switch(switch);
        }
        if let Some(path) = &self.token_file {
            client = client.with_token(&token(path)?);
        }
        Ok(client)
    }
}

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// Where the switch serves metrics
    #[arg(value_name = "ADDR|PORT", default_value = "127.0.0.1:9560")]
    address: Address,
    #[command(flatten)]
    of_device: OfDeviceArgs,
    /// Prints one page, with the rates of one second; also when standard output is no terminal
    #[arg(long)]
    once: bool,
    /// One JSON object on standard output: the switch as it is now
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CaptureCommand {
    /// What to do
    #[arg(value_enum, value_name = "on|off")]
    what: OnOff,
    /// The port
    #[arg(value_name = "PORT")]
    port: u32,
    /// The name of the files, without _in.pcap and _out.pcap: that of the interface if not given
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    which: WhichArgs,
    #[command(flatten)]
    of_device: OfDeviceArgs,
    /// One JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LogCommand {
    /// What is at least that important is logged from now on; without it, the level is said
    #[arg(value_enum, value_name = "LEVEL")]
    level: Option<LogLevel>,
    #[command(flatten)]
    which: WhichArgs,
    /// One JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct QueueCommand {
    /// The port; without it, the queue pairs of all workers are said
    #[arg(value_name = "PORT", requires = "queue")]
    port: Option<u32>,
    /// The queue pair of its device, counted from 0
    #[arg(value_name = "QUEUE", requires = "worker")]
    queue: Option<u32>,
    /// The worker that has it from now on, counted from 0
    #[arg(value_name = "WORKER")]
    worker: Option<u32>,
    #[command(flatten)]
    which: WhichArgs,
    /// One JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PluginCommand {
    /// What to do: load also replaces what is there, on goes on with what was loaded before it was off
    #[arg(value_enum, value_name = "list|load|off|on", default_value = "list")]
    what: PluginWhat,
    /// The name by which programs call it
    #[arg(value_name = "NAME", required_if_eq_any = [("what", "load"), ("what", "off"), ("what", "on")])]
    name: Option<String>,
    /// The module, as match.wasm,policy=drop,fuel=100000,failures=3,memory=4
    #[arg(value_name = "FILE[,SETTING=VALUE]...", required_if_eq("what", "load"))]
    file: Option<String>,
    #[command(flatten)]
    which: WhichArgs,
    /// One JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PluginWhat {
    List,
    Load,
    Off,
    On,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OnOff {
    On,
    Off,
}

/// Serves metrics, if they are asked for.
pub(crate) fn serve(args: &MetricsArgs, shown: impl FnOnce() -> Shown) -> Result<Option<Server>, Failure> {
    let Some(given) = &args.metrics else { return Ok(None) };
    let listen = Listen {
        address: address(given, &METRICS)?,
        allow_remote: args.metrics_allow_remote,
        hosts: args.metrics_host.clone(),
    };
    let started = Server::start(listen, shown());
    let server = started.map_err(|error| Failure::Failed(error.to_string()))?;
    note_line(format_args!("metrics at http://{}/metrics", server.address()));
    info!(address = %server.address(), "metrics");
    warn_of_exposure(&METRICS, server.address(), Admission::Anybody);
    Ok(Some(server))
}

/// `millrace top`.
pub(crate) fn top(args: &TopArgs) -> Result<(), Failure> {
    let client = args.of_device.client(&args.address)?;
    if args.json {
        let status = client.status().map_err(|error| Failure::Failed(error.to_string()))?;
        say_line(json!({ "ok": true, "status": status }));
        return Ok(());
    }
    if args.once || !std::io::stdout().is_terminal() {
        say(millrace_top::once(&client).map_err(|error| Failure::Failed(error.to_string()))?);
        return Ok(());
    }
    millrace_top::run(&client).map_err(|error| Failure::Failed(error.to_string()))
}

/// `millrace capture`.
pub(crate) fn capture(args: &CaptureCommand) -> Result<(), Failure> {
    if let (OnOff::Off, Some(_)) = (args.what, &args.name) {
        return Err(Failure::Usage("--name is for `on`: it names the files that a capture begins".into()));
    }
    let client = args.of_device.client(&args.which.metrics)?;
    let done = match args.what {
        OnOff::On => client.start_capture(args.port, args.name.as_deref()),
        OnOff::Off => client.stop_capture(args.port),
    };
    let capture = done.map_err(|error| Failure::Failed(error.to_string()))?;
    let whole = capture.error.is_none();
    match args.what {
        _ if args.json => say_line(json!({ "ok": whole, "capture": capture })),
        OnOff::On => say_line(format_args!("{}\n{}", capture.incoming, capture.outgoing)),
        OnOff::Off => {
            say_line(format_args!("{}, {} left out", counted(capture.packets, "packet"), capture.lost))
        }
    }
    match capture.error {
        None => Ok(()),
        Some(_) if args.json => Err(Failure::Told),
        Some(error) => Err(Failure::Failed(format!("the capture is not whole: {error}"))),
    }
}

/// `millrace log`.
pub(crate) fn log(args: &LogCommand) -> Result<(), Failure> {
    let client = Client::new(address(&args.which.metrics, &METRICS)?);
    let answer = match args.level {
        Some(level) => client.set_log_level(&level.name()),
        None => client.log_level(),
    };
    let level = answer.map_err(|error| Failure::Failed(error.to_string()))?.level;
    match args.json {
        true => say_line(json!({ "ok": true, "level": level })),
        false => say_line(level),
    }
    Ok(())
}

/// `millrace queue`.
pub(crate) fn queue(args: &QueueCommand) -> Result<(), Failure> {
    let client = Client::new(address(&args.which.metrics, &METRICS)?);
    let answer = match (args.port, args.queue, args.worker) {
        (Some(port), Some(queue), Some(worker)) => client.move_queue(port, queue, worker),
        _ => client.queues(),
    };
    let workers = answer.map_err(|error| Failure::Failed(error.to_string()))?;
    match args.json {
        true => say_line(json!({ "ok": true, "workers": workers })),
        false => workers.iter().enumerate().for_each(|(number, worker)| say_line(queues_of(number, worker))),
    }
    Ok(())
}

/// `millrace plugin`.
pub(crate) fn plugin(args: &PluginCommand) -> Result<(), Failure> {
    let client = Client::new(address(&args.which.metrics, &METRICS)?);
    match (args.what, &args.name, &args.file) {
        (PluginWhat::List, Some(name), _) => {
            return Err(Failure::Usage(format!("`list` is of all plugins: `{name}` says nothing")));
        }
        (PluginWhat::On | PluginWhat::Off, _, Some(file)) => {
            return Err(Failure::Usage(format!("`{file}`: a file is for `load`")));
        }
        _ => {}
    }
    let name = args.name.as_deref().unwrap_or_default();
    let answer = match args.what {
        PluginWhat::List => client.plugins(),
        PluginWhat::Load => {
            let given = args.file.as_deref().unwrap_or_default();
            let (file, settings) = given.split_once(',').unwrap_or((given, ""));
            let module = read_file(Path::new(file), plugins::MAX_MODULE_FILE)
                .map_err(|error| Failure::failed(file, error))?;
            client.load_plugin(name, settings, module)
        }
        PluginWhat::Off => client.switch_plugin(name, false),
        PluginWhat::On => client.switch_plugin(name, true),
    };
    let plugins = answer.map_err(|error| Failure::Failed(error.to_string()))?;
    match args.json {
        true => say_line(json!({ "ok": true, "plugins": plugins })),
        false => say(plugins::text(&plugins)),
    }
    Ok(())
}

/// `worker 0 on processor 2: port 0 queue 0, port 1 queue 0`
fn queues_of(number: usize, worker: &WorkerStatus) -> String {
    let processor =
        worker.processor.map(|processor| format!(" on processor {processor}")).unwrap_or_default();
    let pairs = worker.queue_pairs.iter().map(|pair| format!("port {} queue {}", pair.port, pair.queue));
    let pairs = pairs.collect::<Vec<_>>().join(", ");
    format!("worker {number}{processor}: {}", if pairs.is_empty() { "no queue pair" } else { &pairs })
}
